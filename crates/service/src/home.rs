//! Where a connection is served best: by the worker that runs where its packets arrive.
//!
//! On loopback that is the processor on which the client runs, with a network card the one that takes its interrupts.
//! Where both ends share a processor, what one has written is in the other's cache, and waking the other takes no
//! interrupt of a second processor. Two processors that clients and workers share answer more requests, and far more
//! evenly, with each connection at the worker of its client's processor than with the connections mixed.
//!
//! Connections are handed out evenly (see `server`); one that is used often asks now and then, between two requests,
//! whether it is better off elsewhere, and moves if that leaves the workers nearly as even as they were.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::metrics::Counts;

/// A connection asks after so many requests…
pub(crate) const REQUESTS_FIRST: u32 = 16;
/// …and then each time after so many more: a system call for that many requests is nothing, nor is a move, which costs
/// about as much as a request.
pub(crate) const REQUESTS_BETWEEN: u32 = 128;
/// A move may leave the worker it goes to ahead of the one it comes from by this part of their mean, so that two
/// workers which each have what belongs to the other can begin to exchange it.
const UNEVEN_PART: i64 = 16;
/// No processor.
const UNKNOWN: usize = usize::MAX;

/// A connection on its way to a worker.
#[derive(Debug)]
pub(crate) struct Handover {
    pub(crate) stream: std::net::TcpStream,
    /// It comes from another worker, which has answered requests of it.
    pub(crate) has_moved: bool,
}

/// Where the workers run, and the ways to them.
#[derive(Debug)]
pub(crate) struct Homes {
    /// The processor on which each worker was last seen.
    processors: Box<[AtomicUsize]>,
    /// Weak: once the accepting thread has dropped its own, a worker takes no more.
    ways: OnceLock<Vec<mpsc::WeakSender<Handover>>>,
}

impl Homes {
    pub(crate) fn new(workers: usize) -> Self {
        let processors = (0..workers).map(|_| AtomicUsize::new(UNKNOWN)).collect();
        Homes { processors, ways: OnceLock::new() }
    }

    /// From now on connections can move.
    pub(crate) fn open(&self, handovers: &[mpsc::Sender<Handover>]) {
        // Set once only: a server starts its workers once.
        let _ = self.ways.set(handovers.iter().map(mpsc::Sender::downgrade).collect());
    }

    /// The worker that would serve a connection of this thread's, the worker `here`, better, if there is one and it
    /// has room.
    pub(crate) fn better(&self, counts: &Counts, here: usize, stream: &TcpStream) -> Option<usize> {
        if self.processors.len() == 1 {
            return None;
        }
        self.processors[here].store(running_on()?, Ordering::Relaxed);
        let open = |worker: usize| counts.workers[worker].connections_open.load(Ordering::Relaxed);
        let on = |worker: usize| self.processors[worker].load(Ordering::Relaxed);
        better(here, arrives_on(stream)?, self.processors.len(), open, on)
    }

    /// Hands a connection over to another worker, unless that takes no more: then it is given back.
    pub(crate) fn hand_over(&self, counts: &Counts, to: usize, stream: TcpStream) -> Option<TcpStream> {
        let way = self.ways.get().and_then(|ways| ways.get(to)?.upgrade());
        let Some(way) = way else { return Some(stream) };
        let Ok(permit) = way.try_reserve() else { return Some(stream) };
        // Where this fails the connection is gone, with its stream.
        if let Ok(stream) = stream.into_std() {
            counts.workers[to].connections_open.fetch_add(1, Ordering::Relaxed);
            permit.send(Handover { stream, has_moved: true });
        }
        None
    }
}

/// Of so many `workers`, each with its connections `open` and `on` a processor, the one for a connection of the worker
/// `here` whose packets come by `arriving`.
fn better(
    here: usize,
    arriving: usize,
    workers: usize,
    open: impl Fn(usize) -> i64,
    on: impl Fn(usize) -> usize,
) -> Option<usize> {
    if on(here) == arriving {
        return None;
    }
    let there = (0..workers).filter(|&worker| on(worker) == arriving).min_by_key(|&worker| open(worker))?;
    let mean = (0..workers).map(&open).sum::<i64>() / workers as i64;
    (open(there) < open(here) + mean / UNEVEN_PART).then_some(there)
}

/// The processor that this thread runs on, where the system says so.
fn running_on() -> Option<usize> {
    #[cfg(target_os = "linux")]
    return Some(rustix::thread::sched_getcpu());
    #[cfg(not(target_os = "linux"))]
    None
}

/// The processor that took in what came last on a connection (`SO_INCOMING_CPU` of socket(7)).
fn arrives_on(stream: &TcpStream) -> Option<usize> {
    #[cfg(target_os = "linux")]
    return socket2::SockRef::from(stream).cpu_affinity().ok();
    #[cfg(not(target_os = "linux"))]
    {
        let _ = stream;
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The worker that takes over a connection of worker 0, with these connections open at workers on these processors.
    fn of_first(arriving: usize, open: &[i64], on: &[usize]) -> Option<usize> {
        better(0, arriving, open.len(), |worker| open[worker], |worker| on[worker])
    }

    #[test]
    fn a_connection_goes_where_its_packets_arrive_if_that_leaves_the_workers_even() {
        assert_eq!(of_first(1, &[50, 50], &[0, 1]), Some(1));
        assert_eq!(of_first(0, &[50, 50], &[0, 1]), None, "it is there");
        assert_eq!(of_first(2, &[50, 50], &[0, 1]), None, "nobody is there");
        assert_eq!(of_first(1, &[48, 52], &[0, 1]), None, "too many are there");
        assert_eq!(of_first(1, &[1, 1], &[0, 1]), None, "of two connections each keeps a worker of its own");
        assert_eq!(of_first(1, &[2, 0], &[0, 1]), Some(1));
        assert_eq!(of_first(1, &[50, 51, 49], &[0, 1, 1]), Some(2), "the one with fewer");
        assert_eq!(of_first(1, &[50, 50], &[UNKNOWN, UNKNOWN]), None);
    }

    proptest! {
        /// Clients and workers stay on their processors: then each connection moves once at most, to where it is at home,
        /// and the workers stay nearly even.
        #[test]
        fn they_come_to_rest_and_stay_even(
            arriving in prop::collection::vec(0usize..4, 1..300), workers in 1usize..6, seed in any::<u64>(),
        ) {
            let mut random = fastrand::Rng::with_seed(seed);
            let on = |worker: usize| worker % 4;
            let mut at: Vec<usize> = (0..arriving.len()).map(|connection| connection % workers).collect();
            let open = |at: &[usize], worker: usize| at.iter().filter(|it| **it == worker).count() as i64;
            let mut order: Vec<usize> = (0..arriving.len()).collect();
            let mut moved = 0;
            loop {
                random.shuffle(&mut order);
                let before = moved;
                for &connection in &order {
                    let open = |worker: usize| open(&at, worker);
                    if let Some(to) = better(at[connection], arriving[connection], workers, open, on) {
                        prop_assert_eq!(on(to), arriving[connection]);
                        at[connection] = to;
                        moved += 1;
                    }
                }
                if moved == before {
                    break;
                }
                prop_assert!(moved <= arriving.len());
            }
            let mean = (arriving.len() / workers) as i64;
            let counts: Vec<i64> = (0..workers).map(|worker| open(&at, worker)).collect();
            let uneven = counts.iter().max().unwrap() - counts.iter().min().unwrap();
            prop_assert!(uneven <= 1 + workers as i64 * (mean / UNEVEN_PART + 1), "{:?}", counts);
        }
    }
}
