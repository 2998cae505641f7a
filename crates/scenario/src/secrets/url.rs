//! Who comes, as a URL has it: user and password before the last `@` of who serves it.

use std::ops::Range;

use crate::pieces::{Piece, split};

/// Bytes behind `://` in which the end of a password is looked for.
pub(super) const URL_BYTES_MAX: usize = 4 << 10;

/// User and password of a URL that is percent-encoded itself, as [`user_info`] of one that is not.
pub(super) fn encoded_user_info(rest: &str) -> Option<&str> {
    let rest = rest.split(|c: char| c.is_whitespace() || c == '&').next().unwrap_or_default();
    let decoded = percent_encoding::percent_decode_str(rest).decode_utf8_lossy();
    user_info(&decoded).and_then(|_| rest.rsplit_once("%40")).map(|(info, _)| info)
}

/// What stands behind the first colon beside holes; nothing where there are none.
pub(super) fn literals(info: &str) -> Vec<Range<usize>> {
    let mut is_password = false;
    let mut found = Vec::new();
    if !info.contains("${") {
        return found;
    }
    for piece in split(info).unwrap_or_default() {
        let Piece::Literal(literal) = piece else { continue };
        let at = literal.as_ptr() as usize - info.as_ptr() as usize;
        let begin = if is_password { Some(0) } else { literal.find(':').map(|colon| colon + 1) };
        is_password |= begin.is_some();
        found
            .extend(begin.filter(|begin| *begin < literal.len()).map(|begin| at + begin..at + literal.len()));
    }
    found
}

/// User and password of a URL, of which this is what stands behind `://`. Where it has no host that can be, as `/`, `?`, `#`
/// or a space is in a password, they go up to the last `@` of all. `u:12/3@h` may be a host with its port, too; it is taken for
/// a password, unless the host cannot be a name or the first `@` begins a part of a path.
pub(super) fn user_info(rest: &str) -> Option<&str> {
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#')).unwrap_or(rest.len());
    let (info, host) = match rest[..end].rsplit_once('@') {
        Some((info, host)) => (Some(info), host),
        None => (None, &rest[..end]),
    };
    let host = host.trim_end_matches('\\');
    let goes_on = rest[end..].starts_with(['/', '?', '#']);
    // a port would stand there
    let is_cut = host.ends_with(':') && goes_on;
    if !(is_host(host) && !is_cut || host.contains("${")) {
        return rest.rsplit_once('@').map(|(info, _)| info);
    }
    if goes_on && may_be_login(host) {
        let word = rest.split(char::is_whitespace).next().unwrap_or_default();
        let is_of_path = word[end..].split_once('@').is_none_or(|(before, _)| before.ends_with('/'));
        return if is_of_path { info } else { word.rsplit_once('@').map(|(login, _)| login) };
    }
    info
}

/// Whether what looks like `HOST:PORT` may be a user and the beginning of a password.
fn may_be_login(host: &str) -> bool {
    let Some((name, port)) = host.split_once(':') else { return false };
    port.bytes().all(|byte| byte.is_ascii_digit())
        && !name.eq_ignore_ascii_case("localhost")
        && name.parse::<std::net::Ipv4Addr>().is_err()
}

/// The same where this is a URL to its end, in which no space can be.
pub(super) fn whole_user_info(rest: &str) -> Option<&str> {
    let (info, _) = rest.rsplit_once('@')?;
    if info.contains(char::is_whitespace) { Some(info) } else { user_info(rest) }
}

/// Whether this may be `HOST`, `HOST:PORT` or `[::1]:PORT`, with what ends a sentence behind it.
fn is_host(text: &str) -> bool {
    let text = text.trim_end_matches(['.', ',', ';', ':', ')', ']', '}', '…']);
    let port = match text.strip_prefix('[') {
        Some(inner) => inner.split_once(']').map_or("", |(_, port)| port),
        None => text.find(':').map_or("", |colon| &text[colon..]),
    };
    let is_port = |port: &str| {
        port.eq_ignore_ascii_case("port")
            || (port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()))
    };
    port.strip_prefix(':').map_or(port.is_empty(), is_port)
}
