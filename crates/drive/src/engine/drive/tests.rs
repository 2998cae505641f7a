use std::io::{Read, Write};
use std::net::TcpListener;
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

/// What became of one request whose answer came at once, while the thread was held up for so long.
fn held_up(held_up: Duration) -> Option<ErrorExample> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 4096]);
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            let _ = socket.read(&mut [0; 4096]);
        }
    });
    let plan = testing::plan(vec![RequestPlan {
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
    }]);
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
    };
    let shared = Shared::new(0, Vec::new());
    let io = Poller::new(options.io, 1).unwrap().into_io(Dialer::new(&address, 1), 1, false).unwrap();
    let late = Late { inner: io, has_sent: false, held_up };
    let plans = plans(&plan, &options.targets);
    let places = few(&plans, &options, 1);
    let thread = once(&plan, &plan.sessions[0], &shared, &options, &places, ONCE_THREAD, late).unwrap();
    let (_, recorder) = thread.run();
    recorder.first_failure().cloned()
}

#[test]
fn an_answer_that_is_read_after_its_time_is_none() {
    // a machine that stands still holds it up, too
    assert!((0..3).any(|_| held_up(Duration::from_millis(1)).is_none()));
    let failure = held_up(TIMEOUT * 2).unwrap();
    assert_eq!(failure.outcome, Outcome::Timeout, "{failure:?}");
}
