//! Small file systems of their own for the data of the system and of stores, for the fault that fills them.
//!
//! Each is an ext4 in a file that is mounted within the run directory (or a tmpfs, where that cannot be had): so a full
//! disk is full for nobody else. They go with the run on every way out. Should this process be killed, a small shell
//! that waits for our end detaches them; what still has files open there keeps them until it ends, too.

mod image;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tidemark_scenario::plan::Fault;

use crate::child::Watchdog;
use crate::error::LabError;

/// The folder within the run directory.
const FOLDER: &str = "disk";
/// The file that takes what is left.
const FILLER: &str = "filler";
/// The folder of the data, beside that, so that nobody finds it there.
const DATA: &str = "data";
/// The most that is taken in one piece.
const PIECE_BYTES_MAX: u64 = 16 << 20;
/// The least: less is not handed out.
const PIECE_BYTES_MIN: u64 = 4 << 10;
/// Where the kernel says how much memory there is.
const MEMORY: &str = "/proc/meminfo";

/// The disks of a run by the name of what has its data there: `system`, `cassandra.2`.
#[derive(Debug, Default)]
pub struct Disks(Vec<(String, Disk)>);

impl Disks {
    /// Mounts one for each of `names` that a fault is to fill.
    ///
    /// # Errors
    /// Wrong use, where this process may not mount, or there is no room for it.
    pub fn mount(run_dir: &Path, faults: &[Fault], names: &[String]) -> Result<Disks, LabError> {
        let mut disks = Disks::default();
        for name in names {
            let about = faults.iter().filter(|fault| fault.is_about(name));
            let sizes = about.filter_map(|fault| Some((fault.kind.disk_bytes()?, fault)));
            if let Some((bytes, fault)) = sizes.max_by_key(|(bytes, _)| *bytes) {
                disks.0.push((name.clone(), Disk::mount(run_dir, name, bytes, fault)?));
            }
        }
        Ok(disks)
    }

    /// The disk of a name, where it has one.
    pub fn of(&self, name: &str) -> Option<&Disk> {
        self.0.iter().find(|(owner, _)| owner == name).map(|(_, disk)| disk)
    }

    /// The folder for the data of a name, where that has a disk.
    pub fn data_of(&self, name: &str) -> Option<PathBuf> {
        self.of(name).map(|disk| disk.folder.join(DATA))
    }

    /// What a reader of the figures must know.
    pub fn notes(&self) -> Vec<String> {
        self.0.iter().map(|(name, disk)| disk.note(name)).collect()
    }
}

/// What is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// An ext4 in a file beside the run's.
    Ext4,
    /// Memory, and why it is no ext4.
    Tmpfs(String),
}

/// A file system; unmounted when dropped.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    bytes: u64,
    kind: Kind,
    // after the unmount: until then it stands by
    _guard: Watchdog,
}

impl Disk {
    /// Mounts one of so many bytes for what is called `name`. `fault`: what it is needed for.
    fn mount(run_dir: &Path, name: &str, bytes: u64, fault: &Fault) -> Result<Disk, LabError> {
        let cannot = |why: String, way_out: &str| {
            LabError::Usage(format!(
                "`{fault}` needs a file system of its own for the data of {name}, {why}; {way_out}, or leave the fault out"
            ))
        };
        let folder = run_dir.join(FOLDER).join(name);
        let made = fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
        let folder =
            made.map_err(|error| cannot(format!("and {error}"), "choose another place with --out"))?;
        // first, so that there is never a mount without one
        let guard = Watchdog::over_mount(&folder).map_err(|error| {
            cannot(format!("and no watchdog can be started: {error}"), "free some processes")
        })?;
        let mut disk = Disk { folder, bytes, kind: Kind::Ext4, _guard: guard };
        let Err(reason) = image::mount(&disk.folder, bytes) else { return Ok(disk) };
        if let Some(free) = free_memory().filter(|free| *free < bytes) {
            let (wanted, free) = (bytes >> 20, free >> 20);
            let why =
                format!("which can only be in memory ({reason}), and of {wanted} MiB only {free} are free");
            return Err(cannot(why, "give it a smaller `disk`"));
        }
        if let Err(error) = os::mount_tmpfs(&disk.folder, bytes) {
            let why = format!("and this process may not mount one ({error})");
            return Err(cannot(why, "run as root (it takes CAP_SYS_ADMIN)"));
        }
        disk.kind = Kind::Tmpfs(reason);
        Ok(disk)
    }

