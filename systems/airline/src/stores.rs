//! Where an airline has its customers, sessions, bookings and flights: each chosen on its own.

use std::path::Path;
use std::sync::Arc;

use tidemark_service::{SettingError, Settings};
use tidemark_store::bookings::Bookings;
use tidemark_store::customers::Customers;
use tidemark_store::flights::Flights;
use tidemark_store::sessions::Sessions;
use tidemark_store::{Durability, Embedded, OwnMetric, StoreError};

use crate::data::{self, DataStore};

/// The stores that an airline stands on.
#[derive(Clone)]
pub(crate) struct Stores {
    /// Who can fly.
    pub(crate) customers: Arc<dyn Customers>,
    /// Who flies where.
    pub(crate) bookings: Arc<dyn Bookings>,
}

/// A product that keeps data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Product {
    /// This process.
    Embedded,
    /// Another one: [`AirlineData`](crate::data::AirlineData).
    Data,
    #[cfg(feature = "postgres")]
    Postgres,
    #[cfg(feature = "mariadb")]
    Mariadb,
    #[cfg(feature = "cassandra")]
    Cassandra,
    #[cfg(feature = "redis")]
    Redis,
    /// The auth service: another process, or several.
    Auth,
}

impl Product {
    /// Every product that was built in.
    pub(crate) const ALL: &[Product] = &[
        Product::Embedded,
        Product::Data,
        #[cfg(feature = "postgres")]
        Product::Postgres,
        #[cfg(feature = "mariadb")]
        Product::Mariadb,
        #[cfg(feature = "cassandra")]
        Product::Cassandra,
        #[cfg(feature = "redis")]
        Product::Redis,
        Product::Auth,
    ];

    /// The word of the settings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Product::Embedded => "embedded",
            Product::Data => "data",
            #[cfg(feature = "postgres")]
            Product::Postgres => "postgres",
            #[cfg(feature = "mariadb")]
            Product::Mariadb => "mariadb",
            #[cfg(feature = "cassandra")]
            Product::Cassandra => "cassandra",
            #[cfg(feature = "redis")]
            Product::Redis => "redis",
            Product::Auth => "auth",
        }
    }

    /// What it is, in one line.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Product::Embedded => "Inside this process: state in memory, changes in a durable log",
            Product::Data => "The data tier, another process: sessions, customers, bookings",
            #[cfg(feature = "postgres")]
            Product::Postgres => "PostgreSQL: sessions, customers, bookings, flights",
            #[cfg(feature = "mariadb")]
            Product::Mariadb => "MariaDB: customers, bookings",
            #[cfg(feature = "cassandra")]
            Product::Cassandra => "Apache Cassandra: customers, bookings",
            #[cfg(feature = "redis")]
            Product::Redis => "Redis: sessions",
            Product::Auth => "The auth service: sessions",
        }
    }

    /// The one that a setting names, which takes these words.
    fn read(settings: &Settings<'_>, setting: &'static str, words: &[&str]) -> Result<Self, SettingError> {
        let not_built_in = |word: &str| match word {
            "redis" => SettingError::NotBuiltIn { store: "Redis", feature: "redis" },
            "mariadb" => SettingError::NotBuiltIn { store: "MariaDB", feature: "mariadb" },
            "cassandra" => SettingError::NotBuiltIn { store: "Apache Cassandra", feature: "cassandra" },
            _ => SettingError::NotBuiltIn { store: "PostgreSQL", feature: "postgres" },
        };
        settings.text(setting, |word| {
            words.contains(&word).then(|| {
                let product = Product::ALL.iter().find(|product| product.name() == word);
                product.copied().ok_or_else(|| not_built_in(word))
            })
        })?
    }
}

/// What may keep customers, and bookings.
const RECORDS_IN: &[&str] = &["embedded", "data", "postgres", "mariadb", "cassandra"];

/// Which data is where, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) customers: Product,
    pub(crate) sessions: Product,
    pub(crate) bookings: Product,
    /// Embedded: computed.
    pub(crate) flights: Product,
    data: data::Options,
    #[cfg(feature = "postgres")]
    postgres: tidemark_store::postgres::Options,
    #[cfg(feature = "mariadb")]
    mariadb: tidemark_store::mariadb::Options,
    #[cfg(feature = "cassandra")]
    cassandra: tidemark_store::cassandra::Options,
    #[cfg(feature = "redis")]
    redis: tidemark_store::redis::Options,
    /// Where it is not that of all else.
    #[cfg(feature = "redis")]
    redis_durability: Option<Durability>,
}

