//! An airline's side of the data tier: a store whose methods are calls.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tidemark_rpc::{CallError, Calling, Client, ClientOptions, Form, WhenClosed};
use tidemark_store::bookings::{Booking, Bookings};
use tidemark_store::customers::{Customer, Customers};
use tidemark_store::sessions::{Session, Sessions};
use tidemark_store::{Answer, Durability, OwnMetric, StoreError};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use super::rows::{About, CustomerRow, NewBooking, Worth};
use super::service::{CHANGED, DataClient, INVALID};

/// Connections, each shared by many calls: they come to different workers of the data process.
const CONNECTIONS: usize = 4;
/// Threads that carry the connections on.
const THREADS: usize = 2;
/// Calls that are under way on one connection.
const IN_FLIGHT_MAX: usize = 4096;
/// Most calls that can be allowed to wait.
const WAITING_MAX: usize = 1_000_000;
/// The longest pause until a lost connection is opened again.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Until the start looks again whether the process is there.
const PAUSE_AT_START: Duration = Duration::from_millis(50);
/// Customers in one call of [`Customers::put_missing`], and their bytes.
const CUSTOMERS_PER_CALL: usize = 1024;
const CUSTOMER_BYTES_PER_CALL: usize = 128 << 10;
/// A list of bookings that changes while it is read in parts is read again so often.
const READS_MAX: usize = 16;

/// Where the data process is, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `http://HOST:PORT`; a name is looked up for each connection anew.
    pub url: String,
    /// What an acknowledged write is to be worth.
    pub durability: Durability,
    /// Most calls that are made and not answered yet; more are refused.
    pub waiting_max: usize,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// How long the start waits for a process that is not there yet.
    pub start_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            url: "http://127.0.0.1:9085".to_owned(),
            durability: Durability::default(),
            waiting_max: 8192,
            timeout: Duration::from_secs(5),
            start_timeout: Duration::from_secs(30),
        }
    }
}

impl Options {
    /// Refuses what cannot work.
    ///
    /// # Errors
    /// An address of another form, or a bound that is out of its own.
    pub fn check(&self) -> Result<(), StoreError> {
        self.authority()?;
        match (1..=WAITING_MAX).contains(&self.waiting_max) {
            true => Ok(()),
            false => Err(invalid(
                "the bound of waiting requests",
                format!("{} is not within 1 to {WAITING_MAX}", self.waiting_max),
            )),
        }
    }

    /// `HOST:PORT`.
    fn authority(&self) -> Result<&str, StoreError> {
        let authority = self.url.strip_prefix("http://").map(|rest| rest.strip_suffix('/').unwrap_or(rest));
        let is_one = |authority: &&str| {
            let Some((host, port)) = authority.rsplit_once(':') else { return false };
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            let is_host = match address {
                Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
                None => !host.is_empty() && host.chars().all(is_name),
            };
            is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
        };
        authority.filter(is_one).ok_or_else(|| {
            invalid("the address of the data process", "it is not of the form http://HOST:PORT".to_owned())
        })
    }
}

fn invalid(what: &'static str, reason: String) -> StoreError {
    StoreError::Invalid { what, reason: reason.into() }
}

/// Sessions, customers and bookings in another process, an [`AirlineData`](super::AirlineData).
pub struct DataStore {
    links: Vec<Link>,
    place: Arc<str>,
    worth: Worth,
    waiting_max: usize,
    /// One for each call that may be made and not answered.
    room: Semaphore,
    counters: Counters,
    /// Whether a call found no connection and none was answered since.
    is_away: AtomicBool,
    /// Carries the connections on.
    _threads: Threads,
}

struct Link {
    connection: Client,
    calls: DataClient,
}

#[derive(Default)]
struct Counters {
    answered: AtomicU64,
    failed: AtomicU64,
    timeouts: AtomicU64,
    refused: AtomicU64,
}

impl fmt::Debug for DataStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataStore").field("place", &self.place).finish_non_exhaustive()
    }
}

