//! What the sides are that run in turn: one scenario with two settings, commands, URLs or revisions, or the scenarios of a
//! file.

use std::fs;
use std::path::{Path, PathBuf};

use tidemark_lab::revisions::{Worktree, repository};
use tidemark_record::RUNS_DIR;
use tidemark_scenario::plan::SystemOrigin;
use tidemark_scenario::{Comparison, Experiment, Plan, Side, command_words};

use super::args::CompareArguments;
use crate::failure::Failure;
use crate::{output, scenario};

/// The sides, and what is gone with them.
pub struct Sides {
    /// The sides.
    pub comparison: Comparison,
    /// The git revision of each, where it is not that of this folder.
    pub revisions: Vec<Option<String>>,
    /// Removed at the end.
    pub trees: Option<Trees>,
}

/// Worktrees, and the folder that they are in.
pub struct Trees {
    // the order matters: git forgets them before their folder is gone
    trees: Vec<Worktree>,
    folder: Folder,
}

/// A folder that is removed when dropped, unless something in it is still of use.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // what stays is where the user looks for runs
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Finds out what the sides are, and builds what is to be built.
pub fn sides(word: &str, arguments: &CompareArguments) -> Result<Sides, Failure> {
    let plan = match scenario::load(word, &arguments.settings)? {
        Experiment::Comparison(_) if arguments.has_sides() => {
            return Err(Failure::usage(
                "this file names its sides itself; leave out what names others, or give it one of its scenarios",
            ));
        }
        Experiment::Comparison(comparison) => return Ok(of_file(*comparison)),
        Experiment::One(plan) => *plan,
    };
    if !arguments.has_sides() {
        return Err(Failure::usage(format!(
            "{word} is one scenario; say what it is held against: --vs SETTING=VALUE, --command twice, --url twice, --revision twice, \
             or --baseline RUN"
        )));
    }
    if !arguments.vs.is_empty() {
        return with_settings(word, plan, arguments);
    }
    if !arguments.revisions.is_empty() {
        return of_revisions(&plan, arguments);
    }
    let (texts, is_url) = match arguments.commands.is_empty() {
        false => (&arguments.commands, false),
        true => (&arguments.urls, true),
    };
    let side = |text: &String| -> Result<(String, Plan), Failure> {
        let mut of = plan.clone();
        let changed = if is_url { of.drive_instead(text) } else { of.start_instead(text) };
        changed.map_err(|reason| Failure::usage(format!("{text}: {reason}")))?;
        Ok((of.secrets.masked(text), of))
    };
    let sides = texts.iter().map(side).collect::<Result<Vec<_>, Failure>>()?;
    Ok(plain(sides))
}

/// The scenarios that a file compares.
fn of_file(mut comparison: Comparison) -> Sides {
    if comparison.equal_rate.take().or(comparison.own_rate.take()).is_some() {
        output::remark(
            "each runs with its own load here; `equal rate` and `own rate` are for `tidemark run`",
        );
    }
    let revisions = vec![None; comparison.sides.len()];
    Sides { comparison, revisions, trees: None }
}

/// The scenario as it is, and with other settings.
fn with_settings(word: &str, plan: Plan, arguments: &CompareArguments) -> Result<Sides, Failure> {
    let (own, vs) = (&arguments.settings, &arguments.vs);
    let other = own.iter().filter(|(key, _)| vs.iter().all(|(other, _)| other != key)).chain(vs);
    let other: Vec<(String, String)> = other.cloned().collect();
    let Experiment::One(of_vs) = scenario::load(word, &other)? else {
        return Err(Failure::usage(format!("with --vs {word} is a comparison, which cannot be a side")));
    };
    let shown = |settings: &[(String, String)]| {
        settings.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    };
    let replaced: Vec<(String, String)> =
        own.iter().filter(|(key, _)| vs.iter().any(|(other, _)| other == key)).cloned().collect();
    let name = if replaced.is_empty() { format!("without {}", shown(vs)) } else { shown(&replaced) };
    let of_vs = *of_vs;
    let mask = |text: &str| of_vs.secrets.masked(&plan.secrets.masked(text));
    let [a, b] = [mask(&name), mask(&shown(vs))];
    Ok(plain(vec![(a, plan), (b, of_vs)]))
}

/// Sides without revisions of their own.
fn plain(sides: Vec<(String, Plan)>) -> Sides {
    let revisions = vec![None; sides.len()];
    Sides { comparison: comparison(sides), revisions, trees: None }
}

