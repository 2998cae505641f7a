//! A server of gRPC whose answers are frames of HTTP/2 as told, also wrong ones.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use tidemark_drive::{DriveOptions, Grpc, Protocol};
use tidemark_scenario::protobuf::Types;

use super::options;

pub const PROTO: &str = r#"
syntax = "proto3";
package t;
message M { string text = 1; int64 number = 2; repeated M more = 3; }
service S {
  rpc One(M) returns (M);
  rpc Many(M) returns (stream M);
  rpc Both(stream M) returns (stream M);
}
"#;

pub fn types() -> Types {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.proto");
    std::fs::write(&file, PROTO).unwrap();
    Types::of_protos(&[file], &[]).unwrap()
}

pub fn speaking(address: SocketAddr) -> DriveOptions {
    let mut options = options(address, 1);
    options.targets[0].protocol = Protocol::Grpc(Grpc { types: Some(types()), most_streams: None });
    options
}

/// A request as the server has it.
pub struct Call {
    pub head: Request<()>,
    pub body: RecvStream,
    pub answer: SendResponse<Bytes>,
}

type Answering = Pin<Box<dyn Future<Output = ()>>>;

/// Serves each call by `behave`, on a free port, for as long as the tests last.
pub fn serve(behave: impl Fn(Call) -> Answering + Send + Sync + 'static) -> SocketAddr {
    serve_some(usize::MAX, behave)
}

/// The same; a connection is going away (GOAWAY) after so many calls.
pub fn serve_some(most: usize, behave: impl Fn(Call) -> Answering + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let behave = Arc::new(behave);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                let behave = behave.clone();
                tokio::task::spawn_local(async move {
                    let Ok(mut connection) = server::handshake(socket).await else { return };
                    let mut calls = 0;
                    while let Some(Ok((request, answer))) = connection.accept().await {
                        calls += 1;
                        if calls == most {
                            connection.graceful_shutdown();
                        }
                        let (head, body) = request.into_parts();
                        let head = Request::from_parts(head, ());
                        tokio::task::spawn_local(behave(Call { head, body, answer }));
                    }
                });
            }
        });
    });
    address
}

impl Call {
    /// Begins an answer of gRPC.
    pub fn begin(&mut self) -> SendStream<Bytes> {
        self.begin_with("identity")
    }

    pub fn begin_with(&mut self, encoding: &str) -> SendStream<Bytes> {
        let head =
            Response::builder().header("content-type", "application/grpc").header("grpc-encoding", encoding);
        self.answer.send_response(head.body(()).unwrap(), false).unwrap()
    }

    /// Reads all that is sent.
    pub async fn read(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(Ok(piece)) = self.body.data().await {
            let _ = self.body.flow_control().release_capacity(piece.len());
            all.extend_from_slice(&piece);
        }
        all
    }
}

/// A message whose text this is, with its length in front.
pub fn message(text: &str) -> Vec<u8> {
    let mut bytes = vec![0x0a];
    let mut length = text.len();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(text.as_bytes());
    framed(0, &bytes)
}

/// Bytes with flag and length in front.
pub fn framed(flag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut framed = vec![flag];
    framed.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    framed.extend_from_slice(bytes);
    framed
}

/// Trailers with a status.
pub fn status(code: u32, words: &str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    if !words.is_empty() {
        trailers.insert("grpc-message", words.parse().unwrap());
    }
    trailers
}

/// Ends an answer.
pub fn end(stream: &mut SendStream<Bytes>, code: u32, words: &str) {
    let _ = stream.send_trailers(status(code, words));
}

/// A while.
pub async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
