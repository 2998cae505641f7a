//! When what is watched was not there, for a note of the run.

use std::collections::BTreeMap;

use tidemark_record::manifest::Watched as Told;

/// What an event says behind the name of what went away, …
pub(super) const GONE: &str = " is gone: ";
/// … and of what came back.
pub(super) const BACK: &str = " is there again: ";
/// Absences of each that are told; of more their number is.
const TOLD_MAX: usize = 5;

/// By name, from when on it was gone, and when it was seen again, microseconds since the run began.
#[derive(Debug, Default)]
pub(super) struct Absences(BTreeMap<String, Vec<(u64, Option<u64>)>>);

impl Absences {
    /// Takes an event of one of `all`, this machine's or an agent's.
    pub fn take(&mut self, all: &[Told], at_us: u64, event: &str) {
        for told in all {
            let Some(said) = event.strip_prefix(told.name.as_str()) else { continue };
            if said.starts_with(GONE) {
                self.0.entry(told.name.clone()).or_default().push((at_us, None));
            } else if said.starts_with(BACK)
                && let Some((_, end_us)) = self.0.get_mut(&told.name).and_then(|times| times.last_mut())
            {
                *end_us = Some(at_us);
            }
        }
    }

    /// A note for each that was gone.
    pub fn notes(&self, all: &[Told]) -> Vec<String> {
        let note = |(name, times): (&String, &Vec<(u64, Option<u64>)>)| {
            let what = all.iter().find(|told| told.name == *name && told.what != *name);
            let what = what.map_or_else(String::new, |told| format!(" ({})", told.what));
            let one = |(begin_us, end_us): &(u64, Option<u64>)| match end_us {
                Some(end_us) => format!("from {} to {}", seconds(*begin_us), seconds(*end_us)),
                None => format!("from {} on", seconds(*begin_us)),
            };
            let mut when: Vec<String> = times.iter().take(TOLD_MAX).map(one).collect();
            if times.len() > TOLD_MAX {
                when.push(format!("{} times more", times.len() - TOLD_MAX));
            }
            format!("{name}{what} was gone {}; it was looked for once a second", when.join(", "))
        };
        self.0.iter().map(note).collect()
    }
}

fn seconds(us: u64) -> String {
    format!("{:.2} s", us as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_gone_is_noted_with_when() {
        let told = |name: &str, what: &str| Told {
            name: name.into(),
            what: what.into(),
            found: String::new(),
            is_machine: false,
        };
        let all = [told("system", "port 18080"), told("name nginx", "name nginx"), told("sys", "pid 7")];
        let mut absences = Absences::default();
        assert_eq!(absences.notes(&all), Vec::<String>::new());
        absences.take(&all, 500_000, "system is now: svc, pid 8");
        absences.take(&all, 700_000, "sys is there again: it never went");
        absences.take(&all, 1_090_000, "system is gone: svc, pid 8");
        absences.take(&all, 5_010_000, "system is there again: svc, pid 9");
        for second in 1..8 {
            absences.take(&all, second * 2_000_000, "name nginx is gone: nginx, pid 3");
            if second < 7 {
                absences.take(&all, second * 2_000_000 + 1_000_000, "name nginx is there again: nginx");
            }
        }
        let nginx = "from 2.00 s to 3.00 s, from 4.00 s to 5.00 s, from 6.00 s to 7.00 s, from 8.00 s to 9.00 s, \
                     from 10.00 s to 11.00 s, 2 times more";
        let once_a_second = "; it was looked for once a second";
        assert_eq!(
            absences.notes(&all),
            [
                format!("name nginx was gone {nginx}{once_a_second}"),
                format!("system (port 18080) was gone from 1.09 s to 5.01 s{once_a_second}")
            ]
        );
        let mut last = Absences::default();
        last.take(&all, 3_000_000, "sys is gone: sleep");
        assert_eq!(last.notes(&all), [format!("sys (pid 7) was gone from 3.00 s on{once_a_second}")]);
    }
}
