use tempfile::TempDir;
use tidemark_record::manifest::{ObjectiveResult, Store};
use tidemark_record::summary::{Process, Status, Verdict};
use tidemark_record::{
    InRounds, Outcome, OwnKind, OwnMetric, Reason, ReasonKind, RunWriter, Sample, summarize,
};

use super::*;
use crate::test_run::{self, timed};

const LABELS: [&str; 2] = ["Search", "Checkout"];

/// A run of so many seconds of two labels, each with a hundred answers a second; microseconds of each, and how many of a
/// hundred checkouts fail.
struct Recipe {
    seconds: u64,
    us: [u64; 2],
    failed: u32,
    cpu_s: f64,
}

const USUAL: Recipe = Recipe { seconds: 10, us: [10_000, 20_000], failed: 0, cpu_s: 2.0 };

fn write(dir: &Path, of: &Recipe) {
    let labels = LABELS.map(String::from);
    let mut writer = RunWriter::create(dir, &labels, "").unwrap();
    writer.threads(1);
    for second in 0..of.seconds {
        let mut one = test_run::second(second, 200);
        // a second differs from the next by a little
        let off = second % 3 * 20;
        let series = |label: u16, outcome, count: u32| {
            let us = of.us[usize::from(label)] + off;
            timed(label, outcome, true, &[([us, us], count)])
        };
        one.series = vec![series(0, Outcome::Ok, 100), series(1, Outcome::Ok, 100 - of.failed)];
        if of.failed > 0 {
            one.series.push(series(1, Outcome::Status, of.failed));
        }
        writer.add_interval(&one).unwrap();
        let share = of.cpu_s / of.seconds as f64;
        let at_us = (second + 1) * 1_000_000;
        writer
            .add_sample(&Sample { at_us, process: "system".into(), cpu_share: share, ..Sample::default() })
            .unwrap();
    }
    let mut summary = summarize(writer.totals(), dir);
    summary.verdict = Verdict { status: Status::Pass, reasons: Vec::new() };
    summary.processes = vec![Process {
        name: "system".into(),
        cpu_s: of.cpu_s,
        cpu_share: of.cpu_s / of.seconds as f64,
        rss_bytes_max: 10 << 20,
        ..Process::default()
    }];
    let mut manifest = Manifest::new("shop", labels.to_vec(), summary);
    manifest.load = "closed, 2 users".into();
    manifest.machine.cores = 2;
    writer.finish(&manifest).unwrap();
}

/// A side of runs by themselves.
fn side(temp: &TempDir, name: &str, recipes: &[Recipe]) -> Side {
    let dirs: Vec<PathBuf> = (1..=recipes.len()).map(|n| temp.path().join(format!("{name}-{n}"))).collect();
    dirs.iter().zip(recipes).for_each(|(dir, of)| write(dir, of));
    Side::of_runs(name, &dirs).unwrap()
}

/// The same, each in a round.
fn in_rounds(mut side: Side) -> Side {
    (1..).zip(&mut side.runs).for_each(|(round, run)| run.round = Some(round));
    side
}

/// Runs whose checkout takes so long, each off by some of these per mille.
fn around(us: u64, per_mille: &[i64]) -> Vec<Recipe> {
    let off = |us: u64, off: &i64| us.saturating_add_signed(us as i64 * off / 1_000);
    let run = |of: &i64| Recipe { us: [off(10_000, of), off(us, of)], ..USUAL };
    per_mille.iter().map(run).collect()
}

const SPREAD: [i64; 6] = [-5, 3, 0, 6, -4, 1];
const OTHER: [i64; 6] = [-3, 2, 2, 5, -6, 0];

fn claim<'c>(claims: &'c Claims, label: Option<&str>, figure: Figure) -> &'c Claim {
    let is = |of: &&Claim| of.label.as_deref() == label && of.figure == figure;
    claims.comparisons.iter().find(is).expect("it is compared")
}

#[test]
fn a_difference_of_one_label_is_found_and_said_in_a_sentence() {
    let temp = tempfile::tempdir().unwrap();
    let a = in_rounds(side(&temp, "a", &around(20_000, &SPREAD)));
    let b = in_rounds(side(&temp, "b", &around(22_000, &OTHER)));
    let rules =
        ["Checkout p99>+5%", "Checkout p99>+20%", "Search p50>+5%"].map(|text| Rule::parse(text).unwrap());
    let claims = Claims::of(&[a, b], Asked { bounds: went(600.0), rules: &rules, level: None }).unwrap();
    assert_eq!((claims.covers, claims.rounds), (Covers::BetweenRounds, 6));
    let checkout = claim(&claims, Some("Checkout"), Figure::P50);
    assert!(checkout.differs() && checkout.is_worse() && checkout.rounds.len() == 6, "{checkout:?}");
    assert!((1.09..1.11).contains(&checkout.ratio.unwrap()), "{checkout:?}");
    let search = claim(&claims, Some("Search"), Figure::P50);
    assert!(!search.differs() && search.low < Some(1.0) && search.high > Some(1.0), "{search:?}");
    let says = &claims.says[0];
    assert!(says.starts_with("B is slower: ") && says.ends_with("elsewhere"), "{says}");
    assert!(says.contains("no difference larger than "), "{says}");
    let failed: Vec<Option<bool>> = claims.fail_if.iter().map(|judged| judged.failed).collect();
    assert_eq!(failed, [Some(true), Some(false), Some(false)]);
    assert!(claims.has_failed() && claims.is_settled(0.03));
    let json: serde_json::Value = serde_json::from_str(&claims.json()).unwrap();
    for key in ["label", "figure", "ratio", "low", "high", "says"] {
        assert!(json["comparisons"][0].get(key).is_some(), "{key}");
    }
    assert_eq!(json["covers"], "between-rounds");
    assert_eq!(json["comparisons"][0]["label"], serde_json::Value::Null);
    crate::json::tests::assert_fits_verb(&json, "compare");
}

