//! MariaDB: its configuration, its command. It is asked by its own client, with a query over TCP.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tidemark_scenario::plan::Store;

use crate::error::LabError;
use crate::stores::installed::{Package, answer, usual_folders};
use crate::stores::launcher::{
    Fetch, Identity, Launcher, NodeAddress, NodeSetup, NotReady, Program, quoted, text,
};

/// The database of the system, and the user that it has there.
const NAME: &str = "tidemark";
/// The user that it runs as where this process is root.
const USER: &str = "mysql";
/// Most of its connections; its own default leaves no room for a system under load.
const CONNECTIONS_MAX: u32 = 500;

/// The server is not in the folder of the other programs.
const SERVER: Package = Package {
    title: "MariaDB",
    programs: &["mariadbd"],
    how: "install it (Debian: apt-get install mariadb-server)",
};
const TOOLS: Package = Package {
    title: "MariaDB",
    programs: &["mariadb", "mariadb-install-db"],
    how: "install it (Debian: apt-get install mariadb-server)",
};

/// MariaDB.
pub struct Mariadb;

fn tool(name: &str) -> Result<PathBuf, LabError> {
    Ok(TOOLS.folder(usual_folders())?.join(name))
}

impl Launcher for Mariadb {
    fn program(&self, _: &Store, _: &mut Fetch<'_>) -> Result<Program, LabError> {
        let folder = SERVER.folder(usual_folders())?;
        tool("mariadb")?;
        Ok(Program { title: SERVER.title(&folder), folder, java: None })
    }

    fn ports(&self, _: &Store) -> &'static [u16] {
        &[3306]
    }

    fn url(&self, _: &Store, addresses: &[SocketAddr], password: &str) -> Option<String> {
        let address = addresses.first()?;
        Some(format!("mysql://{NAME}:{password}@{address}/{NAME}"))
    }

    fn remarks(&self, store: &Store) -> String {
        let commit = match store.is_synced() {
            true => "innodb_flush_log_at_trx_commit 1: acknowledged when it is on disk",
            false => {
                "innodb_flush_log_at_trx_commit 2: acknowledged when the operating system has it, synced every second"
            }
        };
        format!("{commit}; no binary log, on the loopback interface only")
    }

    fn user(&self) -> Option<&'static str> {
        Some(USER)
    }

    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        fs::create_dir_all(&node.configuration)?;
        // its user need not be able to read what else is in the run directory
        for folder in [&node.configuration, &node.data] {
            fs::write(folder.join("my.cnf"), configuration(node))?;
        }
        fs::write(node.data.join("init.sql"), init_statements(node.password))
    }

    fn before_first_start(&self, node: &NodeSetup<'_>) -> Option<Vec<String>> {
        // that it is there was asked before
        let program = tool("mariadb-install-db").unwrap_or_else(|_| "mariadb-install-db".into());
        let mut words = vec![text(&program), "--no-defaults".into()];
        words.push(format!("--datadir={}", text(&node.data.join("db"))));
        words.push(format!("--tmpdir={}", text(&node.data)));
        words.extend(["--auth-root-authentication-method=normal", "--skip-test-db"].map(str::to_owned));
        Some(words)
    }

    fn command(&self, node: &NodeSetup<'_>) -> io::Result<Vec<String>> {
        let program = text(&node.program.folder.join(SERVER.programs[0]));
        Ok(vec![program, format!("--defaults-file={}", text(&node.data.join("my.cnf")))])
    }

    fn ask(&self, place: NodeAddress, identity: &Identity, _: Option<usize>) -> Result<(), NotReady> {
        let program = tool("mariadb").map_err(io::Error::other)?;
        let (host, port) =
            (format!("--host={}", place.listens.ip()), format!("--port={}", place.listens.port()));
        let user = format!("--user={NAME}");
        let query = "--execute=select @@report_host";
        let words = [
            "--no-defaults",
            "--protocol=tcp",
            "--connect-timeout=5",
            "-N",
            "-B",
            &host,
            &port,
            &user,
            query,
            NAME,
        ];
        let found = answer(&program, words, &[("MYSQL_PWD", &identity.password)])?;
        NotReady::unless_same(found, &identity.name)
    }
}

/// What it carries out whenever it starts, before it takes clients.
fn init_statements(password: &str) -> String {
    format!(
        "CREATE DATABASE IF NOT EXISTS {NAME};\n\
         CREATE USER IF NOT EXISTS {NAME}@'127.0.0.1' IDENTIFIED BY '{password}';\n\
         GRANT ALL ON *.* TO {NAME}@'127.0.0.1';\n\
         ALTER USER root@localhost ACCOUNT LOCK;\n"
    )
}

fn configuration(node: &NodeSetup<'_>) -> String {
    let commit = if node.store.is_synced() { 1 } else { 2 };
    let pool = |bytes: u64| format!("innodb_buffer_pool_size={bytes}\n");
    let path = |name: &str| quoted(&node.data.join(name));
    format!(
        "[mariadbd]\n\
         datadir={}\n\
         tmpdir={}\n\
         init_file={}\n\
         bind_address={}\n\
         port={}\n\
         socket=mariadb.sock\n\
         pid_file=mariadb.pid\n\
         report_host={}\n\
         skip_name_resolve\n\
         skip_log_bin\n\
         max_connections={CONNECTIONS_MAX}\n\
         innodb_flush_log_at_trx_commit={commit}\n\
         {}",
        path("db"),
        // two of them delete each other's files in one that they share
        quoted(&node.data),
        path("init.sql"),
        node.listen,
        node.ports[0],
        node.identity,
        node.store.memory_bytes.map(pool).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::launcher::tests::node;
    use tidemark_scenario::plan::Product;

    #[test]
    fn a_node_is_configured_by_what_the_scenario_says() {
        let store = Store { memory_bytes: Some(64 << 20), ..Store::new("people", Product::Mariadb) };
        let text = configuration(&node(&store, &[3406], &Program::default()));
        for line in [
            "datadir=\"/run/data/a b/db\"",
            "tmpdir=\"/run/data/a b\"",
            "port=3406",
            "report_host=tidemark-1",
            "innodb_flush_log_at_trx_commit=1",
            "innodb_buffer_pool_size=67108864",
        ] {
            assert!(text.lines().any(|had| had == line), "{line} in\n{text}");
        }
    }
}
