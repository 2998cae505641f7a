//! Flags become a scenario, as its source: what is saved with the run, and what `--print-scenario` prints, can be run
//! again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tidemark_import::curl::{self, Curl};
use tidemark_import::{
    Defaults as ListDefaults, List, Target, add_header, header, list, method, origin, parse_url, read_small,
    shell,
};
use tidemark_lab::{IoChoice, Timestamps};
use tidemark_scenario::plan::{HttpVersion, TlsSettings, Watched};
use tidemark_scenario::source::{
    Choose, Defaults, Feeder, Load, Map, Named, Phase, Request, Scalar, Scenario, Session, Step, System,
    Value, Way, verbatim, verbatim_bytes,
};
use tidemark_scenario::units::{Rate, Time};
use tidemark_scenario::{plan, source};
use url::Url;

use super::args::HitArguments;
use super::grpc;
use super::pattern;
use super::redis;
use crate::failure::Failure;
use crate::quantities::RateRange;
use crate::reach::ReachArguments;

/// Connections of a closed loop where none are named.
const CLOSED_CONNECTIONS: u64 = 50;
/// What is measured where nothing is said.
const DURATION: Duration = Duration::from_secs(10);
/// What is not measured where nothing is said.
const WARM_UP: Duration = Duration::from_secs(1);
/// Longest time that a number of requests may take where no time is named.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// Largest answer.
const ANSWER_MAX: &str = "16GiB";
/// Characters of a path that a label shows.
const LABEL_CHARS: usize = 60;
/// Most requests that have a line of the report each.
const LINES_MAX: usize = 200;
/// What a body is of which nothing is said: JSON, or no text.
const JSON: &str = "application/json";
const BYTES: &str = "application/octet-stream";

/// The scenario that the flags stand for, and how many requests it sends in turn.
pub fn scenario(arguments: &HitArguments) -> Result<(Scenario, u64), Failure> {
    if let Some(url) = arguments.url.as_deref().filter(|url| redis::is_redis(url)) {
        if arguments.script.is_some() {
            return Err(Failure::usage("a script speaks HTTP; leave -s out"));
        }
        let steps = Steps { steps: vec![redis::step(arguments)?], ..Steps::default() };
        let name = url.rsplit(['@', '/']).next().unwrap_or(url);
        return Ok((whole(arguments, name, store_system(arguments, url)?, steps, limits(arguments))?, 1));
    }
    if let Some(url) = arguments.url.as_deref().filter(|url| grpc::is_grpc(url)) {
        if arguments.script.is_some() {
            return Err(Failure::usage("a script speaks HTTP; leave -s out"));
        }
        let (server, method) = grpc::asked(url)?;
        let steps = Steps { steps: vec![grpc::step(arguments, &method)?], ..Steps::default() };
        let system = System { other: grpc::types(arguments)?, ..store_system(arguments, server)? };
        let name = server.rsplit('/').next().unwrap_or(server);
        return Ok((whole(arguments, name, system, steps, limits(arguments))?, 1));
    }
    let Asked { mut targets, reach, connect_timeout, no_keepalive } = Asked::of(arguments)?;
    let mut connect_to = reach.place();
    if let Some(host) = host(&mut targets)? {
        connect_to.get_or_insert_with(|| place(&targets[0].url));
        for target in &mut targets {
            target.url = named(&target.url, &host)?;
        }
    }
    let url = targets[0].url.clone();
    let system = system(arguments, &reach, &url, connect_to)?;
    let steps = match &arguments.script {
        Some(script) => scripted(arguments, script, &targets[0])?,
        None => steps(arguments, &targets)?,
    };
    let mut limits = limits(arguments);
    if let Some(time) = connect_timeout {
        limits.insert("connect timeout", Scalar::from(Time(time)));
    }
    if no_keepalive {
        limits.insert("keep alive", false);
    }
    Ok((whole(arguments, url.authority(), system, steps, limits)?, targets.len() as u64))
}

/// The scenario of its parts; `name` is of the server.
fn whole(
    arguments: &HitArguments,
    name: &str,
    system: System,
    Steps { steps, script, defaults, feeders }: Steps,
    limits: Map,
) -> Result<Scenario, Failure> {
    Ok(Scenario {
        comment: comment(arguments),
        name: Some(verbatim(&format!("hit {name}")).into()),
        system: Some(system),
        feeders,
        defaults,
        sessions: vec![("hit".into(), Session { steps, ..script })],
        load: Some(load(arguments)?),
        limits,
        watch: arguments.watch.iter().map(|watch| watched(&watch.what)).collect(),
        objectives: arguments.objectives.iter().map(|objective| verbatim(objective).into()).collect(),
        seed: arguments.driver.seed.map(Into::into),
        ..Scenario::default()
    })
}

