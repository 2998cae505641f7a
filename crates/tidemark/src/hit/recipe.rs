//! Flags become a scenario, as its source: what is saved with the run, and what `--print-scenario` prints, can be run
//! again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tidemark_lab::{IoChoice, Timestamps};
use tidemark_scenario::plan::{HttpVersion, TlsSettings};
use tidemark_scenario::source::{
    Feeder, Load, Map, Method, Named, Phase, Request, Scalar, Scenario, Session, System, Value, verbatim,
};
use tidemark_scenario::units::{Rate, Time};
use tidemark_scenario::{plan, source};
use url::Url;

use super::args::HitArguments;
use super::pattern;
use crate::failure::Failure;
use crate::quantities::RateRange;

/// Connections of a closed loop where none are named.
const CLOSED_CONNECTIONS: u64 = 50;
/// What is measured where nothing is said.
const DURATION: Duration = Duration::from_secs(10);
/// What is not measured where nothing is said.
const WARM_UP: Duration = Duration::from_secs(1);
/// Longest time that a number of requests may take where no time is named.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// Largest body or list of URLs, bytes: it stands in the scenario.
const FILE_BYTES_MAX: u64 = 2 << 20;
/// Largest answer.
const ANSWER_MAX: &str = "16GiB";
/// Characters of a path that a label shows.
const LABEL_CHARS: usize = 60;

/// The scenario that the flags stand for.
pub fn scenario(arguments: &HitArguments) -> Result<Scenario, Failure> {
    let mut url = parse_url(&arguments.url)?;
    let mut connect_to = arguments.reach.place();
    let body = body(arguments)?;
    let method = method(arguments, body.is_some())?;
    let mut headers = headers(arguments)?;
    if let Some(at) = headers.iter().position(|(name, _)| name.eq_ignore_ascii_case("host")) {
        let (_, host) = headers.remove(at);
        connect_to.get_or_insert_with(|| place(&url));
        url = named(&url, &host)?;
    }
    let system = system(arguments, &url, connect_to)?;
    let Paths { path, label, feeders } = paths(arguments, &url)?;
    let label: String = format!("{} {label}", method.as_str()).chars().take(LABEL_CHARS).collect();
    let request = Request {
        // a request without a label is called by its method and path
        label: (label != format!("{} {path}", method.as_str())).then(|| verbatim(&label).into()),
        headers: headers.into_iter().map(|(name, value)| (verbatim(&name), verbatim(&value))).collect(),
        body: body.map(|body| verbatim(&body).into()),
        timeout: arguments.timeout.map(|timeout| Time(timeout).into()),
        ..Request::new(method, path)
    };
    Ok(Scenario {
        comment: comment(arguments),
        name: Some(verbatim(&format!("hit {}", url.authority())).into()),
        system: Some(system),
        feeders,
        sessions: vec![("hit".into(), Session { steps: vec![request.into()], ..Session::default() })],
        load: Some(load(arguments)?),
        limits: limits(arguments),
        objectives: arguments.objectives.iter().map(|objective| verbatim(objective).into()).collect(),
        seed: arguments.seed.map(Into::into),
        ..Scenario::default()
    })
}

/// What stands at the top: where it is from, and the flags that are no part of a scenario.
fn comment(arguments: &HitArguments) -> String {
    let mut flags: Vec<String> = Vec::new();
    flags.extend(arguments.threads.map(|threads| format!("--threads {threads}")));
    flags.extend(arguments.pins.iter().flat_map(|pins| pins.split_whitespace()).map(|pin| match pin {
        cores if !cores.contains('=') => format!("--pin driver={cores}"),
        pin => format!("--pin {pin}"),
    }));
    flags.extend((arguments.io != IoChoice::default()).then(|| format!("--io {}", arguments.io)));
    flags.extend(arguments.spin.then(|| "--spin".to_owned()));
    let timestamps = arguments.timestamps;
    flags.extend((timestamps != Timestamps::default()).then(|| format!("--timestamps {timestamps}")));
    let made = "Made by tidemark hit; tidemark run takes it";
    if flags.is_empty() { format!("{made}.") } else { format!("{made}, with {}.", flags.join(" ")) }
}

/// What is requested.
struct Paths {
    /// With holes where it varies.
    path: String,
    label: String,
    feeders: Named<Feeder>,
}

fn paths(arguments: &HitArguments, url: &Url) -> Result<Paths, Failure> {
    let base = &url[url::Position::BeforePath..url::Position::AfterQuery];
    if let Some(file) = &arguments.urls {
        let urls = urls(file, url)?;
        let label = format!("{} URLs in turn", urls.len());
        let values: Vec<Value> = urls.iter().map(|path| verbatim(path).into()).collect();
        let feeders = vec![("urls".to_owned(), Feeder { values, ..Feeder::default() })];
        return Ok(Paths { path: "/${path(next(urls))}".into(), label, feeders });
    }
    let Some(pattern) = &arguments.random_path else {
        return Ok(Paths { path: verbatim(base), label: base.to_owned(), feeders: Vec::new() });
    };
    let wrong = |reason| Failure::usage(format!("--random-path: {reason}"));
    if url.query().is_some() {
        return Err(wrong("put the URL's query behind the pattern".to_owned()));
    }
    let path = pattern::template(pattern).map_err(wrong)?;
    let base = base.trim_end_matches('/');
    let label = format!("{base}/{}", pattern.trim_start_matches('/'));
    let path = format!("{}/{}", verbatim(base), path.trim_start_matches('/'));
    Ok(Paths { path, label, feeders: Vec::new() })
}

