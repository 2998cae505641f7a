//! The airline and its auth service as processes of their own, with what can go wrong between them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tidemark_airline::AirlineAuth;
use tidemark_mesh::RegistrySystem;

use crate::airline::{AtEnd, Running, in_days, query};
use crate::client::{Client, Reply, eventually};

fn any() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

const LIST: &str = "/rest/api/bookings/byuser/uid3@email.com";
const LOGIN: &str = "login=uid3%40email.com&password=password";

fn airline(auth: &str, more: &[(&str, &str)]) -> Running {
    let own = [("sessions_in", "auth"), ("auth", auth), ("call_timeout_ms", "5000")];
    Running::start_with(&[&own, more].concat())
}

fn in_registry<'a>(registry: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&[("registry", registry), ("lease_s", "3")], more].concat()
}

fn has_line(client: &mut Client, line: &str) -> bool {
    client.get("/metrics").text().lines().any(|known| known == line)
}

/// What breakers have done: command, from, to.
fn changes(client: &mut Client) -> Vec<String> {
    let events = client.get("/mesh/events");
    let lines = events.text().lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines
        .map(|event| format!("{} {} {}", event["command"], event["from"], event["to"]).replace('"', ""))
        .collect()
}

fn is_refused(reply: &Reply) {
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(reply.header("retry-after").is_some() && reply.header("set-cookie").is_none());
}

#[test]
fn customers_notice_nothing_of_the_split() {
    let auth = Running::serve::<AirlineAuth>(any(), &[]);
    let airline = airline(&auth.url(), &[]);
    let mut client = airline.login(3);
    assert_eq!(client.get(LIST).status, 200);
    let flights = query(&mut client, "CDG", "SVO", &in_days(1), "", true).json();
    let flight = flights["tripFlights"][0]["flightsOptions"][0]["_id"].as_str().unwrap();
    let form = format!("userid=uid3%40email.com&toFlightId={flight}&oneWayFlight=true");
    assert_eq!(client.form("/rest/api/bookings/bookflights", &form).status, 200);
    assert_eq!(client.get("/rest/api/bookings/byuser/uid4@email.com").status, 403, "another one's");

    let wrong = airline.client().form("/rest/api/login", "login=uid3%40email.com&password=x");
    assert_eq!(wrong.status, 403, "passwords are checked by the airline");
    let mut stranger = airline.client();
    for cookie in [None, Some("sessionid=x"), Some("sessionid=00000000-0000-4000-8000-000000000000")] {
        stranger.cookie = cookie.map(str::to_owned);
        assert_eq!(stranger.get(LIST).status, 403, "{cookie:?}");
    }
    assert_eq!(client.get("/rest/api/login/logout").text(), "logged out");
    assert_eq!(client.get(LIST).status, 403, "the session has ended");
    assert!(has_line(&mut client, "mesh_calls_total{command=\"CreateTokenCommand\",outcome=\"success\"} 1"));
    assert!(has_line(
        &mut client,
        "mesh_calls_total{command=\"ValidateTokenCommand\",outcome=\"failure\"} 0"
    ));
    assert!(has_line(&mut client, "mesh_instances 1"));
}

#[test]
fn an_airline_without_an_auth_service_does_not_start() {
    let options = tidemark_service::Options {
        settings: [("sessions_in".to_owned(), "auth".to_owned())].into(),
        ..crate::airline::options()
    };
    let airline = <tidemark_airline::Airline as tidemark_service::ReferenceSystem>::bind(options).unwrap();
    let error = airline.serve(std::future::pending()).unwrap_err().to_string();
    assert!(error.contains("auth=http://"), "{error}");
}

