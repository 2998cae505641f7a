//! The full-screen view of a run while it runs (`--tui`).
//!
//! [`state`] is what the view knows, gathered from the lab's progress; [`draw`] turns it into a screen and knows
//! nothing of terminals, so that tests draw into memory; [`screen`] owns the terminal and the keys, and puts the
//! terminal right on every way out.

mod draw;
mod screen;
mod state;
#[cfg(test)]
mod tests;

pub use screen::{Screen, leave, possible};