#[test]
fn one_against_itself_claims_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let [a, b] = [("a", SPREAD), ("b", OTHER)].map(|(name, off)| side(&temp, name, &around(20_000, &off)));
    let claims = Claims::of(&[a, b], Asked::default()).unwrap();
    assert_eq!(claims.covers, Covers::BetweenRuns);
    assert!(claims.comparisons.iter().all(|of| !of.differs()), "{:?}", claims.says);
    assert!(claims.says[0].starts_with("B against A: no difference larger than "), "{:?}", claims.says);
    assert!(claims.notes.iter().any(|note| note.contains("did not run in turn")), "{:?}", claims.notes);
}

#[test]
fn one_run_of_each_is_told_by_its_seconds_and_says_what_that_is_worth() {
    let temp = tempfile::tempdir().unwrap();
    let long = |us| Recipe { seconds: 40, us: [10_000, us], cpu_s: 8.0, ..USUAL };
    let a = side(&temp, "a", &[long(20_000)]);
    let b = side(&temp, "b", &[long(24_000)]);
    let rules = ["Checkout p50>+5%", "Checkout p50>+50%"].map(|text| Rule::parse(text).unwrap());
    let claims = Claims::of(&[a, b], Asked { rules: &rules, ..Asked::default() }).unwrap();
    assert_eq!(claims.covers, Covers::WithinRuns);
    assert!(claims.says[0].starts_with("Within these two runs, B is slower: "), "{:?}", claims.says);
    for judged in &claims.fail_if {
        assert_eq!(judged.failed, None, "{judged:?}");
        assert!(judged.says.ends_with("one run of each side cannot decide: give several"), "{judged:?}");
    }
    assert!(claims.fail_if.len() == 2 && !claims.has_failed());
    assert!(claim(&claims, Some("Checkout"), Figure::P50).differs());
    assert!(!claim(&claims, Some("Search"), Figure::P50).differs());
    assert!(claim(&claims, None, Figure::Cpu).low.is_some());
    let memory = claim(&claims, None, Figure::Memory);
    assert_eq!((memory.ratio, memory.low, memory.difference), (Some(1.0), None, None));
    assert!(claims.notes[0].contains("from run to run is in none of them"), "{:?}", claims.notes);
}

#[test]
fn only_the_side_with_a_single_run_is_never_sure() {
    let temp = tempfile::tempdir().unwrap();
    let long = |us| Recipe { seconds: 40, us: [10_000, us], cpu_s: 8.0, ..USUAL };
    let a = side(&temp, "a", &[long(20_000)]);
    let b = side(&temp, "b", &[long(24_000)]);
    let c = side(&temp, "c", &around(40_000, &[0, 1, -1]));
    let rules = [Rule::parse("Checkout p50>+5%").unwrap()];
    let claims = Claims::of(&[a, b, c], Asked { rules: &rules, ..Asked::default() }).unwrap();
    let failed: Vec<Option<bool>> = claims.fail_if.iter().map(|judged| judged.failed).collect();
    assert_eq!(failed, [None, Some(true)], "{:?}", claims.fail_if);
    assert!(
        claims.says[0].starts_with("Within these two runs, ") && claims.says[1].starts_with("C is slower")
    );
}

/// So many usual runs, of which those with these numbers, from 0, do not reach a p99.
fn bursts(count: usize, in_runs: &[usize]) -> Vec<Recipe> {
    let offs: Vec<i64> = SPREAD.iter().copied().cycle().take(count).collect();
    let mut runs = around(20_000, &offs);
    in_runs.iter().for_each(|run| runs[*run].failed = 5);
    runs
}

