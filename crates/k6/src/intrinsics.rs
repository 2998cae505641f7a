//! What JavaScript has by itself, but for what few scripts use: typed arrays, dates, proxies. A user gets that before the
//! first module that names any of it, and begins sooner without: it is a tenth of its memory.

use rquickjs::context::intrinsic::{Eval, Json, MapSet, Promise, RegExp, RegExpCompiler};
use rquickjs::{Context, Ctx, Error, Result, Runtime, qjs};

use crate::host::host;

/// What every user has.
type Usual = (Eval, RegExpCompiler, RegExp, Json, MapSet, Promise);

/// Adds a part to a context; below 0 where there is no memory for it.
type Add = unsafe extern "C" fn(*mut qjs::JSContext) -> i32;

/// What a user gets later.
const REST: [Add; 6] = [
    qjs::JS_AddIntrinsicDate,
    qjs::JS_AddIntrinsicProxy,
    qjs::JS_AddIntrinsicTypedArrays,
    qjs::JS_AddIntrinsicWeakRef,
    qjs::JS_AddIntrinsicAToB,
    qjs::JS_AddPerformance,
];
/// What stands in the names of these.
const NAMES: [&str; 14] = [
    "Date",
    "Proxy",
    "Buffer",
    "8Array",
    "16Array",
    "32Array",
    "64Array",
    "DataView",
    "Atomics",
    "WeakRef",
    "Registry",
    "atob",
    "btoa",
    "DOMException",
];
/// By what a script comes to them without their names, or is taken to.
const DETOURS: [&str; 8] =
    ["performance", "ClampedArray", "globalThis", "Function", "constructor", "eval", "binary", "__k6"];

/// A context with what every user has.
///
/// # Errors
/// If there is no memory for it.
pub(crate) fn context(runtime: &Runtime) -> Result<Context> {
    Context::custom::<Usual>(runtime)
}

/// Whether a module may use the rest.
pub(crate) fn needs_rest(source: &str, is_ours: bool) -> bool {
    let has = |word: &&str| source.contains(*word);
    NAMES.iter().any(has) || (!is_ours && DETOURS.iter().any(has))
}

/// Adds the rest, unless the user has it.
///
/// # Errors
/// If there is no memory for it.
pub(crate) fn complete(ctx: &Ctx<'_>) -> Result<()> {
    if host(ctx)?.is_complete.replace(true) {
        return Ok(());
    }
    for add in REST {
        // SAFETY: the context is alive, and has what these build upon.
        #[allow(unsafe_code)]
        let outcome = unsafe { add(ctx.as_raw().as_ptr()) };
        if outcome < 0 {
            return Err(Error::Exception);
        }
    }
    Ok(())
}
