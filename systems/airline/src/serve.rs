//! An airline from its settings to its routes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidemark_mesh::{CallSettings, Client, ClientOptions, Member, MemberSettings, Source};
use tidemark_service::{
    BoundServer, Options, ReferenceSystem, ServiceError, Setting, SettingError, Settings, StartError, System,
};

use crate::app::App;
use crate::auth::AirlineAuth;
use crate::clock::Clock;
use crate::customers::CUSTOMERS_MAX;
use crate::flights::CacheSettings;
use crate::logins::{Auth, COMMANDS};
use crate::openapi::document;
use crate::routes::router;
use crate::settings::{Airline, FLIGHT_CACHE_MAX, RECORDS_MAX, SETTINGS};
use crate::store_metrics::encode;
use crate::stores::Choice;
use crate::timetable::DAYS_MAX;

/// What the auth service's instances register as, and the airline's own.
const AUTH: &str = AirlineAuth::NAME;
/// Calls to the auth service together, as the public port names them.
const GROUP: &str = "AcmeAirGroup";
const POOL: &str = "AcmeAirPool";

/// How long the start waits until an instance of the auth service is known, and how often it looks.
const FIRST_LIST_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl ReferenceSystem for Airline {
    const NAME: &'static str = "airline";
    const DESCRIPTION: &'static str = "the public Acme Air benchmark's service: flights, bookings, customers";
    const SETTINGS: &'static [Setting] = SETTINGS;

    fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        let hours: i64 = settings.value("session_hours", 1..=8760)?;
        Ok(Airline {
            choice: Choice::read(settings)?,
            auth: settings.text("auth", Source::fixed)?,
            calls: CallSettings::read(settings)?,
            member: MemberSettings::read(settings)?,
            flight_cache: CacheSettings {
                entries: settings.text("flight_cache", |word| match word {
                    "auto" => Some(None),
                    number => number.parse().ok().filter(|entries| *entries <= FLIGHT_CACHE_MAX).map(Some),
                })?,
                age_max: Duration::from_secs(settings.value("flight_cache_age_s", 1..=86_400)?),
            },
            customers: settings.value("customers", 1..=CUSTOMERS_MAX)?,
            days: settings.value("days", 1..=DAYS_MAX)?,
            nests_flights: settings.text("nested_flights", |word| match word {
                "asked" => Some(false),
                "always" => Some(true),
                _ => None,
            })?,
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
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = self.auth_client()?;
        if let Some(client) = &client {
            runtime.block_on(first_list(client));
        }
        let auth = client.clone().map(Auth);
        let app = Arc::new(App::new(opened.clone(), &self, auth));
        let made = runtime.block_on(app.load(self.customers))?;
        runtime.block_on(app.sweep());
        tracing::info!(customers = self.customers, made, %durability,
            stores = app.opened.choice.names(), "data is there");
        let mut routes = router(app.clone(), document().to_string());
        if let Some(client) = &client {
            routes = routes.merge(tidemark_mesh::routes(client.clone()));
        }
        let mut system = System::new(routes).metrics(app.timings.clone());
        let counted = app.clone();
        system = system
            .counters(move |encoder| {
                encode(encoder, &opened)?;
                counted.flights.cache().map_or(Ok(()), |cache| cache.encode(encoder))
            })
            .background(app.keep_house());
        if let Some(registry) = self.member.registry {
            let member = Member::new(registry, Self::NAME, self.member.lease);
            let leaving = member.clone();
            system = system.once_serving(move |local| member.keep(local)).before_stop(leaving.leave());
        }
        if let Some(client) = client {
            let (counted, timed, stopping) = (client.clone(), client.clone(), client.clone());
            system = system
                .counters(move |encoder| tidemark_mesh::encode(encoder, &counted))
                .metrics(timed.timings())
                .before_stop(async move { stopping.stop_streams() })
                .background(client.keep_list());
        }
        Ok(system)
    }
}

/// Looks the auth service up, for a while again where nobody is registered: both may be starting.
async fn first_list(client: &Client) {
    let begun = Instant::now();
    client.refresh().await;
    while !client.knows_any() && begun.elapsed() < FIRST_LIST_WITHIN {
        tokio::time::sleep(LOOK_AGAIN).await;
        client.refresh().await;
    }
}

impl Airline {
    /// Who asks the auth service, where sessions are there.
    fn auth_client(&self) -> Result<Option<Arc<Client>>, StartError> {
        if !self.choice.has_auth_service() {
            return Ok(None);
        }
        let source = match (&self.auth[..], &self.member.registry) {
            ([], None) => {
                return Err(
                    "sessions_in=auth needs the auth service: set auth=http://HOST:PORT, or registry".into(),
                );
            }
            ([], Some(registry)) => Source::Registry(registry.clone()),
            (places, _) => Source::Fixed(places.to_vec()),
        };
        let CallSettings { balance, timeout, hedge, pool, breaker } = self.calls.clone();
        Ok(Some(Client::new(ClientOptions {
            service: AUTH.into(),
            commands: COMMANDS,
            group: GROUP,
            pool_name: POOL,
            pool,
            timeout,
            breaker,
            balance,
            hedge,
            source,
        })))
    }

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
}
