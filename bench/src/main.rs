//! Tidemark beside other load generators: the same server, the same cores, in turn.
//!
//! `tidemark-bench driver` measures what each costs (docs/benchmarks.md holds its output), `tidemark-bench truth` whether
//! what each reports is true (docs/truth.md). Both run the tools as a user would and believe little of what they say
//! about themselves: requests are counted by the server, CPU time and memory by the kernel.
//!
//! `serve` is the server of the first, and `bare` the least loops that could drive it; `floor` is the least server that
//! could stand in for one (bench/trade), `hyper` a shipped system behind hyper alone (bench/service).

mod bare;
mod calls;
mod driver;
mod floor;
mod hyper;
mod job;
mod machine;
mod process;
mod served;
mod server;
mod shape;
mod table;
mod text;
mod tool;
mod tools;
mod truth;

use std::net::SocketAddr;

use clap::{Parser, Subcommand};

/// Tidemark beside other load generators.
#[derive(Debug, Parser)]
#[command(name = "tidemark-bench")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// What each tool costs: a Markdown table for each shape of load
    Driver(driver::Options),
    /// What each tool reports of a server whose behaviour is known
    Truth(truth::Options),
    /// Calls the trade service over WebSockets with our typed client
    Calls(calls::Options),
    /// The server: answers until its standard input ends, then prints what it saw
    Serve(server::Options),
    /// A shipped system behind hyper alone
    Hyper(hyper::Options),
    /// The least server: counts bytes, writes a fixed answer
    Floor(floor::Options),
    /// The least client: sends a fixed request, reads, counts
    Bare {
        /// How it waits
        #[arg(value_enum)]
        io: bare::Io,
        /// Where the server listens
        address: SocketAddr,
        /// Connections
        #[arg(short, default_value_t = 100)]
        connections: usize,
        /// Seconds
        #[arg(short = 'd', default_value_t = 5.0)]
        seconds: f64,
        /// Requests a second, evenly spaced, whatever is answered (with epoll): prints their median response time
        #[arg(short = 'r')]
        rate: Option<f64>,
        /// With a rate: never sleeps
        #[arg(long, requires = "rate")]
        spin: bool,
    },
}

fn main() -> std::process::ExitCode {
    let done = match Arguments::parse().verb {
        Verb::Driver(options) => driver::run(&options),
        Verb::Truth(options) => truth::run(&options),
        Verb::Calls(options) => calls::run(&options),
        Verb::Serve(options) => server::run(&options),
        Verb::Hyper(options) => hyper::run(&options),
        Verb::Floor(options) => floor::run(&options),
        Verb::Bare { address, connections, seconds, rate: Some(rate), spin, .. } => {
            bare::open(address, connections, rate, seconds, spin)
        }
        Verb::Bare { io, address, connections, seconds, .. } => bare::run(io, address, connections, seconds),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
