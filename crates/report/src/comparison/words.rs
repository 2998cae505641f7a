//! Claims in plain sentences: `B is slower: p99 +8% to +12% on Checkout; no difference larger than 3% elsewhere`.

use std::collections::BTreeSet;

use tidemark_record::{ComparisonFile, InRounds};

use super::broken::by_share;
use super::claims::{Claim, Claims, Covers, Side, SideRun, invalid, letter};
use super::errors::{Errors, FLOOR};
use super::figure::Figure;
use crate::blocks::value;
use crate::statistics::LEAST;
use crate::units::{budget, more_than, percent, plural, three_digits, trim_zeros};

/// What is known to within this share is known: no difference larger than that.
pub(crate) const CLOSE: f64 = 0.05;
/// What may be off by more than this share, to ten times as much, is not told at all.
const FAR: f64 = 9.0;
/// How well figures would be known that are not known well enough, the best first.
const GOALS: [f64; 5] = [CLOSE, 0.1, 0.25, 0.5, 1.0];
/// More rounds, or runs, than so many times those that there are nobody is told to make.
const REACHABLE: usize = 20;
/// A budget has this much more than the rounds are expected to take: some take longer than others.
const BUDGET_SLACK: f64 = 1.1;
/// Changes are shown up to this ratio.
const RATIO_SHOWN_MAX: f64 = 1_000.0;
/// Most claims that a sentence lists.
const LISTED: usize = 4;
/// Most figures that are named as too noisy.
const NAMED: usize = 3;
/// Longest name of a side in a title, characters.
const TITLE_NAME: usize = 40;

/// What is claimed of one figure.
pub(crate) fn of_claim(claim: &Claim) -> String {
    let name = claim.figure.name();
    match (claim.low.zip(claim.high), claim.ratio) {
        _ if claim.lacks.more_often.is_some() => {
            let word = if claim.is_worse() { "worse" } else { "better" };
            format!("{word}: {name} is {}: so many requests failed", lacking(claim))
        }
        _ if claim.ratio.is_none() => format!("{name} is {}", lacking(claim)),
        _ if claim.lacks.runs != [0, 0] => {
            let told = claim.low.zip(claim.high).map_or("nothing says how sure that is", |_| claim.word());
            format!("{name} {} where it is reached, {told}; it is {}", range(claim), lacking(claim))
        }
        (Some(_), _) if claim.differs() => format!("{}: {name} {}", claim.word(), range(claim)),
        (Some(_), _) => match off(claim) {
            Some(off) if off <= CLOSE => format!("no difference larger than {}", whole_percent(off)),
            Some(off) if off > FAR => format!("too noisy: {name} varies too much to be compared"),
            off => {
                let off = whole_percent(off.unwrap_or(0.0));
                format!("too noisy: only a difference above {off} would show")
            }
        },
        (None, Some(ratio)) => format!("{name} {}, and nothing says how sure that is", change(ratio)),
        (None, None) => String::new(),
    }
}

