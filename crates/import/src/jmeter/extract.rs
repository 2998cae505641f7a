//! Extractors: what is kept of an answer.

use tidemark_scenario::source::{Map, Request, Step, verbatim};

use super::function::set;
use super::tree::Node;
use super::{Making, Scope};
use crate::javascript::{self, Which, of_matches, of_page};
use crate::plan::{concat, quoted};

/// Most groups of an expression that are variables of their own.
const GROUPS_MAX: usize = 50;
/// The reader of HTML: JSOUP, which makes one blank of several, or JODD.
const HTML_READER: &str = "HtmlExtractor.extractor_impl";

impl<'a> Making<'a> {
    /// What extractors around keep of an answer.
    pub(super) fn extractions(&mut self, scope: &Scope<'a>, request: &mut Request) {
        for &node in &scope.nodes {
            match node.kind() {
                "RegexExtractor" => self.regex(node, request),
                "BoundaryExtractor" => self.boundary(node, request),
                "JSONPostProcessor" => self.json(node, request),
                "JSONPathExtractor" => self.plugin(node, request),
                "JMESPathExtractor" => self.jmes(node, request),
                "HtmlExtractor" => self.html(node),
                _ => {}
            }
        }
    }

    fn regex(&mut self, node: &Node<'_>, request: &mut Request) {
        let text = |name| node.text(name);
        let variable = text("RegexExtractor.refname").trim();
        let Some(regex) = self.pattern(text("RegexExtractor.regex"), node) else {
            return self.not_taken(node, variable, "by an expression that is read by JMeter only");
        };
        if !self.is_of_answer(node, variable) {
            return;
        }
        let number = self.known(text("RegexExtractor.match_number"), node).unwrap_or_default();
        let number = match number.trim() {
            "" | "1" => 1,
            number => number.parse::<i64>().unwrap_or(1),
        };
        let default = self.default(node, "RegexExtractor.default", "RegexExtractor.default_empty_value");
        let template = match text("RegexExtractor.template") {
            "" => "$1$",
            template => template,
        };
        let of_groups: Vec<(String, Option<usize>)> =
            groups_set_by(node).into_iter().filter(|(name, _)| self.variables.contains_key(name)).collect();
        let useful = text("RegexExtractor.useHeaders").trim();
        if !matches!(useful, "" | "false") {
            of_groups.iter().for_each(|(name, _)| self.not_taken(node, name, "out of what is not the body"));
        }
        match useful {
            "" | "false" => {}
            "true" => return self.of_header(node, variable, &regex, template, default, request),
            "code" => {
                let slot = self.slot(variable);
                request.extract.insert(slot, "status");
                return;
            }
            _ => {
                return self.not_taken(node, variable, "out of what is not the body, a header or the status");
            }
        }
        let Some(groups) = groups(&regex) else {
            return self.not_taken(node, variable, "by an expression that is read by JMeter only");
        };
        if number == 0 {
            return self.random_match(node, variable, template);
        }
        if number < 0 {
            return self.not_taken(node, variable, "as a list of all matches");
        }
        // the last of several matches is a group by itself
        let (regex, shift) = match number {
            1 => (regex, 0),
            number => (format!("(?:{regex}(?s:.*?)){{{}}}({regex})", number - 1), groups + 1),
        };
        for (name, group) in of_groups {
            let slot = self.slot(&name);
            let of = |group: usize| {
                let mut of = Map::from([("regex", regex.clone())]);
                of.insert("group", group + shift);
                of.insert("when missing", "clear");
                of
            };
            match group {
                Some(group) => request.extract.insert(slot, of(group)),
                None => {
                    let found = self.own_name(&format!("{variable}_found"));
                    request.extract.insert(found.as_str(), of(0));
                    self.after.push(set(&slot, &format!("if(exists({found}), {groups}, missing)")));
                }
            }
        }
        let Some(parts) = template_parts(template) else {
            return self.not_taken(node, variable, "put together in a way of its own");
        };
        let slot = self.slot(variable);
        if let [Part::Group(group)] = parts[..] {
            if group > groups {
                return self.not_taken(node, variable, "out of a group that its expression does not have");
            }
            let mut of = Map::from([("regex", regex)]);
            if group + shift != 1 || groups == 0 {
                of.insert("group", group + shift);
            }
            return self.keep(request, &slot, of, default);
        }
        // each group by itself, then put together
        let mut pieces = Vec::new();
        for part in &parts {
            match part {
                Part::Text(text) => pieces.push(quoted(text)),
                Part::Group(group) => {
                    let name = self.own_name(&format!("{variable}_g{group}"));
                    let mut of = Map::from([("regex", regex.clone())]);
                    of.insert("group", group + shift);
                    of.insert("when missing", "clear");
                    request.extract.insert(name.clone(), of);
                    pieces.push(name);
                }
            }
        }
        let whole = concat(&pieces);
        let whole = match default {
            Some(default) => format!("default({whole}, {default})"),
            None => format!("default({whole}, default({slot}, missing))"),
        };
        self.after.push(set(&slot, &whole));
    }

