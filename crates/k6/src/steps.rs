//! `js` steps of a scenario: their code, run by the driving thread between two requests.
//!
//! Each driving thread has one runtime for the code of all its sessions. A step is a function that is compiled once; its
//! globals are frozen, and it gets its variables and the last answer anew each time.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rquickjs::function::{Args, Func};
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{
    Array, CatchResultExt, CaughtError, Coerced, Context, Ctx, Exception, Function, Module, Object,
    Persistent, Result, Runtime, Type, Value as Js,
};
use tidemark_drive::{Code, CodeVariables, Codes, LastAnswer};
use tidemark_scenario::plan::{CodePlan, ScriptBounds};
use tidemark_scenario::units::{Size, Time};
use tidemark_scenario::{Slot, Value};

use crate::console::Console;
#[cfg(feature = "html")]
use crate::html;
use crate::modules::built_in;
use crate::{bytes, webcrypto};

/// Most memory of a thread's code, bytes.
const MEMORY_MAX: usize = 16 << 20;
/// Longest that a step runs.
const STEP_MAX: Duration = Duration::from_millis(50);
/// Stack that JavaScript may use, bytes: a driving thread has 2 MiB.
const STACK_BYTES: usize = 512 << 10;
/// Bytes that are taken before the memory is looked through for what is not used any more.
const GC_BYTES: usize = 1 << 20;
/// Longest time to make a runtime ready, and to read all code.
const READY_MAX: Duration = Duration::from_secs(10);
/// Bytes of an exception that are told.
const WORDS_MAX: usize = 1_000;
/// What a step's code is called in stacks.
const STEP: &str = "step";
/// The module that makes the globals.
const GLOBALS: &str = "tidemark:steps";
/// What code that reads pages has in it.
const PAGE: &str = "html";
/// Numbers up to this are whole in JavaScript, too.
const WHOLE_MAX: i64 = (1 << 53) - 1;

/// What is wrong with a step's code, and where in its scenario's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Index of the code in its plan.
    pub code: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// The code of a scenario's `js` steps.
#[derive(Debug, Clone)]
pub struct Steps {
    codes: Arc<[CodePlan]>,
    memory: usize,
    step: Duration,
    seed: u64,
    console: Arc<Console>,
}

impl Steps {
    /// Of a plan; random numbers begin with a seed, other ones for each thread.
    pub fn new(codes: &[CodePlan], bounds: ScriptBounds, seed: u64) -> Steps {
        let file = codes.first().map_or("", |code| code.file.as_str());
        Steps {
            codes: codes.into(),
            memory: bounds.memory_bytes.unwrap_or(MEMORY_MAX),
            step: bounds.step.unwrap_or(STEP_MAX),
            seed,
            console: Arc::new(Console::new(file)),
        }
    }

    /// What is wrong with the code, as far as that is known before it runs.
    pub fn check(&self) -> Vec<Mistake> {
        let host = self.host(0);
        let engine = match Engine::new(self, &host) {
            Ok(engine) => engine,
            Err(message) => return vec![Mistake { code: 0, line: 0, column: 0, message }],
        };
        engine.steps.iter().filter_map(|step| step.as_ref().err().cloned()).collect()
    }

    /// What runs it, for each driving thread.
    pub fn codes(&self) -> Codes {
        let steps = self.clone();
        Codes::new(move |thread| steps.of_thread(thread))
    }

    /// What runs it on one driving thread.
    pub fn of_thread(&self, thread: usize) -> Box<dyn Code> {
        let host = self.host(thread);
        // before the load, not within its first step; what is wrong is told there
        let engine = Engine::new(self, &host).ok();
        Box::new(OfThread { steps: self.clone(), host, engine })
    }

