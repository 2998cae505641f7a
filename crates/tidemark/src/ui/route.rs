//! What a path asks for. Names in it are names of folders and nothing else.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::form_urlencoded;

/// Longest name of a folder, bytes.
const NAME_BYTES_MAX: usize = 255;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// The page that shows the list, or a run that goes on.
    App,
    /// The list.
    List,
    /// What a run that goes on looks like.
    Live(Within),
    /// The page of a run, of a comparison or of a search.
    Report(Within),
    /// Two runs held against each other.
    Compare(Within, Within),
    /// How the runs of a scenario went, by its name.
    History(String),
}

/// A folder within ours: right in it, or one below a comparison or a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Within(Vec<String>);

impl Within {
    /// The names of the folders, from ours on.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    fn one(name: &str) -> Option<Within> {
        Some(Within(vec![decoded(name)?]))
    }
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}

impl Route {
    /// Reads a path and a query, percent-encoded as they came.
    pub fn of(path: &str, query: &str) -> Option<Route> {
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        match parts.as_slice() {
            [""] => Some(Route::App),
            ["live", name] => decoded(name).map(|_| Route::App),
            ["api", "runs"] => Some(Route::List),
            ["api", "live", name] => Within::one(name).map(Route::Live),
            ["runs", name, "report.html"] => Within::one(name).map(Route::Report),
            ["runs", name, inner, "report.html"] => {
                Some(Route::Report(Within(vec![decoded(name)?, decoded(inner)?])))
            }
            ["compare"] => {
                let of = |key: &str| Some(Within(vec![name_of(&value_of(query, key)?)?]));
                Some(Route::Compare(of("a")?, of("b")?))
            }
            ["history"] => value_of(query, "scenario").filter(|name| !name.is_empty()).map(Route::History),
            _ => None,
        }
    }
}

/// The first value of a key in a query.
fn value_of(query: &str, key: &str) -> Option<String> {
    let (_, value) = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == key)?;
    Some(value.into_owned())
}

/// The name of a folder that stands percent-encoded, if it is one.
fn decoded(text: &str) -> Option<String> {
    name_of(&percent_decode_str(text).decode_utf8().ok()?)
}

/// The name of a folder, if it is one.
fn name_of(name: &str) -> Option<String> {
    let is_name = !name.is_empty()
        && name != "."
        && name != ".."
        && name.len() <= NAME_BYTES_MAX
        && !name.contains(['/', '\\', '\0']);
    is_name.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_ask_for_what_there_is() {
        let within = |names: &[&str]| Within(names.iter().map(|name| (*name).to_owned()).collect());
        for (path, query, route) in [
            ("/", "", Route::App),
            ("/live/x", "", Route::App),
            ("/api/runs", "x", Route::List),
            ("/api/live/a%20b", "", Route::Live(within(&["a b"]))),
            ("/runs/%C3%A4/report.html", "", Route::Report(within(&["ä"]))),
            ("/runs/a/1-b/report.html", "", Route::Report(within(&["a", "1-b"]))),
            ("/runs/5%/report.html", "", Route::Report(within(&["5%"]))),
            ("/compare", "b=y&a=x%3F", Route::Compare(within(&["x?"]), within(&["y"]))),
            ("/history", "scenario=a%2F%3Cb%3E+c", Route::History("a/<b> c".into())),
        ] {
            assert_eq!(Route::of(path, query), Some(route), "{path}");
        }
        for path in [
            "",
            "runs",
            "/runs",
            "/runs/",
            "/runs//report.html",
            "/runs/./report.html",
            "/runs/%2e%2E/report.html",
            "/runs/a%2fb/report.html",
            "/runs/a%5Cb/report.html",
            "/runs/a%00/report.html",
            "/runs/%ff/report.html",
            "/runs/a/b/c/report.html",
            "/runs/a/run.json",
            "//",
            "/live/..",
        ] {
            assert_eq!(Route::of(path, ""), None, "{path}");
        }
        for query in ["a=x", "a=x&b=..%2Fy", "a=x&b=.."] {
            assert_eq!(Route::of("/compare", query), None, "{query}");
        }
        for query in ["", "scenario=", "name=x"] {
            assert_eq!(Route::of("/history", query), None, "{query}");
        }
        assert_eq!(Route::of(&format!("/runs/{}/report.html", "a".repeat(256)), ""), None);
    }
}
