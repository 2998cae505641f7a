//! The data tier from its options to what is served.

use std::sync::Arc;

use tidemark_rpc::Calls;
use tidemark_service::encode::{gauge, info};
use tidemark_service::{
    Durability, Options, ReferenceSystem, Setting, SettingError, Settings, StartError, System,
};
use tidemark_store::Embedded;

use super::service::{DataService, Kept};
use crate::store_metrics::encode_embedded;

/// The data tier: it has no settings of its own.
#[derive(Debug)]
pub struct AirlineData;

impl ReferenceSystem for AirlineData {
    const NAME: &'static str = "airline-data";
    const DESCRIPTION: &'static str =
        "customers, sessions and bookings for several airlines (customers_in=data)";
    const SETTINGS: &'static [Setting] = &[];

    fn read(_: &Settings<'_>) -> Result<Self, SettingError> {
        Ok(AirlineData)
    }

    fn start(self, options: &Options) -> Result<System, StartError> {
        let store = match &options.data_dir {
            Some(dir) if options.durability != Durability::Memory => Embedded::open(dir, options.durability)?,
            _ => Embedded::in_memory(),
        };
        let recovered = store.recovered();
        tracing::info!(customers = recovered.customers, sessions = recovered.sessions,
            bookings = recovered.bookings, durability = %options.durability, "data is there");
        let kept = Arc::new(Kept::new(store.clone()));
        let system = System::default().endpoint(Calls::new().service(DataService(kept)));
        Ok(system.counters(move |e| {
            let promise = [("durability", store.durability().as_str())];
            info(e, "airline_store", "What an acknowledged write is worth", &promise)?;
            let [sessions, customers, bookings] = store.counts();
            gauge(e, "airline_store_sessions", "Sessions, expired ones included", sessions)?;
            gauge(e, "airline_store_customers", "Customers", customers)?;
            gauge(e, "airline_store_bookings", "Bookings", bookings)?;
            encode_embedded(e, &store)
        }))
    }
}
