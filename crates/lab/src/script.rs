//! Scripts of a scenario: made ready before the load, looked after while it is on, told of its figures after it.

#[cfg(feature = "js")]
mod k6;
#[cfg(feature = "js")]
mod steps;
#[cfg(feature = "lua")]
mod wrk;

use std::fmt;
use std::sync::Arc;
#[cfg(any(feature = "lua", feature = "js"))]
use std::sync::mpsc::{RecvTimeoutError, channel};
#[cfg(any(feature = "lua", feature = "js"))]
use std::time::Duration;

use tidemark_drive::{Codes, DriveOptions};
use tidemark_record::manifest::ObjectiveResult;
use tidemark_record::{RunWriter, ScriptFigures};
use tidemark_scenario::plan::{ScriptPlan, ScriptTool};
use tidemark_scenario::{Plan, Shared};

use crate::error::LabError;
#[cfg(any(feature = "lua", feature = "js"))]
use crate::interrupt::EndsAtOnce;
use crate::interrupt::StopRequest;

/// How often a wait for a script looks whether the user has stopped it.
#[cfg(any(feature = "lua", feature = "js"))]
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A script that goes with the load.
pub(crate) trait Script {
    /// Looks after it, now and then.
    ///
    /// # Errors
    /// If the load cannot go on with it.
    fn look(&mut self) -> Result<(), LabError>;
    /// The plan that is driven.
    fn driven(&self, plan: &Arc<Plan>) -> Arc<Plan> {
        Arc::clone(plan)
    }
    /// The load is over, and the system still runs.
    ///
    /// # Errors
    /// If the user stops it.
    fn load_over(&mut self, _: &dyn Fn() -> StopRequest) -> Result<(), LabError> {
        Ok(())
    }
    /// Whether a thread that the script stops ends its load early. k6's stop only after their last iteration.
    fn stops_early(&self) -> bool {
        true
    }
    /// What it has measured itself, of a run that dropped so many sessions.
    fn findings(&mut self, _dropped: u64) -> Findings {
        Findings::default()
    }
    /// The run has its figures.
    fn end(self: Box<Self>, writer: &RunWriter<'_>, threads: usize) -> Option<EndedScript>;
}

/// What a script has measured itself.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What became of its own thresholds.
    pub thresholds: Vec<ObjectiveResult>,
    /// Whether these judge a run in which nothing was due.
    pub judges_without_requests: bool,
    /// Why the run failed, if it says so.
    pub failed: Option<String>,
    /// Its figures.
    pub figures: Option<ScriptFigures>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// What went wrong in the script itself: exceptions, checks that failed.
    pub objections: Vec<String>,
}

/// A script whose load is over.
#[derive(Clone)]
pub struct EndedScript(Arc<dyn Fn() -> Result<Said, String> + Send + Sync>);

/// What a script says of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The exit status that it asks for, if it does.
    pub status: Option<u8>,
    /// Texts for standard output.
    pub out: Vec<String>,
    /// Texts for standard error.
    pub err: Vec<String>,
    /// Texts for files, by their names.
    pub files: Vec<(String, String)>,
}

impl fmt::Debug for EndedScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndedScript")
    }
}

impl EndedScript {
    /// Has the script say what it has to say of the run: calls `done` of wrk, `handleSummary` of k6.
    ///
    /// # Errors
    /// The script's error, with its line.
    pub fn done(&self) -> Result<Said, String> {
        #[cfg(any(feature = "lua", feature = "js"))]
        let _ends = EndsAtOnce::begin();
        (self.0)()
    }
}

/// What a script begins with.
#[cfg_attr(not(all(feature = "lua", feature = "js")), allow(dead_code))]
pub(crate) struct Begin<'a> {
    pub plan: &'a Arc<Plan>,
    /// What the plan's variables are shared by.
    pub shared: &'a Arc<Shared>,
    /// How the load is driven.
    pub options: &'a DriveOptions,
    /// Whether what it prints goes to standard error.
    pub prints_to_stderr: bool,
    /// Whether the user has stopped the run.
    pub stop_request: &'a dyn Fn() -> StopRequest,
}

