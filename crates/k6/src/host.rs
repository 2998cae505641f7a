//! What a user's JavaScript runs in: its runtime, and the functions that it finds under `__k6`.

use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rquickjs::convert::List;
use rquickjs::function::Func;
use rquickjs::{
    Array, ArrayBuffer, CatchResultExt, CaughtError, Coerced, Ctx, Function, JsLifetime, Module, Object,
    Result, Runtime, Value,
};

use tidemark_scenario::units::Time;

use crate::events::{settle, settle_all};
use crate::intrinsics;
use crate::memory::Pieces;
use crate::metrics::{self, Definition, Kind, Metrics};
use crate::modules::{Modules, thrown};
use crate::requests::Beside;
use crate::script::{GrpcTls, GrpcTypes, Script};
use crate::sockets::{Inbox, Sockets};
use crate::text::Told;
use crate::vu::{Call, Ending, Input, Output, Place, SCRIPT_STACK_BYTES, Way};

/// The number of the user that runs `setup`, `teardown` and `handleSummary`.
pub(crate) const MAIN: u64 = 0;
/// Bytes that a user takes before its memory is looked through for what is not used any more.
const GC_BYTES: usize = 1 << 20;
/// Most files of message types of gRPC that are loaded at once, and most of such loads.
const GRPC_FILES_MAX: usize = 100;
/// Longest `sleep`.
pub(crate) const SLEEP_MAX: Duration = Duration::from_secs(86_400);
/// Most rejected promises of an iteration that are counted.
const REJECTED_MAX: usize = 1_000;
/// Most functions of a script that are remembered.
const FUNCTIONS_MAX: usize = 64;

/// A user's side of its natives.
pub(crate) struct Host {
    pub script: Arc<Script>,
    pub metrics: Arc<Metrics>,
    way: Way,
    /// Whether the script is at its top level, where nothing is sent.
    is_init: Cell<bool>,
    /// Whether it has timers.
    pub has_timers: Cell<bool>,
    /// Requests that are under way beside what it does.
    pub beside: Beside,
    pub sockets: Sockets,
    /// What came over them.
    pub inbox: Rc<RefCell<Inbox>>,
    /// Bytes of answers that its script holds, outside its JavaScript memory.
    pub replies: Rc<Cell<usize>>,
    /// Whether what an iteration begins with has something to do: it left timers, cookies, sockets or a group.
    leaves: Cell<bool>,
    /// The group that it is in, as k6 writes it: `::main::login`.
    pub group: RefCell<String>,
    /// The line of a head that names who asks; empty where there is none.
    pub agent: RefCell<String>,
    /// Whether it has all that JavaScript has by itself.
    pub is_complete: Cell<bool>,
    /// Whether it has no cookies, no tags of its own and nothing else that each request depends on.
    pub is_usual: Cell<bool>,
    /// Promises that were rejected, and nobody looked at that.
    rejected: Rejected,
    pub ending: Rc<Ending>,
    /// Since when it has been at work.
    turn: Rc<Cell<Instant>>,
    pub number: u64,
    pub iteration: Cell<u64>,
    pub place: RefCell<Place>,
    random: RefCell<fastrand::Rng>,
    /// Bytes of HTML whose pages it keeps.
    #[cfg(feature = "html")]
    pub html_bytes: Rc<Cell<usize>>,
}

/// What a native gets at its user by.
#[derive(Clone)]
pub(crate) struct Its(pub Rc<Host>);

// SAFETY: nothing in it is of a runtime's lifetime.
#[allow(unsafe_code)]
unsafe impl<'js> JsLifetime<'js> for Its {
    type Changed<'to> = Its;
}

/// The user whose JavaScript calls.
pub(crate) fn host(ctx: &Ctx<'_>) -> Result<Rc<Host>> {
    let its = ctx.userdata::<Its>().map(|its| Rc::clone(&its.0));
    its.ok_or_else(|| thrown(ctx, "the script runs in no user"))
}

impl Host {
    /// Does something that needs more stack than a user has.
    pub fn on_thread_stack<T: Send>(&self, does: impl FnOnce() -> T + Send) -> T {
        self.way.on_thread_stack(does)
    }

