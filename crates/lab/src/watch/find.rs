//! Which processes are meant: by a number, a program's name, a port, a control group.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use tidemark_scenario::plan::Watched;

use crate::groups::{Groups, is_container};
use crate::monitor::Subject;
use crate::proc;

/// Longest name that the kernel keeps of a program, bytes.
const COMM_BYTES: usize = 15;
/// Processes that are named in a text.
const NAMED: usize = 4;

/// A process, told apart from a later one with the same number by when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// When it began, ticks since the machine did.
    began: u64,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What is looked at.
    pub subject: Subject,
    /// Its processes, without those below others of them. Of a control group all.
    pub processes: Vec<Process>,
    /// What it is, for a person: `nginx, pid 123`.
    pub text: String,
}

/// Finds processes.
#[derive(Debug, Clone)]
pub struct Finder {
    root: PathBuf,
    groups: Groups,
    /// Our own number: neither we nor what we have started is meant by a name.
    own: u32,
}

impl Default for Finder {
    fn default() -> Self {
        Finder { root: "/proc".into(), groups: Groups::default(), own: std::process::id() }
    }
}

/// What is known of a process.
struct Known {
    parent: u32,
    began: u64,
    is_zombie: bool,
}

impl Finder {
    /// Finds what is meant.
    ///
    /// # Errors
    /// Why nothing is found, and what to do.
    pub fn find(&self, what: &Watched) -> Result<Found, String> {
        if !self.root.join("self").exists() && !self.root.join("stat").exists() {
            return Err("this system has no /proc, so that no process can be watched".into());
        }
        let ids = match what {
            Watched::Pid(id) => vec![*id],
            Watched::Program(name) => self.called(name),
            Watched::Port(port) => self.listening(*port)?,
            Watched::Cgroup(path) => return self.group(what, path),
            Watched::Unit(unit) => return self.group(what, &self.only(&|group| group == unit, what)?),
            Watched::Container(name) => {
                return self.group(what, &self.only(&|group| is_container(group, name), what)?);
            }
            Watched::Machine | Watched::Metrics { .. } => return Err(format!("{what} is not a process")),
        };
        // a name may also be that of what we have started
        let processes = self.roots(&ids, matches!(what, Watched::Program(_)));
        if processes.is_empty() {
            return Err(match what {
                Watched::Pid(id) => format!("no process has the number {id}"),
                Watched::Program(name) => format!("no program called {name} runs on this machine"),
                _ => format!("{what}: its process has just ended"),
            });
        }
        let ids = processes.iter().map(|process| process.id).collect();
        Ok(Found { text: self.text(&processes), subject: Subject::Processes(ids), processes })
    }

    /// Whether it is there, and the same.
    pub fn is_there(&self, process: Process) -> bool {
        self.known(process.id).is_some_and(|known| known.began == process.began && !known.is_zombie)
    }

    /// The user that it runs as.
    pub fn user(&self, process: Process) -> Option<u32> {
        fs::metadata(self.root.join(process.id.to_string())).ok().map(|about| about.uid())
    }

    fn read(&self, id: u32, name: &str) -> Option<String> {
        let bytes = fs::read(self.root.join(format!("{id}/{name}"))).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn known(&self, id: u32) -> Option<Known> {
        let stat = self.read(id, "stat")?;
        let (_, began) = proc::own_ticks(&stat)?;
        let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        Some(Known { parent, began, is_zombie: matches!(state, "Z" | "X") })
    }

    fn all(&self) -> impl Iterator<Item = u32> + use<> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }

    /// Those of these that live, and are below none of the others; nor what we have started, where others' are wanted.
    fn roots(&self, ids: &[u32], of_others: bool) -> Vec<Process> {
        let mut known: HashMap<u32, Option<Known>> = HashMap::new();
        let meant: HashSet<u32> = ids.iter().copied().collect();
        let mut processes = Vec::new();
        for id in ids {
            let Some(process) = self.known(*id).filter(|known| !known.is_zombie) else { continue };
            let (mut above, mut seen) = (process.parent, HashSet::new());
            let mut is_root = true;
            // a number that is given again while we look could make a circle
            while is_root && above > 1 && seen.insert(above) {
                let is_ours = of_others && above == self.own;
                is_root = !is_ours && !meant.contains(&above);
                let next = known.entry(above).or_insert_with(|| self.known(above));
                above = next.as_ref().map_or(0, |next| next.parent);
            }
            if is_root {
                processes.push(Process { id: *id, began: process.began });
            }
        }
        processes.sort_by_key(|process| process.id);
        processes
    }

