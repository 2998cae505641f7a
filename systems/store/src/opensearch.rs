//! An index over stories in OpenSearch, in Elasticsearch 7 or later, or in Solr, over HTTP.
//!
//! ```no_run
//! use tidemark_store::opensearch::{OpenSearch, Options};
//! use tidemark_store::search::Search;
//!
//! # async fn example() -> Result<(), tidemark_store::StoreError> {
//! let index = OpenSearch::open(Options { url: "http://127.0.0.1:9200".into(), ..Options::default() })?;
//! let posters = index.posters("rain snow", 100).await?; // who has posted a story with either
//! # Ok(()) }
//! ```
//!
//! A story is one document, as published: `id`, `sender` and `story`, whose words the standard analyzer tells apart. Its
//! key is the post's, so that the same again changes nothing. OpenSearch's index is made where it is not there, and shows
//! what is new within a second. Solr's core is there already, and shows what is acknowledged ([`Engine`]).
//!
//! **Adding** is grouped: stories that gather while a request is under way go with the next one, each acknowledged as
//! the server says of it. **Searching** is one request: the words, any of them, the newest story of each poster.
//!
//! **When it does not answer** requests fail at once after two that did, and one a second is let through to see. So it
//! is when no connection is left; each is made anew until it works.

mod breaker;
mod bulk;
mod engine;
mod http;
mod options;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::answer::Answer;
use crate::error::StoreError;
use crate::feeds::{Post, PostId, check};
use crate::links::{Links, THREADS};
use crate::metrics::{OwnMetric, StoreMetrics};
use crate::remote::Writes;
use crate::search::{POSTERS_MAX, Search, WORDS_MAX};
use crate::threads::Threads;

use breaker::Breaker;
use bulk::Bulk;
pub use engine::Engine;
use engine::Question;
use http::{Answered, Connector};
pub use options::Options;

/// Letters of a query; those behind them are not looked for. No more words than a server takes.
const LETTERS_MAX: usize = 1_000;

/// The server, asked in bounds.
struct Server {
    engine: Engine,
    links: Arc<Links<Connector>>,
    breaker: Breaker,
    /// Requests refused while it did not answer.
    broken: AtomicU64,
    requests: AtomicU64,
}

impl Server {
    async fn ask(&self, (method, target, kind, body): Question) -> Result<Answered, StoreError> {
        if !self.breaker.lets_through(Instant::now()) {
            self.broken.fetch_add(1, Ordering::Relaxed);
            let reason = "it did not answer, and is asked once a second until it does".into();
            return Err(StoreError::Unreachable { place: self.links.place(), reason });
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        let asked = self.links.ask(async |http| http.send(method, &target, kind, body).await).await;
        let well = match &asked {
            Ok((status, _)) => !status.is_server_error(),
            // it was not asked
            Err(StoreError::Busy { .. }) => return asked,
            Err(_) => false,
        };
        if self.breaker.ended(well, Instant::now()) {
            tracing::error!(place = %self.links.place(), "no answers: requests fail at once until there are some");
        }
        asked
    }
}

/// An index in OpenSearch.
pub struct OpenSearch {
    server: Arc<Server>,
    bulk: Bulk,
    index: String,
    timeout: Duration,
    writes: Writes,
    /// Reads and writes the connections.
    _threads: Threads,
}

impl OpenSearch {
    /// Connects, waiting for a server that is not there yet, and makes the index if need be. Blocks; not to be called on
    /// a thread of an async runtime.
    ///
    /// # Errors
    /// Options that cannot work, a server that is not there in time or refuses.
    pub fn open(options: Options) -> Result<Arc<Self>, StoreError> {
        options.check()?;
        let threads = Threads::new(THREADS, "opensearch")?;
        let Options { engine, index, timeout, waiting_max, .. } = options.clone();
        let connector = Connector { engine, address: options.address()?, index: index.clone(), timeout };
        let links = threads.block_on(Links::start(connector, options.bounds()))?;
        let server = Arc::new(Server {
            engine,
            links,
            breaker: Breaker::default(),
            broken: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        });
        let (bulk, sender) = Bulk::new(waiting_max);
        threads.spawn(sender.work(server.clone(), index.clone()));
        let writes = Writes::default();
        Ok(Arc::new(OpenSearch { server, bulk, index, timeout, writes, _threads: threads }))
    }

