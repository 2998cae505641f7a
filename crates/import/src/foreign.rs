//! Files of other tools, which are not read: what they are is told, with the way out.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Bytes of a file that are looked at.
const LOOKED_AT: u64 = 64 << 10;
/// Bytes of a file that are looked at for a plan: as many as a script in YAML has.
const PLAN_LOOKED_AT: u64 = 4 << 20;
/// Bytes of JSON that are its beginning.
const JSON_BEGIN: usize = 400;

/// What a file is, how its name ends, what it looks like, and the way out: of what is read elsewhere the command, with FILE
/// in the place of its name. The first that fits counts.
struct Kind {
    what: &'static str,
    ends: &'static [&'static str],
    looks: Looks,
    way_out: &'static str,
}

/// By what a file is known, whatever it is called. What it quotes (a HAR file has all that was answered) says nothing.
enum Looks {
    /// By its name only.
    Named,
    /// XML with any of these in it.
    Xml(&'static [&'static str]),
    /// JSON that begins with any of these keys or values.
    Json(&'static [&'static str]),
    /// A line that begins so, and has any of these in it.
    Line(&'static [&'static str], &'static [&'static str]),
    /// Each of these keys of YAML at the beginning of a line.
    Keys(&'static [&'static str]),
}

/// What tells most of what a test of another tool does.
const RECORD: &str = "record what it sends as a HAR file (with a browser or a proxy) and give that to `tidemark init`, or write its requests \
     as docs/scenario.md shows";

/// Of what can be made a scenario.
const INIT: &str = "make a scenario of it: tidemark init FILE -o my.yaml";

/// Of plans that become scenarios.
const IMPORT: &str = "tidemark import FILE -o my.yaml";

/// Of scripts that are run as they are.
const SCRIPT: &str = "tidemark hit -s FILE URL, or name it in a scenario (docs/scripts.md)";

/// The same of k6.
const K6: &str = "tidemark run FILE, or tidemark import FILE -o my.yaml for a scenario of it (docs/k6.md)";

/// A load tool whose plans are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// JMeter: a test plan.
    JMeter,
    /// Tsung: a configuration.
    Tsung,
    /// Postman: a collection.
    Postman,
    /// Artillery: a script.
    Artillery,
}

impl Tool {
    /// The tools by their words on a command line.
    pub const WORDS: [(&str, Tool); 4] = [
        ("jmeter", Tool::JMeter),
        ("tsung", Tool::Tsung),
        ("postman", Tool::Postman),
        ("artillery", Tool::Artillery),
    ];

    /// The tool of a word.
    pub fn of_word(word: &str) -> Option<Tool> {
        Tool::WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, tool)| *tool)
    }
}

/// The tool whose plan a text is.
pub(crate) fn plan_of(text: &str) -> Option<Tool> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('{') {
        return plan_of_json(text);
    }
    if !text.starts_with('<') {
        return is_artillery(text).then_some(Tool::Artillery);
    }
    let is_root = |tag: &str| {
        let behind = text.split_once(tag).map(|(_, behind)| behind);
        behind.is_some_and(|behind| behind.starts_with(|c: char| c.is_whitespace() || c == '>'))
    };
    if is_root("<jmeterTestPlan") { Some(Tool::JMeter) } else { is_root("<tsung").then_some(Tool::Tsung) }
}

/// The tool whose plan a text of JSON is, by its outermost keys. It may be cut off: then what came so far counts.
fn plan_of_json(text: &str) -> Option<Tool> {
    let keys = outer_keys(text);
    let has = |key: &str| keys.iter().any(|(known, _)| known == key);
    let is_collection = |from: usize| {
        // the schema's name stands in the first lines, or in those of `info` at least
        let behind = text.get(from..).unwrap_or_default();
        let at = ["schema.getpostman.com/", "schema.postman.com/"].iter().find_map(|host| behind.find(host));
        at.is_some_and(|at| behind[at..].split('"').next().is_some_and(|url| url.contains("/collection/v2.")))
    };
    if let Some((_, from)) = keys.iter().find(|(key, _)| key == "info") {
        return (has("item") || keys.len() == 1)
            .then_some(())
            .filter(|()| is_collection(*from))
            .map(|()| Tool::Postman);
    }
    (has("config") && has("scenarios")).then_some(Tool::Artillery)
}

