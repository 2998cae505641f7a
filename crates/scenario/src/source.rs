//! A scenario as source: what its file says, before it is checked and compiled.
//!
//! Whoever makes scenarios builds a [`Scenario`] and writes it with [`Scenario::to_yaml`], as a person would have
//! written it: `tidemark hit` from its flags, an importer from another tool's file. Fields are what such makers need;
//! every other key goes into a record's `other`. [`Value::from_yaml`] takes any file back in, but for its remarks.
//!
//! The model does not judge: what a key must hold, the [checker](crate::check_text) knows. Texts may have `${…}` holes;
//! what must not become one goes through [`verbatim`].
//!
//! ```
//! use tidemark_scenario::source::{Load, Map, Method, Request, Scenario, Session, System, verbatim};
//!
//! let login = Request {
//!     label: Some("Login".into()),
//!     form: Map::from([("user", "${next(users)}"), ("password", &verbatim("pa${ss"))]),
//!     check: Map::from([("status", 200u64)]),
//!     ..Request::new(Method::Post, "/login")
//! };
//! let scenario = Scenario {
//!     comment: "Made by hand.".into(),
//!     system: Some(System { url: Some("http://127.0.0.1:8080".into()), ..System::default() }),
//!     sessions: vec![("visitor".into(), Session { steps: vec![login.into()], ..Session::default() })],
//!     load: Some(Load { rate: Some("100/s".into()), hold: Some("10s".into()), ..Load::default() }),
//!     objectives: vec!["p99 < 50ms".into()],
//!     ..Scenario::default()
//! };
//! let text = scenario.to_yaml();
//! assert_eq!(text, r#"# Made by hand.
//! system:
//!   url: http://127.0.0.1:8080
//!
//! sessions:
//!   visitor:
//!     steps:
//!       - POST: /login
//!         label: Login
//!         form: {user: "${next(users)}", password: "pa$${ss"}
//!         check: {status: 200}
//!
//! load:
//!   rate: 100/s
//!   hold: 10s
//!
//! objectives:
//!   - p99 < 50ms
//! "#);
//! ```

mod lined;
mod parts;
mod record;
mod scalar;
mod step;
mod value;
mod write;

pub use lined::{Lined, LinedContent};
pub use parts::{Defaults, Feeder, Load, Phase, Session, System};
pub use record::Named;
pub use step::{Choose, Method, Parallel, Request, Step, Think, Way, method_as_sent};
pub use value::{Entry, Map, Scalar, Value};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use self::record::{Record, record};
record! {
    /// A whole file. Its comment stands at the top.
    Scenario {
        /// Name of the experiment.
        name: Option<Scalar> = "name",
        /// What it is, for a person.
        description: Option<Scalar> = "description",
        /// Named values with their defaults.
        settings: Map = "settings",
        /// What is driven.
        system: Option<System> = "system",
        /// Where requests go beside the system, by name.
        targets: Map = "targets",
        /// Stores that are started before the system.
        stores: Map = "stores",
        /// Rows that sessions draw from.
        feeders: Named<Feeder> = "feeders",
        /// What every request has.
        defaults: Option<Defaults> = "defaults",
        /// Steps done once before the load.
        prepare: Vec<Step> = "prepare",
        /// What virtual users do.
        sessions: Named<Session> = "sessions",
        /// How many come.
        load: Option<Load> = "load",
        /// Bounds of the driver.
        limits: Map = "limits",
        /// What decides pass or fail: texts like `p99 < 50ms`, or mappings with more about it.
        objectives: Vec<Value> = "objectives",
        /// How everything is read back after the load.
        verify: Map = "verify",
        /// What the run does not start and looks at all the same.
        watch: Vec<Value> = "watch",
        /// What is broken on purpose.
        faults: Vec<Value> = "faults",
        /// Fixes the random numbers.
        seed: Option<Scalar> = "seed",
    }
}

impl Scenario {
    /// Its keys and values.
    pub fn to_map(&self) -> Map {
        Record::to_map(self)
    }

    /// The file, as a person would have written it.
    pub fn to_yaml(&self) -> String {
        write::document(&self.comment, &self.to_map())
    }
}

/// Bytes as they are: a text, or where they are none a hole that makes them.
pub fn verbatim_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.len() <= READABLE_BYTES || escaped_length(text) <= bytes.len().div_ceil(3) * 4 => {
            return verbatim(text);
        }
        _ => {}
    }
    let mut encoded = vec![0; bytes.len().div_ceil(3) * 4];
    // there is room for all of it
    let length = STANDARD.encode_slice(bytes, &mut encoded).unwrap_or(0);
    encoded.truncate(length);
    format!("${{base64_decode('{}')}}", String::from_utf8_lossy(&encoded))
}

/// A text of so few bytes stays one, however much of it has to be escaped.
const READABLE_BYTES: usize = 4 << 10;

/// How long YAML makes a text at most.
fn escaped_length(text: &str) -> usize {
    let length = |c: char| match c {
        '\n' | '\r' | '\t' | '"' | '\\' | '$' => 2,
        '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => 6,
        c if c.is_control() => 4,
        c => c.len_utf8(),
    };
    text.chars().map(length).sum()
}

/// A text in which nothing is a hole: every `${` in it is one that is text.
pub fn verbatim(text: &str) -> String {
    text.replace("${", "$${")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language;
    use crate::steps::kinds;

    #[test]
    fn every_key_that_is_written_is_one_of_the_language() {
        fn check<T: Record>(record: &crate::grammar::Record) {
            for key in T::KEYS {
                assert!(record.all_keys().any(|known| known.name == *key), "{} has no {key}", record.what);
            }
        }
        check::<Scenario>(&language::SCENARIO);
        check::<System>(language::System::record());
        check::<Feeder>(language::Feeder::record());
        check::<Defaults>(language::Defaults::record());
        check::<Session>(language::Session::record());
        check::<Load>(language::Load::record());
        check::<Phase>(language::Phase::record());
        let of_verb =
            |verb| kinds().map(|kind| kind.record()).find(|of| of.verbs.iter().any(|of| of.name == verb));
        check::<Request>(of_verb("GET").expect("a kind of step"));
        check::<Choose>(of_verb("choose").expect("a kind of step"));
        check::<Parallel>(of_verb("parallel").expect("a kind of step"));
        check::<Think>(of_verb("think").expect("a kind of step"));
    }

    #[test]
    fn bytes_take_no_more_room_than_base64_needs_whatever_they_are() {
        for byte in [0, 7, b'\n', b'"', b'a', 0xff] {
            let bytes = vec![byte; 1 << 20];
            let request =
                Request { body: Some(verbatim_bytes(&bytes).into()), ..Request::new(Method::Post, "/") };
            let yaml = Scenario {
                sessions: vec![("s".into(), Session { steps: vec![request.into()], ..Session::default() })],
                ..Scenario::default()
            };
            let length = yaml.to_yaml().len();
            assert!(length < (1 << 20) * 3 / 2, "{byte}: {length}");
        }
        assert_eq!(verbatim_bytes(b"a\0${b}"), "a\0$${b}", "a short text stays readable");
    }
}
