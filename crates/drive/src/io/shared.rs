//! One back end for several transports: each has a range of its sockets, numbered as if there were no others, and one wait
//! is for all.
//!
//! What a transport sends changes places with the buffer of the back end, and what comes is copied once: nothing is
//! allocated for it, and no transport looks into what another one is told.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::{Event, Io, OUTPUT_KEPT_BYTES};

/// The back end and what is known of it between the calls of those who share it.
struct Common<I> {
    io: I,
    /// What happened last and has not been told to the part whose socket it is.
    pending: Option<(usize, Event)>,
    /// The shortest time that a part may wait, while they are asked; none is forever.
    least: Option<Duration>,
}

/// A back end that is shared.
pub(crate) struct SharedIo<I>(Rc<RefCell<Common<I>>>);

impl<I: Io> SharedIo<I> {
    pub fn new(io: I) -> Self {
        SharedIo(Rc::new(RefCell::new(Common { io, pending: None, least: None })))
    }

    /// Those of its sockets.
    pub fn part(&self, sockets: Range<usize>) -> PartIo<I> {
        let outputs = sockets.clone().map(|_| Vec::new()).collect();
        PartIo {
            common: self.0.clone(),
            sockets,
            outputs,
            received: Vec::new(),
            arrived: None,
            taken_at: None,
        }
    }

    /// The socket whose news nobody has taken yet.
    pub fn pending(&self) -> Option<usize> {
        self.0.borrow().pending.as_ref().map(|(socket, _)| *socket)
    }

    /// Parts are asked from now on how long they may wait, this long at most.
    pub fn ask(&self, at_most: Option<Duration>) {
        self.0.borrow_mut().least = at_most;
    }

    /// Waits as long as the parts may, all of them.
    pub fn wait(&self) -> io::Result<()> {
        let common = &mut *self.0.borrow_mut();
        match common.pending {
            Some(_) => Ok(()),
            None => common.io.wait(common.least),
        }
    }

    /// What was sent leaves now.
    pub fn hand_over(&self) -> io::Result<()> {
        self.0.borrow_mut().io.hand_over()
    }
}

/// Some sockets of a shared back end. It never waits: [`SharedIo::wait`] does, for all.
pub(crate) struct PartIo<I> {
    common: Rc<RefCell<Common<I>>>,
    sockets: Range<usize>,
    outputs: Vec<Vec<u8>>,
    received: Vec<u8>,
    arrived: Option<u64>,
    taken_at: Option<Instant>,
}

impl<I: Io> Io for PartIo<I> {
    fn point(&mut self, connection: usize, address: SocketAddr) {
        self.common.borrow_mut().io.point(self.sockets.start + connection, address);
    }

    fn open(&mut self, connection: usize) -> io::Result<()> {
        self.common.borrow_mut().io.open(self.sockets.start + connection)
    }

    fn output(&mut self, connection: usize) -> &mut Vec<u8> {
        let output = &mut self.outputs[connection];
        output.clear();
        output
    }

    fn send(&mut self, connection: usize) -> io::Result<()> {
        let io = &mut self.common.borrow_mut().io;
        let socket = self.sockets.start + connection;
        std::mem::swap(io.output(socket), &mut self.outputs[connection]);
        io.send(socket)
    }

    fn push(&mut self, connection: usize) -> io::Result<()> {
        self.common.borrow_mut().io.push(self.sockets.start + connection)
    }

    fn is_sending(&self, connection: usize) -> bool {
        self.common.borrow().io.is_sending(self.sockets.start + connection)
    }

    fn tell_taken(&mut self, connection: usize) -> io::Result<()> {
        self.common.borrow_mut().io.tell_taken(self.sockets.start + connection)
    }

    fn close(&mut self, connection: usize) {
        let socket = self.sockets.start + connection;
        let common = &mut *self.common.borrow_mut();
        common.pending.take_if(|(pending, _)| *pending == socket);
        common.io.close(socket);
        let output = &mut self.outputs[connection];
        output.clear();
        output.shrink_to(OUTPUT_KEPT_BYTES);
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        let least = &mut self.common.borrow_mut().least;
        *least = at_most.into_iter().chain(*least).min();
        Ok(())
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        let common = &mut *self.common.borrow_mut();
        self.taken_at = None;
        if common.pending.is_none() {
            common.pending = common.io.next();
        }
        let (socket, event) = common.pending.take_if(|(socket, _)| self.sockets.contains(socket))?;
        self.taken_at = common.io.taken_at();
        if let Event::Received { .. } = event {
            self.received.clear();
            self.received.extend_from_slice(common.io.received());
            self.arrived = common.io.arrived();
        }
        Some((socket - self.sockets.start, event))
    }

    fn received(&self) -> &[u8] {
        &self.received
    }

    fn arrived(&self) -> Option<u64> {
        self.arrived
    }