/// The keys of the outermost object of JSON, and where each stands.
fn outer_keys(text: &str) -> Vec<(String, usize)> {
    let (mut keys, mut depth, mut begin, mut escaped) = (Vec::new(), 0usize, None, false);
    let mut last = None;
    for (at, byte) in text.bytes().enumerate() {
        match (begin, byte) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(from), b'"') => {
                (begin, last) = (None, Some((from + 1, at)));
            }
            (Some(_), _) => {}
            (None, b'"') => begin = Some(at),
            (None, b':') if depth == 1 => {
                if let Some((from, to)) = last.take() {
                    keys.push((text.get(from..to).unwrap_or_default().to_owned(), from));
                }
            }
            (None, b'{' | b'[') => depth += 1,
            (None, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    keys
}

/// Whether a text of YAML has the keys of a script at the beginning of lines.
fn is_artillery(text: &str) -> bool {
    let has = |key: &str| {
        text.lines().any(|line| {
            line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'))
                || [('"', '"'), ('\'', '\'')].iter().any(|(a, b)| line.starts_with(&format!("{a}{key}{b}:")))
        })
    };
    has("scenarios") && has("config")
}

/// Whether a file is such a plan.
pub(crate) fn is_plan(file: &Path) -> bool {
    let mut begin = Vec::new();
    // a pipe may never end
    let is_read = file.is_file()
        && File::open(file).is_ok_and(|file| file.take(PLAN_LOOKED_AT).read_to_end(&mut begin).is_ok());
    // the last character may be cut
    is_read && plan_of(&text_of(begin)).is_some()
}

/// The text of a file's beginning.
fn text_of(mut begin: Vec<u8>) -> String {
    begin.truncate(begin.len() & !1);
    text(begin.clone()).unwrap_or_else(|_| String::from_utf8_lossy(&begin).into_owned())
}

/// Of load tools and the like.
const TOOLS: &[Kind] = &[
    Kind { what: "a JMeter plan", ends: &["jmx"], looks: Looks::Xml(&["<jmeterTestPlan"]), way_out: IMPORT },
    Kind {
        what: "a Tsung plan",
        ends: &[],
        looks: Looks::Xml(&["<tsung", "tsung-1.0.dtd"]),
        way_out: IMPORT,
    },
    Kind { what: "an XML document", ends: &["xml", "wsdl"], looks: Looks::Xml(&["<"]), way_out: RECORD },
    Kind {
        what: "a collection of Postman",
        ends: &[],
        looks: Looks::Json(&[
            "schema.getpostman.com/json/collection/v2.",
            "schema.postman.com/json/collection/v2.",
            "schema.postman.com/collection/v2.",
        ]),
        way_out: IMPORT,
    },
    Kind {
        what: "a file of Postman's (a collection has version 2.1)",
        ends: &[],
        looks: Looks::Json(&[
            "\"_postman_id\"",
            "\"_postman_variable_scope\"",
            "schema.getpostman.com",
            "schema.postman.com",
        ]),
        way_out: "copy its requests as cURL into a file and give that to `tidemark hit --urls`, or export the API as OpenAPI \
                  for `tidemark init`",
    },
    Kind {
        what: "an export of Insomnia",
        ends: &[],
        looks: Looks::Json(&["\"__export_format\""]),
        way_out: "copy its requests as cURL into a file and give that to `tidemark hit --urls`",
    },
    Kind {
        what: "a k6 script",
        ends: &[],
        looks: Looks::Line(
            &["import ", "const ", "let ", "var ", "} from"],
            &["from 'k6", "from \"k6", "require('k6", "require(\"k6"],
        ),
        way_out: K6,
    },
    Kind {
        what: "a Gatling simulation",
        ends: &["scala", "kt", "java"],
        looks: Looks::Line(&["import "], &["io.gatling."]),
        way_out: RECORD,
    },
    Kind {
        what: "a locustfile",
        ends: &[],
        looks: Looks::Line(&["from locust", "import locust"], &[""]),
        way_out: RECORD,
    },
    Kind { what: "a wrk script", ends: &["lua"], looks: Looks::Line(&["wrk."], &["="]), way_out: SCRIPT },
    Kind {
        what: "a script of Artillery",
        ends: &[],
        looks: Looks::Keys(&["config", "scenarios"]),
        way_out: IMPORT,
    },
    Kind {
        what: "a benchmark of Hyperfoil",
        ends: &[],
        looks: Looks::Keys(&["http", "phases"]),
        way_out: RECORD,
    },
    Kind {
        what: "a script (of k6, say)",
        ends: &["js", "mjs", "cjs", "ts", "py"],
        looks: Looks::Named,
        way_out: RECORD,
    },
    Kind {
        what: "a recording of packets or of a proxy's own format",
        ends: &["pcap", "pcapng", "saz", "chls", "chlsj", "flow", "mitm"],
        looks: Looks::Named,
        way_out: "save it as a HAR file",
    },
    Kind {
        what: "a shell script",
        ends: &["sh", "bash"],
        looks: Looks::Line(&["#!"], &["sh"]),
        way_out: "give its command lines of curl to `tidemark hit --urls FILE`",
    },
];

/// What `init` reads and nothing else does.
const OF_INIT: &[Kind] = &[
    Kind { what: "a HAR recording", ends: &["har"], looks: Looks::Json(&["\"log\""]), way_out: INIT },
    Kind {
        what: "an OpenAPI document",
        ends: &[],
        looks: Looks::Json(&["\"openapi\"", "\"swagger\""]),
        way_out: INIT,
    },
    Kind { what: "an OpenAPI document", ends: &[], looks: Looks::Keys(&["openapi"]), way_out: INIT },
    Kind { what: "an OpenAPI document", ends: &[], looks: Looks::Keys(&["swagger"]), way_out: INIT },
];

/// The text of a file: UTF-8, or UTF-16 as Windows saves it, which its mark tells, or zeros in every second of its first
/// bytes. A mark is left out.
pub(crate) fn text(bytes: Vec<u8>) -> Result<String, &'static str> {
    let low_first = match bytes.as_slice() {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => {
            return Err("it is UTF-32: save it as UTF-8 (`iconv -f UTF-32 -t UTF-8`)");
        }
        [0xff, 0xfe, ..] => Some(true),
        [0xfe, 0xff, ..] => Some(false),
        [a, 0, b, 0, ..] if *a != 0 && *b != 0 => Some(true),
        [0, a, 0, b, ..] if *a != 0 && *b != 0 => Some(false),
        _ => None,
    };
    let text = match low_first {
        None => String::from_utf8(bytes).map_err(|_| {
            "it is neither UTF-8 nor UTF-16: save it as UTF-8 (`iconv -f ISO-8859-1 -t UTF-8`, if it is Latin-1)"
        })?,
        Some(low_first) => {
            let (pairs, rest) = bytes.as_chunks::<2>();
            let unit = if low_first { u16::from_le_bytes } else { u16::from_be_bytes };
            let units = pairs.iter().map(|pair| unit(*pair));
            let text = char::decode_utf16(units).collect::<Result<String, _>>().ok();
            text.filter(|_| rest.is_empty()).ok_or("it begins as UTF-16 and is not: save it as UTF-8")?
        }
    };
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Whether a file's name is that of a foreign tool's.
pub(crate) fn has_its_name(file: &Path) -> bool {
    TOOLS.iter().any(|kind| kind.is_named(file))
}

/// Says what a file is, if it is of a tool whose files are not read at all.
pub(crate) fn of_tool(file: &Path) -> Option<String> {
    told(file, TOOLS.iter())
}

/// Says what a file is that was given as a scenario, if it is known to be something else.
pub fn of_file(file: &Path) -> Option<String> {
    told(file, TOOLS.iter().chain(OF_INIT))
}

fn told<'k>(file: &Path, kinds: impl Iterator<Item = &'k Kind>) -> Option<String> {
    let mut begin = Vec::new();
    // a pipe may never end
    if file.is_file() {
        File::open(file).ok()?.take(LOOKED_AT).read_to_end(&mut begin).ok()?;
    } else {
        return None;
    }
    of_text(&String::from_utf8_lossy(&begin), kinds, Some(file))
}

