//! A page of messages as JSON, made piece by piece as the client takes it.

use std::convert::Infallible;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tidemark_store::messages::Message;
use tokio::sync::OwnedSemaphorePermit;

use crate::payload::USER_DIGITS;

/// Most messages of one page, and as many as there are where nothing is said.
pub(crate) const LIMIT_MAX: usize = 100_000;

/// A piece is sent when it has this many bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// The body of an answer: the messages that are still to be rendered, and the room that they take.
pub(crate) struct Rendering {
    messages: std::vec::IntoIter<Message>,
    is_begun: bool,
    is_over: bool,
    left_bytes: u64,
    _room: OwnedSemaphorePermit,
}

impl Rendering {
    pub(crate) fn new(messages: Vec<Message>, room: OwnedSemaphorePermit) -> Self {
        let commas = messages.len().saturating_sub(1);
        let left_bytes = messages.iter().map(rendered_bytes).sum::<usize>() + commas + 2;
        let messages = messages.into_iter();
        Rendering { messages, is_begun: false, is_over: false, left_bytes: left_bytes as u64, _room: room }
    }

    fn piece(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let mut piece = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 8);
        while piece.len() < PIECE_BYTES {
            let Some(message) = self.messages.next() else {
                piece.extend_from_slice(if self.is_begun { b"]" } else { b"[]" });
                self.is_over = true;
                break;
            };
            piece.push(if self.is_begun { b',' } else { b'[' });
            self.is_begun = true;
            render(&message, &mut piece);
        }
        self.left_bytes = self.left_bytes.saturating_sub(piece.len() as u64);
        Some(piece.into())
    }
}

impl Body for Rendering {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.piece().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left_bytes)
    }
}

/// `{"user":"0000000001","time":1425000000123,"type":"ABC","payload":"…"}`.
fn render(message: &Message, to: &mut Vec<u8>) {
    let _ = write!(to, "{{\"user\":\"{:0USER_DIGITS$}\",\"time\":", message.user); // a Vec takes everything
    to.extend_from_slice(itoa::Buffer::new().format(message.time_ms).as_bytes());
    to.extend_from_slice(b",\"type\":");
    string(&message.kind, to);
    to.extend_from_slice(b",\"payload\":");
    string(&message.payload, to);
    to.push(b'}');
}

/// A text in quotes. What is no UTF-8 cannot have been taken here; it is shown with marks in place of it.
fn string(text: &[u8], to: &mut Vec<u8>) {
    let _ = serde_json::to_writer(to, &String::from_utf8_lossy(text)); // a Vec takes everything
}

/// How many bytes [`render`] makes of a message.
pub(crate) fn rendered_bytes(message: &Message) -> usize {
    let fixed = r#"{"user":"","time":,"type":,"payload":}"#.len();
    let user = itoa::Buffer::new().format(message.user).len().max(USER_DIGITS);
    let time = itoa::Buffer::new().format(message.time_ms).len();
    fixed + user + time + string_bytes(&message.kind) + string_bytes(&message.payload)
}

/// How many bytes [`string`] makes of a text.
fn string_bytes(text: &[u8]) -> usize {
    let of = |byte: u8| match byte {
        b'"' | b'\\' | 0x08 | 0x09 | 0x0a | 0x0c | 0x0d => 2,
        0..0x20 => 6,
        _ => 1,
    };
    2 + String::from_utf8_lossy(text).bytes().map(of).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use tidemark_store::messages::MessageId;
    use tokio::sync::Semaphore;

    use super::*;

    fn rendered(messages: Vec<Message>) -> (u64, Vec<u8>) {
        let turn = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let mut rendering = Rendering::new(messages, turn);
        let announced = rendering.size_hint().exact().unwrap();
        let mut bytes = Vec::new();
        while let Some(piece) = rendering.piece() {
            bytes.extend_from_slice(&piece);
            assert_eq!(rendering.size_hint().exact(), Some(announced - bytes.len() as u64));
        }
        (announced, bytes)
    }

    #[test]
    fn nothing_is_an_empty_array() {
        assert_eq!(rendered(Vec::new()), (2, b"[]".to_vec()));
    }

    #[test]
    fn a_message_is_shown_with_its_key_and_as_it_was_sent() {
        let payload = "00000000071425000000123ABC\"1\"";
        let message = Message {
            user: 7,
            time_ms: 1_425_000_000_123,
            kind: *b"ABC",
            id: MessageId::NONE,
            payload: payload.into(),
        };
        let text = String::from_utf8(rendered(vec![message]).1).unwrap();
        assert_eq!(
            text,
            r#"[{"user":"0000000007","time":1425000000123,"type":"ABC","payload":"00000000071425000000123ABC\"1\""}]"#
        );
    }

    proptest! {
        #[test]
        fn what_is_announced_is_sent_and_is_json(texts in proptest::collection::vec(any::<Vec<u8>>(), 0..2000), user: u64, time_ms: u64, kind: [u8; 3]) {
            let messages: Vec<Message> = texts.iter().map(|text| Message { user, time_ms, kind, id: MessageId::NONE, payload: text.clone().into() }).collect();
            let (announced, bytes) = rendered(messages);
            prop_assert_eq!(announced, bytes.len() as u64);
            let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            for (shown, text) in value.as_array().unwrap().iter().zip(&texts) {
                prop_assert_eq!(shown["payload"].as_str().unwrap(), String::from_utf8_lossy(text));
                prop_assert_eq!(shown["time"].as_u64(), Some(time_ms));
            }
        }
    }
}
