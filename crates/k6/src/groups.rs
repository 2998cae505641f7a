//! What `k6` itself has that scripts call most: checks and groups.

use std::time::Instant;

use rquickjs::function::{Func, Opt};
use rquickjs::{Coerced, Ctx, Exception, FromJs as _, Function, Object, Result, Value};

use crate::host::{Host, host};
use crate::metrics::{self, Kind};
use crate::modules::thrown;
use crate::text::Told;

/// Adds them to the natives.
pub(crate) fn install(natives: &Object<'_>) -> Result<()> {
    natives.set("check", Func::from(check))?;
    natives.set("inGroup", Func::from(in_group))?;
    natives.set("group", Func::from(group))
}

/// The group that the user is in.
fn group(ctx: Ctx<'_>) -> Result<String> {
    Ok(host(&ctx)?.group.borrow().clone())
}

/// Tags that a value has by its own and by the user.
fn tags<'js>(ctx: &Ctx<'js>, host: &Host, own: Option<Value<'js>>) -> Result<String> {
    let own = own.filter(|own| !own.is_undefined() && !own.is_null());
    if own.is_none() && host.is_usual.get() {
        return Ok(String::new());
    }
    let flat: Function<'js> = ctx.globals().get::<_, Object<'js>>("__k6")?.get("tags")?;
    flat.call((own,))
}

/// Whether all of these hold of a value; each is counted.
fn check<'js>(ctx: Ctx<'js>, value: Value<'js>, sets: Object<'js>, own: Opt<Value<'js>>) -> Result<bool> {
    let host = host(&ctx)?;
    let flat = tags(&ctx, &host, own.0)?;
    let mut all = true;
    for set in sets.props::<String, Value<'js>>() {
        let (name, told) = set?;
        let result = match told.as_function() {
            Some(function) => function.call::<_, Value<'js>>((value.clone(),)),
            None => Ok(told),
        };
        // one that throws did not hold, as in k6
        let (result, thrown) = match result {
            Ok(result) => (result, None),
            Err(error) => (Value::new_bool(ctx.clone(), false), Some((error, ctx.catch()))),
        };
        if result.is_promise() {
            let why = format!("check \"{name}\": its function is async, and a promise is always true");
            return Err(Exception::throw_type(&ctx, &why));
        }
        let Coerced(is_good) = Coerced::<bool>::from_js(&ctx, result)?;
        all &= is_good;
        let group = host.group.borrow();
        if !host.ending.is_begun() {
            host.metrics.check(&group, &name, is_good);
        }
        let values = [(metrics::CHECKS, Kind::Rate, f64::from(u8::from(is_good)))];
        host.add(&values, &group, &flat, &[("check", &name)]);
        match thrown {
            Some((error, value)) if error.is_exception() => return Err(ctx.throw(value)),
            Some((error, _)) => return Err(error),
            None => {}
        }
    }
    Ok(all || host.script.is_rehearsal)
}

/// Calls a function as a part of a group, whose time is measured.
fn in_group<'js>(ctx: Ctx<'js>, Told(name): Told, call: Value<'js>) -> Result<Value<'js>> {
    if name.contains("::") {
        return Err(thrown(&ctx, "the name of a group contains no ::"));
    }
    let Some(function) = call.as_function() else {
        return Err(Exception::throw_type(&ctx, "a group needs a function"));
    };
    let made_by: Option<Object<'js>> = function.get("constructor")?;
    let kind: Option<String> = made_by.map(|made_by| made_by.get("name")).transpose()?;
    if kind.as_deref() == Some("AsyncFunction") {
        let why = format!(
            "group \"{name}\" has an async function, for which groups do not wait; call it without async"
        );
        return Err(Exception::throw_type(&ctx, &why));
    }
    let host = host(&ctx)?;
    let inner = format!("{}::{name}", host.group.borrow());
    let outer = host.group.replace(inner);
    let mut flat = tags(&ctx, &host, None)?;
    let begun = Instant::now();
    let returned = function.call(());
    let took_ms = begun.elapsed().as_secs_f64() * 1_000.0;
    if returned.is_ok() {
        // the function may have set some
        flat = tags(&ctx, &host, None)?;
    }
    let inner = host.group.replace(outer);
    host.add(&[(metrics::GROUP_DURATION, Kind::Trend, took_ms)], &inner, &flat, &[]);
    returned
}
