//! Tags of steps: texts by name that stand beside a label in results, tables and metrics.

use std::collections::BTreeMap;

use crate::reader::Reader;
use crate::yaml::Node;

/// Texts by name.
pub(super) type Tags = BTreeMap<String, String>;

/// Most tags of a step.
const TAGS_MAX: usize = 16;
/// Longest name, and longest text, bytes.
const NAME_BYTES_MAX: usize = 64;
const TEXT_BYTES_MAX: usize = 256;
/// Names that metrics have already.
const TAKEN: [&str; 13] = [
    "job", "instance", "label", "le", "level", "measured", "name", "outcome", "phase", "quantile", "run",
    "target", "version",
];

/// Reads the tags of a step; mistakes are reported.
pub(super) fn read(node: &Node, reader: &Reader<'_>) -> Tags {
    if node.entries().len() > TAGS_MAX {
        reader.sink.error(node, format!("a step has at most {TAGS_MAX} tags"));
    }
    let mut tags = Tags::new();
    for (name_node, text_node) in node.entries() {
        let (Some(name), Some(text)) = (name_node.text(), reader.text(text_node)) else { continue };
        if let Err(message) = check_name(name) {
            reader.sink.error(name_node, message);
        }
        if text.is_empty() || text.len() > TEXT_BYTES_MAX || text.contains(char::is_control) {
            let message = format!("a tag is a text of 1 to {TEXT_BYTES_MAX} bytes on one line");
            reader.sink.error(text_node, message);
        }
        tags.insert(name.to_owned(), text);
    }
    tags
}

/// Whether metrics can have a label of this name.
fn check_name(name: &str) -> Result<(), String> {
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_word
        || name.starts_with(|c: char| c.is_ascii_digit())
        || name.len() > NAME_BYTES_MAX
        || name.is_empty()
    {
        return Err(format!(
            "\"{name}\" cannot be a tag's name; use at most {NAME_BYTES_MAX} letters, digits and _, not a digit first"
        ));
    }
    if TAKEN.contains(&name) || name.starts_with("__") {
        return Err(format!("metrics already have a label \"{name}\"; rename the tag"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;

    fn checked(steps: &str) -> Result<Plan, String> {
        let text = format!("sessions: {{s: {{steps: [{steps}]}}}}\nload: {{users: 1, hold: 1s}}\n");
        crate::load_text("t.yaml", &text, std::path::Path::new("."), &[]).map_err(|told| told.to_string())
    }

    #[test]
    fn a_label_has_the_tags_of_its_steps() {
        let plan = checked(
            "{GET: /, label: A, tags: {team: search, tier: 1}}, {GET: /b, label: A}, {GET: /c, label: A, tags: {tier: 1, team: search}}, \
             {GET: /d}",
        )
        .unwrap();
        let tags: Vec<Vec<(&str, &str)>> = plan
            .tags
            .iter()
            .map(|tags| tags.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect())
            .collect();
        assert_eq!(tags, [vec![("team", "search"), ("tier", "1")], vec![]]);
    }

    #[test]
    fn what_cannot_be_a_tag_is_told() {
        let many = (0..17).map(|tag| format!("t{tag}: x")).collect::<Vec<_>>().join(", ");
        for (tags, wanted) in [
            ("{outcome: x}", "metrics already have a label \"outcome\""),
            ("{__name: x}", "metrics already have a label"),
            ("{a-b: x}", "\"a-b\" cannot be a tag's name; use at most 64 letters"),
            ("{1a: x}", "cannot be a tag's name"),
            ("{a: ''}", "a tag is a text of 1 to 256 bytes on one line"),
            ("{a: \"x\\ny\"}", "on one line"),
            (&format!("{{{many}}}"), "a step has at most 16 tags"),
        ] {
            let told = checked(&format!("{{GET: /, tags: {tags}}}")).unwrap_err();
            assert!(told.contains(wanted), "{tags}: {told}");
        }
        let told =
            checked("{GET: /, label: A, tags: {a: x}}, {GET: /b, label: A, tags: {a: y}}").unwrap_err();
        assert!(told.contains("the label \"A\" has other tags in line 1"), "{told}");
    }
}
