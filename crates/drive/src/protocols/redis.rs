//! Redis' protocol: how a connection begins. How a command is written, and its replies, are in [`command`].

mod cluster;
mod command;
mod keys;
mod written;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

use tidemark_scenario::Plan;
use tidemark_scenario::plan::{RedisCommand, RequestKind, RequestPlan};
use tidemark_wire::resp::{self, Keep, Kind, ReplyDecoder, ReplyLimits};

use crate::error::DriveError;
use crate::io::greeted::{Conversation, GreetedIo, converse};
use crate::io::{BoxedIo, Io};
use crate::protocols::codec::byte_transport;
use crate::protocols::sharding::{Keyed, Sharding, Shards, sharded_transport};
use crate::protocols::transport::{Client, Setup, Transport};
use command::{Command, Replies};

/// The longest reply to a command of the beginning.
const GREETING_BYTES: usize = 64 << 10;
/// The longest map of a cluster's slots.
const MAP_BYTES: usize = 16 << 20;

/// How a connection to a server that speaks Redis' protocol begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redis {
    /// What is said first: `HELLO`, `AUTH`, `SELECT`.
    greeting: Vec<u8>,
    /// How many commands that is.
    commands: usize,
    /// Whether RESP3 is spoken.
    pub speaks_3: bool,
    /// The servers that share the keys, where there are several. Those of a cluster are asked for when it is greeted.
    pub shards: Option<Shards>,
}

impl Redis {
    /// For a server that wants to know who comes (a user may be empty), and for a database other than the first.
    pub fn new(speaks_3: bool, login: Option<(&str, &str)>, database: Option<u32>) -> Redis {
        let mut redis = Redis { speaks_3, ..Redis::default() };
        let mut words: Vec<&[u8]> = Vec::new();
        let user = login.map(|(user, _)| if user.is_empty() { "default" } else { user });
        match (speaks_3, login) {
            (true, Some((_, password))) => {
                words.extend([
                    &b"HELLO"[..],
                    b"3",
                    b"AUTH",
                    user.unwrap_or_default().as_bytes(),
                    password.as_bytes(),
                ]);
            }
            (true, None) => words.extend([&b"HELLO"[..], b"3"]),
            // servers before version 6 have no users
            (false, Some(("", password))) => words.extend([&b"AUTH"[..], password.as_bytes()]),
            (false, Some((user, password))) => {
                words.extend([&b"AUTH"[..], user.as_bytes(), password.as_bytes()])
            }
            (false, None) => {}
        }
        redis.say(&words);
        if let Some(database) = database.filter(|database| *database != 0) {
            redis.say(&[b"SELECT", database.to_string().as_bytes()]);
        }
        redis
    }

    fn say(&mut self, words: &[&[u8]]) {
        if !words.is_empty() {
            resp::write_command(words, &mut self.greeting);
            self.commands += 1;
        }
    }

    /// What carries commands over these sockets.
    fn carried<I: Io + 'static>(
        &self,
        io: I,
        setup: &Setup<'_>,
        commands: Vec<Command>,
    ) -> Box<dyn Transport> {
        match &self.shards {
            Some(shards) => sharded_transport::<_, Replies>(io, setup, shards, commands),
            None => byte_transport::<_, Replies>(io, setup, commands),
        }
    }

    /// Whether a connection begins with words of its own.
    fn has_greeting(&self) -> bool {
        self.commands > 0
    }
}

impl Client for Redis {
    fn name(&self) -> &'static str {
        if self.speaks_3 { "RESP3" } else { "RESP2" }
    }

    fn takes(&self, ask: &RequestKind) -> bool {
        matches!(ask, RequestKind::Redis(_))
    }

    fn shards(&self) -> Option<&Shards> {
        self.shards.as_ref()
    }

    fn refusal(&self, plan: &Plan) -> Option<DriveError> {
        self.shards.as_ref()?;
        plan.requests.iter().find_map(|request| match &request.ask {
            RequestKind::Redis(command) if command.needs_own_connection() => {
                let name = command.words.first()?.as_literal()?;
                Some(DriveError::Shared(String::from_utf8_lossy(name).to_ascii_uppercase()))
            }
            _ => None,
        })
    }

    /// A server of a cluster, the first that is known, is asked for the map of slots, too.
    fn greet(&mut self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        let mut words = self.greeting.clone();
        resp::write_command(&[b"PING"], &mut words);
        converse(Greeting::new(words, self.commands + 1), stream)?;
        if let Some(shards) = self.shards.as_mut().filter(|shards| shards.sharding == Sharding::Cluster) {
            let decoder = ReplyDecoder::new(ReplyLimits { body_bytes: MAP_BYTES });
            let mut asked = Greeting { decoder, ..Greeting::new(Replies::MAP.into(), 1) };
            converse(&mut asked, stream)?;
            let own = shards.servers.first().map_or(Ipv4Addr::LOCALHOST.into(), |server| server.address.ip());
            // a server of both kinds may listen at one only: that at which this one was reached
            let look_up = |host: &str, port: u16| {
                let found: Vec<SocketAddr> = (host, port).to_socket_addrs().ok()?.collect();
                let same = found.iter().find(|address| address.is_ipv4() == own.is_ipv4());
                same.or(found.first()).copied()
            };
            let map = cluster::read_map(&asked.last, own, &look_up);
            *shards = map.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
        Ok(())
    }

    fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        let keep = |request: &RequestPlan| match request.needs_body() {
            true => Keep::All,
            false if request.shown_body_bytes > 0 => Keep::Beginning,
            false => Keep::Nothing,
        };
        let commands = setup.plan.requests.iter().map(|request| match &request.ask {
            RequestKind::Redis(command) => Command::new(command, keep(request)),
            _ => Command::new(&RedisCommand::default(), Keep::Nothing),
        });
        let commands = commands.collect();
        if self.has_greeting() {
            let (words, commands_said) = (self.greeting.clone(), self.commands);
            let greeting = move || Greeting::new(words.clone(), commands_said);
            let io: BoxedIo = Box::new(GreetedIo::new(io, setup.sockets, greeting));
            return self.carried(io, &setup, commands);
        }
        self.carried(io, &setup, commands)
    }
}

