//! The directory of an embedded store: whole, with less in it than was acknowledged, damaged, gone.

use std::fs;

use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Durability, System};

use super::*;
use crate::shipped::{MessageStore, MessageTable, OperationsElsewhere, ShippedStores};

/// Whose store is a directory, perhaps behind a buffer, and what `verify` says of that.
fn plan(buffer: &str, verify: &str) -> Plan {
    let text = format!(
        "system: {{serve: ingest, settings: {{buffer: {buffer}}}}}
sessions: {{a: {{steps: [{{GET: /}}]}}}}
load: {{users: 1, hold: 1s}}
verify: {{store: embedded{verify}}}
"
    );
    tidemark_scenario::load_text("t.yaml", &text, Path::new("."), &[]).unwrap()
}

fn recipe_of_a_directory(plan: &Plan, url: &str) -> Recipe {
    let known = Known { directory: Some((Path::new("data"), Durability::Buffered)), ..Known::default() };
    Recipe::of(plan, url, known, SEED).unwrap().unwrap()
}

/// Waits for the directory as a run does.
fn wait(run_dir: &Path, recipe: &mut Recipe, goes_on: bool) -> Option<Unfinished> {
    let target = recipe.target().unwrap();
    catch_up(run_dir, recipe, &target, &|| goes_on, &mut |_| {}).unwrap()
}

/// A store of a file for each content, by its number.
#[derive(Debug)]
struct Files;

struct Open(Vec<Vec<u8>>);

impl MessageStore for Open {
    fn parts(&self) -> usize {
        2
    }

    fn count(&self) -> Result<Option<u64>, String> {
        Ok(Some(self.0.len() as u64))
    }

    fn payloads(
        &self,
        part: usize,
        _: &dyn Fn() -> bool,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        self.0.iter().skip(part).step_by(2).for_each(|payload| visit(payload));
        match self.0.iter().any(|payload| payload == DAMAGED) {
            true => Err("a block does not match its checksum".into()),
            false => Ok(()),
        }
    }
}

const DAMAGED: &[u8] = b"damaged";

impl ShippedStores for Files {
    fn can_read(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn directory(&self, dir: &Path, _: Durability) -> Result<Box<dyn MessageStore>, String> {
        let files = fs::read_dir(dir).map_err(|_| "no store in it".to_owned())?;
        Ok(Box::new(Open(files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect())))
    }

    fn table(&self, _: &MessageTable) -> Result<Box<dyn MessageStore>, String> {
        Err("a directory".into())
    }

    fn operations(&self, _: &System) -> Option<Box<dyn OperationsElsewhere>> {
        None
    }
}

/// Keeps contents in the store of a run; those with the same number replace each other.
fn keep(run_dir: &Path, contents: &[(u64, Vec<u8>)]) {
    let dir = run_dir.join("data");
    fs::create_dir_all(&dir).unwrap();
    contents.iter().for_each(|(number, content)| fs::write(dir.join(number.to_string()), content).unwrap());
}

fn look_directly(run_dir: &Path) -> Ledger {
    let recipe = recipe_of_a_directory(&plan("none", ""), "http://127.0.0.1:9");
    let target = recipe.target().unwrap();
    let store = direct_store(&recipe, run_dir, &target, &Files).unwrap();
    verify(run_dir, &recipe, &*store, &|| true, &mut |_| {}).unwrap()
}

#[test]
fn what_was_removed_or_changed_in_the_directory_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let entries = entered(dir.path(), 500, &[3]);
    let mut held: Vec<(u64, Vec<u8>)> =
        entries.iter().enumerate().map(|(number, entry)| (number as u64, content(*entry))).collect();
    // one of the acknowledged is not there, one is there twice, one is nobody's
    held.remove(700);
    held.push((2_000, content(entries[1])));
    held.push((2_001, b"who wrote this?".to_vec()));
    keep(dir.path(), &held);
    let found = look_directly(dir.path());
    let verified = found.verified.unwrap();
    assert_eq!(numbers(&verified), [997, 1, 1, 2, 0, 1]);
    assert_eq!((verified.counted, verified.is_miscounted()), (Some(1_001), false));

    // one is replaced by what was never sent
    let mut changed = content(entries[10]);
    changed.push(b'!');
    keep(dir.path(), &[(10, changed)]);
    let verified = look_directly(dir.path()).verified.unwrap();
    assert_eq!(
        (verified.lost, verified.different, verified.counted),
        (2, 1, Some(1_001)),
        "what was changed is lost"
    );
}

#[test]
fn a_directory_behind_a_buffer_is_read_once_the_system_is_no_longer_behind() {
    let dir = tempfile::tempdir().unwrap();
    entered(dir.path(), 5, &[]);
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |path| {
        assert_eq!(path, "/behind", "nothing else is asked");
        Answer::ok(2usize.saturating_sub(asked.fetch_add(1, Ordering::Relaxed)).to_string())
    });
    let mut recipe = recipe_of_a_directory(&plan("kafka", ", behind: /behind, settle: 1ms"), &server.url);
    assert!(recipe.asks_the_system() && recipe.is_of_a_directory());
    assert_eq!(wait(dir.path(), &mut recipe, true), None);
    // whoever verifies the run again need not ask any more: the system may be gone
    let written = Recipe::read(dir.path(), &[], None).unwrap();
    assert!(!written.asks_the_system() && written.settle().is_zero());
}

#[test]
fn a_system_that_stays_behind_its_directory_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    entered(dir.path(), 5, &[]);
    let server = Server::start(|_| Answer::ok("7".into()));
    let mut recipe = recipe_of_a_directory(&plan("kafka", ", behind: /behind, within: 1s"), &server.url);
    assert_eq!(wait(dir.path(), &mut recipe, false), Some(Unfinished::Stopped));
    let reason = wait(dir.path(), &mut recipe, true).unwrap();
    assert!(reason.to_string().starts_with("7 of the writes"), "{reason}");
    assert!(recipe.asks_the_system(), "it is to be asked again");
}

#[test]
fn a_directory_that_cannot_be_read_is_not_verified() {
    let dir = tempfile::tempdir().unwrap();
    let entries = entered(dir.path(), 500, &[]);
    let held: Vec<_> =
        entries.iter().enumerate().map(|(number, entry)| (number as u64, content(*entry))).collect();
    keep(dir.path(), &held);
    let reason = || {
        let found = look_directly(dir.path());
        assert_eq!((found.verified, found.acknowledged), (None, 1_000));
        found.not_verified.unwrap()
    };
    keep(dir.path(), &[(7, DAMAGED.into())]);
    assert!(reason().contains("does not match its checksum"), "{}", reason());
    fs::remove_dir_all(dir.path().join("data")).unwrap();
    assert!(reason().contains("no store in it"), "{}", reason());
}

#[test]
fn a_directory_needs_a_system_that_was_started() {
    let error = Recipe::of(&plan("none", ""), "http://127.0.0.1:9", Known::default(), SEED).unwrap_err();
    assert!(error.to_string().contains("with `contents`") && error.exit_status() == 2, "{error}");
}
