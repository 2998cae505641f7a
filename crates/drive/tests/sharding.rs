//! Several servers of a cluster that answer slowly, badly, or send a client elsewhere.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::support::websocket::{Socket, listen};
use crate::support::{self, Sum, begin, finish, load, options};
use tidemark_drive::{DriveError, DriveOptions, Protocol, Raised, Redis, Server, Sharding, Shards};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::Plan;
use tidemark_wire::resp::{Keep, ReplyDecoder, ReplyLimits};

/// A server that answers each command, told as JSON: `["GET","k"]`.
fn server(answer: impl Fn(&str, &mut dyn Socket) + Send + Sync + 'static) -> SocketAddr {
    listen(None, move |stream| {
        let mut decoder = ReplyDecoder::new(ReplyLimits::default());
        let mut buffer = [0; 4096];
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            let mut received = &buffer[..bytes];
            while !received.is_empty() {
                let decoded = decoder.decode(received).unwrap();
                received = &received[decoded.consumed..];
                if decoded.complete {
                    answer(std::str::from_utf8(decoder.body()).unwrap(), stream);
                    decoder.start(Keep::All);
                }
            }
        }
    })
}

fn say(stream: &mut dyn Socket, words: &str) {
    // who has left hears nothing
    let _ = stream.write_all(words.as_bytes());
}

/// All slots are a server's, which is called by this host.
fn map(host: &str, port: u16) -> String {
    format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n${}\r\n{host}\r\n:{port}\r\n", host.len())
}

/// A cluster of these servers, by name, of which the first `parts` share all slots.
fn cluster(servers: &[(String, SocketAddr)], parts: u16) -> DriveOptions {
    let mut options = options(servers[0].1, 1);
    let all = servers.iter().map(|(name, address)| Server { name: name.clone(), address: *address });
    let each = 16_384 / parts;
    let end = |part| if part + 1 == parts { 16_383 } else { (part + 1) * each - 1 };
    let parts = (0..parts).map(|part| (part * each, end(part), part)).collect();
    let mut redis = Redis::default();
    redis.shards = Some(Shards { servers: all.collect(), sharding: Sharding::Cluster, parts });
    options.targets[0].protocol = Protocol::Redis(redis);
    options
}

fn named(address: SocketAddr) -> (String, SocketAddr) {
    (address.to_string(), address)
}

fn plan(step: &str, rest: &str) -> Plan {
    let text = format!(
        "system: {{url: redis-cluster://127.0.0.1}}\nsessions: {{a: {{steps: [{{{step}, timeout: 10s}}]}}}}\n{rest}\n"
    );
    load(&text)
}

fn drive(plan: Plan, options: DriveOptions) -> Sum {
    finish(begin(plan, options))
}

#[track_caller]
fn all_are_well(sum: &Sum) {
    assert!(sum.offered() > 0);
    assert_eq!(sum.outcome(Outcome::Ok), sum.offered(), "{:?}", sum.examples());
}

const GET: &str = "redis: [GET, k], check: {body: hello}";

/// It is asked for within the pipeline of others, whose answers come behind it.
#[test]
fn a_map_that_is_slow_fails_no_other_request() {
    let port = Arc::new(OnceLock::new());
    let (own, moved) = (port.clone(), AtomicUsize::new(0));
    let address = server(move |command, stream| {
        let port: u16 = *own.wait();
        if command.contains("CLUSTER") {
            std::thread::sleep(Duration::from_millis(1_500));
            say(stream, &map("127.0.0.1", port));
        } else if moved.fetch_add(1, Ordering::SeqCst) == 0 {
            say(stream, &format!("-MOVED 12539 127.0.0.1:{port}\r\n"));
        } else {
            say(stream, "$5\r\nhello\r\n");
        }
    });
    port.set(address.port()).unwrap();
    let plan = plan(GET, "load: {users: 8, hold: 3s}\nlimits: {connections: 1, pipeline: 8, body: 30B}");
    let sum = drive(plan, cluster(&[named(address)], 1));
    all_are_well(&sum);
    assert!(sum.counted(Counter::MapsRead) > 0, "{:?}", sum.end.counters);
}

#[test]
fn bytes_behind_a_redirect_are_nobodys_answer() {
    let port = Arc::new(OnceLock::new());
    let (own, moved) = (port.clone(), AtomicUsize::new(0));
    let address = server(move |command, stream| {
        let port: u16 = *own.wait();
        if command.contains("CLUSTER") {
            say(stream, &map("127.0.0.1", port));
        } else if moved.fetch_add(1, Ordering::SeqCst) < 4 {
            // a whole reply that nobody asked for, most of which comes late
            say(stream, &format!("-MOVED 12539 127.0.0.1:{port}\r\n$5\r\nwr"));
            std::thread::sleep(Duration::from_millis(100));
            say(stream, "ong\r\n");
        } else {
            say(stream, "$5\r\nhello\r\n");
        }
    });
    port.set(address.port()).unwrap();
    let plan = plan(GET, "load: {users: 1, hold: 400ms}\nlimits: {connections: 1}");
    all_are_well(&drive(plan, cluster(&[named(address)], 1)));
}

