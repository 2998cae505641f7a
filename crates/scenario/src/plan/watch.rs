//! What a run does not start and looks at all the same: processes that are there already, pages of metrics, other machines.

use std::collections::HashSet;
use std::fmt;

use url::Url;

use super::{Plan, SYSTEM_TARGET, SystemOrigin};
use crate::system_url::is_loopback;

/// Most that is watched in a run.
pub const WATCHED_MAX: usize = 64;
/// Most series of a page of metrics.
pub const SERIES_MAX: usize = 64;
/// Longest name, and longest of what is looked for, characters.
const TEXT_MAX: usize = 200;
/// What samples call the driver and its machine.
const RESERVED: [&str; 2] = ["driver", "machine"];
/// What `tidemark` is called at another machine, where nothing is said.
const PROGRAM: &str = "tidemark";

/// Something that is watched.
#[derive(Debug, Clone, PartialEq)]
pub struct Watch {
    /// What it is called, where the scenario says so; see [`Plan::watched_names`].
    pub called: Option<String>,
    /// What it is.
    pub what: Watched,
    /// Who looks there, where that is not this machine.
    pub agent: Option<Agent>,
    /// Whether faults may be aimed at it.
    pub faults: bool,
}

/// What is watched.
#[derive(Debug, Clone, PartialEq)]
pub enum Watched {
    /// The machine of an [agent](Agent), and no process.
    Machine,
    /// A process and all below it, by its number.
    Pid(u32),
    /// All processes of a program, by its name.
    Program(String),
    /// Whoever listens at a TCP port.
    Port(u16),
    /// All processes of a control group, by its path below where they are mounted.
    Cgroup(String),
    /// The same, of a unit of systemd.
    Unit(String),
    /// The same, of a container, by its id or a name that its control group has.
    Container(String),
    /// A page of metrics.
    Metrics {
        /// Where it is.
        url: String,
        /// What is kept of it beside CPU, memory, disk and network.
        series: Vec<MetricSeries>,
    },
}

/// Who looks at another machine: a program that runs `tidemark agent` there, and connects its input and output with ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The words in front: `ssh`, `db1`.
    pub words: Vec<String>,
    /// What `tidemark` is called there.
    pub program: String,
}

impl Agent {
    /// By these words.
    pub fn new(words: Vec<String>) -> Agent {
        Agent { words, program: PROGRAM.into() }
    }

    /// What its machine is called: the last word that is no flag.
    pub fn machine(&self) -> &str {
        self.words.iter().rev().find(|word| !word.starts_with('-')).map_or("", String::as_str)
    }
}

/// A series of a page of metrics, or several that are added up: a name, and labels that they must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricSeries {
    /// Of the metric.
    pub name: String,
    /// Names and values of labels.
    pub labels: Vec<(String, String)>,
}

impl MetricSeries {
    /// Reads `node_load1` or `node_network_receive_bytes_total{device="eth0"}`.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<MetricSeries, String> {
        let wrong = |why: &str| format!("\"{text}\" is not a series: {why}");
        let (name, rest) = match text.trim().split_once('{') {
            Some((name, rest)) => {
                (name, Some(rest.strip_suffix('}').ok_or_else(|| wrong("its } is missing"))?))
            }
            None => (text.trim(), None),
        };
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
        };
        if !is_name(name) || text.chars().count() > TEXT_MAX {
            return Err(wrong("write NAME, or NAME{LABEL=\"VALUE\"}"));
        }
        let mut labels = Vec::new();
        for label in parts(rest.unwrap_or_default()) {
            let (label, value) = label.split_once('=').ok_or_else(|| wrong("write LABEL=\"VALUE\""))?;
            let value = value.trim().strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            let value = value.ok_or_else(|| wrong("the value of a label stands in double quotes"))?;
            if !is_name(label.trim()) || value.contains(['"', '\\', '\n']) {
                return Err(wrong("write LABEL=\"VALUE\""));
            }
            labels.push((label.trim().to_owned(), value.to_owned()));
        }
        Ok(MetricSeries { name: name.to_owned(), labels })
    }
}