    /// One of all matches: code draws it.
    fn random_match(&mut self, node: &Node<'_>, variable: &str, template: &str) {
        let known = self.known(node.text("RegexExtractor.regex"), node);
        let found = known.and_then(|known| Some((javascript::regex(&known)?, groups(&known)?)));
        let parts = template_parts(template);
        let (Some((regex, groups)), Some([Part::Group(group)])) = (found, parts.as_deref()) else {
            return self.not_taken(node, variable, "out of a random match");
        };
        if *group > groups {
            return self.not_taken(node, variable, "out of a group that its expression does not have");
        }
        let slot = self.slot(variable);
        let (otherwise, default) =
            self.otherwise(node, &slot, "RegexExtractor.default", "RegexExtractor.default_empty_value");
        self.after.push(of_matches(&slot, &regex, *group, otherwise.as_deref()));
        self.after.extend(default);
    }

    /// By a selector: code reads the page.
    fn html(&mut self, node: &Node<'_>) {
        let variable = node.text("HtmlExtractor.refname").trim();
        let Some((selector, which)) = selected(node) else { return };
        if !self.is_of_answer(node, variable) {
            return;
        }
        let part = match (node.text("HtmlExtractor.attribute").trim(), node.text(HTML_READER).trim()) {
            ("", "JODD") => "text().trim()".to_owned(),
            ("", _) => "text().trim().replace(/\\s+/g, ' ')".to_owned(),
            (attribute, _) => format!("attr({}, '')", quoted(attribute)),
        };
        let slot = self.slot(variable);
        let (otherwise, default) =
            self.otherwise(node, &slot, "HtmlExtractor.default", "HtmlExtractor.default_empty_value");
        self.after.push(of_page(&slot, &selector, which, &part, otherwise.as_deref()));
        self.after.extend(default);
    }

    /// What a variable is in code where nothing is found: as it was, or its default. One that is computed is a step behind.
    fn otherwise(
        &mut self,
        node: &Node<'_>,
        slot: &str,
        name: &str,
        empty: &str,
    ) -> (Option<String>, Option<Step>) {
        let Some(default) = self.default(node, name, empty) else {
            return (Some(format!("vars.{slot}")), None);
        };
        let known = self.known(node.text(name), node).is_some_and(|known| quoted(&known) == default);
        match known || default == "''" {
            true => (Some(default), None),
            false => (None, Some(set(slot, &format!("default({slot}, {default})")))),
        }
    }

    /// `Location: (.*)`, `Set-Cookie: sid=([^;]+)`
    fn of_header(
        &mut self,
        node: &Node<'_>,
        variable: &str,
        regex: &str,
        template: &str,
        default: Option<String>,
        request: &mut Request,
    ) {
        let own =
            regex.trim_start_matches("(?i)").trim_start_matches('^').replace("\\s*", " ").replace("\\s", " ");
        let found = own.split_once(':').map(|(name, rest)| (name.trim().to_owned(), rest.trim().to_owned()));
        let of = found.and_then(|(name, rest)| {
            let is_token = |text: &str| {
                !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            };
            if template != "$1$" || !is_token(&name) {
                return None;
            }
            let rest = rest.trim_end_matches("\\n").trim_end_matches("\\r").trim_end_matches('$');
            if name.eq_ignore_ascii_case("set-cookie") {
                let (cookie, value) = rest.split_once('=')?;
                let is_whole =
                    ["([^;]+)", "([^;]*)", "(.+?)", "(.*?)", "(\\w+)", "([^;]+?)"].iter().any(|group| {
                        value.strip_prefix(group).is_some_and(|end| matches!(end, "" | ";" | "; " | ";.*"))
                    });
                return (is_whole && is_token(cookie)).then(|| Map::from([("cookie", cookie.to_owned())]));
            }
            matches!(rest, "(.*)" | "(.+)" | "(\\S+)" | "(\\S*)").then(|| Map::from([("header", name)]))
        });
        match of {
            Some(of) => {
                let slot = self.slot(variable);
                self.keep(request, &slot, of, default);
            }
            None => self.not_taken(node, variable, "out of the headers, by an expression over all of them"),
        }
    }

