//! An agent of a fleet: it makes the plan of what it is told, and drives its part of the load.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use tidemark_drive::{Address, DriveEnd, Share, Stopper, Taken};
use tidemark_fleet::allow::Allow;
use tidemark_fleet::{FleetError, Job, Order, Presence, PrivateFolder, Server};
use tidemark_record::{Event, HANDOVER_VERSION, Handover};
use tidemark_scenario::context::Threads;
use tidemark_scenario::outside::{self, Origin};
use tidemark_scenario::{Plan, Shared};

use super::fleet_task::{TASK, TASK_BYTES_MAX, Task, given_of, settle};
use super::serve::{Begun, begin};
use super::{Setup, add};
use crate::run_options::RunOptions;
use crate::{machine, pin};

/// The kind of event that says that an agent is ready to begin.
pub(super) const READY: &str = "ready";
/// Longest time from there to the begin.
const BEGIN_WITHIN: Duration = Duration::from_secs(120);
/// How often orders are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What an agent is at its start.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// Where NATS is.
    pub server: Server,
    /// Its name; the machine's if none.
    pub name: Option<String>,
    /// Threads that it drives with; one for each core if none.
    pub threads: Option<usize>,
    /// What it may drive.
    pub allow: Allow,
}

/// Reads the plan of a run out of what an agent is told.
pub type PlanOf<'a> = &'a (dyn Fn(&Origin) -> Result<Plan, String> + Sync);

/// Drives for coordinators until `stop` is set.
///
/// # Errors
/// If NATS cannot be reached, or the name is taken.
pub fn serve(
    options: &AgentOptions,
    stop: &AtomicBool,
    tell: &(dyn Fn(String) + Sync),
    plan: PlanOf<'_>,
) -> Result<(), FleetError> {
    let cores = pin::available_cores().len();
    let machine = machine::look();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let presence = Presence {
        name: options.name.clone().unwrap_or_else(|| word(&host)),
        version: env!("CARGO_PKG_VERSION").into(),
        handover: HANDOVER_VERSION,
        host,
        cores,
        threads: options.threads.unwrap_or(cores).max(1),
        memory_bytes: machine.memory_bytes,
        allows: options.allow.to_string(),
        ..Presence::default()
    };
    tidemark_fleet::serve(&options.server, presence, stop, tell, &|job| {
        if let Err(error) = take_part(job, &options.allow, plan) {
            tell(format!("run {}: {error}", job.run));
        }
    })
}

/// A host's name as an agent's: domains are separated otherwise.
pub(super) fn word(host: &str) -> String {
    let kept = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    host.chars().map(kept).collect()
}

/// Drives its part of a run.
fn take_part(job: &Job, allow: &Allow, plan: PlanOf<'_>) -> io::Result<()> {
    let hand_over = |handover: &Handover| {
        let mut bytes = Vec::new();
        handover.write(&mut bytes)?;
        job.hand_over(&bytes).map_err(io::Error::other)
    };
    let (mut begun, share, _folder) = match prepared(job, allow, plan) {
        Ok(prepared) => prepared,
        Err(reason) => return hand_over(&Handover::Error(reason)),
    };
    hand_over(&Handover::Event(Event { at_us: 0, kind: READY.into(), text: String::new() }))?;
    let asked = Instant::now();
    let (epoch, begin) = loop {
        match job.order(LOOK_EVERY) {
            Some(Order::Begin { epoch, begin }) => break (epoch, begin),
            Some(_) => return Ok(()),
            None if asked.elapsed() > BEGIN_WITHIN => {
                return Err(io::Error::other("it is not told to begin"));
            }
            None => {}
        }
    };
    let share = Share { begin, ..share };
    (begun.options.epoch, begun.options.share) = (epoch, Some(share));
    begun.options.fence_ns = Some(job.fence_ns());
    let parts = Parts::default();
    let hand_over: HandOver<'_> = &hand_over;
    std::thread::scope(|scope| {
        let own = begun.clone();
        let parts = &parts;
        let own = scope.spawn(move || parts.drive(own, None, hand_over));
        while parts.go_on() {
            match job.order(LOOK_EVERY) {
                Some(Order::Stop) => parts.end(Stopper::stop),
                Some(Order::Abort | Order::Alone) => parts.end(Stopper::abort),
                Some(Order::TakeOver(taken)) if parts.begin() => {
                    let mut begun = begun.clone();
                    let from = Duration::from_micros(taken.from_us);
                    let place = Some(Taken { from, first: taken.number });
                    begun.options.threads = taken.threads;
                    begun.options.share = Some(Share { first: taken.first, taken: place, ..share });
                    scope.spawn(move || parts.drive(begun, Some(taken.number), hand_over));
                }
                Some(Order::Begin { .. } | Order::TakeOver(_)) | None => {}
            }
        }
        own.join().unwrap_or_else(|_| Err(io::Error::other("a thread broke down")))
    })?;
    let end = parts.all.into_inner().unwrap_or_else(PoisonError::into_inner).end;
    // where there is none, it was told why
    end.map_or(Ok(()), |end| hand_over(&Handover::End(Box::new(end))))
}

type HandOver<'a> = &'a (dyn Fn(&Handover) -> io::Result<()> + Sync);

/// What an agent drives at once: its own threads, and those that it takes over.
struct Parts {
    all: Mutex<Driving>,
}