impl Choice {
    /// Reads the settings of stores; those of a store that is not taken are read too, so that mistakes show.
    pub(crate) fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        let customers = Product::read(settings, "customers_in", RECORDS_IN)?;
        let sessions =
            Product::read(settings, "sessions_in", &["embedded", "data", "postgres", "redis", "auth"])?;
        let bookings = Product::read(settings, "bookings_in", RECORDS_IN)?;
        Ok(Choice {
            flights: Product::read(settings, "flights_in", &["embedded", "postgres"])?,
            #[cfg(feature = "mariadb")]
            mariadb: tidemark_store::mariadb::Options::reach(
                settings.reach("mariadb", "mariadb_connections")?,
            )?,
            #[cfg(feature = "cassandra")]
            cassandra: cassandra(settings)?,
            ..Self::with(settings, [customers, sessions, bookings])?
        })
    }

    /// The same where there are sessions only.
    pub(crate) fn of_sessions(settings: &Settings<'_>) -> Result<Self, SettingError> {
        let sessions = Product::read(settings, "sessions_in", &["embedded", "data", "postgres", "redis"])?;
        Self::with(settings, [sessions; 3])
    }

    fn with(
        settings: &Settings<'_>,
        [customers, sessions, bookings]: [Product; 3],
    ) -> Result<Self, SettingError> {
        Ok(Choice {
            customers,
            sessions,
            bookings,
            flights: Product::Embedded,
            data: data(settings)?,
            #[cfg(feature = "postgres")]
            postgres: tidemark_store::postgres::Options::reach(
                settings.reach("postgres", "postgres_connections")?,
            )?,
            #[cfg(feature = "mariadb")]
            mariadb: Default::default(),
            #[cfg(feature = "cassandra")]
            cassandra: Default::default(),
            #[cfg(feature = "redis")]
            redis: tidemark_store::redis::Options::reach(settings.reach("redis", "redis_connections")?)?,
            #[cfg(feature = "redis")]
            redis_durability: settings.text("redis_durability", |word| match word {
                "same" => Some(None),
                word => word.parse().ok().map(Some),
            })?,
        })
    }

    /// Whether sessions are with the auth service.
    pub(crate) fn has_auth_service(&self) -> bool {
        self.sessions == Product::Auth
    }

    /// Whether some of it is in a directory of this process.
    pub(crate) fn is_here(&self) -> bool {
        self.of_roles().contains(&Product::Embedded)
    }

    fn of_roles(&self) -> [Product; 3] {
        [self.customers, self.sessions, self.bookings]
    }

    /// Whether something is in this product. Flights that are computed here are in none.
    fn uses(&self, product: Product) -> bool {
        self.of_roles().contains(&product) || product != Product::Embedded && product == self.flights
    }

    /// The names of all products in use, each once, with `+` between.
    pub(crate) fn names(&self) -> String {
        let used = Product::ALL.iter().filter(|product| self.uses(**product));
        used.map(|product| product.name()).collect::<Vec<_>>().join("+")
    }

    /// Opens the stores that are used.
    pub(crate) fn open(self, data_dir: Option<&Path>, durability: Durability) -> Result<Opened, StoreError> {
        let uses = |product| self.uses(product);
        let embedded = match data_dir {
            _ if !uses(Product::Embedded) => None,
            Some(dir) => Some(Embedded::open(dir, durability)?),
            None => Some(Embedded::in_memory()),
        };
        let data = || DataStore::open(data::Options { durability, ..self.data.clone() });
        let data = uses(Product::Data).then(data).transpose()?;
        #[cfg(feature = "postgres")]
        let postgres = || {
            let options = tidemark_store::postgres::Options { durability, ..self.postgres.clone() };
            tidemark_store::postgres::Postgres::open(options)
        };
        #[cfg(feature = "postgres")]
        let postgres = uses(Product::Postgres).then(postgres).transpose()?;
        #[cfg(feature = "mariadb")]
        let mariadb = || {
            let options = tidemark_store::mariadb::Options { durability, ..self.mariadb.clone() };
            tidemark_store::mariadb::Mariadb::open(options)
        };
        #[cfg(feature = "mariadb")]
        let mariadb = uses(Product::Mariadb).then(mariadb).transpose()?;
        #[cfg(feature = "cassandra")]
        let cassandra = || {
            let (options, start_timeout) = (self.cassandra.clone(), self.data.start_timeout);
            tidemark_store::cassandra::CassandraAirline::open(options, durability, start_timeout)
        };
        #[cfg(feature = "cassandra")]
        let cassandra = uses(Product::Cassandra).then(cassandra).transpose()?;
        #[cfg(feature = "redis")]
        let redis = || {
            let durability = self.redis_durability.unwrap_or(durability);
            let options = tidemark_store::redis::Options { durability, ..self.redis.clone() };
            tidemark_store::redis::Redis::open(options)
        };
        #[cfg(feature = "redis")]
        let redis = uses(Product::Redis).then(redis).transpose()?;
        Ok(Opened {
            choice: self,
            durability,
            embedded,
            data,
            #[cfg(feature = "postgres")]
            postgres,
            #[cfg(feature = "mariadb")]
            mariadb,
            #[cfg(feature = "cassandra")]
            cassandra,
            #[cfg(feature = "redis")]
            redis,
        })
    }
}

