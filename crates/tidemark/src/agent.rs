//! `tidemark agent`: the eyes of a run at another machine.

use std::io;

use tidemark_lab::{EXIT_PASS, agent};

use crate::args::AgentArguments;
use crate::failure::Failure;

/// Looks around until standard input ends.
pub fn agent(arguments: &AgentArguments) -> Result<u8, Failure> {
    let watched: Vec<_> = arguments.watch.iter().map(|watch| watch.what.clone()).collect();
    if let Some(other) = watched.iter().find(|what| !what.is_processes()) {
        let reason = "an agent looks at processes; a page of metrics is asked by the run itself";
        return Err(Failure::usage(format!("--watch {other}: {reason}")));
    }
    agent::look_around(&watched, io::stdin(), &mut io::stdout().lock())?;
    Ok(EXIT_PASS)
}
