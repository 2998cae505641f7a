//! `tidemark manifests`: files with which a reference system runs elsewhere, in Kubernetes, under systemd or in Compose.
//!
//! What is written is the system of a shipped scenario without its load: the same services, settings and command lines
//! as those of `tidemark up`, in other places.

mod compose;
mod fleet;
mod kubernetes;
mod parts;
mod systemd;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use crate::args::key_value;
use crate::failure::Failure;
use crate::output;
use crate::results::is_stdout;
use parts::Deployment;

/// The systems, each with the scenario that says of which services it is.
const SYSTEMS: [(&str, &str); 4] =
    [("airline", "airline"), ("ingest", "ingest"), ("newsfeed", "newsfeed"), ("trade", "trade-rest")];
/// What runs where nobody names an image: what `Containerfile` of the sources builds.
const IMAGE: &str = concat!("tidemark:", env!("CARGO_PKG_VERSION"));
/// Longest name of an image.
const IMAGE_MAX: usize = 500;

/// `tidemark manifests`
#[derive(Debug, Args)]
#[command(after_help = "\
Systems: airline, ingest, newsfeed, trade. Settings are those of the scenario of that name (tidemark check airline lists \
them) and of tidemark serve; a store is not deployed but reached, at the address that its setting says. An address with a \
password goes into a Secret and into files that only their owner reads. `fleet` is agents that drive, and their NATS (docs/fleet.md).

Examples:
  tidemark manifests airline
  tidemark manifests airline --set topology=split --set web=3 --set auth=2
  tidemark manifests ingest --set store=cassandra --set contact=cassandra:9042 --out deploy
  tidemark manifests fleet --agents 20 --allow 10.0.0.0/8
  tidemark manifests trade --image registry.example/tidemark:1 --out - | kubectl apply -f -")]
pub struct ManifestArguments {
    /// A reference system, or fleet
    #[arg(value_name = "SYSTEM")]
    system: String,
    /// The folder of the files; - prints those for Kubernetes [default: manifests/SYSTEM]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A setting of the scenario, or of its services (repeatable)
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = key_value)]
    settings: Vec<(String, String)>,
    /// The image that containers run [default: tidemark:VERSION, which Compose builds from the sources]
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    image: Option<String>,
    /// Of fleet: how many agents
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=999))]
    agents: Option<u16>,
    /// Of fleet: a network that agents may drive, like 10.0.0.0/8 (repeatable)
    #[arg(long, value_name = "NETWORK", value_parser = fleet::network)]
    allow: Vec<String>,
    /// Write over files that are there
    #[arg(long)]
    force: bool,
}

/// A file to be written.
struct File {
    /// Its path below the folder.
    path: String,
    text: String,
    /// Whether only its owner may read it.
    is_secret: bool,
}

impl File {
    fn new(path: impl Into<String>, text: String) -> File {
        File { path: path.into(), text, is_secret: false }
    }
}

fn image(text: &str) -> Result<String, String> {
    let is_right = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    match begins && text.len() <= IMAGE_MAX && text.chars().all(is_right) {
        true => Ok(text.to_owned()),
        false => Err("write the name of an image, as in registry.example/tidemark:1".into()),
    }
}

/// Writes the files.
pub fn manifests(arguments: &ManifestArguments) -> Result<u8, Failure> {
    let name = &arguments.system;
    if name == fleet::NAME {
        return of_fleet(arguments);
    }
    if arguments.agents.is_some() || !arguments.allow.is_empty() {
        return Err(Failure::usage("--agents and --allow are of tidemark manifests fleet"));
    }
    let Some((system, scenario)) = SYSTEMS.into_iter().find(|(system, _)| system == name) else {
        let known = SYSTEMS.map(|(system, _)| system).join(", ");
        return Err(Failure::usage(format!(
            "there is no system {name} to write files for; there is {known}, fleet"
        )));
    };
    let deployment = Deployment::of(system, scenario, &arguments.settings)?;
    let image = arguments.image.as_deref();
    let kubernetes = kubernetes::files(&deployment, image.unwrap_or(IMAGE))?;
    if arguments.out.as_deref().is_some_and(is_stdout) {
        return print(&kubernetes);
    }
    let mut files = kubernetes;
    files.extend(systemd::files(&deployment));
    files.extend(compose::files(&deployment, image)?);
    let dir = arguments.out.clone().unwrap_or_else(|| Path::new("manifests").join(system));
    write(&dir, &files, arguments.force)?;
    tell(&dir, &files, &deployment);
    Ok(tidemark_lab::EXIT_PASS)
}

/// Writes those of a fleet.
fn of_fleet(arguments: &ManifestArguments) -> Result<u8, Failure> {
    let Some(agents) =
        arguments.agents.filter(|_| !arguments.allow.is_empty() && arguments.settings.is_empty())
    else {
        let reason = "give --agents N, what they may drive (--allow 10.0.0.0/8), and no --set";
        return Err(Failure::usage(format!("tidemark manifests fleet: {reason}")));
    };
    let files = fleet::files(agents, &arguments.allow, arguments.image.as_deref().unwrap_or(IMAGE))?;
    if arguments.out.as_deref().is_some_and(is_stdout) {
        return print(&files);
    }
    let dir = arguments.out.clone().unwrap_or_else(|| Path::new("manifests").join(fleet::NAME));
    write(&dir, &files, arguments.force)?;
    tell_written(&dir, &files);
    let dir = dir.to_string_lossy();
    output::remark(&fleet::next(&shlex::try_quote(&dir).unwrap_or_else(|_| "DIR".into())));
    Ok(tidemark_lab::EXIT_PASS)
}