/// A comparison of plans by name; names that are the same get a number.
fn comparison(sides: Vec<(String, Plan)>) -> Comparison {
    let first = &sides[0].1;
    let mut secrets = first.secrets.clone();
    sides.iter().for_each(|(_, plan)| secrets.extend(&plan.secrets));
    let (name, description) = (first.name.clone(), first.description.clone());
    let (source_name, source) = (first.source_name.clone(), first.source.clone());
    let mut named: Vec<Side> = Vec::new();
    for (name, plan) in sides {
        let numbered = (2..).map(|number| format!("{name} #{number}"));
        let free = |name: &String| named.iter().all(|other| other.name != *name);
        let name = [name.clone()].into_iter().chain(numbered).find(free).unwrap_or_default();
        named.push(Side { name, plan, if_installed: false });
    }
    Comparison {
        name,
        description,
        sides: named,
        equal_rate: None,
        own_rate: None,
        rounds: 1,
        source_name,
        source,
        secrets,
    }
}

/// The scenario's command from several revisions of the repository that this folder is in.
fn of_revisions(plan: &Plan, arguments: &CompareArguments) -> Result<Sides, Failure> {
    if !matches!(plan.system.origin, SystemOrigin::Command(_)) {
        return Err(Failure::usage(
            "--revision needs a scenario whose system is a `command`, which is started in each revision's worktree",
        ));
    }
    let build = arguments.build.as_deref().map(command_words).transpose();
    let build = build.map_err(|reason| Failure::usage(format!("--build: {reason}")))?;
    let here = std::env::current_dir().and_then(|folder| folder.canonicalize());
    let here = here.map_err(|error| Failure::usage(format!("this folder cannot be read: {error}")))?;
    let root = repository(&here)?;
    let within = here.strip_prefix(&root).unwrap_or(Path::new(""));
    let path = place_of_trees(&here, arguments.out.as_deref());
    fs::create_dir_all(&path)
        .map_err(|error| Failure::usage(format!("cannot create {}: {error}", path.display())))?;
    let mut trees = Trees { trees: Vec::new(), folder: Folder { path, keep: false } };
    let (mut sides, mut revisions) = (Vec::new(), Vec::new());
    for (number, name) in (1..).zip(&arguments.revisions) {
        let tree = Worktree::add(&root, name, &trees.folder.path.join(number.to_string()))?;
        let short: String = tree.revision().chars().take(10).collect();
        if let Some(build) = &build {
            if !arguments.quiet {
                output::remark(&format!("building {name} ({short})"));
            }
            // the log of a build that failed is worth a look
            trees.folder.keep = true;
            let log = trees.folder.path.join(format!("build-{number}.log"));
            tree.build(build, within, &log)?;
            trees.folder.keep = false;
        }
        let mut of = plan.clone();
        of.start_within(&root, tree.path(), &here).map_err(Failure::usage)?;
        let same = name.starts_with(&short) || *name == short;
        sides.push((if same { name.clone() } else { format!("{name} ({short})") }, of));
        revisions.push(Some(tree.revision().to_owned()));
        trees.trees.push(tree);
    }
    Ok(Sides { comparison: comparison(sides), revisions, trees: Some(trees) })
}

/// Beside the directory of the runs.
fn place_of_trees(here: &Path, out: Option<&Path>) -> PathBuf {
    match out {
        Some(out) => {
            let mut name = out.file_name().unwrap_or_default().to_owned();
            name.push("-worktrees");
            here.join(out).with_file_name(name)
        }
        None => here.join(RUNS_DIR).join(format!("worktrees-{}", std::process::id())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let text = "system: {command: 'a {port}'}\nsessions: {s: {steps: [{GET: /x}]}}\nload: {users: 1, hold: 1s}\n";
        tidemark_scenario::load_text("t.yaml", text, Path::new("."), &[]).unwrap()
    }

    #[test]
    fn one_against_itself_has_two_names() {
        let comparison = comparison(vec![("a".into(), plan()), ("a".into(), plan()), ("a".into(), plan())]);
        let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
        assert_eq!(names, ["a", "a #2", "a #3"]);
    }

    #[test]
    fn worktrees_are_beside_the_runs() {
        let here = Path::new("/home/me");
        assert_eq!(place_of_trees(here, Some(Path::new("out/x"))), Path::new("/home/me/out/x-worktrees"));
        assert!(place_of_trees(here, None).starts_with("/home/me/runs"));
    }
}
