//! The same as the usual crate sends, whatever servers set.

use std::time::{SystemTime, UNIX_EPOCH};

use cookie_store::CookieStore;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tidemark_wire::http1::cookie;
use url::Url;

use super::*;

static ORIGINS: [&str; 6] = [
    "http://shop.test",
    "https://shop.test",
    "http://www.shop.test:8080",
    "https://a.www.shop.test",
    "http://myshop.test",
    "http://10.0.0.1",
];
static PATHS: [&str; 7] = ["/", "/a", "/a/", "/a/b", "/ab", "/a/b/c?d=/e", "/x/y"];
static ATTRIBUTES: [&str; 18] = [
    "Path=/",
    "Path=/a",
    "path=/a/",
    "Path=/a/b",
    "Path=x",
    "Path=",
    "Domain=shop.test",
    "domain=.www.shop.test",
    "Domain=WWW.shop.test",
    "Domain=shop.testing",
    "Domain=10.0.0.1",
    "Secure",
    "HttpOnly",
    "Max-Age=0",
    "Max-Age=-5",
    "Max-Age=100000",
    "Expires=Thu, 01 Jan 1970 00:00:01 GMT",
    "Expires=Fri, 01 Jan 2100 00:00:00 GMT",
];

fn set_cookie() -> impl Strategy<Value = String> {
    ("[ab]", "[xyz]{1,2}", vec(select(&ATTRIBUTES[..]), 0..4)).prop_map(|(name, value, attributes)| {
        attributes.iter().fold(format!("{name}={value}"), |text, attribute| format!("{text}; {attribute}"))
    })
}

fn sorted(cookies: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = cookies.collect();
    all.sort();
    all
}

proptest! {
    #[test]
    fn what_is_sent_is_what_the_usual_crate_sends(
        set in vec((0..ORIGINS.len(), select(&PATHS[..]), set_cookie()), 1..16),
    ) {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        let site = |origin: &&str| {
            let (scheme, authority) = origin.split_once("://").unwrap();
            Site::new(authority, scheme == "https")
        };
        let sites: Vec<Site> = ORIGINS.iter().map(site).collect();
        let (mut jars, mut store) = (Vec::new(), CookieStore::default());
        let url = |origin: usize, path: &str| Url::parse(&format!("{}{path}", ORIGINS[origin])).unwrap();
        for (from, path, text) in &set {
            let parsed = cookie::parse(text.as_bytes()).unwrap();
            let _ = take(&mut jars, (&sites[..], *from), &parsed, cookie::default_path(path.as_bytes()), now_s);
            let _ = store.parse(text, &url(*from, path));
        }
        for to in 0..ORIGINS.len() {
            for path in PATHS {
                let mut out = path.as_bytes().to_vec();
                if let Some(jar) = jars.get(to) {
                    jar.write(&mut out, 0..path.len(), now_s);
                }
                let ours = String::from_utf8(out[path.len()..].to_vec()).unwrap();
                let ours = sorted(ours.split("; ").filter(|one| !one.is_empty()).map(str::to_owned));
                let url = url(to, path);
                let theirs = sorted(store.get_request_values(&url).map(|(name, value)| format!("{name}={value}")));
                prop_assert_eq!(ours, theirs, "{} of {:?}", url, set);
            }
        }
    }
}
