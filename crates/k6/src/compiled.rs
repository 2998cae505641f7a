//! Modules are compiled once for all users.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Ctx, Module, Result};

use crate::intrinsics::{complete, needs_rest};
use crate::modules::is_ours;

/// Bytecode of modules, by their names. What is in it stays, as runtimes refer to it.
#[derive(Debug, Default)]
pub(crate) struct Compiled(Mutex<HashMap<String, Known>>);

#[derive(Debug, Clone)]
struct Known {
    bytes: Arc<[u8]>,
    /// Whether its user needs all that JavaScript has by itself.
    needs_rest: bool,
}

impl Compiled {
    /// A module, compiled of its source if that is not done yet.
    ///
    /// # Errors
    /// What is wrong with its source.
    pub fn module<'js>(
        &self,
        ctx: &Ctx<'js>,
        name: &str,
        source: impl FnOnce() -> Result<String>,
    ) -> Result<Module<'js, Declared>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(Known { bytes, needs_rest }) = known {
            if needs_rest {
                complete(ctx)?;
            }
            // SAFETY: QuickJS has written these bytes itself, in this process; they live as long as this, which is a part of
            // the script, and that lives longer than the runtimes of its users.
            #[allow(unsafe_code)]
            return unsafe { Module::load(ctx.clone(), &bytes) };
        }
        let source = source()?;
        let needs_rest = needs_rest(&source, is_ours(name));
        if needs_rest {
            complete(ctx)?;
        }
        let module = Module::declare(ctx.clone(), name, source)?;
        let bytes: Arc<[u8]> =
            // whoever reads a stack looks for lines of their own
            module.write(WriteOptions { strip_source: true, strip_debug: is_ours(name), ..WriteOptions::default() })?.into();
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(name.to_owned())
            .or_insert(Known { bytes, needs_rest });
        Ok(module)
    }
}