/// What a connection begins with, and the replies to it.
#[derive(Debug)]
struct Greeting {
    words: Vec<u8>,
    decoder: ReplyDecoder,
    left: usize,
    /// What the last of them held.
    last: Vec<u8>,
}

impl Greeting {
    /// So many commands.
    fn new(words: Vec<u8>, commands: usize) -> Self {
        let decoder = ReplyDecoder::new(ReplyLimits { body_bytes: GREETING_BYTES });
        Greeting { words, decoder, left: commands, last: Vec::new() }
    }
}

impl Conversation for Greeting {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.words);
    }

    fn hear(&mut self, mut received: &[u8], _: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let all = received.len();
        while self.left > 0 {
            let decoded = self.decoder.decode(received).map_err(|error| {
                let words = format!("the server does not speak Redis' protocol: {error}");
                io::Error::new(ErrorKind::InvalidData, words)
            })?;
            received = &received[decoded.consumed..];
            if !decoded.complete {
                return Ok(None);
            }
            self.left -= 1;
            if self.decoder.kind() == Kind::Error {
                return Err(refused(self.decoder.body()));
            }
            if self.left == 0 {
                self.last = self.decoder.body().to_vec();
            }
            self.decoder.start(Keep::All);
        }
        Ok(Some(all - received.len()))
    }
}

/// A server that is there and does not let us in.
fn refused(words: &[u8]) -> io::Error {
    let words = String::from_utf8_lossy(words);
    let way_out = match words.split(' ').next().unwrap_or_default() {
        "NOAUTH" => "; put the password into the URL: redis://:PASSWORD@HOST, best as ${env('NAME')}",
        "WRONGPASS" => "; user and password stand in the URL: redis://USER:PASSWORD@HOST",
        "NOPROTO" => "; leave out protocol=3",
        "ERR" if words.contains("cluster support disabled") => {
            "; write redis:// in place of redis-cluster://"
        }
        _ => "",
    };
    io::Error::new(ErrorKind::PermissionDenied, format!("the server answered \"{words}\"{way_out}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_begins_with_what_its_server_wants_to_know() {
        let says = |redis: Redis| String::from_utf8(redis.greeting).unwrap().replace("\r\n", " ");
        assert!(!Redis::new(false, None, None).has_greeting());
        assert!(!Redis::new(false, None, Some(0)).has_greeting());
        assert_eq!(says(Redis::new(false, Some(("", "secret")), None)), "*2 $4 AUTH $6 secret ");
        assert_eq!(
            says(Redis::new(false, Some(("me", "x")), Some(3))),
            "*3 $4 AUTH $2 me $1 x *2 $6 SELECT $1 3 "
        );
        assert_eq!(says(Redis::new(true, None, None)), "*2 $5 HELLO $1 3 ");
        assert_eq!(
            says(Redis::new(true, Some(("", "x")), None)),
            "*5 $5 HELLO $1 3 $4 AUTH $7 default $1 x "
        );
    }

    #[test]
    fn a_greeting_is_over_with_its_last_reply_and_an_error_says_the_way_out() {
        let mut out = Vec::new();
        let heard = |said: &[u8]| Greeting::new(Vec::new(), 1).hear(said, &mut Vec::new());
        let mut greeting = Greeting::new(Vec::new(), 2);
        assert_eq!(greeting.hear(b"+O", &mut out).unwrap(), None);
        assert_eq!(greeting.hear(b"K\r\n+OK\r\n:1", &mut out).unwrap(), Some(8));
        let error = heard(b"-NOAUTH Authentication required.\r\n").unwrap_err().to_string();
        assert!(error.contains("NOAUTH") && error.contains(":PASSWORD@"), "{error}");
        let error = heard(b"HTTP/1.1 400 Bad Request\r\n").unwrap_err().to_string();
        assert!(error.contains("does not speak Redis' protocol"), "{error}");
    }
}
