//! Logs: to standard error, for people on a terminal, as JSON for machines.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogForm {
    /// What `TIDEMARK_LOG_FORM` (`text` or `json`) says; text where it says nothing.
    #[default]
    Automatic,
    /// One line of text for each event, coloured on a terminal.
    Text,
    /// One JSON object for each event.
    Json,
}

/// The environment variable with the filter: `info` (the default), `debug`, `tidemark_service=debug,warn`, …
pub const FILTER_VARIABLE: &str = "TIDEMARK_LOG";
/// The environment variable with the form.
pub const FORM_VARIABLE: &str = "TIDEMARK_LOG_FORM";

/// Starts logging to standard error. Call once, early; a later call changes nothing and says `false`.
///
/// A panic anywhere is logged as an error too, in the same form.
pub fn start_logs(form: LogForm) -> bool {
    let json = match form {
        LogForm::Json => true,
        LogForm::Text => false,
        LogForm::Automatic => {
            std::env::var(FORM_VARIABLE).is_ok_and(|word| word.eq_ignore_ascii_case("json"))
        }
    };
    let filter = EnvFilter::try_from_env(FILTER_VARIABLE).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_span_events(FmtSpan::NONE);
    let started = if json {
        builder.json().flatten_event(true).try_init().is_ok()
    } else {
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        builder.with_ansi(colour).with_target(false).try_init().is_ok()
    };
    if started {
        std::panic::set_hook(Box::new(|panic| {
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            let payload = panic.payload();
            let text = payload.downcast_ref::<&str>().copied();
            let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            tracing::error!(place, "panic: {}", text.unwrap_or("(no text)"));
        }));
    }
    started
}