/// The claims of one side in a sentence.
pub(crate) fn sentence(claims: &Claims, side: &str) -> String {
    let (bytes, all): (Vec<&Claim>, Vec<&Claim>) =
        claims.of_side(side).partition(|of| of.figure.is_neutral());
    let answers = answers(side, &bytes);
    let found: Vec<&Claim> = all.iter().copied().filter(|of| of.differs()).collect();
    let failing = claims.errors_of(side).filter(|of| of.differs());
    let mut parts: Vec<String> = failing.map(Errors::says).into_iter().collect();
    if !found.is_empty() {
        let head = head(&found);
        // whose errors alone may have made it so
        let with = match failing.is_some_and(Errors::is_worse) && head == "is slower" {
            true => "counting those as its slowest, ",
            false => "",
        };
        parts.push(format!("{with}{side} {head}: {}", list(&found)));
    }
    let open: Vec<&Claim> = all.iter().copied().filter(|of| of.difference == Some(false)).collect();
    let is_close = |of: &&Claim| off(of).is_some_and(|off| off <= CLOSE);
    let (close, noisy): (Vec<&Claim>, Vec<&Claim>) = open.into_iter().partition(is_close);
    let worst = |of: &[&Claim]| of.iter().filter_map(|of| off(of)).fold(0.0, f64::max);
    let lacking = not_reached(claims, &all);
    // of these nothing is known
    let is_unknown = |of: &&Claim| of.difference.is_none() && of.lacks.runs == [0, 0];
    let is_open = !noisy.is_empty() || lacking.iter().any(|of| of.1) || all.iter().any(is_unknown);
    let where_close = match (is_open, found.is_empty() && failing.is_none()) {
        (true, _) => format!(" in {}", names(&close)),
        (false, true) => String::new(),
        (false, false) => " elsewhere".into(),
    };
    parts.extend(lacking.into_iter().map(|(text, _)| text));
    if !noisy.is_empty() {
        parts.push(not_enough(claims, &noisy));
    }
    if !close.is_empty() {
        parts.push(format!("no difference larger than {}{where_close}", whole_percent(worst(&close))));
    }
    parts.extend(beyond(side, &noisy));
    let first: Vec<String> = broken(claims, side).into_iter().chain(answers).collect();
    let first = (!first.is_empty()).then(|| first.join("; "));
    if parts.is_empty() {
        return behind(first, format!("nothing can be said of {side}: {}", too_few(claims)));
    }
    let text = parts.join("; ");
    let is_alike = found.is_empty() && failing.is_none();
    let text = if is_alike { format!("{side} against {}: {text}", letter(0)) } else { text };
    let within = match (claims.is_of_two_runs(side), &first) {
        (false, _) => "",
        (true, None) => "Within these two runs, ",
        (true, Some(_)) => "within these two runs, ",
    };
    behind(first, format!("{within}{text}"))
}

/// That a side answers with smaller or larger bodies, of all requests or else of labels: a system may be faster for it. Where
/// nothing is known of how sure that is, it is told from [`CLOSE`] on: it is a fact of these runs.
fn answers(side: &str, bytes: &[&Claim]) -> Option<String> {
    let is_told = |of: &&&Claim| {
        let off = of.ratio.map_or(0.0, |ratio| (ratio - 1.0).abs());
        of.differs() || (of.difference.is_none() && off > CLOSE)
    };
    let told: Vec<&Claim> = bytes.iter().filter(is_told).copied().collect();
    let (all, labels): (Vec<&Claim>, Vec<&Claim>) = told.into_iter().partition(|of| of.label.is_none());
    let mut listed = if all.is_empty() { labels } else { all };
    let size = |of: &Claim| of.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    listed.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let ratio = listed.first()?.ratio?;
    let word = if ratio < 1.0 { "smaller" } else { "larger" };
    let one = |of: &&Claim| {
        let on = of.label.as_ref().map_or_else(String::new, |label| format!(" on {label}"));
        let [here, there] = [of.value, of.value_to].map(|of| value(Figure::Bytes, of));
        format!("{here} and not {there}{on} ({})", change(of.ratio.unwrap_or(1.0)))
    };
    let mut texts: Vec<String> = listed.iter().take(NAMED).map(one).collect();
    if let Some(rest) = more_than(listed.len(), texts.len()) {
        texts.push(format!("{rest} more in the table"));
    }
    Some(format!("{side}'s good answers are {word}: {}", texts.join(", ")))
}

/// What is said first, if anything, and the rest behind it.
fn behind(first: Option<String>, rest: String) -> String {
    match first {
        Some(first) => format!("{first}; {rest}"),
        None => rest,
    }
}

/// Which of a side and the first failed in more of its runs, whatever their figures are, and why.
fn broken(claims: &Claims, side: &str) -> Option<String> {
    let first = letter(0);
    let (of_side, of_first) = (claims.broken_of(side), claims.broken_of(&first));
    if claims.is_broken(side) {
        return of_side.map(|of| of.says(&first, of_first));
    }
    of_first.filter(|_| by_share(of_first, of_side).is_gt()).map(|of| of.says(side, of_side))
}