    fn taken_at(&self) -> Option<Instant> {
        self.taken_at
    }

    /// Of all parts together.
    fn traffic(&self) -> (u64, u64) {
        self.common.borrow().io.traffic()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A back end whose news are told beforehand, and that keeps what is asked of it.
    #[derive(Default)]
    struct Told {
        news: VecDeque<(usize, Event)>,
        outputs: Vec<Vec<u8>>,
        sent: Vec<(usize, Vec<u8>)>,
        waited: Vec<Option<Duration>>,
    }

    impl Io for Told {
        fn point(&mut self, _: usize, _: SocketAddr) {}
        fn open(&mut self, connection: usize) -> io::Result<()> {
            self.news.push_back((connection, Event::Opened));
            Ok(())
        }
        fn output(&mut self, connection: usize) -> &mut Vec<u8> {
            self.outputs.resize_with(self.outputs.len().max(connection + 1), Vec::new);
            self.outputs[connection].clear();
            &mut self.outputs[connection]
        }
        fn send(&mut self, connection: usize) -> io::Result<()> {
            self.sent.push((connection, self.outputs[connection].clone()));
            Ok(())
        }
        fn is_sending(&self, _: usize) -> bool {
            false
        }
        fn close(&mut self, _: usize) {}
        fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
            self.waited.push(at_most);
            Ok(())
        }
        fn next(&mut self) -> Option<(usize, Event)> {
            self.news.pop_front()
        }
        fn received(&self) -> &[u8] {
            b"came"
        }
        fn traffic(&self) -> (u64, u64) {
            (1, 2)
        }
    }

    fn received() -> Event {
        Event::Received { closing: false }
    }

    fn of(found: Option<(usize, Event)>) -> Option<(usize, &'static str)> {
        let (socket, event) = found?;
        Some((socket, if matches!(event, Event::Opened) { "opened" } else { "received" }))
    }

    #[test]
    fn each_part_is_told_of_its_own_sockets_in_its_own_numbers() {
        let shared = SharedIo::new(Told::default());
        let (mut one, mut two) = (shared.part(0..2), shared.part(2..5));
        two.open(1).unwrap();
        one.open(1).unwrap();
        assert_eq!((of(one.next()), shared.pending()), (None, Some(3)), "of another's first");
        assert_eq!((of(two.next()), of(two.next())), (Some((1, "opened")), None));
        assert_eq!((of(one.next()), of(one.next()), shared.pending()), (Some((1, "opened")), None, None));
        let send = |part: &mut PartIo<Told>, text: &str| {
            part.output(0).extend_from_slice(text.as_bytes());
            part.send(0).unwrap();
        };
        send(&mut one, "a");
        send(&mut two, "b");
        send(&mut one, "c");
        let sent = [(0, "a"), (2, "b"), (0, "c")].map(|(socket, text)| (socket, text.as_bytes().to_vec()));
        assert_eq!(shared.0.borrow().sent(), sent);
    }

    impl Common<Told> {
        fn sent(&self) -> &[(usize, Vec<u8>)] {
            &self.io.sent
        }
    }

    #[test]
    fn what_came_stays_the_parts_own_and_nothing_follows_a_close() {
        let shared = SharedIo::new(Told::default());
        let (mut one, mut two) = (shared.part(0..1), shared.part(1..2));
        shared.0.borrow_mut().io.news.extend([(1, received()), (1, received()), (0, received())]);
        assert_eq!(of(two.next()), Some((0, "received")));
        assert_eq!((two.received(), one.received()), (&b"came"[..], &b""[..]));
        assert_eq!((of(one.next()), shared.pending()), (None, Some(1)));
        two.close(0);
        assert_eq!((shared.pending(), of(two.next())), (None, None), "it is closed");
        assert_eq!(of(one.next()), Some((0, "received")));
    }

    #[test]
    fn one_wait_is_for_all_and_as_short_as_any_part_wants() {
        let shared = SharedIo::new(Told::default());
        let (mut one, mut two) = (shared.part(0..1), shared.part(1..2));
        let ms = |ms| Some(Duration::from_millis(ms));
        for (at_most, asked, waits) in
            [(ms(9), [None, ms(5)], ms(5)), (None, [None, None], None), (None, [ms(0), None], ms(0))]
        {
            shared.ask(at_most);
            one.wait(asked[0]).unwrap();
            two.wait(asked[1]).unwrap();
            shared.wait().unwrap();
            assert_eq!(shared.0.borrow().io.waited.last(), Some(&waits));
        }
        shared.0.borrow_mut().io.news.push_back((1, received()));
        assert_eq!(of(one.next()), None);
        let before = shared.0.borrow().io.waited.len();
        shared.wait().unwrap();
        assert_eq!(shared.0.borrow().io.waited.len(), before, "nobody has taken the news yet");
    }
}
