//! The rows that a session holds: no other session is given them.

use tidemark_scenario::Shared;

/// What one session holds, at most one row of each feeder.
#[derive(Debug, Default)]
pub(crate) struct HeldRows {
    /// Index of the feeder, and of its row. Searched from end to end: a session takes from few feeders.
    rows: Vec<(usize, usize)>,
    /// How often it got a row that another session held, because all were held.
    pub not_alone: u64,
}

impl HeldRows {
    /// Gives the feeder's row back and takes its next one that nobody holds. Where all are held it is the next one all
    /// the same, counted and not held: a wait could be one for ever, and would hide how the system answers.
    pub fn take(&mut self, feeder: usize, shared: &Shared) -> usize {
        if let Some(at) = self.rows.iter().position(|(of, _)| *of == feeder) {
            let (_, row) = self.rows.swap_remove(at);
            shared.give_back(feeder, row);
        }
        match shared.hold_row(feeder) {
            Some(row) => {
                self.rows.push((feeder, row));
                row
            }
            None => {
                self.not_alone += 1;
                shared.next_row(feeder)
            }
        }
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Gives everything back, as the session is over.
    #[inline]
    pub fn give_back(&mut self, shared: &Shared) {
        if self.rows.is_empty() {
            return;
        }
        for (feeder, row) in self.rows.drain(..) {
            shared.give_back(feeder, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use tidemark_scenario::plan::Feeder;

    use super::*;

    #[test]
    fn a_session_has_its_rows_for_itself_until_it_takes_others_or_ends() {
        let feeder = |rows: usize| Feeder { rows: vec![Vec::new(); rows], held: true, ..Feeder::default() };
        let shared = Shared::new(0, vec![feeder(3), feeder(1)]);
        let (mut one, mut other) = (HeldRows::default(), HeldRows::default());
        assert_eq!((one.take(0, &shared), one.take(1, &shared)), (0, 0));
        assert_eq!([(); 5].map(|()| other.take(0, &shared)), [1, 2, 1, 2, 1], "0 is the other one's");
        assert_eq!((other.not_alone, other.take(1, &shared), other.not_alone), (0, 0, 1));
        one.give_back(&shared);
        assert_eq!((other.take(1, &shared), other.not_alone), (0, 1));
        // what it was given though another held it is not its own to give back
        assert_eq!((one.take(1, &shared), one.not_alone), (0, 1));
        one.give_back(&shared);
        assert_eq!((one.take(1, &shared), one.not_alone), (0, 2));
    }
}
