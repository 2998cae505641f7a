//! Clients of services: over a WebSocket, where all calls share one connection, and as REST.

mod answer;
mod call;
mod error;
mod proxy;
mod rest;
mod state;
mod task;
mod wake;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use call::Calling;
pub use error::CallError;
pub use proxy::{Proxy, Through};
pub use rest::{RestCall, RestClient};
use state::Shared;

use crate::{Form, RPC_PATH};

/// The time that a call has where nothing is said.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// What becomes of a call that is made while there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenClosed {
    /// It waits for one, within its deadline.
    #[default]
    Wait,
    /// It fails at once.
    Fail,
}

/// How a client calls.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The form of the payloads.
    pub form: Form,
    /// Calls that are sent and not answered; a further one waits. The server's own bound holds if it is less.
    pub in_flight_max: usize,
    /// Calls that wait to be sent; a further one fails at once.
    pub waiting_max: usize,
    /// What becomes of calls while there is no connection.
    pub when_closed: WhenClosed,
    /// How long opening a connection may take.
    pub open_timeout: Duration,
    /// The pause before a connection that was cut, or could not be opened, is opened again; doubled with each failure
    /// up to `pause_max`. None: it is not opened again.
    pub pause: Option<Duration>,
    /// The longest of these pauses.
    pub pause_max: Duration,
    /// Where the server takes calls.
    pub path: String,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            form: Form::Json,
            in_flight_max: 4096,
            waiting_max: 65_536,
            when_closed: WhenClosed::Wait,
            open_timeout: Duration::from_secs(5),
            pause: Some(Duration::from_millis(50)),
            pause_max: Duration::from_secs(5),
            path: RPC_PATH.into(),
        }
    }
}

/// A connection to the services of one server, for any number of typed clients. Clones share it; when the last one is
/// dropped it is closed.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) handle: Arc<Handle>,
}

/// What a client has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientStats {
    /// Frames of calls sent.
    pub frames_sent: u64,
    /// Frames of answers received.
    pub frames_received: u64,
    /// Connections opened.
    pub connections: u64,
    /// Calls that are sent and not answered, or whose answer is not taken.
    pub in_flight: usize,
    /// Calls that wait to be sent.
    pub waiting: usize,
}

/// Ends the connection's task with the last client.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.state().leave();
    }
}

impl Client {
    /// A client of the server at this address, `HOST:PORT`; a name is looked up for each connection anew. Returns at
    /// once; the connection is opened by a task of the runtime that this is called on.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn connect(addr: impl fmt::Display, options: ClientOptions) -> Self {
        let shared = Arc::new(Shared::new(options));
        tokio::spawn(task::run(shared.clone(), addr.to_string()));
        Client { handle: Arc::new(Handle { shared }) }
    }

    /// Whether there is a connection now.
    pub fn is_open(&self) -> bool {
        self.handle.shared.state().is_open()
    }

    /// What it has done so far.
    pub fn stats(&self) -> ClientStats {
        self.handle.shared.state().stats()
    }
}
