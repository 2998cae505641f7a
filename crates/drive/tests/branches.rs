//! Several requests of a session at once: each goes on a branch.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::support::{
    Next as Then, Server, Sum, answer, begin, finish, kind, load, options, phase, run_programs,
    whole_sessions,
};
use tidemark_drive::{
    AnswerCheck, AnswerView, DriveOptions, Http2, MOST_BRANCHES, Next, Program, ProgramMessage,
    ProgramRequest, Programs, Protocol,
};
use tidemark_record::Outcome;
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Load, LoadModel, Op};
use tidemark_truth::{Http2Behaviour, Http2Server};

const OWN: u16 = 0;
const PART: u16 = 1;
const HOP: u16 = 2;

fn request(label: u16, path: &str) -> ProgramRequest {
    let timeout = Duration::from_secs(10);
    ProgramRequest { label, method: "GET".into(), path: path.into(), timeout, ..ProgramRequest::default() }
}

fn parts(paths: &[&str]) -> Vec<Step> {
    paths.iter().map(|path| Step::Part(request(PART, path))).collect()
}

/// What a session does, step by step.
#[derive(Debug, Clone)]
enum Step {
    /// A request of its own.
    Own(ProgramRequest),
    Say(ProgramMessage),
    Part(ProgramRequest),
    /// Waits for so many more answers and failures of its parts.
    Wait(usize),
    /// Waits for so long at most.
    Pause(Duration),
}

/// What a session was told: where its requests led and what came of them.
type Told = Arc<Mutex<Vec<(String, Result<u16, Outcome>)>>>;

/// Carries steps out. A part whose answer has the header `next` asks for that, too.
struct Stepping {
    steps: Vec<Step>,
    told: Told,
    has_room: Arc<AtomicBool>,
    /// By session: its next step, and what came of parts that nothing has waited for.
    sessions: HashMap<u32, (usize, usize)>,
    /// By branch: its session, its path and where it goes next.
    branches: HashMap<u32, (u32, String, Option<String>)>,
    begins: String,
}

impl Program for Stepping {
    fn begin(&mut self, session: u32, _: usize) {
        assert!(!self.branches.contains_key(&session), "numbers of branches are no others'");
        self.sessions.insert(session, (0, 0));
    }

    fn next(&mut self, session: u32, _: Duration) -> Next {
        if let Some((_, path, next)) = self.branches.get_mut(&session) {
            let Some(next) = next.take() else { return Next::End };
            path.clone_from(&next);
            return Next::Request(request(HOP, &next));
        }
        let (at, heard) = self.sessions.get_mut(&session).unwrap();
        let Some(step) = self.steps.get(*at).cloned() else { return Next::End };
        if let Step::Wait(many) = step {
            if *heard < many {
                return Next::Await(None);
            }
            *heard -= many;
            *at += 1;
            return Next::Think(Duration::ZERO);
        }
        *at += 1;
        match step {
            Step::Own(request) => Next::Request(request),
            Step::Say(message) => Next::Message(message),
            Step::Pause(time) => Next::Await(Some(time)),
            Step::Part(request) => {
                self.begins.clone_from(&request.path);
                Next::Branch(request)
            }
            Step::Wait(_) => unreachable!("dealt with above"),
        }
    }

    fn branched(&mut self, session: u32, branch: Option<u32>) {
        match branch {
            Some(branch) => {
                assert!(!self.sessions.contains_key(&branch), "numbers of branches are no others'");
                self.branches.insert(branch, (session, self.begins.clone(), None));
            }
            None => self.has_room.store(false, Ordering::SeqCst),
        }
    }

    fn answered(&mut self, session: u32, answer: &AnswerView<'_>) -> AnswerCheck {
        self.came(session, Ok(answer.status()));
        if let Some((_, _, next)) = self.branches.get_mut(&session) {
            *next = answer.header("next").map(|next| String::from_utf8(next.to_vec()).unwrap());
        }
        AnswerCheck::ByStatus
    }

    fn failed(&mut self, session: u32, outcome: Outcome) {
        self.came(session, Err(outcome));
    }
}

impl Stepping {
    fn came(&mut self, session: u32, what: Result<u16, Outcome>) {
        let Some((parent, path, _)) = self.branches.get(&session) else {
            return self.told.lock().unwrap().push(("own".into(), what));
        };
        self.told.lock().unwrap().push((path.clone(), what));
        if let Some((_, heard)) = self.sessions.get_mut(parent) {
            *heard += 1;
        }
    }
}

