//! Sessions that run code between their requests, by a closure of Rust.

use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Server, Sum, begin, finish, get, options, refused, whole_sessions};
use tidemark_drive::{Code, CodeVariables, Codes, DriveError, DriveOptions, LastAnswer};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::plan::{ALL_SHOWN, CodePlan, Op};
use tidemark_scenario::{Plan, Slot, Value};

/// Does with the number of the code, the answer and the variables what it is told.
struct Told<F>(F);

impl<F> Code for Told<F>
where
    F: FnMut(usize, Option<&Rc<LastAnswer>>, &mut dyn CodeVariables) -> Result<(), String>,
{
    fn run(
        &mut self,
        code: usize,
        answer: Option<&Rc<LastAnswer>>,
        variables: &mut dyn CodeVariables,
    ) -> Result<(), String> {
        (self.0)(code, answer, variables)
    }
}

fn good(sum: &Sum) -> u64 {
    sum.outcome(Outcome::Ok)
}

/// Sessions of: code, a request, code, a request; with one variable.
fn of_codes(sessions: u64) -> Plan {
    let mut plan = whole_sessions(vec![get(0, "/"), get(0, "/")], sessions);
    plan.requests.iter_mut().for_each(|request| request.shown_body_bytes = ALL_SHOWN);
    let code = CodePlan {
        text: "".into(),
        variables: Vec::new(),
        reads_answer: true,
        file: "t.yaml".into(),
        places: vec![(1, 1)],
    };
    plan.codes = vec![code; 2];
    let run = |code| Op::Code { code, reads_answer: true };
    plan.sessions[0].slots = 1;
    plan.sessions[0].slot_names = vec!["n".into()];
    plan.sessions[0].ops = vec![run(0), Op::Request(0), run(1), Op::Request(1), Op::End];
    plan
}

fn codes<F>(told: F) -> Option<Codes>
where
    F: FnMut(usize, Option<&Rc<LastAnswer>>, &mut dyn CodeVariables) -> Result<(), String>
        + Clone
        + Send
        + Sync
        + 'static,
{
    Some(Codes::new(move |_| Box::new(Told(told.clone()))))
}

#[test]
fn code_sees_the_last_answer_and_the_variables_of_its_own_session() {
    let server = Server::plain(Duration::ZERO);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let codes = codes(move |code, answer, variables| {
        let before = match variables.get(0) {
            Value::Int(before) => before,
            _ => -1,
        };
        let mut made = Slot::default();
        made.set_int(before + 10);
        assert!(variables.put(0, &mut made));
        let answer = answer.map(|answer| (answer.status(), !answer.head().is_empty(), answer.body().len()));
        told.lock().unwrap().push((code, before, answer));
        Ok(())
    });
    let sum = finish(begin(of_codes(3), DriveOptions { codes, ..options(server.address, 1) }));
    assert_eq!(good(&sum), 6, "{:?}", sum.examples());
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 6);
    for (code, before, answer) in seen.iter() {
        let (_, _, body) = answer.unwrap_or_default();
        let expected = if *code == 0 { (-1, None) } else { (9, Some((200, true, body))) };
        assert_eq!((*before, *answer), expected, "no session sees another one's");
    }
}

#[test]
fn code_that_fails_is_a_failed_step_and_the_session_goes_on() {
    let server = Server::plain(Duration::ZERO);
    let codes = codes(|code, _, _| if code == 1 { Err("no luck (t.yaml:7:3)".into()) } else { Ok(()) });
    let sum = finish(begin(of_codes(3), DriveOptions { codes, ..options(server.address, 1) }));
    assert_eq!((good(&sum), sum.ended()), (6, 6), "both requests of each session");
    assert_eq!(sum.in_intervals(Counter::FailedSteps), 3);
    let examples = sum.examples();
    assert!(examples.iter().any(|example| example.detail == "js: no luck (t.yaml:7:3)"), "{examples:?}");
}

#[test]
fn long_code_counts_as_computing() {
    const TAKES: Duration = Duration::from_millis(30);
    let server = Server::plain(Duration::ZERO);
    let codes = codes(|code, _, _| {
        if code == 1 {
            std::thread::sleep(TAKES);
        }
        Ok(())
    });
    let sum = finish(begin(of_codes(1), DriveOptions { codes, ..options(server.address, 1) }));
    assert_eq!(good(&sum), 2);
    assert!(sum.in_intervals(Counter::ComputingUs) >= TAKES.as_micros() as u64);
}

#[test]
fn code_that_nothing_runs_is_refused() {
    let server = Server::plain(Duration::ZERO);
    let error = refused(of_codes(1), options(server.address, 1));
    assert!(matches!(error, DriveError::Code { .. }), "{error:?}");
    let mut plan = of_codes(1);
    plan.codes.clear();
    let error = refused(plan, DriveOptions { codes: codes(|_, _, _| Ok(())), ..options(server.address, 1) });
    assert!(matches!(error, DriveError::Op { op: 0, .. }), "{error:?}");
}
