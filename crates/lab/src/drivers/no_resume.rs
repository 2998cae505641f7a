//! What stands for a run that is gone on with in a program without the feature `fleet`: there is none.

use std::path::Path;
use std::sync::Arc;

use tidemark_drive::DriveOptions;
use tidemark_record::Before;
use tidemark_scenario::Plan;

use super::Driver;
use crate::error::LabError;

/// What is left of a run.
pub enum Resumed {}

impl Resumed {
    /// Goes on.
    pub(crate) fn go_on(
        self,
        _: Before,
        _: &Arc<Plan>,
        _: &Path,
        _: &DriveOptions,
    ) -> Result<Box<dyn Driver>, LabError> {
        match self {}
    }
}
