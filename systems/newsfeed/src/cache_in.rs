//! Where participants and friends are cached: read from the settings, and opened.

use std::sync::Arc;
use std::time::Duration;

use tidemark_service::{SettingError, Settings};
use tidemark_store::StoreError;
use tidemark_store::cache::{Cache, Memory};

/// How long the start waits for a cache before it goes on without.
#[cfg(feature = "redis")]
const START_TIMEOUT: Duration = Duration::from_secs(2);

/// Where participants and friends are cached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CacheIn {
    /// Nowhere.
    Off,
    /// In this process.
    Embedded { bytes_max: usize, ttl: Duration },
    #[cfg(feature = "redis")]
    Redis { options: tidemark_store::redis::Options, ttl: Duration },
}

impl CacheIn {
    /// Reads the settings of each; those of one that is not taken, too, so that mistakes show.
    pub(crate) fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        let ttl = Duration::from_secs(settings.value("cache_s", 1..=86_400)?);
        let mib: usize = settings.value("cache_mib_max", 1..=1 << 20)?;
        let embedded = CacheIn::Embedded { bytes_max: mib << 20, ttl };
        #[cfg(feature = "redis")]
        let in_redis = CacheIn::Redis { options: redis(settings)?, ttl };
        settings.text("cache", |word| match word {
            "off" => Some(Ok(CacheIn::Off)),
            "embedded" => Some(Ok(embedded.clone())),
            #[cfg(feature = "redis")]
            "redis" => Some(Ok(in_redis.clone())),
            #[cfg(not(feature = "redis"))]
            "redis" => Some(Err(SettingError::NotBuiltIn { store: "Redis", feature: "redis" })),
            _ => None,
        })?
    }

    /// The word of the setting.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            CacheIn::Off => "off",
            CacheIn::Embedded { .. } => "embedded",
            #[cfg(feature = "redis")]
            CacheIn::Redis { .. } => "redis",
        }
    }

    pub(crate) fn open(&self) -> Result<Option<Arc<dyn Cache>>, StoreError> {
        match self {
            CacheIn::Off => Ok(None),
            CacheIn::Embedded { bytes_max, ttl } => Ok(Some(Memory::new(*bytes_max, *ttl))),
            #[cfg(feature = "redis")]
            CacheIn::Redis { options, ttl } => {
                Ok(Some(tidemark_store::redis::RedisCache::open(options.clone(), *ttl)?))
            }
        }
    }
}

#[cfg(feature = "redis")]
fn redis(settings: &Settings<'_>) -> Result<tidemark_store::redis::Options, SettingError> {
    let options = tidemark_store::redis::Options {
        // the check tells mistakes without the password
        url: settings.text("redis", |url| Some(url.to_owned()))?,
        connections: settings.value("redis_connections", 1..=256)?,
        timeout: Duration::from_millis(settings.value("cache_timeout_ms", 1..=60_000)?),
        start_timeout: START_TIMEOUT,
        ..Default::default()
    };
    options.check()?;
    Ok(options)
}