/// What is looked at, as a scenario says it.
fn watched(what: &Watched) -> Value {
    let mut map = Map::new();
    match (what, what.flag()) {
        (Watched::Metrics { url, series }, _) => {
            map.insert("metrics", verbatim(url));
            let series: Vec<Value> =
                series.iter().map(|series| verbatim(&series.to_string()).into()).collect();
            if !series.is_empty() {
                map.insert("series", Value::List(series));
            }
        }
        (_, Some(flag)) => {
            let (key, value) = flag.split_once('=').unwrap_or((&flag, ""));
            match value.parse::<u64>() {
                Ok(number) if matches!(what, Watched::Pid(_) | Watched::Port(_)) => map.insert(key, number),
                _ => map.insert(key, verbatim(value)),
            }
        }
        _ => {}
    }
    Value::Map(map)
}

/// What is to be sent, and how it gets there.
struct Asked {
    /// At least one; all of one server.
    targets: Vec<Target>,
    reach: ReachArguments,
    connect_timeout: Option<Duration>,
    no_keepalive: bool,
}

impl Asked {
    fn of(arguments: &HitArguments) -> Result<Asked, Failure> {
        let mut asked = Asked {
            targets: Vec::new(),
            reach: arguments.reach.clone(),
            connect_timeout: None,
            no_keepalive: arguments.disable_keepalive,
        };
        let line = match &arguments.url {
            Some(line) if line.contains(char::is_whitespace) => {
                curl::command_line(line).map(shell::words).transpose().map_err(Failure::usage)?
            }
            _ => (!arguments.curl.is_empty()).then(|| arguments.curl.clone()),
        };
        if let Some(words) = line {
            let beside = [
                ("-m", arguments.method.is_some()),
                ("-b", arguments.body.is_some() || arguments.body_file.is_some()),
                ("--content-type", arguments.content_type.is_some()),
                ("--urls", arguments.urls.is_some()),
                ("--random-path", arguments.random_path.is_some()),
                ("-s", arguments.script.is_some()),
            ];
            if let Some((flag, _)) = beside.iter().find(|(_, is_given)| *is_given) {
                return Err(Failure::usage(format!(
                    "{flag} stands beside a curl, which says it itself; leave {flag} out"
                )));
            }
            let curl = curl::parse(&words).map_err(Failure::usage)?;
            asked.targets.push(curl.target.clone());
            asked.take(curl);
        } else {
            let url = arguments.url.as_deref().map(parse_url).transpose().map_err(Failure::usage)?;
            let body = body(arguments)?;
            let method = arguments.method.as_deref().map(method).transpose();
            let method = method.map_err(|error| Failure::usage(format!("-m: {error}")))?;
            match (&arguments.urls, url) {
                (Some(file), url) => {
                    let List { targets, curls } = list(file, url.as_ref(), &ListDefaults { method, body })?;
                    asked.targets = targets;
                    curls.into_iter().for_each(|curl| asked.take(curl));
                }
                (None, Some(url)) => {
                    let usual = if body.is_some() { "POST" } else { "GET" };
                    let target = Target::new(method.unwrap_or_else(|| usual.to_owned()), url);
                    asked.targets.push(Target { body, ..target });
                }
                (None, None) => return Err(Failure::usage("what is to be hit? Give a URL, or --urls FILE")),
            }
        }
        asked.add_headers(arguments)?;
        Ok(asked)
    }

    /// How a command line of curl gets there, where no flag says otherwise.
    fn take(&mut self, curl: Curl) {
        self.reach = std::mem::take(&mut self.reach).or(curl.reach.into());
        self.connect_timeout = self.connect_timeout.or(curl.connect_timeout);
        self.no_keepalive |= curl.no_keepalive;
    }

