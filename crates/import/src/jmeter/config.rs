//! Elements that hold for those beside them: data sets, counters, variables; and those without a counterpart.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};

use tidemark_scenario::source::{Feeder, Map, Scalar, Step, Value};

use super::function::{number, set};
use super::include::below;
use super::tree::Node;
use super::value::{Expr, Holds};
use super::{Making, extract};
use crate::names::name_of;
use crate::plan::quoted;

/// Most bytes of a data set that are looked through.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Longest first line of a data set.
const LINE_MAX: u64 = 64 << 10;

/// Whether an element is taken over where it holds, or needs nothing.
pub(super) fn is_taken_over(kind: &str) -> bool {
    matches!(
        kind,
        "Arguments"
            | "ConfigTestElement"
            | "HeaderManager"
            | "CookieManager"
            | "AuthManager"
            | "CSVDataSet"
            | "CounterConfig"
            | "RandomVariableConfig"
            | "UserParameters"
            | "ConstantTimer"
            | "UniformRandomTimer"
            | "GaussianRandomTimer"
            | "PoissonRandomTimer"
            | "ConstantThroughputTimer"
            | "PreciseThroughputTimer"
            | "ResponseAssertion"
            | "JSONPathAssertion"
            | "SizeAssertion"
            | "DurationAssertion"
            | "SampleTimeout"
            | "RegexExtractor"
            | "BoundaryExtractor"
            | "JSONPostProcessor"
            | "JSONPathExtractor"
            | "JMESPathExtractor"
            | "JMESPathAssertion"
            | "HtmlExtractor"
    )
}

/// Whether defaults are of HTTP samplers.
pub(super) fn is_of_http(node: &Node<'_>) -> bool {
    let is_one = |child: &crate::xml::Element| {
        child
            .attribute("name")
            .is_some_and(|name| name.starts_with("HTTPSampler.") || name.starts_with("HTTPsampler."))
    };
    node.element.children.iter().any(is_one) || node.element.attribute("guiclass") == Some("HttpDefaultsGui")
}

/// What an element without a counterpart would have done, of those that change no request.
pub(super) fn would(node: &Node<'_>) -> Option<String> {
    let kind = node.kind();
    if let Some(script) = script(node) {
        return Some(format!("run its script: {}", super::shown(&script)));
    }
    if let Some(would) = extract::would(node) {
        return Some(would);
    }
    Some(match kind {
        "CacheManager" => {
            "answered from its cache what is still fresh, and asked only whether the rest has changed".into()
        }
        "DNSCacheManager" => "looked names up by itself, each thread anew (system: resolve)".into(),
        "KeystoreConfig" => "taken certificates of clients from a key store (system: tls)".into(),
        "SyncTimer" => {
            let size = node.text("groupSize").trim();
            format!(
                "held {} threads back until all had come, and let them go at once",
                if size.is_empty() { "all" } else { size }
            )
        }
        "XPathAssertion" => format!("checked the XPath {}", super::shown(node.text("XPath.xpath"))),
        "XPath2Assertion" => format!("checked the XPath {}", super::shown(node.text("XPath2.xpath"))),
        "JMESPathAssertion" if extract::jmes_path(node.text("JMES_PATH")).is_none() => {
            "checked a JMESPath".into()
        }
        "HTMLAssertion"
        | "XMLAssertion"
        | "XMLSchemaAssertion"
        | "SMIMEAssertionTestElement"
        | "SMIMEAssertion" => "checked the form of its answer".into(),
        "MD5HexAssertion" => "checked the MD5 of its answer".into(),
        "CompareAssertion" => "compared answers with each other".into(),
        "VariableThroughputTimer" => "kept its requests to a rate that changes over time".into(),
        "LoadosophiaUploader" | "PerfMonCollector" | "AutoStop" => {
            "watched or stopped the run (objectives, abort early)".into()
        }
        _ => return None,
    })
}

/// The first line of an element's script.
fn script(node: &Node<'_>) -> Option<String> {
    let kind = node.kind();
    let is_script = kind.contains("JSR223") || kind.contains("BeanShell") || kind.starts_with("BSF");
    if !is_script {
        return None;
    }
    let text = text_of_script(node);
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//") && !line.starts_with("import ");
    let mut lines = text.lines().map(str::trim);
    let first = lines.clone().find(is_code).or_else(|| lines.find(|line| !line.is_empty()));
    Some(first.unwrap_or("(empty)").to_owned())
}

