//! Where variables come from: files, chance, code.

use tidemark_scenario::source::{Feeder, Map, Step, Value, verbatim};

use super::steps::{State, Variable};
use super::{Making, shown};
use crate::har::hidden::is_hidden;
use crate::holes::Place;
use crate::names::name_of;
use crate::xml::Element;

/// Most rows of a file that are looked at for their shape.
const LINES_MAX: usize = 1_000_000;

/// A file of the plan.
struct Source {
    id: String,
    value: String,
}

/// A file in an order, and its feeder.
struct Drawn {
    id: String,
    is_random: bool,
    delimiter: String,
    feeder: String,
    columns: Vec<String>,
}

/// Files and their feeders.
#[derive(Default)]
pub(super) struct Sources {
    files: Vec<Source>,
    drawn: Vec<Drawn>,
    feeders: Vec<(String, Feeder)>,
    /// The variables that lines of a file become, by file: where they differ, columns have names of their own.
    uses: Vec<(String, Vec<String>)>,
}

/// The variables of an element that sets them.
fn variables_of(element: &Element) -> Vec<String> {
    let vars = element.children.iter().filter(|child| child.name == "var");
    vars.filter_map(|child| child.attribute("name")).map(|name| name.trim().to_owned()).collect()
}

impl Sources {
    /// Looks through a plan for what its files become.
    pub(super) fn of(root: &Element) -> Sources {
        fn visit(element: &Element, uses: &mut Vec<(String, Vec<String>)>) {
            if element.name == "setdynvars" && element.attribute("sourcetype") == Some("file") {
                let of = element.attribute("fileid").unwrap_or("none").trim().to_owned();
                let one = (of, variables_of(element));
                if !uses.contains(&one) {
                    uses.push(one);
                }
            }
            element.children.iter().for_each(|child| visit(child, uses));
        }
        let mut sources = Sources::default();
        visit(root, &mut sources.uses);
        sources
    }

    pub(super) fn take_feeders(&mut self) -> Vec<(String, Feeder)> {
        std::mem::take(&mut self.feeders)
    }
}

