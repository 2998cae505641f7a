//! The connection of a client: opens it, sends what callers collect, hands answers out, and opens it again.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tidemark_wire::http1::{DecoderLimits, ResponseDecoder};
use tidemark_wire::rpc::Greeting;
use tidemark_wire::websocket::{self, Decoder, Event, Kind, Role, handshake};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::ClientOptions;
use super::state::{Phase, Shared};
use super::wake::wake_all;

/// Read at once.
const READ_BYTES: usize = 256 << 10;
/// Bytes of the answer to a handshake.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Bytes of a frame of answers; the server's own frames keep within less.
const FRAME_BYTES_MAX: usize = 4 << 20;
/// Deadlines are looked after no more often.
const DEADLINE_TICK: Duration = Duration::from_millis(1);
/// With so much that the server has not taken, its pings go unanswered.
const UNSENT_BYTES_PONG: usize = 64 << 10;
/// Where there is no deadline to look after.
const FAR: Duration = Duration::from_secs(3600);
/// How long the last words of a connection may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Keeps a connection until there are no clients any more.
pub(super) async fn run(shared: Arc<Shared>, addr: String) {
    let mut failures = 0;
    loop {
        let opened = tokio::select! {
            opened = tokio::time::timeout(shared.options.open_timeout, open(&addr, &shared.options)) => opened,
            () = until_left(&shared) => return,
        };
        let why = match opened {
            Err(_) => format!("{addr} did not answer within {:?}", shared.options.open_timeout),
            Ok(Err(why)) => why,
            Ok(Ok((connection, greeting))) => {
                failures = 0;
                serve(&shared, connection, greeting).await
            }
        };
        tracing::debug!(addr, why, "no connection");
        let is_left = shared.state().is_left;
        let pause = shared.options.pause.filter(|_| !is_left);
        let why: Arc<str> = why.into();
        let phase = if pause.is_some() { Phase::Opening(why) } else { Phase::Closed(why) };
        let mut wakers = shared.state().cut(phase);
        wake_all(&mut wakers);
        let Some(pause) = pause else { return };
        let pause = pause.saturating_mul(1 << failures).min(shared.options.pause_max);
        failures = (failures + 1).min(16);
        // clients that were cut off together do not come back together
        let pause = pause.mul_f64(0.5 + fastrand::f64() / 2.0);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = until_left(&shared) => return,
        }
    }
}

async fn until_left(shared: &Shared) {
    poll_fn(|context| {
        let mut state = shared.state();
        if state.is_left {
            return Poll::Ready(());
        }
        state.task = Some(context.waker().clone());
        Poll::Pending
    })
    .await;
}

/// Connects, shakes hands, and reads the greeting.
async fn open(addr: &str, options: &ClientOptions) -> Result<(Connection, Greeting), String> {
    let text = |error: io::Error| format!("{addr}: {error}");
    let mut stream = TcpStream::connect(addr).await.map_err(text)?;
    stream.set_nodelay(true).map_err(text)?;
    let key = handshake::key(fastrand::u128(..).to_ne_bytes());
    let protocols = [options.form.protocol()];
    let mut request = Vec::new();
    handshake::write_request(&mut request, options.path.as_bytes(), addr.as_bytes(), &key, &protocols)
        .map_err(|error| format!("the path {:?} cannot be asked for: {error}", options.path))?;
    stream.write_all(&request).await.map_err(text)?;

    let mut answer = ResponseDecoder::new(DecoderLimits::default());
    answer.start(false, true);
    let mut input = vec![0; HEAD_BYTES_MAX];
    let mut filled = 0;
    let mut taken = 0;
    loop {
        let got = stream.read(&mut input[filled..]).await.map_err(text)?;
        if got == 0 {
            return Err(format!("{addr} closed the connection during the handshake"));
        }
        filled += got;
        let decoded = answer.decode(&input[taken..filled]).map_err(|error| format!("{addr}: {error}"))?;
        taken += decoded.consumed;
        if decoded.complete {
            break;
        }
    }
    handshake::check_answer(&answer, &key, &protocols).map_err(|error| {
        let body = String::from_utf8_lossy(answer.body());
        format!("{addr} is not a service of ours at {}: {error} {body}", options.path)
    })?;
    let rest = &input[taken..filled];
    let mut connection = Connection::new(stream);
    let greeting = connection.greeting(rest).await.map_err(|why| format!("{addr}: {why}"))?;
    Ok((connection, greeting))
}

struct Connection {
    stream: TcpStream,
    decoder: Decoder,
    input: Box<[u8]>,
    /// Bytes of `input` that are decoded, and that are there.
    decoded: usize,
    filled: usize,
    out: Vec<u8>,
    sent: usize,
    sleep: Pin<Box<Sleep>>,
    wakes_at: Instant,
    /// What is collected was left alone once, so that others could add to it.
    has_settled: bool,
    wakers: VecDeque<Waker>,
}

