//! The URL of a system, read once for all: by the check of a scenario, and by whoever drives it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::net::IpAddr;
use std::path::PathBuf;

use tidemark_wire::aerospike::{NAMESPACE_BYTES_MAX, is_namespace};
use url::{ParseError, Url};

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
    /// gRPC.
    Grpc,
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
    /// memcached's text protocol.
    Memcached {
        /// Who has which key, where there are several servers.
        sharding: Option<Sharding>,
    },
    /// Cassandra's native protocol.
    Cassandra {
        /// User and password.
        login: Option<(String, String)>,
        /// The keyspace of names without one.
        keyspace: Option<String>,
        /// The consistency of each statement, as the protocol counts them.
        consistency: u16,
    },
    /// Aerospike's protocol.
    Aerospike {
        /// The namespace of all records.
        namespace: String,
    },
    /// PostgreSQL's protocol.
    Postgres {
        /// Who comes.
        user: String,
        /// Its password; empty where there is none.
        password: String,
        /// The database.
        database: String,
        /// Whether TLS is spoken.
        mode: SslMode,
        /// With which certificates.
        files: SslFiles,
    },
}

/// How keys are shared among several servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharding {
    /// On a ring, as libmemcached's `ketama` and what came after it do: 160 points for each server, made with MD5.
    Consistent,
    /// CRC16 of the key modulo 16,384, of which the servers have equal parts, in their order.
    Slots,
    /// The same slots, whose servers a Redis Cluster tells, and moves.
    Cluster,
}

impl Sharding {
    /// The words of a URL's `sharding`; a cluster is a scheme of its own.
    pub const WORDS: [(&str, Sharding); 2] =
        [("slots", Sharding::Slots), ("consistent", Sharding::Consistent)];

    fn read(word: &str) -> Result<Sharding, String> {
        let known = Sharding::WORDS.iter().find(|(known, _)| *known == word);
        known
            .map(|(_, sharding)| *sharding)
            .ok_or_else(|| format!("`sharding={word}` is not known; slots or consistent is"))
    }
}

tidemark_record::named! {
    /// Whether TLS is spoken with PostgreSQL, and whom it trusts, in the words of its own clients.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum SslMode {
        /// It is not spoken.
        #[default]
        Disable = "disable",
        /// Where the server speaks it, with whoever that is.
        Prefer = "prefer",
        /// With whoever the server is; where authorities are named, with those whom they signed.
        Require = "require",
        /// With a server whose certificate an authority signed.
        VerifyCa = "verify-ca",
        /// With a server whose certificate has the URL's host, too.
        VerifyFull = "verify-full",
    }
}

/// Files of certificates that a URL of PostgreSQL names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SslFiles {
    /// The authorities that are trusted (`sslrootcert`); else those of the machine.
    pub root: Option<PathBuf>,
    /// The client's own certificate (`sslcert`).
    pub certificate: Option<PathBuf>,
    /// Its key (`sslkey`).
    pub key: Option<PathBuf>,
}

/// Most servers of a system.
pub const SERVERS_MAX: usize = 256;

