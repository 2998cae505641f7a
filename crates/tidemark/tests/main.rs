//! The program from outside. One binary: each would be linked with everything again.

mod abort_early;
mod compare;
mod compare_in_rounds;
mod compare_runs;
mod faults;
mod flags;
mod history;
mod hit;
mod hit_arguments;
mod hit_requests;
mod hit_tls;
mod init;
mod install;
mod interrupts;
mod ledger;
mod once;
mod operations;
mod own_metrics;
mod own_system;
mod program;
mod results;
mod secrets;
mod statuses;
mod verbs;
mod verify;
mod verify_links;
