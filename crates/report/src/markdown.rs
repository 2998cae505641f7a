//! The run as Markdown with tables (GitHub's flavour), for a comment or the summary of a CI job: the verdict first.

pub mod claims;
pub mod limit;

use std::fmt::Write;

use tidemark_record::Run;
use tidemark_record::manifest::Manifest;
use tidemark_record::summary::{Status, Summary};

use crate::quote::Quote;
use crate::text::ledger::sent_at;
use crate::text::{achieved_of_offered, at_least, dashes, drift, good_elsewhere, is_partial, steers, time};
use crate::units::{bytes, compact, count, duration, percent, seconds, three_digits};
use crate::{faults, maintenance, own, page, parts, phases, watched};

/// Rows of a table, at most; what is left out is counted. A CI job's summary must stay below a mebibyte.
const ROWS_MAX: usize = 100;
/// Writes that were lost, doubled or changed that are named.
const EXAMPLES: usize = 3;
/// Slow requests that have a row.
const SLOWEST: usize = 10;
/// Longest text taken over from files and servers, characters.
const TEXT_MAX: usize = 300;
/// Longest reason or note, characters: its end says what to do.
const SENTENCE_MAX: usize = 4_000;
/// Last lines of a log that are shown.
const LOG_LINES: usize = 30;

/// The summary.
pub fn summary(run: &Run) -> String {
    let manifest = &run.manifest;
    let mut out = String::new();
    verdict(&mut out, manifest);
    figures(&mut out, run);
    time_parts(&mut out, manifest);
    objectives(&mut out, manifest);
    phases(&mut out, &manifest.summary);
    targets(&mut out, &manifest.summary);
    labels(&mut out, &manifest.summary);
    groups(&mut out, &manifest.summary);
    own_metrics(&mut out, &manifest.summary);
    slowest(&mut out, &manifest.summary);
    errors(&mut out, manifest);
    faults(&mut out, &manifest.summary);
    maintenance(&mut out, &manifest.summary);
    processes(&mut out, manifest);
    watched_series(&mut out, manifest);
    ledger(&mut out, manifest);
    driver(&mut out, &manifest.summary);
    notes(&mut out, manifest);
    let _ = writeln!(out, "\nRun directory: {}", code(&manifest.summary.run_dir));
    out
}

fn verdict(out: &mut String, manifest: &Manifest) {
    let verdict = &manifest.summary.verdict;
    let (mark, word) = match verdict.status {
        Status::Pass => ("✅", "pass"),
        Status::Fail => ("❌", "fail"),
        Status::Invalid => ("⚠️", "invalid"),
    };
    let _ = writeln!(out, "### {mark} {}: {word}\n", plain(&manifest.scenario));
    for reason in verdict.reasons.iter().take(ROWS_MAX) {
        point(out, reason);
    }
    if is_partial(manifest) {
        let who = if manifest.interrupted { "stopped by the user: " } else { "" };
        let _ = writeln!(out, "- {who}the figures are of the part that ran");
    }
    if let Some(drift) = drift(&manifest.summary) {
        let _ = writeln!(out, "- {}", plain(&drift));
    }
    for warning in manifest.summary.warnings.iter().take(ROWS_MAX) {
        let _ = writeln!(out, "- ⚠️ {}", plain(warning));
    }
    if !out.ends_with("\n\n") {
        out.push('\n');
    }
    let mut what =
        vec![plain(&manifest.load), format!("measured for {}", seconds(manifest.summary.measured_s))];
    what.push(match &manifest.system.durability {
        Some(durability) => format!("{} ({})", plain(&manifest.system.name), plain(durability)),
        None => plain(&manifest.system.name),
    });
    what.retain(|part| !part.is_empty());
    let _ = writeln!(out, "{}", what.join(" · "));
}

