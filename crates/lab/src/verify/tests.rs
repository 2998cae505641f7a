//! Against a server that loses, doubles and changes on purpose.

mod directory;
mod server;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use tidemark_record::ledger::{self, CHECK_DIGITS, Entry, Form, Forms, LedgerWriter, Piece};
use tidemark_record::manifest::ObjectiveResult;
use tidemark_record::summary::{Ledger, Status, Verdict, Verified};
use tidemark_scenario::plan::Objective;
use tidemark_verdict::ledger::judge;

use super::*;
use server::{Answer, Server, json_list};

const SEED: u64 = 7;
const USERS: usize = 3;

/// A scenario that asks each of three users, page by page.
fn scenario(verify: &str) -> String {
    format!(
        "sessions: {{a: {{steps: [{{GET: /}}]}}}}
load: {{users: 1, hold: 1s}}
feeders: {{users: {{values: [u0, u1, u2, u1], order: in turn}}}}
objectives: [lost = 0]
verify: {verify}
"
    )
}

const PAGED: &str = "{count: /count, parallel: 2, contents: {for: users, GET: '/messages/${users}?limit=10', \
    items: '$[*].payload', next: {header: Next-Cursor}, as: cursor}}";

fn recipe(verify: &str, url: &str) -> Recipe {
    let plan = tidemark_scenario::load_text("t.yaml", &scenario(verify), Path::new("."), &[]).unwrap();
    Recipe::of(&plan, url, Known::default(), SEED).unwrap().unwrap()
}

fn content(entry: Entry) -> Vec<u8> {
    content_behind("some \"words\" before", entry)
}

fn content_behind(words: &str, entry: Entry) -> Vec<u8> {
    let mut content = format!("{words}|{entry}|").into_bytes();
    let at = content.len();
    content.extend_from_slice(&[b'0'; CHECK_DIGITS]);
    content.extend_from_slice(b"|and behind");
    ledger::stamp(SEED, entry, &mut content, at);
    content
}

/// The ledger of a run of two threads that sent so many each, with what they never got an answer for.
fn entered(run_dir: &Path, each: u64, unacknowledged: &[u64]) -> Vec<Entry> {
    let pieces = [
        Piece::Varying,
        Piece::Literal(b"|"),
        Piece::Entry,
        Piece::Literal(b"|"),
        Piece::Check,
        Piece::Literal(b"|"),
        Piece::Varying,
    ];
    Forms::write(run_dir, SEED, vec![Form::new("Write", &pieces)]).unwrap();
    let mut writer = LedgerWriter::for_threads(run_dir, 2).unwrap();
    let mut entries = Vec::new();
    for thread in 0..2 {
        let mut part = ledger::Part::new(thread);
        for number in 0..each {
            entries.push(part.enter());
            if !unacknowledged.contains(&number) {
                part.acknowledge(number);
            }
        }
        writer.add(&part, 1_000_000).unwrap();
    }
    entries
}

/// A server that holds these contents, spread over the users, ten a page.
fn holding(contents: Vec<Vec<u8>>, counted: usize) -> Server {
    Server::start(move |path| {
        if path == "/count" {
            return Answer::ok(format!("{counted}\n"));
        }
        let (user, query) = path.strip_prefix("/messages/u").unwrap().split_once("?limit=10").unwrap();
        let user: usize = user.parse().unwrap();
        let from: usize = query.strip_prefix("&cursor=").map_or(0, |at| at.parse().unwrap());
        let of_user: Vec<_> = contents.iter().skip(user).step_by(USERS).collect();
        let page: Vec<_> = of_user.iter().skip(from).take(10).map(|content| &content[..]).collect();
        let more = from + 10 < of_user.len();
        let answer = Answer::ok(json_list("payload", &page));
        if more { answer.with("next-cursor", (from + 10).to_string()) } else { answer }
    })
}

fn look(run_dir: &Path, recipe: &Recipe) -> Ledger {
    let target = recipe.target().unwrap();
    let pages = Pages::new(recipe, &target).unwrap();
    verify(run_dir, recipe, &pages, &|| true, &mut |_| {}).unwrap()
}

fn numbers(of: &Verified) -> [u64; 6] {
    [of.found, of.lost, of.duplicated, of.unacknowledged_found, of.different, of.foreign]
}