    async fn find(&self, keywords: String, limit: usize) -> Result<Vec<u64>, StoreError> {
        let engine = self.server.engine;
        let question = engine.find(&self.index, &keywords, limit.min(POSTERS_MAX));
        let (status, body) = self.server.ask(question).await?;
        engine.posters(status, &body)
    }
}

/// An id as a document has it: in the order of the ids.
fn id_text(PostId { at_us, server }: PostId) -> String {
    format!("{at_us:016x}-{server:016x}")
}

/// The beginning of a text, with as many words as are looked for.
fn first_words(text: &str) -> &str {
    let (mut words, mut inside) = (0, false);
    for (count, (at, letter)) in text.char_indices().enumerate() {
        let begins = letter.is_alphanumeric() && !inside;
        inside = letter.is_alphanumeric();
        words += usize::from(begins);
        if words > WORDS_MAX || count == LETTERS_MAX {
            return &text[..at];
        }
    }
    text
}

impl Search for OpenSearch {
    fn add(&self, post: &Post) -> Answer<'_, ()> {
        let taken = check(post).and_then(|()| self.bulk.take(self.server.engine.story(&self.index, post)));
        let answered = match taken {
            Ok(answered) => answered,
            Err(error) => {
                self.writes.refused();
                return Answer::ready(Err(error));
            }
        };
        Answer::boxed(async move {
            let begun = Instant::now();
            let longest = bulk::longest(self.timeout);
            let outcome = match tokio::time::timeout(longest, answered).await {
                Ok(outcome) => outcome.unwrap_or(Err(StoreError::Closed)),
                Err(_) => Err(StoreError::no_answer(format!("the story was not indexed for {longest:?}"))),
            };
            self.writes.answered(begun.elapsed(), outcome.is_ok());
            outcome
        })
    }

    fn posters(&self, keywords: &str, limit: usize) -> Answer<'_, Vec<u64>> {
        let keywords = first_words(keywords).to_owned();
        Answer::boxed(self.find(keywords, limit))
    }

    fn metrics(&self) -> StoreMetrics {
        let own = |name, help, is_counter, value| OwnMetric { name, help, is_counter, value };
        let mut all = self.server.links.metrics();
        let Server { breaker, broken, requests, .. } = &*self.server;
        all.extend([
            own("stories_waiting", "Stories that wait to be sent", false, self.bulk.waiting() as u64),
            own("requests", "Requests sent", true, requests.load(Ordering::Relaxed)),
            own(
                "broken",
                "1 while requests fail at once, since there were no answers",
                false,
                u64::from(breaker.is_open()),
            ),
            own("broken_refused", "Requests that failed for that", true, broken.load(Ordering::Relaxed)),
        ]);
        let counted = self.writes.snapshot();
        all.extend([
            own("stories", "Stories that the server has indexed", true, counted.writes),
            own("stories_failed", "Stories that it did not acknowledge", true, counted.failed),
            own("stories_refused", "Stories refused because too many waited", true, counted.refused),
        ]);
        StoreMetrics { own: all, ..counted }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn ids_as_texts_have_their_order() {
        let id = |at_us, server| id_text(PostId { at_us, server });
        assert!(id(9, u64::MAX) < id(10, 0) && id(10, 9) < id(10, 10) && id(u64::MAX, 0) > id(1 << 40, 0));
    }

    #[test]
    fn a_query_has_so_many_words_and_letters() {
        let words = "wörd, ".repeat(WORDS_MAX + 1);
        assert_eq!(first_words(&words).matches("wörd").count(), WORDS_MAX);
        assert_eq!(first_words(&"雨".repeat(5_000)).chars().count(), LETTERS_MAX);
        assert_eq!(first_words("don't"), "don't");
    }

    #[test]
    fn a_server_that_is_not_there_is_named() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        drop(taken);
        let url = format!("http://{address}");
        let options = Options { url, start_timeout: Duration::from_millis(10), ..Options::default() };
        let Err(error) = OpenSearch::open(options) else { panic!("nobody listens there") };
        assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }

    /// A server that has the index, and answers searches only while it is well.
    fn serve(is_well: Arc<AtomicBool>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let converse = move |mut stream: TcpStream, is_well: &AtomicBool| {
            let mut question = [0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut question) {
                let is_search = question[..length].starts_with(b"POST");
                let body = if is_search { r#"{"timed_out":false}"# } else { "" };
                if !is_search || is_well.load(Ordering::SeqCst) {
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                    stream.write_all(answer.as_bytes()).unwrap();
                }
            }
        };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let is_well = is_well.clone();
                std::thread::spawn(move || converse(stream.unwrap(), &is_well));
            }
        });
        format!("http://{address}")
    }

    #[test]
    fn while_it_does_not_answer_requests_fail_at_once_until_it_does() {
        let is_well = Arc::new(AtomicBool::new(true));
        let url = serve(is_well.clone());
        let options = Options { url, timeout: Duration::from_millis(500), ..Options::default() };
        let index = OpenSearch::open(options).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let search = || runtime.block_on(Search::posters(&*index, "rain", 10));
        let refused = || index.server.broken.load(Ordering::Relaxed);
        assert_eq!((search().unwrap().len(), refused()), (0, 0));
        is_well.store(false, Ordering::SeqCst);
        while refused() == 0 {
            let error = search().unwrap_err();
            assert!(matches!(error, StoreError::NoAnswer { .. } | StoreError::Unreachable { .. }), "{error}");
        }
        is_well.store(true, Ordering::SeqCst);
        while search().is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!index.server.breaker.is_open());
    }
}