fn figures(out: &mut String, run: &Run) {
    let summary = &run.manifest.summary;
    let at_least = at_least(&run.manifest);
    let _ = write!(
        out,
        "\n| offered | achieved | due | failed | dropped |\n| ---: | ---: | ---: | ---: | ---: |\n\
         | {}/s | {at_least}{}/s{} | {} | {} ({}) | {} |\n",
        three_digits(summary.offered_per_s),
        three_digits(summary.achieved_per_s),
        achieved_of_offered(summary).map(|share| format!(" ({share})")).unwrap_or_default(),
        count(summary.due()),
        count(summary.failed),
        percent(summary.failed_share()),
        count(summary.dropped),
    );
    let elsewhere = good_elsewhere(run);
    if !elsewhere.is_empty() {
        let _ = writeln!(out, "\nGood answers: {}", elsewhere.join("; "));
    }
    out.push_str("\n| | mean | median | p90 | p99 | p99.9 | max |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    let all = [("response time", &summary.response_time_us), ("service time", &summary.service_time_us)];
    let good = [
        ("good answers: response time", &summary.good.response_time_us),
        ("good answers: service time", &summary.good.service_time_us),
    ];
    let good = good.into_iter().filter(|_| summary.failed > 0);
    for (name, of) in all.into_iter().chain(good) {
        let _ = writeln!(
            out,
            "| {name} | {} | {} |",
            time(of.mean),
            [of.p50, of.p90, of.p99, of.p999, of.max].map(|us| time(us.map(|us| us as f64))).join(" | ")
        );
    }
    if let Some(why) = dashes(summary) {
        let _ = writeln!(out, "\n{}", plain(&why));
    }
}

/// Where the time of the good answers went.
fn time_parts(out: &mut String, manifest: &Manifest) {
    let Some(of) = parts::told(&manifest.summary) else { return };
    let _ = writeln!(
        out,
        "\n| where the time went | {} |\n| --- {}|",
        parts::HEAD.join(" | "),
        "| ---: ".repeat(parts::HEAD.len())
    );
    for (name, figures) in parts::rows(of) {
        let _ = writeln!(out, "| {name} | {} |", figures.join(" | "));
    }
    if let Some(told) = parts::lookups(&manifest.system, &manifest.targets) {
        let _ = writeln!(out, "\n{}", plain(&told));
    }
}

/// The slowest requests that were answered.
fn slowest(out: &mut String, summary: &Summary) {
    if summary.slowest.is_empty() {
        return;
    }
    out.push_str("\n| slowest | label | |\n| ---: | --- | --- |\n");
    for slow in summary.slowest.iter().take(SLOWEST) {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            duration(slow.response_time_us as f64),
            plain(&slow.label),
            plain(&parts::of_slow(slow).join(" · "))
        );
    }
}

fn maintenance(out: &mut String, summary: &Summary) {
    if summary.maintenance.is_empty() {
        return;
    }
    out.push('\n');
    for line in maintenance::lines(summary).take(ROWS_MAX) {
        let _ = writeln!(out, "- {}", plain(&line));
    }
    left_out(out, summary.maintenance.len());
    let _ = writeln!(out, "\nRewrites and snapshots: {}.", maintenance::LEGEND);
}

fn faults(out: &mut String, summary: &Summary) {
    if summary.faults.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n| {} |\n| --- {}|",
        faults::HEAD.join(" | "),
        "| ---: ".repeat(faults::HEAD.len() - 1)
    );
    for row in faults::rows(summary).into_iter().take(ROWS_MAX) {
        let _ = writeln!(out, "| {} |", row.map(|cell| plain(&cell)).join(" | "));
    }
    left_out(out, summary.faults.len());
    let _ = writeln!(out, "\nFaults: {}.", faults::LEGEND);
    for mistake in faults::mistakes(summary).take(ROWS_MAX) {
        let _ = writeln!(out, "\n- {}", plain(&mistake));
    }
}

fn objectives(out: &mut String, manifest: &Manifest) {
    if manifest.objectives.is_empty() {
        return;
    }
    out.push_str("\n| objective | measured | |\n| --- | ---: | --- |\n");
    for objective in manifest.objectives.iter().take(ROWS_MAX) {
        let (mark, word) = match (objective.met, objective.undecided) {
            (true, _) => ("✅", "met"),
            (false, true) => ("⚠️", "not decided"),
            (false, false) => ("❌", "missed"),
        };
        let default = if objective.default { ", by default" } else { "" };
        let _ = writeln!(
            out,
            "| {} | {} | {mark} {word}{default} |",
            code(&objective.objective),
            plain(&objective.measured)
        );
    }
    left_out(out, manifest.objectives.len());
}

