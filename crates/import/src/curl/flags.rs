//! The flags of curl: those that say something of the request, those that do not, and those that cannot be done here.

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Takes {
    Nothing,
    Value,
}

/// A flag: its short form, if it has one, its name, and what it takes.
pub(super) type Flag = (Option<char>, &'static str, Takes);

/// Flags that say something here.
pub(super) const KNOWN: &[Flag] = &[
    (Some('X'), "request", Takes::Value),
    (Some('H'), "header", Takes::Value),
    (Some('d'), "data", Takes::Value),
    (None, "data-ascii", Takes::Value),
    (None, "data-raw", Takes::Value),
    (None, "data-binary", Takes::Value),
    (None, "data-urlencode", Takes::Value),
    (None, "json", Takes::Value),
    (Some('G'), "get", Takes::Nothing),
    (Some('I'), "head", Takes::Nothing),
    (Some('T'), "upload-file", Takes::Value),
    (Some('F'), "form", Takes::Value),
    (None, "form-string", Takes::Value),
    (Some('u'), "user", Takes::Value),
    (None, "oauth2-bearer", Takes::Value),
    (Some('A'), "user-agent", Takes::Value),
    (Some('e'), "referer", Takes::Value),
    (Some('b'), "cookie", Takes::Value),
    (Some('c'), "cookie-jar", Takes::Value),
    (Some('L'), "location", Takes::Nothing),
    (None, "max-redirs", Takes::Value),
    (Some('r'), "range", Takes::Value),
    (Some('C'), "continue-at", Takes::Value),
    (None, "url-query", Takes::Value),
    (Some('g'), "globoff", Takes::Nothing),
    (None, "no-sessionid", Takes::Nothing),
    (Some('k'), "insecure", Takes::Nothing),
    (None, "cacert", Takes::Value),
    (Some('E'), "cert", Takes::Value),
    (None, "key", Takes::Value),
    (None, "url", Takes::Value),
    (None, "connect-to", Takes::Value),
    (None, "resolve", Takes::Value),
    (None, "unix-socket", Takes::Value),
    (Some('4'), "ipv4", Takes::Nothing),
    (Some('6'), "ipv6", Takes::Nothing),
    (None, "http1.1", Takes::Nothing),
    (None, "http2", Takes::Nothing),
    (None, "http2-prior-knowledge", Takes::Nothing),
    (Some('m'), "max-time", Takes::Value),
    (None, "connect-timeout", Takes::Value),
    (Some('x'), "proxy", Takes::Value),
    (None, "compressed", Takes::Nothing),
    (None, "no-keepalive", Takes::Nothing),
];

/// Flags that are about what curl shows and keeps of the answer, or say what is so anyway: versions of TLS are agreed on, and
/// `--basic` is how `-u` is meant.
pub(super) const PASSED_OVER: &[Flag] = &[
    (None, "basic", Takes::Nothing),
    (None, "tlsv1", Takes::Nothing),
    (None, "tlsv1.0", Takes::Nothing),
    (None, "tlsv1.1", Takes::Nothing),
    (None, "tlsv1.2", Takes::Nothing),
    (None, "tlsv1.3", Takes::Nothing),
    (Some('s'), "silent", Takes::Nothing),
    (Some('S'), "show-error", Takes::Nothing),
    (Some('i'), "include", Takes::Nothing),
    (None, "show-headers", Takes::Nothing),
    (Some('v'), "verbose", Takes::Nothing),
    (Some('f'), "fail", Takes::Nothing),
    (None, "fail-with-body", Takes::Nothing),
    (Some('#'), "progress-bar", Takes::Nothing),
    (None, "no-progress-meter", Takes::Nothing),
    (Some('N'), "no-buffer", Takes::Nothing),
    (Some('O'), "remote-name", Takes::Nothing),
    (Some('J'), "remote-header-name", Takes::Nothing),
    (None, "tcp-nodelay", Takes::Nothing),
    (Some('o'), "output", Takes::Value),
    (Some('w'), "write-out", Takes::Value),
    (Some('D'), "dump-header", Takes::Value),
    (None, "stderr", Takes::Value),
    (None, "trace", Takes::Value),
    (None, "trace-ascii", Takes::Value),
    (None, "output-dir", Takes::Value),
    (None, "create-dirs", Takes::Nothing),
    (None, "remote-name-all", Takes::Nothing),
    (Some('R'), "remote-time", Takes::Nothing),
    (Some('j'), "junk-session-cookies", Takes::Nothing),
    (Some('q'), "disable", Takes::Nothing),
    (None, "fail-early", Takes::Nothing),
    (None, "styled-output", Takes::Nothing),
    (None, "no-styled-output", Takes::Nothing),
    (None, "keepalive-time", Takes::Value),
    (None, "expect100-timeout", Takes::Value),
    (None, "suppress-connect-headers", Takes::Nothing),
    (None, "ssl-no-revoke", Takes::Nothing),
];

/// Flags that cannot be done here, with what to do.
pub(super) const REFUSED: &[(&[&str], &str)] = &[
    (
        &["--digest", "--ntlm", "--negotiate", "--anyauth", "--aws-sigv4"],
        "only Basic (-u NAME:PASSWORD) and Bearer (--oauth2-bearer TOKEN) are sent; a signature can be computed in a scenario",
    ),
    (
        &["--retry", "--retry-delay", "--retry-max-time", "--retry-all-errors", "--retry-connrefused"],
        "a request that fails is a result here and is not sent again; leave it out",
    ),
    (&["-:", "--next"], "several requests stand in a list, one a line: --urls FILE"),
    (
        &["-Z", "--parallel", "--parallel-max"],
        "how many are under way is hit's -c, before the word curl: hit -c 100 curl …",
    ),
    (&["-K", "--config"], "write the flags of that file here"),
    (
        &["-n", "--netrc", "--netrc-file", "--netrc-optional"],
        "write -u NAME:PASSWORD; hit's own -n stands before the word curl: hit -n 1000 curl …",
    ),
    (&["-U", "--proxy-user"], "write it into the proxy's URL: -x http://NAME:PASSWORD@HOST:PORT"),
    (&["--noproxy"], "leave it out, and -x for hosts without a proxy"),
    (
        &["--preproxy", "--socks4", "--socks4a", "--socks5", "--socks5-hostname", "-p", "--proxytunnel"],
        "a proxy is one of HTTP: -x http://HOST:PORT",
    ),
    (&["-0", "--http1.0", "--http0.9", "--http3", "--http3-only"], "HTTP/1.1 and HTTP/2 are spoken here"),
    (
        &["-z", "--time-cond"],
        "write -H 'If-Modified-Since: DATE'; hit's own -z stands before the word curl: hit -z 10s curl …",
    ),
    (&["--etag-compare", "--etag-save"], "write -H 'If-None-Match: TAG'"),
    (
        &["--limit-rate", "-y", "--speed-time", "-Y", "--speed-limit"],
        "bytes are sent and taken as fast as they come; leave it out",
    ),
    (&["--location-trusted", "--post301", "--post302", "--post303"], "redirects are followed as by -L alone"),
    (&["--path-as-is", "--request-target"], "the path is sent as its URL has it"),
];

/// The flag that is so; one that is passed over is among them.
pub(super) fn find(flag: &str, is_so: impl Fn(&&Flag) -> bool) -> Result<Flag, String> {
    KNOWN.iter().chain(PASSED_OVER).find(is_so).copied().ok_or_else(|| not_done(flag))
}

/// Why a flag is refused.
fn not_done(flag: &str) -> String {
    if let Some((_, way_out)) = REFUSED.iter().find(|(flags, _)| flags.contains(&flag)) {
        return format!("curl's {flag} is not supported: {way_out}");
    }
    match flag.split_once('=') {
        Some((name, _)) if KNOWN.iter().any(|(_, known, _)| name.strip_prefix("--") == Some(known)) => {
            format!("curl knows no {name}=VALUE; write {name} VALUE")
        }
        _ => not_understood(flag),
    }
}

pub(super) fn not_understood(flag: &str) -> String {
    format!(
        "curl's flag {flag} is not understood here; leave it out if it says nothing about the request. Flags of hit stand before \
         the word curl: hit {flag} … curl …"
    )
}

/// What a flag of curl is whose value looks as if it were meant for hit's flag of the same letter.
pub(super) fn meant_for_hit(flag: &str, value: &str, is: &str) -> String {
    format!(
        "{flag} {value} behind the word curl is one of curl's flags: {is}. Flags of hit stand before the word curl: \
         hit {flag} {value} curl …"
    )
}
