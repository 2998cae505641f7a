//! `{stores.NAME.FACT}`: what is known of a store only once it is started, in the text that a system is given.

use std::ops::Range;

/// What can be asked of a store.
pub const STORE_FACTS: [&str; 5] = ["url", "address", "addresses", "host", "port"];
/// What can be asked of a service: its balancer, or else its first instance; `urls` and `addresses` are those of all
/// instances.
pub const SERVICE_FACTS: [&str; 6] = ["url", "urls", "address", "addresses", "host", "port"];
/// What every reference begins with.
const BEGIN: &str = "{stores.";
const BEGIN_SERVICE: &str = "{services.";

/// A reference to a fact of a store or a service, within a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFact<'t> {
    /// Where it stands, with its braces.
    pub range: Range<usize>,
    /// The name of the store or service.
    pub store: &'t str,
    /// What is asked: one of [`STORE_FACTS`], if it is written right.
    pub fact: &'t str,
}

/// All references of a text, in order. One without an end is none.
///
/// ```
/// let all: Vec<_> = tidemark_scenario::store_facts("--cache={stores.cache.url}").collect();
/// assert_eq!((all[0].store, all[0].fact), ("cache", "url"));
/// ```
pub fn store_facts(text: &str) -> impl Iterator<Item = StoreFact<'_>> {
    facts(text, BEGIN)
}

/// The same of services: `{services.NAME.FACT}`, with one of [`SERVICE_FACTS`].
pub fn service_facts(text: &str) -> impl Iterator<Item = StoreFact<'_>> {
    facts(text, BEGIN_SERVICE)
}

fn facts<'t>(text: &'t str, word: &'static str) -> impl Iterator<Item = StoreFact<'t>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let begin = from + text.get(from..)?.find(word)?;
        let inner = begin + word.len();
        let end = inner + text[inner..].find('}')?;
        from = end + 1;
        let (store, fact) = text[inner..end].rsplit_once('.').unwrap_or((&text[inner..end], ""));
        Some(StoreFact { range: begin..from, store, fact })
    })
}

/// A reference as it is written.
pub fn store_fact(store: &str, fact: &str) -> String {
    format!("{BEGIN}{store}.{fact}}}")
}

/// The text with what `known` says in place of its references; one that it does not know stays.
pub fn with_store_facts(text: &str, known: &dyn Fn(&StoreFact<'_>) -> Option<String>) -> String {
    with_facts(text, store_facts(text), known)
}

/// The same of services.
pub fn with_service_facts(text: &str, known: &dyn Fn(&StoreFact<'_>) -> Option<String>) -> String {
    with_facts(text, service_facts(text), known)
}

fn with_facts<'t>(
    text: &'t str,
    facts: impl Iterator<Item = StoreFact<'t>>,
    known: &dyn Fn(&StoreFact<'_>) -> Option<String>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for fact in facts {
        out.push_str(&text[from..fact.range.start]);
        out.push_str(&known(&fact).unwrap_or_else(|| text[fact.range.clone()].to_owned()));
        from = fact.range.end;
    }
    out + &text[from..]
}

/// The URLs of the servers that one with commas between its hosts names (`redis://:PW@h:1,h:2/3`); one for others.
///
/// ```
/// let all = tidemark_scenario::store_servers("redis://:p@a:1,b:2/3");
/// assert_eq!(all, ["redis://:p@a:1/3", "redis://:p@b:2/3"]);
/// ```
pub fn store_servers(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else { return vec![url.to_owned()] };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
    let at = if user.is_empty() { "" } else { "@" };
    hosts.split(',').map(|host| format!("{scheme}://{user}{at}{host}{path}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn references_are_found_and_replaced() {
        let text = "a {stores.x.url} {port} {stores.y.port}{stores.z} {stores.open";
        let all: Vec<_> = store_facts(text).map(|fact| (fact.store, fact.fact)).collect();
        assert_eq!(all, [("x", "url"), ("y", "port"), ("z", "")]);
        let known = |fact: &StoreFact<'_>| (fact.store == "x").then(|| "X".to_owned());
        assert_eq!(with_store_facts(text, &known), text.replace("{stores.x.url}", "X"));
        assert_eq!(store_fact("x", "url"), "{stores.x.url}");
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "([{}.a-c]|\\{stores\\.|é){0,40}") {
            prop_assert_eq!(with_store_facts(&text, &|_| None), text);
        }
    }
}
