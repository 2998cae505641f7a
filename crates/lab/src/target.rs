//! A URL becomes the address that is driven. Names are looked up here, once, before anything is measured.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tidemark_drive::{
    Address, Aerospike, Cassandra, Grpc, Memcached, Postgres, Protocol, Redis, Server, Sharding, Shards,
    Stream, Target, Tls,
};
use tidemark_scenario::plan::{HttpVersion, NOBODY, Resolve, System, TlsSettings};
use tidemark_scenario::secrets::without_password;
use tidemark_scenario::system_url::{Spoken, SslFiles, SslMode, SystemUrl};

use crate::error::LabError;
use crate::proxy;

/// What is said of a name without an address.
const NO_ADDRESS: &str = "the name has no address";
/// What a `connect to` that names a unix socket begins with.
const UNIX: &str = "unix:";
/// Where servers listen if nobody says otherwise.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
const REDIS_PORT: u16 = 6379;
const MEMCACHED_PORT: u16 = 11211;
const POSTGRES_PORT: u16 = 5432;
const CASSANDRA_PORT: u16 = 9042;
const AEROSPIKE_PORT: u16 = 3000;

/// Reads a URL and resolves its host by the system's policy. Where the system says what to connect to, the host is only
/// spoken of, not looked up.
pub fn target(text: &str, system: &System) -> Result<Target, LabError> {
    looked_up(text, system).map(|(target, ..)| target)
}

/// Refuses a URL whose form is wrong, before anything is begun; nothing is looked up.
pub fn check(text: &str) -> Result<(), LabError> {
    SystemUrl::read(text).map(|_| ()).map_err(|reason| wrong(text, &reason))
}

fn wrong(text: &str, reason: &str) -> LabError {
    LabError::Usage(format!("`{}` cannot be driven: {reason}", without_password(text)))
}

/// The other addresses of each of a target's servers, in the order in which they are to be tried where nobody accepts
/// connections at the first.
pub type Others = Vec<Vec<Address>>;

