//! What a `Set-Cookie` header asks for, as far as a session's cookie jar cares.

/// A cookie to be set or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetCookie<'a> {
    /// Its name, never empty.
    pub name: &'a [u8],
    /// Its value as sent; quotes, if any, are part of it.
    pub value: &'a [u8],
    /// The paths that it is for, with what lies below; absent when not said, or not beginning with `/`.
    pub path: Option<&'a [u8]>,
    /// Whether the server takes the cookie away: its value is empty, `Max-Age` is 0 or less, or (there is no clock
    /// here) it expired in the last millennium, which is how servers say it.
    pub removed: bool,
}

/// The first year whose `Expires` counts as a date still to come.
const FIRST_YEAR_KEPT: u32 = 2001;

/// Parses the value of a `Set-Cookie` header; `None` when it names no cookie.
///
/// ```
/// use tidemark_wire::http1::cookie;
///
/// let cookie = cookie::parse(b"sessionid=8f2a; Path=/; HttpOnly").unwrap();
/// assert_eq!((cookie.name, cookie.value, cookie.removed), (&b"sessionid"[..], &b"8f2a"[..], false));
/// assert!(cookie::parse(b"sessionid=; Max-Age=0").unwrap().removed);
/// ```
pub fn parse(header_value: &[u8]) -> Option<SetCookie<'_>> {
    let mut parts = header_value.split(|&byte| byte == b';');
    let (name, value) = pair(parts.next()?);
    let value = value?;
    if name.is_empty() {
        return None;
    }
    let mut path = None;
    let mut max_age_passed = None;
    let mut expired = false;
    for part in parts {
        let (attribute, setting) = pair(part);
        let setting = setting.unwrap_or(b"");
        if attribute.eq_ignore_ascii_case(b"path") {
            path = Some(setting).filter(|setting| setting.starts_with(b"/"));
        } else if attribute.eq_ignore_ascii_case(b"max-age") {
            max_age_passed = not_positive(setting).or(max_age_passed);
        } else if attribute.eq_ignore_ascii_case(b"expires") {
            expired = year(setting).is_some_and(|year| year < FIRST_YEAR_KEPT);
        }
    }
    let removed = value.is_empty() || max_age_passed.unwrap_or(expired);
    Some(SetCookie { name, value, path, removed })
}

/// Whether a cookie for `cookie_path` belongs in a request for `target` (path and query).
pub fn path_matches(target: &[u8], cookie_path: &[u8]) -> bool {
    let path = target.split(|&byte| byte == b'?').next().unwrap_or(b"");
    match path.strip_prefix(cookie_path) {
        Some(rest) => rest.is_empty() || cookie_path.ends_with(b"/") || rest.starts_with(b"/"),
        None => false,
    }
}

/// `name=value`, both trimmed.
fn pair(part: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'=', part) {
        Some(at) => (part[..at].trim_ascii(), Some(part[at + 1..].trim_ascii())),
        None => (part.trim_ascii(), None),
    }
}

/// Whether a Max-Age is 0 or less; `None` when it is no number and to be ignored.
fn not_positive(number: &[u8]) -> Option<bool> {
    let (negative, digits) = match number.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, number),
    };
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| negative || digits.iter().all(|&digit| digit == b'0'))
}

/// The year in any of the date forms: `Thu, 01 Jan 1970 00:00:00 GMT`, `Thu, 01-Jan-70 …`, `Thu Jan  1 00:00:00 1970`.
fn year(date: &[u8]) -> Option<u32> {
    let fields = date.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b':');
    let mut numbers = fields.filter(|field| !field.is_empty() && field.iter().all(u8::is_ascii_digit));
    let number = |digits: &[u8]| digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    let day = numbers.next()?;
    match (day.len(), numbers.next()?) {
        (..=2, year) if year.len() == 4 => Some(number(year)),
        (..=2, year) if year.len() == 2 => {
            let short = number(year);
            Some(if short < 70 { 2000 + short } else { 1900 + short })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(text: &str) -> bool {
        parse(text.as_bytes()).unwrap().removed
    }

    #[test]
    fn name_value_and_path() {
        let cookie = parse(b"  id = \"a=b\" ; Domain=x.example; path=/app ; Secure").unwrap();
        assert_eq!(cookie.name, b"id");
        assert_eq!(cookie.value, b"\"a=b\"");
        assert_eq!(cookie.path, Some(&b"/app"[..]));
        assert!(!cookie.removed);
        assert_eq!(parse(b"id=1; Path=app").unwrap().path, None);
        assert_eq!(parse(b"id=1; Path=/a; Path=/b").unwrap().path, Some(&b"/b"[..]));
    }

    #[test]
    fn what_names_no_cookie() {
        for text in ["", ";", "id", "=value", " = ", "Secure; id=1"] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn removal() {
        assert!(removed("id="));
        assert!(removed("id=x; Max-Age=0"));
        assert!(removed("id=x; MAX-AGE=-1"));
        assert!(removed("id=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT"));
        assert!(removed("id=x; expires=Thu, 01-Jan-70 00:00:10 GMT"));
        assert!(removed("id=x; expires=Thu Jan  1 00:00:00 1970"));
        assert!(!removed("id=x"));
        assert!(!removed("id=x; Max-Age=60"));
        assert!(!removed("id=x; Max-Age=99999999999999999999999999"));
        assert!(!removed("id=x; Max-Age=soon"));
        assert!(!removed("id=x; Max-Age"));
        assert!(!removed("id=x; Expires=Wed, 09 Jun 2094 10:18:14 GMT"));
        assert!(!removed("id=x; Expires=never"));
    }

    #[test]
    fn max_age_goes_before_expires() {
        assert!(!removed("id=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60"));
        assert!(removed("id=x; Max-Age=0; Expires=Wed, 09 Jun 2094 10:18:14 GMT"));
    }

    #[test]
    fn paths() {
        assert!(path_matches(b"/app/list?x=/other", b"/app"));
        assert!(path_matches(b"/app", b"/app"));
        assert!(path_matches(b"/app?x=1", b"/app"));
        assert!(path_matches(b"/anything", b"/"));
        assert!(!path_matches(b"/apple", b"/app"));
        assert!(!path_matches(b"/", b"/app"));
    }
}
