//! An agent: it says that it is there, tells the time, and drives for one coordinator at a time.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::kv::Store;
use async_nats::jetstream::message::PublishMessage;
use async_nats::{Client, Message};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::clock::Clock;
use crate::error::FleetError;
use crate::fence::Fence;
use crate::pieces::Cutter;
use crate::presence::{Presence, bucket, check_name, is_free, will_be_free};
use crate::protocol::{
    Answer, Question, State, TakeOver, Word, asked_at, files_of, orders_of, remove, told_by, versions,
};
use crate::server::{Nats, Server};
use crate::{
    AGENT_ALONE_AFTER, AGENT_CUT_AFTER, AGENT_FENCED_AFTER, AGENT_FROZEN_AFTER, AGENT_SHUT_OUT_AFTER, BEAT,
    RESUMED_WITHIN,
};

/// Longest time that the server may take to acknowledge a message before it is sent again.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(2);
/// How often an agent looks whether it is to stop, and whether it is alone.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Most bytes that are fetched at once.
const CHUNK_BYTES: usize = 64 << 10;

/// What the agent's driver is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// To begin: the run's zero on this machine, and when the load begins after it.
    Begin {
        /// The run's zero.
        epoch: Instant,
        /// The load's begin, counted from it.
        begin: Duration,
    },
    /// To go on with threads of a member that is gone.
    TakeOver(TakeOver),
    /// Nothing new becomes due; what is under way is waited for.
    Stop,
    /// To end at once.
    Abort,
    /// To end at once, as there is no coordinator any more.
    Alone,
}

/// A run that an agent takes part in.
pub struct Job {
    nats: Arc<Nats>,
    /// The run.
    pub run: String,
    /// Which member of it this is.
    pub member: usize,
    orders: Mutex<Receiver<Order>>,
    cutter: Mutex<Cutter>,
    /// Whether others have its share when it is lost.
    rebalance: bool,
    fence: Fence,
    is_over: Arc<AtomicBool>,
}

impl Job {
    /// Fetches one of the run's files, and checks that it came whole.
    ///
    /// # Errors
    /// If it is not there, too long or broken.
    pub fn fetch(&self, name: &str, most: u64) -> Result<Vec<u8>, FleetError> {
        fetch(&self.nats, (&self.run, name), most)
    }

    /// Fetches one into a file.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch), and if the file cannot be written.
    pub fn fetch_into(&self, name: &str, path: &Path, most: u64) -> Result<(), FleetError> {
        fetch_into(&self.nats, (&self.run, name), path, most)
    }

    /// Waits for the next order, so long at most; none where there is none.
    pub fn order(&self, within: Duration) -> Option<Order> {
        let order = self.orders.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(within).ok();
        if let Some(Order::Begin { epoch, .. }) = order {
            self.fence.begin(epoch, Instant::now() + self.sends_for());
        }
        order
    }

    /// When it may send no more, nanoseconds since the run's zero; put off while it may.
    pub fn fence_ns(&self) -> Arc<AtomicU64> {
        self.fence.ns()
    }

    /// How long it may send after a sign that it is not lost.
    fn sends_for(&self) -> Duration {
        if self.rebalance { AGENT_FENCED_AFTER } else { AGENT_FROZEN_AFTER }
    }

    /// Hands a message over: sends it until the server has it.
    ///
    /// # Errors
    /// If the run is over, or the agent alone.
    pub fn hand_over(&self, message: &[u8]) -> Result<(), FleetError> {
        // one message after the other, so that they stay in order
        let mut cutter = self.cutter.lock().unwrap_or_else(PoisonError::into_inner);
        let sent_first = Instant::now();
        for (number, piece) in cutter.cut(message) {
            let piece = Bytes::from(piece);
            loop {
                if self.is_over.load(Ordering::Relaxed) {
                    return Err(FleetError::Nats("nobody takes what is handed over".into()));
                }
                let sent = self.nats.wait_at_most(ACKNOWLEDGED_WITHIN, self.send(number, piece.clone()));
                match sent {
                    Some(Ok(())) => break,
                    // the server is away, or full: it is asked again
                    Some(Err(_)) => std::thread::sleep(LOOK_EVERY),
                    None => {}
                }
            }
        }
        if self.rebalance {
            self.fence.put_off(sent_first + AGENT_FENCED_AFTER);
        }
        Ok(())
    }

