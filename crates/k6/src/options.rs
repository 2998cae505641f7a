//! What a script says of its load: `options`, as k6 reads them.

use std::time::Duration;

use serde_json::Value;

/// How many come, and when: a k6 scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioOf {
    /// Its name; `default` where the script has only one load.
    pub name: String,
    /// The exported function that is an iteration.
    pub exec: String,
    /// What begins iterations.
    pub executor: Executor,
    /// When it begins.
    pub start: Duration,
    /// What `__ENV` has besides.
    pub env: Vec<(String, String)>,
    /// Tags of all that it measures.
    pub tags: Vec<(String, String)>,
    /// How long iterations that are under way at its end are waited for.
    pub graceful_stop: Duration,
    /// How long the iteration of a user who is to leave before is waited for.
    pub graceful_ramp_down: Duration,
}

/// A certificate of the script's own, as PEM, for servers that ask for one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Certificate {
    /// Patterns of hosts that get it; all where there are none.
    domains: Vec<String>,
    pub certificate: String,
    pub key: String,
}

/// What the options say of all requests and iterations.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Common {
    /// Requests per second of all users, at most.
    pub rps: Option<f64>,
    /// Shortest time of an iteration.
    pub shortest: Duration,
    /// Whether each request has a connection of its own.
    pub no_reuse: bool,
    /// Whether any certificate will do.
    pub insecure: bool,
    /// Its own certificates.
    certificates: Vec<Certificate>,
    /// Addresses by hosts (`host`, `host:port`, `*.domain`).
    pub hosts: Vec<(String, String)>,
    /// Patterns of hosts that nothing is sent to.
    pub blocked: Vec<String>,
}

impl Common {
    /// # Errors
    /// What is wrong with them.
    pub fn read(options: &Value) -> Result<Common, String> {
        let keys = Keys { at: "options".to_owned(), of: options };
        let blocked = keys.value("blockHostnames").and_then(Value::as_array).into_iter().flatten();
        Ok(Common {
            rps: keys.number("rps")?.filter(|rps| *rps > 0.0),
            shortest: keys.time("minIterationDuration")?.unwrap_or_default(),
            no_reuse: keys.is("noConnectionReuse"),
            insecure: keys.is("insecureSkipTLSVerify"),
            certificates: keys.certificates()?,
            hosts: keys.texts("hosts"),
            blocked: blocked.filter_map(Value::as_str).map(str::to_ascii_lowercase).collect(),
        })
    }

    /// Where connections to an origin (`http://host:port`) go, where that is not its host: an address with a port.
    pub fn address(&self, origin: &str) -> Option<String> {
        let (host, port) = host_of(origin)?;
        let with_port = format!("{host}:{port}");
        let exact = |wanted: &str| self.hosts.iter().find(|(of, _)| of.eq_ignore_ascii_case(wanted));
        // as in k6, the longest pattern goes first
        let wild = || {
            let fits = |(of, _): &&(String, String)| matches_host(of, host) || matches_host(of, &with_port);
            self.hosts.iter().filter(|of| of.0.starts_with('*')).filter(fits).max_by_key(|of| of.0.len())
        };
        let (_, to) = exact(&with_port).or_else(|| exact(host)).or_else(wild)?;
        let has_port = match to.strip_prefix('[') {
            Some(rest) => rest.contains("]:"),
            None => to.matches(':').count() == 1,
        };
        Some(match has_port {
            true => to.clone(),
            false if to.contains(':') && !to.starts_with('[') => format!("[{to}]:{port}"),
            false => format!("{to}:{port}"),
        })
    }

    /// The certificate that a host of an origin gets. k6 itself only warns of `domains`, and shows each host one that it takes;
    /// here they choose among several, and a host that none names gets the first.
    pub fn certificate(&self, origin: &str) -> Option<&Certificate> {
        let (host, _) = host_of(origin)?;
        let fits = |of: &&Certificate| {
            of.domains.is_empty() || of.domains.iter().any(|domain| matches_host(domain, host))
        };
        self.certificates.iter().find(fits).or(self.certificates.first())
    }

