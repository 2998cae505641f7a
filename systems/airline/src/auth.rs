//! The auth service: sessions alone, for an airline that asks it instead of a store of its own.
//!
//! | call | answer |
//! | --- | --- |
//! | `POST /rest/api/authtoken/byuserid/{userid}` | 200, a new session; nobody checks that there is such a customer |
//! | `GET /rest/api/authtoken/{tokenid}` | 200, the session; 404 for one that is unknown, has expired or is no UUID |
//! | `DELETE /rest/api/authtoken/{tokenid}` | 200, whether it was there or not |
//! | `GET /rest/api/authtoken/status` | 200 |
//!
//! All of it is also below `/acmeair-auth-service`. A request whose `x-deadline-ms` is 0 is answered 504 without work.

mod lookup;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use tidemark_mesh::{MEMBER_SETTINGS, Member, MemberSettings};
use tidemark_service::{
    Options, ReferenceSystem, Setting, SettingError, Settings, StartError, System, Timings, joined, json,
};
use tidemark_store::sessions::Session;
use uuid::Uuid;

use crate::clock::Clock;
use crate::logins::{Keeper, TOKENS, Token, timed};
use crate::refusal::Refusal;
use crate::settings::{RECORDS_MAX, SESSION_SETTINGS, STORE_SETTINGS};
use crate::store_metrics::encode_stores;
use crate::stores::Choice;
use lookup::Lookup;

/// Every path is served with and without this in front of it.
const CONTEXT: &str = "/acmeair-auth-service";
/// How often expired sessions are looked for.
const SWEEP_PERIOD: Duration = Duration::from_secs(30);
/// What is left of the time for a call, in milliseconds.
const DEADLINE: &str = "x-deadline-ms";

/// The auth service as its settings have it.
#[derive(Debug)]
pub struct AirlineAuth {
    session_ms: i64,
    sessions_max: u64,
    choice: Choice,
    member: MemberSettings,
}

const OWN: &[Setting] = &[Setting {
    name: "sessions_in",
    default: "embedded",
    allowed: "embedded, data, postgres or redis",
    help: "where sessions are kept: in this process, in the data tier, in PostgreSQL, or in Redis",
}];
const SETTINGS: &[Setting] = &joined::<
    { SESSION_SETTINGS.len() + OWN.len() + STORE_SETTINGS.len() + MEMBER_SETTINGS.len() },
>(&[SESSION_SETTINGS, OWN, STORE_SETTINGS, MEMBER_SETTINGS]);

/// A call to a store, as the metrics name it.
#[derive(Debug, Clone, Copy)]
enum Op {
    Create,
    Find,
    Remove,
}

const OPS: &[&str] = &["session_create", "session_find", "session_remove"];

impl ReferenceSystem for AirlineAuth {
    const NAME: &'static str = "airline-auth";
    const DESCRIPTION: &'static str = "the airline's sessions as a service of their own";
    const SETTINGS: &'static [Setting] = SETTINGS;

    fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        Ok(AirlineAuth {
            session_ms: settings.value::<i64>("session_hours", 1..=8760)? * 3_600_000,
            sessions_max: settings.value("sessions_max", 1..=RECORDS_MAX)?,
            choice: Choice::of_sessions(settings)?,
            member: MemberSettings::read(settings)?,
        })
    }

    fn uses_directory(&self) -> bool {
        self.choice.is_here()
    }

    fn start(self, options: &Options) -> Result<System, StartError> {
        let opened = Arc::new(self.choice.clone().open(options.data_dir.as_deref(), options.durability)?);
        let store = opened.sessions();
        let help = "Time that a call to a store took, until its promise was kept, in seconds";
        let auth = Arc::new(Service {
            keeper: Keeper::new(store, Clock::System, self.session_ms, self.sessions_max),
            timings: Arc::new(Timings::new("airline_auth_store_seconds", help, "op", OPS)),
        });
        tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(auth.keeper.sweep());
        let is_here = self.choice.is_here();
        let mut system = System::new(router(auth.clone()))
            .endpoint(Lookup::new(auth.clone(), is_here))
            .metrics(auth.timings.clone())
            .counters(move |encoder| encode_stores(encoder, &opened))
            .background(sweep(auth));
        if let Some(registry) = self.member.registry {
            let member = Member::new(registry, Self::NAME, self.member.lease);
            let leaving = member.clone();
            system = system.once_serving(move |local| member.keep(local)).before_stop(leaving.leave());
        }
        Ok(system)
    }
}

