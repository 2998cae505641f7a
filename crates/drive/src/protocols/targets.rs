//! Several targets: a transport for each, over one back end.
//!
//! To the loop their connections are numbered through, the first target's first; requests are those of the whole plan.
//! Each transport knows its own requests and connections only, from 0 on, as if there were no other target.

use std::io;
use std::time::{Duration, Instant};

use tidemark_scenario::plan::RequestPlan;
use tidemark_scenario::{Context, Plan};

use crate::io::shared::SharedIo;
use crate::io::{BoxedIo, Io};
use crate::protocols::target::Target;
use crate::protocols::transport::{
    Conversations, Copies, Counts, Event, Readings, Refusal, Sent, Setup, Spoken, Transport,
};
use crate::session::answer::Answer;
use crate::session::failure::Failure;
use crate::session::jar::Jar;
use crate::session::program::Outgoing;
use crate::session::sockets::{Heard, Said};

/// What one of several targets is given of a thread.
#[derive(Debug, Clone)]
pub(crate) struct Place<'a> {
    /// The target.
    pub target: &'a Target,
    /// Its requests, and the bounds that hold for all.
    pub plan: &'a Plan,
    /// Sockets.
    pub sockets: usize,
    /// Requests at once on each.
    pub depth: usize,
    /// Connections; the loop sees one for each of their requests at once.
    pub connections: usize,
    /// Whether programs may ask for WebSockets.
    pub opens_websockets: bool,
}

/// A plan's requests that go to one target, and what transports look at beside them.
pub(crate) fn plan_of(plan: &Plan, target: usize) -> Plan {
    let goes_there = |request: &&RequestPlan| usize::from(request.target) == target;
    Plan {
        labels: plan.labels.clone(),
        requests: plan
            .requests
            .iter()
            .filter(goes_there)
            .cloned()
            .map(|one| RequestPlan { target: 0, ..one })
            .collect(),
        limits: plan.limits.clone(),
        source_name: plan.source_name.clone(),
        ..Plan::new(&plan.name, plan.load.clone())
    }
}

struct Member {
    transport: Box<dyn Transport>,
    first_connection: usize,
    first_socket: usize,
    /// Its requests' numbers in the plan.
    requests: Vec<usize>,
}

/// Carries requests to several targets.
pub(crate) struct Targets<I> {
    io: SharedIo<I>,
    members: Vec<Member>,
    /// By request of the plan: whose it is, and its number there.
    requests: Vec<(usize, usize)>,
    /// Whose connection was used, or told of, last.
    last: usize,
    /// Who is asked for news next, and how many have had none since somebody had some.
    asked: usize,
    quiet: usize,
}

impl<I: Io + 'static> Targets<I> {
    /// For a plan whose requests go to these targets.
    pub fn new(io: I, plan: &Plan, places: &[Place<'_>], random: &mut fastrand::Rng) -> Self {
        let io = SharedIo::new(io);
        let (mut first_connection, mut first_socket) = (0, 0);
        let members = places.iter().enumerate().map(|(index, place)| {
            let sockets = first_socket..first_socket + place.sockets;
            let setup = Setup {
                plan: place.plan,
                origin: place.target.origin(),
                sockets: place.sockets,
                depth: place.depth,
                opens_websockets: place.opens_websockets,
                random: &mut *random,
            };
            let all = plan.requests.iter().enumerate();
            let own = all.filter(|(_, request)| usize::from(request.target) == index);
            let member = Member {
                transport: place.target.transport::<BoxedIo>(Box::new(io.part(sockets.clone())), setup),
                first_connection,
                first_socket,
                requests: own.map(|(request, _)| request).collect(),
            };
            first_connection += place.connections * place.depth;
            first_socket = sockets.end;
            member
        });
        let members: Vec<Member> = members.collect();
        let mut requests = vec![(0, 0); plan.requests.len()];
        for (index, member) in members.iter().enumerate() {
            for (own, request) in member.requests.iter().enumerate() {
                requests[*request] = (index, own);
            }
        }
        Targets { io, members, requests, last: 0, asked: 0, quiet: 0 }
    }

    /// Whose a connection is, and its number there.
    fn find(&self, connection: usize) -> (usize, usize) {
        let after = self.members[1..].iter().take_while(|member| member.first_connection <= connection);
        let index = after.count();
        (index, connection - self.members[index].first_connection)
    }

    fn at(&self, connection: usize) -> (&dyn Transport, usize) {
        let (index, own) = self.find(connection);
        (&*self.members[index].transport, own)
    }

    fn at_mut(&mut self, connection: usize) -> (&mut dyn Transport, usize) {
        let (index, own) = self.find(connection);
        self.last = index;
        (&mut *self.members[index].transport, own)
    }

    /// Whose socket it is.
    fn owner(&self, socket: usize) -> usize {
        self.members[1..].iter().take_while(|member| member.first_socket <= socket).count()
    }

    /// What binds connections to the target of a request, the session's connection and the request's number there.
    fn about(&self, connection: Option<u32>, request: usize) -> (&dyn Transport, Option<u32>, usize) {
        let (target, own) = self.requests[request];
        let member = &self.members[target];
        let connection = connection.map(|connection| connection - member.first_connection as u32);
        (&*member.transport, connection, own)
    }
}