impl Making<'_> {
    pub(super) fn file_server(&mut self, option: &Element, value: &str) {
        let id = option.attribute("id").unwrap_or("default").to_owned();
        self.sources.files.push(Source { id, value: value.to_owned() });
    }

    pub(super) fn set_variables(&mut self, element: &Element, state: &mut State) -> Vec<Step> {
        self.known(
            element,
            &[
                "sourcetype",
                "callback",
                "code",
                "fileid",
                "order",
                "delimiter",
                "length",
                "start",
                "end",
                "from",
                "jsonpath",
                "value",
            ],
        );
        let mut variables: Vec<String> = Vec::new();
        for child in &element.children {
            match (child.name.as_str(), child.attribute("name").map(str::trim)) {
                ("var", Some(name)) if !name.is_empty() => {
                    self.known(child, &["name"]);
                    variables.push(name.to_owned());
                }
                _ => self.unknown(child, false),
            }
        }
        if variables.is_empty() {
            self.tell(element, "set variables, of which it names none", false);
            return Vec::new();
        }
        let kind = element.attribute("sourcetype").unwrap_or("erlang");
        let whole = |name: &str, usual: i64| match element.attribute(name) {
            None => Some(usual),
            Some(text) => text.trim().parse::<i64>().ok(),
        };
        let mut kind_of = Variable::Any;
        let value: Option<Value> = match kind {
            "file" => return self.of_file(element, &variables, state),
            "random_number" => {
                kind_of = Variable::Plain;
                let bounds = whole("start", 1).zip(whole("end", 10)).filter(|(low, high)| low <= high);
                bounds.map(|(low, high)| format!("${{random({low}, {high})}}").into())
            }
            "random_string" | "urandom_string" => {
                kind_of = Variable::Plain;
                let length = whole("length", 20).filter(|length| (1..=1 << 20).contains(length));
                length.map(|length| format!("${{random_text({length})}}").into())
            }
            "value" => {
                let value = element.attribute("value").unwrap_or_default();
                let secret = variables.first().filter(|name| !value.is_empty() && is_hidden(name, value));
                Some(match secret {
                    Some(name) => format!("${{{}}}", self.secret(name, value)).into(),
                    None => verbatim(value).into(),
                })
            }
            "server" => {
                let host = self.server.as_ref().map_or(String::new(), |server| server.host.clone());
                let (host, port) = host.rsplit_once(':').unwrap_or((&host, "80"));
                let mut set = Map::new();
                for (name, value) in variables.iter().zip([host, port]) {
                    set.insert(self.variable(name), verbatim(value));
                    state.set(name, Variable::Any);
                }
                return vec![Step::Other(Map::from([("set", set)]))];
            }
            "erlang" => {
                let callback = element.attribute("callback").unwrap_or_default().trim();
                match callback {
                    "ts_user_server:get_unique_id" | "ts_user_server:get_really_unique_id" => {
                        kind_of = Variable::Plain;
                        Some("${count(unique_id) + 1}".into())
                    }
                    _ => {
                        let expression = self.unknown_value(element, callback);
                        Some(format!("${{{expression}}}").into())
                    }
                }
            }
            "eval" => {
                let code = element.attribute("code").unwrap_or_default();
                match known_code(code) {
                    Some((expression, plain)) => {
                        kind_of = if plain { Variable::Plain } else { Variable::Any };
                        Some(format!("${{{expression}}}").into())
                    }
                    None => {
                        let expression = self.unknown_value(element, code);
                        Some(format!("${{{expression}}}").into())
                    }
                }
            }
            _ => None,
        };
        let value = value.unwrap_or_else(|| {
            let would = match kind {
                "jsonpath" => "taken a part of a variable's JSON".to_owned(),
                "random_number" | "random_string" | "urandom_string" => {
                    "drawn a value: its bounds cannot be read".to_owned()
                }
                kind => format!("set variables from {}", shown(kind)),
            };
            self.tell(element, format!("{would}: a setting stands for it"), true);
            let name = variables.first().map_or("value", |name| name.as_str());
            let wanted = self.free_of_variables(&format!("{}_value", name_of(name)));
            let comment = format!("what the variable {} had in Tsung: put a value here", shown(name));
            let line = element.line;
            let setting =
                self.settings.named(format!("line {line} {name}"), &wanted, &wanted, &comment, crate::UNSET);
            format!("${{{setting}}}").into()
        });
        let mut set = Map::new();
        for name in &variables {
            set.insert(self.variable(name), value.clone());
            state.set(name, kind_of);
        }
        vec![Step::Other(Map::from([("set", set)]))]
    }

    /// The next line of a file, or one at random.
    fn of_file(&mut self, element: &Element, variables: &[String], state: &mut State) -> Vec<Step> {
        let id = element.attribute("fileid").unwrap_or("none").trim().to_owned();
        let delimiter = element.attribute("delimiter").unwrap_or(";").to_owned();
        let is_random = element.attribute("order") == Some("random");
        let value = self.sources.files.iter().rev().find(|file| file.id == id).map(|file| file.value.clone());
        variables.iter().for_each(|name| state.set(name, Variable::Any));
        let Some(value) = value else {
            self.tell(element, format!("read the file {:?}, of which no option tells", shown(&id)), true);
            return self.fill_in(element, variables);
        };
        let known =
            self.sources.drawn.iter().position(|drawn| {
                drawn.id == id && drawn.is_random == is_random && drawn.delimiter == delimiter
            });
        let at = match known {
            Some(at) => at,
            None => {
                let Some((path, width)) = self.shape(element, &value, &delimiter) else {
                    return self.fill_in(element, variables);
                };
                let feeder = self.feeder_name(if id == "default" { "lines" } else { &id });
                let is_only = self.sources.uses.iter().filter(|(known, _)| *known == id).count() < 2;
                let mut columns: Vec<String> = Vec::new();
                for at in 0..width {
                    let own = variables.get(at).map(|name| self.variable(name));
                    let own = own.filter(|own| {
                        is_only && !columns.contains(own) && (variables.len() > 1 || width == 1)
                    });
                    columns.push(match own {
                        Some(own) => own,
                        None => self.own_variable(&format!("{feeder}_{}", at + 1)),
                    });
                }
                let mut made = Feeder {
                    file: Some(verbatim(&path).into()),
                    order: is_random.then(|| "random".into()),
                    ..Feeder::default()
                };
                let header: Vec<Value> = columns.iter().map(|name| name.as_str().into()).collect();
                made.other.insert("header", Value::List(header));
                let mark = if delimiter == "\t" { "tab" } else { &delimiter };
                // a delimiter that is nowhere in the file: one column
                made.other.insert("delimiter", mark);
                self.sources.feeders.push((feeder.clone(), made));
                self.sources.drawn.push(Drawn { id, is_random, delimiter, feeder, columns });
                self.sources.drawn.len() - 1
            }
        };
        let drawn = &self.sources.drawn[at];
        let mut steps = vec![Step::Other(Map::from([("take", drawn.feeder.as_str())]))];
        let columns = drawn.columns.clone();
        let mut set = Map::new();
        if let ([name], [_, _, ..]) = (variables, columns.as_slice()) {
            // a single variable has all cells, which Tsung writes one after the other
            if state.is_gone_through(name) {
                self.tell(
                    element,
                    "gone through the cells of a line one by one: they are one text here",
                    true,
                );
            }
            set.insert(self.variable(name), format!("${{concat({})}}", columns.join(", ")));
            steps.push(Step::Other(Map::from([("set", set)])));
            return steps;
        }
        for (at, name) in variables.iter().enumerate() {
            let ours = self.variable(name);
            match columns.get(at) {
                Some(column) if *column == ours => {}
                Some(column) => set.insert(ours, format!("${{{column}}}")),
                // Tsung leaves a variable empty for which a line has nothing
                None => set.insert(ours, ""),
            }
        }
        if !set.is_empty() {
            steps.push(Step::Other(Map::from([("set", set)])));
        }
        steps
    }

    fn feeder_name(&mut self, id: &str) -> String {
        let base = id.rsplit(['/', '\\']).next().unwrap_or(id);
        let base = base.rsplit_once('.').map_or(base, |(name, _)| name);
        let wanted = self.free_of_variables(&name_of(base));
        let feeders = &self.sources.feeders;
        let is_taken = |name: &str| {
            feeders.iter().any(|(known, _)| known == name) || self.settings.map.get(name).is_some()
        };
        let name = crate::names::free(&wanted, &format!("{wanted}_random"), is_taken);
        self.names.insert(format!("\0feeder {name}"), name.clone());
        name
    }

    /// The path of a file, and how many cells a line has; none where it cannot be read here as Tsung does.
    fn shape(&mut self, element: &Element, value: &str, delimiter: &str) -> Option<(String, usize)> {
        let Some((path, text)) = self.file.text_of(value) else {
            self.tell(element, format!("read {:?}, which is not in the plan's folder", shown(value)), true);
            return None;
        };
        let mut characters = delimiter.chars();
        let is_one = characters.next().is_some_and(|c| c != '"' && !c.is_control() || c == '\t');
        let reason = if !is_one || characters.next().is_some() {
            Some(format!("splits its lines at {:?}, which is not one character", shown(delimiter)))
        } else {
            let mut lines = text.lines().take(LINES_MAX);
            let width = lines.next().unwrap_or_default().split(delimiter).count();
            let odd = text
                .lines()
                .take(LINES_MAX)
                .position(|line| line.split(delimiter).count() != width || line.is_empty());
            if text.contains('"') {
                Some("has quotes in it, which Tsung takes as they are".to_owned())
            } else if text.trim().is_empty() {
                Some("is empty".to_owned())
            } else if let Some(line) = odd {
                Some(format!("has another number of cells in line {}", line + 1))
            } else {
                return Some((path, width));
            }
        };
        let reason = reason.unwrap_or_default();
        self.tell(element, format!("read {:?}, which {reason}", shown(value)), true);
        None
    }

    /// Settings for variables whose source cannot be read.
    fn fill_in(&mut self, element: &Element, variables: &[String]) -> Vec<Step> {
        let mut set = Map::new();
        for name in variables {
            let ours = self.variable(name);
            let wanted = self.free_of_variables(&format!("{ours}_value"));
            let comment = format!("what the variable {} had in Tsung: put a value here", shown(name));
            let what = format!("line {} {name}", element.line);
            let setting = self.settings.named(what, &wanted, &wanted, &comment, crate::UNSET);
            set.insert(ours, format!("${{{setting}}}"));
        }
        vec![Step::Other(Map::from([("set", set)]))]
    }

    /// What a file holds that is sent as it is, with its variables replaced where the plan says so.
    pub(super) fn contents_of(
        &mut self,
        element: &Element,
        file: &str,
        subst: bool,
        state: &State,
    ) -> Option<Contents> {
        let Some((path, text)) = self.file.text_of(file) else {
            self.tell(
                element,
                format!("sent what is in {:?}, which is no text file in the plan's folder", shown(file)),
                true,
            );
            return None;
        };
        if subst && text.contains("%%") {
            let text = self.text(element, &text, true, state);
            return Some(Contents::Text(text.write(Place::Raw)));
        }
        Some(Contents::File(path))
    }
}

