//! The words of the command line, before flags are looked for in them.

use std::ffi::OsString;

/// The words; a `-` behind `--json` is its value, which is joined by `=` otherwise, as the flag stands without one, too.
pub fn words(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    for word in all {
        match words.last_mut() {
            Some(last) if word == "-" && last == "--json" => last.push("=-"),
            _ => words.push(word),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_output_belongs_to_the_json_before_it() {
        let of = |line: &str| words(line.split(' ').map(OsString::from)).join(std::ffi::OsStr::new(" "));
        assert_eq!(of("hit --json - :1/"), "hit --json=- :1/");
        assert_eq!(of("hit --markdown - --json :1/"), "hit --markdown - --json :1/");
    }
}
