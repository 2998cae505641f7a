//! What a run does not start and looks at all the same: processes that are there already, pages of metrics, other machines.
//!
//! All is found before the load; what is not there is an error. While the load is on, one thread looks at this machine's
//! processes, one more asks each page, and each agent's lines come by a thread of its own: nothing of it makes the driver
//! wait. Whoever carries the run out takes the [news](Watches::news).

mod absences;
mod broken;
mod find;
pub(crate) mod local;
mod page;
mod pages;
mod remote;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tidemark_record::manifest::Watched as Told;
use tidemark_record::{Event, LOGS_DIR, Sample, StoreLook};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Watch, Watched};

use self::absences::Absences;
use self::broken::{Broken, is_of_our_user};
use self::find::Finder;
use self::local::Local;
use self::pages::WatchedPage;
use self::remote::{Asked, Remote};
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::started::Handle;
use crate::stop_signal::{StopSignal, Threads};
use crate::timetable::microseconds;

/// Kind of the events that tell what has become of what is watched.
const EVENT: &str = "watched";
/// Time between two looks.
const EVERY_US: u64 = 1_000_000;
/// Seconds that may be without figures: the first, and late ones.
const LATE_S: u64 = 3;
/// News that wait to be taken; more are lost.
const NEWS_MAX: usize = 4_096;

/// What a thread has to tell.
#[derive(Debug)]
pub(crate) struct News {
    at_us: u64,
    what: What,
}

/// The same without its moment.
#[derive(Debug)]
pub(crate) enum What {
    Samples(Vec<Sample>),
    Look(StoreLook),
    Event(String),
    Failed { url: String, reason: String },
}

/// What came of looking since it was last asked for.
#[derive(Debug, Default)]
pub struct Seen {
    /// What processes used.
    pub samples: Vec<Sample>,
    /// What pages said.
    pub looks: Vec<StoreLook>,
    /// What has become of them.
    pub events: Vec<Event>,
}

/// Everything that a run watches.
pub struct Watches {
    local: Option<Local>,
    pages: Vec<WatchedPage>,
    remotes: Vec<Remote>,
    handles: Vec<Handle>,
    /// Processes of this machine that are looked at, each with all below it.
    processes: Vec<u32>,
    told: Vec<Told>,
    epoch: Option<Instant>,
    sender: SyncSender<News>,
    news: Receiver<News>,
    threads: Threads,
    /// By the URLs of pages: how often they were no answer, and the first reason.
    failed: BTreeMap<String, (u64, String)>,
    heard: Heard,
    absences: Absences,
}

/// In how many seconds there were figures of what is not looked at directly: pages, and what agents watch.
#[derive(Debug, Default)]
struct Heard {
    /// By names: the last second of which there are figures, and how many of them there are.
    seconds: BTreeMap<String, (Option<u64>, u64)>,
    /// How long was looked, once that is over.
    looked_s: u64,
}

impl Heard {
    fn count(&mut self, name: &str, at_us: u64) {
        let second = Some(at_us / EVERY_US);
        if let Some((last, count)) = self.seconds.get_mut(name).filter(|(last, _)| *last != second) {
            (*last, *count) = (second, *count + 1);
        }
    }

    /// A note for each that lacks more than a late beginning and a few late answers explain.
    fn notes(&self) -> impl Iterator<Item = String> {
        let looked_s = self.looked_s;
        self.seconds.iter().filter_map(move |(name, (_, count))| {
            let lacks_s = looked_s.saturating_sub(*count);
            match count {
                0 if looked_s >= 2 => Some(format!("{name} has no figures: it told none in {looked_s} s")),
                _ if lacks_s > LATE_S + looked_s / 10 => {
                    Some(format!("{name} has no figures of {lacks_s} of {looked_s} s"))
                }
                _ => None,
            }
        })
    }
}

/// Whether somebody listens at this port of this machine whom we see, and below whom we do not run ourselves.
pub(crate) fn is_seen(port: u16) -> bool {
    let found = Finder::default().find(&Watched::Port(port));
    found.is_ok_and(|found| !Finder::default().is_below(std::process::id(), &found.processes))
}