fn labels(out: &mut String, summary: &Summary) {
    if summary.steps.is_empty() {
        return;
    }
    out.push_str(
        "\n| label | count | share | per s | p50 | p90 | p99 | max | failed |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for step in summary.steps.iter().take(ROWS_MAX) {
        let of = &step.response_time_us;
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            plain(&step.label),
            count(step.requests),
            percent(step.share),
            three_digits(step.achieved_per_s),
            [of.p50, of.p90, of.p99, of.max].map(|us| time(us.map(|us| us as f64))).join(" | "),
            count(step.errors.values().sum()),
        );
    }
    left_out(out, summary.steps.len());
}

fn phases(out: &mut String, summary: &Summary) {
    let told = phases::told(summary);
    if told.is_empty() {
        return;
    }
    let columns = "| ---: ".repeat(phases::HEAD.len());
    let _ = writeln!(out, "\n| phase | {} |\n| --- {columns}|", phases::HEAD.join(" | "));
    for phase in told.iter().take(ROWS_MAX) {
        let _ = writeln!(out, "| {} | {} |", plain(&phases::name(phase)), phases::figures(phase).join(" | "));
    }
    left_out(out, told.len());
}

fn groups(out: &mut String, summary: &Summary) {
    if summary.groups.is_empty() {
        return;
    }
    out.push_str(
        "\n| group | count | per s | p50 | p90 | p99 | max | failed |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for group in summary.groups.iter().take(ROWS_MAX) {
        let of = &group.response_time_us;
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            plain(&group.group),
            count(group.count),
            three_digits(group.achieved_per_s),
            [of.p50, of.p90, of.p99, of.max].map(|us| time(us.map(|us| us as f64))).join(" | "),
            count(group.errors.values().sum()),
        );
    }
    left_out(out, summary.groups.len());
}

/// What the scenario measured itself.
fn own_metrics(out: &mut String, summary: &Summary) {
    if summary.metrics.is_empty() {
        return;
    }
    let columns = own::HEAD.len() + 1;
    let _ = writeln!(
        out,
        "\n| own metric | {} | {} |\n| --- {}|",
        own::HEAD.join(" | "),
        own::NO_NUMBER,
        "| ---: ".repeat(columns)
    );
    for of in summary.metrics.iter().take(ROWS_MAX) {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            plain(&own::name(of)),
            own::figures(of).join(" | "),
            count(of.no_number)
        );
    }
    left_out(out, summary.metrics.len());
}

fn targets(out: &mut String, summary: &Summary) {
    if summary.targets.is_empty() {
        return;
    }
    out.push_str(
        "\n| target | count | share | per s | p50 | p99 | failed |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for of in summary.targets.iter().take(ROWS_MAX) {
        let times = [of.response_time_us.p50, of.response_time_us.p99];
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            plain(&of.target),
            count(of.requests),
            percent(of.share),
            three_digits(of.achieved_per_s),
            times.map(|us| time(us.map(|us| us as f64))).join(" | "),
            count(of.errors.values().sum()),
        );
    }
    left_out(out, summary.targets.len());
}

fn processes(out: &mut String, manifest: &Manifest) {
    let processes = &manifest.summary.processes;
    if processes.is_empty() {
        return;
    }
    out.push_str(
        "\n| process | CPU time | cores used | memory, most | good answers per CPU-second |\n\
         | --- | ---: | ---: | ---: | ---: |\n",
    );
    for process in processes.iter().take(ROWS_MAX) {
        let cost = process.good_per_cpu_s.map_or_else(String::new, three_digits);
        let _ = writeln!(
            out,
            "| {} | {} | {:.2} | {} | {cost} |",
            plain(&process.name),
            time(Some(process.cpu_s * 1e6)),
            process.cpu_share,
            bytes(process.rss_bytes_max),
        );
    }
    left_out(out, processes.len());
}

