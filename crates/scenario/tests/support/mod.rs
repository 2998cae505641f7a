//! A small interpreter of plans: what the driver does, without sockets, clocks and threads.

use std::path::Path;

use tidemark_scenario::plan::{Check, Extraction, Op, Plan, SessionKind, Source, TextTest, WhenMissing};
use tidemark_scenario::{Context, Diagnostics, Shared, Slot, check_text, load_text};
use tidemark_wire::json;

/// What a text is compiled to.
pub fn load(text: &str) -> Result<Plan, Diagnostics> {
    load_text("t.yaml", text, Path::new("."), &[])
}

/// The same, and what is told of it, warnings included.
pub fn checked(text: &str) -> (Option<Plan>, Diagnostics) {
    check_text("t.yaml", text, Path::new("."), &[])
}

/// A session of these steps, with what stands before and behind it.
pub fn scenario(before: &str, steps: &str, behind: &str) -> String {
    let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
    format!("{before}sessions:\n  a:\n    steps:\n{steps}load: {{users: 1, hold: 1s}}\n{behind}")
}

/// The first line of each mistake in a text with `old` replaced by `new`.
pub fn told_in(good: &str, old: &str, new: &str) -> String {
    assert!(good.contains(old), "{old}");
    let text = good.replacen(old, new, 1);
    let diagnostics = load(&text).err().unwrap_or_else(|| panic!("this loads:\n{text}"));
    let first = |item: &dyn ToString| item.to_string().lines().next().unwrap_or_default().to_owned();
    diagnostics.items().iter().map(|item| first(item)).collect::<Vec<_>>().join("\n")
}

/// 2026-11-21 00:00 UTC.
pub const EPOCH_MS: i64 = 1_795_219_200_000;

/// A request as it would go out.
pub struct Sent {
    pub label: String,
    pub method: String,
    pub target: String,
    pub head: String,
    pub body: String,
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// What all users share.
pub struct World<'p> {
    pub plan: &'p Plan,
    pub shared: Shared,
    pub random: fastrand::Rng,
    /// Labels of requests whose checks failed, and why.
    pub failures: Vec<String>,
}

impl<'p> World<'p> {
    pub fn new(plan: &'p Plan, seed: u64) -> Self {
        let shared = Shared::of(plan);
        World { plan, shared, random: fastrand::Rng::with_seed(seed), failures: Vec::new() }
    }
}

/// One virtual user in the middle of a session.
pub struct User<'p> {
    kind: &'p SessionKind,
    pub slots: Vec<Slot>,
    spare: Slot,
    at: usize,
}

impl<'p> User<'p> {
    pub fn new(kind: &'p SessionKind) -> Self {
        User { kind, slots: vec![Slot::default(); kind.slots], spare: Slot::default(), at: 0 }
    }

    /// Goes on until one request was answered (true) or the session ended (false; it begins anew).
    pub fn step(&mut self, world: &mut World<'p>, answer: &mut dyn FnMut(&Sent) -> Answer) -> bool {
        for _ in 0..100_000 {
            let mut cx = Context {
                slots: &self.slots,
                shared: &world.shared,
                random: &mut world.random,
                epoch_ms: EPOCH_MS,
            };
            match &self.kind.ops[self.at] {
                Op::Request(index) => {
                    self.at += 1;
                    self.request(usize::from(*index), world, answer);
                    return true;
                }
                Op::Set { slot, value } => {
                    value.eval_into(&mut cx, &mut self.spare);
                    std::mem::swap(&mut self.spare, &mut self.slots[usize::from(*slot)]);
                    self.at += 1;
                }
                Op::Take { feeder, row } => {
                    // users come one after the other here: nobody is in another's way
                    let taken = world.shared.hold_row(*feeder).expect("a row is free");
                    world.shared.give_back(*feeder, taken);
                    self.slots[usize::from(*row)].set_int(taken as i64);
                    self.at += 1;
                }
                Op::Jump(to) => self.at = *to as usize,
                Op::JumpUnless { condition, to } => {
                    self.at = if condition.is_true(&mut cx) { self.at + 1 } else { *to as usize };
                }
                Op::JumpUnlessGood(_) => self.at += 1,
                Op::Choose { ways, total, counter: _ } => {
                    let draw = world.random.u32(..*total);
                    let way = ways.iter().find(|(below, _)| draw < *below).expect("bounds reach the total");
                    self.at = way.1 as usize;
                }
                Op::Think(time) => {
                    time.duration_us(&mut cx);
                    self.at += 1;
                }
                Op::BeginGroup(_)
                | Op::EndGroup
                | Op::Measure { .. }
                | Op::Refuse { .. }
                | Op::Code { .. }
                | Op::Parallel { .. }
                | Op::Program => self.at += 1,
                Op::End => {
                    self.at = 0;
                    self.slots.iter_mut().for_each(Slot::clear);
                    return false;
                }
            }
        }
        panic!("the session neither sends nor ends");
    }

