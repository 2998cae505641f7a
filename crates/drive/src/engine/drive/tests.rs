use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tidemark_record::{ErrorExample, Outcome};
use tidemark_scenario::plan::RequestPlan;

use super::*;
use crate::io::Event;
use crate::io::address::Dialer;
use crate::testing;
use crate::{Address, Target};

/// Longest time for the answer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// A thread that was kept from its sockets, once, after it had sent: so it finds both an answer and an alarm.
struct Late<I> {
    inner: I,
    has_sent: bool,
    held_up: Duration,
}

impl<I: Io> Io for Late<I> {
    fn point(&mut self, _: usize, _: std::net::SocketAddr) {}

    fn open(&mut self, connection: usize) -> std::io::Result<()> {
        self.inner.open(connection)
    }
    fn output(&mut self, connection: usize) -> &mut Vec<u8> {
        self.inner.output(connection)
    }
    fn send(&mut self, connection: usize) -> std::io::Result<()> {
        self.has_sent = true;
        self.inner.send(connection)
    }
    fn is_sending(&self, connection: usize) -> bool {
        self.inner.is_sending(connection)
    }
    fn close(&mut self, connection: usize) {
        self.inner.close(connection);
    }
    fn wait(&mut self, at_most: Option<Duration>) -> std::io::Result<()> {
        if !std::mem::take(&mut self.has_sent) {
            return self.inner.wait(at_most);
        }
        std::thread::sleep(self.held_up);
        self.inner.wait(Some(Duration::ZERO))
    }
    fn next(&mut self) -> Option<(usize, Event)> {
        self.inner.next()
    }
    fn received(&self) -> &[u8] {
        self.inner.received()
    }
    fn traffic(&self) -> (u64, u64) {
        self.inner.traffic()
    }
}

/// What became of so many requests, one behind the other, while the thread was held up for so long after the first; and how many
/// the server saw.
fn held_up(held_up: Duration, requests: usize, fence: Option<Duration>) -> (Option<ErrorExample>, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            while socket.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
                count.fetch_add(1, Ordering::Relaxed);
                let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    let request = || RequestPlan {
        label: 0,
        target: 0,
        ask: testing::get("/"),
        ledger: None,
        key: None,
        timeout: TIMEOUT,
        extractions: Vec::new(),
        checks: Vec::new(),
        shown_body_bytes: 0,
        follow: None,
    };
    let mut plan = testing::plan((0..requests).map(|_| request()).collect());
    plan.sessions[0].ops = (0..requests as u16).map(Op::Request).chain([Op::End]).collect();
    let target = Target { address: address.clone(), ..testing::target() };
    let options = DriveOptions {
        threads: 1,
        share: None,
        cores: Vec::new(),
        seed: 1,
        ledger_seed: 1,
        io: IoChoice::Portable,
        spin: false,
        timestamps: Timestamps::Read,
        targets: vec![target],
        trace: None,
        programs: None,
        codes: None,
        epoch: Instant::now(),
        wall_epoch: SystemTime::now(),
        fence_ns: fence.map(|fence| Arc::new(AtomicU64::new(nanoseconds(fence)))),
    };
    let shared = Shared::new(0, Vec::new());
    let io = Poller::new(options.io, 1).unwrap().into_io(Dialer::new(&address, 1), 1, false).unwrap();
    let late = Late { inner: io, has_sent: false, held_up };
    let plans = plans(&plan, &options.targets);
    let places = few(&plans, &options, 1);
    let thread = once(&plan, &plan.sessions[0], &shared, &options, &places, ONCE_THREAD, late).unwrap();
    let (end, recorder) = thread.run();
    assert_eq!(end.interrupted, fence.is_some_and(|fence| fence < held_up));
    // what has left has come by then
    std::thread::sleep(Duration::from_millis(100));
    (recorder.first_failure().cloned(), seen.load(Ordering::Relaxed))
}

#[test]
fn an_answer_that_is_read_after_its_time_is_none() {
    // a machine that stands still holds it up, too
    assert!((0..3).any(|_| held_up(Duration::from_millis(1), 1, None).0.is_none()));
    let failure = held_up(TIMEOUT * 2, 1, None).0.unwrap();
    assert_eq!(failure.outcome, Outcome::Timeout, "{failure:?}");
}

#[test]
fn nothing_leaves_after_the_fence_from_a_thread_that_stood_still() {
    // within the time of the request: its answer is there, and the next one is due
    let stood_still = TIMEOUT * 4 / 5;
    let sent = |_| held_up(stood_still, 2, Some(TIMEOUT * 3 / 5)).1;
    // a machine that stands still may hold up the first, too
    let sent: Vec<_> = (0..3).map(sent).collect();
    assert!(sent.contains(&1) && sent.iter().all(|sent| *sent <= 1), "{sent:?}");
    assert!((0..3).any(|_| held_up(stood_still, 2, Some(TIMEOUT * 20)).1 == 2));
}
