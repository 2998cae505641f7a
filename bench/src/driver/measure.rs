//! One run of one tool against a fresh server.

use std::path::PathBuf;
use std::time::Duration;

use crate::shape::Shape;
use crate::tool::{Figures, Tool, find, words};
use crate::{machine, process, served};

/// Longest time that a tool may take beyond its seconds.
const OVERTIME: Duration = Duration::from_secs(60);

/// Where everything happens.
#[derive(Debug)]
pub struct Place {
    /// Cores of the server, as taskset takes them.
    pub server_cores: String,
    /// Its threads, one for each of these cores.
    pub threads: usize,
    /// The tools' core.
    pub client_core: String,
    dir: tempfile::TempDir,
}

/// What came of a run: the server's and the kernel's account, and what the tool said.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Requests that the server answered.
    pub requests: f64,
    /// The same for each second from its first answer to its last.
    pub per_s: f64,
    /// User and system time of the tool, and what the kernel's network thread did on its core meanwhile, seconds.
    pub cpu_s: f64,
    /// Most memory that the tool held, bytes.
    pub peak_bytes: u64,
    /// Cores that the server kept busy.
    pub server_cores: f64,
    /// Connections that the server accepted.
    pub connections: f64,
    /// Share of TLS handshakes that were resumed.
    pub resumed: f64,
    /// What the tool said of it.
    pub said: Figures,
    fine: bool,
}

impl Measured {
    /// Requests for each second of the tool's CPU.
    pub fn per_cpu_s(&self) -> f64 {
        self.requests / self.cpu_s.max(1e-6)
    }

    /// What is to be said about it.
    pub fn remark(&self) -> String {
        // ours ends with a status of its own where it was the limit, and says so
        match self.fine || !self.said.remark.is_empty() {
            true => self.said.remark.clone(),
            false => "did not end well".to_owned(),
        }
    }
}

impl Place {
    /// The cores of both sides.
    pub fn new(server_cores: String, client_core: String) -> std::io::Result<Place> {
        let threads = count_cores(&server_cores).ok_or_else(|| {
            std::io::Error::other(format!("`{server_cores}` are no cores; write 0-1 or 0,1"))
        })?;
        Ok(Place { server_cores, threads, client_core, dir: tempfile::tempdir()? })
    }

    /// Runs a tool once; none where it cannot do that.
    pub fn measure(
        &self,
        shape: &Shape,
        tool: &dyn Tool,
        connections: usize,
        seconds: u64,
        rate: Option<u64>,
    ) -> std::io::Result<Option<Measured>> {
        let dir = self.fresh_dir(tool)?;
        let own = std::env::current_exe()?.display().to_string();
        let mut command = words([&own, "serve", "--threads", &self.threads.to_string()]);
        if shape.tls {
            command.push("--tls".to_owned());
        }
        let server = served::start(&command, &self.server_cores)?;
        let mut job = shape.job(&server.address, seconds, rate, &dir)?;
        job.connections = connections;
        let (Some(program), Some(arguments)) = (find(tool.program()), tool.arguments(&job)?) else {
            server.end()?;
            return Ok(None);
        };
        let limit = Duration::from_secs(seconds) + OVERTIME;
        let with = |arguments: Vec<String>| [vec![program.display().to_string()], arguments].concat();
        let network_s = machine::network_thread_s(&self.client_core);
        let mut used = process::run(&with(arguments), &self.client_core, limit, &dir)?;
        let network_s = machine::network_thread_s(&self.client_core) - network_s;
        let account = server.end()?;
        if let Some(report) = tool.report(&job) {
            used.stdout = process::run(&with(report), &self.client_core, OVERTIME, &dir)?.stdout;
        }
        if !used.fine && std::env::var_os("BENCH_DEBUG").is_some() {
            eprintln!("{}: {}\n{}", tool.name(), used.stdout, used.stderr);
        }
        let active_s = account.number("active_us") / 1e6;
        Ok(Some(Measured {
            requests: account.number("requests"),
            per_s: account.number("requests") / active_s.max(1e-3),
            cpu_s: used.cpu_s + network_s,
            peak_bytes: used.peak_bytes,
            server_cores: account.cpu_s / used.wall_s.max(1e-3),
            connections: account.number("connections"),
            resumed: account.number("resumed") / account.number("connections").max(1.0),
            said: tool.figures(&job, &used),
            fine: used.fine,
        }))
    }

    /// A directory for what a tool reads and writes, empty.
    fn fresh_dir(&self, tool: &dyn Tool) -> std::io::Result<PathBuf> {
        let dir = self.dir.path().join(tool.program());
        match std::fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => std::fs::create_dir_all(&dir).map(|()| dir),
        }
    }
}

/// How many cores `0-1,3` names.
fn count_cores(text: &str) -> Option<usize> {
    text.split(',')
        .map(|part| match part.split_once('-') {
            None => part.parse::<usize>().ok().map(|_| 1),
            Some((from, to)) => (to.parse::<usize>().ok()? + 1).checked_sub(from.parse().ok()?),
        })
        .sum::<Option<usize>>()
        .filter(|cores| *cores > 0)
}

/// A tool and its version in a line.
pub fn version(tool: &dyn Tool) -> Option<String> {
    let flag = match tool.name() {
        "wrk" | "wrk2" => "-v",
        "ab" => "-V",
        "k6" => "version",
        "hey" => return Some("hey (it does not tell its version)".to_owned()),
        "vegeta" => return Some("vegeta (as `bench/peers` builds it)".to_owned()),
        _ => "--version",
    };
    let output = std::process::Command::new(find(tool.program())?).arg(flag).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find(|line| !line.trim().is_empty())?.trim();
    Some(line.split(" Copyright").next().unwrap_or(line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_counted() {
        assert_eq!(count_cores("0-1,3"), Some(3));
        assert_eq!(count_cores("2"), Some(1));
        assert_eq!(count_cores("x"), None);
        assert_eq!(count_cores("3-1"), None);
    }
}
