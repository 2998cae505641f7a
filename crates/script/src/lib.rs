//! Scripts of other load generators, which make a session's requests.
//!
//! [`Wrk`] runs a script of wrk or wrk2 (Lua): one state for each driving thread, and one for `setup` and `done`.

mod addresses;
mod figures;
mod raw;
mod thread;
mod wrk;

pub use figures::{Errors, Figures};
pub use wrk::{Place, ScriptError, Wrk};

/// What compiles a script without running it.
///
/// # Errors
/// Its first mistake, with its line.
pub fn check(script: &tidemark_scenario::plan::ScriptPlan) -> Result<(), ScriptError> {
    wrk::compile(script)
}