fn plan(sessions: u64) -> Plan {
    let mut plan = whole_sessions(Vec::new(), sessions);
    plan.labels = ["own", "part", "hop"].map(str::to_owned).into();
    plan.sessions = vec![kind(vec![Op::Program, Op::End])];
    plan
}

fn run_with(plan: Plan, options: DriveOptions, steps: Vec<Step>, has_room: &Arc<AtomicBool>) -> (Sum, Told) {
    let told = Told::default();
    let (noted, has_room) = (told.clone(), has_room.clone());
    let programs = Programs::new(move |_| {
        Box::new(Stepping {
            steps: steps.clone(),
            told: noted.clone(),
            has_room: has_room.clone(),
            sessions: HashMap::new(),
            branches: HashMap::new(),
            begins: String::new(),
        })
    });
    (run_programs(plan, options, programs), told)
}

fn run(plan: Plan, options: DriveOptions, steps: Vec<Step>) -> (Sum, Told) {
    run_with(plan, options, steps, &Arc::new(AtomicBool::new(true)))
}

/// Answers once so many requests are there.
fn answers_together(many: usize) -> Server {
    let come = (Mutex::new(0_usize), Condvar::new());
    Server::start(move |_, stream| {
        let (all, came) = &come;
        let mut all = all.lock().unwrap();
        *all += 1;
        let until = (*all).div_ceil(many) * many;
        came.notify_all();
        let (all, waited) = came.wait_timeout_while(all, Duration::from_secs(5), |all| *all < until).unwrap();
        drop(all);
        answer(stream, if waited.timed_out() { "503 Alone" } else { "200 OK" }, "", "")
    })
}

#[test]
fn parts_of_a_session_are_under_way_at_once() {
    let server = answers_together(5);
    let mut steps = parts(&["/a", "/b", "/c", "/d", "/e"]);
    steps.push(Step::Wait(5));
    let again = steps.clone();
    steps.extend(again);
    let mut plan = plan(3);
    // one session after the other, so that nobody else's requests are answered with its own
    plan.load = Load::new(LoadModel::Closed, vec![phase(60_000, 1.0)]);
    let (sum, told) = run(plan, options(server.address, 1), steps);
    assert_eq!((sum.of(PART, Outcome::Ok), sum.ended()), (30, 30), "{:?}", sum.examples());
    assert_eq!(server.connections(), 5, "connections are given back, and used again");
    let told = told.lock().unwrap();
    assert!(told.iter().all(|(_, what)| *what == Ok(200)), "{told:?}");
    let of = |path| told.iter().filter(|(of, _)| of == path).count();
    assert_eq!(["/a", "/b", "/c", "/d", "/e"].map(of), [6; 5]);
}

#[test]
fn each_part_fails_for_itself() {
    let server = Server::start(|request, stream| match request.target() {
        "/gone" => Then::Reset,
        "/slow" => {
            std::thread::sleep(Duration::from_millis(300));
            answer(stream, "200 OK", "", "")
        }
        "/missing" => answer(stream, "404 Not Found", "", ""),
        _ => answer(stream, "200 OK", "", ""),
    });
    let slow = ProgramRequest { timeout: Duration::from_millis(50), ..request(PART, "/slow") };
    let elsewhere = ProgramRequest { target: 7, ..request(PART, "/elsewhere") };
    let mut steps = parts(&["/gone", "/missing", "/there", "/a b"]);
    steps.extend([Step::Part(slow), Step::Part(elsewhere), Step::Wait(6), Step::Own(request(OWN, "/"))]);
    let (sum, told) = run(plan(2), options(server.address, 1), steps);
    let outcomes = [
        Outcome::Ok,
        Outcome::Reset,
        Outcome::Status,
        Outcome::Timeout,
        Outcome::Protocol,
        Outcome::Unfinished,
    ];
    assert_eq!(outcomes.map(|of| sum.of(PART, of)), [2, 2, 2, 2, 4, 0], "{:?}", sum.examples());
    assert_eq!((sum.of(OWN, Outcome::Ok), sum.ended()), (2, 14));
    let told = told.lock().unwrap();
    for (path, what) in [
        ("/gone", Err(Outcome::Reset)),
        ("/slow", Err(Outcome::Timeout)),
        ("/missing", Ok(404)),
        ("/there", Ok(200)),
        ("/a b", Err(Outcome::Protocol)),
        ("/elsewhere", Err(Outcome::Protocol)),
        ("own", Ok(200)),
    ] {
        assert_eq!(told.iter().filter(|one| **one == (path.to_owned(), what)).count(), 2, "{path}: {told:?}");
    }
}

