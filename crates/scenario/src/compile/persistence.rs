//! How a store of Redis' kind keeps its data: read, and held against the store's durability.

use crate::language;
use crate::plan::{AppendOnly, Durability, Persistence, SnapshotAfter};
use crate::reader::Reader;
use crate::yaml::Node;

/// What stands for none.
const OFF: &str = "off";
/// The most that an append-only file may have to grow, per cent.
const GROWTH_MAX: u32 = 100_000;
/// Most pairs of `snapshots`.
const SNAPSHOTS_MAX: usize = 10;

/// Reads the key `persistence` of a store, whose durability the scenario may say, too. Returns the durability that
/// follows.
pub(super) fn read(
    store: &language::Store<'_>,
    said: Option<Durability>,
    usual: Durability,
    reader: &Reader<'_>,
) -> (Persistence, Durability) {
    let Some(how) = &store.persistence.value else {
        return (Persistence::default(), said.unwrap_or(usual));
    };
    let append_only = how.append_only.value;
    let durability = append_only.map(AppendOnly::durability).or(said).unwrap_or(usual);
    if let (Some(append_only), Some(said)) = (append_only, said)
        && durability != said
    {
        let message = format!(
            "`append only: {}` makes the durability {}, and `durability` says {}; leave one of them out",
            append_only.name(),
            durability.name(),
            said.name()
        );
        how.append_only.error(reader.sink, message);
    }
    if durability == Durability::Memory
        && let Some(node) = how.rewrite_at.node().or(how.rewrite_growth.node())
    {
        let said = if append_only.is_some() { "append only: off" } else { "durability: memory" };
        reader.sink.error(node, format!("with `{said}` there is no file that could be rewritten"));
    }
    let persistence = Persistence {
        append_only,
        snapshots: how.snapshots.node().and_then(|node| snapshots(node, reader)).unwrap_or_default(),
        rewrite_at_bytes: how.rewrite_at.value,
        rewrite_growth_percent: how.rewrite_growth.node().and_then(|node| growth_percent(node, reader)),
    };
    (persistence, durability)
}

/// `60 1000 300 10`: after 60 s if there were 1000 changes, after 300 s if there were 10.
fn snapshots(node: &Node, reader: &Reader<'_>) -> Option<Vec<SnapshotAfter>> {
    reader.parsed(node, |text| {
        let wrong = || {
            format!(
                "\"{text}\" is not `snapshots`; write pairs of seconds and changes like \"60 1000\", at most \
                 {SNAPSHOTS_MAX}, or {OFF}"
            )
        };
        if text.trim() == OFF {
            return Ok(Vec::new());
        }
        let number = |word: &str| match word.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(wrong()),
        };
        let numbers = text.split_whitespace().map(number).collect::<Result<Vec<_>, _>>()?;
        let (pairs, rest) = numbers.as_chunks::<2>();
        if pairs.is_empty() || pairs.len() > SNAPSHOTS_MAX || !rest.is_empty() {
            return Err(wrong());
        }
        Ok(pairs
            .iter()
            .map(|[seconds, changes]| SnapshotAfter { seconds: *seconds, changes: *changes })
            .collect())
    })
}

/// `100%`; 0 for `off`.
fn growth_percent(node: &Node, reader: &Reader<'_>) -> Option<u32> {
    reader.parsed(node, |text| {
        let text = text.trim();
        let percent = text.strip_suffix('%').and_then(|number| number.trim_end().parse().ok());
        match percent.filter(|percent| (1..=GROWTH_MAX).contains(percent)) {
            Some(percent) => Ok(percent),
            None if text == OFF => Ok(0),
            None => Err(format!("\"{text}\" is not a growth; write it like 100%, or {OFF}")),
        }
    })
}
