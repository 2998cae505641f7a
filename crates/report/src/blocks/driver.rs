//! The driver's look at itself: its threads, how late requests left, what the machine kept from it.

use tidemark_record::manifest::Manifest;
use tidemark_record::summary::{AgentFigures, Driver, LagClass};

use super::run::pinned;
use super::{Block, Level};
use crate::units::{count, duration, percent, plural, three_digits, time};

/// Threads whose shares are shown one by one; with more of them the least and the most.
const THREADS_SHOWN: usize = 4;
/// Stealing below this is not worth a word, cores.
const STEAL_SHOWN: f64 = 0.01;

pub(super) fn driver(manifest: &Manifest) -> Vec<Block> {
    let driver = &manifest.summary.driver;
    if driver.threads == 0 {
        return Vec::new();
    }
    let pinned = match manifest.driver_pinned_to.is_empty() {
        true => "not pinned".to_owned(),
        false => pinned(&manifest.driver_pinned_to),
    };
    let io = match manifest.driver_io.as_str() {
        "" => String::new(),
        io => format!("sockets through {io}"),
    };
    let mut blocks = vec![
        Block::heading("Load generator"),
        Block::line("threads", &[&plural(driver.threads, "thread"), &pinned, &shares(driver), &io]),
    ];
    if let Some((waited, each)) = driver.waited_share.zip(driver.core_wait_us) {
        let waited = format!("waited for one for {} of the time", percent(waited));
        let each = format!("{} each time that one woke", duration(each));
        blocks.push(Block::line("cores", &[&waited, &each, &stolen(driver.steal_share)]));
    } else if driver.steal_share >= STEAL_SHOWN {
        blocks.push(Block::line("cores", &[&stolen(driver.steal_share)]));
    }
    let [p50, p99, max] = [driver.lag_us.p50, driver.lag_us.p99, driver.lag_us.max].map(time);
    let late = match driver.late {
        0 => "none by 1ms or more".to_owned(),
        n => format!("{} by 1ms or more", count(n)),
    };
    blocks.push(Block::line("sent late", &[&format!("median {p50}, p99 {p99}, longest {max}"), &late]));
    let spread = decades(&driver.lag_histogram).into_iter().map(|of| (Level::Plain, of));
    blocks.push(Block::Line(String::new(), spread.collect()));
    blocks.extend(driver.agents.iter().map(agent));
    blocks
}

/// An agent of a fleet.
fn agent(agent: &AgentFigures) -> Block {
    let last = (agent.first_thread + agent.threads).saturating_sub(1);
    let threads = match agent.threads {
        1 => format!("thread {last}"),
        _ => format!("threads {} to {last}", agent.first_thread),
    };
    let taken = agent
        .taken
        .iter()
        .map(|of| format!("{} more from {}s on", plural(of.threads, "thread"), three_digits(of.from_s)));
    let taken = taken.collect::<Vec<_>>().join(", ");
    let rate = format!("{}/s", count(agent.requests_per_s.round() as u64));
    let cpu = format!("{} cores", three_digits(agent.cpu_share));
    let late = match agent.late_share {
        0.0 => "none late".to_owned(),
        share => format!("{} late, {} at most", percent(share), duration(agent.lag_max_us as f64)),
    };
    let ms = |us: f64| format!("{:.3} ms", us / 1_000.0);
    let clock =
        format!("clock {} ahead ± {}", ms(agent.clock_offset_us as f64), ms(agent.clock_bound_us as f64));
    let lost = agent.lost.as_ref().map_or_else(String::new, |reason| format!("lost: {reason}"));
    let odd = agent.odd.as_ref().map_or_else(String::new, |reason| format!("the odd one out: {reason}"));
    Block::line(
        &format!("agent {}", agent.agent),
        &[&threads, &taken, &rate, &cpu, &late, &clock, &lost, &odd],
    )
}

/// The same in a line, for where nothing is wrong.
pub(super) fn brief(manifest: &Manifest) -> Vec<String> {
    let driver = &manifest.summary.driver;
    if driver.threads == 0 {
        return Vec::new();
    }
    // of few requests there is no p99
    let sent = match driver.lag_us.p99 {
        Some(us) => format!("sent {} late (p99)", duration(us as f64)),
        None => format!("sent {} late at most", time(driver.lag_us.max)),
    };
    vec![shares(driver), sent]
}

fn shares(driver: &Driver) -> String {
    let mut shares = driver.cpu_share_by_thread.clone();
    match shares.len() {
        0 => format!("busiest at {} of a core", percent(driver.busiest_thread_share)),
        1 => format!("on a CPU for {} of the time", percent(shares[0])),
        n if n <= THREADS_SHOWN => {
            let all: Vec<String> = shares.iter().map(|share| percent(*share)).collect();
            format!("on a CPU for {} of the time", all.join(", "))
        }
        n => {
            shares.sort_by(f64::total_cmp);
            let [least, most] = [shares[0], shares[n - 1]].map(percent);
            format!("on a CPU for {least} to {most} of the time")
        }
    }
}

