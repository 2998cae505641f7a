//! The HTTP proxy in front of a server: the one that a scenario names, or that the environment does.

use hyper::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use tidemark_drive::Proxy;
use tidemark_scenario::plan::{PROXY_OF_ENVIRONMENT, System};
use tidemark_scenario::system_url::{Spoken, SystemUrl};

/// Where proxies listen if nobody says otherwise.
const PORT: u16 = 80;

/// A proxy, and where it is.
#[derive(Debug)]
pub struct Between {
    /// A name, or an address (IPv6 in brackets).
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What requests know of it.
    pub proxy: Proxy,
}

/// The proxy in front of a server that requests name so. Measured traffic goes through one only where the system says so.
///
/// # Errors
/// In words, why it cannot be spoken with.
pub fn before(url: &SystemUrl, authority: &str, system: &System) -> Result<Option<Between>, String> {
    let (Some(said), Spoken::Http { .. }) = (&system.proxy, &url.spoken) else { return Ok(None) };
    let is_of_environment = said == PROXY_OF_ENVIRONMENT;
    let spares_all = |name: &str| std::env::var(name).is_ok_and(|hosts| has_all(&hosts));
    if is_of_environment && ["NO_PROXY", "no_proxy"].into_iter().any(spares_all) {
        return Ok(None);
    }
    let matcher = if is_of_environment { Matcher::from_env() } else { Matcher::builder().all(said).build() };
    let scheme = if url.is_secure { "https" } else { "http" };
    let server = format!("{scheme}://{authority}/").parse::<Uri>().map_err(|error| error.to_string())?;
    let Some(found) = matcher.intercept(&server) else {
        return match is_of_environment {
            true => Ok(None),
            false => Err("its proxy cannot be read; write http://HOST:PORT".into()),
        };
    };
    match found.uri().scheme_str() {
        Some("http") => {}
        other => {
            let other = other.unwrap_or_default();
            return Err(format!(
                "the environment names a proxy by {other}://; only http:// is spoken with one"
            ));
        }
    }
    let host = found.uri().host().unwrap_or_default().to_owned();
    let port = found.uri().port_u16().unwrap_or(PORT);
    let authorization = found.basic_auth().and_then(|says| says.to_str().ok()).map(str::to_owned);
    let proxy = Proxy { name: format!("{host}:{port}"), authorization };
    Ok(Some(Between { host, port, proxy }))
}

/// Whether hosts that need no proxy are all there are: `*`. The matcher takes it for names only, not for addresses.
fn has_all(hosts: &str) -> bool {
    hosts.split(',').any(|host| host.trim() == "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(url: &str, proxy: &str) -> Result<Option<Between>, String> {
        let system = System { proxy: Some(proxy.into()), ..System::default() };
        before(&SystemUrl::read(url).unwrap(), "h:81", &system)
    }

    #[test]
    fn a_proxy_is_where_its_url_says_and_is_told_who_comes() {
        let one = found("http://h:81", "http://me:a%2Fb@p:3128").unwrap().unwrap();
        assert_eq!((one.host.as_str(), one.port), ("p", 3128));
        // me:a/b
        assert_eq!(one.proxy.authorization.as_deref(), Some("Basic bWU6YS9i"));
        let one = found("https://h:81", "http://[::1]").unwrap().unwrap();
        assert_eq!((one.proxy.name.as_str(), one.port, one.proxy.authorization), ("[::1]:80", 80, None));
        assert!(found("http://h:81", "http://a b").unwrap_err().contains("HOST:PORT"));
        assert!(found("redis://h:81", "http://p").unwrap().is_none());
        let none = before(&SystemUrl::read("http://h").unwrap(), "h", &System::default());
        assert!(none.unwrap().is_none(), "the environment is not asked where nobody says so");
        assert!(has_all("*") && has_all("a.b, *") && !has_all("") && !has_all("*.a, b"));
    }
}
