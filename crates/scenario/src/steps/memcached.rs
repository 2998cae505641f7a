//! Commands of memcached, and what cannot stand beside them.

use tidemark_wire::memcached::{Form, Meta, is_count, is_key, is_time, is_word};

use super::Step;
use super::answer::{AT, CHECK, EXTRACT, LABEL, TAGS, TIMEOUT};
use super::beside::{self, Spoken};
use super::keys::{INSERT, READ, WRITE};
use super::ledger::LEDGER;
use super::measure::MEASURE;
use crate::compile::{Session, Whole};
use crate::diagnostic::did_you_mean;
use crate::grammar::Scalar::Template as TemplateText;
use crate::grammar::Shape::{List, Record as Of, Scalar};
use crate::plan::{MemcachedCommand, MemcachedWord, RequestKind};
use crate::template::{Encoding, Template};
use crate::yaml::Node;

pub(super) static SPOKEN: Spoken = Spoken {
    schemes: &["memcached", "memcacheds"],
    is_ask: |ask| matches!(ask, RequestKind::Memcached(_)),
    server: "memcached",
    requests: "commands of memcached",
    step: "memcached: […]",
    has_streams: false,
};

/// What stands behind a command's name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// A key.
    Key,
    /// One key or several.
    Keys,
    /// What is stored.
    Value,
    /// A whole number that is at least 0.
    Count,
    /// Seconds, a date, or a negative number.
    Time,
    /// A number that may be left out.
    MaybeCount,
    /// Any words, also none.
    Words,
    /// Flags of a meta command, also none.
    Flags,
}

use Takes::{Count, Flags, Key, Keys, MaybeCount, Time, Value, Words};

/// Commands, what their words are, how that is said to a person, and what may come as the reply.
static COMMANDS: [(&str, &[Takes], &str, Form); 26] = [
    ("get", &[Keys], "KEY, …", Form::Values),
    ("gets", &[Keys], "KEY, …", Form::Values),
    ("gat", &[Time, Keys], "SECONDS, KEY, …", Form::Values),
    ("gats", &[Time, Keys], "SECONDS, KEY, …", Form::Values),
    ("set", &[Key, Value], "KEY, VALUE", Form::Stored),
    ("add", &[Key, Value], "KEY, VALUE", Form::Stored),
    ("replace", &[Key, Value], "KEY, VALUE", Form::Stored),
    ("append", &[Key, Value], "KEY, VALUE", Form::Stored),
    ("prepend", &[Key, Value], "KEY, VALUE", Form::Stored),
    ("cas", &[Key, Value, Count], "KEY, VALUE, UNIQUE", Form::Stored),
    ("delete", &[Key], "KEY", Form::Deleted),
    ("incr", &[Key, Count], "KEY, NUMBER", Form::Number),
    ("decr", &[Key, Count], "KEY, NUMBER", Form::Number),
    ("touch", &[Key, Time], "KEY, SECONDS", Form::Touched),
    ("mg", &[Key, Flags], "KEY, FLAG, …", Form::Meta(Meta::Get)),
    ("ms", &[Key, Value, Flags], "KEY, VALUE, FLAG, …", Form::Meta(Meta::Set)),
    ("md", &[Key, Flags], "KEY, FLAG, …", Form::Meta(Meta::Delete)),
    ("ma", &[Key, Flags], "KEY, FLAG, …", Form::Meta(Meta::Arithmetic)),
    ("me", &[Key, Flags], "KEY, FLAG, …", Form::Meta(Meta::Debug)),
    ("mn", &[], "", Form::Meta(Meta::Noop)),
    ("version", &[], "", Form::Word),
    ("verbosity", &[Count], "LEVEL", Form::Word),
    ("flush_all", &[MaybeCount], "SECONDS", Form::Word),
    ("stats", &[Words], "WHICH", Form::Stats),
    // what has no reply, or ends the connection
    ("quit", &[], "", Form::Word),
    ("shutdown", &[], "", Form::Word),
];

step! {
    /// Sends a command to memcached, and waits for its reply (docs/memcached.md).
    KIND("memcached", "a command of memcached") [
        "memcached": List(&Scalar(TemplateText), 1) =>
            "The command and its words, without lengths: `[get, \"k:${n}\"]`, `[set, KEY, VALUE]`, `[mg, KEY, v, \
             t]`."
    ] {
        LABEL, TAGS, AT, LEDGER,
        "flags": Scalar(TemplateText) =>
            "Number that is kept with what `set` and the other commands that store keep; 0 by default.",
        "expires": Scalar(TemplateText) =>
            "When what `set` and the other commands that store keep expires: seconds, or from 30 days on a Unix \
             time; 0, the default, is never.",
        INSERT, WRITE, READ, TIMEOUT, EXTRACT, MEASURE,
        "check": Of(|| &CHECK) =>
            "What must hold of the reply: its status is 200, 204 for a miss, 409 where it was not stored, 500 for an \
             error. The body is the value; headers are `flags` and `cas` of an item, or the letters that a meta \
             command returns.",
    }
    beside: check_beside,
    example: "
- memcached: [set, greeting, hello]
  expires: 60
- memcached: [get, greeting]
  check: {status: 200, body: hello}
"
}

