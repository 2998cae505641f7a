//! A driver that is a process of its own, from within: it is told what to drive, and hands over what its threads do.

use std::io::{self, Read, Write};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tidemark_drive::{DriveOptions, Stopper, Target, Tracing, start};
use tidemark_record::{HANDOVER_VERSION, Handover, Hello, frame};
use tidemark_scenario::plan::{HttpVersion, System, SystemOrigin};
use tidemark_scenario::{Plan, Shared};

use super::{Order, Place, Setup};
use crate::experiment::settle;
use crate::interrupt::StopRequest;
use crate::run_options::RunOptions;
use crate::system::{Running, greet_calls_of};

/// Requests of the trace that wait to be handed over.
const WAITING: usize = 256;

/// Drives for whoever writes to `input`: makes the plan of what it is told, and hands over to `output` until the load is
/// over. It ends at once where its input does.
///
/// # Errors
/// Where nobody takes what it hands over. All else is handed over as an error.
pub fn serve(
    plan: impl FnOnce(&Setup) -> Result<(Plan, RunOptions), String>,
    mut input: impl Read + Send + 'static,
    output: impl Write + Send,
) -> io::Result<()> {
    let output = Mutex::new(output);
    let hand_over =
        |handover: &Handover| handover.write(&mut *output.lock().unwrap_or_else(PoisonError::into_inner));
    match told(&mut input).and_then(|setup| begin(plan, &setup)) {
        Ok(begun) => {
            // it waits for its input as long as this process lives
            let obey = |stopper: Stopper| {
                let thread = std::thread::Builder::new().name("orders".into());
                thread.spawn(move || obey(input, &stopper)).map(|_| ())
            };
            begun.drive(obey, &hand_over)
        }
        Err(reason) => hand_over(&Handover::Error(reason)),
    }
}

/// What it is told on its input.
fn told(input: &mut impl Read) -> Result<Setup, String> {
    let setup: Option<Setup> =
        frame::read(input).map_err(|error| format!("what it is told is no setup: {error}"))?;
    let setup = setup.ok_or("it is told nothing")?;
    if setup.version != HANDOVER_VERSION {
        return Err(format!("it is to hand over version {}, and knows {HANDOVER_VERSION}", setup.version));
    }
    Ok(setup)
}

/// What is to be driven.
#[cfg_attr(feature = "fleet", derive(Clone))]
pub(super) struct Begun {
    pub(super) plan: Arc<Plan>,
    pub(super) shared: Arc<Shared>,
    pub(super) options: DriveOptions,
    epoch_us: u64,
    traced: Option<(u64, u64, u64)>,
}

pub(super) fn begin(
    plan: impl FnOnce(&Setup) -> Result<(Plan, RunOptions), String>,
    setup: &Setup,
) -> Result<Begun, String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let (mut plan, options) = plan(setup)?;
    settle(&mut plan, &options).map_err(|error| told(&error))?;
    let wall_epoch = UNIX_EPOCH + Duration::from_micros(setup.epoch_us);
    let since = SystemTime::now().duration_since(wall_epoch).unwrap_or_default();
    let now = Instant::now();
    let epoch = now.checked_sub(since).ok_or("its zero is before this machine's")?;
    let targets = setup.targets.iter().enumerate().map(|(target, place)| place.find(&plan, target));
    let targets = targets.collect::<Result<Vec<Target>, String>>()?;
    let options = DriveOptions {
        threads: setup.threads,
        share: None,
        cores: options.pins.driver,
        seed: setup.seed,
        ledger_seed: setup.ledger_seed,
        io: options.io,
        spin: options.spin,
        timestamps: options.timestamps,
        targets,
        trace: None,
        programs: None,
        codes: crate::script::codes(&plan, setup.seed),
        epoch,
        wall_epoch,
        fence_ns: None,
    };
    let shared = Arc::new(Shared::of(&plan));
    Ok(Begun { plan: Arc::new(plan), shared, options, epoch_us: setup.epoch_us, traced: setup.traced })
}

impl Place {
    /// Finds a target of the plan where it was found before.
    fn find(&self, plan: &Plan, target: usize) -> Result<Target, String> {
        let planned = match target.checked_sub(1) {
            None => Some(&plan.system),
            Some(other) => plan.targets.get(other).map(|target| &target.at),
        };
        let planned = planned.ok_or("there are more targets than the plan has")?;
        let system = System {
            origin: SystemOrigin::Url(self.url.clone()),
            connect_to: self.address.clone(),
            http: if self.is_http2 { HttpVersion::Two } else { HttpVersion::One },
            ..planned.clone()
        };
        let mut found = Running::find(&system, &|| StopRequest::None).map_err(|error| error.to_string())?;
        greet_calls_of(&mut found, plan, target, &system).map_err(|error| error.to_string())?;
        Ok(found.target)
    }
}

impl Begun {
    /// The run's zero, microseconds since 1970 UTC.
    #[cfg(feature = "fleet")]
    pub(super) fn epoch_us(&self) -> u64 {
        self.epoch_us
    }

    /// Drives, and hands over what its threads do. `obey` is given what stops it.
    pub(super) fn drive(
        self,
        obey: impl FnOnce(Stopper) -> io::Result<()>,
        hand_over: &(dyn Fn(&Handover) -> io::Result<()> + Sync),
    ) -> io::Result<()> {
        let Begun { plan, shared, mut options, epoch_us, traced } = self;
        let (sink, requests) = sync_channel(WAITING);
        options.trace =
            traced.map(|(every, sampled_max, failed_max)| Tracing { every, sampled_max, failed_max, sink });
        let threads = u16::try_from(options.threads).unwrap_or(u16::MAX);
        let secrets = plan.secrets.clone();
        let drive = match start(plan, shared, options) {
            Ok(drive) => drive,
            Err(error) => return hand_over(&Handover::Error(error.to_string())),
        };
        let phases = drive.phases().to_vec();
        hand_over(&Handover::Hello(Hello { version: HANDOVER_VERSION, epoch_us, threads, phases }))?;
        obey(drive.stopper())?;
        std::thread::scope(|scope| {
            let trace = scope.spawn(|| {
                requests.into_iter().try_for_each(|one| hand_over(&Handover::Traced(Box::new(one))))
            });
            for mut interval in drive.intervals() {
                for example in &mut interval.examples {
                    example.detail = secrets.masked(&example.detail);
                }
                interval.store_shares();
                let part = std::mem::take(&mut interval.ledger);
                let handover = Handover::Interval(Box::new(interval), part);
                hand_over(&handover)?;
                if let Handover::Interval(interval, part) = handover {
                    drive.recycle(tidemark_record::ThreadInterval { ledger: part, ..*interval });
                }
            }
            let end = drive.join();
            // the threads are gone, and with them who traces
            trace.join().unwrap_or(Ok(()))?;
            hand_over(&match end {
                Ok(end) => Handover::End(Box::new(end)),
                Err(error) => Handover::Error(error.to_string()),
            })
        })
    }
}

/// Does what it is told, until nobody tells it anything.
fn obey(mut input: impl Read, stopper: &Stopper) {
    while let Ok(Some(order)) = frame::read(&mut input) {
        match order {
            Order::Stop => stopper.stop(),
            Order::Abort => stopper.abort(),
        }
    }
    stopper.abort();
}