/// The same as [`target`]; how long it took to look the name up, where there is one; and what other addresses its servers
/// have.
pub fn looked_up(text: &str, system: &System) -> Result<(Target, Option<Duration>, Others), LabError> {
    let wrong = |reason: String| wrong(text, &reason);
    let url = SystemUrl::read(text).map_err(wrong)?;
    let mut of_servers = Others::new();
    let mut shards = |sharding, own_port| {
        let (shards, others) = shards(&url, sharding, own_port, system)?;
        of_servers = others;
        Ok(shards)
    };
    let (protocol, own_port, authority, base_path) = match url.spoken.clone() {
        Spoken::Http { base_path } => {
            let authority = url.port.map_or_else(|| url.host.clone(), |port| format!("{}:{port}", url.host));
            (Protocol::Http1, if url.is_secure { HTTPS_PORT } else { HTTP_PORT }, authority, base_path)
        }
        Spoken::Grpc => {
            let authority = url.port.map_or_else(|| url.host.clone(), |port| format!("{}:{port}", url.host));
            let grpc = Grpc { types: system.types.clone(), most_streams: None };
            let own_port = if url.is_secure { HTTPS_PORT } else { HTTP_PORT };
            (Protocol::Grpc(grpc), own_port, authority, String::new())
        }
        Spoken::Redis { speaks_3, login, database, sharding } => {
            let login = login.as_ref().map(|(user, password)| (user.as_str(), password.as_str()));
            let mut redis = Redis::new(speaks_3, login, database);
            redis.shards =
                sharding.map(|sharding| shards(sharding, REDIS_PORT)).transpose().map_err(wrong)?;
            (Protocol::Redis(redis), REDIS_PORT, url.host.clone(), String::new())
        }
        Spoken::Postgres { user, password, database, mode, .. } => {
            let may_be_plain = mode == SslMode::Prefer;
            let postgres = Postgres { user, password, database, may_be_plain };
            (Protocol::Postgres(postgres), POSTGRES_PORT, url.host.clone(), String::new())
        }
        Spoken::Cassandra { login, keyspace, consistency } => {
            let cassandra = Cassandra { login, keyspace, consistency };
            (Protocol::Cassandra(cassandra), CASSANDRA_PORT, url.host.clone(), String::new())
        }
        Spoken::Aerospike { namespace } => {
            let aerospike = Aerospike { namespace };
            (Protocol::Aerospike(aerospike), AEROSPIKE_PORT, url.host.clone(), String::new())
        }
        Spoken::Memcached { sharding } => {
            let shards = sharding.map(|sharding| shards(sharding, MEMCACHED_PORT)).transpose();
            let memcached = Memcached { shards: shards.map_err(wrong)? };
            (Protocol::Memcached(memcached), MEMCACHED_PORT, url.host.clone(), String::new())
        }
    };
    let between = proxy::before(&url, &authority, system).map_err(wrong)?;
    let begin = Instant::now();
    let addresses = match &between {
        // its own resolver finds the URL's host
        Some(between) => resolve_all(&between.host, between.port, system.resolve),
        None => addresses(&url.host, url.port.unwrap_or(own_port), system),
    };
    let took = begin.elapsed();
    let host = match (&between, &system.connect_to) {
        (Some(between), _) => between.host.as_str(),
        (None, Some(place)) => place.rsplit_once(':').map_or("", |(host, _)| host),
        (None, None) => url.host.as_str(),
    };
    let mut addresses = addresses.map_err(wrong)?.into_iter();
    let target = Target {
        address: addresses.next().ok_or_else(|| wrong(NO_ADDRESS.into()))?,
        others: Vec::new(),
        tls: tls(&url, &system.tls).map_err(wrong)?,
        protocol,
        authority,
        base_path,
        proxy: between.as_ref().map(|between| between.proxy.clone()),
    };
    let is_name = matches!(target.address, Address::Tcp(_)) && !is_address(host);
    let others = if of_servers.is_empty() { vec![addresses.collect()] } else { of_servers };
    Ok((target, is_name.then_some(took), others))
}

