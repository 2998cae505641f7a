//! Remote calls, and what cannot stand beside them.

use tidemark_wire::rpc::NAME_BYTES_MAX;

use super::Session;
use super::request::Requests;
use crate::plan::{Ask, CALL, Call, HttpVersion, Op, RequestPlan};
use crate::reader::Reader;
use crate::template::Template;
use crate::yaml::{Content, Node};

impl Session<'_, '_> {
    /// A step that makes a call.
    pub(super) fn call(&mut self, step: &Node, method: &Node) {
        let name = self.method(method);
        let Some(label) = self.label_or(step, || format!("{CALL} {name}")) else { return };
        let timeout = self.timeout(step);
        // The server is told the time in milliseconds, of which a call has at least one.
        let deadline_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX).max(1);
        let (arguments, ledger) = self.entered(step, |session| session.arguments(step.get("args")));
        let plan = RequestPlan {
            label,
            ask: Ask::Call(Call { method: name, deadline_ms, arguments }),
            ledger,
            timeout,
            extractions: self.extractions(step.get("extract")),
            checks: self.checks(step.get("check")),
        };
        self.check_headless(step, &plan, "the answer to a call has neither headers nor cookies");
        if let Some(index) = self.add_request(step, plan) {
            self.connection_uses.push((self.ops.len(), step.place));
            self.ops.push(Op::Request(index));
        }
    }

    /// A method's name; reports one that cannot be.
    fn method(&self, node: &Node) -> String {
        let name = self.reader.text(node).unwrap_or_default();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let parts =
            name.split_once('.').filter(|(service, method)| !service.is_empty() && !method.is_empty());
        if parts.is_none() || !name.bytes().all(is_name) || name.len() > NAME_BYTES_MAX {
            let message = format!("\"{name}\" cannot be a method's name; write service.method");
            self.reader.sink.error(node, message);
        }
        name
    }

    /// The arguments as an array.
    fn arguments(&mut self, node: Option<&Node>) -> Template {
        let mut arguments = Template::default();
        match node {
            None => arguments.push_literal(b"[]"),
            Some(list) if matches!(list.content, Content::List(_)) => self.json(list, &mut arguments),
            Some(only) => {
                arguments.push_literal(b"[");
                self.json(only, &mut arguments);
                arguments.push_literal(b"]");
            }
        }
        arguments
    }
}

/// Reports what cannot stand beside calls; whether there are any.
pub(super) fn check(root: &Node, requests: &Requests, http: HttpVersion, reader: &Reader<'_>) {
    let get = |first: &str, second: &str| root.get(first)?.entry(second);
    let Some(place_of_call) = requests.first_call else {
        if let Some((key, _)) = get("system", "rpc") {
            reader.sink.warn(key.place, "no step is a CALL, so nothing is called there".to_owned());
        }
        return;
    };
    if let Some(place) = requests.first_other.or(requests.first_redis) {
        let message = format!(
            "calls and requests are not made over the same connections, and line {} makes a call; leave out one of \
             the two",
            place_of_call.line
        );
        reader.sink.error_at(place, message);
    }
    if let Some((key, _)) = get("defaults", "headers") {
        reader.sink.error(key, "calls have no headers");
    }
    if let Some((key, _)) = get("limits", "pipeline") {
        let message = "calls are not pipelined; `streams` says how many a connection carries at once";
        reader.sink.error(key, message);
    }
    if let Some((key, value)) = get("limits", "keep alive")
        && reader.bool(value) == Some(false)
    {
        reader.sink.error(key, "calls share connections, which stay open");
    }
    if http == HttpVersion::Two
        && let Some((key, _)) = get("system", "http")
    {
        reader.sink.error(key, "calls go over a WebSocket, which begins with HTTP/1.1; leave this out");
    }
}
