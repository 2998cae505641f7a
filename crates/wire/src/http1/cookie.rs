//! What a `Set-Cookie` header asks for, as RFC 6265 reads it (5.2).

/// A cookie to be set or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetCookie<'a> {
    /// Its name, never empty.
    pub name: &'a [u8],
    /// Its value as sent; quotes, if any, are part of it.
    pub value: &'a [u8],
    /// The domain that it is for with all below, without a leading dot; absent when not said.
    pub domain: Option<&'a [u8]>,
    /// The paths that it is for, with what lies below; absent when not said, or not beginning with `/`.
    pub path: Option<&'a [u8]>,
    /// Whether it is for secured connections only.
    pub is_secure: bool,
    /// When it ends; absent when it lives as long as the session.
    pub expiry: Option<Expiry>,
}

/// When a cookie ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// After so many seconds (`Max-Age`); at once where there are none, or fewer.
    After(i64),
    /// Seconds since 1970 UTC (`Expires`).
    At(i64),
}

impl SetCookie<'_> {
    /// When it ends, in seconds since 1970 UTC as `now_s` is; never where it lives as long as the session.
    pub fn ends_s(&self, now_s: i64) -> Option<i64> {
        match self.expiry? {
            Expiry::After(seconds) if seconds <= 0 => Some(i64::MIN),
            Expiry::After(seconds) => Some(now_s.saturating_add(seconds)),
            Expiry::At(moment_s) => Some(moment_s),
        }
    }

    /// Whether the server takes the cookie away: it has ended as it comes.
    pub fn is_removed(&self, now_s: i64) -> bool {
        self.ends_s(now_s).is_some_and(|end_s| end_s <= now_s)
    }
}

/// Parses the value of a `Set-Cookie` header; `None` when it names no cookie.
///
/// ```
/// use tidemark_wire::http1::cookie;
///
/// let cookie = cookie::parse(b"sessionid=8f2a; Path=/; HttpOnly").unwrap();
/// assert_eq!((cookie.name, cookie.value, cookie.expiry), (&b"sessionid"[..], &b"8f2a"[..], None));
/// assert!(cookie::parse(b"sessionid=; Max-Age=0").unwrap().is_removed(0));
/// ```
pub fn parse(header_value: &[u8]) -> Option<SetCookie<'_>> {
    let mut parts = header_value.split(|&byte| byte == b';');
    let (name, value) = pair(parts.next()?);
    let value = value?;
    if name.is_empty() {
        return None;
    }
    let mut set = SetCookie { name, value, domain: None, path: None, is_secure: false, expiry: None };
    let mut max_age = None;
    for part in parts {
        let (attribute, setting) = pair(part);
        let setting = setting.unwrap_or(b"");
        if attribute.eq_ignore_ascii_case(b"path") {
            set.path = Some(setting).filter(|setting| setting.starts_with(b"/"));
        } else if attribute.eq_ignore_ascii_case(b"domain") && !setting.is_empty() {
            let domain = setting.strip_prefix(b".").unwrap_or(setting);
            set.domain = Some(domain).filter(|domain| !domain.is_empty());
        } else if attribute.eq_ignore_ascii_case(b"secure") {
            set.is_secure = true;
        } else if attribute.eq_ignore_ascii_case(b"max-age") {
            max_age = seconds(setting).or(max_age);
        } else if attribute.eq_ignore_ascii_case(b"expires") {
            set.expiry = date(setting).map(Expiry::At).or(set.expiry);
        }
    }
    set.expiry = max_age.map(Expiry::After).or(set.expiry);
    Some(set)
}

/// Whether a cookie for `cookie_path` belongs in a request for `target` (path and query).
pub fn path_matches(target: &[u8], cookie_path: &[u8]) -> bool {
    match path_of(target).strip_prefix(cookie_path) {
        Some(rest) => rest.is_empty() || cookie_path.ends_with(b"/") || rest.starts_with(b"/"),
        None => false,
    }
}

/// The path of a cookie for which none is said, in an answer to a request for `target` (path and query): what stands
/// before the last slash (RFC 6265, 5.1.4).
pub fn default_path(target: &[u8]) -> &[u8] {
    let path = path_of(target);
    match memchr::memrchr(b'/', path) {
        None | Some(0) => b"/",
        Some(_) if !path.starts_with(b"/") => b"/",
        Some(last) => &path[..last],
    }
}

fn path_of(target: &[u8]) -> &[u8] {
    &target[..memchr::memchr(b'?', target).unwrap_or(target.len())]
}

/// `name=value`, both trimmed.
fn pair(part: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'=', part) {
        Some(at) => (part[..at].trim_ascii(), Some(part[at + 1..].trim_ascii())),
        None => (part.trim_ascii(), None),
    }
}

/// A Max-Age; `None` when it is no number and to be ignored.
fn seconds(number: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match number.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, number),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size = digits
        .iter()
        .fold(0, |sum: i64, digit| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    Some(if is_negative { -size } else { size })
}

const MONTHS: [&[u8]; 12] =
    [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];

