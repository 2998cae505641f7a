//! The scenario's settings: named values that the command line can replace.

use std::cell::{Cell, RefCell};
use std::env::VarError;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::diagnostic::did_you_mean;
use crate::expr;
use crate::expr::parse::{Names, is_name};
use crate::outside;
use crate::pieces::{Piece, split};
use crate::secrets::{Origin, Secrets, is_secret, is_secret_name};
use crate::sink::Sink;
use crate::units;
use crate::yaml::{self, Content, Node, Position};

/// Most bytes of a file that an expression reads.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Most bytes that the settings of a scenario take together where they are named: each use is a copy.
const WRITTEN_OUT_MAX: usize = 64 << 20;
/// Most bytes of all files that expressions read; a file is read again wherever it is named.
const FILES_BYTES_MAX: usize = 256 << 20;

/// Settings, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    all: Vec<Setting>,
    /// What was read from the environment, and what is secret by its name.
    secrets: RefCell<Secrets>,
    /// Where files are looked for.
    base: PathBuf,
    /// Whether what says of a store is being read.
    in_store: Cell<bool>,
    /// The setting whose default is being read.
    reading: RefCell<Option<String>>,
    /// Bytes that settings take so far, where they are named.
    written_out: Cell<usize>,
    /// Whether it was told that this is too much.
    is_told: Cell<bool>,
    /// Bytes of files that were read so far.
    files: Cell<usize>,
}

#[derive(Debug)]
struct Setting {
    name: String,
    value: expr::Node,
    default: expr::Node,
    position: Position,
    /// Whether its value came from outside.
    given: bool,
    used: Cell<bool>,
    /// Whether the store that was read last asked for it.
    used_in_store: Cell<bool>,
    /// Whether anything but stores asked for it.
    used_elsewhere: Cell<bool>,
}

/// The names of the settings that a file has, whatever else is in it.
pub(crate) fn names(root: &Node) -> Vec<String> {
    let entries = root.get("settings").map(Node::entries).unwrap_or_default();
    entries.iter().filter_map(|(key, _)| key.text().map(str::to_owned)).collect()
}

/// The same of a file's text; none where it cannot be read, which whoever reads it tells.
pub(crate) fn names_in(text: &str) -> Vec<String> {
    yaml::read(&Sink::new("", text)).as_ref().map(names).unwrap_or_default()
}

impl Settings {
    /// Reads the `settings` mapping and puts the values from outside in place of its defaults.
    pub(crate) fn read(
        node: Option<&Node>,
        base: &Path,
        outside: &[(String, String)],
        sink: &Sink<'_>,
    ) -> Self {
        let mut settings = Settings { base: base.to_owned(), ..Settings::default() };
        for (key, value) in node.map(Node::entries).unwrap_or_default() {
            let Some(name) = key.text() else { continue };
            if !is_name(name) {
                sink.error(key, format!("\"{name}\" cannot be a setting's name; use letters, digits and _"));
                continue;
            }
            // a list is what it may be, the default first; what is none of these is reported by the check of shapes
            let (value, choices) = match &value.content {
                Content::List(choices) => {
                    let Some(first) = choices.first() else { continue };
                    (first, choices.iter().filter_map(Node::text).collect())
                }
                _ => (value, Vec::new()),
            };
            let Content::Scalar { text, plain } = &value.content else { continue };
            let mut given = outside.iter().rev().find(|(key, _)| key == name);
            let default = match split(text).as_deref() {
                Ok([Piece::Literal(_)]) => literal(text, *plain),
                // what is given needs no default, which may be a variable of the environment that is not set
                _ if given.is_some() && text.contains("env(") => expr::Node::Missing,
                _ => {
                    settings.reading.replace(Some(name.to_owned()));
                    let text = settings.text(value, sink);
                    settings.reading.replace(None);
                    text.map_or(expr::Node::Missing, |text| literal(&text, *plain))
                }
            };
            if let Some((_, text)) =
                given.filter(|(_, text)| !choices.is_empty() && !choices.contains(&&**text))
            {
                let hint = did_you_mean(text, choices.iter().copied());
                let what = format!("\"{text}\" is not one of {}{hint}", choices.join(", "));
                sink.error_outside(format!("--set {name}"), what);
                given = None;
            }
            let texts = [text_of(&default), given.map(|(_, text)| text.clone())];
            for secret in texts.into_iter().flatten().filter(|text| is_secret(name, text)) {
                settings.secrets.borrow_mut().add(name, Origin::Setting, &secret);
            }
            let value = match given {
                Some((_, text)) => replaced(name, &default, text, sink),
                None => default.clone(),
            };
            settings.all.push(Setting {
                name: name.into(),
                value,
                default,
                position: key.position,
                given: given.is_some(),
                used: Cell::new(false),
                used_in_store: Cell::new(false),
                used_elsewhere: Cell::new(false),
            });
        }
        for (key, _) in outside {
            if settings.find(key).is_none() {
                let hint = did_you_mean(key, settings.names());
                let known = match (hint.as_str(), settings.all.len()) {
                    ("", 0) => "; the scenario has no settings".to_owned(),
                    ("", _) => format!("; it has {}", settings.names().collect::<Vec<_>>().join(", ")),
                    _ => hint,
                };
                sink.error_outside(
                    format!("--set {key}"),
                    format!("the scenario has no setting \"{key}\"{known}"),
                );
            }
        }
        settings
    }