impl DataStore {
    /// Connects, waiting for a process that is not there yet. Blocks; not to be called on a thread of an async runtime.
    ///
    /// # Errors
    /// Options that cannot work, a process that is not there in time, or keeps less than was asked for.
    pub fn open(options: Options) -> Result<Arc<Self>, StoreError> {
        options.check()?;
        let authority = options.authority()?;
        let Options { durability, waiting_max, timeout, start_timeout, .. } = options;
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let builder = builder.worker_threads(THREADS).thread_name("data").enable_all();
        let runtime = builder.build().map_err(|error| no_answer(error.to_string()))?;
        let calls = ClientOptions {
            form: Form::Binary,
            in_flight_max: IN_FLIGHT_MAX,
            waiting_max,
            when_closed: WhenClosed::Fail,
            open_timeout: timeout,
            pause_max: PAUSE_MAX,
            ..ClientOptions::default()
        };
        let link = |_| {
            let connection = Client::connect(authority, calls.clone());
            Link { calls: DataClient::new(connection.clone()).deadline(timeout), connection }
        };
        let handle = runtime.handle().clone();
        let _tasks = handle.enter();
        let store = DataStore {
            links: (0..CONNECTIONS).map(link).collect(),
            place: authority.into(),
            worth: Worth(durability),
            waiting_max,
            room: Semaphore::new(waiting_max),
            counters: Counters::default(),
            is_away: AtomicBool::new(false),
            _threads: Threads(Some(runtime)),
        };
        let About { durability: Worth(given), .. } = handle.block_on(store.wait(start_timeout))?;
        if given < durability {
            return Err(StoreError::LessDurable {
                place: store.place,
                given,
                wanted: durability,
                remedy: "begin the data process with more",
            });
        }
        Ok(Arc::new(store))
    }

    /// What the process has, once it is there.
    async fn wait(&self, start_timeout: Duration) -> Result<About, StoreError> {
        let (begun, mut is_told) = (Instant::now(), false);
        loop {
            match self.links[0].calls.about().await {
                Ok(about) => return Ok(about),
                Err(error) if begun.elapsed() > start_timeout => return Err(self.meaning(error)),
                Err(error) if !std::mem::replace(&mut is_told, true) => {
                    tracing::debug!(place = &*self.place, %error, "waiting for the data process");
                }
                Err(_) => {}
            }
            tokio::time::sleep(PAUSE_AT_START).await;
        }
    }

    /// What is counted about connections and calls.
    pub fn metrics(&self) -> Vec<OwnMetric> {
        let Counters { answered, failed, timeouts, refused } = &self.counters;
        let counter = |name, help, value| OwnMetric { name, help, is_counter: true, value };
        let gauge =
            |name, help, value: usize| OwnMetric { name, help, is_counter: false, value: value as u64 };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let connected = self.links.iter().filter(|link| link.connection.is_open()).count();
        let opened = self.links.iter().map(|link| link.connection.stats().connections).sum();
        let waiting = self.waiting_max - self.room.available_permits();
        vec![
            gauge("connections", "Connections that are to be", self.links.len()),
            gauge("connected", "Connections that there are", connected),
            gauge("waiting", "Calls made and not answered", waiting),
            gauge("waiting_max", "The bound of these", self.waiting_max),
            counter("answered", "Calls that were answered", read(answered)),
            counter("failed", "Calls without an answer, or with an error for one", read(failed)),
            counter("timeouts", "Of these, those whose answer did not come in time", read(timeouts)),
            counter("refused", "Calls refused because too many waited", read(refused)),
            counter("opened", "Connections that were opened", opened),
        ]
    }

    /// Makes a call over the connection that calls with this key share, or over another while that one is gone.
    ///
    /// # Errors
    /// There is no connection, or too much waits: nothing was done. Or there was no answer, or none in time: nobody knows
    /// whether it was done.
    async fn ask<'a, A, T>(
        &'a self,
        key: u64,
        call: impl FnOnce(&'a DataClient) -> Calling<'a, A, T>,
    ) -> Result<T, StoreError>
    where
        A: Serialize + Send + 'a,
        T: DeserializeOwned + 'a,
    {
        self.try_ask(key, call).await?.map_err(|error| self.failed(error))
    }