impl<I: Io + 'static> Transport for Targets<I> {
    fn open(&mut self, connection: usize) -> io::Result<()> {
        let (transport, own) = self.at_mut(connection);
        transport.open(own)
    }

    fn write(
        &mut self,
        connection: usize,
        request: usize,
        cx: &mut Context<'_>,
        jar: &Jar,
    ) -> Result<(), Failure> {
        let (target, request) = self.requests[request];
        let (transport, own) = self.at_mut(connection);
        let written = transport.write(own, request, cx, jar);
        debug_assert_eq!(self.last, target, "a request goes over a connection to its target");
        written
    }

    fn write_made(
        &mut self,
        connection: usize,
        request: &Outgoing,
        jar: &Jar,
        now_s: i64,
    ) -> Result<(), Failure> {
        let (transport, own) = self.at_mut(connection);
        transport.write_made(own, request, jar, now_s)
    }

    fn send(&mut self, connection: usize) -> io::Result<Sent> {
        let (transport, own) = self.at_mut(connection);
        transport.send(own)
    }

    fn close(&mut self, connection: usize) {
        let (index, own) = self.find(connection);
        self.members[index].transport.close(own);
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        // What one does as it is asked may be news that it then does not wait with.
        for _ in 0..2 {
            self.io.ask(at_most);
            for member in &mut self.members {
                member.transport.wait(at_most)?;
            }
        }
        self.io.wait()
    }

    fn hand_over(&mut self) -> io::Result<()> {
        for member in &mut self.members {
            member.transport.hand_over()?;
        }
        self.io.hand_over()
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        while self.quiet < self.members.len() {
            let asked = self.asked;
            let member = &mut self.members[asked];
            if let Some((own, event)) = member.transport.next() {
                (self.quiet, self.last) = (0, asked);
                return Some((member.first_connection + own, event));
            }
            self.quiet += 1;
            self.asked = (asked + 1) % self.members.len();
            // News of a socket stand in the way of all until they are taken.
            let owner = self.io.pending().map(|socket| self.owner(socket));
            if let Some(owner) = owner.filter(|owner| *owner != asked) {
                (self.quiet, self.asked) = (0, owner);
            }
        }
        self.quiet = 0;
        None
    }

    fn answer(&self, connection: usize) -> &dyn Answer {
        let (index, own) = self.find(connection);
        self.members[index].transport.answer(own)
    }

    fn is_first(&self, connection: usize) -> bool {
        let (transport, own) = self.at(connection);
        transport.is_first(own)
    }

    fn socket_of(&self, connection: usize) -> usize {
        let (index, own) = self.find(connection);
        let member = &self.members[index];
        member.first_socket + member.transport.socket_of(own)
    }

    fn sockets(&self) -> &dyn Io {
        self.members[self.last].transport.sockets()
    }

    fn socket_made(&self, connection: usize) -> Option<Instant> {
        let (transport, own) = self.at(connection);
        transport.socket_made(own)
    }

    fn agreed(&self, connection: usize) -> Option<(&'static str, &'static str)> {
        let (transport, own) = self.at(connection);
        transport.agreed(own)
    }

    fn connections(&self, opened: &[u64]) -> u64 {
        let each = self.members.iter().zip(opened);
        each.map(|(member, opened)| member.transport.connections(&[*opened])).sum()
    }

    fn counts(&self) -> Counts {
        let mut all = Counts::default();
        self.members.iter().for_each(|member| all += member.transport.counts());
        all
    }
}

impl<I: Io + 'static> Readings for Targets<I> {
    fn received(&self) -> &[u8] {
        self.members[self.last].transport.received()
    }

    fn answer_begun(&self, connection: usize) -> Option<Instant> {
        let (transport, own) = self.at(connection);
        transport.answer_begun(own)
    }
}

impl<I: Io + 'static> Conversations for Targets<I> {
    fn refusal(&self, connection: Option<u32>, request: usize) -> Option<Refusal> {
        let (transport, connection, own) = self.about(connection, request);
        transport.refusal(connection, own)
    }

    fn is_bound(&self, connection: usize) -> bool {
        let (transport, own) = self.at(connection);
        transport.is_bound(own)
    }

    fn is_needless(&self, connection: Option<u32>, request: usize) -> bool {
        let (transport, connection, own) = self.about(connection, request);
        transport.is_needless(connection, own)
    }

    fn leaves(&self, connection: usize, request: usize) -> bool {
        let (transport, own) = self.at(connection);
        transport.leaves(own, self.requests[request].1)
    }

    fn lost(&mut self, connection: usize) -> Option<(usize, Failure)> {
        let (index, own) = self.find(connection);
        let member = &mut self.members[index];
        let (request, failure) = member.transport.lost(own)?;
        Some((member.requests[request], failure))
    }

    fn leave(&mut self, connection: usize) -> bool {
        let (index, own) = self.find(connection);
        self.members[index].transport.leave(own)
    }

    fn accept(&mut self, connection: usize) -> bool {
        let (transport, own) = self.at_mut(connection);
        transport.accept(own)
    }

    fn decline(&mut self, connection: usize) -> bool {
        let (transport, own) = self.at_mut(connection);
        transport.decline(own)
    }

    fn news(&self, connection: usize) -> Option<Heard<'_>> {
        let (index, own) = self.find(connection);
        self.members[index].transport.news(own)
    }

    fn breaks(&self, connection: usize) -> Option<Failure> {
        let (index, own) = self.find(connection);
        self.members[index].transport.breaks(own)
    }

    fn say(&mut self, connection: usize, said: &Said) -> io::Result<Spoken> {
        let (index, own) = self.find(connection);
        self.members[index].transport.say(own, said)
    }

    fn instead(&self, connection: usize) -> Option<String> {
        let (transport, own) = self.at(connection);
        transport.instead(own)
    }

    fn heard(&self) -> u64 {
        self.members.iter().map(|member| member.transport.heard()).sum()
    }
}

impl<I: Io + 'static> Copies for Targets<I> {
    fn keep_written(&mut self) {
        self.members.iter_mut().for_each(|member| member.transport.keep_written());
    }

    fn written(&mut self, connection: usize) -> &[u8] {
        let (transport, own) = self.at_mut(connection);
        transport.written(own)
    }
}
