//! Marks in the texts of a plan: `%%_name%%` stands for a variable, `%%module:function%%` for what a function gives.

/// A part of a text with marks.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'t> {
    Text(&'t str),
    Variable(&'t str),
    /// A module and its function.
    Function(&'t str, &'t str),
    /// What begins as a mark and does not end: Tsung drops it and what follows.
    Open(&'t str),
}

/// The parts of a text whose marks are replaced.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("%%") {
        let (before, mark) = rest.split_at(at);
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        let inner = &mark[2..];
        let variable = inner.strip_prefix('_').and_then(|inner| inner.split_once("%%"));
        let function = || {
            let (module, behind) = inner.split_once(':')?;
            let (function, behind) = behind.split_once("%%")?;
            Some((Piece::Function(module, function), behind))
        };
        match variable.map(|(name, behind)| (Piece::Variable(name), behind)).or_else(function) {
            Some((piece, behind)) if !(inner.starts_with('_') && variable.is_none()) => {
                pieces.push(piece);
                rest = behind;
            }
            _ => {
                pieces.push(Piece::Open(mark));
                return pieces;
            }
        }
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_as_tsung_finds_them() {
        assert_eq!(
            pieces("a%%_b%%c%%m:f%%%%_d%%"),
            [
                Piece::Text("a"),
                Piece::Variable("b"),
                Piece::Text("c"),
                Piece::Function("m", "f"),
                Piece::Variable("d")
            ]
        );
        assert_eq!(pieces("100% of"), [Piece::Text("100% of")]);
        for open in ["%%_a", "%%a", "%%m:f", "%%_a:b"] {
            assert_eq!(pieces(open), [Piece::Open(open)]);
        }
    }
}