    /// Gives the thread back until there is an answer.
    pub fn wait(&self, ctx: &Ctx<'_>, output: Output) -> Result<Input> {
        if self.ending.is_begun() {
            return Err(thrown(ctx, "the run has ended"));
        }
        let input = self.way.suspend(output);
        self.turn.set(Instant::now());
        match self.ending.note(&input) {
            true => Err(thrown(ctx, "the run has ended")),
            false => Ok(input),
        }
    }

    pub fn is_in_run(&self, ctx: &Ctx<'_>, what: &str) -> Result<()> {
        match self.is_init.get() {
            true => Err(thrown(
                ctx,
                &format!("{what} is not possible in the init context; call it in a function"),
            )),
            false => Ok(()),
        }
    }

    /// The iteration leaves something that the next one must not find.
    pub fn leaves_something(&self) {
        self.leaves.set(true);
    }

    /// Why a promise was rejected that nobody has looked at.
    pub fn rejection(&self) -> Option<String> {
        self.rejected.borrow().first().map(|(_, reason)| reason.clone())
    }

    /// The scenario that it works for.
    pub fn scenario(&self) -> Option<&crate::options::ScenarioOf> {
        self.script.told().scenarios.get(self.place.borrow().scenario)
    }

    /// Adds a value with these tags, which alternate names and values.
    pub fn add(&self, values: &[(usize, Kind, f64)], group: &str, flat: &str, own: metrics::Tags<'_>) {
        // what an iteration does that is interrupted counts no more
        if self.ending.is_begun() {
            return;
        }
        let script = &self.script;
        let has = |name: &str, wanted: &str| {
            let mut pairs = flat.split('\0');
            while let (Some(known), Some(value)) = (pairs.next(), pairs.next()) {
                if known == name {
                    return value == wanted;
                }
            }
            if let Some((_, value)) = own.iter().find(|(known, _)| *known == name) {
                return *value == wanted;
            }
            let scenario = self.scenario();
            if let Some((_, value)) = scenario.and_then(|of| of.tags.iter().find(|(known, _)| known == name))
            {
                return value == wanted;
            }
            match name {
                "group" => group == wanted,
                "scenario" => scenario.is_some_and(|of| of.name == wanted),
                _ => {
                    let tags = script.told().options.get("tags");
                    tags.and_then(|tags| tags.get(name)).and_then(|value| value.as_str()) == Some(wanted)
                }
            }
        };
        self.metrics.add(values, &script.told().parts, has);
    }
}

/// Promises that were rejected: which, and with what words.
type Rejected = Rc<RefCell<Vec<(u64, String)>>>;

/// A promise was rejected; or somebody looks at one that was.
fn note_rejection(noted: &Rejected, promise: &Value<'_>, reason: &Value<'_>, is_handled: bool) {
    let mut hasher = DefaultHasher::new();
    promise.hash(&mut hasher);
    let which = hasher.finish();
    let mut noted = noted.borrow_mut();
    if is_handled {
        noted.retain(|(known, _)| *known != which);
    } else if noted.len() < REJECTED_MAX {
        let message = reason.as_object().and_then(|object| object.get::<_, String>("message").ok());
        let text = message.or_else(|| reason.as_string().and_then(|text| text.to_string().ok()));
        noted.push((which, text.unwrap_or_else(|| "undefined".to_owned())));
    }
}

