//! What is seen of requests: counted and timed in `record`, one by one in `step_log` and `trace`; and of the driver itself.

pub(crate) mod absence;
pub(crate) mod parts;
pub(crate) mod phases;
pub(crate) mod record;
pub(crate) mod run_queue;
pub(crate) mod secret_variables;
pub(crate) mod slowest;
pub(crate) mod step_log;
pub(crate) mod trace;
pub(crate) mod witness;
