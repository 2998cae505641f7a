//! Settings of whoever calls another service, and of whoever is in a registry.

use std::time::Duration;

use tidemark_service::{Setting, SettingError, Settings};

use crate::breaker::BreakerOptions;
use crate::discovery::Registry;
use crate::instances::Balance;

/// What can be set about being in a registry.
pub const MEMBER_SETTINGS: &[Setting] = tidemark_service::settings! {
    "registry" = "", "nothing, http://HOST:PORT/eureka or etcd://HOST:PORT":
        "where instances find each other: a Eureka server, the system registry, or etcd; nothing: nowhere";
    "lease_s" = "15", "3 to 3600":
        "seconds after which the registry forgets an instance that is silent; it renews three times as often";
};

/// What can be set about calls to another service.
pub const CLIENT_SETTINGS: &[Setting] = tidemark_service::settings! {
    "balance" = "two-choices", "round-robin, two-choices or least-loaded":
        "which instance is asked: the next, the less busy of two taken by chance, or the least busy";
    "call_timeout_ms" = "1000", "10 to 60000":
        "how long a call to another service may take, retries included";
    "hedge_ms" = "0", "0 to 60000":
        "a read without an answer for so long is also sent to another instance; 0: never";
    "pool" = "100", "1 to 100000":
        "calls to another service under way at once; one more is rejected";
    "breaker" = "on", "on or off":
        "whether calls are refused for a while when too many have failed";
    "breaker_window_s" = "10", "1 to 3600":
        "over how many seconds calls are counted for that";
    "breaker_requests" = "20", "1 to 1000000":
        "with fewer calls in the window the breaker stays closed";
    "breaker_errors_percent" = "50", "1 to 100":
        "with a smaller share of errors the breaker stays closed";
    "breaker_sleep_ms" = "5000", "1 to 3600000":
        "how long the breaker refuses all calls before it lets one through";
};

/// How to be in a registry, and in which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSettings {
    /// The registry, where there is one.
    pub registry: Option<Registry>,
    /// After so long without a word an instance is forgotten.
    pub lease: Duration,
}

impl MemberSettings {
    /// Reads [`MEMBER_SETTINGS`].
    ///
    /// # Errors
    /// One of them has a value that it does not take.
    pub fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        let registry = |text: &str| match text {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        };
        Ok(MemberSettings {
            registry: settings.text("registry", registry)?,
            lease: Duration::from_secs(settings.value("lease_s", 3..=3600)?),
        })
    }
}

/// How calls are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSettings {
    /// How an instance is chosen.
    pub balance: Balance,
    /// How long a call may take.
    pub timeout: Duration,
    /// When a read is sent a second time; zero: never.
    pub hedge: Duration,
    /// Calls under way at once.
    pub pool: usize,
    /// When calls are refused.
    pub breaker: BreakerOptions,
}

impl CallSettings {
    /// Reads [`CLIENT_SETTINGS`].
    ///
    /// # Errors
    /// One of them has a value that it does not take.
    pub fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        let enabled = settings.text("breaker", |word| match word {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        })?;
        let breaker = BreakerOptions {
            enabled,
            window_ms: settings.value::<u64>("breaker_window_s", 1..=3600)? * 1000,
            requests: settings.value("breaker_requests", 1..=1_000_000)?,
            errors_percent: settings.value("breaker_errors_percent", 1..=100)?,
            sleep_ms: settings.value("breaker_sleep_ms", 1..=3_600_000)?,
        };
        Ok(CallSettings {
            balance: settings.text("balance", Balance::named)?,
            timeout: Duration::from_millis(settings.value("call_timeout_ms", 10..=60_000)?),
            hedge: Duration::from_millis(settings.value("hedge_ms", 0..=60_000)?),
            pool: settings.value("pool", 1..=100_000)?,
            breaker,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn defaults_are_those_of_hystrix() {
        let none = BTreeMap::new();
        let read = CallSettings::read(&Settings::new(CLIENT_SETTINGS, &none)).unwrap();
        assert_eq!(read.breaker, BreakerOptions::default());
        assert_eq!(
            (read.timeout, read.pool, read.balance),
            (Duration::from_secs(1), 100, Balance::TwoChoices)
        );
        let read = MemberSettings::read(&Settings::new(MEMBER_SETTINGS, &none)).unwrap();
        assert_eq!((read.registry, read.lease.as_secs()), (None, 15));
    }
}