fn data(settings: &Settings<'_>) -> Result<data::Options, SettingError> {
    let options = data::Options {
        url: settings.text("data", |url| Some(url.to_owned()))?,
        waiting_max: settings.value("store_waiting_max", 1..=1_000_000)?,
        timeout: std::time::Duration::from_secs(settings.value("store_timeout_s", 1..=3600)?),
        start_timeout: std::time::Duration::from_secs(settings.value("store_start_timeout_s", 1..=3600)?),
        ..Default::default()
    };
    options.check()?;
    Ok(options)
}

#[cfg(feature = "cassandra")]
fn cassandra(settings: &Settings<'_>) -> Result<tidemark_store::cassandra::Options, SettingError> {
    use tidemark_store::cassandra::Options;
    let contact = settings.text("contact", Options::contact_of)?;
    let options = Options {
        keyspace: settings.text("keyspace", Options::keyspace_of)?,
        replication: settings.text("replication", |text| Options::replication_of(text, &contact))?,
        consistency: settings.text("consistency", |name| name.parse().ok())?,
        contact,
        waiting_max: settings.value("store_waiting_max", 1..=1_000_000)?,
        timeout: std::time::Duration::from_secs(settings.value("store_timeout_s", 1..=3600)?),
        ..Options::default()
    };
    options.check()?;
    Ok(options)
}

/// The stores that are used.
pub(crate) struct Opened {
    pub(crate) choice: Choice,
    pub(crate) durability: Durability,
    pub(crate) embedded: Option<Arc<Embedded>>,
    data: Option<Arc<DataStore>>,
    #[cfg(feature = "postgres")]
    postgres: Option<Arc<tidemark_store::postgres::Postgres>>,
    #[cfg(feature = "mariadb")]
    mariadb: Option<Arc<tidemark_store::mariadb::Mariadb>>,
    #[cfg(feature = "cassandra")]
    cassandra: Option<Arc<tidemark_store::cassandra::CassandraAirline>>,
    #[cfg(feature = "redis")]
    redis: Option<Arc<tidemark_store::redis::Redis>>,
}

/// The store of a product, which [`Choice::open`] opened since a role has it.
fn opened<T>(store: &Option<Arc<T>>) -> &Arc<T> {
    store.as_ref().expect("every product that a role has was opened")
}

impl Opened {
    /// The stores of an airline by role, but for sessions.
    pub(crate) fn stores(&self) -> Stores {
        Stores { customers: self.customers(), bookings: self.bookings() }
    }

    /// Who is logged in, where this process keeps that in a store.
    pub(crate) fn sessions(&self) -> Arc<dyn Sessions> {
        match self.choice.sessions {
            Product::Data => opened(&self.data).clone(),
            #[cfg(feature = "postgres")]
            Product::Postgres => opened(&self.postgres).clone(),
            #[cfg(feature = "redis")]
            Product::Redis => opened(&self.redis).clone(),
            _ => opened(&self.embedded).clone(),
        }
    }

    fn customers(&self) -> Arc<dyn Customers> {
        match self.choice.customers {
            Product::Data => opened(&self.data).clone(),
            #[cfg(feature = "postgres")]
            Product::Postgres => opened(&self.postgres).clone(),
            #[cfg(feature = "mariadb")]
            Product::Mariadb => opened(&self.mariadb).clone(),
            #[cfg(feature = "cassandra")]
            Product::Cassandra => opened(&self.cassandra).clone(),
            _ => opened(&self.embedded).clone(),
        }
    }

    fn bookings(&self) -> Arc<dyn Bookings> {
        match self.choice.bookings {
            Product::Data => opened(&self.data).clone(),
            #[cfg(feature = "postgres")]
            Product::Postgres => opened(&self.postgres).clone(),
            #[cfg(feature = "mariadb")]
            Product::Mariadb => opened(&self.mariadb).clone(),
            #[cfg(feature = "cassandra")]
            Product::Cassandra => opened(&self.cassandra).clone(),
            _ => opened(&self.embedded).clone(),
        }
    }

