//! Redirects that are followed.

use crate::slot::SlotIndex;
use crate::template::Template;

/// How the redirects of a request are followed. All hops are part of it: it is due once, and has one answer, the last.
#[derive(Debug, Clone)]
pub struct Follow {
    /// Most hops, one after the other.
    pub most: u32,
    /// The variable that gets the path of a hop.
    pub location: SlotIndex,
    /// What would be another each time it is written, and is to stay as it was first sent: the variables that get it.
    pub fixed: Vec<(SlotIndex, Template)>,
    /// Whether its method is POST, which 301 and 302 turn into GET.
    pub is_post: bool,
    /// Where hops may lead, the first where the request goes itself.
    pub hops: Vec<Hops>,
}

impl Follow {
    /// Hops that a scenario can ask for.
    pub const MOST: u64 = 20;
    /// The header that says where else to ask, in lower case.
    pub const LOCATION_HEADER: &str = "location";
}

/// The requests that hops to a target are made with: indices into [`Plan::requests`](super::Plan::requests).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hops {
    /// The target.
    pub target: u16,
    /// With the request's own method and body.
    pub same: u16,
    /// As a GET, without a body.
    pub get: u16,
}
