//! The codecs from outside. One binary: each would be linked with everything again.

mod answers;
mod http2;
mod properties;
mod refusals;
mod requests;
mod rpc;
mod websocket;
mod websocket_handshake;
mod websocket_properties;