impl Watches {
    /// Finds everything that a plan names.
    ///
    /// # Errors
    /// [`LabError::Usage`] for the first that is not there; [`LabError::Interrupted`] on a stop request.
    pub fn find(
        plan: &Plan,
        run_dir: &Path,
        stop_request: &dyn Fn() -> StopRequest,
    ) -> Result<Watches, LabError> {
        plan.check_watched().map_err(LabError::Usage)?;
        let (sender, news) = sync_channel(NEWS_MAX);
        let mut watches = Watches {
            local: None,
            pages: Vec::new(),
            remotes: Vec::new(),
            handles: Vec::new(),
            processes: Vec::new(),
            told: Vec::new(),
            epoch: None,
            sender,
            news,
            threads: Threads::default(),
            failed: BTreeMap::new(),
            heard: Heard::default(),
            absences: Absences::default(),
        };
        let mut local = Local::new();
        let names = plan.watched_names();
        for (name, watch) in names.iter().zip(&plan.watch).filter(|(_, watch)| watch.agent.is_none()) {
            let (found, is_machine) = match &watch.what {
                Watched::Metrics { url, series } => {
                    let (page, found, is_machine) = WatchedPage::find(name, url, series, stop_request)?;
                    watches.pages.push(page);
                    (found, is_machine)
                }
                _ => (watches.find_processes(&mut local, name, watch)?, false),
            };
            watches.told.push(Told { name: name.clone(), what: watch.what.to_string(), found, is_machine });
        }
        watches.local = (!local.is_empty()).then_some(local);
        watches.start_agents(plan, &names, run_dir, stop_request)?;
        Ok(watches)
    }

    /// Processes of this machine that are looked at, each with all below it.
    pub fn processes(&self) -> Vec<u32> {
        self.processes.clone()
    }

    fn find_processes(&mut self, local: &mut Local, name: &str, watch: &Watch) -> Result<String, LabError> {
        let wrong = |why: String| LabError::Usage(format!("{} cannot be watched: {why}", watch.what));
        let (found, processes) = local.follow(name, &watch.what).map_err(wrong)?;
        self.processes.extend(found.processes.iter().map(|process| process.id));
        if watch.faults {
            let others = found.processes.iter().find(|process| !is_of_our_user(local.finder(), **process));
            if let Some(process) = others {
                return Err(LabError::Usage(format!(
                    "{} is watched for faults, but its process {} is another user's; leave `faults` out, or run as that user",
                    watch.what, process.id
                )));
            }
            self.handles.push(Arc::new(Mutex::new(Broken::new(name, local.finder(), &processes))));
        }
        Ok(found.text)
    }

    /// One agent for each command, however much it is to look at.
    fn start_agents(
        &mut self,
        plan: &Plan,
        names: &[String],
        run_dir: &Path,
        stop_request: &dyn Fn() -> StopRequest,
    ) -> Result<(), LabError> {
        let mut agents = Vec::new();
        for agent in plan.watch.iter().filter_map(|watch| watch.agent.as_ref()) {
            if !agents.contains(&agent) {
                agents.push(agent);
            }
        }
        for agent in agents {
            let of_it = || {
                names.iter().zip(&plan.watch).filter(move |(_, watch)| watch.agent.as_ref() == Some(agent))
            };
            let machine = of_it().find(|(_, watch)| watch.what == Watched::Machine);
            let machine = machine.map_or_else(|| agent.machine().to_owned(), |(name, _)| name.clone());
            let processes = of_it().filter(|(_, watch)| watch.what.is_processes());
            let processes = processes.map(|(name, watch)| (name.clone(), &watch.what)).collect();
            let asked = Asked { machine, processes };
            let (remote, told) = Remote::start(agent, &asked, &run_dir.join(LOGS_DIR), stop_request)?;
            self.remotes.push(remote);
            self.told.extend(told);
        }
        Ok(())
    }

