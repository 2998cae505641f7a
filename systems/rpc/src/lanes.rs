//! Lanes: futures that work on one call after the other. A call that is ready at once needs no future of its own; one
//! that is not keeps its lane, and the calls behind it take others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use crate::call_buffer::CallBuffer;
use crate::metrics::Outcome;
use crate::serve::{BUFFER_KEPT_BYTES, Lane, Services};
use crate::{IN_FLIGHT_MAX, Refusal};

/// Lanes of a service that are kept when they have nothing to do.
const IDLE_MAX: usize = 256;

/// The lanes of a connection.
pub(crate) struct Lanes {
    services: Services,
    call_buffer: Arc<CallBuffer>,
    lanes: Vec<Entry>,
    /// Those without a call, by service.
    idle: Vec<Vec<usize>>,
    /// Places without a lane.
    vacant: Vec<usize>,
    woken: Arc<Woken>,
    scratch: Vec<usize>,
    /// Of all futures together.
    future_bytes: usize,
}

struct Entry {
    service: usize,
    future: Option<Lane>,
    wake: Arc<WakeLane>,
    waker: Waker,
}

/// Which lanes can go on.
#[derive(Default)]
struct Woken {
    lanes: Mutex<Vec<usize>>,
    /// The connection's own task.
    task: Mutex<Option<Waker>>,
}

struct WakeLane {
    lane: usize,
    is_queued: AtomicBool,
    woken: Arc<Woken>,
}

impl Wake for WakeLane {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_queued.swap(true, Ordering::AcqRel) {
            return;
        }
        self.woken.lanes.lock().unwrap_or_else(PoisonError::into_inner).push(self.lane);
        let task = self.woken.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

/// A call's id is that of another one which is not answered yet.
#[derive(Debug)]
pub(crate) struct SameId;

impl Lanes {
    pub(crate) fn new(services: Services, call_buffer: Arc<CallBuffer>) -> Self {
        let idle = services.iter().map(|_| Vec::new()).collect();
        Lanes {
            services,
            call_buffer,
            lanes: Vec::new(),
            idle,
            vacant: Vec::new(),
            woken: Arc::default(),
            scratch: Vec::new(),
            future_bytes: 0,
        }
    }

    /// Who is to be woken when a lane can go on.
    pub(crate) fn set_task(&self, waker: &Waker) {
        let mut task = self.woken.task.lock().unwrap_or_else(PoisonError::into_inner);
        if !task.as_ref().is_some_and(|task| task.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }

    /// Lets a lane of the service take what is next, and all behind it as far as it gets. False if all are busy.
    pub(crate) fn take_next(&mut self, service: usize) -> Result<bool, SameId> {
        let Some(lane) = self.idle[service].pop().or_else(|| self.open(service)) else { return Ok(false) };
        self.poll(lane)?;
        Ok(true)
    }

    fn open(&mut self, service: usize) -> Option<usize> {
        let lane = match self.vacant.pop() {
            Some(lane) => lane,
            // one that has nothing to do for another service
            None if self.lanes.len() >= IN_FLIGHT_MAX => self.idle.iter_mut().find_map(Vec::pop)?,
            None => {
                self.call_buffer.state().add_place();
                let lane = self.lanes.len();
                let wake = self.wake_of(lane);
                let waker = wake.clone().into();
                self.lanes.push(Entry { service, future: None, wake, waker });
                lane
            }
        };
        let future = self.services[service].clone().lane(self.call_buffer.clone(), service, lane);
        self.lanes[lane].service = service;
        drop(self.replace(lane, Some(future)));
        Some(lane)
    }

    /// Gives a lane this future, and returns what it had.
    fn replace(&mut self, lane: usize, future: Option<Lane>) -> Option<Lane> {
        let bytes = |future: &Option<Lane>| future.as_deref().map_or(0, size_of_val);
        self.future_bytes += bytes(&future);
        let before = std::mem::replace(&mut self.lanes[lane].future, future);
        self.future_bytes -= bytes(&before);
        before
    }

    /// What they take of the memory, but for what their methods have set aside.
    pub(crate) fn held_bytes(&self) -> usize {
        let entries = self.lanes.capacity() * (size_of::<Entry>() + size_of::<WakeLane>());
        let idle: usize = self.idle.iter().map(Vec::len).sum();
        entries + self.future_bytes + idle * BUFFER_KEPT_BYTES
    }

    /// Gives back those that have nothing to do.
    pub(crate) fn trim(&mut self) {
        while let Some(lane) = self.idle.iter_mut().find_map(Vec::pop) {
            drop(self.replace(lane, None));
            self.vacant.push(lane);
        }
    }

    fn wake_of(&self, lane: usize) -> Arc<WakeLane> {
        Arc::new(WakeLane { lane, is_queued: AtomicBool::new(false), woken: self.woken.clone() })
    }

    /// Lets all lanes go on that can. False if there was none.
    pub(crate) fn poll_woken(&mut self) -> Result<bool, SameId> {
        let mut scratch = std::mem::take(&mut self.scratch);
        std::mem::swap(&mut scratch, &mut *self.woken.lanes.lock().unwrap_or_else(PoisonError::into_inner));
        let some = !scratch.is_empty();
        for lane in scratch.drain(..) {
            self.lanes[lane].wake.is_queued.store(false, Ordering::Release);
            // one whose call has ended meanwhile lies among the idle ones
            if self.call_buffer.state().is_busy(lane) {
                self.poll(lane)?;
            }
        }
        self.scratch = scratch;
        Ok(some)
    }

    pub(crate) fn has_woken(&self) -> bool {
        !self.woken.lanes.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn poll(&mut self, lane: usize) -> Result<(), SameId> {
        let entry = &mut self.lanes[lane];
        let Some(future) = entry.future.as_mut() else { return Ok(()) };
        let mut context = Context::from_waker(&entry.waker);
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
        if polled.is_err() {
            tracing::error!("a call was answered 500 because its method panicked");
            self.end(lane, Outcome::Panicked, &Refusal::internal());
            return Ok(());
        }
        let mut state = self.call_buffer.state();
        if state.is_busy(lane) {
            return if state.waits(lane) { Ok(()) } else { Err(SameId) };
        }
        drop(state);
        self.rest(lane);
        Ok(())
    }

    /// Puts a lane whose call has ended among the idle ones.
    fn rest(&mut self, lane: usize) {
        let entry = &mut self.lanes[lane];
        let idle = &mut self.idle[entry.service];
        if idle.len() < IDLE_MAX && entry.future.is_some() {
            idle.push(lane);
        } else {
            drop(self.replace(lane, None));
            self.vacant.push(lane);
        }
    }

    /// Drops what a lane works on, with this as its answer.
    pub(crate) fn end(&mut self, lane: usize, outcome: Outcome, refusal: &Refusal) {
        // what the method holds goes first: it may take a moment, and its lock is not ours
        let future = self.replace(lane, None);
        if catch_unwind(AssertUnwindSafe(|| drop(future))).is_err() {
            tracing::error!("what a call held could not be dropped without a panic");
        }
        if self.call_buffer.state().end(lane, outcome, refusal) {
            self.rest(lane);
        }
    }
}
