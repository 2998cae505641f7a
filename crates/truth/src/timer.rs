//! A wait for sockets that ends at a moment, to some tens of microseconds.

use std::io;
use std::time::{Duration, Instant};

use mio::{Events, Poll};

/// The one clock of a server: nanoseconds since it began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub fn new() -> Self {
        Clock(Instant::now())
    }

    pub fn now_ns(&self) -> u64 {
        nanoseconds(self.0.elapsed())
    }
}

/// A duration in nanoseconds.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Waits; on Linux by a timer of the kernel among the sockets, because the wait itself is exact to a millisecond only.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct Timer(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Timer {
    /// Its news come as `token`, and need no answer.
    pub fn new(poll: &Poll, token: mio::Token) -> io::Result<Timer> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        use std::os::fd::AsRawFd;

        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let mut source = mio::unix::SourceFd(&timer.as_raw_fd());
        mio::event::Source::register(&mut source, poll.registry(), token, mio::Interest::READABLE)?;
        Ok(Timer(timer))
    }

    /// Waits for sockets, at most this long.
    pub fn wait(&self, poll: &mut Poll, events: &mut Events, most: Option<Duration>) -> io::Result<()> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};

        let most = most.map(|most| most.max(Duration::from_nanos(1)));
        let seconds = |duration: Duration| Timespec {
            tv_sec: duration.as_secs().min(1 << 30) as i64,
            tv_nsec: duration.subsec_nanos().into(),
        };
        // a time of zero switches it off
        let it_value = seconds(most.unwrap_or_default());
        let at = Itimerspec { it_interval: seconds(Duration::ZERO), it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &at)?;
        poll.poll(events, None)
    }
}

/// Waits, as exactly as the system's wait for sockets is.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) struct Timer;

#[cfg(not(target_os = "linux"))]
impl Timer {
    pub fn new(_: &Poll, _: mio::Token) -> io::Result<Timer> {
        Ok(Timer)
    }

    pub fn wait(&self, poll: &mut Poll, events: &mut Events, most: Option<Duration>) -> io::Result<()> {
        poll.poll(events, most)
    }
}