    fn boundary(&mut self, node: &Node<'_>, request: &mut Request) {
        let text = |name| node.text(name);
        let variable = text("BoundaryExtractor.refname").trim();
        if !self.is_of_answer(node, variable) {
            return;
        }
        if !matches!(text("BoundaryExtractor.useHeaders").trim(), "" | "false") {
            return self.not_taken(node, variable, "out of what is not the body");
        }
        let number = self.known(text("BoundaryExtractor.match_number"), node).unwrap_or_default();
        if !matches!(number.trim(), "" | "1") {
            return self.not_taken(node, variable, "out of another match than the first");
        }
        let left = self.known(text("BoundaryExtractor.lboundary"), node);
        let right = self.known(text("BoundaryExtractor.rboundary"), node);
        let Some((left, right)) = left.zip(right) else {
            return self.not_taken(node, variable, "between texts that are known only while it runs");
        };
        let end = if right.is_empty() { "$".to_owned() } else { regex::escape(&right) };
        let regex = format!("(?s){}(.*?){end}", regex::escape(&left));
        let default =
            self.default(node, "BoundaryExtractor.default", "BoundaryExtractor.default_empty_value");
        let slot = self.slot(variable);
        self.keep(request, &slot, Map::from([("regex", verbatim(&regex))]), default);
    }

    fn json(&mut self, node: &Node<'_>, request: &mut Request) {
        let parts = |name: &str| -> Vec<&str> { node.text(name).split(';').map(str::trim).collect() };
        let names = parts("JSONPostProcessor.referenceNames");
        let paths = parts("JSONPostProcessor.jsonPathExprs");
        let numbers = parts("JSONPostProcessor.match_numbers");
        let defaults = parts("JSONPostProcessor.defaultValues");
        if !self.is_of_answer(node, names.first().unwrap_or(&"")) {
            return;
        }
        if node.flag("JSONPostProcessor.compute_concat") {
            self.leave_out(node, "put all matches together as one text (NAME_ALL)");
        }
        for (at, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let number = numbers.get(at).copied().unwrap_or_default();
            let number = self.known(number, node).unwrap_or_default();
            let number = number.trim().parse::<i64>().unwrap_or(1);
            let default = defaults.get(at).filter(|default| !default.is_empty());
            let default = default.and_then(|default| self.expression(default, node)).map(|expr| expr.text);
            let Some(path) = paths.get(at).and_then(|path| self.json_path(path, node)) else {
                self.not_taken(node, name, "by a path that is read by JMeter only");
                continue;
            };
            let count = format!("{name}_matchNr");
            if number != -1 && self.variables.contains_key(&count) {
                let slot = self.slot(&count);
                request.extract.insert(slot, Map::from([("count", path.clone())]));
            }
            let slot = self.slot(name);
            match number {
                1 => self.keep(request, &slot, Map::from([("json", path)]), default),
                -1 => self.keep(request, &slot, Map::from([("all", path)]), None),
                number => {
                    // one of all
                    let list = self.own_name(&format!("{name}_all"));
                    request.extract.insert(
                        list.clone(),
                        Map::from([("all", path), ("when missing", "clear".to_owned())]),
                    );
                    let index = match number {
                        0 => format!("random(0, max(0, len({list}) - 1))"),
                        number => (number - 1).to_string(),
                    };
                    let other = default.unwrap_or_else(|| format!("default({slot}, missing)"));
                    self.after.push(set(&slot, &format!("default({list}[{index}], {other})")));
                }
            }
        }
    }

    /// A path of JMESPath that is one of JSON, too. It has a value always.
    fn jmes(&mut self, node: &Node<'_>, request: &mut Request) {
        let variable = jmes_name(node);
        let Some(path) = jmes_of(node) else { return };
        if !self.is_of_answer(node, variable) {
            return;
        }
        self.note(format!("{}: a list at {path} is taken as a whole", node.title()));
        let default = self.default(node, "JMESExtractor.defaultValue", "");
        let slot = self.slot(variable);
        let default = default.unwrap_or_else(|| "''".to_owned());
        self.keep(request, &slot, Map::from([("json", path)]), Some(default));
    }

    /// The extractor of the plugins, from before JMeter had one.
    fn plugin(&mut self, node: &Node<'_>, request: &mut Request) {
        let variable = node.text("VAR").trim();
        if node.text("SUBJECT").trim() == "VAR" {
            return self.not_taken(node, variable, "out of a variable");
        }
        let Some(path) = self.json_path(node.text("JSONPATH"), node) else {
            return self.not_taken(node, variable, "by a path that is read by JMeter only");
        };
        let is_list =
            self.variables.get(variable).is_some_and(|variable| variable.holds == super::value::Holds::List);
        let default = Some(node.text("DEFAULT")).filter(|default| !default.is_empty());
        let default = default.and_then(|default| self.expression(default, node)).map(|expr| expr.text);
        let slot = self.slot(variable);
        let kind = if is_list { "all" } else { "json" };
        self.keep(request, &slot, Map::from([(kind, path)]), default.filter(|_| !is_list));
    }