/// A script, and how the load is driven with it.
pub(crate) type Begun = (Box<dyn Script>, DriveOptions);

/// Runs the plan's script up to the load, if it has one.
///
/// # Errors
/// The script's error, with its line.
pub(crate) fn begin(begin: &Begin<'_>) -> Result<Option<Begun>, LabError> {
    let Some(script) = script_of(begin.plan) else { return Ok(None) };
    match script.tool {
        #[cfg(feature = "lua")]
        ScriptTool::Wrk => wrk::begin(script, begin).map(Some),
        #[cfg(feature = "js")]
        ScriptTool::K6 => k6::begin(script, begin).map(Some),
        #[cfg(not(all(feature = "lua", feature = "js")))]
        _ => Err(built_without(script)),
    }
}

/// Reads a plan's scripts, and sends nothing.
///
/// # Errors
/// The first mistake, with its line.
pub fn check_scripts(plan: &Plan) -> Result<(), LabError> {
    let check = |script: &ScriptPlan| match script.tool {
        #[cfg(feature = "lua")]
        ScriptTool::Wrk => wrk::check(script),
        #[cfg(feature = "js")]
        ScriptTool::K6 => k6::check(script),
        #[cfg(not(all(feature = "lua", feature = "js")))]
        _ => Err(built_without(script)),
    };
    plan.sessions.iter().filter_map(|kind| kind.script.as_ref()).try_for_each(check)?;
    #[cfg(feature = "js")]
    return steps::check(plan);
    #[cfg(not(feature = "js"))]
    plan.codes.first().map_or(Ok(()), |code| {
        let (line, column) = code.place(1, 1);
        Err(LabError::Usage(format!(
            "{}:{line}:{column}: this program was built without js steps; build it with --features js",
            code.file
        )))
    })
}

/// What runs the code of a plan's sessions, where it has any; random numbers begin with a seed.
#[cfg_attr(not(feature = "js"), expect(unused_variables, reason = "such code is refused before"))]
pub(crate) fn codes(plan: &Plan, seed: u64) -> Option<Codes> {
    #[cfg(feature = "js")]
    return steps::codes(plan, seed);
    #[cfg(not(feature = "js"))]
    None
}

#[cfg(not(all(feature = "lua", feature = "js")))]
fn built_without(script: &ScriptPlan) -> LabError {
    let feature = match script.tool {
        ScriptTool::Wrk => "lua",
        ScriptTool::K6 => "js",
    };
    LabError::Usage(format!(
        "{}: this program was built without such scripts; build it with --features {feature}",
        script.file
    ))
}

/// The first session's script. All sessions of a run have the same file.
fn script_of(plan: &Plan) -> Option<&ScriptPlan> {
    plan.sessions.iter().find_map(|kind| kind.script.as_ref())
}

/// Does something of a script's on a thread of its own, as the script may never come back.
///
/// # Errors
/// If it breaks down, or the user stops the run.
#[cfg(any(feature = "lua", feature = "js"))]
fn apart<T: Send + 'static>(
    script: &ScriptPlan,
    stop_request: &dyn Fn() -> StopRequest,
    does: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LabError> {
    let (sender, made) = channel();
    // nobody waits any more where the user has stopped it
    let begun = std::thread::Builder::new().name("script".into()).spawn(move || drop(sender.send(does())));
    begun.map_err(|error| LabError::Measure(format!("cannot begin a thread: {error}")))?;
    loop {
        match made.recv_timeout(LOOK_EVERY) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) if stop_request() == StopRequest::None => {}
            Err(RecvTimeoutError::Timeout) => return Err(LabError::Interrupted(None)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(LabError::Measure(format!("{}: the script's thread broke down", script.file)));
            }
        }
    }
}