/// What stands between commas that are in no quotes; nothing where there is only white space.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut quoted) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

impl fmt::Display for MetricSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let labels: Vec<String> =
            self.labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        if labels.is_empty() { Ok(()) } else { write!(f, "{{{}}}", labels.join(",")) }
    }
}

impl Watched {
    /// Reads what flags say: `pid=123`, `name=nginx`, `port=8080`, `cgroup=/PATH`, `unit=NAME`, `container=NAME`, or the URL
    /// of a page of metrics, with series behind a `#` and commas between them.
    ///
    /// # Errors
    /// Why it is none of these.
    pub fn parse(text: &str) -> Result<Watched, String> {
        if text.starts_with("http://") || text.starts_with("https://") {
            let (url, series) = text.split_once('#').unwrap_or((text, ""));
            // a comma between labels is within braces
            let mut all: Vec<String> = Vec::new();
            for part in parts(series) {
                match all.last_mut().filter(|last| last.contains('{') && !last.contains('}')) {
                    Some(last) => *last += &format!(",{part}"),
                    None => all.push(part.to_owned()),
                }
            }
            let series = all.iter().map(|text| MetricSeries::parse(text)).collect::<Result<_, _>>()?;
            return Watched::metrics(url, series);
        }
        let (word, value) = text.split_once('=').unwrap_or((text, ""));
        let number = |most: u32| {
            let number = value.parse::<u32>().ok().filter(|number| (1..=most).contains(number));
            number.ok_or_else(|| format!("\"{value}\" is not a {word}; write {word}=NUMBER, up to {most}"))
        };
        match word {
            "pid" => number(i32::MAX as u32).map(Watched::Pid),
            "port" => number(u16::MAX.into()).map(|port| Watched::Port(port as u16)),
            "name" => plain(value).map(Watched::Program),
            "cgroup" => Watched::cgroup(value),
            "unit" => plain(value).map(Watched::Unit),
            "container" => plain(value).map(Watched::Container),
            _ => Err(format!(
                "\"{text}\" cannot be watched; write pid=NUMBER, name=PROGRAM, port=NUMBER, cgroup=/PATH, \
                 unit=NAME, container=NAME, or the URL of a page of metrics"
            )),
        }
    }

    /// A program, a unit, or a container by this name.
    ///
    /// # Errors
    /// Where that is none.
    pub fn named(word: &str, name: &str) -> Result<Watched, String> {
        let name = plain(name)?;
        Ok(match word {
            "unit" => Watched::Unit(name),
            "container" => Watched::Container(name),
            _ => Watched::Program(name),
        })
    }

    /// A control group.
    ///
    /// # Errors
    /// Where the path is none within those.
    pub fn cgroup(path: &str) -> Result<Watched, String> {
        let is_within = path.split('/').all(|part| part != "..");
        match path.starts_with('/') && is_within && path.chars().count() <= TEXT_MAX {
            true => Ok(Watched::Cgroup(path.trim_end_matches('/').to_owned())),
            false => {
                Err(format!("\"{path}\" is not a control group; write a path like /system.slice/x.service"))
            }
        }
    }

