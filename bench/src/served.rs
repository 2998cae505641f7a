//! The server as a process of its own, on its own cores, fresh for each tool.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::process;

/// Longest time that a server takes to end once it was told to.
const END: Duration = Duration::from_secs(20);

/// A server that runs.
#[derive(Debug)]
pub struct Served {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Where it listens, `127.0.0.1:4711`.
    pub address: String,
}

/// What it did.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// The JSON object that it printed at its end.
    pub said: serde_json::Value,
    /// User and system time, seconds.
    pub cpu_s: f64,
}

impl Account {
    /// A number of the object.
    pub fn number(&self, key: &str) -> f64 {
        self.said[key].as_f64().unwrap_or(0.0)
    }
}

/// Starts a program that prints `listening ADDRESS` and ends when its input does.
pub fn start(command: &[String], cores: &str) -> std::io::Result<Served> {
    let mut child = Command::new("taskset")
        .args(["-c", cores])
        .args(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let broken = || std::io::Error::other("the server did not come up");
    let (input, output) = child.stdin.take().zip(child.stdout.take()).ok_or_else(broken)?;
    let mut output = BufReader::new(output);
    let mut line = String::new();
    output.read_line(&mut line)?;
    let address = line.trim().strip_prefix("listening ").ok_or_else(broken)?;
    let address = address.trim_start_matches("http://").to_owned();
    Ok(Served { child, input, output, address })
}

impl Served {
    /// Ends it.
    pub fn end(mut self) -> std::io::Result<Account> {
        drop(self.input);
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        let used = process::wait(self.child, END)?;
        let said = serde_json::from_str(text.trim()).map_err(std::io::Error::other)?;
        Ok(Account { said, cpu_s: used.cpu_s })
    }
}
