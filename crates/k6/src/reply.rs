//! An answer as JavaScript holds it: what a script does not look at is not made for it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::convert::List;
use rquickjs::function::{Constructor, Func};
use rquickjs::object::Property;
use rquickjs::{ArrayBuffer, Class, Ctx, Function, JsLifetime, Object, Result, String as Text, Value};

use crate::host::{Host, host};
use crate::vu::Answer;

/// Largest body that stays outside the user's JavaScript memory until the script looks at it, bytes.
const BODY_MAX: usize = 64 << 10;
/// The share of a user's memory that such bodies take together: one of so many.
const SHARE: usize = 4;
/// What a larger body is kept as.
const BYTES: &str = "_bytes";

/// What was asked.
#[derive(Default)]
pub(crate) struct Asked {
    pub method: String,
    /// The lines of its head.
    pub head: String,
}

/// An answer.
pub(crate) struct Reply {
    answer: Answer,
    asked: Asked,
    /// Bytes of all replies of its user, and how many of them are of this one.
    held: Rc<Cell<usize>>,
    bytes: usize,
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.held.set(self.held.get() - self.bytes);
    }
}

impl<'js> Trace<'js> for Reply {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

// SAFETY: nothing in it is of a runtime's lifetime.
#[allow(unsafe_code)]
unsafe impl<'js> JsLifetime<'js> for Reply {
    type Changed<'to> = Reply;
}

impl<'js> JsClass<'js> for Reply {
    const NAME: &'static str = "Reply";
    type Mutable = Readable;

    fn constructor(_: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}

type Held<'js> = Class<'js, Reply>;

/// Adds the natives that look at a reply.
pub(crate) fn install(natives: &Object<'_>) -> Result<()> {
    // what all of them inherit
    natives.set("replies", Class::<Reply>::prototype(natives.ctx())?)?;
    natives.set("replyStatus", Func::from(|reply: Held<'_>| status(&reply)))?;
    natives.set("replyAsked", Func::from(asked))?;
    natives.set("replyFailure", Func::from(failure))?;
    natives.set("replyHead", Func::from(head))?;
    natives.set("replyCookies", Func::from(cookies))?;
    natives.set("replyTimes", Func::from(times))?;
    natives.set("replyTls", Func::from(tls))?;
    natives.set("replyBytes", Func::from(bytes))?;
    natives.set("replyText", Func::from(text))?;
    natives.set("failed", Func::from(failed))
}

/// The reply that a script is handed.
pub(crate) fn of<'js>(ctx: &Ctx<'js>, host: &Host, mut answer: Answer, asked: Asked) -> Result<Held<'js>> {
    let held = Rc::clone(&host.replies);
    let outside = answer.head.len() + asked.head.len();
    let bytes = outside + answer.body.len();
    let is_large = bytes > BODY_MAX || held.get() + bytes > host.script.bounds.memory / SHARE;
    let body = is_large.then(|| std::mem::take(&mut answer.body));
    let bytes = if is_large { outside } else { bytes };
    held.set(held.get() + bytes);
    let reply = Class::instance(ctx.clone(), Reply { answer, asked, held, bytes })?;
    if let Some(body) = body {
        // a copy, which counts in the user's memory
        reply.prop(BYTES, Property::from(ArrayBuffer::new_copy(ctx.clone(), body)?))?;
    }
    if host.script.lists_fields.load(Ordering::Relaxed) {
        let natives: Object<'_> = ctx.globals().get("__k6")?;
        if let Some(with_fields) = natives.get::<_, Option<Function<'_>>>("withFields")? {
            with_fields.call::<_, Value<'_>>((reply.clone(),))?;
        }
    }
    Ok(reply)
}

fn is_redirect(status: u16) -> bool {
    matches!(status, 301..=303 | 307 | 308)
}

/// The status of an answer that is good, sets no cookie and leads nowhere else; of any other -1 less it.
pub(crate) fn status(reply: &Held<'_>) -> i32 {
    let Answer { status, sets_cookies, .. } = reply.borrow().answer;
    let is_plain = (200..400).contains(&status) && !sets_cookies && !is_redirect(status);
    if is_plain { i32::from(status) } else { -1 - i32::from(status) }
}

/// The method, and the lines of the head, of what was asked.
fn asked(reply: Held<'_>) -> List<(String, String)> {
    let Asked { method, head } = &reply.borrow().asked;
    List((method.clone(), head.clone()))
}

/// k6's number of what is wrong with it, and words.
fn failure(reply: Held<'_>) -> List<(u32, String)> {
    let Answer { status, error_code, error, .. } = &reply.borrow().answer;
    let code = if *status >= 400 { u32::from(*status) + 1_000 } else { *error_code };
    List((code, error.clone()))
}

/// The lines of its head, but for cookies that it sets.
fn head(reply: Held<'_>) -> String {
    let answer = &reply.borrow().answer;
    if answer.sets_cookies { split(&answer.head).0 } else { answer.head.clone() }
}

/// The cookies that it sets, a line for each.
fn cookies(reply: Held<'_>) -> String {
    let answer = &reply.borrow().answer;
    if answer.sets_cookies { split(&answer.head).1 } else { String::new() }
}

/// The lines of an answer's head, apart from the cookies that it sets.
pub(crate) fn split(head: &str) -> (String, String) {
    let is_cookie = |line: &&str| line.get(..11).is_some_and(|name| name.eq_ignore_ascii_case("set-cookie:"));
    let (cookies, head): (Vec<&str>, Vec<&str>) = head.lines().partition(is_cookie);
    let cookies: Vec<&str> = cookies.into_iter().map(|line| line[11..].trim()).collect();
    (head.join("\n"), cookies.join("\n"))
}

/// Its times, ms: all of it, blocked, connecting, TLS, receiving.
fn times(reply: Held<'_>) -> Vec<f64> {
    let Answer { duration_ms, parts, .. } = reply.borrow().answer;
    vec![duration_ms, parts.blocked, parts.connecting, parts.handshaking, parts.receiving]
}

/// Version and cipher suite of TLS as k6 names them; nothing without TLS.
fn tls(reply: Held<'_>) -> List<(&'static str, String)> {
    let answer = &reply.borrow().answer;
    List((tls_version(answer), answer.tls.map_or_else(String::new, |(_, suite)| tls_suite(suite))))
}

/// The version of TLS as k6 names it; nothing without TLS.
pub(crate) fn tls_version(answer: &Answer) -> &'static str {
    match answer.tls {
        Some(("TLS 1.3", _)) => "tls1.3",
        Some(_) => "tls1.2",
        None => "",
    }
}

