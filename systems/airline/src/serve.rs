//! An airline from its settings to its routes.

use std::sync::Arc;

use tidemark_service::{
    BoundServer, Options, ReferenceSystem, ServiceError, Setting, SettingError, Settings, StartError, System,
};

use crate::app::App;
use crate::clock::Clock;
use crate::customers::CUSTOMERS_MAX;
use crate::openapi::document;
use crate::routes::router;
use crate::settings::{Airline, SETTINGS};
use crate::store_metrics::encode;
use crate::stores::Choice;
use crate::timetable::DAYS_MAX;

/// Most sessions or bookings that can be allowed.
const RECORDS_MAX: u64 = 1_000_000_000;

impl ReferenceSystem for Airline {
    const NAME: &'static str = "airline";
    const DESCRIPTION: &'static str = "the public Acme Air benchmark's service: flights, bookings, customers";
    const SETTINGS: &'static [Setting] = SETTINGS;

    fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        let hours: i64 = settings.value("session_hours", 1..=8760)?;
        Ok(Airline {
            choice: Choice::read(settings)?,
            customers: settings.value("customers", 1..=CUSTOMERS_MAX)?,
            days: settings.value("days", 1..=DAYS_MAX)?,
            session_ms: hours * 3_600_000,
            sessions_max: settings.value("sessions_max", 1..=RECORDS_MAX)?,
            bookings_max: settings.value("bookings_max", 1..=RECORDS_MAX)?,
            clock: Clock::System,
            body_bytes_max: settings.value("body_bytes_max", 1024..=64 * 1024 * 1024)?,
        })
    }

    fn body_bytes_max(&self) -> usize {
        self.body_bytes_max
    }

    fn uses_directory(&self) -> bool {
        self.choice.is_here()
    }

    /// Opens the stores and makes what is missing in them.
    fn start(self, options: &Options) -> Result<System, StartError> {
        let durability = options.durability;
        let opened = Arc::new(self.choice.clone().open(options.data_dir.as_deref(), durability)?);
        let app = Arc::new(App::new(opened.clone(), &self));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let made = runtime.block_on(app.load(self.customers))?;
        runtime.block_on(app.sweep());
        tracing::info!(customers = self.customers, made, flights = app.timetable.count(), %durability,
            stores = app.opened.choice.names(), "data is there");
        let system = System::new(router(app.clone(), document().to_string())).metrics(app.timings.clone());
        Ok(system.counters(move |encoder| encode(encoder, &opened)).background(app.keep_house()))
    }
}

impl Airline {
    /// [Binds](ReferenceSystem::bind) an airline with another clock, for tests.
    ///
    /// # Errors
    /// As `bind`.
    pub fn bind_with_clock(options: Options, clock: Clock) -> Result<BoundServer, ServiceError> {
        let airline = Self::read(&Settings::new(SETTINGS, &options.settings))?;
        Airline { clock, ..airline }.bind_with(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Airline, SettingError> {
        let given = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Airline::read(&Settings::new(SETTINGS, &given))
    }

    #[test]
    fn what_is_not_set_is_as_the_table_says() {
        let airline = read(&[]).unwrap();
        assert_eq!((airline.customers, airline.days, airline.session_ms), (200, 30, 86_400_000));
        assert_eq!(airline.body_bytes_max, 1024 * 1024);
        assert_eq!(read(&[("customers", "3000000")]).unwrap().customers, 3_000_000);
    }

    #[test]
    fn a_wrong_value_is_told_what_is_allowed() {
        for (name, value) in [("days", "0"), ("days", "367"), ("days", "many"), ("customers", "-1")] {
            let setting = SETTINGS.iter().find(|setting| setting.name == name).unwrap();
            let error = read(&[(name, value)]).unwrap_err().to_string();
            assert!(
                error.contains(name) && error.contains(value) && error.contains(setting.allowed),
                "{error}"
            );
        }
    }
}
