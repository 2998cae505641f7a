//! Annotations for a job of GitHub Actions: lines that its runner turns into marks on the job's page.

use tidemark_record::Run;
use tidemark_record::summary::Status;

use crate::blocks::{drift, word};

/// Annotations, at most; the runner shows only the first ten of a kind, and the summary has them all.
const ANNOTATIONS_MAX: usize = 10;

/// An `::error` for each objective that was missed and whatever else failed the run or made it invalid, a
/// `::warning` for a measured window that was not steady and for each note. Nothing for a run that passed without.
pub fn annotations(run: &Run) -> String {
    let manifest = &run.manifest;
    let verdict = &manifest.summary.verdict;
    let title = format!("{}: {}", manifest.scenario, word(verdict.status));
    let errors = verdict.reasons.iter().filter(|_| verdict.status != Status::Pass);
    let errors = errors.take(ANNOTATIONS_MAX).map(|reason| line("error", &title, reason));
    let notes = drift(&manifest.summary).into_iter().chain(manifest.notes.iter().cloned());
    let notes = notes.take(ANNOTATIONS_MAX);
    errors.chain(notes.map(|note| line("warning", &manifest.scenario, &note))).collect()
}

fn line(command: &str, title: &str, message: &str) -> String {
    format!("::{command} title={}::{}\n", property(title), text(message))
}

/// The runner's escapes for a message.
fn text(value: &str) -> String {
    value.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The runner's escapes for a property, which ends at a comma or a colon.
fn property(value: &str) -> String {
    text(value).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;

    #[test]
    fn misses_are_errors_and_notes_warnings() {
        let (_dir, mut run) = test_run::airline();
        run.manifest.notes.truncate(1);
        assert_eq!(
            annotations(&run),
            "::error title=airline%3A fail::errors < 0.01%25 missed: 5.88%25\n\
             ::warning title=airline::not steady: the rate fell from about 90/s to 8/s, by 1640/s a minute, over the 3 s measured\n\
             ::warning title=airline::system and load generator shared the machine's cores\n"
        );
        run.manifest.notes.clear();
        run.manifest.summary.steady_state = None;
        run.manifest.summary.verdict.status = Status::Pass;
        assert_eq!(annotations(&run), "");
    }

    #[test]
    fn nothing_in_a_run_is_a_command_of_its_own() {
        let (_dir, mut run) = test_run::airline();
        run.manifest.scenario = "a,b::c\n::error::x".into();
        run.manifest.summary.verdict.reasons = vec!["x\r\n::add-mask::y %0A".into(); 50];
        let text = annotations(&run);
        assert!(
            text.lines()
                .all(|line| line.starts_with("::error title=") || line.starts_with("::warning title="))
        );
        assert_eq!(text.matches("::error title=").count(), ANNOTATIONS_MAX);
        assert!(
            text.starts_with(
                "::error title=a%2Cb%3A%3Ac%0A%3A%3Aerror%3A%3Ax%3A fail::x%0D%0A::add-mask::y %250A\n"
            ),
            "{text}"
        );
    }
}