/// A session that ends, or whose load does, leaves nothing behind: what was due is counted once.
#[test]
fn parts_end_with_their_session_and_with_the_run() {
    let server = Server::silent();
    let mut steps = vec![Step::Part(request(PART, "/a")), Step::Part(request(PART, "/b"))];
    let (sum, told) = run(plan(3), options(server.address, 1), steps.clone());
    assert_eq!((sum.of(PART, Outcome::Unfinished), sum.ended()), (6, 6), "{:?}", sum.examples());
    assert_eq!(told.lock().unwrap().len(), 6);
    for (ends_by, waits) in
        [("a session that waits", Step::Wait(2)), ("one with a request", Step::Own(request(OWN, "/")))]
    {
        let server = Server::silent();
        steps.truncate(2);
        steps.push(waits);
        let mut plan = plan(3);
        plan.limits.sessions = None;
        plan.load.phases[0].duration = Duration::from_millis(300);
        plan.limits.drain = Duration::from_millis(100);
        plan.limits.connections = 1;
        let (sum, _) = run(plan, options(server.address, 1), steps.clone());
        let (parts, own) = (sum.of(PART, Outcome::Unfinished), sum.of(OWN, Outcome::Unfinished));
        assert!(parts > 0 && parts.is_multiple_of(2), "{ends_by}: {parts}");
        assert_eq!((parts + own, sum.ended()), (sum.offered(), sum.offered()), "{ends_by}");
    }
}

/// What is under way when the load ends is waited for; what would have followed never becomes due.
#[test]
fn parts_under_way_at_the_loads_end_are_waited_for() {
    let server = Server::plain(Duration::from_millis(400));
    let mut steps = parts(&["/a", "/b", "/c"]);
    steps.extend([Step::Wait(1), Step::Own(request(OWN, "/"))]);
    let mut plan = plan(1);
    plan.load.phases[0].duration = Duration::from_millis(100);
    let (sum, _) = run(plan, options(server.address, 1), steps);
    assert_eq!((sum.of(PART, Outcome::Ok), sum.ended()), (3, 3), "{:?}", sum.examples());
}

#[test]
fn no_more_parts_than_may_be_are_begun_and_the_others_are_counted() {
    let has_room = Arc::new(AtomicBool::new(true));
    let full = has_room.clone();
    let server = Server::start(move |_, stream| {
        while full.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        answer(stream, "200 OK", "", "")
    });
    let mut steps = vec![Step::Part(request(PART, "/")); MOST_BRANCHES + 7];
    steps.push(Step::Wait(MOST_BRANCHES));
    let (sum, told) = run_with(plan(1), options(server.address, 1), steps, &has_room);
    let most = MOST_BRANCHES as u64;
    assert_eq!((sum.of(PART, Outcome::Ok), sum.dropped()), (most, 7), "{:?}", sum.examples());
    assert_eq!(told.lock().unwrap().len(), MOST_BRANCHES);
}

/// They wait for each other where there is one connection, which their session gives up meanwhile.
#[test]
fn a_session_holds_no_connection_that_its_parts_need() {
    let server = Server::plain(Duration::ZERO);
    let mut steps = vec![Step::Own(request(OWN, "/"))];
    steps.extend(parts(&["/a", "/b", "/c", "/d"]));
    steps.extend([Step::Wait(4), Step::Own(request(OWN, "/"))]);
    let mut plan = plan(3);
    plan.limits.connections = 1;
    let (sum, _) = run(plan, options(server.address, 1), steps);
    let counts = (sum.of(OWN, Outcome::Ok), sum.of(PART, Outcome::Ok), sum.ended());
    assert_eq!((counts, server.connections()), ((6, 12, 18), 1), "{:?}", sum.examples());
}

#[test]
fn parts_go_on_by_themselves_and_share_their_sessions_cookies() {
    let server = Server::start(|request, stream| {
        let has = |name| request.head.lines().any(|line| line.starts_with("Cookie: ") && line.contains(name));
        match request.target() {
            "/a" => answer(stream, "200 OK", "Next: /b\r\nSet-Cookie: first=1\r\n", ""),
            "/b" if has("first=1") => answer(stream, "200 OK", "Next: /c\r\nSet-Cookie: second=2\r\n", ""),
            "/c" | "/own" if has("first=1") && has("second=2") => answer(stream, "200 OK", "", ""),
            _ => answer(stream, "401 Unauthorized", "", ""),
        }
    });
    let steps = vec![Step::Part(request(PART, "/a")), Step::Wait(3), Step::Own(request(OWN, "/own"))];
    let (sum, _) = run(plan(4), options(server.address, 1), steps);
    let counts = [OWN, PART, HOP].map(|of| sum.of(of, Outcome::Ok));
    assert_eq!((counts, sum.ended()), ([4, 4, 8], 16), "{:?}", sum.examples());
}

