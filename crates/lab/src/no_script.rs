//! What stands for scripts in a program that was built without them.

use std::sync::Arc;

use tidemark_drive::DriveOptions;
use tidemark_record::RunWriter;
use tidemark_scenario::Plan;

use crate::error::LabError;
use crate::interrupt::StopRequest;

/// There is none.
pub(crate) enum Script {}

/// There is none.
#[derive(Debug, Clone)]
pub enum EndedScript {}

impl EndedScript {
    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn done(&self) -> Result<Option<u8>, String> {
        match *self {}
    }
}

/// Refuses a plan with a script.
///
/// # Errors
/// If it has one.
pub fn check_scripts(plan: &Plan) -> Result<(), LabError> {
    Script::begin_none(plan)
}

impl Script {
    pub(crate) fn begin(
        plan: &Plan,
        _: &mut DriveOptions,
        _: bool,
        _: &dyn Fn() -> StopRequest,
    ) -> Result<Option<Script>, LabError> {
        Script::begin_none(plan).map(|()| None)
    }

    fn begin_none(plan: &Plan) -> Result<(), LabError> {
        match plan.sessions.iter().find_map(|kind| kind.script.as_ref()) {
            None => Ok(()),
            Some(script) => Err(LabError::Usage(format!(
                "{}: this program was built without scripts; build it with --features lua",
                script.file
            ))),
        }
    }

    pub(crate) fn look(&mut self) -> Result<(), LabError> {
        match *self {}
    }

    pub(crate) fn driven(&self, _: &Arc<Plan>) -> Arc<Plan> {
        match *self {}
    }

    pub(crate) fn end(self, _: &RunWriter<'_>, _: usize) -> Option<EndedScript> {
        match self {}
    }
}
