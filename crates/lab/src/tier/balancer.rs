//! nginx and HAProxy in front of instances: installed, configured here, started like an instance.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tidemark_scenario::plan::{Balancer, Ready};

use super::{Setup, Tier};
use crate::descendants::{Identity, descendants};
use crate::error::LabError;
use crate::process::Patience;
use crate::served::{self, Served, cannot_write};
use crate::started::{Started as _, held};
use crate::stores::installed::Package;
use crate::target::target;

/// Where Debian puts servers.
const PLACES: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
/// Longest time for a word to HAProxy.
const WORD_WITHIN: Duration = Duration::from_secs(2);
/// Most of its answer that is read, bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// Longest time that an instance which is to end may take to answer what it has.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What nginx is told of an instance that gets no requests.
const DOWN: &str = " down";
/// How HAProxy looks after an instance: three checks in a row that fail take it out, one brings it back. After one that
/// failed the next two come quickly.
const CHECK: &str = "check inter 1s fastinter 100ms downinter 250ms fall 3 rise 1";
/// How long an instance may take to answer one.
const CHECK_WITHIN: &str = "2s";
/// Most of its log that is searched, bytes.
const LOG_BYTES_MAX: u64 = 1 << 20;
/// What its server that is to have no requests says at the end.
const DISABLED: &str = " disabled";
/// The socket by which HAProxy is told.
const SOCKET: &str = "haproxy.sock";

const NGINX: Package =
    Package { title: "nginx", programs: &["nginx"], how: "install it (Debian: apt-get install nginx-light)" };
const HAPROXY: Package =
    Package { title: "HAProxy", programs: &["haproxy"], how: "install it (Debian: apt-get install haproxy)" };

/// One that is installed here, if any is.
pub fn installed() -> Option<Balancer> {
    let is_here = |package: &Package| package.folder(PLACES.map(PathBuf::from)).is_ok();
    [(Balancer::Nginx, &NGINX), (Balancer::Haproxy, &HAPROXY)]
        .into_iter()
        .find(|(_, package)| is_here(package))
        .map(|(balancer, _)| balancer)
}

/// The balancer of a tier, configured and down.
pub fn served(tier: &Tier, setup: &Setup) -> Result<Served, LabError> {
    let about = &tier.system.tier;
    let name = about.balancer_name();
    let dir = setup.run_dir.join("balancer").join(&name);
    fs::create_dir_all(&dir).map_err(|error| cannot_write(&dir, &error))?;
    // its programs want whole paths
    let dir = dir.canonicalize().map_err(|error| cannot_write(&dir, &error))?;
    let names: Vec<String> = (1..=tier.addresses.len()).map(|number| about.instance(number)).collect();
    let servers: Vec<(&str, SocketAddr)> =
        names.iter().map(String::as_str).zip(tier.addresses.iter().copied()).collect();
    let package = if about.balancer == Balancer::Nginx { &NGINX } else { &HAPROXY };
    let folder = package.folder_or(PLACES.map(PathBuf::from), "say another `balancer`")?;
    let program = folder.join(package.programs[0]).display().to_string();
    let file = dir.join(format!("{}.conf", package.programs[0]));
    let (text, command) = match about.balancer {
        Balancer::Nginx => {
            let words = ["-p", &dir.display().to_string(), "-c", &file.display().to_string(), "-e", "stderr"];
            // before a shipped system it is told nothing, so all ports are up in its configuration
            let begin = if tier.is_shipped() { servers.len() } else { about.instances };
            (
                nginx(&dir, tier.entry, (&servers, begin)),
                [&[program.as_str()][..], &words].concat().iter().map(|word| (*word).to_owned()).collect(),
            )
        }
        _ => {
            let path = match &tier.system.ready {
                Ready::Answers { path, status: (200, 200) } => Some(path.as_str()),
                _ => None,
            };
            let text = haproxy(&dir, tier.entry, (&servers, about.instances), path);
            (text, vec![program, "-db".into(), "-f".into(), file.display().to_string()])
        }
    };
    fs::write(&file, text).map_err(|error| cannot_write(&file, &error))?;
    let spec = served::spec(&name, command, &setup.run_dir, &setup.cores, false)?;
    let at = target(&tier.url(), &tier.system)?;
    Ok(Served::down(&name, spec, &at, &Ready::Connects, tier.system.ready_within).with_data(&dir))
}