impl SystemUrl {
    /// Reads `http://HOST[:PORT][/PATH]`, `https://`, `ws://`, `wss://`, or `grpc://HOST[:PORT]`, `grpcs://`, or
    /// `redis://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/DATABASE][?protocol=3][&sharding=slots]` and `rediss://`, as
    /// Redis' own tools write it but for the further servers; `redis-cluster://` and `rediss-cluster://` name some of a
    /// cluster's; or `memcached://HOST[:PORT][,HOST[:PORT]…][?sharding=consistent]` and `memcacheds://`, or
    /// `postgres://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE][?sslmode=require]`, or
    /// `cql://[USER:PASSWORD@]HOST[:PORT][/KEYSPACE][?consistency=quorum]`, or `aerospike://HOST[:PORT]/NAMESPACE`.
    ///
    /// # Errors
    /// Why it cannot be driven, without the URL itself.
    pub fn read(text: &str) -> Result<SystemUrl, String> {
        check_login(text)?;
        let (text, others) = servers(text)?;
        let url = Url::parse(&text).map_err(|error| match error {
            ParseError::InvalidPort => NO_PORT.to_owned(),
            _ => format!("{error}; write http://HOST:PORT"),
        })?;
        if url.port() == Some(0) {
            return Err(NO_PORT.into());
        }
        let spoken: fn(&Url, bool) -> Result<Spoken, String> = match url.scheme() {
            "http" | "https" | "ws" | "wss" => http,
            "redis" | "rediss" | "redis-cluster" | "rediss-cluster" => redis,
            "grpc" | "grpcs" => grpc,
            "memcached" | "memcacheds" => memcached,
            "postgres" | "postgresql" => postgres,
            "cql" => cassandra,
            "aerospike" => aerospike,
            other => return Err(unknown_scheme(other)),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or("it names no host")?.to_owned();
        let spoken = spoken(&url, !others.is_empty())?;
        let is_secure = match &spoken {
            Spoken::Postgres { mode, .. } => *mode != SslMode::Disable,
            _ => SECURE.contains(&url.scheme()),
        };
        let is_memcached = matches!(spoken, Spoken::Memcached { .. });
        each_once(&url, &others, if is_memcached { MEMCACHED_PORT } else { REDIS_PORT })?;
        Ok(SystemUrl { host, port: url.port(), others, is_secure, spoken })
    }
}

/// Refuses a user or a password that would end before it does.
fn check_login(text: &str) -> Result<(), String> {
    let Some((scheme, rest)) = text.split_once("://") else { return Ok(()) };
    if OF_HTTP.contains(&scheme) {
        return Ok(());
    }
    match rest.find(['/', '?', '#']) {
        Some(end) if rest[end..].contains('@') => Err(
            "there is a / ? or # before an @: in a user, a password or a name these are written percent-encoded, / as %2F, ? as \
             %3F, # as %23 and @ as %40"
                .into(),
        ),
        _ => Ok(()),
    }
}

/// Schemes that mean TLS.
const SECURE: [&str; 6] = ["https", "wss", "grpcs", "rediss", "rediss-cluster", "memcacheds"];
/// Why a protocol takes one server.
const SEVERAL: &str = "it names several servers; one is driven";

/// Schemes of HTTP, in whose paths anything may stand.
pub(crate) const OF_HTTP: [&str; 4] = ["http", "https", "ws", "wss"];
/// What is wrong with a port.
const NO_PORT: &str = "its port is not valid; use a number from 1 to 65535";
/// What a server has whose port is not said.
const REDIS_PORT: u16 = 6379;
const MEMCACHED_PORT: u16 = 11211;

/// Schemes that are written for what speaks the protocol of another.
const MEANT: [(&str, &str); 7] = [
    ("valkey", "redis"),
    ("valkeys", "rediss"),
    ("valkey-cluster", "redis-cluster"),
    ("keydb", "redis"),
    ("dragonfly", "redis"),
    ("garnet", "redis"),
    ("scylla", "cql"),
];

fn unknown_scheme(scheme: &str) -> String {
    let meant = MEANT.iter().find(|(other, _)| *other == scheme).map_or(String::new(), |(_, meant)| {
        format!(": it speaks the protocol of {meant}, so write {meant}://HOST:PORT")
    });
    let all = "; write http://HOST:PORT, https://, grpc://, redis://, memcached://, postgres://, cql:// or aerospike://";
    format!("`{scheme}` is not supported{}", if meant.is_empty() { all } else { &meant })
}

/// Refuses a server that is named twice: its keys would be shared between it and itself.
fn each_once(first: &Url, others: &[(String, Option<u16>)], usual_port: u16) -> Result<(), String> {
    let mut seen = HashSet::new();
    let first = (first.host_str().unwrap_or_default(), first.port());
    let all = std::iter::once(first).chain(others.iter().map(|(host, port)| (host.as_str(), *port)));
    for (host, port) in all {
        let (host, port) = (host.to_lowercase(), port.unwrap_or(usual_port));
        let text = format!("it names the server {host}:{port} twice; name each once");
        if !seen.insert((host, port)) {
            return Err(text);
        }
    }
    Ok(())
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
            .filter(|(host, port)| {
                !host.is_empty() && *port != Some(0) && !server.contains(['/', '?', '#', '@'])
            })
            .ok_or_else(|| format!("`{server}` is not HOST:PORT; write HOST:PORT,HOST:PORT"))
    };
    let others: Vec<_> = others.split(',').map(read).collect::<Result<_, _>>()?;
    if others.len() >= SERVERS_MAX {
        return Err(format!("it names {} servers; at most {SERVERS_MAX} are driven", others.len() + 1));
    }
    let first = format!("{scheme}://{login}{at}{first}{behind}");
    Ok((first, others))
}