fn is_address(host: &str) -> bool {
    host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

/// The servers of a URL, each at its first address, and what other addresses they have.
fn shards(
    url: &SystemUrl,
    sharding: Sharding,
    own_port: u16,
    system: &System,
) -> Result<(Shards, Others), String> {
    if system.connect_to.is_some() {
        return Err("`connect to` is for one server; here are several".into());
    }
    let first = (url.host.clone(), url.port);
    let all = std::iter::once(&first).chain(&url.others);
    let (mut servers, mut others) = (Vec::new(), Others::new());
    for (host, port) in all {
        let port = port.unwrap_or(own_port);
        let mut addresses = look_up(host, port, system.resolve)?.into_iter();
        let address = addresses.next().ok_or(NO_ADDRESS)?;
        servers.push(Server { name: format!("{host}:{port}"), address });
        others.push(addresses.map(Address::from).collect());
    }
    Ok((Shards::new(servers, sharding), others))
}

fn addresses(host: &str, port: u16, system: &System) -> Result<Vec<Address>, String> {
    match &system.connect_to {
        Some(place) => place_to_connect(place, system.resolve),
        None => resolve_all(host, port, system.resolve),
    }
}

fn tls(url: &SystemUrl, settings: &TlsSettings) -> Result<Option<Tls>, String> {
    let settings = match &url.spoken {
        Spoken::Postgres { mode, files, .. } => &of_postgres(*mode, files, settings),
        _ => settings,
    };
    match url.is_secure {
        true => Tls::new(settings, &url.host)
            .map(|tls| match &url.spoken {
                Spoken::Postgres { .. } => Some(tls.of_postgres()),
                Spoken::Grpc => Some(tls.of_grpc()),
                _ => Some(tls),
            })
            .map_err(|error| error.to_string()),
        false if *settings != TlsSettings::default() => {
            Err("options of TLS are given, but the URL is not https://, grpcs:// or rediss://, nor postgres:// with sslmode".into())
        }
        false => Ok(None),
    }
}

/// Whom PostgreSQL's own clients trust in this mode: without a file of authorities `require` trusts everybody.
fn of_postgres(mode: SslMode, files: &SslFiles, settings: &TlsSettings) -> TlsSettings {
    let mut settings = settings.clone();
    let SslFiles { root, certificate, key } = files.clone();
    settings.ca = root.or(settings.ca);
    settings.certificate = certificate.or(settings.certificate);
    settings.key = key.or(settings.key);
    match mode {
        SslMode::Disable | SslMode::VerifyFull => {}
        SslMode::Prefer => settings.insecure = true,
        SslMode::Require if settings.ca.is_none() => settings.insecure = true,
        SslMode::Require | SslMode::VerifyCa => settings.any_name = true,
    }
    settings
}

/// `unix:PATH` or `HOST:PORT`.
fn place_to_connect(place: &str, policy: Resolve) -> Result<Vec<Address>, String> {
    if let Some(path) = place.strip_prefix(UNIX) {
        return match path {
            "" => Err("`unix:` names no path; write unix:/PATH/TO/SOCKET".into()),
            path => Ok(vec![Address::Unix(path.into())]),
        };
    }
    let parts = place.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    match parts {
        Some((host, port)) if !host.is_empty() => resolve_all(host, port, policy),
        _ => Err(format!("cannot connect to `{place}`; write HOST:PORT or unix:/PATH/TO/SOCKET")),
    }
}

/// All of them, the one that is tried first in front.
fn resolve_all(host: &str, port: u16, policy: Resolve) -> Result<Vec<Address>, String> {
    Ok(look_up(host, port, policy)?.into_iter().map(Address::from).collect())
}

fn look_up(host: &str, port: u16, policy: Resolve) -> Result<Vec<SocketAddr>, String> {
    let addresses: io::Result<Vec<SocketAddr>> =
        (host.trim_matches(['[', ']']), port).to_socket_addrs().map(Iterator::collect);
    let why = match addresses {
        Ok(addresses) if !addresses.is_empty() => return Ok(in_order(addresses, policy)),
        Ok(_) => NO_ADDRESS.into(),
        Err(error) => error.to_string(),
    };
    Err(format!("{host} is not found: {why}; check its spelling"))
}

/// The preferred kind first, else as the resolver names them; each once.
fn in_order(mut addresses: Vec<SocketAddr>, policy: Resolve) -> Vec<SocketAddr> {
    addresses.sort_by_key(|address| match policy {
        Resolve::Ipv4 => !address.is_ipv4(),
        Resolve::Ipv6 => !address.is_ipv6(),
        Resolve::First => false,
    });
    let mut once = Vec::new();
    for address in addresses {
        if !once.contains(&address) {
            once.push(address);
        }
    }
    once
}

/// Makes a connection that blocks, each time for so long at most.
pub fn dial(address: &Address, within: Duration) -> io::Result<Box<dyn Stream>> {
    connect(address, within, within)
}

/// Makes a connection within a time, each read and write of which blocks for so long at most.
pub fn connect(address: &Address, within: Duration, each: Duration) -> io::Result<Box<dyn Stream>> {
    let socket = Socket::connect(address, within)?;
    socket.set_timeouts(each)?;
    Ok(Box::new(socket))
}

/// A socket of either kind.
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn connect(address: &Address, within: Duration) -> io::Result<Socket> {
        Ok(match address {
            Address::Tcp(address) => Socket::Tcp(TcpStream::connect_timeout(address, within)?),
            Address::Unix(path) => Socket::Unix(UnixStream::connect(path)?),
        })
    }

    fn set_timeouts(&self, within: Duration) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => {
                stream.set_read_timeout(Some(within))?;
                stream.set_write_timeout(Some(within))
            }
            Socket::Unix(stream) => {
                stream.set_read_timeout(Some(within))?;
                stream.set_write_timeout(Some(within))
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(bytes),
            Socket::Unix(stream) => stream.read(bytes),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection for a greeting, which is over in time however much the server says.
struct Greeting {
    socket: Socket,
    until: Instant,
}

impl Greeting {
    fn begin(address: &Address, within: Duration) -> io::Result<Greeting> {
        let until = Instant::now() + within;
        Ok(Greeting { socket: Socket::connect(address, within)?, until })
    }

    /// The same at the first of several addresses where somebody accepts connections, and which that is: a name may have
    /// IPv4 and IPv6 addresses, and its server may listen at one of them only.
    fn begin_at_any(
        first: &Address,
        others: Option<&Vec<Address>>,
        within: Duration,
    ) -> io::Result<(Address, Greeting)> {
        let all = || std::iter::once(first).chain(others.into_iter().flatten());
        let mut last = io::Error::other(NO_ADDRESS);
        for address in all() {
            match Greeting::begin(address, within) {
                Ok(greeting) => return Ok((address.clone(), greeting)),
                Err(error) => last = error,
            }
        }
        let tried = all().map(ToString::to_string).collect::<Vec<_>>();
        Err(match &tried[..] {
            [one] => io::Error::new(last.kind(), format!("{one}: {last}")),
            all => {
                let text = format!("nobody answers at {}; the last: {last}", all.join(" and "));
                io::Error::new(last.kind(), text)
            }
        })
    }

    /// Does something with the socket in the time that is left.
    fn in_time<R>(&mut self, with: impl FnOnce(&mut Socket) -> io::Result<R>) -> io::Result<R> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the server was not ready in time");
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late());
        }
        self.socket.set_timeouts(left)?;
        with(&mut self.socket).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => late(),
            _ => error,
        })
    }
}

