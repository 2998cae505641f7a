//! Steps of sessions over a WebSocket: the handshake is a request of HTTP/1.1, and messages go over the same connection.
//!
//! A message that comes is offered to the step that waits for one; what no step takes is kept for a later one, within
//! bounds, and counted where it goes. Pings are answered whatever is under way.

use std::io;
use std::time::{Duration, Instant};

use tidemark_record::Outcome;
use tidemark_scenario::Context;
use tidemark_scenario::plan::{RequestKind, WebSocketStep};
use tidemark_wire::websocket::{Event as Frame, GOING_AWAY, NORMAL, write_close};

use super::codec::Answers;
use super::websocket::{Awaiting, News, OfProgram, WebSocket};
use crate::io::{self as back_end, Io};
use crate::protocols::codec::ByteTransport;
use crate::protocols::transport::{
    Conversations, Copies, Counts, Event, Readings, Refusal, Sent, Setup, Spoken, Transport,
};
use crate::session::answer::Answer;
use crate::session::failure::Failure;
use crate::session::jar::Jar;
use crate::session::program::Outgoing;
use crate::session::sockets::{Heard, Said};

/// While frames wait for the connection to have sent what is before them, it is looked at this often.
const SENDING_LOOK: Duration = Duration::from_micros(100);

/// What a WebSocket is told that ended so.
const NO_CLOSE: &str = "the connection was closed without a close of the WebSocket";

/// Carries requests of HTTP/1.1, and messages over the connections that these turned into WebSockets.
pub(super) struct Messages<I> {
    http: ByteTransport<I, Answers>,
    /// What the requests of the plan do over a WebSocket, if that is what they are about.
    steps: Vec<Option<WebSocketStep>>,
    /// The connections that are one.
    sockets: Vec<Option<Box<WebSocket>>>,
    /// The connection whose frames are being read, and how far they are.
    reading: Option<(usize, usize)>,
    /// Connections that have something to send, or whose step waits until it is sent.
    unsent: Vec<usize>,
    /// The last WebSocket that the peer closed as a step expected, and its connection: it is that step's answer.
    closed: Option<(usize, Box<WebSocket>)>,
    /// Connections whose step is under way though their WebSocket is there no more.
    over: Vec<usize>,
    unclaimed: u64,
    /// What programs heard.
    heard: u64,
    message_bytes: usize,
    payload: Vec<u8>,
    random: fastrand::Rng,
}