    /// Enters an extraction. Without a default JMeter leaves the variable as it was.
    fn keep(&mut self, request: &mut Request, slot: &str, mut of: Map, default: Option<String>) {
        let missing = if default.is_some() { "clear" } else { "keep" };
        of.insert("when missing", missing);
        request.extract.insert(slot, of);
        if let Some(default) = default {
            self.after.push(set(slot, &format!("default({slot}, {default})")));
        }
    }

    fn default(&mut self, node: &Node<'_>, name: &str, empty: &str) -> Option<String> {
        match node.text(name) {
            "" if node.flag(empty) => Some("''".into()),
            "" => None,
            default => self.expression(default, node).map(|expr| expr.text),
        }
    }

    fn is_of_answer(&mut self, node: &Node<'_>, variable: &str) -> bool {
        let is_one = matches!(node.text("Sample.scope").trim(), "" | "all" | "parent");
        if !is_one {
            self.not_taken(node, variable, "out of what is not the request's own answer");
        }
        is_one
    }

    /// Tells an extraction that is not made; what uses the variable is then told, too.
    fn not_taken(&mut self, node: &Node<'_>, variable: &str, how: &str) {
        self.leave_out_request(node, &format!("set {} {how}", super::shown(variable)));
        // what names it is a request that cannot be sent
        if let Some(slot) = self.variables.get(variable).map(|variable| variable.name.clone()) {
            self.after.push(set(&slot, &format!("default({slot}, missing)")));
        }
    }

    /// A path of JSON as the language reads it.
    pub(super) fn json_path(&mut self, path: &str, node: &Node<'_>) -> Option<String> {
        let known = self.known(path.trim(), node)?;
        let known = known.trim();
        let path = if known.starts_with('$') { known.to_owned() } else { format!("$.{known}") };
        tidemark_wire::json::Path::parse(&path).is_ok().then(|| verbatim(&path))
    }

    /// A regular expression that both read alike.
    pub(super) fn pattern(&mut self, regex: &str, node: &Node<'_>) -> Option<String> {
        let known = self.known(regex, node)?;
        regex::Regex::new(&known).is_ok().then(|| verbatim(&known))
    }
}

/// The selector of an extractor of HTML and which element it takes, if code can do that.
fn selected(node: &Node<'_>) -> Option<(String, Which)> {
    let (attribute, text) = (node.text("HtmlExtractor.attribute"), node.text("HtmlExtractor.expr"));
    // nothing says 0
    let which = match node.text("HtmlExtractor.match_number").trim() {
        "" | "0" => Which::Random,
        number => Which::At(number.parse::<usize>().ok()?.checked_sub(1)?),
    };
    let is_known = !text.contains("${") && !attribute.contains("${");
    javascript::selector(text, &[]).filter(|_| is_known).map(|selector| (selector, which))
}

fn jmes_name<'n>(node: &'n Node<'_>) -> &'n str {
    let all = ["JMESExtractor.referenceName", "jmespath.referenceName"].map(|name| node.text(name).trim());
    all.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
}

/// The path of an extractor of JMESPath that takes one value.
fn jmes_of(node: &Node<'_>) -> Option<String> {
    let number = node.text("JMESExtractor.matchNumber").trim();
    let is_one = number.is_empty() || number.parse::<u32>().is_ok();
    jmes_path(node.text("JMESExtractor.jmesPathExpr")).filter(|_| is_one)
}

/// `a.b[0].c`, as the language reads it.
pub(super) fn jmes_path(path: &str) -> Option<String> {
    let path = path.trim();
    let is_part = |part: &str| {
        let (name, index) = part.split_at(part.find('[').unwrap_or(part.len()));
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let is_index = index.is_empty()
            || index.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(|inner| {
                inner.split("][").all(|index| !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()))
            });
        is_name && is_index
    };
    let path = format!("$.{}", Some(path).filter(|path| path.split('.').all(is_part))?);
    tidemark_wire::json::Path::parse(&path).is_ok().then_some(path)
}

/// The groups of an expression.
fn groups(regex: &str) -> Option<usize> {
    regex::Regex::new(regex).ok().map(|regex| regex.captures_len() - 1)
}

#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    Group(usize),
}

