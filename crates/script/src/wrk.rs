//! Scripts of wrk: their states, and the requests that they make.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mlua::{Function, Lua, LuaOptions, StdLib, Table, Value};
use tidemark_drive::{AnswerCheck, AnswerView, Next, Program, ProgramRequest, Programs};
use tidemark_record::Outcome;
use tidemark_scenario::plan::ScriptPlan;

use crate::addresses::{self, Address};
use crate::figures::{Figures, Values};
use crate::raw;
use crate::thread::{Shared, Thread};

/// What scripts find under `wrk`.
const PRELUDE: &str = include_str!("wrk.lua");
/// Has a script's `print` and `io.write` write to standard error.
const PRINTS_TO_STDERR: &str = r"
io.output(io.stderr)
io.stdout = io.stderr
print = function(...)
   local words = {}
   for index = 1, select('#', ...) do
      words[index] = tostring((select(index, ...)))
   end
   io.write(table.concat(words, '\t'), '\n')
end";
/// Most memory of a state, bytes.
const STATE_BYTES_MAX: usize = 1 << 30;
/// What `os.exit` was given, in a state's registry.
const EXIT_STATUS: &str = "tidemark.exit";
/// Most requests that a script makes at once.
const AT_ONCE_MAX: usize = 1024;

/// What is wrong with a script, with its file and line.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error("{0}")]
pub struct ScriptError(String);

impl ScriptError {
    fn new(script: &ScriptPlan, error: &mlua::Error) -> Self {
        // what follows is the stack, of which the first line has the place
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        let line = ["runtime error: ", "syntax error: "]
            .iter()
            .fold(line, |line, kind| line.strip_prefix(kind).unwrap_or(line));
        let says_where = line.starts_with(&script.file);
        ScriptError(if says_where { line.to_owned() } else { format!("{}: {line}", script.file) })
    }

    fn of_request(script: &ScriptPlan, why: &str) -> Self {
        ScriptError(format!("{}: what `request` returns is no request: {why}", script.file))
    }
}

/// Where requests go.
#[derive(Debug, Clone)]
pub struct Place {
    /// `http` or `https`.
    pub scheme: String,
    /// Name or address, without brackets.
    pub host: String,
    /// The port, where the URL has one.
    pub port: Option<u16>,
    /// The path of the system's URL, without a slash at its end.
    pub base_path: String,
    /// The URL without its path.
    pub origin: String,
    /// Whether what the script prints goes to standard error, as machines read standard output.
    pub prints_to_stderr: bool,
    /// The address, if it is known.
    pub address: Option<SocketAddr>,
    /// Connections of all threads.
    pub connections: usize,
    /// Whether requests are written as the script wrote them; else they are taken apart, for HTTP/2.
    pub as_written: bool,
}

/// A script, ready for the load.
pub struct Wrk {
    script: Arc<ScriptPlan>,
    /// The state of `setup` and `done`.
    main: Lua,
    threads: Vec<Ready>,
    place: Place,
    at_once: usize,
}

impl std::fmt::Debug for Wrk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wrk").field("script", &self.script.file).finish_non_exhaustive()
    }
}

/// A thread's state.
struct Ready {
    lua: Lua,
    /// What the host calls in it.
    host: Table,
    shared: Arc<Shared>,
}

/// Compiles a script.
pub(crate) fn compile(script: &ScriptPlan) -> Result<(), ScriptError> {
    let compiled = load(&Lua::new(), script).map(|_| ());
    compiled.map_err(|error| ScriptError::new(script, &error))
}

fn load(lua: &Lua, script: &ScriptPlan) -> mlua::Result<Function> {
    // the first line may name an interpreter
    let source: &[u8] = &script.source;
    let text = match source.starts_with(b"#") {
        true => &source[memchr::memchr(b'\n', source).unwrap_or(source.len())..],
        false => source,
    };
    lua.load(text).set_name(format!("@{}", script.file)).set_mode(mlua::ChunkMode::Text).into_function()
}