    /// The same, with what the process or its connection said against it.
    async fn try_ask<'a, A, T>(
        &'a self,
        key: u64,
        call: impl FnOnce(&'a DataClient) -> Calling<'a, A, T>,
    ) -> Result<Result<T, CallError>, StoreError>
    where
        A: Serialize + Send + 'a,
        T: DeserializeOwned + 'a,
    {
        let Ok(_room) = self.room.try_acquire() else {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
            return Err(busy());
        };
        let own = key as usize % self.links.len();
        let in_turn = || self.links[own..].iter().chain(&self.links[..own]);
        let link = in_turn().find(|link| link.connection.is_open()).unwrap_or(&self.links[own]);
        let answer = call(&link.calls).await;
        if answer.is_ok() {
            self.counters.answered.fetch_add(1, Ordering::Relaxed);
            if self.is_away.load(Ordering::Relaxed) && self.is_away.swap(false, Ordering::Relaxed) {
                tracing::info!(place = &*self.place, "the data process answers again");
            }
        }
        Ok(answer)
    }

    /// Counts a call that failed, and says what it means.
    fn failed(&self, error: CallError) -> StoreError {
        let Counters { answered, failed, timeouts, refused } = &self.counters;
        let counter = match &error {
            CallError::Refused(refusal) if refusal.code() == INVALID => answered,
            CallError::TooManyWait(_) | CallError::NoRoom | CallError::TooLarge(_) => refused,
            _ => failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if error == CallError::Deadline {
            timeouts.fetch_add(1, Ordering::Relaxed);
        }
        let is_away = matches!(error, CallError::NotConnected(_));
        if is_away && !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::error!(place = &*self.place, %error, "requests fail until the data process is back");
        }
        tracing::debug!(%error, "a call was not done");
        self.meaning(error)
    }

    /// What a call that failed means.
    fn meaning(&self, error: CallError) -> StoreError {
        match error {
            CallError::Refused(refusal) if refusal.code() == INVALID => {
                invalid("a value", refusal.reason().to_owned())
            }
            CallError::TooLarge(_) => invalid("a value", error.to_string()),
            CallError::TooManyWait(_) | CallError::NoRoom => busy(),
            CallError::NotConnected(reason) => StoreError::Unreachable { place: self.place.clone(), reason },
            error => no_answer(error.to_string()),
        }
    }

    async fn list(&self, customer_id: &str) -> Result<Vec<Booking>, StoreError> {
        let (key, customer): (_, Arc<str>) = (key_of(customer_id), customer_id.into());
        for _ in 0..READS_MAX {
            let (mut bookings, mut of) = (Vec::new(), None);
            loop {
                let from =
                    u32::try_from(bookings.len()).map_err(|_| no_answer("the list has no end".into()))?;
                let part =
                    self.try_ask(key, |calls| calls.booking_list(customer_id.to_owned(), from, of)).await?;
                let part = match part {
                    Err(CallError::Refused(refusal)) if refusal.code() == CHANGED => break,
                    part => part.map_err(|error| self.failed(error))?,
                };
                let is_last = part.more.is_none() || part.bookings.is_empty();
                bookings.extend(part.bookings.into_iter().map(|row| row.of(customer.clone())));
                of = part.more;
                if is_last {
                    return Ok(bookings);
                }
            }
        }
        Err(StoreError::Busy { what: "a list of bookings changes faster than it is read" })
    }
}

fn busy() -> StoreError {
    StoreError::Busy { what: "as many requests wait as may" }
}

fn no_answer(reason: String) -> StoreError {
    StoreError::NoAnswer { reason: reason.into() }
}

/// Calls about one customer have one key.
fn key_of(customer_id: &str) -> u64 {
    xxh3_64(customer_id.as_bytes())
}

/// A runtime, `None` only while dropping.
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // waiting for its threads is not allowed where this may be dropped
            runtime.shutdown_background();
        }
    }
}

impl Sessions for DataStore {
    fn create(&self, session: Session) -> Answer<'_, ()> {
        let key = session.id as u64;
        Answer::boxed(self.ask(key, move |calls| calls.session_create(self.worth, session.into())))
    }

    fn find(&self, id: u128, now_ms: i64) -> Answer<'_, Option<Session>> {
        Answer::boxed(async move {
            let found = self.ask(id as u64, |calls| calls.session_find(Uuid::from_u128(id), now_ms)).await?;
            Ok(found.map(Session::from))
        })
    }

    fn remove(&self, id: u128) -> Answer<'_, bool> {
        let id = Uuid::from_u128(id);
        Answer::boxed(self.ask(id.as_u128() as u64, move |calls| calls.session_remove(self.worth, id)))
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::boxed(self.ask(0, |calls| calls.session_count()))
    }

    fn sweep(&self, now_ms: i64) -> Answer<'_, u64> {
        Answer::boxed(self.ask(0, move |calls| calls.session_sweep(self.worth, now_ms)))
    }
}