/// A session waits no longer than it says; nothing that came meanwhile is missed.
#[test]
fn a_wait_for_parts_ends_with_its_time() {
    let server = answers_together(2);
    let steps = vec![
        Step::Part(request(PART, "/a")),
        Step::Pause(Duration::from_millis(20)),
        Step::Part(request(PART, "/b")),
        Step::Pause(Duration::from_secs(3_600)),
        Step::Wait(2),
        // there is nothing to wait for but the time
        Step::Pause(Duration::from_millis(1)),
        Step::Pause(Duration::ZERO),
    ];
    let mut plan = plan(2);
    plan.load = Load::new(LoadModel::Closed, vec![phase(60_000, 1.0)]);
    let (sum, _) = run(plan, options(server.address, 1), steps);
    assert_eq!((sum.of(PART, Outcome::Ok), sum.ended()), (4, 4), "{:?}", sum.examples());
}

#[test]
fn to_wait_for_nothing_ends_the_drive_with_a_reason() {
    let server = Server::plain(Duration::ZERO);
    let (sum, _) = run(plan(1), options(server.address, 1), vec![Step::Wait(1)]);
    let reason = sum.end.script_failed.clone().unwrap_or_default();
    assert!(reason.contains("has none under way"), "{reason}");
}

/// Groups of steps have the requests on branches within them.
#[test]
fn a_group_is_over_with_its_last_part() {
    let server = Server::start(|request, stream| match request.target() {
        "/missing" => answer(stream, "404 Not Found", "", ""),
        _ => answer(stream, "200 OK", "", ""),
    });
    for (path, outcome) in [("/there", Outcome::Ok), ("/missing", Outcome::Status)] {
        let mut plan = plan(5);
        plan.groups = vec!["page".into()];
        plan.sessions[0].ops = vec![Op::BeginGroup(0), Op::Program, Op::EndGroup, Op::End];
        let mut steps = parts(&["/a", path, "/c"]);
        steps.push(Step::Wait(3));
        let (sum, _) = run(plan, options(server.address, 1), steps);
        assert_eq!((sum.groups(0, outcome).len(), sum.ended()), (5, 15), "{:?}", sum.examples());
    }
}

/// A session's stream stays its own while it has branches over the same connection.
#[test]
fn an_open_stream_of_http_2_stays_beside_parts() {
    let server = Http2Server::start(Http2Behaviour::default()).unwrap();
    let mut options = options(server.address(), 1);
    options.targets[0].protocol = Protocol::Http2(Http2 { most_streams: usize::MAX });
    let open = ProgramRequest {
        method: "POST".into(),
        stays_open: true,
        body: Some("a".into()),
        ..request(OWN, "/stream")
    };
    let (label, timeout) = (OWN, Duration::from_secs(10));
    let close = ProgramMessage { label, timeout, data: Vec::new(), ends: true, awaits: true };
    let mut steps = vec![Step::Own(open)];
    steps.extend(parts(&["/status/200", "/status/201", "/status/202"]));
    steps.extend([Step::Wait(3), Step::Say(close)]);
    let mut plan = plan(10);
    (plan.limits.connections, plan.limits.streams) = (1, 10);
    let (sum, told) = run(plan, options, steps);
    let counts = (sum.of(OWN, Outcome::Ok), sum.of(PART, Outcome::Ok), sum.ended());
    assert_eq!(counts, (20, 30, 50), "{:?}\n{:?}", sum.examples(), told.lock().unwrap());
    let truth = server.stop().unwrap();
    assert_eq!((truth.requests, truth.connections), (40, 1));
}

/// A plan of these steps.
fn of_steps(steps: &str, sessions: u64) -> Plan {
    let text = format!("sessions: {{one: {{steps: [{steps}]}}}}\nload: {{rate: 100/s, hold: 1m}}\n");
    let mut plan = load(&text);
    (plan.limits.connections, plan.limits.sessions) = (20, Some(sessions));
    plan
}