fn text_of_script(node: &Node<'_>) -> String {
    let names = [
        "script",
        "BeanShellSampler.query",
        "BeanShellAssertion.query",
        "BSFSampler.query",
        "filename",
        "BeanShellSampler.filename",
    ];
    names
        .iter()
        .map(|name| node.text(name))
        .find(|text| !text.trim().is_empty())
        .unwrap_or_default()
        .to_owned()
}

/// All of a file; none where it cannot be read to its end.
fn whole(file: &std::path::Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    ((bytes.len() as u64) < FILE_BYTES_MAX).then_some(bytes)
}

/// Whether a file has quotes in it; also where that is not known.
fn has_quotes(file: &std::path::Path) -> bool {
    whole(file).is_none_or(|bytes| bytes.contains(&b'"'))
}

/// Whether each line that is not empty has so many cells; also where that is not known.
fn is_even(file: &std::path::Path, delimiter: &str, cells: usize) -> bool {
    let lines = |bytes: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.lines().filter(|line| !line.is_empty()).all(|line| cells_of(line, delimiter).len() == cells)
    };
    whole(file).is_none_or(lines)
}

/// The cells of a line; between quotes is no delimiter.
fn cells_of<'l>(line: &'l str, delimiter: &str) -> Vec<&'l str> {
    let mut is_quoted = false;
    let ends = |found: char| {
        is_quoted ^= found == '"';
        !is_quoted && delimiter.starts_with(found)
    };
    line.split(ends).collect()
}

impl<'a> Making<'a> {
    /// Makes what an element sets known, before anything is made of the plan.
    pub(super) fn declare_of(&mut self, node: &Node<'_>) {
        let names =
            |text: &str| -> Vec<String> { text.split(',').map(|name| name.trim().to_owned()).collect() };
        match node.kind() {
            "CSVDataSet" => self.columns(node).into_iter().for_each(|name| self.declare(&name, Holds::Text)),
            "CounterConfig" => {
                let holds =
                    if node.text("CounterConfig.format").is_empty() { Holds::Number } else { Holds::Text };
                self.declare(node.text("CounterConfig.name"), holds);
            }
            "RandomVariableConfig" => {
                let holds = if node.text("outputFormat").is_empty() { Holds::Number } else { Holds::Text };
                names(node.text("variableName")).iter().for_each(|name| self.declare(name, holds));
            }
            "UserParameters" => {
                for name in node.list("UserParameters.names") {
                    self.declare(&name.text, Holds::Text);
                }
            }
            "ForeachController" => self.declare(node.text("ForeachController.returnVal"), Holds::Text),
            "LoopController" | "WhileController" if !node.name().is_empty() => {}
            _ => {
                for (name, is_list) in extract::set_by(node) {
                    self.declare(&name, if is_list { Holds::List } else { Holds::Text });
                }
                for (name, group) in extract::groups_set_by(node) {
                    if self.plan.text.contains(&format!("{name}}}"))
                        || self.plan.text.contains(&format!("\"{name}\""))
                    {
                        self.declare(&name, if group.is_some() { Holds::Text } else { Holds::Number });
                    }
                }
                self.script_texts.extend(extract::not_set_by(node));
                if script(node).is_some() {
                    self.script_texts.push(text_of_script(node));
                }
            }
        }
    }

    /// Whether a script changes requests, or what the plan itself sets for them.
    pub(super) fn script_changes_requests(&self, node: &Node<'_>) -> bool {
        const PUTS: [&str; 5] =
            ["vars.put(", "vars.putObject(", "vars.remove(", "props.put(", "props.setProperty("];
        if script(node).is_none() {
            return false;
        }
        let text = text_of_script(node);
        let has = |signs: &[&str]| signs.iter().any(|sign| text.contains(sign));
        if node.kind().contains("PreProcessor") && has(&["sampler.", "getHeaderManager", "getCurrentSampler"])
        {
            return true;
        }
        let puts = PUTS.iter().flat_map(|sign| text.split(*sign).skip(1));
        puts.map(str::trim_start).any(|rest| {
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            let Some(name) = quote.and_then(|quote| rest[1..].split(quote).next()) else { return true };
            let is_property = ["__P(", "__property("]
                .iter()
                .any(|function| self.plan.text.contains(&format!("{function}{name}")));
            is_property || self.user_variables.contains_key(name) || self.variables.contains_key(name)
        })
    }

