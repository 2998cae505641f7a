//! What a reader of the figures must know, in sentences: each is a function of what was measured, and none where there is
//! nothing to say.

use tidemark_drive::{DriveEnd, Http2, Protocol, Raised, Rpc, Target};
use tidemark_record::{Counter, Counters, Outcome, Summary, Totals};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::RequestKind;
use tidemark_verdict::{duration_text, labels_of_failures, labels_of_the_load};

/// Driving threads that had no core for a larger share of the time are worth a note.
const WAITED_NOTED: f64 = 0.05;
/// What a store answers where there is nothing: nil, a miss.
const NOTHING: u16 = 204;

/// That there were more connections than the scenario says, and why.
pub(super) fn raised((connections, why): (usize, Raised)) -> String {
    let why = match why {
        Raised::Users => {
            "each driving thread has an equal share of the users, and whole connections for them; another number of \
             --threads may fit"
                .to_owned()
        }
        Raised::Servers(servers) => format!(
            "each driving thread has equally many to each of the {servers} servers that have keys; a multiple of that, \
             for each thread, fits"
        ),
    };
    format!("up to {connections} connections were made, more than `limits: connections` says: {why}")
}

/// What a reader must know where the driver was at its limit: the verdict stands, but figures are bounds. The limit says what
/// to change.
pub(super) fn bounds_only(summary: &Summary) -> Option<String> {
    let limit = summary.driver.limits.first()?;
    if summary.achieved_per_s == 0.0 {
        return Some(format!(
            "the load generator was at its limit, and nothing was answered well: what the system can do is not known; {limit}"
        ));
    }
    let without = &summary.response_time_less_lag_us;
    let range = |name: &str, less: Option<u64>, measured: Option<u64>| {
        let [less, measured] = [less?, measured?].map(|us| duration_text(us as f64));
        Some(format!(", {name} is {less} to {measured}"))
    };
    let range = [
        range("the median", without.p50, summary.response_time_us.p50),
        range("p99", without.p99, summary.response_time_us.p99),
    ];
    let mut range: String = range.into_iter().flatten().collect();
    if !range.is_empty() {
        range += ", without and with the load generator's own share";
    }
    Some(format!(
        "the load generator was at its limit: the system can do at least what was achieved{range}; {limit}"
    ))
}

/// That connections were made again and again, or that the measured requests of arrivals went over fewer of them than
/// were asked for.
pub(super) fn connections_used(counters: &Counters, ahead: Option<usize>) -> Option<String> {
    let (used, made) = (counters[Counter::ConnectionsUsed], counters[Counter::Connects]);
    // a warm-up may have needed some more
    if used > 0 && made > 2 * used.max(ahead.unwrap_or(0) as u64) {
        return Some(format!(
            "{made} connections were made while the load was on, {used} at most at once for measured requests: where the \
             server closes them, each new one costs a handshake"
        ));
    }
    let named = ahead.filter(|named| used < *named as u64)?;
    Some(match used {
        0 => format!("none of the {named} connections that the scenario names carried a measured request"),
        _ => format!(
            "{used} of the {named} connections that the scenario names carried measured requests: there were too few requests \
             for all of them, or the server did not take as many"
        ),
    })
}

/// What came over event streams, where there were any: streams that bring nothing are a success by every other figure.
pub(super) fn streamed(counters: &Counters) -> Option<String> {
    let [streams, received, taken] =
        [Counter::EventStreams, Counter::EventsReceived, Counter::EventsTaken].map(|of| counters[of]);
    match (streams, received) {
        (0, _) => None,
        (_, 0) => Some(format!(
            "0 events came over {streams} event streams, over the whole run: nothing shows that they work"
        )),
        _ => Some(format!(
            "{received} events came over {streams} event streams, over the whole run; steps waited for {taken} of them"
        )),
    }
}

/// Whether the driver had less of the machine's cores than it wanted, so that who shares them matters.
pub(super) fn lacked_cores(summary: &Summary) -> bool {
    let driver = &summary.driver;
    !driver.limits.is_empty() || driver.waited_share.is_some_and(|share| share > WAITED_NOTED)
}

/// What a reader must know of the driving threads' waits for a core.
pub(super) fn waited(summary: &Summary) -> Option<String> {
    match summary.driver.waited_share {
        Some(share) if share > WAITED_NOTED => Some(format!(
            "the driving threads were ready to run but had no core for {:.0}% of the time; latencies contain it",
            share * 100.0
        )),
        None if summary.measured_s > 0.0 => Some(
            "this system does not tell how long a thread waited for a core (no schedstat): a load generator that was starved of \
             its cores is known only by requests that left late"
                .into(),
        ),
        _ => None,
    }
}

/// What a reader must know of a driver that was not there.
pub(super) fn stood_still(summary: &Summary) -> Option<String> {
    let absent_s = summary.driver.absent_s;
    (absent_s > 0.0).then(|| {
        format!(
            "the load generator itself was suspended for {} of the measured window (by a signal, or with its machine); rate and \
             latencies contain it",
            duration_text(absent_s * 1e6)
        )
    })
}