    async fn send(&self, number: u64, piece: Bytes) -> Result<(), String> {
        let subject = told_by(&self.run, &self.member.to_string());
        let id = format!("{}/{}/{number}", self.run, self.member);
        let message = PublishMessage::build().payload(piece).message_id(id);
        let acknowledgement =
            self.nats.jetstream.send_publish(subject, message).await.map_err(|error| error.to_string())?;
        acknowledgement.await.map(|_| ()).map_err(|error| error.to_string())
    }
}

/// Fetches one of a run's files, by the run and its name.
pub(crate) fn fetch(nats: &Nats, file: (&str, &str), most: u64) -> Result<Vec<u8>, FleetError> {
    let mut bytes = Vec::new();
    each_chunk(nats, file, most, &mut |chunk| {
        bytes.extend_from_slice(chunk);
        Ok(())
    })?;
    Ok(bytes)
}

/// Fetches one into a file.
pub(crate) fn fetch_into(nats: &Nats, file: (&str, &str), path: &Path, most: u64) -> Result<(), FleetError> {
    let unwritten = |error: std::io::Error| FleetError::Nats(format!("{}: {error}", path.display()));
    let mut to = std::fs::File::create(path).map_err(unwritten)?;
    each_chunk(nats, file, most, &mut |chunk| to.write_all(chunk).map_err(unwritten))
}

fn each_chunk(
    nats: &Nats,
    (run, name): (&str, &str),
    most: u64,
    take: &mut dyn FnMut(&[u8]) -> Result<(), FleetError>,
) -> Result<(), FleetError> {
    let failed = |error: &dyn std::fmt::Display| FleetError::nats("a file of the run", error);
    nats.wait(async {
        let store = nats.jetstream.get_object_store(files_of(run)).await;
        let store = store.map_err(|error| failed(&error))?;
        let mut object = store.get(name).await.map_err(|error| failed(&error))?;
        read_all(&mut object, most, take).await
    })
}

async fn read_all(
    object: &mut (impl AsyncRead + Unpin),
    most: u64,
    take: &mut dyn FnMut(&[u8]) -> Result<(), FleetError>,
) -> Result<(), FleetError> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut all = 0u64;
    loop {
        let read = object.read(&mut chunk).await;
        let read = read.map_err(|error| FleetError::nats("a file of the run", error))?;
        if read == 0 {
            return Ok(());
        }
        all += read as u64;
        if all > most {
            return Err(FleetError::Nats(format!("a file of the run has more than {} MiB", most >> 20)));
        }
        take(&chunk[..read])?;
    }
}

/// What goes on at an agent.
struct Running {
    presence: Presence,
    /// To whom orders go that come for the run.
    orders: Option<Sender<Order>>,
    is_over: Arc<AtomicBool>,
    begun: bool,
    /// That another agent has its name, in words.
    replaced: Option<String>,
}

type Shared = Arc<Mutex<Running>>;

/// What an agent is to do in a run.
struct Part {
    run: String,
    /// Which member of it the agent is.
    member: usize,
    /// Whether others have its share when it is lost.
    rebalance: bool,
}

/// What is heard of the coordinator of a run.
struct Heard {
    at: Instant,
    /// When a connection was there last.
    connected: Instant,
}

