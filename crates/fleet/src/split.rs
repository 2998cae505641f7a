//! How driving threads are dealt out to agents.
//!
//! A load is split by threads: thread `i` of `all` takes arrivals and users `i`, `i + all`, … over the whole fleet, as the
//! threads of one process do. So a fleet drives what one process with as many threads drives, and an agent with more cores
//! drives more of it.

use std::ops::Range;

/// Deals threads out: to each agent as many as it offers, at most `most` over all. Of fewer, each agent has its even part, and
/// those that come first one more. An agent without a thread is left out, with all behind it.
pub fn deal(offered: &[usize], most: usize) -> Vec<Range<usize>> {
    let all: usize = offered.iter().sum();
    let mut threads: Vec<usize> = offered.to_vec();
    let mut over = all.saturating_sub(most);
    // from whoever has most, the last first: the the largest give first
    while over > 0 {
        let Some(at) = (0..threads.len()).max_by_key(|at| threads[*at]) else { break };
        threads[at] -= 1;
        over -= 1;
    }
    let mut first = 0;
    let range = |threads: usize| {
        first += threads;
        first - threads..first
    };
    threads.into_iter().map(range).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn agents_have_as_many_threads_as_they_offer_unless_that_is_too_many() {
        assert_eq!(deal(&[2, 4, 1], 999), [0..2, 2..6, 6..7]);
        assert_eq!(deal(&[2, 4, 1], 4), [0..2, 2..3, 3..4]);
        assert_eq!(deal(&[1, 1, 1], 2), [0..1, 1..2, 2..2]);
        assert!(deal(&[], 5).is_empty());
    }

    proptest! {
        #[test]
        fn each_thread_is_of_one_agent(offered in prop::collection::vec(1usize..65, 0..9), most in 1usize..300) {
            let dealt = deal(&offered, most);
            let all: Vec<usize> = dealt.iter().cloned().flatten().collect();
            let expected = offered.iter().sum::<usize>().min(most);
            prop_assert_eq!(all, (0..expected).collect::<Vec<_>>());
            prop_assert!(dealt.iter().zip(&offered).all(|(dealt, offered)| dealt.len() <= *offered));
        }
    }
}