fn watched_series(out: &mut String, manifest: &Manifest) {
    let count = watched::series(manifest).count();
    if count == 0 {
        return;
    }
    out.push_str("\n| watched | series | mean | most | last |\n| --- | --- | ---: | ---: | ---: |\n");
    for (name, series, of) in watched::series(manifest).take(ROWS_MAX) {
        let values = [of.mean, of.max, of.last].map(compact).join(" | ");
        let _ = writeln!(out, "| {} | {} | {values} |", plain(name), code(series));
    }
    left_out(out, count);
}

fn left_out(out: &mut String, rows: usize) {
    if rows > ROWS_MAX {
        let _ = writeln!(out, "\n… and {} more", count((rows - ROWS_MAX) as u64));
    }
}

fn errors(out: &mut String, manifest: &Manifest) {
    let kinds = page::errors(manifest);
    if kinds.is_empty() {
        return;
    }
    out.push_str("\n| failures | count | first example |\n| --- | ---: | --- |\n");
    for kind in kinds {
        let example = kind.examples.first().map(|example| {
            let label = plain(example.label);
            format!("{}s, {label}: {}", three_digits(example.at_s), code(example.detail.trim()))
        });
        let _ = writeln!(out, "| {} | {} | {} |", kind.kind, count(kind.count), example.unwrap_or_default());
    }
}

fn ledger(out: &mut String, manifest: &Manifest) {
    let Some(ledger) = &manifest.summary.ledger else { return };
    let Some(verified) = &ledger.verified else {
        let reason = ledger.not_verified.as_deref().unwrap_or("nobody looked");
        let _ = writeln!(
            out,
            "\n⚠️ {} acknowledged writes, not verified: {}",
            count(ledger.acknowledged),
            plain(reason)
        );
        return;
    };
    let _ = write!(
        out,
        "\n| acknowledged | found | lost | duplicated | different | found, unacknowledged |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: |\n| {} | {} | {} | {} | {} | {} |\n",
        count(ledger.acknowledged),
        count(verified.found),
        count(verified.lost),
        count(verified.duplicated),
        count(verified.different),
        count(verified.unacknowledged_found),
    );
    for example in
        verified.examples.iter().filter(|example| example.kind != "unacknowledged_found").take(EXAMPLES)
    {
        let _ = writeln!(out, "\n{} {}{}", plain(&example.kind), code(&example.entry), sent_at(example));
    }
}

fn driver(out: &mut String, summary: &Summary) {
    let driver = &summary.driver;
    if driver.threads == 0 {
        return;
    }
    let waited = match driver.waited_share {
        Some(share) => format!(" · waited for a core for {} of the time", percent(share)),
        None => String::new(),
    };
    let _ = writeln!(
        out,
        "\nLoad generator: {} driving thread{}, the busiest at {} of a core{waited} · requests sent late: p99 {}, longest {}, \
         {} by 1ms or more",
        driver.threads,
        if driver.threads == 1 { "" } else { "s" },
        percent(driver.busiest_thread_share),
        time(driver.lag_us.p99.map(|us| us as f64)),
        time(driver.lag_us.max.map(|us| us as f64)),
        count(driver.late),
    );
}

fn notes(out: &mut String, manifest: &Manifest) {
    if manifest.notes.is_empty() {
        return;
    }
    out.push('\n');
    for note in manifest.notes.iter().take(ROWS_MAX) {
        point(out, note);
    }
}

/// A reason or a note as a point of a list, with the log that it quotes below it as it stood there.
fn point(out: &mut String, text: &str) {
    let quote = Quote::of(text, LOG_LINES);
    let _ = writeln!(out, "- {}", escaped(&line(&quote.said.join(" "), SENTENCE_MAX)));
    if quote.log.is_empty() {
        return;
    }
    let log: Vec<String> = quote.log.iter().map(|of_log| one_line(of_log)).collect();
    // a fence ends only at one that is as long
    let fence = "`".repeat(log.iter().map(|of_log| backquotes(of_log)).max().unwrap_or(0).max(2) + 1);
    let _ = writeln!(out, "\n  {fence}text");
    for of_log in quote.before().map(|before| format!("… {before}")).into_iter().chain(log) {
        let _ = writeln!(out, "{}", format!("  {of_log}").trim_end());
    }
    let _ = writeln!(out, "  {fence}");
}