    /// The headers of the flags, for each request that has none of their name.
    fn add_headers(&mut self, arguments: &HitArguments) -> Result<(), Failure> {
        let mut given: Vec<(String, String)> = Vec::new();
        let typed = arguments.content_type.iter().map(|value| format!("Content-Type: {value}"));
        for line in arguments.headers.iter().cloned().chain(typed) {
            let Some((name, value)) = header(&line) else {
                return Err(Failure::usage(format!(
                    "-H '{line}' is not a header; write it as 'Name: value'"
                )));
            };
            let mut alone = Target::new("GET", self.targets[0].url.clone());
            alone.add_header(name, value).map_err(|error| Failure::usage(format!("-H: {error}")))?;
            given.extend(alone.headers);
        }
        for target in &mut self.targets {
            let is_new = |(name, _): &&(String, String)| target.header(name).is_none();
            let new: Vec<(String, String)> = given.iter().filter(is_new).cloned().collect();
            target.headers.extend(new);
        }
        Ok(())
    }
}

/// Takes the `Host` out of all requests, where they have one: there is one server.
fn host(targets: &mut [Target]) -> Result<Option<String>, Failure> {
    let mut hosts: Vec<Option<String>> = Vec::new();
    for target in targets {
        let at = target.headers.iter().position(|(name, _)| name.eq_ignore_ascii_case("host"));
        hosts.push(at.map(|at| target.headers.remove(at).1));
    }
    hosts.dedup();
    match &mut hosts[..] {
        [] => Ok(None),
        [host] => Ok(host.take()),
        _ => Err(Failure::usage(
            "the requests name different hosts (-H 'Host: …'), and one run drives one server",
        )),
    }
}

/// What a session does.
#[derive(Default)]
struct Steps {
    steps: Vec<Step>,
    /// What is said of a session that has a script in place of steps.
    script: Session,
    defaults: Option<Defaults>,
    feeders: Named<Feeder>,
}

/// One request of those that are asked for, in turn.
fn steps(arguments: &HitArguments, targets: &[Target]) -> Result<Steps, Failure> {
    let timeout = arguments.timeout;
    if let [target] = targets {
        let (path, label) = match &arguments.random_path {
            Some(pattern) => random_path(pattern, &target.url)?,
            None => (verbatim(target.path()), target.path().to_owned()),
        };
        let step = request(
            target,
            path,
            shortened(&format!("{} {label}", target.method)),
            timeout,
            &arguments.expect,
        );
        return Ok(Steps { steps: vec![step.into()], ..Steps::default() });
    }
    if targets.len() > LINES_MAX {
        return many(targets, timeout, &arguments.expect);
    }
    let labels = labels(targets);
    let way = |(target, label): (&Target, String)| Way {
        steps: vec![request(target, verbatim(target.path()), label, timeout, &arguments.expect).into()],
        ..Way::default()
    };
    let ways = targets.iter().zip(labels).map(way).collect();
    let choose = Choose { ways, order: Some("in turn".into()), ..Choose::default() };
    Ok(Steps { steps: vec![choose.into()], ..Steps::default() })
}

/// What a script says, with the headers of the flags, as wrk has it.
fn scripted(arguments: &HitArguments, script: &Path, target: &Target) -> Result<Steps, Failure> {
    let file = std::path::absolute(script)
        .map_err(|error| Failure::usage(format!("-s {}: {error}", script.display())))?;
    let mut headers = Map::new();
    for (name, value) in &target.headers {
        headers.insert(name.as_str(), verbatim(value));
    }
    let timeout = arguments.timeout.map(|time| Scalar::from(Time(time)));
    let has_defaults = timeout.is_some() || !target.headers.is_empty();
    let session = Session {
        script: Some(verbatim(&file.display().to_string()).into()),
        args: arguments.script_args.iter().map(|word| Value::from(verbatim(word))).collect(),
        path: Some(verbatim(target.path()).into()),
        ..Session::default()
    };
    Ok(Steps {
        script: session,
        defaults: has_defaults.then(|| Defaults { headers, timeout, ..Defaults::default() }),
        ..Steps::default()
    })
}

/// Too many for a line each: what differs only in the path is one request.
fn many(targets: &[Target], timeout: Option<Duration>, expect: &[String]) -> Result<Steps, Failure> {
    let first = &targets[0];
    let is_alike = |target: &Target| Target { url: first.url.clone(), ..target.clone() } == *first;
    if let Some(at) = targets.iter().position(|target| !is_alike(target)) {
        return Err(Failure::usage(format!(
            "{} requests are too many for a line of the report each, of which there are {LINES_MAX} at most, and they differ in \
             more than their URL (number {} does); split them",
            targets.len(),
            at + 1
        )));
    }
    let values: Vec<Value> =
        targets.iter().map(|target| verbatim(target.path().trim_start_matches('/')).into()).collect();
    let feeders = vec![("urls".to_owned(), Feeder { values, ..Feeder::default() })];
    let label = format!("{} {} URLs in turn", first.method, targets.len());
    let step = request(first, "/${path(next(urls))}".into(), label, timeout, expect);
    Ok(Steps { steps: vec![step.into()], feeders, ..Steps::default() })
}