    fn note(&self, name: &str) -> String {
        let mib = self.bytes >> 20;
        let what = match &self.kind {
            Kind::Ext4 => format!(
                "an ext4 of {mib} MiB in a file beside the run: a sync waits for the disk under it, and takes the time of \
                 one more file system"
            ),
            Kind::Tmpfs(reason) => format!(
                "a tmpfs of {mib} MiB within the run directory ({reason}): that is memory, where a sync costs next to \
                 nothing; latencies of writes are not those of a disk"
            ),
        };
        format!("the data of {name} was on a disk of its own, for the fault that fills it; {what}")
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
        // what is still mounted cannot be removed, nor can a folder that has others in it
        let _ = os::unmount(&self.folder);
        let _ = fs::remove_dir(&self.folder);
        let _ = self.folder.parent().map(fs::remove_dir);
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
        // a file system with a journal has the room once that is written
        let _ = self.path.parent().map(File::open).map(|folder| folder.and_then(|folder| folder.sync_all()));
    }
}

/// Whether what is written there is only in memory: a tmpfs.
pub(crate) fn is_memory(folder: &Path) -> bool {
    os::is_tmpfs(folder)
}

/// Memory that is free on this machine, bytes; none where it does not say.
pub(crate) fn free_memory() -> Option<u64> {
    available_bytes(&fs::read_to_string(MEMORY).unwrap_or_default())
}

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

    use rustix::fs::{FallocateFlags, fallocate, statfs};
    use rustix::mount::{MountFlags, UnmountFlags};

    /// What a list of mounts calls it.
    const SOURCE: &str = "tidemark";

    pub fn is_tmpfs(folder: &Path) -> bool {
        // TMPFS_MAGIC of statfs(2)
        statfs(folder).is_ok_and(|about| about.f_type == 0x0102_1994)
    }

    pub fn mount_tmpfs(folder: &Path, bytes: u64) -> io::Result<()> {
        let options = CString::new(format!("size={bytes},mode=0700"))?;
        // Java loads its native libraries from there
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
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

    pub fn is_tmpfs(_: &Path) -> bool {
        false
    }

    pub fn mount_tmpfs(_: &Path, _: u64) -> io::Result<()> {
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

    fn fill(bytes: u64) -> Vec<Fault> {
        let kind = tidemark_scenario::plan::FaultKind::Fill { disk_bytes: bytes };
        let lasts = Some(std::time::Duration::from_secs(5));
        vec![Fault { at: std::time::Duration::ZERO, share: None, target: "store".into(), kind, lasts }]
    }

    /// Full until it is not, and nothing is left of it.
    fn is_filled_and_freed(disk: Disk) {
        let folder = disk.folder.clone();
        assert!(is_mounted(&folder));
        let write = |name: &str| {
            let mut file = File::create(folder.join(name))?;
            io::Write::write_all(&mut file, &[1; 64 << 10])?;
            file.sync_all()
        };
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
    fn a_disk_is_full_until_it_is_not_and_leaves_nothing() {
        let run_dir = tempfile::tempdir().unwrap();
        let names = ["system", "store.1", "store.2"].map(str::to_owned);
        let disks = match Disks::mount(run_dir.path(), &fill(16 << 20), &names) {
            Ok(disks) => disks,
            Err(error) => {
                // where it may not mount, that is all that can be looked at
                assert_eq!(error.exit_status(), 2);
                assert!(error.to_string().contains("run as root"), "{error}");
                return eprintln!("skipped: {error}");
            }
        };
        assert!(disks.of("system").is_none(), "nobody fills it");
        assert_eq!(disks.data_of("store.2"), disks.of("store.2").map(|disk| disk.folder.join("data")));
        let notes = disks.notes();
        for (name, disk) in disks.0 {
            is_filled_and_freed(disk);
            assert!(notes.iter().any(|note| note.contains(&name) && note.contains("of 16 MiB")), "{notes:?}");
        }
        assert_eq!(fs::read_dir(run_dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn memory_stands_in_where_there_is_no_ext4() {
        let folder = tempfile::tempdir().unwrap();
        let kind = Kind::Tmpfs("no mkfs.ext4".into());
        let _guard = Watchdog::over_mount(folder.path()).unwrap();
        if let Err(error) = os::mount_tmpfs(folder.path(), 8 << 20) {
            return eprintln!("skipped: {error}");
        }
        let disk = Disk { folder: folder.path().canonicalize().unwrap(), bytes: 8 << 20, kind, _guard };
        assert!(disk.note("system").contains("a tmpfs of 8 MiB within the run directory (no mkfs.ext4)"));
        is_filled_and_freed(disk);
    }

    #[test]
    fn more_than_there_is_room_is_refused() {
        assert_eq!(available_bytes("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!(available_bytes("MemAvailable: much"), None);
        let run_dir = tempfile::tempdir().unwrap();
        if available_bytes(&fs::read_to_string(MEMORY).unwrap_or_default()).is_some() {
            let error = Disks::mount(run_dir.path(), &fill(u64::MAX), &["store".into()]).unwrap_err();
            assert!(error.to_string().contains("smaller `disk`"), "{error}");
        }
    }
}
