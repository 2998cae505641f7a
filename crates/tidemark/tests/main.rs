//! The program from outside. One binary: each would be linked with everything again.

mod abort_early;
mod compare;
mod compare_in_rounds;
mod compare_runs;
mod cost;
mod driver;
mod faults;
mod flags;
mod history;
mod hit;
mod hit_arguments;
mod hit_requests;
mod hit_tls;
mod import;
mod init;
mod install;
mod interrupts;
mod jmeter;
#[cfg(feature = "js")]
mod js_steps;
#[path = "k6/mod.rs"]
mod k6;
mod limit;
mod links;
mod manifests;
mod narrow;
mod once;
mod operations;
mod own_metrics;
mod own_system;
mod plan;
mod program;
mod proxy;
mod results;
#[cfg(feature = "lua")]
mod scripts;
mod secrets;
mod services;
mod statuses;
mod topology;
mod trace;
mod ui;
mod uploads;
mod verbs;
mod verify;
mod verify_links;
mod watch;