    /// The value of a setting; it counts as used. An error where it would be a copy too many.
    pub(crate) fn value(&self, name: &str) -> Option<Result<expr::Node, String>> {
        let setting = self.find(name)?;
        if let expr::Node::Text(text) = &setting.value
            && !takes(&self.written_out, text.len(), WRITTEN_OUT_MAX)
        {
            // told once, as whatever follows is too much, too
            if self.is_told.replace(true) {
                return Some(Ok(expr::Node::Missing));
            }
            return Some(Err(format!(
                "\"{name}\" has {}, and settings that are named take more than {} together; make it shorter, or name it less \
                 often",
                units::Size(text.len() as u64),
                units::Size(WRITTEN_OUT_MAX as u64)
            )));
        }
        setting.used.set(true);
        let user = if self.in_store.get() { &setting.used_in_store } else { &setting.used_elsewhere };
        user.set(true);
        Some(Ok(setting.value.clone()))
    }

    /// Reads what says of a store; beside it the names of the settings given from outside that it asks for.
    pub(crate) fn of_store<T>(&self, read: impl FnOnce() -> T) -> (T, Vec<String>) {
        self.all.iter().for_each(|setting| setting.used_in_store.set(false));
        self.in_store.set(true);
        let read = read();
        self.in_store.set(false);
        let asked = self.all.iter().filter(|setting| setting.given && setting.used_in_store.get());
        (read, asked.map(|setting| setting.name.clone()).collect())
    }

    /// Forgets which parts asked for them, as the check of shapes asks for all.
    pub(crate) fn forget_who_asked(&self) {
        self.all.iter().for_each(|setting| setting.used_elsewhere.set(false));
    }