/// Figures that are not reached in every run, where it is not sure which side that is of; each with whether one of them is
/// in no interval.
fn not_reached(claims: &Claims, all: &[&Claim]) -> Vec<(String, bool)> {
    // of one run of each, or too few, what both lack is no difference that anybody could tell
    let is_told = matches!(claims.covers, Covers::BetweenRounds | Covers::BetweenRuns);
    let is_open = |of: &&&Claim| {
        let [one, other] = of.lacks.runs;
        of.lacks.more_often.is_none() && one + other > 0 && (is_told || (one > 0) != (other > 0))
    };
    let (rates, times): (Vec<&Claim>, Vec<&Claim>) =
        all.iter().filter(is_open).copied().partition(|of| of.figure == Figure::Rate);
    let group = |of: Vec<&Claim>| {
        let most = of.iter().max_by_key(|of| (of.lacks.runs.iter().sum::<usize>(), of.label.is_none()))?;
        let text = format!("{} {}", names(&of), lacking(most));
        Some((text, of.iter().any(|of| of.interval.is_none())))
    };
    [times, rates].into_iter().filter_map(group).collect()
}

/// In how many runs a figure is not reached: `not reached in 1 of 8 runs of B`.
pub(crate) fn lacking(claim: &Claim) -> String {
    let sides = [(&claim.side, 0_usize), (&claim.to, 1)];
    let some = sides.into_iter().filter(|(_, side)| claim.lacks.runs[*side] > 0);
    let some = some.map(|(name, side)| {
        let (count, of) = (claim.lacks.runs[side], claim.lacks.of[side]);
        format!("{count} of {} of {name}", plural(of as u64, "run"))
    });
    format!("{} in {}", claim.figure.not_reached(), some.collect::<Vec<_>>().join(" and "))
}

/// Why nothing is claimed.
fn too_few(claims: &Claims) -> String {
    match claims.covers {
        Covers::Nothing => format!(
            "there must be {LEAST} rounds, or {LEAST} runs of both sides together, that are not invalid; what differs \
             from run to run is not known by fewer"
        ),
        Covers::WithinRuns => {
            "the runs are too short to compare second by second; give several runs of each side".into()
        }
        _ => "no figure was measured in every run".into(),
    }
}

/// What it is, all in all.
fn head(found: &[&Claim]) -> &'static str {
    match found.iter().find_map(|of| of.lacks.more_often) {
        Some(true) => return "fails more often",
        Some(false) => return "fails less often",
        None => {}
    }
    let any = |is_speed: bool, is_worse: bool| {
        found.iter().any(|of| of.figure.is_speed() == is_speed && of.is_worse() == is_worse)
    };
    match [any(true, true), any(true, false), any(false, true), any(false, false)] {
        [true, true, ..] => "is slower in some and faster in other figures",
        [true, ..] => "is slower",
        [_, true, ..] => "is faster",
        [_, _, true, true] => "needs more of one and less of another",
        [_, _, true, _] => "needs more",
        _ => "needs less",
    }
}

/// The claims: of all requests first, then of labels what those do not say already, the largest first.
fn list(found: &[&Claim]) -> String {
    let said = |figure: Figure| found.iter().any(|of| of.label.is_none() && of.figure == figure);
    let mut listed: Vec<&Claim> =
        found.iter().copied().filter(|of| of.label.is_none() || !said(of.figure)).collect();
    let size = |of: &Claim| of.ratio.map_or(f64::INFINITY, |ratio| ratio.ln().abs());
    listed.sort_by(|a, b| (a.label.is_some().cmp(&b.label.is_some())).then(size(b).total_cmp(&size(a))));
    let mut texts: Vec<String> = listed.iter().take(LISTED).map(|of| in_list(of)).collect();
    if let Some(rest) = more_than(found.len(), texts.len()) {
        texts.push(format!("{rest} more in the table"));
    }
    texts.join(", ")
}

fn in_list(claim: &Claim) -> String {
    let on = claim.label.as_ref().map_or_else(String::new, |label| format!(" on {label}"));
    let what = if claim.lacks.more_often.is_some() { lacking(claim) } else { range(claim) };
    format!("{} {what}{on}", claim.figure.name())
}

/// The figures of some claims, the noisiest first; each once, of all requests if it is among them.
fn names(claims: &[&Claim]) -> String {
    let mut sorted = claims.to_vec();
    let noise = |claim: &Claim| off(claim).unwrap_or(0.0);
    sorted.sort_by(|a, b| a.label.is_some().cmp(&b.label.is_some()).then(noise(b).total_cmp(&noise(a))));
    let mut seen = BTreeSet::new();
    sorted.retain(|claim| seen.insert(claim.figure));
    sorted.sort_by(|a, b| noise(b).total_cmp(&noise(a)));
    let name = |claim: &&Claim| match &claim.label {
        Some(label) => format!("{} on {label}", claim.figure.name()),
        None => claim.figure.name().to_owned(),
    };
    let names: Vec<String> = sorted.iter().map(name).collect();
    match more_than(names.len(), NAMED) {
        Some(rest) => format!("{} and {rest} more", names[..NAMED].join(", ")),
        None => names.join(", "),
    }
}

