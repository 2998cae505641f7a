//! Redirects that a step follows: what the answer names becomes the next request of the same step.
//!
//! A step with its hops is one request: it is due once, has one time-out, and ends with its last answer, which alone is
//! judged. Hops are counted beside, by step.

use tidemark_record::Outcome;
use tidemark_scenario::plan::Follow;
use tidemark_wire::http1::{Origin, resolve_location};

use crate::engine::thread::Thread;
use crate::session::answer::shown;
use crate::session::failure::Failure;
use crate::session::location::is_redirect;

/// The status that makes a GET of whatever was asked.
const SEE_OTHER: u16 = 303;
/// Those that make a GET of a POST, as browsers have always taken them.
const OF_OLD: [u16; 2] = [301, 302];
/// What requests to a target say of it.
#[derive(Debug, Clone)]
pub(crate) struct KnownOrigin {
    /// Whether TLS is spoken.
    pub is_secured: bool,
    /// Host and port.
    pub authority: String,
}

impl KnownOrigin {
    fn is(&self, origin: &Origin<'_>) -> bool {
        Origin { is_secured: self.is_secured, authority: self.authority.as_bytes() }.is(origin)
    }
}

impl Thread<'_> {
    /// Makes a session's answer, where it is a redirect that its step follows, into the step's next request, which is to
    /// go; why it cannot be followed, if so. None where the answer is the last.
    pub fn follow(&mut self, s: usize, c: usize) -> Option<Result<(), Failure>> {
        let session = &mut self.flow.sessions[s];
        let follow = self.prepared[session.request as usize].follow.as_ref()?;
        let answer = self.transport.answer(c);
        let status = answer.status();
        // an empty one leads nowhere, as in browsers
        let leads = |location: &&[u8]| is_redirect(status) && !location.trim_ascii().is_empty();
        let location = answer.header(Follow::LOCATION_HEADER).filter(leads)?;
        let fail = |why: &str| {
            let words = format!("status {status}: {}: {why}", shown(location));
            Some(Err(Failure::Other(Outcome::Status, words.into())))
        };
        if session.hops() == follow.most {
            return fail(&format!("one redirect more than `follow: {}` allows", follow.most));
        }
        let here = &self.origins[session.target()];
        let path = &mut self.flow.path;
        path.clear();
        let at = match resolve_location(here.is_secured, answer.asked(), location, path) {
            Err(error) => return fail(&error.to_string()),
            // where several targets are the same server, it stays at this one
            Ok(origin) if origin.is_none_or(|origin| here.is(&origin)) => Some(session.target()),
            Ok(origin) => origin.and_then(|origin| self.origins.iter().position(|known| known.is(&origin))),
        };
        let hops = at.and_then(|at| follow.hops.iter().find(|hops| usize::from(hops.target) == at));
        let Some(hops) = hops else {
            return fail(
                "this leads to a host that is no target of the scenario; name it under `targets`, or leave out `follow`",
            );
        };
        let becomes_get = status == SEE_OTHER || (OF_OLD.contains(&status) && follow.is_post);
        let cold = session.cold_or_new();
        cold.goes_as_get |= becomes_get;
        cold.hops += 1;
        let sends = if cold.goes_as_get { hops.get } else { hops.same };
        (session.sends, session.is_hop) = (sends, true);
        let slot = &mut session.slots[usize::from(follow.location)];
        if !self.flow.scratch.held.write(self.shared, slot, |slot| slot.set_text(path)).1 {
            return Some(Err(Failure::NoRoom));
        }
        session.turn_to(hops.target);
        self.prepared[session.request as usize].hops += 1;
        Some(Ok(()))
    }
}
