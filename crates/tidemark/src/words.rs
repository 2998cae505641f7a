//! The words of the command line, before flags are looked for in them.

use std::ffi::OsString;

use clap::Parser;
use clap::error::ErrorKind;
use tidemark_import::OF_CURL;
use tidemark_import::curl::is_curl;

use crate::args::{Arguments, Verb};

/// What a command line of curl begins with.
const CURL: &str = "curl";

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

/// Reads the flags. What follows the word curl, where the URL of `hit` should be, is a command line of curl.
pub fn parsed(words: &[OsString]) -> Result<Arguments, clap::Error> {
    let is_hit = words.get(1).is_some_and(|verb| verb == "hit");
    let places = words.iter().enumerate().filter(|(_, word)| is_hit && *word == CURL).map(|(at, _)| at);
    for at in places {
        // a value of a flag may be called so, too
        if let Ok(Arguments { verb: Some(Verb::Hit(mut hit)) }) = Arguments::try_parse_from(&words[..=at])
            && hit.url.as_deref() == Some(CURL)
        {
            hit.curl = words[at..].iter().map(|word| word.to_string_lossy().into_owned()).collect();
            return Ok(Arguments { verb: Some(Verb::Hit(hit)) });
        }
    }
    let is_of_curl = words.get(2).is_some_and(|word| is_curl(&word.to_string_lossy()));
    if is_of_curl && words[1] == "init" {
        return Err(clap::Error::raw(ErrorKind::UnknownArgument, format!("{OF_CURL}\n")));
    }
    Arguments::try_parse_from(words)
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

    #[test]
    fn what_follows_curl_is_curls() {
        let of = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            match parsed(&words).unwrap().verb {
                Some(Verb::Hit(hit)) => (hit.url, hit.curl.join(" "), hit.connections),
                other => panic!("{other:?}"),
            }
        };
        let curl = || Some("curl".to_owned());
        assert_eq!(of("t hit -c 5 curl -d 1 http://h"), (curl(), "curl -d 1 http://h".into(), Some(5)));
        assert_eq!(of("t hit -H curl curl h"), (curl(), "curl h".into(), None));
        assert_eq!(of("t hit http://h -H curl -c 5"), (Some("http://h".into()), String::new(), Some(5)));
        assert!(parsed(&["t".into(), "run".into(), "curl".into()]).is_ok());
        let refused =
            parsed(&["t", "init", "curl", "-X", "POST", "http://h"].map(OsString::from)).unwrap_err();
        assert!(refused.to_string().contains("tidemark hit --print-scenario curl … > my.yaml"), "{refused}");
    }
}
