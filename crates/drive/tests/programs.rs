//! Sessions whose requests come from code.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{
    self, Next as Then, Server, Sum, answer, get, kind, options, phase, run_programs, whole_sessions,
};
use tidemark_drive::{
    AnswerCheck, AnswerView, DriveError, DriveOptions, Http2, Next, Program, ProgramMessage, ProgramRequest,
    Programs, Protocol,
};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Grace, Load, LoadModel, Op, ScriptBounds, ScriptPlan, ScriptTool};
use tidemark_truth::{Http2Behaviour, Http2Misbehaviour, Http2Server};

const LOGIN: u16 = 0;
const CART: u16 = 1;

/// So many sessions that a program carries out, of requests with these labels.
fn of_program(labels: &[&str], sessions: u64) -> Plan {
    let mut plan = whole_sessions(Vec::new(), sessions);
    plan.labels = labels.iter().map(|label| (*label).to_owned()).collect();
    plan.sessions = vec![kind(vec![Op::Program, Op::End])];
    plan
}

fn run(plan: Plan, options: DriveOptions, make: fn() -> Box<dyn Program>) -> Sum {
    run_programs(plan, options, Programs::new(move |_| make()))
}

fn request(label: u16, method: &str, path: &str) -> ProgramRequest {
    ProgramRequest {
        label,
        method: method.into(),
        path: path.into(),
        timeout: Duration::from_secs(10),
        ..ProgramRequest::default()
    }
}

/// Logs in, and looks at a cart three times by the token that it got.
#[derive(Default)]
struct Shopper {
    users: Vec<User>,
}

#[derive(Default)]
struct User {
    token: Option<String>,
    looks: u32,
    thought: bool,
}

impl Program for Shopper {
    fn begin(&mut self, session: u32, _: usize) {
        let session = session as usize;
        if self.users.len() <= session {
            self.users.resize_with(session + 1, User::default);
        }
        self.users[session] = User::default();
    }

    fn next(&mut self, session: u32, _: Duration) -> Next {
        let user = &mut self.users[session as usize];
        let Some(token) = &user.token else {
            let login = request(LOGIN, "POST", "/login");
            return Next::Request(ProgramRequest { body: Some(format!("user {session}").into()), ..login });
        };
        if !std::mem::replace(&mut user.thought, true) {
            return Next::Think(Duration::from_millis(2));
        }
        user.looks += 1;
        match user.looks {
            1..=3 => {
                let headers = vec![("Authorization".into(), format!("Bearer {token}"))];
                Next::Request(ProgramRequest { headers, ..request(CART, "GET", "/cart") })
            }
            _ => Next::End,
        }
    }

    fn answered(&mut self, session: u32, answer: &AnswerView<'_>) -> AnswerCheck {
        let body = std::str::from_utf8(answer.body()).unwrap();
        if let Some(token) = body.strip_prefix("token ") {
            self.users[session as usize].token = Some(token.to_owned());
        }
        AnswerCheck::ByStatus
    }

    fn failed(&mut self, _: u32, outcome: Outcome) {
        panic!("{outcome:?}");
    }
}

#[test]
fn a_token_of_one_answer_goes_into_the_next_request() {
    let cookies = Arc::new(Mutex::new(Vec::new()));
    let seen = cookies.clone();
    let server = Server::start(move |request, stream| match request.target() {
        "/base/login" => {
            let user = String::from_utf8_lossy(&request.body).replace("user ", "");
            answer(stream, "200 OK", "Set-Cookie: id=7\r\n", &format!("token t{user}"))
        }
        "/base/cart" if request.head.contains("Authorization: Bearer t") => {
            let cookie = request.head.lines().find_map(|line| line.strip_prefix("Cookie: "));
            seen.lock().unwrap().push(cookie.unwrap_or_default().to_owned());
            answer(stream, "200 OK", "", "nothing")
        }
        _ => answer(stream, "401 Unauthorized", "", ""),
    });
    let mut options = options(server.address, 2);
    options.targets[0].base_path = "/base".into();
    let sum = run(of_program(&["login", "cart"], 20), options, || Box::<Shopper>::default());
    assert_eq!(sum.of(LOGIN, Outcome::Ok), 20);
    assert_eq!(sum.of(CART, Outcome::Ok), 60);
    assert_eq!((sum.ended(), server.requests()), (80, 80), "{:?}", sum.examples());
    assert!(cookies.lock().unwrap().iter().all(|cookie| cookie == "id=7"), "cookies are the driver's affair");
}

