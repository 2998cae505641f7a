//! Statements for PostgreSQL.

use tidemark_scenario::REFUSED_SQL;
use tidemark_scenario::source::{Map, Step, Value, verbatim};

use super::answer::Kind;
use super::http::Common;
use super::steps::State;
use super::{Making, shown};
use crate::holes::{Place, Text};
use crate::xml::Element;

impl Making<'_> {
    pub(super) fn statement(
        &mut self,
        request: &Element,
        element: &Element,
        common: &Common,
        state: &mut State,
    ) -> Option<Vec<Step>> {
        let known = [
            "type",
            "password",
            "database",
            "username",
            "name_portal",
            "name_prepared",
            "query",
            "parameters",
            "max_rows",
            "formats",
            "formats_results",
            "contents_from_file",
        ];
        self.known(element, &known);
        element.children.iter().for_each(|child| self.unknown(child, false));
        match element.attribute("type").unwrap_or_default() {
            "connect" => {
                self.connect(element, common, state);
                Some(Vec::new())
            }
            "authenticate" => {
                let password = element.attribute("password").filter(|password| !password.is_empty());
                if let Some(password) = password
                    && let Some(database) = self.database.clone()
                    && let Some((user, rest)) = database.split_once('@')
                {
                    let hole = format!(":${{{}}}", self.secret("password", password));
                    if !user.contains(":$") {
                        self.database = Some(format!("{user}{hole}@{rest}"));
                    } else if !user.ends_with(&hole) {
                        self.tell(element, "connected with another password than the first connection", true);
                    }
                }
                Some(Vec::new())
            }
            "close" => Some(Vec::new()),
            "sql" => self.sql(request, element, common, state),
            other => {
                self.tell(element, format!("sent {:?} of PostgreSQL's protocol", shown(other)), true);
                None
            }
        }
    }

    /// Connections are kept for all users, and made with the credentials of the URL.
    fn connect(&mut self, element: &Element, common: &Common, state: &State) {
        let of = |name: &str| element.attribute(name).unwrap_or_default().trim();
        if common.subst && (of("username").contains("%%") || of("database").contains("%%")) {
            return self.tell(element, "connected as the user, or to the database, of a variable", true);
        }
        let Some(server) = state.base.clone() else { return };
        let host = if server.host.contains(':') { server.host } else { format!("{}:{}", server.host, 5432) };
        let encode = |text: &str| {
            percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
        };
        let user = encode(of("username"));
        let database = encode(of("database")).replace("%5F", "_").replace("%2D", "-");
        let user = user.replace("%5F", "_").replace("%2D", "-");
        let url = format!("postgres://{}@{host}/{}", verbatim(&user), verbatim(&database));
        let bare = |url: &str| {
            let (head, tail) = url.split_once('@').unwrap_or(("", url));
            format!("{}@{tail}", head.split_once(":$").map_or(head, |(user, _)| user))
        };
        match &self.database {
            None => self.database = Some(url),
            Some(known) if bare(known) == bare(&url) => {}
            Some(_) => self.tell(
                element,
                "connected with other credentials than the first connection: those of the first are taken",
                true,
            ),
        }
    }

    fn sql(
        &mut self,
        request: &Element,
        element: &Element,
        common: &Common,
        state: &mut State,
    ) -> Option<Vec<Step>> {
        if element.attribute("contents_from_file").is_some() {
            self.tell(element, "executed the statement of a file", true);
            return None;
        }
        let text = self.text(element, element.text.trim(), common.subst, state);
        let Some((statement, values)) = placed(&text) else {
            self.tell(
                element,
                "executed several statements at once, or one with a variable where no value can stand",
                true,
            );
            return None;
        };
        let first = statement.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if first.is_empty() || REFUSED_SQL.contains(&first.to_ascii_uppercase().as_str()) {
            self.tell(
                element,
                format!(
                    "executed {:?}: connections are shared here, so it is no statement of its own",
                    shown(first)
                ),
                true,
            );
            return None;
        }
        let mut step = Map::from([("sql", verbatim(&statement))]);
        if !values.is_empty() {
            step.insert("with", Value::List(values.into_iter().map(Value::from).collect()));
        }
        if !common.tags.is_empty() {
            step.insert("tags", common.tags.clone());
        }
        let mut answer = self.answer(request, Kind::Rows, state);
        if !answer.extract.is_empty() {
            step.insert("extract", std::mem::take(&mut answer.extract));
        }
        if self.database.is_none() {
            self.database = Some("postgres://postgres@127.0.0.1:5432/postgres".into());
            self.tell(element, "been sent over a connection that no request makes before it", true);
        }
        Some(answer.around(Step::Other(step), self))
    }
}

/// A statement with a place for each variable, and the values. A text in quotes with variables in it is one value.
fn placed(text: &Text) -> Option<(String, Vec<String>)> {
    let marked = text.marked.trim().trim_end_matches(';').trim_end();
    if text.literal().is_none() && marked.contains('$') {
        return None;
    }
    let mut statement = String::new();
    let mut values = Vec::new();
    let mut rest = marked;
    while let Some(at) =
        rest.find(|c: char| c == '\'' || c == ';' || !text.is_text(c.encode_utf8(&mut [0; 4])))
    {
        statement += &rest[..at];
        let c = rest[at..].chars().next()?;
        if c == ';' {
            return None;
        }
        if c != '\'' {
            values.push(text.write_part(&rest[at..at + c.len_utf8()], Place::Raw));
            statement += &format!("${}", values.len());
            rest = &rest[at + c.len_utf8()..];
            continue;
        }
        let end = end_of_quotes(&rest[at + 1..])?;
        let inner = &rest[at + 1..at + 1 + end];
        if text.is_text(inner) {
            statement += &rest[at..at + end + 2];
        } else {
            values.push(text.write_part(&inner.replace("''", "'"), Place::Raw));
            statement += &format!("${}", values.len());
        }
        rest = &rest[at + end + 2..];
    }
    Some((statement + rest, values))
}

/// Where a text in quotes ends; two quotes are one of the text.
fn end_of_quotes(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find('\'')?;
        if !text[at + 1..].starts_with('\'') {
            return Some(at);
        }
        from = at + 2;
    }
}
