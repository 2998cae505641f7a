//! What a step enters in the ledger: its content, with the places of entry and checksum.

use super::Step;
use crate::compile::Session;
use crate::grammar::kinds;
use crate::grammar::record::{Kind, record};
use crate::grammar::{Key, key};
use crate::pieces::{self, Piece};
use crate::plan::{LedgerPlan, SlotIndex};
use crate::template::{self, Encoding, Part};
use crate::yaml::Node;

pub(super) const LEDGER: Key = key(
    "ledger",
    Entry::SHAPE,
    "Enters what is written in the ledger, so that it is looked for after the run.",
);

record! {
    /// The content of a write, made for each anew, so that it can be looked for and known again after the run.
    struct Entry("ledger", "an entry in the ledger") {
        content (required): kinds::Template =
            "What is written, with `${entry}` and `${check}` each once: 16 digits by which it is found, 12 that \
             check it.",
        variable (required): kinds::Variable as "as" = "Variable that gets the content; the step sends it.",
    }
}

/// What stands for the entry and the checksum in a content, and what each is for.
const MARKS: [(&str, &str); 2] = [
    ("entry", "the number by which this write is looked for afterwards"),
    ("check", "the checksum by which a changed content is noticed"),
];

/// What is said of a mark where it is none.
pub(crate) fn mark_elsewhere(name: &str) -> Option<String> {
    let (name, what) = MARKS.iter().find(|(mark, _)| *mark == name)?;
    Some(format!("${{{name}}} is {what}; it stands alone in a ledger's content and nowhere else"))
}

impl Session<'_, '_> {
    /// The step's `ledger`. What it sends is compiled by `sending`, and has to hold the content.
    pub(super) fn entered<T>(
        &mut self,
        step: &Step<'_>,
        sending: impl FnOnce(&mut Self) -> T,
    ) -> (T, Option<LedgerPlan>) {
        let said = step.get("ledger").and_then(|node| Entry::read(node, self.reader));
        let plan = said.as_ref().and_then(|said| self.ledger(said));
        let slot = plan.as_ref().map(|plan| plan.slot);
        // Whether what is sent reads the variable shows where nothing has read it before.
        if let Some(slot) = slot {
            self.scope.replace_read(slot, false);
        }
        let sent = sending(self);
        let unsent = slot.is_some_and(|slot| !self.scope.replace_read(slot, true));
        if let Some(name) = said.and_then(|said| said.variable.value).filter(|_| unsent) {
            let message = format!(
                "this step does not send the content that it enters; put ${{{0}}} where it belongs, like query: {{c: \
                 \"${{{0}}}\"}}",
                name.text().unwrap_or_default()
            );
            self.reader.sink.error(name, message);
        }
        (sent, plan)
    }

    fn ledger(&mut self, said: &Entry<'_>) -> Option<LedgerPlan> {
        let (content, name) = (said.content.value?, said.variable.value?);
        let slot: SlotIndex = self.scope.slot(name.text()?)?;
        let pieces = match pieces::split(content.text()?) {
            Ok(pieces) => pieces,
            Err(offset) => {
                self.reader.sink.error_inside(content, offset, 2, "this ${ has no closing }".into());
                return None;
            }
        };
        let mut text: [template::Template; 3] = Default::default();
        let mut marks: Vec<&str> = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Literal(literal) => text[marks.len()].push_literal(literal.as_bytes()),
                Piece::Hole { offset, text: hole } => {
                    match MARKS.iter().find(|(mark, _)| *mark == hole.trim()) {
                        Some((mark, _)) if marks.contains(mark) => {
                            let message =
                                format!("${{{mark}}} stands in this content before; once is enough");
                            self.reader.sink.error_inside(content, offset, hole.len(), message);
                        }
                        Some((mark, _)) => {
                            self.check_mark(content, offset, mark);
                            marks.push(mark);
                        }
                        None => {
                            if let Some(expr) = self.parsed(content, offset, hole) {
                                text[marks.len()].push_hole(expr, Encoding::Raw);
                            }
                        }
                    }
                }
            }
        }
        for (mark, what) in MARKS.iter().filter(|(mark, _)| !marks.contains(mark)) {
            self.reader.sink.error(content, format!("this content needs ${{{mark}}}, {what}"));
        }
        if marks.len() == MARKS.len() && !can_be_found(&text) {
            let message = "what stands on both sides of ${entry} or ${check} varies, so that they could not be found \
                           again; put a mark beside them, like |${entry}|${check}|";
            self.reader.sink.error(content, message);
        }
        Some(LedgerPlan { slot, entry_first: marks.first() == Some(&MARKS[0].0), text })
    }

    /// A mark's name must not mean anything else here.
    fn check_mark(&self, content: &Node, offset: usize, mark: &str) {
        let is_setting = self.reader.settings.names().any(|name| name == mark);
        if is_setting || self.scope.slot(mark).is_some() {
            let kind = if is_setting { "setting" } else { "variable" };
            let message = format!(
                "there is a {kind} \"{mark}\", which ${{{mark}}} is not in a ledger's content; rename it"
            );
            self.reader.sink.error_inside(content, offset, mark.len(), message);
        }
    }
}

/// Whether both marks can be found again in a content: each begins at a place that is always the same, counted from
/// either end, or has beside it what is no digit.
fn can_be_found([before, between, after]: &[template::Template; 3]) -> bool {
    let is_fixed = |template: &template::Template| template.as_literal().is_some();
    let tells = |part: Option<&Part>| matches!(part, Some(Part::Literal(text)) if text.iter().any(|byte| !byte.is_ascii_digit()));
    let joined = is_fixed(between);
    let left = is_fixed(before) || tells(before.parts.last());
    let right = is_fixed(after) || tells(after.parts.first());
    let first = left || tells(between.parts.first()) || (joined && right);
    let second = right || tells(between.parts.last()) || (joined && left);
    first && second
}