/// That all runs of a side lie beyond all of the other's in figures of which too little is known to claim a difference.
fn beyond(side: &str, open: &[&Claim]) -> Option<String> {
    let beyond: Vec<&Claim> = open.iter().copied().filter(|of| of.all_beyond.is_some()).collect();
    let count = beyond.iter().filter_map(|of| of.all_beyond).min()?;
    let above = |is_above: bool| {
        let of: Vec<&Claim> =
            beyond.iter().copied().filter(|of| (of.ratio.unwrap_or(1.0) > 1.0) == is_above).collect();
        let word = if is_above { "above" } else { "below" };
        (!of.is_empty()).then(|| format!("{word} all of {} in {}", letter(0), names(&of)))
    };
    let each: Vec<String> = [true, false].into_iter().filter_map(above).collect();
    Some(format!("all {count} runs of {side} are {}, but these are too few to be sure", each.join(" and ")))
}

/// What is missing to tell a difference, and how to get it: `not enough rounds to tell 5% in p99: 3 of about 9 (give --budget
/// 5m)`.
fn not_enough(claims: &Claims, noisy: &[&Claim]) -> String {
    let names = names(noisy);
    let worst = noisy.iter().max_by(|a, b| off(a).unwrap_or(0.0).total_cmp(&off(b).unwrap_or(0.0)));
    let now = worst.and_then(|of| off(of)).unwrap_or(0.0);
    let too_much = |what: &str| match now > FAR {
        true => format!("{names} varied too much {what} to be compared"),
        false => format!("{names} varied {what}: only a difference above {} would show", whole_percent(now)),
    };
    let what = match claims.covers {
        Covers::BetweenRounds => "round",
        Covers::BetweenRuns => "run",
        // seconds of the same runs tell nothing of others
        Covers::WithinRuns | Covers::Nothing => return too_much("within these runs"),
    };
    let known = worst.and_then(|of| Some((of.estimate?, of.interval?)));
    let reached = known.and_then(|(estimate, interval)| {
        let count = |goal: &f64| {
            let count = estimate.count_for((1.0 + goal).ln(), interval.level)?;
            let is_told = count > estimate.count && count <= REACHABLE * estimate.count;
            is_told.then_some((*goal, estimate.count, count))
        };
        GOALS.iter().filter(|goal| **goal < now).find_map(count)
    });
    let Some((goal, have, count)) = reached else { return too_much(&format!("from {what} to {what}")) };
    let give = match (claims.covers, claims.bounds) {
        (Covers::BetweenRounds, Some(bounds)) => give(count as f64 / have as f64, bounds),
        _ => String::new(),
    };
    format!("not enough {what}s to tell {} in {names}: {have} of about {count}{give}", whole_percent(goal))
}

/// The options that allow so many times the rounds that ran; empty where none of them ended the comparison.
fn give(times: f64, (of, ran): (InRounds, u64)) -> String {
    let rounds = (ran as f64 * times - 1e-9).ceil() as u64;
    let wanted_s = of.took_s * times;
    let mut options = Vec::new();
    if of.rounds_max.is_some_and(|most| rounds > most) {
        options.push(format!("--rounds {rounds}"));
    }
    if wanted_s * BUDGET_SLACK > of.budget_s {
        let minutes = (wanted_s * BUDGET_SLACK / 60.0).ceil().max(1.0);
        options.push(format!("--budget {}", budget(minutes * 60.0)));
    }
    if options.is_empty() { String::new() } else { format!(" (give {})", options.join(" ")) }
}

/// How far from 1 a ratio may lie, as a share.
pub(crate) fn off(claim: &Claim) -> Option<f64> {
    let (low, high) = claim.low.zip(claim.high)?;
    Some((high - 1.0).max(1.0 - low))
}

/// Where a ratio lies, as what it changes: `+8.1% to +12%`.
pub(crate) fn range(claim: &Claim) -> String {
    match claim.low.zip(claim.high) {
        Some((low, high)) => format!("{} to {}", change(low), change(high)),
        None => claim.ratio.map_or_else(|| "-".into(), change),
    }
}