/// The auth service goes and comes back: nobody is let in meanwhile, and the breaker opens, tries and closes.
#[test]
fn without_the_auth_service_nobody_is_let_in() {
    let auth = Running::serve::<AirlineAuth>(any(), &[]);
    let at = auth.addr;
    let more = [("breaker_requests", "5"), ("breaker_sleep_ms", "1500")];
    let airline = airline(&auth.url(), &more);
    let mut client = airline.login(3);
    assert_eq!(client.get(LIST).status, 200);
    drop(auth);
    for _ in 0..20 {
        is_refused(&client.get(LIST));
    }
    is_refused(&client.form("/rest/api/login", LOGIN));
    is_refused(&client.get("/rest/api/login/logout"));
    assert_eq!(changes(&mut client)[0], "ValidateTokenCommand closed open");
    assert!(has_line(&mut client, "mesh_breaker_state{command=\"ValidateTokenCommand\"} 2"));
    let metrics = client.get("/metrics");
    let short = "mesh_calls_total{command=\"ValidateTokenCommand\",outcome=\"short_circuited\"} ";
    let count = metrics.text().lines().find_map(|line| line.strip_prefix(short)).unwrap();
    assert!(count.parse::<u32>().unwrap() >= 10, "{count}");
    // the trial fails
    eventually("a failed trial", || {
        is_refused(&client.get(LIST));
        changes(&mut client).contains(&"ValidateTokenCommand half_open open".to_owned()).then_some(())
    });

    let _auth = Running::serve::<AirlineAuth>(at, &[]);
    // it has forgotten the session, which is an answer
    eventually("an answer", || (client.get(LIST).status == 403).then_some(()));
    let changes = changes(&mut client);
    let last = &changes[changes.len() - 2..];
    assert_eq!(last, ["ValidateTokenCommand open half_open", "ValidateTokenCommand half_open closed"]);
    eventually("a login", || (client.form("/rest/api/login", LOGIN).status == 200).then_some(()));
}

/// A service that takes connections and never says anything.
#[test]
fn a_silent_auth_service_costs_no_more_than_the_timeout() {
    let silent = TcpListener::bind(any()).unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let settings = [("sessions_in", "auth"), ("auth", &url), ("call_timeout_ms", "100")];
    let airline = Running::start_with(&settings);
    let mut client = airline.client();
    is_refused(&client.form("/rest/api/login", LOGIN));
    client.cookie = Some("sessionid=00000000-0000-4000-8000-000000000000".into());
    is_refused(&client.get(LIST));
    for command in ["CreateTokenCommand", "ValidateTokenCommand"] {
        let line = format!("mesh_calls_total{{command=\"{command}\",outcome=\"timeout\"}} 1");
        assert!(has_line(&mut client, &line), "{line}");
    }
}

#[test]
fn instances_find_each_other_and_go_on_without_the_registry() {
    let registry = Running::serve::<RegistrySystem>(any(), &[]);
    let place = format!("{}/eureka", registry.url());
    let auth = Running::serve::<AirlineAuth>(any(), &in_registry(&place, &[]));
    let mut asked = registry.client();
    eventually("registered", || (asked.get("/eureka/v2/apps/AIRLINE-AUTH").status == 200).then_some(()));
    let airline = Running::start_with(&in_registry(&place, &[("sessions_in", "auth")]));
    let mut client = airline.login(3);
    assert_eq!(client.get(LIST).status, 200);
    eventually("the airline is registered", || {
        let all = asked.get("/eureka/apps").json();
        let apps = all["applications"]["application"].as_array().unwrap().clone();
        apps.iter().any(|app| app["name"] == "AIRLINE").then_some(())
    });
    drop(registry);
    // longer than the list is kept up to date, and than a lease
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        assert_eq!(client.get(LIST).status, 200, "the last list holds");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(client.get("/mesh/instances").json()["up_to_date"] == false);
    // the registry comes back knowing nothing, and is told
    let at = place.strip_prefix("http://").unwrap().strip_suffix("/eureka").unwrap().parse().unwrap();
    let registry = Running::serve::<RegistrySystem>(at, &[]);
    let mut asked = registry.client();
    eventually("registered again", || (asked.get("/eureka/apps/airline-auth").status == 200).then_some(()));
    assert_eq!(client.get(LIST).status, 200);
    // one that leaves says so
    drop(auth);
    assert_eq!(asked.get("/eureka/apps/airline-auth").status, 404);
}