    /// The pattern by which nothing is sent to a host.
    pub fn blocks(&self, host: &str) -> Option<&str> {
        self.blocked.iter().map(String::as_str).find(|pattern| matches_host(pattern, host))
    }
}

/// Host and port of an origin.
fn host_of(origin: &str) -> Option<(&str, &str)> {
    let (scheme, authority) = origin.split_once("://")?;
    Some(match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (authority, if matches!(scheme, "https" | "grpcs") { "443" } else { "80" }),
    })
}

/// Whether a host fits a pattern; `*` stands for its beginning.
fn matches_host(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.to_ascii_lowercase(), host.to_ascii_lowercase());
    match pattern.strip_prefix('*') {
        Some(end) => host.ends_with(end),
        None => host == pattern,
    }
}

/// A level that is gone to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// How long that takes.
    pub duration: Duration,
    /// Users, or iterations per second.
    pub target: f64,
}

/// What begins iterations.
#[derive(Debug, Clone, PartialEq)]
pub enum Executor {
    /// So many in all, by these users.
    SharedIterations {
        /// Users.
        vus: u64,
        /// Iterations of all users.
        iterations: u64,
        /// Longest time.
        max: Duration,
    },
    /// So many by each user.
    PerVuIterations {
        /// Users.
        vus: u64,
        /// Iterations of each.
        iterations: u64,
        /// Longest time.
        max: Duration,
    },
    /// A fixed number of users.
    ConstantVus {
        /// Users.
        vus: u64,
        /// How long.
        duration: Duration,
    },
    /// A number of users that changes.
    RampingVus {
        /// Users at the begin.
        from: u64,
        /// What follows.
        stages: Vec<Stage>,
    },
    /// A fixed rate.
    ConstantArrivalRate {
        /// Iterations per second.
        rate: f64,
        /// How long.
        duration: Duration,
        /// Most users.
        vus: u64,
    },
    /// A rate that changes.
    RampingArrivalRate {
        /// Iterations per second at the begin.
        from: f64,
        /// What follows.
        stages: Vec<Stage>,
        /// Most users.
        vus: u64,
    },
}

impl Executor {
    /// k6's name for it.
    pub fn name(&self) -> &'static str {
        match self {
            Executor::SharedIterations { .. } => "shared-iterations",
            Executor::PerVuIterations { .. } => "per-vu-iterations",
            Executor::ConstantVus { .. } => "constant-vus",
            Executor::RampingVus { .. } => "ramping-vus",
            Executor::ConstantArrivalRate { .. } => "constant-arrival-rate",
            Executor::RampingArrivalRate { .. } => "ramping-arrival-rate",
        }
    }

    /// Longest time that it begins iterations.
    pub fn duration(&self) -> Duration {
        match self {
            Executor::SharedIterations { max, .. } | Executor::PerVuIterations { max, .. } => *max,
            Executor::ConstantVus { duration, .. } | Executor::ConstantArrivalRate { duration, .. } => {
                *duration
            }
            Executor::RampingVus { stages, .. } | Executor::RampingArrivalRate { stages, .. } => {
                stages.iter().map(|stage| stage.duration).sum()
            }
        }
    }

    /// Most users at once.
    pub fn most_users(&self) -> u64 {
        match self {
            Executor::SharedIterations { vus, .. }
            | Executor::PerVuIterations { vus, .. }
            | Executor::ConstantVus { vus, .. }
            | Executor::ConstantArrivalRate { vus, .. }
            | Executor::RampingArrivalRate { vus, .. } => *vus,
            Executor::RampingVus { from, stages } => {
                stages.iter().map(|stage| stage.target as u64).fold(*from, u64::max)
            }
        }
    }

    /// Whether iterations begin at a rate.
    pub fn has_a_rate(&self) -> bool {
        matches!(self, Executor::ConstantArrivalRate { .. } | Executor::RampingArrivalRate { .. })
    }

    /// Iterations in all, where that is fixed.
    pub fn iterations(&self) -> Option<u64> {
        match self {
            Executor::SharedIterations { iterations, .. } => Some(*iterations),
            Executor::PerVuIterations { vus, iterations, .. } => Some(vus.saturating_mul(*iterations)),
            _ => None,
        }
    }
}

