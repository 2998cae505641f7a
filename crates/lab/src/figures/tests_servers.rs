//! Servers that are slow, refuse, break off, or answer with something else.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

/// What a server does with a connection, by the number of that and what it is asked; false closes it.
type Answer = dyn Fn(usize, &str, &mut TcpStream) -> bool + Send + Sync;

/// A server of Redis' protocol, or of memcached's, on threads of its own. It answers greetings itself.
pub fn server(answer: impl Fn(usize, &str, &mut TcpStream) -> bool + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer: Arc<Answer> = Arc::new(answer);
    std::thread::spawn(move || {
        for (visit, stream) in listener.incoming().enumerate() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || serve(visit, stream.unwrap(), &*answer));
        }
    });
    address
}

fn serve(visit: usize, stream: TcpStream, answer: &Answer) {
    let mut lines = BufReader::new(stream);
    while let Some(asked) = asked(&mut lines) {
        let stream = lines.get_mut();
        let goes_on = match asked.as_str() {
            "PING" => stream.write_all(b"+PONG\r\n").is_ok(),
            "version" => stream.write_all(b"VERSION 1.6\r\n").is_ok(),
            other => answer(visit, other, stream),
        };
        if !goes_on {
            return;
        }
    }
}

/// A line, or the words of a command.
fn asked(lines: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = || {
        let mut line = String::new();
        lines.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        Some(line.trim_end().to_owned())
    };
    let first = line()?;
    let Some(words) = first.strip_prefix('*') else { return Some(first) };
    let words = (0..words.parse().unwrap()).map(|_| line().and_then(|_| line()));
    Some(words.collect::<Option<Vec<_>>>()?.join(" "))
}

pub fn bulk(text: &str) -> Vec<u8> {
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

fn watched(scheme: &str, address: SocketAddr) -> Figures {
    let endpoints = endpoints("cache", &format!("{scheme}://{address}"), &Default::default());
    Figures::begin(&endpoints, Instant::now()).unwrap()
}

/// Looks until something is there; all that was seen.
fn until(figures: &mut Figures, is_there: impl Fn(&Figures, &Seen) -> bool) -> Seen {
    let begin = Instant::now();
    let mut all = Seen::default();
    while !is_there(figures, &all) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{all:?} {:?}", figures.notes());
        std::thread::sleep(Duration::from_millis(20));
        let seen = figures.news();
        all.looks.extend(seen.looks);
        all.events.extend(seen.events);
    }
    all
}

#[test]
fn an_answer_that_drips_has_no_more_time_than_another_and_holds_nothing_up() {
    let is_dripping = Arc::new(AtomicUsize::new(0));
    let dripping = Arc::clone(&is_dripping);
    let address = server(move |_, _, stream| {
        dripping.fetch_add(1, Ordering::Relaxed);
        let _ = stream.write_all(b"$1000\r\n");
        // longer than anybody waits here
        for _ in 0..1_000 {
            std::thread::sleep(Duration::from_millis(200));
            if stream.write_all(b"x").is_err() {
                break;
            }
        }
        dripping.fetch_sub(1, Ordering::Relaxed);
        false
    });
    let mut figures = watched("redis", address);
    until(&mut figures, |figures, _| !figures.notes().is_empty());
    assert!(figures.notes()[0].contains("no answer within 1 s"), "{:?}", figures.notes());
    until(&mut figures, |_, _| is_dripping.load(Ordering::Relaxed) > 0);
    figures.end();
}

#[test]
fn a_refusal_is_a_note_of_one_line() {
    let address = server(|_, asked, stream| {
        assert_eq!(asked, "INFO");
        let words = format!("-NOPERM this user has no permissions \x1b[2J{}\r\n", "x".repeat(10_000));
        stream.write_all(words.as_bytes()).is_ok()
    });
    let mut figures = watched("redis", address);
    until(&mut figures, |figures, _| !figures.notes().is_empty());
    let note = figures.notes().remove(0);
    assert!(note.contains("INFO: it answers \"NOPERM this user") && note.len() < 500, "{note}");
    assert!(!note.contains(char::is_control), "{note:?}");
}

