//! The two ends of a connection that is nothing but buffers: the library reads and writes one, the back end the
//! other. Whoever puts bytes in polls the library afterwards; hence nobody is woken here.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that may wait to be sent; the library holds more back until these have gone.
pub(super) const OUTPUT_BYTES: usize = 256 << 10;

/// Room for input that is kept where nothing lies in it.
const INPUT_KEPT_BYTES: usize = 256 << 10;

/// What is between the library and the socket.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    input: Vec<u8>,
    read: usize,
    ended: bool,
    /// What is to be sent.
    pub output: Vec<u8>,
}

impl Buffers {
    /// Bytes that came.
    pub fn feed(&mut self, bytes: &[u8]) {
        // what has been read is not kept
        if self.read > self.input.len() / 2 || self.read == self.input.len() {
            self.input.drain(..self.read);
            self.read = 0;
            self.input.shrink_to(INPUT_KEPT_BYTES);
        }
        self.input.extend_from_slice(bytes);
    }

    /// Bytes that came and that the library has not read: it reads on only as long as it can say what it has to.
    pub fn unread(&self) -> usize {
        self.input.len() - self.read
    }

    /// Nothing more will come.
    pub fn end(&mut self) {
        self.ended = true;
    }
}

/// The library's end.
#[derive(Debug, Clone, Default)]
pub(super) struct Pipe(pub Rc<RefCell<Buffers>>);

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let buffers = &mut *self.0.borrow_mut();
        let waiting = &buffers.input[buffers.read..];
        if waiting.is_empty() && !buffers.ended {
            return Poll::Pending;
        }
        let taken = waiting.len().min(into.remaining());
        into.put_slice(&waiting[..taken]);
        buffers.read += taken;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let output = &mut self.0.borrow_mut().output;
        let room = OUTPUT_BYTES.saturating_sub(output.len());
        if room == 0 {
            return Poll::Pending;
        }
        let taken = bytes.len().min(room);
        output.extend_from_slice(&bytes[..taken]);
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn bytes_go_through_in_order_and_the_output_is_bounded() {
        let mut pipe = Pipe::default();
        let cx = &mut Context::from_waker(Waker::noop());
        let read = |pipe: &mut Pipe, cx: &mut Context<'_>| {
            let mut room = [0; 4];
            let mut buffer = ReadBuf::new(&mut room);
            let poll = Pin::new(pipe).poll_read(cx, &mut buffer);
            poll.map(|_| buffer.filled().to_vec())
        };
        assert!(read(&mut pipe, cx).is_pending());
        pipe.0.borrow_mut().feed(b"abc");
        pipe.0.borrow_mut().feed(b"def");
        assert_eq!(read(&mut pipe, cx), Poll::Ready(b"abcd".to_vec()));
        pipe.0.borrow_mut().feed(b"g");
        assert_eq!(read(&mut pipe, cx), Poll::Ready(b"efg".to_vec()));
        assert!(read(&mut pipe, cx).is_pending());
        pipe.0.borrow_mut().end();
        assert_eq!(read(&mut pipe, cx), Poll::Ready(Vec::new()), "the end");

        let unread = |pipe: &Pipe| pipe.0.borrow().unread();
        pipe.0.borrow_mut().feed(b"abcdef");
        assert!(read(&mut pipe, cx).is_ready());
        assert_eq!(unread(&pipe), 2);
        pipe.0.borrow_mut().feed(b"gh");
        assert_eq!((unread(&pipe), pipe.0.borrow().input.len()), (4, 4), "what was read is gone");

        let much = vec![7; OUTPUT_BYTES + 1];
        assert!(matches!(Pin::new(&mut pipe).poll_write(cx, &much), Poll::Ready(Ok(OUTPUT_BYTES))));
        assert!(Pin::new(&mut pipe).poll_write(cx, b"x").is_pending());
        pipe.0.borrow_mut().output.clear();
        assert!(matches!(Pin::new(&mut pipe).poll_write(cx, b"x"), Poll::Ready(Ok(1))));
    }
}
