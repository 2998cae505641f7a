//! Calls to servers that answer late, twice, or not at all.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidemark_mesh::breaker::BreakerOptions;
use tidemark_mesh::{Balance, CallError, Client, ClientOptions, Method, Source};

use crate::toy::{Then, Toy, say};

fn options(addrs: &[SocketAddr]) -> ClientOptions {
    ClientOptions {
        service: "toy".into(),
        commands: &["Toy"],
        group: "Toys",
        pool_name: "ToyPool",
        pool: 100,
        timeout: Duration::from_secs(20),
        breaker: BreakerOptions { enabled: false, ..BreakerOptions::default() },
        balance: Balance::RoundRobin,
        hedge: Duration::ZERO,
        source: Source::Fixed(addrs.iter().map(ToString::to_string).collect()),
    }
}

/// Makes calls at once, each to a path of its own.
fn at_once(client: &Arc<Client>, method: Method, count: usize) -> Vec<Result<String, CallError>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let call = |number: usize| {
            let client = client.clone();
            tokio::spawn(async move {
                let reply = client.call(0, method, &format!("/{number}")).await?;
                Ok(String::from_utf8(reply.body.to_vec()).unwrap())
            })
        };
        let calls: Vec<_> = (0..count).map(call).collect();
        let mut results = Vec::new();
        for call in calls {
            results.push(call.await.unwrap());
        }
        results
    })
}

#[test]
fn answers_are_those_of_their_requests() {
    let toy = Toy::start(|stream, _, path, _| say(stream, path, ""));
    let client = Client::new(ClientOptions { pool: 1000, ..options(&[toy.addr]) });
    for (number, result) in at_once(&client, Method::Get, 500).into_iter().enumerate() {
        assert_eq!(result, Ok(format!("/{number}")));
    }
    assert_eq!(toy.requests(), 500);
}

