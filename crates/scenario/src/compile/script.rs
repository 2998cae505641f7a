//! Sessions whose requests a script makes.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use super::requests::Requests;
use crate::language;
use crate::plan::{Grace, Op, SCRIPT_BYTES_MAX, ScriptBounds, ScriptPlan, ScriptTool, SessionKind};
use crate::reader::Reader;
use crate::sink::Sink;
use crate::units::{Size, Time};
use crate::yaml::Node;

/// Least memory and time in which JavaScript runs at all.
const MEMORY_MIN: u64 = 4 << 20;
const STEP_MIN: Duration = Duration::from_millis(1);

/// A session of this name; nothing where its script cannot be read, which has been reported.
pub(super) fn session(
    name: &Node,
    said: &language::Session<'_>,
    base: &Path,
    reader: &Reader<'_>,
    requests: &mut Requests,
) -> Option<SessionKind> {
    let file = said.script.value.clone()?;
    let path = base.join(&file);
    let Some(tool) = path.extension().and_then(|extension| ScriptTool::of(extension.to_str()?)) else {
        let message = "a script is a file of wrk, which ends in .lua, or of k6, which ends in .js or .ts";
        said.script.error(reader.sink, message);
        return None;
    };
    check_tool(said, tool, reader);
    let source = match read(&path) {
        Ok(source) => source,
        Err(why) => {
            said.script.error(reader.sink, format!("cannot read {}: {why}", path.display()));
            return None;
        }
    };
    let args = said.args.value.map(Node::items).unwrap_or_default();
    let is_pair = |text: &str| text.split_once('=').is_some_and(|(name, _)| !name.is_empty());
    let arg = |node: &Node| {
        let text = reader.text(node)?;
        if tool == ScriptTool::K6 && !is_pair(&text) {
            reader.sink.error(node, "of a script of k6 this is NAME=VALUE, which it finds as __ENV.NAME");
        }
        Some(text)
    };
    let args = args.iter().filter_map(arg).collect();
    let route = said.path.value.clone().unwrap_or_else(|| "/".to_owned());
    if !route.starts_with('/') {
        said.path.error(reader.sink, "a path begins with a slash");
    }
    let words = name.text().unwrap_or_default().to_owned();
    let label = requests.label_of_script(name, &words, reader.sink)?;
    let mut labels = Vec::new();
    for node in said.labels.value.map(Node::items).unwrap_or_default() {
        if let Some(text) = reader.text(node) {
            labels.push((text.clone(), requests.label_of_script(node, &text, reader.sink)?));
        }
    }
    let headers = requests.default_headers.iter();
    let header = |(name, value): &(Node, Node)| Some((name.text()?.to_owned(), reader.text(value)?));
    let script = ScriptPlan {
        tool,
        exec: said.exec.value.clone().unwrap_or_else(|| "default".to_owned()),
        iterations: said.iterations.value,
        grace: grace(said),
        labels,
        headers: headers.filter_map(header).collect(),
        timeout: requests.default_timeout(),
        source: source.into(),
        file,
        path,
        bounds: ScriptBounds::default(),
        args,
        route,
        label,
    };
    requests.uses.push(Vec::new());
    Some(SessionKind {
        name: words,
        weight: 0,
        slots: 0,
        slot_names: Vec::new(),
        keep_cookies: false,
        ops: vec![Op::Program, Op::End],
        script: Some(script),
    })
}

/// How long iterations go on, where that is said.
fn grace(said: &language::Session<'_>) -> Option<Grace> {
    let (stop, ramp_down) = (said.graceful_stop.value, said.graceful_ramp_down.value);
    stop.or(ramp_down)?;
    Some(Grace { stop: stop.unwrap_or(Duration::MAX), ramp_down: ramp_down.unwrap_or(Duration::MAX) })
}

/// The keys that only scripts of k6 have.
fn keys_of_k6<'n>(said: &language::Session<'n>) -> [Option<&'n Node>; 5] {
    let (stop, ramp_down) = (said.graceful_stop.key(), said.graceful_ramp_down.key());
    [said.exec.key(), said.iterations.key(), said.labels.key(), stop, ramp_down]
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let words = |error: std::io::Error| error.to_string();
    let file = File::open(crate::outside::path_of(path)).map_err(words)?;
    if !file.metadata().map_err(words)?.is_file() {
        return Err("it is not a file".into());
    }
    let mut source = Vec::new();
    file.take(SCRIPT_BYTES_MAX + 1).read_to_end(&mut source).map_err(words)?;
    match source.len() as u64 > SCRIPT_BYTES_MAX {
        true => Err(format!("it has more than {}", Size(SCRIPT_BYTES_MAX))),
        false => Ok(source),
    }
}

/// Reads what scripts and code may take.
pub(super) fn bounds(said: &language::Script<'_>, sink: &Sink<'_>) -> ScriptBounds {
    let memory = said.memory.value;
    if memory.is_some_and(|bytes| bytes < MEMORY_MIN) {
        said.memory.error(sink, format!("too little for JavaScript: at least {}", Size(MEMORY_MIN)));
    }
    let step = said.step.value;
    if step.is_some_and(|step| step < STEP_MIN) {
        said.step.error(sink, format!("too short for JavaScript: at least {}", Time(STEP_MIN)));
    }
    ScriptBounds { memory_bytes: memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)), step }
}

/// Refuses what is said of a script where there is none.
pub(super) fn check_keys(said: &language::Session<'_>, reader: &Reader<'_>) {
    let of_scripts = [said.args.key(), said.path.key()].into_iter().chain(keys_of_k6(said));
    for key in of_scripts.flatten().filter(|_| !said.script.is_there()) {
        let name = key.text().unwrap_or_default();
        reader.sink.error(key, format!("\"{name}\" is for a session with a script; this one has steps"));
    }
}

/// Refuses what is said of another tool's script.
fn check_tool(said: &language::Session<'_>, tool: ScriptTool, reader: &Reader<'_>) {
    let (others, whose) = match tool {
        ScriptTool::Wrk => (keys_of_k6(said).to_vec(), "k6"),
        ScriptTool::K6 => (vec![said.path.key()], "wrk"),
    };
    for key in others.into_iter().flatten() {
        let name = key.text().unwrap_or_default();
        reader.sink.error(key, format!("\"{name}\" is for a script of {whose}"));
    }
}
