//! Whether the driver was held up by its own fault, and by what.
//!
//! This alone decides nothing: see [the rule](super). It says where a figure is only a bound, and what to change.
//!
//! | load | what | bound | why |
//! | --- | --- | --- | --- |
//! | closed | the busiest driving thread was on a CPU | more than 95 % of the time | it had nothing left to give: answers lay in its sockets, and what it measured is its own queue |
//! | closed | a driving thread was on a CPU or waited for one | more than 95 % of the time | the same, where others took its core: a starved thread is at a small share of a CPU and yet never idle |
//! | open, and less than 99 % of what was offered had a good answer | the busiest driving thread was on a CPU, or waited for one | more than 95 % of the time | it may have sent and read no faster: what waited for a connection waited for the driver to read the answers of others |
//! | the same, or nothing was even turned to | the driving threads waited for a core | more than half of the time | the same |
//! | any | a driving thread was not there at all: stopped, suspended | more than 10 % of the time | nothing was sent or read then, which the rate has lost; users of a closed load have no due time that would show it, and who is stopped waits for no core |
//! | open | 99th percentile of the lag | above 1 ms and above 10 % of the 99th percentile of the good answers' response time | requests were sent late by the load generator, and that lateness is in the percentile that is reported. Where nothing was answered, above 1 s: for so long nothing left |
//! | open | 99th percentile of late reading | the same | answers had come and were not read |
//! | closed | mean lag | above 0.1 ms and above 10 % of the mean response time of the good answers | a user's next request follows its last answer, so the driver's lateness slows all users by that share, and with them the throughput |
//! | closed | the driving threads waited for a core | more than 20 % of the time, and on average more than 0.1 ms and more than 20 % of the mean response time from when one woke until it slept again | answers lay unread, each for half of that wait on average, and a user's next request follows then: 10 % of the response time that is in no lag |
//!
//! Lag alone does not tell a starved driver: answers that have come lie unread, and a connection that is free looks
//! taken. In an open load the kernel's receive timestamp of every answer tells it; in a closed one, whose users are late
//! by it all the same, the second row does, and the last. A driver that never sleeps (`--spin`) is not told by its share of
//! a CPU. Waiting for a core is the kernel's own account of each thread (`schedstat`), read by the thread itself; where
//! there is none, those rows say nothing, and a note says so. Nor do they in a window of less than 0.2 s: a kernel
//! hands cores out for some milliseconds at a time, of which a load of a few requests has one.
//!
//! Lag is the time from when a request was due to its first byte sent where only the driver was in the way, of requests
//! that were due within the window, whenever they left. The fixed parts (1 ms, 0.1 ms) are what an ordinary kernel's scheduling costs; below them a lag says nothing.

use tidemark_record::Totals;
use tidemark_record::summary::{AgentFigures, Busy, Driver, Latency, Summary};
use tidemark_scenario::plan::Load;

use crate::text::duration_text;

/// A driving thread that is on a CPU for a larger share of the time is the limit.
const THREAD_SHARE_MAX: f64 = 0.95;
/// An open load of which less had a good answer fell behind.
const FELL_BEHIND_BELOW: f64 = 0.99;
/// A driving thread that was not there for a larger share of the time makes the rate wrong by as much.
const ABSENT_SHARE_MAX: f64 = 0.10;
/// A driving thread on which sessions only computed for a larger share of the time makes the rate wrong by as much.
const COMPUTING_SHARE_MAX: f64 = 0.10;
/// Lag up to this share of the response time is accepted.
const LAG_SHARE_MAX: f64 = 0.10;
/// Closed model: waits for a core up to this share of the response time are accepted; an answer that comes at any
/// moment of such a wait lies unread for half of it. So are those up to this share of a silence in which time ran out.
pub(crate) const CORE_WAIT_SHARE_MAX: f64 = 0.20;
/// A driver that waited for a core for a larger share of the time may have made whatever fell behind, and in a silence have
/// let connections go.
pub(crate) const NO_CORE_SHARE: f64 = 0.5;
/// Lag beyond this is told even where nothing came back: for as long nothing left, microseconds.
const WHOLE_SECOND_US: f64 = 1_000_000.0;
/// Shorter windows are not judged by waits for a core, seconds.
const WAITS_OVER_S: f64 = 0.2;
/// Open model: a 99th percentile of the lag up to this is accepted always, microseconds.
const OPEN_LAG_P99_US: f64 = 1_000.0;
/// Closed model: a mean lag up to this is accepted always, microseconds.
const CLOSED_LAG_MEAN_US: f64 = 100.0;
/// Programs that are named, at most.
const NAMED: usize = 3;
/// A driver that waited for a core for a larger share of the time was late for want of it.
const WAITED_SHARE: f64 = 0.05;
/// Stealing below this is not named, cores.
const STEAL_NAMED: f64 = 0.02;