/// A cipher suite as Go names it: `TLS_AES_128_GCM_SHA256`.
fn tls_suite(suite: &str) -> String {
    let is_short = |suite: &&str| suite.starts_with("TLS_ECDHE_") && suite.ends_with("_POLY1305");
    match suite.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}"),
        None => suite.strip_suffix("_SHA256").filter(is_short).unwrap_or(suite).to_owned(),
    }
}

/// Its body as bytes.
fn bytes<'js>(ctx: Ctx<'js>, reply: Held<'js>) -> Result<Value<'js>> {
    let larger: Value<'_> = reply.get(BYTES)?;
    if !larger.is_undefined() {
        return Ok(larger);
    }
    ArrayBuffer::new_copy(ctx, &*reply.borrow().answer.body).map(ArrayBuffer::into_value)
}

/// Its body as text.
fn text<'js>(ctx: Ctx<'js>, reply: Held<'js>) -> Result<Text<'js>> {
    let larger: Option<ArrayBuffer<'_>> = reply.get(BYTES)?;
    let answer = &reply.borrow().answer;
    // SAFETY: nothing of the script runs before the bytes are copied.
    #[allow(unsafe_code)]
    let bytes = larger.as_ref().and_then(|buffer| unsafe { buffer.as_bytes() }).unwrap_or(&answer.body);
    Text::from_str(ctx, &String::from_utf8_lossy(bytes))
}

/// A reply to what could not be sent.
fn failed(ctx: Ctx<'_>, error_code: u32, error: String, method: String, head: String) -> Result<Held<'_>> {
    let answer = Answer { error_code, error, ..Answer::default() };
    of(&ctx, &*host(&ctx)?, answer, Asked { method, head })
}

#[cfg(test)]
mod tests {
    use super::tls_suite;

    #[test]
    fn cipher_suites_have_the_names_of_go() {
        for (suite, name) in [
            ("TLS13_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
            ("TLS13_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256"),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"),
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
        ] {
            assert_eq!(tls_suite(suite), name);
        }
    }
}
