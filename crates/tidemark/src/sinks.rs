//! Where a run is shown to others while it is on: `--metrics` and `--otlp`.

use std::env::VarError;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use tidemark_lab::Pins;
use tidemark_lab::sinks::{Figures, HEADERS_VARIABLE, Headers, Metrics, Otlp};
use tidemark_record::Sinks;

use crate::failure::Failure;
use crate::output;

/// Flags of every verb that carries a run out.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Metrics while it runs")]
pub struct SinkArguments {
    /// Serve metrics for Prometheus at this address, like 127.0.0.1:9464; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Push metrics to an OpenTelemetry collector every 5 s, like http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
}

/// What was started for the flags. Held until the program has said everything; dropped, it ends.
pub struct Shown {
    sinks: Sinks,
    otlp: Option<Arc<Mutex<Otlp>>>,
    _metrics: Option<Metrics>,
}

impl SinkArguments {
    /// Starts what is asked for, before anything else is started.
    pub fn start(&self, pins: &Pins) -> Result<Shown, Failure> {
        let mut shown = Shown { sinks: Sinks::default(), otlp: None, _metrics: None };
        if self.metrics.is_none() && self.otlp.is_none() {
            return Ok(shown);
        }
        let figures = Arc::new(Mutex::new(Figures::default()));
        // first, so that it is told before those who look at it
        shown.sinks.add(figures.clone());
        if let Some(address) = self.metrics {
            let metrics = Metrics::serve(address, figures.clone(), pins).map_err(|error| {
                let reason = "take another port, or port 0 for a free one";
                Failure::usage(format!("--metrics: cannot listen at {address}: {error}; {reason}"))
            })?;
            output::remark(&format!("metrics at http://{}/metrics", metrics.address()));
            shown._metrics = Some(metrics);
        }
        if let Some(url) = &self.otlp {
            let wrong = |error: String| Failure::usage(format!("--otlp: {error}"));
            let otlp = Otlp::push_to(url, headers()?, figures, pins).map_err(wrong)?;
            let otlp = Arc::new(Mutex::new(otlp));
            shown.sinks.add(otlp.clone());
            shown.otlp = Some(otlp);
        }
        Ok(shown)
    }
}

fn headers() -> Result<Headers, Failure> {
    let wrong = |error: &str| Failure::usage(format!("{HEADERS_VARIABLE}: {error}"));
    match std::env::var(HEADERS_VARIABLE) {
        Ok(text) => Headers::parse(&text).map_err(|error| wrong(&error)),
        Err(VarError::NotPresent) => Ok(Headers::default()),
        Err(VarError::NotUnicode(_)) => Err(wrong("it is not UTF-8")),
    }
}

impl Shown {
    /// For the options of a run.
    pub fn sinks(&self) -> Sinks {
        self.sinks.clone()
    }

    /// Says what went wrong with it, on standard error.
    pub fn remark(&self) {
        let otlp = self.otlp.as_ref().map(|otlp| otlp.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(trouble) = otlp.and_then(|otlp| otlp.trouble()) {
            output::remark(&trouble);
        }
    }
}
