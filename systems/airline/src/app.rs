//! What all handlers share: the stores, the flights, the clock; and who is asking.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use tidemark_service::Timings;
use tidemark_store::StoreError;
use tidemark_store::sessions::Session;
use uuid::Uuid;

use crate::clock::Clock;
use crate::customers::generated;
use crate::flights::Flights;
use crate::gate::Gate;
use crate::logins::{Auth, Keeper, Logins, timed};
use crate::refusal::Refusal;
use crate::settings::Airline;
use crate::stores::{Opened, Stores};

/// How often expired sessions are looked for, and how often the calendar.
const SWEEP_PERIOD: Duration = Duration::from_secs(30);
/// Customers stored in one go by the loader.
const LOAD_CHUNK: u64 = 1024;
/// Changes of profiles that may be under way at a time; two customers rarely meet.
const CHANGES: usize = 1024;

/// A call to a store, as the metrics name it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    SessionCreate,
    SessionFind,
    SessionRemove,
    CustomerFind,
    CustomerPut,
    BookingAdd,
    BookingList,
    BookingFind,
    BookingCancel,
    FlightQuery,
    FlightFind,
}

pub(crate) const OPS: &[&str] = &[
    "session_create",
    "session_find",
    "session_remove",
    "customer_find",
    "customer_put",
    "booking_add",
    "booking_list",
    "booking_find",
    "booking_cancel",
    "flight_query",
    "flight_find",
];

/// The airline behind its routes.
pub(crate) struct App {
    pub(crate) store: Stores,
    pub(crate) opened: Arc<Opened>,
    pub(crate) flights: Flights,
    /// Whether every booking has its whole flight in it.
    pub(crate) nests_flights: bool,
    pub(crate) clock: Clock,
    pub(crate) timings: Arc<Timings>,
    pub(crate) logins: Logins,
    /// Closed while there are too many bookings.
    pub(crate) bookings: Gate,
    /// How many customers a load makes that does not say how many.
    pub(crate) load_customers: AtomicU64,
    loading: tokio::sync::Mutex<()>,
    changing: Box<[tokio::sync::Mutex<()>]>,
    hasher: RandomState,
}

