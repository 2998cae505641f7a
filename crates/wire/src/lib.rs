//! Sans-I/O codecs: bytes in, messages out and back. No sockets, no clock, no threads.
//!
//! - [`aerospike`]: requests about records sent to Aerospike, replies decoded.
//! - [`cql`]: statements sent to Cassandra, replies decoded.
//! - [`encoding`]: bodies read that were encoded for their way (gzip, deflate, br, zstd).
//! - [`events`]: server-sent events, as an answer's body brings them.
//! - [`grpc`]: messages of gRPC with their length in front, deadlines, texts of statuses.
//! - [`http1`]: decoders for answers and (for tests) requests, writers for request heads, cookies.
//! - [`http2`]: a client's connection with its streams, compressed lists of headers.
//! - [`json`]: values found in JSON text by path, without building a tree.
//! - [`memcached`]: replies of memcached decoded.
//! - [`postgres`]: statements sent to PostgreSQL, replies decoded.
//! - [`protobuf`]: messages of Protocol Buffers written and read without their types.
//! - [`resp`]: commands of Redis written, replies decoded.
//! - [`rpc`]: remote calls and their answers, many in one message of a WebSocket.
//! - [`websocket`]: messages decoded and frames written, as client and as server; the handshake.
//!
//! Whoever owns the connection reads bytes and feeds them; the codec says what they mean. Everything is bounded, and
//! nothing is allocated once the buffers have grown to what the peer sends.
//!
//! ```
//! use tidemark_wire::http1::{DecoderLimits, ResponseDecoder};
//! use tidemark_wire::json;
//!
//! let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{\"id\": \"AA\\u00e9\"}";
//! let mut decoder = ResponseDecoder::new(DecoderLimits::default());
//! decoder.start(false, true);
//! let decoded = decoder.decode(bytes)?;
//! assert!(decoded.complete);
//! assert_eq!(decoder.status(), 200);
//!
//! let path = json::Path::parse("$.id")?;
//! let mut text = Vec::new();
//! json::write_text(path.find(decoder.body())?.unwrap(), &mut text);
//! assert_eq!(text, "AAé".as_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod aerospike;
pub mod cql;
pub mod encoding;
pub mod events;
pub mod grpc;
pub mod http1;
pub mod http2;
pub mod json;
pub mod memcached;
pub mod postgres;
pub mod protobuf;
mod reply;
pub mod resp;
pub mod rpc;
#[cfg(test)]
mod testing;
pub mod websocket;
