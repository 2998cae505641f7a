//! What a typed client stands on.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::call::Calling;
use super::rest::{RestCall, RestClient};
use super::state::Shared;
use super::{CallError, Client, DEADLINE};

/// How calls get there.
#[derive(Debug, Clone)]
pub enum Through {
    /// All over one WebSocket.
    WebSocket(Client),
    /// Each as a request.
    Rest(RestClient),
}

impl From<Client> for Through {
    fn from(client: Client) -> Self {
        Through::WebSocket(client)
    }
}

impl From<RestClient> for Through {
    fn from(client: RestClient) -> Self {
        Through::Rest(client)
    }
}

/// The part of a typed client that is the same for all; `#[service]` uses it.
#[derive(Debug, Clone)]
pub struct Proxy {
    through: Through,
    table: usize,
    deadline: Duration,
}

impl Proxy {
    /// One whose methods have these names, `service.method`.
    pub fn new(through: Through, names: &'static [&'static str]) -> Self {
        let table = match &through {
            Through::WebSocket(client) => client.handle.shared.state().add_table(names),
            Through::Rest(_) => 0,
        };
        Proxy { through, table, deadline: DEADLINE }
    }

    /// The same with another time that each call has.
    pub fn deadline(self, deadline: Duration) -> Self {
        Proxy { deadline, ..self }
    }

    /// How calls get there.
    pub fn through(&self) -> &Through {
        &self.through
    }

    /// A call of a method over the WebSocket.
    pub fn call<A, R>(&self, method: usize, arguments: A) -> Calling<'_, A, R> {
        Calling::new(self, method, arguments)
    }

    /// A call of a method as REST; `request` puts it together.
    pub fn send<'a, A, R>(
        &'a self,
        request: impl FnOnce() -> Result<RestCall, CallError> + Send + 'a,
    ) -> Calling<'a, A, R>
    where
        R: DeserializeOwned + 'a,
    {
        Calling::slow(async move {
            match &self.through {
                Through::Rest(client) => client.send(request()?, self.deadline).await,
                Through::WebSocket(_) => Err(CallError::NoRoute),
            }
        })
    }

    /// The connection, the method there, and the time that a call has.
    pub(super) fn way(&self, method: usize) -> Result<(&Shared, (usize, usize), Duration), CallError> {
        match &self.through {
            Through::WebSocket(client) => Ok((&client.handle.shared, (self.table, method), self.deadline)),
            Through::Rest(_) => Err(CallError::NoRoute),
        }
    }
}