    /// Every process of a program, but ourselves.
    fn called(&self, name: &str) -> Vec<u32> {
        let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let short: String =
            name.char_indices().filter(|(at, c)| at + c.len_utf8() <= COMM_BYTES).map(|(_, c)| c).collect();
        let is_it = |id: &u32| {
            let comm = self.read(*id, "comm").unwrap_or_default();
            let comm = comm.trim_end_matches('\n');
            if comm == name || comm == short {
                // a longer name may only begin so
                let first = self.read(*id, "cmdline").unwrap_or_default();
                let first = first.split(['\0', ' ']).next().unwrap_or_default().to_owned();
                return comm == name || first.is_empty() || last(&first) == name;
            }
            let file = fs::read_link(self.root.join(format!("{id}/exe"))).unwrap_or_default();
            let file = file.to_string_lossy().into_owned();
            last(file.trim_end_matches(" (deleted)")) == name
        };
        self.all().filter(|id| *id != self.own).filter(is_it).collect()
    }

    /// Whoever listens at a port of the network that we see.
    fn listening(&self, port: u16) -> Result<Vec<u32>, String> {
        let tables =
            ["net/tcp", "net/tcp6"].map(|name| fs::read_to_string(self.root.join(name)).unwrap_or_default());
        let inodes: HashSet<u64> = tables.iter().flat_map(|table| listeners(table, port)).collect();
        if inodes.is_empty() {
            return Err(format!(
                "nobody listens at port {port} of this machine; start it first, or name its process: of a container, with \
                 `container`"
            ));
        }
        let has_one = |id: &u32| {
            let sockets = fs::read_dir(self.root.join(format!("{id}/fd"))).into_iter().flatten().flatten();
            let mut inodes_of = sockets.filter_map(|entry| {
                let link = fs::read_link(entry.path()).ok()?;
                link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok()
            });
            inodes_of.any(|inode| inodes.contains(&inode))
        };
        let ids: Vec<u32> = self.all().filter(has_one).collect();
        match ids.is_empty() {
            false => Ok(ids),
            true => Err(format!(
                "somebody listens at port {port}, but not which process that is can be seen: run as its user or as root, or \
                 name its process by pid or name"
            )),
        }
    }

    /// The path of the one group that is meant.
    fn only(&self, is_it: &dyn Fn(&str) -> bool, what: &Watched) -> Result<String, String> {
        let found = self.groups.named(is_it);
        match found.as_slice() {
            [path] => Ok(path.clone()),
            [] if matches!(what, Watched::Container(_)) => Err(format!(
                "no control group of this machine is that of {what}; give its id, as `docker inspect --format '{{{{.Id}}}}' NAME` \
                 or `podman inspect` tells it"
            )),
            [] => Err(format!("no control group of this machine is that of {what}")),
            all => Err(format!(
                "several control groups are called so: {}; name one with `cgroup`",
                all.join(", ")
            )),
        }
    }

    fn group(&self, what: &Watched, path: &str) -> Result<Found, String> {
        let group = self.groups.group(path);
        let group = group.ok_or_else(|| format!("there is no control group {path} on this machine"))?;
        let ids = group.processes().unwrap_or_default();
        let known = |id: u32| Some(Process { id, began: self.known(id)?.began });
        let processes: Vec<Process> = ids.into_iter().filter_map(known).collect();
        if processes.is_empty() {
            return Err(format!("the control group of {what} has no process"));
        }
        let text = format!("control group {path}: {}", self.text(&processes));
        Ok(Found { subject: Subject::Group(group), processes, text })
    }

    fn text(&self, processes: &[Process]) -> String {
        let first = processes.first().and_then(|process| self.read(process.id, "comm")).unwrap_or_default();
        let shown: String = first.trim_end().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let ids: Vec<String> = processes.iter().take(NAMED).map(|process| process.id.to_string()).collect();
        match processes.len() {
            1 => format!("{shown}, pid {}", ids[0]),
            all if all > NAMED => format!("{shown}, {all} processes: pid {} and others", ids.join(", ")),
            all => format!("{shown}, {all} processes: pid {}", ids.join(", ")),
        }
    }
}

