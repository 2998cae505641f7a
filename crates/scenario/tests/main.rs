//! The scenario language from outside. One binary: each would be linked with everything again.

mod airline_mix;
mod calls;
mod diagnostics;
mod docs;
mod event_streams;
mod faults;
mod http;
mod js;
mod key_value_stores;
mod keys;
mod language;
mod launch;
mod ledger;
mod loads;
mod never_panics;
mod schema;
mod secrets;
mod services;
mod source;
mod source_any;
mod stores;
mod support;
mod targets;
mod verify;
mod watch;
mod websocket;
