//! Runs become text and pages.
//!
//! Everything here is made from a [`Run`](tidemark_record::Run) that was read back from its directory, so a report
//! made again, later or elsewhere, says the same.
//!
//! - [`blocks`] are what a report is made of: of a run, a URL that was hit, a search for a limit, a comparison, a history.
//!   Each is made once; [`text`], [`markdown`] and [`still`] lay it out for the terminal, for CI and on a page without a script.
//! - [`json::summary`] is what a machine reads: one object with all that the page has, units in its names;
//!   [`json::schema`] says what is in it.
//! - [`html::page`] is one file that opens anywhere, offline.
//! - [`comparison::Claims`] say what differs between two sides, and [`history::History`] how figures went over many runs.
//! - [`cost::bill`] says what a run costs, of what it used and a price file.
//! - [`plan::plan`] says how many instances another load takes, of a run and a simulation.
//! - [`jmeter`] reads what JMeter and nmon wrote.
//! - [`folder`] is of many runs: a list, one that goes on, two compared.
//! - [`junit::xml`] and [`github::annotations`] are for CI; [`csv::over_time`] is for whoever calculates on.
//!
//! ```no_run
//! use std::path::Path;
//! use tidemark_record::{Run, resolve};
//! use tidemark_report::{html, text};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let run = Run::open(&resolve("last", Path::new("runs"))?)?;
//! html::write(&run, &run.dir.join("report.html"))?;
//! print!("{}", text::summary(&run, text::Style { width: 100, ..text::Style::default() }));
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - A difference is claimed by one rule (`statistics`): rounds or runs, or, with a note, the seconds of a single run,
//!   are what is counted, never requests. Its `trials.rs` holds it against comparisons that are made up, A against A
//!   and planted ones.
//! - Only a [`cube`] has percentiles of its own, of how long each operation took, failed ones too, and from the single
//!   operations, never from percentiles: it decides nothing.

mod bins;
pub mod blocks;
pub mod comparison;
pub mod cost;
pub mod csv;
pub mod cube;
pub mod folder;
pub mod github;
mod heatmap;
pub mod history;
pub mod html;
pub mod jmeter;
pub mod json;
pub mod junit;
pub mod limit;
pub mod markdown;
mod operations;
mod own;
pub mod page;
pub mod plan;
mod processes;
pub mod published;
mod quote;
pub mod reproduction;
mod statistics;
pub mod still;
mod stores;
mod table;
#[cfg(test)]
mod test_run;
pub mod text;
mod tiers;
pub mod units;
mod watched;
