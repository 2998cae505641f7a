//! A connection over which events come: which of them is offered to the step under way, and how it ended.

use tidemark_record::Outcome;
use tidemark_scenario::plan::EventStreamStep;
use tidemark_wire::events::EventDecoder;

use super::inbox::{INBOX_MESSAGES, Inbox, Offer};
use crate::protocols::transport::Event;
use crate::session::answer::Answer;
use crate::session::failure::Failure;

/// What the step under way waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaiting {
    /// Nothing; no step is under way.
    Nothing,
    /// An event that came before, or that comes.
    Event,
    /// That the connection is closed by us.
    Close,
    /// That the server ends the stream.
    End,
}

/// How a stream came to its end without the driver's doing.
#[derive(Debug)]
pub(super) enum Ending {
    /// The server ended it.
    InOrder,
    /// It broke; in words.
    Broken(Box<str>),
}

/// A connection over which events come.
#[derive(Debug)]
pub(super) struct EventStream {
    /// What came.
    pub decoder: EventDecoder,
    /// How much of what came is decoded.
    pub at: usize,
    /// What the step under way waits for.
    pub awaiting: Awaiting,
    /// How it ended, if it has.
    pub ending: Option<Ending>,
    /// The request that began it.
    request: usize,
    /// Whether a step has been begun here: until then the answer is the one that began the stream.
    pub has_begun: bool,
    /// Events for later steps: the name, LF, the data.
    inbox: Inbox,
    /// Events that the step under way did not take, and the name of the last.
    unfit: (u64, String),
    /// Events that had to go before a step waited, those that did since, and those that were too large.
    dropped: u64,
    gone: u64,
    too_large: u64,
}

/// Bytes of an event's name that are told.
const NAME_SHOWN: usize = 40;

impl EventStream {
    /// Begun by this request, for events of so many bytes at most.
    pub fn new(event_bytes: usize, request: usize) -> Box<EventStream> {
        Box::new(EventStream {
            decoder: EventDecoder::new(event_bytes),
            at: 0,
            awaiting: Awaiting::Nothing,
            ending: None,
            request,
            has_begun: false,
            inbox: Inbox::default(),
            unfit: (0, String::new()),
            dropped: 0,
            gone: 0,
            too_large: 0,
        })
    }

    /// Begins a step; how many events had to go that it might have taken.
    pub fn begin(&mut self, step: &EventStreamStep) -> u64 {
        self.awaiting = match step {
            EventStreamStep::Connect(_) => Awaiting::Nothing,
            EventStreamStep::Expect => Awaiting::Event,
            EventStreamStep::Close => Awaiting::Close,
            EventStreamStep::CloseByServer => Awaiting::End,
        };
        (self.has_begun, self.inbox.offer) = (true, Offer::None);
        self.unfit.0 = 0;
        // what goes behind a session's last step is missed by none
        let gone = if self.awaiting == Awaiting::Event { std::mem::take(&mut self.gone) } else { 0 };
        self.dropped += gone;
        gone
    }

    /// An event came: whether it may be the answer. Otherwise it is kept for a later step, where there may be one.
    pub fn offer_received(&mut self, keeps: bool) -> bool {
        if self.awaiting == Awaiting::Event {
            self.inbox.offer = Offer::Received;
            return true;
        }
        if keeps {
            self.gone += self.inbox.keep(&[self.decoder.name(), b"\n", self.decoder.data()]);
        }
        false
    }

    /// An event came that was too large.
    pub fn pass_over_large(&mut self) {
        self.too_large += 1;
    }

    /// Offers the oldest event that was kept, if the step takes one; false if there is none.
    pub fn offer_kept(&mut self) -> bool {
        self.awaiting == Awaiting::Event && self.inbox.offer_kept()
    }

    /// What was offered is not the answer: whether another one that was kept is offered now.
    pub fn decline(&mut self) -> bool {
        self.unfit.0 += 1;
        let name = self
            .offered()
            .map(|(name, _)| String::from_utf8_lossy(&name[..name.len().min(NAME_SHOWN)]).into_owned());
        self.unfit.1 = name.unwrap_or_default();
        let declined = std::mem::take(&mut self.inbox.offer);
        declined == Offer::Kept && self.offer_kept()
    }

    /// It broke, and no step knows of it: the request that began it, and why.
    pub fn loss(&self) -> Option<(usize, Failure)> {
        match (self.awaiting, &self.ending) {
            (Awaiting::Nothing, Some(Ending::Broken(words))) => {
                Some((self.request, Failure::Other(Outcome::Reset, words.to_string().into())))
            }
            _ => None,
        }
    }

    /// Whether the server ended it in order, and no step knows of it.
    pub fn is_ended_unseen(&self) -> bool {
        self.awaiting == Awaiting::Nothing && matches!(self.ending, Some(Ending::InOrder))
    }

    /// What the step under way comes to, now that no event can come any more, or since it wanted none.
    pub fn verdict(&self) -> Option<Event> {
        match (self.awaiting, &self.ending) {
            (Awaiting::Nothing, _) | (Awaiting::Event | Awaiting::End, None) => None,
            (Awaiting::Close, None) | (Awaiting::End, Some(Ending::InOrder)) => {
                Some(Event::Answered { keeps_open: false })
            }
            (_, Some(ending)) => {
                let words = match ending {
                    Ending::InOrder => "the server ended the event stream",
                    Ending::Broken(words) => words,
                };
                let words = match self.awaiting {
                    Awaiting::Event => format!("{words}; {}", self.instead()),
                    _ => words.to_owned(),
                };
                Some(Event::Wrong(Failure::Other(Outcome::Reset, words.into())))
            }
        }
    }

    /// What came for the step under way that it did not take, and what never came to it, in words.
    pub fn instead(&self) -> String {
        let mut words = String::new();
        if self.dropped > 0 {
            let most = INBOX_MESSAGES;
            words += &format!(
                "{} events were dropped by the load generator, which holds {most} for a stream; ",
                self.dropped
            );
        }
        if self.too_large > 0 {
            words += &format!("{} were too large; ", self.too_large);
        }
        words += &match &self.unfit {
            (0, _) => "no event came".to_owned(),
            (count, name) => format!("{count} events did not match, last `{}`", name.escape_debug()),
        };
        words
    }

    /// Name and data of what is offered.
    fn offered(&self) -> Option<(&[u8], &[u8])> {
        match self.inbox.offer {
            Offer::None => None,
            Offer::Received => Some((self.decoder.name(), self.decoder.data())),
            Offer::Kept => {
                let (name, rest) = self.inbox.taken().split_at(memchr::memchr(b'\n', self.inbox.taken())?);
                Some((name, rest.get(1..)?))
            }
        }
    }
}

impl Answer for EventStream {
    fn status(&self) -> u16 {
        0
    }

    fn status_words(&self) -> String {
        if self.offered().is_some() { "an event".into() } else { "the end of the stream".into() }
    }

    /// An event has its name, and no other header.
    fn header(&self, name: &str) -> Option<&[u8]> {
        self.offered().map(|(event, _)| event).filter(|_| name == EventStreamStep::NAME_HEADER)
    }

    fn each_header(&self, tell: &mut dyn FnMut(&[u8], &[u8])) {
        if let Some((event, _)) = self.offered() {
            tell(EventStreamStep::NAME_HEADER.as_bytes(), event);
        }
    }

    fn body(&self) -> &[u8] {
        self.offered().map_or(&[], |(_, data)| data)
    }

    fn body_bytes(&self) -> Option<u64> {
        self.offered().map(|(_, data)| data.len() as u64)
    }
}