impl<I: Io + 'static> Messages<I> {
    /// Over the connections of `http`.
    pub fn new(http: ByteTransport<I, Answers>, setup: Setup<'_>) -> Self {
        let step = |ask: &RequestKind| match ask {
            RequestKind::WebSocket(step) => Some(step.clone()),
            _ => None,
        };
        Messages {
            http,
            steps: setup.plan.requests.iter().map(|request| step(&request.ask)).collect(),
            sockets: Vec::new(),
            reading: None,
            unsent: Vec::new(),
            over: Vec::new(),
            closed: None,
            unclaimed: 0,
            heard: 0,
            message_bytes: setup.plan.limits.body_bytes,
            payload: Vec::new(),
            random: setup.random.fork(),
        }
    }

    fn socket(&mut self, c: usize) -> Option<&mut WebSocket> {
        self.sockets.get_mut(c)?.as_deref_mut()
    }

    fn key(&mut self) -> [u8; 4] {
        self.random.u32(..).to_ne_bytes()
    }

    /// What something that happened on a socket means.
    fn on_io(&mut self, c: usize, event: back_end::Event) -> Option<Event> {
        if self.is_of_program(c) {
            return match event {
                back_end::Event::Opened | back_end::Event::Taken => None,
                back_end::Event::Received { .. } => self.hear(c, 0),
                back_end::Event::Ended => self.tell(c, News::Ended),
                back_end::Event::Unsent(error) | back_end::Event::Failed(error) => {
                    self.tell_broken(c, &error)
                }
            };
        }
        if self.is_bound(c) {
            return match event {
                back_end::Event::Opened | back_end::Event::Taken => None,
                back_end::Event::Received { .. } => self.read(c, 0),
                back_end::Event::Ended => {
                    if self.is_idle(c) {
                        self.go(c, NO_CLOSE.to_owned());
                        return None;
                    }
                    Some(Event::Wrong(Failure::Other(Outcome::Reset, NO_CLOSE.into())))
                }
                back_end::Event::Unsent(error) | back_end::Event::Failed(error) if self.is_idle(c) => {
                    self.go(c, format!("the connection of the WebSocket broke: {error}"));
                    None
                }
                back_end::Event::Unsent(error) | back_end::Event::Failed(error) => Some(Event::Failed(error)),
            };
        }
        let event = self.http.on_io(c, event)?;
        if !matches!(event, Event::Answered { .. }) {
            return Some(event);
        }
        match self.http.codec(c).upgraded() {
            None => Some(event),
            // a program looks at the answer itself
            Some(Err(failure))
                if failure.outcome() == Outcome::Status && self.http.codec(c).is_of_program() =>
            {
                Some(event)
            }
            Some(Err(failure)) => Some(Event::Refused(failure)),
            Some(Ok(())) => {
                if self.sockets.len() <= c {
                    self.sockets.resize_with(c + 1, || None);
                }
                let socket = self.sockets[c].insert(WebSocket::new(self.message_bytes));
                if self.http.codec(c).is_of_program() {
                    socket.of_program = Some(OfProgram::default());
                    self.reading = Some((c, self.http.answer_end));
                    return Some(Event::Answered { keeps_open: true });
                }
                // messages may stand behind the answer already
                let is_well = self.read(c, self.http.answer_end).is_none();
                Some(Event::Answered { keeps_open: is_well })
            }
        }
    }

    /// Reads what was received of a connection from here on; what came of the request under way, or of the connection.
    fn read(&mut self, c: usize, mut at: usize) -> Option<Event> {
        self.reading = None;
        let mut is_answered = false;
        let over = |is_answered, failure| match is_answered {
            true => Event::Answered { keeps_open: false },
            false => Event::Wrong(failure),
        };
        loop {
            let socket = self.sockets.get_mut(c)?.as_mut()?;
            let decoded = match socket.decoder.decode(self.http.io.received().get(at..).unwrap_or_default()) {
                Ok(decoded) => decoded,
                Err(error) => {
                    self.part(c, Some(error.close_code()));
                    return Some(over(
                        is_answered,
                        Failure::Other(Outcome::Protocol, error.to_string().into()),
                    ));
                }
            };
            at += decoded.consumed;
            match decoded.event {
                None => break,
                Some(Frame::Message(_)) => match socket.offer_received() {
                    Ok(()) => {
                        self.reading = Some((c, at));
                        return Some(Event::Offered);
                    }
                    Err(gone) => self.unclaimed += gone,
                },
                Some(Frame::Ping) => socket.pong(self.random.u32(..).to_ne_bytes()),
                Some(Frame::Pong) if socket.is_its_pong() => {
                    socket.awaiting = Awaiting::Nothing;
                    is_answered = true;
                }
                Some(Frame::Pong) => {}
                Some(Frame::Close) if socket.awaiting == Awaiting::Close => {
                    return Some(Event::Answered { keeps_open: false });
                }
                Some(Frame::Close) => {
                    let (code, words) = (socket.decoder.close_code(), socket.close_words());
                    let awaiting = socket.awaiting;
                    socket.is_closed = true;
                    self.part(c, Some(code.unwrap_or(NORMAL)));
                    match awaiting {
                        Awaiting::PeerClose => return Some(Event::Answered { keeps_open: false }),
                        // the next step is told
                        Awaiting::Nothing => {
                            self.go(c, words);
                            return is_answered.then_some(Event::Answered { keeps_open: true });
                        }
                        _ => {}
                    }
                    return Some(over(is_answered, Failure::Other(Outcome::Reset, words.into())));
                }
            }
        }
        match self.flush(c) {
            Ok(()) => is_answered.then_some(Event::Answered { keeps_open: true }),
            Err(_) if is_answered => Some(Event::Answered { keeps_open: false }),
            Err(error) => Some(Event::Failed(error)),
        }
    }

    /// Whether a program has a WebSocket there.
    fn is_of_program(&self, c: usize) -> bool {
        self.sockets.get(c).and_then(Option::as_deref).is_some_and(|socket| socket.of_program.is_some())
    }

    /// Reads what was received of a program's WebSocket from here on, up to what the program hears next.
    fn hear(&mut self, c: usize, mut at: usize) -> Option<Event> {
        self.reading = None;
        let socket = self.sockets.get_mut(c)?.as_mut()?;
        let decoded = match socket.decoder.decode(self.http.io.received().get(at..).unwrap_or_default()) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.part(c, Some(error.close_code()));
                return self.tell(c, News::Broken(Outcome::Protocol, error.to_string().into()));
            }
        };
        at += decoded.consumed;
        let Some(frame) = decoded.event else {
            return self.flush(c).err().and_then(|error| self.tell_broken(c, &error));
        };
        let is_left = socket.is_leaving();
        match frame {
            Frame::Ping => socket.pong(self.random.u32(..).to_ne_bytes()),
            Frame::Close if is_left => return Some(Event::Left),
            Frame::Close => {
                let code = socket.decoder.close_code();
                if !std::mem::replace(&mut socket.is_closed, true)
                    && !socket.of_program.as_ref().is_some_and(|own| own.is_closing)
                {
                    self.part(c, code);
                }
            }
            Frame::Message(_) | Frame::Pong => {}
        }
        self.reading = (frame != Frame::Close).then_some((c, at));
        self.tell(c, News::Frame(frame))
    }

    /// A program hears this, unless it has left.
    fn tell(&mut self, c: usize, news: News) -> Option<Event> {
        let is_last = !matches!(news, News::Frame(Frame::Message(_) | Frame::Ping | Frame::Pong));
        let own = self.socket(c)?.of_program.as_mut()?;
        if own.is_leaving {
            return is_last.then_some(Event::Left);
        }
        own.news = news;
        self.heard += 1;
        Some(Event::Heard)
    }

    fn tell_broken(&mut self, c: usize, error: &io::Error) -> Option<Event> {
        self.tell(c, News::Broken(Outcome::Reset, error.to_string().into()))
    }

    /// Whether no step is under way on a connection.
    fn is_idle(&mut self, c: usize) -> bool {
        self.socket(c).is_some_and(|socket| socket.awaiting == Awaiting::Nothing)
    }

    /// A WebSocket is there no more, for this reason, and no step is under way: the next one is told.
    fn go(&mut self, c: usize, words: String) {
        if let Some(socket) = self.socket(c) {
            socket.gone = Some(words.into());
            socket.pending.clear();
            socket.is_listed = false;
        }
        self.unsent.retain(|unsent| *unsent != c);
        self.http.close(c);
    }

    /// Whether it is there no more.
    fn is_gone(&self, c: usize) -> bool {
        self.sockets.get(c).and_then(Option::as_deref).is_some_and(|socket| socket.gone.is_some())
    }

    /// What a step is told that is under way though its WebSocket is there no more.
    fn next_over(&mut self) -> Option<(usize, Event)> {
        while let Some(c) = self.over.pop() {
            let Some(socket) = self.socket(c) else { continue };
            let Some(words) = &socket.gone else { continue };
            return Some(match socket.awaiting {
                Awaiting::Nothing => continue,
                Awaiting::PeerClose if socket.is_closed => (c, Event::Answered { keeps_open: false }),
                _ => (c, Event::Wrong(Failure::Other(Outcome::Reset, words.to_string().into()))),
            });
        }
        None
    }

    /// Whether something is to be sent, or is waited for until it is.
    fn is_unsent(&mut self, c: usize) -> bool {
        let is_sending = self.http.io.is_sending(c);
        let waits = |s: &mut WebSocket| {
            !s.pending.is_empty() || (is_sending && (s.awaiting == Awaiting::Sent || s.is_leaving()))
        };
        self.socket(c).is_some_and(waits)
    }

    /// Sends what is pending, as soon as what was sent before has left.
    fn flush(&mut self, c: usize) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(c).and_then(Option::as_mut) else { return Ok(()) };
        let io = &mut self.http.io;
        if !socket.pending.is_empty() && !io.is_sending(c) {
            io.output(c).extend_from_slice(&socket.pending);
            socket.pending.clear();
            io.send(c)?;
            if socket.awaiting == Awaiting::Sent || socket.is_leaving() {
                io.push(c)?; // it ends with it
            }
        }
        if self.is_unsent(c)
            && let Some(socket) = self.socket(c).filter(|socket| !socket.is_listed)
        {
            socket.is_listed = true;
            self.unsent.push(c);
        }
        Ok(())
    }

    /// A connection whose pending frames have left meanwhile, and whose step is over by that.
    fn next_sent(&mut self) -> Option<(usize, Event)> {
        let mut index = 0;
        while let Some(c) = self.unsent.get(index).copied() {
            let flushed = self.flush(c);
            if flushed.is_ok() && self.is_unsent(c) {
                index += 1;
                continue;
            }
            self.unsent.swap_remove(index);
            let Some(socket) = self.socket(c) else { continue };
            socket.is_listed = false;
            let (is_left, is_of_program) = (socket.is_leaving(), socket.of_program.is_some());
            match flushed {
                Err(error) if is_of_program => {
                    if let Some(event) = self.tell_broken(c, &error) {
                        return Some((c, event));
                    }
                }
                Err(error) => return Some((c, Event::Failed(error))),
                Ok(()) if is_left => return Some((c, Event::Left)),
                Ok(()) if socket.awaiting == Awaiting::Sent => {
                    socket.awaiting = Awaiting::Nothing;
                    return Some((c, Event::Sent));
                }
                Ok(()) => {}
            }
        }
        None
    }

    /// Says a last word to the peer, where that can leave at once; the connection is to be closed.
    fn part(&mut self, c: usize, code: Option<u16>) {
        if self.http.io.is_sending(c) {
            return;
        }
        let key = self.key();
        write_close(self.http.io.output(c), code, "", Some(key));
        // The connection is given up in any case.
        let _ = self.http.io.send(c);
    }
}