/// How long iterations that are under way are waited for, unless the script says otherwise.
const GRACE: Duration = Duration::from_secs(30);
/// Longest time of a fixed number of iterations, unless the script says otherwise.
const LONGEST: Duration = Duration::from_secs(600);

/// What the command line says in place of the options.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// Users.
    pub vus: Option<u64>,
    /// How long.
    pub duration: Option<Duration>,
    /// Iterations of all users.
    pub iterations: Option<u64>,
}

impl Given {
    /// Whether it says how long, in place of scenarios and stages.
    fn is_load(&self) -> bool {
        self.duration.is_some() || self.iterations.is_some()
    }
}

/// Milliseconds: a number of them, or a text such as `1m30s`.
///
/// # Errors
/// If it is neither.
pub(crate) fn milliseconds(told: &Value) -> Result<f64, String> {
    let wrong = || format!("invalid duration {told}; write it like '1m30s'");
    match told {
        Value::Number(number) => number.as_f64().filter(|ms| *ms >= 0.0).ok_or_else(wrong),
        Value::String(text) => text_milliseconds(text).filter(|ms| *ms >= 0.0).ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// Milliseconds in a duration as Go writes it, with days; plain numbers are milliseconds.
pub(crate) fn text_milliseconds(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let mut sum = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = rest.split_at(digits);
        let units = [
            ("ms", 1.0),
            ("us", 1e-3),
            ("µs", 1e-3),
            ("ns", 1e-6),
            ("d", 86.4e6),
            ("h", 3.6e6),
            ("m", 60e3),
            ("s", 1e3),
        ];
        let (factor, more) =
            units.iter().find_map(|(name, factor)| Some((factor, unit.strip_prefix(name)?)))?;
        sum += number.parse::<f64>().ok()? * factor;
        rest = more;
    }
    (!text.is_empty()).then_some(sum)
}

/// What stands under a key; reading it, or why it is wrong.
struct Keys<'a> {
    at: String,
    of: &'a Value,
}

