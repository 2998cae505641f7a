//! Which host a recording is of.

use std::collections::HashMap;

use url::Url;

use super::entry::{Entry, Page};

/// Most redirects that are gone along.
const REDIRECTS_MAX: usize = 20;

/// That of the page, behind its redirects; where no page is known, the one with most requests. None without requests.
pub(super) fn of_page<'e>(pages: &[Page], entries: &'e [Entry<'_>]) -> Option<&'e str> {
    // one that only redirects answers nothing
    let mut answered: HashMap<&str, usize> = HashMap::new();
    for entry in entries {
        *answered.entry(entry.host()).or_default() += usize::from(entry.redirect.is_none());
    }
    let of = |host: &str| answered.get(host).copied().unwrap_or_default();
    let most = |hosts: Vec<&'e str>| hosts.into_iter().rev().max_by_key(|host| of(host));
    let on_the_way = first(pages, entries).map(|entry| way(entry, entries)).unwrap_or_default();
    // of several with as many, the one behind the others
    let page = on_the_way.into_iter().max_by_key(|host| of(host));
    page.filter(|host| of(host) > 0).or_else(|| most(entries.iter().map(Entry::host).collect()))
}

/// What the first page that has requests began with: its title, which often is its URL, or the first that asks for a page.
fn first<'e, 'r>(pages: &[Page], entries: &'e [Entry<'r>]) -> Option<&'e Entry<'r>> {
    let of_title = |title: &str| {
        let url = Url::parse(title.trim()).ok().filter(|url| ["http", "https"].contains(&url.scheme()))?;
        let same = entries.iter().find(|entry| is_same(&entry.url, &url));
        same.or_else(|| entries.iter().find(|entry| Some(entry.host()) == url.host_str()))
    };
    let of_page = |page: &Page| {
        let document = || {
            let id = page.id.as_deref()?;
            entries.iter().find(|entry| entry.is_document && entry.page == Some(id))
        };
        page.title.as_deref().and_then(of_title).or_else(document)
    };
    pages.iter().find_map(of_page).or_else(|| entries.iter().find(|entry| entry.is_document))
}

/// The hosts that redirects lead along, from a request on.
fn way<'e>(begin: &'e Entry<'_>, entries: &'e [Entry<'_>]) -> Vec<&'e str> {
    let mut hosts = vec![begin.host()];
    let mut at = begin;
    for _ in 0..REDIRECTS_MAX {
        let Some(place) = &at.redirect else { break };
        let next = entries.iter().find(|entry| is_same(&entry.url, place) && !std::ptr::eq(*entry, at));
        let Some(next) = next else { break };
        hosts.push(next.host());
        at = next;
    }
    hosts
}

/// Whether two URLs ask for the same; what is behind a `#` is not sent.
fn is_same(one: &Url, other: &Url) -> bool {
    one[..url::Position::AfterQuery] == other[..url::Position::AfterQuery]
}