/// Is there, and drives what coordinators ask for, one run after the other, until `stop` is set. `tell` is told in words what
/// goes on; `work` carries a run out.
///
/// # Errors
/// If NATS cannot be reached, or the name is taken.
pub fn serve(
    server: &Server,
    presence: Presence,
    stop: &AtomicBool,
    tell: &(dyn Fn(String) + Sync),
    work: &(dyn Fn(&Job) + Sync),
) -> Result<(), FleetError> {
    check_name(&presence.name).map_err(FleetError::Usage)?;
    let nats = Arc::new(Nats::connect(server, &format!("tidemark agent {}", presence.name))?);
    let clock = Clock::start();
    let store = nats.wait(bucket(&nats.jetstream))?;
    let presence = Presence { instance: nats.client.new_inbox(), run: None, ..presence };
    nats.wait(will_be_free(&store, &presence))?;
    let name = presence.name.clone();
    let running = Arc::new(Mutex::new(Running {
        presence,
        orders: None,
        is_over: Arc::default(),
        begun: false,
        replaced: None,
    }));
    let instance = locked(&running).presence.instance.clone();
    let questions = nats.wait(nats.client.subscribe(asked_at(&instance)));
    let mut questions = questions.map_err(|error| FleetError::nats("a subscription", error))?;
    let (taken, jobs) = channel::<Part>();
    let (client, of_answers) = (nats.client.clone(), Arc::clone(&running));
    nats.beside(async move {
        while let Some(message) = questions.next().await {
            answer(&client, &clock, &of_answers, &taken, message).await;
        }
    });
    let beats = Arc::clone(&running);
    let (own, jetstream) = (store.clone(), nats.jetstream.clone());
    nats.beside(async move {
        loop {
            let presence = locked(&beats).presence.clone();
            // what was asked of a NATS that went away is never answered
            let is_own = tokio::time::timeout(ACKNOWLEDGED_WITHIN, is_free(&store, &presence)).await;
            if let Ok(Err(FleetError::Usage(why))) = is_own {
                // it was away for so long that another one took its name
                locked(&beats).replaced = Some(why);
                return;
            }
            // a NATS that was started again has no bucket
            if !put(&store, &beats).await && bucket(&jetstream).await.is_ok() {
                put(&store, &beats).await;
            }
            tokio::time::sleep(BEAT).await;
        }
    });
    // whoever reads this finds it
    nats.wait(put(&own, &running));
    tell(format!("agent {name} waits for work at {}", server.shown()));
    while !stop.load(Ordering::Relaxed) {
        if let Some(why) = locked(&running).replaced.take() {
            return Err(FleetError::Usage(why));
        }
        let Ok(part) = jobs.recv_timeout(LOOK_EVERY) else { continue };
        let run = part.run.clone();
        tell(format!("run {run} begins"));
        drive(&nats, &running, part, stop, work);
        // the next run need not wait for a beat
        nats.wait(put(&own, &running));
        tell(format!("run {run} is over"));
    }
    // who looks now does not find it
    let _ = nats.wait_at_most(ACKNOWLEDGED_WITHIN, async {
        let store = bucket(&nats.jetstream).await?;
        let removed = store.delete(&name).await;
        let _ = nats.client.flush().await;
        removed.map_err(|error| FleetError::nats("its key-value store", error))
    });
    Ok(())
}

