//! Writes that are entered in the ledger: their content is made when the request is about to be sent.

use tidemark_record::ledger::{CHECK_DIGITS, Entry, Form, Piece, stamp};
use tidemark_scenario::plan::LedgerPlan;
use tidemark_scenario::template::Part;
use tidemark_scenario::{Context, Plan, Template, Unmet};

use crate::observation::record::Recorder;
use crate::session::answer::Scratch;
use crate::session::failure::Failure;
use crate::session::{Environment, Session};

/// How the contents look that this plan's requests enter.
pub fn forms(plan: &Plan) -> Vec<Form> {
    plan.entered().map(|(label, ledger)| Form::new(label, &pieces(ledger))).collect()
}

fn pieces(ledger: &LedgerPlan) -> Vec<Piece<'_>> {
    let [first, second] = match ledger.entry_first {
        true => [Piece::Entry, Piece::Check],
        false => [Piece::Check, Piece::Entry],
    };
    let [before, between, behind] = &ledger.text;
    let text = |template| stretches(template).collect::<Vec<_>>();
    [text(before), vec![first], text(between), vec![second], text(behind)].concat()
}

fn stretches(template: &Template) -> impl Iterator<Item = Piece<'_>> {
    template.parts.iter().map(|part| match part {
        Part::Literal(text) => Piece::Literal(text),
        Part::Hole(..) => Piece::Varying,
    })
}

/// Writes the content of an entry.
fn render(
    ledger: &LedgerPlan,
    seed: u64,
    entry: Entry,
    cx: &mut Context<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Unmet> {
    let begin = out.len();
    let mut check_at = 0;
    for (index, text) in ledger.text.iter().enumerate() {
        text.render(cx, out)?;
        match (index, ledger.entry_first) {
            (0, true) | (1, false) => out.extend_from_slice(&entry.digits()),
            (0, false) | (1, true) => {
                check_at = out.len() - begin;
                out.extend_from_slice(&[b'0'; CHECK_DIGITS]);
            }
            _ => {}
        }
    }
    stamp(seed, entry, &mut out[begin..], check_at);
    Ok(())
}

/// Enters the write of a session's request and makes its content. Where it is only sent again, because nothing of it was
/// taken before, it stays what it was.
pub(crate) fn enter(
    ledger: &LedgerPlan,
    seed: u64,
    recorder: &mut Recorder,
    session: &mut Session,
    environment: &mut Environment<'_>,
    scratch: &mut Scratch,
) -> Result<(), Failure> {
    if session.entered().is_some() {
        return Ok(());
    }
    let Scratch { slot: content, held, .. } = scratch;
    let entry = recorder.enter();
    let cx = &mut environment.context(&session.slots);
    if let Err(unmet) = render(ledger, seed, entry, cx, content.text_mut()) {
        recorder.withdraw(entry.number);
        return Err(unmet.into());
    }
    session.cold_or_new().entered = Some(entry.number);
    let slot = &mut session.slots[ledger.slot as usize];
    if held.put(environment.shared, slot, content) { Ok(()) } else { Err(Failure::NoRoom) }
}

#[cfg(test)]
mod tests {
    use tidemark_record::ledger::{Forms, Reading};
    use tidemark_scenario::{Shared, load_text};

    use super::*;

    /// What the driver writes is what the forms of its plan read.
    #[test]
    fn contents_are_read_as_what_they_are() {
        let contents = [
            "${entry}${check}",
            "ä|${random(0, 99999)}|${check}|${entry}|${uuid()}",
            "${now()}${entry}.${check}",
            "${check}7${'a.b*'}${entry}",
        ];
        for content in contents {
            let text = format!(
                "sessions:\n  a:\n    steps:\n      - POST: /\n        ledger: {{content: \"{content}\", as: it}}\n        \
                 body: ${{it}}\nload: {{users: 1, hold: 1s}}\n"
            );
            let plan = load_text("t.yaml", &text, std::path::Path::new("."), &[]).unwrap();
            let forms = Forms::new(11, &forms(&plan)).unwrap();
            let shared = Shared::new(0, Vec::new());
            let mut random = fastrand::Rng::with_seed(1);
            for number in [0, 1, 9_999_999_999_999] {
                let mut cx = Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 17 };
                let entry = Entry { thread: 3, number };
                let mut out = b"before".to_vec();
                render(plan.entered().next().unwrap().1, 11, entry, &mut cx, &mut out).unwrap();
                let mut content = out.split_off(6);
                assert_eq!(forms.reading(&content, &mut Vec::new()), Reading::Whole(entry));
                content[0] ^= 1;
                assert_ne!(forms.reading(&content, &mut Vec::new()), Reading::Whole(entry));
            }
        }
    }
    /// Nothing is sent that was not kept.
    #[test]
    fn a_content_without_room_is_told_as_that() {
        let text = "sessions:\n  a:\n    steps:\n      - POST: /\n        ledger: {content: \"${entry}${check}${random_text(2000)}\", as: it}\n        \
                    body: ${it}\nload: {users: 1, hold: 1s}\n";
        let plan = load_text("t.yaml", text, std::path::Path::new("."), &[]).unwrap();
        let shared = Shared::new(0, Vec::new());
        assert!(shared.reserve(tidemark_scenario::plan::VALUES_BYTES_MAX));
        let mut random = fastrand::Rng::with_seed(1);
        let mut environment = Environment { shared: &shared, random: &mut random, epoch_ms: 0 };
        let (mut session, mut scratch) = (Session::default(), Scratch::default());
        session.slots = (0..plan.sessions[0].slots).map(|_| tidemark_scenario::Slot::default()).collect();
        let mut recorder = Recorder::new(0, 1, 0, (0, 1_000), None);
        let ledger = plan.entered().next().unwrap().1;
        let entered = enter(ledger, 1, &mut recorder, &mut session, &mut environment, &mut scratch);
        assert!(matches!(entered, Err(Failure::NoRoom)), "{entered:?}");
        let told = Failure::NoRoom.to_string();
        assert!(
            told.starts_with("no room for its value: the variables of all users hold 2GiB already"),
            "{told}"
        );
    }
}
