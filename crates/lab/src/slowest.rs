//! The slowest requests that were answered, of all threads.

use tidemark_record::SlowRequest;
use tidemark_record::summary::Slow;

/// So many of all labels together.
const OF_ALL: usize = 10;
/// So many of each label.
const OF_EACH: usize = 3;
/// Most that are told.
const MOST: usize = 1_000;

/// Those that are told, the slowest first.
pub fn of(mut kept: Vec<SlowRequest>, labels: &[String]) -> Vec<Slow> {
    kept.sort_by_key(|request| (std::cmp::Reverse(request.response_time_us), request.due_us));
    let mut of_label = vec![0; labels.len()];
    let told = kept.into_iter().enumerate().filter_map(|(rank, request)| {
        let label = usize::from(request.label);
        let count = of_label.get_mut(label)?;
        *count += 1;
        (rank < OF_ALL || *count <= OF_EACH).then(|| slow(&labels[label], &request))
    });
    told.take(MOST).collect()
}

fn slow(label: &str, request: &SlowRequest) -> Slow {
    let SlowRequest { connect_us, handshake_us, first_byte_us, transfer_us, .. } = *request;
    let known = connect_us.unwrap_or(0) + handshake_us.unwrap_or(0) + first_byte_us + transfer_us;
    Slow {
        label: label.to_owned(),
        due_us: request.due_us,
        response_time_us: request.response_time_us,
        wait_us: request.response_time_us.saturating_sub(known),
        connect_us,
        handshake_us,
        first_byte_us,
        transfer_us,
        outcome: request.outcome.name().to_owned(),
        status: (request.status > 0).then_some(request.status),
        thread: request.thread,
        connection: request.connection,
    }
}

#[cfg(test)]
mod tests {
    use tidemark_record::Outcome;

    use super::*;

    #[test]
    fn the_slowest_of_all_and_of_each_label_are_told() {
        let request = |label: u16, us: u64| SlowRequest {
            label,
            due_us: 5,
            response_time_us: us,
            outcome: if us == 900 { Outcome::Status } else { Outcome::Ok },
            status: if us == 900 { 503 } else { 0 },
            thread: 1,
            connection: 7,
            connect_us: Some(100),
            handshake_us: None,
            first_byte_us: us / 2,
            transfer_us: 0,
        };
        let slow = (0..15).map(|n| request(0, 1_000 + n)).chain((0..5).map(|n| request(1, 900 + n)));
        let told = of(slow.collect(), &["A".into(), "B".into()]);
        let times: Vec<(&str, u64)> =
            told.iter().map(|of| (of.label.as_str(), of.response_time_us)).collect();
        let first = (1_005..1_015).rev().map(|us| ("A", us));
        let expected: Vec<(&str, u64)> = first.chain([("B", 904), ("B", 903), ("B", 902)]).collect();
        assert_eq!(times, expected);
        assert_eq!(
            (told[0].wait_us, told[0].status, told[0].outcome.as_str()),
            (1_014 - 507 - 100, None, "ok")
        );
        let failed = &of(vec![request(0, 900)], &["A".into()])[0];
        assert_eq!((failed.status, failed.outcome.as_str()), (Some(503), "status"));
    }
}