impl Wrk {
    /// Runs a script up to the load: its file once for `setup` and once for each of so many threads, then `setup` and `init`
    /// of each.
    ///
    /// # Errors
    /// The script's first error, with its line.
    pub fn new(script: &ScriptPlan, threads: usize, place: Place) -> Result<Wrk, ScriptError> {
        let failed = |error: mlua::Error| ScriptError::new(script, &error);
        let (main, _) = state(script, &place).map_err(failed)?;
        let mut wrk = Wrk { script: Arc::new(script.clone()), main, threads: Vec::new(), place, at_once: 1 };
        for thread in 0..threads {
            let (lua, host) = state(script, &wrk.place).map_err(failed)?;
            let shared = Arc::new(Shared::at(wrk.place.address.map(Address)));
            let ours = wrk_of(&lua).map_err(failed)?;
            ours.set("thread", Thread::new(&lua, &shared)).map_err(failed)?;
            let setup: Function = wrk_of(&wrk.main).and_then(|wrk| wrk.get("setup")).map_err(failed)?;
            setup.call::<()>(Thread::new(&lua, &shared)).map_err(failed)?;
            init(&lua, &ours, script, &wrk.place).map_err(failed)?;
            wrk.threads.push(Ready { lua, host, shared });
            if thread == 0 {
                // as wrk does, the first thread's first requests only show how many come at once
                let mut first = wrk.program(0, 0)?;
                wrk.at_once = first.fetch()?.len();
            }
        }
        if wrk.at_once > AT_ONCE_MAX {
            let why = format!("{} at once are too many; at most {AT_ONCE_MAX}", wrk.at_once);
            return Err(ScriptError::of_request(script, &why));
        }
        Ok(wrk)
    }

    /// Requests that each call of `request` returns, each connection's at once.
    pub fn at_once(&self) -> usize {
        self.at_once
    }

    /// Of each thread, a number that tells turns of the script apart, while it is at work.
    pub fn at_work(&self) -> Vec<Option<u64>> {
        self.threads.iter().map(|thread| thread.shared.at_work()).collect()
    }

    /// Addresses that `setup` gave threads in place of the system's, each once.
    pub fn other_addresses(&self) -> Vec<SocketAddr> {
        let mut seen = HashSet::from([self.place.address]);
        let addresses = self.threads.iter().map(|thread| thread.shared.address().map(|address| address.0));
        addresses.filter(|address| seen.insert(*address)).flatten().collect()
    }

    /// The programs of all threads; `first_other` is the target of the first of [the others](Wrk::other_addresses).
    ///
    /// # Errors
    /// If what the script says is no request.
    pub fn programs(&self, first_other: u16) -> Result<Programs, ScriptError> {
        let others = self.other_addresses();
        let target = |thread: &Ready| {
            let address = thread.shared.address().map(|address| address.0);
            let other = others.iter().position(|other| Some(*other) == address);
            other.map_or(0, |other| first_other + other as u16)
        };
        let programs = self.threads.iter().enumerate();
        let programs = programs.map(|(thread, ready)| self.program(thread, target(ready)));
        let programs = programs.collect::<Result<Vec<_>, _>>()?;
        let programs = Mutex::new(programs.into_iter().map(Some).collect::<Vec<_>>());
        Ok(Programs::new(move |thread| {
            let mut programs = programs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            // a session that is done once has a thread of another number
            let thread = thread.min(programs.len().saturating_sub(1));
            match programs.get_mut(thread).and_then(Option::take) {
                Some(program) => Box::new(program),
                None => Box::new(Nothing),
            }
        }))
    }

    /// A thread's share of the connections, as the drive gives it.
    fn connections_of(&self, thread: usize) -> usize {
        let (all, threads) = (self.place.connections, self.threads.len());
        ((all + threads - 1 - thread) / threads).max(1)
    }