/// A date in any of the forms that servers write, in seconds since 1970 UTC: its parts are known by their looks, in
/// whatever order and between whatever delimiters (RFC 6265, 5.1.1).
fn date(text: &[u8]) -> Option<i64> {
    let is_delimiter =
        |byte: &u8| matches!(*byte, 0x09 | 0x20..=0x2F | 0x3B..=0x40 | 0x5B..=0x60 | 0x7B..=0x7E);
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        if time.is_none() && time_of_day(token).is_some() {
            time = time_of_day(token);
        } else if day.is_none() && number(token, 1, 2).is_some() {
            day = number(token, 1, 2);
        } else if month.is_none() && month_of(token).is_some() {
            month = month_of(token);
        } else if year.is_none() {
            year = number(token, 2, 4);
        }
    }
    let ((hour, minute, second), day, month) = (time?, day?, month?);
    let year = match year? {
        year @ 70..=99 => 1900 + year,
        year @ 0..=69 => 2000 + year,
        year => year,
    };
    let in_time = hour <= 23 && minute <= 59 && second <= 59;
    let is_there = in_time && year >= 1601 && (1..=days_in(month, year)).contains(&day);
    is_there.then(|| days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// A number of `least` to `most` digits at the beginning, which no further digit follows.
fn number(token: &[u8], least: usize, most: usize) -> Option<i64> {
    let digits = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = || token[..digits].iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    (least..=most).contains(&digits).then(value)
}

fn time_of_day(token: &[u8]) -> Option<(i64, i64, i64)> {
    let mut fields = token.splitn(3, |byte| *byte == b':');
    let mut whole = || fields.next().filter(|field| field.len() <= 2).and_then(field_of);
    let (hour, minute) = (whole()?, whole()?);
    Some((hour, minute, number(fields.next()?, 1, 2)?))
}

/// A field that is nothing but digits.
fn field_of(field: &[u8]) -> Option<i64> {
    number(field, 1, 2).filter(|_| field.iter().all(u8::is_ascii_digit))
}

fn month_of(token: &[u8]) -> Option<i64> {
    let name = token.get(..3)?;
    let index = MONTHS.iter().position(|month| name.eq_ignore_ascii_case(month))?;
    Some(index as i64 + 1)
}

fn days_in(month: i64, year: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, the year begun in March so that a leap day is its last one
/// (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`; years after 0 only).
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01.
    const NOW_S: i64 = 1_767_225_600;

    fn removed(text: &str) -> bool {
        parse(text.as_bytes()).unwrap().is_removed(NOW_S)
    }

    #[test]
    fn name_value_and_attributes() {
        let cookie = parse(b"  id = \"a=b\" ; Domain=.x.example; path=/app ; Secure; HttpOnly").unwrap();
        assert_eq!(cookie.name, b"id");
        assert_eq!(cookie.value, b"\"a=b\"");
        assert_eq!(cookie.domain, Some(&b"x.example"[..]));
        assert_eq!(cookie.path, Some(&b"/app"[..]));
        assert!(cookie.is_secure && cookie.expiry.is_none());
        assert_eq!(parse(b"id=1; Path=app").unwrap().path, None);
        assert_eq!(parse(b"id=1; Path=/a; Path=/b").unwrap().path, Some(&b"/b"[..]));
        assert_eq!(parse(b"id=1; Domain=a.example; Domain=").unwrap().domain, Some(&b"a.example"[..]));
        assert_eq!(parse(b"id=1; Domain=.").unwrap().domain, None);
        assert!(!parse(b"id=1; Security").unwrap().is_secure);
        assert_eq!(parse(b"id=").unwrap().value, b"");
    }

    #[test]
    fn what_names_no_cookie() {
        for text in ["", ";", "id", "=value", " = ", "Secure; id=1"] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn removal() {
        assert!(removed("id=x; Max-Age=0"));
        assert!(removed("id=x; MAX-AGE=-1"));
        assert!(removed("id=x; Max-Age=-99999999999999999999999999"));
        assert!(removed("id=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT"));
        assert!(removed("id=x; expires=Thu, 01-Jan-70 00:00:10 GMT"));
        assert!(removed("id=x; expires=Thu Jan  1 00:00:00 1970"));
        assert!(removed("id=x; Expires=Wed, 31 Dec 2025 23:59:59 GMT"));
        assert!(!removed("id=x; Expires=Thu, 01 Jan 2026 00:00:01 GMT"));
        assert!(!removed("id=x"));
        assert!(!removed("id="), "an empty value is one");
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
    fn dates_of_all_forms() {
        for (text, unix_s) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Sun, 06-Nov-1994 08:49:37 GMT", 784_111_777),
            ("1994 november 6th 8:49:37Z", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
            ("Tue, 19 Jan 2038 03:14:08 GMT", 1 << 31),
            ("Mon, 01 Jan 1601 00:00:00 GMT", -11_644_473_600),
        ] {
            assert_eq!(date(text.as_bytes()), Some(unix_s), "{text}");
        }
        for text in [
            "",
            "Thu, 29 Feb 2023 12:00:00 GMT",
            "Sun, 06 Nov 1994",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1600 08:49:37 GMT",
            "Sun, 06 Nov 19945 08:49:37 GMT",
            "Sun, 06 Noy 1994 08:49:37 GMT",
        ] {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn paths() {
        assert!(path_matches(b"/app/list?x=/other", b"/app"));
        assert!(path_matches(b"/app", b"/app"));
        assert!(path_matches(b"/app?x=1", b"/app"));
        assert!(path_matches(b"/anything", b"/"));
        assert!(!path_matches(b"/apple", b"/app"));
        assert!(!path_matches(b"/", b"/app"));
        for (target, path) in [
            ("/", "/"),
            ("/foo", "/"),
            ("/foo?x=/bar/baz", "/"),
            ("/foo/bar", "/foo"),
            ("/foo/bar/", "/foo/bar"),
            ("", "/"),
            ("*", "/"),
        ] {
            assert_eq!(default_path(target.as_bytes()), path.as_bytes(), "{target}");
        }
    }
}