/// Runs a user's script on its own stack, until the user ends.
///
/// # Errors
/// What the script threw at its top level.
pub(crate) fn live(
    script: &Arc<Script>,
    (number, inbox): (u64, &Rc<RefCell<Inbox>>),
    metrics: &Arc<Metrics>,
    way: &Way,
) -> std::result::Result<(), String> {
    let failed = |error: rquickjs::Error| format!("{}: {error}", script.name);
    // made on this stack, of which the runtime then knows how deep it may go
    let runtime = Runtime::new_with_alloc(Pieces::of_thread()).map_err(failed)?;
    runtime.set_memory_limit(script.bounds.memory);
    runtime.set_max_stack_size(SCRIPT_STACK_BYTES);
    runtime.set_gc_threshold(GC_BYTES);
    runtime.set_loader(Modules(Arc::clone(script)), Modules(Arc::clone(script)));
    let rejected: Rejected = Rc::default();
    let noted = Rc::clone(&rejected);
    runtime.set_host_promise_rejection_tracker(Some(Box::new(move |_, promise, reason, is_handled| {
        note_rejection(&noted, &promise, &reason, is_handled);
    })));
    let ending = Rc::new(Ending::default());
    let turn = Rc::new(Cell::new(Instant::now()));
    let (is_ending, since, longest) = (Rc::clone(&ending), Rc::clone(&turn), script.bounds.turn);
    runtime.set_interrupt_handler(Some(Box::new(move || {
        is_ending.is_begun() || since.get().elapsed() > longest
    })));
    let context = intrinsics::context(&runtime).map_err(failed)?;
    let host = Rc::new(Host {
        script: Arc::clone(script),
        metrics: Arc::clone(metrics),
        way: way.clone(),
        is_init: Cell::new(true),
        has_timers: Cell::new(false),
        beside: Beside::default(),
        sockets: Sockets::default(),
        inbox: Rc::clone(inbox),
        replies: Rc::default(),
        leaves: Cell::new(true),
        group: RefCell::default(),
        agent: RefCell::default(),
        is_complete: Cell::new(false),
        is_usual: Cell::new(!script.is_rehearsal),
        rejected,
        ending,
        turn,
        number,
        iteration: Cell::new(0),
        place: RefCell::new(Place::NONE),
        random: RefCell::new(fastrand::Rng::new()),
        #[cfg(feature = "html")]
        html_bytes: Rc::default(),
    });
    context.with(|ctx| {
        let outcome = in_context(&ctx, &host);
        // nothing of the script is left when the runtime goes
        let _ = ctx.remove_userdata::<Its>();
        outcome
    })
}

fn in_context<'js>(ctx: &Ctx<'js>, host: &Rc<Host>) -> std::result::Result<(), String> {
    let script = &host.script;
    let caught = |result: Result<()>| result.catch(ctx).map_err(|error| words(host, &error));
    caught(install(ctx, host))?;
    let source = || script.plain(&script.path, script.source.clone()).map_err(|why| thrown(ctx, &why));
    let module = script.compiled.module(ctx, &script.path.to_string_lossy(), source).and_then(Module::eval);
    let (module, evaluated) = module.catch(ctx).map_err(|error| words(host, &error))?;
    settle(ctx, host, &evaluated).map_err(|error| error.unwrap_or_default())?;
    let namespace = module.namespace().map_err(|error| format!("{}: {error}", script.name))?;
    let whole: Result<Option<Object<'js>>> = namespace.get(crate::commonjs::WHOLE);
    let namespace = whole.ok().flatten().unwrap_or(namespace);
    caught(configure(ctx, &namespace, host))?;
    host.is_init.set(false);
    let mut output = Output::Ready;
    let natives: Object<'js> = ctx.globals().get("__k6").catch(ctx).map_err(|error| words(host, &error))?;
    let begin = natives.get("begin");
    let begin = begin.catch(ctx).map_err(|error| words(host, &error))?;
    let mut live = Live { namespace, begin, functions: Vec::new(), data: None };
    loop {
        let input = host.way.suspend(output);
        host.turn.set(Instant::now());
        let Input::Call(call) = input else { return Ok(()) };
        host.rejected.borrow_mut().clear();
        host.beside.forget();
        host.sockets.clear();
        host.inbox.borrow_mut().clear();
        host.ending.note(&Input::Woken);
        let called = live.call(ctx, host, &call);
        let rejected = host.rejected.take();
        // an iteration counts once, and what it threw itself is told by whoever resumes it
        if let (Ok(_), Some((_, reason)), false) = (&called, rejected.first(), host.ending.is_begun()) {
            let words = format!("{}: uncaught in a promise: {reason}", script.name);
            match host.number {
                MAIN => script.log("error", &words),
                _ => script.threw(&words),
            }
        }
        if host.ending.is_users() {
            return Ok(());
        }
        if called.is_err() || host.ending.is_begun() {
            // code that was to put things in order may not have run
            host.leaves_something();
        }
        output = match called {
            _ if host.ending.is_begun() => Output::Interrupted,
            Ok(returned) => Output::Returned(returned),
            Err(words) => Output::Threw(words),
        };
    }
}

/// What iterations need of their runtime.
struct Live<'js> {
    namespace: Object<'js>,
    /// What an iteration begins with.
    begin: Function<'js>,
    /// The script's functions that have been called, by their names.
    functions: Vec<(Arc<str>, Function<'js>)>,
    /// The result of `setup`, once it was asked for.
    data: Option<Value<'js>>,
}