/// A label for each request; what differs has another one.
fn labels(targets: &[Target]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        if let Some(same) = targets[..index].iter().position(|other| other == target) {
            labels.push(labels[same].clone());
            continue;
        }
        let plain = shortened(&format!("{} {}", target.method, target.path()));
        let numbered = (2..).map(|number| format!("{plain} ({number})"));
        let label = std::iter::once(plain.clone()).chain(numbered).find(|label| !labels.contains(label));
        labels.push(label.unwrap_or(plain));
    }
    labels
}

fn shortened(label: &str) -> String {
    label.chars().take(LABEL_CHARS).collect()
}

/// A request as a step; its path may have holes. Answers with other statuses than those expected fail, if any are.
fn request(
    target: &Target,
    path: String,
    label: String,
    timeout: Option<Duration>,
    expect: &[String],
) -> Request {
    let timeout = timeout.or(target.timeout);
    let is_typed = target.omitted.contains(&"Content-Type") || target.header("content-type").is_some();
    let kind = target.body.as_deref().filter(|_| !is_typed).and_then(kind);
    let typed = kind.map(|kind| ("Content-Type".to_owned(), kind.to_owned()));
    let mut headers = Map::new();
    for (name, value) in target.headers.iter().cloned().chain(typed) {
        add_header(&mut headers, &verbatim(&name), verbatim(&value));
    }
    let has_body = target.body.is_some();
    for name in target.omitted.iter().filter(|name| **name != "Content-Type" || has_body) {
        if target.header(name).is_none() {
            headers.insert(*name, Value::List(Vec::new()));
        }
    }
    let step = Request::named(&target.method, path);
    let mut other = step.other.clone();
    if let Some((user, password)) = &target.login {
        let basic = Map::from([("user", verbatim(user)), ("password", verbatim(password))]);
        other.insert("auth", Map::from([("basic", basic)]));
    }
    if target.follow > 0 {
        other.insert("follow", target.follow);
    }
    if !expect.is_empty() {
        let statuses = expect.iter().map(|status| Scalar::unquoted(status).into()).collect();
        let mut check = Map::new();
        check.insert("status", Value::List(statuses));
        other.insert("check", check);
    }
    Request {
        // a request without a label is called by its method and path
        label: (label != format!("{} {}", target.method, step.path.as_str()))
            .then(|| verbatim(&label).into()),
        headers,
        body: target.body.as_deref().map(|body| verbatim_bytes(body).into()),
        timeout: timeout.map(|timeout| Time(timeout).into()),
        other,
        ..step
    }
}

/// What a body is, where it is not just a text: services often take JSON only by that name.
fn kind(body: &[u8]) -> Option<&'static str> {
    let may_be_json = matches!(body.trim_ascii_start().first(), Some(b'{' | b'['));
    if may_be_json && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() {
        return Some(JSON);
    }
    std::str::from_utf8(body).is_err().then_some(BYTES)
}

/// What stands at the top: where it is from, and the flags that are no part of a scenario.
fn comment(arguments: &HitArguments) -> String {
    let driver = &arguments.driver;
    let mut flags: Vec<String> = Vec::new();
    flags.extend(driver.threads.map(|threads| format!("--threads {threads}")));
    let pins = driver.pins.iter().flat_map(|pins| pins.split_whitespace());
    flags.extend(pins.map(|pin| format!("--pin {pin}")));
    flags.extend((driver.io != IoChoice::default()).then(|| format!("--io {}", driver.io)));
    flags.extend(driver.spin.then(|| "--spin".to_owned()));
    let timestamps = driver.timestamps;
    flags.extend((timestamps != Timestamps::default()).then(|| format!("--timestamps {timestamps}")));
    let made = "Made by tidemark hit; tidemark run takes it";
    if flags.is_empty() { format!("{made}.") } else { format!("{made}, with {}.", flags.join(" ")) }
}

