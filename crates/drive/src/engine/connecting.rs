//! Connections of a thread: made for a session or ahead of all, handed on, closed.

use crate::engine::connection::ConnectionState;
use crate::engine::exchange::Placed;
use crate::engine::request::Prepared;
use crate::engine::thread::Thread;
use crate::engine::timers::Alarm;
use crate::session::SessionState;
use crate::session::failure::Failure;

impl Thread<'_> {
    /// Makes the connection that a session holds; its request follows.
    pub fn connect(&mut self, s: usize, c: usize, now_ns: u64) -> Placed {
        match self.transport.open(c) {
            Ok(()) => {
                self.pools.get(c).state = ConnectionState::Connecting;
                let session = &mut self.flow.sessions[s];
                session.state = SessionState::Connecting;
                session.cold_or_new().connecting.get_or_insert_default().begun_ns = now_ns;
                let connect_by_ns = now_ns.saturating_add(self.bounds.connect_timeout_ns);
                self.timers.set(s, Alarm::Timeout, session.deadline_ns.min(connect_by_ns));
                Placed::UnderWay
            }
            Err(error) => {
                self.close(c);
                self.pools.get(c).refused(now_ns);
                Placed::failed(Failure::Connect(error))
            }
        }
    }

    /// A connection is open.
    pub fn made(&mut self, c: usize) {
        self.pools.get(c).made();
        if self.transport.is_first(c) {
            let target = self.pools.target_of(c);
            self.flow.open[target] += 1;
            self.recorder.connected();
        }
    }

    /// Hands a connection on to who waits longest, or back to the pool.
    pub fn release(&mut self, connection: u32, now_ns: u64) {
        let target = self.pools.target_of(connection as usize);
        match self.flow.queue.grant(connection, target, &mut self.flow.sessions, now_ns) {
            Some(next) => self.pools.get(connection as usize).session = Some(next),
            None => self.pools.give(connection),
        }
    }

    /// A session that has to wait holds nothing meanwhile that others may wait for, lest they wait for each other. What
    /// builds on what it did before stays its own: a transaction, a WebSocket.
    pub fn lend(&mut self, s: usize, now_ns: u64) {
        for target in 0..self.flow.sessions[s].elsewhere().len() {
            let held = self.flow.sessions[s].elsewhere()[target];
            let lends = self.pools.to(target).pool.lends;
            let lent = held.filter(|c| lends && !self.is_bound(*c as usize));
            if let Some(connection) = lent {
                self.flow.sessions[s].elsewhere()[target] = None;
                self.release(connection, now_ns);
            }
        }
    }

    /// A session that is over gives a connection back.
    fn give_back(&mut self, s: usize, connection: u32, now_ns: u64) {
        if self.flow.binds {
            self.lose(s, connection as usize, now_ns);
            if !self.transport.leave(connection as usize) {
                self.close(connection as usize);
            }
        }
        self.release(connection, now_ns);
    }

    /// Whether a session that is over holds one connection, which it would be given if it gave it back and took one.
    pub fn may_keep(&mut self, s: usize) -> bool {
        let session = &mut self.flow.sessions[s];
        let Some(connection) = session.connection else { return false };
        !self.flow.binds
            && session.elsewhere().is_empty()
            && self.flow.queue.len() == 0
            && self.pools.to(session.target()).would_be_next(connection)
    }

    /// A user's next session has begun, with the connection of the one before, which is its own if it makes a request of that
    /// target at once.
    pub fn keep(&mut self, s: usize, now_ns: u64) {
        let session = &self.flow.sessions[s];
        let next = session.next_request(&self.kinds[session.kind()].ops);
        let goes_there =
            next.is_some_and(|next| usize::from(self.prepared[next as usize].target) == session.target());
        match session.connection.filter(|_| goes_there) {
            Some(connection) => self.pools.to(session.target()).take_again(connection),
            None => self.give_all_back(s, now_ns),
        }
    }

    pub fn give_all_back(&mut self, s: usize, now_ns: u64) {
        let session = &mut self.flow.sessions[s];
        let others = session.elsewhere().len();
        if let Some(connection) = session.connection.take() {
            self.give_back(s, connection, now_ns);
        }
        for target in 0..others {
            if let Some(connection) = self.flow.sessions[s].elsewhere()[target].take() {
                self.give_back(s, connection, now_ns);
            }
        }
    }

    /// Closes the connection that a session holds; it keeps the right to make it again.
    pub fn drop_connection(&mut self, s: usize, now_ns: u64) {
        if let Some(c) = self.flow.sessions[s].connection.map(|c| c as usize) {
            if self.pools.get(c).state == ConnectionState::Connecting {
                self.pools.get(c).timed_out(now_ns);
            }
            self.close(c);
        }
    }

    /// Closes a connection.
    pub fn close(&mut self, c: usize) {
        let target = self.pools.target_of(c);
        let connection = self.pools.get(c);
        if connection.state == ConnectionState::Open && self.transport.is_first(c) {
            self.flow.open[target] -= 1;
        }
        connection.state = ConnectionState::Closed;
        connection.exchanging = false;
        self.transport.close(c);
    }

    /// Begins to make what is to be there before it is needed and is not, and gives up what takes too long.
    pub fn make_ahead(&mut self, now_ns: u64) {
        for target in 0..self.ahead.len() {
            if self.ahead[target].is_wanted() && !self.flow.draining {
                self.make_ahead_to(target, now_ns);
            }
        }
    }

    fn make_ahead_to(&mut self, target: usize, now_ns: u64) {
        while let Some(c) = self.ahead[target].overdue(now_ns) {
            self.not_made(c, &Failure::ConnectTimeout, now_ns);
        }
        while let Some(c) = self.ahead[target].next(self.pools.to(target), now_ns) {
            match self.transport.open(c) {
                Ok(()) => {
                    self.pools.get(c).state = ConnectionState::Connecting;
                    self.ahead[target].began(c, now_ns.saturating_add(self.bounds.connect_timeout_ns));
                }
                Err(error) => return self.not_made(c, &Failure::Connect(error), now_ns),
            }
        }
    }

    /// One that was begun ahead is made, or could not be.
    fn over_ahead(&mut self, c: usize) {
        let target = self.pools.target_of(c);
        if let Some(ahead) = self.ahead.get_mut(target) {
            ahead.over(c);
        }
    }

    /// The first label of those that go to a target.
    fn label_to(&self, target: usize) -> u16 {
        let goes_there = |request: &&Prepared| usize::from(request.target) == target;
        self.prepared.iter().filter(goes_there).map(|request| request.label).min().unwrap_or(0)
    }

    /// One is there, for whoever needs it first.
    pub fn made_ahead(&mut self, c: usize, now_ns: u64) {
        self.over_ahead(c);
        self.made(c);
        self.release(c as u32, now_ns);
    }

    /// One could not be made. No request has failed by that: it is an example, and tried again later.
    pub fn not_made(&mut self, c: usize, failure: &Failure, now_ns: u64) {
        self.over_ahead(c);
        self.close(c);
        match failure {
            Failure::ConnectTimeout => self.pools.get(c).timed_out(now_ns),
            _ => self.pools.get(c).refused(now_ns),
        }
        let (label, outcome) = (self.label_to(self.pools.target_of(c)), failure.outcome());
        if self.recorder.wants_example(label, outcome) {
            let detail = format!("{failure} (a connection that was to be there before it was needed)");
            self.recorder.example(now_ns, label, outcome, detail);
        }
        self.release(c as u32, now_ns);
    }
}