/// What held the driver up, a sentence each, with what to change; nothing where it had room.
pub fn driver_limits(summary: &Summary, totals: &Totals, load: &Load, spin: bool) -> Vec<String> {
    let mut limits = Vec::new();
    let (driver, good) = (&summary.driver, &summary.good.response_time_us);
    let is_long = summary.measured_s >= WAITS_OVER_S;
    let who = who_had_the_cores(&driver.busiest, driver.steal_share);
    let is_open = load.streams().iter().any(|stream| !stream.model.is_closed());
    let is_closed = load.streams().iter().any(|stream| stream.model.is_closed());
    let starved = is_starved(summary, totals, load, spin);
    let judged_by_cpu = (is_closed || starved) && !spin;
    if driver.absent_s > ABSENT_SHARE_MAX * summary.measured_s {
        limits.push(format!(
            "the load generator itself was suspended for {} while {} were measured: it was stopped, or its machine was suspended; \
             run it again where nobody does that",
            duration_text(driver.absent_s * 1e6),
            duration_text(summary.measured_s * 1e6)
        ));
    }
    if judged_by_cpu && driver.busiest_thread_share > THREAD_SHARE_MAX {
        limits.push(format!(
            "its busiest thread was on a CPU for {:.0}% of the time; give it more --threads or cores",
            driver.busiest_thread_share * 100.0
        ));
    } else if let Some(wanted) = driver.wanted_share.filter(|wanted| *wanted > THREAD_SHARE_MAX)
        && judged_by_cpu
        && is_long
    {
        limits.push(format!(
            "one of its threads was never idle: it was on a CPU or waited for one for {:.0}% of the time{who}; give it \
             cores of its own (--pin) or more --threads",
            wanted * 100.0
        ));
    }
    if starved && had_no_core(driver) && limits.is_empty() {
        limits.push(format!(
            "its threads waited for a core for {:.0}% of the time{who}; give it cores of its own (--pin)",
            driver.waited_share.unwrap_or(0.0) * 100.0
        ));
    }
    // Where some kinds arrive at a rate and others are users, the stricter bound.
    // of fewer than a hundred it is the longest, and is called so
    let p99_us = |of: &Latency| of.p99.or(of.max).unwrap_or(0) as f64;
    let p99_name = |of: &Latency| if of.p99.is_some() { "p99" } else { "longest" };
    // of the response time, where it is not the same of it
    let that = |name: &str, response: &str| match name == response {
        true => ", that of the response time ".to_owned(),
        false => format!(", the {response} of the response time "),
    };
    let (name, response, lag_us, response_us, always_us) = match is_open {
        true => {
            let lag = &driver.lag_us;
            (p99_name(lag), p99_name(good), p99_us(lag), p99_us(good), OPEN_LAG_P99_US)
        }
        false => {
            let [lag_us, response_us] = [&driver.lag_us, good].map(|of| of.mean.unwrap_or(0.0));
            ("mean", "mean", lag_us, response_us, CLOSED_LAG_MEAN_US)
        }
    };
    // without a good answer there is no response time to tell
    let beside_good = |words: &str, us: f64| match summary.good.requests {
        0 => String::new(),
        _ => format!("{words}{}", duration_text(us)),
    };
    // where nothing came back a lag slowed no answer, but one of seconds may be why
    let matters = summary.good.requests > 0 || lag_us > WHOLE_SECOND_US;
    if matters && lag_us > always_us.max(LAG_SHARE_MAX * response_us) {
        limits.push(format!(
            "sent late: the load generator {}{who}: the {name} of the lag is {}{}; give it cores of its own (--pin), more \
             --threads, or less load",
            why_late(driver),
            duration_text(lag_us),
            beside_good(&that(name, response), response_us)
        ));
    }
    let read_us = driver.read_lag_us.as_ref().map_or(0.0, p99_us);
    let read = driver.read_lag_us.as_ref().map_or("p99", p99_name);
    if is_open && read_us > OPEN_LAG_P99_US.max(LAG_SHARE_MAX * p99_us(good)) {
        limits.push(format!(
            "answers were read late: the load generator {}{who}: the {read} of the delay is {}{}; give it \
             cores of its own (--pin), more --threads, or less load",
            why_late(driver),
            duration_text(read_us),
            beside_good(&that(read, p99_name(good)), p99_us(good))
        ));
    }
    let mean_us = good.mean.unwrap_or(0.0);
    if let Some((waited, wait_us)) = driver.waited_share.zip(driver.core_wait_us)
        && is_closed
        && is_long
        && waited > CORE_WAIT_SHARE_MAX
        && wait_us > CLOSED_LAG_MEAN_US.max(CORE_WAIT_SHARE_MAX * mean_us)
    {
        limits.push(format!(
            "answers lay unread, its threads waited for a core for {:.0}% of the time, {} each time that there was \
             something to do{}{who}; give it cores of its own (--pin)",
            waited * 100.0,
            duration_text(wait_us),
            beside_good(", of a mean response time of ", mean_us)
        ));
    }
    if let Some((limit, odd)) = limits.first_mut().zip(odd_one_out(&driver.agents)) {
        *limit = format!("{limit}; {odd}");
    }
    limits
}