/// The path with random text at its end, as a text with holes and as it is called.
fn random_path(pattern: &str, url: &Url) -> Result<(String, String), Failure> {
    let wrong = |reason| Failure::usage(format!("--random-path: {reason}"));
    if url.query().is_some() {
        return Err(wrong("put the URL's query behind the pattern".to_owned()));
    }
    let path = pattern::template(pattern).map_err(wrong)?;
    let base = url.path().trim_end_matches('/');
    let label = format!("{base}/{}", pattern.trim_start_matches('/'));
    Ok((format!("{}/{}", verbatim(base), path.trim_start_matches('/')), label))
}

/// How the URL is reached. Files are named by their whole path: the scenario may be run again from elsewhere.
fn system(
    arguments: &HitArguments,
    reach: &ReachArguments,
    url: &Url,
    connect_to: Option<String>,
) -> Result<System, Failure> {
    let mut reached = plan::System { connect_to, ..plan::System::default() };
    let usual = reached.resolve;
    reach.apply(&mut reached);
    if reach.streams.is_some() && reached.http != HttpVersion::Two {
        return Err(Failure::usage("--streams is for HTTP/2: write --http 2 beside it"));
    }
    if arguments.pipeline > 1 && reached.http != HttpVersion::One {
        return Err(Failure::usage(
            "--pipeline is for HTTP/1.1; over HTTP/2 several requests at once are --streams",
        ));
    }
    if reached.tls != TlsSettings::default() && url.scheme() != "https" {
        let reason =
            "options of TLS are given, but the URL is not https://; write https:// or leave those flags out";
        return Err(Failure::usage(reason));
    }
    Ok(source::System {
        url: Some(verbatim(origin(url)).into()),
        resolve: (reached.resolve != usual).then(|| reached.resolve.name().into()),
        connect_to: reached.connect_to.map(|place| verbatim(&place).into()),
        proxy: proxy(reach)?.map(|proxy| verbatim(proxy).into()),
        http: (reached.http != HttpVersion::One).then(|| Scalar::unquoted(reached.http.name())),
        tls: tls(reached.tls)?,
        ..source::System::default()
    })
}

/// A server of Redis' protocol or of gRPC, which its URL says most about.
fn store_system(arguments: &HitArguments, url: &str) -> Result<System, Failure> {
    if arguments.reach.proxy.is_some() {
        return Err(Failure::usage("--proxy is for http:// and https:// only"));
    }
    let mut reached = plan::System::default();
    let usual = reached.resolve;
    arguments.reach.apply(&mut reached);
    Ok(source::System {
        url: Some(verbatim(url).into()),
        resolve: (reached.resolve != usual).then(|| reached.resolve.name().into()),
        connect_to: reached.connect_to.map(|place| verbatim(&place).into()),
        tls: tls(reached.tls)?,
        ..source::System::default()
    })
}

/// The proxy that is between, if one is.
fn proxy(reach: &ReachArguments) -> Result<Option<&str>, Failure> {
    let Some(proxy) = reach.proxy.as_deref().filter(|proxy| *proxy != plan::NO_PROXY) else {
        return Ok(None);
    };
    plan::check_proxy(proxy).map_err(|error| Failure::usage(format!("--proxy: {error}")))?;
    Ok(Some(proxy))
}

fn tls(settings: TlsSettings) -> Result<Map, Failure> {
    let mut tls = Map::new();
    if settings.insecure {
        tls.insert("insecure", true);
    }
    for (key, file) in [("ca", settings.ca), ("certificate", settings.certificate), ("key", settings.key)] {
        let Some(file) = file else { continue };
        tls.insert(key, verbatim(&absolute(&file)?.to_string_lossy()));
    }
    if let Some(name) = &settings.server_name {
        tls.insert("server name", verbatim(name));
    }
    if !settings.resumption {
        tls.insert("resumption", false);
    }
    Ok(tls)
}

fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(file).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
}

