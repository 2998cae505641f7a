//! `thread`: what `setup` is given of each driving thread, and `wrk.thread` in the thread's own state.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mlua::{Lua, UserData, UserDataFields, UserDataMethods, Value, WeakLua};

use crate::addresses::Address;

/// How deep tables are that go from one state to another.
const DEPTH_MAX: usize = 64;

/// What both sides know of a thread.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    stopped: AtomicBool,
    /// How often the script was entered and left: odd while it is at work.
    turns: AtomicU64,
    address: Mutex<Option<Address>>,
}

impl Shared {
    pub(crate) fn at(address: Option<Address>) -> Self {
        Shared { address: Mutex::new(address), ..Shared::default() }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Begins or ends the script's turn.
    pub(crate) fn turn(&self) {
        // this thread alone writes it
        self.turns.store(self.turns.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// A number that tells turns apart, while the script is at work.
    pub(crate) fn at_work(&self) -> Option<u64> {
        Some(self.turns.load(Ordering::Relaxed)).filter(|turns| turns % 2 == 1)
    }

    pub(crate) fn address(&self) -> Option<Address> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread, as scripts hold it.
#[derive(Clone)]
pub(crate) struct Thread {
    state: WeakLua,
    shared: Arc<Shared>,
}

impl Thread {
    pub(crate) fn new(state: &Lua, shared: &Arc<Shared>) -> Self {
        Thread { state: state.weak(), shared: Arc::clone(shared) }
    }

    fn state(&self) -> mlua::Result<Lua> {
        self.state.try_upgrade().ok_or_else(|| mlua::Error::runtime("this thread has ended"))
    }
}

impl UserData for Thread {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("addr", |_, thread| Ok(thread.shared.address()));
        fields.add_field_method_set("addr", |_, thread, address: Address| {
            *thread.shared.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
            Ok(())
        });
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("get", |lua, thread, name: mlua::String| {
            let state = thread.state()?;
            let name = state.create_string(name.as_bytes())?;
            let value: Value = state.globals().get(name)?;
            copied(&value, lua, DEPTH_MAX)
        });
        methods.add_method("set", |_, thread, (name, value): (mlua::String, Value)| {
            let state = thread.state()?;
            let value = copied(&value, &state, DEPTH_MAX)?;
            let name = state.create_string(name.as_bytes())?;
            state.globals().set(name, value)
        });
        methods.add_method("stop", |_, thread, ()| {
            thread.shared.stopped.store(true, Ordering::Relaxed);
            Ok(())
        });
    }
}

/// A value as another state has it: plain ones, texts, addresses, and tables of those.
fn copied(value: &Value, to: &Lua, depth: usize) -> mlua::Result<Value> {
    Ok(match value {
        Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::Number(_) => value.clone(),
        Value::String(text) => Value::String(to.create_string(text.as_bytes())?),
        Value::Table(_) if depth == 0 => {
            return Err(mlua::Error::runtime(format!(
                "a table within {DEPTH_MAX} others cannot go to a thread"
            )));
        }
        Value::Table(table) => {
            let copy = to.create_table()?;
            for pair in table.pairs::<Value, Value>() {
                let (key, value) = pair?;
                copy.raw_set(copied(&key, to, depth - 1)?, copied(&value, to, depth - 1)?)?;
            }
            Value::Table(copy)
        }
        Value::UserData(data) if data.is::<Address>() => {
            Value::UserData(to.create_userdata(*data.borrow::<Address>()?)?)
        }
        other => {
            let kind = other.type_name();
            return Err(mlua::Error::runtime(format!("cannot transfer a value of type {kind} to a thread")));
        }
    })
}