impl Read for Greeting {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.in_time(|socket| socket.read(bytes))
    }
}

impl Write for Greeting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.in_time(|socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether somebody accepts connections there, and what became of the first words: a TLS handshake, the version of
/// HTTP that is settled with it, or Redis' answer to a PING. Each server is at the first of its addresses that accepts
/// connections from then on.
pub fn knock(
    target: &mut Target,
    others: &Others,
    version: HttpVersion,
    within: Duration,
) -> io::Result<io::Result<()>> {
    let Some(shards) = target.protocol.shards().cloned() else {
        let (address, mut stream) = Greeting::begin_at_any(&target.address, others.first(), within)?;
        target.address = address;
        return Ok(target.greet(version, &mut stream));
    };
    let is_cluster = shards.sharding == Sharding::Cluster;
    let mut last = Err(io::Error::other("it names no server"));
    for (index, server) in shards.servers.iter().enumerate() {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", server.name));
        let reached = Greeting::begin_at_any(&server.address.into(), others.get(index), within);
        let mut one = target.clone();
        let greeted = reached.map(|(address, mut stream)| {
            let mut server = server.clone();
            if let Address::Tcp(address) = address {
                server.address = address;
            }
            if let Some(at) = servers_of(target).and_then(|servers| servers.get_mut(index)) {
                at.clone_from(&server);
            }
            one.address = address;
            if let Some(servers) = servers_of(&mut one).filter(|_| is_cluster) {
                *servers = vec![server];
            }
            one.greet(version, &mut stream).map_err(named)
        });
        match (is_cluster, greeted) {
            // one tells of all
            (true, Ok(Ok(()))) => {
                *target = one;
                return Ok(Ok(()));
            }
            (true, other) => last = other.map_err(named),
            (false, Ok(Ok(()))) => last = Ok(Ok(())),
            (false, other) => return other.map_err(named),
        }
    }
    last
}

/// The servers that share a target's keys, where there are several.
fn servers_of(target: &mut Target) -> Option<&mut Vec<Server>> {
    let shards = match &mut target.protocol {
        Protocol::Redis(redis) => redis.shards.as_mut(),
        Protocol::Memcached(memcached) => memcached.shards.as_mut(),
        _ => None,
    };
    shards.map(|shards| &mut shards.servers)
}

/// Each server of a target that holds data, as a target of its own: of a cluster those that have slots now.
///
/// # Errors
/// No server of a cluster says which they are.
pub fn each_server(target: &Target, within: Duration) -> io::Result<Vec<Target>> {
    let mut target = target.clone();
    let Some(shards) = target.protocol.shards() else { return Ok(vec![target]) };
    if shards.sharding == Sharding::Cluster {
        knock(&mut target, &Others::new(), HttpVersion::One, within)??;
    }
    let Some(shards) = target.protocol.shards().cloned() else { return Ok(vec![target]) };
    let holding = match shards.sharding {
        Sharding::Cluster => {
            shards.parts.iter().map(|(.., server)| usize::from(*server) + 1).max().unwrap_or(0)
        }
        Sharding::Consistent | Sharding::Slots => shards.servers.len(),
    };
    let one = |server: &Server| {
        let mut one = target.clone();
        one.address = server.address.into();
        if let Protocol::Redis(redis) = &mut one.protocol {
            redis.shards = None;
        }
        one
    };
    Ok(shards.servers[..holding].iter().map(one).collect())
}

/// Speaks with a server that speaks no HTTP; each wait for it has an end.
pub fn speak<R>(
    target: &mut Target,
    within: Duration,
    with: impl FnOnce(&mut dyn Stream) -> R,
) -> io::Result<R> {
    let mut stream = dial(&target.address, within)?;
    target.speak(&mut stream, with)
}

/// Asks a server that takes calls for its greeting.
pub fn greet_calls<'m>(
    target: &mut Target,
    path: &str,
    methods: impl Iterator<Item = &'m str>,
    within: Duration,
) -> io::Result<()> {
    let mut stream = dial(&target.address, within)?;
    target.greet_calls(path, methods, &mut stream)
}

