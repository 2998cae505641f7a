//! The HTTP proxy that is between the driver and a server.

use url::Url;

use super::{HttpVersion, Plan, System, SystemOrigin};
use crate::system_url::{Spoken, SystemUrl};

/// In place of a proxy's URL: the one that the environment names for a server, if it does.
pub const PROXY_OF_ENVIRONMENT: &str = "env";
/// In place of it on the command line: none, whatever the scenario says.
pub const NO_PROXY: &str = "none";

/// Why this is no proxy, if it is none.
///
/// # Errors
/// In words, without the text itself, in which a password may stand.
pub fn check_proxy(text: &str) -> Result<(), String> {
    const WRITE: &str = "write http://HOST:PORT, http://USER:PASSWORD@HOST:PORT (with / # ? @ in them percent-encoded), or env";
    if text == PROXY_OF_ENVIRONMENT {
        return Ok(());
    }
    let url = Url::parse(text).map_err(|error| format!("not a URL ({error}); {WRITE}"))?;
    match url.scheme() {
        "http" => {}
        other => return Err(format!("a proxy is spoken with by http://, not {other}://; {WRITE}")),
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(format!("it names no host; {WRITE}"));
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(format!("it has more than a host and a port; {WRITE}"));
    }
    Ok(())
}

impl System {
    /// Why its requests cannot go through a proxy, if they cannot: `url` is where it is.
    pub(crate) fn refuses_proxy(&self, url: &str) -> Option<&'static str> {
        let speaks_http = match SystemUrl::read(url) {
            Ok(SystemUrl { spoken: Spoken::Http { .. }, is_secure, .. }) => Some(is_secure),
            _ => None,
        };
        match speaks_http {
            None => Some("an HTTP proxy stands before http:// and https:// only"),
            Some(_) if self.connect_to.is_some() => {
                Some("`proxy` and `connect to` both say where connections go; leave one of them out")
            }
            Some(false) if self.http == HttpVersion::Two => {
                Some("HTTP/2 goes through a proxy over TLS (https://) only")
            }
            Some(_) => None,
        }
    }
}

impl Plan {
    /// Sends the requests of HTTP to whatever runs already through this proxy, or through none. `url` is what is driven in
    /// place of the system, if something is.
    ///
    /// # Errors
    /// In words: it is no proxy, or nothing could go through it.
    pub fn go_through(&mut self, proxy: &str, url: Option<&str>) -> Result<(), String> {
        if proxy != NO_PROXY {
            check_proxy(proxy)?;
        }
        self.secrets.add_password_of(proxy);
        let mut refusal = "only what is at a URL is reached through a proxy";
        let mut goes = false;
        let system = (url.map(str::to_owned), &mut self.system);
        let targets = self.targets.iter_mut().map(|target| (None, &mut target.at));
        for (url, at) in std::iter::once(system).chain(targets) {
            let known = match &at.origin {
                SystemOrigin::Url(url) => Some(url.clone()),
                _ => None,
            };
            let Some(url) = url.or(known) else { continue };
            match at.refuses_proxy(&url) {
                Some(why) if proxy != NO_PROXY => refusal = why,
                _ => {
                    goes = true;
                    at.proxy = (proxy != NO_PROXY).then(|| proxy.to_owned());
                }
            }
        }
        if goes || proxy == NO_PROXY { Ok(()) } else { Err(refusal.to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_proxy_and_what_is_not() {
        for good in ["env", "http://p:3128", "http://p", "http://me:a%2Fb@[::1]:8080/"] {
            assert_eq!(check_proxy(good), Ok(()), "{good}");
        }
        for (wrong, says) in [
            ("p:3128", "http://HOST:PORT"),
            ("socks5://p:1080", "not socks5://"),
            ("https://p", "not https://"),
            ("http://p/path", "more than a host"),
            ("http://me:a#b@p:1", "HOST:PORT"),
            ("environment", "not a URL"),
        ] {
            let told = check_proxy(wrong).unwrap_err();
            assert!(told.contains(says) && !told.contains("a#b"), "{wrong}: {told}");
        }
    }
}
