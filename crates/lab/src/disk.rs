//! A small file system of its own for the system's data, for the fault that fills it.
//!
//! It is a tmpfs, mounted within the run directory: so a full disk is full for nobody else. It goes with the run on
//! every way out. Should this process be killed, a small shell that waits for our end detaches it; what still has files
//! open there keeps them until it ends, too.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::child::StandBy;
use crate::error::LabError;

/// The folder within the run directory.
const FOLDER: &str = "disk";
/// The file that takes what is left. The data is in a folder beside it, so that no system finds it there.
const FILLER: &str = "filler";
/// The most that is taken in one piece.
const PIECE_BYTES_MAX: u64 = 16 << 20;
/// The least: less is not handed out.
const PIECE_BYTES_MIN: u64 = 4 << 10;
/// Where the kernel says how much memory there is.
const MEMORY: &str = "/proc/meminfo";

/// A file system; unmounted when dropped.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    bytes: u64,
    // after the unmount: until then it stands by
    _guard: StandBy,
}

impl Disk {
    /// Mounts one of so many bytes in a run directory. `fault`: what it is needed for.
    ///
    /// # Errors
    /// Wrong use, where this process may not mount, or there is no memory for it.
    pub fn mount(run_dir: &Path, bytes: u64, fault: &str) -> Result<Disk, LabError> {
        let cannot = |why: String, way_out: &str| {
            LabError::Usage(format!(
                "`{fault}` needs a file system of its own for the system's data, {why}; {way_out}, or leave the fault out"
            ))
        };
        let meminfo = fs::read_to_string(MEMORY).unwrap_or_default();
        if let Some(free) = available_bytes(&meminfo).filter(|free| *free < bytes) {
            let why = format!("in memory, and of {} MiB only {} MiB are free", bytes >> 20, free >> 20);
            return Err(cannot(why, "give it a smaller `disk`"));
        }
        let folder = run_dir.join(FOLDER);
        let made = fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
        let folder =
            made.map_err(|error| cannot(format!("and {error}"), "choose another place with --out"))?;
        // first, so that there is never a mount without one
        let guard = StandBy::over_mount(&folder)
            .map_err(|error| cannot(format!("and nobody can stand by: {error}"), "free some processes"))?;
        if let Err(error) = os::mount(&folder, bytes) {
            let _ = fs::remove_dir(&folder);
            let why = format!("and this process may not mount one ({error})");
            return Err(cannot(why, "run as root (it takes CAP_SYS_ADMIN)"));
        }
        Ok(Disk { folder, bytes, _guard: guard })
    }

    /// Where it is mounted.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What a reader of the figures must know.
    pub fn note(&self) -> String {
        format!(
            "the system's data was on a tmpfs of {} MiB within the run directory, for the fault that fills it: that is memory, \
             where a sync costs next to nothing; latencies of writes are not those of a disk",
            self.bytes >> 20
        )
    }

    /// Begins to fill it.
    ///
    /// # Errors
    /// Where the file that is to fill it cannot be made.
    pub fn fill(&self) -> io::Result<Filling> {
        let path = self.folder.join(FILLER);
        Ok(Filling { file: File::create(&path)?, path, bytes: 0 })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if os::unmount(&self.folder).is_ok() {
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

/// What takes all the room; gone when dropped.
#[derive(Debug)]
pub struct Filling {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl Filling {
    /// Takes what is left by now, as long as there is patience.
    ///
    /// # Errors
    /// Where something else than the end of the room is in the way.
    pub fn take_the_rest(&mut self, patience: &dyn Fn() -> bool) -> io::Result<()> {
        let mut piece = PIECE_BYTES_MAX;
        while piece >= PIECE_BYTES_MIN && patience() {
            match os::allocate(&self.file, self.bytes, piece) {
                Ok(()) => self.bytes += piece,
                Err(error) if error.kind() == io::ErrorKind::StorageFull => piece /= 2,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        // the room is free once the file is closed, a moment later; emptied, it is free now
        let _ = self.file.set_len(0);
        let _ = fs::remove_file(&self.path);
    }
}

/// Memory that can be had without swapping.
fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(target_os = "linux")]
mod os {
    use std::ffi::CString;
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::mount::{MountFlags, UnmountFlags};

    /// What a list of mounts calls it.
    const SOURCE: &str = "tidemark";

    pub fn mount(folder: &Path, bytes: u64) -> io::Result<()> {
        let options = CString::new(format!("size={bytes},mode=0700"))?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        Ok(rustix::mount::mount(SOURCE, folder, "tmpfs", flags, options.as_c_str())?)
    }

    /// Where something is still open there, it goes when that is closed.
    pub fn unmount(folder: &Path) -> io::Result<()> {
        let flags = UnmountFlags::NOFOLLOW;
        rustix::mount::unmount(folder, flags)
            .or_else(|_| rustix::mount::unmount(folder, flags | UnmountFlags::DETACH))?;
        Ok(())
    }

    pub fn allocate(file: &File, from: u64, bytes: u64) -> io::Result<()> {
        Ok(fallocate(file, FallocateFlags::empty(), from, bytes)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod os {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub fn mount(_: &Path, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn unmount(_: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn allocate(_: &File, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_mounted(folder: &Path) -> bool {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        mounts.lines().any(|line| line.split(' ').nth(1) == folder.to_str())
    }

    #[test]
    fn a_disk_is_full_until_it_is_not_and_leaves_nothing() {
        let run_dir = tempfile::tempdir().unwrap();
        let disk = match Disk::mount(run_dir.path(), 8 << 20, "fill system for 5s") {
            Ok(disk) => disk,
            Err(error) => {
                // where it may not mount, that is all that can be looked at
                assert_eq!(error.exit_status(), 2);
                assert!(error.to_string().contains("run as root"), "{error}");
                return eprintln!("skipped: {error}");
            }
        };
        let folder = disk.folder().to_owned();
        assert!(is_mounted(&folder));
        let write = |name: &str| fs::write(folder.join(name), vec![1; 64 << 10]);
        write("early").unwrap();
        let mut filling = disk.fill().unwrap();
        filling.take_the_rest(&|| true).unwrap();
        assert_eq!(write("late").unwrap_err().kind(), io::ErrorKind::StorageFull);
        // what is freed meanwhile is taken, too
        fs::remove_file(folder.join("early")).unwrap();
        filling.take_the_rest(&|| true).unwrap();
        assert_eq!(write("later").unwrap_err().kind(), io::ErrorKind::StorageFull);
        drop(filling);
        write("last").unwrap();
        // an open file keeps nobody from going
        let open = File::open(folder.join("last")).unwrap();
        drop(disk);
        assert!(!is_mounted(&folder) && !folder.exists());
        drop(open);
    }

    #[test]
    fn more_than_there_is_memory_is_refused() {
        assert_eq!(available_bytes("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!(available_bytes("MemAvailable: much"), None);
        let run_dir = tempfile::tempdir().unwrap();
        if available_bytes(&fs::read_to_string(MEMORY).unwrap_or_default()).is_some() {
            let error = Disk::mount(run_dir.path(), u64::MAX, "fill system for 5s").unwrap_err();
            assert!(error.to_string().contains("smaller `disk`"), "{error}");
        }
    }
}
