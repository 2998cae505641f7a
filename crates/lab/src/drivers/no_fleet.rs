//! What stands for a fleet in a program without the feature `fleet`: there is none.

use std::path::Path;

use tidemark_drive::DriveOptions;
use tidemark_scenario::Plan;

use super::Driver;
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::run_options::RunOptions;
use crate::system::Running;

/// Which agents drive: nobody can ask for it.
#[derive(Debug)]
pub enum FleetOptions {}

impl FleetOptions {
    /// The URL of NATS.
    pub(crate) fn url(&self) -> Option<&str> {
        match *self {}
    }
}

/// Agents that were chosen.
pub enum Chosen {}

impl Chosen {
    /// Chooses agents for a plan.
    pub(crate) fn choose(
        options: &FleetOptions,
        _: &Plan,
        _: &RunOptions,
        _: &dyn Fn() -> StopRequest,
    ) -> Result<Chosen, LabError> {
        match *options {}
    }

    /// Threads of all agents.
    pub(crate) fn threads(&self) -> usize {
        match *self {}
    }

    /// Has them begin.
    pub(crate) fn start(
        self,
        _: &RunOptions,
        _: (&Plan, &Path),
        _: &[&Running],
        _: &DriveOptions,
        _: &dyn Fn() -> StopRequest,
    ) -> Result<Box<dyn Driver>, LabError> {
        match self {}
    }
}
