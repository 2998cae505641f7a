//! A load over a server in virtual time: what a driver would have handed over.

use tidemark_record::{LostTime, Outcome, Series, ThreadInterval, new_histogram};

/// Begin of the measured window, microseconds.
pub const WARM_UP_US: u64 = 1_000_000;
/// What an answer takes where nothing else is said, microseconds.
const ANSWER_US: u64 = 300;
const SECOND_US: u64 = 1_000_000;

/// How a load comes.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Requests due each second, evenly spaced; none where each connection sends once its last request is over.
    pub rate: Option<f64>,
    pub connections: usize,
    pub timeout_us: u64,
    /// Length of the measured window, seconds.
    pub window_s: u64,
}

/// A time, microseconds since the server began.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub from_us: u64,
    pub length_us: u64,
}

impl Span {
    fn end_us(self) -> u64 {
        self.from_us.saturating_add(self.length_us)
    }

    fn has(self, at_us: u64) -> bool {
        (self.from_us..self.end_us()).contains(&at_us)
    }
}

/// How a request fails, or that it is only slow.
#[derive(Debug, Clone, Copy)]
pub enum Misbehaviour {
    /// At once, with this outcome.
    Fails(Outcome),
    /// Never answered.
    Silent,
    /// Answered after this, microseconds.
    Late(u64),
}

/// How a server behaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Server {
    /// What one request of so many meets.
    pub misbehaves: Option<(Misbehaviour, u64)>,
    /// Requests each second, one after the other; none without a bound.
    pub capacity_per_s: Option<f64>,
    /// Refuses and breaks every connection.
    pub down: Option<Span>,
    /// Answers nothing until the end of it.
    pub frozen: Option<Span>,
}

/// A request's life, microseconds.
#[derive(Debug, Clone, Copy)]
struct Request {
    due_us: u64,
    sent_us: u64,
    end_us: u64,
    outcome: Outcome,
}

/// What a thread hands over, an interval a second.
pub fn run(load: Load, server: Server) -> Vec<ThreadInterval> {
    let stop_us = WARM_UP_US + load.window_s * SECOND_US;
    let requests = drive(load, server, stop_us);
    let end_us = requests.iter().map(|of| of.end_us).max().unwrap_or(0).max(stop_us);
    let mut last_good_us = 0;
    (0..=end_us / SECOND_US)
        .map(|second| {
            interval(&requests, load.rate.is_none(), second * SECOND_US, stop_us, &mut last_good_us)
        })
        .collect()
}

fn drive(load: Load, server: Server, stop_us: u64) -> Vec<Request> {
    let mut free_us = vec![0; load.connections];
    let (mut requests, mut served_us) = (Vec::new(), 0);
    for number in 0.. {
        let (connection, at_us) =
            free_us.iter().copied().enumerate().min_by_key(|(_, at_us)| *at_us).expect("a connection");
        let due_us = load.rate.map_or(at_us, |rate| (number as f64 / rate * 1e6) as u64);
        if due_us >= stop_us {
            break;
        }
        let given_up_us = due_us + load.timeout_us;
        let sent_us = due_us.max(at_us);
        let mut request = Request { due_us, sent_us, end_us: given_up_us, outcome: Outcome::Timeout };
        if sent_us < given_up_us {
            let (end_us, outcome) = server.answer(number, sent_us, &mut served_us);
            if end_us < given_up_us {
                (request.end_us, request.outcome) = (end_us, outcome);
            }
            free_us[connection] = request.end_us;
        }
        requests.push(request);
    }
    requests
}

impl Server {
    /// When a request that was sent then ends, and how.
    fn answer(&self, number: u64, sent_us: u64, served_us: &mut u64) -> (u64, Outcome) {
        let met = self.misbehaves.filter(|(_, of)| number % of == of - 1).map(|(how, _)| how);
        let takes_us = if let Some(Misbehaviour::Late(late_us)) = met { late_us } else { ANSWER_US };
        let mut end_us = sent_us + takes_us;
        if let Some(capacity) = self.capacity_per_s {
            *served_us = sent_us.max(*served_us) + (1e6 / capacity) as u64;
            end_us = end_us.max(*served_us);
        }
        if let Some(down) = self.down {
            if down.has(sent_us) {
                // whoever was refused tries again after a pause
                return (sent_us + 10_000, Outcome::Connect);
            }
            if sent_us < down.from_us && end_us > down.from_us {
                return (down.from_us, Outcome::Reset);
            }
        }
        if let Some(frozen) = self.frozen.filter(|frozen| frozen.has(end_us)) {
            end_us = frozen.end_us();
        }
        match met {
            Some(Misbehaviour::Fails(outcome)) => (end_us, outcome),
            Some(Misbehaviour::Silent) => (u64::MAX, Outcome::Timeout),
            Some(Misbehaviour::Late(_)) | None => (end_us, Outcome::Ok),
        }
    }
}

