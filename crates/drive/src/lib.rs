//! The load engine: load models, sessions, connections, threads.
//!
//! [`start`] begins a [`Drive`]: a [`Plan`] carried out on threads of its own. Each thread owns everything it
//! touches: its share of the schedule of arrivals, its sessions, connections, random numbers and histograms. Once a
//! second it hands a [`ThreadInterval`] over, which [`Drive::intervals`] receives.
//!
//! # Folders
//!
//! - `engine`: the loop of a thread (`thread`), and a request's way through it (`exchange`, `connection`, `judging`).
//! - `session`: what a user does (the interpreter, `arrivals`, `program`), holds (`jar`) and is answered (`answer`).
//! - `protocols`: the seam (`transport`), what carries bytes (`codec`), and each protocol (`http1`, `redis`).
//! - `io`: sockets over each back end, addresses, and what is spoken on a socket first (`greeted`).
//! - `observation`: what is seen of requests (`record`, `step_log`, `trace`) and of the driver itself (`absence`).
//!
//! Folders import one way: `engine` imports all others, `protocols` `session` and `io`, `observation` `session`, `session`
//! `io`, and `io` none. `clock` and `error` are for all of them.
//!
//! # A request's way
//!
//! It is born in the schedule (`arrivals`), walks through `session` and `exchange` to its `connection`, over
//! the `io` back end out and back, is read by the `codec` of its protocol (`http1`, `redis`), looked at in `answer` and
//! `judging`, and leaves its mark in `record`. The loop around it is `thread`. Over HTTP/2 (`http2`) a stream is what a
//! connection is otherwise, and so is a place for a call where requests are remote calls (`rpc`).
//! Response times count from when a request was *due*, so that a system that stands still cannot hide it;
//! arrivals that find no connection wait, and the wait counts; where a bound is reached they are dropped and counted.
//! Of several free connections the one that was taken least recently is taken, unless the plan wants the one that was
//! made first; where an open load names their number, all are made before they are needed (`ahead`).
//!
//! A thread sleeps only where nothing is to be done, and each arrival and each answer wakes it. At a high rate most of
//! its time may so go into waking; that is no limit yet: where there is no time to sleep, arrivals and answers that came
//! meanwhile share a turn, which then costs less for each of them.
//!
//! ```no_run
//! # fn a_plan() -> tidemark_scenario::Plan { unimplemented!() }
//! use std::sync::Arc;
//! use std::time::{Instant, SystemTime};
//!
//! use tidemark_drive::{Address, DriveOptions, IoChoice, Protocol, Target, Timestamps, start};
//! use tidemark_scenario::{Plan, Shared};
//!
//! let plan: Plan = a_plan();
//! let shared = Shared::of(&plan);
//! let options = DriveOptions {
//!     threads: 2,
//!     share: None,
//!     cores: vec![2, 3],
//!     seed: 1,
//!     ledger_seed: 1,
//!     io: IoChoice::Auto,
//!     spin: false,
//!     timestamps: Timestamps::Read,
//!     targets: vec![Target {
//!         address: Address::Tcp("127.0.0.1:9080".parse()?),
//!         others: Vec::new(),
//!         authority: "localhost:9080".into(),
//!         base_path: String::new(),
//!         tls: None,
//!         protocol: Protocol::Http1,
//!         proxy: None,
//!     }],
//!     trace: None,
//!     programs: None,
//!     codes: None,
//!     epoch: Instant::now(),
//!     wall_epoch: SystemTime::now(),
//!     fence_ns: None,
//! };
//! let drive = start(Arc::new(plan), Arc::new(shared), options)?;
//! for interval in drive.intervals() {
//!     let ended: u64 = interval.series.iter().map(|s| s.response_time_us.len()).sum();
//!     println!("thread {}: {ended} requests by {} µs", interval.thread, interval.end_us);
//!     drive.recycle(interval);
//! }
//! let end = drive.join()?;
//! println!("over after {} µs", end.ended_us);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What holds
//!
//! - **One loop.** It asks a `transport`: write a request of the plan, send it, be told what came of it. HTTP/1.1 and
//!   the stores' protocols are each a `codec` over one transport of bytes; where several servers share keys, `sharding`
//!   carries what a codec renders to the one that has the key, and follows a Redis Cluster. HTTP/2 and remote calls,
//!   of which many share a socket, are transports of their own, and so is HTTP/1.1 whose connections become WebSockets
//!   (`http1::messages`) or event streams (`http1::streams`). The seam names what these need without naming them: a
//!   connection that is *bound* to its session, an answer that is *offered* and accepted or declined, a request that
//!   is over once *sent*. What each protocol says is `transport::Transport`; what one may say beside it has a trait of
//!   its own. `protocols` is the list; a protocol's file knows no other protocol.
//! - **A session's requests may come from code** (`program`): a plan's operation hands over to it. Those requests go as all
//!   others do; one over HTTP/2 may leave its stream open, and messages go either way over it. A program may have several
//!   under way at once: each on a *branch*, a session that no load counts and that ends with the one that began it. A
//!   branch may hold a WebSocket (`sockets`): what comes over it is heard at once, and what is said is no request.
//! - **A session may run code between its requests** (`code`): it sees the last answer, which is kept within the bound of all
//!   variables, and sets variables. What it takes is in no response time, and no other session's request counts from after it.
//! - **Once warm, no request and no call allocates.** Reading an encoded body costs what its decoder needs, where a step
//!   looks at it. `tests/allocations.rs` counts over every I/O back end.
//! - **What every request looks at is small**: of a user two cache lines (`session::Session`), of a Redis connection
//!   one and a half; what few requests need lies apart (`session::Cold`, `codec::Cold`), and tests hold the sizes. Thousands
//!   of users come round in turn, and what does not fit into a core's cache is waited for.
//! - **What is shared by all users costs atomics** (`tidemark_scenario::Shared`): a counter or a cursor one addition;
//!   claiming a row a loop on the number of claimed rows, then a bounded search; a number of `keys` one
//!   compare-and-swap when a write begins and one when it ends, a read one load. Only numbers whose insert failed are
//!   behind a lock.
//! - **A stale answer is reported only where that is certain**: only a write that began when no other of its number
//!   was under way makes older versions stale (`tests/keys.rs` has a server that lies).
//! - **A written entry is not computed again**: it carries its number and a keyed checksum, so that it may hold what
//!   only a session knows (`ledger`; `tests/ledger.rs` holds it against stores that lose, double and change).
//! - **A group of steps is no request** (`groups`): its times go beside the requests' and are in no total; one that
//!   has begun is waited for at the load's end as an answer is.
//! - **A step with its redirects is one request** (`redirect`): hops are requests of the plan that the scenario makes
//!   beforehand, by target; they are due at no time of their own, and only the last answer is judged.
//! - **Cookies go where RFC 6265 sends them** (`cookies`): where that is, is found out as they are set and not as a
//!   request is written.
//! - **A large file is never in memory as a whole** (`upload`): a codec writes the head and hands over what follows;
//!   the transport reads a piece when the back end says that all before it was taken.
//! - **Several targets are a transport for each over one back end** (`targets`): connections and queues are each
//!   target's own, one wait is for all; of one target nothing of it is there.
//! - **A proxy's tunnel is a conversation before TLS** (`proxy`), as a database's greeting is (`greeted`).
//! - **A session that is logged step by step is the loop's own** (`step_log`): the same transports, probes and checks,
//!   with a look at an empty place where nobody wants to be told.
//! - **What is held is bounded**: what an HTTP/2 server sends unread (`http2`), and who waits (`waiting`).
//! - **An interval lies within one phase, and the measured window or outside it**: threads cut them at whole seconds and
//!   at the edges of phases, so that warm-up never leaks into a figure; what was due in which phase is kept apart (`phases`).
//! - **No wait for a core is missed**: the kernel counts it when it is over, so each thread reads its own account
//!   whenever it cuts an interval (`run_queue`); what belongs to the next one goes there. Nor is a stop: a thread
//!   looks at the clock every 50 ms, and what neither sleep nor work nor a wait explains is absence (`absence`).
//! - **No request leaves after the fence** ([`DriveOptions::fence_ns`]), also from a thread that stood still meanwhile: it reads
//!   the clock after each wait, before each event, alarm and arrival, and before what was held back leaves together.