fn labelled(sum: &Sum, plan: &Plan, outcome: Outcome) -> Vec<(String, u64)> {
    let label = |(index, name): (usize, &String)| (name.clone(), sum.of(index as u16, outcome));
    plan.labels.iter().enumerate().map(label).filter(|(_, count)| *count > 0).collect()
}

#[test]
fn requests_of_a_parallel_step_leave_at_once_and_what_they_extract_is_kept() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (noted, together) = (asked.clone(), (Mutex::new(0), Condvar::new()));
    let server = Server::start(move |request, stream| {
        noted.lock().unwrap().push(request.target().to_owned());
        if !request.target().starts_with("/part") {
            return answer(stream, "200 OK", "", r#"{"first": "f"}"#);
        }
        let (all, came) = &together;
        let mut all = all.lock().unwrap();
        *all += 1;
        came.notify_all();
        let (all, waited) = came.wait_timeout_while(all, Duration::from_secs(5), |all| *all < 3).unwrap();
        drop(all);
        let status = if waited.timed_out() { "503 Alone" } else { "200 OK" };
        answer(
            stream,
            status,
            "",
            &format!(r#"{{"is": "{}"}}"#, request.target().trim_start_matches("/part/")),
        )
    });
    let steps = "{GET: /, extract: {own: $.first}}, \
                 {parallel: [{GET: '/part/a-${own}', label: a, extract: {a: $.is}}, \
                 {GET: '/part/b-${own}', label: b, extract: {b: $.is}}, \
                 {GET: '/part/c', label: c, check: {json: {$.is: no}}, extract: {c: $.is}}]}, \
                 {GET: '/after/${own}/${a}/${b}/${exists(c)}', label: after}";
    let plan = of_steps(steps, 1);
    let sum = finish(begin(plan.clone(), options(server.address, 1)));
    let ok = labelled(&sum, &plan, Outcome::Ok);
    let ok: Vec<&str> = ok.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!((ok, sum.ended()), (vec!["GET /", "a", "b", "after"], 5), "{:?}", sum.examples());
    assert_eq!(labelled(&sum, &plan, Outcome::Check), [("c".to_owned(), 1)]);
    assert_eq!(asked.lock().unwrap().last().unwrap(), "/after/f/a-f/b-f/false");
}

#[test]
fn a_parallel_step_has_no_more_under_way_than_it_says() {
    let (server, most) = Server::counting(Duration::from_millis(20));
    let mut plan =
        of_steps("{parallel: [GET: /1, GET: /2, GET: /3, GET: /4, GET: /5], at most: 2}, {GET: /}", 1);
    plan.limits.keep_alive = false;
    let sum = finish(begin(plan, options(server.address, 1)));
    assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (6, 6), "{:?}", sum.examples());
    assert!((1..=2).contains(&most.load(Ordering::SeqCst)));
}

/// Redirects, cookies and groups, with one connection for all: nobody waits for ever.
#[test]
fn a_parallel_step_is_as_any_other() {
    let server = Server::start(|request, stream| match request.target() {
        "/from" => answer(stream, "302 Found", "Location: /to\r\nSet-Cookie: id=1\r\n", ""),
        "/after" if !request.head.contains("Cookie: id=1") => answer(stream, "401 Unauthorized", "", ""),
        _ => answer(stream, "200 OK", "", ""),
    });
    let steps = "{GET: /}, {group: page, steps: [{parallel: [{GET: /from, follow: 2}, GET: /b, GET: /c, GET: /d]}]}, {GET: /after}";
    let mut plan = of_steps(steps, 20);
    plan.limits.connections = 1;
    let sum = finish(begin(plan, options(server.address, 1)));
    assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (120, 120), "{:?}", sum.examples());
    assert_eq!((sum.groups(0, Outcome::Ok).len(), server.connections()), (20, 1));
}

#[test]
fn a_parallel_step_ends_with_the_run() {
    let server = Server::silent();
    for at_most in ["", ", at most: 1"] {
        let mut plan =
            of_steps(&format!("{{parallel: [GET: /1, GET: /2, GET: /3]{at_most}}}, {{GET: /}}"), 3);
        plan.limits.sessions = None;
        plan.load.phases[0].duration = Duration::from_millis(300);
        plan.limits.drain = Duration::from_millis(100);
        let sum = finish(begin(plan, options(server.address, 1)));
        assert_eq!((sum.outcome(Outcome::Unfinished), sum.dropped()), (sum.offered(), 0), "{at_most}");
        assert!(sum.offered() > 0);
    }
}