/// What an agent's thread was away for, seconds, from which on that is told.
const ABSENT_TOLD_S: f64 = 0.5;
/// How many times as long as others' the busiest thread of an agent needed a core, from which on it had the least room.
const CLEARLY_MORE: f64 = 1.1;

/// Which of several agents stood still, or clearly had the least room.
fn odd_one_out(agents: &[AgentFigures]) -> Option<String> {
    let most = |of: fn(&AgentFigures) -> f64| {
        agents.iter().max_by(|a, b| of(a).total_cmp(&of(b))).filter(|_| agents.len() > 1)
    };
    let away = most(|agent| agent.absent_s)?;
    if away.absent_s >= ABSENT_TOLD_S {
        let (count, name, absent_s) = (agents.len(), &away.agent, away.absent_s);
        return Some(format!("of {count} agents {name} stood still for {absent_s:.1} s"));
    }
    let odd = most(|agent| agent.wanted_share)?;
    let others = agents.iter().filter(|agent| agent.agent != odd.agent);
    let others = others.map(|agent| agent.wanted_share).fold(0.0, f64::max);
    (odd.wanted_share > others * CLEARLY_MORE).then(|| format!(
        "of {} agents {} had the least room: its busiest thread needed a core for {:.0}% of the time, the others' for {:.0}% at \
         most",
        agents.len(),
        odd.agent,
        odd.wanted_share * 100.0,
        others * 100.0
    ))
}

/// Why a run says nothing where sessions kept a driving thread busy that only computed: an endless loop in the scenario. That is
/// decided by the share of the thread's time, so that a scenario which computes a little is not touched.
pub(super) fn only_computed(summary: &Summary) -> Option<String> {
    let share = summary.driver.computing_share;
    (share > COMPUTING_SHARE_MAX).then(|| {
        format!(
            "sessions only computed for {:.0}% of the window: is there an endless loop? Thousands of steps without a request or a \
             pause, or `js` steps that take long, keep the load generator from the others; a think time in it lets them go on",
            share * 100.0
        )
    })
}