#[test]
fn all_numbers_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    let entries = entered(dir.path(), 100, &[5, 6, 7]);
    let mut held: Vec<Vec<u8>> = entries.iter().map(|entry| content(*entry)).collect();
    // lost: two of thread 0, one of thread 1, and one that nobody acknowledged
    let gone = [(0, 3), (0, 99), (1, 50), (1, 7)].map(|(thread, number)| Entry { thread, number });
    held.retain(|one| !gone.iter().any(|entry| content(*entry) == *one));
    // twice, and once more
    held.extend([content(Entry { thread: 0, number: 1 }), content(Entry { thread: 0, number: 1 })]);
    // changed behind the checksum
    let changed = held.iter_mut().find(|one| **one == content(Entry { thread: 1, number: 20 })).unwrap();
    changed.push(b'!');
    // nobody's, another run's, and what this run sent without a note in its ledger, as when the driver dies
    let mut other = content(Entry { thread: 9, number: 1 });
    other.extend_from_slice(b" of another run");
    held.extend([b"who wrote this?".to_vec(), other, content(Entry { thread: 1, number: 100 })]);
    let server = holding(held.clone(), held.len());

    let found = look(dir.path(), &recipe(PAGED, &server.url));
    assert_eq!((found.sent, found.acknowledged, found.not_verified), (200, 194, None));
    let verified = found.verified.unwrap();
    // the changed one is not what was sent
    assert_eq!((numbers(&verified), verified.changed), ([190, 4, 2, 6, 1, 2], 1));
    assert_eq!(verified.shown(), held.len() as u64);
    assert!(!verified.is_miscounted() && !verified.is_whole());
    let of = |kind: &str| -> Vec<&str> {
        let examples = verified.examples.iter().filter(|example| example.kind == kind);
        examples.map(|example| example.entry.as_str()).collect()
    };
    assert_eq!(of("lost"), ["0000000000000003", "0000000000000099", "0010000000000020", "0010000000000050"]);
    assert_eq!(of("different"), ["0010000000000020"]);
    assert_eq!(verified.examples[0].sent_us, Some((0, 1_000_000)));
    let when: Vec<_> = verified.lost_when.iter().map(|when| (when.from_us, when.to_us, when.lost)).collect();
    assert_eq!(when, [(0, 1_000_000, 4)]);
}

/// A store of which a part is gone.
struct Half(Vec<Vec<u8>>);

impl PartReader for &Half {
    fn read(&mut self, _: usize, _: &Bounds, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unfinished> {
        self.0.iter().for_each(|content| visit(content));
        Ok(())
    }
}

impl StoredContents for Half {
    fn reader(&self) -> Result<Box<dyn PartReader + '_>, Unfinished> {
        Ok(Box::new(self))
    }

    fn unread(&self) -> Option<String> {
        Some("1 of 2 servers could not be read: h:1 (gone)".into())
    }
}

#[test]
fn what_a_server_that_is_gone_held_is_not_known() {
    let dir = tempfile::tempdir().unwrap();
    let entries = entered(dir.path(), 10, &[]);
    for there in [12, 20] {
        let half = Half(entries[..there].iter().map(|entry| content(*entry)).collect());
        let recipe = recipe(PAGED, "http://127.0.0.1:1");
        let found = verify(dir.path(), &recipe, &half, &|| true, &mut |_| {}).unwrap();
        assert_eq!(found.verified, None, "never lost 0");
        let told = found.not_verified.clone().unwrap();
        let wanted = format!("h:1 (gone); the others hold {there} of 20 acknowledged writes");
        assert!(told.contains(&wanted), "{told}");
        assert_eq!(judged(&found, &["lost = 0"]).0.status, Status::Invalid);
    }
}

#[test]
fn a_store_that_counts_more_than_it_shows_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let entries = entered(dir.path(), 10, &[]);
    let server = holding(entries.iter().map(|entry| content(*entry)).collect(), 21);
    let found = look(dir.path(), &recipe(PAGED, &server.url));
    let verified = found.verified.clone().unwrap();
    assert_eq!((numbers(&verified), verified.counted), ([20, 0, 0, 0, 0, 0], Some(21)));
    let (verdict, _) = judged(&found, &["lost = 0"]);
    assert_eq!(verdict.status, Status::Fail);
    assert_eq!(verdict.reasons, ["miscounted: the system counts 21, but showed 20"]);
}