/// Asks once for each of these; what comes of it is noted.
struct Asking {
    requests: Vec<ProgramRequest>,
    verdict: AnswerCheck,
    failures: Arc<Mutex<Vec<Outcome>>>,
    /// By session.
    next: HashMap<u32, usize>,
}

impl Program for Asking {
    fn begin(&mut self, session: u32, kind: usize) {
        assert_eq!(kind, 0);
        self.next.insert(session, 0);
    }

    fn next(&mut self, session: u32, _: Duration) -> Next {
        let next = self.next.get_mut(&session).unwrap();
        *next += 1;
        self.requests.get(*next - 1).cloned().map_or(Next::End, Next::Request)
    }

    fn answered(&mut self, _: u32, _: &AnswerView<'_>) -> AnswerCheck {
        self.verdict.clone()
    }

    fn failed(&mut self, _: u32, outcome: Outcome) {
        self.failures.lock().unwrap().push(outcome);
    }
}

fn ask(
    plan: Plan,
    options: DriveOptions,
    requests: Vec<ProgramRequest>,
    verdict: AnswerCheck,
) -> (Sum, Vec<Outcome>) {
    let failures = Arc::new(Mutex::new(Vec::new()));
    let noted = failures.clone();
    let programs = Programs::new(move |_| {
        let (requests, verdict, failures) = (requests.clone(), verdict.clone(), noted.clone());
        Box::new(Asking { requests, verdict, failures, next: HashMap::new() })
    });
    let sum = run_programs(plan, options, programs);
    let failures = failures.lock().unwrap().clone();
    (sum, failures)
}

#[test]
fn a_program_is_told_how_its_requests_end_and_judges_their_answers() {
    let server = Server::start(|request, stream| match request.target() {
        "/gone" => Then::Reset,
        "/slow" => {
            std::thread::sleep(Duration::from_millis(300));
            answer(stream, "200 OK", "", "")
        }
        _ => answer(stream, "404 Not Found", "", "nobody"),
    });
    let slow = ProgramRequest { timeout: Duration::from_millis(50), ..request(0, "GET", "/slow") };
    let all = vec![
        request(0, "GET", "/there"),
        request(0, "GET", "/gone"),
        slow,
        request(0, "GET", "/a b"),
        ProgramRequest { target: 1, ..request(0, "GET", "/") },
    ];
    for (verdict, found) in [
        (AnswerCheck::ByStatus, Outcome::Status),
        (AnswerCheck::Good, Outcome::Ok),
        (AnswerCheck::Wrong("nobody is there".into()), Outcome::Check),
    ] {
        let plan = of_program(&["all"], 2);
        let (sum, failures) = ask(plan, options(server.address, 1), all.clone(), verdict);
        assert_eq!((sum.of(0, found), sum.ended()), (2, 10), "{:?}", sum.examples());
        let outcomes = [Outcome::Reset, Outcome::Timeout, Outcome::Protocol];
        assert_eq!(outcomes.map(|outcome| sum.of(0, outcome)), [2, 2, 4]);
        let [reset, timeout, protocol] = outcomes;
        let told = |outcome| failures.iter().filter(|told| **told == outcome).count();
        assert_eq!([reset, timeout, protocol].map(told), [2, 2, 4]);
        let told = sum.examples().iter().any(|example| example.detail == "status 404: nobody is there");
        assert_eq!(told, found == Outcome::Check, "{:?}", sum.examples());
    }
}