#[test]
fn what_is_never_reached_on_one_side_only_is_worse() {
    let temp = tempfile::tempdir().unwrap();
    let all: Vec<usize> = (0..12).collect();
    let a = in_rounds(side(&temp, "a", &bursts(12, &[])));
    let b = in_rounds(side(&temp, "b", &bursts(12, &all)));
    let rules = ["p99>+5%", "p99<-5%"].map(|text| Rule::parse(text).unwrap());
    let asked = Asked { rules: &rules, ..Asked::default() };
    let claims = Claims::of(&[a.clone(), b.clone()], asked).unwrap();
    let p99 = claim(&claims, None, Figure::P99);
    assert_eq!((p99.ratio, p99.value, p99.difference, p99.word()), (None, None, Some(true), "worse"));
    assert!(p99.says.starts_with("worse: p99 is not reached in 12 of 12 runs of B"), "{}", p99.says);
    let failed = |claims: &Claims| claims.fail_if.iter().map(|judged| judged.failed).collect::<Vec<_>>();
    assert_eq!(failed(&claims), [Some(true), Some(false)]);
    let says = "B fails 2.50% of its requests, A none; B fails more often: ";
    assert!(claims.says[0].starts_with(says), "{:?}", claims.says);
    assert!(claims.says[0].contains("p99 not reached in 12 of 12 runs of B"), "{:?}", claims.says);
    let note = claims.notes.iter().find(|note| note.contains("without a good answer")).unwrap();
    assert!(note.ends_with("A none, B 2.50%"), "{note}");
    // and the other way round
    let claims = Claims::of(&[b.clone(), a.clone()], asked).unwrap();
    assert_eq!(claim(&claims, None, Figure::P99).word(), "better");
    assert_eq!(failed(&claims), [Some(false), Some(true)]);
    // all of three are no chance, of two rounds nothing is sure
    let first = |count: usize| {
        [&a, &b].map(|side| Side { name: side.name.clone(), runs: side.runs[..count].to_vec() })
    };
    assert_eq!(failed(&Claims::of(&first(3), asked).unwrap()), [Some(true), Some(false)]);
    let claims = Claims::of(&first(2), asked).unwrap();
    assert_eq!(failed(&claims), [None, None]);
    assert_eq!(claims.unknown(), [("p99>+5%", true), ("p99<-5%", true)], "measured, in too few rounds");
}

/// So many usual runs in rounds, of which each checkout fails so many times of a hundred.
fn failing(temp: &TempDir, name: &str, count: usize, failed: u32) -> Side {
    let mut runs = bursts(count, &[]);
    runs.iter_mut().for_each(|run| run.failed = failed);
    in_rounds(side(temp, name, &runs))
}

#[test]
fn more_failures_are_said_first_and_can_be_judged() {
    let temp = tempfile::tempdir().unwrap();
    let [a, b] = [("a", 0), ("b", 1)].map(|(name, failed)| failing(&temp, name, 12, failed));
    let rules = ["errors>0.1%", "errors>+2%", "errors>0.5%"].map(|text| Rule::parse(text).unwrap());
    let asked = Asked { rules: &rules, ..Asked::default() };
    let judged = |claims: &Claims| claims.fail_if.iter().map(|judged| judged.failed).collect::<Vec<_>>();
    let claims = Claims::of(&[a.clone(), b.clone()], asked).unwrap();
    let says = "B fails 0.5% of its requests, A none; ";
    assert!(claims.says[0].starts_with(says), "{:?}", claims.says);
    assert!(claims.errors[0].is_worse(), "{:?}", claims.errors);
    assert_eq!(judged(&claims), [Some(true), Some(false), None], "{:?}", claims.fail_if);
    assert!(claims.fail_if[0].says.ends_with(" percentage points, beyond the bound"), "{:?}", claims.fail_if);
    let json: serde_json::Value = serde_json::from_str(&claims.json()).unwrap();
    assert_eq!(json["errors"][0]["side"], "B");
    assert_eq!(json["errors"][0]["share_to"], 0.0);
    crate::json::tests::assert_fits_verb(&json, "compare");
    let blocks = crate::blocks::claims(&claims, None, &[]);
    let shown = crate::blocks::tests::shown(&blocks, 80);
    let row = shown.lines().find(|line| line.trim_start().starts_with("errors ")).unwrap();
    assert!(
        row.contains("0%") && row.contains("0.5%") && row.contains(" points") && row.ends_with(" worse"),
        "{row}"
    );
    let markdown = crate::markdown::render(&blocks);
    assert!(markdown.contains("| errors | 0% | 0.5% | +0."), "{markdown}");
    assert!(markdown.contains(" points | **worse** |"), "{markdown}");
    let page = crate::still::claims(&claims, &[]);
    assert!(page.contains("<tr><td>errors</td><td>0%</td><td>0.5%</td><td>+0."), "{page}");
    // the other way round
    let claims = Claims::of(&[b.clone(), a.clone()], asked).unwrap();
    let says = "B fails none of its requests, A 0.5%; ";
    assert!(claims.says[0].starts_with(says), "{:?}", claims.says);
    assert_eq!(judged(&claims), [Some(false); 3]);
    // nobody fails
    let c = failing(&temp, "c", 12, 0);
    let claims = Claims::of(&[a.clone(), c], asked).unwrap();
    assert!(claims.says[0].starts_with("B against A: "), "{:?}", claims.says);
    assert_eq!(judged(&claims), [Some(false); 3], "{:?}", claims.fail_if);
    assert_eq!(claims.errors[0].row(), None);
    // one run of each is never sure, and that is no lack of runs that count
    let [a, b] = [a, b].map(|mut side| {
        side.runs.truncate(1);
        side.runs[0].round = None;
        side
    });
    let claims = Claims::of(&[a, b], asked).unwrap();
    assert_eq!((judged(&claims), claims.unknown().len()), (vec![None; 3], 0), "{:?}", claims.fail_if);
}

