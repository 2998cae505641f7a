//! A search for a limit as Markdown: the sentence, the curve, what is to be said beside.

use std::fmt::Write;
use std::path::Path;

use tidemark_limit::{Search, Searches};

use super::{code, plain};
use crate::limit::{columns, more, points, remarks, row, says, took};

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
    let _ = writeln!(
        out,
        "\n| {} |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        columns(found.users).join(" | ")
    );
    for point in points(&found, ROWS) {
        let _ = writeln!(out, "| {} |", row(point, found.users).join(" | "));
    }
    if let Some(more) = more(&found, ROWS) {
        let _ = writeln!(out, "\n{more}");
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
            shown.contains("**holds 42,400/s (between 40,000 and 45,000); first to break: mean &lt; 50ms"),
            "{shown}"
        );
        assert!(shown.contains("| 45,000/s | 44,000/s | 60.0ms |"), "{shown}");
        assert!(shown.contains("- a &lt;note&gt;") && !shown.contains("<note>"), "{shown}");
    }
}