    fn program(&self, thread: usize, target: u16) -> Result<WrkProgram, ScriptError> {
        let Ready { lua, host, shared } = &self.threads[thread];
        let script = &self.script;
        let made = || {
            let is_there = |name: &str| Ok::<_, mlua::Error>(lua.globals().get::<Value>(name)?.is_function());
            let host = |name: &str| host.get::<Function>(name);
            Ok(WrkProgram {
                lua: lua.clone(),
                script: Arc::clone(script),
                shared: Arc::clone(shared),
                ask: host("ask")?,
                pause: is_there("delay")?.then(|| host("pause")).transpose()?,
                respond: is_there("response")?.then(|| host("respond")).transpose()?,
                is_same: !is_there("request")?,
                last: None,
                connections: self.connections_of(thread),
                waiting: Vec::new(),
                sessions: Vec::new(),
                head: Vec::new(),
                last_head: LastText::default(),
                last_body: LastText::default(),
                error: None,
                base_path: self.place.base_path.clone(),
                as_written: self.place.as_written,
                target,
            })
        };
        made().map_err(|error| ScriptError::new(script, &error))
    }

    /// Calls the script's `done`, if it has one. The exit status that it asks for by `os.exit`, if it does.
    ///
    /// # Errors
    /// Its error, with its line.
    pub fn done(&self, figures: Figures) -> Result<Option<u8>, ScriptError> {
        let call = || {
            let Some(done) = self.main.globals().get::<Option<Function>>("done")? else { return Ok(()) };
            let summary = figures.summary(&self.main)?;
            done.call::<()>((summary, Values(figures.latency.clone()), Values(figures.rates.clone())))
        };
        let called = call();
        match self.main.named_registry_value::<Option<i64>>(EXIT_STATUS) {
            Ok(Some(status)) => Ok(Some((status & 0xff) as u8)),
            _ => called.map(|()| None).map_err(|error| ScriptError::new(&self.script, &error)),
        }
    }
}

/// Has `os.exit` end the script and not the program, whose verdict nobody would see.
fn catch_exit(lua: &Lua) -> mlua::Result<()> {
    let exit = |lua: &Lua, status: Value| {
        let status = match status {
            Value::Nil | Value::Boolean(true) => 0,
            Value::Boolean(false) => 1,
            other => other.as_i64().or(other.as_f64().map(|status| status as i64)).unwrap_or(1),
        };
        lua.set_named_registry_value(EXIT_STATUS, status)?;
        Err::<(), _>(mlua::Error::runtime("the script called os.exit"))
    };
    lua.globals().get::<Table>("os")?.set("exit", lua.create_function(exit)?)
}

/// A new state in which the script's file has run.
fn state(script: &ScriptPlan, place: &Place) -> mlua::Result<(Lua, Table)> {
    // what wrk's scripts may use: all that comes with LuaJIT
    #[allow(
        unsafe_code,
        reason = "a script is a program that its user runs, with ffi and modules in C as in wrk"
    )]
    let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::new()) };
    // where the machine has a way to bound it
    let _ = lua.set_memory_limit(STATE_BYTES_MAX);
    let package: Table = lua.globals().get("package")?;
    let folder = script.path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let beside = folder.unwrap_or(Path::new(".")).display().to_string();
    let path: String = package.get("path")?;
    package.set("path", format!("{beside}/?.lua;{beside}/?/init.lua;{path}"))?;
    let (wrk, host): (Table, Table) = lua.load(PRELUDE).set_name("@wrk.lua").eval()?;
    lua.globals().set("wrk", &wrk)?;
    let loaded: Table = package.get("loaded")?;
    loaded.set("wrk", &wrk)?;
    addresses::install(&lua, &wrk)?;
    catch_exit(&lua)?;
    wrk.set("scheme", place.scheme.as_str())?;
    wrk.set("host", place.host.as_str())?;
    wrk.set("port", place.port.map(|port| port.to_string()))?;
    wrk.set("path", format!("{}{}", place.base_path, script.route))?;
    let headers: Table = wrk.get("headers")?;
    for (name, value) in &script.headers {
        headers.set(name.as_str(), value.as_str())?;
    }
    if place.prints_to_stderr {
        lua.load(PRINTS_TO_STDERR).exec()?;
    }
    load(&lua, script)?.call::<()>(())?;
    Ok((lua, host))
}

fn wrk_of(lua: &Lua) -> mlua::Result<Table> {
    lua.globals().get("wrk")
}