#[test]
fn one_burst_of_failures_is_no_difference() {
    let temp = tempfile::tempdir().unwrap();
    let a = in_rounds(side(&temp, "a", &bursts(8, &[])));
    let b = in_rounds(side(&temp, "b", &bursts(8, &[2])));
    let rules = [Rule::parse("p99>+5%").unwrap()];
    let asked = Asked { rules: &rules, ..Asked::default() };
    let claims = Claims::of(&[a, b.clone()], asked).unwrap();
    let p99 = claim(&claims, None, Figure::P99);
    assert_eq!((p99.not_reached, p99.not_reached_to, p99.rounds.len()), (1, 0, 7));
    assert!(p99.difference == Some(false) && p99.value.is_some(), "{p99:?}");
    assert_eq!((claims.fail_if[0].failed, claims.fail_if[0].measured), (None, true));
    assert!(claims.fail_if[0].says.ends_with("not reached in 1 of 8 runs of B, not sure"), "{claims:?}");
    assert!(!claims.is_settled(0.03) && claims.comparisons.iter().all(|of| !of.differs()));
    assert_eq!(claims.errors[0].difference, Some(false), "{:?}", claims.errors);
    assert!(claims.says[0].contains("p99 not reached in 1 of 8 runs of B;"), "{:?}", claims.says);

    let a = in_rounds(side(&temp, "c", &bursts(8, &[5])));
    let claims = Claims::of(&[a, b], asked).unwrap();
    assert_eq!(claim(&claims, None, Figure::P99).rounds.len(), 6);
    assert!(
        claims.says[0].contains("p99 not reached in 1 of 8 runs of B and 1 of 8 runs of A"),
        "{:?}",
        claims.says
    );
}

#[test]
fn rounds_with_an_invalid_run_do_not_count() {
    let temp = tempfile::tempdir().unwrap();
    let a = in_rounds(side(&temp, "a", &around(20_000, &SPREAD)));
    let mut b = in_rounds(side(&temp, "b", &around(30_000, &OTHER)));
    let rules = [Rule::parse("Checkout p50>+5%").unwrap()];
    let asked = Asked { rules: &rules, ..Asked::default() };
    b.runs[0].manifest.summary.verdict.status = Status::Invalid;
    let claims = Claims::of(&[a.clone(), b.clone()], asked).unwrap();
    assert_eq!((claims.rounds, claims.fail_if[0].failed), (5, Some(true)));
    assert!(claims.notes.iter().any(|note| note.contains("1 of 6 rounds left out")), "{:?}", claims.notes);
    b.runs[1..].iter_mut().for_each(|run| run.manifest.summary.verdict.status = Status::Invalid);
    let claims = Claims::of(&[a, b], asked).unwrap();
    assert_eq!((claims.covers, claims.fail_if[0].failed), (Covers::Nothing, None));
}

#[test]
fn of_too_few_runs_nothing_is_claimed() {
    let temp = tempfile::tempdir().unwrap();
    let a = in_rounds(side(&temp, "a", &around(20_000, &SPREAD[..2])));
    let b = in_rounds(side(&temp, "b", &around(40_000, &OTHER[..2])));
    let claims = Claims::of(&[a, b], Asked::default()).unwrap();
    assert_eq!(claims.covers, Covers::Nothing);
    assert!(claims.says[0].contains("there must be 3 rounds"), "{:?}", claims.says);
    let checkout = claim(&claims, Some("Checkout"), Figure::P50);
    assert!(checkout.ratio.unwrap() > 1.9 && checkout.difference.is_none());
}

#[test]
fn what_cannot_be_told_has_no_figure_that_means_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let a = in_rounds(side(&temp, "a", &around(20_000, &[-990, 0, 900])));
    let b = in_rounds(side(&temp, "b", &around(20_000, &OTHER[..3])));
    let claims = Claims::of(&[a, b], Asked { bounds: went(60.0), ..Asked::default() }).unwrap();
    let p50 = claim(&claims, None, Figure::P50);
    assert!(p50.high > Some(10.0) && p50.difference == Some(false), "{p50:?}");
    assert_eq!(p50.says, "too noisy: p50 varies too much to be compared");
    let says = &claims.says[0];
    assert!(says.contains("varied too much from round to round to be compared"), "{says}");
    assert!(!says.contains("elsewhere"), "{says}");
    assert!(says.contains("; no difference larger than ") && says.contains("% in "), "{says}");
}

