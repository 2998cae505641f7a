//! The scenario that drives a script as its options ask.

use std::path::Path;
use std::time::Duration;

use tidemark_scenario::plan::NOBODY;
use tidemark_scenario::source::{Load, Map, Phase, Scalar, Scenario, Session, System, Value, verbatim};
use tidemark_scenario::units::Time;

use crate::options::{Executor, ScenarioOf, Stage};
use crate::rehearsal::Sent;
use crate::script::{GrpcTarget, Script};

/// Most users that a stage adds one by one, as k6 does; among more, one more or less changes little.
const RISE_MOST: f64 = 100.0;
/// Where nothing is sent is never connected to.
const NOBODYS_ADDRESS: &str = "127.0.0.1:9";

/// The scenario of a script that lies beside it under this name.
///
/// # Errors
/// If its rehearsal asked for what is no URL, or ended with an exception before it sent anything.
pub(crate) fn scenario(
    (file, name): (&str, &str),
    args: &[String],
    script: &Script,
    sent: &Sent,
) -> Result<Scenario, String> {
    let told = script.told();
    let scenarios = &told.scenarios[..];
    if sent.origins.is_empty() {
        if let Some(url) = &sent.nowhere {
            return Err(format!(
                "{file}: it asks for {url:?}, which is no URL with http://; is -e NAME=VALUE missing?"
            ));
        }
        if let Some(words) = &sent.threw {
            return Err(format!("{file}: before it sent a request it ended with {words}"));
        }
    }
    let nobody = format!("http://{NOBODY}");
    let no_others: &[String] = &[];
    let (system, others) = sent.origins.split_first().unwrap_or((&nobody, no_others));
    let common = &told.common;
    // the script says where files are from where it is itself
    let beside_script =
        |path: &str| Path::new(file).with_file_name("").join(path).to_string_lossy().into_owned();
    let opened = |what: &str, pem: &str| {
        let found = script.file_with(pem).ok_or_else(|| {
            format!("{file}: {what} is what open() returns of a file in PEM; write it to a file")
        })?;
        Ok::<_, String>(verbatim(&beside_script(&found.to_string_lossy())))
    };
    let none = GrpcTarget::default();
    let of_grpc = |origin: &str| sent.grpc.get(origin).unwrap_or(&none);
    for (origin, GrpcTarget { types, addresses, tls }) in &sent.grpc {
        if types.descriptors.len() > 1 || !(types.descriptors.is_empty() || types.protos.is_empty()) {
            return Err(format!(
                "{file}: for {origin} load files of .proto, or one descriptor set (loadProtoset)"
            ));
        }
        if addresses.len() > 1 || tls.len() > 1 {
            return Err(format!(
                "{file}: all clients that connect to {origin} need the same address and tls"
            ));
        }
        if tls.iter().any(|tls| tls.has_password || tls.authorities.len() > 1) {
            let how =
                "decrypt the key (openssl pkey -in key.pem -out plain.pem), and join cacerts in one file";
            return Err(format!(
                "{file}: {origin}: tls: password, or several cacerts, are not supported; {how}"
            ));
        }
    }
    // how an origin is reached; any of several may be another's
    let tls = |origin: &str| {
        let mut tls = Map::default();
        if !origin.starts_with("https:") && !origin.starts_with("grpcs:") {
            return Ok(tls);
        }
        if common.insecure {
            tls.insert("insecure", true);
        }
        // what a client says itself stands in place of the options
        let of_client = of_grpc(origin).tls.first();
        if let Some(authority) = of_client.and_then(|tls| tls.authorities.first()) {
            tls.insert("ca", opened("tls: cacerts", authority)?);
        }
        let own = match of_client {
            Some(tls) => Some(("tls: cert and key", &tls.certificate, &tls.key)),
            None => {
                let own = common.certificate(origin);
                own.map(|own| ("options: tlsAuth: cert and key", &own.certificate, &own.key))
            }
        };
        if let Some((what, certificate, key)) = own.filter(|(_, one, key)| !one.is_empty() && !key.is_empty())
        {
            tls.insert("certificate", opened(what, certificate)?);
            tls.insert("key", opened(what, key)?);
        }
        Ok::<_, String>(tls)
    };
    // an authority that is only asked for is reached by the address that a client connects to
    let address = |origin: &str| match of_grpc(origin).addresses.first() {
        Some(address) => {
            let scheme = origin.split("://").next().unwrap_or_default();
            let has_port = address.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
            let own = if has_port { address.clone() } else { format!("{address}:443") };
            Some(common.address(&format!("{scheme}://{own}")).unwrap_or(own))
        }
        None if origin == nobody => Some(NOBODYS_ADDRESS.to_owned()),
        None => common.address(origin),
    };
    // reflection tells the types where no client loads any
    let types_of = |origin: &str| &of_grpc(origin).types;
    let of = |paths: &[String]| -> Vec<Value> {
        paths.iter().map(|path| Value::from(verbatim(&beside_script(path)))).collect()
    };
    let protos = |origin: &str| of(&types_of(origin).protos);
    // files beside the script find each other without
    let includes = |origin: &str| {
        let types = types_of(origin);
        let is_in_folder = types.protos.iter().any(|file| file.contains('/'));
        if is_in_folder { of(&types.includes) } else { Vec::new() }
    };
    let descriptors = |origin: &str| types_of(origin).descriptors.first();
    let mut targets = Map::default();
    for (at, origin) in others.iter().enumerate() {
        let mut target = Map::from([("url", verbatim(origin))]);
        if let Some(address) = address(origin) {
            target.insert("connect to", verbatim(&address));
        }
        let tls = tls(origin)?;
        if !tls.is_empty() {
            target.insert("tls", tls);
        }
        if !protos(origin).is_empty() {
            target.insert("protos", protos(origin));
        }
        if !includes(origin).is_empty() {
            target.insert("includes", includes(origin));
        }
        if let Some(file) = descriptors(origin) {
            target.insert("descriptors", verbatim(&beside_script(file)));
        }
        targets.insert(format!("other{}", at + 1), target);
    }
    let is_alone = scenarios.len() == 1 && scenarios[0].start.is_zero();
    let session = |of: &ScenarioOf| {
        let labels = sent.labels.iter().find(|(function, _)| *function == of.exec);
        let labels =
            labels.map(|(_, labels)| labels.iter().map(|label| Value::from(verbatim(label))).collect());
        let ramps = matches!(of.executor, Executor::RampingVus { .. });
        let session = Session {
            script: Some(verbatim(file).into()),
            exec: (of.exec != "default").then(|| verbatim(&of.exec).into()),
            iterations: of
                .executor
                .iterations()
                .filter(|_| !is_alone || is_each(&of.executor))
                .map(Scalar::from),
            graceful_stop: (scenarios.len() > 1 || ramps).then(|| Time(graceful_stop(of)).into()),
            graceful_ramp_down: ramps.then(|| Time(of.graceful_ramp_down).into()),
            args: args.iter().map(|pair| Value::from(verbatim(pair))).collect(),
            labels: labels.unwrap_or_default(),
            ..Session::default()
        };
        (of.name.clone(), session)
    };
    let end = scenarios.iter().map(|of| of.start + of.executor.duration()).max().unwrap_or_default();
    let given_users = script.given.vus.is_some();
    let load = match scenarios {
        [only] if is_alone => load(only, end, given_users),
        all => Load {
            sessions: all.iter().map(|of| (of.name.clone(), load(of, end, given_users))).collect(),
            ..Load::default()
        },
    };
    let mut limits = Map::default();
    if common.no_reuse {
        limits.insert("keep alive", false);
    }
    let graceful_stop = scenarios.iter().map(|of| of.graceful_stop).max().unwrap_or_default();
    limits.insert("drain", Time(graceful_stop));
    if let [only] = scenarios {
        if let Some(iterations) = only.executor.iterations().filter(|_| is_alone && !is_each(&only.executor))
        {
            limits.insert("sessions", iterations);
        }
        if let Executor::ConstantArrivalRate { vus, .. } | Executor::RampingArrivalRate { vus, .. } =
            only.executor
        {
            limits.insert("in flight", vus);
            limits.insert("at limit", "drop");
        }
    }
    // what the script bounds itself is not bounded once more
    let judges = |metric: &str| told.thresholds.iter().any(|of| of.of.trim() == metric);
    let mut objectives = Vec::new();
    if judges("http_req_failed") && !sent.origins.is_empty() {
        objectives.push(Value::from("errors <= 100%"));
        // what was due is still to be sent, unless the script says how much of it
        if judges("dropped_iterations") && scenarios.iter().any(|of| of.executor.has_a_rate()) {
            objectives.push(Value::from("achieved >= 0% of offered"));
        }
    }
    Ok(Scenario {
        objectives,
        comment: format!(
            "Made of {file}, a script of k6. All keys: docs/scenario.md; mistakes: tidemark check FILE."
        ),
        name: Some(verbatim(name).into()),
        system: Some(System {
            url: Some(verbatim(system).into()),
            connect_to: address(system).map(|address| verbatim(&address).into()),
            tls: tls(system)?,
            protos: protos(system),
            includes: includes(system),
            descriptors: descriptors(system).map(|file| verbatim(&beside_script(file)).into()),
            ..System::default()
        }),
        targets,
        sessions: scenarios.iter().map(session).collect(),
        load: Some(load),
        limits,
        ..Scenario::default()
    })
}