/// Prints them for `kubectl apply -f -`.
fn print(kubernetes: &[File]) -> Result<u8, Failure> {
    let texts: Vec<&str> = kubernetes.iter().map(|file| file.text.as_str()).collect();
    output::print(&texts.join("---\n"))?;
    Ok(tidemark_lab::EXIT_PASS)
}

/// Writes all of them, or none where one is there that is to stay.
fn write(dir: &Path, files: &[File], force: bool) -> Result<(), Failure> {
    let is_there = |file: &&File| !force && fs::symlink_metadata(dir.join(&file.path)).is_ok();
    if let Some(file) = files.iter().find(is_there) {
        let path = dir.join(&file.path);
        let reason = "is there already and stays as it is; name another folder with --out, or write over it with --force";
        return Err(Failure::usage(format!("{} {reason}", path.display())));
    }
    for file in files {
        let path = dir.join(&file.path);
        let wrong =
            |error: std::io::Error| Failure::unwritable(format!("cannot write {}: {error}", path.display()));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(wrong)?;
        }
        // a new file has the rights that it should have, and is nowhere else
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(wrong(error)),
            _ => {}
        }
        let mode = if file.is_secret { 0o600 } else { 0o644 };
        let mut options = OpenOptions::new();
        let mut made = options.write(true).create_new(true).mode(mode).open(&path).map_err(wrong)?;
        made.write_all(file.text.as_bytes()).map_err(wrong)?;
    }
    Ok(())
}

/// Says what was written, and what stands beside it.
fn tell_written(dir: &Path, files: &[File]) {
    let all = files.iter().map(|file| dir.join(&file.path)).collect::<Vec<_>>();
    let written: String = all.iter().map(|path| format!("  {}\n", path.display())).collect();
    output::remark(&format!("written:\n{written}"));
    for folder in ["kubernetes", "systemd", ""] {
        for entry in fs::read_dir(dir.join(folder)).into_iter().flatten().flatten() {
            if entry.path().is_file() && !all.contains(&entry.path()) {
                output::remark(&format!(
                    "{} was written for other settings; remove it",
                    entry.path().display()
                ));
            }
        }
    }
}

/// Says what was written, and what comes next.
fn tell(dir: &Path, files: &[File], deployment: &Deployment) {
    tell_written(dir, files);
    let (dir, system) = (dir.to_string_lossy(), deployment.name);
    let dir = shlex::try_quote(&dir).unwrap_or_else(|_| "DIR".into());
    let secrets = match deployment.secrets.is_empty() {
        true => String::new(),
        false => format!("install -D -m 600 {dir}/systemd/{system}.env -t /etc/tidemark && "),
    };
    output::remark(&format!(
        "Next, one of:\n  kubectl apply -f {dir}/kubernetes\n  docker compose -f {dir}/compose.yaml up --detach\n  \
         {secrets}install -m 644 {dir}/systemd/*.service -t /etc/systemd/system && systemctl daemon-reload && \
         systemctl enable --now {}",
        systemd::units(deployment).join(" ")
    ));
}

/// A document with a comment above it.
fn document(comment: &str, value: &Value) -> Result<String, Failure> {
    let text = serde_yaml_ng::to_string(&without_nulls(value))
        .map_err(|error| Failure::broken(format!("cannot write YAML: {error}")))?;
    let comment: String = comment.lines().map(|line| format!("# {line}\n")).collect();
    Ok(comment + &text)
}

/// What is null is left out, and so are documents that are.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let some = map.iter().filter(|(_, value)| !value.is_null());
            some.map(|(key, value)| (key.clone(), without_nulls(value))).collect()
        }
        Value::Array(list) => list.iter().filter(|value| !value.is_null()).map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// A word as Kubernetes and Compose take it, which put variables in place of `$`.
fn escape_dollars(word: &str) -> String {
    word.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOSTILE: [&str; 14] = [
        "yes",
        "1_000",
        "0x1f",
        "null",
        "a: b",
        "# no comment",
        "- a",
        "{{x}}",
        "'\"\\",
        "$HOME %h",
        "$(id)",
        "${A:-b}",
        " ä ",
        "",
    ];

    #[test]
    fn hostile_values_are_read_back_as_they_are() {
        let text = document("a comment", &json!({ "all": HOSTILE, "none": null })).unwrap();
        let back: Value = serde_yaml_ng::from_str(&text).unwrap();
        assert_eq!(back, json!({ "all": HOSTILE }), "{text}");
        for word in HOSTILE {
            let taken = shlex::split(&systemd::quoted(word)).unwrap();
            assert_eq!(taken.len(), 1, "{word}");
            assert_eq!(taken[0].replace("%%", "%").replace("$$", "$"), word);
            // with no variable in it the same words come back in a container
            assert_eq!(escape_dollars(word).replace("$$", "$"), word);
        }
        assert_eq!(systemd::quoted("a b$c%d"), "\"a b$$c%%d\"");
    }

    #[test]
    fn an_image_has_a_name_and_nothing_else() {
        assert!(
            ["tidemark", "registry.example:5000/a/b:1.2", "a@sha256:0f"]
                .iter()
                .all(|name| image(name).is_ok())
        );
        assert!(["", "-x", "a b", "a\nb", "$(id)", "a'"].iter().all(|name| image(name).is_err()));
    }
}