impl<'js> Live<'js> {
    /// One of the script's functions.
    fn function(&mut self, host: &Host, name: &Arc<str>) -> std::result::Result<Function<'js>, String> {
        if let Some((_, function)) = self.functions.iter().find(|(known, _)| Arc::ptr_eq(known, name)) {
            return Ok(function.clone());
        }
        let function: Option<Function<'js>> = self.namespace.get(&**name).ok();
        let function =
            function.ok_or_else(|| format!("{}: it exports no function {name}", host.script.name))?;
        if self.functions.len() < FUNCTIONS_MAX {
            self.functions.push((Arc::clone(name), function.clone()));
        }
        Ok(function)
    }

    /// Runs one of the script's functions to its end.
    fn call(
        &mut self,
        ctx: &Ctx<'js>,
        host: &Rc<Host>,
        call: &Call,
    ) -> std::result::Result<Option<String>, String> {
        let failed = |error: CaughtError<'js>| words(host, &error);
        let is_elsewhere = host.place.replace(call.place.clone()).scenario != call.place.scenario;
        if is_elsewhere {
            let env = host.scenario().map(|of| of.env.as_slice()).unwrap_or_default();
            set_env(ctx, host, env).catch(ctx).map_err(failed)?;
        }
        host.iteration.set(host.iteration.get() + 1);
        if host.leaves.take() {
            self.begin.call::<_, ()>(()).catch(ctx).map_err(failed)?;
        }
        let mut group = host.group.borrow_mut();
        group.clear();
        if host.number == MAIN {
            // as k6 tags what they measure
            group.push_str("::");
            group.push_str(&call.function);
        }
        drop(group);
        let argument = match &call.argument {
            Some(json) => ctx.json_parse(json.as_bytes()).catch(ctx).map_err(failed)?,
            None if call.takes_data => match &mut self.data {
                Some(known) => known.clone(),
                None => {
                    let value = match host.script.data.get() {
                        Some(json) => ctx.json_parse(json.as_bytes()).catch(ctx).map_err(failed)?,
                        None => Value::new_undefined(ctx.clone()),
                    };
                    self.data.insert(value).clone()
                }
            },
            None => Value::new_undefined(ctx.clone()),
        };
        let function = self.function(host, &call.function)?;
        let returned: Value<'_> = function.call((argument,)).catch(ctx).map_err(failed)?;
        let returned = match returned.as_promise() {
            Some(promise) => settle(ctx, host, promise).map_err(|error| error.unwrap_or_default())?,
            None => {
                settle_all(ctx, host).map_err(|error| error.unwrap_or_default())?;
                returned
            }
        };
        if call.takes_data || returned.is_undefined() || returned.is_null() {
            return Ok(None);
        }
        let json = ctx.json_stringify(returned).catch(ctx).map_err(failed)?;
        json.map(|json| json.to_string().map_err(|error| error.to_string())).transpose()
    }
}

/// An exception in words: what it is, and where.
pub(crate) fn words(host: &Host, error: &CaughtError<'_>) -> String {
    let name = &host.script.name;
    if !host.ending.is_begun() && host.turn.get().elapsed() > host.script.bounds.turn {
        return format!("{name}: it ran for {} without a request or sleep", Time(host.script.bounds.turn));
    }
    match error {
        CaughtError::Exception(exception) => {
            let kind: String = exception.as_object().get("name").unwrap_or_else(|_| "Error".to_owned());
            let message = exception.message().unwrap_or_default();
            let stack = exception.stack().unwrap_or_default();
            let shown = stack.replace(&*host.script.path.to_string_lossy(), name);
            let shown = shown.trim_end();
            match shown.is_empty() {
                true => format!("{name}: {kind}: {message}"),
                false => format!("{kind}: {message}\n{shown}"),
            }
        }
        CaughtError::Value(value) => {
            let text = value.clone().get::<Coerced<String>>().map(|text| text.0).unwrap_or_default();
            format!("{name}: {text}")
        }
        CaughtError::Error(error) => format!("{name}: {error}"),
    }
}