/// That a server without TLS was spoken with in clear, where TLS was asked for.
pub(super) fn in_clear(target: &Target) -> Option<String> {
    let Protocol::Postgres(server) = &target.protocol else { return None };
    let is_clear = server.may_be_plain && target.tls.is_none();
    is_clear.then(|| "without TLS: the server has none, and sslmode=prefer goes on in clear".into())
}

/// How HTTP/2 was spoken.
pub(super) fn spoken(server: Http2, is_secure: bool, wanted: usize) -> String {
    let how = if is_secure { "agreed to by ALPN" } else { "by prior knowledge" };
    let streams = match wanted.min(server.most_streams) {
        1 => "one request at a time".to_owned(),
        streams => format!("up to {streams} requests at once"),
    };
    let fewer = match server.most_streams < wanted {
        true => format!("; {wanted} were wanted, but the server takes no more"),
        false => String::new(),
    };
    format!("HTTP/2 {how}, {streams} on each connection{fewer}")
}

/// How calls were made.
pub(super) fn called(server: &Rpc, wanted: usize) -> String {
    let calls = match wanted.min(server.most_calls) {
        1 => "one call at a time".to_owned(),
        calls => format!("up to {calls} calls at once"),
    };
    let fewer = match server.most_calls < wanted {
        true => format!("; {wanted} were wanted, but the server takes no more"),
        false => String::new(),
    };
    format!("calls over a WebSocket at {}, {calls} on each connection{fewer}", server.path)
}

/// Labels of the load of which there was no request, where there were others: what nobody asked for is in no figure.
pub(super) fn never_requested(plan: &Plan, totals: &Totals) -> Option<String> {
    let (loaded, failures) = (labels_of_the_load(plan), labels_of_failures(plan));
    let is_due = |label: &str| loaded.contains(label) && !failures.contains(label);
    let labels = plan.labels.iter().zip(&totals.by_label);
    let never = labels.filter(|(label, of)| of.ended == 0 && is_due(label));
    let never: Vec<String> = never.map(|(label, _)| format!("`{label}`")).collect();
    let (verb, them) = if never.len() == 1 { ("was", "it") } else { ("were", "them") };
    (totals.all.ended > 0 && !never.is_empty())
        .then(|| format!("{} {verb} never requested: no figure is about {them}", never.join(", ")))
}

/// What came of redirects, by label.
pub(super) fn redirected(end: &DriveEnd) -> Vec<String> {
    let followed = end.hops.iter().map(|(label, hops)| {
        let counted = if *hops == 1 { "1 redirect was followed" } else { "redirects were followed" };
        let count = if *hops == 1 { String::new() } else { format!("{hops} ") };
        format!(
            "{label}: {count}{counted}, as part of the requests that met them and no requests of their own"
        )
    });
    followed.collect()
}

/// Answers that only said where else to ask, which nobody followed and no check refused, by label.
pub(super) fn unfollowed(end: &DriveEnd) -> Vec<String> {
    let unfollowed = end.unfollowed.iter().map(|(label, answers)| {
        let (answers, counts) = match answers {
            1 => ("1 answer".to_owned(), "it counts"),
            answers => (format!("{answers} answers"), "they count"),
        };
        format!(
            "{label}: {answers} said only where else to ask (3xx), which nobody followed; {counts} as good. `follow: 5` \
             goes there, `check: {{status: 2xx}}` makes failures of such answers"
        )
    });
    unfollowed.collect()
}

/// Where nothing that was due in the measured window was answered in it: the service times that there are, are of what was
/// answered later.
pub(super) fn answered_behind(totals: &Totals) -> Option<String> {
    let good = totals.all.measured[Outcome::Ok as usize];
    (good > 0 && good == totals.all.good_after_window).then(|| {
        format!(
            "nothing that was due in the measured window was answered in it: service times are of the {good} requests that \
             were answered behind it, and say nothing of how fast the system is while the load is on"
        )
    })
}

/// Where most good answers of stores say that nothing is there: what does not exist is read faster than what does.
pub(super) fn missed(plan: &Plan, totals: &Totals) -> Option<String> {
    let is_of_store = |ask: &RequestKind| {
        matches!(ask, RequestKind::Redis(_) | RequestKind::Memcached(_) | RequestKind::Aerospike(_))
    };
    let is_all_of_stores = plan.requests.iter().all(|request| is_of_store(&request.ask));
    let empty = totals.statuses.get(&NOTHING).copied().unwrap_or(0);
    let all: u64 = totals.statuses.values().sum();
    let good = totals.all.measured[Outcome::Ok as usize];
    (is_all_of_stores && empty * 2 > all && good > all - empty).then(|| {
        format!(
            "{empty} of {all} answers were empty (a nil, a miss); they count as good unless a check names the statuses: \
             `check: {{status: 200}}`. Are the keys those that are there?"
        )
    })
}
