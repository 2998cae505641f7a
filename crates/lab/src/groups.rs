//! Control groups: which processes they have, and what they have used. Of both versions, and a mixture of the two.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use crate::proc;

/// Where they are mounted.
const ROOT: &str = "/sys/fs/cgroup";
/// Where hierarchies are below that: of the second version, or all together; the first version has one for each of these.
const HIERARCHIES: [&str; 8] =
    ["", "unified", "systemd", "pids", "cpuacct", "cpu,cpuacct", "memory", "blkio"];
/// Says that a folder is one of the second version.
const SECOND: &str = "cgroup.controllers";
/// Has the numbers of a group's own processes, one a line.
const PROCESSES: &str = "cgroup.procs";
/// Most groups that are looked at for a name, and most below one.
const GROUPS_MAX: usize = 10_000;
/// Most processes of one.
const PROCESSES_MAX: usize = 10_000;
/// What stands before the id of a container in the name of its group, by who made it.
const PREFIXES: [&str; 7] =
    ["docker-", "libpod-", "crio-", "cri-containerd-", "lxc.payload.", "lxc-", "machine-"];
/// Shortest beginning of an id that is taken for it, characters.
const ID_CHARS: usize = 12;

/// A control group, by its folders: one in each hierarchy that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group(Vec<PathBuf>);

/// All control groups of this machine.
#[derive(Debug, Clone)]
pub struct Groups {
    root: PathBuf,
}

impl Default for Groups {
    fn default() -> Self {
        Groups { root: ROOT.into() }
    }
}

impl Groups {
    /// Those that are mounted there.
    #[cfg(test)]
    pub fn at(root: &Path) -> Groups {
        Groups { root: root.to_owned() }
    }

    fn hierarchies(&self) -> Vec<PathBuf> {
        if self.root.join(SECOND).exists() {
            return vec![self.root.clone()];
        }
        let below = HIERARCHIES.iter().filter(|name| !name.is_empty());
        below.map(|name| self.root.join(name)).filter(|folder| folder.is_dir()).collect()
    }

    /// The group of this path, if there is one.
    pub fn group(&self, path: &str) -> Option<Group> {
        let path = path.trim_start_matches('/');
        let folders = self.hierarchies().into_iter().map(|root| root.join(path));
        let folders: Vec<PathBuf> = folders.filter(|folder| folder.join(PROCESSES).exists()).collect();
        (!folders.is_empty()).then_some(Group(folders))
    }

    /// Paths of all groups whose name is like that, of the first hierarchy that has one.
    pub fn named(&self, is_it: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut found = self.hierarchies().into_iter().map(|root| named(&root, is_it));
        found.find(|found| !found.is_empty()).unwrap_or_default()
    }
}

/// Whether the name of a group is that of this container.
pub fn is_container(group: &str, container: &str) -> bool {
    let name = group.strip_suffix(".scope").unwrap_or(group);
    let is_id = container.len() >= ID_CHARS && container.chars().all(|c| c.is_ascii_hexdigit());
    let is_it = |name: &str| name == container || is_id && name.starts_with(container);
    is_it(name) || PREFIXES.iter().filter_map(|prefix| name.strip_prefix(prefix)).any(is_it)
}

/// The folders below one, without the links among them.
fn below(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

fn named(root: &Path, is_it: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut queue = VecDeque::from([root.to_owned()]);
    let mut looked = 0;
    while let Some(folder) = queue.pop_front().filter(|_| looked < GROUPS_MAX) {
        looked += 1;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if folder != root && is_it(&name) {
            let path = folder.strip_prefix(root).unwrap_or(&folder);
            found.push(format!("/{}", path.display()));
            // what is below it is a part of it
            continue;
        }
        queue.extend(below(&folder));
    }
    found
}

impl Group {
    /// Its processes and those of the groups below it; none once it is gone.
    pub fn processes(&self) -> Option<Vec<u32>> {
        let of_each = self.0.iter().filter_map(|folder| processes(folder));
        of_each.max_by_key(Vec::len)
    }

    fn read(&self, name: &str) -> Option<String> {
        self.0.iter().find_map(|folder| fs::read_to_string(folder.join(name)).ok())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.read(name)?.trim().parse().ok()
    }

    /// CPU time that it has used, and of that in the kernel, microseconds.
    pub fn cpu_us(&self) -> Option<(u64, u64)> {
        // each version has a file of this name
        let mut stats = self.0.iter().filter_map(|folder| fs::read_to_string(folder.join("cpu.stat")).ok());
        let second = stats.find_map(|text| {
            Some((proc::keyed(&text, "usage_usec")?, proc::keyed(&text, "system_usec").unwrap_or(0)))
        });
        second.or_else(|| {
            Some((
                self.number("cpuacct.usage")? / 1_000,
                self.number("cpuacct.usage_sys").unwrap_or(0) / 1_000,
            ))
        })
    }

    /// Memory that it holds, bytes, without what the kernel can give away at once.
    pub fn memory_bytes(&self) -> Option<u64> {
        let used = self.number("memory.current").or_else(|| self.number("memory.usage_in_bytes"))?;
        let stat = self.read("memory.stat").unwrap_or_default();
        let inactive =
            proc::keyed(&stat, "total_inactive_file").or_else(|| proc::keyed(&stat, "inactive_file"));
        Some(used.saturating_sub(inactive.unwrap_or(0)))
    }

    /// Bytes that it has read from disks, and written to them.
    pub fn disk_bytes(&self) -> Option<(u64, u64)> {
        let text = self.read("io.stat").or_else(|| self.read("blkio.throttle.io_service_bytes_recursive"))?;
        let mut sum = (0u64, 0u64);
        for line in text.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let keyed = |key: &str| -> u64 {
                let first = words.windows(2).find(|pair| pair[0] == key).map(|pair| pair[1]);
                let second = words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
                first.or(second).and_then(|number| number.parse().ok()).unwrap_or(0)
            };
            sum.0 = sum.0.saturating_add(keyed("rbytes").max(keyed("Read")));
            sum.1 = sum.1.saturating_add(keyed("wbytes").max(keyed("Write")));
        }
        Some(sum)
    }
}

