//! What each target is given: connections, sockets, its part of the plan.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use tidemark_record::{Bound, Raised};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::Limits;

use crate::DriveOptions;
use crate::engine::connection::{Pool, Pools};
use crate::engine::redirect::KnownOrigin;
use crate::error::DriveError;
use crate::io::Io;
use crate::io::address::Dialer;
use crate::io::connection_limit::ConnectionLimit;
use crate::protocols::Protocol;
use crate::protocols::sharding::Shards;
use crate::protocols::target::Target;
use crate::protocols::targets::{Place, Targets, plan_of};
use crate::protocols::transport::{Origin, Setup, Transport};
use crate::session::arrivals::share;
use crate::session::cookies::Site;

/// What a target is given by all threads.
#[derive(Debug)]
pub(super) struct Allotment {
    target: Target,
    plan: Arc<Plan>,
    depth: usize,
    opens_websockets: bool,
    /// Connections, by thread.
    pub shares: Vec<usize>,
    /// Addresses that they are made from.
    pub sources: usize,
    /// Connections that there was room for, where that is fewer than the plan allows, and what bounded them.
    pub capped_to: Option<(usize, Bound)>,
    /// Connections that are allowed, where that is more than the plan says, and why.
    pub raised_to: Option<(usize, Raised)>,
    /// Users, and the requests of theirs that have room at once, where that is fewer.
    pub places: Option<(usize, usize)>,
}

impl Allotment {
    /// Connections that are allowed.
    pub fn allowed(&self) -> usize {
        self.shares.iter().sum()
    }

    /// Whether streams of HTTP/2 share its connections.
    pub fn has_streams(&self) -> bool {
        self.depth > 1 && matches!(self.target.protocol, Protocol::Http2(_) | Protocol::Grpc(_))
    }

    /// One thread's part of it.
    pub fn place(&self, thread: usize) -> Place<'_> {
        let connections = self.shares[thread];
        // Of several servers, each has room for its own; not all of them may be in use.
        let sockets = self.target.protocol.shards().map_or(connections, |s| s.room() * s.each(connections));
        let (depth, opens_websockets) = (self.depth, self.opens_websockets);
        Place { target: &self.target, plan: &self.plan, sockets, depth, connections, opens_websockets }
    }
}

/// Shares connections out: as many as the plan allows to each target.
pub(super) fn allot(plan: &Arc<Plan>, options: &DriveOptions) -> Result<Vec<Allotment>, DriveError> {
    let all_users = plan.load.most_users();
    let (_, all_threads) = options.place(0);
    let all_wanted = plan.limits.connections.max(all_threads);
    // of so many, those that are dealt out to a thread of this process, and to all of them
    let dealt_to = |total, thread| {
        let (number, all) = options.place(thread);
        share(total, number, all)
    };
    let here = |total| (0..options.threads).map(|thread| dealt_to(total, thread)).sum::<usize>();
    let (users, wanted, named) = (here(all_users), here(all_wanted), here(plan.limits.connections));
    let all = wanted.saturating_mul(options.targets.len());
    let allot_to = |(index, target): (usize, &Target)| {
        let shards = target.protocol.shards();
        let depth = target.protocol.depth(&plan.limits);
        // Where a server takes fewer at once than was planned, users wait for each other: the limit holds.
        let carriers = all_users.div_ceil(depth);
        let fits = carriers <= plan.limits.connections;
        let carriers = here(carriers.min(plan.limits.connections));
        let room = ConnectionLimit::make(wanted, all, &target.address);
        if carriers > room.connections {
            let ConnectionLimit { connections: room, bound, .. } = room;
            return Err(DriveError::Room { users, needed: carriers, room, bound });
        }
        let connections = wanted.min(room.connections.max(options.threads));
        let shares: Vec<usize> = (0..options.threads)
            .map(|thread| {
                let connections = match connections == wanted {
                    true => dealt_to(all_wanted, thread),
                    false => share(connections, thread, options.threads),
                };
                // Where several users share a connection, a thread has one for its last few, too.
                connections.max(if fits { dealt_to(all_users, thread).div_ceil(depth) } else { 0 })
            })
            .collect();
        let by_users: usize = shares.iter().sum();
        let shares: Vec<usize> =
            shares.into_iter().map(|share| shards.map_or(share, |shards| shards.share(share))).collect();
        let allowed: usize = shares.iter().sum();
        let why = match shards {
            Some(shards) if by_users <= named => Raised::Servers(shards.active()),
            _ => Raised::Users,
        };
        Ok(Allotment {
            target: target.clone(),
            plan: match options.targets.len() {
                1 => plan.clone(),
                _ => Arc::new(plan_of(plan, index)),
            },
            depth,
            opens_websockets: options.open_websockets(),
            shares,
            sources: room.sources,
            capped_to: (connections < named).then_some((connections, room.bound)),
            raised_to: (allowed > named).then_some((allowed, why)),
            places: (!fits).then_some((users, allowed * depth)),
        })
    };
    options.targets.iter().enumerate().map(allot_to).collect()
}

