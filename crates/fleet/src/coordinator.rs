//! The coordinator: it finds agents, has them begin at one instant, and takes what they hand over.

mod delivery;
mod listing;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::object_store;
use async_nats::jetstream::stream::StorageType;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use crate::agent::{fetch, fetch_into};
use crate::clock::{Clock, Offset};
use crate::error::FleetError;
use crate::pieces::Joiner;
use crate::presence::Presence;
use crate::protocol::{
    Answer, Question, State, TakeOver, Word, asked_at, files_of, orders_of, remove, stream_of, versions,
};
use crate::server::{NOT_THERE, Nats, Server, ask};
use crate::{AGENT_DISCONNECTED_AFTER, BEAT};
use delivery::{Reading, deliver, last_of, last_sequence, make_stream};
pub use listing::{ListedAgent, look};
use listing::{measured, present};

/// Longest time that an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// How long agents that drive for another run are waited for.
const IDLE_WITHIN: Duration = Duration::from_secs(3);
/// Most attempts to ask an agent to take part, or to begin.
const ATTEMPTS: usize = 3;
/// What a run leaves behind expires.
const EXPIRES: Duration = Duration::from_secs(3_600);
/// Messages that wait to be taken.
const WAITING: usize = 1_024;

/// A run with its agents. Dropped, it ends at once for all of them.
pub struct Coordinator {
    nats: Nats,
    clock: Clock,
    run: String,
    members: Vec<Presence>,
    word: Arc<Mutex<Word>>,
    told: Option<Receiver<(Told, u64)>>,
    reading: Arc<Reading>,
    /// Whether the run ends with this.
    owns: bool,
    /// Since when the server has no connection of each member; none for those that it has, and where nobody looks.
    absent: Arc<Mutex<Vec<Option<Instant>>>>,
}

/// What is needed to go on with a run whose coordinator is gone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResumeState {
    run: String,
    members: Vec<Presence>,
    word: Word,
}

impl ResumeState {
    /// The same once a member is [given up](Coordinator::give_up).
    #[must_use]
    pub fn giving_up(mut self, member: usize, taken: &[TakeOver]) -> ResumeState {
        self.word.give_up(member, taken);
        self
    }
}

/// What came from a member: a message, or why nothing more can come.
pub type Told = (usize, Result<Vec<u8>, String>);

impl Coordinator {
    /// Chooses so many agents of those that are idle, or all; nothing has been asked of them yet.
    ///
    /// # Errors
    /// If there are fewer, or one has another version.
    pub fn choose(
        server: &Server,
        wanted: Option<usize>,
        (version, handover): (&str, u32),
    ) -> Result<Coordinator, FleetError> {
        let nats = Nats::connect(server, "tidemark run")?;
        let asked = Instant::now();
        let mut members = loop {
            let members = nats.wait(present(&nats.jetstream))?;
            // one whose run has just ended is about to be idle
            if asked.elapsed() > IDLE_WITHIN || members.iter().all(|agent| agent.run.is_none()) {
                break members;
            }
            std::thread::sleep(BEAT / 5);
        };
        let all = members.len();
        members.retain(|agent| agent.run.is_none());
        if let Some(wanted) = wanted {
            if members.len() < wanted {
                return Err(FleetError::Usage(format!(
                    "--agents {wanted}, and {} there at {} ({} idle); start more with `tidemark agent --nats …`",
                    count(all),
                    server.shown(),
                    members.len()
                )));
            }
            members.truncate(wanted);
        }
        if members.is_empty() {
            return Err(FleetError::Usage(format!(
                "no idle agent is there at {} ({} in all); start one with `tidemark agent --nats …`",
                server.shown(),
                all
            )));
        }
        if let Some(other) =
            members.iter().find(|agent| agent.version != version || agent.handover != handover)
        {
            return Err(FleetError::Agent {
                name: other.name.clone(),
                reason: versions(other, version, handover),
            });
        }
        let run = nats.client.new_inbox().rsplit('.').next().unwrap_or_default().to_owned();
        let word = Arc::new(Mutex::new(Word { state: State::Go, gone: BTreeSet::new(), taken: Vec::new() }));
        Ok(Coordinator {
            nats,
            clock: Clock::start(),
            run,
            members,
            word,
            told: None,
            reading: Arc::default(),
            owns: true,
            absent: Arc::default(),
        })
    }

