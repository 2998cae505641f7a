//! Flags become a scenario, as text: what is saved with the run can be run again.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use tidemark_scenario::plan::{HttpVersion, System, TlsSettings};
use tidemark_scenario::units::{Rate, Time};
use url::Url;

use super::args::HitArguments;
use super::pattern;
use crate::failure::Failure;

/// Connections of a closed loop where none are named.
const CLOSED_CONNECTIONS: u64 = 50;
/// What is measured where nothing is said.
const DURATION: Duration = Duration::from_secs(10);
/// What is not measured where nothing is said.
const WARM_UP: Duration = Duration::from_secs(1);
/// Longest time that a number of requests may take where no time is named.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// Longest time for an answer where none is named.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Largest body or list of URLs, bytes: it stands in the scenario.
const FILE_BYTES_MAX: u64 = 2 << 20;
/// Largest answer: it is counted and not kept.
const ANSWER_MAX: &str = "16GiB";
/// Characters of a path that a label shows.
const LABEL_CHARS: usize = 60;
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/// The scenario that the flags stand for.
pub fn scenario_text(arguments: &HitArguments) -> Result<String, Failure> {
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
    let origin = origin(&url);
    let base = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let mut text = String::from("# Made by tidemark hit; tidemark run takes it.\n");
    // writing to a String cannot fail
    let mut line = |line: String| {
        let _ = writeln!(text, "{line}");
    };
    line(format!("name: {}", quoted(&format!("hit {}", url.authority()))));
    line(format!("system:\n  url: {}", quoted(&origin)));
    reach(arguments, &url, connect_to, &mut line)?;
    let (path, label) = match (&arguments.urls, &arguments.random_path) {
        (Some(file), _) => {
            let urls = urls(file, &url)?;
            line("feeders:\n  urls:\n    values:".into());
            urls.iter().for_each(|path| line(format!("      - {}", quoted(path))));
            ("/${path(next(urls))}".to_owned(), format!("{} URLs in turn", urls.len()))
        }
        (None, Some(pattern)) => {
            let wrong = |reason| Failure::usage(format!("--random-path: {reason}"));
            if url.query().is_some() {
                return Err(wrong("the URL's query belongs behind the pattern".to_owned()));
            }
            let path = pattern::template(pattern).map_err(wrong)?;
            let (base, path) = (base.trim_end_matches('/'), path.trim_start_matches('/'));
            (format!("{}/{path}", escaped(base)), format!("{base}/{}", pattern.trim_start_matches('/')))
        }
        (None, None) => (escaped(base), base.to_owned()),
    };
    let label: String = format!("{method} {label}").chars().take(LABEL_CHARS).collect();
    line("sessions:\n  hit:\n    steps:".into());
    line(format!("      - {method}: {}", quoted_as_is(&path)));
    line(format!("        label: {}", quoted(&label)));
    line(format!("        timeout: {}", Time(arguments.timeout.unwrap_or(TIMEOUT))));
    if !headers.is_empty() {
        line("        headers:".into());
        headers
            .iter()
            .for_each(|(name, value)| line(format!("          {}: {}", quoted(name), quoted(value))));
    }
    if let Some(body) = body {
        line(format!("        body: {}", quoted(&body)));
    }
    load(arguments, &mut line);
    if !arguments.objectives.is_empty() {
        line("objectives:".into());
        arguments.objectives.iter().for_each(|objective| line(format!("  - {}", quoted(objective))));
    }
    Ok(text)
}

/// How the URL is reached. Files are named by their whole path: the scenario may be run again from elsewhere.
fn reach(
    arguments: &HitArguments,
    url: &Url,
    connect_to: Option<String>,
    line: &mut impl FnMut(String),
) -> Result<(), Failure> {
    let mut system = System { connect_to, ..System::default() };
    let usual = system.resolve;
    arguments.reach.apply(&mut system);
    if system.resolve != usual {
        line(format!("  resolve: {}", system.resolve.word()));
    }
    if let Some(place) = &system.connect_to {
        line(format!("  connect to: {}", quoted(place)));
    }
    if system.http != HttpVersion::One {
        line(format!("  http: {}", system.http.word()));
    }
    if arguments.reach.streams.is_some() && system.http != HttpVersion::Two {
        return Err(Failure::usage("--streams is for HTTP/2: write --http 2 beside it"));
    }
    if arguments.pipeline > 1 && system.http != HttpVersion::One {
        return Err(Failure::usage(
            "--pipeline is for HTTP/1.1; over HTTP/2 several requests at once are --streams",
        ));
    }
    if system.tls == TlsSettings::default() {
        return Ok(());
    }
    if url.scheme() != "https" {
        let reason = "how TLS is spoken is given, but the URL is not https://; write https:// or leave those flags out";
        return Err(Failure::usage(reason));
    }
    let tls = system.tls;
    line("  tls:".into());
    if tls.insecure {
        line("    insecure: true".into());
    }
    for (key, file) in [("ca", tls.ca), ("certificate", tls.certificate), ("key", tls.key)] {
        let Some(file) = file else { continue };
        let whole = std::path::absolute(&file)
            .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
        line(format!("    {key}: {}", quoted(&whole.to_string_lossy())));
    }
    if let Some(name) = &tls.server_name {
        line(format!("    server name: {}", quoted(name)));
    }
    if !tls.resumption {
        line("    resumption: false".into());
    }
    Ok(())
}

