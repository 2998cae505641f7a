//! A thread's connections: their states, and which are free.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use tidemark_scenario::plan::Choose;

use crate::clock::MILLISECOND_NS;

/// Back-off after the first failure to connect; doubles with each further one.
const FIRST_BACK_OFF_NS: u64 = MILLISECOND_NS;
/// Longest back-off.
const LONGEST_BACK_OFF_NS: u64 = 100 * MILLISECOND_NS;

/// No connection.
const NONE: u32 = u32::MAX;

/// What a connection is good for right now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// There is no socket.
    #[default]
    Closed,
    /// It is being made.
    Connecting,
    /// It can carry a request, or carries one.
    Open,
}

/// One connection. Half a cache line each.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct Connection {
    /// Its state.
    pub state: ConnectionState,
    /// The session that holds it.
    pub session: Option<u32>,
    /// Whether a request is under way on it.
    pub exchanging: bool,
    /// Whether it has not brought an answer yet.
    pub fresh: bool,
    /// Whether the last try to make it was refused or broke, and did not only take too long.
    pub was_refused: bool,
    /// Which taking was its last.
    turn: u64,
    /// Not to be tried again before.
    pub retry_ns: u64,
    back_off_ns: u32,
}

impl Connection {
    fn new() -> Self {
        Connection {
            state: ConnectionState::Closed,
            session: None,
            exchanging: false,
            fresh: true,
            was_refused: false,
            turn: 0,
            retry_ns: 0,
            back_off_ns: 0,
        }
    }

    /// It could not be made: the next try waits, longer each time.
    pub fn refused(&mut self, now_ns: u64) {
        let back_off_ns = (u64::from(self.back_off_ns) * 2).clamp(FIRST_BACK_OFF_NS, LONGEST_BACK_OFF_NS);
        self.back_off_ns = back_off_ns as u32;
        self.retry_ns = now_ns + back_off_ns;
        self.was_refused = true;
    }

    /// It was not made in time: the next try waits as after a refusal.
    pub fn timed_out(&mut self, now_ns: u64) {
        self.refused(now_ns);
        self.was_refused = false;
    }

    /// It is made.
    pub fn made(&mut self) {
        self.state = ConnectionState::Open;
        self.fresh = true;
        self.back_off_ns = 0;
        self.retry_ns = 0;
    }
}

/// The connections of a thread to one target, at most as many as its share.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Number of the first; all have numbers of the thread.
    first: u32,
    /// Whether a connection is as good as another, so that a session may give one back before it ends.
    pub lends: bool,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// How many there are.
    made: usize,
    most: usize,
    choose: Choose,
    /// Sockets that they share.
    sockets: usize,
    /// Free and open when they were given back, the next to be taken on top: of those that share a socket the first, so
    /// that no socket carries two requests while another one carries none, and among these by choice either that which
    /// was taken least recently or the first made; or where sockets are to be filled, of the first of them. (That which
    /// has been free longest would leave a slow one out of every second round, and the slow part of a system would be
    /// asked less often than the others.)
    ///
    /// In turn, or in the order in which they were made, thousands are used again and again in about the same order, as
    /// users of a closed load do it. The last used on top would shuffle them whenever answers come several at once; a
    /// system, which finds what it keeps for a connection fastest where it goes through them in order, then spends a
    /// third more on each request, for no reason but the driver's choice.
    free_open: BinaryHeap<Reverse<(u32, u64, u32)>>,
    /// The only one of these, where there is no other; then none is above. It is ranked once there are more.
    /// [`NONE`] where there is none, as two stores of an option are slow to be read as one.
    alone: u32,
    /// Counts what was taken.
    turn: u64,
    /// Free and closed, the longest closed in front.
    free_closed: VecDeque<u32>,
}

impl Pool {
    /// For at most `most` connections over so many sockets.
    pub fn new(most: usize, sockets: usize, choose: Choose) -> Self {
        Pool {
            first: 0,
            lends: true,
            keep_alive: true,
            made: 0,
            most,
            choose,
            sockets: sockets.max(1),
            free_open: BinaryHeap::new(),
            alone: NONE,
            turn: 0,
            free_closed: VecDeque::new(),
        }
    }

    /// How many there may be.
    pub fn most(&self) -> usize {
        self.most
    }
}

