//! Who has a key.

use super::keyed::Keyed;
use super::slots::slot;
use super::{Ring, Sharding, Shards, Slots};
use crate::session::failure::Failure;

/// Who has a key.
pub(super) enum Router {
    /// A ring of points.
    Ring(Ring),
    /// Slots, which a cluster moves.
    Slots(Slots),
}

impl Router {
    /// As the servers share them at first.
    pub fn new(shards: &Shards) -> Router {
        match shards.sharding {
            Sharding::Consistent => Router::Ring(Ring::new(&shards.servers)),
            Sharding::Slots => Router::Slots(Slots::divided(shards.servers.len())),
            Sharding::Cluster => Router::Slots(Slots::of(shards, &Some)),
        }
    }

    /// Which of so many servers have keys.
    pub fn carrying(&self, servers: usize) -> Vec<usize> {
        match self {
            Router::Ring(_) => (0..servers).collect(),
            Router::Slots(slots) => (0..servers).filter(|server| slots.has(*server)).collect(),
        }
    }

    /// Which server a rendered request goes to, and the slot of its first key; none where it has no key. `is_refused_there`:
    /// a server itself tells of keys that are not all its own.
    pub fn route<C: Keyed>(
        &self,
        request: &C::Request,
        rendered: &[u8],
        is_refused_there: bool,
    ) -> Result<Option<(usize, u16)>, Failure> {
        let (mut first, mut apart) = (None, None);
        C::keys(request, rendered, &mut |key| {
            let found = match self {
                Router::Ring(ring) => (Some(ring.server(C::tag(key))), 0),
                Router::Slots(slots) => {
                    let slot = slot(key);
                    (slots.server(slot), slot)
                }
            };
            match first {
                None => first = Some((found, key)),
                Some(((server, _), other)) if server != found.0 && !is_refused_there => {
                    apart = Some((other, key));
                }
                Some(_) => {}
            }
        });
        if let Some((one, other)) = apart {
            let text = |key| String::from_utf8_lossy(key).into_owned();
            return Err(Failure::Unsendable(format!(
                "its keys are on different servers: \"{}\" and \"{}\"; ask for each alone, or give them the same {{tag}}",
                text(one),
                text(other)
            )));
        }
        // a slot that nobody has is asked of whoever comes first, who says so
        Ok(first.map(|((server, slot), _)| (server.unwrap_or(0), slot)))
    }
}