    /// A page of metrics.
    ///
    /// # Errors
    /// Where the URL is none of HTTP, or there are too many series.
    pub fn metrics(url: &str, series: Vec<MetricSeries>) -> Result<Watched, String> {
        let wrong = |why: &dyn fmt::Display| {
            Err(format!("\"{url}\" is not a page of metrics: {why}; write http://HOST:PORT/metrics"))
        };
        match Url::parse(url) {
            Err(error) => return wrong(&error),
            Ok(url) if !["http", "https"].contains(&url.scheme()) => {
                return wrong(&"it is not a URL of http or https");
            }
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                return wrong(&"a name and password cannot be sent there");
            }
            Ok(_) => {}
        }
        if series.len() > SERIES_MAX {
            return Err(format!("{} series of one page; at most {SERIES_MAX}", series.len()));
        }
        Ok(Watched::Metrics { url: url.to_owned(), series })
    }

    /// The word of a flag and what stands behind it, see [`Watched::parse`]; none of what has no such form.
    fn said(&self) -> Option<(&'static str, String)> {
        Some(match self {
            Watched::Pid(id) => ("pid", id.to_string()),
            Watched::Program(name) => ("name", name.clone()),
            Watched::Port(port) => ("port", port.to_string()),
            Watched::Cgroup(path) => ("cgroup", path.clone()),
            Watched::Unit(name) => ("unit", name.clone()),
            Watched::Container(name) => ("container", name.clone()),
            Watched::Machine | Watched::Metrics { .. } => return None,
        })
    }

    /// The same as a flag says it; none of what has no such form.
    pub fn flag(&self) -> Option<String> {
        self.said().map(|(word, value)| format!("{word}={value}"))
    }

    /// Whether it is processes of some machine.
    pub fn is_processes(&self) -> bool {
        !matches!(self, Watched::Machine | Watched::Metrics { .. })
    }

    /// What it is called where nobody says otherwise.
    fn name(&self) -> String {
        match self {
            Watched::Machine | Watched::Pid(_) | Watched::Port(_) => self.to_string(),
            Watched::Program(name) | Watched::Unit(name) | Watched::Container(name) => name.clone(),
            Watched::Cgroup(path) => path.rsplit('/').next().unwrap_or_default().to_owned(),
            Watched::Metrics { url, .. } => {
                let url = Url::parse(url).ok();
                url.map_or_else(String::new, |url| url.authority().to_owned())
            }
        }
    }
}

/// What it is, for a person.
impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.said()) {
            (_, Some((word, value))) => write!(f, "{word} {value}"),
            (Watched::Metrics { url, .. }, None) => f.write_str(url),
            (_, None) => f.write_str("machine"),
        }
    }
}

/// A name that is one: for a flag, and in a path.
fn plain(name: &str) -> Result<String, String> {
    let is_plain = !name.is_empty()
        && name.chars().count() <= TEXT_MAX
        && !name.contains('/')
        && !name.chars().any(char::is_control)
        && name != ".."
        && name != ".";
    match is_plain {
        true => Ok(name.to_owned()),
        false => Err(format!("\"{name}\" is not a name; write the name alone, without a path")),
    }
}

/// Whether words can stand in a command that another machine's shell reads.
pub fn is_harmless(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/:@+,=-".contains(c);
    !word.is_empty() && word.chars().all(is_plain)
}

impl Watch {
    /// This, of this machine.
    pub fn of(what: Watched) -> Watch {
        Watch { called: None, what, agent: None, faults: false }
    }

    /// What it is called in a run whose system is this.
    fn name(&self, system: &SystemOrigin) -> String {
        if let Some(name) = &self.called {
            return name.clone();
        }
        match (&self.agent, &self.what) {
            (None, Watched::Port(port)) if is_here(system, *port) => SYSTEM_TARGET.to_owned(),
            (None, what) => what.name(),
            (Some(agent), Watched::Machine) => agent.machine().to_owned(),
            (Some(agent), what) => format!("{} at {}", what.name(), agent.machine()),
        }
    }
}

/// Whether a system is at this port of this machine, by its URL's own words.
fn is_here(system: &SystemOrigin, port: u16) -> bool {
    let SystemOrigin::Url(url) = system else { return false };
    let Ok(url) = Url::parse(url) else { return false };
    is_loopback(&url) && url.port_or_known_default() == Some(port)
}