/// Whether an open load fell behind while the driver had nothing left to give, so that what waited for a connection may
/// have waited for it, however punctual it was with the others.
pub(super) fn is_starved(summary: &Summary, totals: &Totals, load: &Load, spin: bool) -> bool {
    let driver = &summary.driver;
    let wanted = driver.wanted_share.unwrap_or(0.0);
    let never_idle = !spin && driver.busiest_thread_share.max(wanted) > THREAD_SHARE_MAX;
    let is_open = load.streams().iter().all(|stream| !stream.model.is_closed());
    let fell_behind = match totals.offered {
        // nothing was even turned to
        0 => had_no_core(driver),
        _ => totals.achieved_share() < FELL_BEHIND_BELOW && (never_idle || had_no_core(driver)),
    };
    is_open && summary.measured_s >= WAITS_OVER_S && fell_behind
}

/// Whether the driver had no core for most of the time, while it wanted one: it heard nothing then.
fn had_no_core(driver: &Driver) -> bool {
    driver.waited_share.unwrap_or(0.0) > NO_CORE_SHARE
}

/// Why the driver was late.
fn why_late(driver: &Driver) -> &'static str {
    match driver.waited_share.unwrap_or(0.0) > WAITED_SHARE || driver.steal_share > WAITED_SHARE {
        true => "had no CPU",
        false => "did not keep up",
    }
}