fn stolen(steal_share: f64) -> String {
    match steal_share {
        share if share >= STEAL_SHOWN => format!("{} taken by the hypervisor", three_digits(share)),
        _ => String::new(),
    }
}

/// The histogram of the lag in few words: `under 10µs: 93%`, `10µs to 100µs: 6.9%`, …
fn decades(classes: &[LagClass]) -> Vec<String> {
    let all: u64 = classes.iter().map(|class| class.count).sum();
    let mut decades: Vec<(u64, u64)> = Vec::new();
    for class in classes {
        // what is below 10 µs is one class
        let from_us = if class.from_us < 10 { 0 } else { 10u64.pow(class.from_us.ilog10()) };
        match decades.last_mut() {
            Some((from, count)) if *from == from_us => *count += class.count,
            _ => decades.push((from_us, class.count)),
        }
    }
    let decade = |(from_us, count): (u64, u64)| {
        let share = percent(count as f64 / all.max(1) as f64);
        match from_us {
            0 => format!("under 10µs: {share}"),
            us => format!("{} to {}: {share}", edge(us), edge(us * 10)),
        }
    };
    decades.into_iter().filter(|(_, count)| *count > 0).map(decade).collect()
}

/// A power of ten.
fn edge(us: u64) -> String {
    match us {
        us if us < 1_000 => format!("{us}µs"),
        us if us < 1_000_000 => format!("{}ms", us / 1_000),
        us => format!("{}s", us / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use tidemark_record::summary::TakenThreads;

    use super::*;

    #[test]
    fn the_histogram_is_told_in_decades() {
        let class = |from_us, to_us, count| LagClass { from_us, to_us, count };
        let classes =
            [class(2, 5, 90), class(5, 10, 3), class(10, 20, 4), class(50, 100, 2), class(1_000, 2_000, 1)];
        assert_eq!(decades(&classes), ["under 10µs: 93.0%", "10µs to 100µs: 6.00%", "1ms to 10ms: 1.00%"]);
        assert!(decades(&[]).is_empty());
    }

    #[test]
    fn each_agent_of_a_fleet_is_a_line() {
        let (_dir, mut run) = crate::test_run::airline();
        let of = |agent: &str, threads, lost: Option<&str>| AgentFigures {
            agent: agent.into(),
            first_thread: 2,
            threads,
            requests_per_s: 1_200.4,
            cpu_share: 0.5,
            late_share: 0.02,
            lag_max_us: 1_500,
            odd: lost.map(|_| "it is slow".to_owned()),
            clock_offset_us: -1_500,
            clock_bound_us: 80,
            lost: lost.map(str::to_owned),
            taken: lost.iter().map(|_| TakenThreads { first_thread: 5, threads: 2, from_s: 12.0 }).collect(),
            ..AgentFigures::default()
        };
        run.manifest.summary.driver.agents = vec![of("eu-1", 1, None), of("eu-2", 3, Some("it is gone"))];
        let text = crate::text::render(
            &driver(&run.manifest),
            crate::text::Style { width: 200, colour: false, ascii: false },
        );
        assert!(
            text.contains("eu-1")
                && text.contains("thread 2 · 1,200/s · 0.5 cores · 2.00% late, 1.50ms at most · "),
            "{text}"
        );
        assert!(
            text.contains("threads 2 to 4")
                && text.contains("clock -1.500 ms ahead ± 0.080 ms")
                && text.contains("2 threads more from 12.0s on")
                && text.contains("lost: it is gone")
                && text.contains("the odd one out: it is slow"),
            "{text}"
        );
    }

    #[test]
    fn of_few_requests_the_longest_lag_stands_for_p99() {
        let (_dir, mut run) = crate::test_run::airline();
        let lag = &mut run.manifest.summary.driver.lag_us;
        (lag.p99, lag.max) = (None, Some(4_650));
        assert_eq!(brief(&run.manifest)[1], "sent 4.65ms late at most");
    }

    #[test]
    fn many_threads_are_told_by_their_extremes() {
        let of =
            |shares: &[f64]| shares_of(Driver { cpu_share_by_thread: shares.to_vec(), ..Driver::default() });
        fn shares_of(driver: Driver) -> String {
            shares(&driver)
        }
        assert_eq!(of(&[0.5]), "on a CPU for 50.0% of the time");
        assert_eq!(of(&[0.5, 0.25]), "on a CPU for 50.0%, 25.0% of the time");
        assert_eq!(of(&[0.5, 0.25, 0.1, 0.6, 0.3]), "on a CPU for 10.0% to 60.0% of the time");
    }
}