/// Makes the globals.
fn install(ctx: &Ctx<'_>, host: &Rc<Host>) -> Result<()> {
    if ctx.store_userdata(Its(Rc::clone(host))).is_err() {
        return Err(thrown(ctx, "the script has a user already"));
    }
    let natives = Object::new(ctx.clone())?;
    crate::ask::install(&natives)?;
    crate::head::install(&natives)?;
    crate::requests::install(&natives)?;
    crate::reply::install(&natives)?;
    natives.set("sleep", Func::from(sleep))?;
    natives.set("log", Func::from(log))?;
    natives.set("now", Func::from(now))?;
    natives.set("metric", Func::from(metric))?;
    natives.set("add", Func::from(add))?;
    crate::groups::install(&natives)?;
    natives.set("agentIs", Func::from(agent_is))?;
    natives.set("unusual", Func::from(unusual))?;
    natives.set("open", Func::from(open))?;
    natives.set("fileOpen", Func::from(file_open))?;
    natives.set("fileRead", Func::from(file_read))?;
    natives.set("secret", Func::from(secret))?;
    natives.set("grpcLoad", Func::from(grpc_load))?;
    natives.set("grpcConnects", Func::from(grpc_connects))?;
    natives.set("grpcIgnores", Func::from(grpc_ignores))?;
    natives.set("shared", Func::from(shared))?;
    natives.set("sharedLength", Func::from(shared_length))?;
    natives.set("sharedItem", Func::from(shared_item))?;
    natives.set("seed", Func::from(seed))?;
    natives.set("randomNumber", Function::new(ctx.clone(), random_number)?)?;
    natives.set("abort", Func::from(abort))?;
    natives.set("failTest", Func::from(fail_test))?;
    natives.set("info", Func::from(info))?;
    natives.set("timersAre", Func::from(timers_are))?;
    natives.set("load", Func::from(load))?;
    natives.set("iteration", Func::from(iteration))?;
    natives.set("leavesSomething", Func::from(leaves_something))?;
    natives.set("options", Func::from(options))?;
    natives.set("duration", Func::from(duration))?;
    natives.set("resolve", Func::from(resolve))?;
    natives.set("isRehearsal", host.script.is_rehearsal)?;
    natives.set("rehearsalBody", crate::rehearsal::BODY)?;
    #[cfg(feature = "html")]
    crate::html::install(&natives)?;
    #[cfg(not(feature = "html"))]
    natives.set("parseHTML", Func::from(no_html))?;
    crate::webcrypto::install(&natives)?;
    natives.set("userAgent", concat!("tidemark/", env!("CARGO_PKG_VERSION")))?;
    let globals = ctx.globals();
    globals.set("__k6", natives)?;
    globals.set("__VU", host.number)?;
    set_env(ctx, host, &[])?;
    let source = || Ok(include_str!("js/globals.js").to_owned());
    host.script.compiled.module(ctx, "k6/globals", source).and_then(Module::eval).map(drop)
}

#[cfg(not(feature = "html"))]
pub(crate) fn no_html(ctx: Ctx<'_>) -> Result<()> {
    Err(thrown(&ctx, "this build reads no HTML; build it with --features html"))
}

/// Makes `__ENV`: what all have, and what a scenario has besides.
fn set_env(ctx: &Ctx<'_>, host: &Host, own: &[(String, String)]) -> Result<()> {
    let env = Object::new(ctx.clone())?;
    for (name, value) in host.script.env.iter().chain(own) {
        env.set(name.as_str(), value.as_str())?;
    }
    ctx.globals().set("__ENV", env)
}

/// Reads what the script exports as its options.
fn configure<'js>(ctx: &Ctx<'js>, namespace: &Object<'js>, host: &Rc<Host>) -> Result<()> {
    let options: Value<'js> = namespace.get("options")?;
    let natives: Object<'_> = ctx.globals().get("__k6")?;
    let configure: Function<'_> = natives.get("configure")?;
    let options = if options.is_object() { options } else { Object::new(ctx.clone())?.into_value() };
    let json = ctx.json_stringify(options.clone())?.map(|json| json.to_string()).transpose()?;
    configure.call::<_, ()>((options,))?;
    if host.script.told.get().is_none() {
        let options = serde_json::from_str(&json.unwrap_or_default()).unwrap_or_default();
        let mut functions = Vec::new();
        for key in namespace.keys::<String>() {
            let key = key?;
            if namespace.get::<_, Value<'_>>(&*key)?.is_function() {
                functions.push(key);
            }
        }
        let scenarios =
            crate::options::scenarios(&options, &host.script.given).map_err(|why| thrown(ctx, &why))?;
        host.script.keep(options, functions, scenarios).map_err(|why| thrown(ctx, &why))?;
    }
    Ok(())
}

// ---- natives

