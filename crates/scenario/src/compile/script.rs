//! Sessions whose requests a script makes.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::requests::Requests;
use crate::language;
use crate::plan::{Op, SCRIPT_BYTES_MAX, ScriptPlan, SessionKind};
use crate::reader::Reader;
use crate::units::Size;
use crate::yaml::Node;

/// How the file of a script of wrk ends.
const LUA: &str = "lua";

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
    if path.extension().is_none_or(|extension| extension != LUA) {
        said.script.error(reader.sink, "a script is a file of wrk, which ends in .lua");
        return None;
    }
    let source = match read(&path) {
        Ok(source) => source,
        Err(why) => {
            said.script.error(reader.sink, format!("cannot read {}: {why}", path.display()));
            return None;
        }
    };
    let args = said.args.value.map(Node::items).unwrap_or_default();
    let args = args.iter().filter_map(|node| reader.text(node)).collect();
    let route = said.path.value.clone().unwrap_or_else(|| "/".to_owned());
    if !route.starts_with('/') {
        said.path.error(reader.sink, "a path begins with a slash");
    }
    let words = name.text().unwrap_or_default().to_owned();
    let label = requests.label_of_script(name, &words, reader.sink)?;
    let headers = requests.default_headers.iter();
    let header = |(name, value): &(Node, Node)| Some((name.text()?.to_owned(), reader.text(value)?));
    let script = ScriptPlan {
        headers: headers.filter_map(header).collect(),
        timeout: requests.default_timeout(),
        source: source.into(),
        file,
        path,
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

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let words = |error: std::io::Error| error.to_string();
    let file = File::open(path).map_err(words)?;
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

/// Refuses what is said of a script where there is none.
pub(super) fn check_keys(said: &language::Session<'_>, reader: &Reader<'_>) {
    let of_scripts = [said.args.key(), said.path.key()];
    for key in of_scripts.into_iter().flatten().filter(|_| !said.script.is_there()) {
        let name = key.text().unwrap_or_default();
        reader.sink.error(key, format!("\"{name}\" is for a session with a script; this one has steps"));
    }
}
