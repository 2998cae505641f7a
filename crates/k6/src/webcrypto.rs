//! `crypto.subtle`, loaded when a script first asks for it.

use rquickjs::context::EvalOptions;
use rquickjs::function::Func;
use rquickjs::{Ctx, Object, Result};

pub(crate) fn install(natives: &Object<'_>) -> Result<()> {
    natives.set("loadSubtle", Func::from(load))
}

fn load(ctx: Ctx<'_>) -> Result<()> {
    let mut options = EvalOptions::default();
    options.filename = Some("k6/webcrypto".to_owned());
    ctx.eval_with_options(include_str!("js/webcrypto.js"), options)
}