fn sleep(ctx: Ctx<'_>, seconds: f64) -> Result<()> {
    let host = host(&ctx)?;
    host.is_in_run(&ctx, "sleep")?;
    // no number is no time
    let seconds = if seconds.is_nan() { 0.0 } else { seconds };
    let time = Duration::from_secs_f64(seconds.clamp(0.0, SLEEP_MAX.as_secs_f64()));
    host.wait(&ctx, Output::Sleep(time)).map(drop)
}

fn log(ctx: Ctx<'_>, level: String, Told(words): Told) -> Result<()> {
    host(&ctx)?.script.log(&level, &words);
    Ok(())
}

/// Milliseconds since the script was read.
fn now(ctx: Ctx<'_>) -> Result<f64> {
    Ok(host(&ctx)?.script.elapsed().as_secs_f64() * 1_000.0)
}

fn metric(ctx: Ctx<'_>, name: String, kind: String, is_time: bool) -> Result<usize> {
    let host = host(&ctx)?;
    let kind = match kind.as_str() {
        "counter" => Kind::Counter,
        "gauge" => Kind::Gauge,
        "rate" => Kind::Rate,
        _ => Kind::Trend,
    };
    if !host.is_init.get() {
        return Err(thrown(&ctx, "metrics must be declared in the init context"));
    }
    host.script.definitions.number(&Definition { name, kind, is_time }).map_err(|why| thrown(&ctx, &why))
}

fn add(ctx: Ctx<'_>, metric: usize, value: f64, Told(tags): Told) -> Result<()> {
    let host = host(&ctx)?;
    if host.is_init.get() {
        return Err(thrown(&ctx, "a metric takes values in functions, not in the init context"));
    }
    if let Some(kind) = host.script.definitions.kind(metric) {
        host.add(&[(metric, kind, value)], &host.group.borrow(), &tags, &[]);
    }
    Ok(())
}

/// Notes how it names who asks.
fn agent_is(ctx: Ctx<'_>, line: String) -> Result<()> {
    host(&ctx)?.agent.replace(line);
    Ok(())
}

/// From now on its requests are looked at more closely.
fn unusual(ctx: Ctx<'_>) -> Result<()> {
    host(&ctx)?.is_usual.set(false);
    Ok(())
}

/// Where a file is that a script opens: as in k6, as seen from the file that calls.
fn opened(ctx: &Ctx<'_>, host: &Host, path: &str) -> Result<PathBuf> {
    if !host.is_init.get() {
        return Err(thrown(ctx, "open() can be called only in the init context"));
    }
    // that is the module whose code runs
    let caller = ctx.script_or_module_name(1).and_then(|atom| atom.to_string().ok());
    let caller = caller.filter(|name| !crate::modules::is_ours(name));
    let base = caller.map_or_else(|| host.script.path.clone(), PathBuf::from);
    let told = path.strip_prefix("file://").unwrap_or(path);
    Ok(base.parent().unwrap_or(Path::new(".")).join(told))
}

fn open<'js>(ctx: Ctx<'js>, path: String, is_binary: bool) -> Result<Value<'js>> {
    let host = host(&ctx)?;
    let file = opened(&ctx, &host, &path)?;
    let bytes = host.script.file(&file).map_err(|why| thrown(&ctx, &why))?;
    if is_binary {
        intrinsics::complete(&ctx)?;
    }
    match is_binary {
        true => Ok(ArrayBuffer::new_copy(ctx.clone(), &*bytes)?.into_value()),
        false => rquickjs::String::from_str(ctx.clone(), &String::from_utf8_lossy(&bytes))
            .map(rquickjs::String::into_value),
    }
}

/// Opens a file that all users share: where it is, and its bytes.
fn file_open(ctx: Ctx<'_>, path: String) -> Result<List<(String, usize)>> {
    let host = host(&ctx)?;
    let file = opened(&ctx, &host, &path)?;
    let bytes = host.script.file(&file).map_err(|why| thrown(&ctx, &why))?;
    Ok(List((file.to_string_lossy().into_owned(), bytes.len())))
}