/// The verdict of a run that would have passed.
fn judged(ledger: &Ledger, objectives: &[&str]) -> (Verdict, Vec<bool>) {
    let objectives: Vec<_> = objectives.iter().map(|text| Objective::read(text).unwrap()).collect();
    let result =
        |of: &Objective| ObjectiveResult { objective: of.text.clone(), ..ObjectiveResult::default() };
    let mut results: Vec<_> = objectives.iter().map(result).collect();
    let before = Verdict { status: Status::Pass, reasons: Vec::new() };
    let verdict = judge(&before, &objectives, &mut results, Some(ledger), true);
    (verdict, results.iter().map(|result| result.met).collect())
}

#[test]
fn what_was_lost_fails_unless_an_objective_allows_it() {
    let with = |verified: Verified| Ledger {
        sent: 1_000,
        acknowledged: 1_000,
        verified: Some(verified),
        ..Ledger::default()
    };
    let lost = with(Verified { found: 995, lost: 5, ..Verified::default() });
    assert_eq!(judged(&lost, &[]).0.reasons, ["lost: 5 of 1000 acknowledged writes are gone"]);
    let (verdict, met) = judged(&lost, &["lost = 0"]);
    assert_eq!((verdict.status, met), (Status::Fail, vec![false]));
    assert_eq!(verdict.reasons, ["lost = 0 missed: 5"]);
    for allowed in ["lost < 1%", "lost <= 5"] {
        assert_eq!(judged(&lost, &[allowed]).0.status, Status::Pass, "{allowed}");
    }
    assert_eq!(judged(&lost, &["lost < 0.5%"]).0.reasons, ["lost < 0.5% missed: 0.5%"]);

    let hint = Some("no key matches".to_owned());
    let asked_wrongly = with(Verified { lost: 1_000, hint: hint.clone(), ..Verified::default() });
    assert_eq!(judged(&asked_wrongly, &["lost = 0"]).0.reasons, ["lost = 0 missed: 1000", "no key matches"]);
    let empty = with(Verified { hint, found: 1_000, ..Verified::default() });
    assert_eq!(judged(&empty, &[]).0, whole_verdict());

    let doubled = with(Verified { found: 1_000, duplicated: 2, ..Verified::default() });
    assert_eq!(judged(&doubled, &["lost = 0"]).0.status, Status::Fail);
    assert_eq!(judged(&doubled, &["duplicated < 3"]).0.status, Status::Pass);
    let changed = with(Verified { found: 1_000, different: 1, ..Verified::default() });
    assert_eq!(judged(&changed, &["lost < 10", "duplicated < 3"]).0.status, Status::Fail);
    let whole = with(Verified { found: 1_000, unacknowledged_found: 9, ..Verified::default() });
    assert_eq!(judged(&whole, &["lost = 0"]), (whole_verdict(), vec![true]));
}

#[test]
fn nothing_acknowledged_meets_no_objective_on_losses() {
    let nothing = Ledger { sent: 9, verified: Some(Verified::default()), ..Ledger::default() };
    for objective in ["lost = 0", "lost < 1%"] {
        let (verdict, met) = judged(&nothing, &[objective]);
        assert_eq!((verdict.status, met), (Status::Fail, vec![false]));
        let wanted = format!("{objective} missed: nothing was acknowledged, so nothing was verified");
        assert_eq!(verdict.reasons, [wanted]);
    }
    assert_eq!(judged(&nothing, &["duplicated = 0"]), (whole_verdict(), vec![true]));
}

#[test]
fn a_ledger_that_is_not_whole_verifies_nothing() {
    let once = "{contents: {GET: /all, items: '$[*].payload'}}";
    let damage = |break_it: fn(&Path)| {
        let dir = tempfile::tempdir().unwrap();
        let entries = entered(dir.path(), 5, &[]);
        let held: Vec<_> = entries.iter().map(|entry| content(*entry)).collect();
        let server = Server::start(move |_| {
            Answer::ok(json_list("payload", &held.iter().map(|content| &content[..]).collect::<Vec<_>>()))
        });
        break_it(&dir.path().join("ledger"));
        let found = look(dir.path(), &recipe(once, &server.url));
        let (verdict, _) = judged(&found, &["lost = 0"]);
        assert!(verdict.status != Status::Pass || found.not_verified.is_none());
        found.not_verified.unwrap_or_default()
    };
    assert_eq!(damage(|_| {}), "");
    let said = damage(|ledger| std::fs::remove_file(ledger.join("thread-1.log")).unwrap());
    assert!(said.contains("thread-1.log is missing"), "{said}");
    let said = damage(|ledger| {
        let path = ledger.join("thread-0.log");
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.len() - 3;
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    });
    assert!(said.contains("thread-0.log is damaged"), "{said}");
}