fn processes(folder: &Path) -> Option<Vec<u32>> {
    let mut found: Vec<u32> = proc::process_ids(&fs::read_to_string(folder.join(PROCESSES)).ok()?).collect();
    let mut queue: VecDeque<PathBuf> = below(folder).collect();
    let mut looked = 0;
    while let Some(folder) = queue.pop_front().filter(|_| looked < GROUPS_MAX && found.len() < PROCESSES_MAX)
    {
        looked += 1;
        let text = fs::read_to_string(folder.join(PROCESSES)).unwrap_or_default();
        found.extend(proc::process_ids(&text));
        queue.extend(below(&folder));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_group_of_the_second_version_is_read_with_those_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let id = "0123456789abcdef0123456789abcdef";
        write(root, "cgroup.controllers", "cpu io memory");
        write(root, "cgroup.procs", "1\n");
        let path = format!("system.slice/docker-{id}.scope");
        write(root, &format!("{path}/cgroup.procs"), "10\n11\n");
        write(root, &format!("{path}/inner/cgroup.procs"), "12\n");
        write(root, &format!("{path}/cpu.stat"), "usage_usec 3000\nuser_usec 2000\nsystem_usec 1000\n");
        write(root, &format!("{path}/memory.current"), "5000\n");
        write(root, &format!("{path}/memory.stat"), "anon 1\ninactive_file 1000\n");
        write(root, &format!("{path}/io.stat"), "8:0 rbytes=10 wbytes=20 rios=1\n8:16 rbytes=1 wbytes=2\n");
        let groups = Groups::at(root);
        let found = groups.named(&|name| is_container(name, &id[..12]));
        assert_eq!(found, [format!("/{path}")]);
        let group = groups.group(&found[0]).unwrap();
        assert_eq!(group.processes(), Some(vec![10, 11, 12]));
        assert_eq!(group.cpu_us(), Some((3000, 1000)));
        assert_eq!(group.memory_bytes(), Some(4000));
        assert_eq!(group.disk_bytes(), Some((11, 22)));
        assert!(groups.group("/nowhere").is_none());
        fs::remove_dir_all(root.join(&path)).unwrap();
        assert_eq!(group.processes(), None);
    }

    #[test]
    fn a_group_of_the_first_version_has_a_folder_in_each_hierarchy() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for hierarchy in ["systemd", "cpuacct", "memory", "blkio"] {
            write(root, &format!("{hierarchy}/x.service/cgroup.procs"), "7\n");
        }
        write(root, "cpuacct/x.service/cpu.stat", "nr_periods 0\n");
        write(root, "cpuacct/x.service/cpuacct.usage", "5000000\n");
        write(root, "cpuacct/x.service/cpuacct.usage_sys", "1000000\n");
        write(root, "memory/x.service/memory.usage_in_bytes", "900\n");
        write(root, "memory/x.service/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n");
        let served = "8:0 Read 100\n8:0 Write 50\n8:0 Sync 3\n8:0 Total 150\nTotal 150\n";
        write(root, "blkio/x.service/blkio.throttle.io_service_bytes_recursive", served);
        let groups = Groups::at(root);
        assert_eq!(groups.named(&|name| name == "x.service"), ["/x.service"]);
        let group = groups.group("/x.service").unwrap();
        assert_eq!(group.processes(), Some(vec![7]));
        assert_eq!(group.cpu_us(), Some((5000, 1000)));
        assert_eq!((group.memory_bytes(), group.disk_bytes()), (Some(800), Some((100, 50))));
    }

    #[test]
    fn a_container_is_known_by_its_id_or_the_name_of_its_group() {
        let id = "0123456789abcdef";
        for (group, container) in [
            (format!("docker-{id}.scope"), id),
            (id.to_owned(), &id[..12]),
            (format!("libpod-{id}.scope"), &id[..12]),
            ("lxc.payload.web".into(), "web"),
            ("machine-web.scope".into(), "web"),
        ] {
            assert!(is_container(&group, container), "{group} {container}");
        }
        let not = [
            ("docker-0123.scope", "0123456789ab"),
            ("web2", "web"),
            ("libpod-conmon-0123456789ab.scope", "0123456789ab"),
        ];
        for (group, container) in not {
            assert!(!is_container(group, container), "{group} {container}");
        }
    }
}
