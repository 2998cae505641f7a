//! An ext4 in a file of its own, by the tools that every Linux with ext4 has.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Where the tools are, beside what `PATH` says: a user's often leaves these out.
const SYSTEM_PATH: &str = "/usr/sbin:/sbin:/usr/bin:/bin";
/// Bytes of a block: what a file takes is counted in these.
const BLOCK_BYTES: &str = "4096";
/// Longest time that a tool may take.
const TOOL_MAX: Duration = Duration::from_secs(60);
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How much of its complaint is read.
const COMPLAINT_BYTES_MAX: u64 = 4096;

/// Makes one of so many bytes and mounts it at a folder. Nothing is left of it once it is unmounted: the file has no
/// name by then. Its blocks are taken only as they are written; filling it takes none.
///
/// # Errors
/// Why there can be none, in a few words.
pub fn mount(folder: &Path, bytes: u64) -> Result<(), String> {
    let free = free_bytes(folder).ok_or("it is not known how much room there is")?;
    if free < bytes {
        return Err(format!("no ext4: of {} MiB only {} are free there", bytes >> 20, free >> 20));
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let image = folder.with_file_name(format!("{name}.image"));
    let made = File::create(&image).and_then(|file| file.set_len(bytes));
    let mounted = made.map_err(|error| format!("no ext4: {error}")).and_then(|()| {
        // no blocks are kept back for root, who is who fills it
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0", "-b", BLOCK_BYTES]).arg(&image))?;
        run(Command::new("mount").args(["-t", "ext4", "-o", "loop,nosuid,nodev"]).arg(&image).arg(folder))
    });
    let _ = fs::remove_file(&image);
    mounted
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let path =
        std::env::var("PATH").map_or_else(|_| SYSTEM_PATH.into(), |own| format!("{own}:{SYSTEM_PATH}"));
    command.env("PATH", path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("no {name}: {error}"))?;
    let begin = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begin.elapsed() < TOOL_MAX => std::thread::sleep(LOOK_EVERY),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{name} took longer than {TOOL_MAX:?}"));
            }
        }
    };
    if status.success() {
        return Ok(());
    }
    let mut complaint = String::new();
    if let Some(errors) = child.stderr {
        // what it says is a help, not more
        let _ = errors.take(COMPLAINT_BYTES_MAX).read_to_string(&mut complaint);
    }
    let first = complaint.lines().map(str::trim).find(|line| !line.is_empty());
    Err(format!("{name} failed: {}", first.unwrap_or("it does not say why")))
}

#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<u64> {
    let room = rustix::fs::statvfs(folder).ok()?;
    room.f_bavail.checked_mul(room.f_frsize)
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_said_in_a_few_words() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("disk");
        fs::create_dir(&place).unwrap();
        assert!(mount(&place, u64::MAX).unwrap_err().contains("are free there"));
        let error = run(Command::new("sh").args(["-c", "echo; echo no loop >&2; exit 1"])).unwrap_err();
        assert_eq!(error, "sh failed: no loop");
        assert!(run(&mut Command::new("no-such-tool")).unwrap_err().starts_with("no no-such-tool: "));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no image is left");
    }
}
