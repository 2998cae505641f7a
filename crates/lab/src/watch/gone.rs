//! When what is watched was not there, for a reader of the figures.

use std::collections::BTreeMap;

use tidemark_record::Event;
use tidemark_record::manifest::Watched as Told;

use crate::verdict::duration_text;

/// Behind the name of one that is gone, in an event.
pub const IS_GONE: &str = "is gone";
/// The same of one that came back.
pub const IS_BACK: &str = "is there again";

/// The times of all, by names.
#[derive(Debug, Default)]
pub struct Gone(BTreeMap<String, Times>);

/// How often one went, and from when to when at first, microseconds.
#[derive(Debug, Default)]
struct Times {
    count: u64,
    from_us: i64,
    to_us: Option<i64>,
}

impl Gone {
    /// Takes an event of one of `told`; others are none of this.
    pub fn hear(&mut self, told: &[Told], event: &Event) {
        for one in told {
            let Some(rest) = event.text.strip_prefix(one.name.as_str()) else { continue };
            let says = |what: &str| rest.trim_start().starts_with(&format!("{what}: "));
            if says(IS_GONE) {
                let times = self.0.entry(one.name.clone()).or_default();
                times.count += 1;
                if times.count == 1 {
                    times.from_us = event.at_us;
                }
            } else if says(IS_BACK)
                && let Some(times) = self.0.get_mut(&one.name)
            {
                times.to_us.get_or_insert(event.at_us);
            }
        }
    }

    /// A note for each that was gone.
    pub fn notes(&self, told: &[Told]) -> Vec<String> {
        let note = |one: &Told| {
            let Times { count, from_us, to_us } = self.0.get(&one.name)?;
            let what = if one.what == one.name { String::new() } else { format!(" ({})", one.what) };
            let often = if *count == 1 { String::new() } else { format!(" {count} times, first") };
            let from = duration_text(*from_us as f64);
            let until =
                to_us.map_or_else(|| "on".to_owned(), |us| format!("to {}", duration_text(us as f64)));
            Some(format!("{}{what} was gone{often} from {from} {until}", one.name))
        };
        told.iter().filter_map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_gone_is_noted_with_its_times() {
        let watched = |name: &str, what: &str| Told {
            name: name.into(),
            what: what.into(),
            found: String::new(),
            is_machine: false,
        };
        let told = [watched("system", "port 18080"), watched("pid 7", "pid 7"), watched("kv", "name kv")];
        let notes = |events: &[(i64, &str)]| {
            let mut gone = Gone::default();
            for (at_us, text) in events {
                let event = Event { at_us: *at_us, kind: "watched".into(), text: (*text).into() };
                gone.hear(&told, &event);
            }
            gone.notes(&told)
        };
        let restart =
            [(1_090_000, "system is gone: shop, pid 1"), (5_010_000, "system is there again: shop, pid 2")];
        assert_eq!(notes(&restart), ["system (port 18080) was gone from 1.09s to 5.01s"]);
        assert_eq!(notes(&[(2_000_000, "pid 7 is gone: x")]), ["pid 7 was gone from 2s on"]);
        let twice = [
            (1_000_000, "kv is gone: a"),
            (2_000_000, "kv is there again: b"),
            (3_000_000, "kv is gone: b"),
            (4_000_000, "kv is there again: c"),
        ];
        assert_eq!(notes(&twice), ["kv (name kv) was gone 2 times, first from 1s to 2s"]);
        assert!(
            notes(&[(1, "kv is now: a"), (2, "kv is there again: b"), (3, "the agent `x` ended")]).is_empty()
        );
    }
}
