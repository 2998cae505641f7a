//! Users of several servers that answer a write at a time, without sockets or clocks.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

use tidemark_scenario::{Shared, load_text};

use super::*;
use crate::io::Event as Happened;
use crate::protocols::redis::Redis;
use crate::protocols::transport::{Client, Origin};

/// What left on a socket.
#[derive(Debug, Clone, Copy)]
struct Write {
    socket: usize,
    commands: usize,
    /// Whether its server had nothing else to answer.
    was_idle: bool,
}

/// Servers that have the sockets in turn. Where nothing else is new, one of them answers its oldest write.
struct Servers {
    outputs: Vec<Vec<u8>>,
    unanswered: Vec<VecDeque<Write>>,
    news: VecDeque<(usize, Happened, usize)>,
    received: Vec<u8>,
    random: fastrand::Rng,
    writes: Rc<RefCell<Vec<Write>>>,
}

const ANSWER: &[u8] = b"$1\r\nx\r\n";

impl Io for Servers {
    fn point(&mut self, _: usize, _: SocketAddr) {}

    fn open(&mut self, socket: usize) -> io::Result<()> {
        self.news.push_back((socket, Happened::Opened, 0));
        Ok(())
    }

    fn output(&mut self, socket: usize) -> &mut Vec<u8> {
        self.outputs[socket].clear();
        &mut self.outputs[socket]
    }

    fn send(&mut self, socket: usize) -> io::Result<()> {
        let commands = self.outputs[socket].windows(3).filter(|bytes| bytes == b"GET").count();
        let servers = self.unanswered.len();
        let server = &mut self.unanswered[socket % servers];
        let write = Write { socket, commands, was_idle: server.is_empty() };
        server.push_back(write);
        self.writes.borrow_mut().push(write);
        Ok(())
    }

    fn is_sending(&self, _: usize) -> bool {
        false
    }

    fn close(&mut self, socket: usize) {
        self.unanswered.iter_mut().for_each(|server| server.retain(|write| write.socket != socket));
        self.news.retain(|(of, ..)| *of != socket);
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        if !self.news.is_empty() || at_most == Some(Duration::ZERO) {
            return Ok(());
        }
        let mut busy: Vec<_> = self.unanswered.iter_mut().filter(|server| !server.is_empty()).collect();
        assert!(!busy.is_empty(), "what was sent waits for ever");
        let server = self.random.usize(..busy.len());
        let write = busy[server].pop_front().unwrap();
        self.news.push_back((write.socket, Happened::Received { closing: false }, write.commands));
        Ok(())
    }

    fn next(&mut self) -> Option<(usize, Happened)> {
        let (socket, event, answers) = self.news.pop_front()?;
        self.received = ANSWER.repeat(answers);
        Some((socket, event))
    }

    fn received(&self) -> &[u8] {
        &self.received
    }

    fn traffic(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// Users who ask one of so many servers after the other, by the key, over 16 connections 16 deep.
struct Load {
    servers: usize,
    users: usize,
    batch: usize,
    turns: usize,
    /// One in so many turns somebody's time is up.
    gives_up: Option<usize>,
}

impl Load {
    /// What leaves, once the users are under way.
    fn writes(&self) -> Vec<Write> {
        let text = format!(
            "system: {{url: redis://h}}\nload: {{users: 1, hold: 1s}}\nlimits: {{pipeline: 16, batch: {}}}\n\
             sessions: {{a: {{steps: [{{redis: [GET, 'key:${{random(1, 1000000)}}']}}]}}}}",
            self.batch
        );
        let plan = load_text("t.yaml", &text, Path::new("."), &[]).unwrap_or_else(|wrong| panic!("{wrong}"));
        let named = |port: usize| Server {
            name: format!("h:{port}"),
            address: SocketAddr::from(([127, 0, 0, 1], port as u16)),
        };
        let shards = Shards::new((1..=self.servers).map(named).collect(), Sharding::Slots);
        let (sockets, writes) = (shards.share(16), Rc::default());
        let io = Servers {
            outputs: vec![Vec::new(); sockets],
            unanswered: vec![VecDeque::new(); self.servers],
            news: VecDeque::new(),
            received: Vec::new(),
            random: fastrand::Rng::with_seed(7),
            writes: Rc::clone(&writes),
        };
        let origin = Origin { authority: "h", base_path: "", is_secured: false, proxy: None };
        let mut random = fastrand::Rng::with_seed(8);
        let setup =
            Setup { plan: &plan, origin, sockets, depth: 16, opens_websockets: false, random: &mut random };
        let mut redis = Redis::default();
        redis.shards = Some(shards);
        let mut transport = redis.transport(io, setup);
        let (shared, jar) = (Shared::of(&plan), Jar::default());
        (0..self.users).for_each(|lane| transport.open(lane).unwrap());
        for turn in 1..=self.turns {
            if turn == 200 {
                writes.borrow_mut().clear();
            }
            transport.wait(None).unwrap();
            while let Some((lane, event)) = transport.next() {
                if !matches!(event, Event::Opened | Event::Answered { keeps_open: true }) {
                    assert!(self.gives_up.is_some(), "{event:?}");
                    transport.close(lane);
                    transport.open(lane).unwrap();
                    continue;
                }
                let mut cx = Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
                transport.write(lane, 0, &mut cx, &jar).unwrap();
                transport.send(lane).unwrap();
            }
            if self.gives_up.is_some_and(|every| turn % every == 0) {
                let lane = random.usize(..self.users);
                transport.close(lane);
                transport.open(lane).unwrap();
            }
        }
        writes.take()
    }
}

/// A batch is as full as over the connections of a single server, unless its server would have nothing to do.
#[test]
fn batches_to_each_of_several_servers_are_full() {
    for (servers, users, least) in
        [(1, 256, 16.0), (2, 256, 15.0), (2, 250, 15.0), (4, 256, 13.0), (2, 64, 4.0)]
    {
        let writes = Load { servers, users, batch: 16, turns: 2_000, gives_up: None }.writes();
        let mean = writes.iter().map(|write| write.commands as f64).sum::<f64>() / writes.len() as f64;
        assert!(mean >= least, "{servers} servers, {users} users: {mean}");
        let is_in_vain = |write: &&Write| write.commands < 16 && !write.was_idle;
        let in_vain = writes.iter().filter(is_in_vain).count();
        assert!(users < 250 || in_vain * 100 <= writes.len(), "{servers} servers, {users} users: {in_vain}");
    }
}

#[test]
fn nobody_waits_for_ever() {
    for users in [1, 2, 3, 15, 16, 17, 31, 33, 100, 256] {
        for (servers, batch) in [(2, 16), (2, 3), (2, 1), (3, 16)] {
            for gives_up in [None, Some(7), Some(1)] {
                let writes = Load { servers, users, batch, turns: 300, gives_up }.writes();
                assert!(writes.iter().all(|write| (1..=16).contains(&write.commands)));
            }
        }
    }
}