/// Says what a text is that stands in no file.
pub(crate) fn of_no_file(text: &str) -> Option<String> {
    of_text(text, TOOLS.iter().chain(OF_INIT), None)
}

fn of_text<'k>(text: &str, mut kinds: impl Iterator<Item = &'k Kind>, file: Option<&Path>) -> Option<String> {
    // a comment may speak of another tool
    if text.lines().any(|line| line.starts_with("sessions:")) {
        return None;
    }
    let kind = kinds.find(|kind| kind.looks_so(text) || file.is_some_and(|file| kind.is_named(file)))?;
    let Kind { what, way_out, .. } = kind;
    let Some(file) = file.map(Path::display) else {
        return Some(format!("this is {what}, which is not read from there; save it as FILE: {way_out}"));
    };
    if way_out.starts_with("tidemark ") {
        return Some(format!("{file} is {what}: {}", way_out.replace("FILE", &file.to_string())));
    }
    Some(format!("{file}: this is {what}, which is not read here; {way_out}"))
}

impl Kind {
    fn is_named(&self, file: &Path) -> bool {
        let end = file.extension().and_then(|end| end.to_str()).unwrap_or_default();
        self.ends.iter().any(|known| known.eq_ignore_ascii_case(end))
    }

    fn looks_so(&self, text: &str) -> bool {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let (is_xml, is_json) = (text.starts_with('<'), text.starts_with(['{', '[']));
        let has_any = |text: &str, parts: &[&str]| parts.iter().any(|part| text.contains(part));
        match self.looks {
            Looks::Named => false,
            Looks::Xml(parts) => is_xml && has_any(text, parts),
            Looks::Json(parts) => {
                let begin: String = text.chars().take(JSON_BEGIN).collect();
                is_json && has_any(&begin, parts)
            }
            Looks::Line(begins, parts) => {
                let is_one =
                    |line: &str| begins.iter().any(|begin| line.starts_with(begin)) && has_any(line, parts);
                !is_xml && !is_json && text.lines().any(is_one)
            }
            Looks::Keys(keys) => keys.iter().all(|key| {
                text.lines().any(|line| line.strip_prefix(*key).is_some_and(|rest| rest.starts_with(':')))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_16_is_read_where_nothing_else_can_be_meant() {
        let low = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let high = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
        let har = "{\"log\": \"\u{f6}\u{1f600}\"}";
        let marked = format!("\u{feff}{har}");
        for bytes in [
            low(har),
            high(har),
            low(&marked),
            high(&marked),
            har.as_bytes().into(),
            marked.as_bytes().into(),
        ] {
            assert_eq!(text(bytes).as_deref(), Ok(har));
        }
        assert_eq!(text(Vec::new()).as_deref(), Ok(""));
        let odd = [low(&marked), vec![b'x']].concat();
        let half = [low(&marked), 0xd800_u16.to_le_bytes().to_vec()].concat();
        let utf_32 = [0xff, 0xfe, 0, 0, b'{', 0, 0, 0].to_vec();
        for (bytes, says) in [
            (odd, "UTF-16 and is not"),
            (half, "UTF-16 and is not"),
            (utf_32, "UTF-32"),
            (vec![b'{', 0xf6], "iconv"),
        ] {
            assert!(text(bytes).unwrap_err().contains(says), "{says}");
        }
    }

    #[test]
    fn files_of_other_tools_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let says = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            of_file(&file)
        };
        for (name, text, what) in [
            ("t.js", "import http from 'k6/http';\nexport default function () {}", "a k6 script"),
            ("t.ts", "import { check } from \"k6\";", "a k6 script"),
            ("t.js", "const a = 1;", "a script (of k6, say)"),
            ("t.jmx", "<?xml version=\"1.0\"?>\n<jmeterTestPlan version=\"1.2\">", "a JMeter plan"),
            ("plan", "<jmeterTestPlan>", "a JMeter plan"),
            ("t.xml", "<?xml version=\"1.0\"?>\n<!DOCTYPE tsung SYSTEM \"tsung-1.0.dtd\">", "a Tsung plan"),
            ("t.xml", "<?xml version=\"1.0\"?>\n<a/>", "an XML document"),
            (
                "t.json",
                "{\"info\": {\"_postman_id\": \"1\"}, \"item\": []}",
                "a file of Postman's (a collection has version 2.1)",
            ),
            (
                "t.json",
                "{\"info\": {\"schema\": \"https://schema.getpostman.com/json/collection/v2.1.0/collection.json\"}, \"item\": []}",
                "a collection of Postman",
            ),
            ("T.scala", "class T extends Simulation", "a Gatling simulation"),
            ("t.py", "from locust import HttpUser", "a locustfile"),
            ("t.lua", "wrk.method = 'POST'", "a wrk script"),
            ("t.yml", "config:\n  target: http://h\nscenarios:\n  - flow: []\n", "a script of Artillery"),
            ("t.yaml", "name: t\nhttp:\n  host: http://h\nphases: []\n", "a benchmark of Hyperfoil"),
            ("t.har", "{\"log\": {}}", "a HAR recording"),
            ("t.yaml", "openapi: 3.0.0\npaths: {}\n", "an OpenAPI document"),
            ("t.json", "{\"swagger\": \"2.0\"}", "an OpenAPI document"),
        ] {
            let told = says(name, text).unwrap_or_else(|| panic!("{name}: {text}"));
            let is_read = [
                "a wrk script",
                "a k6 script",
                "a JMeter plan",
                "a Tsung plan",
                "a collection of Postman",
                "a script of Artillery",
            ]
            .contains(&what);
            let says = if is_read {
                format!("{name} is {what}: tidemark ")
            } else {
                format!("this is {what}, which is not read here; ")
            };
            assert!(told.contains(&says), "{told}");
        }
        for (name, text, what) in [
            (
                "t.lua",
                "",
                " is a wrk script: tidemark hit -s FILE URL, or name it in a scenario (docs/scripts.md)",
            ),
            ("p.jmx", "", " is a JMeter plan: tidemark import FILE -o my.yaml"),
            ("p.xml", "<tsung>", " is a Tsung plan: tidemark import FILE -o my.yaml"),
        ] {
            let file = folder.path().join(name).display().to_string();
            assert_eq!(says(name, text), Some(format!("{file}{}", what.replace("FILE", &file))));
        }
        for text in [
            "{\"openapi\": \"3.0.0\", \"a\": \"<?xml version=1?> import x from 'k6'\"}",
            "openapi: 3.0.0\ninfo:\n  description: |\n    import http from 'k6/http'\n    <tsung>",
            "{\"log\": {\"entries\": [\"wrk.method = 1\", \"from locust\"]}}",
        ] {
            let file = folder.path().join("quoting");
            std::fs::write(&file, text).unwrap();
            assert!(of_tool(&file).is_none(), "{text}");
        }
        for text in ["sessions: {a: {steps: []}}", "sessions:\n# from 'k6'\n  a: 1", "system: {url: x}\n"] {
            assert_eq!(says("t.yaml", text), None, "{text}");
        }
        assert!(of_file(&folder.path().join("none.js")).is_none());
        assert!(has_its_name(Path::new("none.jmx")) && !has_its_name(Path::new("none.yaml")));
        // what init reads is no other tool's
        let file = folder.path().join("t.har");
        std::fs::write(&file, "{\"log\": {}}").unwrap();
        assert!(of_tool(&file).is_none());
    }
}