    fn host(&self, thread: usize) -> Rc<Host> {
        let seed = self.seed ^ (thread as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Rc::new(Host {
            console: Arc::clone(&self.console),
            random: RefCell::new(fastrand::Rng::with_seed(seed)),
            answer: RefCell::default(),
            until: Cell::new(None),
            is_over: Cell::new(false),
            room: Cell::new(0),
            rejected: RefCell::default(),
        })
    }

    /// What is said of a step that takes too much memory.
    fn too_large(&self) -> String {
        format!(
            "it took more memory than {}; have it make less, or give `script: {{memory: …}}` more",
            Size(self.memory as u64)
        )
    }

    /// What is said of a step that takes too long.
    fn too_long(&self) -> String {
        format!(
            "it ran for more than {}; have it do less, or give `script: {{step: …}}` more",
            Time(self.step)
        )
    }
}

/// What the JavaScript of a thread gets at.
struct Host {
    console: Arc<Console>,
    random: RefCell<fastrand::Rng>,
    /// The answer that the step sees.
    answer: RefCell<Option<Rc<LastAnswer>>>,
    /// When the step has had its time.
    until: Cell<Option<Instant>>,
    /// Whether it had.
    is_over: Cell<bool>,
    /// Bytes that lists of the step may still take.
    room: Cell<usize>,
    /// Promises that were rejected, and nobody looked at that: the first words.
    rejected: RefCell<Option<String>>,
}

impl Host {
    /// Whether what runs has had its time.
    fn has_had_its_time(&self) -> bool {
        let is_over = self.until.get().is_some_and(|until| Instant::now() > until);
        self.is_over.set(self.is_over.get() || is_over);
        self.is_over.get()
    }

    /// Something begins that may take so long.
    fn begin(&self, longest: Duration) {
        self.is_over.set(false);
        self.rejected.take();
        self.until.set(Instant::now().checked_add(longest));
    }
}

/// The code of one thread's sessions.
struct OfThread {
    steps: Steps,
    host: Rc<Host>,
    /// Made anew after a step that took too much.
    engine: Option<Engine>,
}

impl Code for OfThread {
    fn run(
        &mut self,
        code: usize,
        answer: Option<&Rc<LastAnswer>>,
        variables: &mut dyn CodeVariables,
    ) -> std::result::Result<(), String> {
        let engine = match &mut self.engine {
            Some(engine) => engine,
            none => none.insert(Engine::new(&self.steps, &self.host)?),
        };
        let ran = engine.run(&self.steps, code, answer, variables);
        self.host.answer.take();
        self.host.until.set(None);
        ran.map_err(|why| {
            // what it has left behind goes with it
            if why.leaves_something {
                self.engine = None;
            }
            why.words
        })
    }
}

/// Why a step fails.
struct Failed {
    words: String,
    /// Whether something of it may be left in the runtime.
    leaves_something: bool,
}

/// A step that is ready to run.
#[derive(Clone)]
struct Step {
    /// Makes `vars` of the values.
    make: Persistent<Function<'static>>,
    /// The step's code.
    run: Persistent<Function<'static>>,
}

/// A runtime with its steps. What is of the runtime goes before it.
struct Engine {
    steps: Vec<std::result::Result<Step, Mistake>>,
    answer: Persistent<Function<'static>>,
    host: Rc<Host>,
    /// What variables become, and then get.
    made: Vec<(u16, Slot)>,
    context: Context,
    runtime: Runtime,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

/// Finds the modules that the globals are made of, and no other.
struct OwnModules {
    /// Whether the globals are made: then there are none any more.
    are_over: Rc<Cell<bool>>,
}

impl Resolver for OwnModules {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        _: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        match self.are_over.get() {
            false => Ok(name.to_owned()),
            true => Err(Exception::throw_message(
                ctx,
                "a js step imports nothing; `crypto` and `encoding` are there without",
            )),
        }
    }
}

impl Loader for OwnModules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let source = built_in(name).unwrap_or_default();
        Module::declare(ctx.clone(), name, source)
    }
}

/// What reads pages. A step without it takes no more memory and time.
#[cfg(feature = "html")]
fn install_pages<'js>(
    ctx: &Ctx<'js>,
    natives: &Object<'js>,
    host: &Rc<Host>,
    bytes_max: usize,
) -> Result<()> {
    let its = Rc::clone(host);
    let is_over = Box::new(move || its.has_had_its_time());
    html::load(ctx, natives, html::Bounds { bytes: Rc::default(), bytes_max, is_over })
}

#[cfg(not(feature = "html"))]
fn install_pages(_: &Ctx<'_>, natives: &Object<'_>, _: &Rc<Host>, _: usize) -> Result<()> {
    natives.set("parseHTML", Func::from(crate::host::no_html))
}

