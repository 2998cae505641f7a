//! A run of the program, watched from outside: what it printed, and how far the machine kept it from running.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Time between two looks at the program's threads.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Longest time that a run may take.
const LONGEST_RUN: Duration = Duration::from_secs(180);

/// What a run came to.
pub struct Watched {
    /// What `--json` printed.
    pub summary: Value,
    /// Exit status.
    pub status: i32,
    /// What it said beside.
    pub stderr: String,
    /// What the machine did to it.
    pub machine: Machine,
}

/// What the machine did to a run, from outside the run.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// How long it took.
    pub elapsed_s: f64,
    /// How long its driving threads were on a CPU, the busiest.
    pub cpu_s: f64,
    /// How long its driving threads were ready to run but had no core, all together.
    pub waited_s: f64,
    /// How long cores were taken away by the hypervisor, or by a limit on this control group.
    pub stolen_s: f64,
}

/// A run under way.
pub struct Running {
    child: Child,
    dir: tempfile::TempDir,
    began: Instant,
    stolen_s: f64,
}

/// Starts `tidemark run` on a scenario, with `--json`.
pub fn start(scenario: &str, args: &[&str]) -> Running {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("scenario.yaml");
    fs::write(&file, scenario).expect("the scenario is written");
    let child = crate::common::tidemark()
        .arg("run")
        .arg(&file)
        .args(["--json", "--quiet"])
        .args(args)
        .arg("--out")
        .arg(dir.path().join("run"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tidemark runs");
    Running { child, dir, began: Instant::now(), stolen_s: stolen_s() }
}

impl Running {
    /// Whether it has not ended.
    pub fn goes_on(&mut self) -> bool {
        self.child.try_wait().expect("wait").is_none()
    }

    /// Sends it a signal, if it has not ended.
    pub fn signal(&mut self, signal: Signal) {
        if self.goes_on() {
            kill_process(Pid::from_child(&self.child), signal).expect("a signal to a child of ours");
        }
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Watched {
        let mut threads: BTreeMap<String, Times> = BTreeMap::new();
        while self.goes_on() {
            if self.began.elapsed() > LONGEST_RUN {
                let _ = self.child.kill();
                panic!("the run did not end within {LONGEST_RUN:?}");
            }
            for (thread, times) in driving_threads(self.child.id()) {
                threads.insert(thread, times);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let machine = Machine {
            elapsed_s: self.began.elapsed().as_secs_f64(),
            cpu_s: threads.values().map(|times| times.cpu_s).fold(0.0, f64::max),
            waited_s: threads.values().map(|times| times.waited_s).sum(),
            stolen_s: stolen_s() - self.stolen_s,
        };
        let output = self.child.wait_with_output().expect("the run has ended");
        drop(self.dir);
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let summary = serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e}: {stdout}\n{stderr}"));
        Watched { summary, status: output.status.code().unwrap_or(-1), stderr, machine }
    }
}

/// The kernel's account of a thread.
#[derive(Clone, Copy)]
struct Times {
    cpu_s: f64,
    /// Ready to run without a core. A wait is counted when it is over.
    waited_s: f64,
}

/// That of each driving thread of a process.
fn driving_threads(process: u32) -> Vec<(String, Times)> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let tasks = tasks.flatten().map(|task| task.path());
    tasks
        .filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with("drive-")))
        .filter_map(|task| {
            let times = fs::read_to_string(task.join("schedstat")).ok()?;
            let mut times = times.split_whitespace().map_while(|number| number.parse::<f64>().ok());
            let times = Times { cpu_s: times.next()? / 1e9, waited_s: times.next()? / 1e9 };
            Some((task.display().to_string(), times))
        })
        .collect()
}

/// Seconds of cores that were taken away since the machine began.
fn stolen_s() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: f64 = stat.split_whitespace().nth(8).and_then(|ticks| ticks.parse().ok()).unwrap_or(0.0);
    let by_limit = fs::read_to_string(Path::new("/sys/fs/cgroup/cpu.stat")).unwrap_or_default();
    let throttled_us: f64 = by_limit
        .lines()
        .find_map(|line| line.strip_prefix("throttled_usec ")?.trim().parse().ok())
        .unwrap_or(0.0);
    ticks / rustix::param::clock_ticks_per_second() as f64 + throttled_us / 1e6
}
