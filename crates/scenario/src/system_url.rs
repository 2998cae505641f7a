//! The URL of a system, read once for all: by the check of a scenario, and by whoever drives it.

use std::borrow::Cow;

use url::Url;

/// What the URL of a system says. Nothing is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemUrl {
    /// Its host: a name, or an address (IPv6 in brackets).
    pub host: String,
    /// Its port, if it names one that is not the scheme's own.
    pub port: Option<u16>,
    /// Further servers of the same system, and their ports.
    pub others: Vec<(String, Option<u16>)>,
    /// Whether TLS is spoken.
    pub is_secure: bool,
    /// What is spoken there.
    pub spoken: Spoken,
}

/// What a system at a URL speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spoken {
    /// HTTP.
    Http {
        /// What all paths begin with, without a slash at its end.
        base_path: String,
    },
    /// Redis' protocol.
    Redis {
        /// RESP3 in place of RESP2.
        speaks_3: bool,
        /// User (empty if only the password is given) and password.
        login: Option<(String, String)>,
        /// A database other than the first.
        database: Option<u32>,
        /// Who has which key, where there may be several servers.
        sharding: Option<Sharding>,
    },
}

/// How keys are shared among several servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharding {
    /// By a ring of points, which MD5 makes of the servers' names.
    Consistent,
    /// By CRC16: equal parts of 16,384 slots.
    Slots,
    /// As a Redis Cluster says.
    Cluster,
}

impl Sharding {
    /// The words of a URL's `sharding`; a cluster is a scheme of its own.
    pub const WORDS: [(&str, Sharding); 2] =
        [("slots", Sharding::Slots), ("consistent", Sharding::Consistent)];
}

/// Most servers of a system.
pub const SERVERS_MAX: usize = 256;

impl SystemUrl {
    /// Reads `http://HOST[:PORT][/PATH]`, `https://`, `ws://`, `wss://`, or
    /// `redis://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/DATABASE][?protocol=3][&sharding=slots]` and `rediss://`, as
    /// Redis' own tools write it but for the further servers; `redis-cluster://` and `rediss-cluster://` name some of a
    /// cluster's.
    ///
    /// # Errors
    /// Why it cannot be driven, without the URL itself.
    pub fn read(text: &str) -> Result<SystemUrl, String> {
        let (text, others) = servers(text)?;
        let url = Url::parse(&text).map_err(|error| format!("{error}; write http://HOST:PORT"))?;
        let (is_secure, is_redis, is_cluster) = match url.scheme() {
            "http" | "ws" => (false, false, false),
            "https" | "wss" => (true, false, false),
            "redis" => (false, true, false),
            "rediss" => (true, true, false),
            "redis-cluster" => (false, true, true),
            "rediss-cluster" => (true, true, true),
            other => {
                return Err(format!(
                    "`{other}` is not supported; write http://HOST:PORT, https:// or redis://"
                ));
            }
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or("it names no host")?.to_owned();
        if !is_redis && !others.is_empty() {
            return Err("several servers, with commas between, are for redis:// only".into());
        }
        let mut spoken = if is_redis { redis(&url, !others.is_empty())? } else { http(&url)? };
        if let Spoken::Redis { sharding, database, .. } = &mut spoken
            && is_cluster
        {
            if database.is_some_and(|database| database > 0) {
                return Err("a cluster has no database but 0".into());
            }
            if url.query_pairs().any(|(name, _)| name == "sharding") {
                return Err("a cluster says itself who has which key; leave out `sharding`".into());
            }
            *sharding = Some(Sharding::Cluster);
        }
        Ok(SystemUrl { host, port: url.port(), others, is_secure, spoken })
    }
}

/// A text of a URL with its first server only, and the others.
#[allow(clippy::type_complexity, reason = "used once, right above")]
fn servers(text: &str) -> Result<(String, Vec<(String, Option<u16>)>), String> {
    let whole = || (text.to_owned(), Vec::new());
    let Some((scheme, rest)) = text.split_once("://") else { return Ok(whole()) };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    let (login, hosts) = authority.rsplit_once('@').map_or(("", authority), |(login, hosts)| (login, hosts));
    let Some((first, others)) = hosts.split_once(',') else { return Ok(whole()) };
    let at = if login.is_empty() && !authority.contains('@') { "" } else { "@" };
    let read = |server: &str| {
        let url = Url::parse(&format!("redis://{server}")).ok();
        let found = url.as_ref().and_then(|url| Some((url.host_str()?.to_owned(), url.port())));
        found
            .filter(|(host, _)| !host.is_empty() && !server.contains(['/', '?', '#', '@']))
            .ok_or_else(|| format!("`{server}` among its servers is none; write HOST:PORT,HOST:PORT"))
    };
    let others: Vec<_> = others.split(',').map(read).collect::<Result<_, _>>()?;
    if others.len() >= SERVERS_MAX {
        return Err(format!("it names {} servers; at most {SERVERS_MAX} are driven", others.len() + 1));
    }
    let first = format!("{scheme}://{login}{at}{first}{behind}");
    Ok((first, others))
}

fn http(url: &Url) -> Result<Spoken, String> {
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
        return Err("it may hold only a host, a port and the beginning of the path".into());
    }
    Ok(Spoken::Http { base_path: url.path().trim_end_matches('/').to_owned() })
}