    /// Whether nothing but stores asked for a setting, so far.
    pub(crate) fn is_of_stores_only(&self, name: &str) -> bool {
        self.find(name).is_some_and(|setting| !setting.used_elsewhere.get())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|setting| setting.name.as_str())
    }

    /// Each with its value as text, secrets as they are.
    pub(crate) fn values(&self) -> Vec<(String, String)> {
        let value = |setting: &Setting| text_of(&setting.value).unwrap_or_default();
        self.all.iter().map(|setting| (setting.name.clone(), value(setting))).collect()
    }

    /// Warns of settings that nothing asks for.
    pub(crate) fn warn_of_unused(&self, sink: &Sink<'_>) {
        for setting in self.all.iter().filter(|setting| !setting.used.get()) {
            sink.warn(setting.position, format!("the setting \"{}\" is never used", setting.name));
        }
    }

    /// A text in which only settings can be named, written out.
    pub(crate) fn text(&self, node: &Node, sink: &Sink<'_>) -> Option<String> {
        let text = node.text()?;
        let pieces = match split(text) {
            Ok(pieces) => pieces,
            Err(offset) => {
                sink.error_inside(node, offset, 2, "this ${ has no closing }".into());
                return None;
            }
        };
        let mut out = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Literal(literal) => out.extend_from_slice(literal.as_bytes()),
                Piece::Hole { offset, text } => {
                    let expr = self.constant(node, offset, text, sink)?;
                    crate::template::Encoding::Raw.write_value(expr.as_literal()?, &mut out);
                }
            }
        }
        String::from_utf8(out).ok()
    }

    /// By which settings a text is what it is, where that is wrong, and how far the one that does it may go; empty where there
    /// are none in it.
    pub(crate) fn why(&self, text: &str, is_right: &dyn Fn(&str) -> bool) -> String {
        let mut names = Supposing { settings: self, instead: None, asked: Vec::new() };
        if written(text, &mut names).is_none() || names.asked.is_empty() {
            return String::new();
        }
        let value = |setting: &&Setting| Some(format!("{} = {}", setting.name, text_of(&setting.value)?));
        let values: Vec<String> = names.asked.iter().filter_map(value).collect();
        let bound = match names.asked.as_slice() {
            [setting] => self.bound(setting, text, is_right),
            _ => None,
        };
        let bound = bound.map(|bound| format!(", which can be {bound} here")).unwrap_or_default();
        format!("; that is {text} with {}{bound}", values.join(" and "))
    }

    /// How far a whole number can go from its default, with which a text is right, towards what it is, with which it is not.
    fn bound(&self, setting: &Setting, text: &str, is_right: &dyn Fn(&str) -> bool) -> Option<String> {
        let (expr::Node::Int(value), expr::Node::Int(default)) = (&setting.value, &setting.default) else {
            return None;
        };
        let is_right = |value: i64| {
            let instead = Some((setting.name.as_str(), value));
            let made = written(text, &mut Supposing { settings: self, instead, asked: Vec::new() });
            made.is_some_and(|made| is_right(&made))
        };
        let (mut right, mut wrong) = (*default, *value);
        if !is_right(right) {
            return None;
        }
        while right.abs_diff(wrong) > 1 {
            let middle = right.midpoint(wrong);
            *(if is_right(middle) { &mut right } else { &mut wrong }) = middle;
        }
        Some(format!("{} {right}", if wrong > right { "at most" } else { "at least" }))
    }

    fn constant(&self, node: &Node, offset: usize, text: &str, sink: &Sink<'_>) -> Option<expr::Node> {
        match expr::parse::parse(text, &mut OnlySettings(self)) {
            Ok(expr) if expr.as_literal().is_some() => return Some(expr),
            Ok(_) => {
                let message = "this is decided before the run; only settings and constants can be used here";
                sink.error_inside(node, offset, text.len(), message.into());
            }
            Err(mistakes) => {
                for mistake in mistakes {
                    sink.error_inside(node, offset + mistake.offset, mistake.length, mistake.reason);
                }
            }
        }
        None
    }

    /// The value of an environment variable, which is a secret from now on; none where it is not set, if `default`, the
    /// value then, is known.
    pub(crate) fn environment(
        &self,
        name: &str,
        default: Option<&expr::Node>,
    ) -> Result<Option<String>, String> {
        match (outside::variable(name), default) {
            (Ok(value), _) => {
                self.secrets.borrow_mut().add(name, Origin::Environment, &value);
                Ok(Some(value))
            }
            (Err(VarError::NotPresent), Some(default)) => {
                // what stands in the file for everyone is no secret, unless it looks like one
                if let Some(default) = text_of(default).filter(|_| is_secret_name(name)) {
                    self.secrets.borrow_mut().add(name, Origin::Environment, &default);
                }
                Ok(None)
            }
            (Err(VarError::NotPresent), None) => Err(match &*self.reading.borrow() {
                Some(setting) => format!(
                    "the environment variable {name} is not set; set it, or give the setting {setting} with --set"
                ),
                None => format!(
                    "the environment variable {name} is not set; set it, or say what to take then: env(\"{name}\", \"…\")"
                ),
            }),
            (Err(VarError::NotUnicode(_)), _) => {
                Err(format!("the environment variable {name} does not hold UTF-8 text"))
            }
        }
    }

    /// Where a file beside the scenario is.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        outside::path_of(&self.base.join(name))
    }

    /// What a file beside the scenario holds, which is a secret where its name is one's.
    pub(crate) fn file(&self, name: &str) -> Result<Vec<u8>, String> {
        let path = self.path_of(name);
        let failed = |why: &dyn std::fmt::Display| format!("cannot read {}: {why}", path.display());
        if !path.is_file() {
            return Err(failed(&"there is no such file"));
        }
        let mut bytes = Vec::new();
        let file = File::open(&path).map_err(|error| failed(&error))?;
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(failed(&format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20)));
        }
        if !takes(&self.files, bytes.len(), FILES_BYTES_MAX) {
            let most = FILES_BYTES_MAX >> 20;
            return Err(failed(&format!(
                "the files of this scenario have more than {most} MiB together, one counted wherever it is named; read \
                 smaller ones, or name them less often"
            )));
        }
        if is_secret_name(name)
            && let Ok(text) = std::str::from_utf8(&bytes)
        {
            self.keep_secret(name, text.trim());
        }
        Ok(bytes)
    }

    /// Makes a value known as a secret.
    pub(crate) fn keep_secret(&self, name: &str, value: &str) {
        self.secrets.borrow_mut().add(name, Origin::Header, value);
    }

    /// What must not be written down.
    pub(crate) fn secrets(&self) -> Secrets {
        self.secrets.borrow().clone()
    }

    fn find(&self, name: &str) -> Option<&Setting> {
        self.all.iter().find(|setting| setting.name == name)
    }
}

/// Counts bytes in; false where those are more than `most` together.
fn takes(so_far: &Cell<usize>, bytes: usize, most: usize) -> bool {
    so_far.set(so_far.get().saturating_add(bytes));
    so_far.get() <= most
}

