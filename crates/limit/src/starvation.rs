//! Whether others had the cores that a trial's processes wanted.
//!
//! A process that waits for a core is slower than it can be. It may wait for its own threads and for the driver: that is the
//! machine as it is. So no more of a wait counts than others used of the cores meanwhile. Others that find a free core
//! take nothing from anybody.
//!
//! It is looked at second by second: a neighbour of one second breaks a percentile and hardly shows in the mean of ten.

/// Others that use fewer cores are nobody: the kernel's own work, and what counting in ticks gets wrong.
pub const OTHERS_MIN: f64 = 0.1;
/// Waits that add up to less, cores' worth, are what any kernel's scheduling costs.
const LOST_MIN: f64 = 0.1;
/// A process that lost a larger share of the time in which it wanted a core had none.
const LOST_SHARE_MAX: f64 = 0.1;

/// What a process of the trial used of the cores and waited for, within one look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted<'a> {
    /// `driver`, `system`, a store's name, that of what is watched.
    pub name: &'a str,
    /// What it used, cores.
    pub cores: f64,
    /// How long its threads, all together, were ready to run without a core, as a share of the time.
    pub waited: f64,
}

/// A process that others kept off the cores.
#[derive(Debug, Clone, PartialEq)]
pub struct Starved {
    /// Which.
    pub name: String,
    /// The largest share of the time in which it wanted a core that it lost to others within one look, 0 to 1.
    pub lost_share: f64,
    /// In how many looks one was starved.
    pub starved: u32,
    /// Of so many.
    pub looks: u32,
}

/// The looks at one trial, one a second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Starvation {
    starved: u32,
    looks: u32,
    worst: Option<(String, f64)>,
}

impl Starvation {
    /// Adds a look: what others used of the cores meanwhile, and what the trial's processes used and waited for.
    pub fn add<'a>(&mut self, others_cores: f64, processes: impl IntoIterator<Item = Wanted<'a>>) {
        self.looks += 1;
        let starved = processes.into_iter().filter_map(|of| Some((of.name, lost(&of, others_cores)?)));
        let Some((name, share)) = starved.max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
        self.starved += 1;
        if self.worst.as_ref().is_none_or(|worst| share > worst.1) {
            self.worst = Some((name.to_owned(), share));
        }
    }

    /// Who was starved most; none where nobody was.
    pub fn starved(&self) -> Option<Starved> {
        let (name, lost_share) = self.worst.clone()?;
        Some(Starved { name, lost_share, starved: self.starved, looks: self.looks })
    }
}

/// The share of the time in which it wanted a core that it lost to others; none where that is next to nothing.
fn lost(of: &Wanted<'_>, others_cores: f64) -> Option<f64> {
    let lost = of.waited.min(others_cores);
    let share = lost / (of.cores + lost).max(f64::MIN_POSITIVE);
    (others_cores >= OTHERS_MIN && lost >= LOST_MIN && share > LOST_SHARE_MAX).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_while_others_have_the_cores_is_starved() {
        let is_starved = |cores, waited, others| {
            let mut starvation = Starvation::default();
            starvation.add(others, [Wanted { name: "system", cores, waited }]);
            starvation.starved().is_some()
        };
        for (cores, waited, others, is, why) in [
            (0.2, 0.7, 1.7, true, "eight neighbours on two cores"),
            (0.5, 0.3, 1.0, true, "it had time left, and yet it waited"),
            (0.02, 0.3, 1.0, true, "hardly any load, and each request waits"),
            (0.9, 0.05, 1.0, false, "a neighbour with a core of its own"),
            (0.9, 0.2, 0.15, true, "more than a tenth of what it wanted"),
            (1.5, 6.0, 0.05, false, "its own threads wait for each other"),
            (1.5, 6.0, 0.15, false, "hardly anything of that is the neighbour's doing"),
            (1.2, 6.0, 0.6, true, "and here it is"),
            (0.01, 0.02, 1.0, false, "what waking up costs"),
            (0.9, 0.0, 1.0, false, "the system does not tell of waits"),
        ] {
            assert_eq!(is_starved(cores, waited, others), is, "{why}");
        }
    }

    #[test]
    fn one_second_is_enough_and_the_worst_is_named() {
        let mut starvation = Starvation::default();
        let wanted = |name, waited| Wanted { name, cores: 0.5, waited };
        starvation.add(0.0, [wanted("system", 0.4)]);
        assert_eq!(starvation.starved(), None);
        starvation.add(1.0, [wanted("driver", 0.2), wanted("system", 0.5)]);
        starvation.add(1.0, [wanted("driver", 0.0), wanted("system", 0.02)]);
        let expected = Starved { name: "system".into(), lost_share: 0.5, starved: 1, looks: 3 };
        assert_eq!(starvation.starved(), Some(expected));
    }
}
