//! Where what happens in a run goes while it is on.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::error::RecordError;
use crate::live::Live;
use crate::merge::MergedInterval;
use crate::{Event, Manifest, Sample, StoreLook};

/// What is known of a run when it begins.
#[derive(Debug)]
pub struct Facts<'a> {
    /// What the run is; no figures yet, and no secrets. Its phases are empty until the load begins.
    pub manifest: &'a Manifest,
    /// How many driver threads there are.
    pub threads: usize,
    /// When the run's clock was zero; none before the load begins.
    pub anchor: Option<SystemTime>,
}

/// Takes intervals, samples and events while a run is on: the run directory, the progress line, a page of metrics.
///
/// [`RunWriter`](crate::RunWriter) calls it, on the thread that carries the experiment out and never on one that drives:
/// whoever has to wait for somebody (a network, say) does so on a thread of its own. An error ends the run. Only the run
/// directory returns one: other sinks count what they could not hand on, and tell it in [`notes`](Sink::notes).
pub trait Sink {
    /// A run is about to begin. Called again when its load begins, and then more is known.
    fn begin(&mut self, _facts: &Facts<'_>) -> Result<(), RecordError> {
        Ok(())
    }

    /// All threads have told of an interval, a second long or less. They come in order of time, but for stragglers; an
    /// interval may come in parts, each of which counts.
    fn interval(&mut self, _interval: &MergedInterval) -> Result<(), RecordError> {
        Ok(())
    }

    /// A whole second is over; what it looked like.
    fn second(&mut self, _second: &Live) -> Result<(), RecordError> {
        Ok(())
    }

    /// Every process was looked at.
    fn samples(&mut self, _samples: &[Sample]) -> Result<(), RecordError> {
        Ok(())
    }

    /// Stores were asked for their own figures.
    fn stores(&mut self, _looks: &[StoreLook]) -> Result<(), RecordError> {
        Ok(())
    }

    /// Something happened.
    fn event(&mut self, _event: &Event) -> Result<(), RecordError> {
        Ok(())
    }

    /// Everything but the verdict has been handed over: what a reader of the run must know of this sink. May wait for
    /// what is under way, for a bounded time.
    fn notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// The run is over, with its verdict and all figures. Not called where a run fails or is stopped at once.
    fn end(&mut self, _manifest: &Manifest) -> Result<(), RecordError> {
        Ok(())
    }
}

/// Sinks that outlive a run, and may be handed to several runs one after the other.
#[derive(Clone, Default)]
pub struct Sinks(Vec<Arc<Mutex<dyn Sink + Send>>>);

impl Sinks {
    /// Adds one.
    pub fn add<S: Sink + Send + 'static>(&mut self, sink: Arc<Mutex<S>>) {
        self.0.push(sink);
    }

    fn each(
        &self,
        mut call: impl FnMut(&mut dyn Sink) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        // one that panicked in another run is no reason to end this one
        self.0.iter().try_for_each(|sink| call(&mut *sink.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl fmt::Debug for Sinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sinks", self.0.len())
    }
}

impl Sink for Sinks {
    fn begin(&mut self, facts: &Facts<'_>) -> Result<(), RecordError> {
        self.each(|sink| sink.begin(facts))
    }

    fn interval(&mut self, interval: &MergedInterval) -> Result<(), RecordError> {
        self.each(|sink| sink.interval(interval))
    }

    fn second(&mut self, second: &Live) -> Result<(), RecordError> {
        self.each(|sink| sink.second(second))
    }

    fn samples(&mut self, samples: &[Sample]) -> Result<(), RecordError> {
        self.each(|sink| sink.samples(samples))
    }

    fn stores(&mut self, looks: &[StoreLook]) -> Result<(), RecordError> {
        self.each(|sink| sink.stores(looks))
    }

    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        self.each(|sink| sink.event(event))
    }

    fn notes(&mut self) -> Vec<String> {
        let all = self.0.iter().map(|sink| sink.lock().unwrap_or_else(PoisonError::into_inner).notes());
        all.flatten().collect()
    }

    fn end(&mut self, manifest: &Manifest) -> Result<(), RecordError> {
        self.each(|sink| sink.end(manifest))
    }
}