/// The pool of one target, with the connections of all.
#[derive(Debug)]
pub(crate) struct PoolTo<'a> {
    /// Which of them are free.
    pub pool: &'a mut Pool,
    connections: &'a mut Vec<Connection>,
}

impl PoolTo<'_> {
    /// A connection by its number.
    pub fn get(&mut self, connection: usize) -> &mut Connection {
        &mut self.connections[connection]
    }

    /// A connection for a user that begins: in turn, each brings one of its own, as far as there may be more.
    pub fn take_for_new_user(&mut self, now_ns: u64) -> Option<u32> {
        let new = match self.pool.choose {
            Choose::InTurn | Choose::Fill => self.new_below(self.pool.most),
            Choose::FirstFree => None,
        };
        new.or_else(|| self.take(now_ns))
    }

    /// A new connection, where there are fewer than so many.
    pub fn new_below(&mut self, wanted: usize) -> Option<u32> {
        if self.pool.made >= wanted.min(self.pool.most) {
            return None;
        }
        let new = self.pool.first as usize + self.pool.made;
        self.pool.made += 1;
        if self.connections.len() <= new {
            self.connections.resize_with(new + 1, Connection::new);
        }
        Some(new as u32)
    }

    /// The free connection that has been closed longest, if it may be tried.
    pub fn take_closed(&mut self, now_ns: u64) -> Option<u32> {
        let front = *self.pool.free_closed.front()?;
        if self.get(front as usize).retry_ns > now_ns {
            return None;
        }
        self.pool.free_closed.pop_front()
    }

    /// A free connection for a session: of the open ones the next by choice, then a closed one that may be tried, then a
    /// new one, and at last one that must wait before it may be tried. None if all are held.
    pub fn take(&mut self, now_ns: u64) -> Option<u32> {
        let open = self.take_open();
        let free = open.or_else(|| self.take_closed(now_ns)).or_else(|| self.new_below(self.pool.most));
        let taken = free.or_else(|| self.pool.free_closed.pop_front())?;
        self.pool.turn += 1;
        let turn = self.pool.turn;
        self.get(taken as usize).turn = turn;
        Some(taken)
    }

    /// Whether a connection that is given back now is the next that is taken.
    pub fn would_be_next(&self, connection: u32) -> bool {
        let own = &self.connections[connection as usize];
        self.pool.alone == NONE && self.pool.free_open.is_empty() && own.state == ConnectionState::Open
    }

    /// Takes one that is held, as if it had been given back before.
    pub fn take_again(&mut self, connection: u32) {
        self.pool.turn += 1;
        let turn = self.pool.turn;
        self.get(connection as usize).turn = turn;
    }

    fn take_open(&mut self) -> Option<u32> {
        let next = |pool: &mut Pool| match std::mem::replace(&mut pool.alone, NONE) {
            NONE => pool.free_open.pop().map(|Reverse((.., index))| index),
            alone => Some(alone),
        };
        while let Some(index) = next(self.pool) {
            if self.get(index as usize).state == ConnectionState::Open {
                return Some(index);
            }
            // The peer closed it while nobody held it.
            self.pool.free_closed.push_back(index);
        }
        None
    }

    /// Gives a connection back.
    pub fn give(&mut self, connection: u32) {
        let freed = &mut self.connections[connection as usize];
        debug_assert!(
            !freed.exchanging && freed.state != ConnectionState::Connecting,
            "only idle connections are given back"
        );
        freed.session = None;
        match freed.state {
            ConnectionState::Open if self.pool.alone == NONE && self.pool.free_open.is_empty() => {
                self.pool.alone = connection;
            }
            ConnectionState::Open => {
                let other = std::mem::replace(&mut self.pool.alone, NONE);
                if other != NONE {
                    self.rank(other);
                }
                self.rank(connection);
            }
            ConnectionState::Closed | ConnectionState::Connecting => {
                self.pool.free_closed.push_back(connection)
            }
        }
    }

    /// Puts one where it is found when its turn comes.
    fn rank(&mut self, connection: u32) {
        let (own, sockets) = (connection - self.pool.first, self.pool.sockets as u32);
        let (rank, order) = match self.pool.choose {
            Choose::InTurn => (own / sockets, self.connections[connection as usize].turn),
            Choose::FirstFree => (own / sockets, connection.into()),
            Choose::Fill => (own % sockets, connection.into()),
        };
        self.pool.free_open.push(Reverse((rank, order, connection)));
    }
}