/// How the URL is reached. Files are named by their whole path: the scenario may be run again from elsewhere.
fn system(arguments: &HitArguments, url: &Url, connect_to: Option<String>) -> Result<System, Failure> {
    let mut reached = plan::System { connect_to, ..plan::System::default() };
    let usual = reached.resolve;
    arguments.reach.apply(&mut reached);
    if arguments.reach.streams.is_some() && reached.http != HttpVersion::Two {
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
        url: Some(verbatim(&origin(url)).into()),
        resolve: (reached.resolve != usual).then(|| reached.resolve.word().into()),
        connect_to: reached.connect_to.map(|place| verbatim(&place).into()),
        http: (reached.http != HttpVersion::One).then(|| Scalar::unquoted(reached.http.word())),
        tls: tls(reached.tls)?,
        ..source::System::default()
    })
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
        return Err(Failure::usage("--warm-up: there is nothing to warm up with at a rate of 0; leave it out"));
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
    if arguments.disable_keepalive {
        limits.insert("keep alive", false);
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

fn parse_url(text: &str) -> Result<Url, Failure> {
    let whole = match text {
        _ if text.contains("://") => text.to_owned(),
        // a port alone is one of this machine
        _ if text.starts_with(':') => format!("http://localhost{text}"),
        _ => format!("http://{text}"),
    };
    let wrong = |reason: String| Failure::usage(format!("`{text}` is not a URL to hit: {reason}"));
    let url = Url::parse(&whole).map_err(|error| wrong(format!("{error}; write http://HOST:PORT/PATH")))?;
    if !["http", "https"].contains(&url.scheme()) {
        let other =
            "it begins neither with http:// nor with https://; other protocols are for `tidemark run`";
        return Err(wrong(other.into()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("give a name and password as a header: -H 'Authorization: Basic …'".into()));
    }
    Ok(url)
}

fn origin(url: &Url) -> String {
    url[..url::Position::BeforePath].to_owned()
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

fn method(arguments: &HitArguments, has_body: bool) -> Result<Method, Failure> {
    let usual = if has_body { Method::Post } else { Method::Get };
    let Some(name) = &arguments.method else { return Ok(usual) };
    let name = name.to_ascii_uppercase();
    Method::from_name(&name).ok_or_else(|| {
        let all: Vec<&str> = Method::ALL.iter().map(|method| method.as_str()).collect();
        Failure::usage(format!("unknown method -m {name}; it is one of {}", all.join(", ")))
    })
}

fn headers(arguments: &HitArguments) -> Result<Vec<(String, String)>, Failure> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let typed = arguments.content_type.iter().map(|value| format!("Content-Type: {value}"));
    for header in arguments.headers.iter().cloned().chain(typed) {
        let Some((name, value)) = header.split_once(':').map(|(name, value)| (name.trim(), value.trim()))
        else {
            return Err(Failure::usage(format!("-H '{header}' is not a header; write it as 'Name: value'")));
        };
        if headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            let reason = "is given twice; put its values into one, with a comma between them";
            return Err(Failure::usage(format!("the header {name} {reason}")));
        }
        if name.eq_ignore_ascii_case("connection") {
            return Err(Failure::usage(
                "-H 'Connection: …' cannot be set as a header; see --disable-keepalive",
            ));
        }
        if name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(Failure::usage(format!(
                "{name} is written by itself: the body is sent whole; leave it out"
            )));
        }
        headers.push((name.to_owned(), value.to_owned()));
    }
    Ok(headers)
}

fn body(arguments: &HitArguments) -> Result<Option<String>, Failure> {
    let file = match (&arguments.body, &arguments.body_file) {
        (_, Some(file)) => file.as_path(),
        (Some(text), None) => match text.strip_prefix('@') {
            Some(file) => Path::new(file),
            None => return Ok(Some(text.clone())),
        },
        (None, None) => return Ok(None),
    };
    read(file, "the body").map(Some)
}

/// A file, or standard input as `-`, that becomes a part of the scenario, hence text and not too large.
fn read(file: &Path, what: &str) -> Result<String, Failure> {
    use std::io::Read;
    let stdin = file == Path::new("-");
    let shown = if stdin { "standard input".to_owned() } else { file.display().to_string() };
    let wrong = |reason: String| Failure::usage(format!("{what} in {shown}: {reason}"));
    let mut bytes = Vec::new();
    let done = match stdin {
        true => std::io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes),
        false => std::fs::File::open(file)
            .and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)),
    };
    done.map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(format!("it is larger than {} MiB; use a smaller one", FILE_BYTES_MAX >> 20)));
    }
    String::from_utf8(bytes)
        .map_err(|_| wrong("it is not UTF-8 text, which is all that a scenario can hold".into()))
}

/// The paths in a file, without their first slash.
fn urls(file: &Path, base: &Url) -> Result<Vec<String>, Failure> {
    let text = read(file, "the URLs")?;
    let mut paths = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |reason: &str| Failure::usage(format!("{}:{number}: {reason}: {line}", file.display()));
        let url = base.join(line).map_err(|error| wrong(&error.to_string()))?;
        if url.origin() != base.origin() {
            return Err(wrong(&format!("not on {}, and one run drives one server", origin(base))));
        }
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        paths.push(path.strip_prefix('/').unwrap_or(path).to_owned());
    }
    if paths.is_empty() {
        return Err(Failure::usage(format!("{} has no URL; write one a line", file.display())));
    }
    Ok(paths)
}