#[test]
fn a_ledger_that_holds_less_than_the_run_knew_verifies_nothing() {
    let dir = tempfile::tempdir().unwrap();
    entered(dir.path(), 5, &[]);
    let known = super::entered(dir.path(), "").unwrap().unwrap();
    assert!(shrunk(dir.path(), Some(&known)).unwrap().is_none());
    // as if its end had been cut off
    let path = dir.path().join("ledger/thread-1.log");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let shrunk = shrunk(dir.path(), Some(&known)).unwrap().unwrap();
    let said = shrunk.not_verified.unwrap();
    assert!(
        shrunk.verified.is_none()
            && said.contains("5 acknowledged writes of 5 sent, but the run had 10 of 10"),
        "{said}"
    );
}

#[test]
fn a_recipe_is_kept_without_its_secrets_and_takes_them_again() {
    let dir = tempfile::tempdir().unwrap();
    let text = scenario(
        "{count: '/n?of=${api_key}', contents: {GET: '/all/${api_key}', items: $}, headers: {Authorization: Bearer of-verify, \
         X-Token: abc, X-From: '${env(CARGO_PKG_NAME)}', Accept: any}}",
    );
    let text = format!("settings: {{api_key: 'a key/of mine'}}\n{text}");
    let plan = tidemark_scenario::load_text("t.yaml", &text, Path::new("."), &[]).unwrap();
    let recipe = Recipe::of(&plan, "http://127.0.0.1:9", Known::default(), SEED).unwrap().unwrap();
    recipe.write(dir.path()).unwrap();
    let kept = std::fs::read_to_string(dir.path().join("ledger/verify.json")).unwrap();
    for secret in ["of-verify", "\"abc\"", env!("CARGO_PKG_NAME"), "mine"] {
        assert!(!kept.contains(secret), "{secret} in {kept}");
    }
    let error = Recipe::read(dir.path(), &[], None).unwrap_err();
    assert_eq!(error.exit_status(), 2);
    let said = error.to_string();
    for missing in [
        "the setting api_key (--set api_key=…)",
        "the header Authorization (--set",
        "the header X-Token (--set",
    ] {
        assert!(said.contains(missing), "{said}");
    }
    assert!(!said.contains("CARGO_PKG_NAME"), "it is in the environment: {said}");
    let given = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let all =
        [given("api_key", "a key/of mine"), given("Authorization", "of-verify"), given("X-Token", "abc")];
    let again = Recipe::read(dir.path(), &all, None).unwrap();
    assert_eq!(again.headers, recipe.headers);
    assert_eq!(again.count.unwrap().path, recipe.count.unwrap().path);
    assert_eq!(again.contents.unwrap().paths, recipe.contents.unwrap().paths);
    let error = Recipe::read(dir.path(), &[&all[..], &[given("other", "x")]].concat(), None).unwrap_err();
    assert!(error.to_string().contains("--set other: this run needs no such secret"), "{error}");
}

#[test]
fn a_password_in_a_new_url_is_not_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let text = scenario("{contents: {GET: /all, items: $}}");
    let plan = tidemark_scenario::load_text("t.yaml", &text, Path::new("."), &[]).unwrap();
    let url = "http://u:of-before@127.0.0.1:9";
    Recipe::of(&plan, url, Known::default(), SEED).unwrap().unwrap().write(dir.path()).unwrap();
    let error = Recipe::read(dir.path(), &[], None).unwrap_err();
    assert!(error.to_string().contains("--set password"), "{error}");
    let again = Recipe::read(dir.path(), &[], Some("http://u:another-one@127.0.0.1:8")).unwrap();
    assert!(!again.secrets.masked("it was another-one").contains("another-one"));
}

fn whole_verdict() -> Verdict {
    Verdict { status: Status::Pass, reasons: Vec::new() }
}