    /// Where flights are, unless they are computed.
    pub(crate) fn flights(&self) -> Option<Arc<dyn Flights>> {
        match self.choice.flights {
            #[cfg(feature = "postgres")]
            Product::Postgres => Some(opened(&self.postgres).clone()),
            _ => None,
        }
    }

    /// What the servers' stores count, with the name of the product.
    pub(crate) fn remote(&self) -> Vec<(&'static str, Vec<OwnMetric>)> {
        vec![
            ("data", self.data.as_ref().map(|store| store.metrics()).unwrap_or_default()),
            #[cfg(feature = "postgres")]
            ("postgres", self.postgres.as_ref().map(|store| store.metrics()).unwrap_or_default()),
            #[cfg(feature = "mariadb")]
            ("mariadb", self.mariadb.as_ref().map(|store| store.metrics()).unwrap_or_default()),
            #[cfg(feature = "cassandra")]
            ("cassandra", self.cassandra.as_ref().map(|store| store.metrics()).unwrap_or_default()),
            #[cfg(feature = "redis")]
            ("redis", self.redis.as_ref().map(|store| store.metrics()).unwrap_or_default()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Choice, SettingError> {
        let given = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Choice::read(&Settings::new(crate::settings::SETTINGS, &given))
    }

    #[test]
    fn everything_is_here_unless_told_otherwise() {
        let choice = read(&[]).unwrap();
        assert_eq!((choice.names().as_str(), choice.is_here()), ("embedded", true));
        let error = read(&[("bookings_in", "redis")]).unwrap_err().to_string();
        assert!(
            error.contains("bookings_in") && error.contains("embedded, data, postgres, mariadb or cassandra"),
            "{error}"
        );
    }

    #[cfg(not(all(feature = "postgres", feature = "mariadb", feature = "cassandra", feature = "redis")))]
    #[test]
    fn a_store_that_was_not_built_in_says_how_to_have_it() {
        let expected = [
            #[cfg(not(feature = "postgres"))]
            ("postgres", [("sessions_in", "postgres"), ("postgres", "postgres://me@host/db")]),
            #[cfg(not(feature = "mariadb"))]
            ("mariadb", [("bookings_in", "mariadb"), ("mariadb", "mysql://me@host/db")]),
            #[cfg(not(feature = "cassandra"))]
            ("cassandra", [("bookings_in", "cassandra"), ("contact", "host:9042")]),
            #[cfg(not(feature = "redis"))]
            ("redis", [("sessions_in", "redis"), ("redis", "redis://host")]),
        ];
        for (feature, settings) in expected {
            let error = read(&settings).unwrap_err().to_string();
            assert!(error.contains(&format!("--features {feature}")), "{error}");
        }
    }

    #[test]
    fn the_data_tier_may_have_all_or_some() {
        let choice = read(&[("bookings_in", "data")]).unwrap();
        assert_eq!((choice.names().as_str(), choice.is_here()), ("embedded+data", true));
        let all = [("customers_in", "data"), ("sessions_in", "data"), ("bookings_in", "data")];
        assert!(!read(&all).unwrap().is_here());
        let error = read(&[("data", "127.0.0.1:9085")]).unwrap_err().to_string();
        assert!(error.contains("http://HOST:PORT"), "{error}");
    }

    #[cfg(all(feature = "postgres", feature = "redis"))]
    #[test]
    fn each_role_is_chosen_on_its_own() {
        let choice = read(&[("sessions_in", "redis"), ("bookings_in", "postgres")]).unwrap();
        assert_eq!((choice.names().as_str(), choice.is_here()), ("embedded+postgres+redis", true));
        let all = [("customers_in", "postgres"), ("sessions_in", "redis"), ("bookings_in", "postgres")];
        assert!(!read(&all).unwrap().is_here());
    }

    #[cfg(all(feature = "postgres", feature = "redis"))]
    #[test]
    fn a_wrong_address_is_told_without_its_password() {
        for (name, url) in [
            ("postgres", "postgres://me:hunter2@host:x/db"),
            ("redis", "redis://:hunter2@host:x"),
            #[cfg(feature = "mariadb")]
            ("mariadb", "mysql://me:hunter2@host:x/db"),
        ] {
            let error = read(&[(name, url)]).unwrap_err().to_string();
            assert!(error.contains("of the form") && !error.contains("hunter2"), "{error}");
        }
        assert!(!format!("{:?}", read(&[("redis", "redis://:hunter2@host")])).contains("hunter2"));
    }
}
