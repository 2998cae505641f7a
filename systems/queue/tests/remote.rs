//! Queues between two processes that are killed: this program again, as a child that sends or receives.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tidemark_queue::remote::{Options, Outgoing, RemoteError};
use tidemark_queue::{Receiver, Sender};

/// Longest wait for what must come, on a machine that has much else to do.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Messages of a whole life, each its own number.
const COUNT: u64 = 100_000;
/// So many more have arrived before something else breaks.
const STEP: u64 = 6_000;
/// Tell a child what its link goes over, and where the receiver keeps what it did.
const WAY_VARIABLE: &str = "TIDEMARK_TEST_QUEUE_WAY";
const FILE_VARIABLE: &str = "TIDEMARK_TEST_QUEUE_FILE";

pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        thread::sleep(Duration::from_millis(2));
    }
}

type Outbound = (Sender<u64>, Outgoing);
/// With what acknowledges a position and has the link live.
type Inbound = (Receiver<u64>, Box<dyn Fn(u64)>);

/// `ws://…`, or `kafka BROKERS TOPIC`.
fn outbound(way: &str, options: Options) -> Result<Outbound, RemoteError> {
    match way.split(' ').collect::<Vec<_>>()[..] {
        #[cfg(feature = "websocket")]
        [url] => tidemark_queue::websocket::connect(url, options),
        #[cfg(feature = "kafka")]
        [_, brokers, topic] => {
            tidemark_queue::kafka::send(&tidemark_queue::kafka::Topic::new(brokers, topic), options)
        }
        _ => panic!("{way}"),
    }
}

fn inbound(way: &str, options: Options) -> Result<Inbound, RemoteError> {
    match way.split(' ').collect::<Vec<_>>()[..] {
        #[cfg(feature = "websocket")]
        [address] => {
            let (receiver, incoming) = tidemark_queue::websocket::listen(address, options)?;
            Ok((receiver, Box::new(move |position| incoming.acknowledge(position))))
        }
        #[cfg(feature = "kafka")]
        [_, brokers, topic] => {
            let topic = tidemark_queue::kafka::Topic::new(brokers, topic);
            let (receiver, incoming) = tidemark_queue::kafka::receive(&topic, options)?;
            Ok((receiver, Box::new(move |_| _ = &incoming)))
        }
        _ => panic!("{way}"),
    }
}

/// A sender with a log: message n is n.
#[test]
#[ignore = "run by the other tests, as a child"]
fn child_sends() {
    let Ok(way) = std::env::var(WAY_VARIABLE) else { return };
    let (mut sender, outgoing) = outbound(&way, Options::new().replays().within(PATIENCE)).unwrap();
    for number in outgoing.position()..COUNT {
        sender.send(number).unwrap();
        if number % 50 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    drop(sender);
    outgoing.finish(PATIENCE).unwrap();
}

/// A receiver whose position is stored together with what messages do: it is the length of the file that they are in.
#[test]
#[ignore = "run by the other tests, as a child"]
fn child_receives() {
    let (Ok(way), Ok(file)) = (std::env::var(WAY_VARIABLE), std::env::var(FILE_VARIABLE)) else { return };
    let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
    let mut position = file.metadata().unwrap().len() / 8;
    file.set_len(position * 8).unwrap();
    let (mut receiver, acknowledge) =
        inbound(&way, Options::new().position(position).within(PATIENCE)).unwrap();
    while let Ok(batch) = receiver.recv_batch() {
        let bytes: Vec<u8> = batch.flat_map(u64::to_le_bytes).collect();
        file.write_all(&bytes).unwrap();
        position += bytes.len() as u64 / 8;
        acknowledge(position);
    }
    assert!(receiver.failure().is_none(), "{:?}", receiver.failure());
}

/// A child, killed with the test.
struct Killed(Child);

impl Killed {
    fn start(what: &str, way: &str, file: &Path) -> Killed {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", &format!("remote::{what}")])
            .env(WAY_VARIABLE, way)
            .env(FILE_VARIABLE, file)
            .stdout(Stdio::null())
            .spawn();
        Killed(child.unwrap())
    }

    /// With SIGKILL.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // it may have ended
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two processes with a queue between them, which are killed, each and both, and whose connections are cut, until all has come.
pub fn nothing_is_lost_or_doubled(sends: &str, receives: &str, mut cut: impl FnMut()) {
    let folder = tempfile::tempdir().unwrap();
    let file = &folder.path().join("received");
    let arrived = || fs::metadata(file).map_or(0, |file| file.len() / 8);
    let mut receiver = Killed::start("child_receives", receives, file);
    let mut sender = Killed::start("child_sends", sends, file);
    let mut faults = 0;
    for (fault, behind) in (STEP..COUNT - STEP).step_by(STEP as usize).enumerate() {
        eventually("more arriving", || arrived() >= behind);
        // one that has ended breaks nothing any more
        faults += u64::from(arrived() < COUNT && sender.0.try_wait().unwrap().is_none());
        let (cuts, kills_receiver, kills_sender) =
            [(true, false, false), (false, true, false), (false, false, true), (true, true, true)][fault % 4];
        if kills_receiver {
            receiver.kill();
        }
        if kills_sender {
            sender.kill();
        }
        if cuts {
            cut();
        }
        if kills_receiver {
            receiver = Killed::start("child_receives", receives, file);
        }
        if kills_sender {
            sender = Killed::start("child_sends", sends, file);
        }
    }
    assert!(faults >= 8, "all but {faults} faults came when everything had arrived");
    for (who, child) in [("sender", &mut sender), ("receiver", &mut receiver)] {
        eventually(who, || child.0.try_wait().unwrap().is_some());
        assert!(child.0.wait().unwrap().success(), "the {who} failed");
    }
    let received = fs::read(file).unwrap();
    let received = received.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    assert!(received.eq(0..COUNT), "not each message once and in order");
}
