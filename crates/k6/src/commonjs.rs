//! Files with `require` and `module.exports`, made into modules: what they require by name is imported first.

use std::fmt::Write as _;

/// Most modules that a file requires, and most names that it exports.
const NAMES_MAX: usize = 1_000;

/// The name under which such a module exports the whole of `module.exports`.
pub(crate) const WHOLE: &str = "__commonjs";

/// Whether a file is one: it imports and exports nothing as a module does.
fn is_commonjs(text: &str) -> bool {
    let is_module = |line: &str| {
        let line = line.trim_start();
        ["import", "export"].iter().any(|word| {
            let rest = line.strip_prefix(word);
            rest.is_some_and(|rest| rest.starts_with([' ', '{', '*', '"', '\'']))
        })
    };
    let uses = |word: &str| text.contains(word);
    (uses("require(") || uses("module.exports") || uses("exports.")) && !text.lines().any(is_module)
}

/// What is required by a name in quotes, outside of lines that are comments.
fn required(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for line in text.lines() {
        let start = line.trim_start();
        if start.starts_with("//") || start.starts_with('*') {
            continue;
        }
        for behind in line.split("require(").skip(1) {
            let behind = behind.trim_start();
            let Some(quote) = behind.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) else {
                continue;
            };
            let Some((name, rest)) = behind[1..].split_once(quote) else { continue };
            if rest.trim_start().starts_with(')') && !names.contains(&name) && names.len() < NAMES_MAX {
                names.push(name);
            }
        }
    }
    names
}

/// Names that the file gives to `exports`.
fn exported(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for behind in text.split("exports.").skip(1) {
        let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '$'));
        let (name, rest) = behind.split_at(end.unwrap_or(behind.len()));
        let rest = rest.trim_start();
        let is_set = rest.starts_with('=') && !rest.starts_with("==");
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$'));
        if is_set
            && is_name
            && !["default", WHOLE].contains(&name)
            && !names.contains(&name)
            && names.len() < NAMES_MAX
        {
            names.push(name);
        }
    }
    names
}

/// What imports the modules of these names, and makes `require` find them.
fn with_require(names: &[&str]) -> String {
    let mut head = String::new();
    let mut table = String::new();
    for (at, name) in names.iter().enumerate() {
        let _ = write!(head, "import * as __required{at} from {name:?};");
        let _ = write!(table, "{name:?}: __required{at},");
    }
    format!("{head}const require = __k6.requireFrom({{{table}}});")
}

/// What a module requires besides; nothing of one that has a `require` of its own, as bundles have.
fn required_in_module(text: &str) -> Vec<&str> {
    if ["(require,", "(require)", "require =", "require="].iter().any(|own| text.contains(own)) {
        return Vec::new();
    }
    let is_file_or_ours = |name: &&str| name.starts_with(['.', '/']) || name.starts_with("k6");
    required(text).into_iter().filter(|name| is_file_or_ours(name) && !name.contains("${")).collect()
}

/// The file as a module, each line where it was; as it is, if it is a module already and requires nothing.
pub(crate) fn as_module(text: String) -> String {
    if !is_commonjs(&text) {
        let head = {
            let names = required_in_module(&text);
            (!names.is_empty()).then(|| with_require(&names))
        };
        return match head {
            Some(head) => head + &text,
            None => text,
        };
    }
    let head = with_require(&required(&text));
    let mut tail = String::new();
    for (at, name) in exported(&text).into_iter().enumerate() {
        let _ = write!(
            tail,
            "const __exported{at} = module.exports.{name}; export {{ __exported{at} as {name} }};"
        );
    }
    format!(
        "{head}const module = {{ exports: {{}} }};\
         (function (exports) {{{text}\n}}).call(module.exports, module.exports);\
         export const {WHOLE} = module.exports;\
         export default module.exports?.default === undefined ? module.exports : module.exports.default;{tail}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_requires_and_exports_is_found() {
        let text = "const http = require('k6/http');\n// require('./old')\nconst a = require( \"./a.js\" ), b = require('k6/http');
            exports.options = { x: exports.y == 1 };\nmodule.exports.run = 1;";
        assert_eq!(required(text), ["k6/http", "./a.js"]);
        assert_eq!(exported(text), ["options", "run"]);
        for (text, is) in [
            (text, true),
            ("import http from 'k6/http';\nrequire('x');", false),
            ("  export default function () {}\n// exports.x", false),
            ("const x = 1;", false),
        ] {
            assert_eq!(is_commonjs(text), is, "{text}");
        }
        for (text, names) in [
            ("import http from 'k6/http';\nconst a = require('./a.js'); // require('x')", vec!["./a.js"]),
            ("export default (function (require, exports) { require('./inner'); })", vec![]),
        ] {
            assert_eq!(required_in_module(text), names, "{text}");
        }
    }
}
