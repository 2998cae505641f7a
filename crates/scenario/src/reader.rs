//! Reading plain values: settings written out, units understood, mistakes reported where they stand.

use std::time::Duration;

use tidemark_record::bill::Amount;
use tidemark_wire::json;

use crate::diagnostic::did_you_mean;
use crate::expr::parse::is_name;
use crate::grammar::{Keys, Scalar};
use crate::pieces;
use crate::plan::{MetricPlan, Objective};
use crate::settings::Settings;
use crate::sink::Sink;
use crate::units;
use crate::yaml::Node;

/// Most steps from one level to another.
const STEPS_MAX: u64 = 10_000;

/// What is wrong with a setting of a shipped system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrongSetting {
    /// The system has none of this name; what to say.
    Name(String),
    /// It does not take this value; what to say.
    Value(String),
}

/// Judges a setting of a shipped system, given the system's name and the setting's name and value. The language
/// knows no system's settings; whoever can start the systems does.
pub type SettingCheck = fn(system: &str, name: &str, value: &str) -> Result<(), WrongSetting>;

/// Judges whether a store can be read directly, given its name. Clients of stores are not part of every program.
pub type StoreCheck = fn(store: &str) -> Result<(), String>;

/// Users or arrivals per second over a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Level {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// How many steps lead from one to the other; evenly if none.
    pub(crate) steps: Option<u32>,
}

/// `5 steps`.
fn parse_steps(text: &str) -> Result<u32, String> {
    let count = text.trim().strip_suffix("steps").and_then(|count| units::parse_count(count).ok());
    match count {
        Some(count @ 2..=STEPS_MAX) => Ok(count as u32),
        Some(count) => Err(format!("{count} steps; there must be at least 2 and at most {STEPS_MAX}")),
        None => Err(format!("\"{}\" is not a number of steps; write it like 5 steps", text.trim())),
    }
}

/// What a scenario must know of a system that `serve` can name. Who has the systems hands it in ([`Checker`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShippedSystem {
    /// Its name.
    pub name: &'static str,
    /// Whether it keeps data, and hence has a durability.
    pub keeps_data: bool,
    /// Whether `verify: {store: …}` can read its store without it.
    pub store_is_readable: bool,
    /// Whether it tells of its operations one by one.
    pub tells_operations: bool,
}

/// Checks scenarios with what others know of the systems in them.
#[derive(Debug, Clone, Copy)]
pub struct Checker {
    /// The systems that `serve` can name.
    pub systems: &'static [ShippedSystem],
    /// Judges the settings of shipped systems.
    pub setting: SettingCheck,
    /// The default of a setting of a shipped system.
    pub default_of: fn(system: &str, setting: &str) -> Option<&'static str>,
    /// Judges whether a store can be read directly.
    pub store: StoreCheck,
}

impl Default for Checker {
    /// Takes every name as that of a system, every setting of it as right and without a default, and every store as
    /// one that can be read.
    fn default() -> Self {
        Checker { systems: &[], setting: |_, _, _| Ok(()), default_of: |_, _| None, store: |_| Ok(()) }
    }
}

/// Reads plain values of one scenario.
pub(crate) struct Reader<'s> {
    pub(crate) sink: &'s Sink<'s>,
    pub(crate) settings: &'s Settings,
    pub(crate) checker: Checker,
}

/// When something is due within what is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment {
    /// So long after its beginning.
    After(Duration),
    /// After this share of it.
    Share(f64),
}

