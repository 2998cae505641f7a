//! A search for a limit as Markdown: the sentence, the curve, what is to be said beside.

use std::fmt::Write;
use std::path::Path;

use tidemark_limit::{Search, Searches};

use super::{code, plain};
use crate::limit::{points, rate, remarks, says, sign, time, took};
use crate::units::percent;

/// Rows of a curve.
const ROWS: usize = 30;

/// The summary.
pub fn summary(searches: &Searches, dir: &Path) -> String {
    let mut out = format!("### Limit of {}\n", plain(&searches.name));
    for search in &searches.searches {
        one(&mut out, search);
    }
    if let Some(stopped) = &searches.stopped {
        let _ = writeln!(out, "\nstopped early: {}", plain(stopped));
    }
    let _ = writeln!(out, "\nTrials: {}", code(&dir.display().to_string()));
    out
}

fn one(out: &mut String, search: &Search) {
    let found = search.found();
    if let Some(setting) = &search.setting {
        let _ = writeln!(out, "\n#### {}", plain(setting));
    }
    let _ = writeln!(out, "\n**{}**\n\n{}\n", plain(&says(&found)), plain(&took(search, &found)));
    for remark in remarks(search, &found) {
        let _ = writeln!(out, "- {}", plain(&remark));
    }
    if found.curve.is_empty() {
        return;
    }
    let first = if found.users { "users" } else { "offered" };
    let _ = writeln!(
        out,
        "\n| {first} | answered | p50 | p90 | p99 | failed | CPU, cores | holds |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    );
    for point in points(&found, ROWS) {
        let level = if found.users {
            format!("{:.0}", point.level)
        } else {
            format!("{}/s", rate(point.offered_per_s))
        };
        let _ = writeln!(
            out,
            "| {level} | {}/s | {} | {} | {} | {} | {} | {} |",
            rate(point.achieved_per_s),
            time(point.p50_us),
            time(point.p90_us),
            time(point.p99_us),
            percent(point.failed_share),
            point.cpu_cores.map_or_else(|| "-".into(), |cores| format!("{cores:.2}")),
            sign(point.holds),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::tests::searches;

    #[test]
    fn it_has_the_sentence_and_the_curve_and_no_markup_of_others() {
        let shown = summary(&searches(None), Path::new("runs/x"));
        assert!(
            shown.contains("**holds 42,400/s (trials at 40,000 to 45,000); first to break: mean &lt; 50ms"),
            "{shown}"
        );
        assert!(shown.contains("| 45,000/s | 44,000/s | 60.0ms |"), "{shown}");
        assert!(shown.contains("- a &lt;note&gt;") && !shown.contains("<note>"), "{shown}");
    }
}