/// The globals of `js` steps; and what makes an answer of its status.
fn install<'js>(ctx: &Ctx<'js>, host: &Rc<Host>, steps: &Steps) -> Result<Function<'js>> {
    let natives = Object::new(ctx.clone())?;
    bytes::install(&natives)?;
    webcrypto::install(&natives)?;
    let of = Rc::clone(host);
    natives.set("log", Func::from(move |level: String, words: String| of.console.log(&level, &words)))?;
    let of = Rc::clone(host);
    natives.set("randomNumber", Function::new(ctx.clone(), move || of.random.borrow_mut().f64())?)?;
    let of = Rc::clone(host);
    let body =
        move || of.answer.borrow().as_ref().map(|answer| String::from_utf8_lossy(answer.body()).into_owned());
    natives.set("body", Func::from(body))?;
    let of = Rc::clone(host);
    let head = move || {
        let answer = of.answer.borrow();
        answer.as_ref().map(|answer| String::from_utf8_lossy(answer.head()).into_owned()).unwrap_or_default()
    };
    natives.set("head", Func::from(head))?;
    ctx.globals().set("__k6", natives.clone())?;
    if steps.codes.iter().any(|code| code.text.contains(PAGE)) {
        install_pages(ctx, &natives, host, steps.memory)?;
    }
    Module::evaluate(ctx.clone(), GLOBALS, include_str!("js/steps.js"))?.finish::<()>()?;
    natives.get("answer")
}

impl Engine {
    fn new(of: &Steps, host: &Rc<Host>) -> std::result::Result<Engine, String> {
        let failed = |error: rquickjs::Error| format!("JavaScript cannot begin: {error}");
        let runtime = Runtime::new().map_err(failed)?;
        runtime.set_memory_limit(of.memory);
        runtime.set_max_stack_size(STACK_BYTES);
        runtime.set_gc_threshold(GC_BYTES);
        let are_over: Rc<Cell<bool>> = Rc::default();
        let modules = || OwnModules { are_over: Rc::clone(&are_over) };
        runtime.set_loader(modules(), modules());
        let its = Rc::clone(host);
        runtime.set_interrupt_handler(Some(Box::new(move || its.has_had_its_time())));
        let its = Rc::clone(host);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |_, _, reason, is_handled| {
            let mut rejected = its.rejected.borrow_mut();
            match is_handled {
                true => *rejected = None,
                false => drop(rejected.get_or_insert_with(|| in_words(&reason))),
            }
        })));
        let context = Context::full(&runtime).map_err(failed)?;
        host.begin(READY_MAX);
        let (answer, steps) = context.with(|ctx| {
            let answer = install(&ctx, host, of).catch(&ctx).map_err(|error| {
                format!("JavaScript cannot begin within {}: {error}", Size(of.memory as u64))
            })?;
            are_over.set(true);
            let steps = of.codes.iter().enumerate().map(|(index, code)| {
                compiled(&ctx, code).catch(&ctx).map_err(|error| mistake(index, code, &error))
            });
            let steps = steps.collect();
            Ok::<_, String>((Persistent::save(&ctx, answer), steps))
        })?;
        host.until.set(None);
        Ok(Engine { steps, answer, host: Rc::clone(host), made: Vec::new(), context, runtime })
    }

    fn run(
        &mut self,
        of: &Steps,
        code: usize,
        answer: Option<&Rc<LastAnswer>>,
        variables: &mut dyn CodeVariables,
    ) -> std::result::Result<(), Failed> {
        let failed = |words: &str| Failed { words: words.to_owned(), leaves_something: false };
        let (Some(step), Some(plan)) = (self.steps.get(code), of.codes.get(code)) else {
            return Err(failed("there is no such code"));
        };
        let step = step.clone().map_err(|mistake| failed(&mistake.message))?;
        let (host, made, runtime) = (&self.host, &mut self.made, &self.runtime);
        *host.answer.borrow_mut() = answer.cloned();
        host.begin(of.step);
        host.room.set(of.memory);
        let ran = self.context.with(|ctx| {
            let ran = call(&ctx, (&step, &self.answer), answer, (plan, variables), host, made);
            ran.catch(&ctx).map_err(|error| {
                let (line, column) = place(plan, &error);
                let (words, is_too_large) = match told(&error) {
                    _ if host.is_over.get() => (of.too_long(), false),
                    _ if is_out_of_memory(&error) => (of.too_large(), true),
                    words => (words, false),
                };
                let words = format!("{words} ({}:{line}:{column})", plan.file);
                Failed { words, leaves_something: is_too_large }
            })
        });
        ran.map_err(|why| Failed {
            leaves_something: why.leaves_something || runtime.is_job_pending(),
            ..why
        })?;
        // what has no room stops it; earlier ones are set
        for (slot, made) in &mut self.made {
            if !variables.put(*slot, made) {
                return Err(failed("there is no room for its variables beside those of all users"));
            }
        }
        Ok(())
    }
}

