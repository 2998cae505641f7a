//! A tool as the kernel saw it: pinned to cores, bounded in time, its CPU and memory from the kernel's account.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often it is asked whether a child has ended.
const LOOK: Duration = Duration::from_millis(5);

/// What a process used and said.
#[derive(Debug, Clone, Default)]
pub struct Used {
    /// User and system time, seconds.
    pub cpu_s: f64,
    /// Most memory that it held at once, bytes.
    pub peak_bytes: u64,
    /// How long it ran, seconds.
    pub wall_s: f64,
    /// Whether it ended by itself, within its time, with status 0.
    pub fine: bool,
    /// What it wrote.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

/// Runs a command on these cores; kills it after `limit`.
pub fn run(command: &[String], cores: &str, limit: Duration, dir: &Path) -> io::Result<Used> {
    let (out, err) = (dir.join("stdout"), dir.join("stderr"));
    let child = Command::new("taskset")
        .args(["-c", cores])
        .args(command)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?)
        .spawn()
        .map_err(|error| io::Error::other(format!("taskset {}: {error}", command.join(" "))))?;
    let mut used = wait(child, limit)?;
    used.stdout = String::from_utf8_lossy(&std::fs::read(out)?).into_owned();
    used.stderr = String::from_utf8_lossy(&std::fs::read(err)?).into_owned();
    Ok(used)
}

/// Waits for the end of a child and reads its account.
pub fn wait(mut child: std::process::Child, limit: Duration) -> io::Result<Used> {
    let (start, mut killed) = (Instant::now(), false);
    loop {
        if let Some((status, usage)) = ended(child.id())? {
            let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
            return Ok(Used {
                cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
                peak_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1_024,
                wall_s: start.elapsed().as_secs_f64(),
                fine: status == 0 && !killed,
                ..Used::default()
            });
        }
        if !killed && start.elapsed() > limit {
            child.kill()?;
            killed = true;
        }
        std::thread::sleep(LOOK);
    }
}

/// The status and the account of a child that has ended; none while it runs.
fn ended(id: u32) -> io::Result<Option<(i32, libc::rusage)>> {
    let id = libc::pid_t::try_from(id).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: a struct of integers, for which zeros are values; and two places that the call writes to and that
    // outlive it. The child is ours and nobody else waits for it.
    #[allow(unsafe_code)]
    let (found, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(id, &raw mut status, libc::WNOHANG, &raw mut usage), usage)
    };
    match found {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => Ok(Some((status, usage))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Duration) -> Used {
        let dir = tempfile::tempdir().unwrap();
        let command = ["sh", "-c", script].map(str::to_owned);
        run(&command, "0", limit, dir.path()).unwrap()
    }

    #[test]
    fn what_it_says_and_how_it_ends() {
        let used = sh("echo yes; echo no >&2", Duration::from_secs(60));
        assert!(used.fine && used.peak_bytes > 0);
        assert_eq!((used.stdout.as_str(), used.stderr.as_str()), ("yes\n", "no\n"));
        assert!(!sh("exit 3", Duration::from_secs(60)).fine);
    }

    #[test]
    fn cpu_time_is_the_work_and_not_the_wait() {
        assert!(
            sh("i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done", Duration::from_secs(60)).cpu_s > 0.01
        );
        let asleep = sh("sleep 1", Duration::from_secs(60));
        assert!(asleep.cpu_s < asleep.wall_s / 2.0);
    }

    #[test]
    fn what_does_not_end_is_ended() {
        let used = sh("exec sleep 600", Duration::from_millis(50));
        assert!(!used.fine);
    }
}