impl<I: Io + 'static> Transport for Messages<I> {
    fn open(&mut self, c: usize) -> io::Result<()> {
        self.http.open(c)
    }

    fn write(&mut self, c: usize, request: usize, cx: &mut Context<'_>, jar: &Jar) -> Result<(), Failure> {
        let key = self.key();
        self.closed.take_if(|(closed, _)| *closed == c);
        match (&self.steps[request], self.sockets.get_mut(c).and_then(Option::as_mut)) {
            (Some(step), Some(socket)) => socket.begin(step, cx, &mut self.payload, key),
            _ => self.http.write(c, request, cx, jar),
        }
    }

    fn write_made(&mut self, c: usize, outgoing: &Outgoing, jar: &Jar, now_s: i64) -> Result<(), Failure> {
        self.closed.take_if(|(closed, _)| *closed == c);
        self.http.write_any_made(c, outgoing, (jar, now_s))
    }

    fn send(&mut self, c: usize) -> io::Result<Sent> {
        let Some(socket) = self.socket(c) else { return self.http.send(c) };
        if socket.offer_kept() {
            return Ok(Sent::Offered);
        }
        if socket.gone.is_some() {
            self.over.push(c);
            return Ok(Sent::Awaiting);
        }
        self.flush(c)?;
        let is_unsent = self.is_unsent(c);
        Ok(match self.socket(c) {
            Some(socket) if socket.awaiting == Awaiting::Sent && !is_unsent => {
                socket.awaiting = Awaiting::Nothing;
                Sent::Whole
            }
            _ => Sent::Awaiting,
        })
    }

    fn close(&mut self, c: usize) {
        if let Some(socket) = self.sockets.get_mut(c).and_then(Option::take) {
            self.unclaimed += socket.untaken() as u64;
            if socket.is_listed {
                self.unsent.retain(|unsent| *unsent != c);
            }
            self.reading = self.reading.filter(|(reading, _)| *reading != c);
            self.over.retain(|over| *over != c);
            if socket.is_answered_by_close() {
                self.closed = Some((c, socket));
            }
        }
        self.http.close(c);
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        let look = (!self.unsent.is_empty()).then_some(SENDING_LOOK);
        let at_once = (!self.over.is_empty()).then_some(Duration::ZERO);
        self.http.wait(at_most.into_iter().chain(look).chain(at_once).min())
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.http.hand_over()
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        loop {
            if let Some((c, at)) = self.reading
                && let Some(event) = if self.is_of_program(c) { self.hear(c, at) } else { self.read(c, at) }
            {
                return Some((c, event));
            }
            if let Some(over) = self.next_over() {
                return Some(over);
            }
            let Some((c, event)) = self.http.io.next() else { return self.next_sent() };
            if let Some(event) = self.on_io(c, event) {
                return Some((c, event));
            }
        }
    }

    fn answer(&self, c: usize) -> &dyn Answer {
        match self.sockets.get(c).and_then(Option::as_deref) {
            Some(socket) if socket.has_begun => socket,
            _ => match &self.closed {
                Some((closed, socket)) if *closed == c => &**socket,
                _ => self.http.answer(c),
            },
        }
    }

    fn is_first(&self, c: usize) -> bool {
        self.http.is_first(c)
    }

    fn socket_of(&self, c: usize) -> usize {
        self.http.socket_of(c)
    }

    fn sockets(&self) -> &dyn Io {
        self.http.sockets()
    }

    fn counts(&self) -> Counts {
        Counts { unclaimed: self.unclaimed, ..self.http.counts() }
    }
}

