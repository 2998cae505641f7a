//! Steps of sessions with an event stream: it begins as the answer to a request of HTTP/1.1, whose body goes on until
//! somebody ends it.
//!
//! An event that comes is offered to the step that waits for one; what no step takes is kept for a later one, within
//! bounds, if the plan has such steps at all. Whatever comes is counted.

use std::io;
use std::time::{Duration, Instant};

use tidemark_record::Outcome;
use tidemark_scenario::Context;
use tidemark_scenario::plan::{EventStreamStep, RequestKind};
use tidemark_wire::events::Event as ServerEvent;

use super::codec::Answers;
use super::event_stream::{Ending, EventStream};
use crate::io::{self as back_end, Io};
use crate::protocols::codec::ByteTransport;
use crate::protocols::transport::{
    Conversations, Copies, Counts, Event, EventCounts, Readings, Refusal, Sent, Setup, Transport,
};
use crate::session::answer::{Answer, shown};
use crate::session::failure::{Failure, Violation};
use crate::session::jar::Jar;

/// The status of an answer that is an event stream.
const STREAMING: u16 = 200;

/// Most bytes of an event, where `limits: body` does not say less.
const EVENT_BYTES: usize = 1 << 20;

/// Carries requests of HTTP/1.1, and reads the event streams that some of them began.
pub(super) struct EventStreams<I> {
    http: ByteTransport<I, Answers>,
    /// What the requests of the plan do with an event stream, if that is what they are about.
    steps: Vec<Option<EventStreamStep>>,
    /// Whether any of them takes an event.
    keeps: bool,
    /// The connections that are one.
    streams: Vec<Option<Box<EventStream>>>,
    /// Which request each connection carried last, of those that are not about a stream that there is.
    asked: Vec<usize>,
    /// The connection whose events are being read.
    reading: Option<usize>,
    /// Connections whose step is over, though nothing comes, and those that broke.
    over: Vec<usize>,
    events: EventCounts,
    event_bytes: usize,
}

impl<I: Io + 'static> EventStreams<I> {
    /// Over the connections of `http`.
    pub fn new(http: ByteTransport<I, Answers>, setup: &Setup<'_>) -> Self {
        let step = |ask: &RequestKind| match ask {
            RequestKind::EventStream(step) => Some(step.clone()),
            _ => None,
        };
        let steps: Vec<_> = setup.plan.requests.iter().map(|request| step(&request.ask)).collect();
        EventStreams {
            http,
            keeps: steps.iter().any(|step| matches!(step, Some(EventStreamStep::Expect))),
            steps,
            streams: Vec::new(),
            asked: Vec::new(),
            reading: None,
            over: Vec::new(),
            events: EventCounts::default(),
            event_bytes: setup.plan.limits.body_bytes.min(EVENT_BYTES),
        }
    }

    fn stream(&mut self, c: usize) -> Option<&mut EventStream> {
        self.streams.get_mut(c)?.as_deref_mut()
    }

    /// What something that happened on a socket means.
    fn on_io(&mut self, c: usize, event: back_end::Event) -> Option<Event> {
        if self.is_bound(c) {
            match event {
                back_end::Event::Opened | back_end::Event::Taken => {}
                back_end::Event::Received { .. } => self.feed(c, true),
                back_end::Event::Ended => {
                    let ending = match self.http.parts(c).1.streamed().finish() {
                        Ok(()) => Ending::InOrder,
                        Err(_) => Ending::Broken("the connection was closed within the event stream".into()),
                    };
                    self.end(c, ending);
                }
                back_end::Event::Unsent(error) | back_end::Event::Failed(error) => {
                    self.end(c, Ending::Broken(format!("the event stream broke: {error}").into()));
                }
            }
            return self.read(c);
        }
        let event = self.http.on_io(c, event)?;
        if !matches!(event, Event::Answered { .. }) || !self.http.codec(c).is_streamed() {
            return Some(event);
        }
        if let Some(failure) = no_stream(self.http.answer(c)) {
            return Some(Event::Refused(failure));
        }
        if self.streams.len() <= c {
            self.streams.resize_with(c + 1, || None);
        }
        self.streams[c] =
            Some(EventStream::new(self.event_bytes, self.asked.get(c).copied().unwrap_or_default()));
        self.events.streams += 1;
        // events may stand behind the head already, and even the end
        self.feed(c, false);
        self.read(c);
        Some(Event::Answered { keeps_open: true })
    }

    /// Takes what came of the stream's body; without `news` only what came with the head.
    fn feed(&mut self, c: usize, news: bool) {
        let (received, codec) = self.http.parts(c);
        match codec.streamed().decode(if news { received } else { &[] }) {
            Ok(decoded) if decoded.complete => self.end(c, Ending::InOrder),
            Ok(_) => {}
            Err(error) => self.end(c, Ending::Broken(Violation::from(error).0)),
        }
    }

    /// A stream has ended; what it was told to have ended by first holds.
    fn end(&mut self, c: usize, ending: Ending) {
        let Some(stream) = self.stream(c) else { return };
        if matches!(stream.ending.get_or_insert(ending), Ending::Broken(_)) {
            self.over.push(c);
        }
    }

    /// Reads on in what came of a stream; what came of the step under way.
    fn read(&mut self, c: usize) -> Option<Event> {
        self.reading = None;
        let stream = self.streams.get_mut(c)?.as_deref_mut()?;
        let body = self.http.parts(c).1.streamed();
        loop {
            let decoded = stream.decoder.decode(body.body().get(stream.at..).unwrap_or_default());
            stream.at += decoded.consumed;
            let Some(event) = decoded.event else { break };
            self.events.received += 1;
            match event {
                ServerEvent::TooLarge => {
                    self.events.too_large += 1;
                    stream.pass_over_large();
                }
                ServerEvent::Whole if stream.offer_received(self.keeps) => {
                    self.reading = Some(c);
                    return Some(Event::Offered);
                }
                ServerEvent::Whole => {}
            }
        }
        body.drain_body();
        stream.at = 0;
        stream.ending.as_ref().and_then(|_| stream.verdict())
    }

    /// A step that is over, though nothing comes; or a stream that broke while there was none.
    fn next_over(&mut self) -> Option<(usize, Event)> {
        while let Some(c) = self.over.pop() {
            let Some(stream) = self.stream(c) else { continue };
            if let Some(event) = stream.verdict().or_else(|| stream.loss().map(|_| Event::Lost)) {
                return Some((c, event));
            }
        }
        None
    }
}