/// An instance that leaves in order costs no request; here all instances have one store, the one behind them.
#[test]
fn an_instance_leaves_under_load_and_no_request_fails() {
    let registry = Running::serve::<RegistrySystem>(any(), &[]);
    let place = format!("{}/eureka", registry.url());
    let stays = Running::serve::<AirlineAuth>(any(), &in_registry(&place, &[]));
    let goes = Running::serve::<AirlineAuth>(any(), &in_registry(&place, &[]));
    let mut asked = registry.client();
    eventually("both registered", || {
        let app = asked.get("/eureka/apps/AIRLINE-AUTH");
        (app.status == 200 && app.json()["application"]["instance"].as_array().unwrap().len() == 2)
            .then_some(())
    });
    let airline = Running::start_with(&in_registry(&place, &[("sessions_in", "auth")]));
    assert!(has_line(&mut airline.client(), "mesh_instances 2"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let load: Vec<_> = (0..4)
            .map(|number| {
                let (airline, done) = (&airline, &done);
                scope.spawn(move || {
                    let mut client = airline.client();
                    // the other instance does not know a session of one, so the answer to a stranger is what must hold
                    client.cookie = Some(format!("sessionid=00000000-0000-4000-8000-00000000000{number}"));
                    let (mut answered, mut logins) = (0, 0);
                    while !done.load(Ordering::Relaxed) {
                        assert_eq!(client.get(LIST).status, 403);
                        answered += 1;
                        if answered % 8 == 0 {
                            assert_eq!(client.form("/rest/api/login", LOGIN).status, 200);
                            logins += 1;
                        }
                    }
                    (answered, logins)
                })
            })
            .collect();
        drop(goes);
        done.store(true, Ordering::Relaxed);
        for thread in load {
            let (answered, logins) = thread.join().unwrap();
            assert!(answered > 10 && logins > 1, "{answered} {logins}");
        }
    });
    assert!(has_line(&mut airline.client(), "mesh_instances 1"));
    drop(stays);
}

/// Opens a stream and reads up to the first event of the pool.
fn stream_events(addr: SocketAddr) -> (TcpStream, Vec<serde_json::Value>) {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"GET /rest/api/hystrix.stream HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let (mut text, mut room) = (String::new(), [0; 4096]);
    while !(text.contains("HystrixThreadPool") && text.ends_with("\n\n\r\n")) {
        let got = stream.read(&mut room).unwrap();
        assert!(got > 0, "ended: {text}");
        text += std::str::from_utf8(&room[..got]).unwrap();
        if text.starts_with("HTTP/1.1 503") {
            return (stream, Vec::new());
        }
    }
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("content-type: text/event-stream"), "{text}");
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    (stream, events.map(|event| serde_json::from_str(event).unwrap()).collect())
}

#[test]
fn the_stream_says_what_hystrix_says() {
    let auth = Running::serve::<AirlineAuth>(any(), &[]);
    let airline = airline(&auth.url(), &[]);
    let mut client = airline.login(3);
    for _ in 0..7 {
        assert_eq!(client.get(LIST).status, 200);
    }
    let (first, events) = stream_events(airline.addr);
    let names: Vec<_> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
    let commands = ["CreateTokenCommand", "ValidateTokenCommand", "InvalidateTokenCommand", "AcmeAirPool"];
    assert_eq!(names, commands);
    let validate = &events[1];
    for (key, value) in [
        ("type", "HystrixCommand".into()),
        ("group", "AcmeAirGroup".into()),
        ("isCircuitBreakerOpen", false.into()),
        ("errorPercentage", 0.into()),
        ("requestCount", 7.into()),
        ("rollingCountSuccess", 7.into()),
        ("rollingCountFailure", 0.into()),
        ("propertyValue_circuitBreakerRequestVolumeThreshold", 20.into()),
        ("propertyValue_circuitBreakerSleepWindowInMilliseconds", 5000.into()),
        ("propertyValue_executionTimeoutInMilliseconds", 5000.into()),
        ("reportingHosts", serde_json::Value::from(1)),
    ] {
        assert_eq!(validate[key], value, "{key}");
    }
    for percentile in ["0", "25", "50", "75", "90", "95", "99", "99.5", "100"] {
        assert!(
            validate["latencyExecute"][percentile].is_u64() && validate["latencyTotal"][percentile].is_u64()
        );
    }
    assert_eq!(
        (&events[3]["type"], &events[3]["currentCorePoolSize"]),
        (&"HystrixThreadPool".into(), &100.into())
    );

    // sixteen at once, and one that is closed makes room
    let open: Vec<_> = (0..15).map(|_| stream_events(airline.addr)).collect();
    assert!(open.iter().all(|(_, events)| !events.is_empty()));
    assert!(stream_events(airline.addr).1.is_empty(), "a seventeenth");
    drop(first);
    eventually("room again", || (!stream_events(airline.addr).1.is_empty()).then_some(()));
    // the airline stops in order although they are open: `Running` sees to that
}