/// Calls a step; what its variables become is in `made` then.
fn call<'js>(
    ctx: &Ctx<'js>,
    (step, make_answer): (&Step, &Persistent<Function<'static>>),
    answer: Option<&Rc<LastAnswer>>,
    (plan, variables): (&CodePlan, &dyn CodeVariables),
    host: &Host,
    made: &mut Vec<(u16, Slot)>,
) -> Result<()> {
    let make = step.make.clone().restore(ctx)?;
    let run = step.run.clone().restore(ctx)?;
    let mut values = Args::new(ctx.clone(), plan.variables.len());
    let mut before = Vec::with_capacity(plan.variables.len());
    for variable in &plan.variables {
        let value = to_js(ctx, variables.get(variable.slot))?;
        before.push(value.clone());
        values.push_arg(value)?;
    }
    let vars: Object<'js> = make.call_arg(values)?;
    let res: Js<'js> = match answer {
        Some(answer) => make_answer.clone().restore(ctx)?.call((answer.status(),))?,
        None => Js::new_undefined(ctx.clone()),
    };
    run.call::<_, Js<'js>>((vars.clone(), res))?;
    // what it has begun ends with it
    while ctx.execute_pending_job() && !host.has_had_its_time() {}
    if host.is_over.get() {
        return Err(Exception::throw_message(ctx, "interrupted"));
    }
    if let Some(words) = host.rejected.take() {
        return Err(Exception::throw_message(ctx, &format!("uncaught in a promise: {words}")));
    }
    made.clear();
    for (variable, before) in plan.variables.iter().zip(before) {
        if variable.is_fixed {
            continue;
        }
        let after: Js<'js> = vars.get(variable.name.as_str())?;
        if after != before {
            let mut slot = Slot::default();
            from_js(&after, &mut slot, host)
                .map_err(|what| Exception::throw_type(ctx, &format!("vars.{} is {what}", variable.name)))?;
            made.push((variable.slot, slot));
        }
    }
    Ok(())
}

/// Reads a step's code.
fn compiled<'js>(ctx: &Ctx<'js>, code: &CodePlan) -> Result<Step> {
    let mut source = String::from("export default [(");
    for index in 0..code.variables.len() {
        source += &format!("a{index}, ");
    }
    source += ") => Object.seal({ ";
    for (index, variable) in code.variables.iter().enumerate() {
        source += &match variable.is_fixed {
            true => format!("get [\"{}\"]() {{ return a{index}; }}, ", variable.name),
            false => format!("[\"{}\"]: Object.freeze(a{index}), ", variable.name),
        };
    }
    // the code begins with a line of its own: its first is the second
    source += "}), (function (vars, res) {\n";
    source += &code.text;
    source += "\n})];";
    let (module, evaluated) = Module::declare(ctx.clone(), STEP, source)?.eval()?;
    evaluated.finish::<()>()?;
    let both: Array<'js> = module.get("default")?;
    let function = |index| both.get::<Function<'js>>(index).map(|function| Persistent::save(ctx, function));
    Ok(Step { make: function(0)?, run: function(1)? })
}

/// A variable's value in JavaScript.
fn to_js<'js>(ctx: &Ctx<'js>, value: Value<'_>) -> Result<Js<'js>> {
    let text = |text: &[u8]| {
        rquickjs::String::from_str(ctx.clone(), &String::from_utf8_lossy(text))
            .map(rquickjs::String::into_value)
    };
    Ok(match value {
        Value::Missing => Js::new_undefined(ctx.clone()),
        Value::Bool(value) => Js::new_bool(ctx.clone(), value),
        Value::Int(value) if (-WHOLE_MAX..=WHOLE_MAX).contains(&value) => {
            Js::new_number(ctx.clone(), value as f64)
        }
        Value::Int(value) => Js::new_big_int(ctx.clone(), value)?,
        Value::Real(value) => Js::new_number(ctx.clone(), value),
        Value::Text(value) => text(value)?,
        Value::List(list) => {
            let items = Array::new(ctx.clone())?;
            for index in 0..list.len() {
                items.set(index, text(list.get(index).unwrap_or_default())?)?;
            }
            items.into_value()
        }
    })
}

