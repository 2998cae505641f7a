//! Redirects that a step follows: what the answer names becomes the next request of the same step.
//!
//! A step with its hops is one request: it is due once, has one time-out, and ends with its last answer, which alone is
//! judged. Hops are counted beside, by step.

use tidemark_record::Outcome;
use tidemark_scenario::plan::Follow;
use tidemark_wire::http1::{Origin, is_relative, resolve_location};

use crate::answer::{Answer, shown};
use crate::failure::Failure;
use crate::thread::Thread;

/// The status that makes a GET of whatever was asked.
const SEE_OTHER: u16 = 303;
/// Those that make a GET of a POST, as browsers have always taken them.
const OF_OLD: [u16; 2] = [301, 302];
/// All that name where else to ask.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// Whether a server says by this status where else to ask; 300 and 304 leave it open, or say something else.
pub(crate) fn is_redirect(status: u16) -> bool {
    REDIRECTS.contains(&status)
}

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

/// Writes where an answer's `Location` leads as a path of its server, or as it is if it names its server itself; false if
/// it leads nowhere.
pub(crate) fn write_location(answer: &dyn Answer, location: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    if location.trim_ascii().is_empty() {
        return false;
    }
    if is_relative(location) {
        return resolve_location(false, answer.asked(), location, out).is_ok();
    }
    out.extend_from_slice(location);
    true
}

/// Appends what a step's location leads to, a path begun with a slash or a URL, as a target at this server; or why it
/// cannot be.
pub(crate) fn locate(
    is_secured: bool,
    authority: &[u8],
    location: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    const NOWHERE: &str = "it is neither a path begun with a slash nor a URL of HTTP";
    if is_relative(location) {
        return Err(NOWHERE);
    }
    let begin = out.len();
    match resolve_location(is_secured, b"/", location, out) {
        Ok(origin) if origin.is_none_or(|origin| origin.is(&Origin { is_secured, authority })) => Ok(()),
        Ok(_) => {
            out.truncate(begin);
            Err("it leads to another server than this step's; say `at` which target that is")
        }
        Err(_) => Err(NOWHERE),
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
