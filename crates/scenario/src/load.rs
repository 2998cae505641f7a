//! The doors: a file, a text or a shipped name becomes a plan.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{Diagnostics, did_you_mean, nearest};
use crate::grammar::Shape;
use crate::grammar::check::{check, mend_verbs};
use crate::language::comparison::is_comparison;
use crate::outside::{Origin, recorded};
use crate::plan::{Plan, StoreOrigin, SystemOrigin};
use crate::reader::{Checker, Reader};
use crate::secrets::{MASK, Secrets, is_secret, source};
use crate::settings::Settings;
use crate::shipped::{shipped, shipped_names};
use crate::sink::Sink;
use crate::yaml::Node;
use crate::{compile, language, objective, yaml};

/// Most files of a folder among which a name is looked for that is most like one that is not there.
const BESIDE_MAX: usize = 1_000;

/// Reads, checks and compiles a scenario file. `settings` replace the defaults of the file's own settings.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_file(path: &Path, settings: &[(String, String)]) -> Result<Plan, Diagnostics> {
    let (plan, diagnostics) = check_file(path, settings);
    plan.ok_or(diagnostics)
}

/// Like [`load_file`] for a text; files that it names are looked for in `base_dir`.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_text(
    name: &str,
    text: &str,
    base_dir: &Path,
    settings: &[(String, String)],
) -> Result<Plan, Diagnostics> {
    let (plan, diagnostics) = check_text(name, text, base_dir, settings);
    plan.ok_or(diagnostics)
}

/// Loads a shipped scenario by its name.
///
/// # Errors
/// Everything that is wrong with the settings, or that there is none of this name.
pub fn load_shipped(name: &str, settings: &[(String, String)]) -> Result<Plan, Diagnostics> {
    match shipped(name) {
        Some(text) => load_text(&format!("{name}.yaml"), text, Path::new("."), settings),
        None => Err(alone(name, unknown_name(name))),
    }
}

/// Like [`load_file`], and gives warnings of a scenario that can run, too.
pub fn check_file(path: &Path, settings: &[(String, String)]) -> (Option<Plan>, Diagnostics) {
    Checker::default().file(path, settings)
}

/// Like [`load_text`], and gives warnings of a scenario that can run, too.
pub fn check_text(
    name: &str,
    text: &str,
    base_dir: &Path,
    settings: &[(String, String)],
) -> (Option<Plan>, Diagnostics) {
    Checker::default().text(name, text, base_dir, settings)
}

/// Where a scenario's text is from.
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) base_dir: &'a Path,
}

impl Checker {
    /// Like [`check_file`].
    pub fn file(self, path: &Path, settings: &[(String, String)]) -> (Option<Plan>, Diagnostics) {
        let name = path.display().to_string();
        match text_of(path, &name) {
            Ok(text) => self.text(&name, &text, folder_of(path), settings),
            Err(diagnostics) => (None, diagnostics),
        }
    }

    /// Like [`check_text`].
    pub fn text(
        self,
        name: &str,
        text: &str,
        base_dir: &Path,
        settings: &[(String, String)],
    ) -> (Option<Plan>, Diagnostics) {
        let sink = Sink::new(name, text);
        let plan = yaml::read(&sink).and_then(|root| {
            if is_comparison(&root) {
                sink.error(
                    &root,
                    "this is a comparison of scenarios and not a scenario; run it with `tidemark run`",
                );
                return None;
            }
            self.plan(&Source { name, base_dir }, root, settings, &sink)
        });
        told(plan, name, sink, Diagnostics::default())
    }

    /// Compiles the scenario at a root, and keeps what it was read from.
    pub(crate) fn plan(
        self,
        source: &Source<'_>,
        root: Node,
        settings: &[(String, String)],
        sink: &Sink<'_>,
    ) -> Option<Plan> {
        let (plan, (files, variables)) = recorded(|| self.compiled(source, root, settings, sink));
        let (name, text) = (source.name.to_owned(), sink.text().to_owned());
        let (folder, settings) = (source.base_dir.to_owned(), settings.to_vec());
        let from = Origin { name, text, folder, settings, files, variables };
        plan.map(|plan| Plan { read_from: Arc::new(from), ..plan })
    }

    fn compiled(
        self,
        source: &Source<'_>,
        mut root: Node,
        settings: &[(String, String)],
        sink: &Sink<'_>,
    ) -> Option<Plan> {
        mend_verbs(&mut root, &Shape::Record(|| &language::SCENARIO), sink);
        objective::mend(&mut root);
        let settings = Settings::read(root.get("settings"), source.base_dir, settings, sink);
        let reader = Reader { sink, settings: &settings, checker: self };
        check(&root, &Shape::Record(|| &language::SCENARIO), "the scenario", &reader);
        settings.forget_who_asked();
        let plan = compile::scenario(&root, source.name, source.base_dir, &reader);
        settings.warn_of_unused(sink);
        sink.mask(&settings.secrets(), &root);
        let plan = plan.map(|plan| Plan { settings: settings.values(), ..plan });
        plan.map(|plan| without_secrets(plan, &root, settings.secrets()))
    }
}

