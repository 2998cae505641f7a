//! `tidemark agent`: the eyes of a run at another machine; with `--nats` one that drives for runs elsewhere.

use std::io;

#[cfg(feature = "fleet")]
use tidemark_lab::EXIT_INTERRUPTED;
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

/// Waits at NATS for runs, and drives for them. A signal that ends it is told by the exit status: who keeps agents up (a Job of
/// Kubernetes) starts another in its place.
#[cfg(feature = "fleet")]
fn drive(url: &str, arguments: &AgentArguments) -> Result<u8, Failure> {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use tidemark_fleet::allow::Allow;
    use tidemark_lab::drivers::fleet_agent::{AgentOptions, serve};

    use crate::{fleet, output, scenario};

    let is_held = url == "-";
    let url = if is_held { first_line()? } else { url.to_owned() };
    let allow = arguments
        .allow
        .iter()
        .map(|network| network.parse().map_err(|reason| Failure::usage(format!("--allow: {reason}"))));
    let options = AgentOptions {
        server: arguments.reach.server(&url),
        name: arguments.name.clone(),
        threads: arguments.threads.map(usize::from),
        allow: Allow(allow.collect::<Result<_, Failure>>()?),
    };
    let (stop, signalled) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    if is_held {
        // it ends with whoever holds the other end, whatever becomes of that
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            stop.store(true, Ordering::Relaxed);
        });
    }
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let watched = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&signalled)))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)));
        watched.map_err(|error| Failure::broken(format!("cannot watch signals: {error}")))?;
    }
    serve(&options, &stop, &|text| output::remark(&text), &scenario::again).map_err(fleet::failed)?;
    Ok(if signalled.load(Ordering::Relaxed) { EXIT_INTERRUPTED } else { EXIT_PASS })
}

/// The first line of standard input, byte by byte: what follows is not for it.
#[cfg(feature = "fleet")]
fn first_line() -> Result<String, Failure> {
    use std::io::Read as _;

    const BYTES_MAX: u64 = 4_096;
    let mut line = Vec::new();
    for byte in io::stdin().lock().take(BYTES_MAX).bytes() {
        match byte {
            Ok(b'\n') | Err(_) => break,
            Ok(byte) => line.push(byte),
        }
    }
    let line = String::from_utf8_lossy(&line).trim().to_owned();
    if line.is_empty() { Err(Failure::usage("--nats -: no URL on standard input")) } else { Ok(line) }
}

#[cfg(not(feature = "fleet"))]
fn drive(_: &str, _: &AgentArguments) -> Result<u8, Failure> {
    Err(crate::fleet::without_fleets())
}
