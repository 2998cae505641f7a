//! What is told: parts of a plan that have no counterpart, and those that are not known at all.

use super::{Making, has_request, shown};
use crate::left_out::LeftOut;
use crate::xml::Element;

/// Most parts that are told each.
const TOLD_MAX: usize = 10_000;
/// What may stand in an element of a session.
const STEPS: &[&str] = &[
    "request",
    "thinktime",
    "transaction",
    "setdynvars",
    "for",
    "repeat",
    "while",
    "until",
    "if",
    "foreach",
    "change_type",
    "set_option",
    "interaction",
    "abort",
];

/// The elements that may stand in another; none where it is told as a whole.
fn children_of(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "tsung" => &["information", "clients", "servers", "monitoring", "load", "options", "sessions"],
        "information" => &["name", "description", "username", "organisation"],
        "clients" => &["client"],
        "client" => &["ip", "iprange"],
        "servers" => &["server"],
        "monitoring" => &["monitor"],
        "monitor" => &["snmp", "munin", "mysqladmin"],
        "load" => &["arrivalphase", "user"],
        "arrivalphase" => &["users", "session_setup"],
        "options" => &["option"],
        "option" => &["user_agent"],
        "sessions" => &["session"],
        "session" | "transaction" | "for" | "repeat" | "if" | "foreach" => STEPS,
        "request" => &[
            "match",
            "dyn_variable",
            "http",
            "websocket",
            "pgsql",
            "jabber",
            "raw",
            "mysql",
            "ldap",
            "fs",
            "shell",
            "job",
            "amqp",
            "mqtt",
        ],
        "http" => &["oauth", "www_authenticate", "soap", "http_header", "add_cookie"],
        "setdynvars" => &["var"],
        "jabber" | "ldap" | "snmp" | "munin" | "set_option" => return None,
        _ => &[],
    })
}

impl Making<'_> {
    /// Tells the elements that are not known and that no other part has told.
    pub(super) fn audit(&mut self, root: &Element) {
        self.audited(root, false);
    }

    fn audited(&mut self, element: &Element, in_sessions: bool) {
        let Some(known) = children_of(&element.name) else { return };
        let in_sessions = in_sessions || element.name == "sessions";
        for child in &element.children {
            let is_told = self.unknown.contains(&std::ptr::from_ref(child).addr());
            if known.contains(&child.name.as_str()) {
                self.audited(child, in_sessions);
            } else if !is_told {
                self.unknown(child, in_sessions);
            }
        }
    }

    pub(super) fn tell(&mut self, element: &Element, would: impl Into<String>, is_request: bool) {
        let name = ["name", "host", "type", "id", "url", "session"]
            .iter()
            .find_map(|name| element.attribute(name))
            .filter(|name| !name.trim().is_empty());
        let name = name.map_or(String::new(), |name| format!(" {}", shown(name)));
        self.left_out(element.line, format!("<{}{name}>", shown(&element.name)), would.into(), is_request);
    }

    pub(super) fn left_out(&mut self, line: usize, element: String, would: String, is_request: bool) {
        match self.left_out.len() {
            TOLD_MAX.. => {
                if is_request && let Some(last) = self.left_out.last_mut() {
                    last.is_request = true;
                }
            }
            length if length + 1 == TOLD_MAX => {
                let would = format!("done more that is not here: only {TOLD_MAX} parts are told");
                self.left_out.push(LeftOut { line, element, would, is_request: true, setting: None });
            }
            _ => self.left_out.push(LeftOut { line, element, would, is_request, setting: None }),
        }
    }

    /// Tells the attributes of an element that are not known.
    pub(super) fn known(&mut self, element: &Element, known: &[&str]) {
        for (name, value) in &element.attributes {
            // `xmlns` and the like say nothing of what is done
            if !known.contains(&name.as_str()) && !name.starts_with("xml") {
                let would = format!("had {}={:?}, which is not known", shown(name), shown(value));
                self.tell(element, would, false);
            }
        }
    }

    /// Tells an element that is not known; `may_send` where requests can stand.
    pub(super) fn unknown(&mut self, element: &Element, may_send: bool) {
        self.unknown.insert(std::ptr::from_ref(element).addr());
        self.tell(element, "done something that is not known here", may_send || has_request(element));
    }
}