#[test]
fn what_could_not_be_verified_is_never_a_pass_and_a_proven_loss_always_a_fail() {
    let unseen = Ledger { acknowledged: 9, not_verified: Some("no answer".into()), ..Ledger::default() };
    let (verdict, met) = judged(&unseen, &["lost = 0"]);
    assert_eq!((verdict.status, met), (Status::Invalid, vec![false]));
    assert_eq!(verdict.reasons, ["not verified: no answer"]);

    // a run that failed anyway still failed
    let before = Verdict { status: Status::Fail, reasons: vec!["p99 < 1ms missed: 2ms".into()] };
    let after = judge(&before, &[], &mut [], Some(&unseen), true);
    assert_eq!(after.status, Status::Fail);
    assert_eq!(after.reasons, ["p99 < 1ms missed: 2ms", "not verified: no answer"]);
    // nobody asked for it
    assert_eq!(judge(&whole_verdict(), &[], &mut [], Some(&unseen), false).status, Status::Pass);
    let lost = [Objective::read("lost = 0").unwrap()];
    assert_eq!(
        judge(&whole_verdict(), &lost, &mut [], None, false).reasons,
        ["lost = 0 missed: not measured"]
    );

    let before = Verdict { status: Status::Invalid, reasons: vec!["driver-bound: x".into()] };
    let gone = Ledger {
        acknowledged: 9,
        verified: Some(Verified { lost: 1, ..Verified::default() }),
        ..Ledger::default()
    };
    let after = judge(&before, &[], &mut [], Some(&gone), true);
    assert_eq!(after.status, Status::Fail);
    assert_eq!(after.reasons, ["lost: 1 of 9 acknowledged writes are gone", "driver-bound: x"]);
}

#[test]
fn a_server_that_is_busy_or_breaks_off_is_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let entries = entered(dir.path(), 5, &[]);
    let held: Vec<_> = entries.iter().map(|entry| content(*entry)).collect();
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |_| {
        let page = json_list("payload", &held.iter().map(|content| &content[..]).collect::<Vec<_>>());
        match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Answer::status(503).with("retry-after", "0".into()),
            // the connection is cut in the midst of the page, which holds everything already
            1 => Answer::ok(page).cut(),
            2 => Answer::none(),
            _ => Answer::ok(page),
        }
    });
    let once = recipe("{contents: {GET: /all, items: '$[*].payload'}}", &server.url);
    let found = look(dir.path(), &once);
    assert_eq!(found.not_verified, None);
    assert_eq!(numbers(&found.verified.unwrap()), [10, 0, 0, 0, 0, 0]);
}

#[test]
fn a_system_that_is_behind_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let entries = entered(dir.path(), 5, &[]);
    let held: Vec<_> = entries.iter().map(|entry| content(*entry)).collect();
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |path| match path {
        "/behind" => {
            let left = 2usize.saturating_sub(asked.fetch_add(1, Ordering::Relaxed));
            Answer::ok(format!("{{\"behind\": {left}}}"))
        }
        // two are shown only once it has said that it is not behind any more
        _ => {
            let shown = if asked.load(Ordering::Relaxed) < 3 { held.len() - 2 } else { held.len() };
            Answer::ok(json_list("payload", &held[..shown].iter().map(|of| &of[..]).collect::<Vec<_>>()))
        }
    });
    let contents = "contents: {GET: /all, items: '$[*].payload'}";
    let patient = format!("{{behind: {{GET: /behind, json: $.behind}}, {contents}}}");
    let found = look(dir.path(), &recipe(&patient, &server.url));
    assert_eq!(numbers(&found.verified.unwrap()), [10, 0, 0, 0, 0, 0]);

    let server = Server::start(|_| Answer::ok("7".into()));
    let found = look(dir.path(), &recipe(&format!("{{behind: /n, within: 1s, {contents}}}"), &server.url));
    let reason = found.not_verified.unwrap();
    assert!(found.verified.is_none() && reason.starts_with("7 of the writes"), "{reason}");
}

