//! A path's walk over JSON text.

use super::{JsonError, Segment, scan, text};

/// Shows matches to `visit` until it returns false.
pub(super) fn walk<'a>(
    json: &'a [u8],
    segments: &[Segment],
    visit: impl FnMut(&'a [u8]) -> bool,
) -> Result<(), JsonError> {
    let mut walk = Walk { json, visit, stopped: false };
    walk.value(scan::blanks(json, 0), segments, 0, false)?;
    Ok(())
}

/// From the end, this many elements of an array are found in one pass.
const LAST_ELEMENTS: usize = 8;

struct Walk<'a, V> {
    json: &'a [u8],
    visit: V,
    stopped: bool,
}

/// What a segment wants of an object or array.
#[derive(Clone, Copy)]
enum Wanted<'s> {
    Name(&'s str),
    Index(u64),
    Every,
}

impl<'a, V: FnMut(&'a [u8]) -> bool> Walk<'a, V> {
    /// Follows `segments` from the value at `at`, which is inside of `depth` others. Returns where the value ends;
    /// unless `need_end`, anything will do, and reading goes no further than the matches. Calls itself once a
    /// segment, so never deeper than a path is long.
    fn value(
        &mut self,
        at: usize,
        segments: &[Segment],
        depth: usize,
        need_end: bool,
    ) -> Result<usize, JsonError> {
        let Some((segment, rest)) = segments.split_first() else {
            let end = scan::value(self.json, at, depth)?;
            self.stopped = !(self.visit)(&self.json[at..end]);
            return Ok(end);
        };
        let wanted = match (self.json.get(at), segment) {
            (Some(b'{'), Segment::Member(name)) => Wanted::Name(name),
            (Some(b'{' | b'['), Segment::Every) => Wanted::Every,
            (Some(b'['), &Segment::Index(index)) if index >= 0 => Wanted::Index(index as u64),
            (Some(b'['), &Segment::Index(index)) => {
                return self.backwards(at, index.unsigned_abs(), rest, depth);
            }
            // Another kind of value than the path expects: nothing to find in here. It is still read, so that
            // what is no JSON does not pass for "not found".
            _ => return scan::value(self.json, at, depth),
        };
        self.children(at, wanted, rest, depth + 1, need_end)
    }

    /// Goes through the array or object at `at` and on into the wanted children.
    fn children(
        &mut self,
        at: usize,
        wanted: Wanted,
        rest: &[Segment],
        depth: usize,
        need_end: bool,
    ) -> Result<usize, JsonError> {
        let json = self.json;
        let is_object = json[at] == b'{';
        let mut at = scan::blanks(json, at + 1);
        if json.get(at) == Some(&if is_object { b'}' } else { b']' }) {
            return Ok(at + 1);
        }
        let mut matched = false;
        for index in 0u64.. {
            let mut name = &json[at..at];
            if is_object {
                let (name_end, value) = scan::name(json, at)?;
                name = &json[at..name_end];
                at = value;
            }
            let hit = match wanted {
                Wanted::Every => true,
                Wanted::Index(wanted) => index == wanted,
                Wanted::Name(wanted) => !matched && text::name_is(name, wanted.as_bytes()),
            };
            matched |= hit;
            if hit {
                let last = !need_end && !matches!(wanted, Wanted::Every);
                at = self.value(at, rest, depth, !last)?;
                if self.stopped || last {
                    return Ok(at);
                }
            } else {
                at = scan::value(json, at, depth)?;
            }
            at = scan::blanks(json, at);
            match json.get(at) {
                Some(b',') => at = scan::blanks(json, at + 1),
                Some(b'}') if is_object => break,
                Some(b']') if !is_object => break,
                _ => return Err(JsonError { offset: at, reason: scan::after_value(is_object) }),
            }
        }
        Ok(at + 1)
    }

    /// Goes on into element `back` of the array at `at`, counted from its end; returns where the array ends. One pass
    /// sees where the last few elements are; one further back is fetched by a second pass.
    fn backwards(
        &mut self,
        at: usize,
        back: u64,
        rest: &[Segment],
        depth: usize,
    ) -> Result<usize, JsonError> {
        let json = self.json;
        let mut starts = [0; LAST_ELEMENTS];
        let mut count = 0;
        // Behind a reference, or the types of walks within walks would never end.
        let visit: &mut dyn FnMut(&'a [u8]) -> bool = &mut |element| {
            starts[count % LAST_ELEMENTS] = element.as_ptr() as usize - json.as_ptr() as usize;
            count += 1;
            true
        };
        let end = Walk { json, visit, stopped: false }.children(at, Wanted::Every, &[], depth + 1, true)?;
        let Some(index) = usize::try_from(back).ok().and_then(|back| count.checked_sub(back)) else {
            return Ok(end);
        };
        if back as usize <= LAST_ELEMENTS {
            self.value(starts[index % LAST_ELEMENTS], rest, depth + 1, false)?;
        } else {
            self.children(at, Wanted::Index(index as u64), rest, depth + 1, false)?;
        }
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use crate::json::{JsonError, MAX_DEPTH, Path};

    const DOCUMENT: &str = r#" { "a" : [ 1 , {"b":"x"} , [ ] , null ] ,
        "c\u0064" : {"e": true, "f": {"e": false}}, "" : 2, "a" : "again" } "#;

    fn all(path: &str, json: &str) -> Result<Vec<String>, JsonError> {
        let mut found = Vec::new();
        Path::parse(path).unwrap().find_all(json.as_bytes(), &mut |token| {
            found.push(String::from_utf8(token.to_vec()).unwrap());
        })?;
        let path = Path::parse(path).unwrap();
        assert_eq!(path.count(json.as_bytes())?, found.len());
        assert_eq!(path.find(json.as_bytes())?, found.first().map(|token| token.as_bytes()));
        Ok(found)
    }

    #[test]
    fn what_is_there_is_found() {
        for (path, expected) in [
            ("$.a[0]", &["1"][..]),
            ("$.a[1].b", &["\"x\""]),
            ("$.a[2]", &["[ ]"]),
            ("$.a[-1]", &["null"]),
            ("$.a[-3].b", &["\"x\""]),
            ("$.a[-4]", &["1"]),
            ("$.a[*]", &["1", "{\"b\":\"x\"}", "[ ]", "null"]),
            ("$.a.*.b", &["\"x\""]),
            ("$.cd.e", &["true"]),
            ("$.*.e", &["true"]),
            ("$.*.*.e", &["false"]),
            ("$['']", &["2"]),
        ] {
            assert_eq!(all(path, DOCUMENT).unwrap(), expected, "{path}");
        }
        assert_eq!(all("$", DOCUMENT).unwrap(), [DOCUMENT.trim()]);
        assert_eq!(all("$[*][-1]", "[[1,2],[],[3]]").unwrap(), ["2", "3"]);
        assert_eq!(all("$[*][0][*]", "[[[1,2],9],[],[[3]]]").unwrap(), ["1", "2", "3"]);
        assert_eq!(all("$[*].a", r#"[{"a":1,"a":2},{"b":3,"a":4}]"#).unwrap(), ["1", "4"]);
        for back in 1..=20 {
            let path = format!("$[-{back}][0]");
            let json = "[[0],[1],[2],[3],[4],[5],[6],[7],[8],[9],[10],[11],[12],[13],[14],[15],[16],[17]]";
            let expected: Vec<String> = (back <= 18).then(|| (18 - back).to_string()).into_iter().collect();
            assert_eq!(all(&path, json).unwrap(), expected, "{path}");
        }
        assert_eq!(all("$[-1][-1]", "[[1,2],[3,[4,5]]]").unwrap(), ["[4,5]"]);
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for path in
            ["$.b", "$.a[4]", "$.a[-5]", "$.a.b", "$[0]", "$.cd[0]", "$.a[0].b", "$.a[2][0]", "$.a[2][-1]"]
        {
            assert_eq!(all(path, DOCUMENT).unwrap(), [""; 0], "{path}");
        }
        assert_eq!(all("$[-9223372036854775808]", "[1]").unwrap(), [""; 0]);
    }

    #[test]
    fn broken_text_before_a_match_is_an_error_and_behind_it_is_not_read() {
        let find = |path: &str, json: &'static str| Path::parse(path).unwrap().find(json.as_bytes());
        assert_eq!(find("$.a", "{\"a\":1").unwrap(), Some(&b"1"[..]));
        assert_eq!(find("$[0]", "[7 8").unwrap(), Some(&b"7"[..]));
        assert_eq!(find("$.b", "{\"a\":x,\"b\":1}").unwrap_err().offset, 5);
        assert_eq!(find("$.b", "{\"a\":1").unwrap_err().offset, 6);
        assert_eq!(find("$.b", "{\"a\":1]").unwrap_err().offset, 6);
        assert_eq!(find("$[1]", "[1 2]").unwrap_err().offset, 3);
        assert_eq!(find("$[-1]", "[1,2").unwrap_err().offset, 4);
        assert_eq!(find("$.a.b", "{\"a\":nul}").unwrap_err().offset, 5);
        assert!(find("$", "").is_err());
    }

    #[test]
    fn depth_counts_from_the_outside() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(all("$[0][0]", &nested(MAX_DEPTH)).is_ok());
        assert!(all("$[0][0]", &nested(MAX_DEPTH + 1)).is_err());
        assert!(all("$[-1][0]", &nested(MAX_DEPTH + 1)).is_err());
    }
}