impl Keys<'_> {
    fn time(&self, key: &str) -> Result<Option<Duration>, String> {
        let Some(told) = self.value(key) else { return Ok(None) };
        let ms = milliseconds(told).map_err(|why| format!("{}: {key}: {why}", self.at))?;
        Duration::try_from_secs_f64(ms / 1_000.0)
            .map(Some)
            .map_err(|_| format!("{}: {key}: {told} is too long", self.at))
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.of.get(key).filter(|value| !value.is_null())
    }

    fn is(&self, key: &str) -> bool {
        self.value(key).and_then(Value::as_bool) == Some(true)
    }

    fn number(&self, key: &str) -> Result<Option<f64>, String> {
        let Some(told) = self.value(key) else { return Ok(None) };
        let number = told.as_f64().or_else(|| told.as_str()?.trim().parse().ok());
        let number = number.filter(|number| number.is_finite() && *number >= 0.0);
        number
            .map(Some)
            .ok_or_else(|| format!("{}: {key} is {told}; it must be a number of 0 or more", self.at))
    }

    fn count(&self, key: &str) -> Result<Option<u64>, String> {
        let number = self.number(key)?;
        if number.is_some_and(|number| number.fract() != 0.0 || number > 1e12) {
            return Err(format!("{}: {key} must be a whole number", self.at));
        }
        Ok(number.map(|number| number as u64))
    }

    fn needed<T>(&self, key: &str, value: Option<T>) -> Result<T, String> {
        value.ok_or_else(|| format!("{}: {key} is missing", self.at))
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(format!("{}: {key} is {other}; it must be a text", self.at)),
        }
    }

    fn texts(&self, key: &str) -> Vec<(String, String)> {
        let entries = self.value(key).and_then(Value::as_object).into_iter().flatten();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        entries.map(|(name, value)| (name.clone(), text(value))).collect()
    }

    fn certificates(&self) -> Result<Vec<Certificate>, String> {
        let told = self.value("tlsAuth").and_then(Value::as_array).into_iter().flatten();
        let certificate = |(at, of): (usize, &Value)| {
            let keys = Keys { at: format!("{}: tlsAuth[{at}]", self.at), of };
            if keys.text("password")?.is_some_and(|password| !password.is_empty()) {
                let how = "decrypt the key: openssl pkey -in key.pem -out plain.pem";
                return Err(format!("{}: a password is not supported; {how}", keys.at));
            }
            let domains = keys.value("domains").and_then(Value::as_array).into_iter().flatten();
            let (certificate, key) = (keys.text("cert")?, keys.text("key")?);
            Ok(Certificate {
                domains: domains.filter_map(Value::as_str).map(str::to_owned).collect(),
                certificate: keys.needed("cert", certificate)?,
                key: keys.needed("key", key)?,
            })
        };
        told.enumerate().map(certificate).collect()
    }

    fn stages(&self, factor: f64) -> Result<Vec<Stage>, String> {
        let told = self.value("stages").and_then(Value::as_array);
        let told = told.ok_or_else(|| format!("{}: stages is a list of {{duration, target}}", self.at))?;
        let stage = |(at, of): (usize, &Value)| {
            let keys = Keys { at: format!("{}: stages[{at}]", self.at), of };
            let duration = keys.time("duration")?;
            let target = keys.number("target")?;
            Ok(Stage {
                duration: keys.needed("duration", duration)?,
                target: keys.needed("target", target)? * factor,
            })
        };
        let stages: Vec<Stage> = told.iter().enumerate().map(stage).collect::<Result<_, String>>()?;
        match stages.iter().all(|stage| stage.duration.is_zero()) {
            true => Err(format!("{}: stages: every duration is 0", self.at)),
            false => Ok(stages),
        }
    }

    fn executor(&self, name: &str) -> Result<Executor, String> {
        let vus = self.count("vus")?.unwrap_or(1);
        let iterations = self.count("iterations")?.unwrap_or(1);
        let max = self.time("maxDuration")?.unwrap_or(LONGEST);
        let duration = || self.needed("duration", self.time("duration")?);
        let unit_s = || {
            let unit = self.time("timeUnit")?.unwrap_or(Duration::from_secs(1)).as_secs_f64();
            if unit > 0.0 { Ok(unit) } else { Err(format!("{}: timeUnit must be more than 0", self.at)) }
        };
        let most = || {
            let allocated = self.count("preAllocatedVUs")?;
            Ok::<u64, String>(self.count("maxVUs")?.or(allocated).unwrap_or(1).max(allocated.unwrap_or(1)))
        };
        let executor = match name {
            "shared-iterations" => Executor::SharedIterations { vus, iterations, max },
            "per-vu-iterations" => Executor::PerVuIterations { vus, iterations, max },
            "constant-vus" => Executor::ConstantVus { vus, duration: duration()? },
            "ramping-vus" => {
                Executor::RampingVus { from: self.count("startVUs")?.unwrap_or(1), stages: self.stages(1.0)? }
            }
            "constant-arrival-rate" => {
                let rate = self.number("rate")?;
                Executor::ConstantArrivalRate {
                    rate: self.needed("rate", rate)? / unit_s()?,
                    duration: duration()?,
                    vus: most()?,
                }
            }
            "ramping-arrival-rate" => {
                let unit = unit_s()?;
                let from = self.number("startRate")?.unwrap_or(0.0) / unit;
                Executor::RampingArrivalRate { from, stages: self.stages(1.0 / unit)?, vus: most()? }
            }
            "externally-controlled" => {
                return Err(format!(
                    "{}: the executor externally-controlled is not supported, as nothing controls this run; use constant-vus",
                    self.at
                ));
            }
            other => return Err(format!("{}: there is no executor {other}", self.at)),
        };
        Ok(executor)
    }
}