/// What no label is left for counts as the last one; beside a program others make the plan's requests.
#[test]
fn programs_stand_beside_a_plans_own_requests_and_labels_are_bounded() {
    let server = Server::plain(Duration::ZERO);
    let mut plan = whole_sessions(vec![get(0, "/own")], 10);
    plan.labels = vec!["own".into(), "other".into()];
    plan.sessions[0].ops = vec![Op::Request(0), Op::BeginGroup(0), Op::Program, Op::EndGroup, Op::Request(0)];
    plan.groups = vec!["program".into()];
    let all = vec![request(0, "GET", "/"), request(9, "HEAD", "/"), request(1, "PUT", "/")];
    let (sum, failures) = ask(plan, options(server.address, 1), all, AnswerCheck::ByStatus);
    assert_eq!(
        (sum.of(0, Outcome::Ok), sum.of(1, Outcome::Ok), failures.len()),
        (30, 20, 0),
        "{:?}",
        sum.examples()
    );
    assert_eq!(sum.groups(0, Outcome::Ok).len(), 10);
}

/// Thinks for no time, for ever: it must not keep its thread.
#[test]
fn a_program_that_only_thinks_gives_way() {
    struct Thinking;
    impl Program for Thinking {
        fn begin(&mut self, _: u32, _: usize) {}
        fn next(&mut self, _: u32, _: Duration) -> Next {
            Next::Think(Duration::ZERO)
        }
        fn answered(&mut self, _: u32, _: &AnswerView<'_>) -> AnswerCheck {
            AnswerCheck::Good
        }
        fn failed(&mut self, _: u32, _: Outcome) {}
    }
    let server = Server::plain(Duration::ZERO);
    let mut plan = of_program(&["all"], 1);
    plan.load = Load::new(LoadModel::Closed, vec![phase(200, 1.0)]);
    plan.limits.drain = Duration::from_millis(100);
    let sum = run(plan, options(server.address, 1), || Box::new(Thinking));
    assert_eq!((sum.ended(), server.requests()), (0, 0));
}

#[test]
fn over_http_2_too() {
    let server = Http2Server::start(Http2Behaviour::default()).unwrap();
    let options = over_http_2(&server);
    let sum = run(of_program(&["echo", "status"], 20), options, || Box::<Echoing>::default());
    assert_eq!(server.stop().unwrap().requests, 40);
    let counts = [0, 1].map(|label| sum.of(label, Outcome::Ok));
    assert_eq!(counts, [20, 20], "{:?}", sum.examples());
}

/// What is echoed is the path of the next request.
#[derive(Default)]
struct Echoing {
    /// By session.
    paths: Vec<(bool, Option<String>)>,
}

impl Program for Echoing {
    fn begin(&mut self, session: u32, _: usize) {
        self.paths.resize(self.paths.len().max(session as usize + 1), (false, None));
        self.paths[session as usize] = (false, None);
    }

    fn next(&mut self, session: u32, _: Duration) -> Next {
        let (has_begun, path) = &mut self.paths[session as usize];
        if !std::mem::replace(has_begun, true) {
            let body = Some(b"/status/208".to_vec());
            return Next::Request(ProgramRequest { body, ..request(0, "POST", "/echo") });
        }
        path.take().map_or(Next::End, |path| Next::Request(request(1, "GET", &path)))
    }

    fn answered(&mut self, session: u32, answer: &AnswerView<'_>) -> AnswerCheck {
        match (answer.status(), answer.header("x-method")) {
            (200, Some(b"POST")) => {
                self.paths[session as usize].1 = Some(String::from_utf8(answer.body().to_vec()).unwrap());
                AnswerCheck::Good
            }
            (208, None) => AnswerCheck::Good,
            (status, _) => AnswerCheck::Wrong(format!("{status}")),
        }
    }

    fn failed(&mut self, _: u32, outcome: Outcome) {
        panic!("{outcome:?}");
    }
}

#[test]
fn what_no_program_can_do_is_refused() {
    let server = Server::plain(Duration::ZERO);
    let refused = |plan: Plan, options: DriveOptions| {
        let error = support::refused(plan, options);
        assert!(matches!(error, DriveError::Program { .. }), "{error}");
        error.to_string()
    };
    let plan = of_program(&["all"], 1);
    assert!(refused(plan.clone(), options(server.address, 1)).contains("there is no program"));
    let mut own = options(server.address, 1);
    own.programs = Some(Programs::new(|_| Box::<Shopper>::default()));
    assert!(refused(of_program(&[], 1), own.clone()).contains("label"));
    own.targets[0].protocol = Protocol::Memcached(tidemark_drive::Memcached::default());
    assert!(refused(plan, own).contains("HTTP"));
}

