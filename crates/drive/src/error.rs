//! Why a drive could not begin, or did not end well.

use tidemark_record::Bound;
use tidemark_record::ledger::THREADS_MAX;

use crate::io::IoChoice;

/// The thread whose entries in the ledger are those of a session that is run once; driving threads are below it.
pub const ONCE_THREAD: u16 = THREADS_MAX - 1;

/// Most threads: an entry in the ledger has three digits for its thread, and a session that is run once has the last.
pub(crate) const MOST_THREADS: usize = ONCE_THREAD as usize;

/// Why a drive could not begin, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The number of threads is out of range.
    #[error("{0} driving threads; there must be at least 1 and at most {MOST_THREADS}")]
    Threads(usize),
    /// The scenario leaves nothing to do.
    #[error("the scenario has no {0}")]
    Nothing(&'static str),
    /// A phase's level is no number that a load can have.
    #[error("phase {name}: its level must be a finite number, 0 or more, but is {level}")]
    Level {
        /// The phase.
        name: String,
        /// Its level.
        level: f64,
    },
    /// What a phase's level does cannot be followed.
    #[error("phase {name}: {reason}")]
    Curve {
        /// The phase.
        name: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// There would be driving threads that may not have a session.
    #[error(
        "at most {limit} sessions in flight cannot be shared by {threads} driving threads; raise the limit or \
         take fewer threads"
    )]
    SessionLimit {
        /// The limit.
        limit: usize,
        /// The driving threads.
        threads: usize,
    },
    /// An operation names something that the plan does not have.
    #[error(
        "session {kind}: operation {op} names a request, a variable, a feeder or an operation that is not there"
    )]
    Op {
        /// The session kind.
        kind: String,
        /// Index of the operation.
        op: usize,
    },
    /// A program's sessions cannot be carried out.
    #[error("session {kind}: {why}")]
    Program {
        /// The session kind.
        kind: String,
        /// Why not.
        why: &'static str,
    },
    /// A session's code cannot be run.
    #[error("session {kind}: nothing here runs its code")]
    Code {
        /// The session kind.
        kind: String,
    },
    /// A request goes where nothing is.
    #[error("a request goes to target {0}, which there is not")]
    Target(u16),
    /// A WebSocket begins with a request of HTTP/1.1.
    #[error("ws steps need HTTP/1.1; leave out `http: 2`, or --http 2")]
    WebSocketOverHttp2,
    /// An event stream has a connection of its own.
    #[error("sse steps need HTTP/1.1; leave out `http: 2`, or --http 2")]
    EventStreamOverHttp2,
    /// A method that its server does not have, or a message that it does not take.
    #[error("{0}")]
    Grpc(String),
    /// Requests of one protocol, and a server that speaks another.
    #[error("all requests of a run must be of the protocol that its server speaks, here {0}")]
    Protocol(&'static str),
    /// A command that changes its connection, where others share that.
    #[error(
        "{0} changes its connection, or holds it up, and users share connections where there are several servers: drive one, or \
         leave it out"
    )]
    Shared(String),
    /// There is no room for a connection for each user.
    #[error(
        "{users} users need {needed} connections, but there is room for {room}: what bounds them is {bound}"
    )]
    Room {
        /// Users of the closed model.
        users: usize,
        /// Connections that they need.
        needed: usize,
        /// Connections that there is room for.
        room: usize,
        /// What does not let there be more.
        bound: Bound,
    },
    /// The back end is not to be had.
    #[error(
        "preparing to wait for sockets by {io}: {error}; another is chosen by --io auto, epoll or portable"
    )]
    Io {
        /// The back end.
        io: IoChoice,
        /// What the system said.
        error: std::io::Error,
    },
    /// The operating system did not give what is needed.
    #[error("{what}: {error}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
    /// A thread ended by a fault of the driver itself.
    #[error("driving thread {0} broke down; its figures are incomplete")]
    Thread(usize),
}

/// Why a session that was run once failed.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    /// It could not begin.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// It went on and on.
    #[error("the session did not come to its end within an hour; does it repeat without end?")]
    TooLong,
    /// The program could not go on.
    #[error("{0}")]
    Program(String),
    /// A request failed.
    #[error("{label} failed ({}): {detail}", .outcome.name())]
    Request {
        /// The request's label.
        label: String,
        /// How it failed.
        outcome: tidemark_record::Outcome,
        /// What was seen.
        detail: String,
    },
}