#[test]
fn where_all_runs_of_a_side_lie_beyond_the_other_s_it_is_said() {
    let temp = tempfile::tempdir().unwrap();
    let a = in_rounds(side(&temp, "a", &around(20_000, &[-60, 0, 60])));
    let b = in_rounds(side(&temp, "b", &around(24_000, &[20, -40, -60])));
    let claims = Claims::of(&[a, b], Asked::default()).unwrap();
    let checkout = claim(&claims, Some("Checkout"), Figure::P50);
    assert_eq!((checkout.difference, checkout.all_beyond), (Some(false), Some(3)), "{checkout:?}");
    assert_eq!(claim(&claims, Some("Search"), Figure::P50).all_beyond, None);
    let says = &claims.says[0];
    assert!(says.contains("all 3 runs of B are above all of A in "), "{says}");
    assert!(says.ends_with("too few to be sure") && !says.contains("elsewhere"), "{says}");
}

#[test]
fn a_round_that_was_cut_short_does_not_count() {
    let temp = tempfile::tempdir().unwrap();
    let mut a = in_rounds(side(&temp, "a", &around(20_000, &SPREAD)));
    // twice in each round, but for the last
    let rounds = [1, 1, 2, 2, 3, 4];
    a.runs.iter_mut().zip(rounds).for_each(|(run, round)| run.round = Some(round));
    assert_eq!(a.rounds(), [1, 2]);
}

#[test]
fn other_machines_and_loads_are_told() {
    let temp = tempfile::tempdir().unwrap();
    let [a, mut b] = ["a", "b"].map(|name| side(&temp, name, &around(20_000, &SPREAD)));
    b.runs[0].manifest.machine.cores = 64;
    b.runs[0].manifest.load = "closed, 9 users".into();
    b.runs[0].manifest.summary.verdict =
        Verdict { status: Status::Invalid, reasons: vec!["driver-bound: it waited".into()] };
    let notes = Claims::of(&[a, b], Asked::default()).unwrap().notes.join("\n");
    for says in ["different machines", "64 cores", "different loads", "B: 1 of 6 runs invalid: driver-bound"]
    {
        assert!(notes.contains(says), "{says}: {notes}");
    }
}

/// Gives each run a failed verdict for these reasons; runs have objectives of each kind, and a metric of their own.
fn fail(mut runs: Vec<SideRun>, reasons: &[Reason]) -> Vec<SideRun> {
    let texts = ["p99 < 50ms", "Search errors = 0", "achieved > 99% of offered", "lost = 0", "size p99 < 20"];
    for run in &mut runs {
        let of = |text: &str| ObjectiveResult { objective: text.to_owned(), ..ObjectiveResult::default() };
        run.manifest.objectives = texts.map(of).into();
        run.manifest.metrics =
            vec![OwnMetric { name: "size".into(), kind: OwnKind::Histogram, unit: String::new() }];
        run.manifest.summary.verdict = Verdict { status: Status::Fail, reasons: reasons.to_vec() };
    }
    runs
}

/// `lost = 0 missed: 3501`.
fn missed(text: &str) -> Reason {
    ReasonKind::Missed.of_objective(text.split_once(" missed: ").unwrap().0, text)
}

fn ended() -> Reason {
    ReasonKind::SystemEnded.told(ENDED)
}

const ENDED: &str =
    "the system ended by itself: exit status 3 after 1.6s; the end of its log runs/1/system.log:\n  | oh";

#[test]
fn a_side_that_loses_writes_or_ends_is_said_first() {
    let temp = tempfile::tempdir().unwrap();
    let a = in_rounds(side(&temp, "a", &around(20_000, &SPREAD)));
    let mut b = in_rounds(side(&temp, "b", &around(22_000, &OTHER)));
    b.runs = fail(b.runs, &[missed("p99 < 50ms missed: 70ms"), ended()]);
    let of = |sides: &[Side]| Claims::of(sides, Asked::default()).unwrap();
    let claims = of(&[a.clone(), b.clone()]);
    let told = "B failed in 6 of 6 runs, A in none: the system ended by itself: exit status 3 after 1.6s";
    assert!(claims.says[0].starts_with(&format!("{told}; B is slower: ")), "{:?}", claims.says);
    assert!(claims.is_broken("B") && !claims.is_broken("A"));
    assert_eq!(claims.broken_alone(), [told]);
    assert_eq!((claims.broken.len(), claims.broken[0].runs, claims.broken[0].of), (1, 6, 6));
    let json: serde_json::Value = serde_json::from_str(&claims.json()).unwrap();
    assert_eq!(json["broken"][0]["side"], "B");
    crate::json::tests::assert_fits_verb(&json, "compare");
    // the other way round, and with a part of the runs
    let mut some = a.clone();
    let lossy = fail(some.runs.drain(..2).collect(), &[missed("lost = 0 missed: 3501")]);
    some.runs.splice(0..0, lossy);
    let claims = of(&[b.clone(), some.clone()]);
    let told =
        "A failed in 6 of 6 runs, B in 2 of 6 runs: the system ended by itself: exit status 3 after 1.6s; ";
    assert!(claims.says[0].starts_with(told), "{:?}", claims.says);
    assert!(!claims.is_broken("B") && claims.broken_alone().is_empty());
    let claims = of(&[some, b.clone()]);
    assert!(
        claims.says[0].starts_with("B failed in 6 of 6 runs, A in 2 of 6 runs: the "),
        "{:?}",
        claims.says
    );
    assert!(claims.is_broken("B") && claims.broken_alone().is_empty());
    // as often
    let claims = of(&[b.clone(), b]);
    assert!(claims.says[0].starts_with("B against A: "), "{:?}", claims.says);
    let is_told = |note: &String| note.starts_with("B failed in 6 of 6 runs, A in 6 of 6 runs: the system ");
    assert!(claims.notes.iter().any(is_told) && !claims.is_broken("B"), "{:?}", claims.notes);
    // nobody
    let claims = of(&[a.clone(), a]);
    assert!(claims.broken.is_empty() && !claims.notes.iter().any(|note| note.contains(" failed in ")));
}