/// Leaves a stream open, says so many messages on it and has each back before the next, then closes its side.
#[derive(Default)]
struct Conversing {
    /// By session: messages so far.
    said: HashMap<u32, u32>,
}

const OPEN: u16 = 0;
const SAY: u16 = 1;
const CLOSE: u16 = 2;
const MESSAGES: u32 = 5;

fn message(label: u16, data: &str) -> ProgramMessage {
    let timeout = Duration::from_secs(10);
    ProgramMessage { label, timeout, data: data.into(), awaits: true, ends: false }
}

impl Program for Conversing {
    fn begin(&mut self, session: u32, _: usize) {
        self.said.insert(session, 0);
    }

    fn next(&mut self, session: u32, _: Duration) -> Next {
        let said = self.said.get_mut(&session).unwrap();
        *said += 1;
        let data = format!("message {said} of {session}");
        match *said {
            1 => {
                let open = request(OPEN, "POST", "/stream");
                Next::Request(ProgramRequest { stays_open: true, body: Some(data.into()), ..open })
            }
            2 => Next::Message(ProgramMessage { awaits: false, ..message(SAY, "message ") }),
            3..=MESSAGES => Next::Message(message(SAY, &data)),
            6 => Next::Message(ProgramMessage { ends: true, ..message(CLOSE, "") }),
            _ => Next::End,
        }
    }

    fn answered(&mut self, session: u32, answer: &AnswerView<'_>) -> AnswerCheck {
        let said = self.said[&session];
        let body = std::str::from_utf8(answer.body()).unwrap();
        let wanted = match said {
            // the second message, too, which nobody waited for
            3 => format!("message message 3 of {session}"),
            1..=MESSAGES => format!("message {said} of {session}"),
            _ => String::new(),
        };
        match (answer.is_whole(), answer.trailer("x-pieces")) {
            (true, Some(b"5")) if said == 6 && body.is_empty() => AnswerCheck::ByStatus,
            (false, None) if body == wanted => AnswerCheck::ByStatus,
            (false, None) if wanted.starts_with(body) => AnswerCheck::More,
            (is_whole, trailer) => AnswerCheck::Wrong(format!("{said}: {is_whole}, {trailer:?}, {body:?}")),
        }
    }

    fn failed(&mut self, _: u32, outcome: Outcome) {
        panic!("{outcome:?}");
    }
}

fn over_http_2(server: &Http2Server) -> DriveOptions {
    let mut options = options(server.address(), 1);
    options.targets[0].protocol = Protocol::Http2(Http2 { most_streams: usize::MAX });
    options
}

#[test]
fn messages_go_either_way_over_one_stream_until_its_end_with_trailers() {
    let server = Http2Server::start(Http2Behaviour::default()).unwrap();
    let mut plan = of_program(&["open", "say", "close"], 20);
    plan.limits.connections = 2;
    plan.limits.streams = 10;
    let sum = run(plan, over_http_2(&server), || Box::<Conversing>::default());
    let counts = [OPEN, SAY, CLOSE].map(|of| sum.of(of, Outcome::Ok));
    assert_eq!((counts, sum.ended()), ([20, 80, 20], 120), "{:?}", sum.examples());
    let truth = server.stop().unwrap();
    assert_eq!((truth.requests, truth.connections), (20, sum.connects()), "a stream for each session");
}

