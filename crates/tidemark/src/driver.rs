//! Flags of the driver, for every verb that drives something.

use std::convert::Infallible;

use clap::Args;
use tidemark_lab::{IoChoice, Pins, RunOptions, Timestamps};

use crate::failure::Failure;
use crate::fleet::FleetArguments;
use crate::systems;

/// How it is driven.
#[derive(Debug, Args)]
pub struct DriverArguments {
    /// Cores for the load generator or the system: driver=2,3 or system=0-1 (repeatable)
    #[arg(long = "pin", value_name = "SIDE=CORES")]
    pub pins: Vec<String>,
    /// Driving threads [default: one for each pinned core, half of the cores, or all for a script of k6]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Back end for the load generator's sockets: auto, io_uring, epoll or portable; auto is the fastest that works here
    #[arg(long, value_name = "BACK_END", default_value_t)]
    pub io: IoChoice,
    /// Driving threads never sleep: each uses a whole core, and response times contain no wake-ups
    #[arg(long)]
    pub spin: bool,
    /// When a response time ends: read (the load generator has read the answer) or kernel (the kernel had its last bytes)
    #[arg(long, value_name = "WHEN", default_value_t)]
    pub timestamps: Timestamps,
    /// Seed of the random numbers; the same seed draws the same numbers
    #[arg(long, value_name = "N", value_parser = crate::quantities::seed)]
    pub seed: Option<u64>,
    /// Agents that drive in place of this process.
    #[command(flatten)]
    pub fleet: FleetArguments,
}

impl DriverArguments {
    /// The options of a run with these flags, all others as by default.
    pub fn options(&self) -> Result<RunOptions, Failure> {
        self.fleet.apply(RunOptions {
            threads: self.threads.map(usize::from),
            pins: Pins::parse(&self.pins).map_err(|error| Failure::usage(format!("--pin: {error}")))?,
            io: self.io,
            spin: self.spin,
            timestamps: self.timestamps,
            seed: self.seed,
            shipped: systems::STORES,
            ..RunOptions::default()
        })
    }
}

/// A `--pin` where only the driver can be pinned, as the server was there before: its name may be left out.
pub fn driver_pin(text: &str) -> Result<String, Infallible> {
    let words = text.split_whitespace();
    let named = words.map(|word| if word.contains('=') { word.to_owned() } else { format!("driver={word}") });
    Ok(named.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_need_not_be_named_where_nothing_else_can_be_pinned() {
        assert_eq!(driver_pin("2,3").unwrap(), "driver=2,3");
        assert_eq!(driver_pin("driver=0  1 system=2").unwrap(), "driver=0 driver=1 system=2");
    }
}