/// Why an answer is no event stream, if it is none.
fn no_stream(answer: &dyn Answer) -> Option<Failure> {
    if answer.status() != STREAMING {
        let words = format!("status {}, where an event stream begins with {STREAMING}", answer.status());
        return Some(Failure::Other(Outcome::Status, words.into()));
    }
    let refused = |words: String| Some(Failure::Other(Outcome::Protocol, words.into()));
    let kind = answer.header("content-type").unwrap_or_default();
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if !essence.eq_ignore_ascii_case(b"text/event-stream") {
        let kind = if essence.is_empty() { "without a Content-Type".into() } else { shown(essence) };
        return refused(format!("{kind} came, not text/event-stream"));
    }
    match answer.header("content-encoding").map(<[u8]>::trim_ascii) {
        None | Some(b"") => None,
        Some(coding) if coding.eq_ignore_ascii_case(b"identity") => None,
        Some(coding) => {
            refused(format!("Content-Encoding {}: such an event stream is not read", shown(coding)))
        }
    }
}

impl<I: Io + 'static> Transport for EventStreams<I> {
    fn open(&mut self, c: usize) -> io::Result<()> {
        self.http.open(c)
    }

    fn write(&mut self, c: usize, request: usize, cx: &mut Context<'_>, jar: &Jar) -> Result<(), Failure> {
        match (&self.steps[request], self.streams.get_mut(c).and_then(Option::as_mut)) {
            (Some(step), Some(stream)) => self.events.dropped += stream.begin(step),
            _ => {
                if self.asked.len() <= c {
                    self.asked.resize(c + 1, 0);
                }
                self.asked[c] = request;
                return self.http.write(c, request, cx, jar);
            }
        }
        Ok(())
    }

    fn send(&mut self, c: usize) -> io::Result<Sent> {
        let Some(stream) = self.stream(c) else { return self.http.send(c) };
        if stream.offer_kept() {
            return Ok(Sent::Offered);
        }
        if stream.verdict().is_some() {
            self.over.push(c);
        }
        Ok(Sent::Awaiting)
    }

    fn close(&mut self, c: usize) {
        if let Some(stream) = self.streams.get_mut(c).and_then(Option::take) {
            self.events.ended += u64::from(stream.is_ended_unseen());
            self.over.retain(|over| *over != c);
            self.reading = self.reading.filter(|reading| *reading != c);
        }
        self.http.close(c);
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        let at_once = (!self.over.is_empty()).then_some(Duration::ZERO);
        self.http.wait(at_once.or(at_most))
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.http.hand_over()
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        loop {
            if let Some(c) = self.reading
                && let Some(event) = self.read(c)
            {
                return Some((c, event));
            }
            if let Some(over) = self.next_over() {
                return Some(over);
            }
            let (c, event) = self.http.io.next()?;
            if let Some(event) = self.on_io(c, event) {
                return Some((c, event));
            }
        }
    }

    fn answer(&self, c: usize) -> &dyn Answer {
        match self.streams.get(c).and_then(Option::as_deref) {
            Some(stream) if stream.has_begun => stream,
            _ => self.http.answer(c),
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
        let unseen = self.streams.iter().flatten().filter(|stream| stream.is_ended_unseen()).count() as u64;
        let events = EventCounts { ended: self.events.ended + unseen, ..self.events };
        Counts { events, ..self.http.counts() }
    }
}

