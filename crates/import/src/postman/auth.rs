//! Credentials of requests, their own or those of a folder or the collection.

use tidemark_scenario::source::{Map, Request, Value};
use tidemark_wire::http1::is_token;

use super::Making;
use crate::add_header;
use crate::holes::Place;
use crate::plan::shown;
use crate::tree::{Content, Node};

impl Making<'_> {
    /// What `defaults` can have: `basic` or `bearer`.
    pub(super) fn simple_auth(&mut self, auth: &Node) -> Option<Value> {
        let kind = auth.text("type").unwrap_or_default();
        let part = |name: &str| parameter(auth, kind, name);
        let made = match kind {
            "basic" => {
                let (user, password) = (self.text(&part("username")), self.text(&part("password")));
                self.draft.basic(auth.line, "auth", &user, &password)?
            }
            "bearer" | "oauth2" => {
                let name = if kind == "bearer" { "token" } else { "accessToken" };
                let is_query = kind == "oauth2" && part("addTokenTo") == "queryParams";
                if is_query || part(name).is_empty() {
                    return None;
                }
                let token = self.text(&part(name));
                Map::from([("bearer", self.draft.value("token", &token))])
            }
            _ => return None,
        };
        auth.done();
        Some(made.into())
    }

    /// Puts the credentials into a request.
    pub(super) fn auth(
        &mut self,
        own: Option<&Node>,
        above: Option<&Node>,
        element: &str,
        made: &mut Request,
    ) {
        let header =
            made.headers.entries().iter().find(|entry| entry.key.eq_ignore_ascii_case("authorization"));
        let header = header.map(|entry| entry.key.clone());
        let is_common = self.outermost_auth.is_some()
            && own.is_none()
            && above.is_some_and(|node| self.is_outermost(node));
        // Postman puts its own header in the place of one that is there
        if let (true, Some(header)) = (is_common, &header) {
            made.headers.remove(header);
        }
        let Some(auth) = own.or(above).filter(|_| !is_common) else { return };
        let has_common = self.outermost_auth.is_some() && header.is_none();
        let kind = auth.text("type").unwrap_or_default().to_owned();
        if kind == "noauth" {
            auth.done();
            if has_common {
                made.other.insert("auth", "none");
            }
            return;
        }
        if let Some(simple) = self.simple_auth(auth) {
            header.iter().for_each(|header| drop(made.headers.remove(header)));
            made.other.insert("auth", simple);
            return;
        }
        if has_common {
            made.other.insert("auth", "none");
        }
        auth.done();
        let is_token_in_query = kind == "oauth2" && !parameter(auth, &kind, "accessToken").is_empty();
        if kind != "apikey" && !is_token_in_query {
            let would = format!("signed the request by {:?}: it is sent without", shown(&kind));
            return self.draft.tell(auth.line, element, would, true);
        }
        let (name, value) = match is_token_in_query {
            true => ("access_token".to_owned(), parameter(auth, &kind, "accessToken")),
            false => (parameter(auth, &kind, "key"), parameter(auth, &kind, "value")),
        };
        let is_query = is_token_in_query || parameter(auth, &kind, "in") == "query";
        if name.is_empty() || !is_query && !is_token(name.as_bytes()) {
            let would = format!("sent a key as {:?}, which is no name", shown(&name));
            return self.draft.tell(auth.line, element, would, true);
        }
        let value = self.text(&value);
        let value = match value.literal() {
            // whatever it is called
            Some(literal) if !literal.is_empty() => {
                format!("${{{}}}", self.draft.secret(&name, literal))
            }
            _ => self.draft.value(&name, &value),
        };
        let name = self.text(&name).write(Place::Raw);
        if is_query {
            made.query.insert(name, value);
        } else {
            add_header(&mut made.headers, &name, value);
        }
    }

    /// Whether credentials are those of the collection, which stand in `defaults`.
    fn is_outermost(&self, node: &Node) -> bool {
        self.outermost_auth == Some(std::ptr::from_ref(node).addr())
    }
}

/// A part of credentials: of a list, or of an object as version 2.0 has it.
fn parameter(auth: &Node, kind: &str, name: &str) -> String {
    let of = auth.get(kind);
    let value = match of.map(|of| &of.content) {
        Some(Content::List(items)) => {
            items.iter().rfind(|item| item.text("key") == Some(name)).and_then(|item| item.text("value"))
        }
        Some(Content::Map(_)) => of.and_then(|of| of.text(name)),
        _ => None,
    };
    value.unwrap_or_default().to_owned()
}