impl Plan {
    /// What each watched thing is called in samples, reports and faults: as the scenario says, or after what is looked for.
    /// Whoever listens at the port of a URL of this machine that is driven is the `system`.
    pub fn watched_names(&self) -> Vec<String> {
        self.watch.iter().map(|watch| watch.name(&self.system.origin)).collect()
    }

    /// Whether each has a name of its own.
    ///
    /// # Errors
    /// Which has not; what to do.
    pub fn check_watched(&self) -> Result<(), String> {
        if self.watch.len() > WATCHED_MAX {
            return Err(format!("{} are watched; at most {WATCHED_MAX}", self.watch.len()));
        }
        let started: Vec<String> = self.stores.iter().flat_map(|store| store.names()).collect();
        let mut seen = HashSet::new();
        // an agent tells of its machine in any case
        let machines = self.watch.iter().filter_map(|watch| watch.agent.as_ref()).filter(|agent| {
            let is_told =
                |watch: &Watch| watch.what == Watched::Machine && watch.agent.as_ref() == Some(*agent);
            !self.watch.iter().any(is_told)
        });
        let mut agents: Vec<&Agent> = Vec::new();
        for agent in machines {
            if !agents.contains(&agent) {
                agents.push(agent);
            }
        }
        let machines = agents.iter().map(|agent| agent.machine().to_owned());
        for name in self.watched_names().into_iter().chain(machines) {
            let is_text = !name.trim().is_empty()
                && name.chars().count() <= TEXT_MAX
                && !name.chars().any(char::is_control);
            if !is_text {
                return Err(format!(
                    "\"{name}\" cannot be the name of what is watched; say another with `as`"
                ));
            }
            let is_ours = RESERVED.contains(&name.as_str())
                || started.contains(&name)
                || name == SYSTEM_TARGET
                    && !matches!(self.system.origin, SystemOrigin::Url(_) | SystemOrigin::Unknown);
            if is_ours {
                return Err(format!(
                    "\"{name}\" is what this run starts, or its load generator; call what is watched otherwise with `as`"
                ));
            }
            if !seen.insert(name.clone()) {
                return Err(format!(
                    "two of what is watched are called \"{name}\"; give one another name with `as`"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_flags_say_is_read_and_said_again() {
        for text in
            ["pid=12", "name=nginx", "port=8080", "cgroup=/a/b.service", "unit=x.service", "container=db"]
        {
            let read = Watched::parse(text).unwrap();
            assert_eq!(read.flag().as_deref(), Some(text));
            assert!(read.is_processes());
        }
        let url = "http://h:9100/metrics#node_load1,a_total{x=\"1,2\",y=\"z\"},b";
        let Watched::Metrics { url, series } = Watched::parse(url).unwrap() else { panic!() };
        let series: Vec<String> = series.iter().map(ToString::to_string).collect();
        assert_eq!(url, "http://h:9100/metrics");
        assert_eq!(series, ["node_load1", "a_total{x=\"1,2\",y=\"z\"}", "b"]);
        for (wrong, why) in [
            ("pid=0", "is not a pid"),
            ("pid=x", "is not a pid"),
            ("port=70000", "up to 65535"),
            ("name=", "is not a name"),
            ("name=/usr/bin/x", "without a path"),
            ("cgroup=x", "is not a control group"),
            ("cgroup=/a/../../etc", "is not a control group"),
            ("http://u:p@h/m", "cannot be sent"),
            ("http://h/m#a{", "} is missing"),
            ("http://h/m#a{b=c}", "double quotes"),
            ("nginx", "cannot be watched"),
        ] {
            let said = Watched::parse(wrong).unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }

    #[test]
    fn words_for_another_shell_are_harmless() {
        assert!(is_harmless("port=8080") && is_harmless("/opt/tidemark-1.0/bin/tidemark"));
        for word in ["", "a b", "a;b", "$(x)", "`x`", "a'b", "~", "*", "a\nb", "a&b", "a|b", "a>b", "ä"] {
            assert!(!is_harmless(word), "{word}");
        }
    }
}