impl Reader<'_> {
    /// The system that `serve` names. Where nobody has handed in which there are, any name is one that can do all.
    pub(crate) fn shipped(&self, name: &str) -> Option<ShippedSystem> {
        let systems = self.checker.systems;
        let any =
            ShippedSystem { name: "", keeps_data: true, store_is_readable: true, tells_operations: false };
        systems.iter().find(|system| system.name == name).copied().or(systems.is_empty().then_some(any))
    }

    /// Reports what is wrong with a value that is known before the run.
    pub(crate) fn check(&self, node: &Node, scalar: Scalar) {
        match scalar {
            Scalar::Text | Scalar::Feeder | Scalar::Keys(_) => drop(self.text(node)),
            Scalar::Whole(least) => drop(self.whole(node, least)),
            Scalar::Bool => drop(self.bool(node)),
            Scalar::Share => drop(self.share(node)),
            Scalar::Duration => drop(self.duration(node)),
            Scalar::Moment => drop(self.moment(node)),
            Scalar::Decimal => drop(self.decimal(node)),
            Scalar::Size => drop(self.size(node)),
            Scalar::Bandwidth => drop(self.bandwidth(node)),
            Scalar::Users => drop(self.users(node)),
            Scalar::Rate => drop(self.rate(node)),
            Scalar::Word(words) => drop(self.word(node, words)),
            Scalar::JsonPath => drop(self.json_path(node)),
            Scalar::Regex => drop(self.regex(node)),
            Scalar::Status => drop(self.status(node)),
            Scalar::Variable => drop(self.name(node)),
            // These need the sessions' variables and metrics; compiling reports on them.
            Scalar::Template
            | Scalar::Value
            | Scalar::Code
            | Scalar::Condition
            | Scalar::Number
            | Scalar::Each
            | Scalar::Objective => {}
        }
    }

    /// Reports what is wrong with a key that the author chooses.
    pub(crate) fn check_key(&self, key: &Node, keys: Keys) {
        match keys {
            Keys::Name(_) | Keys::Variable => drop(self.name(key)),
            Keys::JsonPath => drop(self.json_path(key)),
            Keys::Text(_) if key.text() == Some("") => self.sink.error(key, "this name is empty"),
            Keys::Text(_) => {}
        }
    }

    /// A text, settings written out.
    pub(crate) fn text(&self, node: &Node) -> Option<String> {
        self.settings.text(node, self.sink)
    }

    /// A text as what it is parsed to, or with its mistake told.
    pub(crate) fn parsed<T, E: std::fmt::Display>(
        &self,
        node: &Node,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.text(node)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                let why = node.text().map(|text| self.settings.why(text, &|text| parse(text).is_ok()));
                self.sink.error(node, format!("{error}{}", why.unwrap_or_default()));
                None
            }
        }
    }

    pub(crate) fn whole(&self, node: &Node, least: u64) -> Option<u64> {
        self.parsed(node, |text| match units::parse_count(text) {
            Ok(count) if count < least => Err(format!("{count} is too small; at least {least}")),
            Ok(count) => Ok(count),
            Err(error) => Err(error.to_string()),
        })
    }

    pub(crate) fn bool(&self, node: &Node) -> Option<bool> {
        self.parsed(node, |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("\"{text}\" is neither true nor false")),
        })
    }

    pub(crate) fn share(&self, node: &Node) -> Option<f64> {
        self.parsed(node, units::parse_share)
    }

    pub(crate) fn duration(&self, node: &Node) -> Option<Duration> {
        self.parsed(node, units::parse_duration)
    }

    pub(crate) fn moment(&self, node: &Node) -> Option<Moment> {
        let text = self.text(node)?;
        match text.trim_end().ends_with('%') {
            true => self.share(node).map(Moment::Share),
            false => self.duration(node).map(Moment::After),
        }
    }

    /// An exact number.
    pub(crate) fn decimal(&self, node: &Node) -> Option<Amount> {
        self.parsed(node, units::parse_decimal)
    }

    pub(crate) fn size(&self, node: &Node) -> Option<u64> {
        self.parsed(node, units::parse_size)
    }

    pub(crate) fn bandwidth(&self, node: &Node) -> Option<u64> {
        self.parsed(node, units::parse_bandwidth)
    }

    /// Users over a phase.
    pub(crate) fn users(&self, node: &Node) -> Option<Level> {
        self.level(node, |text| units::parse_count(text).map(|count| count as f64))
    }

    /// Arrivals per second over a phase.
    pub(crate) fn rate(&self, node: &Node) -> Option<Level> {
        self.level(node, units::parse_rate)
    }

    fn level(&self, node: &Node, parse: impl Fn(&str) -> Result<f64, units::UnitError>) -> Option<Level> {
        let parse = |text: &str| parse(text).map_err(|error| error.to_string());
        self.parsed(node, |text| {
            let (text, steps) = match text.rsplit_once(" in ") {
                Some((levels, steps)) => (levels, Some(parse_steps(steps)?)),
                None => (text, None),
            };
            match text.split_once(" to ") {
                Some((from, to)) => Ok(Level { from: parse(from)?, to: parse(to)?, steps }),
                None if steps.is_some() => {
                    Err("steps lead from one level to another: 100/s to 1k/s in 5 steps".to_owned())
                }
                None => parse(text).map(|level| Level { from: level, to: level, steps }),
            }
        })
    }

    /// A single rate.
    pub(crate) fn one_rate(&self, node: &Node) -> Option<f64> {
        self.parsed(node, units::parse_rate)
    }

    pub(crate) fn word(&self, node: &Node, words: &[&'static str]) -> Option<&'static str> {
        self.parsed(node, |text| {
            words.iter().find(|word| **word == text).copied().ok_or_else(|| {
                let hint = did_you_mean(text, words.iter().copied());
                format!("\"{text}\" is not one of {}{hint}", words.join(", "))
            })
        })
    }

    pub(crate) fn json_path(&self, node: &Node) -> Option<json::Path> {
        let text = self.text(node)?;
        match json::Path::parse(&text) {
            Ok(path) => Some(path),
            Err(error) => {
                let message = format!("\"{text}\" is not a JSON path: {}", error.reason);
                // Where a setting stands in it, the offset is not the source's.
                let offset = if node.text() == Some(text.as_str()) { error.offset } else { 0 };
                self.sink.error_inside(node, offset.min(text.len()), 1, message);
                None
            }
        }
    }

    pub(crate) fn regex(&self, node: &Node) -> Option<regex::bytes::Regex> {
        /// Largest compiled regular expression, bytes.
        const REGEX_BYTES_MAX: usize = 1 << 20;
        self.parsed(node, |text| {
            regex::bytes::RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build().map_err(|error| {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                format!("bad regular expression: {last}")
            })
        })
    }

    pub(crate) fn status(&self, node: &Node) -> Option<(u16, u16)> {
        self.parsed(node, |text| {
            let status = |text: &str| text.trim().parse().ok().filter(|code| (100..=599).contains(code));
            let class = text
                .strip_suffix("xx")
                .or_else(|| text.strip_suffix("XX"))
                .and_then(|first| first.parse::<u16>().ok());
            let range = match (class, text.split_once('-')) {
                (Some(class @ 1..=5), _) => Some((class * 100, class * 100 + 99)),
                (None, Some((low, high))) => status(low).zip(status(high)).filter(|(low, high)| low <= high),
                _ => status(text).map(|code| (code, code)),
            };
            range.ok_or_else(|| format!("\"{text}\" is not a status; write it like 200, 2xx or 200-204"))
        })
    }

    /// An objective; `metrics` are those of the scenario's own.
    pub(crate) fn objective(
        &self,
        node: &Node,
        metrics: &[MetricPlan],
    ) -> Option<(Objective, Option<String>)> {
        self.parsed(node, |text| crate::objective::parse(text, metrics))
    }

    /// A name that the author chooses.
    pub(crate) fn name<'n>(&self, node: &'n Node) -> Option<&'n str> {
        let name = node.text()?;
        if !is_name(name) {
            let reason = if crate::expr::parse::RESERVED.contains(&name) {
                format!("\"{name}\" is a word of the expressions; choose another name")
            } else {
                format!("\"{name}\" cannot be a name; use letters, digits and _, not a digit first")
            };
            self.sink.error(node, reason);
            return None;
        }
        Some(name)
    }

    /// An expression's text and the byte at which it begins, with or without `${ }` around it.
    pub(crate) fn expression<'n>(&self, node: &'n Node) -> Option<(usize, &'n str)> {
        let text = node.text()?;
        if let Some(hole) = pieces::only_hole(text) {
            return Some(hole);
        }
        if text.contains("${") {
            let message = "this is one expression; put ${ } around all of it or leave it out";
            self.sink.error_inside(node, 0, text.len(), message.into());
            return None;
        }
        Some((0, text))
    }
}