impl<I: Io + 'static> Readings for Messages<I> {
    fn received(&self) -> &[u8] {
        self.http.received()
    }

    fn answer_begun(&self, c: usize) -> Option<Instant> {
        // what comes over one that is bound is no answer in pieces
        if self.is_bound(c) { None } else { self.http.answer_begun(c) }
    }
}

impl<I: Io + 'static> Conversations for Messages<I> {
    /// A message needs a WebSocket, and nothing else goes over one.
    fn refusal(&self, c: Option<u32>, request: usize) -> Option<Refusal> {
        let is_open = c.is_some_and(|c| self.is_bound(c as usize));
        let (outcome, words) = match (is_open, &self.steps[request]) {
            (true, None | Some(WebSocketStep::Connect { .. })) => {
                (Outcome::Protocol, "the session's connection is a WebSocket; ws close comes first")
            }
            (true, Some(_)) | (false, None | Some(WebSocketStep::Connect { .. })) => return None,
            (false, Some(_)) => (Outcome::Reset, "there is no WebSocket any more, or ws connect failed"),
        };
        Some(Refusal { failure: Failure::Other(outcome, words.into()), ends_session: !is_open })
    }

    fn is_bound(&self, c: usize) -> bool {
        self.sockets.get(c).is_some_and(Option::is_some)
    }

    fn leave(&mut self, c: usize) -> bool {
        let is_bound = self.is_bound(c);
        let is_parted = |socket: &WebSocket| {
            socket.is_closed || socket.of_program.as_ref().is_some_and(|own| own.is_closing)
        };
        if is_bound && !self.is_gone(c) && !self.socket(c).is_some_and(|socket| is_parted(socket)) {
            let code = if self.is_of_program(c) { GOING_AWAY } else { NORMAL };
            self.part(c, Some(code));
        }
        !is_bound
    }

    fn accept(&mut self, c: usize) -> bool {
        let Some(socket) = self.socket(c) else { return false };
        socket.awaiting = Awaiting::Nothing;
        // what came behind it is for later steps, and what it tells of the connection is known before these
        match self.reading {
            Some((reading, at)) if reading == c => self.read(c, at).is_none(),
            _ => true,
        }
    }

    fn news(&self, c: usize) -> Option<Heard<'_>> {
        self.sockets.get(c)?.as_deref()?.news()
    }

    fn breaks(&self, c: usize) -> Option<Failure> {
        let own = self.sockets.get(c)?.as_deref()?.of_program.as_ref().filter(|own| !own.is_closing)?;
        match &own.news {
            News::Ended => Some(Failure::Other(Outcome::Reset, NO_CLOSE.into())),
            News::Broken(outcome, words) => Some(Failure::Other(*outcome, words.to_string().into())),
            News::Nothing | News::Frame(_) => None,
        }
    }

    fn heard(&self) -> u64 {
        self.heard
    }

    fn say(&mut self, c: usize, said: &Said) -> io::Result<Spoken> {
        let key = self.key();
        let Some(socket) = self.socket(c) else { return Err(io::Error::other("there is no WebSocket")) };
        if socket.of_program.as_ref().is_some_and(|own| own.is_closing) {
            return Ok(Spoken::Unsaid);
        }
        if !socket.say(said, key) {
            return Err(io::Error::other("the server does not read: the buffer for what is sent is full"));
        }
        let is_left = socket.is_leaving();
        self.flush(c)?;
        Ok(if is_left && !self.is_unsent(c) { Spoken::Left } else { Spoken::Said })
    }

    fn decline(&mut self, c: usize) -> bool {
        let Some(socket) = self.sockets.get_mut(c).and_then(Option::as_mut) else { return false };
        let was_kept = socket.is_kept_offered();
        self.unclaimed += socket.decline();
        let is_offered = was_kept && socket.offer_kept();
        if !is_offered && socket.gone.is_some() {
            self.over.push(c);
        }
        is_offered
    }
}

impl<I: Io + 'static> Copies for Messages<I> {
    fn keep_written(&mut self) {
        self.http.keep_written();
    }

    /// Of a message what is in it.
    fn written(&mut self, c: usize) -> &[u8] {
        if self.socket(c).is_some() { &self.payload } else { self.http.written(c) }
    }
}