/// The part of a plan that each target has.
pub(super) fn plans<'p>(plan: &'p Plan, targets: &[Target]) -> Vec<Cow<'p, Plan>> {
    match targets.len() {
        1 => vec![Cow::Borrowed(plan)],
        several => (0..several).map(|target| Cow::Owned(plan_of(plan, target))).collect(),
    }
}

/// So many connections to each, for a single session.
pub(super) fn few<'a>(
    plans: &'a [Cow<'_, Plan>],
    options: &'a DriveOptions,
    connections: usize,
) -> Vec<Place<'a>> {
    let opens_websockets = options.open_websockets();
    let place = |(plan, target): (&'a Cow<'_, Plan>, &'a Target)| {
        let sockets = target.protocol.shards().map_or(connections, Shards::room);
        Place { target, plan, sockets, depth: 1, connections, opens_websockets }
    };
    plans.iter().zip(&options.targets).map(place).collect()
}

/// Dials each target for its sockets.
pub(super) fn dialer(places: &[Place<'_>], sources: usize) -> io::Result<Dialer> {
    let mut dialer = Dialer::new(&places[0].target.address, sources);
    let mut first = 0;
    for (index, Place { target, sockets, .. }) in places.iter().enumerate() {
        if index > 0 {
            dialer.point_all(first..first + sockets, &target.address)?;
        }
        for (turn, other) in target.others.iter().enumerate() {
            let in_turn = (first..first + sockets).skip(turn + 1).step_by(target.others.len() + 1);
            in_turn.into_iter().try_for_each(|socket| dialer.point_all(socket..socket + 1, other))?;
        }
        first += sockets;
    }
    Ok(dialer)
}

/// What carries a thread's requests.
pub(super) fn transport<I: Io + 'static>(
    io: I,
    plan: &Plan,
    places: &[Place<'_>],
    random: &mut fastrand::Rng,
) -> Box<dyn Transport> {
    match places {
        [only] => {
            let origin = only.target.origin();
            let Place { sockets, depth, opens_websockets, .. } = *only;
            let setup = Setup { plan, origin, sockets, depth, opens_websockets, random };
            only.target.transport(io, setup)
        }
        _ => Box::new(Targets::new(io, plan, places, random)),
    }
}

/// Where the targets of a thread are.
pub(super) fn origins(places: &[Place<'_>]) -> Vec<KnownOrigin> {
    let origin = |place: &Place<'_>| {
        let Origin { authority, is_secured, .. } = place.target.origin();
        KnownOrigin { is_secured, authority: authority.to_owned() }
    };
    places.iter().map(origin).collect()
}

/// What cookies look at in the targets of a thread.
pub(super) fn sites(places: &[Place<'_>]) -> Vec<Site> {
    let site = |place: &Place<'_>| {
        let Origin { authority, is_secured, .. } = place.target.origin();
        Site::new(authority, is_secured)
    };
    places.iter().map(site).collect()
}

/// The connections of a thread.
pub(super) fn pools(places: &[Place<'_>], limits: &Limits) -> Pools {
    let pool = |place: &Place<'_>| {
        let mut pool = Pool::new(place.connections * place.depth, place.connections, limits.choose);
        // these keep what a connection has begun: a transaction, what is watched
        pool.lends = !matches!(place.target.protocol, Protocol::Redis(_) | Protocol::Postgres(_));
        // connections are closed after each request of HTTP only
        pool.keep_alive =
            limits.keep_alive || !matches!(place.target.protocol, Protocol::Http1 | Protocol::Http2(_));
        pool
    };
    Pools::new(places.iter().map(pool).collect())
}
