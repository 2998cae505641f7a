//! Event streams: whoever has their inbound feed open is told of each post that comes into it.
//!
//! A stream is of this process: posts that another server took are not told on it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use bytes::Bytes;
use http_body::Frame;
use parking_lot::Mutex;
use tidemark_store::feeds::{Delivery, Post};
use tokio::sync::mpsc;
use tokio::time::{Interval, interval};

use crate::ids::{cursor_of, day_of};
use crate::refusal::Refusal;
use crate::shapes::{PostShape, json_of};

/// Events that wait for the client of a stream; when there are more it is told to read its feed anew.
const WAITING_MAX: usize = 64;
/// A stream without events sends a comment so often, so that everybody on the way knows that it is alive.
const BEAT: Duration = Duration::from_secs(15);
/// What a client is told that has missed events.
const RELOAD: &[u8] = b"event: reload\ndata: {}\n\n";

/// What a stream is told. Its JSON is made when it is sent: a post that many streams wait with is held once.
enum Event {
    Post(Arc<Post>),
    Reload,
}

type Sender = mpsc::Sender<Event>;

#[derive(Default)]
struct Streams {
    /// By reader, then by number.
    open: HashMap<u64, Vec<(u64, Sender)>>,
    /// The server stops: none begins.
    ended: bool,
}

/// All streams of this process.
pub(crate) struct Live {
    streams: Mutex<Streams>,
    open: AtomicUsize,
    next: AtomicUsize,
    max: usize,
}

impl Live {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Live {
            streams: Mutex::default(),
            open: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            max,
        })
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Begins a stream for a reader.
    pub(crate) fn begin(self: &Arc<Self>, reader: u64) -> Result<Response<Body>, Refusal> {
        if self.open.fetch_add(1, Ordering::Relaxed) >= self.max {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return Err(Refusal::unavailable("as many event streams are open as may be; try again later"));
        }
        // one more than is sent, for the word that some were not
        let (sender, receiver) = mpsc::channel(WAITING_MAX + 1);
        let number = self.next.fetch_add(1, Ordering::Relaxed) as u64;
        {
            let mut streams = self.streams.lock();
            if streams.ended {
                self.open.fetch_sub(1, Ordering::Relaxed);
                return Err(Refusal::unavailable("the server stops"));
            }
            streams.open.entry(reader).or_default().push((number, sender));
        }
        let events = Events { live: self.clone(), reader, number, receiver, beat: interval(BEAT) };
        let mut response = Response::new(Body::new(events));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    /// Tells those readers of a post who are listening.
    pub(crate) fn tell(&self, Delivery { post, readers }: &Delivery) {
        if self.open() == 0 {
            return;
        }
        let streams = self.streams.lock();
        for reader in readers.iter() {
            let Some(listening) = streams.open.get(reader) else { continue };
            for (_, sender) in listening {
                let event = match sender.capacity() {
                    0 => continue,
                    1 => Event::Reload,
                    _ => Event::Post(post.clone()),
                };
                // who has just gone hears nothing
                let _ = sender.try_send(event);
            }
        }
    }

    /// Ends all streams.
    pub(crate) fn end(&self) {
        let mut streams = self.streams.lock();
        streams.ended = true;
        streams.open.clear();
    }
}

/// Ends all streams when it is dropped.
pub(crate) struct EndWith(pub(crate) Arc<Live>);

impl Drop for EndWith {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A post as a reader's stream tells it.
fn text_of(post: &Post, reader: u64) -> Bytes {
    let json = json_of(&PostShape::inbound(post, reader, &day_of(post.id.at_us)));
    let json = String::from_utf8_lossy(&json);
    Bytes::from(format!("id: {}\nevent: post\ndata: {json}\n\n", cursor_of(post.id)))
}

/// The body of a stream.
struct Events {
    live: Arc<Live>,
    reader: u64,
    number: u64,
    receiver: mpsc::Receiver<Event>,
    beat: Interval,
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(event) = self.receiver.poll_recv(context) {
            let text = |event| match event {
                Event::Post(post) => text_of(&post, self.reader),
                Event::Reload => Bytes::from_static(RELOAD),
            };
            return Poll::Ready(event.map(|event| Ok(Frame::data(text(event)))));
        }
        // the first beat is at once: the client knows that it listens
        self.beat.poll_tick(context).map(|_| Some(Ok(Frame::data(Bytes::from_static(b": alive\n\n")))))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.live.open.fetch_sub(1, Ordering::Relaxed);
        let mut streams = self.live.streams.lock();
        if let Some(listening) = streams.open.get_mut(&self.reader) {
            listening.retain(|(number, _)| *number != self.number);
            if listening.is_empty() {
                streams.open.remove(&self.reader);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tidemark_store::feeds::PostId;

    use super::*;

    fn delivery(at_us: u64, readers: &[u64]) -> Delivery {
        let post =
            Post { id: PostId { at_us, server: 1 }, poster: 9, subject: "s".into(), story: "a\nb".into() };
        Delivery { post: post.into(), readers: readers.into() }
    }

    async fn next(body: &mut Body) -> Option<String> {
        let frame = poll_fn(|context| http_body::Body::poll_frame(Pin::new(&mut *body), context)).await?;
        Some(String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_stream_has_what_comes_for_its_reader_and_ends_with_the_server() {
        let live = Live::new(10);
        let mut body = live.begin(1).unwrap().into_body();
        assert_eq!(next(&mut body).await.as_deref(), Some(": alive\n\n"));
        live.tell(&delivery(16, &[2, 3]));
        live.tell(&delivery(17, &[2, 1]));
        let event = next(&mut body).await.unwrap();
        assert!(event.starts_with("id: 11-1\nevent: post\ndata: {") && event.ends_with("}\n\n"), "{event}");
        assert!(event.contains(r#""to":"/participant/1""#) && event.lines().count() == 4, "{event}");
        live.end();
        assert_eq!(next(&mut body).await, None);
        assert!(live.begin(1).is_err(), "none begins behind the end");
        drop(body);
        assert_eq!(live.open(), 0);
    }

    #[tokio::test]
    async fn who_does_not_read_is_told_to_and_more_streams_than_may_be_are_refused() {
        let live = Live::new(1);
        let mut body = live.begin(1).unwrap().into_body();
        assert!(live.begin(2).is_err() && live.open() == 1);
        (0..100).for_each(|at_us| live.tell(&delivery(at_us, &[1])));
        for _ in 0..WAITING_MAX {
            assert!(next(&mut body).await.unwrap().contains("event: post"));
        }
        assert_eq!(next(&mut body).await.unwrap().as_bytes(), RELOAD);
        live.tell(&delivery(200, &[1]));
        assert!(next(&mut body).await.unwrap().contains("id: c8-1"));
        drop(body);
        assert!(live.begin(2).is_ok());
    }
}
