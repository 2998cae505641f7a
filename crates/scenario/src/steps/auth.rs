//! Authentication: the header `Authorization` of a request.

use crate::compile::Session;
use crate::expr::{self, Expr, function};
use crate::grammar::Scalar::{Template, Word};
use crate::grammar::Shape::{Either, Record as Of, Scalar};
use crate::grammar::kinds;
use crate::grammar::record::{Kind, record};
use crate::grammar::{Key, Rule, Shape, key};
use crate::steps::Step;
use crate::template::{self, Encoding};
use crate::yaml::Node;

/// The header that it becomes.
const HEADER: &str = "Authorization";

/// Also of the defaults.
pub(crate) const AUTH: Key = key(
    "auth",
    Either(AUTH_AS),
    "Credentials, sent as `Authorization`: `basic` or `bearer`; `none` where the defaults say otherwise.",
);

static AUTH_AS: &[Shape] = &[Scalar(Word(&["none"])), Of(|| &KINDS)];

record! {
    /// The header `Authorization`. What stands here is secret, and written down nowhere.
    static KINDS("auth", "auth", Rule::OneOf(&["basic", "bearer"])) {
        "basic": Basic::SHAPE => "User and password, in base64.",
        "bearer": Scalar(Template) => "A token.",
    }
}

record! {
    /// User name and password.
    struct Basic("basicAuth", "basic auth") {
        user (required): kinds::Template = "User name, without a colon.",
        password (required): kinds::Template = "The password.",
    }
}

impl Session<'_, '_> {
    /// Adds the `Authorization` that a step asks for, or the defaults do, to its headers.
    pub(super) fn authorize(&mut self, step: &Step<'_>, headers: &mut Vec<(String, template::Template)>) {
        let is_here = |node: Option<&Node>| {
            let names = node.map(Node::entries).unwrap_or_default().iter();
            names.filter_map(|(name, _)| name.text()).any(|name| name.eq_ignore_ascii_case(HEADER))
        };
        let is_in_headers = is_here(step.get("headers"));
        let node = match step.node.entry("auth") {
            Some((key, _)) if is_in_headers => {
                let message =
                    format!("\"auth\" is the header {HEADER}, which stands here, too; leave one out");
                return self.reader.sink.error(key, message);
            }
            Some((_, node)) => node.clone(),
            // what stands at a step goes before the defaults
            None if is_in_headers => return,
            None => match self.requests.default_auth.clone() {
                Some(node) => node,
                None => return,
            },
        };
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case(HEADER));
        let mut value = template::Template::default();
        if let Some(token) = node.get("bearer") {
            value.push_literal(b"Bearer ");
            value.append(self.template(token, Encoding::Header));
        } else if let Some(basic) = node.get("basic") {
            let Some(login) = self.login(basic) else { return };
            if let Some(text) = login.as_constant().and_then(|login| match login {
                crate::slot::Value::Text(text) => std::str::from_utf8(text).ok(),
                _ => None,
            }) {
                self.reader.settings.keep_secret(HEADER, text);
            }
            value.push_literal(b"Basic ");
            value.push_hole(login, Encoding::Header);
        } else {
            return;
        }
        headers.push((HEADER.to_owned(), value));
    }

    /// User and password as they are sent.
    fn login(&mut self, basic: &Node) -> Option<Expr> {
        let said = Basic::read(basic, self.reader)?;
        let (user, password) = (said.user.value?, said.password.value?);
        if user.text().is_some_and(|text| !text.contains("${") && text.contains(':')) {
            self.reader.sink.error(user, "a user with a colon in it cannot be told from the password");
        }
        let texts = [user, password].map(|node| self.as_text(node));
        let [Some(user), Some(password)] = texts else { return None };
        let concat = function::find("concat")?;
        let login =
            function::fold(concat, Box::new([user, expr::Node::Text(b":".as_slice().into()), password]));
        Some(Expr::new(function::fold(function::find("base64")?, Box::new([login]))))
    }

    /// A text with holes as a value.
    fn as_text(&mut self, node: &Node) -> Option<expr::Node> {
        match node.text() {
            // as it stands there: a zero in front is part of a password
            Some(text) if !text.contains("${") => Some(expr::Node::Text(text.as_bytes().into())),
            _ => self.value(node).map(|value| value.node().clone()),
        }
    }
}