mod clock;
mod engine;
mod error;
mod io;
mod observation;
mod protocols;
mod session;
#[cfg(test)]
mod testing;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime};

pub use engine::drive::{Drive, Stopper, never_sent, run_logged, run_once, start};
pub use engine::ledger::forms;
pub use error::{DriveError, ONCE_THREAD, OnceError};
pub use io::address::Address;
pub use io::tls_settings::{Tls, TlsError};
pub use io::{IoChoice, Timestamps};
pub use observation::step_log::{LoggedStep, text_of};
pub use observation::trace::{TRACED_BYTES, Tracing};
pub use protocols::Protocol;
pub use protocols::aerospike::Aerospike;
pub use protocols::cassandra::Cassandra;
pub use protocols::grpc::{Grpc, Unserved, check_health};
pub use protocols::http2::Http2;
pub use protocols::memcached::Memcached;
pub use protocols::postgres::Postgres;
pub use protocols::proxy::{Proxy, Tunnel};
pub use protocols::redis::Redis;
pub use protocols::rpc::Rpc;
pub use protocols::sharding::{Server, Sharding, Shards};
pub use protocols::target::{Stream, Target};
pub use session::branches::{MOST_BRANCHES, MOST_BRANCHES_OF_THREAD};
pub use session::code::{Code, CodeVariables, Codes, LastAnswer};
pub use session::findings::{Checked, Extracted, LOGGED_BYTES};
pub use session::program::{
    AnswerCheck, AnswerView, Next, Program, ProgramMessage, ProgramRequest, Programs,
};
pub use session::sockets::{Heard, Said};
pub use tidemark_record::{
    Bound, DriveEnd, LoggedAnswer, NotFound, PhaseTimes, Raised, RequestParts, Traced,
};
// Named in the prose above.
#[cfg(doc)]
use {tidemark_record::ThreadInterval, tidemark_scenario::Plan};