impl App {
    /// `auth` asks the auth service, where sessions are there.
    pub(crate) fn new(opened: Arc<Opened>, airline: &Airline, auth: Option<Auth>) -> Self {
        let help = "Time that a call to a store took, until its promise was kept, in seconds";
        let clock = airline.clock.clone();
        let here = || Keeper::new(opened.sessions(), clock.clone(), airline.session_ms, airline.sessions_max);
        let timings = Arc::new(Timings::new("airline_store_seconds", help, "op", OPS));
        let now_ms = airline.clock.now_ms();
        App {
            logins: auth.map_or_else(|| Logins::Here(here()), Logins::Auth),
            store: opened.stores(),
            flights: Flights::new(
                opened.flights(),
                airline.days,
                now_ms,
                airline.flight_cache,
                timings.clone(),
            ),
            opened,
            nests_flights: airline.nests_flights,
            clock,
            timings,
            bookings: Gate::new(airline.bookings_max),
            load_customers: AtomicU64::new(airline.customers),
            loading: tokio::sync::Mutex::new(()),
            changing: (0..CHANGES).map(|_| tokio::sync::Mutex::new(())).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Waits until nobody else changes this customer's profile here, and keeps others from it: of two at the same time one
    /// would have to begin anew, as it must where another airline was first.
    pub(crate) async fn change_profile(&self, customer_id: &str) -> tokio::sync::MutexGuard<'_, ()> {
        self.changing[self.hasher.hash_one(customer_id) as usize % CHANGES].lock().await
    }

    /// Awaits a store's answer and enters how long it took.
    pub(crate) async fn timed<T>(
        &self,
        op: Op,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Refusal> {
        timed(&self.timings, op as usize, answer).await
    }

    /// Begins a session for a customer.
    pub(crate) async fn begin_session(&self, customer_id: &str) -> Result<Uuid, Refusal> {
        let keeper = match &self.logins {
            Logins::Here(keeper) => keeper,
            Logins::Auth(auth) => return auth.begin(customer_id).await,
        };
        let session = keeper.new_session(customer_id).await?;
        let id = Uuid::from_u128(session.id);
        self.timed(Op::SessionCreate, keeper.store.create(session)).await?;
        Ok(id)
    }

    /// Ends a session, if there is one with this id.
    pub(crate) async fn end_session(&self, id: u128) -> Result<(), Refusal> {
        match &self.logins {
            Logins::Here(keeper) => self.timed(Op::SessionRemove, keeper.store.remove(id)).await.map(drop),
            Logins::Auth(auth) => auth.end(id).await,
        }
    }

    /// The session of the client that sent these headers; 403 without a valid one.
    pub(crate) async fn session(&self, headers: &HeaderMap) -> Result<Session, Refusal> {
        let Some(id) = session_id(headers) else {
            return Err(Refusal::forbidden(
                "not logged in: there is no session cookie, or it is not a session id",
            ));
        };
        let session = match &self.logins {
            Logins::Here(keeper) => {
                self.timed(Op::SessionFind, keeper.store.find(id, self.clock.now_ms())).await?
            }
            Logins::Auth(auth) => auth.find(id, self.clock.now_ms()).await?,
        };
        session.ok_or_else(|| Refusal::forbidden("not logged in: the session is unknown or has expired"))
    }

    /// Stores those flights and of the first `customers` generated customers that are not there yet. One load at a time.
    ///
    /// What is there is left as it is, so a second load changes nothing, and a customer who has changed his
    /// address keeps it.
    pub(crate) async fn load(&self, customers: u64) -> Result<u64, StoreError> {
        let _one_at_a_time = self.loading.lock().await;
        self.flights.load().await?;
        let store = &self.store.customers;
        let mut made = 0;
        for begin in (0..customers).step_by(LOAD_CHUNK as usize) {
            let numbers = begin..customers.min(begin + LOAD_CHUNK);
            made += store.put_missing(Box::new(numbers.map(generated))).await?;
            // Lets requests through between chunks.
            tokio::task::yield_now().await;
        }
        self.load_customers.store(customers, Ordering::Relaxed);
        Ok(made)
    }

    /// Sweeps expired sessions and follows the calendar, for ever.
    pub(crate) async fn keep_house(self: Arc<Self>) {
        loop {
            tokio::time::sleep(SWEEP_PERIOD).await;
            self.flights.follow(self.clock.now_ms()).await;
            self.sweep().await;
        }
    }

    /// Removes all sessions that have expired, where they are this airline's own.
    pub(crate) async fn sweep(&self) {
        if let Logins::Here(keeper) = &self.logins {
            keeper.sweep().await;
        }
    }
}

/// The id in the cookie `sessionid`, if there is one of the right form. Of several the first counts.
pub(crate) fn session_id(headers: &HeaderMap) -> Option<u128> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies.flat_map(|value| value.split(';')).find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        if name.trim() != "sessionid" {
            return None;
        }
        Uuid::try_parse(value.trim().trim_matches('"')).ok().map(|id| id.as_u128())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_is_found_among_other_cookies() {
        let id = Uuid::from_u128(0x1234_5678_9abc_def0);
        let with = |cookies: &[&str]| {
            let mut headers = HeaderMap::new();
            for cookie in cookies {
                headers.append(header::COOKIE, cookie.parse().unwrap());
            }
            session_id(&headers)
        };
        let own = format!("sessionid={id}");
        assert_eq!(with(&[&own]), Some(id.as_u128()));
        assert_eq!(
            with(&["a=b; x", &format!("loggedinuser=uid0%40email.com;{own} ; c=d")]),
            Some(id.as_u128())
        );
        assert_eq!(with(&[&format!("sessionid=\"{id}\"")]), Some(id.as_u128()));
        assert_eq!(with(&[&format!("sessionid=; {own}")]), Some(id.as_u128()));
        assert_eq!(with(&["sessionid="]), None);
        assert_eq!(with(&["sessionid=0; notsessionid=1"]), None);
        assert_eq!(with(&[&format!("xsessionid={id}")]), None);
        assert_eq!(with(&[]), None);
    }
}