/// What a ratio changes: `+8.1%`, `-12%`, `×14.2`, `over ×1,000`.
pub(crate) fn change(ratio: f64) -> String {
    let off = (ratio - 1.0) * 100.0;
    let sign = if off < 0.0 { "-" } else { "+" };
    match off.abs() {
        _ if ratio > RATIO_SHOWN_MAX => format!("over ×{}", three_digits(RATIO_SHOWN_MAX)),
        off if off >= 999.5 => format!("×{}", three_digits(ratio)),
        off if off >= 9.95 => format!("{sign}{off:.0}%"),
        off if off < 0.05 => "0%".into(),
        off => format!("{sign}{}%", trim_zeros(&format!("{off:.1}"))),
    }
}

/// A share in whole per cent, never less than it is.
fn whole_percent(share: f64) -> String {
    format!("{:.0}%", (share * 100.0 - 1e-9).ceil().max(1.0))
}

/// What is compared, for a title: `store=cassandra against store=embedded`. Of long names only what differs between them:
/// `…new… against …old…`; whole they stand beside.
pub(crate) fn title(names: &[&str]) -> String {
    let pieces: Vec<Vec<&str>> =
        names.iter().map(|name| name.split_inclusive([' ', '/', ',']).collect()).collect();
    let least = pieces.iter().map(Vec::len).min().unwrap_or(0);
    let is_long = names.iter().any(|name| name.chars().count() > TITLE_NAME);
    // something is left of each
    let most = if is_long { least.saturating_sub(1) } else { 0 };
    let lead = (0..most).take_while(|at| pieces.windows(2).all(|two| two[0][*at] == two[1][*at])).count();
    let from_end = |of: &[&str], at: usize| of[of.len() - 1 - at].to_owned();
    let is_end = |at: &usize| pieces.windows(2).all(|two| from_end(&two[0], *at) == from_end(&two[1], *at));
    let trail = (0..most - lead).take_while(is_end).count();
    let short = |pieces: &Vec<&str>| {
        let name = pieces[lead..pieces.len() - trail].concat();
        let [before, after] = [lead, trail].map(|shared| if shared > 0 { "…" } else { "" });
        format!("{before}{}{after}", cut(name.trim_end_matches([' ', '/', ','])))
    };
    match pieces.as_slice() {
        [] => String::new(),
        [one] => short(one),
        [first, other] => format!("{} against {}", short(other), short(first)),
        [first, others @ ..] => format!("{} others against {}", others.len(), short(first)),
    }
}

/// The begin and the end of a name.
fn cut(name: &str) -> String {
    let all: Vec<char> = name.chars().collect();
    if all.len() <= TITLE_NAME {
        return name.to_owned();
    }
    let half = TITLE_NAME / 2;
    let (begin, end) = (&all[..half], &all[all.len() - half..]);
    begin.iter().chain(['…'].iter()).chain(end).collect()
}

/// What a reader of the claims must know.
pub(crate) fn notes(sides: &[Side], covers: Covers, labels: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    match covers {
        Covers::WithinRuns => notes.push(
            "one run of each: the intervals are of what differs within a run, by its seconds. What differs from run to run is \
             in none of them, and is often more; give several runs of each side, or have them run in turn: `tidemark compare \
             SCENARIO …`"
                .into(),
        ),
        Covers::BetweenRuns => notes.push(
            "the sides did not run in turn: what changed on the machine in between is taken for a difference between them"
                .into(),
        ),
        Covers::BetweenRounds | Covers::Nothing => {}
    }
    notes.extend(machines(sides));
    notes.extend(loads(sides));
    notes.extend(durabilities(sides));
    let few: Vec<&str> = sides
        .iter()
        .flat_map(|side| &side.runs)
        .flat_map(|run| &run.manifest.labels)
        .filter(|label| !labels.is_empty() && !labels.contains(*label))
        .map(String::as_str)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    if !few.is_empty() {
        notes.push(format!(
            "labels that not every run has are in the figures of all requests only: {}",
            few.join(", ")
        ));
    }
    for (index, side) in sides.iter().enumerate() {
        if let Some((count, reason)) = invalid(side) {
            let of = side.runs.len();
            notes.push(format!("{}: {count} of {of} runs invalid: {reason}", letter(index)));
        }
    }
    notes.extend(failures(sides));
    notes
}

