//! Paths over texts, compared with a tree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tidemark_wire::json::{self, Path, Segment};

fuzz_target!(|data: &[u8]| {
    let Some(line) = data.iter().position(|&byte| byte == b'\n') else { return };
    let (path, text) = (&data[..line], &data[line + 1..]);
    json::write_text(text, &mut Vec::new());
    let tree = serde_json::from_slice::<Value>(text);
    let checked = json::check(text);
    match &tree {
        Ok(_) => assert_eq!(checked, Ok(())),
        Err(error) => assert!(checked.is_err() || refused_for_other_reasons(error, text), "{error}"),
    }
    let Some(path) = std::str::from_utf8(path).ok().and_then(|path| Path::parse(path).ok()) else { return };
    assert_eq!(Path::parse(&path.to_string()).as_ref(), Ok(&path));

    let mut count = 0;
    let found_all = path.find_all(text, &mut |token| {
        assert!(json::check(token).is_ok());
        count += 1;
    });
    assert!(checked.is_err() || found_all.is_ok());
    if found_all.is_ok() {
        assert_eq!(path.find(text).map(|found| found.is_some()), Ok(count > 0));
    }
    if let Ok(tree) = tree {
        // Written anew, because of two members of one name a tree keeps the last.
        let text = tree.to_string();
        let mut found = Vec::new();
        path.find_all(text.as_bytes(), &mut |token| found.push(token.to_vec())).expect("it is JSON");
        let mut expected = Vec::new();
        matches(&tree, path.segments(), &mut expected);
        let expected: Vec<Vec<u8>> = expected.iter().map(|value| value.to_string().into_bytes()).collect();
        assert_eq!(found, expected);
    }
});

/// Only numbers too large for a float, text that is not UTF-8, halves of surrogate pairs, and the last level of
/// nesting are seen differently.
fn refused_for_other_reasons(error: &serde_json::Error, text: &[u8]) -> bool {
    let reason = error.to_string();
    let reasons = ["number out of range", "recursion limit", "surrogate", "unexpected end of hex escape"];
    std::str::from_utf8(text).is_err() || reasons.iter().any(|known| reason.contains(known))
}

fn matches<'t>(value: &'t Value, segments: &[Segment], found: &mut Vec<&'t Value>) {
    let Some((segment, rest)) = segments.split_first() else { return found.push(value) };
    match (segment, value) {
        (Segment::Member(name), Value::Object(members)) => {
            members.get(name).into_iter().for_each(|member| matches(member, rest, found));
        }
        (Segment::Every, Value::Object(members)) => {
            members.values().for_each(|member| matches(member, rest, found));
        }
        (Segment::Every, Value::Array(items)) => items.iter().for_each(|item| matches(item, rest, found)),
        (&Segment::Index(index), Value::Array(items)) => {
            let index = if index < 0 { index.checked_add(items.len() as i64) } else { Some(index) };
            let item = index.and_then(|index| usize::try_from(index).ok()).and_then(|index| items.get(index));
            item.into_iter().for_each(|item| matches(item, rest, found));
        }
        _ => {}
    }
}
