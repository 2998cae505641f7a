//! The scenario language: one YAML file is an experiment.
//!
//! [`plan::Plan`] is what comes out: a scenario after checking and compiling, and all that the driver executes.

pub mod context;
pub mod diagnostic;
pub mod expr;
pub mod plan;
pub mod slot;
pub mod template;

pub use context::{Context, Shared};
pub use expr::Expr;
pub use plan::Plan;
pub use slot::{Slot, Value};
pub use template::Template;
