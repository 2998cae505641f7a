//! What a run of a comparison is worth where the machine had too few cores: a row that says how fast a store is must not be of a
//! store, or of a driver, that stood and waited for a core.
//!
//! A verdict by itself answers whether objectives were met. It fails a run whose requests were given up, whoever was slow, and
//! passes one of users who wait, however slow that was. In a table of stores both are the same: nothing was measured. Where the
//! driver alone was held up, what was answered is a lower bound, and the row says so.

use tidemark_record::summary::{Process, Status, Verdict};
use tidemark_record::{Manifest, SYSTEM};

use crate::watched::counted_processes;

/// A process that waited for a core for a larger share of the time answered late for want of it.
const WAITED_SHARE: f64 = 0.2;
/// One that was on more than this share of the cores that there are is the one who has them.
const OWN_SHARE_MAX: f64 = 0.5;
/// Failures that want of a core makes: nothing else is wrong with what came, or would have come.
const OF_TIME: [&str; 2] = ["timeout", "unfinished"];

/// The verdict of a run as one row among others.
pub(super) fn verdict(manifest: &Manifest) -> Verdict {
    let summary = &manifest.summary;
    let cores = manifest.machine.cores as f64;
    let whole = of_system(manifest);
    // parts of one system wait for each other: what counts is the whole
    let counted =
        counted_processes(manifest).filter(|of| whole.is_none() || !manifest.is_of_system(&of.name));
    let own = manifest.system.pinned_to.len() as f64;
    let whole = whole.as_ref().filter(|of| is_starved(of, if own > 0.0 { own } else { cores }));
    let starved: Vec<&Process> = counted.filter(|of| is_starved(of, cores)).chain(whole).collect();
    let is_late_only = summary.errors.keys().all(|kind| OF_TIME.contains(&kind.as_str()))
        && summary.ledger.as_ref().and_then(|ledger| ledger.verified.as_ref()).is_none_or(|of| of.lost == 0);
    let spoils = match summary.verdict.status {
        Status::Pass => !starved.is_empty(),
        Status::Fail => is_late_only && !(starved.is_empty() && summary.driver.limits.is_empty()),
        Status::Invalid => false,
    };
    if !spoils {
        let mut verdict = summary.verdict.clone();
        if let Some(limit) = summary.driver.limits.first().filter(|_| verdict.status == Status::Pass) {
            let told = format!("at least that much, as the load generator was the limit: {limit}");
            verdict.reasons.push(told.into());
        }
        return verdict;
    }
    let of_store = starved.iter().map(|of| {
        let waited = of.core_wait_share.unwrap_or(0.0);
        format!("{} had {:.2} cores while its threads waited for {waited:.2} more", of.name, of.cpu_share)
    });
    let of_driver = summary.driver.limits.first().filter(|_| starved.is_empty());
    let why: Vec<String> = of_store.chain(of_driver.map(|limit| format!("driver-bound: {limit}"))).collect();
    let way_out =
        if starved.is_empty() { "" } else { "; give stores and load generator cores of their own (--pin)" };
    let reasons = std::iter::once(format!("not measured: {}{way_out}", why.join(", ")).into());
    let others = summary.verdict.reasons.iter().cloned();
    Verdict { status: Status::Invalid, reasons: reasons.chain(others).collect() }
}

/// All parts of a system as one; none of a system that is one process.
fn of_system(manifest: &Manifest) -> Option<Process> {
    let mut parts = manifest.summary.processes.iter().filter(|of| manifest.is_of_system(&of.name));
    let first = parts.next()?;
    let mut whole = Process { name: SYSTEM.to_owned(), ..first.clone() };
    let mut count = 1;
    for part in parts {
        whole.cpu_share += part.cpu_share;
        let waited = whole.core_wait_share.unwrap_or(0.0) + part.core_wait_share.unwrap_or(0.0);
        whole.core_wait_share = Some(waited);
        count += 1;
    }
    (count > 1).then_some(whole)
}