#[test]
fn what_keeps_a_search_from_seeing_everything_is_named() {
    let dir = tempfile::tempdir().unwrap();
    entered(dir.path(), 5, &[]);
    let once = |verify: &str, answer: fn(&str) -> Answer| {
        let server = Server::start(answer);
        let found = look(dir.path(), &recipe(verify, &server.url));
        assert!(found.verified.is_none());
        assert_eq!((found.sent, found.acknowledged), (10, 10));
        found.not_verified.unwrap()
    };
    let plain = "{contents: {GET: /all, items: '$[*].payload'}}";
    assert_eq!(once(plain, |_| Answer::status(404)), "GET /all: status 404");
    assert!(once(plain, |_| Answer::ok("[{\"payload\": ".into())).starts_with("GET /all: not JSON"));
    let zipped = once(plain, |_| Answer::ok("[]".into()).with("content-encoding", "br".into()));
    assert!(zipped.contains("the body cannot be read as br: "), "{zipped}");
    let endless = "{contents: {GET: /all, items: '$.items[*]', next: {json: $.next}, as: page}}";
    let said = once(endless, |_| Answer::ok("{\"items\": [], \"next\": \"7\"}".into()));
    assert!(said.contains("never end"), "{said}");
    let counted = "{count: {GET: /n, json: $.n}, contents: {GET: /all, items: '$[*]'}}";
    let said = once(counted, |path| Answer::ok(if path == "/n" { "{\"n\": \"x\"}" } else { "[]" }.into()));
    assert_eq!(said, "GET /n: the answer is not a number: \"x\"");
    let slow = "{within: 300ms, contents: {GET: /all, items: '$[*]'}}";
    let said = once(slow, |_| {
        std::thread::sleep(Duration::from_secs(2));
        Answer::ok("[]".into())
    });
    assert!(said.starts_with("not everything was read within 300ms"), "{said}");
}

#[test]
fn a_server_that_dies_in_between_leaves_it_not_verified() {
    let dir = tempfile::tempdir().unwrap();
    let entries = entered(dir.path(), 100, &[]);
    let held: Vec<_> = entries.iter().map(|entry| content(*entry)).collect();
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0..3 => {
            let page: Vec<_> = held.iter().map(|content| &content[..]).collect();
            Answer::ok(json_list("payload", &page))
        }
        _ => Answer::die(),
    });
    let recipe = recipe(
        "{within: 1s, contents: {for: users, GET: '/m/${users}', items: '$[*].payload', next: {header: x}, as: c}}",
        &server.url,
    );
    let target = recipe.target().unwrap();
    // three pages, then it is gone
    let pages = Pages::new(&recipe, &target).unwrap();
    let mut reader = pages.reader().unwrap();
    let bounds = Bounds::new(Duration::from_secs(1));
    for part in 0..3 {
        let mut seen = 0;
        reader.read(part, &bounds, &mut |_| seen += 1).unwrap();
        assert_eq!(seen, 200);
    }
    let found = look(dir.path(), &recipe);
    let reason = found.not_verified.unwrap();
    assert!(found.verified.is_none() && reason.starts_with("GET /m/u"), "{reason}");
}

#[test]
fn whoever_stops_it_gets_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    entered(dir.path(), 5, &[]);
    let recipe = recipe("{settle: 1m, contents: {GET: /all, items: '$[*]'}}", "http://127.0.0.1:9");
    let target = recipe.target().unwrap();
    let pages = Pages::new(&recipe, &target).unwrap();
    let found = verify(dir.path(), &recipe, &pages, &|| false, &mut |_| {}).unwrap();
    assert!(was_stopped(&found), "{found:?}");
}

#[test]
fn a_run_without_a_ledger_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let found = look(dir.path(), &recipe("{contents: {GET: /, items: $}}", "http://127.0.0.1:9"));
    assert_eq!(found.not_verified.as_deref(), Some(NO_LEDGER));
    assert!(super::entered(dir.path(), NO_VERIFY).unwrap().is_none());
}

#[test]
fn a_recipe_is_kept_and_can_go_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let error = Recipe::read(dir.path(), &[], None).unwrap_err();
    assert!(error.to_string().contains("`verify:`") && error.exit_status() == 2, "{error}");
    let server = holding(Vec::new(), 0);
    recipe(PAGED, "http://127.0.0.1:9").write(dir.path()).unwrap();
    let mut kept = Recipe::read(dir.path(), &[], None).unwrap();
    let paths = ["/messages/u0?limit=10", "/messages/u1?limit=10", "/messages/u2?limit=10"];
    assert_eq!(kept.contents.as_ref().unwrap().paths, paths, "each row once");
    kept.move_to(&server.url);
    entered(dir.path(), 3, &[]);
    let verified = look(dir.path(), &kept).verified.unwrap();
    assert_eq!(numbers(&verified), [0, 6, 0, 0, 0, 0]);
    assert_eq!(kept.objectives()[0].text, "lost = 0");
}