/// Calls until the connection ends; why it did.
async fn serve(shared: &Shared, mut connection: Connection, greeting: Greeting) -> String {
    shared.state().open(greeting, shared.options.in_flight_max);
    let why = poll_fn(|context| match connection.advance(context, shared) {
        Ok(()) => Poll::Pending,
        Err(why) => Poll::Ready(why),
    })
    .await;
    wake_all(&mut connection.wakers);
    let key = shared.state().key();
    let code = if shared.state().is_left { websocket::NORMAL } else { websocket::PROTOCOL_ERROR };
    websocket::write_close(&mut connection.out, Some(code), &why, Some(key));
    // the server may be gone already
    let last = connection.stream.write_all(&connection.out[connection.sent..]);
    let _ = tokio::time::timeout(LAST_WORDS, last).await;
    why
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        let limits = websocket::Limits { frame_bytes: FRAME_BYTES_MAX, message_bytes: FRAME_BYTES_MAX };
        Connection {
            stream,
            decoder: Decoder::new(Role::Client, limits),
            input: vec![0; READ_BYTES].into(),
            decoded: 0,
            filled: 0,
            out: Vec::new(),
            sent: 0,
            sleep: Box::pin(tokio::time::sleep(FAR)),
            wakes_at: Instant::now() + FAR,
            has_settled: false,
            wakers: VecDeque::new(),
        }
    }

    /// The server's first frame.
    async fn greeting(&mut self, rest: &[u8]) -> Result<Greeting, String> {
        self.input[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
        loop {
            let decoded = self.decoder.decode(&self.input[self.decoded..self.filled]);
            let decoded = decoded.map_err(|error| error.to_string())?;
            self.decoded += decoded.consumed;
            match decoded.event {
                Some(Event::Message(Kind::Binary)) => {
                    return Greeting::read(self.decoder.message()).map_err(|error| error.to_string());
                }
                Some(Event::Close) => return Err(self.closed()),
                Some(_) => {}
                None => {
                    self.filled =
                        self.stream.read(&mut self.input).await.map_err(|error| error.to_string())?;
                    self.decoded = 0;
                    if self.filled == 0 {
                        return Err("closed before its greeting".into());
                    }
                }
            }
        }
    }

    /// Why the server closed.
    fn closed(&self) -> String {
        let (code, reason) = (self.decoder.close_code().unwrap_or_default(), self.decoder.close_reason());
        format!("the server closed the connection: {code} {reason}")
    }

    fn advance(&mut self, context: &mut Context<'_>, shared: &Shared) -> Result<(), String> {
        {
            let mut state = shared.state();
            if !state.task.as_ref().is_some_and(|task| task.will_wake(context.waker())) {
                state.task = Some(context.waker().clone());
            }
            if state.is_left {
                return Err("the client is gone".into());
            }
        }
        self.write(context, shared)?;
        while let Poll::Ready(got) = self.poll_read(context) {
            if got.map_err(|error| error.to_string())? == 0 {
                return Err("the server closed the connection".into());
            }
            self.deliver(shared)?;
        }
        if self.sent < self.out.len() {
            // the answers to pings, which nothing else may follow for long
            self.write(context, shared)?;
        }
        self.look_after_time(context, shared)
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        debug_assert!(self.decoded == self.filled);
        if self.input.is_empty() {
            return Poll::Pending;
        }
        let mut buffer = ReadBuf::new(&mut self.input);
        match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(result) => {
                self.filled = buffer.filled().len();
                self.decoded = 0;
                Poll::Ready(result.map(|()| self.filled))
            }
        }
    }

    /// Hands the answers out that were read.
    fn deliver(&mut self, shared: &Shared) -> Result<(), String> {
        loop {
            let decoded = self.decoder.decode(&self.input[self.decoded..self.filled]);
            let decoded = decoded.map_err(|error| format!("the server's frames are malformed: {error}"))?;
            self.decoded += decoded.consumed;
            match decoded.event {
                None => return Ok(()),
                Some(Event::Message(Kind::Binary)) => {
                    let delivered = shared.state().deliver(self.decoder.message(), &mut self.wakers);
                    wake_all(&mut self.wakers);
                    delivered.map_err(|error| format!("the server's frames are malformed: {error}"))?;
                }
                Some(Event::Message(Kind::Text)) => return Err("the server sent text".into()),
                Some(Event::Ping) if self.out.len() < UNSENT_BYTES_PONG => {
                    let key = shared.state().key();
                    websocket::write_pong(&mut self.out, self.decoder.control(), Some(key));
                }
                Some(Event::Ping | Event::Pong) => {}
                Some(Event::Close) => return Err(self.closed()),
            }
        }
    }

    /// Sends what is collected, as far as the socket takes it.
    fn write(&mut self, context: &mut Context<'_>, shared: &Shared) -> Result<(), String> {
        loop {
            if self.sent == self.out.len() {
                self.out.clear();
                self.sent = 0;
                let mut state = shared.state();
                let (is_some, is_much) = state.to_send();
                if !is_some {
                    self.has_settled = false;
                    return Ok(());
                }
                if !is_much && !std::mem::replace(&mut self.has_settled, true) {
                    // callers that can go on right now come before us, and have their calls in the same frame
                    context.waker().wake_by_ref();
                    return Ok(());
                }
                self.has_settled = false;
                state.take_out(&mut self.out);
            }
            match Pin::new(&mut self.stream).poll_write(context, &self.out[self.sent..]) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err("the server takes no more".into()),
                Poll::Ready(Ok(written)) => self.sent += written,
                Poll::Ready(Err(error)) => return Err(error.to_string()),
            }
        }
    }

    fn look_after_time(&mut self, context: &mut Context<'_>, shared: &Shared) -> Result<(), String> {
        loop {
            let earliest = shared.state().earliest;
            if let Some(earliest) = earliest.filter(|earliest| *earliest < self.wakes_at) {
                self.wake_at(earliest);
            }
            if self.sleep.as_mut().poll(context).is_pending() {
                return Ok(());
            }
            let now = Instant::now();
            let answers = shared.state().expire(now, &mut self.wakers);
            wake_all(&mut self.wakers);
            if !answers {
                return Err("the server does not answer calls whose time is over".into());
            }
            let next = shared.state().earliest.unwrap_or(now + FAR);
            self.wake_at(next.max(now + DEADLINE_TICK));
        }
    }

    fn wake_at(&mut self, at: Instant) {
        self.wakes_at = at;
        self.sleep.as_mut().reset(at.into());
    }
}