/// That a comparison took longer than it was allowed to, and why.
pub(crate) fn over_budget(comparison: &ComparisonFile) -> Option<String> {
    let of = comparison.in_rounds.filter(|of| of.took_s > of.budget_s)?;
    let rounds = comparison.runs.iter().map(|run| run.round).max().unwrap_or(0);
    let why = match rounds <= LEAST as u64 {
        true => format!("{LEAST} rounds are needed to say anything, however long they take"),
        false => "the last round took longer than those before it".into(),
    };
    Some(format!("took {} of a --budget of {}: {why}", budget(of.took_s), budget(of.budget_s)))
}

/// Where the runs were made, if not all on one machine.
fn machines(sides: &[Side]) -> Option<String> {
    let of = |side: &Side| side.runs.iter().map(|run| crate::history::machine_of(&run.manifest)).collect();
    let sets: Vec<BTreeSet<String>> = sides.iter().map(of).collect();
    let all: BTreeSet<&String> = sets.iter().flatten().collect();
    (all.len() > 1).then(|| {
        let each = (0..).zip(&sets).map(|(index, set)| {
            format!(
                "{} on {}",
                letter(index),
                set.iter().map(String::as_str).collect::<Vec<_>>().join(" and ")
            )
        });
        let each = each.collect::<Vec<_>>().join(", ");
        format!(
            "the runs are of different machines, and what differs between those is in the figures: {each}"
        )
    })
}

/// What the sides were loaded with, where that differs.
fn loads(sides: &[Side]) -> Option<String> {
    let of = |side: &Side| side.runs.iter().map(|run| run.manifest.load.clone()).collect();
    let sets: Vec<BTreeSet<String>> = sides.iter().map(of).collect();
    sets.iter().any(|set| *set != sets[0]).then(|| {
        let each = (0..).zip(&sets).map(|(index, set)| {
            format!("{}: {}", letter(index), set.iter().map(String::as_str).collect::<Vec<_>>().join(" and "))
        });
        let each = each.collect::<Vec<_>>().join("; ");
        format!("the sides had different loads, so that latencies do not compare: {each}")
    })
}

/// When writes were acknowledged, where that differs: what is synced takes longer. Of the system, and of each store by its
/// name; a side that does not say is left out.
fn durabilities(sides: &[Side]) -> Vec<String> {
    let runs = sides.iter().flat_map(|side| &side.runs);
    let stores: BTreeSet<&str> =
        runs.flat_map(|run| &run.manifest.stores).map(|store| store.name.as_str()).collect();
    let in_words = |what: String, of: &dyn Fn(&SideRun) -> Vec<String>| {
        let sets: Vec<(String, BTreeSet<String>)> = (0..)
            .zip(sides)
            .map(|(index, side)| {
                let words = side.runs.iter().flat_map(of).filter(|word| !word.is_empty());
                (letter(index), words.collect::<BTreeSet<String>>())
            })
            .filter(|(_, words)| !words.is_empty())
            .collect();
        sets.windows(2).any(|two| two[0].1 != two[1].1).then(|| {
            let each = sets.iter().map(|(side, words)| {
                format!("{side} {}", words.iter().map(String::as_str).collect::<Vec<_>>().join(" and "))
            });
            format!("{what} differs: {}", each.collect::<Vec<_>>().join(", "))
        })
    };
    let of_system = |run: &SideRun| run.manifest.system.durability.iter().cloned().collect::<Vec<String>>();
    let mut notes: Vec<String> = in_words("durability".to_owned(), &of_system).into_iter().collect();
    for name in stores {
        let of_store = |run: &SideRun| -> Vec<String> {
            let named = run.manifest.stores.iter().filter(|store| store.name == name);
            named.map(|store| store.durability.clone()).collect()
        };
        notes.extend(in_words(format!("durability of {name}"), &of_store));
    }
    notes
}