fn init(lua: &Lua, wrk: &Table, script: &ScriptPlan, place: &Place) -> mlua::Result<()> {
    let args = lua.create_table()?;
    args.raw_set(0, format!("{}{}{}", place.origin, place.base_path, script.route))?;
    for (index, argument) in script.args.iter().enumerate() {
        args.raw_set(index + 1, argument.as_str())?;
    }
    wrk.get::<Function>("init")?.call(args)
}

/// What a session waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Begun,
    Delayed,
    Asked,
}

/// One thread's sessions: each makes one request.
struct WrkProgram {
    lua: Lua,
    script: Arc<ScriptPlan>,
    shared: Arc<Shared>,
    /// Calls `request`.
    ask: Function,
    /// Calls `delay`, if there is one.
    pause: Option<Function>,
    /// Hands an answer to `response`, if there is one.
    respond: Option<Function>,
    /// Whether there is no `request`: what is sent stays the same.
    is_same: bool,
    /// The text that came last, and the requests in it: equal texts are one value in LuaJIT.
    last: Option<(mlua::String, Vec<Arc<[u8]>>)>,
    /// Connections of the thread: several sessions share each, where several requests are made at once.
    connections: usize,
    /// What `request` has returned and no session has sent, by sessions that share a connection.
    waiting: Vec<VecDeque<Arc<[u8]>>>,
    sessions: Vec<Doing>,
    /// Room for the headers of an answer.
    head: Vec<u8>,
    last_head: LastText,
    last_body: LastText,
    /// The script's error, which ends the run.
    error: Option<ScriptError>,
    base_path: String,
    as_written: bool,
    target: u16,
}

/// The text that a state was given last: one that comes again is not made again.
#[derive(Default)]
struct LastText(Option<mlua::String>);

impl LastText {
    fn of(&mut self, lua: &Lua, bytes: &[u8]) -> mlua::Result<&mlua::String> {
        let is_last = self.0.as_ref().is_some_and(|last| *last.as_bytes() == *bytes);
        let kept = self.0.take().filter(|_| is_last);
        let text = match kept {
            Some(last) => last,
            None => lua.create_string(bytes)?,
        };
        Ok(self.0.insert(text))
    }
}

impl WrkProgram {
    /// Asks the script for requests.
    fn fetch(&mut self) -> Result<Vec<Arc<[u8]>>, ScriptError> {
        let script = &self.script;
        if let (true, Some((_, requests))) = (self.is_same, &self.last) {
            return Ok(requests.clone());
        }
        let made: Value = self.ask.call(()).map_err(|error| ScriptError::new(script, &error))?;
        let Value::String(text) = made else {
            let why = format!("it is a value of type {}", made.type_name());
            return Err(ScriptError::of_request(script, &why));
        };
        if let Some((last, requests)) = &self.last
            && last.to_pointer() == text.to_pointer()
        {
            return Ok(requests.clone());
        }
        let requests = {
            let text = text.as_bytes();
            let requests = raw::split(&text).map_err(|why| ScriptError::of_request(script, &why))?;
            requests.into_iter().map(Arc::from).collect::<Vec<_>>()
        };
        self.last = Some((text, requests.clone()));
        Ok(requests)
    }

    fn delayed(&self) -> Result<Duration, ScriptError> {
        let Some(delay) = &self.pause else { return Ok(Duration::ZERO) };
        let delay: Value = delay.call(()).map_err(|error| ScriptError::new(&self.script, &error))?;
        // wrk takes what is none for 0
        let delay = if delay.is_nil() { Value::Integer(0) } else { delay };
        let pause = self
            .lua
            .coerce_number(delay.clone())
            .ok()
            .flatten()
            .map(|delay| Duration::try_from_secs_f64(delay.max(0.0) / 1e3));
        let told = delay.to_string().unwrap_or_default();
        let wrong = || {
            ScriptError(format!("{}: `delay` returns {told}, not a number of milliseconds", self.script.file))
        };
        pause.and_then(Result::ok).ok_or_else(wrong)
    }

