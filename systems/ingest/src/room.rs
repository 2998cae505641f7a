//! The memory that pages may hold until their clients have taken them.
//!
//! A client may take its page as slowly as it likes, short of stopping, so pages are held for long. Each gets an eighth
//! of what is still free at most: however many slow clients there are, those that come then get smaller pages, and
//! nobody waits for a slow one.

use std::sync::Arc;

use tidemark_store::messages::{Message, Page};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::page::rendered_bytes;
use crate::refusal::Refusal;

/// Bytes of all pages that are held.
const ALL_BYTES: usize = 64 << 20;
/// Of what is free a page gets this part.
const PART: usize = 8;
/// Less is no page: a message of the largest size, each of its bytes escaped, takes half of it.
const LEAST_BYTES: usize = 64 << 10;

/// What is free.
#[derive(Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    pub(crate) fn new() -> Room {
        Room(Arc::new(Semaphore::new(ALL_BYTES)))
    }

    /// Cuts a page to what there is room for and takes that. Its `next` then leads to what was cut off.
    pub(crate) fn take(&self, page: &mut Page) -> Result<OwnedSemaphorePermit, Refusal> {
        loop {
            let most = self.0.available_permits() / PART;
            if most < LEAST_BYTES {
                let text = "too many pages are being sent; try again later";
                return Err(Refusal::Unavailable(text.into()));
            }
            let bytes = cut(page, most);
            // at most all bytes, which are fewer than 32 bits tell apart
            if let Ok(taken) = self.0.clone().try_acquire_many_owned(bytes as u32) {
                return Ok(taken);
            }
        }
    }
}

/// Cuts a page so that it has at most `most` bytes as JSON; returns how many it has.
fn cut(page: &mut Page, most: usize) -> usize {
    let mut bytes = 2; // brackets
    for (index, message) in page.messages.iter().enumerate() {
        let with_it = bytes + rendered_bytes(message) + 1;
        if with_it > most {
            page.next = page.messages[..index].last().map(Message::place);
            page.messages.truncate(index);
            break;
        }
        bytes = with_it;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use tidemark_store::messages::{PAYLOAD_BYTES_MAX, Place};

    use super::*;

    fn page(messages: u64) -> Page {
        // the largest there are
        let payload = vec![1; PAYLOAD_BYTES_MAX];
        let place = |time_ms| Place { kind: *b"ABC", ..Place::first_of(time_ms) };
        let message = |time_ms| Message::at(1, place(time_ms), payload.clone().into());
        Page { messages: (0..messages).map(message).collect(), next: None }
    }

    #[test]
    fn a_page_is_cut_and_leads_to_the_rest() {
        let mut all = page(5);
        let one = rendered_bytes(&all.messages[0]) + 1;
        assert_eq!((cut(&mut all, 5 * one + 2), all.messages.len(), all.next), (5 * one + 2, 5, None));
        let bytes = cut(&mut all, 5 * one + 1);
        let next = Place { kind: *b"ABC", ..Place::first_of(3) };
        assert_eq!((bytes, all.messages.len(), all.next), (4 * one + 2, 4, Some(next)));
    }

    #[test]
    fn all_together_are_bounded_and_those_that_come_later_still_get_some() {
        let (room, mut held, mut messages) = (Room::new(), Vec::new(), Vec::new());
        let refusal = loop {
            let mut page = page(400);
            match room.take(&mut page) {
                Ok(taken) => held.push(taken),
                Err(refusal) => break refusal,
            }
            messages.push(page.messages.len());
        };
        assert!(matches!(refusal, Refusal::Unavailable(_)));
        assert!(held.len() > 30, "{} pages", held.len());
        assert!(messages.iter().all(|messages| *messages > 0), "{messages:?}");
        assert!(held.iter().map(OwnedSemaphorePermit::num_permits).sum::<usize>() <= ALL_BYTES);
        drop(held);
        assert_eq!(room.0.available_permits(), ALL_BYTES);
    }

    #[test]
    fn an_empty_page_is_one() {
        let mut empty = page(0);
        assert!(Room::new().take(&mut empty).is_ok());
        assert_eq!(empty.next, None);
    }
}