/// A part of a load: threads have numbers over all processes that drive it, and thread `i` of `all` takes arrivals and users
/// `i`, `i + all`, `i + 2·all`, … All parts together are the load of one process with as many threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The number of the first thread.
    pub first: usize,
    /// The threads of all processes.
    pub all: usize,
    /// When the load begins, counted from the epoch: at the same moment in every process.
    pub begin: Duration,
    /// Where these threads take over from others in the midst of the load.
    pub taken: Option<Taken>,
}

/// Threads of a load whose process is gone, as others go on with them: they take the same arrivals and users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// What is due from then on is theirs, counted from the epoch. Users begin anew.
    pub from: Duration,
    /// The number of the first of them in what they hand over and enter in the ledger. Nobody had it before: what was done
    /// under the old one, and never told, is not mixed up with it.
    pub first: usize,
}

/// How a drive is carried out.
#[derive(Debug, Clone)]
pub struct DriveOptions {
    /// Number of driving threads, at least 1.
    pub threads: usize,
    /// Which part of the load they drive, where other processes drive the rest.
    pub share: Option<Share>,
    /// Cores to pin the threads to, one after the other; empty for none.
    pub cores: Vec<usize>,
    /// Seed of the random numbers; thread `i` draws from its own stream of it.
    pub seed: u64,
    /// What the checksums of writes that are entered in the ledger are keyed with.
    pub ledger_seed: u64,
    /// The back end for sockets.
    pub io: IoChoice,
    /// Whether threads look for news without ever sleeping: no wake-up is in a response time then, and a core is taken for
    /// each thread.
    pub spin: bool,
    /// Until when response times count.
    pub timestamps: Timestamps,
    /// Where to, by the plan's numbers: the system, and behind it the plan's other targets.
    pub targets: Vec<Target>,
    /// What is traced, if that is wanted.
    pub trace: Option<Tracing>,
    /// What sessions do at [`Op::Program`](tidemark_scenario::plan::Op::Program), where a plan has that.
    pub programs: Option<Programs>,
    /// What runs the code of sessions, where a plan has that ([`Op::Code`](tidemark_scenario::plan::Op::Code)).
    pub codes: Option<Codes>,
    /// The run's zero on the monotonic clock, shared with whoever watches.
    pub epoch: Instant,
    /// The same moment on the wall clock: the one anchor.
    pub wall_epoch: SystemTime,
    /// When no request may leave any more, nanoseconds since the epoch, where somebody else may drive this part from then on.
    /// Whoever holds it puts it off. Threads look at it before they send, and end at once when it has passed.
    pub fence_ns: Option<Arc<AtomicU64>>,
}

impl DriveOptions {
    /// The number of a thread, and how many threads drive the load, over all processes.
    pub(crate) fn place(&self, thread: usize) -> (usize, usize) {
        self.share.map_or((thread, self.threads), |share| (share.first + thread, share.all))
    }

    /// The number of a thread in what it hands over.
    pub(crate) fn number(&self, thread: usize) -> usize {
        let taken = self.share.and_then(|share| share.taken);
        taken.map_or(self.place(thread).0, |taken| taken.first + thread)
    }

    /// Whether programs may ask for WebSockets.
    pub(crate) fn open_websockets(&self) -> bool {
        self.programs.as_ref().is_some_and(Programs::open_websockets)
    }
}