    fn request(&mut self, index: usize, world: &mut World<'p>, answer: &mut dyn FnMut(&Sent) -> Answer) {
        let request = &world.plan.requests[index];
        let mut cx = Context {
            slots: &self.slots,
            shared: &world.shared,
            random: &mut world.random,
            epoch_ms: EPOCH_MS,
        };
        let (mut head, mut body) = (Vec::new(), Vec::new());
        let http = request.http().expect("a request of HTTP");
        let mut made = http.head("", "").render(&mut cx, &mut head);
        if let (Ok(()), Some(template)) = (&made, &http.body) {
            made = template.render(&mut cx, &mut body);
        }
        if let Err(unmet) = made {
            let label = &world.plan.labels[usize::from(request.label)];
            return world.failures.push(format!("{label}: not sent: {unmet:?}"));
        }
        let head = String::from_utf8(head).expect("heads are text");
        let mut line = head.lines().next().expect("a request line").split(' ');
        let sent = Sent {
            label: world.plan.labels[usize::from(request.label)].clone(),
            method: line.next().unwrap_or_default().to_owned(),
            target: line.next().unwrap_or_default().to_owned(),
            body: String::from_utf8(body).expect("these bodies are text"),
            head: head.clone(),
        };
        assert_eq!((line.next(), line.next()), (Some("HTTP/1.1"), None), "{}", sent.head);
        assert!(sent.head.ends_with("\r\n") && !sent.head.contains("\r\n\r\n"), "{:?}", sent.head);
        let answer = answer(&sent);
        for extraction in &request.extractions {
            if !self.extract(extraction, &answer) && extraction.when_missing == WhenMissing::Fail {
                world.failures.push(format!("{}: nothing to extract", sent.label));
            }
        }
        let mut cx = Context {
            slots: &self.slots,
            shared: &world.shared,
            random: &mut world.random,
            epoch_ms: EPOCH_MS,
        };
        let wrong = request.checks.iter().find(|check| !holds(check, &answer, &mut cx));
        let status_checked = request.checks.iter().any(|check| matches!(check, Check::Status(_)));
        if let Some(check) = wrong {
            world.failures.push(format!("{}: {check:?}", sent.label));
        } else if !status_checked && answer.status >= 400 {
            world
                .failures
                .push(format!("{}: status {}: {} {}", sent.label, answer.status, sent.target, sent.body));
        }
    }

    fn extract(&mut self, extraction: &Extraction, answer: &Answer) -> bool {
        let slot = &mut self.slots[usize::from(extraction.slot)];
        let body = answer.body.as_bytes();
        let found = match &extraction.source {
            Source::Json(path) => match path.find(body).ok().flatten().filter(|token| *token != b"null") {
                Some(token) => {
                    json::write_text(token, slot.text_mut());
                    true
                }
                None => false,
            },
            Source::JsonAll(path) => {
                slot.start_list();
                let mut text = Vec::new();
                let all = path.find_all(body, &mut |token| {
                    text.clear();
                    json::write_text(token, &mut text);
                    slot.push_item(&text);
                });
                all.is_ok()
            }
            Source::JsonCount(path) => {
                slot.set_int(path.count(body).unwrap_or(0) as i64);
                true
            }
            Source::Status => {
                slot.set_int(i64::from(answer.status));
                true
            }
            Source::Body => {
                slot.set_text(body);
                true
            }
            Source::Regex(regex, group) => match regex.captures(body).and_then(|found| found.get(*group)) {
                Some(found) => {
                    slot.set_text(found.as_bytes());
                    true
                }
                None => false,
            },
            Source::Header(_) | Source::Cookie(_) => false,
        };
        if !found && extraction.when_missing != WhenMissing::Keep {
            slot.clear();
        }
        found
    }
}

fn holds(check: &Check, answer: &Answer, cx: &mut Context<'_>) -> bool {
    match check {
        Check::Status(ranges) => ranges.iter().any(|(low, high)| (*low..=*high).contains(&answer.status)),
        Check::Body(test) => text_holds(test, Some(answer.body.as_bytes()), cx),
        Check::Json(path, test) => {
            let mut text = Vec::new();
            let token = path.find(answer.body.as_bytes()).ok().flatten();
            if let Some(token) = token {
                json::write_text(token, &mut text);
            }
            text_holds(test, token.map(|_| text.as_slice()), cx)
        }
        Check::Value { .. } | Check::JsonValue(..) => true,
        Check::Holds(expr, _) => expr.is_true(cx),
        Check::Header(..) => true,
    }
}

fn text_holds(test: &TextTest, text: Option<&[u8]>, cx: &mut Context<'_>) -> bool {
    let Some(text) = text else { return false };
    let mut wanted = Vec::new();
    match test {
        TextTest::Exists => true,
        TextTest::Matches(regex) => regex.is_match(text),
        TextTest::Equals(template) => {
            template.render(cx, &mut wanted).unwrap();
            wanted == text
        }
        TextTest::Contains(template) => {
            template.render(cx, &mut wanted).unwrap();
            wanted.is_empty() || text.windows(wanted.len()).any(|window| window == wanted)
        }
    }
}
