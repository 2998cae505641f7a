//! Files of nmon: the CPU of a machine.

use std::io::{self, BufRead};

use super::Unread;
use super::lines::Lines;

/// Below this the machine has not begun, or is done, per cent.
const IDLE_BELOW_PERCENT: f64 = 1.0;
/// Most values of a machine: half a year of one every 5 s.
const VALUES_MAX: usize = 3_000_000;

/// A machine over time.
#[derive(Debug, Default)]
pub(super) struct Machine {
    pub(super) tier: String,
    pub(super) name: String,
    /// When, as nmon has it, and user and system time together, per cent of all cores.
    pub(super) cpu: Vec<(String, f64)>,
}

impl Machine {
    /// Reads a file.
    pub(super) fn read(
        tier: String,
        file: &str,
        from: impl BufRead,
        unread: &mut Unread,
    ) -> io::Result<Self> {
        let mut of = Machine { tier, name: file.to_owned(), ..Machine::default() };
        // each snapshot begins with its time
        let mut snapshot = (String::new(), String::new());
        let mut lines = Lines::new(from);
        while let Some((number, line)) = lines.next()? {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            match fields[..] {
                ["AAA", "host", name, ..] if !name.is_empty() => of.name = name.to_owned(),
                ["ZZZZ", at, time, ..] => snapshot = (at.to_owned(), time.to_owned()),
                ["CPU_ALL", head, ..] if head.starts_with("CPU Total") => {}
                ["CPU_ALL", at, user, system, ..] => {
                    let percent = |of: &str| of.parse::<f64>().ok().filter(|of| of.is_finite() && *of >= 0.0);
                    match (percent(user), percent(system)) {
                        (Some(user), Some(system)) if of.cpu.len() < VALUES_MAX => {
                            let time = if snapshot.0 == at { snapshot.1.as_str() } else { at };
                            of.cpu.push((time.to_owned(), user + system));
                        }
                        (Some(_), Some(_)) => unread.line(file, number, "too many values"),
                        _ => unread.line(file, number, "user and system time are not per cent"),
                    }
                }
                ["CPU_ALL", ..] => unread.line(file, number, "CPU_ALL without user and system time"),
                _ => {}
            }
        }
        if of.cpu.is_empty() {
            unread.file(file, "no line CPU_ALL with values");
        }
        Ok(of)
    }

    /// What the summary is of: without what is idle, and then without the first and the last.
    pub(super) fn busy(&self) -> Vec<f64> {
        let values = self.cpu.iter().map(|(_, value)| *value).filter(|value| *value >= IDLE_BELOW_PERCENT);
        let values: Vec<f64> = values.collect();
        values.get(1..values.len().saturating_sub(1)).unwrap_or_default().to_vec()
    }
}