/// Each write is to be in two of the lists of users 1 to 3, and the last one is in one only, twice.
#[test]
fn what_is_in_several_places_is_looked_for_in_each() {
    let dir = tempfile::tempdir().unwrap();
    let entries = entered(dir.path(), 4, &[]);
    let held: Vec<Vec<u8>> = entries.iter().map(|entry| content_behind("in 2 places", *entry)).collect();
    let server = Server::start(move |path| {
        let shows = |numbers: &[usize]| {
            let shown: Vec<_> = numbers.iter().map(|number| &held[*number][..]).collect();
            Answer::ok(json_list("payload", &shown))
        };
        match path {
            "/last" => Answer::ok("3".to_owned()),
            "/in/1" => shows(&[0, 1, 2, 3]),
            "/in/2" => shows(&[4, 5, 0, 1, 2]),
            "/out/2" => shows(&[4, 5, 6, 7, 7]),
            "/out/3" => shows(&[3, 6]),
            "/out/1" => shows(&[]),
            // numbers may leave some out
            "/in/3" => Answer::status(404),
            other => panic!("{other}"),
        }
    });
    let verify = "{contents: {for: {number: n, to: /last}, GET: ['/in/${n}', '/out/${n}'], items: '$[*].payload', \
        copies: 'in ([0-9]+) places'}}";
    recipe(verify, &server.url).write(dir.path()).unwrap();
    let verified = look(dir.path(), &Recipe::read(dir.path(), &[], None).unwrap()).verified.unwrap();
    assert_eq!(numbers(&verified), [7, 1, 1, 0, 0, 0]);
    assert_eq!((verified.incomplete, verified.absent), (1, 1));
}

#[test]
fn next_pages_may_be_named_by_their_path() {
    let dir = tempfile::tempdir().unwrap();
    let entries = entered(dir.path(), 4, &[]);
    let held: Vec<String> =
        entries.iter().map(|e| String::from_utf8(content(*e)).unwrap().replace('"', "\\\"")).collect();
    let server = Server::start(move |path| {
        let at: usize = path.strip_prefix("/at/").unwrap().parse().unwrap();
        let next = if at < 7 { format!("\"/at/{}\"", at + 1) } else { "null".into() };
        Answer::ok(format!("{{\"items\": [\"{}\"], \"next\": {next}}}", held[at]))
    });
    let recipe = recipe("{contents: {GET: /at/0, items: '$.items[*]', next: {json: $.next}}}", &server.url);
    assert_eq!(numbers(&look(dir.path(), &recipe).verified.unwrap()), [8, 0, 0, 0, 0, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever is held, in whatever order: the numbers are those of plain sets.
    #[test]
    fn findings_agree_with_plain_sets(
        each in 1..60u64,
        unacknowledged in prop::collection::btree_set(0..60u64, 0..10),
        copies in prop::collection::vec(0..3usize, 120),
        twist in any::<u64>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let entries = entered(dir.path(), each, &unacknowledged.iter().copied().collect::<Vec<_>>());
        let mut held = Vec::new();
        let mut expected = [0; 4];
        for (entry, &copies) in entries.iter().zip(&copies) {
            held.extend(std::iter::repeat_n(content(*entry), copies));
            match (unacknowledged.contains(&entry.number), copies) {
                (false, 0) => expected[1] += 1,
                (true, 0) => {}
                (false, _) => expected[0] += 1,
                (true, _) => expected[3] += 1,
            }
            expected[2] += copies.saturating_sub(1) as u64;
        }
        fastrand::Rng::with_seed(twist).shuffle(&mut held);
        let count = held.len();
        let server = holding(held, count);
        let verified = look(dir.path(), &recipe(PAGED, &server.url)).verified.unwrap();
        let [found, lost, duplicated, unacknowledged_found, different, foreign] = numbers(&verified);
        prop_assert_eq!([found, lost, duplicated, unacknowledged_found], expected);
        prop_assert_eq!((different, foreign, verified.counted), (0, 0, Some(count as u64)));
    }

    /// Any bytes as an answer: read or refused, never a panic, and bounded in time.
    #[test]
    fn any_answer_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200), honest in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        entered(dir.path(), 1, &[]);
        let body = if honest { [&b"[{\"payload\":"[..], &body, b"}]"].concat() } else { body };
        let server = Server::start(move |_| Answer::bytes(body.clone()));
        let found = look(dir.path(), &recipe("{contents: {GET: /a, items: '$[*].payload'}}", &server.url));
        prop_assert!(found.verified.is_some() != found.not_verified.is_some());
    }
}
