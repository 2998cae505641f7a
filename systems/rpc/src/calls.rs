//! The services of a system as its server sees them: an endpoint.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::http::{Method, StatusCode};
use bytes::Bytes;
use tidemark_service::{
    Answer, Begun, Endpoint, EndpointRequest, OPENAPI_PATH, RouteId, ServiceError, Starting, Upgrade,
    Upgraded, json, not_allowed,
};
use tidemark_wire::rpc::Greeting;
use tokio::net::TcpStream;

use crate::call_buffer::LIMITS;
use crate::connection::{self, Conversations};
use crate::metrics::CallCounts;
use crate::request::Request;
use crate::routes::Routes;
use crate::serve::Services;
use crate::{Form, IN_FLIGHT_MAX, RPC_PATH, Service, openapi, upgrade};

/// Services that a system offers, to be given to [`System::endpoint`](tidemark_service::System::endpoint): their REST
/// routes, their methods for calls over WebSockets, and their description.
#[derive(Default)]
pub struct Calls {
    services: Services,
    started: Option<Started>,
}

/// What is made of them before the first request.
struct Started {
    routes: Routes,
    openapi: Bytes,
    openapi_route: RouteId,
    rpc_route: RouteId,
    conversations: Arc<Conversations>,
}

impl Calls {
    /// None yet.
    pub fn new() -> Self {
        Calls::default()
    }

    /// One more, made of a trait by [`service`](crate::service).
    pub fn service(mut self, service: impl Service) -> Self {
        self.services.push(Arc::new(service));
        self
    }
}

impl Endpoint for Calls {
    fn start(&mut self, server: &mut Starting<'_>) -> Result<(), ServiceError> {
        let routes = Routes::new(&self.services, server)?;
        let services = std::mem::take(&mut self.services);
        let descriptions: Vec<_> = services.iter().map(|service| service.description()).collect();
        let numbered = |(service, methods): (usize, usize)| (0..methods).map(move |method| (service, method));
        let methods: Arc<[_]> = descriptions
            .iter()
            .map(|description| description.methods.len())
            .enumerate()
            .flat_map(numbered)
            .collect();
        let name = |(service, method): &(usize, usize)| {
            let description = descriptions[*service];
            format!("{}.{}", description.name, description.methods[*method].name)
        };
        let names: Vec<String> = methods.iter().map(name).collect();
        let counts = Arc::new(CallCounts::new(server.workers, names.clone()));
        server.metrics(counts.clone());
        let mut greeting = Vec::new();
        let words = Greeting { limits: LIMITS, in_flight_max: IN_FLIGHT_MAX, methods: names };
        words.write(&mut greeting).map_err(|error| ServiceError::Start(Box::new(error)))?;
        let openapi = openapi::document(server.name, server.version, &descriptions).to_string();
        self.started = Some(Started {
            routes,
            openapi: openapi.into(),
            openapi_route: server.route(OPENAPI_PATH),
            rpc_route: server.route(RPC_PATH),
            conversations: Arc::new(Conversations { services, methods, greeting, counts }),
        });
        Ok(())
    }

    fn begin(&self, request: &EndpointRequest<'_>) -> Option<(RouteId, Begun)> {
        let started = self.started.as_ref()?;
        if let Some((path, arguments)) = started.routes.find(request.path) {
            let Some(target) = path.target(request.method) else {
                return Some((path.route, Begun::Done(not_allowed(&path.allow).into())));
            };
            let request = Request::new(request.path, arguments, request.query, request.body);
            return Some((
                path.route,
                Begun::Answering(target.service.clone().request(target.method, request)),
            ));
        }
        match request.path {
            RPC_PATH => Some((started.rpc_route, started.upgrade(request))),
            OPENAPI_PATH => {
                let answer = if matches!(*request.method, Method::GET | Method::HEAD) {
                    json(StatusCode::OK, started.openapi.clone())
                } else {
                    not_allowed("GET,HEAD")
                };
                Some((started.openapi_route, Begun::Done(answer.into())))
            }
            _ => None,
        }
    }
}

impl Started {
    /// Agrees to a WebSocket, or says why not.
    fn upgrade(&self, request: &EndpointRequest<'_>) -> Begun {
        match upgrade::agree(request) {
            Ok((response, form)) => {
                let conversation = Conversation { conversations: self.conversations.clone(), form };
                Begun::Upgrade(Answer::from(response), Box::new(conversation))
            }
            Err(refusal) => Begun::Done((*refusal).into()),
        }
    }
}

/// Calls over one WebSocket, in the form that was agreed on.
struct Conversation {
    conversations: Arc<Conversations>,
    form: Form,
}

impl Upgrade for Conversation {
    fn run<'a>(
        self: Box<Self>,
        connection: Upgraded<'a>,
    ) -> Pin<Box<dyn Future<Output = TcpStream> + Send + 'a>> {
        Box::pin(async move { connection::run(&self.conversations, self.form, connection).await })
    }
}
