//! The shapes of load.

use std::path::Path;

use crate::job::Job;

/// Bytes of the body that is posted.
const BODY_BYTES: usize = 1_024;

/// One shape: a title and what makes it different from a plain GET.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    /// What it is called on the command line.
    pub key: &'static str,
    /// What it is called in the output.
    pub title: &'static str,
    /// What is to be known to read its table.
    pub about: &'static str,
    pub connections: usize,
    pub path: &'static str,
    /// Whether the load is open, at a share of what ours reaches closed.
    pub open: bool,
    pub post: bool,
    pub pipeline: usize,
    pub tls: bool,
    pub close: bool,
    pub session: bool,
    /// Whether ours is shown with each of its I/O back ends.
    pub back_ends: bool,
}

/// All shapes that have a table of their own.
pub fn all() -> Vec<Shape> {
    let plain = Shape { connections: 100, path: "/", pipeline: 1, ..Shape::default() };
    vec![
        Shape {
            key: "get-100",
            title: "GET, 100 connections, closed loop",
            about: "A small answer (13 bytes). The bare loops send a fixed request, read and count, nothing else.",
            back_ends: true,
            ..plain.clone()
        },
        Shape { key: "get-10", title: "GET, 10 connections, closed loop", connections: 10, ..plain.clone() },
        Shape {
            key: "get-1000",
            title: "GET, 1,000 connections, closed loop",
            connections: 1_000,
            ..plain.clone()
        },
        Shape {
            key: "get-10000",
            title: "GET, 10,000 connections, closed loop",
            connections: 10_000,
            ..plain.clone()
        },
        Shape {
            key: "open",
            title: "GET, open loop at 80 % of what ours reaches closed, 100 connections",
            about: "Each is asked for the same rate; who cannot hold it shows by its requests/s. ab, h2load and wrk know no rate.",
            open: true,
            ..plain.clone()
        },
        Shape {
            key: "session",
            title: "Sessions: log in, keep the cookie, extract a token from JSON, two requests with it, each checked; 100 users",
            about: "Only ours and k6 know sessions.",
            session: true,
            ..plain.clone()
        },
        Shape {
            key: "post",
            title: "POST, 1 KiB body, 100 connections, closed loop",
            post: true,
            ..plain.clone()
        },
        Shape {
            key: "large",
            title: "GET, answers of 64 KiB, 100 connections, closed loop",
            path: "/64k",
            ..plain.clone()
        },
        Shape {
            key: "pipeline",
            title: "GET, 16 requests under way on each of 100 connections",
            about: "wrk counts a batch's latency from when it was sent.",
            pipeline: 16,
            ..plain.clone()
        },
        Shape {
            key: "tls",
            title: "GET over TLS 1.3, 100 connections kept, closed loop",
            tls: true,
            ..plain.clone()
        },
        Shape {
            key: "tls-1000",
            title: "GET over TLS 1.3, 1,000 connections kept, closed loop",
            connections: 1_000,
            tls: true,
            ..plain.clone()
        },
        Shape {
            key: "tls-10000",
            title: "GET over TLS 1.3, 10,000 connections kept, closed loop",
            about: "Handshakes fall into the time that counts.",
            connections: 10_000,
            tls: true,
            ..plain.clone()
        },
        Shape {
            key: "tls-new",
            title: "GET over TLS 1.3, a new connection for each request, 100 at once",
            about: "Resumed: the share of handshakes that the server saw resumed. A full one costs several times as much, on both sides.",
            tls: true,
            close: true,
            ..plain
        },
    ]
}

impl Shape {
    /// The job for a server there.
    pub fn job(&self, address: &str, seconds: u64, rate: Option<u64>, dir: &Path) -> std::io::Result<Job> {
        let body = dir.join("body.json");
        if self.post {
            let padding = "x".repeat(BODY_BYTES - r#"{"note":""}"#.len());
            std::fs::write(&body, format!(r#"{{"note":"{padding}"}}"#))?;
        }
        Ok(Job {
            origin: format!("{}://{address}", if self.tls { "https" } else { "http" }),
            path: self.path.to_owned(),
            connections: self.connections,
            seconds,
            rate: rate.filter(|_| self.open),
            body: self.post.then_some(body),
            pipeline: self.pipeline,
            close: self.close,
            session: self.session,
            unlimited: false,
            uncorrected: false,
            dir: dir.to_owned(),
        })
    }
}
