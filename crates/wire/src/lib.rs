//! Sans-I/O codecs: bytes in, messages out and back. No sockets, no clock, no threads.

pub mod json;