fn load(arguments: &HitArguments, line: &mut impl FnMut(String)) {
    let most = arguments.requests.unwrap_or(u64::MAX);
    let connections = arguments.connections.map_or(CLOSED_CONNECTIONS, u64::from).min(most);
    let streams = u64::from(arguments.reach.streams.unwrap_or(1));
    match arguments.rate {
        Some(rate) => {
            let spacing = if arguments.poisson { "poisson" } else { "constant" };
            line(format!("load:\n  rate: {}\n  spacing: {spacing}", Rate(rate)));
        }
        None => {
            let at_once = streams.max(u64::from(arguments.pipeline));
            let users = (connections * at_once).min(most);
            line(format!("load:\n  users: {users}"));
        }
    }
    let warm_up =
        arguments.warm_up.unwrap_or(if arguments.requests.is_some() { Duration::ZERO } else { WARM_UP });
    if !warm_up.is_zero() {
        line(format!("  warm-up: {}", Time(warm_up)));
    }
    let unnamed = if arguments.requests.is_some() { LONGEST } else { DURATION };
    line(format!("  hold: {}", Time(arguments.duration.unwrap_or(unnamed))));
    line(format!("limits:\n  body: {ANSWER_MAX}"));
    // arrivals find as many connections made as are named
    if arguments.rate.is_none() || arguments.connections.is_some() {
        line(format!("  connections: {connections}"));
    }
    if let Some(waiting) = arguments.waiting {
        line(format!("  waiting: {waiting}"));
    }
    if streams > 1 {
        line(format!("  streams: {streams}"));
    }
    if let Some(requests) = arguments.requests {
        line(format!("  sessions: {requests}"));
    }
    if arguments.pipeline > 1 {
        line(format!("  pipeline: {}", arguments.pipeline));
    }
    if arguments.disable_keepalive {
        line("  keep alive: false".into());
    }
}

fn parse_url(text: &str) -> Result<Url, Failure> {
    let whole = match text {
        _ if text.contains("://") => text.to_owned(),
        // a port alone is one of this machine
        _ if text.starts_with(':') => format!("http://localhost{text}"),
        _ => format!("http://{text}"),
    };
    let wrong = |reason: String| Failure::usage(format!("`{text}` is no URL to hit: {reason}"));
    let url = Url::parse(&whole).map_err(|error| wrong(format!("{error}; write http://HOST:PORT/PATH")))?;
    if !["http", "https"].contains(&url.scheme()) {
        return Err(wrong("it begins neither with http:// nor with https://".into()));
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

fn method(arguments: &HitArguments, has_body: bool) -> Result<String, Failure> {
    let default = if has_body { "POST" } else { "GET" };
    let method = arguments.method.as_deref().unwrap_or(default).to_ascii_uppercase();
    if METHODS.contains(&method.as_str()) {
        return Ok(method);
    }
    Err(Failure::usage(format!("-m {method} is none of {}", METHODS.join(", "))))
}

fn headers(arguments: &HitArguments) -> Result<Vec<(String, String)>, Failure> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let typed = arguments.content_type.iter().map(|value| format!("Content-Type: {value}"));
    for header in arguments.headers.iter().cloned().chain(typed) {
        let Some((name, value)) = header.split_once(':').map(|(name, value)| (name.trim(), value.trim()))
        else {
            return Err(Failure::usage(format!("-H '{header}' is no header; write it as 'Name: value'")));
        };
        if headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            let reason = "is given twice; put its values into one, with a comma between them";
            return Err(Failure::usage(format!("the header {name} {reason}")));
        }
        if name.eq_ignore_ascii_case("connection") {
            return Err(Failure::usage("-H 'Connection: …' is not for a header: see --disable-keepalive"));
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
        .map_err(|_| wrong("it is no UTF-8 text, which is all that a scenario can hold".into()))
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

/// What is text must not become a hole.
fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

/// A YAML scalar whose text is just this.
fn quoted(text: &str) -> String {
    quoted_as_is(&escaped(text))
}

fn quoted_as_is(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
