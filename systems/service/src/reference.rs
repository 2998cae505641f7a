//! A system that is served by its name: what it brings, and all that is the same for each.

use std::collections::BTreeMap;

use tidemark_store::Durability;

use crate::{
    BoundServer, Limits, Options, Server, ServiceError, Setting, SettingError, Settings, StartError, System,
};

/// A system that people serve by its name: a type whose values are what its settings say.
///
/// ```
/// use axum::{Router, routing::get};
/// use tidemark_service::{
///     Options, ReferenceSystem, Setting, SettingError, Settings, StartError, System, SystemEntry,
/// };
///
/// struct Greeter(String);
///
/// impl ReferenceSystem for Greeter {
///     const NAME: &'static str = "greeter";
///     const DESCRIPTION: &'static str = "says a word";
///     const SETTINGS: &'static [Setting] =
///         &[Setting { name: "word", default: "hello", allowed: "any", help: "what it says" }];
///     const KEEPS_DATA: bool = false;
///
///     fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
///         Ok(Greeter(settings.text("word", |word| Some(word.to_owned()))?))
///     }
///
///     fn start(self, _: &Options) -> Result<System, StartError> {
///         Ok(System::new(Router::new().route("/", get(async move || self.0))))
///     }
/// }
///
/// const SYSTEMS: &[SystemEntry] = &[SystemEntry::of::<Greeter>()];
/// let error = (SYSTEMS[0].check_setting)("wort", "bye").unwrap_err();
/// assert!(error.to_string().contains("did you mean word?"));
/// let options = Options { listen: "127.0.0.1:0".parse()?, ..Options::default() };
/// let server = (SYSTEMS[0].bind)(options)?; // `server.serve(stop)` serves it
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ReferenceSystem: Sized + Send + 'static {
    /// What it is called on the command line, in scenarios, health, metrics and logs.
    const NAME: &'static str;
    /// What it is, in a few words.
    const DESCRIPTION: &'static str;
    /// What can be set about it. [`Limits::SETTINGS`] come behind these by themselves.
    const SETTINGS: &'static [Setting];
    /// Whether it keeps data, and hence has a durability and a directory.
    const KEEPS_DATA: bool = true;
    /// Whether a run's `verify` can read its store without it.
    const STORE_IS_READABLE: bool = false;
    /// Whether it tells of its operations one by one, and appends them to [`Options::events`].
    const TELLS_OPERATIONS: bool = false;

    /// What settings say. Names that are none are refused afterwards.
    ///
    /// # Errors
    /// A setting has a value that it does not take.
    fn read(settings: &Settings<'_>) -> Result<Self, SettingError>;

    /// Bytes of a request body; a larger one is answered 413.
    fn body_bytes_max(&self) -> usize {
        Limits::default().body_bytes_max
    }

    /// Whether some of its data is in the directory that it is given.
    fn uses_directory(&self) -> bool {
        Self::KEEPS_DATA
    }

    /// Whether it can have this durability, as far as it knows before it starts.
    ///
    /// # Errors
    /// It cannot, and what would do.
    fn check_durability(&self, durability: Durability) -> Result<(), ServiceError> {
        let _ = durability;
        Ok(())
    }

    /// Opens its stores and makes its data, on a thread of its own: the server answers 503 meanwhile.
    ///
    /// # Errors
    /// Whatever keeps it from that.
    fn start(self, options: &Options) -> Result<System, StartError>;

    /// Checks the options and takes the address.
    ///
    /// # Errors
    /// A setting is wrong, a directory is missing, or the address cannot be taken.
    fn bind(options: Options) -> Result<BoundServer, ServiceError> {
        Self::read(&Settings::new(Self::SETTINGS, &options.settings))?.bind_with(options)
    }

    /// The same for a value that has more to it than its settings say: the clock of a test, say.
    ///
    /// # Errors
    /// As [`bind`](ReferenceSystem::bind).
    fn bind_with(self, options: Options) -> Result<BoundServer, ServiceError> {
        let settings = Settings::new(Self::SETTINGS, &options.settings);
        settings.check_names()?;
        let limits = Limits { body_bytes_max: self.body_bytes_max(), ..Limits::read(&settings)? };
        self.check_durability(options.durability)?;
        let is_durable = options.durability != Durability::Memory;
        if is_durable && options.data_dir.is_none() && self.uses_directory() {
            return Err(ServiceError::NoDirectory(options.durability));
        }
        let (listen, workers, announce) = (options.listen, options.worker_count(), options.announce);
        let server = Server::starting(move || self.start(&options)).name(Self::NAME).limits(limits);
        server.listen(listen).workers(workers).announce(announce).bind()
    }

    /// The system alone, with its stores open, for whoever serves it by another server.
    ///
    /// # Errors
    /// A setting is wrong, or it cannot start.
    fn open(options: &Options) -> Result<System, StartError> {
        read::<Self>(&options.settings)?.start(options)
    }
}

/// What settings say about a system; a wrong name is told the nearest right one.
fn read<S: ReferenceSystem>(given: &BTreeMap<String, String>) -> Result<S, SettingError> {
    let settings = Settings::new(S::SETTINGS, given);
    // before the names, since the settings of a store that was not built in are unknown
    let system = S::read(&settings)?;
    settings.check_names()?;
    Limits::read(&settings)?;
    Ok(system)
}

/// A [`ReferenceSystem`] in a program's list of systems.
#[derive(Debug, Clone, Copy)]
pub struct SystemEntry {
    /// What it is called.
    pub name: &'static str,
    /// What it is, in a few words.
    pub description: &'static str,
    /// What can be set about it, beside [`Limits::SETTINGS`].
    pub settings: &'static [Setting],
    /// Whether it keeps data.
    pub keeps_data: bool,
    /// Whether a run's `verify` can read its store without it.
    pub store_is_readable: bool,
    /// Whether it tells of its operations one by one.
    pub tells_operations: bool,
    /// Whether it takes a value of a setting, as far as that can be told beforehand.
    pub check_setting: fn(name: &str, value: &str) -> Result<(), SettingError>,
    /// Whether some of its data is in a directory with these settings.
    pub uses_directory: fn(&BTreeMap<String, String>) -> Result<bool, SettingError>,
    /// Checks the options and takes the address.
    pub bind: fn(Options) -> Result<BoundServer, ServiceError>,
}

impl SystemEntry {
    /// The entry of a system.
    pub const fn of<S: ReferenceSystem>() -> Self {
        SystemEntry {
            name: S::NAME,
            description: S::DESCRIPTION,
            settings: S::SETTINGS,
            keeps_data: S::KEEPS_DATA,
            store_is_readable: S::STORE_IS_READABLE,
            tells_operations: S::TELLS_OPERATIONS,
            check_setting: |name, value| {
                read::<S>(&BTreeMap::from([(name.to_owned(), value.to_owned())])).map(drop)
            },
            uses_directory: |given| Ok(read::<S>(given)?.uses_directory()),
            bind: S::bind,
        }
    }
}