#[test]
fn one_run_of_each_says_what_broke_before_what_its_seconds_say() {
    let temp = tempfile::tempdir().unwrap();
    let long = |us| Recipe { seconds: 40, us: [10_000, us], cpu_s: 8.0, ..USUAL };
    let a = side(&temp, "a", &[long(20_000)]);
    let mut b = side(&temp, "b", &[long(24_000)]);
    b.runs = fail(b.runs, &[missed("lost = 0 missed: 3501")]);
    let claims = Claims::of(&[a, b], Asked::default()).unwrap();
    let told =
        "B failed in 1 of 1 run, A in none: lost = 0 missed: 3501; within these two runs, B is slower: ";
    assert!(claims.says[0].starts_with(told), "{:?}", claims.says);
}

#[test]
fn only_what_no_figure_says_is_a_failure_beside_the_figures() {
    let temp = tempfile::tempdir().unwrap();
    let a = in_rounds(side(&temp, "a", &around(20_000, &SPREAD[..3])));
    let told = |reason: &Reason| {
        let mut b = a.clone();
        b.runs = fail(b.runs, std::slice::from_ref(reason));
        let claims = Claims::of(&[a.clone(), b], Asked::default()).unwrap();
        claims.broken.first().map(|of| of.reason.clone())
    };
    for compared in [
        missed("p99 < 50ms missed: 70ms"),
        missed("Search errors = 0 missed: 3"),
        missed("achieved > 99% of offered missed: 90% of offered"),
        ReasonKind::OutOfReach
            .of_objective("p99 < 50ms", "cut short: p99 < 50ms can no longer be met: 9 took longer"),
        ReasonKind::AllFailed.told("all 12 requests of `Search` failed"),
        ReasonKind::DriverBound.told("it waited for a core"),
        ReasonKind::NotVerified.told("not verified: no answer"),
        ReasonKind::Fault.told("no `kill`: there is nothing to kill"),
    ] {
        assert_eq!(told(&compared), None, "{compared}");
    }
    for broken in [
        missed("lost = 0 missed: 3501"),
        missed("size p99 < 20 missed: 31"),
        ReasonKind::Ledger.told("lost: 5 of 1000 acknowledged writes are gone"),
        ReasonKind::Silent.told("the system stopped answering for 4.0s"),
        ReasonKind::SystemEnded.told("`system` did not come back after `kill`: exit status 1"),
        ReasonKind::NoGoodAnswer.told("no good answer came within the measured window"),
        Reason::from("of a run that an earlier version recorded"),
    ] {
        assert_eq!(told(&broken).as_deref(), Some(&*broken));
    }
    // what is not of a run that failed is no failure
    let mut b = a.clone();
    b.runs = fail(b.runs, &[ended()]);
    b.runs.iter_mut().for_each(|run| run.manifest.summary.verdict.status = Status::Invalid);
    assert!(Claims::of(&[a.clone(), b], Asked::default()).unwrap().broken.is_empty());
}

#[test]
fn where_durability_differs_it_is_told() {
    let temp = tempfile::tempdir().unwrap();
    let promise = |name: &str, of_system: &str, of_store: &str| {
        let mut made = in_rounds(side(&temp, name, &around(20_000, &SPREAD[..3])));
        for run in &mut made.runs {
            run.manifest.system.durability = Some(of_system.to_owned());
            let (name, durability) = ("cassandra".to_owned(), of_store.to_owned());
            run.manifest.stores = vec![Store { name, durability, ..Store::default() }];
        }
        made
    };
    let a = promise("a", "synced", "synced");
    let told = |b: &Side| -> Vec<String> {
        let notes = Claims::of(&[a.clone(), b.clone()], Asked::default()).unwrap().notes;
        notes.into_iter().filter(|note| note.contains("durability")).collect()
    };
    assert_eq!(told(&promise("b", "memory", "synced")), ["durability differs: A synced, B memory"]);
    let store = "durability of cassandra differs: A synced, B buffered";
    assert_eq!(told(&promise("c", "synced", "buffered")), [store]);
    let mut silent = promise("d", "synced", "synced");
    assert!(told(&silent).is_empty());
    silent.runs.iter_mut().for_each(|run| run.manifest.system.durability = None);
    assert!(told(&silent).is_empty(), "a system that did not say");
}

