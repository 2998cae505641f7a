//! The scenario's `keys`.

use crate::keys::KEYS_MAX;
use crate::plan::KeysPlan;
use crate::reader::Reader;
use crate::yaml::Node;

/// Reads all of them.
pub(super) fn read(node: Option<&Node>, reader: &Reader<'_>) -> Vec<KeysPlan> {
    let mut all = Vec::new();
    for (name, node) in node.map(Node::entries).unwrap_or_default() {
        let Some(name) = name.text() else { continue };
        let most = node.get("most").unwrap_or(node);
        // what could not be read is kept, so that its users are not reported, too
        let count = reader.whole(most, 1).unwrap_or(1);
        if count > KEYS_MAX {
            reader.sink.error(most, format!("{count} is too large; at most {KEYS_MAX}"));
        }
        let loaded = node.get("loaded");
        let there = loaded.and_then(|node| reader.whole(node, 0)).unwrap_or(0);
        if let Some(loaded) = loaded.filter(|_| there > count) {
            reader.sink.error(loaded, format!("{there} are more than there can be, {count}"));
        }
        all.push(KeysPlan { name: name.to_owned(), most: count.min(KEYS_MAX), loaded: there });
    }
    all
}
