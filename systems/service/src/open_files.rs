//! The limit on open files, of which every connection is one.

/// Files that a server has open beside its connections: its store, its event loops, its logs.
const OTHER_FILES: u64 = 512;

/// Raises the limit so that this many connections can be open, as far as that is allowed. Shells commonly start
/// programs with a limit of 1024 and allow them much more.
pub(crate) fn raise(connections: usize) {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        let wanted = (connections as u64).saturating_add(OTHER_FILES);
        // `None` is no limit.
        if limit.current.is_some_and(|current| current < wanted) {
            limit.current = Some(limit.maximum.map_or(wanted, |most| most.min(wanted)));
            let _ = setrlimit(Resource::Nofile, limit); // what became of it is read back below
        }
        let current = getrlimit(Resource::Nofile).current;
        if let Some(current) = current.filter(|current| *current < wanted) {
            tracing::warn!(
                open_files = current,
                connections_max = connections,
                "fewer files can be open than connections are allowed; raise the limit (ulimit -n)"
            );
        }
    }
}
