//! What a codec adds so that its requests go to one of several servers.

use std::net::{IpAddr, SocketAddr};

use tidemark_scenario::{Context, Unmet};

use super::Shards;
use crate::protocols::codec::Codec;

/// An answer that says that another server has the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// Whether it is so for this once: the other one is to be told that it is asked for it.
    pub is_asking: bool,
    /// Whose server that is.
    pub slot: u16,
    /// Where, as an address or a name; empty where it is the host of whoever answered.
    pub host: String,
    /// And its port.
    pub port: u16,
}

/// A codec whose requests say by a key where they belong.
pub(crate) trait Keyed: Codec {
    /// What asks a server of a cluster for the map of slots, and what goes in front of a request that another one has sent.
    const MAP: &'static [u8] = b"";
    /// See [`MAP`](Self::MAP). It has an answer of its own.
    const ASKING: &'static [u8] = b"";

    /// Appends a request to `out`; nothing of it where something that it needs is not there.
    fn render(
        request: &Self::Request,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Unmet>;
    /// Tells the keys of a rendered request.
    fn keys<'w>(request: &Self::Request, rendered: &'w [u8], tell: &mut dyn FnMut(&'w [u8]));
    /// What of a key decides where it is.
    fn tag(key: &[u8]) -> &[u8] {
        key
    }
    /// Awaits the answer to a rendered request (to [`MAP`](Self::MAP) without one), behind so many others that are passed
    /// over.
    fn begin(&mut self, request: Option<&Self::Request>, rendered: &[u8], passed_over: u32);
    /// Whether the answer, which is whole, sends its request to another server.
    fn redirect(&self) -> Option<Redirect> {
        None
    }
    /// The map that the answer is. `asked`: who gave it; `known`: where a server is that it calls by a name.
    ///
    /// # Errors
    /// Why it is none, in words.
    fn map(
        &self,
        _asked: IpAddr,
        _known: &dyn Fn(&str, u16) -> Option<SocketAddr>,
    ) -> Result<Shards, String> {
        Err("no cluster".into())
    }
}