/// The pools of a thread, one for each target: a full one keeps nobody from another target.
#[derive(Debug)]
pub(crate) struct Pools {
    pools: Vec<Pool>,
    /// All connections by number.
    connections: Vec<Connection>,
}

impl Pools {
    /// In the order of the targets; connections are numbered through.
    pub fn new(mut pools: Vec<Pool>) -> Self {
        let mut first = 0;
        for pool in &mut pools {
            pool.first = first;
            first += pool.most as u32;
        }
        Pools { pools, connections: Vec::new() }
    }

    /// Which target a connection goes to.
    pub fn target_of(&self, connection: usize) -> usize {
        // of one target nothing is looked at
        if self.pools.len() == 1 {
            return 0;
        }
        self.pools.iter().skip(1).take_while(|pool| pool.first as usize <= connection).count()
    }

    /// A connection by its number.
    #[inline]
    pub fn get(&mut self, connection: usize) -> &mut Connection {
        &mut self.connections[connection]
    }

    /// The connections to a target.
    pub fn to(&mut self, target: usize) -> PoolTo<'_> {
        PoolTo { pool: &mut self.pools[target], connections: &mut self.connections }
    }

    /// How many connections there may be.
    pub fn most(&self) -> usize {
        self.pools.iter().map(Pool::most).sum()
    }

    /// Gives a connection back.
    pub fn give(&mut self, connection: u32) {
        let target = self.target_of(connection as usize);
        self.to(target).give(connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thousands of connections are used in turn.
    #[test]
    fn two_connections_share_a_cache_line() {
        assert_eq!(size_of::<Connection>(), 32);
        assert!(u32::try_from(LONGEST_BACK_OFF_NS).is_ok());
    }

    #[test]
    fn open_ones_are_taken_first_and_never_more_than_the_share() {
        let mut pools = Pools::new(vec![Pool::new(3, 3, Choose::InTurn)]);
        let mut pool = pools.to(0);
        let all: Vec<u32> = std::iter::from_fn(|| pool.take(0)).collect();
        assert_eq!(all, [0, 1, 2]);
        pool.get(1).made();
        pool.get(2).made();
        all.iter().for_each(|index| pool.give(*index));
        assert_eq!(pool.take(0), Some(1), "an open one");
        pool.get(2).state = ConnectionState::Closed;
        assert_eq!(pool.take(0), Some(0), "longest closed");
        assert_eq!(pool.take(0), Some(2));
        assert_eq!(pool.take(0), None);
    }

    #[test]
    fn open_ones_keep_the_order_in_which_they_were_made() {
        let mut pools = Pools::new(vec![Pool::new(10, 10, Choose::FirstFree)]);
        let mut pool = pools.to(0);
        let all = take(&mut pool, 10);
        all.iter().for_each(|index| pool.get(*index as usize).made());
        // however many answers came at once, and in whatever order
        [7, 2, 9, 4].into_iter().for_each(|index| pool.give(index));
        assert_eq!(take(&mut pool, 3), [2, 4, 7]);
        [0, 3].into_iter().for_each(|index| pool.give(index));
        assert_eq!(take(&mut pool, 10), [0, 3, 9], "what is not needed is left alone");
    }

    fn take(pool: &mut PoolTo<'_>, count: usize) -> Vec<u32> {
        std::iter::from_fn(|| pool.take(0)).take(count).collect()
    }

    #[test]
    fn in_turn_each_waits_until_all_others_were_taken() {
        let mut pools = Pools::new(vec![Pool::new(4, 4, Choose::InTurn)]);
        let mut pool = pools.to(0);
        take(&mut pool, 4).into_iter().for_each(|index| pool.get(index as usize).made());
        (0..4).for_each(|index| pool.give(index));
        let one_at_a_time: Vec<u32> = (0..8)
            .map(|_| {
                let taken = pool.take(0).unwrap();
                pool.give(taken);
                taken
            })
            .collect();
        assert_eq!(one_at_a_time, [0, 1, 2, 3, 0, 1, 2, 3]);
        // one that takes nearly a whole round misses none
        let mut slow = pool.take(0).unwrap();
        for _ in 0..3 {
            for expected in [1, 2, 3] {
                assert_eq!(pool.take(0), Some(expected));
                pool.give(expected);
            }
            pool.give(slow);
            slow = pool.take(0).unwrap();
            assert_eq!(slow, 0);
        }
    }

    #[test]
    fn in_turn_no_socket_is_taken_twice_while_another_is_free() {
        let mut pools = Pools::new(vec![Pool::new(4, 2, Choose::InTurn)]);
        let mut pool = pools.to(0);
        take(&mut pool, 4).into_iter().for_each(|index| pool.get(index as usize).made());
        [2, 0, 3, 1].into_iter().for_each(|index| pool.give(index));
        assert_eq!(take(&mut pool, 4), [0, 1, 2, 3], "places 0 and 2 share a socket, 1 and 3 the other");
    }

    #[test]
    fn where_sockets_are_filled_the_first_with_a_free_place_is_taken() {
        let mut pools = Pools::new(vec![Pool::new(6, 2, Choose::Fill)]);
        let mut pool = pools.to(0);
        take(&mut pool, 6).into_iter().for_each(|index| pool.get(index as usize).made());
        (0..6).for_each(|index| pool.give(index));
        assert_eq!(take(&mut pool, 4), [0, 2, 4, 1], "places 0, 2 and 4 share a socket");
        pool.give(2);
        assert_eq!(take(&mut pool, 3), [2, 3, 5]);
    }

    #[test]
    fn in_turn_a_new_user_brings_its_own() {
        for (choose, brings) in [(Choose::InTurn, Some(1)), (Choose::FirstFree, Some(0))] {
            let mut pools = Pools::new(vec![Pool::new(2, 2, choose)]);
            let mut pool = pools.to(0);
            assert_eq!(pool.take_for_new_user(0), Some(0));
            pool.get(0).made();
            pool.give(0);
            assert_eq!(pool.take_for_new_user(0), brings);
        }
        let mut pools = Pools::new(vec![Pool::new(1, 1, Choose::InTurn)]);
        let mut pool = pools.to(0);
        assert_eq!(pool.take_for_new_user(0), Some(0));
        pool.get(0).made();
        pool.give(0);
        assert_eq!(pool.take_for_new_user(0), Some(0), "as far as there may be more");
    }

    #[test]
    fn back_off_doubles_to_its_bound_and_a_success_ends_it() {
        let mut pools = Pools::new(vec![Pool::new(1, 1, Choose::InTurn)]);
        let mut pool = pools.to(0);
        pool.take(0);
        let connection = pool.get(0);
        let waits: Vec<u64> = (0..12)
            .map(|_| {
                connection.refused(5);
                (connection.retry_ns - 5) / MILLISECOND_NS
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 100, 100, 100, 100, 100]);
        connection.made();
        connection.state = ConnectionState::Closed;
        connection.refused(0);
        assert_eq!(connection.retry_ns, MILLISECOND_NS);
    }

    #[test]
    fn one_that_must_wait_is_the_last_choice() {
        let mut pools = Pools::new(vec![Pool::new(2, 2, Choose::InTurn)]);
        let mut pool = pools.to(0);
        assert_eq!(pool.take(0), Some(0));
        pool.get(0).refused(0);
        pool.give(0);
        assert_eq!(pool.take(0), Some(1), "a new one before one that must wait");
        assert_eq!(pool.take(0), Some(0));
        assert_eq!(pool.take(0), None);
    }

    #[test]
    fn a_full_pool_keeps_nobody_from_another_target() {
        let pool = |most| Pool::new(most, most, Choose::InTurn);
        let mut pools = Pools::new(vec![pool(2), pool(1), pool(3)]);
        assert_eq!(take(&mut pools.to(0), 5), [0, 1]);
        assert_eq!(take(&mut pools.to(2), 5), [3, 4, 5]);
        assert_eq!(take(&mut pools.to(1), 5), [2]);
        assert_eq!([0, 1, 2, 3, 5].map(|connection| pools.target_of(connection)), [0, 0, 1, 2, 2]);
        pools.get(4).made();
        pools.give(2);
        pools.give(4);
        assert_eq!((pools.to(0).take(0), pools.to(2).take(0), pools.to(1).take(0)), (None, Some(4), Some(2)));
        assert_eq!(pools.most(), 6);
    }
}