/// The loads that a script's options ask for.
///
/// # Errors
/// What is wrong with them, with its place.
pub fn scenarios(options: &Value, given: &Given) -> Result<Vec<ScenarioOf>, String> {
    let keys = Keys { at: "options".to_owned(), of: options };
    let single = |executor| ScenarioOf {
        name: "default".to_owned(),
        exec: "default".to_owned(),
        executor,
        start: Duration::ZERO,
        env: Vec::new(),
        tags: Vec::new(),
        graceful_stop: GRACE,
        graceful_ramp_down: GRACE,
    };
    if let Some(told) = keys.value("scenarios").filter(|_| !given.is_load() && given.vus.is_none()) {
        let told = told.as_object().filter(|told| !told.is_empty());
        let told = told.ok_or("options: scenarios is an object with a scenario for each name")?;
        let scenario = |(name, of): (&String, &Value)| {
            let keys = Keys { at: format!("options: scenarios: {name}"), of };
            let executor = keys.text("executor")?;
            Ok(ScenarioOf {
                name: name.clone(),
                exec: keys.text("exec")?.unwrap_or_else(|| "default".to_owned()),
                executor: keys.executor(&keys.needed("executor", executor)?)?,
                start: keys.time("startTime")?.unwrap_or_default(),
                env: keys.texts("env"),
                tags: keys.texts("tags"),
                graceful_stop: keys.time("gracefulStop")?.unwrap_or(GRACE),
                graceful_ramp_down: keys.time("gracefulRampDown")?.unwrap_or(GRACE),
            })
        };
        return told.iter().map(scenario).collect();
    }
    let has = |key: &str| keys.value(key).is_some();
    if given.vus.is_some() && has("scenarios") && !given.is_load() {
        return Err(
            "-c is one load for all, and the script has scenarios: add -d TIME to run `default` alone"
                .to_owned(),
        );
    }
    if given.vus.is_some() && !given.is_load() && !has("stages") && !has("duration") && !has("iterations") {
        return Err(
            "-c says how many users, and the script's options not for how long: add -d TIME".to_owned()
        );
    }
    let vus = given.vus.map_or_else(|| keys.count("vus"), |vus| Ok(Some(vus)))?;
    let has_told = |key: &str| !given.is_load() && keys.value(key).is_some();
    // as in k6, an empty list says nothing
    let is_empty = keys.value("stages").and_then(Value::as_array).is_some_and(Vec::is_empty);
    if has_told("stages") && !is_empty {
        // the command line scales all levels to its own
        let from = keys.count("vus")?.unwrap_or(1);
        return Ok(vec![single(Executor::RampingVus { from, stages: keys.stages(1.0)? })]);
    }
    let duration = given.duration.map_or_else(|| keys.time("duration"), |duration| Ok(Some(duration)))?;
    let iterations = match given.duration {
        // what is said later is meant
        Some(_) if given.iterations.is_none() => None,
        _ => given.iterations.map_or_else(|| keys.count("iterations"), |iterations| Ok(Some(iterations)))?,
    };
    let vus = vus.unwrap_or(1);
    let executor = match (iterations, duration) {
        (Some(iterations), max) => {
            Executor::SharedIterations { vus, iterations, max: max.unwrap_or(LONGEST) }
        }
        (None, Some(duration)) => Executor::ConstantVus { vus, duration },
        // as in k6, users alone say nothing
        (None, None) => Executor::SharedIterations { vus: 1, iterations: 1, max: LONGEST },
    };
    Ok(vec![single(executor)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, ms) in
            [("1m30s", 90_000.0), ("500ms", 500.0), ("1.5h", 5.4e6), ("250", 250.0), ("1d", 86.4e6)]
        {
            assert_eq!(text_milliseconds(text), Some(ms), "{text}");
        }
        for text in ["", "s", "1x", "1m3"] {
            assert_eq!(text_milliseconds(text), None, "{text}");
        }
    }

    #[test]
    fn loads_are_read() {
        let read = |options: Value| scenarios(&options, &Given::default()).map(|all| all[0].executor.clone());
        let s = Duration::from_secs;
        assert_eq!(read(json!({})), Ok(Executor::SharedIterations { vus: 1, iterations: 1, max: LONGEST }));
        assert_eq!(
            read(json!({"stages": [], "vus": 10, "duration": "30s"})),
            Ok(Executor::ConstantVus { vus: 10, duration: s(30) })
        );
        assert_eq!(
            read(json!({"vus": 3, "iterations": 9, "duration": "5s"})),
            Ok(Executor::SharedIterations { vus: 3, iterations: 9, max: s(5) })
        );
        let stages = vec![Stage { duration: s(10), target: 20.0 }];
        assert_eq!(
            read(json!({"stages": [{"duration": "10s", "target": 20}]})),
            Ok(Executor::RampingVus { from: 1, stages })
        );
        let scenario = |told: Value| read(json!({"scenarios": {"a": told}}));
        assert_eq!(
            scenario(
                json!({"executor": "constant-arrival-rate", "rate": 30, "timeUnit": "1m", "duration": "2m", "preAllocatedVUs": 5})
            ),
            Ok(Executor::ConstantArrivalRate { rate: 0.5, duration: s(120), vus: 5 })
        );
        for wrong in [
            json!({"executor": "externally-controlled"}),
            json!({"executor": "constant-vus"}),
            json!({"executor": "ramping-vus", "stages": [{"target": 1}]}),
            json!({"executor": "ramping-vus", "stages": []}),
            json!({"executor": "x"}),
            json!({}),
        ] {
            assert!(scenario(wrong.clone()).is_err_and(|why| why.contains("scenarios: a")), "{wrong}");
        }
    }

    #[test]
    fn hosts_have_addresses_and_may_be_blocked() {
        let common = Common::read(&json!({
            "hosts": {"a.test": "127.0.0.1", "a.test:8443": "127.0.0.2:9443", "*.b.test": "::1", "*.c.b.test": "[::2]:7"},
            "blockHostnames": ["x.test", "*.Y.test"],
        }))
        .unwrap();
        for (origin, to) in [
            ("http://a.test", Some("127.0.0.1:80")),
            ("https://A.test", Some("127.0.0.1:443")),
            ("https://a.test:8443", Some("127.0.0.2:9443")),
            ("http://x.b.test:81", Some("[::1]:81")),
            ("http://x.c.b.test", Some("[::2]:7")),
            ("http://b.test", None),
        ] {
            assert_eq!(common.address(origin).as_deref(), to, "{origin}");
        }
        assert_eq!(common.blocks("X.test"), Some("x.test"));
        assert_eq!(common.blocks("a.y.test"), Some("*.y.test"));
        assert_eq!(common.blocks("y.test"), None);
    }

    #[test]
    fn every_host_gets_a_certificate() {
        let of = |domains: &[&str], name: &str| json!({"domains": domains, "cert": name, "key": "k"});
        let options = json!({"tlsAuth": [of(&["a.test"], "one"), of(&["*.b.test"], "two")]});
        let common = Common::read(&options).unwrap();
        for (origin, name) in
            [("https://a.test:8443", "one"), ("grpcs://X.b.test", "two"), ("https://c.test", "one")]
        {
            assert_eq!(common.certificate(origin).unwrap().certificate, name, "{origin}");
        }
        assert_eq!(Common::default().certificate("https://a.test"), None);
    }

    #[test]
    fn the_command_line_goes_before_the_options() {
        let options =
            json!({"scenarios": {"a": {"executor": "constant-vus", "duration": "1s"}}, "iterations": 7});
        let given = Given { vus: Some(4), duration: Some(Duration::from_secs(2)), iterations: None };
        let all = scenarios(&options, &given).unwrap();
        assert_eq!(all[0].executor, Executor::ConstantVus { vus: 4, duration: Duration::from_secs(2) });
    }
}