    fn made(&self, written: &Arc<[u8]>) -> Result<ProgramRequest, ScriptError> {
        let (label, timeout, target) = (self.script.label, self.script.timeout, self.target);
        let status_only = self.respond.is_none();
        let request = ProgramRequest { label, timeout, target, status_only, ..ProgramRequest::default() };
        if self.as_written {
            return Ok(ProgramRequest { written: Some(Arc::clone(written)), ..request });
        }
        let wrong = |why: String| ScriptError::of_request(&self.script, &why);
        let raw::Parts { method, path, headers, body } = raw::parts(written).map_err(wrong)?;
        // the driver puts the base path in front
        let below = path.strip_prefix(&self.base_path);
        let Some(below) = below.filter(|below| below.is_empty() || below.starts_with(['/', '?'])) else {
            let why = format!("over HTTP/2 its path must lie below {}, and is {path}", self.base_path);
            return Err(wrong(why));
        };
        let path = if below.starts_with('/') { below.to_owned() } else { format!("/{below}") };
        Ok(ProgramRequest { method, path, headers, body, ..request })
    }

    fn respond(&mut self, answer: &AnswerView<'_>) -> mlua::Result<()> {
        let Some(respond) = &self.respond else { return Ok(()) };
        let head = &mut self.head;
        head.clear();
        answer.each_header(&mut |name, value| {
            for part in [name, b":", value, b"\n"] {
                head.extend_from_slice(part);
            }
        });
        let head = self.last_head.of(&self.lua, head)?;
        let body = self.last_body.of(&self.lua, answer.body())?;
        respond.call((answer.status(), head, body, !self.as_written))
    }

    fn step(&mut self, session: usize) -> Result<Next, ScriptError> {
        if self.shared.is_stopped() {
            return Ok(Next::Stop);
        }
        if self.sessions[session] == Doing::Asked {
            return Ok(Next::End);
        }
        let line = session % self.connections;
        if self.waiting.len() <= line {
            self.waiting.resize_with(line + 1, VecDeque::new);
        }
        let is_due = self.waiting[line].is_empty();
        if is_due && self.sessions[session] == Doing::Begun && self.pause.is_some() {
            let delay = self.delayed()?;
            self.sessions[session] = Doing::Delayed;
            return Ok(Next::Think(delay));
        }
        if is_due {
            let requests = self.fetch()?;
            self.waiting[line].extend(requests);
        }
        self.sessions[session] = Doing::Asked;
        match self.waiting[line].pop_front().map(|request| self.made(&request)) {
            Some(made) => made.map(Next::Request),
            None => Ok(Next::End),
        }
    }
}

impl Program for WrkProgram {
    fn begin(&mut self, session: u32, _: usize) {
        let session = session as usize;
        if self.sessions.len() <= session {
            self.sessions.resize(session + 1, Doing::Begun);
        }
        self.sessions[session] = Doing::Begun;
    }

    fn next(&mut self, session: u32, _: Duration) -> Next {
        if let Some(error) = &self.error {
            return Next::Failed(error.to_string());
        }
        self.shared.turn();
        let next = self.step(session as usize);
        self.shared.turn();
        next.unwrap_or_else(|error| Next::Failed(error.to_string()))
    }

    fn answered(&mut self, _: u32, answer: &AnswerView<'_>) -> AnswerCheck {
        self.shared.turn();
        let responded = self.respond(answer);
        self.shared.turn();
        if let Err(error) = responded {
            self.error = Some(ScriptError::new(&self.script, &error));
        }
        AnswerCheck::ByStatus
    }

    fn failed(&mut self, _: u32, _: Outcome) {}
}

/// A thread for which there is no state.
struct Nothing;

impl Program for Nothing {
    fn begin(&mut self, _: u32, _: usize) {}

    fn next(&mut self, _: u32, _: Duration) -> Next {
        Next::Stop
    }

    fn answered(&mut self, _: u32, _: &AnswerView<'_>) -> AnswerCheck {
        AnswerCheck::ByStatus
    }

    fn failed(&mut self, _: u32, _: Outcome) {}
}
