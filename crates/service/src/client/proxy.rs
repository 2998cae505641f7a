//! What a typed client stands on.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::rest::{RestCall, RestClient};
use super::{CallError, Client, DEADLINE, call};

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

    /// Calls a method over the WebSocket.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn call<A, R>(&self, method: usize, arguments: &A) -> Result<R, CallError>
    where
        A: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        match &self.through {
            Through::WebSocket(client) => {
                call::call(&client.handle.shared, (self.table, method), self.deadline, arguments).await
            }
            Through::Rest(_) => Err(CallError::NoRoute),
        }
    }

    /// Calls a method as REST.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn send<R: DeserializeOwned>(&self, request: RestCall) -> Result<R, CallError> {
        match &self.through {
            Through::Rest(client) => client.send(request, self.deadline).await,
            Through::WebSocket(_) => Err(CallError::NoRoute),
        }
    }
}