/// The keys of a command's event as `HystrixMetricsPoller` of hystrix-metrics-event-stream 1.5.18 writes them.
const COMMAND_KEYS: &str = "
    currentConcurrentExecutionCount
    currentTime
    errorCount
    errorPercentage
    group
    isCircuitBreakerOpen
    latencyExecute
    latencyExecute_mean
    latencyTotal
    latencyTotal_mean
    name
    propertyValue_circuitBreakerEnabled
    propertyValue_circuitBreakerErrorThresholdPercentage
    propertyValue_circuitBreakerForceClosed
    propertyValue_circuitBreakerForceOpen
    propertyValue_circuitBreakerRequestVolumeThreshold
    propertyValue_circuitBreakerSleepWindowInMilliseconds
    propertyValue_executionIsolationSemaphoreMaxConcurrentRequests
    propertyValue_executionIsolationStrategy
    propertyValue_executionIsolationThreadInterruptOnTimeout
    propertyValue_executionIsolationThreadPoolKeyOverride
    propertyValue_executionIsolationThreadTimeoutInMilliseconds
    propertyValue_executionTimeoutInMilliseconds
    propertyValue_fallbackIsolationSemaphoreMaxConcurrentRequests
    propertyValue_metricsRollingStatisticalWindowInMilliseconds
    propertyValue_requestCacheEnabled
    propertyValue_requestLogEnabled
    reportingHosts
    requestCount
    rollingCountBadRequests
    rollingCountCollapsedRequests
    rollingCountEmit
    rollingCountExceptionsThrown
    rollingCountFailure
    rollingCountFallbackEmit
    rollingCountFallbackFailure
    rollingCountFallbackMissing
    rollingCountFallbackRejection
    rollingCountFallbackSuccess
    rollingCountResponsesFromCache
    rollingCountSemaphoreRejected
    rollingCountShortCircuited
    rollingCountSuccess
    rollingCountThreadPoolRejected
    rollingCountTimeout
    rollingMaxConcurrentExecutionCount
    threadPool
    type
";
/// Those of a thread pool's.
const POOL_KEYS: &str = "
    currentActiveCount
    currentCompletedTaskCount
    currentCorePoolSize
    currentLargestPoolSize
    currentMaximumPoolSize
    currentPoolSize
    currentQueueSize
    currentTaskCount
    currentTime
    name
    propertyValue_metricsRollingStatisticalWindowInMilliseconds
    propertyValue_queueSizeRejectionThreshold
    reportingHosts
    rollingCountCommandRejections
    rollingCountThreadsExecuted
    rollingMaxActiveThreads
    type
";

#[test]
fn the_stream_has_the_published_keys() {
    let auth = Running::serve::<AirlineAuth>(any(), &[]);
    let airline = airline(&auth.url(), &[]);
    assert_eq!(airline.login(3).get(LIST).status, 200);
    let (_, events) = stream_events(airline.addr);
    for event in events {
        let (published, own): (_, &[&str]) = match event["type"].as_str().unwrap() {
            "HystrixCommand" => (COMMAND_KEYS, &["latencyExecute_us", "circuitBreakerState"]),
            _ => (POOL_KEYS, &[]),
        };
        let mut expected: Vec<&str> = published.split_whitespace().chain(own.iter().copied()).collect();
        expected.sort_unstable();
        let mut keys: Vec<&String> = event.as_object().unwrap().keys().collect();
        keys.sort_unstable();
        assert_eq!(keys, expected, "{}", event["name"]);
        // nothing is under way any more, and one was
        let (now, most, expected) = match event["name"].as_str().unwrap() {
            "AcmeAirPool" => ("currentActiveCount", "rollingMaxActiveThreads", 1),
            "InvalidateTokenCommand" => {
                ("currentConcurrentExecutionCount", "rollingMaxConcurrentExecutionCount", 0)
            }
            _ => ("currentConcurrentExecutionCount", "rollingMaxConcurrentExecutionCount", 1),
        };
        assert_eq!((&event[now], &event[most]), (&0.into(), &expected.into()), "{}", event["name"]);
    }
}

