//! Streams that programs hold: what they say leaves at once, and what comes is heard at once.

use std::io;

use tidemark_record::Outcome;
use tidemark_scenario::protobuf::Method;

use super::{Awaiting, Call, Calls, request};
use crate::io::Io;
use crate::protocols::transport::{Event, Spoken, Transport as _};
use crate::session::failure::Failure;
use crate::session::sockets::{Heard, Said};

/// A stream that a program holds.
pub(super) struct Talk {
    method: Method,
    news: News,
}

/// What the program hears next.
enum News {
    Nothing,
    /// The reply has it.
    Message,
    /// Its status, in words.
    Over(Box<str>),
    Broken(Box<str>),
}

impl Talk {
    pub fn new(method: Method) -> Talk {
        Talk { method, news: News::Nothing }
    }
}

impl Call {
    /// What its program hears.
    pub fn news(&self) -> Option<Heard<'_>> {
        Some(match &self.talk.as_ref()?.news {
            News::Nothing => return None,
            News::Message => Heard::Text(self.reply.json()),
            News::Over(words) => Heard::Closed(Some(self.reply.code() as u16), words),
            News::Broken(words) => Heard::Broken(words),
        })
    }

    /// Why that is a failure, if it is.
    pub fn breaks(&self) -> Option<Failure> {
        match &self.talk.as_ref()?.news {
            News::Over(_) if !self.reply.is_ok() => {
                Some(Failure::Other(Outcome::Status, self.reply.words().into()))
            }
            News::Broken(words) => Some(Failure::Other(Outcome::Reset, words.to_string().into())),
            _ => None,
        }
    }
}

impl<I: Io + 'static> Calls<I> {
    /// What the program of a stream hears next, if there is anything.
    pub(super) fn hear(&mut self, s: usize) -> Option<Event> {
        let Call { reply, talk, .. } = &mut self.calls[s];
        let talk = talk.as_mut()?;
        reply.begin_step();
        talk.news = match reply.next_message() {
            Ok(true) => News::Message,
            Ok(false) if reply.has_status() => News::Over(reply.own_words().into()),
            Ok(false) => return None,
            Err(failure) => News::Broken(failure.to_string().into()),
        };
        // more may have come together with it
        self.hearing = matches!(talk.news, News::Message).then_some(s as u32);
        Some(Event::Heard)
    }

    /// An event as it is told: what breaks a program's stream is heard.
    pub(super) fn told(&mut self, s: usize, event: Event) -> Event {
        let call = &mut self.calls[s];
        let Some(talk) = call.talk.as_mut().filter(|_| call.awaiting == Awaiting::Nothing) else {
            return event;
        };
        let words = match &event {
            Event::Failed(error) | Event::Unsent(error) => error.to_string(),
            Event::Wrong(failure) => failure.to_string(),
            Event::Ended { .. } => "the server closed the connection".to_owned(),
            _ => return event,
        };
        talk.news = News::Broken(words.into());
        Event::Heard
    }

    /// Sends what a program says on its stream: a message as JSON, or that none follows.
    pub(super) fn speak(&mut self, s: usize, said: &Said) -> io::Result<Spoken> {
        let Call { reply, talk: Some(talk), .. } = &self.calls[s] else { return Ok(Spoken::Unsaid) };
        let mut bytes = Vec::new();
        match said {
            Said::Leave(_) => return Ok(Spoken::Left),
            _ if reply.has_status() => return Ok(Spoken::Unsaid),
            Said::Text(json) => request::write_message(&talk.method, json.as_bytes(), false, &mut bytes)
                .map_err(io::Error::other)?,
            Said::Close(..) => {}
            Said::Binary(_) | Said::Ping(_) => return Ok(Spoken::Unsaid),
        }
        self.http.put(s, bytes.into(), matches!(said, Said::Close(..)), true);
        self.http.send(s)?;
        Ok(Spoken::Said)
    }
}
