//! `tidemark ui`: the runs of a folder in a browser, live while one is on.
//!
//! It only reads, but for a run that was killed, which becomes one that can be read. It is served on this machine alone
//! unless an address is named, answers only to names that cannot be another's (see [`Hosts`]), and leaves no folder but its own.

mod route;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tidemark_lab::page_server::{Asked, Effort, Hosts, Page, PageServer};
use tidemark_lab::{EXIT_PASS, Pins};
use tidemark_record::{Following, limit};
use tidemark_report::{folder, html};

use self::route::{Route, Within};
use crate::args::UiArguments;
use crate::failure::Failure;
use crate::output;

/// What an answer may take once it is asked for: a long run is read whole.
const EFFORT: Effort = Effort { time_max: Duration::from_secs(120), is_slow: true };
/// Runs that go on that are followed at once; whoever was asked for longest ago is begun anew.
const FOLLOWED_MAX: usize = 8;
/// What is true of every answer: nothing of it is for another page, nor is it kept.
const HEADERS: [(&str, &str); 5] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];
const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

/// Serves until SIGTERM, SIGINT or SIGHUP.
pub fn ui(arguments: &UiArguments) -> Result<u8, Failure> {
    let folder = arguments.folder.canonicalize().ok().filter(|folder| folder.is_dir()).ok_or_else(|| {
        let shown = arguments.folder.display();
        let reason = "tidemark run makes it, or name another: tidemark ui FOLDER";
        Failure::usage(format!("there is no folder {shown}; {reason}"))
    })?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::broken(format!("cannot watch signals: {error}")))?;
    let ui = Ui::new(folder, hosts(&arguments.hosts));
    let server =
        PageServer::serve("ui", arguments.listen, EFFORT, &Pins::default(), move |asked| ui.page(asked));
    let server = server.map_err(|error| {
        let reason = "name another with --listen; port 0 takes a free one";
        Failure::usage(format!("cannot listen at {}: {error}; {reason}", arguments.listen))
    })?;
    output::print(&format!("listening http://{}\n", at(server.address())))?;
    signals.forever().next();
    Ok(EXIT_PASS)
}

/// An address as a browser takes it.
fn at(address: SocketAddr) -> String {
    if address.ip().is_unspecified() { format!("localhost:{}", address.port()) } else { address.to_string() }
}

/// Everything that is served.
struct Ui {
    folder: PathBuf,
    hosts: Hosts,
    /// The last one that was asked for stands last.
    followed: Mutex<VecDeque<Following>>,
    /// Held by whoever reads a run, which may have to be made of what one that was killed has left: not by two at once.
    reading: Mutex<()>,
    /// What is listed of searches.
    known: Mutex<folder::Known>,
}

/// Names by which the pages may be asked for.
fn hosts(names: &[String]) -> Hosts {
    Hosts::new(names, "--host NAME lets a name be used, where it is yours")
}

impl Ui {
    fn new(folder: PathBuf, hosts: Hosts) -> Ui {
        Ui { folder, hosts, followed: Mutex::default(), reading: Mutex::default(), known: Mutex::default() }
    }

    fn page(&self, asked: &Asked) -> Page {
        let mut page = match self.hosts.refuses(&asked.headers) {
            Some(reason) => Page::told(421, reason),
            None => self.answer(asked),
        };
        page.headers.extend(HEADERS);
        page
    }

    fn answer(&self, asked: &Asked) -> Page {
        let Some(route) = Route::of(&asked.path, &asked.query) else {
            return Page::told(404, "there is no such page; the runs are at /");
        };
        let of = |content_type, body| Page { status: 200, content_type, headers: Vec::new(), body };
        let result = match &route {
            Route::App => return of(HTML, html::UI.to_owned()),
            Route::List => self.list().map(|body| of(JSON, body)),
            Route::Live(name) => self.live(name).map(|body| of(JSON, body)),
            Route::Report(place) => self.report(place).map(|body| of(HTML, body)),
            Route::Compare(a, b) => self.compare(a, b).map(|body| of(HTML, body)),
            Route::History(scenario) => self.history(scenario).map(|body| of(HTML, body)),
        };
        result.unwrap_or_else(|why| Page::told(404, why))
    }