/// Bytes of such a file: so many at most.
fn file_read(ctx: Ctx<'_>, path: String, from: usize, most: usize) -> Result<ArrayBuffer<'_>> {
    let bytes = host(&ctx)?.script.opened(Path::new(&path)).unwrap_or_default();
    let part = bytes.get(from..from.saturating_add(most).min(bytes.len())).unwrap_or_default();
    ArrayBuffer::new_copy(ctx, part)
}

/// Notes what the script must not write down.
fn secret(ctx: Ctx<'_>, value: String) -> Result<()> {
    host(&ctx)?.script.keep_secret(value);
    Ok(())
}

/// Notes files of message types, which the scenario then names; the number of what was loaded. Files of `.proto` and their
/// imports are looked for in these folders; without any, beside the script.
fn grpc_load(ctx: Ctx<'_>, folders: Vec<String>, files: Vec<String>, is_descriptors: bool) -> Result<usize> {
    let host = host(&ctx)?;
    if !host.is_init.get() {
        return Err(thrown(&ctx, "load must be called in the init context"));
    }
    let beside = host.script.path.parent().unwrap_or(Path::new(".")).to_owned();
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut types = GrpcTypes::default();
    // without folders, imports are relative to the script's
    let folders = if folders.is_empty() { vec![".".to_owned()] } else { folders };
    for file in files.iter().take(GRPC_FILES_MAX) {
        let mut places = folders.iter().map(|folder| Path::new(folder).join(file));
        let Some(found) = places.find(|place| beside.join(place).is_file()) else {
            return Err(thrown(&ctx, &format!("open {file}: no such file")));
        };
        let found = text(found.strip_prefix(".").unwrap_or(&found));
        let of_kind = if is_descriptors { &mut types.descriptors } else { &mut types.protos };
        of_kind.push(found);
    }
    if !is_descriptors {
        let there = folders.iter().map(Path::new).filter(|folder| beside.join(folder).is_dir());
        types.includes.extend(there.take(GRPC_FILES_MAX).map(text));
    }
    let mut all = host.script.grpc_types.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.iter().position(|known| *known == types);
    if known.is_none() && all.len() >= GRPC_FILES_MAX {
        return Err(thrown(&ctx, &format!("more than {GRPC_FILES_MAX} loads of message types")));
    }
    Ok(known.unwrap_or_else(|| {
        all.push(types);
        all.len() - 1
    }))
}

/// Notes where a client connects to that has loaded these: the address, where that is not the URL's, and what it says of
/// TLS (authorities, certificate, key, whether that has a password).
fn grpc_connects<'js>(
    ctx: Ctx<'js>,
    url: String,
    loaded: Vec<usize>,
    address: Option<String>,
    tls: Option<Array<'js>>,
) -> Result<()> {
    let host = host(&ctx)?;
    let Some(origin) = url::Url::parse(&url).ok().and_then(|url| crate::rehearsal::origin_of(&url)) else {
        return Ok(());
    };
    let tls = match tls {
        Some(tls) => Some(GrpcTls {
            authorities: tls.get(0)?,
            certificate: tls.get(1)?,
            key: tls.get(2)?,
            has_password: tls.get(3)?,
        }),
        None => None,
    };
    let all = host.script.grpc_types.lock().unwrap_or_else(PoisonError::into_inner);
    let mut origins = host.script.grpc_origins.lock().unwrap_or_else(PoisonError::into_inner);
    let target = origins.entry(origin).or_default();
    loaded.iter().filter_map(|number| all.get(*number)).for_each(|loaded| target.types.add(loaded));
    // a second one is one too many
    if let Some(address) = address.filter(|one| target.addresses.len() < 2 && !target.addresses.contains(one))
    {
        target.addresses.push(address);
    }
    if let Some(tls) = tls.filter(|one| target.tls.len() < 2 && !target.tls.contains(one)) {
        target.tls.push(tls);
    }
    Ok(())
}

/// Notes parameters of `connect` that are not used.
fn grpc_ignores(ctx: Ctx<'_>, names: Vec<String>) -> Result<()> {
    let host = host(&ctx)?;
    host.script.grpc_unused.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
    Ok(())
}

fn shared<'js>(ctx: Ctx<'js>, name: String, make: Function<'js>) -> Result<usize> {
    let host = host(&ctx)?;
    if !host.is_init.get() {
        return Err(thrown(&ctx, "new SharedArray must be called in the init context"));
    }
    if let Some(known) = host.script.array(&name) {
        return Ok(known);
    }
    let items: Vec<String> = make.call(())?;
    Ok(host.script.add_array(&name, items))
}

fn shared_length(ctx: Ctx<'_>, array: usize) -> Result<usize> {
    Ok(host(&ctx)?.script.items(array).len())
}