/// The sockets that listen at a port, in a table like `/proc/net/tcp`.
fn listeners(table: &str, port: u16) -> Vec<u64> {
    const LISTENS: &str = "0A";
    let one = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (_, at) = fields.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(at, 16) == Ok(port) && fields.get(3) == Some(&LISTENS);
        if is_it { fields.get(9)?.parse::<u64>().ok() } else { None }
    };
    table.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Number, parent, what the kernel calls it, its file, its sockets.
    fn write(root: &Path, id: u32, parent: u32, comm: &str, file: &str, sockets: &[u64]) {
        let folder = root.join(id.to_string());
        fs::create_dir_all(folder.join("fd")).unwrap();
        let stat = format!("{id} ({comm}) S {parent} 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 3 0 {id}00 1 50 1");
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("comm"), format!("{comm}\n")).unwrap();
        fs::write(folder.join("cmdline"), format!("{file}\0-x\0")).unwrap();
        std::os::unix::fs::symlink(file, folder.join("exe")).unwrap();
        for (at, inode) in sockets.iter().enumerate() {
            std::os::unix::fs::symlink(format!("socket:[{inode}]"), folder.join(format!("fd/{at}"))).unwrap();
        }
    }

    fn finder(root: &Path) -> Finder {
        fs::create_dir_all(root.join("net")).unwrap();
        fs::write(root.join("stat"), "").unwrap();
        let tcp = "  sl  local_address rem_address   st\n\
                   0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 0 0 777 1\n\
                   1: 0100007F:1F90 0100007F:9999 01 0:0 0:0 0 0 0 778 1\n\
                   2: 0100007F:0050 00000000:0000 0A 0:0 0:0 0 0 0 779 1\n";
        fs::write(root.join("net/tcp"), tcp).unwrap();
        Finder { root: root.to_owned(), groups: Groups::at(&root.join("cgroup")), own: 5 }
    }

    fn ids(found: &Found) -> Vec<u32> {
        found.processes.iter().map(|process| process.id).collect()
    }

    #[test]
    fn what_is_meant_is_found_and_what_is_not_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, 10, 1, "nginx", "/usr/sbin/nginx", &[777]);
        write(root, 11, 10, "nginx", "/usr/sbin/nginx", &[777]);
        write(root, 12, 1, "python3.11", "/usr/bin/python3.11", &[778]);
        write(root, 13, 1, "a-program-with-", "/opt/a-program-with-a-long-name", &[]);
        write(root, 5, 1, "tidemark", "/x/tidemark", &[]);
        write(root, 6, 5, "tidemark", "/x/tidemark", &[]);
        write(root, 7, 1, "tidemark", "/x/tidemark", &[]);
        let finder = finder(root);
        let found = |what: Watched| finder.find(&what);
        let program = |name: &str| found(Watched::Program(name.into()));
        let nginx = program("nginx").unwrap();
        assert_eq!((ids(&nginx), nginx.text.as_str()), (vec![10], "nginx, pid 10"));
        assert_eq!(nginx.subject, Subject::Processes(vec![10]));
        assert_eq!(ids(&program("a-program-with-a-long-name").unwrap()), [13]);
        assert!(program("a-program-with-another-name").is_err());
        assert_eq!(ids(&program("tidemark").unwrap()), [7], "neither we nor what we started");
        assert_eq!(ids(&found(Watched::Port(8080)).unwrap()), [10]);
        assert_eq!(ids(&found(Watched::Pid(12)).unwrap()), [12]);
        for (what, why) in [
            (Watched::Port(80), "not which process that is can be seen"),
            (Watched::Port(81), "nobody listens at port 81"),
            (Watched::Pid(99), "no process has the number 99"),
            (Watched::Program("apache".into()), "no program called apache runs"),
            (Watched::Cgroup("/x".into()), "no control group /x"),
            (Watched::Unit("x.service".into()), "no control group of this machine is that of unit x.service"),
            (Watched::Container("web".into()), "docker inspect --format '{{.Id}}' NAME"),
        ] {
            let said = found(what).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_number_that_was_given_again_is_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, 10, 1, "x", "/x", &[]);
        let finder = finder(root);
        let process = finder.find(&Watched::Pid(10)).unwrap().processes[0];
        assert!(finder.is_there(process));
        let stat = fs::read_to_string(root.join("10/stat")).unwrap();
        fs::write(root.join("10/stat"), stat.replace(" 1000 ", " 2000 ")).unwrap();
        assert!(!finder.is_there(process));
        fs::write(root.join("10/stat"), stat.replace(" S ", " Z ")).unwrap();
        assert!(!finder.is_there(process));
    }

    #[test]
    fn the_processes_of_a_group_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, 10, 1, "web", "/web", &[]);
        write(root, 11, 10, "web", "/web", &[]);
        let group = root.join("cgroup/system.slice/web.service");
        fs::create_dir_all(&group).unwrap();
        fs::write(root.join("cgroup/cgroup.controllers"), "cpu").unwrap();
        fs::write(group.join("cgroup.procs"), "10\n11\n12\n").unwrap();
        let found = finder(root).find(&Watched::Unit("web.service".into())).unwrap();
        assert_eq!(ids(&found), [10, 11]);
        assert_eq!(found.text, "control group /system.slice/web.service: web, 2 processes: pid 10, 11");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_very_program_is_found_by_the_port_that_it_listens_at() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let finder = Finder::default();
        assert_eq!(ids(&finder.find(&Watched::Port(port)).unwrap()), [std::process::id()]);
        drop(listener);
        assert!(finder.find(&Watched::Port(port)).is_err());
    }
}
