//! The report as one file that opens anywhere, offline.

use std::path::Path;

use tidemark_record::{ComparedRuns, RecordError, Run, write_output};

use crate::comparison::Compared;
use crate::operations;
use crate::page::ReportPage;
use crate::text::steers;

/// The page built from `web/`, with [`TOKEN`] where the run goes.
const TEMPLATE: &str = include_str!("../../../web/dist/report.html");
/// The page that lists the runs of a folder and shows one that goes on. It asks whoever serves it.
pub const UI: &str = include_str!("../../../web/dist/ui.html");
/// What stands in the template for the run, once.
const TOKEN: &str = "__TIDEMARK_RUN__";

/// The page with the run in it.
pub fn page(run: &Run) -> Result<String, RecordError> {
    let page = ReportPage::of(run)?;
    let json = serde_json::to_string(&page).expect("a report page is plain JSON");
    Ok(TEMPLATE.replacen(TOKEN, &escape(&json), 1))
}

/// The page of several runs that are compared; it leads to their own pages, which stand beside it.
///
/// # Errors
/// The operations of a run are damaged.
pub fn comparison(compared: &Compared, runs: &ComparedRuns) -> Result<String, RecordError> {
    let mut page = serde_json::to_value(compared).expect("a comparison is plain JSON");
    page["source"] = runs.source.as_str().into();
    for (part, of_part) in compared.parts.iter().enumerate() {
        let names: Vec<&str> = of_part.sides.iter().map(|figures| figures.name.as_str()).collect();
        page["parts"][part]["operations"] =
            serde_json::json!(operations::compared(runs, of_part.part, &names)?);
        for (side, figures) in of_part.sides.iter().enumerate() {
            let place = &mut page["parts"][part]["variants"][side];
            place["curve"] = serde_json::json!(figures.curve);
            let pages =
                runs.comparison.runs.iter().filter(|run| {
                    run.part == of_part.part && runs.comparison.sides[run.side] == figures.name
                });
            place["pages"] = pages.map(|run| format!("{}/report.html", run.dir)).collect();
        }
    }
    let json = serde_json::json!({ "comparison": page }).to_string();
    Ok(TEMPLATE.replacen(TOKEN, &escape(&json), 1))
}

/// Writes the page of a comparison to a file.
pub fn write_comparison(compared: &Compared, runs: &ComparedRuns, path: &Path) -> Result<(), RecordError> {
    put(comparison(compared, runs)?, path)
}

/// Writes the page to a file.
pub fn write(run: &Run, path: &Path) -> Result<(), RecordError> {
    put(page(run)?, path)
}

fn put(page: String, path: &Path) -> Result<(), RecordError> {
    write_output(path, |to| to.write_all(page.as_bytes())).map_err(|source| RecordError::Io {
        action: "write",
        path: path.to_owned(),
        source,
    })
}

/// JSON that nothing in it can break out of its `<script>` element with, nor turn the page's text around. The characters only ever stand within
/// texts, where an escape means the same.
fn escape(json: &str) -> String {
    let json = json.replace(steers, " ");
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;

    #[test]
    fn the_template_has_one_place_for_the_run() {
        assert_eq!(TEMPLATE.matches(TOKEN).count(), 1);
        let element = format!("<script type=\"application/json\" id=\"run\">{TOKEN}</script>");
        assert!(TEMPLATE.contains(&element));
    }

    #[test]
    fn nothing_in_a_run_breaks_out_of_its_element() {
        let (_dir, mut run) = test_run::airline();
        let nasty = "</script><script>alert(1)</script><!--\u{2028}\u{2029}]]> __TIDEMARK_RUN__ \\u003c \"";
        run.scenario = nasty.into();
        run.manifest.error_examples[0].detail = nasty.into();
        run.events[0].text = nasty.into();
        let page = page(&run).unwrap();
        let begin = page.find("id=\"run\">").unwrap() + "id=\"run\">".len();
        let end = begin + page[begin..].find("</script").unwrap();
        let json = &page[begin..end];
        assert!(!json.contains(['<', '\u{2028}', '\u{2029}']));
        let value: serde_json::Value =
            serde_json::from_str(json).expect("the whole run is within the element");
        assert_eq!(value["scenario"], nasty);
        assert_eq!(value["manifest"]["error_examples"][0]["detail"], nasty);
    }

    #[test]
    fn nothing_in_a_run_turns_the_page_around() {
        let (_dir, mut run) = test_run::airline();
        run.manifest.summary.verdict.reasons = vec!["a\u{202e}b\u{2066}c".into()];
        let page = page(&run).unwrap();
        assert!(page.contains("a b c") && !page.contains(['\u{202e}', '\u{2066}']));
    }

    #[test]
    fn a_comparison_leads_to_the_pages_of_its_runs() {
        let (_dir, mut runs) = crate::comparison::tests::runs();
        runs.source = "</script>".into();
        let page = comparison(&Compared::of(&runs).unwrap(), &runs).unwrap();
        let begin = page.find("id=\"run\">").unwrap() + "id=\"run\">".len();
        let json = &page[begin..begin + page[begin..].find("</script").unwrap()];
        let value: serde_json::Value = serde_json::from_str(json).expect("whole");
        let side = |part: usize, index: usize| &value["comparison"]["parts"][part]["variants"][index];
        assert_eq!(
            side(0, 0)["pages"],
            serde_json::json!(["1-x/report.html", "3-x/report.html", "5-x/report.html"])
        );
        assert_eq!(side(1, 1)["pages"], serde_json::json!(["8-x/report.html"]));
        assert!(side(0, 1)["curve"].as_array().unwrap().len() > 2);
        assert_eq!(value["comparison"]["source"], "</script>");
    }

    #[test]
    fn a_damaged_histogram_is_an_error_and_no_panic() {
        let (dir, mut run) = test_run::airline();
        run.series[0].response_time_us = Default::default();
        let error = write(&run, &dir.path().join("report.html")).unwrap_err().to_string();
        assert!(error.contains("cut off"), "{error}");
        assert!(!dir.path().join("report.html").exists());
    }
}
