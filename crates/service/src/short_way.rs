//! Past the router, for the one path of a system that is asked for far more often than all others.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

use axum::http::Method;

use crate::Answer;

/// An answer that is being worked on.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;
type Begin = Box<dyn Fn(&Method, Option<&str>, &[u8]) -> Option<Answering> + Send + Sync>;

/// The path, and how its requests are answered.
pub(crate) struct ShortWay {
    pub(crate) path: &'static str,
    begin: Begin,
}

/// What comes of a request that may go the short way.
pub(crate) enum Begun {
    Answering(Answering),
    /// The router is to be asked.
    NotHere,
    Panicked,
}

impl ShortWay {
    pub(crate) fn new<F: Future<Output = Answer> + Send + 'static>(
        path: &'static str,
        begin: impl Fn(&Method, Option<&str>, &[u8]) -> Option<F> + Send + Sync + 'static,
    ) -> Self {
        let begin = move |method: &Method, query: Option<&str>, body: &[u8]| -> Option<Answering> {
            Some(Box::pin(begin(method, query, body)?))
        };
        ShortWay { path, begin: Box::new(begin) }
    }

    pub(crate) fn begin(&self, method: &Method, query: Option<&str>, body: &[u8]) -> Begun {
        match catch_unwind(AssertUnwindSafe(|| (self.begin)(method, query, body))) {
            Ok(Some(answering)) => Begun::Answering(answering),
            Ok(None) => Begun::NotHere,
            Err(_panic) => Begun::Panicked,
        }
    }
}