/// Where connections went, if the URL alone does not say it.
pub fn remark(url: &str, target: &Target) -> Option<String> {
    match &target.proxy {
        Some(proxy) => Some(format!(
            "all connections went to the proxy {} ({}), chosen once before the load; its time is in every response time",
            proxy.name, target.address
        )),
        None => elsewhere(url, &target.address),
    }
}

fn elsewhere(url: &str, address: &Address) -> Option<String> {
    // nothing is sent there
    if url.contains(NOBODY) {
        return None;
    }
    let evident = match address {
        Address::Tcp(address) => {
            url.contains(&address.ip().to_string())
                || (address.is_ipv4() && address.ip().is_loopback() && url.contains("://localhost"))
        }
        Address::Unix(_) => false,
    };
    (!evident).then(|| format!("all connections went to {address}, chosen once before the load"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Result<Target, LabError> {
        super::target(text, &System::default())
    }

    fn connected_to(place: &str) -> Result<Target, LabError> {
        let system = System { connect_to: Some(place.into()), ..System::default() };
        super::target("http://shop.invalid:81/a", &system)
    }

    #[test]
    fn a_url_becomes_a_target() {
        let t = target("http://127.0.0.1:9080/base/").unwrap();
        assert_eq!(
            (t.address.to_string().as_str(), t.authority.as_str()),
            ("127.0.0.1:9080", "127.0.0.1:9080")
        );
        assert_eq!(t.base_path, "/base");
        let t = target("http://[::1]").unwrap();
        assert_eq!(t.address.to_string(), "[::1]:80");
        assert_eq!((t.authority.as_str(), t.base_path.as_str()), ("[::1]", ""));
    }

    #[test]
    fn a_url_that_cannot_be_driven_says_why() {
        for (text, reason) in [
            ("127.0.0.1:80", "write http://"),
            ("ftp://127.0.0.1", "`ftp`"),
            ("http://127.0.0.1/?a=b", "only a host"),
            ("http://no-such-host.invalid/", "not found"),
        ] {
            let error = target(text).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
            assert_eq!(error.exit_status(), 2);
        }
    }

    #[test]
    fn https_has_its_own_port_and_settings() {
        let insecure = TlsSettings { insecure: true, ..TlsSettings::default() };
        let system = System { tls: insecure, ..System::default() };
        let t = super::target("https://127.0.0.1/a", &system).unwrap();
        assert_eq!((t.address.to_string().as_str(), t.authority.as_str()), ("127.0.0.1:443", "127.0.0.1"));
        assert!(t.tls.is_some());
        let error = super::target("http://127.0.0.1", &system).unwrap_err().to_string();
        assert!(error.contains("not https://"), "{error}");
        let nobody = TlsSettings { ca: Some("/no/such.pem".into()), ..TlsSettings::default() };
        let error =
            super::target("https://127.0.0.1", &System { tls: nobody, ..System::default() }).unwrap_err();
        assert!(error.to_string().contains("/no/such.pem"), "{error}");
        assert_eq!(error.exit_status(), 2);
    }

    #[test]
    fn the_place_to_connect_to_may_be_another_than_the_url_names() {
        for (place, address) in [
            ("127.0.0.1:9080", "127.0.0.1:9080"),
            ("[::1]:9080", "[::1]:9080"),
            ("unix:/tmp/x.sock", "unix:/tmp/x.sock"),
        ] {
            let t = connected_to(place).unwrap();
            assert_eq!((t.address.to_string().as_str(), t.authority.as_str()), (address, "shop.invalid:81"));
        }
        for place in ["127.0.0.1", ":80", "x:y", "unix:"] {
            let error = connected_to(place).unwrap_err().to_string();
            assert!(error.contains("unix:/PATH/TO/SOCKET"), "{error}");
        }
    }

    #[test]
    fn the_policy_prefers_and_does_not_insist() {
        let [four, six]: [SocketAddr; 2] = ["127.0.0.1:80".parse().unwrap(), "[::1]:80".parse().unwrap()];
        for (found, policy, tried) in [
            (vec![six, four, six], Resolve::Ipv4, vec![four, six]),
            (vec![four, six], Resolve::Ipv6, vec![six, four]),
            (vec![six, four], Resolve::First, vec![six, four]),
            (vec![six], Resolve::Ipv4, vec![six]),
            (vec![four], Resolve::Ipv6, vec![four]),
        ] {
            assert_eq!(in_order(found, policy), tried);
        }
    }

    #[test]
    fn a_greeting_without_end_is_over_in_time() {
        for (url, word) in [
            ("postgres://h", &b"N\0\0\0\x05\0"[..]),
            ("memcached://h", b"a"),
            ("cql://u:p@h", b"\x84\0\0\0\x03\0\0\0\0"),
        ] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let place = listener.local_addr().unwrap().to_string();
            std::thread::spawn(move || {
                let mut stream = listener.accept().unwrap().0;
                while stream.write_all(word).is_ok() {
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            let system = System { connect_to: Some(place), ..System::default() };
            let mut target = super::target(url, &system).unwrap();
            let error = knock(&mut target, &Others::new(), HttpVersion::One, Duration::from_millis(200))
                .unwrap()
                .unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{url}: {error}");
        }
    }

    /// Whoever is asked says that there is no such command, and has all slots.
    fn redis() -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut asked = [0; 1024];
                while let Ok(bytes @ 1..) = stream.read(&mut asked) {
                    let text = String::from_utf8_lossy(&asked[..bytes]);
                    let map = format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:{}\r\n", address.port());
                    let answer = match (text.contains("PING"), text.contains("CLUSTER")) {
                        (true, _) => "+PONG\r\n".to_owned(),
                        (_, true) => map,
                        _ if text.starts_with("version") => "VERSION 1.6.0\r\n".to_owned(),
                        _ => "-ERR\r\n".to_owned(),
                    };
                    if stream.write_all(answer.as_bytes()).is_err() {
                        break;
                    }
                }
            }
        });
        address
    }

    /// A server of a name listens at one of its addresses only, be it the only server or one of several.
    #[test]
    fn each_server_is_tried_at_all_its_addresses() {
        // nobody listens there
        let closed = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let patience = Duration::from_secs(5);
        for url in [
            "redis://127.0.0.1:1",
            "redis-cluster://127.0.0.1:1",
            "redis://127.0.0.1:1,127.0.0.1:2",
            "memcached://127.0.0.1:1,127.0.0.1:2",
        ] {
            let (mut target, _, mut others) = looked_up(url, &System::default()).unwrap();
            let open: Vec<SocketAddr> = others.iter().map(|_| redis()).collect();
            others.iter_mut().zip(&open).for_each(|(of, open)| *of = vec![closed().into(), (*open).into()]);
            knock(&mut target, &others, HttpVersion::One, patience).unwrap().unwrap();
            let found = match target.protocol.shards() {
                Some(shards) => shards.servers.iter().map(|server| Address::from(server.address)).collect(),
                None => vec![target.address],
            };
            assert_eq!(found, open.iter().map(|open| Address::from(*open)).collect::<Vec<_>>(), "{url}");

            let (mut target, _, mut others) = looked_up(url, &System::default()).unwrap();
            others[0] = vec![closed().into()];
            let told = knock(&mut target, &others, HttpVersion::One, patience).unwrap_err().to_string();
            assert!(told.contains("nobody answers at 127.0.0.1:1 and 127.0.0.1:"), "{url}: {told}");
        }
    }

    #[test]
    fn an_address_is_remarked_where_the_url_does_not_say_it() {
        let address = |text: &str| Address::from(text.parse::<SocketAddr>().unwrap());
        assert_eq!(elsewhere("http://127.0.0.1", &address("127.0.0.1:80")), None);
        assert_eq!(elsewhere("http://[::1]:9", &address("[::1]:9")), None);
        assert_eq!(elsewhere("http://localhost", &address("127.0.0.1:80")), None);
        assert!(elsewhere("http://localhost", &address("[::1]:80")).unwrap().contains("[::1]:80"));
        let text = elsewhere("http://shop.test", &address("[::1]:80")).unwrap();
        assert!(text.contains("to [::1]:80"), "{text}");
        assert!(elsewhere("http://localhost", &Address::Unix("/x".into())).unwrap().contains("unix:/x"));
    }

    #[test]
    fn only_a_name_is_looked_up() {
        let lookup = |url: &str, system: &System| looked_up(url, system).unwrap().1.is_some();
        assert!(lookup("http://localhost:81/a", &System::default()));
        assert!(!lookup("http://127.0.0.1:81", &System::default()));
        assert!(!lookup("http://[::1]", &System::default()));
        let elsewhere = |place: &str| System { connect_to: Some(place.into()), ..System::default() };
        assert!(lookup("http://shop.invalid", &elsewhere("localhost:1")));
        assert!(!lookup("http://shop.invalid", &elsewhere("127.0.0.1:1")));
        assert!(!lookup("http://shop.invalid", &elsewhere("unix:/run/x.sock")));
    }

    #[test]
    fn connections_go_to_the_proxy_and_requests_to_the_server() {
        let system = System { proxy: Some("http://me:mine@127.0.0.1:3128".into()), ..System::default() };
        let target = super::target("http://shop.invalid:81/a", &system).unwrap();
        assert_eq!(
            (target.address.to_string().as_str(), target.authority.as_str()),
            ("127.0.0.1:3128", "shop.invalid:81")
        );
        let told = remark("http://shop.invalid:81/a", &target).unwrap();
        assert!(told.contains("the proxy 127.0.0.1:3128") && !told.contains("mine"), "{told}");
    }
}