/// nginx is told of a command that is to end before it does, by a new configuration. It passes over who refuses a
/// connection, for a second; it keeps idle connections shorter than an instance that
/// ends does. It repeats a request that was sent only if its method is idempotent.
fn nginx(dir: &Path, listen: SocketAddr, (servers, instances): (&[(&str, SocketAddr)], usize)) -> String {
    let mut upstream = String::new();
    for (index, (name, address)) in servers.iter().enumerate() {
        // those that may come later are told of then
        let state = if index < instances { "" } else { DOWN };
        let _ = writeln!(upstream, "    server {address} max_fails=1 fail_timeout=1s{state}; # {name}");
    }
    // as root it runs its workers as `nobody`, which cannot enter the run directory
    let user = if rustix::process::getuid().is_root() { "user root;\n" } else { "" };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|of| format!("  {of}_temp_path \"{}/{of}\";\n", dir.display()))
        .collect();
    format!(
        "{user}daemon off;
worker_processes auto;
worker_rlimit_nofile {files};
pid \"{dir}/nginx.pid\";
error_log stderr error;
events {{ worker_connections {connections}; }}
http {{
{temporary}  access_log off;
  keepalive_timeout 75s;
  keepalive_requests 1000000000;
  client_max_body_size 64m;
  map $http_upgrade $to_upgrade {{ default upgrade; '' ''; }}
  upstream instances {{
{upstream}    keepalive 512;
    keepalive_requests 1000000000;
    keepalive_timeout 1s;
  }}
  server {{
    listen {listen} backlog=4096;
    location / {{
      proxy_pass http://instances;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $to_upgrade;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_buffering off;
      proxy_connect_timeout 1s;
      proxy_read_timeout 75s;
      proxy_next_upstream error timeout;
    }}
  }}
}}
",
        dir = dir.display(),
        connections = connections_max(),
        files = connections_max() * 2 + 200,
    )
}

/// HAProxy asks each instance every second how it is, gives it time to answer, and is told of one that is to end before
/// it does. A request whose connection is refused goes to another at once, so that none fails until the checks know.
fn haproxy(
    dir: &Path,
    listen: SocketAddr,
    (servers, instances): (&[(&str, SocketAddr)], usize),
    health: Option<&str>,
) -> String {
    let check = match health {
        Some(path) => format!("  option httpchk GET {path}\n  http-check expect status 200\n"),
        None => String::new(),
    };
    let connections = connections_max();
    let servers: String = servers
        .iter()
        .enumerate()
        .map(|(index, (name, address))| {
            // those that may come later are told of then
            let state = if index < instances { "" } else { DISABLED };
            format!("  server {name} {address} {CHECK} pool-purge-delay 1s{state}\n")
        })
        .collect();
    format!(
        "global
  maxconn {connections}
  stats socket {dir}/{SOCKET} mode 600 level admin
defaults
  mode http
  timeout connect 1s
  timeout check {CHECK_WITHIN}
  timeout client 75s
  timeout server 75s
  timeout tunnel 1h
  timeout http-keep-alive 75s
  option http-keep-alive
  option forwardfor
  option redispatch 1
  retries 3
  retry-on conn-failure
frontend entry
  bind {listen} backlog 4096
  default_backend instances
backend instances
  balance roundrobin
  http-reuse safe
{check}{servers}",
        dir = dir.display()
    )
}

/// Connections that the machine lets it have: each takes two files.
fn connections_max() -> u64 {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap_or(u64::MAX);
    (files / 2).saturating_sub(200).clamp(100, 20_000)
}

/// Whether an instance is to have new requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// None: it is to end.
    Drain,
    /// Its share of them.
    Ready,
}

