//! A timer for the HTTP library that costs nothing while it does not fire.
//!
//! The library makes a new timer for each request head it waits for. With the runtime's own timers each of them
//! is entered into the wheel and taken out again, for every request, though hardly any ever fires. These only
//! remember their deadline and compare it whenever the connection is polled; the connection sees to it that it
//! is polled every so often (half of its head timeout) even when nothing arrives.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

/// Makes [`CheapSleep`]s.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheapTimer;

/// Is ready when polled after its deadline; wakes nobody.
#[derive(Debug)]
struct CheapSleep(Instant);

impl Future for CheapSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Sleep for CheapSleep {}

impl Timer for CheapTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(CheapSleep(Instant::now() + duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(CheapSleep(deadline))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, new_deadline: Instant) {
        *sleep = self.sleep_until(new_deadline);
    }
}