impl<I: Io + 'static> Readings for EventStreams<I> {
    fn received(&self) -> &[u8] {
        self.http.received()
    }

    fn answer_begun(&self, c: usize) -> Option<Instant> {
        // what comes over one that is bound is no answer in pieces
        if self.is_bound(c) { None } else { self.http.answer_begun(c) }
    }
}

impl<I: Io + 'static> Conversations for EventStreams<I> {
    /// What is about events needs a stream, and nothing else goes over its connection.
    fn refusal(&self, c: Option<u32>, request: usize) -> Option<Refusal> {
        let is_open = c.is_some_and(|c| self.is_bound(c as usize));
        let (outcome, words) = match (is_open, &self.steps[request]) {
            (true, None | Some(EventStreamStep::Connect(_))) => {
                (Outcome::Protocol, "the session's connection is an event stream; sse close comes first")
            }
            (true, Some(_)) | (false, None | Some(EventStreamStep::Connect(_))) => return None,
            (false, Some(_)) => (Outcome::Reset, "there is no event stream any more, or sse connect failed"),
        };
        Some(Refusal { failure: Failure::Other(outcome, words.into()), ends_session: !is_open })
    }

    fn is_bound(&self, c: usize) -> bool {
        self.streams.get(c).is_some_and(Option::is_some)
    }

    fn leaves(&self, c: usize, request: usize) -> bool {
        let is_open = |stream: &EventStream| stream.ending.is_none();
        matches!(self.steps[request], Some(EventStreamStep::Close))
            && self.streams.get(c).and_then(Option::as_deref).is_some_and(is_open)
    }

    fn lost(&mut self, c: usize) -> Option<(usize, Failure)> {
        self.streams.get(c)?.as_deref()?.loss()
    }

    /// As a browser that leaves: without a word.
    fn leave(&mut self, c: usize) -> bool {
        !self.is_bound(c)
    }

    fn accept(&mut self, c: usize) -> bool {
        self.events.taken += 1;
        let Some(stream) = self.stream(c) else { return false };
        stream.awaiting = super::event_stream::Awaiting::Nothing;
        // what came behind it is for later steps
        if self.reading == Some(c) {
            self.read(c);
        }
        true
    }

    fn decline(&mut self, c: usize) -> bool {
        let Some(stream) = self.streams.get_mut(c).and_then(Option::as_mut) else { return false };
        let is_offered = stream.decline();
        if !is_offered && stream.verdict().is_some() && self.reading != Some(c) {
            self.over.push(c);
        }
        is_offered
    }

    fn instead(&self, c: usize) -> Option<String> {
        self.streams.get(c)?.as_deref().filter(|stream| stream.has_begun).map(EventStream::instead)
    }

    fn heard(&self) -> u64 {
        self.events.received
    }
}

impl<I: Io + 'static> Copies for EventStreams<I> {
    fn keep_written(&mut self) {
        self.http.keep_written();
    }

    fn written(&mut self, c: usize) -> &[u8] {
        if self.stream(c).is_some() { &[] } else { self.http.written(c) }
    }
}