/// A value of JavaScript as a variable's.
///
/// # Errors
/// What it is, where no variable can be that.
fn from_js(value: &Js<'_>, slot: &mut Slot, host: &Host) -> std::result::Result<(), String> {
    if value.is_undefined() || value.is_null() {
        slot.clear();
    } else if let Some(value) = value.as_bool() {
        slot.set_bool(value);
    } else if let Some(value) = value.as_number() {
        match value {
            _ if !value.is_finite() => return Err(format!("{value}; set a number")),
            _ if value.fract() == 0.0 && value.abs() <= WHOLE_MAX as f64 => slot.set_int(value as i64),
            _ => slot.set_real(value),
        }
    } else if let Some(list) = value.as_array() {
        slot.start_list();
        for (index, item) in list.iter::<Js<'_>>().enumerate() {
            let item = item.map_err(|error| error.to_string())?;
            let item = text_of(&item).ok_or_else(|| {
                format!("a list whose item {index} is neither text, number nor true or false")
            })?;
            // items may be one text many times, of which JavaScript holds one
            match host.room.get().checked_sub(item.len()) {
                Some(left) if !host.has_had_its_time() => host.room.set(left),
                _ => return Err("a list that takes more time or memory than a step has".into()),
            }
            slot.push_item(item.as_bytes());
        }
    } else if let Some(text) = text_of(value) {
        match text.parse() {
            Ok(number) if value.type_of() == Type::BigInt => slot.set_int(number),
            _ => slot.set_text(text.as_bytes()),
        }
    } else {
        let what = match value.type_of() {
            Type::String => "a string with a lone surrogate".to_owned(),
            kind => format!(
                "of type {kind}; set text, a number, true, false, or a list of these (JSON.stringify makes text of it)"
            ),
        };
        return Err(what);
    }
    Ok(())
}

/// The text of what has one: text, a number, a truth value.
fn text_of(value: &Js<'_>) -> Option<String> {
    match value.type_of() {
        Type::String => value.as_string()?.to_string().ok(),
        Type::Int | Type::Float | Type::Bool | Type::BigInt => {
            value.clone().get::<Coerced<String>>().ok().map(|text| text.0)
        }
        _ => None,
    }
}

/// What was thrown, in words.
fn in_words(thrown: &Js<'_>) -> String {
    let object = thrown.as_object();
    let message = object.and_then(|object| object.get::<_, String>("message").ok());
    let words = match message {
        Some(message) => {
            let name: Option<String> = object.and_then(|object| object.get("name").ok());
            format!("{}: {message}", name.unwrap_or_else(|| "Error".to_owned()))
        }
        None => thrown.clone().get::<Coerced<String>>().map(|text| text.0).unwrap_or_default(),
    };
    match words.char_indices().nth(WORDS_MAX) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

/// Why a step failed, in words.
fn told(error: &CaughtError<'_>) -> String {
    match error {
        CaughtError::Exception(exception) => in_words(exception.as_object().as_value()),
        CaughtError::Value(value) => in_words(value),
        CaughtError::Error(error) => error.to_string(),
    }
}

/// Whether there was no memory for something.
fn is_out_of_memory(error: &CaughtError<'_>) -> bool {
    match error {
        CaughtError::Exception(exception) => {
            exception.message().is_some_and(|message| message == "out of memory")
        }
        // where there is none even for an exception, null is thrown
        CaughtError::Value(value) => value.is_null(),
        CaughtError::Error(error) => matches!(error, rquickjs::Error::Allocation),
    }
}

/// Where an exception was thrown, in the scenario's file: the first place in its stack that is the step's; else its begin.
fn place(code: &CodePlan, error: &CaughtError<'_>) -> (usize, usize) {
    let (line, column) = place_in_code(error).unwrap_or((1, 1));
    code.place(line, column)
}

/// The same, in the code: line and column, from 1.
fn place_in_code(error: &CaughtError<'_>) -> Option<(usize, usize)> {
    let CaughtError::Exception(exception) = error else { return None };
    let stack = exception.stack()?;
    let mut places = stack.lines().filter_map(|frame| {
        let (before, place) = frame.rsplit_once(&format!("{STEP}:"))?;
        if !before.ends_with([' ', '(']) {
            return None;
        }
        let (line, column) = place.trim_end_matches(')').split_once(':')?;
        // a line stands in front of it
        Some((line.parse::<usize>().ok()?.saturating_sub(1), column.parse().ok()?))
    });
    places.next()
}

/// What is wrong with code that cannot be read.
fn mistake(index: usize, code: &CodePlan, error: &CaughtError<'_>) -> Mistake {
    let (line, column) = place(code, error);
    let is_behind = place_in_code(error).is_some_and(|(line, _)| line > code.text.lines().count());
    let message = match is_behind {
        true => "SyntaxError: the code ends too early: a bracket, string or comment is not closed".into(),
        false => told(error),
    };
    Mistake { code: index, line, column, message }
}