/// What happened within a second.
fn interval(
    requests: &[Request],
    is_closed: bool,
    start_us: u64,
    stop_us: u64,
    last_good_us: &mut u64,
) -> ThreadInterval {
    let end_us = start_us + SECOND_US;
    let mut interval = ThreadInterval::empty(0, start_us, end_us);
    interval.in_window = start_us >= WARM_UP_US && end_us <= stop_us;
    let is_within = |at_us: u64| (start_us..end_us).contains(&at_us);
    let is_measured = |of: &Request| (WARM_UP_US..stop_us).contains(&of.due_us);
    for of in requests.iter().filter(|of| is_within(of.due_us)) {
        interval.offered += 1;
        interval.measured_offered += u64::from(is_measured(of));
    }
    interval.sessions_begun = vec![(0, interval.offered)];
    interval.in_flight =
        requests.iter().filter(|of| of.sent_us < end_us && of.end_us >= end_us).count() as u64;
    let open = requests.iter().filter(|of| of.due_us < end_us && of.end_us >= end_us).count() as u64;
    interval.waiting = open - interval.in_flight;
    if open > 0 {
        interval.open_by_label = vec![(0, open)];
    }
    let mut ended: Vec<&Request> = requests.iter().filter(|of| is_within(of.end_us)).collect();
    ended.sort_by_key(|of| of.end_us);
    for of in ended {
        enter(&mut interval, of, is_measured(of));
        if is_closed {
            lose_time(&mut interval.lost_time, of, stop_us);
        }
        if of.outcome == Outcome::Ok {
            if of.end_us - *last_good_us >= tidemark_record::QUIET_US {
                interval.quiet.push((*last_good_us, of.end_us));
            }
            *last_good_us = of.end_us;
            continue;
        }
        let (first_us, _) = interval.failed_us.unwrap_or((of.end_us, 0));
        interval.failed_us = Some((first_us, of.end_us));
        if is_measured(of) && (of.sent_us - of.due_us) * 2 > of.end_us - of.due_us {
            interval.unconnected = vec![(Some(0), interval.unconnected.first().map_or(0, |(_, n)| *n) + 1)];
        }
    }
    interval.last_good_us = *last_good_us;
    interval
}

/// Time of the window that a user spent in a request which failed, or was open for all of it.
fn lose_time(lost: &mut LostTime, of: &Request, stop_us: u64) {
    if of.outcome == Outcome::Ok && !(of.due_us <= WARM_UP_US && of.end_us >= stop_us) {
        return;
    }
    let within_us = of.end_us.min(stop_us).saturating_sub(of.due_us.max(WARM_UP_US));
    match of.outcome {
        Outcome::Ok | Outcome::Timeout | Outcome::Unfinished => lost.waited_us += within_us,
        _ => lost.refused_us += within_us,
    }
    if within_us > 0 && of.end_us >= stop_us && within_us * 2 >= stop_us - WARM_UP_US {
        lost.stuck_us += within_us;
        lost.stuck += 1;
    }
}

fn enter(interval: &mut ThreadInterval, of: &Request, measured: bool) {
    let known = interval.series.iter().position(|one| one.outcome == of.outcome && one.measured == measured);
    let at = known.unwrap_or_else(|| {
        interval.series.push(Series {
            label: 0,
            outcome: of.outcome,
            measured,
            phase: None,
            response_time_us: new_histogram(),
            response_time_less_lag_us: new_histogram(),
            service_time_us: new_histogram(),
            bodies: 0,
            body_bytes: 0,
        });
        interval.series.len() - 1
    });
    let series = &mut interval.series[at];
    let took_us = (of.end_us - of.due_us).max(1);
    series.response_time_us.record_n(took_us, 1);
    series.response_time_less_lag_us.record_n(took_us, 1);
    series.service_time_us.record_n((of.end_us - of.sent_us.min(of.end_us)).max(1), 1);
    interval.lag_us.record_n(1, 1);
}