    /// The agents, in the order of their numbers.
    pub fn members(&self) -> &[Presence] {
        &self.members
    }

    /// Leaves those out who come behind the first so many.
    pub fn keep(&mut self, first: usize) {
        self.members.truncate(first);
    }

    /// The run's name among others at this server.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Puts the run's files where agents find them.
    ///
    /// # Errors
    /// If NATS does not take them.
    pub fn put(&self, files: &[(String, File<'_>)]) -> Result<(), FleetError> {
        let failed = |error: &dyn std::fmt::Display| FleetError::nats("a store for the run's files", error);
        self.nats.wait(async {
            let config = object_store::Config {
                bucket: files_of(&self.run),
                max_age: EXPIRES,
                // no disk keeps what may be secret
                storage: StorageType::Memory,
                ..object_store::Config::default()
            };
            let store =
                self.nats.jetstream.create_object_store(config).await.map_err(|error| failed(&error))?;
            for (name, file) in files {
                let put = match file {
                    File::Bytes(bytes) => store.put(name.as_str(), &mut &bytes[..]).await,
                    File::At(path) => {
                        let file = tokio::fs::File::open(path).await;
                        let unread = |error| FleetError::Usage(format!("{}: {error}", path.display()));
                        store.put(name.as_str(), &mut file.map_err(unread)?).await
                    }
                };
                put.map_err(|error| failed(&error))?;
            }
            Ok(())
        })
    }

    /// Has all agents take part. From now on they hear that the coordinator is there. `rebalance`: others may have the share of one
    /// that is lost, so that one which is cut off stops after [`AGENT_FENCED_AFTER`](crate::AGENT_FENCED_AFTER).
    ///
    /// # Errors
    /// If one of them does not.
    pub fn take(&mut self, rebalance: bool, (version, handover): (&str, u32)) -> Result<(), FleetError> {
        self.nats.wait(make_stream(&self.nats.jetstream, &self.run))?;
        self.follow(Joiner::default());
        let questions = self.members.iter().enumerate().map(|(member, _)| {
            let (run, version) = (self.run.clone(), version.to_owned());
            Question::Take { run, member, rebalance, version, handover }
        });
        self.ask_all(questions.collect())
    }

    /// What another coordinator needs to go on with the run.
    pub fn left(&self) -> ResumeState {
        let word = self.word.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ResumeState { run: self.run.clone(), members: self.members.clone(), word }
    }

    /// Goes on with a run whose coordinator is gone. Agents that still drive hear of it at once.
    ///
    /// # Errors
    /// If NATS cannot be reached, or has nothing of the run any more.
    pub fn resume(server: &Server, left: ResumeState) -> Result<Coordinator, FleetError> {
        let nats = Nats::connect(server, "tidemark run")?;
        if let Err(error) = nats.wait(nats.jetstream.get_stream(stream_of(&left.run))) {
            return Err(FleetError::Usage(format!(
                "{} has nothing of this run any more: {error}",
                server.shown()
            )));
        }
        let ResumeState { run, members, word } = left;
        let word = Arc::new(Mutex::new(word));
        let (clock, reading) = (Clock::start(), Arc::default());
        let mut coordinator = Coordinator {
            nats,
            clock,
            run,
            members,
            word,
            told: None,
            reading,
            owns: false,
            absent: Arc::default(),
        };
        coordinator.follow(Joiner::midway());
        Ok(coordinator)
    }

    /// A run that is gone on with ends with this from now on. Dropped before, it leaves all as it was.
    pub fn own(&mut self) {
        self.owns = true;
    }

    /// Which members drive for the run now, and the number of the last message that is there.
    ///
    /// # Errors
    /// If NATS has nothing of the run any more.
    pub fn who_drives(&self) -> Result<(Vec<bool>, u64), FleetError> {
        let asked = self.members.iter().map(|member| async {
            let question = Question::Drives { run: self.run.clone() };
            let answer = ask(&self.nats.client, asked_at(&member.instance), &question, ANSWER_WITHIN).await;
            // one that stands still may go on
            !matches!(answer, Ok(Answer::No(_))) && answer != Err(NOT_THERE.to_owned())
        });
        let drive = self.nats.wait(join_all(asked));
        let last = self.nats.wait(last_sequence(&self.nats.jetstream, &self.run));
        Ok((drive, last.map_err(|error| FleetError::nats("what the run handed over", error))?))
    }

    /// Whether all messages up to this one were read.
    pub fn has_read(&self, last: u64) -> bool {
        self.reading.read.load(Ordering::Acquire) >= last
    }

    /// Whether [`next`](Self::next) gave all that a member handed over until now; false where NATS does not say.
    pub fn has_told_all_of(&self, member: usize) -> bool {
        let last = last_of(&self.nats.jetstream, &self.run, member);
        let last = self.nats.wait_at_most(ANSWER_WITHIN, last);
        let is_read = last.is_some_and(|last| last.is_ok_and(|last| self.has_read(last)));
        is_read && self.reading.put.load(Ordering::Relaxed) == self.told()
    }

    /// Fetches one of the run's files, as agents do.
    ///
    /// # Errors
    /// If it is not there, or too long.
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

    /// Reads what members hand over, and says that it is there, from now on.
    fn follow(&mut self, mut joiner: Joiner) {
        let (sink, told) = sync_channel(WAITING);
        let (nats, run, members) = (self.nats.shared(), self.run.clone(), self.members.len());
        let reading = Arc::clone(&self.reading);
        self.nats.beside(async move { deliver(&nats, &run, members, (&mut joiner, &reading), &sink).await });
        self.told = Some(told);
        let (client, subject) = (self.nats.client.clone(), orders_of(&self.run));
        let word = Arc::downgrade(&self.word);
        self.nats.beside(async move {
            while let Some(word) = word.upgrade() {
                let now = word.lock().unwrap_or_else(PoisonError::into_inner).clone();
                drop(word);
                say(&client, &subject, &now).await;
                tokio::time::sleep(BEAT).await;
            }
        });
    }

    /// Asks each member its question, all at once; none may say no.
    fn ask_all(&self, questions: Vec<Question>) -> Result<(), FleetError> {
        let asked = self.members.iter().zip(questions).map(|(member, question)| async move {
            let mut reason = String::new();
            for _ in 0..ATTEMPTS {
                match ask(&self.nats.client, asked_at(&member.instance), &question, ANSWER_WITHIN).await {
                    Ok(Answer::Yes) => return Ok(()),
                    Ok(Answer::No(why)) => {
                        reason = why;
                        break;
                    }
                    Ok(Answer::Clock(_)) => reason = "it answers something else".into(),
                    Err(why) => reason = why,
                }
            }
            Err(FleetError::Agent { name: member.name.clone(), reason })
        });
        self.nats.wait(join_all(asked)).into_iter().collect()
    }

    /// How far the clock of each member is ahead of this machine's.
    ///
    /// # Errors
    /// If one does not answer.
    pub fn offsets(&self) -> Result<Vec<Offset>, FleetError> {
        let silent = |name: &str| FleetError::Agent {
            name: name.to_owned(),
            reason: "it does not tell the time".into(),
        };
        let known = self.members.iter().zip(self.offsets_known());
        known.map(|(member, offset)| offset.ok_or_else(|| silent(&member.name))).collect()
    }

    /// The same of those that answer.
    pub fn offsets_known(&self) -> Vec<Option<Offset>> {
        let measured =
            self.members.iter().map(|member| measured(&self.nats.client, &self.clock, &member.instance));
        self.nats.wait(join_all(measured))
    }

    /// Has all members begin: the load so long after the run's zero.
    ///
    /// # Errors
    /// If one of them cannot.
    pub fn begin(&self, offsets: &[Offset], epoch: Instant, begin: Duration) -> Result<(), FleetError> {
        let epoch_us = self.clock.us_of(epoch);
        let question = |offset: &Offset| Question::Begin {
            run: self.run.clone(),
            epoch_us: epoch_us + offset.offset_us,
            begin_us: u64::try_from(begin.as_micros()).unwrap_or(u64::MAX),
        };
        self.ask_all(offsets.iter().map(question).collect())
    }

    /// Waits for what one of them says next.
    ///
    /// # Errors
    /// If nothing comes in time, or nothing can come any more.
    pub fn next(&self, within: Duration) -> Result<Told, RecvTimeoutError> {
        let told = self.told.as_ref().ok_or(RecvTimeoutError::Disconnected)?;
        match told.recv_timeout(within)? {
            // a look whether somebody takes it
            ((member, _), _) if member >= self.members.len() => Err(RecvTimeoutError::Timeout),
            (told, number) => {
                self.reading.told.store(number, Ordering::Relaxed);
                Ok(told)
            }
        }
    }

    /// The number of the last message that [`next`](Self::next) gave.
    pub fn told(&self) -> u64 {
        self.reading.told.load(Ordering::Relaxed)
    }

    /// Nobody needs what came before the message of this number, or all that came: it need not stay at NATS.
    pub fn done(&self, needed: Option<u64>) {
        let done = needed.map_or_else(|| self.told(), |needed| needed.saturating_sub(1));
        self.reading.done.store(done, Ordering::Relaxed);
    }

    /// Whether there is a connection to NATS now.
    pub fn is_connected(&self) -> bool {
        self.nats.is_connected()
    }

    /// Ends all of them well.
    pub fn stop(&self) {
        self.say(|word| {
            if word.state == State::Go {
                word.state = State::Stop;
            }
        });
    }

    /// Ends one of them at once, which counts as gone: should it come back, it drives no more. Others go on with its threads.
    pub fn give_up(&self, member: usize, taken: &[TakeOver]) {
        self.say(|word| word.give_up(member, taken));
    }

    /// Looks from now on whether the server has a connection of each member.
    pub fn watch(&self) {
        *self.absent.lock().unwrap_or_else(PoisonError::into_inner) = vec![None; self.members.len()];
        for (member, presence) in self.members.iter().enumerate() {
            let (client, at) = (self.nats.client.clone(), asked_at(&presence.instance));
            let absent = Arc::downgrade(&self.absent);
            self.nats.beside(async move {
                while let Some(absent) = absent.upgrade() {
                    let is_absent = is_absent(&client, &at).await;
                    if let Some(of) = absent.lock().unwrap_or_else(PoisonError::into_inner).get_mut(member) {
                        *of = if is_absent { of.or_else(|| Some(Instant::now())) } else { None };
                    }
                    drop(absent);
                    tokio::time::sleep(BEAT / 2).await;
                }
            });
        }
    }

    /// Whether the server has had no connection of a member for [`AGENT_DISCONNECTED_AFTER`], as far as somebody [looks](Self::watch).
    pub fn is_absent(&self, member: usize) -> bool {
        let absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        absent.get(member).copied().flatten().is_some_and(|since| since.elapsed() > AGENT_DISCONNECTED_AFTER)
    }

    /// Ends all of them at once.
    pub fn abort(&self) {
        self.say(|word| word.state = State::Abort);
    }

    fn say(&self, change: impl FnOnce(&mut Word)) {
        let now = {
            let mut word = self.word.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut word);
            word.clone()
        };
        // what is not heard is said again; where NATS is away this does not wait for it
        self.nats.wait_at_most(ANSWER_WITHIN, say(&self.nats.client, &orders_of(&self.run), &now));
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        if !self.owns {
            return;
        }
        if self.told.is_some() {
            self.abort();
        }
        // who hands over to nobody ends, so that nothing waits for it
        self.told = None;
        // a server that is away keeps it until it expires
        self.nats.wait_at_most(ANSWER_WITHIN, remove(&self.nats.jetstream, &self.run));
    }
}

/// What is put where agents find it.
#[derive(Debug, Clone, Copy)]
pub enum File<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// What is in a file.
    At(&'a Path),
}

fn count(agents: usize) -> String {
    if agents == 1 { "1 agent is".into() } else { format!("{agents} agents are") }
}

/// Whether the server has no connection of an agent: one that is killed has none at once. One that stands still has one, and
/// where there is no connection to the server nobody knows.
async fn is_absent(client: &Client, at: &str) -> bool {
    matches!(ask::<_, Answer>(client, at.to_owned(), &Question::Clock, ANSWER_WITHIN).await, Err(why) if why == NOT_THERE)
}

async fn say(client: &Client, subject: &str, word: &Word) {
    if let Ok(payload) = serde_json::to_vec(word) {
        let _ = client.publish(subject.to_owned(), payload.into()).await;
        let _ = tokio::time::timeout(BEAT, client.flush()).await;
    }
}