/// Tells a balancer whether an instance is to have new requests; before one ends, waits until it has answered those that
/// it has, while there is patience for that, at most 10 s.
///
/// # Errors
/// It cannot be told, or says something else than that it has understood.
pub fn set_state(
    balancer: &Mutex<Served>,
    instance: &str,
    state: State,
    patience: Patience<'_>,
) -> io::Result<()> {
    // not held while it is waited for: others look at it meanwhile
    let (dir, process) = {
        let balancer = held(balancer);
        (balancer.data_dir().map(Path::to_owned), balancer.process_id())
    };
    let Some(dir) = dir else { return Ok(()) };
    let until = Instant::now() + DRAIN_MAX;
    let wait = |is_busy: &dyn Fn() -> bool| {
        while state == State::Drain && is_busy() && patience() && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
    };
    let file = dir.join(format!("{}.conf", HAPROXY.programs[0]));
    if file.exists() {
        let socket = dir.join(SOCKET);
        if process.is_some() {
            let word = if state == State::Drain { "drain" } else { "ready" };
            // it is silent where all is well
            match say(&socket, &format!("set server instances/{instance} state {word}"))?.trim() {
                "" => {}
                told => return Err(io::Error::other(told.to_owned())),
            }
        }
        // for when it is started again
        rewrite(&file, |text| with_server(text, instance, state))?;
        if process.is_none() {
            return Ok(());
        }
        wait(&|| say(&socket, "show stat instances 4 -1").is_ok_and(|told| requests_of(&told, instance) > 0));
        return Ok(());
    }
    let file = dir.join(format!("{}.conf", NGINX.programs[0]));
    rewrite(&file, |text| with_state(text, instance, state))?;
    // one that is down reads it when it starts
    let Some(master) = process.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) else { return Ok(()) };
    let workers: Vec<Identity> = descendants(master).into_iter().filter_map(Identity::of).collect();
    rustix::process::kill_process(master, Signal::HUP)?;
    // those of the old configuration end once they have answered what they have
    wait(&|| workers.iter().any(Identity::is_there));
    Ok(())
}

/// Writes a file anew as a whole, so that a full disk leaves what was there.
fn rewrite(file: &Path, change: impl FnOnce(&str) -> String) -> io::Result<()> {
    let new = file.with_extension("new");
    fs::write(&new, change(&fs::read_to_string(file)?))?;
    fs::rename(&new, file)
}

