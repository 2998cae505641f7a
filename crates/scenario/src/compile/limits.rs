//! Bounds of the driver.

use std::time::Duration;

use crate::language;
use crate::plan::{
    AtLimit, Limits, Load, PIPELINE_MAX, PLACES_MAX, SESSIONS_MAX, STREAMS_MAX, SessionLimit, USERS_MAX,
};
use crate::sink::Sink;

/// Shortest silence after which a connection is pinged.
const PING_LEAST: Duration = Duration::from_millis(100);

/// Reads them; `binds`: whether sessions have WebSockets or event streams.
pub(super) fn read(said: &language::Limits<'_>, load: &Load, binds: bool, sink: &Sink<'_>) -> Limits {
    let (usual, users) = (Limits::default(), load.most_users());
    let keep_alive = said.keep_alive.value.unwrap_or(usual.keep_alive);
    let pipeline = said.pipeline.at_most(PIPELINE_MAX, sink).unwrap_or(usual.pipeline);
    if pipeline > 1 && binds {
        let message = "sessions share connections where requests are pipelined, and a WebSocket has its own, as an event stream \
                       has; leave out one of the two";
        said.pipeline.error(sink, message);
    }
    if pipeline > 1 && !keep_alive {
        let message = "a connection that is closed after each request carries one at a time; leave out \"keep alive: false\", \
                       or this";
        said.pipeline.error(sink, message);
    }
    let streams = said.streams.at_most(STREAMS_MAX, sink).unwrap_or(usual.streams);
    let needed = users.div_ceil(pipeline.max(streams));
    let named = said.connections.at_most(USERS_MAX, sink);
    let connections = named.unwrap_or(usual.connections).max(needed);
    if let Some(named) = named.filter(|named| *named < needed) {
        let each = match pipeline.max(streams) {
            1 => "who hold one each".to_owned(),
            depth => format!("{depth} to a connection"),
        };
        let message = format!(
            "{named} connections are too few for {users} users, {each}: there will be {needed}; give that many, or fewer users"
        );
        said.connections.warn(sink, message);
    }
    if connections.saturating_mul(pipeline) > PLACES_MAX {
        let message = format!(
            "{connections} connections with {pipeline} requests at once each are too many; at most {PLACES_MAX} together"
        );
        said.pipeline.error(sink, message);
    }
    let batch = said.batch.value.unwrap_or(1);
    if batch > pipeline as u64 {
        let message = format!("{batch} is too large; a connection carries {pipeline} at once (\"pipeline\")");
        said.batch.error(sink, message);
    }
    Limits {
        streams,
        ping: ping(said, sink),
        connections,
        connections_named: said.connections.is_there(),
        choose: said.choose.value.unwrap_or(usual.choose),
        waiting: said.waiting.at_most(SESSIONS_MAX, sink),
        in_flight: session_limit(said, load, sink),
        connect_timeout: said.connect_timeout.value.unwrap_or(usual.connect_timeout),
        body_bytes: said.body.value.map_or(usual.body_bytes, |bytes| bytes as usize),
        drain: said.drain.value.unwrap_or(usual.drain),
        sessions: said.sessions.value,
        keep_alive,
        pipeline,
        batch: batch.min(pipeline as u64) as usize,
    }
}

/// How often silent connections are pinged; servers take more for an attack.
fn ping(said: &language::Limits<'_>, sink: &Sink<'_>) -> Option<Duration> {
    let ping = said.ping.value?;
    if ping < PING_LEAST {
        said.ping.error(sink, format!("ping is at least {PING_LEAST:?}"));
    }
    Some(ping)
}

fn session_limit(said: &language::Limits<'_>, load: &Load, sink: &Sink<'_>) -> Option<SessionLimit> {
    if !said.in_flight.is_there() {
        said.at_limit.refuse(sink, "\"at limit\" needs a limit beside it: in flight");
        return None;
    }
    if load.streams().iter().all(|stream| stream.model.is_closed()) {
        let message = "users are their own limit: sessions in flight are limited where they arrive at a rate";
        said.in_flight.refuse(sink, message);
    }
    let most = said.in_flight.at_most(SESSIONS_MAX, sink)?;
    Some(SessionLimit { most, at_limit: said.at_limit.value.unwrap_or(AtLimit::Wait) })
}