impl Customers for DataStore {
    fn find(&self, id: &str) -> Answer<'_, Option<Customer>> {
        let id = id.to_owned();
        Answer::boxed(async move {
            let found = self.ask(key_of(&id), move |calls| calls.customer_find(id)).await?;
            Ok(found.map(Customer::from))
        })
    }

    fn put(&self, customer: Customer) -> Answer<'_, ()> {
        let key = key_of(&customer.id);
        Answer::boxed(self.ask(key, move |calls| calls.customer_put(self.worth, customer.into())))
    }

    fn replace<'a>(&'a self, before: &'a Customer, after: Customer) -> Answer<'a, bool> {
        let (key, before) = (key_of(&after.id), before.clone().into());
        Answer::boxed(self.ask(key, move |calls| calls.customer_replace(self.worth, before, after.into())))
    }

    fn put_missing<'a>(
        &'a self,
        customers: Box<dyn Iterator<Item = Customer> + Send + 'a>,
    ) -> Answer<'a, u64> {
        Answer::boxed(async move {
            let mut rows = customers.map(CustomerRow::from).peekable();
            let mut stored = 0;
            while rows.peek().is_some() {
                let (mut some, mut bytes) = (Vec::new(), 0);
                while let Some(row) = rows.next_if(|row| {
                    let fits = bytes + row.bytes() <= CUSTOMER_BYTES_PER_CALL;
                    some.is_empty() || (fits && some.len() < CUSTOMERS_PER_CALL)
                }) {
                    bytes += row.bytes();
                    some.push(row);
                }
                stored += self.ask(0, |calls| calls.customer_put_missing(self.worth, some)).await?;
            }
            Ok(stored)
        })
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::boxed(self.ask(0, |calls| calls.customer_count()))
    }
}

impl Bookings for DataStore {
    fn add(&self, bookings: &[Booking]) -> Answer<'_, ()> {
        let Some(first) = bookings.first() else { return Answer::ready(Ok(())) };
        let (key, rows) = (key_of(&first.customer_id), bookings.iter().map(NewBooking::from).collect());
        Answer::boxed(self.ask(key, move |calls| calls.booking_add(self.worth, rows)))
    }

    fn of_customer(&self, customer_id: &str) -> Answer<'_, Vec<Booking>> {
        let customer_id = customer_id.to_owned();
        Answer::boxed(async move { self.list(&customer_id).await })
    }

    fn find(&self, customer_id: &str, id: u128) -> Answer<'_, Option<Booking>> {
        let customer_id: Arc<str> = customer_id.into();
        Answer::boxed(async move {
            let (key, asked) = (key_of(&customer_id), (*customer_id).to_owned());
            let found = self.ask(key, |calls| calls.booking_find(asked, Uuid::from_u128(id))).await?;
            Ok(found.map(|row| row.of(customer_id)))
        })
    }

    fn cancel(&self, customer_id: &str, id: u128) -> Answer<'_, bool> {
        let (key, customer_id) = (key_of(customer_id), customer_id.to_owned());
        Answer::boxed(
            self.ask(key, move |calls| calls.booking_cancel(self.worth, customer_id, Uuid::from_u128(id))),
        )
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::boxed(self.ask(0, |calls| calls.booking_count()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        let with = |url: &str| Options { url: url.to_owned(), ..Options::default() };
        for (url, authority) in [
            ("http://127.0.0.1:9085", "127.0.0.1:9085"),
            ("http://data-0.data:1/", "data-0.data:1"),
            ("http://[::1]:65535", "[::1]:65535"),
        ] {
            assert_eq!(with(url).authority().unwrap(), authority);
        }
        for url in [
            "",
            "127.0.0.1:9085",
            "https://h:1",
            "http://h",
            "http://:1",
            "http://h:0",
            "http://h:65536",
            "http://h:1/x",
            "http://me:secret@h:1",
            "http://::1:9085",
            "http://[x]:1",
            "http://h h:1",
        ] {
            let error = with(url).check().unwrap_err().to_string();
            assert!(error.contains("http://HOST:PORT") && !error.contains("secret"), "{url}: {error}");
        }
        assert!(Options { waiting_max: 0, ..Options::default() }.check().is_err());
    }
}
