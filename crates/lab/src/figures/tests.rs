use std::io::{self, Cursor, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::product::{Product, Stats};
use super::tracker::{Begun, Change, Ended, Tracker};
use super::*;
use crate::products::{WITH_FIGURES, memcached, redis};

/// A server that answers with these bytes, whatever it is asked.
struct Answers(Cursor<Vec<u8>>);

impl Read for Answers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Answers {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn asked(product: &dyn Product, answer: &[u8]) -> io::Result<Stats> {
    let mut stream = Answers(Cursor::new(answer.to_vec()));
    product.ask(&mut stream, Scope::All)
}

fn info(text: &str) -> Stats {
    asked(&redis::Redis, format!("${}\r\n{text}\r\n", text.len()).as_bytes()).unwrap()
}

#[test]
fn what_info_says_is_read_and_what_is_no_answer_is_told() {
    let said = info(
        "# Server\r\nrun_id:abc\r\n\r\n# Replication\r\nrole:master\r\nused_memory:1024\r\nslave0:ip=1,port=2\r\n",
    );
    assert_eq!((said.text("role"), said.number("used_memory")), (Some("master"), Some(1_024)));
    assert_eq!((said.number("role"), said.number("nothing")), (None, None));
    let verbatim = asked(&redis::Redis, b"=15\r\ntxt:role:master\r\n");
    assert!(verbatim.is_ok_and(|said| said.text("role") == Some("master")));
    for (answer, reason) in [
        (&b"-NOAUTH Authentication required.\r\n"[..], "NOAUTH"),
        (b"HTTP/1.1 400 Bad Request\r\n", "which is no type of RESP"),
        (b"$99999999\r\n", "larger than the limit"),
        (b"$10\r\nabc", "closed the connection"),
        (b"", "closed the connection"),
    ] {
        let error = asked(&redis::Redis, answer).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn what_memcached_says_is_read() {
    let said =
        asked(&memcached::Figures, b"STAT pid 7\r\nSTAT get_hits 12\r\nSTAT bytes 5\r\nEND\r\n").unwrap();
    assert_eq!((said.number("get_hits"), said.text("pid")), (Some(12), Some("7")));
    let error = asked(&memcached::Figures, b"ERROR\r\n").unwrap_err().to_string();
    assert_eq!(error, "stats: it answers \"ERROR\"");
}

fn rewrite() -> Tracker {
    Tracker::new(&redis::Redis.maintenance()[0])
}

fn says(under_way: u8, count: u64, size: u64) -> Stats {
    let text = format!(
        "aof_rewrite_in_progress:{under_way}\r\naof_rewrites:{count}\r\naof_current_size:{size}\r\n\
         aof_last_bgrewrite_status:ok\r\naof_last_cow_size:7\r\n"
    );
    info(&text)
}

fn looks(tracker: &mut Tracker, looks: &[(u64, Stats)]) -> Vec<Change> {
    let look = |(at_ms, stats): &(u64, Stats)| tracker.look(at_ms * 1_000, stats, &mut || Some(900));
    looks.iter().flat_map(look).collect()
}

fn began(at_us: u64, size: u64) -> Change {
    let (fork_us, size_bytes) = (Some(900), Some(size));
    Change::Began(at_us, Begun { kind: "rewrite", fork_us, size_bytes, was_under_way: false })
}

fn was_under_way(at_us: u64) -> Change {
    let (fork_us, size_bytes) = (Some(900), None);
    Change::Began(at_us, Begun { kind: "rewrite", fork_us, size_bytes, was_under_way: true })
}

fn ended(at_us: u64, size: u64) -> Change {
    let (size_bytes, copied_bytes) = (Some(size), Some(7));
    Change::Ended(at_us, Ended { kind: "rewrite", size_bytes, copied_bytes, error: None, went_away: false })
}

#[test]
fn a_rewrite_begins_with_its_fork_and_ends() {
    let seen = looks(
        &mut rewrite(),
        &[(1, says(0, 4, 100)), (2, says(1, 5, 120)), (3, says(1, 5, 130)), (4, says(0, 5, 30))],
    );
    assert_eq!(seen, [began(1_100, 100), ended(4_000, 30)]);
}

/// While it forks a store answers nothing, however long that is.
#[test]
fn what_was_felt_of_a_long_fork_comes_after_the_begin() {
    let mut tracker = rewrite();
    let begun_us = |tracker: &mut Tracker, at_us, fork_us, stats: &Stats| {
        let changes = tracker.look(at_us, stats, &mut || Some(fork_us));
        changes.iter().find_map(|change| match change {
            Change::Began(at_us, _) => Some(*at_us),
            Change::Ended(..) => None,
        })
    };
    assert_eq!(begun_us(&mut tracker, 10_000_000, 0, &says(0, 4, 100)), None);
    assert_eq!(begun_us(&mut tracker, 13_000_000, 2_900_000, &says(1, 5, 100)), Some(10_100_000));
    tracker.look(14_000_000, &says(0, 5, 30), &mut || None);
    // never before the look that saw nothing of it
    assert_eq!(begun_us(&mut tracker, 14_100_000, 2_900_000, &says(1, 6, 30)), Some(14_000_000));
}

#[test]
fn one_between_two_looks_is_seen_and_one_right_after_another() {
    let seen = looks(&mut rewrite(), &[(1, says(0, 4, 100)), (2, says(0, 5, 30)), (3, says(0, 5, 31))]);
    assert_eq!(seen, [began(1_000, 100), ended(2_000, 30)]);
    let seen = looks(&mut rewrite(), &[(1, says(1, 4, 100)), (2, says(1, 5, 30))]);
    assert_eq!(seen, [was_under_way(1_000), ended(2_000, 30), began(1_100, 100)]);
    // without a counter, by the size of what is left
    let old = |size: u64| info(&format!("aof_rewrite_in_progress:0\r\naof_base_size:{size}\r\n"));
    let mut tracker = rewrite();
    let seen = looks(&mut tracker, &[(1, old(100)), (2, old(100)), (3, old(40))]);
    assert_eq!(seen.len(), 2);
}

/// Its counter is of those that succeeded.
#[test]
fn a_snapshot_that_fails_at_once_is_seen() {
    let says = |status: &str| {
        info(&format!("rdb_bgsave_in_progress:0\r\nrdb_saves:4\r\nrdb_last_bgsave_status:{status}\r\n"))
    };
    let mut tracker = Tracker::new(&redis::Redis.maintenance()[1]);
    let seen = looks(&mut tracker, &[(1, says("ok")), (2, says("err\x1b[2J")), (3, says("err\x1b[2J"))]);
    let [Change::Began(1_000, _), Change::Ended(2_000, ended)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(ended.error.as_deref(), Some("the store says \"err\\u{1b}[2J\""));
}

#[test]
fn what_was_under_way_in_a_process_that_is_gone_never_ended() {
    let mut tracker = rewrite();
    looks(&mut tracker, &[(1, says(0, 4, 100)), (2, says(1, 5, 100))]);
    let Some(Change::Ended(5, ended)) = tracker.forget(5) else { panic!("nothing ended") };
    assert!(ended.went_away && ended.error.is_some());
    assert_eq!(looks(&mut tracker, &[(6, says(0, 0, 100))]), [], "it counts anew");
    assert_eq!(tracker.forget(7), None);
}

/// A run directory with a number that is none cannot be read again.
#[test]
fn only_whole_numbers_are_numbers() {
    for text in ["-5", "1e308", "inf", "NaN", "18446744073709551616", "", "5 ", "0x5"] {
        assert_eq!(info(&format!("used_memory:{text}x\r\n")).number("used_memory"), None, "{text}");
        let stats = info(&format!("used_memory:{text}\r\nrole:master\r\n"));
        assert!(stats.number("used_memory").is_none_or(|number| number == 5), "{text}");
    }
    assert_eq!(info("used_memory:18446744073709551615\r\n").number("used_memory"), Some(u64::MAX));
}

#[test]
fn a_product_that_knows_no_rewrite_has_none() {
    assert_eq!(looks(&mut rewrite(), &[(1, info("role:master\r\n")), (2, info("role:master\r\n"))]), []);
}

#[test]
fn each_server_of_a_url_is_a_place_by_its_scheme() {
    let names = |url: &str| -> Vec<String> {
        endpoints("cache", url, &Default::default()).into_iter().map(|endpoint| endpoint.name).collect()
    };
    assert_eq!(names("redis://:p@127.0.0.1:7000/3?protocol=3"), ["cache"]);
    assert_eq!(names("redis://:p@127.0.0.1:7000,127.0.0.1:7001/0?sharding=slots"), ["cache.1", "cache.2"]);
    assert_eq!(names("redis-cluster://127.0.0.1:7000,127.0.0.1:7001,"), ["cache.1", "cache.2"]);
    assert_eq!(names("memcached://127.0.0.1:11211"), ["cache"]);
    for other in ["http://127.0.0.1", "postgres://p@127.0.0.1/x", "redis://", "nothing", "redis://::::"] {
        assert_eq!(names(other), [""; 0], "{other}");
    }
    let second = endpoint("cache.2", "redis://:secret@127.0.0.1:1", "127.0.0.11:7002").unwrap();
    assert!(!format!("{second:?}").contains("secret"));
    assert!(endpoint("pg", "postgres://p@127.0.0.1:1/x", "127.0.0.1:1").is_none());
    assert!(is_of("cache.2", "cache") && is_of("cache", "cache") && !is_of("caches", "cache"));
}

/// A memcached that counts; it hangs up once.
fn memcached() -> std::net::SocketAddr {
    let hits = AtomicUsize::new(0);
    tests_servers::server(move |visit, _, stream| {
        let hits = hits.fetch_add(50, Ordering::Relaxed);
        visit > 0 && write!(stream, "STAT pid 7\r\nSTAT get_hits {hits}\r\nSTAT bytes 5\r\nEND\r\n").is_ok()
    })
}

#[test]
fn looks_come_once_a_second_and_one_that_fails_is_said_once() {
    let url = format!("memcached://{}", memcached());
    let endpoints = endpoints("cache", &url, &Default::default());
    let mut figures = Figures::begin(&endpoints, Instant::now()).unwrap();
    let mut looks = Vec::new();
    let begun = Instant::now();
    while looks.len() < 2 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
        looks.extend(figures.news().looks);
    }
    looks.extend(figures.end().looks);
    let names = |look: &StoreLook| look.figures.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&looks[0]), ["bytes"], "a counter has nothing before it");
    assert_eq!(names(&looks[1]), ["get_hits_per_s", "bytes"]);
    let (at_us, per_s) = (looks[1].at_us - looks[0].at_us, looks[1].figures[0].1);
    assert!((per_s - 50.0 * 1e6 / at_us as f64).abs() < 1e-6, "{per_s}");
    let notes = figures.notes();
    let wanted = "cache could not be asked for its own figures once, first: ";
    assert!(notes.len() == 1 && notes[0].starts_with(wanted), "{notes:?}");
}

/// A figure has one name, and the faults' words are among the kinds.
#[test]
fn the_tables_are_whole() {
    for product in WITH_FIGURES {
        let mut names: Vec<_> = product.figures().iter().map(|figure| figure.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), product.schemes().is_empty()), (count, false));
    }
    let words: Vec<_> = redis::Redis.maintenance().iter().map(|kind| kind.word).collect();
    assert_eq!(words, ["rewrite", "snapshot"]);
    assert!(words.iter().all(|word| tidemark_record::maintenance::is_kind(word)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Whatever a server answers, it is an answer or an error.
    #[test]
    fn any_bytes_are_survived(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        head in prop_oneof![Just(Vec::new()), Just(b"$250\r\n".to_vec()), Just(b"STAT ".to_vec()), Just(b"=".to_vec())],
    ) {
        let answer = [head, bytes].concat();
        for product in WITH_FIGURES {
            if let Ok(said) = asked(*product, &answer) {
                for kind in product.maintenance() {
                    let mut work = Tracker::new(kind);
                    for at_us in 0..3 {
                        work.look(at_us, &said, &mut || None);
                    }
                }
            }
        }
    }

    /// Of any sequence of states, begins and ends take turns.
    #[test]
    fn begins_and_ends_take_turns(states in proptest::collection::vec((0u8..2, 0u64..4), 1..40)) {
        let mut work = rewrite();
        let all: Vec<_> = (0..).zip(&states).map(|(at_us, (on, count))| (at_us, says(*on, *count, 1))).collect();
        let mut is_on = false;
        for shown in looks(&mut work, &all) {
            let begins = matches!(shown, Change::Began(..));
            prop_assert_ne!(begins, is_on);
            is_on = begins;
        }
        prop_assert_eq!(is_on, states.last().unwrap().0 == 1);
    }
}
