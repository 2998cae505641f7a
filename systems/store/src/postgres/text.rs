//! Texts as PostgreSQL keeps them: every character but NUL.
//!
//! So that the same texts are kept wherever the data is, NUL is written as two other characters: one that nobody uses, and a
//! digit. That one itself is, too.

use std::borrow::Cow;

/// From the area that Unicode assigns to nobody.
const ESCAPE: char = '\u{e000}';

/// A text as it is kept.
pub(super) fn written(text: &str) -> Cow<'_, str> {
    match text.contains(['\0', ESCAPE]) {
        true => text.replace(ESCAPE, "\u{e000}1").replace('\0', "\u{e000}0").into(),
        false => text.into(),
    }
}

/// A text that was kept.
pub(super) fn read(text: &str) -> String {
    match text.contains(ESCAPE) {
        true => text.replace("\u{e000}0", "\0").replace("\u{e000}1", "\u{e000}"),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_reads_back(text in "[\\x00\u{e000}01a]{0,12}|.{0,20}") {
            let kept = written(&text);
            prop_assert!(!kept.contains('\0'));
            prop_assert_eq!(read(&kept), text);
        }
    }
}