/// Who else used the machine during the window.
pub(super) fn who_had_the_cores(busiest: &[Busy], steal_share: f64) -> String {
    let mut who: Vec<String> =
        busiest.iter().take(NAMED).map(|busy| format!("{} {:.2} cores", busy.name, busy.cores)).collect();
    if steal_share >= STEAL_NAMED {
        who.push(format!("the hypervisor {steal_share:.2} cores (steal)"));
    }
    if who.is_empty() { String::new() } else { format!(" (the busiest beside it: {})", who.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_record::summarize;
    use tidemark_scenario::plan::{LoadModel, Spacing};

    const OPEN: LoadModel = LoadModel::Open(Spacing::Poisson);
    const CLOSED: LoadModel = LoadModel::Closed;

    /// What held the driver up in a run with p99 20 ms and mean 5 ms, changed so.
    fn told(model: LoadModel, change: impl FnOnce(&mut Summary)) -> Vec<String> {
        let mut summary = summarize(&Totals::new(&[]), std::path::Path::new("x"));
        summary.measured_s = 1.0;
        summary.good.requests = 1_000;
        summary.good.response_time_us =
            Latency { mean: Some(5_000.0), p99: Some(20_000), ..Latency::default() };
        summary.driver = Driver { busiest_thread_share: 0.5, ..Driver::default() };
        change(&mut summary);
        driver_limits(&summary, &Totals::new(&[]), &crate::test_plan::plan(model).load, false)
    }

    #[test]
    fn a_busy_thread_is_the_limit_of_a_closed_load_and_so_is_one_that_is_never_idle() {
        assert!(told(CLOSED, |s| s.driver.busiest_thread_share = 0.95).is_empty());
        assert!(told(CLOSED, |s| s.driver.busiest_thread_share = 0.96)[0].contains("96%"));
        assert!(told(CLOSED, |s| s.driver.wanted_share = Some(0.95)).is_empty());
        assert!(told(CLOSED, |s| s.driver.wanted_share = Some(0.96))[0].contains("never idle"));
        // who keeps a schedule uses its core for it, and is judged by how late it is
        assert!(told(OPEN, |s| s.driver.busiest_thread_share = 1.0).is_empty());
        assert!(told(OPEN, |s| s.driver.wanted_share = Some(1.0)).is_empty());
        let mut busy = summarize(&Totals::new(&[]), std::path::Path::new("x"));
        busy.driver.busiest_thread_share = 1.0;
        assert!(
            driver_limits(&busy, &Totals::new(&[]), &crate::test_plan::plan(CLOSED).load, true).is_empty(),
            "it spins"
        );
    }

    #[test]
    fn of_several_agents_the_odd_one_out_is_named() {
        let agent = |agent: &str, wanted_share| AgentFigures {
            agent: agent.into(),
            wanted_share,
            ..AgentFigures::default()
        };
        let all = || vec![agent("a", 0.4), agent("b", 0.97), agent("c", 0.5)];
        let limits = told(CLOSED, |s| (s.driver.wanted_share, s.driver.agents) = (Some(0.97), all()));
        let named = &limits[0];
        assert!(named.contains("; of 3 agents b had the least room") && named.contains("97%"), "{limits:?}");
        assert!(named.ends_with("the others' for 50% at most"), "{named}");
        assert!(told(CLOSED, |s| s.driver.agents = all()).is_empty(), "nothing held them up");
        let mut still = all();
        still[0].absent_s = 3.97;
        let limits = told(CLOSED, |s| (s.driver.wanted_share, s.driver.agents) = (Some(0.97), still));
        assert!(limits[0].ends_with("; of 3 agents a stood still for 4.0 s"), "{limits:?}");
        let alike = vec![agent("a", 0.97), agent("b", 0.96)];
        let limits = told(CLOSED, |s| (s.driver.wanted_share, s.driver.agents) = (Some(0.97), alike));
        assert!(!limits[0].contains("agents"), "{limits:?}");
        let alone =
            told(CLOSED, |s| (s.driver.wanted_share, s.driver.agents) = (Some(0.97), vec![agent("a", 0.97)]));
        assert!(!alone.concat().contains("agents"), "{alone:?}");
    }

    #[test]
    fn answers_that_are_read_late_are_told_in_an_open_load() {
        let read = |p99| {
            move |s: &mut Summary| {
                s.driver.read_lag_us = Some(Latency { p99: Some(p99), ..Latency::default() });
            }
        };
        // 10 % of 20 ms is 2 ms
        assert!(told(OPEN, read(2_000)).is_empty());
        assert!(told(OPEN, read(2_001))[0].starts_with("answers were read late"));
        assert!(told(CLOSED, read(9_000)).is_empty(), "told by the shares of a CPU");
    }

    #[test]
    fn what_is_no_p99_is_not_called_one() {
        let longest = |max| Latency { max: Some(max), ..Latency::default() };
        let few = told(OPEN, |s| {
            (s.good.requests, s.good.response_time_us) = (60, longest(213_000));
            (s.driver.lag_us, s.driver.read_lag_us) = (longest(30_000), Some(longest(40_800)));
        });
        assert!(
            few[0].contains("the longest of the lag is 30ms, that of the response time 213ms"),
            "{few:?}"
        );
        assert!(
            few[1].contains("the longest of the delay is 40.8ms, that of the response time 213ms"),
            "{few:?}"
        );
        // failures may have lags, and good answers be too few for a p99
        let mixed = told(OPEN, |s| {
            s.good.response_time_us = longest(20_000);
            s.driver.lag_us.p99 = Some(9_000);
        });
        assert!(
            mixed[0].contains("the p99 of the lag is 9ms, the longest of the response time 20ms"),
            "{mixed:?}"
        );
    }

    #[test]
    fn a_driver_that_stood_still_measured_nothing_meanwhile() {
        let absent = |absent_s| move |s: &mut Summary| (s.measured_s, s.driver.absent_s) = (10.0, absent_s);
        for model in [OPEN, CLOSED] {
            assert!(told(model, absent(1.0)).is_empty());
            let told = told(model, absent(4.2));
            assert!(
                told[0].starts_with("the load generator itself was suspended for 4.2s while 10s"),
                "{told:?}"
            );
        }
    }

    #[test]
    fn answers_that_lie_unread_slow_a_closed_load() {
        let waits = |share, us| {
            move |s: &mut Summary| {
                (s.driver.waited_share, s.driver.core_wait_us) = (Some(share), Some(us));
            }
        };
        // 20 % of 5 ms is 1 ms
        assert!(told(CLOSED, waits(0.3, 1_000.0)).is_empty());
        assert_eq!(told(CLOSED, waits(0.3, 1_001.0)).len(), 1);
        // long, but seldom: it is in few response times
        assert!(told(CLOSED, waits(0.2, 9_000.0)).is_empty());
        // arrivals of an open load do not wait for answers: what keeps them is lag
        assert!(told(OPEN, waits(0.3, 1_001.0)).is_empty());
        // what an ordinary kernel's scheduling costs says nothing
        let fast = |us| {
            move |s: &mut Summary| {
                s.good.response_time_us.mean = Some(50.0);
                waits(0.3, us)(s);
            }
        };
        assert!(told(CLOSED, fast(100.0)).is_empty());
        assert_eq!(told(CLOSED, fast(101.0)).len(), 1);
    }

    #[test]
    fn a_moment_is_not_judged_by_waits_for_a_core() {
        let of = |measured_s| {
            move |s: &mut Summary| {
                s.measured_s = measured_s;
                (s.driver.waited_share, s.driver.core_wait_us, s.driver.wanted_share) =
                    (Some(0.9), Some(9_000.0), Some(0.99));
            }
        };
        assert!(told(CLOSED, of(0.19)).is_empty());
        assert_eq!(told(CLOSED, of(0.2)).len(), 2);
    }

    #[test]
    fn an_open_load_is_late_by_its_99th_percentile_and_a_closed_one_by_the_mean() {
        // 10 % of 20 ms is 2 ms
        assert!(told(OPEN, |s| s.driver.lag_us.p99 = Some(2_000)).is_empty());
        assert_eq!(told(OPEN, |s| s.driver.lag_us.p99 = Some(2_001)).len(), 1);
        // with fast answers 1 ms is always accepted
        let fast = |lag| {
            move |s: &mut Summary| {
                (s.good.response_time_us.p99, s.driver.lag_us.p99) = (Some(100), Some(lag));
            }
        };
        assert!(told(OPEN, fast(1_000)).is_empty());
        assert_eq!(told(OPEN, fast(1_001)).len(), 1);
        // a mean alone does not matter here
        assert!(told(OPEN, |s| s.driver.lag_us.mean = Some(900.0)).is_empty());
        // 10 % of 5 ms is 0.5 ms
        assert!(told(CLOSED, |s| s.driver.lag_us.mean = Some(500.0)).is_empty());
        assert_eq!(told(CLOSED, |s| s.driver.lag_us.mean = Some(501.0)).len(), 1);
        // a tail of the lag slows nobody much
        assert!(told(CLOSED, |s| s.driver.lag_us.p99 = Some(15_000)).is_empty());
    }

    #[test]
    fn an_open_load_of_which_nothing_was_turned_to_is_told_by_its_waits_for_a_core() {
        assert!(told(OPEN, |s| s.driver.waited_share = Some(0.5)).is_empty());
        let told = told(OPEN, |s| s.driver.waited_share = Some(0.51));
        assert!(told[0].contains("waited for a core for 51%"), "{told:?}");
    }

    #[test]
    fn where_nothing_was_answered_a_lag_of_seconds_matters() {
        let late = |lag| {
            move |s: &mut Summary| {
                (s.good, s.driver.lag_us.p99) = (tidemark_record::summary::Good::default(), Some(lag));
            }
        };
        assert!(told(OPEN, late(1_000_000)).is_empty());
        assert!(told(OPEN, late(1_000_001))[0].starts_with("sent late: the load generator did not keep up"));
        let starved = told(OPEN, |s| {
            (s.driver.lag_us.p99, s.driver.waited_share) = (Some(9_000), Some(0.3));
            s.driver.busiest = vec![Busy { name: "rustc".into(), cores: 1.2, is_ours: false }];
        });
        let why =
            "sent late: the load generator had no CPU (the busiest beside it: rustc 1.20 cores): the p99";
        assert!(starved[0].starts_with(why), "{starved:?}");
    }

    #[test]
    fn without_a_good_answer_no_response_time_is_told() {
        let told = told(CLOSED, |s| {
            s.good = tidemark_record::summary::Good::default();
            (s.driver.waited_share, s.driver.core_wait_us) = (Some(0.42), Some(226.0));
        });
        assert!(told[0].contains("for 42% of the time"), "{told:?}");
        assert!(!told[0].contains("response time"), "{told:?}");
    }

    #[test]
    fn who_had_the_cores_is_named() {
        let busy = |name: &str, cores| Busy { name: name.into(), cores, is_ours: false };
        assert_eq!(who_had_the_cores(&[], 0.0), "");
        assert_eq!(
            who_had_the_cores(&[busy("java", 1.25), busy("cargo", 0.5)], 0.08),
            " (the busiest beside it: java 1.25 cores, cargo 0.50 cores, the hypervisor 0.08 cores (steal))"
        );
    }
}