/// One scenario's load, which lasts as long as all together. `given_users` is whether the command line says how many users.
fn load(of: &ScenarioOf, end: Duration, given_users: bool) -> Load {
    let is_whole = of.start.is_zero() && of.executor.duration() == end;
    let simple = |users: Option<Scalar>, rate: Option<Value>| Load {
        users,
        rate,
        hold: Some(Time(of.executor.duration()).into()),
        ..Load::default()
    };
    match &of.executor {
        Executor::ConstantVus { vus, .. }
        | Executor::SharedIterations { vus, .. }
        | Executor::PerVuIterations { vus, .. }
            if is_whole =>
        {
            return simple(Some((*vus).into()), None);
        }
        Executor::ConstantArrivalRate { rate, .. } if is_whole => {
            return simple(None, Some(rate_of(*rate).into()));
        }
        _ => {}
    }
    let (is_closed, stages) = match &of.executor {
        Executor::ConstantVus { vus, duration }
        | Executor::SharedIterations { vus, max: duration, .. }
        | Executor::PerVuIterations { vus, max: duration, .. } => (true, levels(*vus as f64, &[], *duration)),
        Executor::ConstantArrivalRate { rate, duration, .. } => (false, levels(*rate, &[], *duration)),
        Executor::RampingVus { from, stages } => {
            let levels = levels(*from as f64, stages, Duration::ZERO);
            // a number that is given scales every level
            (true, if given_users { levels } else { levels.into_iter().flat_map(rising).collect() })
        }
        Executor::RampingArrivalRate { from, stages, .. } => (false, levels(*from, stages, Duration::ZERO)),
    };
    let rest = end.saturating_sub(of.start + of.executor.duration());
    let idle = |time: Duration| (!time.is_zero()).then_some((time, 0.0, 0.0));
    let phase = |(time, from, to): (Duration, f64, f64)| {
        let level = |value: f64| if is_closed { format!("{value}") } else { rate_of(value) };
        let text = if from == to { level(to) } else { format!("{} to {}", level(from), level(to)) };
        Phase {
            duration: Some(Time(time).into()),
            users: is_closed.then(|| text.clone().into()),
            rate: (!is_closed).then(|| text.into()),
            measured: Some(true.into()),
            ..Phase::default()
        }
    };
    let phases = idle(of.start).into_iter().chain(stages).chain(idle(rest)).map(phase).collect();
    Load { phases, ..Load::default() }
}