fn check_beside(whole: &Whole<'_>) {
    beside::check(whole, &SPOKEN);
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let words = step.value.items();
    let name = || words.first().and_then(Node::text).unwrap_or_default().to_ascii_lowercase();
    let Some(label) = session.label_or(step, step.node.position, name) else { return };
    let (command, ledger) = session.entered(step, |session| command(session, step, words));
    let stored = command.as_ref().is_some_and(|command| command.reply == Form::Stored);
    for key in ["flags", "expires"] {
        if let Some((key, _)) = step.node.entry(key).filter(|_| command.is_some() && !stored) {
            let message = "this belongs to set, add, replace, append, prepend and cas; a meta command has flags of its own, as T60";
            session.reader.sink.error(key, message);
        }
    }
    // what is wrong with a command has been told, and the rest of the step is looked at as well
    let command = command.unwrap_or(MemcachedCommand {
        name: "mn",
        words: Vec::new(),
        value: None,
        reply: Form::Meta(Meta::Noop),
    });
    let plan = session.request(step, label, (RequestKind::Memcached(command), ledger), step.get("check"));
    session.check_cookieless(step, &plan, "the reply to a command has no cookies");
    session.push_request(step, plan);
}

/// A command from its words; none if that cannot be told.
fn command(session: &mut Session<'_, '_>, step: &Step<'_>, words: &[Node]) -> Option<MemcachedCommand> {
    let templates: Vec<Template> = words.iter().map(|word| session.template(word, Encoding::Raw)).collect();
    let (first, given) = (words.first()?, &words[1..]);
    let sink = session.reader.sink;
    let said = templates.first()?.as_literal().map(|name| name.to_ascii_lowercase());
    let known = said.as_ref().and_then(|said| COMMANDS.iter().find(|(name, ..)| name.as_bytes() == said));
    let Some((name, takes, usage, reply)) = known else {
        let names: Vec<&str> =
            COMMANDS.iter().map(|(name, ..)| *name).filter(|name| !is_refused(name)).collect();
        let hint = did_you_mean(first.text().unwrap_or_default(), names.iter().copied());
        let known = if hint.is_empty() { format!("; there is {}", names.join(", ")) } else { hint };
        sink.error(first, format!("this is not a command that can be driven{known}"));
        return None;
    };
    if is_refused(name) {
        sink.error(first, "this command has no reply; it cannot be driven");
        return None;
    }
    let usage = match *usage {
        "" => format!("[{name}]"),
        usage => format!("[{name}, {usage}]"),
    };
    let mut sent = Vec::new();
    let mut value = None;
    let mut at = 0;
    let templates = &templates[1..];
    for take in *takes {
        let several = matches!(take, Keys | Words | Flags);
        let most = if several { given.len() } else { (at + 1).min(given.len()) };
        if at == most && !matches!(take, MaybeCount | Words | Flags) {
            sink.error(step.value, format!("something is missing here: {usage}"));
            return None;
        }
        for index in at..most {
            let (node, template) = (&given[index], templates[index].clone());
            if *take == Value {
                value = Some(template);
            } else {
                if let Some(wrong) = template.as_literal().and_then(|text| wrong(*take, text)) {
                    sink.error(node, wrong);
                }
                sent.push(word(*take, template));
            }
        }
        at = most;
        if *take == Value {
            if *reply == Form::Stored {
                for (key, take) in [("flags", Count), ("expires", Time)] {
                    sent.push(word(take, number(session, step.get(key), take)));
                }
            }
            sent.push(MemcachedWord::Length);
        }
    }
    if let Some(more) = given.get(at) {
        let message = match more.text() {
            Some("noreply") => "each command waits for its reply; leave out `noreply`".to_owned(),
            _ => format!("this is one word too many: {usage}; lengths are not written"),
        };
        session.reader.sink.error(more, message);
    }
    Some(MemcachedCommand { name, words: sent, value, reply: *reply })
}

fn is_refused(name: &str) -> bool {
    matches!(name, "quit" | "shutdown")
}

/// The number of a key of the step; 0 where it is not there.
fn number(session: &mut Session<'_, '_>, node: Option<&Node>, takes: Takes) -> Template {
    let Some(node) = node else { return Template::literal("0") };
    let template = session.template(node, Encoding::Raw);
    if let Some(wrong) = template.as_literal().and_then(|text| wrong(takes, text)) {
        session.reader.sink.error(node, wrong);
    }
    template
}

fn word(takes: Takes, template: Template) -> MemcachedWord {
    match takes {
        Key | Keys => MemcachedWord::Key(template),
        Count | MaybeCount => MemcachedWord::Count(template),
        Time => MemcachedWord::Time(template),
        Flags => MemcachedWord::Flag(template),
        Value | Words => MemcachedWord::Other(template),
    }
}

/// What is wrong with a word.
fn wrong(takes: Takes, text: &[u8]) -> Option<&'static str> {
    match takes {
        Key | Keys if !is_key(text) => {
            Some("a key of memcached has 1 to 250 bytes, without white space and control characters")
        }
        Time if !is_time(text) => Some("this is a whole number: seconds, or a Unix time"),
        Count | MaybeCount if !is_count(text) => Some("this is a whole number from 0 on, of 64 bits"),
        Words | Flags if !is_word(text) => {
            Some("this is one word, without white space and control characters")
        }
        Flags if text.starts_with(b"q") => Some(
            "the flag q leaves replies out, so that they could not be told from those to others; leave it out",
        ),
        _ => None,
    }
}