/// Whether a system or a store waited for a core for longer than it was on one, and not for its own threads. It may have been
/// idle in between: users who wait send nothing while it has no core.
fn is_starved(process: &Process, cores: f64) -> bool {
    let (had, waited) = (process.cpu_share, process.core_wait_share.unwrap_or(0.0));
    let has_them = cores > 0.0 && had > OWN_SHARE_MAX * cores;
    waited > WAITED_SHARE && waited > had && !has_them
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_record::RunWriter;
    use tidemark_record::summary::Ledger;

    #[test]
    fn the_same_want_of_a_core_is_the_same_verdict() {
        let of = |status, kinds: &[&str], waited: f64, limits: &[&str]| {
            let temp = tempfile::tempdir().unwrap();
            let dir = temp.path().join("a");
            let mut writer = RunWriter::create(&dir, &[], "").unwrap();
            writer.threads(1);
            let mut summary = tidemark_record::summarize(writer.totals(), &dir);
            summary.verdict = Verdict { status, reasons: vec!["errors = 0 missed".into()] };
            summary.errors = kinds.iter().map(|kind| ((*kind).to_owned(), 3)).collect();
            summary.dropped = 74_819;
            summary.driver.limits = limits.iter().map(|limit| (*limit).to_owned()).collect();
            let process = |name: &str, cpu_share, waited| Process {
                name: name.into(),
                cpu_share,
                core_wait_share: Some(waited),
                ..Process::default()
            };
            summary.processes = vec![process("kv.1", 0.28, waited), process("driver", 0.1, 0.99)];
            verdict(&Manifest::new("kv", Vec::new(), summary))
        };
        let (pass, fail, invalid) = (Status::Pass, Status::Fail, Status::Invalid);
        let late = ["requests left late"];
        for (status, kinds, waited, limits, wanted) in [
            // users who wait pass however slow it was
            (pass, &[][..], 0.71, &[][..], invalid),
            (pass, &[], 0.2, &[], pass),
            // it was idle for a part of the time, as nobody had an answer to go on with
            (pass, &[], 0.5, &[], invalid),
            (fail, &[], 0.6, &[], invalid),
            (pass, &[], 0.2, &late[..], pass),
            // what was given up, or came too late
            (fail, &[], 0.71, &[], invalid),
            (fail, &["timeout", "unfinished"], 0.71, &[], invalid),
            (fail, &[], 0.0, &late[..], invalid),
            (fail, &[], 0.2, &[], fail),
            // no want of a core makes an answer wrong
            (fail, &["check"], 0.71, &late[..], fail),
            (fail, &["reset", "timeout"], 0.71, &[], fail),
            (invalid, &[], 0.71, &[], invalid),
        ] {
            let found = of(status, kinds, waited, limits);
            assert_eq!(found.status, wanted, "{status:?} {kinds:?} {waited} {limits:?}");
            let is_said = found.reasons[0].starts_with("not measured: ");
            assert_eq!(is_said, wanted == invalid && status != invalid, "{:?}", found.reasons);
        }
        let bound = of(pass, &[], 0.2, &late).reasons.pop().unwrap();
        assert_eq!(bound, "at least that much, as the load generator was the limit: requests left late");
        let says = of(pass, &[], 0.71, &[]).reasons.remove(0);
        assert!(says.starts_with("not measured: kv.1 had 0."), "{says}");
        assert!(says.contains(" cores while its threads waited for 0.71 more; give"), "{says}");
    }

    #[test]
    fn who_waits_for_a_core_that_others_have_is_starved() {
        let starved = |name: &str, cpu_share, waited, cores| {
            let core_wait_share = Some(waited);
            is_starved(
                &Process { name: name.into(), cpu_share, core_wait_share, ..Process::default() },
                cores,
            )
        };
        for name in ["kv.1", tidemark_record::SYSTEM] {
            assert!(
                starved(name, 0.05, 0.67, 2.0)
                    && starved(name, 0.3, 0.31, 2.0)
                    && starved(name, 0.9, 2.5, 2.0)
            );
            assert!(!starved(name, 0.05, 0.15, 2.0), "it had time left");
            assert!(!starved(name, 0.5, 0.49, 2.0), "it had a core for longer");
            assert!(!starved(name, 1.3, 2.5, 2.0), "its own threads wait for each other");
        }
    }

    #[test]
    fn lost_writes_fail_whoever_had_no_core() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("a");
        let mut writer = RunWriter::create(&dir, &[], "").unwrap();
        writer.threads(1);
        let mut summary = tidemark_record::summarize(writer.totals(), &dir);
        summary.verdict = Verdict { status: Status::Fail, reasons: vec!["lost = 0 missed: 3".into()] };
        summary.driver.limits = vec!["requests left late".into()];
        let verified = tidemark_record::summary::Verified { lost: 3, ..Default::default() };
        summary.ledger = Some(Ledger { verified: Some(verified), ..Ledger::default() });
        assert_eq!(verdict(&Manifest::new("kv", Vec::new(), summary)).status, Status::Fail);
    }
}