/// How much of what was due failed, where that differs.
fn failures(sides: &[Side]) -> Option<String> {
    let share = |side: &Side| {
        let sum = |of: &dyn Fn(&SideRun) -> u64| side.runs.iter().map(of).sum::<u64>() as f64;
        sum(&|run| run.manifest.summary.failed) / sum(&|run| run.manifest.summary.due()).max(1.0)
    };
    let shares: Vec<f64> = sides.iter().map(share).collect();
    let (least, most) = shares
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(least, most), share| (least.min(*share), most.max(*share)));
    (most - least >= FLOOR && most > 2.0 * least).then(|| {
        let each = (0..).zip(&shares).map(|(index, share)| {
            let share = if *share > 0.0 { percent(*share) } else { "none".into() };
            format!("{} {share}", letter(index))
        });
        format!("requests without a good answer: {}", each.collect::<Vec<_>>().join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_record::{ComparedRun, Part};

    #[test]
    fn a_title_has_only_what_differs_between_long_names() {
        assert_eq!(title(&["store=embedded", "store=cassandra"]), "store=cassandra against store=embedded");
        assert_eq!(title(&["runs/a", "runs/b"]), "runs/b against runs/a");
        let name = |version: &str| {
            format!("/srv/builds/{version}/bin/shop --port {{port}} --data /var/lib/shop --durability synced")
        };
        assert_eq!(title(&[&name("1.4"), &name("1.5")]), "…1.5… against …1.4…");
        assert_eq!(
            title(&[&name("1.4"), &name("1.5"), "x"]),
            "2 others against /srv/builds/1.4/bin/… --durability synced"
        );
        // one against itself has a number
        let again = format!("{} #2", name("1"));
        assert_eq!(title(&[&name("1"), &again]), "…synced #2 against …synced");
        let long = "x".repeat(400);
        let shown = title(&[&long, &format!("{long} y")]);
        assert!(shown.chars().count() < 110 && shown.matches('…').count() == 2, "{shown}");
        assert_eq!(title(&[]), "");
    }

    #[test]
    fn more_time_than_was_allowed_is_told_with_its_reason() {
        let mut comparison = ComparisonFile::new("x", "", vec!["a".into(), "b".into()]);
        let run = |round: u64| ComparedRun { side: 0, part: Part::OwnLoad, round, dir: "1".into() };
        comparison.runs = vec![run(3)];
        assert_eq!(over_budget(&comparison), None);
        comparison.in_rounds = Some(InRounds { level: 0.05, took_s: 50.0, budget_s: 50.0, rounds_max: None });
        assert_eq!(over_budget(&comparison), None);
        comparison.in_rounds = Some(InRounds { level: 0.05, took_s: 74.0, budget_s: 50.0, rounds_max: None });
        let says = over_budget(&comparison).unwrap();
        assert!(says.starts_with("took 1m14s of a --budget of 50s: 3 rounds are needed"), "{says}");
        comparison.runs.push(run(4));
        assert!(over_budget(&comparison).unwrap().contains("the last round took longer"));
    }

    #[test]
    fn the_option_is_named_that_ended_the_comparison() {
        // rounds needed for each that ran, time, its bound, the bound on rounds, rounds that ran
        for (times, took_s, budget_s, rounds_max, ran, says) in [
            (3.0, 30.0, 600.0, Some(3), 3, " (give --rounds 9)"),
            (3.0, 590.0, 600.0, None, 20, " (give --budget 33m)"),
            (3.0, 590.0, 600.0, Some(20), 20, " (give --rounds 60 --budget 33m)"),
            (3.0, 590.0, 600.0, Some(200), 20, " (give --budget 33m)"),
            (1.05, 580.0, 600.0, None, 20, " (give --budget 12m)"),
            // the user stopped it, or the rules were decided
            (3.0, 30.0, 600.0, None, 3, ""),
            (3.0, 30.0, 600.0, Some(40), 3, ""),
        ] {
            let of = InRounds { level: 0.05, took_s, budget_s, rounds_max };
            assert_eq!(give(times, (of, ran)), says);
        }
    }

    #[test]
    fn changes_are_short() {
        let shown = [1.0812, 1.12, 0.5, 1.0, 0.9996, 2.0, 14.2, 1.004].map(change);
        assert_eq!(shown, ["+8.1%", "+12%", "-50%", "0%", "0%", "+100%", "×14.2", "+0.4%"]);
        assert_eq!([999.0, 1e34, f64::INFINITY].map(change), ["×999", "over ×1,000", "over ×1,000"]);
        assert_eq!([0.0001, 0.0299, 0.03, 0.031, 2.5].map(whole_percent), ["1%", "3%", "3%", "4%", "250%"]);
    }
}
