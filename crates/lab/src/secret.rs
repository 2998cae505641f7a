//! Nothing secret is written down: whatever goes into a run directory goes through here.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use serde_json::Value;
use tidemark_record::Manifest;
use tidemark_scenario::{Plan, Secrets};

/// What is never one, and must stay readable: where the run is, and what it ran on.
const OPEN: [&str; 5] = ["run_dir", "id", "machine", "version", "git_revision"];
/// Longest stretch of a log that is looked at in one.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// A manifest without secrets.
///
/// # Errors
/// If it has a figure that JSON cannot hold; it could not be read back either.
pub fn manifest(secrets: &Secrets, manifest: &Manifest) -> Result<Manifest, serde_json::Error> {
    let mut value = serde_json::to_value(Manifest {
        command: secrets.masked_command(&manifest.command),
        ..manifest.clone()
    })?;
    if let Some(fields) = value.as_object_mut() {
        for (_, field) in fields.iter_mut().filter(|(name, _)| !OPEN.contains(&name.as_str())) {
            masked(secrets, field);
        }
    }
    let mut clean = Manifest::from_json(&serde_json::to_vec(&value)?)?;
    clean.system.command = secrets.masked_command(&clean.system.command);
    // whose a program is is known while the run lasts, and not written down
    let busiest = &manifest.summary.driver.busiest;
    for (clean, busy) in clean.summary.driver.busiest.iter_mut().zip(busiest) {
        clean.is_ours = busy.is_ours;
    }
    for (name, setting) in &mut clean.system.settings {
        if tidemark_scenario::secrets::is_secret(name, setting) {
            *setting = tidemark_scenario::secrets::MASK.to_owned();
        }
    }
    Ok(clean)
}

/// Takes secrets out of a plan's labels, by which all that is written down knows them. They stay different from each other.
pub fn labels(plan: &mut Plan) {
    let mut known: HashSet<String> = HashSet::new();
    for label in &mut plan.labels {
        let masked = plan.secrets.masked(label);
        let another =
            || (2..).map(|number| format!("{masked} ({number})")).find(|name| !known.contains(name));
        *label = if known.contains(&masked) { another().unwrap_or_default() } else { masked.clone() };
        known.insert(label.clone());
    }
}

fn masked(secrets: &Secrets, value: &mut Value) {
    match value {
        Value::String(text) => *text = secrets.masked(text),
        Value::Array(items) => items.iter_mut().for_each(|item| masked(secrets, item)),
        Value::Object(fields) => {
            let closed = fields.iter_mut().filter(|(name, _)| !OPEN.contains(&name.as_str()));
            closed.for_each(|(_, field)| masked(secrets, field));
        }
        _ => {}
    }
}

/// Takes secrets out of the logs of processes that have ended.
///
/// # Errors
/// If one cannot be read or written.
pub fn logs(secrets: &Secrets, dir: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            log(secrets, &entry.path())?;
        }
    }
    Ok(())
}

fn log(secrets: &Secrets, path: &Path) -> io::Result<()> {
    let clean = path.with_extension("masked");
    let (mut from, mut to) = (BufReader::new(File::open(path)?), BufWriter::new(File::create(&clean)?));
    let (mut line, mut found) = (Vec::new(), false);
    loop {
        line.clear();
        if io::Read::take(&mut from, LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        // what is no text stays what it is
        match std::str::from_utf8(&line).map(|text| (text, secrets.masked_traffic(text))) {
            Ok((text, masked)) if masked != text => {
                found = true;
                to.write_all(masked.as_bytes())?;
            }
            _ => to.write_all(&line)?,
        }
    }
    to.into_inner().map_err(io::IntoInnerError::into_error)?;
    if found { fs::rename(&clean, path) } else { fs::remove_file(&clean) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_record::summary::Busy;
    use tidemark_record::{RunWriter, Totals, summarize};
    use tidemark_scenario::secrets::Origin;

    /// A search names who else had the cores by it.
    #[test]
    fn a_manifest_keeps_whose_a_program_is() {
        let mut secrets = Secrets::default();
        secrets.add("KEY", Origin::Environment, "not-for-everyone");
        let busy = |name: &str, is_ours| Busy { name: name.into(), cores: 0.3, is_ours };
        let mut given = Manifest::new("x", Vec::new(), summarize(&Totals::new(&[]), Path::new("x")));
        given.summary.driver.busiest =
            vec![busy("cargo", false), busy("shop", true), busy("not-for-everyone", true)];
        let clean = manifest(&secrets, &given).unwrap().summary.driver.busiest;
        assert_eq!(clean, [busy("cargo", false), busy("shop", true), busy("***", true)]);
    }

    #[test]
    fn a_manifest_keeps_its_figures_and_loses_its_secrets() {
        let mut secrets = Secrets::default();
        secrets.add("KEY", Origin::Environment, "not-for-everyone");
        let dir = tempfile::tempdir().unwrap();
        let writer = RunWriter::create(dir.path(), &[], "").unwrap();
        let mut summary = summarize(writer.totals(), Path::new("/home/not-for-everyone/run"));
        summary.verdict.reasons = vec!["GET /a?key=not-for-everyone: status 401".into()];
        (summary.offered_per_s, summary.requests) = (0.1 + 0.2, u64::MAX);
        let mut given = Manifest::new("x", Vec::new(), summary);
        given.command = ["tidemark", "--set", "password=hunter2"].map(String::from).to_vec();
        given.notes = vec!["it said not-for-everyone".into()];
        let url = "postgres://me:hunter2@127.0.0.1:5432/db";
        let settings = [("admin_password", "hunter2"), ("postgres", url)];
        given.system.settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        given.system.command = ["--set".to_owned(), format!("postgres={url}")].into();
        let clean = manifest(&secrets, &given).unwrap();
        assert_eq!(clean.command, ["tidemark", "--set", "password=***"]);
        assert_eq!(clean.notes, ["it said ***"]);
        assert_eq!(clean.system.settings["admin_password"], "***");
        assert_eq!(clean.system.settings["postgres"], "postgres://***@127.0.0.1:5432/db");
        assert_eq!(clean.system.command, ["--set", "postgres=postgres://***@127.0.0.1:5432/db"]);
        assert_eq!(clean.summary.verdict.reasons, ["GET /a?key=***: status 401"]);
        assert_eq!((clean.summary.offered_per_s, clean.summary.requests), (0.1 + 0.2, u64::MAX));
        assert_eq!(clean.summary.run_dir, "/home/not-for-everyone/run");
    }

    #[test]
    fn logs_lose_their_secrets_and_nothing_else() {
        let mut secrets = Secrets::default();
        secrets.add("KEY", Origin::Environment, "not-for-everyone");
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("a.log"), dir.path().join("b.log"));
        fs::write(&one, b"first\nkey is not-for-everyone\n\xff\nlast").unwrap();
        fs::write(&other, "nothing").unwrap();
        logs(&secrets, dir.path()).unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"first\nkey is ***\n\xff\nlast");
        assert_eq!(fs::read_to_string(&other).unwrap(), "nothing");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        logs(&secrets, &dir.path().join("none")).unwrap();
    }
}
