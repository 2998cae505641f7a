//! A search that is written down and read again is the same.

use tidemark_limit::{
    Ask, Cores, Ending, Figures, Moment, Obstacle, Options, Percentile, Purpose, Room, Search, Searches,
    Seen, Tail, Trial,
};

use crate::queues::goal;

fn searches() -> Searches {
    let mut tail = Tail::default();
    tail.add(0.3, 99);
    tail.fail(1);
    let ask =
        Ask { level: 41.5, purpose: Purpose::Refine { round: 2, place: 3 }, warm_up_s: 1.0, most_s: 9.0 };
    let figures = Figures {
        p99_us: Some(1_234),
        processes: vec![Cores { name: "system".into(), cores: 0.97 }],
        ..Figures::default()
    };
    let seen = vec![Seen { met: true, measured: "1.23ms".into(), tail: Some(tail) }];
    let moments = vec![Moment { at_s: 1.5, ended: 100, slow: 1 }];
    let obstacle = Some(Obstacle::Machine("cargo".into()));
    let trial = Trial { obstacle, moments, dir: "1-41.5".into(), ..Trial::new(ask, seen, figures) };
    let search = Search {
        setting: Some("cores=2".into()),
        goals: vec![goal(Percentile { allowed: 0.01, bound_s: 0.05 })],
        options: Options::new(10.0, 300.0),
        room: Room { cores: 2.0, at_once: 1_000, sync_us: Some(900), fresh: true },
        trials: vec![trial],
        ended: Some(Ending::Budget),
        notes: vec!["a note".into()],
    };
    Searches { searches: vec![search], stopped: Some("x".into()), ..Searches::new("shop", "a shop") }
}

#[test]
fn what_was_written_is_read() {
    let searches = searches();
    assert_eq!(Searches::from_json(&searches.to_json()).unwrap(), searches);
}

#[test]
fn what_is_damaged_is_told_and_breaks_nothing() {
    let text = searches().to_json();
    for (from, to) in
        [("\"format\": 1", "\"format\": 2"), ("\"seen\": [", "\"seen\": [], \"x\": ["), ("99,", "")]
    {
        assert!(text.contains(from), "{from}");
        assert!(Searches::from_json(&text.replacen(from, to, 1)).is_err(), "{from}");
    }
    for end in (0..text.len() - 3).step_by(37) {
        assert!(Searches::from_json(&text[..end]).is_err());
    }
}
