//! Where an answer's `Location` leads.

use tidemark_wire::http1::{Origin, is_relative, resolve_location};

use crate::session::answer::Answer;

/// All that name where else to ask.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// Whether a server says by this status where else to ask; 300 and 304 leave it open, or say something else.
pub(crate) fn is_redirect(status: u16) -> bool {
    REDIRECTS.contains(&status)
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
