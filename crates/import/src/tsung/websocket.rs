//! Messages over a WebSocket.

use tidemark_scenario::source::{Map, Step, Value, verbatim};

use super::answer::Kind;
use super::http::Common;
use super::machines::Server;
use super::steps::{State, close, set};
use super::{Making, shown};
use crate::holes::Place;
use crate::xml::Element;

impl Making<'_> {
    pub(super) fn websocket(
        &mut self,
        request: &Element,
        element: &Element,
        common: &Common,
        state: &mut State,
    ) -> Option<Vec<Step>> {
        self.known(element, &["type", "ack", "frame", "origin", "subprotocols", "path"]);
        element.children.iter().for_each(|child| self.unknown(child, false));
        let of = |name: &str| element.attribute(name).filter(|value| !value.is_empty());
        let mut step = Map::new();
        self.has_http = true;
        match of("type").unwrap_or_default() {
            "connect" => {
                let path = self.text(element, of("path").unwrap_or("/"), common.subst, state);
                let path = path.write(Place::Path);
                let slash = if path.starts_with(['/', '$']) { "" } else { "/" };
                let origin = match &state.base {
                    Some(server) if state.base != self.server => verbatim(&Server::origin(server)),
                    _ => String::new(),
                };
                step.insert("ws connect", format!("{origin}{slash}{path}"));
                if let Some(origin) = of("origin") {
                    let origin = self.text(element, origin, common.subst, state).write(Place::Raw);
                    step.insert("headers", Map::from([("Origin", origin)]));
                }
                if let Some(names) = of("subprotocols") {
                    let names: Vec<Value> =
                        names.split(',').map(|name| verbatim(name.trim()).into()).collect();
                    step.insert("subprotocol", Value::List(names));
                }
                let mut steps = self.left(element, state);
                state.open = Some(state.base.clone());
                let mut answer = self.answer(request, Kind::Http, state);
                if !answer.extract.is_empty() {
                    step.insert("extract", std::mem::take(&mut answer.extract));
                }
                let check = answer.checks();
                if !check.is_empty() {
                    step.insert("check", check);
                }
                tag(&mut step, common);
                steps.extend(answer.around(Step::Other(step), self));
                Some(steps)
            }
            "message" if state.open.is_none() => {
                self.tell(element, "sent a message, but no connect stands before it", true);
                None
            }
            "message" => {
                let text = self.text(element, element.text.trim(), common.subst, state);
                let text = self.open(element, &text);
                // what is not said goes as a binary message
                if of("frame") == Some("text") {
                    step.insert("ws send", Map::from([("text", text)]));
                } else {
                    step.insert("ws send", Map::from([("binary", text)]));
                }
                let mut answer = self.answer(request, Kind::Message, state);
                let mut behind = Vec::new();
                if of("ack") == Some("no_ack") {
                    let extract = std::mem::take(&mut answer.extract);
                    if !extract.is_empty() || !answer.check.is_empty() {
                        self.tell(
                            element,
                            "looked for something in an answer that it does not wait for",
                            false,
                        );
                    }
                    behind.extend(extract.entries().iter().map(|entry| set(&entry.key, "")));
                } else {
                    let check = answer.checks();
                    step.insert("expect", if check.is_empty() { Value::from("any") } else { check.into() });
                    if !answer.extract.is_empty() {
                        step.insert("extract", std::mem::take(&mut answer.extract));
                    }
                }
                tag(&mut step, common);
                let mut steps = answer.around(Step::Other(step), self);
                steps.splice(1..1, behind);
                Some(steps)
            }
            "close" if state.open.take().is_some() => {
                // with this reason Tsung does
                let close = Map::from([("ws close", Value::from(1000u64)), ("reason", "close".into())]);
                Some(vec![Step::Other(close)])
            }
            "close" => {
                self.tell(element, "closed a WebSocket, but no connect stands before it", false);
                None
            }
            other => {
                self.tell(element, format!("done {:?} over a WebSocket", shown(other)), true);
                None
            }
        }
    }

    /// Leaves a WebSocket that is open where a request is to go.
    pub(super) fn left(&mut self, element: &Element, state: &mut State) -> Vec<Step> {
        if state.open.as_ref() != Some(&state.base) {
            return Vec::new();
        }
        state.open = None;
        if state.is_kept {
            self.tell(element, "kept the WebSocket open meanwhile: it is closed before this request", false);
        }
        vec![close()]
    }
}

fn tag(step: &mut Map, common: &Common) {
    if !common.tags.is_empty() {
        step.insert("tags", common.tags.clone());
    }
}