/// The published dashboard's own page shows circuits, closed and open.
#[test]
fn a_hystrix_dashboard_shows_the_circuits() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dashboard = root.join("target/tools/hystrix-dashboard");
    if !dashboard.exists() {
        eprintln!("skipped: no Hystrix dashboard here (tests/needs test fetches it with Maven)");
        return;
    }
    let auth = Running::serve::<AirlineAuth>(any(), &[]);
    let airline = airline(&auth.url(), &[]);
    let mut node = Command::new("node")
        .arg(root.join("web/check-hystrix.mjs"))
        .arg(airline.url())
        .arg(dashboard)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node runs; `make test-needs` installs it");
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = airline.login(3);
            while !ends.load(Ordering::Relaxed) {
                client.get(LIST);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let _at_end = AtEnd(&ends);
        let mut said = BufReader::new(node.stdout.take().unwrap()).lines();
        assert_eq!(said.next().unwrap().unwrap(), "closed");
        drop(auth);
        writeln!(node.stdin.as_mut().unwrap(), "dead").unwrap();
        assert_eq!(said.next().unwrap().unwrap(), "open");
    });
    assert!(node.wait().unwrap().success());
}

#[test]
fn the_page_brings_all_that_it_needs() {
    let auth = Running::serve::<AirlineAuth>(any(), &[]);
    let airline = airline(&auth.url(), &[]);
    let mut client = airline.client();
    let page = client.get("/mesh");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    for part in page.text().split(['"', '\'']).filter(|part| part.starts_with("/mesh.")) {
        assert_eq!(client.get(part).status, 200, "{part}");
    }
    assert!(!page.text().contains("://") && !client.get("/mesh.js").text().contains("innerHTML"));
    let instances = client.get("/mesh/instances").json();
    assert_eq!(instances["service"], "airline-auth");
    assert_eq!(
        (&instances["instances"][0]["healthy"], client.get("/mesh/events").text()),
        (&true.into(), "")
    );
    assert_eq!(Running::start().client().get("/mesh").status, 404, "there is none without an auth service");
}

/// Two instances with one store: either knows the sessions of both.
#[cfg(all(feature = "postgres", feature = "redis"))]
#[test]
fn instances_with_one_store_share_sessions() {
    let redis = crate::airline::servers::RedisServer::start(&[]);
    let database = redis.database();
    let store = [("sessions_in", "redis"), ("redis", database.as_str())];
    let auths = [(); 2].map(|()| Running::serve::<AirlineAuth>(any(), &store));
    let airline = airline(&format!("{},{}", auths[0].url(), auths[1].url()), &[("balance", "round-robin")]);
    for _ in 0..4 {
        let mut client = airline.login(3);
        assert_eq!([(); 4].map(|()| client.get(LIST).status), [200; 4]);
        assert_eq!(client.get("/rest/api/login/logout").status, 200);
        assert_eq!([(); 2].map(|()| client.get(LIST).status), [403; 2]);
    }
    let instances = airline.client().get("/mesh/instances").json();
    let requests: Vec<_> =
        (0..2).map(|at| instances["instances"][at]["requests"].as_u64().unwrap()).collect();
    assert!(requests.iter().all(|count| *count >= 10), "{requests:?}");
    // one goes, and its share goes to the other
    let [first, _second] = auths;
    drop(first);
    let mut client = airline.login(3);
    assert_eq!([(); 20].map(|()| client.get(LIST).status), [200; 20]);
}
