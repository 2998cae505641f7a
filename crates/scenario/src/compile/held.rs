//! What a run will hold in memory, as far as the scenario says it: too much is told before there is any of it.

use crate::plan::Plan;
use crate::reader::Reader;
use crate::slot::Slot;
use crate::units::Size;
use crate::yaml::Node;

/// Most memory of the variables of all sessions at once, bytes, before anything is in them.
const VARIABLES_BYTES_MAX: u64 = 4 << 30;

/// Reports what a run cannot hold.
pub(super) fn check(root: &Node, plan: &Plan, reader: &Reader<'_>) {
    let Some((sessions, _)) = root.entry("sessions") else { return };
    let Some(largest) = plan.sessions.iter().max_by_key(|kind| kind.slots) else { return };
    let arriving = plan.limits.in_flight.map_or(0, |limit| limit.most);
    let at_once = plan.load.most_users().max(arriving).max(plan.limits.connections);
    let bytes = (at_once as u64).saturating_mul((largest.slots * size_of::<Slot>()) as u64);
    if bytes > VARIABLES_BYTES_MAX {
        let message = format!(
            "{at_once} sessions at once with the {} variables of \"{}\" hold {} before anything is in them; at most {}: use fewer \
             users, connections or variables",
            largest.slots,
            largest.name,
            Size(bytes),
            Size(VARIABLES_BYTES_MAX)
        );
        reader.sink.error(sessions, message);
    }
}
