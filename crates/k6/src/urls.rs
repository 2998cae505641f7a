//! URLs as the web's standard has them, for the library `url`.

use rquickjs::function::Func;
use rquickjs::{Ctx, Object, Result};
use url::{Url, form_urlencoded, quirks};

use crate::modules::thrown;

pub(crate) fn install(natives: &Object<'_>) -> Result<()> {
    natives.set("urlOf", Func::from(url_of))?;
    natives.set("urlPart", Func::from(part))?;
    natives.set("urlWith", Func::from(with))?;
    natives.set("formPairs", Func::from(form_pairs))?;
    natives.set("formText", Func::from(form_text))
}

fn parsed(ctx: &Ctx<'_>, text: &str) -> Result<Url> {
    Url::parse(text).map_err(|error| thrown(ctx, &format!("Invalid URL: {text}: {error}")))
}

/// The whole of a URL, as seen from another if one is given.
fn url_of(ctx: Ctx<'_>, text: String, base: Option<String>) -> Result<String> {
    let url = match base {
        Some(base) => parsed(&ctx, &base)?
            .join(&text)
            .map_err(|error| thrown(&ctx, &format!("Invalid URL: {text}: {error}")))?,
        None => parsed(&ctx, &text)?,
    };
    Ok(url.into())
}

fn part(ctx: Ctx<'_>, href: String, name: String) -> Result<String> {
    let url = parsed(&ctx, &href)?;
    Ok(match name.as_str() {
        "origin" => return Ok(quirks::origin(&url)),
        "protocol" => quirks::protocol(&url),
        "username" => quirks::username(&url),
        "password" => quirks::password(&url),
        "host" => quirks::host(&url),
        "hostname" => quirks::hostname(&url),
        "port" => quirks::port(&url),
        "pathname" => quirks::pathname(&url),
        "search" => quirks::search(&url),
        _ => quirks::hash(&url),
    }
    .to_owned())
}

/// The URL with a part changed. As in browsers, a part that cannot be so changes nothing.
fn with(ctx: Ctx<'_>, href: String, name: String, value: String) -> Result<String> {
    let mut url = parsed(&ctx, &href)?;
    let value = value.as_str();
    match name.as_str() {
        "protocol" => drop(quirks::set_protocol(&mut url, value)),
        "username" => drop(quirks::set_username(&mut url, value)),
        "password" => drop(quirks::set_password(&mut url, value)),
        "host" => drop(quirks::set_host(&mut url, value)),
        "hostname" => drop(quirks::set_hostname(&mut url, value)),
        "port" => drop(quirks::set_port(&mut url, value)),
        "pathname" => quirks::set_pathname(&mut url, value),
        "search" => quirks::set_search(&mut url, value),
        _ => quirks::set_hash(&mut url, value),
    }
    Ok(url.into())
}

/// Path and query of a URL as they are written, where Go would leave them so: `/a/../b` stays, and so does `é` of a query.
/// What cannot be sent is escaped.
pub(crate) fn path_as_written(url: &str) -> String {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let after_host = after_scheme.find(['/', '?', '#']).map_or("", |at| &after_scheme[at..]);
    let target = after_host.split('#').next().unwrap_or_default();
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let mut written = String::with_capacity(target.len() + 1);
    let mut put = |text: &str, stays: &dyn Fn(char) -> bool| {
        for letter in text.chars() {
            if stays(letter) {
                written.push(letter);
                continue;
            }
            for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                written.push_str(&format!("%{byte:02X}"));
            }
        }
    };
    // https://pkg.go.dev/net/url#URL.EscapedPath: what it takes for a valid encoding
    let in_path = |letter: char| letter.is_ascii_alphanumeric() || "-_.~$&+,/:;=@!'()*[]%".contains(letter);
    put(if path.is_empty() { "/" } else { path }, &in_path);
    if let Some(query) = query {
        put("?", &|_| true);
        // https://pkg.go.dev/net/url#URL.RequestURI: it has no encoding of its own
        put(query, &|letter| letter.is_ascii_graphic() || !letter.is_ascii());
    }
    written
}

/// Names and values in turn.
fn form_pairs(text: String) -> Vec<String> {
    form_urlencoded::parse(text.as_bytes())
        .flat_map(|(name, value)| [name.into_owned(), value.into_owned()])
        .collect()
}

fn form_text(flat: Vec<String>) -> String {
    let mut text = form_urlencoded::Serializer::new(String::new());
    text.extend_pairs(flat.chunks_exact(2).map(|pair| (&pair[0], &pair[1])));
    text.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_as_they_are_written() {
        for (url, path) in [
            ("http://h", "/"),
            ("http://h?a=b", "/?a=b"),
            ("http://h/a/../b/./c//d#e?f", "/a/../b/./c//d"),
            ("http://h:80/%7e/a%2Fb?x=%20&y={z}|'\"#f", "/%7e/a%2Fb?x=%20&y={z}|'\""),
            ("http://h/a b/{c}/é?q=a b&é", "/a%20b/%7Bc%7D/%C3%A9?q=a%20b&é"),
        ] {
            assert_eq!(path_as_written(url), path, "{url}");
        }
    }
}