/// A plan whose texts can be written down.
fn without_secrets(mut plan: Plan, root: &Node, mut secrets: Secrets) -> Plan {
    let systems = plan.targets.iter().map(|target| &target.at).chain([&plan.system]);
    systems.filter_map(|at| at.proxy.as_deref()).for_each(|proxy| secrets.add_password_of(proxy));
    let origins = plan.targets.iter().map(|target| &target.at.origin).chain([&plan.system.origin]);
    for origin in origins {
        if let SystemOrigin::Url(url) = origin {
            secrets.add_password_of(url);
        }
    }
    for store in &plan.stores {
        if let StoreOrigin::Url(url) = &store.origin {
            secrets.add_password_of(url);
        }
    }
    plan.source = source::masked(root, &plan.source, &mut secrets);
    let objectives = plan.objectives.iter_mut().map(|objective| &mut objective.text);
    let texts = [&mut plan.name, &mut plan.description].into_iter().chain(&mut plan.labels).chain(objectives);
    texts.for_each(|text| *text = secrets.masked(text));
    plan.groups.iter_mut().for_each(|group| *group = secrets.masked(group));
    let mut names: Vec<String> = plan.load.phases.iter().map(|phase| secrets.masked(&phase.name)).collect();
    tell_apart(&mut names);
    plan.load.phases.iter_mut().zip(names).for_each(|(phase, name)| phase.name = name);
    for (name, value) in &mut plan.settings {
        *value = if is_secret(name, value) { MASK.to_owned() } else { secrets.masked(value) };
    }
    let mut names: Vec<String> = plan.metrics.iter().map(|metric| secrets.masked(&metric.name)).collect();
    tell_apart(&mut names);
    for (metric, name) in plan.metrics.iter_mut().zip(names) {
        (metric.name, metric.unit) = (name, secrets.masked(&metric.unit));
    }
    tell_apart(&mut plan.labels);
    tell_apart(&mut plan.groups);
    plan.secrets = secrets;
    plan
}

/// Numbers names that are the same.
pub(crate) fn tell_apart(names: &mut [String]) {
    for at in 1..names.len() {
        let (before, after) = names.split_at_mut(at);
        let name = after[0].clone();
        let mut number = 2;
        while before.contains(&after[0]) {
            after[0] = format!("{name} ({number})");
            number += 1;
        }
    }
}

/// What was made, unless something is wrong with it; `within` was found in other files.
pub(crate) fn told<T>(
    made: Option<T>,
    name: &str,
    sink: Sink<'_>,
    within: Diagnostics,
) -> (Option<T>, Diagnostics) {
    let made = made.filter(|_| !sink.has_errors() && !within.has_errors());
    let mut diagnostics = sink.into_diagnostics();
    diagnostics.append(within);
    if made.is_none() && !diagnostics.has_errors() {
        // Cannot happen while every way out reports; a plan must never be missing without a word.
        diagnostics = alone(name, "the scenario cannot be compiled".into());
    }
    (made, diagnostics)
}

/// Where the files are looked for that a file names.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// A file's text.
pub(crate) fn text_of(path: &Path, name: &str) -> Result<String, Diagnostics> {
    let bytes = read_bounded(path).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => match file_beside(path) {
                Some(file) => format!("there is no such file; did you mean {}?", file.display()),
                None => unknown_name(name),
            },
            _ => error.to_string(),
        };
        alone(name, format!("cannot read the scenario: {hint}"))
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        alone(name, format!("line {line} is not UTF-8 text"))
    })
}

pub(crate) fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    // One byte more than is accepted, so that too large a file is told from one that just fits.
    let most = yaml::SOURCE_BYTES_MAX as u64 + 1;
    std::fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The scenario in the same folder whose name is most like one that is not there.
fn file_beside(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let names = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?.flatten().take(BESIDE_MAX);
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let names: Vec<String> =
        names.filter(|name| [".yaml", ".yml"].iter().any(|end| name.ends_with(end))).collect();
    let name = path.file_name()?.to_str()?;
    // the same name with another end, or without one, before one that is spelled otherwise
    let stem = |name: &str| Path::new(name).with_extension("");
    let same = names.iter().find(|other| stem(other) == stem(name));
    let found = same.map(String::as_str).or_else(|| nearest(name, names.iter().map(String::as_str)))?;
    Some(folder.map_or_else(|| PathBuf::from(found), |folder| folder.join(found)))
}

pub(crate) fn unknown_name(name: &str) -> String {
    let hint = did_you_mean(name, shipped_names());
    let names: Vec<_> = shipped_names().collect();
    format!(
        "there is no such file, and no shipped scenario of that name{hint} (shipped: {})",
        names.join(", ")
    )
}

pub(crate) fn alone(name: &str, message: String) -> Diagnostics {
    let sink = Sink::new(name, "");
    sink.error_outside(name.to_owned(), message);
    sink.into_diagnostics()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_told_with_the_one_beside_it_that_may_be_meant() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["my.yaml", "other.yaml", "notes.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let told = |name: &str| {
            let path = folder.path().join(name);
            text_of(&path, name).unwrap_err().to_string()
        };
        let beside = |name: &str| format!("did you mean {}?", folder.path().join(name).display());
        for (asked, is) in [("my.yml", "my.yaml"), ("my", "my.yaml"), ("oter.yaml", "other.yaml")] {
            assert!(told(asked).contains(&beside(is)), "{}", told(asked));
        }
        for unlike in ["checkout.yaml", "notes.tx"] {
            assert!(told(unlike).contains("no shipped scenario of that name"), "{}", told(unlike));
        }
    }
}