#[test]
fn where_a_side_has_no_run_nothing_is_compared() {
    let temp = tempfile::tempdir().unwrap();
    let sides = [side(&temp, "a", &[USUAL]), side(&temp, "b", &[])];
    let rules = [Rule::parse("Checkout p99>+5%").unwrap()];
    let mut claims = Claims::of(&sides, Asked { rules: &rules, ..Asked::default() }).unwrap();
    assert_eq!(claims.says, ["nothing can be said of B: there is no run of B"]);
    assert!(claims.comparisons.is_empty() && !Side::has_valid(&sides));
    assert_eq!((claims.fail_if.len(), claims.fail_if[0].failed), (1, None));
    assert_eq!(claims.unknown(), [("Checkout p99>+5%", false)]);
    claims.stop("stopped by the user");
    assert!(claims.json().contains("\"stopped\": \"stopped by the user\""), "{}", claims.json());
}

#[test]
fn a_round_with_an_invalid_run_is_not_valid() {
    let temp = tempfile::tempdir().unwrap();
    let mut sides = ["a", "b"].map(|name| side(&temp, name, &[USUAL, USUAL]));
    assert!(Side::has_valid(&sides));
    for side in &mut sides {
        (1..).zip(&mut side.runs).for_each(|(round, run)| run.round = Some(round));
    }
    sides[1].runs[0].manifest.summary.verdict.status = Status::Invalid;
    assert!(Side::has_valid(&sides), "the second round");
    sides[0].runs[1].manifest.summary.verdict.status = Status::Invalid;
    assert!(!Side::has_valid(&sides));
    // where they did not run in rounds, a valid run of each is enough
    sides.iter_mut().flat_map(|side| &mut side.runs).for_each(|run| run.round = None);
    assert!(Side::has_valid(&sides));
}

/// The same runs, whose good answers have bodies of so many bytes; of the second label these.
fn with_bytes(mut side: Side, all: f64, checkout: f64) -> Side {
    for run in &mut side.runs {
        let summary = &mut run.manifest.summary;
        summary.good.body_bytes_mean = Some(all);
        summary.steps[0].good.body_bytes_mean = Some(2_000.0);
        summary.steps[1].good.body_bytes_mean = Some(checkout);
    }
    side
}

#[test]
fn a_system_that_is_faster_because_it_answers_less_is_said_to() {
    let temp = tempfile::tempdir().unwrap();
    let a = with_bytes(in_rounds(side(&temp, "a", &around(20_000, &SPREAD))), 2_000.0, 2_000.0);
    let b = with_bytes(in_rounds(side(&temp, "b", &around(16_000, &OTHER))), 1_600.0, 1_200.0);
    let same = with_bytes(in_rounds(side(&temp, "c", &around(16_000, &OTHER))), 2_000.0, 2_000.0);
    let rules = ["bytes<-5%", "Checkout bytes<-50%", "p50>+5%"].map(|text| Rule::parse(text).unwrap());
    let asked = Asked { rules: &rules, ..Asked::default() };
    let claims = Claims::of(&[a.clone(), b.clone()], asked).unwrap();
    let says = &claims.says[0];
    assert!(
        says.starts_with("B's good answers are smaller: 1.56 KiB and not 1.95 KiB (-20%); B is faster: "),
        "{says}"
    );
    let bytes = claim(&claims, None, Figure::Bytes);
    assert_eq!((bytes.word(), bytes.is_worse(), bytes.is_better()), ("fewer", false, false));
    let [here, there] = [bytes.value, bytes.value_to].map(|of| of.unwrap().round());
    assert_eq!((here, there), (1_600.0, 2_000.0));
    let failed: Vec<Option<bool>> = claims.fail_if.iter().map(|of| of.failed).collect();
    assert_eq!(failed, [Some(true), Some(false), Some(false)], "{:?}", claims.fail_if);
    // two runs are enough for what both say of themselves
    let one = |of: &Side| {
        let mut one = of.clone();
        one.runs.truncate(1);
        one.runs[0].round = None;
        one
    };
    let says = Claims::of(&[one(&a), one(&b)], Asked::default()).unwrap().says.remove(0);
    assert!(
        says.starts_with("B's good answers are smaller: 1.56 KiB and not 1.95 KiB (-20%); within"),
        "{says}"
    );
    // one that is the same neither claims nor dilutes
    let claims = Claims::of(&[a, same], Asked::default()).unwrap();
    let bytes = claim(&claims, None, Figure::Bytes);
    assert_eq!((bytes.word(), bytes.low, bytes.estimate), ("no difference", Some(1.0), None));
    assert!(
        !claims.says[0].contains("answers") && claims.says[0].starts_with("B is faster"),
        "{:?}",
        claims.says
    );
}