    /// The folder of a run, if it is right in ours, and no link.
    fn within(&self, place: &Within) -> Result<PathBuf, String> {
        let mut dir = self.folder.clone();
        for name in place.names() {
            dir.push(name);
            let is_folder = dir.symlink_metadata().is_ok_and(|about| about.is_dir());
            if !is_folder {
                return Err(format!("there is no run {name} here"));
            }
        }
        Ok(dir)
    }

    fn list(&self) -> Result<String, String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        folder::list(&self.folder, &mut known)
            .map(|listing| listing.to_json(&self.folder.display().to_string()))
            .map_err(|error| error.to_string())
    }

    fn live(&self, name: &Within) -> Result<String, String> {
        let dir = self.within(name)?;
        if limit::is_at(&dir) {
            return Err(format!("{name} is a search for a limit: /api/runs has what it has found by now"));
        }
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let known = followed.iter().position(|following| following.dir() == dir);
        let known = known.and_then(|at| followed.remove(at));
        let looked = match known {
            Some(mut following) => following.look().map(|()| Some(following)),
            None => Following::open(&dir),
        };
        let following = looked.map_err(|error| error.to_string())?;
        let following = following.ok_or_else(|| format!("{name} does not go on"))?;
        let body = folder::live(&following);
        if followed.len() >= FOLLOWED_MAX {
            followed.pop_front();
        }
        followed.push_back(following);
        Ok(body)
    }

    fn report(&self, place: &Within) -> Result<String, String> {
        let dir = self.within(place)?;
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        folder::page(&dir).map_err(|error| error.to_string())
    }

    fn compare(&self, a: &Within, b: &Within) -> Result<String, String> {
        for one in [a, b] {
            self.within(one)?;
        }
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let (a, b) = (a.to_string(), b.to_string());
        let page = folder::compare(&self.folder, [&a, &b], "/runs/");
        page.map_err(|error| error.to_string())
    }

    fn history(&self, scenario: &str) -> Result<String, String> {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        folder::history(&self.folder, scenario)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(path: &str, query: &str) -> Asked {
        let mut asked = Asked { path: path.into(), query: query.into(), headers: Default::default() };
        asked.headers.insert("host", "127.0.0.1:1".parse().unwrap());
        asked
    }

    #[test]
    fn nothing_outside_of_the_folder_is_served() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("runs");
        std::fs::create_dir_all(folder.join("real/below")).unwrap();
        std::fs::create_dir_all(outside.path().join("secret")).unwrap();
        std::fs::write(outside.path().join("secret/run.json"), "{}").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), folder.join("link")).unwrap();
        let ui = Ui::new(folder, hosts(&[]));
        for path in [
            "/runs/link/report.html",
            "/runs/../report.html",
            "/runs/%2e%2e/report.html",
            "/runs/..%2fsecret/report.html",
            "/runs/%2Fetc/report.html",
            "/runs/real%2f..%2f..%2fsecret/report.html",
            "/runs/secret/report.html",
            "/runs/real/../../secret/report.html",
            "/api/live/..%2Fsecret",
            "/api/live/link",
            "/etc/passwd",
        ] {
            let page = ui.page(&asked(path, ""));
            assert_eq!(page.status, 404, "{path}: {}", page.body);
        }
        for query in ["a=link&b=link", "a=..%2Fsecret&b=..%2Fsecret", "a=&b=", "a=real", ""] {
            assert_eq!(ui.page(&asked("/compare", query)).status, 404, "{query}");
        }
        let page = ui.page(&asked("/history", "scenario=..%2Fsecret"));
        assert_eq!((page.status, page.content_type), (404, "text/plain; charset=utf-8"), "{}", page.body);
        let page = ui.page(&asked("/", ""));
        assert_eq!((page.status, page.content_type), (200, HTML));
        assert!(page.headers.contains(&("x-frame-options", "DENY")));
        assert!(ui.page(&asked("/api/runs", "")).body.contains("\"runs\":[]"));
    }

    #[test]
    fn whoever_asks_by_another_name_gets_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let ui = Ui::new(folder.path().to_owned(), hosts(&[]));
        let mut asked = asked("/api/runs", "");
        asked.headers.insert("host", "evil.test:1".parse().unwrap());
        assert_eq!(ui.page(&asked).status, 421);
        asked.headers.remove("host");
        assert_eq!(ui.page(&asked).status, 421);
    }
}
