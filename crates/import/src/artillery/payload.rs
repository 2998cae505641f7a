//! Files with a row for each user.

use tidemark_scenario::source::{Feeder, Value, verbatim};

use super::{Making, Payload};
use crate::names::{free, name_of};
use crate::plan::shown;
use crate::tree::Node;

/// Most lines of a file that are looked at for their shape.
const LINES_MAX: usize = 1_000_000;

impl Making<'_> {
    pub(super) fn payload(&mut self) {
        let all = self.of("payload").map(Node::one_or_many).unwrap_or_default();
        for node in all {
            let file = self.written_out(node.text("path").unwrap_or_default());
            let element = format!("payload {}", shown(&file));
            let fields: Vec<String> = node
                .list("fields")
                .iter()
                .filter_map(|field| Some(field.as_str()?.trim().to_owned()))
                .collect();
            node.ignore(&["cast", "skipEmptyLines"]);
            let is_cast = node.text("cast") != Some("false");
            let order = node.text("order").unwrap_or("random").to_owned();
            let skips = node.is_true("skipHeader");
            let delimiter = node.text("delimiter").unwrap_or(",").to_owned();
            if node.is_true("loadAll") {
                self.draft.tell(node.line, &element, "given each user all rows of the file at once", true);
                node.done();
                continue;
            }
            for key in ["name", "loadAll"] {
                node.ignore(&[key]);
            }
            let text = self.draft.file.text_of(&file);
            let Some((path, text)) = text.filter(|_| !fields.is_empty()) else {
                let would = if fields.is_empty() {
                    "given users rows of the file: its fields cannot be read".to_owned()
                } else {
                    format!("given users rows of {:?}, which is not in the script's folder", shown(&file))
                };
                self.draft.tell(node.line, &element, would, true);
                node.done();
                continue;
            };
            let mark = match delimiter.as_str() {
                "\t" | "\\t" => '\t',
                text => text.chars().next().unwrap_or(','),
            };
            self.feeder(node, &element, &path, &text, &fields, mark, (skips, is_cast, &order));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all of them are what the file says of one payload")]
    fn feeder(
        &mut self,
        node: &Node,
        element: &str,
        path: &str,
        text: &str,
        fields: &[String],
        mark: char,
        (skips, is_cast, order): (bool, bool, &str),
    ) {
        let cells = |line: &str| -> Vec<String> {
            line.split(mark).map(|cell| cell.trim().trim_matches('"').to_owned()).collect()
        };
        let mut rows = text.lines().take(LINES_MAX).filter(|line| !line.trim().is_empty());
        let Some(first) = rows.next().map(cells) else {
            return self.draft.tell(node.line, element, "given users rows of a file that is empty", true);
        };
        let rows: Vec<Vec<String>> = rows.map(cells).collect();
        let is_number = |at: usize| {
            let row = if skips { None } else { Some(&first) };
            let mut all = row.into_iter().chain(&rows);
            is_cast && all.any(|row| row.get(at).is_some_and(|cell| cell.parse::<f64>().is_ok()))
        };
        let ours: Vec<String> = fields.iter().map(|field| self.draft.variable(field)).collect();
        let mut header = ours.clone();
        // a row has a cell for each column here
        for at in header.len()..first.len() {
            header.push(format!("column_{}", at + 1));
        }
        header.truncate(first.len());
        let base = path.rsplit('/').next().unwrap_or(path);
        let base = name_of(base.rsplit_once('.').map_or(base, |(name, _)| name));
        let is_taken = |name: &str| {
            self.feeders.iter().any(|(known, _)| known == name)
                || header.iter().any(|known| known == name)
                || self.draft.settings.map.get(name).is_some()
        };
        let feeder = free(&base, &format!("{base}_rows"), is_taken);
        let mut made = Feeder {
            file: Some(verbatim(path).into()),
            order: (order != "sequence").then(|| "random".into()),
            ..Feeder::default()
        };
        if skips && header != first {
            let would = format!(
                "passed over the first line of the file: change it to {:?}",
                shown(&header.join(&mark.to_string()))
            );
            self.draft.tell(node.line, element, would, true);
        }
        if !skips || header != first {
            made.other
                .insert("header", Value::List(header.iter().map(|name| name.as_str().into()).collect()));
        }
        if mark != ',' {
            made.other.insert("delimiter", if mark == '\t' { "tab".to_owned() } else { mark.to_string() });
        }
        let fields = ours.into_iter().enumerate().map(|(at, name)| (name, is_number(at))).collect();
        self.feeders.push((feeder.clone(), made));
        self.payloads.push(Payload { feeder, fields });
    }
}
