//! Groups of steps that a session is within, whose time is told together.

use tidemark_record::Outcome;

use crate::session::times::{GroupEnd, Times};

/// The groups that a session is within, the outermost first; the plan bounds how many.
#[derive(Debug, Default)]
pub(crate) struct Groups(Vec<Group>);

#[derive(Debug)]
struct Group {
    /// Index into the plan's groups.
    group: u16,
    /// From its first request on; none until that is due.
    times: Option<Times>,
    /// What became of its first request that failed.
    failure: Option<Outcome>,
    /// How long was worked on answers since its last request was due.
    work_ns: u64,
}

impl Groups {
    /// What follows is of this group, too.
    pub fn begin(&mut self, group: u16) {
        self.0.push(Group { group, times: None, failure: None, work_ns: 0 });
    }

    /// A request falls due; how many groups begin with it.
    pub fn fall_due(&mut self, due_ns: u64) -> u64 {
        let mut begun = 0;
        for group in &mut self.0 {
            match &mut group.times {
                // what was done in between is within it
                Some(times) => times.own_ns += std::mem::take(&mut group.work_ns),
                None => {
                    group.times = Some(Times { due_ns, sent_ns: None, end_ns: due_ns, own_ns: 0 });
                    begun += 1;
                }
            }
        }
        begun
    }

    /// So long was worked on the answer that came last.
    pub fn worked(&mut self, work_ns: u64) {
        self.0.iter_mut().filter(|group| group.times.is_some()).for_each(|group| group.work_ns += work_ns);
    }

    /// A request of theirs has ended.
    pub fn ended(&mut self, outcome: Outcome, of: &Times) {
        for group in &mut self.0 {
            let Some(times) = &mut group.times else { continue };
            times.sent_ns = times.sent_ns.or(of.sent_ns);
            times.end_ns = of.end_ns;
            times.own_ns += of.own_ns;
            if outcome != Outcome::Ok {
                group.failure.get_or_insert(outcome);
            }
        }
    }

    /// They will not come to their end any more.
    pub fn cut_off(&mut self, now_ns: u64) {
        for group in &mut self.0 {
            if let Some(times) = &mut group.times {
                times.end_ns = now_ns;
                group.failure.get_or_insert(Outcome::Unfinished);
            }
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is one of which a request was due.
    pub fn any_begun(&self) -> bool {
        self.0.first().is_some_and(|group| group.times.is_some())
    }

    /// Whether a request of the innermost was due.
    pub fn last_begun(&self) -> bool {
        self.0.last().is_some_and(|group| group.times.is_some())
    }

    /// The innermost is over; none where there is none, or no request of it was due.
    pub fn leave(&mut self) -> Option<GroupEnd> {
        let Group { group, times, failure, .. } = self.0.pop()?;
        Some(GroupEnd { group, outcome: failure.unwrap_or(Outcome::Ok), times: times? })
    }

    /// None is left, whatever came of them.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(due_ns: u64, sent_ns: Option<u64>, end_ns: u64) -> Times {
        Times { due_ns, sent_ns, end_ns, own_ns: 2 }
    }

    #[test]
    fn a_group_is_from_its_first_request_to_its_last_and_fails_with_the_first_that_does() {
        let mut groups = Groups::default();
        groups.begin(3);
        assert!(!groups.any_begun());
        assert!(groups.leave().is_none(), "nothing of it was due");
        groups.begin(3);
        assert_eq!(groups.fall_due(100), 1);
        groups.ended(Outcome::Ok, &of(100, None, 150));
        groups.begin(7);
        assert!(groups.any_begun() && !groups.last_begun());
        assert_eq!(groups.fall_due(180), 1, "the outer one has begun already");
        groups.ended(Outcome::Status, &of(180, Some(185), 200));
        groups.ended(Outcome::Timeout, &of(200, Some(201), 300));
        let inner = groups.leave().unwrap();
        assert_eq!((inner.group, inner.outcome), (7, Outcome::Status));
        assert_eq!((inner.times.due_ns, inner.times.sent_ns, inner.times.end_ns), (180, Some(185), 300));
        assert_eq!(groups.fall_due(310), 0);
        groups.ended(Outcome::Ok, &of(310, Some(311), 400));
        let outer = groups.leave().unwrap();
        assert_eq!((outer.group, outer.outcome), (3, Outcome::Status));
        assert_eq!((outer.times.due_ns, outer.times.sent_ns, outer.times.end_ns), (100, Some(185), 400));
        assert_eq!(outer.times.own_ns, 8, "what the driver held each of its requests up");
    }

    #[test]
    fn what_is_cut_off_is_unfinished_unless_it_failed_before() {
        let mut groups = Groups::default();
        groups.begin(0);
        groups.fall_due(10);
        groups.ended(Outcome::Ok, &of(10, Some(11), 20));
        groups.cut_off(90);
        let end = groups.leave().unwrap();
        assert_eq!((end.outcome, end.times.end_ns), (Outcome::Unfinished, 90));
        groups.begin(0);
        groups.fall_due(10);
        groups.ended(Outcome::Reset, &of(10, Some(11), 20));
        groups.cut_off(90);
        assert_eq!(groups.leave().unwrap().outcome, Outcome::Reset);
    }
}