/// A stream that breaks, or is no more, fails what goes over it; one that is left open makes room for another request.
#[test]
fn a_message_without_a_stream_fails() {
    struct Leaving(Arc<Mutex<Vec<Outcome>>>, u32);
    impl Program for Leaving {
        fn begin(&mut self, _: u32, _: usize) {
            self.1 = 0;
        }
        fn next(&mut self, _: u32, _: Duration) -> Next {
            self.1 += 1;
            let open = request(0, "POST", "/stream");
            match self.1 {
                1 => Next::Request(ProgramRequest { stays_open: true, body: Some("a".into()), ..open }),
                2 => Next::Message(message(0, "b")),
                3 => Next::Request(request(0, "GET", "/")),
                _ => Next::End,
            }
        }
        fn answered(&mut self, _: u32, answer: &AnswerView<'_>) -> AnswerCheck {
            if answer.body().is_empty() { AnswerCheck::More } else { AnswerCheck::Good }
        }
        fn failed(&mut self, _: u32, outcome: Outcome) {
            self.0.lock().unwrap().push(outcome);
        }
    }
    let mut faults = vec![Http2Misbehaviour::None; 4];
    faults[0] = Http2Misbehaviour::Reset;
    let server =
        Http2Server::start(Http2Behaviour { faults, most_streams: Some(1), ..Http2Behaviour::default() })
            .unwrap();
    let failures = Arc::new(Mutex::new(Vec::new()));
    let noted = failures.clone();
    let programs = Programs::new(move |_| Box::new(Leaving(noted.clone(), 0)));
    let mut plan = of_program(&["all"], 2);
    plan.load = Load::new(LoadModel::Closed, vec![phase(60_000, 1.0)]);
    let sum = run_programs(plan, over_http_2(&server), programs);
    assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (4, 6), "{:?}", sum.examples());
    assert_eq!(*failures.lock().unwrap(), [Outcome::Reset; 2]);
    assert_eq!(server.stop().unwrap().requests, 4);
    let server = Server::plain(Duration::ZERO);
    let open = ProgramRequest { stays_open: true, ..request(0, "POST", "/") };
    let (sum, failures) =
        ask(of_program(&["all"], 1), options(server.address, 1), vec![open], AnswerCheck::Good);
    assert_eq!((sum.outcome(Outcome::Protocol), failures.len()), (1, 1), "{:?}", sum.examples());
}

/// Asks, thinks past the load's end, and asks again; others of its thread have nothing to do.
struct Finishing {
    finishes: bool,
    asked: HashMap<u32, usize>,
}

impl Program for Finishing {
    fn begin(&mut self, session: u32, _: usize) {
        self.asked.insert(session, 0);
    }

    fn next(&mut self, session: u32, _: Duration) -> Next {
        if session > 1 {
            return Next::Rest(Duration::from_millis(20));
        }
        let asked = self.asked.get_mut(&session).unwrap();
        *asked += 1;
        match asked {
            1 => Next::Request(request(0, "GET", "/first")),
            2 => Next::Think(Duration::from_millis(600)),
            3 => Next::Request(request(1, "GET", "/last")),
            _ => Next::End,
        }
    }

    fn answered(&mut self, _: u32, answer: &AnswerView<'_>) -> AnswerCheck {
        let (parts, service) = (answer.parts().unwrap(), answer.service().unwrap());
        let sum_us = u128::from(parts.first_byte_us + parts.transfer_us);
        assert!(sum_us.abs_diff(service.as_micros()) <= 2, "{parts:?} {service:?}");
        AnswerCheck::ByStatus
    }

    fn failed(&mut self, _: u32, outcome: Outcome) {
        panic!("{outcome:?}");
    }

    fn finishes(&self) -> bool {
        self.finishes
    }
}

#[test]
fn what_a_program_has_begun_at_the_end_of_the_load_it_finishes_if_it_says_so() {
    let server = Server::plain(Duration::ZERO);
    for (finishes, drain_ms, last) in [(true, 30_000, 2), (false, 30_000, 0), (true, 50, 0)] {
        let mut plan = of_program(&["first", "last"], 1);
        plan.limits.sessions = None;
        plan.load = Load::new(LoadModel::Closed, vec![phase(200, 4.0)]);
        plan.limits.drain = Duration::from_millis(drain_ms);
        let programs = Programs::new(move |_| Box::new(Finishing { finishes, asked: HashMap::new() }));
        let begun = std::time::Instant::now();
        let sum = run_programs(plan, options(server.address, 1), programs);
        let count = |of| sum.of(of, Outcome::Ok);
        assert_eq!((count(0), count(1), sum.ended()), (2, last, 2 + last), "{finishes} {drain_ms}");
        assert!(begun.elapsed() < Duration::from_secs(20), "who rests is not waited for");
    }
}