async fn sweep(auth: Arc<Service>) {
    loop {
        tokio::time::sleep(SWEEP_PERIOD).await;
        auth.keeper.sweep().await;
    }
}

/// What all handlers share.
struct Service {
    keeper: Keeper,
    timings: Arc<Timings>,
}

type Answer = Result<Response, Refusal>;

fn router(auth: Arc<Service>) -> Router {
    ["", CONTEXT]
        .into_iter()
        .fold(Router::new(), |router, context| {
            let path = |rest: &str| format!("{context}{TOKENS}{rest}");
            router
                .route(&path("status"), get(status))
                .route(&path("byuserid/{userid}"), post(create))
                .route(&path("{tokenid}"), get(find).delete(remove))
        })
        .with_state(auth)
}

async fn status() -> Response {
    json(StatusCode::OK, r#"{"status":"OK"}"#)
}

/// Until when there is time for a call, where its client says that.
fn deadline_of(headers: &HeaderMap) -> Result<Option<Instant>, Refusal> {
    let text = headers.get(DEADLINE).and_then(|value| value.to_str().ok());
    match text.and_then(|text| text.parse::<u64>().ok()) {
        Some(0) => Err(too_late()),
        Some(ms) => Ok(Instant::now().checked_add(Duration::from_millis(ms))),
        None => Ok(None),
    }
}

fn too_late() -> Refusal {
    Refusal::new(StatusCode::GATEWAY_TIMEOUT, "the time for the call is over; nothing was done")
}

fn shown(session: &Session) -> Vec<u8> {
    let mut buffer = Uuid::encode_buffer();
    let id: &str = Uuid::from_u128(session.id).hyphenated().encode_lower(&mut buffer);
    let Session { customer_id, created_ms, expires_ms, .. } = session;
    let (created_ms, expires_ms) = (*created_ms, *expires_ms);
    let token = Token { id, plain_id: id, customerid: (&**customer_id).into(), created_ms, expires_ms };
    // texts and numbers always serialise
    serde_json::to_vec(&token).unwrap_or_default()
}

async fn create(
    State(auth): State<Arc<Service>>,
    Path(customer): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let deadline = deadline_of(&headers)?;
    let session = auth.keeper.new_session(&customer).await?;
    // to count sessions can take long
    if deadline.is_some_and(|deadline| Instant::now() > deadline) {
        return Err(too_late());
    }
    let body = shown(&session);
    timed(&auth.timings, Op::Create as usize, auth.keeper.store.create(session)).await?;
    Ok(json(StatusCode::OK, body))
}

async fn find(State(auth): State<Arc<Service>>, Path(id): Path<String>, headers: HeaderMap) -> Answer {
    deadline_of(&headers)?;
    let found = match Uuid::try_parse(&id) {
        Ok(id) => {
            let found = auth.keeper.store.find(id.as_u128(), auth.keeper.clock.now_ms());
            timed(&auth.timings, Op::Find as usize, found).await?
        }
        Err(_) => None,
    };
    match found {
        Some(session) => Ok(json(StatusCode::OK, shown(&session))),
        None => Err(Refusal::new(StatusCode::NOT_FOUND, UNKNOWN)),
    }
}

const UNKNOWN: &str = "there is no such session, or it has expired";

async fn remove(State(auth): State<Arc<Service>>, Path(id): Path<String>, headers: HeaderMap) -> Answer {
    deadline_of(&headers)?;
    if let Ok(id) = Uuid::try_parse(&id) {
        timed(&auth.timings, Op::Remove as usize, auth.keeper.store.remove(id.as_u128())).await?;
    }
    Ok(json(StatusCode::OK, "{}"))
}