/// `$1$-$2$`
fn template_parts(template: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        if at > 0 {
            parts.push(Part::Text(rest[..at].to_owned()));
        }
        let end = rest[at + 1..].find('$')? + at + 1;
        parts.push(Part::Group(rest[at + 1..end].parse().ok()?));
        rest = &rest[end + 1..];
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.to_owned()));
    }
    Some(parts)
}

/// The variables that an extractor sets, and whether each is a list.
pub(super) fn set_by(node: &Node<'_>) -> Vec<(String, bool)> {
    let one = |name: &str, number: &str| {
        vec![(node.text(name).trim().to_owned(), node.text(number).trim() == "-1")]
    };
    match node.kind() {
        "RegexExtractor" if regex_is_taken(node) => {
            one("RegexExtractor.refname", "RegexExtractor.match_number")
        }
        "BoundaryExtractor" => one("BoundaryExtractor.refname", "none"),
        "HtmlExtractor" if selected(node).is_some() => one("HtmlExtractor.refname", "none"),
        "JMESPathExtractor" if jmes_of(node).is_some() => vec![(jmes_name(node).to_owned(), false)],
        "JSONPathExtractor" => {
            let path = node.text("JSONPATH");
            let is_list = ["[*]", "..", "[?"].iter().any(|sign| path.contains(sign));
            vec![(node.text("VAR").trim().to_owned(), is_list)]
        }
        "JSONPostProcessor" => {
            let numbers: Vec<&str> = node.text("JSONPostProcessor.match_numbers").split(';').collect();
            let names = node.text("JSONPostProcessor.referenceNames").split(';');
            let is_list = |at: usize| numbers.get(at).is_some_and(|number| number.trim() == "-1");
            names.enumerate().map(|(at, name)| (name.trim().to_owned(), is_list(at))).collect()
        }
        _ => Vec::new(),
    }
}

/// The names of the groups of a regular expression (`x_g0`, `x_g1`), each with its number; and of how many there are (`x_g`).
/// An extractor of JSON has the number of matches.
pub(super) fn groups_set_by(node: &Node<'_>) -> Vec<(String, Option<usize>)> {
    match node.kind() {
        "RegexExtractor" if regex_is_taken(node) && !is_random(node) => {
            let name = node.text("RegexExtractor.refname").trim();
            let groups = groups(node.text("RegexExtractor.regex")).unwrap_or(0).min(GROUPS_MAX);
            let each = (0..=groups).map(|group| (format!("{name}_g{group}"), Some(group)));
            each.chain([(format!("{name}_g"), None)]).collect()
        }
        "JSONPostProcessor" => {
            let names = set_by(node).into_iter().filter(|(_, is_list)| !is_list);
            names.map(|(name, _)| (format!("{name}_matchNr"), None)).collect()
        }
        _ => Vec::new(),
    }
}

fn regex_is_taken(node: &Node<'_>) -> bool {
    node.text("RegexExtractor.match_number").trim() != "-1"
        && (!is_random(node) || javascript::regex(node.text("RegexExtractor.regex")).is_some())
}

fn is_random(node: &Node<'_>) -> bool {
    node.text("RegexExtractor.match_number").trim() == "0"
}

/// The names that an extractor without a counterpart would have set.
pub(super) fn not_set_by(node: &Node<'_>) -> Vec<String> {
    let names: &[&str] = match node.kind() {
        "RegexExtractor" if !regex_is_taken(node) => &["RegexExtractor.refname"],
        "HtmlExtractor" if selected(node).is_none() => &["HtmlExtractor.refname"],
        "XPathExtractor" => &["XPathExtractor.refname"],
        "XPath2Extractor" => &["XPathExtractor2.refname"],
        "JMESPathExtractor" if jmes_of(node).is_none() => {
            &["JMESExtractor.referenceName", "jmespath.referenceName"]
        }
        _ => &[],
    };
    names.iter().map(|name| node.text(name).trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// What an extractor without a counterpart would have done.
pub(super) fn would(node: &Node<'_>) -> Option<String> {
    let how = match node.kind() {
        "HtmlExtractor" if selected(node).is_none() => {
            format!("by the selector {}", node.text("HtmlExtractor.expr"))
        }
        "XPathExtractor" => format!("by the XPath {}", node.text("XPathExtractor.xpathQuery")),
        "XPath2Extractor" => format!("by the XPath {}", node.text("XPathExtractor2.xpathQuery")),
        "JMESPathExtractor" if jmes_of(node).is_none() => "by a JMESPath".to_owned(),
        _ => return None,
    };
    let names = not_set_by(node).join(", ");
    Some(format!("set {names} {how}"))
}