fn shared_item(ctx: Ctx<'_>, array: usize, index: usize) -> Result<String> {
    Ok(host(&ctx)?.script.items(array).get(index).cloned().unwrap_or_else(|| "null".to_owned()))
}

fn seed(ctx: Ctx<'_>, seed: f64) -> Result<()> {
    *host(&ctx)?.random.borrow_mut() = fastrand::Rng::with_seed(seed.to_bits());
    Ok(())
}

fn random_number(ctx: Ctx<'_>) -> Result<f64> {
    Ok(host(&ctx)?.random.borrow_mut().f64())
}

/// Ends the run, and the iteration that asks for it.
fn abort(ctx: Ctx<'_>, words: String) -> Result<()> {
    let host = host(&ctx)?;
    host.script.abort(format!("{}: {words}", host.script.name));
    Err(thrown(&ctx, &words))
}

fn fail_test(ctx: Ctx<'_>, words: String) -> Result<()> {
    let host = host(&ctx)?;
    host.script.fail(format!("{}: {words}", host.script.name));
    Ok(())
}

fn info<'js>(ctx: Ctx<'js>) -> Result<Object<'js>> {
    let host = host(&ctx)?;
    let info = Object::new(ctx.clone())?;
    let place = host.place.borrow().clone();
    let script = &host.script;
    let elapsed_ms = script.elapsed().as_secs_f64() * 1_000.0;
    if let Some(scenario) = host.scenario() {
        info.set("scenario", scenario.name.as_str())?;
        info.set("executor", scenario.executor.name())?;
        let start_ms = scenario.start.as_secs_f64() * 1_000.0;
        let wall_ms = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0.0, |at| at.as_secs_f64() * 1e3);
        info.set("startTime", wall_ms - elapsed_ms + start_ms)?;
        let long_ms = scenario.executor.duration().as_secs_f64() * 1_000.0;
        let progress = match scenario.executor.iterations() {
            Some(all) => place.iteration_in_scenario as f64 / all.max(1) as f64,
            None => (elapsed_ms - start_ms) / long_ms.max(1.0),
        };
        info.set("progress", progress.clamp(0.0, 1.0))?;
    }
    info.set("iterationInScenario", place.iteration_in_scenario)?;
    info.set("iterationsCompleted", script.iterations.load(Ordering::Relaxed))?;
    info.set("iterationsInterrupted", script.interrupted.load(Ordering::Relaxed))?;
    info.set("vus", script.users.load(Ordering::Relaxed))?;
    info.set("vusActive", script.under_way.load(Ordering::Relaxed))?;
    Ok(info)
}

fn options(ctx: Ctx<'_>) -> Result<String> {
    Ok(host(&ctx)?.script.told().options.to_string())
}

/// Notes whether there are timers.
fn timers_are(ctx: Ctx<'_>, there: bool) -> Result<()> {
    let host = host(&ctx)?;
    host.has_timers.set(there);
    host.leaves_something();
    Ok(())
}

fn leaves_something(ctx: Ctx<'_>) -> Result<()> {
    host(&ctx)?.leaves_something();
    Ok(())
}

/// What one of our own modules exports, which is loaded now.
pub(crate) fn load<'js>(ctx: Ctx<'js>, name: String) -> Result<Value<'js>> {
    let host = host(&ctx)?;
    // by an import, so that there is one of it
    let source = || Ok(format!("import * as all from \"{name}\"; globalThis.__k6.loaded = all;"));
    let (_, evaluated) = host.script.compiled.module(&ctx, &format!("load {name}"), source)?.eval()?;
    evaluated.finish::<()>()?;
    ctx.globals().get::<_, Object<'js>>("__k6")?.get("loaded")
}

/// The number of the iteration, from 0.
fn iteration(ctx: Ctx<'_>) -> Result<u64> {
    Ok(host(&ctx)?.iteration.get().saturating_sub(1))
}

/// Milliseconds in a text such as `1m30s`.
fn duration(text: String) -> Option<f64> {
    crate::options::text_milliseconds(&text)
}

/// A URL as seen from another.
fn resolve(ctx: Ctx<'_>, base: String, to: String) -> Result<String> {
    let base = url::Url::parse(&base).map_err(|error| thrown(&ctx, &format!("{base}: {error}")))?;
    base.join(&to).map(String::from).map_err(|error| thrown(&ctx, &format!("{to}: {error}")))
}