#[test]
fn answers_of_one_label_that_are_empty_are_said_by_the_label() {
    let temp = tempfile::tempdir().unwrap();
    let a = with_bytes(in_rounds(side(&temp, "a", &around(20_000, &SPREAD))), 2_000.0, 2_000.0);
    let b = with_bytes(in_rounds(side(&temp, "b", &around(20_000, &OTHER))), 1_995.0, 0.0);
    let claims = Claims::of(&[a, b], Asked::default()).unwrap();
    let says = &claims.says[0];
    assert!(
        says.starts_with(
            "B's good answers are smaller: 0 to 1 B and not 1.95 KiB on Checkout (-100%); B against A: "
        ),
        "{says}"
    );
}

#[test]
fn what_all_runs_of_a_side_lack_and_all_of_the_other_have_is_a_difference() {
    let temp = tempfile::tempdir().unwrap();
    let recipes = |failed| [0, 1, 2].map(|_| Recipe { failed, ..USUAL });
    let a = side(&temp, "a", &recipes(0));
    let b = side(&temp, "b", &recipes(3));
    let in_turn = Claims::of(&[in_rounds(a.clone()), in_rounds(b.clone())], Asked::default()).unwrap();
    let named = Claims::of(&[a.clone(), b.clone()], Asked::default()).unwrap();
    for claims in [&in_turn, &named] {
        let p99 = claim(claims, Some("Checkout"), Figure::P99);
        assert_eq!((p99.difference, p99.is_worse(), p99.word()), (Some(true), true, "worse"), "{p99:?}");
        let says = &claims.says[0];
        assert!(says.contains("not reached in 3 of 3 runs of B"), "{says}");
    }
    // a single run of each, or two, is no proof
    let two = |of: &Side| Side { name: of.name.clone(), runs: of.runs[..2].to_vec() };
    let few = Claims::of(&[two(&a), two(&b)], Asked::default()).unwrap();
    assert_eq!(claim(&few, Some("Checkout"), Figure::P99).difference, None);
}

/// Four rounds that took so many seconds, which was all that they were allowed.
fn went(took_s: f64) -> Option<(InRounds, u64)> {
    Some((InRounds { level: 0.05, took_s, budget_s: took_s, rounds_max: None }, 4))
}

#[test]
fn runs_that_ran_in_turn_say_the_same_named_one_by_one() {
    let temp = tempfile::tempdir().unwrap();
    let names = |name: &str| (1..=4).map(|n| format!("{name}-{n}")).collect::<Vec<_>>();
    let mut comparison = ComparisonFile::new("c", "", vec!["x".into(), "y".into()]);
    side(&temp, "a", &around(20_000, &SPREAD[..4]));
    side(&temp, "b", &around(22_000, &OTHER[..4]));
    for (index, name) in ["a", "b"].iter().enumerate() {
        for (round, dir) in (1..).zip(names(name)) {
            comparison.runs.push(ComparedRun { side: index, part: Part::OwnLoad, round, dir });
        }
    }
    comparison.in_rounds =
        Some(tidemark_record::InRounds { level: 0.048, took_s: 9.0, budget_s: 9.0, rounds_max: None });
    comparison.write(temp.path()).unwrap();
    let named = |name: &str, count: usize| {
        let dirs: Vec<PathBuf> = names(name)[..count].iter().map(|dir| temp.path().join(dir)).collect();
        Side::of_runs(name, &dirs).unwrap()
    };
    let mut sides = [named("a", 4), named("b", 4)];
    let level = Side::take_rounds(&mut sides);
    assert_eq!(level, Some(0.048));
    let claims = Claims::of(&sides, Asked { level, ..Asked::default() }).unwrap();
    let whole = Side::of_comparison(temp.path(), &comparison).unwrap();
    let in_turn = Claims::of_directory(temp.path(), &comparison, &whole, None, &[]).unwrap();
    assert_eq!((claims.covers, &claims.says), (Covers::BetweenRounds, &in_turn.says));
    // too few of its rounds are runs as any
    let mut few = [named("a", 2), named("b", 2)];
    assert_eq!(Side::take_rounds(&mut few), None);
    assert!(few.iter().flat_map(|side| &side.runs).all(|run| run.round.is_none()));
    // nor are those of both sides under one name
    let mut mixed = [named("a", 4), named("b", 4)];
    let other = mixed[1].runs[0].clone();
    mixed[0].runs[0] = other;
    assert_eq!(Side::take_rounds(&mut mixed), None);
}

#[test]
fn what_is_missing_is_said_with_the_way_to_get_it() {
    let temp = tempfile::tempdir().unwrap();
    let a = in_rounds(side(&temp, "a", &around(20_000, &[-60, 0, 60, 20])));
    let b = in_rounds(side(&temp, "b", &around(20_000, &[40, 30, -60, -20])));
    let sides = [a, b];
    let says = |bounds| Claims::of(&sides, Asked { bounds, ..Asked::default() }).unwrap().says.remove(0);
    let told = says(went(60.0));
    assert!(told.contains("not enough rounds to tell ") && told.contains(": 4 of about "), "{told}");
    assert!(told.contains(" (give --budget "), "{told}");
    assert!(!says(None).contains("--budget"), "nobody knows how long they take");
}