/// The server answers writes when all calls have come: neither reads nor other writes wait behind one.
#[test]
fn nothing_waits_behind_a_write() {
    let all = Arc::new(std::sync::Barrier::new(12));
    let toy = Toy::start(move |stream, method, path, _| {
        if method != "GET" {
            all.wait();
        }
        say(stream, path, "")
    });
    let client = Client::new(options(&[toy.addr]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let call = |method, path| {
        let client = client.clone();
        runtime.spawn(async move { client.call(0, method, path).await.map(|reply| reply.status) })
    };
    let methods = [Method::Post, Method::Delete, Method::Post];
    let writes: Vec<_> = (0..11).map(|number| call(methods[number % 3], "/write")).collect();
    for _ in 0..40 {
        assert_eq!(runtime.block_on(call(Method::Get, "/read")).unwrap(), Ok(200));
    }
    let last = call(Method::Delete, "/write");
    for write in writes.into_iter().chain([last]) {
        assert_eq!(runtime.block_on(write).unwrap(), Ok(200));
    }
}

/// All 80 are answered, over 32 connections.
#[test]
fn beyond_the_connections_writes_share_them() {
    let toy = Toy::start(|stream, _, path, _| {
        std::thread::sleep(Duration::from_millis(20));
        say(stream, path, "")
    });
    let client = Client::new(options(&[toy.addr]));
    for (number, result) in at_once(&client, Method::Post, 80).into_iter().enumerate() {
        assert_eq!(result, Ok(format!("/{number}")));
    }
    assert_eq!((toy.requests(), toy.connections()), (80, 32));
}

/// Each third answer is late. Whoever has an answer has the right one.
#[test]
fn a_late_answer_is_nobody_elses() {
    let toy = Toy::start(|stream, _, path, number| {
        if number % 3 == 0 {
            std::thread::sleep(Duration::from_millis(60));
        }
        say(stream, path, "")
    });
    let timeout = Duration::from_millis(50);
    let client = Client::new(ClientOptions { timeout, ..options(&[toy.addr]) });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut right, mut late) = (0, 0);
    for number in 0..60 {
        let path = format!("/{number}");
        match runtime.block_on(client.call(0, Method::Get, &path)) {
            Ok(reply) => {
                assert_eq!(reply.body, path);
                right += 1;
            }
            // a connection whose answers are much too late is closed
            Err(CallError::Timeout(_) | CallError::Lost(_)) => late += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(right > 0 && late > 0, "{right} {late}");
}

#[test]
fn what_may_have_been_done_is_not_done_again() {
    let toy = Toy::start(|_, _, _, _| Then::Close);
    let client = Client::new(options(&[toy.addr]));
    assert_eq!(at_once(&client, Method::Post, 1), [Err(CallError::Lost(toy.addr))]);
    assert_eq!(toy.requests(), 1);
    for method in [Method::Get, Method::Delete] {
        let before = toy.requests();
        assert_eq!(at_once(&client, method, 1), [Err(CallError::Lost(toy.addr))]);
        assert_eq!(toy.requests() - before, 2, "once more on a new connection");
    }
}

/// A server that closes behind each answer has not worked on what comes behind it.
#[test]
fn what_is_behind_a_close_goes_elsewhere() {
    let toy = Toy::start(|stream, _, path, _| {
        say(stream, path, "connection: close\r\n");
        Then::Close
    });
    let client = Client::new(options(&[toy.addr]));
    for (number, result) in at_once(&client, Method::Post, 2).into_iter().enumerate() {
        assert_eq!(result, Ok(format!("/{number}")));
    }
    assert_eq!(toy.requests(), 2, "and none twice");
}

#[test]
fn an_instance_that_is_away_is_passed_over() {
    let away = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let toy = Toy::start(|stream, _, path, _| say(stream, path, ""));
    let client = Client::new(options(&[away, toy.addr]));
    for method in [Method::Post, Method::Get] {
        for result in at_once(&client, method, 20) {
            assert!(result.is_ok(), "{result:?}");
        }
    }
    let nobody = Client::new(options(&[]));
    assert_eq!(at_once(&nobody, Method::Get, 1), [Err(CallError::NoInstance("toy".into()))]);
    let nobody = Client::new(options(&[away]));
    assert_eq!(at_once(&nobody, Method::Get, 1), [Err(CallError::Lost(away))]);
}

/// An address whose connections are never made: the backlog of its listener is full.
fn black_hole() -> (SocketAddr, impl Sized) {
    use socket2::{Domain, SockAddr, Socket, Type};
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&SockAddr::from(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
    listener.listen(0).unwrap();
    let addr = listener.local_addr().unwrap().as_socket().unwrap();
    let fill: Vec<Socket> = (0..3)
        .map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&addr.into());
            socket
        })
        .collect();
    (addr, (listener, fill))
}

#[test]
fn a_connection_that_is_not_made_leaves_time_for_another_instance() {
    let (hole, _filled) = black_hole();
    let toy = Toy::start(|stream, _, path, _| say(stream, path, ""));
    let timeout = Duration::from_secs(8);
    for method in [Method::Post, Method::Get] {
        let client = Client::new(ClientOptions { timeout, ..options(&[hole, toy.addr]) });
        for result in at_once(&client, method, 10) {
            assert!(result.is_ok(), "{result:?}");
        }
    }
}

#[test]
fn calls_under_way_are_bounded() {
    let toy = Toy::start(|_, _, _, _| Then::GoOn);
    let timeout = Duration::from_millis(500);
    let client = Client::new(ClientOptions { pool: 2, timeout, ..options(&[toy.addr]) });
    let results = at_once(&client, Method::Get, 3);
    let late = Err(CallError::Timeout(timeout));
    assert_eq!(results, [late.clone(), late, Err(CallError::Rejected(2))]);
}

#[test]
fn a_read_that_takes_long_is_sent_to_another_one_too() {
    let silent = Toy::start(|_, _, _, _| Then::GoOn);
    let toy = Toy::start(|stream, _, path, _| say(stream, path, ""));
    let hedge = Duration::from_millis(20);
    let client = Client::new(ClientOptions { hedge, ..options(&[silent.addr, toy.addr]) });
    for result in at_once(&client, Method::Get, 6) {
        assert!(result.is_ok(), "{result:?}");
    }
    assert!(silent.requests() >= 2 && toy.requests() == 6, "{} {}", silent.requests(), toy.requests());
}

#[test]
fn errors_of_the_other_side_open_the_breaker() {
    let toy = Toy::start(|stream, _, _, _| {
        use std::io::Write;
        match stream.write_all(b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n") {
            Ok(()) => Then::GoOn,
            Err(_) => Then::Close,
        }
    });
    let breaker = BreakerOptions { requests: 4, sleep_ms: 60_000, ..BreakerOptions::default() };
    let client = Client::new(ClientOptions { breaker, ..options(&[toy.addr]) });
    for _ in 0..4 {
        assert_eq!(at_once(&client, Method::Post, 1), [Err(CallError::Answered(toy.addr, 500))]);
    }
    assert_eq!(at_once(&client, Method::Post, 1), [Err(CallError::ShortCircuited("Toy"))]);
    assert_eq!(toy.requests(), 4);
}