/// What a body is made of.
pub(super) enum Contents {
    File(String),
    Text(String),
}

/// Code of Erlang that is known, as an expression, and whether its value is plain.
fn known_code(code: &str) -> Option<(String, bool)> {
    let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let body = code.strip_prefix("fun(")?;
    let (_, body) = body.split_once(")->")?;
    let body = body.trim_end_matches('.').strip_suffix("end")?;
    // a wait of milliseconds in front keeps times apart, no more
    let body = match body.strip_prefix("timer:sleep(").and_then(|rest| rest.split_once("),")) {
        Some((ms, rest)) if ms.parse::<u64>().is_ok_and(|ms| ms <= 10) => rest,
        _ => body,
    };
    let inner = body.strip_prefix("integer_to_list(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(body);
    let now = ["erlang:system_time(", "os:system_time("].iter().find_map(|call| inner.strip_prefix(call));
    if let Some(unit) = now.and_then(|rest| rest.strip_suffix(')')) {
        return match unit {
            "millisecond" | "milli_seconds" => Some(("now()".into(), true)),
            "second" | "seconds" => Some(("floor(now() / 1000)".into(), true)),
            _ => None,
        };
    }
    let uniform = ["random:uniform(", "rand:uniform("].iter().find_map(|call| inner.strip_prefix(call));
    if let Some(most) = uniform.and_then(|rest| rest.strip_suffix(')')) {
        let most = most.parse::<u32>().ok().filter(|most| *most > 0)?;
        return Some((format!("random(1, {most})"), true));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::known_code;

    #[test]
    fn code_is_known_only_where_it_is_just_that() {
        let of = |code| known_code(code).map(|(expression, _)| expression);
        for (code, expression) in [
            ("fun(_) -> integer_to_list(erlang:system_time(millisecond)) end.", "now()"),
            ("fun({Pid, Vars}) -> timer:sleep(2), erlang:system_time(millisecond) end.", "now()"),
            ("fun(_)-> integer_to_list(random:uniform(20)) end.", "random(1, 20)"),
            ("fun(_) -> os:system_time(second) end.", "floor(now() / 1000)"),
        ] {
            assert_eq!(of(code).as_deref(), Some(expression), "{code}");
        }
        for code in [
            "fun(_) -> random:uniform(20) + 1 end.",
            "fun(_) -> timer:sleep(2000), erlang:system_time(millisecond) end.",
            "fun(_) -> io:format(\"x\"), random:uniform(2) end.",
            "ts_digest:md5hex",
            "",
        ] {
            assert_eq!(of(code), None, "{code}");
        }
    }
}