/// The configuration of nginx, with this instance in another state.
fn with_state(text: &str, instance: &str, state: State) -> String {
    let end = format!(" # {instance}");
    let line = |line: &str| match line.strip_suffix(&end) {
        Some(server) => {
            let server = server.trim_end_matches(';').trim_end_matches(DOWN);
            format!("{server}{};{end}\n", if state == State::Drain { DOWN } else { "" })
        }
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// The configuration of HAProxy, with this instance in another state.
fn with_server(text: &str, instance: &str, state: State) -> String {
    let begin = format!("  server {instance} ");
    let line = |line: &str| match line.starts_with(&begin) {
        true => {
            let server = line.strip_suffix(DISABLED).unwrap_or(line);
            format!("{server}{}\n", if state == State::Drain { DISABLED } else { "" })
        }
        false => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Tells HAProxy something; returns what it says.
fn say(socket: &Path, words: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(WORD_WITHIN))?;
    stream.set_write_timeout(Some(WORD_WITHIN))?;
    stream.write_all(format!("{words}\n").as_bytes())?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    Ok(answer)
}

/// How many requests an instance has under way, by HAProxy's statistics: rows of names, of what they are of, and of
/// numbers, under a line that names the columns.
fn requests_of(statistics: &str, instance: &str) -> u64 {
    let mut lines = statistics.lines();
    let head = lines.next().unwrap_or_default().trim_start_matches("# ");
    let column = |name: &str| head.split(',').position(|of| of == name);
    let (Some(named), Some(count)) = (column("svname"), column("scur")) else { return 0 };
    let row = lines.map(|line| line.split(',').collect::<Vec<_>>());
    let own = row.into_iter().find(|row| row.get(named) == Some(&instance));
    own.and_then(|row| row.get(count)?.parse().ok()).unwrap_or(0)
}

/// Instances that HAProxy took out by its checks, each with the last reason that its log tells.
pub fn taken_out(log: &Path) -> Vec<(String, String)> {
    let mut text = Vec::new();
    // without a log nothing was told
    let _ = fs::File::open(log).and_then(|file| file.take(LOG_BYTES_MAX).read_to_end(&mut text));
    let mut out: Vec<(String, String)> = Vec::new();
    for line in String::from_utf8_lossy(&text).lines() {
        let Some((name, reason)) = out_of(line) else { continue };
        match out.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = reason,
            None => out.push((name, reason)),
        }
    }
    out
}

/// Who is out, and why, by a line of HAProxy's log.
fn out_of(line: &str) -> Option<(String, String)> {
    let (_, told) = line.split_once("Server instances/")?;
    let (name, told) = told.split_once(" is DOWN, reason: ")?;
    let reason = match told.split_once(", check duration").map_or(told, |(reason, _)| reason) {
        "Layer7 timeout" | "Layer6 timeout" => format!("health check timed out after {CHECK_WITHIN}"),
        other => match other.split_once("code: ") {
            Some((_, code)) => {
                let code = code.split(',').next().unwrap_or(code);
                format!("health check was answered with {code}")
            }
            None => format!("health check: {other}"),
        },
    };
    Some((name.to_owned(), reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_is_told_of_one_instance_and_as_often_as_need_be() {
        let servers = [("web.1", "127.0.0.1:1"), ("web.11", "127.0.0.1:11"), ("web.2", "127.0.0.1:2")];
        let servers = servers.map(|(name, address)| (name, address.parse().unwrap()));
        let text = nginx(Path::new("/x"), "127.0.0.1:9".parse().unwrap(), (&servers, 2));
        let of = |text: &str| {
            let down = text.lines().filter(|line| line.contains(" down;"));
            down.map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of(&text), ["web.2"]);
        let drained = with_state(&text, "web.1", State::Drain);
        assert_eq!(of(&drained), ["web.1", "web.2"]);
        assert_eq!(with_state(&drained, "web.1", State::Drain), drained);
        assert_eq!(with_state(&drained, "web.1", State::Ready), text);
    }

    #[test]
    fn haproxy_reads_the_same_state_when_it_is_started_again() {
        let text = "defaults\n  server web.1 a:1 check\n  server web.10 a:2 check disabled\n";
        let drained = with_server(text, "web.1", State::Drain);
        assert_eq!(drained, text.replace("a:1 check", "a:1 check disabled"));
        assert_eq!(with_server(&drained, "web.1", State::Drain), drained);
        assert_eq!(with_server(&drained, "web.1", State::Ready), text);
        assert_eq!(with_server(text, "web.10", State::Ready), text.replace(DISABLED, ""));
    }

    #[test]
    fn the_requests_of_an_instance_are_those_of_its_row() {
        let told =
            "# pxname,svname,qcur,qmax,scur,smax\ninstances,web.1,0,0,3,9\ninstances,web.2,0,0,0,9\n\n";
        let counts = ["web.1", "web.2", "web.3"].map(|name| requests_of(told, name));
        assert_eq!(counts, [3, 0, 0]);
        assert_eq!(requests_of("Unknown command", "web.1"), 0);
    }

    #[test]
    fn the_log_says_who_was_taken_out_and_why() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        assert_eq!(taken_out(&log), []);
        let text = "[NOTICE]   (7) : Loading success.
[WARNING]  (7) : Server instances/web.1 is DOWN, reason: Layer4 connection problem, info: \"Connection refused\", check duration: 0ms. 1 active
[WARNING]  (7) : Server instances/web.1 is UP, reason: Layer7 check passed, code: 200, check duration: 1ms.
[WARNING]  (7) : Server instances/web.1 is DOWN, reason: Layer7 timeout, check duration: 2001ms. 1 active
[WARNING]  (7) : Server instances/web.2 is DOWN, reason: Layer7 wrong status, code: 503, info: \"Service Unavailable\", check duration: 1ms.
[WARNING]  (7) : Server instances/web.3 is DOWN, reason: Layer4 connection problem, info: \"Connection refused\", check duration: 0ms.
";
        fs::write(&log, text).unwrap();
        let told = |name: &str, reason: &str| (name.to_owned(), reason.to_owned());
        let expected = [
            told("web.1", "health check timed out after 2s"),
            told("web.2", "health check was answered with 503"),
            told("web.3", "health check: Layer4 connection problem, info: \"Connection refused\""),
        ];
        assert_eq!(taken_out(&log), expected);
    }
}