#[test]
fn a_host_of_the_programs_own_stands_in_place_of_the_servers() {
    let hosts = Arc::new(Mutex::new(Vec::new()));
    let seen = hosts.clone();
    let server = Server::start(move |request, stream| {
        let lines = request.head.lines().filter(|line| line.to_ascii_lowercase().starts_with("host:"));
        seen.lock().unwrap().push(lines.map(str::to_owned).collect::<Vec<_>>());
        answer(stream, "200 OK", "", "")
    });
    let headers = vec![("x-a".to_owned(), "1".to_owned()), ("host".to_owned(), "shop.test".to_owned())];
    let own = ProgramRequest { headers, ..request(0, "GET", "/") };
    let (sum, _) = ask(
        of_program(&["all"], 1),
        options(server.address, 1),
        vec![own, request(0, "GET", "/")],
        AnswerCheck::ByStatus,
    );
    assert_eq!(sum.outcome(Outcome::Ok), 2, "{:?}", sum.examples());
    let hosts = hosts.lock().unwrap();
    assert_eq!(hosts[0], ["host: shop.test"]);
    assert!(hosts[1].len() == 1 && hosts[1][0].starts_with("Host: "), "{hosts:?}");
}

/// Asks for what takes long beside something else that does, and notes who is interrupted and what fails.
#[derive(Default)]
struct Interrupted {
    /// By session: whether it only thinks, and how often it was asked.
    asked: HashMap<u32, (bool, u32)>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Program for Interrupted {
    fn begin(&mut self, session: u32, _: usize) {
        self.asked.insert(session, (self.asked.len().is_multiple_of(2), 0));
    }

    fn next(&mut self, session: u32, _: Duration) -> Next {
        let Some((thinks, asked)) = self.asked.get_mut(&session) else { return Next::End };
        *asked += 1;
        match *asked {
            1 => Next::Branch(request(0, "GET", "/long")),
            2 if *thinks => Next::Think(Duration::from_secs(60)),
            _ => Next::Request(request(1, "GET", "/long")),
        }
    }

    fn answered(&mut self, _: u32, _: &AnswerView<'_>) -> AnswerCheck {
        AnswerCheck::ByStatus
    }

    fn failed(&mut self, _: u32, outcome: Outcome) {
        self.told.lock().unwrap().push(format!("{outcome:?}"));
    }

    fn interrupted(&mut self, session: u32) -> bool {
        assert!(self.asked.contains_key(&session), "it is a session, and no branch");
        self.told.lock().unwrap().push("interrupted".into());
        true
    }

    fn finishes(&self) -> bool {
        true
    }
}

/// Users leave after 300 ms, and have 200 ms more; the load goes on.
#[test]
fn a_session_that_has_had_its_time_is_cut_off_and_every_request_has_an_outcome() {
    let server = Server::plain(Duration::from_secs(20));
    let mut plan = of_program(&["beside", "own"], 1);
    plan.limits.sessions = None;
    plan.limits.drain = Duration::from_secs(30);
    plan.load = Load::new(LoadModel::Closed, vec![phase(300, 4.0), phase(1_200, 0.0)]);
    plan.sessions[0].script = Some(ScriptPlan {
        tool: ScriptTool::K6,
        file: String::new(),
        path: "it.js".into(),
        source: Arc::from([]),
        args: Vec::new(),
        route: String::new(),
        headers: Vec::new(),
        timeout: Duration::from_secs(30),
        label: 0,
        exec: String::new(),
        iterations: None,
        grace: Some(Grace { stop: Duration::from_millis(200), ramp_down: Duration::MAX }),
        bounds: ScriptBounds::default(),
        labels: Vec::new(),
    });
    let told = Arc::new(Mutex::new(Vec::new()));
    let of_thread = told.clone();
    let programs =
        Programs::new(move |_| Box::new(Interrupted { told: of_thread.clone(), ..Interrupted::default() }));
    let begun = std::time::Instant::now();
    let sum = run_programs(plan, options(server.address, 1), programs);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    let count = |of| sum.of(of, Outcome::Unfinished);
    // half of them only think beside their branch
    assert_eq!((count(0), count(1), sum.ended()), (4, 2, 6), "{:?}", sum.examples());
    assert_eq!(sum.end.counters[Counter::Unfinished], 6);
    let told = told.lock().unwrap();
    assert_eq!(told.iter().filter(|words| *words == "interrupted").count(), 4, "{told:?}");
    assert_eq!(told.iter().filter(|words| *words == "Unfinished").count(), 6, "{told:?}");
}