/// What is common to all of it.
struct Driving {
    /// How many parts go on.
    count: usize,
    /// What ends each of them, and how they are to end if they are.
    stoppers: Vec<Stopper>,
    told: Option<fn(&Stopper)>,
    /// How those that are over ended, together; none where its own threads could not go on.
    end: Option<DriveEnd>,
}

impl Default for Parts {
    /// Its own threads alone, which are about to begin.
    fn default() -> Parts {
        Parts { all: Mutex::new(Driving { count: 1, stoppers: Vec::new(), told: None, end: None }) }
    }
}

impl Parts {
    fn all(&self) -> MutexGuard<'_, Driving> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn go_on(&self) -> bool {
        self.all().count > 0
    }

    /// Counts one more part; false where it is to end anyway, or has ended.
    fn begin(&self) -> bool {
        let mut all = self.all();
        let begins = all.count > 0 && all.told.is_none();
        all.count += usize::from(begins);
        begins
    }

    /// Ends all of them so.
    fn end(&self, how: fn(&Stopper)) {
        let mut all = self.all();
        all.told = Some(how);
        all.stoppers.iter().for_each(how);
    }

    /// Drives a part to its end. `taken`: the number of its first thread, where it is another's.
    fn drive(&self, begun: Begun, taken: Option<usize>, hand_over: HandOver<'_>) -> io::Result<()> {
        let obey = |stopper: Stopper| {
            let mut all = self.all();
            all.told.iter().for_each(|how| how(&stopper));
            all.stoppers.push(stopper);
            Ok(())
        };
        let driven = begun.drive(obey, &|handover: &Handover| match (handover, taken) {
            (Handover::Hello(_), Some(_)) => Ok(()),
            (Handover::Error(reason), Some(number)) => {
                let number = u16::try_from(number).unwrap_or(u16::MAX);
                hand_over(&Handover::NotTaken(number, reason.clone()))
            }
            (Handover::End(end), _) => {
                let mut all = self.all();
                match &mut all.end {
                    Some(known) => add(known, DriveEnd::clone(end)),
                    none => *none = Some(DriveEnd::clone(end)),
                }
                Ok(())
            }
            (handover, _) => hand_over(handover),
        });
        self.all().count -= 1;
        driven
    }
}

/// What is to be driven, with all that came with it.
fn prepared(job: &Job, allow: &Allow, plan: PlanOf<'_>) -> Result<(Begun, Share, PrivateFolder), String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let task = job.fetch(TASK, TASK_BYTES_MAX).map_err(|error| told(&error))?;
    let task: Task = serde_json::from_slice(&task).map_err(|error| format!("its task: {error}"))?;
    let (first, threads) = *task.dealt.get(job.member).ok_or("no threads are assigned to it")?;
    task.setup.targets.iter().try_for_each(|place| permitted(allow, place.address.as_deref()))?;
    let folder = PrivateFolder::new(&job.run).map_err(|error| format!("a folder for its files: {error}"))?;
    let given = given_of(&task, folder.path(), &|name, path, most| job.fetch_into(name, path, most))?;
    let options = RunOptions {
        io: task.io.parse()?,
        spin: task.spin,
        timestamps: task.timestamps.parse()?,
        ..RunOptions::default()
    };
    let planned = |_: &Setup| {
        let mut plan = outside::given(&given, || plan(&task.from))?;
        settle(&mut plan, &given, (task.load, task.limits), task.tls);
        Ok((plan, options))
    };
    let mut begun = begin(planned, &Setup { threads, ..task.setup })?;
    machine::raise_open_files_limit(begun.plan.limits.connections);
    for target in &begun.options.targets {
        let all = std::iter::once(&target.address).chain(&target.others);
        for address in all {
            if let Address::Tcp(address) = address {
                permitted(allow, Some(&address.to_string()))?;
            }
        }
    }
    let part = Threads { first: first as u64, here: threads as u64, all: task.threads as u64 };
    begun.shared = Arc::new(Shared::shared_out(&begun.plan, part));
    begun.options.wall_epoch = UNIX_EPOCH + Duration::from_micros(begun.epoch_us());
    Ok((begun, Share { first, all: task.threads, begin: Duration::ZERO, taken: None }, folder))
}

/// Whether a place may be driven: where it is one of another machine, that is on the list.
fn permitted(allow: &Allow, address: Option<&str>) -> Result<(), String> {
    let address = address.ok_or("it is to drive a place whose address is not known beforehand")?;
    match address.parse::<SocketAddr>() {
        Ok(address) if allow.permits(address.ip()) => Ok(()),
        Ok(address) => Err(format!(
            "it may not drive {address}, only {allow}; whoever starts it can add --allow {}",
            address.ip()
        )),
        // a socket of its own machine
        Err(_) if address.starts_with("unix:") => Ok(()),
        Err(_) => Err(format!("{address} is not an address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_on_the_list_is_not_driven() {
        let allow = Allow(vec!["10.0.0.0/8".parse().unwrap()]);
        let may = |address| permitted(&allow, address);
        assert_eq!(may(Some("127.0.0.1:80")), Ok(()));
        assert_eq!(may(Some("[::1]:80")), Ok(()));
        assert_eq!(may(Some("10.9.9.9:80")), Ok(()));
        assert_eq!(may(Some("unix:/run/x.sock")), Ok(()));
        let refused = may(Some("192.0.2.7:80")).unwrap_err();
        assert!(refused.contains("may not drive 192.0.2.7:80, only loopback, 10.0.0.0/8"), "{refused}");
        assert!(may(None).is_err() && may(Some("example.com:80")).is_err());
    }
}
