//! Requests as most are: with headers, tags and a text as their body. They are made here; what is beyond that goes through
//! the module `tidemark:http`, which is loaded for it.

use std::time::Duration;

use rquickjs::function::{Func, Opt};
use rquickjs::object::Property;
use rquickjs::{Coerced, Ctx, Function, Object, Result, Value};

use crate::bytes;
use crate::head::Head;
use crate::host::{Host, SLEEP_MAX, host, load};
use crate::options::text_milliseconds;
use crate::reply;
use crate::requests::{Made, exchange};
use crate::text::{Told, utf8};
use crate::vu::Request;

/// The functions of `k6/http` that send a request: their names, the method, and whether a body is the second argument.
const VERBS: [(&str, &str, bool); 7] = [
    ("get", "GET", false),
    ("head", "HEAD", false),
    ("post", "POST", true),
    ("put", "PUT", true),
    ("patch", "PATCH", true),
    ("del", "DELETE", true),
    ("options", "OPTIONS", true),
];

/// Adds the native that makes the functions.
pub(crate) fn install(natives: &Object<'_>) -> Result<()> {
    natives.set("verbs", Func::from(verbs))
}

fn verbs<'js>(ctx: Ctx<'js>) -> Result<Object<'js>> {
    type Given<'js> = Opt<Value<'js>>;
    let verbs = Object::new(ctx.clone())?;
    let or_nothing =
        |ctx: &Ctx<'js>, given: Given<'js>| given.0.unwrap_or_else(|| Value::new_undefined(ctx.clone()));
    for (name, method, has_body) in VERBS {
        let verb = move |ctx: Ctx<'js>, url: Given<'js>, second: Given<'js>, third: Given<'js>| {
            let [url, second, third] = [url, second, third].map(|given| or_nothing(&ctx, given));
            let (body, params) =
                if has_body { (second, third) } else { (Value::new_null(ctx.clone()), second) };
            ask(&ctx, method.to_owned(), [url, body, params])
        };
        verbs.set(name, Function::new(ctx.clone(), verb)?)?;
    }
    let request = move |ctx: Ctx<'js>,
                        method: Coerced<String>,
                        url: Given<'js>,
                        body: Given<'js>,
                        params: Given<'js>| {
        let given = [url, body, params].map(|given| or_nothing(&ctx, given));
        ask(&ctx, method.0, given)
    };
    verbs.set("request", Function::new(ctx.clone(), request)?)?;
    Ok(verbs)
}

/// What a usual request is made of.
struct Usual {
    request: Request,
    head: String,
    tags: String,
}

/// Sends a request, and waits for its answer.
fn ask<'js>(ctx: &Ctx<'js>, method: String, [url, body, params]: [Value<'js>; 3]) -> Result<Value<'js>> {
    let host = host(ctx)?;
    let Some(usual) = usual(&host, &method, [&url, &body, &params])? else {
        let request: Function<'js> = beyond(ctx)?.get("request")?;
        return request.call((method, url, body, params));
    };
    host.is_in_run(ctx, "a request")?;
    let Usual { mut request, head, tags } = usual;
    let group = host.group.borrow().clone();
    let made = Made::of(&host, &mut request, head, (group, tags));
    let reply = exchange(ctx, &host, request, made)?;
    let status = reply::status(&reply);
    if status < 0 {
        let answered: Function<'js> = beyond(ctx)?.get("answered")?;
        return answered.call((method, url, body, params, reply));
    }
    reply.set("status", status)?;
    reply.set("url", url)?;
    if body.is_string() {
        reply.prop("_sent", Property::from(body))?;
    }
    Ok(reply.into_value())
}

/// The module for what is beyond the usual.
fn beyond<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let natives: Object<'js> = ctx.globals().get("__k6")?;
    if let Some(known) = natives.get::<_, Option<Object<'js>>>("http")? {
        return Ok(known);
    }
    let loaded: Object<'js> = load(ctx.clone(), "tidemark:http".to_owned())?.get()?;
    natives.set("http", loaded.clone())?;
    Ok(loaded)
}

/// What to send; none where something is not as most requests have it.
fn usual<'js>(host: &Host, method: &str, [url, body, params]: [&Value<'js>; 3]) -> Result<Option<Usual>> {
    let Some(url) = url.as_string() else { return Ok(None) };
    let is_body = body.is_string() || body.is_null() || body.is_undefined();
    if !host.is_usual.get() || !is_body {
        return Ok(None);
    }
    let url = utf8(url)?;
    // who asks
    if url.contains('@') {
        return Ok(None);
    }
    let mut request = Request { method: method.to_owned(), url, ..Request::default() };
    let (mut headers, mut tags) = (None, None);
    if let Some(params) = params.as_object() {
        // a plain object, of which nothing is inherited
        let is_plain = params.get_prototype().is_none_or(|above| above.get_prototype().is_none());
        if !is_plain || params.is_function() {
            return Ok(None);
        }
        for param in params.props::<String, Value<'js>>() {
            let (name, told) = param?;
            match name.as_str() {
                _ if told.is_undefined() => {}
                "headers" => headers = told.into_object(),
                "tags" => tags = told.into_object(),
                "timeout" => match timeout(&told)? {
                    Some(ms) => request.timeout = time(ms),
                    None => return Ok(None),
                },
                "cookies" | "jar" | "responseType" | "responseCallback" | "compression" => return Ok(None),
                _ => {}
            }
        }
    } else if !params.is_undefined() && !params.is_null() {
        return Ok(None);
    }
    request.body = bytes::optional(body)?;
    let head = Head::read(headers.as_ref())?.lines_with_cookies(&host.agent.borrow());
    let tags = tags_of(tags.as_ref(), &mut request.name)?;
    Ok(Some(Usual { request, head, tags }))
}

/// Milliseconds of a time-out; none where it is no time.
fn timeout(told: &Value<'_>) -> Result<Option<f64>> {
    match told.as_string() {
        Some(text) => Ok(text_milliseconds(&text.to_string()?)),
        None => Ok(told.as_number()),
    }
}

/// A time-out of so many milliseconds; below 0 there is none.
pub(crate) fn time(ms: f64) -> Option<Duration> {
    (ms >= 0.0 && ms.is_finite()).then(|| Duration::from_secs_f64((ms / 1e3).min(SLEEP_MAX.as_secs_f64())))
}

/// Tags as they are measured; the tag `name` is what the request is counted as.
fn tags_of(tags: Option<&Object<'_>>, name: &mut Option<String>) -> Result<String> {
    let mut flat = String::new();
    for tag in tags.into_iter().flat_map(Object::props::<String, Value<'_>>) {
        let (key, told) = tag?;
        let is_name = key == "name" && !told.is_undefined();
        let Told(value) = told.get()?;
        for part in [&key, "\0", &value, "\0"] {
            flat.push_str(part);
        }
        if is_name {
            *name = Some(value);
        }
    }
    Ok(flat)
}