/// One line of text that means itself: nothing in it is markup.
fn plain(value: &str) -> String {
    escaped(&one_line(value))
}

fn escaped(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            // would become a mention, and of the name of a person
            '@' => out += "&#64;",
            c => out.push(c),
        }
    }
    out
}

/// One line of code. Within it only the back quotes and the bar of a table mean something.
fn code(value: &str) -> String {
    let line = one_line(value);
    if line.trim().is_empty() {
        return String::new();
    }
    let fence = "`".repeat(backquotes(&line) + 1);
    let line = line.replace('|', "\\|");
    // a back quote at an end would join the fence
    let gap = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{fence}{gap}{line}{gap}{fence}")
}

/// How many back quotes stand in a row at most.
fn backquotes(line: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in line.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// On one line, without control characters, and no longer than is good.
fn one_line(value: &str) -> String {
    line(value, TEXT_MAX)
}

/// The same of so many characters.
fn line(value: &str, most: usize) -> String {
    let line: String = value.chars().take(most).map(|c| if steers(c) { ' ' } else { c }).collect();
    if value.chars().nth(most).is_some() { line + "…" } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;

    #[test]
    fn a_failed_run() {
        let (_dir, mut run) = test_run::airline();
        run.manifest.summary.run_dir = "runs/x".into();
        insta::assert_snapshot!(summary(&run));
    }

    #[test]
    fn nothing_in_a_run_turns_the_text_around() {
        assert_eq!(plain("a\u{202e}b\u{2066}c\u{200f}d"), "a b c d");
        assert_eq!(code("a\u{202e}b"), "`a b`");
    }

    #[test]
    fn nothing_in_a_run_is_markup() {
        let nasty = "a|b `c` ``d`` <img src=x> **e** [f](g) @h \\ \r\n# i";
        let plain = plain(nasty);
        assert_eq!(
            plain,
            "a\\|b \\`c\\` \\`\\`d\\`\\` &lt;img src=x&gt; \\*\\*e\\*\\* \\[f\\](g) &#64;h \\\\   \\# i"
        );
        assert_eq!(code(nasty).matches('\n').count(), 0);
        assert!(code(nasty).starts_with("```a\\|b") && code(nasty).ends_with("# i```"));
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code(" "), "");
        let long = "x".repeat(10_000);
        assert_eq!(super::plain(&long).chars().count(), TEXT_MAX + 1);
    }

    #[test]
    fn a_log_that_is_quoted_keeps_its_end_and_its_lines_and_a_note_its_advice() {
        let (_dir, mut run) = test_run::airline();
        let log: String = (0..40).map(|n| format!("\n  | {n} {}", "word ".repeat(20))).collect();
        let end = "\n  |   File \"svc.py\"\n  | ```` <b>\n  | FATAL: the real reason";
        run.manifest.summary.verdict.reasons =
            vec![format!("it ended; its log:{log}{end}").into(), "another".into()];
        run.manifest.notes = vec![format!("{} do this", "a note that is long ".repeat(50))];
        let text = summary(&run);
        let quoted =
            text.split("- it ended; its log:\n\n  `````text\n").nth(1).unwrap_or_else(|| panic!("{text}"));
        assert!(quoted.starts_with("  … 13 lines before\n  13 word"), "{quoted}");
        let end = "\n    File \"svc.py\"\n  ```` <b>\n  FATAL: the real reason\n  `````\n- another\n";
        assert!(quoted.contains(end), "{quoted}");
        assert!(text.contains("long  do this\n"), "{text}");
    }

    #[test]
    fn tables_are_bounded_and_what_is_left_out_is_counted() {
        let (_dir, run) = test_run::long(2, 120);
        let text = summary(&run);
        assert!(text.contains("\n… and 20 more\n"), "{text}");
        assert_eq!(text.matches("\n| Step ").count(), ROWS_MAX);
    }
}
