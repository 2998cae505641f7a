//! `tidemark agent`: the eyes of a run at another machine; with `--nats` one that drives for runs elsewhere.

use std::io;

use tidemark_lab::{EXIT_PASS, agent};

use crate::args::AgentArguments;
use crate::failure::Failure;

/// Looks around until standard input ends, or drives for runs elsewhere until it is stopped.
pub fn agent(arguments: &AgentArguments) -> Result<u8, Failure> {
    if let Some(url) = &arguments.nats {
        return drive(url, arguments);
    }
    let watched: Vec<_> = arguments.watch.iter().map(|watch| watch.what.clone()).collect();
    if let Some(other) = watched.iter().find(|what| !what.is_processes()) {
        let reason = "an agent looks at processes; a page of metrics is asked by the run itself";
        return Err(Failure::usage(format!("--watch {other}: {reason}")));
    }
    agent::look_around(&watched, io::stdin(), &mut io::stdout().lock())?;
    Ok(EXIT_PASS)
}

/// Waits at NATS for runs, and drives for them.
#[cfg(feature = "fleet")]
fn drive(url: &str, arguments: &AgentArguments) -> Result<u8, Failure> {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use tidemark_fleet::allow::Allow;
    use tidemark_lab::drivers::fleet_agent::{AgentOptions, serve};

    use crate::{fleet, output, scenario};

    let allow = arguments
        .allow
        .iter()
        .map(|network| network.parse().map_err(|reason| Failure::usage(format!("--allow: {reason}"))));
    let options = AgentOptions {
        server: arguments.reach.server(url),
        name: arguments.name.clone(),
        threads: arguments.threads.map(usize::from),
        allow: Allow(allow.collect::<Result<_, Failure>>()?),
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let watched = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)));
        watched.map_err(|error| Failure::broken(format!("cannot watch signals: {error}")))?;
    }
    serve(&options, &stop, &|text| output::remark(&text), &scenario::again).map_err(fleet::failed)?;
    Ok(EXIT_PASS)
}

#[cfg(not(feature = "fleet"))]
fn drive(_: &str, _: &AgentArguments) -> Result<u8, Failure> {
    Err(crate::fleet::without_fleets())
}