/// A part of a URL that is percent-encoded; `what` is said of one that is not.
fn decoded(text: &str, what: &str) -> Result<String, String> {
    let text = percent_encoding::percent_decode_str(text).decode_utf8();
    text.map(Cow::into_owned).map_err(|_| format!("{what} are UTF-8, percent-encoded"))
}

fn names_someone(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

fn grpc(url: &Url, has_others: bool) -> Result<Spoken, String> {
    if has_others {
        return Err("one server is driven; name further ones under `targets`".into());
    }
    if names_someone(url) {
        return Err("credentials of gRPC are metadata of a step".into());
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return Err("it may hold only a host and a port; the method is what the step `grpc` says".into());
    }
    Ok(Spoken::Grpc)
}

fn memcached(url: &Url, has_others: bool) -> Result<Spoken, String> {
    if !matches!(url.path(), "" | "/") || url.fragment().is_some() || names_someone(url) {
        return Err("it may hold only a host and a port; authentication is not spoken with memcached".into());
    }
    let mut sharding = has_others.then_some(Sharding::Consistent);
    for (name, value) in url.query_pairs() {
        if name != "sharding" {
            let known = "sharding=consistent or sharding=slots is";
            return Err(format!("`{name}={value}` is not known there; {known}"));
        }
        sharding = Some(Sharding::read(&value)?);
    }
    Ok(Spoken::Memcached { sharding })
}

/// Consistencies, in the order in which the native protocol counts them.
const CONSISTENCIES: [&str; 8] =
    ["any", "one", "two", "three", "quorum", "all", "local_quorum", "each_quorum"];
/// The one that it counts apart, which holds where a URL says nothing.
const LOCAL_ONE: (&str, u16) = ("local_one", 10);

fn cassandra(url: &Url, has_others: bool) -> Result<Spoken, String> {
    if has_others {
        return Err(SEVERAL.into());
    }
    let decoded = |text: &str| decoded(text, "user and password");
    let login = match (decoded(url.username())?, url.password()) {
        (user, None) if user.is_empty() => None,
        (user, Some(password)) if !user.is_empty() => Some((user, decoded(password)?)),
        _ => return Err("user and password belong together: cql://USER:PASSWORD@HOST".into()),
    };
    let mut consistency = LOCAL_ONE.1;
    for (name, value) in url.query_pairs() {
        let count =
            CONSISTENCIES.iter().position(|known| *known == value).and_then(|at| u16::try_from(at).ok());
        consistency = match (&*name, count) {
            ("consistency", Some(count)) => count,
            ("consistency", None) if value == LOCAL_ONE.0 => LOCAL_ONE.1,
            ("consistency", None) => {
                let known = CONSISTENCIES.join(", ");
                return Err(format!("`{value}` is not a consistency; there is {known}, {}", LOCAL_ONE.0));
            }
            _ => return Err(format!("`{name}` is not known there; consistency=quorum is")),
        };
    }
    let keyspace = Some(decoded(url.path().trim_matches('/'))?).filter(|keyspace| !keyspace.is_empty());
    Ok(Spoken::Cassandra { login, keyspace, consistency })
}

fn aerospike(url: &Url, has_others: bool) -> Result<Spoken, String> {
    if has_others {
        return Err(SEVERAL.into());
    }
    if names_someone(url) {
        return Err(
            "user and password are not spoken with Aerospike, which only its Enterprise Edition asks for"
                .into(),
        );
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(
            "it may hold only a host, a port and a namespace; TLS is not spoken with Aerospike".into()
        );
    }
    let namespace = percent_encoding::percent_decode_str(url.path().trim_matches('/')).decode_utf8();
    let namespace = namespace.ok().filter(|namespace| is_namespace(namespace)).map(Cow::into_owned);
    let namespace = namespace.ok_or_else(|| {
        format!(
            "it names no namespace, of 1 to {NAMESPACE_BYTES_MAX} bytes; write aerospike://HOST:PORT/NAMESPACE"
        )
    })?;
    Ok(Spoken::Aerospike { namespace })
}

fn postgres(url: &Url, has_others: bool) -> Result<Spoken, String> {
    if has_others {
        return Err(SEVERAL.into());
    }
    let (mut mode, mut files) = (SslMode::default(), SslFiles::default());
    for (name, value) in url.query_pairs() {
        let file = || (!value.is_empty()).then(|| PathBuf::from(value.as_ref()));
        match name.as_ref() {
            "sslmode" => {
                mode = SslMode::from_name(&value).ok_or_else(|| {
                    format!("`sslmode={value}` is not known; it is disable, prefer, require, verify-ca or verify-full")
                })?;
            }
            "sslrootcert" if value == "system" => files.root = None,
            "sslrootcert" => files.root = file(),
            "sslcert" => files.certificate = file(),
            "sslkey" => files.key = file(),
            _ => {
                return Err(format!(
                    "`{name}` is not known there; sslmode, sslrootcert, sslcert and sslkey are"
                ));
            }
        }
    }
    if mode == SslMode::Disable && files != SslFiles::default() {
        return Err("it names certificates, but not that TLS is spoken; add sslmode=verify-full".into());
    }
    let decoded = |text: &str| decoded(text, "user, password and database");
    let or = |text: &str, other: &str| if text.is_empty() { Ok(other.to_owned()) } else { decoded(text) };
    let user = or(url.username(), "postgres")?;
    let password = decoded(url.password().unwrap_or_default())?;
    let database = or(url.path().trim_start_matches('/'), &user)?;
    if [&user, &password, &database].iter().any(|text| text.contains('\0')) {
        return Err("user, password and database have no zero bytes".into());
    }
    Ok(Spoken::Postgres { user, password, database, mode, files })
}

fn http(url: &Url, has_others: bool) -> Result<Spoken, String> {
    if has_others {
        return Err("several servers, with commas between, are for redis:// and memcached:// only".into());
    }
    if names_someone(url) {
        return Err(
            "who comes does not stand in it; say it with `auth: {basic: {user: …, password: …}}`".into()
        );
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it may hold only a host, a port and the beginning of the path".into());
    }
    Ok(Spoken::Http { base_path: url.path().trim_end_matches('/').to_owned() })
}

fn redis(url: &Url, has_others: bool) -> Result<Spoken, String> {
    let decoded = |text: &str| decoded(text, "user and password");
    let user = decoded(url.username())?;
    let password = url.password().map(decoded).transpose()?;
    if password.is_none() && !user.is_empty() {
        return Err("it names a user without a password; write redis://USER:PASSWORD@HOST".into());
    }
    let database: Option<u32> = match url.path().trim_start_matches('/') {
        "" => None,
        number => Some(number.parse().map_err(|_| format!("`{number}` is not the number of a database"))?),
    };
    let mut speaks_3 = false;
    let mut sharding = has_others.then_some(Sharding::Slots);
    for (name, value) in url.query_pairs() {
        match (&*name, &*value) {
            ("protocol", "3" | "resp3") => speaks_3 = true,
            ("protocol", "2" | "resp2") => speaks_3 = false,
            ("sharding", word) => sharding = Some(Sharding::read(word)?),
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
    if url.scheme().ends_with("-cluster") {
        if database.is_some_and(|database| database > 0) {
            return Err("a cluster has no database but 0".into());
        }
        if url.query_pairs().any(|(name, _)| name == "sharding") {
            return Err("a cluster says itself who has which key; leave out `sharding`".into());
        }
        sharding = Some(Sharding::Cluster);
    }
    Ok(Spoken::Redis { speaks_3, login: password.map(|password| (user, password)), database, sharding })
}

/// Whether a URL names this machine without a look-up: `localhost`, or a loopback address.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    // the hosts of schemes like redis:// come as they were written
    let address: Result<IpAddr, _> = host.trim_start_matches('[').trim_end_matches(']').parse();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_this_machine_is_told_by_its_host() {
        for (url, is) in [
            ("http://localhost:8080/", true),
            ("redis://LocalHost", true),
            ("http://127.0.0.1/", true),
            ("redis://127.9.8.7:6379", true),
            ("https://[::1]:8443/", true),
            ("cql://[::1]", true),
            ("http://127.example.com/", false),
            ("redis://127.0.0.1.example.com", false),
            ("http://10.0.0.1/", false),
            ("http://localhost.example.com/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), is, "{url}");
        }
    }

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
    fn a_namespace_is_read() {
        let url = SystemUrl::read("aerospike://h:3001/my%20test/").unwrap();
        assert_eq!((url.host.as_str(), url.port), ("h", Some(3001)));
        assert_eq!(url.spoken, Spoken::Aerospike { namespace: "my test".into() });
    }

    #[test]
    fn several_servers_are_read() {
        let sharding = |url: &SystemUrl| match &url.spoken {
            Spoken::Redis { sharding, .. } => *sharding,
            Spoken::Memcached { sharding } => *sharding,
            _ => None,
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
    fn servers_of_memcached_share_keys_on_a_ring() {
        let sharding = |text: &str| SystemUrl::read(text).unwrap().spoken;
        let of = |sharding| Spoken::Memcached { sharding };
        assert_eq!(sharding("memcached://a:1,b:2"), of(Some(Sharding::Consistent)));
        assert_eq!(sharding("memcached://a:1,b:2?sharding=slots"), of(Some(Sharding::Slots)));
        assert_eq!(sharding("memcached://a"), of(None));
    }

    #[test]
    fn a_url_that_cannot_be_driven_says_why() {
        for (text, reason) in [
            ("127.0.0.1:80", "write http://"),
            ("ftp://127.0.0.1", "`ftp`"),
            ("http://127.0.0.1/?a=b", "only a host"),
            ("redis:///0", "no host"),
            ("redis://h:78999", "a number from 1 to 65535"),
            ("http://h:0", "a number from 1 to 65535"),
            ("valkey://h", "write redis://HOST"),
            ("valkeys://h", "write rediss://HOST"),
            ("mysql://h", "redis://"),
            ("redis://a:1,b:0", "`b:0` is not HOST:PORT"),
            ("redis://a:1,b:2,A:1", "a:1 twice"),
            ("redis://a,a:6379/0?sharding=slots", "a:6379 twice"),
            ("redis-cluster://:pw@a:7000,a:7000", "a:7000 twice"),
            ("memcached://a:11211,b,a", "a:11211 twice"),
            ("redis://u@h", "without a password"),
            ("redis://h/abc", "`abc` is not the number"),
            ("redis://h?protocol=4", "`protocol=4` is not known"),
            ("redis://h#a", "no fragment"),
            ("redis://:pa/ss@h", "/ as %2F"),
            ("postgres://u:p#w@h/db", "# as %23"),
            ("cql://u:p@ss?w@h", "? as %3F"),
            ("http://u:p@h", "auth: {basic"),
            ("redis://a:1,", "`` is not HOST:PORT"),
            ("redis://a:1,b:x", "`b:x` is not HOST:PORT"),
            ("redis://a?sharding=hash", "`sharding=hash` is not known"),
            ("http://a,b", "memcached:// only"),
            ("redis-cluster://a/1", "no database but 0"),
            ("redis-cluster://a?sharding=slots", "leave out `sharding`"),
            ("cql://h?consistency=most", "`most` is not a consistency"),
            ("cql://u@h", "belong together"),
            ("postgres://h?sslmode=always", "disable, prefer, require, verify-ca or verify-full"),
            ("postgres://h?sslmode=allow", "disable, prefer, require, verify-ca or verify-full"),
            ("postgres://h?sslmodus=require", "sslmode, sslrootcert"),
            ("postgres://h?sslrootcert=ca.pem", "add sslmode=verify-full"),
            ("memcached://u:p@h", "authentication is not spoken"),
            ("memcached://h/0", "only a host and a port"),
            ("aerospike://h", "names no namespace"),
            ("grpc://h/a.B/C", "only a host and a port"),
            ("grpc://u@h", "metadata"),
            ("grpcs://a,b", "one server is driven"),
            ("aerospike://h/a/b", "names no namespace"),
            ("aerospike://u:p@h/test", "only its Enterprise Edition"),
            ("aerospike://h/test?tls=1", "TLS is not spoken"),
            ("aerospike://a,b/test", "one is driven"),
        ] {
            let error = SystemUrl::read(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