    /// Steps at the begin of a round of the controller that these lie in.
    pub(super) fn steps_of_round(&mut self, children: &'a [Node<'a>]) -> Vec<Step> {
        let mut steps = Vec::new();
        for node in children.iter().filter(|node| node.is_enabled()) {
            let before = std::mem::take(&mut self.before);
            let made = match node.kind() {
                "CSVDataSet" => self.data_set(node),
                "CounterConfig" => self.counted(node).into_iter().collect(),
                "RandomVariableConfig" => self.drawn(node),
                "UserParameters" => self.user_parameters(node),
                _ => Vec::new(),
            };
            steps.append(&mut std::mem::replace(&mut self.before, before));
            steps.extend(made);
        }
        steps
    }

    /// The columns of a data set: named in the plan, or in the file's first line.
    fn columns(&mut self, node: &Node<'_>) -> Vec<String> {
        let named = node.text("variableNames").trim();
        if !named.is_empty() {
            return named.split(',').map(|name| name.trim().to_owned()).collect();
        }
        let line = self.first_line(node);
        let delimiter = delimiter(node).unwrap_or_else(|| ",".into());
        let line = line.unwrap_or_default();
        let cells = line.split(delimiter.as_str()).map(|name| name.trim().trim_matches('"').to_owned());
        cells.filter(|name| !name.is_empty()).collect()
    }

    fn first_line(&mut self, node: &Node<'_>) -> Option<String> {
        let file = self.known(node.text("filename"), node).and_then(|file| self.file_beside(&file))?;
        let file = File::open(self.plan.folder.join(file)).ok()?;
        let mut line = Vec::new();
        BufReader::new(file.take(LINE_MAX)).read_until(b'\n', &mut line).ok()?;
        let line = String::from_utf8_lossy(&line);
        Some(line.trim_start_matches('\u{feff}').trim_end().to_owned())
    }

    /// A file of the plan that is there, relative to the plan's folder.
    pub(super) fn file_beside(&self, file: &str) -> Option<String> {
        let there = |file: &str| self.plan.folder.join(file).is_file();
        let relative = below(file).filter(|file| there(file));
        // a path of the author's machine: the file may lie beside the plan
        relative.or_else(|| {
            let name = file.trim().rsplit(['/', '\\']).next().unwrap_or_default();
            below(name).filter(|name| there(name))
        })
    }

    /// The same as the scenario names it, which may lie elsewhere.
    pub(super) fn named_file(&self, file: &str) -> String {
        tidemark_scenario::source::verbatim(&format!("{}{file}", self.plan.prefix))
    }

    fn data_set(&mut self, node: &'a Node<'a>) -> Vec<Step> {
        let written = node.text("filename").trim();
        let mode = node.text("shareMode").trim();
        let key = match mode {
            "shareMode.group" => format!("{} of {}", node.element.line, self.group.name),
            _ => node.element.line.to_string(),
        };
        let columns = self.columns(node);
        if columns.is_empty() {
            self.leave_out_request(
                node,
                &format!("read rows of {}, which is not there", super::shown(written)),
            );
            return Vec::new();
        }
        if mode == "shareMode.thread" {
            self.leave_out(node, "read its file from the first row in each thread; here the rows are shared");
        }
        if node.text("recycle").trim() == "false" {
            let would = match node.flag("stopThread") {
                true => "ended each thread at the end of its file; here it begins again",
                false => "set its variables to <EOF> behind the end of its file; here it begins again",
            };
            self.leave_out(node, would);
        }
        let slots: Vec<String> = columns.iter().map(|name| self.slot(name)).collect();
        let feeder = match self.known_feeders.get(&key).cloned() {
            Some(name) => name,
            None => {
                let stem = written.rsplit(['/', '\\']).next().unwrap_or_default();
                let stem = stem.split('.').next().filter(|stem| !stem.contains("${")).unwrap_or("rows");
                let name = self.own_name(if stem.is_empty() { "rows" } else { stem });
                let (made, renamed) = self.feeder(node, &slots);
                self.feeders.push((name.clone(), made));
                self.renamed.insert(name.clone(), renamed);
                self.known_feeders.insert(key, name.clone());
                name
            }
        };
        let renamed = self.renamed.get(&feeder).cloned().unwrap_or_default();
        let mut steps = vec![Step::Other(Map::from([("take", feeder)]))];
        if !renamed.is_empty() {
            steps.push(Step::Other(Map::from([("set", renamed)])));
        }
        steps
    }

    /// The feeder of a data set, and the variables of the plan that are columns of other names.
    fn feeder(&mut self, node: &Node<'_>, slots: &[String]) -> (Feeder, Map) {
        let written = node.text("filename").trim();
        let file = self.known(written, node).and_then(|file| self.file_beside(&file));
        let delimiter = delimiter(node);
        let encoding = match node.text("fileEncoding").trim().to_ascii_uppercase().as_str() {
            "" | "UTF-8" | "UTF8" | "US-ASCII" => Some(""),
            "ISO-8859-1" | "LATIN1" | "ISO-8859-15" => Some("latin-1"),
            "WINDOWS-1252" | "CP1252" => Some("windows-1252"),
            "UTF-16" => Some("utf-16"),
            _ => None,
        };
        let (Some(file), Some(delimiter), Some(encoding)) = (file, delimiter, encoding) else {
            return self.made_up(
                node,
                slots,
                "which is not in the plan's folder, or written in a way of its own",
            );
        };
        let line = self.first_line(node).unwrap_or_default();
        let head = cells_of(&line, &delimiter);
        let head: Vec<&str> = head.into_iter().map(|name| name.trim().trim_matches('"')).collect();
        let is_plain = !node.flag("quotedData") && encoding != "utf-16";
        if slots.len() > head.len()
            || (is_plain && !is_even(&self.plan.folder.join(&file), &delimiter, head.len()))
        {
            return self.made_up(node, slots, "whose lines have other numbers of cells");
        }
        if !node.flag("quotedData") && has_quotes(&self.plan.folder.join(&file)) {
            self.leave_out_request(
                node,
                "read the quotes of its file as they stand; here they are around a value: double each, with one around the whole value",
            );
        }
        let mut feeder = Feeder { file: Some(self.named_file(&file).into()), ..Feeder::default() };
        if delimiter != "," {
            let named = if delimiter == "\t" { "tab" } else { &delimiter };
            feeder.other.insert("delimiter", named);
        }
        if !encoding.is_empty() {
            feeder.other.insert("encoding", encoding);
        }
        let is_named = !node.text("variableNames").trim().is_empty();
        let has_head = !is_named || node.flag("ignoreFirstLine");
        let mut renamed = Map::new();
        let own = match slots.iter().zip(&head).all(|(slot, name)| slot == name) {
            true => &head[slots.len()..],
            false => &head[..],
        };
        let are_usable = own.iter().enumerate().all(|(at, name)| {
            name_of(name) == **name && !self.taken.contains(*name) && !own[..at].contains(name)
        });
        if has_head && are_usable {
            self.taken.extend(own.iter().map(|name| (*name).to_owned()));
            for (slot, name) in slots.iter().zip(&head).filter(|(slot, name)| slot != *name) {
                renamed.insert(slot.as_str(), format!("${{{name}}}"));
            }
        } else {
            let more = (slots.len()..head.len()).map(|_| self.own_name("column")).collect::<Vec<_>>();
            let names = slots.iter().chain(&more).map(|slot| Value::from(slot.as_str())).collect();
            feeder.other.insert("header", Value::List(names));
            if has_head {
                self.leave_out_request(node, "left out the first line of its file, whose names differ from those of the plan: rename them");
            }
        }
        (feeder, renamed)
    }

    /// A row in the place of a file.
    fn made_up(&mut self, node: &Node<'_>, slots: &[String], why: &str) -> (Feeder, Map) {
        let written = super::shown(node.text("filename").trim());
        self.leave_out_request(
            node,
            &format!("read rows of {written}, {why}; a made-up row stands in its place"),
        );
        let row: Map = slots.iter().map(|slot| (slot.as_str(), format!("{slot} 1"))).collect();
        let comment = format!("in place of the plan's {written}");
        (Feeder { comment, rows: vec![row.into()], ..Feeder::default() }, Map::new())
    }

    fn counted(&mut self, node: &Node<'_>) -> Option<Step> {
        let text = |name| node.text(name).trim();
        let slot = self.slot(text("CounterConfig.name"));
        let start = self.number(text("CounterConfig.start"), node).unwrap_or(0.0) as i64;
        let step = self.number(text("CounterConfig.incr"), node).unwrap_or(1.0) as i64;
        let end = self.number(text("CounterConfig.end"), node).map(|end| end as i64);
        let count = match node.flag("CounterConfig.per_user") {
            true => {
                if node.flag("CounterConfig.reset_on_tg_iteration") {
                    self.leave_out(node, "begun again with each round");
                }
                let own = self.own_name("count");
                self.before.push(set(&own, &format!("default({own}, -1) + 1")));
                own
            }
            false => format!("count({})", self.counter(&format!("counter {}", node.element.line))),
        };
        let count = match end.filter(|end| step != 0 && *end >= start && *end < i64::MAX / 2) {
            Some(end) => format!("{count} % {}", (end - start) / step + 1),
            None => count,
        };
        let value = match (start, step) {
            (0, 1) => count,
            (start, 1) => format!("{start} + {count}"),
            (start, step) => format!("{start} + {step} * ({count})"),
        };
        let value = self.formatted(&value, node.text("CounterConfig.format"), node)?;
        Some(set(&slot, &value))
    }

    fn drawn(&mut self, node: &Node<'_>) -> Vec<Step> {
        let bound = |making: &mut Self, name| {
            making.expression(node.text(name).trim(), node).map(|expr| number(&expr))
        };
        let found = bound(self, "minimumValue").zip(bound(self, "maximumValue"));
        let Some((low, high)) = found.filter(|(low, high)| !low.contains('\'') && !high.contains('\''))
        else {
            self.leave_out_request(node, "drawn a random number between bounds that are none");
            return Vec::new();
        };
        let names: Vec<String> =
            node.text("variableName").split(',').map(|name| name.trim().to_owned()).collect();
        let mut steps = Vec::new();
        for name in names.iter().filter(|name| !name.is_empty()) {
            let slot = self.slot(name);
            let value = format!("random({low}, {high})");
            let value = self.formatted(&value, node.text("outputFormat"), node);
            steps.extend(value.map(|value| set(&slot, &value)));
        }
        steps
    }

    /// A number in a format of Java's DecimalFormat: texts around zeros.
    fn formatted(&mut self, value: &str, format: &str, node: &Node<'_>) -> Option<String> {
        if format.is_empty() {
            return Some(value.to_owned());
        }
        let format = format.replace('\'', "");
        let begin = format.find(['0', '#']);
        let end = format.rfind(['0', '#']).map(|at| at + 1);
        let Some((begin, end)) = begin.zip(end) else {
            self.leave_out_request(node, &format!("written its number as {}", super::shown(&format)));
            return None;
        };
        let digits = &format[begin..end];
        if !digits.chars().all(|c| matches!(c, '0' | '#')) {
            self.leave_out_request(node, &format!("written its number as {}", super::shown(&format)));
            return None;
        }
        let width = digits.chars().filter(|c| *c == '0').count();
        let value = if width > 1 { format!("pad({value}, {width})") } else { value.to_owned() };
        let mut parts = Vec::new();
        if begin > 0 {
            parts.push(quoted(&format[..begin]));
        }
        parts.push(value);
        if end < format.len() {
            parts.push(quoted(&format[end..]));
        }
        Some(if parts.len() == 1 { parts.remove(0) } else { format!("concat({})", parts.join(", ")) })
    }

    /// Values by the number of the thread, or one for all.
    fn user_parameters(&mut self, node: &'a Node<'a>) -> Vec<Step> {
        let slots: Vec<String> =
            node.list("UserParameters.names").iter().map(|name| self.slot(&name.text)).collect();
        let threads = node.list("UserParameters.thread_values");
        if slots.is_empty() {
            return Vec::new();
        }
        if let [only] = threads {
            let mut steps = Vec::new();
            for (slot, value) in slots.iter().zip(&only.children) {
                steps.extend(self.expression(&value.text, node).map(|expr| set(slot, &expr.text)));
            }
            return steps;
        }
        let mut rows = Vec::new();
        for values in threads {
            let mut row = Map::new();
            for (at, slot) in slots.iter().enumerate() {
                let text = values.children.get(at).map(|value| value.text.as_str()).unwrap_or_default();
                let Some(known) = self.known(text, node) else {
                    self.leave_out_request(
                        node,
                        "set its variables to values that are known only while it runs",
                    );
                    return Vec::new();
                };
                row.insert(slot.as_str(), tidemark_scenario::source::verbatim(&known));
            }
            rows.push(row.into());
        }
        if rows.is_empty() {
            return Vec::new();
        }
        let key = format!("parameters {}", node.element.line);
        if !self.known_feeders.contains_key(&key) {
            let name = self.own_name("parameters");
            self.feeders.push((name.clone(), Feeder { rows, ..Feeder::default() }));
            self.known_feeders.insert(key.clone(), name);
        }
        let take = Step::Other(Map::from([("take", self.known_feeders[&key].clone())]));
        if self.group.is_thread {
            // each thread has its own
            self.group.start.push(take);
            return Vec::new();
        }
        vec![take]
    }

    /// `${__StringFromFile(file)}`: a line for each call.
    pub(super) fn lines_of(&mut self, file: &str) -> Option<Expr> {
        let path = self.file_beside(file)?;
        let key = format!("lines {path}");
        if !self.known_feeders.contains_key(&key) {
            let name = self.own_name("lines");
            let mut feeder = Feeder { file: Some(self.named_file(&path).into()), ..Feeder::default() };
            feeder.other.insert("header", Value::List(vec![Value::Scalar(Scalar::from("line"))]));
            // a sign that no text has
            feeder.other.insert("delimiter", "\u{1f}");
            self.feeders.push((name.clone(), feeder));
            self.known_feeders.insert(key.clone(), name);
        }
        Some(Expr::computed(format!("next({})", self.known_feeders[&key])))
    }

    /// `${__CSVRead(file,0)}`, `${__CSVRead(file,next)}`: a row is a thread's until it asks for the next one.
    pub(super) fn cell_of(&mut self, file: &str, column: &str, node: &Node<'_>) -> Option<Expr> {
        let path = self.file_beside(file)?;
        let key = format!("cells {path}");
        let opened = File::open(self.plan.folder.join(&path)).ok()?;
        let mut line = Vec::new();
        BufReader::new(opened.take(LINE_MAX)).read_until(b'\n', &mut line).ok()?;
        let count = String::from_utf8_lossy(&line).split(',').count();
        if !self.known_feeders.contains_key(&key) {
            let name = self.own_name("cells");
            let columns = (0..count).map(|at| Value::from(format!("{name}_{at}"))).collect();
            let mut feeder = Feeder { file: Some(self.named_file(&path).into()), ..Feeder::default() };
            feeder.other.insert("header", Value::List(columns));
            self.feeders.push((name.clone(), feeder));
            self.known_feeders.insert(key.clone(), name.clone());
        }
        let name = self.known_feeders[&key].clone();
        let take = Step::Other(Map::from([("take", name.clone())]));
        if !self.group.start.contains(&take) {
            self.group.start.push(take.clone());
        }
        if column.trim() == "next" {
            self.after.push(take);
            return Some(Expr::literal(""));
        }
        let at: usize = self.known(column, node)?.trim().parse().ok()?;
        (at < count).then(|| Expr::computed(format!("{name}_{at}")))
    }
}

/// What stands between cells; none where the language has no such.
fn delimiter(node: &Node<'_>) -> Option<String> {
    let written = node.text("delimiter");
    let delimiter = match written {
        "" => ",",
        "\\t" => "\t",
        // no line has it: a sign that no text has
        "\n" | "\\n" | "\\r\\n" => "\u{1f}",
        other => other,
    };
    (delimiter.chars().count() == 1).then(|| delimiter.to_owned())
}