/// Carries a run out, and minds its coordinator meanwhile.
fn drive(
    nats: &Arc<Nats>,
    running: &Shared,
    Part { run, member, rebalance }: Part,
    stop: &AtomicBool,
    work: &(dyn Fn(&Job) + Sync),
) {
    let (sender, orders) = channel();
    let is_over = {
        let mut running = locked(running);
        running.orders = Some(sender.clone());
        Arc::clone(&running.is_over)
    };
    let now = Instant::now();
    let heard = Arc::new(Mutex::new(Heard { at: now, connected: now }));
    listen(nats, (&run, member), &sender, &heard);
    let job = Job {
        nats: Arc::clone(nats),
        run: run.clone(),
        member,
        orders: Mutex::new(orders),
        cutter: Mutex::default(),
        rebalance,
        fence: Fence::default(),
        is_over: Arc::clone(&is_over),
    };
    std::thread::scope(|scope| {
        let working = scope.spawn(|| work(&job));
        let mut looked = Instant::now();
        let mut shut_out = None;
        while !working.is_finished() {
            std::thread::sleep(LOOK_EVERY);
            // while it stood still itself, it could hear nothing
            let stood_still = looked.elapsed().saturating_sub(2 * LOOK_EVERY);
            looked = Instant::now();
            let mut heard_last = heard.lock().unwrap_or_else(PoisonError::into_inner);
            heard_last.at = (heard_last.at + stood_still).min(looked);
            heard_last.connected = (heard_last.connected + stood_still).min(looked);
            drop(heard_last);
            if locked(running).replaced.is_some() {
                let _ = sender.send(Order::Abort);
            }
            if stop.load(Ordering::Relaxed) {
                let _ = sender.send(Order::Abort);
                // nobody takes its last words
                if !nats.is_connected() {
                    is_over.store(true, Ordering::Relaxed);
                }
            }
            if !rebalance {
                job.fence.put_off(looked + AGENT_FROZEN_AFTER);
            }
            // a server that is away lets nobody in, and nobody is lost by that
            let is_out = rebalance && !nats.is_connected() && nats.answers();
            shut_out = if is_out { shut_out.or(Some(looked)) } else { None };
            if shut_out.is_some_and(|since: Instant| since.elapsed() >= AGENT_SHUT_OUT_AFTER) {
                job.fence.close();
            }
            let is_left = is_alone(nats, &heard) || job.fence.has_passed();
            if is_left && !is_over.swap(true, Ordering::Relaxed) {
                let _ = sender.send(Order::Alone);
            }
        }
    });
    if is_over.load(Ordering::Relaxed) {
        let jetstream = nats.jetstream.clone();
        nats.beside(async move {
            tokio::time::sleep(RESUMED_WITHIN).await;
            // it may have been cut off, while the others went on, or somebody may have resumed the run
            let is_silent =
                heard.lock().unwrap_or_else(PoisonError::into_inner).at.elapsed() > AGENT_ALONE_AFTER;
            if is_silent {
                // nobody else removes it
                remove(&jetstream, &run).await;
            }
        });
    }
    let mut running = locked(running);
    running.orders = None;
    running.begun = false;
    running.presence.run = None;
}

/// Hands on what the coordinator says.
fn listen(nats: &Nats, (run, member): (&str, usize), sender: &Sender<Order>, heard: &Arc<Mutex<Heard>>) {
    let (client, subject) = (nats.client.clone(), orders_of(run));
    let (sender, heard) = (sender.clone(), Arc::downgrade(heard));
    nats.beside(async move {
        let Ok(mut orders) = client.subscribe(subject).await else { return };
        // what was taken over is said again and again
        let mut known = BTreeSet::new();
        while let Some(message) = orders.next().await {
            let Some(heard) = heard.upgrade() else { return };
            heard.lock().unwrap_or_else(PoisonError::into_inner).at = Instant::now();
            let Ok(word) = serde_json::from_slice::<Word>(&message.payload) else { continue };
            let end = match word.state {
                _ if word.gone.contains(&member) => Some(Order::Abort),
                State::Stop => Some(Order::Stop),
                State::Abort => Some(Order::Abort),
                State::Go => None,
            };
            let own = word.taken.into_iter().filter(|taken| taken.member == member);
            let taken: Vec<TakeOver> = own.filter(|taken| known.insert(taken.id)).collect();
            if !taken.into_iter().map(Order::TakeOver).chain(end).all(|order| sender.send(order).is_ok()) {
                return;
            }
        }
    });
}

