//! A user's event loop: jobs of promises, timers, and answers to requests that it sent beside others.

use std::rc::Rc;
use std::time::Duration;

use rquickjs::promise::PromiseState;
use rquickjs::{CatchResultExt, CaughtError, Ctx, Function, Object, Promise, Result, Value};

use crate::host::{Host, MAIN, SLEEP_MAX, words};
use crate::requests;
use crate::sockets;
use crate::vu::{Input, Output};

/// Waits for a promise, and for all that is left to do.
pub(crate) fn settle<'js>(
    ctx: &Ctx<'js>,
    host: &Rc<Host>,
    promise: &Promise<'js>,
) -> std::result::Result<Value<'js>, Option<String>> {
    settle_all(ctx, host)?;
    match promise.state() {
        PromiseState::Pending => {
            let name = &host.script.name;
            Err(Some(match host.rejection() {
                Some(reason) => format!("{name}: uncaught in a promise: {reason}"),
                None => format!("{name}: it awaits a promise that never settles"),
            }))
        }
        _ => {
            let result: Result<Value<'js>> =
                promise.result().unwrap_or_else(|| Ok(Value::new_undefined(ctx.clone())));
            result.catch(ctx).map_err(|error| Some(words(host, &error)))
        }
    }
}

/// Goes on until there are no jobs, timers and requests left; or until a promise is rejected that nobody looks at, which
/// ends an iteration.
pub(crate) fn settle_all(ctx: &Ctx<'_>, host: &Rc<Host>) -> std::result::Result<(), Option<String>> {
    let failed = |error: CaughtError<'_>| Some(words(host, &error));
    let mut has_heard = false;
    loop {
        while ctx.execute_pending_job() {
            if host.ending.is_begun() {
                return Err(None);
            }
        }
        let awaits = host.beside.is_any() || host.sockets.are_awaited();
        let is_rejected = host.number != MAIN && host.rejection().is_some();
        if is_rejected || !(host.has_timers.get() || awaits) {
            return Ok(());
        }
        let natives: Object<'_> = ctx.globals().get("__k6").catch(ctx).map_err(failed)?;
        let due: Function<'_> = natives.get("timerDue").catch(ctx).map_err(failed)?;
        let wait_ms = due.call::<_, Option<f64>>(()).catch(ctx).map_err(failed)?;
        let wait = wait_ms.map(|ms| Duration::from_secs_f64((ms / 1_000.0).min(SLEEP_MAX.as_secs_f64())));
        // timers and WebSockets take turns
        let is_due = wait == Some(Duration::ZERO) && has_heard;
        let heard = if is_due { None } else { sockets::heard(ctx, host).catch(ctx).map_err(failed)? };
        has_heard = heard.is_some();
        if let Some((id, news)) = heard {
            let hears: Function<'_> = natives.get("socketHears").catch(ctx).map_err(failed)?;
            hears.call::<_, ()>((id, news)).catch(ctx).map_err(failed)?;
            continue;
        }
        let input = match wait {
            // an answer that is there comes before a timer that is due
            _ if awaits => requests::wait(ctx, host, wait).catch(ctx).map_err(failed)?,
            None => return Ok(()),
            Some(Duration::ZERO) => Input::Woken,
            Some(wait) => host.wait(ctx, Output::Sleep(wait)).catch(ctx).map_err(failed)?,
        };
        match input {
            Input::Heard => {}
            Input::Arrived(id, answer) => {
                let Some(raw) = requests::arrived(ctx, host, id, answer).catch(ctx).map_err(failed)? else {
                    continue;
                };
                let arrived: Function<'_> = natives.get("arrived").catch(ctx).map_err(failed)?;
                arrived.call::<_, ()>((id, raw)).catch(ctx).map_err(failed)?;
            }
            _ => {
                let fire: Function<'_> = natives.get("fireTimer").catch(ctx).map_err(failed)?;
                fire.call::<_, ()>(()).catch(ctx).map_err(failed)?;
            }
        }
    }
}
