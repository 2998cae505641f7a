//! Against real stores, most of them on a JVM, which are started and waited for.

#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "cassandra")]
#[path = "../../systems/store/tests/common/roles.rs"]
#[allow(dead_code, reason = "it has its own tests where it is")]
mod roles;
#[cfg(feature = "cassandra")]
#[path = "../../systems/store/tests/common/values.rs"]
#[allow(dead_code, reason = "it has its own tests where it is")]
mod values;
#[cfg(feature = "cassandra")]
#[allow(unused_imports, reason = "`roles` takes them from here")]
use values::{booking, customer, session, wait};

#[cfg(feature = "cassandra")]
#[path = "../../systems/store/tests/common/feed_roles.rs"]
#[allow(dead_code, reason = "it has its own tests where it is")]
mod feed_roles;
#[cfg(any(feature = "cassandra", feature = "kafka"))]
#[path = "../common/intake.rs"]
mod intake;

#[cfg(feature = "cassandra")]
mod airline_stores;
mod cql;
#[cfg(feature = "cassandra")]
mod intake_cassandra;
#[cfg(feature = "kafka")]
mod intake_kafka;
#[cfg(feature = "kafka")]
mod newsfeed_kafka;
#[cfg(feature = "cassandra")]
mod newsfeed_stores;
mod nothing_lost;
mod stores;
mod ycsb;