    /// Begins to look. Times count from `epoch`.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn begin(&mut self, epoch: Instant) -> io::Result<()> {
        self.epoch = Some(epoch);
        let pages = self.pages.iter().map(WatchedPage::name);
        let names = pages.chain(self.remotes.iter().flat_map(Remote::names));
        self.heard.seconds = names.map(|name| (name.to_owned(), (None, 0))).collect();
        let thread = || std::thread::Builder::new().name("watch".into());
        if let Some(mut local) = self.local.take() {
            let (stop, sender) = (Arc::clone(&self.threads.stop), self.sender.clone());
            local.look(microseconds(epoch.elapsed()));
            self.threads.all.push(thread().spawn(move || look(&mut local, epoch, &stop, &sender))?);
        }
        for page in self.pages.drain(..) {
            let (stop, sender) = (Arc::clone(&self.threads.stop), self.sender.clone());
            self.threads.all.push(thread().spawn(move || page.watch(epoch, &stop, &sender))?);
        }
        Ok(())
    }

    /// What has been seen since the last call.
    pub fn news(&mut self) -> Seen {
        let mut seen = Seen::default();
        let event = |at_us: u64, text| Event { at_us: at_us as i64, kind: EVENT.into(), text };
        while let Ok(News { at_us, what }) = self.news.try_recv() {
            match what {
                What::Samples(samples) => seen.samples.extend(samples),
                What::Look(look) => seen.looks.push(look),
                What::Event(text) => seen.events.push(event(at_us, text)),
                What::Failed { url, reason } => self.failed.entry(url).or_insert((0, reason)).0 += 1,
            }
        }
        let Some(epoch) = self.epoch else { return seen };
        let since = |at: Instant| microseconds(at.saturating_duration_since(epoch));
        for remote in &mut self.remotes {
            let (samples, events) = remote.news(epoch);
            for (at, samples) in samples {
                seen.samples.extend(samples.into_iter().map(|sample| Sample { at_us: since(at), ..sample }));
            }
            seen.events.extend(events.into_iter().map(|(at, text)| event(since(at), text)));
        }
        for Event { at_us, text, .. } in &seen.events {
            self.absences.take(&self.told, u64::try_from(*at_us).unwrap_or(0), text);
        }
        seen.samples.iter().for_each(|sample| self.heard.count(&sample.process, sample.at_us));
        seen.looks.iter().for_each(|look| self.heard.count(&look.store, look.at_us));
        seen
    }

    /// Ends to look; an answer that is waited for is given up.
    pub fn end(&mut self) -> Seen {
        self.threads.end();
        let seen = self.news();
        // what ends now is no news
        self.heard.looked_s = self.epoch.take().map_or(0, |epoch| epoch.elapsed().as_secs());
        seen
    }

    /// Those that faults may be aimed at.
    pub fn handles(&self) -> Vec<Handle> {
        self.handles.clone()
    }

    /// What was found, for the manifest.
    pub fn manifest(&self) -> Vec<Told> {
        self.told.clone()
    }

    /// What a reader of the figures must know.
    pub fn notes(&self) -> Vec<String> {
        let failed = self.failed.iter().map(|(url, (times, first))| {
            let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            format!("{url} gave no figures, or not all, {times}, first: {first}")
        });
        let gone = self.absences.notes(&self.told).into_iter();
        gone.chain(failed)
            .chain(self.remotes.iter().flat_map(Remote::notes))
            .chain(self.heard.notes())
            .collect()
    }
}

/// Looks at this machine's processes at every whole second until all is over.
fn look(local: &mut Local, epoch: Instant, stop: &StopSignal, sender: &SyncSender<News>) {
    loop {
        let next_us = (microseconds(epoch.elapsed()) / EVERY_US + 1) * EVERY_US;
        if !stop.wait_until(epoch + Duration::from_micros(next_us)) {
            return;
        }
        let at_us = microseconds(epoch.elapsed());
        let (samples, events) = local.look(at_us);
        // nobody takes them only where the run is over
        let tell = |what| drop(sender.try_send(News { at_us, what }));
        tell(What::Samples(samples));
        events.into_iter().for_each(|text| tell(What::Event(text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_nothing_or_stops_to_tell_is_noted() {
        let mut heard = Heard { looked_s: 20, ..Heard::default() };
        for name in ["silent", "first", "all"] {
            heard.seconds.insert(name.into(), (None, 0));
        }
        // two figures of a second are one
        for at_us in [100, 200] {
            heard.count("first", at_us);
        }
        for second in 1..20 {
            heard.count("all", second * EVERY_US);
            heard.count("nobody asked", second * EVERY_US);
        }
        let notes: Vec<String> = heard.notes().collect();
        assert_eq!(
            notes,
            ["first has no figures of 19 of 20 s", "silent has no figures: it told none in 20 s"]
        );
    }
}