fn redis(url: &Url, has_others: bool) -> Result<Spoken, String> {
    let decoded = |text: &str| {
        let text = percent_encoding::percent_decode_str(text).decode_utf8();
        text.map(Cow::into_owned).map_err(|_| "user and password are UTF-8, percent-encoded".to_owned())
    };
    let user = decoded(url.username())?;
    let password = url.password().map(decoded).transpose()?;
    if password.is_none() && !user.is_empty() {
        return Err("it names a user without a password; write redis://USER:PASSWORD@HOST".into());
    }
    let database = match url.path().trim_start_matches('/') {
        "" => None,
        number => Some(number.parse().map_err(|_| format!("`{number}` is not the number of a database"))?),
    };
    let mut speaks_3 = false;
    let mut sharding = has_others.then_some(Sharding::Slots);
    for (name, value) in url.query_pairs() {
        match (&*name, &*value) {
            ("protocol", "3" | "resp3") => speaks_3 = true,
            ("protocol", "2" | "resp2") => speaks_3 = false,
            ("sharding", word) => {
                let known = Sharding::WORDS.iter().find(|(known, _)| *known == word);
                let (_, known) =
                    known.ok_or_else(|| format!("`sharding={word}` is not known; slots or consistent is"))?;
                sharding = Some(*known);
            }
            _ => {
                return Err(format!(
                    "`{name}={value}` is not known there; protocol=3, protocol=2, sharding=slots or sharding=consistent is"
                ));
            }
        }
    }
    if url.fragment().is_some() {
        return Err("such a URL has no fragment (#)".into());
    }
    Ok(Spoken::Redis { speaks_3, login: password.map(|password| (user, password)), database, sharding })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read() {
        let url = SystemUrl::read("wss://[::1]:9443/base/").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.is_secure), ("[::1]", Some(9443), true));
        assert_eq!(url.spoken, Spoken::Http { base_path: "/base".into() });
        let url = SystemUrl::read("redis://u:p%40@h/3?protocol=3").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.is_secure), ("h", None, false));
        let login = Some(("u".into(), "p@".into()));
        assert_eq!(url.spoken, Spoken::Redis { speaks_3: true, login, database: Some(3), sharding: None });
    }

    #[test]
    fn several_servers_are_read() {
        let sharding = |url: &SystemUrl| match &url.spoken {
            Spoken::Redis { sharding, .. } => *sharding,
            Spoken::Http { .. } => None,
        };
        let url = SystemUrl::read("redis://:p,w@10.0.0.1:7000,[::1]:7001,c/2?sharding=consistent").unwrap();
        assert_eq!((url.host.as_str(), url.port), ("10.0.0.1", Some(7000)));
        assert_eq!(url.others, [("[::1]".into(), Some(7001)), ("c".into(), None)]);
        assert_eq!(sharding(&url), Some(Sharding::Consistent));
        assert_eq!(sharding(&SystemUrl::read("redis://a,b").unwrap()), Some(Sharding::Slots));
        assert_eq!(sharding(&SystemUrl::read("redis://a").unwrap()), None);
        let url = SystemUrl::read("rediss-cluster://:pw@a:7000").unwrap();
        assert_eq!((sharding(&url), url.is_secure), (Some(Sharding::Cluster), true));
    }

    #[test]
    fn a_url_that_cannot_be_driven_says_why() {
        for (text, reason) in [
            ("127.0.0.1:80", "write http://"),
            ("ftp://127.0.0.1", "`ftp`"),
            ("http://127.0.0.1/?a=b", "only a host"),
            ("redis:///0", "no host"),
            ("redis://u@h", "without a password"),
            ("redis://h/abc", "`abc` is not the number"),
            ("redis://h?protocol=4", "`protocol=4` is not known"),
            ("redis://h#a", "no fragment"),
            ("redis://a:1,", "among its servers"),
            ("redis://a:1,b:x", "`b:x` among"),
            ("redis://a?sharding=hash", "`sharding=hash` is not known"),
            ("http://a,b", "redis:// only"),
            ("redis-cluster://a/1", "no database but 0"),
            ("redis-cluster://a?sharding=slots", "leave out `sharding`"),
        ] {
            let error = SystemUrl::read(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
