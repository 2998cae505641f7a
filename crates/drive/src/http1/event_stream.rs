//! A connection over which events come: which of them is offered to the step under way, and how it ended.

use tidemark_record::Outcome;
use tidemark_scenario::plan::EventStreamStep;
use tidemark_wire::events::EventDecoder;

use super::inbox::{Inbox, Offer};
use crate::answer::Answer;
use crate::fault::Fault;
use crate::transport::Event;

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
    /// Whether a step has been begun here: until then the answer is the one that began the stream.
    pub has_begun: bool,
    /// Events for later steps: the name, LF, the data.
    inbox: Inbox,
}

impl EventStream {
    /// For events of so many bytes at most.
    pub fn new(event_bytes: usize) -> Box<EventStream> {
        Box::new(EventStream {
            decoder: EventDecoder::new(event_bytes),
            at: 0,
            awaiting: Awaiting::Nothing,
            ending: None,
            has_begun: false,
            inbox: Inbox::default(),
        })
    }

    /// Begins a step.
    pub fn begin(&mut self, step: &EventStreamStep) {
        self.awaiting = match step {
            EventStreamStep::Connect(_) => Awaiting::Nothing,
            EventStreamStep::Expect => Awaiting::Event,
            EventStreamStep::Close => Awaiting::Close,
            EventStreamStep::CloseByServer => Awaiting::End,
        };
        (self.has_begun, self.inbox.offer) = (true, Offer::None);
    }

    /// An event came: whether it may be the answer. Otherwise it is kept for a later step, where there may be one.
    pub fn offer_received(&mut self, keeps: bool) -> bool {
        let is_awaited = self.awaiting == Awaiting::Event;
        if is_awaited {
            self.inbox.offer = Offer::Received;
        } else if keeps {
            self.inbox.keep(&[self.decoder.name(), b"\n", self.decoder.data()]);
        }
        is_awaited
    }

    /// Offers the oldest event that was kept, if the step takes one; false if there is none.
    pub fn offer_kept(&mut self) -> bool {
        self.awaiting == Awaiting::Event && self.inbox.offer_kept()
    }

    /// What was offered is not the answer: whether another one that was kept is offered now.
    pub fn decline(&mut self) -> bool {
        let declined = std::mem::take(&mut self.inbox.offer);
        declined == Offer::Kept && self.offer_kept()
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
                Some(Event::Wrong(Fault::Other(Outcome::Reset, words.to_owned().into())))
            }
        }
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

    /// An event has its name, and no other header.
    fn header(&self, name: &str) -> Option<&[u8]> {
        self.offered().map(|(event, _)| event).filter(|_| name == EventStreamStep::NAME_HEADER)
    }

    fn body(&self) -> &[u8] {
        self.offered().map_or(&[], |(_, data)| data)
    }
}
