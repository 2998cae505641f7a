//! An intake from its settings to its routes.

use std::sync::Arc;

use tidemark_service::encode::DescriptorEncoder;
use tidemark_service::{
    BoundServer, Options, ReferenceSystem, ServiceError, Setting, SettingError, Settings, StartError, System,
};
use tidemark_store::Durability;
use tidemark_store::messages::MessageStore;

use crate::app::App;
use crate::buffer::Buffer;
use crate::handlers::system;
use crate::identity::Identity;
use crate::settings::SETTINGS;
use crate::store_metrics::encode;
use crate::stores::Kind;

/// A body may be this much larger than a message, so that one that is too long is told so as a message.
const BODY_BYTES_MAX: usize = 16 * 1024;

/// An intake as its settings have it.
pub struct Ingest {
    waiting_max: usize,
    identity: Identity,
    memory_bytes: u64,
    store: Kind,
    buffer: Buffer,
    /// A store of one's own, in place of the one that the settings name.
    given: Option<MessageStore>,
}

impl ReferenceSystem for Ingest {
    const NAME: &'static str = "ingest";
    const DESCRIPTION: &'static str = "takes small messages and keeps every one that it has acknowledged";
    const SETTINGS: &'static [Setting] = SETTINGS;
    const STORE_IS_READABLE: bool = true;

    fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        let waiting_max = settings.value("waiting_max", 1..=1_000_000)?;
        let memory_mb: u64 = settings.value("memory_mb", 1..=1_000_000)?;
        Ok(Ingest {
            waiting_max,
            identity: settings.text("identity", |text| text.parse().ok())?,
            memory_bytes: memory_mb * 1024 * 1024,
            store: Kind::read(settings, waiting_max)?,
            buffer: Buffer::read(settings, waiting_max)?,
            given: None,
        })
    }

    fn body_bytes_max(&self) -> usize {
        BODY_BYTES_MAX
    }

    fn uses_directory(&self) -> bool {
        self.given.is_none() && self.store.is_here()
    }

    fn check_durability(&self, durability: Durability) -> Result<(), ServiceError> {
        self.buffer.check(durability)
    }

    fn start(mut self, options: &Options) -> Result<System, StartError> {
        let durability = options.durability;
        let store = match self.given.take() {
            Some(store) => store,
            None => {
                let store = self.store.open(options, self.waiting_max, self.memory_bytes)?;
                self.buffer.clone().before(store, durability)?
            }
        };
        let identity = self.identity;
        let app = Arc::new(App::new(store, self.waiting_max, options.worker_count()));
        let (system, store) = (system(app.clone(), identity), app.store.clone());
        let counters = move |encoder: &mut DescriptorEncoder<'_>| encode(encoder, &app, durability, identity);
        Ok(system.health(move || store.trouble()).counters(counters))
    }
}

impl Ingest {
    /// [Binds](ReferenceSystem::bind) an intake with a store of one's own, for tests.
    ///
    /// # Errors
    /// As `bind`.
    pub fn bind_with_store(options: Options, store: MessageStore) -> Result<BoundServer, ServiceError> {
        let ingest = Self::read(&Settings::new(SETTINGS, &options.settings))?;
        Ingest { given: Some(store), ..ingest }.bind_with(options)
    }
}