/// How long iterations go on from when no user is left; of k6 it is from the end of all stages.
fn graceful_stop(of: &ScenarioOf) -> Duration {
    let Executor::RampingVus { from, stages } = &of.executor else { return of.graceful_stop };
    let befores = std::iter::once(*from as f64).chain(stages.iter().map(|stage| stage.target));
    let stretches: Vec<_> = befores.zip(stages).collect();
    if stages.last().is_none_or(|last| last.target > 0.0) {
        return of.graceful_stop;
    }
    // the last users leave by a ramp, too
    let idle = stretches.iter().rev().take_while(|(before, stage)| *before == 0.0 && stage.target == 0.0);
    let idle: Duration = idle.map(|(_, stage)| stage.duration).sum();
    of.graceful_ramp_down.min(of.graceful_stop + idle)
}

/// Whether each user makes a number of iterations.
fn is_each(executor: &Executor) -> bool {
    matches!(executor, Executor::PerVuIterations { .. })
}

/// Stretches with their level at their begin and end.
fn levels(from: f64, stages: &[Stage], whole: Duration) -> Vec<(Duration, f64, f64)> {
    let mut stretches = Vec::new();
    if !whole.is_zero() {
        stretches.push((whole, from, from));
    }
    let mut level = from;
    for stage in stages {
        if !stage.duration.is_zero() {
            stretches.push((stage.duration, level, stage.target));
        }
        level = stage.target;
    }
    stretches
}

/// Stretches of users that rise as k6's do: the first more begins after one part of as many as there are more, the last one
/// with the next stretch. Ours begin at the begin of their parts.
fn rising((time, from, to): (Duration, f64, f64)) -> Vec<(Duration, f64, f64)> {
    let more = to - from;
    if !(1.0..=RISE_MOST).contains(&more) {
        return vec![(time, from, to)];
    }
    let part = time.div_f64(more);
    let rest = (time.saturating_sub(part), from, to - 1.0);
    std::iter::once((part, from, from)).chain((more > 1.0).then_some(rest)).collect()
}

/// A rate without what binary fractions add.
fn rate_of(per_second: f64) -> String {
    const DIGITS: f64 = 1e6;
    format!("{}/s", (per_second * DIGITS).round() / DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Held against k6 1.8: of 1 to 5 in 4 s, the second user begins after one.
    #[test]
    fn users_rise_as_those_of_k6() {
        let s = Duration::from_secs;
        assert_eq!(rising((s(4), 1.0, 5.0)), [(s(1), 1.0, 1.0), (s(3), 1.0, 4.0)]);
        assert_eq!(rising((s(2), 0.0, 1.0)), [(s(2), 0.0, 0.0)]);
        for other in [(s(4), 5.0, 1.0), (s(4), 3.0, 3.0), (s(4), 0.0, 1_000.0)] {
            assert_eq!(rising(other), [other]);
        }
    }
}