/// A text in which only settings can be named, written out; none where something in it is wrong.
fn written(text: &str, names: &mut Supposing<'_>) -> Option<String> {
    let mut out = Vec::new();
    for piece in split(text).ok()? {
        match piece {
            Piece::Literal(literal) => out.extend_from_slice(literal.as_bytes()),
            Piece::Hole { text, .. } => {
                let expr = expr::parse::parse(text, names).ok()?;
                crate::template::Encoding::Raw.write_value(expr.as_literal()?, &mut out);
            }
        }
    }
    String::from_utf8(out).ok()
}

/// Longest setting that a text is written out with for a message, bytes.
const SUPPOSED_MAX: usize = 4 << 10;

/// Settings, one of which is supposed to have another value; which are asked for is noted.
struct Supposing<'s> {
    settings: &'s Settings,
    instead: Option<(&'s str, i64)>,
    asked: Vec<&'s Setting>,
}

impl Names for Supposing<'_> {
    fn variable(&mut self, name: &str) -> Result<expr::Node, String> {
        let setting = self.settings.find(name).ok_or_else(String::new)?;
        if self.asked.iter().all(|asked| asked.name != name) {
            self.asked.push(setting);
        }
        let supposed = self.instead.filter(|(instead, _)| *instead == name);
        // what is told about long texts is no better for them
        if matches!(&setting.value, expr::Node::Text(text) if text.len() > SUPPOSED_MAX) {
            return Err(String::new());
        }
        Ok(supposed.map_or_else(|| setting.value.clone(), |(_, value)| expr::Node::Int(value)))
    }

    fn counter(&mut self, name: &str) -> Result<usize, String> {
        OnlySettings(self.settings).counter(name)
    }

    fn feeder(&mut self, name: &str, column: Option<&str>) -> Result<expr::Node, String> {
        OnlySettings(self.settings).feeder(name, column)
    }

    fn environment(&mut self, name: &str, default: Option<&expr::Node>) -> Result<Option<String>, String> {
        self.settings.environment(name, default)
    }
}

/// A constant as text.
fn text_of(node: &expr::Node) -> Option<String> {
    let mut text = Vec::new();
    crate::template::Encoding::Raw.write_value(node.as_literal()?, &mut text);
    String::from_utf8(text).ok()
}

struct OnlySettings<'s>(&'s Settings);

impl Names for OnlySettings<'_> {
    fn variable(&mut self, name: &str) -> Result<expr::Node, String> {
        self.0.value(name).unwrap_or_else(|| {
            let hint = did_you_mean(name, self.0.names());
            Err(format!("unknown setting \"{name}\"{hint} (only settings can be used here)"))
        })
    }

    fn counter(&mut self, _: &str) -> Result<usize, String> {
        Err("this is decided before the run; a counter cannot be used here".into())
    }

    fn feeder(&mut self, _: &str, _: Option<&str>) -> Result<expr::Node, String> {
        Err("this is decided before the run; a feeder cannot be used here".into())
    }

    fn environment(&mut self, name: &str, default: Option<&expr::Node>) -> Result<Option<String>, String> {
        self.0.environment(name, default)
    }

    fn file(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self.0.file(name)
    }
}

/// A scalar as a value: without quotes, what looks like a number or a truth value is one.
pub(crate) fn literal(text: &str, plain: bool) -> expr::Node {
    let as_text = || expr::Node::Text(text.as_bytes().into());
    if !plain {
        return as_text();
    }
    match text {
        "true" => expr::Node::Bool(true),
        "false" => expr::Node::Bool(false),
        "" | "~" | "null" => expr::Node::Missing,
        // A zero in front is part of a code, not of a number.
        _ if text.len() > 1 && text.starts_with('0') && !text.starts_with("0.") => as_text(),
        _ if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            let real = || text.parse().ok().filter(|value: &f64| value.is_finite()).map(expr::Node::Real);
            text.parse().ok().map(expr::Node::Int).or_else(real).unwrap_or_else(as_text)
        }
        _ => as_text(),
    }
}

/// A value from outside, which must be of the default's type.
fn replaced(name: &str, default: &expr::Node, text: &str, sink: &Sink<'_>) -> expr::Node {
    let given = literal(text, true);
    let wanted = match (default, &given) {
        (expr::Node::Int(_), expr::Node::Int(_))
        | (expr::Node::Real(_), expr::Node::Int(_) | expr::Node::Real(_))
        | (expr::Node::Bool(_), expr::Node::Bool(_)) => return given,
        (expr::Node::Int(_), _) => {
            if let Some(count) = units::parse_count(text).ok().and_then(|count| i64::try_from(count).ok()) {
                return expr::Node::Int(count);
            }
            "a whole number"
        }
        (expr::Node::Real(_), _) => "a number",
        (expr::Node::Bool(_), _) => "true or false",
        _ => return literal(text, false),
    };
    sink.error_outside(
        format!("--set {name}"),
        format!("the setting \"{name}\" is {wanted}, not \"{text}\""),
    );
    default.clone()
}