/// Whether there is no coordinator any more.
fn is_alone(nats: &Nats, heard: &Mutex<Heard>) -> bool {
    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    if nats.is_connected() {
        heard.connected = Instant::now();
        return heard.at.elapsed() > AGENT_ALONE_AFTER;
    }
    // it may be there, and not be heard
    if heard.connected.elapsed() > AGENT_CUT_AFTER {
        return true;
    }
    heard.at = heard.at.max(Instant::now().checked_sub(AGENT_ALONE_AFTER / 2).unwrap_or(heard.at));
    false
}

async fn answer(client: &Client, clock: &Clock, running: &Shared, taken: &Sender<Part>, message: Message) {
    let Some(reply) = message.reply else { return };
    let answer = match serde_json::from_slice(&message.payload) {
        Ok(Question::Clock) => Answer::Clock(clock.now_us()),
        Ok(Question::Take { run, member, rebalance, version, handover }) => {
            take(running, taken, Part { run, member, rebalance }, (&version, handover))
        }
        Ok(Question::Drives { run }) if locked(running).presence.run.as_ref() == Some(&run) => Answer::Yes,
        Ok(Question::Drives { .. }) => Answer::No("it does not drive for this run".into()),
        Ok(Question::Begin { run, epoch_us, begin_us }) => begin(clock, running, &run, epoch_us, begin_us),
        Err(_) => Answer::No("it does not know what it is asked; its version is another".into()),
    };
    if let Ok(payload) = serde_json::to_vec(&answer) {
        // whoever asked asks again
        let _ = client.publish(reply, payload.into()).await;
    }
}

fn take(running: &Shared, taken: &Sender<Part>, part: Part, (version, handover): (&str, u32)) -> Answer {
    let mut running = locked(running);
    let own = &running.presence;
    if own.version != version || own.handover != handover {
        return Answer::No(versions(own, version, handover));
    }
    if own.run.as_ref() == Some(&part.run) {
        return Answer::Yes;
    }
    if own.run.is_some() {
        return Answer::No("it drives for another run".into());
    }
    running.presence.run = Some(part.run.clone());
    running.is_over = Arc::default();
    match taken.send(part) {
        Ok(()) => Answer::Yes,
        Err(_) => Answer::No("it is about to end".into()),
    }
}

fn begin(clock: &Clock, running: &Shared, run: &str, epoch_us: i64, begin_us: u64) -> Answer {
    let mut running = locked(running);
    if running.presence.run.as_deref() != Some(run) {
        return Answer::No("it does not drive for this run".into());
    }
    if running.begun {
        return Answer::Yes;
    }
    let begin = Duration::from_micros(begin_us);
    let epoch = clock.instant_of(epoch_us).filter(|epoch| *epoch + begin > Instant::now());
    let Some(epoch) = epoch else { return Answer::No("it is told to begin too late".into()) };
    let told =
        running.orders.as_ref().is_some_and(|orders| orders.send(Order::Begin { epoch, begin }).is_ok());
    running.begun = told;
    if told { Answer::Yes } else { Answer::No("it is not ready".into()) }
}

/// Puts the agent's entry again; whether it is there.
async fn put(store: &Store, running: &Shared) -> bool {
    let (name, entry) = {
        let running = locked(running);
        (running.presence.name.clone(), serde_json::to_vec(&running.presence))
    };
    let Ok(entry) = entry else { return false };
    matches!(tokio::time::timeout(ACKNOWLEDGED_WITHIN, store.put(name, entry.into())).await, Ok(Ok(_)))
}

fn locked(running: &Shared) -> std::sync::MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder that only its owner reads, and that is gone at the end.
#[derive(Debug)]
pub struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// A new one.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(name: &str) -> std::io::Result<PrivateFolder> {
        let path = std::env::temp_dir().join(format!("tidemark-{name}-{}", std::process::id()));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        Ok(PrivateFolder(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // what is left is in the folder of what is temporary
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