fn load(arguments: &HitArguments) -> Result<Load, Failure> {
    let usual = if arguments.requests.is_some() { Duration::ZERO } else { WARM_UP };
    let warm_up = arguments.warm_up.unwrap_or(usual);
    if arguments.requests.is_some() && !warm_up.is_zero() {
        return Err(Failure::usage("--warm-up: with -n all requests count; leave it out, or give -d"));
    }
    let unnamed = if arguments.requests.is_some() { LONGEST } else { DURATION };
    let load = Load {
        warm_up: (!warm_up.is_zero()).then(|| Time(warm_up).into()),
        hold: Some(Time(arguments.duration.unwrap_or(unnamed)).into()),
        ..Load::default()
    };
    let Some(range) = arguments.rate else {
        let at_once = streams(arguments).max(u64::from(arguments.pipeline));
        let users = (connections(arguments) * at_once).min(arguments.requests.unwrap_or(u64::MAX));
        return Ok(Load { users: Some(users.into()), ..load });
    };
    let spacing = arguments.poisson.then(|| "poisson".into());
    match range.constant() {
        Some(rate) => Ok(Load { rate: Some(Rate(rate).into()), spacing, ..load }),
        None => Ok(Load { phases: ramp(arguments, range)?, spacing, ..Load::default() }),
    }
}

/// A rate that changes evenly over the measurement, behind a warm-up at its first one.
fn ramp(arguments: &HitArguments, range: RateRange) -> Result<Vec<Phase>, Failure> {
    if arguments.requests.is_some() && arguments.duration.is_none() {
        return Err(Failure::usage("a ramp needs to know how long it takes: give -d beside -n, or one rate"));
    }
    let begin = Scalar::from(Rate(range.from));
    let usual = if range.from > 0.0 && arguments.requests.is_none() { WARM_UP } else { Duration::ZERO };
    let warm_up = arguments.warm_up.unwrap_or(usual);
    if range.from <= 0.0 && !warm_up.is_zero() {
        return Err(Failure::usage(
            "--warm-up: there is nothing to warm up with at a rate of 0; leave it out",
        ));
    }
    let warm_up = (!warm_up.is_zero()).then(|| Phase {
        name: Some("warm-up".into()),
        duration: Some(Time(warm_up).into()),
        rate: Some(begin.clone().into()),
        ..Phase::default()
    });
    let measured = Phase {
        name: Some("ramp".into()),
        duration: Some(Time(arguments.duration.unwrap_or(DURATION)).into()),
        rate: Some(format!("{} to {}", begin.as_str(), Scalar::from(Rate(range.to)).as_str()).into()),
        // a phase of this name is not, by default
        measured: Some(true.into()),
        ..Phase::default()
    };
    Ok(warm_up.into_iter().chain([measured]).collect())
}

fn limits(arguments: &HitArguments) -> Map {
    let mut limits = Map::new();
    limits.insert_with_comment("answers are counted, not kept", "body", ANSWER_MAX);
    // arrivals find as many connections made as are named
    if arguments.rate.is_none() || arguments.connections.is_some() {
        limits.insert("connections", connections(arguments));
    }
    if let Some(waiting) = arguments.waiting {
        limits.insert("waiting", waiting);
    }
    if streams(arguments) > 1 {
        limits.insert("streams", streams(arguments));
    }
    if let Some(requests) = arguments.requests {
        limits.insert("sessions", requests);
    }
    if arguments.pipeline > 1 {
        limits.insert("pipeline", arguments.pipeline);
    }
    limits
}

fn connections(arguments: &HitArguments) -> u64 {
    let most = arguments.requests.unwrap_or(u64::MAX);
    arguments.connections.map_or(CLOSED_CONNECTIONS, u64::from).min(most)
}

fn streams(arguments: &HitArguments) -> u64 {
    u64::from(arguments.reach.streams.unwrap_or(1))
}

/// Where a URL leads to, as `HOST:PORT`.
fn place(url: &Url) -> String {
    format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(80))
}

/// The URL with another host, as a `Host` header names it.
fn named(url: &Url, host: &str) -> Result<Url, Failure> {
    let path = &url[url::Position::BeforePath..];
    Url::parse(&format!("{}://{host}{path}", url.scheme()))
        .map_err(|error| Failure::usage(format!("-H 'Host: {host}' names no host: {error}")))
}

/// The body that the flags give.
fn body(arguments: &HitArguments) -> Result<Option<Vec<u8>>, Failure> {
    let file = match (&arguments.body, &arguments.body_file) {
        (_, Some(file)) => file.as_path(),
        (Some(text), None) => match text.strip_prefix('@') {
            Some(file) => Path::new(file),
            None => return Ok(Some(text.clone().into_bytes())),
        },
        (None, None) => return Ok(None),
    };
    Ok(Some(read_small(file, "the body")?))
}
