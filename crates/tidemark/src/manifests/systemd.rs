//! systemd: a unit for each instance, all on one machine.

use super::File;
use super::parts::{Deployment, Part};

/// Where the program is, as packages have it.
const PROGRAM: &str = "/usr/bin/tidemark";
/// Where the first instance listens; each further one has the next port.
const PORT: usize = 9080;
/// What it may not do.
const HARDENING: &str = "\
DynamicUser=yes
UMask=0077
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
ProtectProc=invisible
ProtectClock=yes
ProtectHostname=yes
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
PrivateTmp=yes
PrivateDevices=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
LimitNOFILE=65536
";

/// Every unit, and what is secret.
pub fn files(deployment: &Deployment) -> Vec<File> {
    let mut files = Vec::new();
    for (part, number) in instances(deployment) {
        let name = unit(part, number);
        files.push(File::new(format!("systemd/{name}"), text(deployment, part, number)));
    }
    if !deployment.secrets.is_empty() {
        let text = variables(deployment);
        files.push(File { is_secret: true, ..File::new(format!("systemd/{}.env", deployment.name), text) });
    }
    files
}

/// The names of all units.
pub fn units(deployment: &Deployment) -> Vec<String> {
    instances(deployment).map(|(part, number)| unit(part, number)).collect()
}

/// Addresses with passwords, a line each; values have neither quotes nor backslashes.
pub fn variables(deployment: &Deployment) -> String {
    let lines = deployment.secrets.iter().map(|(variable, value)| format!("{variable}='{value}'\n"));
    "# Addresses with passwords. Keep this out of repositories.\n".to_owned() + &lines.collect::<String>()
}

/// Every instance, those first that users call: a part, and the number from 1.
fn instances(deployment: &Deployment) -> impl Iterator<Item = (&Part, usize)> {
    let (entry, others): (Vec<_>, Vec<_>) = deployment.parts.iter().partition(|part| part.is_entry);
    let all = entry.into_iter().chain(others);
    all.flat_map(|part| (1..=part.instances).map(move |number| (part, number)))
}

fn id(part: &Part, number: usize) -> String {
    if part.instances == 1 { part.name.clone() } else { format!("{}-{number}", part.name) }
}

fn unit(part: &Part, number: usize) -> String {
    format!("{}.service", id(part, number))
}

/// Where it listens: for users everywhere, for the others on this machine.
fn listen(deployment: &Deployment, part: &Part, number: usize) -> String {
    let before =
        instances(deployment).take_while(|(other, n)| (&other.name, *n) != (&part.name, number)).count();
    let host = if part.is_entry { "0.0.0.0" } else { "127.0.0.1" };
    format!("{host}:{}", PORT + before)
}

fn text(deployment: &Deployment, part: &Part, number: usize) -> String {
    let id = id(part, number);
    let addresses = |name: &str| -> Vec<String> {
        let all = instances(deployment).filter(|(part, _)| part.name == name);
        all.map(|(part, number)| listen(deployment, part, number)).collect()
    };
    let words =
        part.words(deployment.name, listen(deployment, part, number), &format!("/var/lib/{id}"), &addresses);
    // a flag and its value are a line
    let mut command = PROGRAM.to_owned();
    for word in &words {
        command += if word.starts_with("--") { " \\\n  " } else { " " };
        command += &quoted(word);
    }
    let calls: String = part
        .calls
        .iter()
        .filter_map(|name| deployment.part(name))
        .flat_map(|part| (1..=part.instances).map(move |number| format!(" {}", unit(part, number))))
        .collect();
    let mut more = String::new();
    if !part.secrets.is_empty() {
        more += &format!("EnvironmentFile=/etc/tidemark/{}.env\n", deployment.name);
    }
    if part.keeps_data {
        more += &format!("# its data, in /var/lib\nStateDirectory={id}\nStateDirectoryMode=0700\n");
    }
    format!(
        "# {id}: {}.\n[Unit]\nDescription=Tidemark: {id}\nWants=network-online.target{calls}\n\
         After=network-online.target{calls}\n\n[Service]\nType=exec\nExecStart={command}\n{more}Restart=on-failure\n\
         RestartSec=1\nTimeoutStopSec={}\n{HARDENING}\n[Install]\nWantedBy=multi-user.target\n",
        part.about(),
        part.stops_within_s
    )
}

/// A word of a command line in a unit file.
pub fn quoted(word: &str) -> String {
    let word = word.replace('%', "%%").replace('$', "$$");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+%$".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word,
        false => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