#[test]
fn what_has_no_key_goes_to_all_that_have_some_in_turn() {
    let counts: Vec<Arc<AtomicUsize>> = (0..4).map(|_| Arc::default()).collect();
    let servers = counts.iter().cloned().map(|count| {
        named(server(move |_, stream| {
            count.fetch_add(1, Ordering::SeqCst);
            say(stream, "+PONG\r\n");
        }))
    });
    let servers: Vec<_> = servers.collect();
    let plan = plan("redis: [PING]", "load: {users: 1, hold: 60s}\nlimits: {connections: 3, sessions: 300}");
    all_are_well(&drive(plan, cluster(&servers, 3)));
    let counts: Vec<usize> = counts.iter().map(|count| count.load(Ordering::SeqCst)).collect();
    assert_eq!(counts, [100, 100, 100, 0], "the last is a replica");
}

#[test]
fn each_server_has_equally_many_connections_and_more_than_asked_for_are_told_with_that_reason() {
    for (asked, raised) in [(3, None), (4, Some((6, Raised::Servers(3))))] {
        let servers: Vec<_> = (0..3).map(|_| named(server(|_, stream| say(stream, "+PONG\r\n")))).collect();
        let rest = format!("load: {{users: 1, hold: 60s}}\nlimits: {{connections: {asked}, sessions: 9}}");
        let sum = drive(plan("redis: [PING]", &rest), cluster(&servers, 3));
        all_are_well(&sum);
        assert_eq!(sum.end.connections_raised_to, raised);
    }
}

/// Names are looked up before the load only; those that were found then are known.
#[test]
fn a_server_that_is_called_by_its_name_is_followed() {
    let told = Arc::new(OnceLock::new());
    let map_is_told = told.clone();
    // only then, so that the map is known long before the load is over, however busy the machine is
    let new = server(move |_, stream| {
        map_is_told.wait();
        say(stream, "$5\r\nhello\r\n");
    });
    let (port, asked) = (new.port(), Arc::new(AtomicUsize::new(0)));
    let count = asked.clone();
    let old = server(move |command, stream| match command.contains("CLUSTER") {
        true => {
            say(stream, &map("replica.test", port));
            let _ = told.set(());
        }
        false => {
            count.fetch_add(1, Ordering::SeqCst);
            // the slot of k: what follows goes to the other one before the map has come, too
            say(stream, &format!("-MOVED 7629 replica.test:{port}\r\n"));
        }
    });
    let servers = [("master.test:1".to_owned(), old), (format!("replica.test:{port}"), new)];
    let plan = plan(GET, "load: {users: 1, hold: 60s}\nlimits: {connections: 1, sessions: 200}");
    let sum = drive(plan, cluster(&servers, 1));
    all_are_well(&sum);
    assert_eq!(asked.load(Ordering::SeqCst), 1, "{:?}", sum.end.counters);
    assert!(sum.counted(Counter::MapsRead) > 0, "{:?}", sum.end.counters);
}

#[test]
fn a_command_that_changes_a_shared_connection_is_refused() {
    let address = server(|_, stream| say(stream, "+OK\r\n"));
    // the scenario names one server, so it is taken; several are known only from the command line
    for (command, refused) in
        [("multi", "MULTI"), ("BLPOP, q, 1", "BLPOP"), ("XREAD, block, 9, STREAMS, s, $", "XREAD")]
    {
        let text = format!(
            "system: {{url: redis://127.0.0.1}}\nsessions: {{a: {{steps: [{{redis: [{command}]}}]}}}}\n\
             load: {{users: 1, hold: 1s}}\n"
        );
        let error = support::refused(load(&text), cluster(&[named(address)], 1));
        assert!(matches!(&error, DriveError::Shared(name) if name == refused), "{error}");
    }
}

/// A redirect is told to nobody, so that the answer behind it is the first that the loop hears of its reading.
#[test]
fn an_answer_behind_a_redirect_comes_when_it_is_read() {
    const DELAY: Duration = Duration::from_millis(40);
    let port = Arc::new(OnceLock::new());
    let (own, readings) = (port.clone(), AtomicUsize::new(0));
    let address = listen(None, move |stream| {
        let port: u16 = *own.wait();
        let mut decoder = ReplyDecoder::new(ReplyLimits::default());
        let mut buffer = [0; 4096];
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            std::thread::sleep(DELAY);
            let mut is_moved = readings.fetch_add(1, Ordering::SeqCst) % 2 == 1;
            let (mut received, mut replies) = (&buffer[..bytes], String::new());
            while !received.is_empty() {
                let decoded = decoder.decode(received).unwrap();
                received = &received[decoded.consumed..];
                if !decoded.complete {
                    continue;
                }
                if std::str::from_utf8(decoder.body()).unwrap().contains("CLUSTER") {
                    replies += &map("127.0.0.1", port);
                } else if std::mem::take(&mut is_moved) {
                    replies += &format!("-MOVED 12539 127.0.0.1:{port}\r\n");
                } else {
                    replies += "$5\r\nhello\r\n";
                }
                decoder.start(Keep::All);
            }
            say(stream, &replies);
        }
    });
    port.set(address.port()).unwrap();
    let rest = "load: {users: 8, hold: 60s}\nlimits: {connections: 1, pipeline: 8, batch: 8, sessions: 200}";
    let plan = plan(GET, rest);
    let sum = drive(plan, cluster(&[named(address)], 1));
    assert!(sum.counted(Counter::Moved) > 3, "{:?}", sum.end.counters);
    let good =
        sum.intervals.iter().flat_map(|interval| &interval.series).filter(|of| of.outcome == Outcome::Ok);
    let least_us = good.map(|series| series.service_time_us.min()).min().unwrap();
    assert!(u128::from(least_us) >= DELAY.as_micros() * 9 / 10, "{least_us} µs");
}
