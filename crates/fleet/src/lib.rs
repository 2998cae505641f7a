//! A fleet: agents on other machines drive a load together, and one coordinator adds up what they hand over.
//!
//! Coordination and delivery are NATS': who is there stands in a key-value bucket whose entries expire, a run's files go
//! through an object store, and what agents hand over goes through a JetStream stream, acknowledged, so that a restart of
//! the server loses nothing. This crate carries bytes and knows no scenario; `lab` makes a driver of it.
//!
//! ```no_run
//! use tidemark_fleet::{Server, look};
//!
//! for agent in look(&Server::at("nats://127.0.0.1:4222"))? {
//!     println!("{}: {} cores, {:?}", agent.presence.name, agent.presence.cores, agent.offset);
//! }
//! # Ok::<(), tidemark_fleet::FleetError>(())
//! ```
//!
//! # What holds
//!
//! - **No part of a load is driven twice or left out** ([`split`]): threads have numbers over the whole fleet.
//! - **One start** ([`clock`]): each agent begins at one instant of its own monotonic clock. Its offset to the coordinator's is
//!   the middle of the shortest of many round trips; half of that trip is the bound.
//! - **At least once, and counted once** ([`pieces`]): a message has a number, which the server and the reader both look at.
//! - **An agent is no remote shell**: it drives hosts that its own list allows ([`allow`]), and starts no program.
//! - **An agent without a coordinator stops by itself** after [`AGENT_ALONE_AFTER`].
//! - **An agent stops before others have its share**, but where NATS saw its connection end and it cannot reach NATS any more
//!   (up to 9 s): it cannot tell that from a NATS that is away. It sends nothing after its fence: [`AGENT_FENCED_AFTER`] since it sent the last message
//!   that NATS acknowledged. Driving threads look at the fence and at the clock before they send, so that an agent which stood
//!   still sends nothing either. One that NATS answers and does not let in stops after [`AGENT_SHUT_OUT_AFTER`]. Others have the share of one
//!   whose connection is gone for [`AGENT_DISCONNECTED_AFTER`], of which nothing came for [`AGENT_REPLACED_AFTER`], or that said it ended.

mod agent;
pub mod allow;
pub mod clock;
mod coordinator;
mod error;
mod fence;
pub mod pieces;
mod presence;
mod protocol;
mod server;
pub mod split;

use std::time::Duration;

pub use agent::{Job, Order, PrivateFolder, serve};
pub use coordinator::{Coordinator, File, ListedAgent, ResumeState, look};
pub use error::FleetError;
pub use presence::Presence;
pub use protocol::TakeOver;
pub use server::Server;

/// An agent that hears no coordinator for so long stops by itself.
pub const AGENT_ALONE_AFTER: Duration = Duration::from_secs(10);
/// The same where it has no connection to NATS: a cut of 10 s is no reason to stop.
pub const AGENT_CUT_AFTER: Duration = Duration::from_secs(30);
/// An agent is lost of which a coordinator hears nothing for so long, though NATS can be reached: a cut of 10 s loses nothing.
pub const AGENT_LOST_AFTER: Duration = Duration::from_secs(15);
/// Where others have the share of one that is lost, an agent sends nothing once nothing that it handed over was acknowledged
/// for so long.
pub const AGENT_FENCED_AFTER: Duration = Duration::from_secs(12);
/// With `rebalance`: an agent is lost when the coordinator has heard nothing from it for this long. Its fence has passed by
/// then.
pub const AGENT_REPLACED_AFTER: Duration = Duration::from_secs(13);
/// Where nobody has the share of one that is lost, an agent sends nothing once it stood still for so long: it is about to be
/// lost.
pub const AGENT_FROZEN_AFTER: Duration = Duration::from_secs(14);
/// What a run handed over stays at NATS for so long after its agents have stopped by themselves: another coordinator may
/// take it, and end the run.
pub const RESUMED_WITHIN: Duration = Duration::from_secs(600);
/// Where others have the share of one that is lost, an agent is lost whose connection NATS does not have for so long: it was
/// killed. Where the coordinator had no connection meanwhile, the server may have been restarted, and this tells nothing.
pub const AGENT_DISCONNECTED_AFTER: Duration = Duration::from_secs(3);
/// With `rebalance`: an agent stops when NATS has answered for this long without letting it in. It is about to be lost.
pub const AGENT_SHUT_OUT_AFTER: Duration = Duration::from_secs(2);
/// How often coordinator and agents say that they are there.
pub const BEAT: Duration = Duration::from_secs(1);