#[test]
fn an_answer_without_any_figure_is_told() {
    for (scheme, answer) in [
        ("redis", bulk("nothing:1\r\n")),
        ("redis", b"+OK\r\n".to_vec()),
        ("redis", b"*1\r\n$4\r\nrole\r\n".to_vec()),
        ("memcached", b"STAT nothing 1\r\nEND\r\n".to_vec()),
    ] {
        let address = server(move |_, _, stream| stream.write_all(&answer).is_ok());
        let mut figures = watched(scheme, address);
        until(&mut figures, |figures, _| !figures.notes().is_empty());
        assert!(figures.notes()[0].contains("none of the figures"), "{:?}", figures.notes());
    }
}

/// In a container each process has the same number.
#[test]
fn a_server_that_came_back_is_not_held_against_the_one_before() {
    let hits = AtomicUsize::new(0);
    let address = server(move |visit, _, stream| {
        let hits = hits.fetch_add(1, Ordering::Relaxed) + if visit == 0 { 0 } else { 1_000_000_000 };
        let said = format!("STAT pid 1\r\nSTAT get_hits {hits}\r\nSTAT new line of words\r\nEND\r\n");
        stream.write_all(said.as_bytes()).is_ok() && !(visit == 0 && hits == 1)
    });
    let mut figures = watched("memcached", address);
    let rates = |seen: &Seen| -> Vec<f64> {
        let all = seen.looks.iter().flat_map(|look| &look.figures);
        all.filter(|(name, _)| name == "get_hits_per_s").map(|(_, rate)| *rate).collect()
    };
    let seen = until(&mut figures, |_, seen| rates(seen).len() >= 2);
    assert!(rates(&seen).iter().all(|rate| *rate < 1_000.0), "{:?}", rates(&seen));
}

/// The answer to what was asked in between comes too late, and is not taken for the next.
#[test]
fn a_late_answer_is_not_taken_for_the_next() {
    let is_slow = AtomicBool::new(false);
    let address = server(move |visit, asked, stream| {
        let is_full = asked == "INFO";
        let on = u8::from(visit == 0 && is_slow.load(Ordering::Relaxed));
        if is_full && on == 1 {
            std::thread::sleep(Duration::from_millis(1_500));
        }
        is_slow.store(true, Ordering::Relaxed);
        let text = format!(
            "used_memory:{}\r\nrun_id:a\r\naof_rewrites:1\r\naof_rewrite_in_progress:{on}\r\n",
            visit + 1
        );
        stream.write_all(&bulk(&text)).is_ok()
    });
    let mut figures = watched("redis", address);
    let seen = until(&mut figures, |_, seen| seen.events.len() >= 2 && seen.looks.len() >= 2);
    assert!(seen.events[0].text.contains("began") && seen.events[1].text.contains("is over"), "{seen:?}");
    assert_eq!(seen.looks[1].figures[0].1, 2.0, "over another connection");
    assert_eq!(figures.maintenance(&[]).len(), 1);
}

/// Garbage in the middle, and a store whose answers lack what they had.
#[test]
fn garbage_ends_no_rewrite() {
    let count = AtomicUsize::new(0);
    let address = server(move |_, _, stream| {
        let at = count.fetch_add(1, Ordering::Relaxed);
        let on = u8::from((1..8).contains(&at));
        match at {
            3 => stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").is_ok(),
            5 => false,
            _ => {
                let text = format!(
                    "role:master\r\nrun_id:a\r\nlatest_fork_usec:100\r\naof_rewrites:1\r\naof_rewrite_in_progress:{on}\r\n"
                );
                stream.write_all(&bulk(&text)).is_ok()
            }
        }
    });
    let mut figures = watched("redis", address);
    until(&mut figures, |_, seen| seen.events.len() >= 2);
    figures.end();
    let all = figures.maintenance(&[]);
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].end_us > Some(all[0].begin_us) && all[0].error.is_none(), "{all:?}");
}

#[test]
fn one_that_was_under_way_before_is_told_as_such() {
    let address = server(|_, _, stream| {
        let text = "role:master\r\nrun_id:a\r\nlatest_fork_usec:100\r\naof_current_size:7\r\naof_rewrite_in_progress:1\r\n";
        stream.write_all(&bulk(text)).is_ok()
    });
    let mut figures = watched("redis", address);
    let seen = until(&mut figures, |_, seen| !seen.events.is_empty());
    assert_eq!(seen.events[0].text, "rewrite of cache was under way already (fork 0.1 ms)");
    figures.end();
    let all = figures.maintenance(&[]);
    assert_eq!((all[0].end_us, all[0].size_before_bytes), (None, None));
}
