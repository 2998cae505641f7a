//! Cookies in a file, as curl and browsers keep them.

use url::Url;

use super::file_of;

/// Cookies for a URL in a file as curl and browsers keep them (Netscape's format).
pub(super) fn cookies_of(file: &str, url: &Url) -> Result<Vec<String>, String> {
    let wrong = |why: &str| {
        format!("-b {file}: {why}; it is a file of cookies as `curl -c` writes it, or write -b 'NAME=VALUE'")
    };
    let text = String::from_utf8(file_of(file)?).map_err(|_| wrong("it is not UTF-8 text"))?;
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    let host = url.host_str().unwrap_or_default();
    let mut cookies = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let [domain, below, path, secure, until, name, value] = fields[..] else {
            return Err(wrong(&format!("line {} has not 7 fields", number + 1)));
        };
        let bare = domain.trim_start_matches('.');
        let is_below = below == "TRUE" && host.strip_suffix(bare).is_some_and(|own| own.ends_with('.'));
        let is_of_path = url.path().strip_prefix(path.trim_end_matches('/'));
        let is_of_path = is_of_path.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_over = until.parse::<u64>().is_ok_and(|until| until != 0 && until < now);
        let is_open = secure != "TRUE" || url.scheme() == "https";
        if (host.eq_ignore_ascii_case(bare) || is_below) && is_of_path && is_open && !is_over {
            cookies.push(format!("{name}={value}"));
        }
    }
    Ok(cookies)
}
