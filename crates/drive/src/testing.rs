//! Plans for this crate's own tests.

use tidemark_scenario::plan::{
    HttpRequest, Limits, Load, LoadModel, Op, RequestKind, RequestPlan, SessionKind,
};
use tidemark_scenario::{Plan, Template};
use tidemark_wire::http1::cookie;

use crate::io::address::Address;
use crate::protocols::Protocol;
use crate::protocols::target::Target;
use crate::session::jar::{Jar, Place};

/// A place where nobody is.
pub(crate) fn target() -> Target {
    Target {
        address: Address::Tcp(([127, 0, 0, 1], 9).into()),
        others: Vec::new(),
        authority: "h".into(),
        base_path: String::new(),
        tls: None,
        protocol: Protocol::Http1,
        proxy: None,
    }
}

/// Puts what a `Set-Cookie` says into a jar, for all paths where it says none.
pub(crate) fn put(jar: &mut Jar, text: &str) {
    let set = cookie::parse(text.as_bytes()).expect("a cookie");
    let place = Place { name: set.name, domain: b"h", path: set.path.unwrap_or(b"/") };
    assert!(jar.put(place, &set, 0));
}

/// A GET of a path.
pub(crate) fn get(path: &str) -> RequestKind {
    RequestKind::Http(HttpRequest {
        method: "GET".into(),
        target: Template::literal(path),
        ..HttpRequest::default()
    })
}

/// A session kind of these operations.
pub(crate) fn kind(ops: Vec<Op>) -> SessionKind {
    SessionKind {
        name: "user".into(),
        weight: 1,
        slots: 1,
        slot_names: vec!["it".into()],
        keep_cookies: false,
        ops,
        script: None,
    }
}

/// A plan of these requests and nothing else.
pub(crate) fn plan(requests: Vec<RequestPlan>) -> Plan {
    Plan {
        labels: vec!["first".into()],
        requests,
        sessions: vec![kind(vec![Op::Request(0), Op::End])],
        limits: Limits { connections: 1, waiting: Some(0), body_bytes: 1 << 20, ..Limits::default() },
        ..Plan::new("test", Load::new(LoadModel::Closed, Vec::new()))
    }
}
