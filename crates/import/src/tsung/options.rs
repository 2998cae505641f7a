//! Options of a plan.

use tidemark_scenario::source::{Defaults, Map, Scalar, verbatim};
use tidemark_scenario::units::Time;

use super::{Making, shown};
use crate::plan::quoted;
use crate::xml::Element;

/// Most browsers of which each user is one.
const AGENTS_MAX: usize = 8;

/// What options say.
#[derive(Default)]
pub(super) struct Options {
    /// `thinktime`: where a pause says nothing itself, or for all.
    pub(super) think: Option<Element>,
    pub(super) override_think: bool,
    agents: Vec<(f64, String)>,
    /// The variable that has a user's agent, where there are several.
    agent: Option<String>,
    timeout: Option<Scalar>,
    pub(super) connect_timeout: Option<Scalar>,
    pub(super) seed: Option<Scalar>,
}

impl Options {
    /// What every request has.
    pub(super) fn defaults(&mut self) -> Option<Defaults> {
        let agent = match (&self.agent, self.agents.as_slice()) {
            (Some(variable), _) => Some(format!("${{{variable}}}")),
            (None, [(_, agent)]) => Some(verbatim(agent)),
            _ => None,
        };
        let headers: Map = agent.into_iter().map(|agent| ("User-Agent", agent)).collect();
        let timeout = self.timeout.take();
        let is_empty = headers.is_empty() && timeout.is_none();
        (!is_empty).then(|| Defaults { headers, timeout, ..Defaults::default() })
    }

    /// The variable for a user's agent, and how it is drawn.
    pub(super) fn agent_of_user(&self) -> Option<(String, String)> {
        let pairs: Vec<String> =
            self.agents.iter().map(|(share, agent)| format!("{}, {share}", quoted(agent))).collect();
        Some((self.agent.clone()?, format!("${{weighted({})}}", pairs.join(", "))))
    }
}

impl Making<'_> {
    pub(super) fn read_options(&mut self, options: &Element) {
        self.known(options, &[]);
        for child in &options.children {
            match child.name.as_str() {
                "option" => self.option(child),
                _ => self.unknown(child, false),
            }
        }
    }

    fn option(&mut self, option: &Element) {
        self.known(option, &["name", "override", "random", "id", "min", "max", "type", "value"]);
        let value = option.attribute("value").unwrap_or_default().trim();
        let name = option.attribute("name").unwrap_or_default();
        if name != "user_agent" {
            option.children.iter().for_each(|child| self.unknown(child, false));
        }
        match name {
            "thinktime" => {
                self.options.override_think = option.attribute("override") == Some("true");
                self.options.think = Some(option.clone());
            }
            "user_agent" => self.agents(option),
            "file_server" => self.file_server(option, value),
            "idle_timeout" | "tcp_timeout" => self.options.timeout = self.milliseconds(option, value),
            "connect_timeout" => self.options.connect_timeout = self.milliseconds(option, value),
            "seed" => match value.parse::<u64>() {
                Ok(seed) => self.options.seed = Some(seed.into()),
                Err(_) => self.tell(option, "fixed the random numbers: the seed cannot be read", false),
            },
            "websocket_frame" if option.attribute("type").is_none() => {
                self.tell(option, "set the frames of a server that is a WebSocket", false);
            }
            "http_use_server_as_initial_proxy" | "http_use_server_as_proxy" => {
                self.tell(
                    option,
                    "sent requests over the server as a proxy: `proxy` under `system` does that",
                    true,
                );
            }
            // they are about Tsung's own machine
            "hibernate" | "max_ssh_startup_per_core" | "ports_range" | "tcp_reuseaddr" => {}
            "ip_transparent" => {
                self.tell(
                    option,
                    format!("set {name} to {:?}, which is about Tsung's own machine", shown(value)),
                    false,
                );
            }
            "tcp_snd_buffer" | "tcp_rcv_buffer" | "udp_snd_buffer" | "udp_rcv_buffer" => {
                self.tell(
                    option,
                    format!("set buffers of its sockets: {name} to {:?} bytes", shown(value)),
                    false,
                );
            }
            "ssl_ciphers" | "ssl_versions" | "ssl_reuse_sessions" => {
                self.tell(option, format!("bounded how TLS is spoken: {name} to {:?}", shown(value)), false);
            }
            "rate_limit" => self.tell(
                option,
                format!("read no more than {} KiB each second for a user", shown(value)),
                false,
            ),
            "max_retries" | "retry_timeout" => {
                self.tell(
                    option,
                    format!("tried again to connect: {name} {:?}; here it fails at once", shown(value)),
                    false,
                );
            }
            "global_ack_timeout" | "global_number" => {
                self.tell(option, format!("bounded how users wait for each other: {name}"), false);
            }
            _ => {
                let of = option.attribute("type").map_or(String::new(), |of| format!(" of {}", shown(of)));
                self.tell(option, format!("set {}{of} to {:?}", shown(name), shown(value)), false);
            }
        }
    }

    fn milliseconds(&mut self, option: &Element, value: &str) -> Option<Scalar> {
        let ms = value.parse::<u64>().ok().filter(|ms| *ms > 0 && *ms <= 86_400_000);
        if ms.is_none() && value != "infinity" {
            self.tell(option, "set a time that cannot be read", false);
        }
        ms.map(|ms| Time(std::time::Duration::from_millis(ms)).into())
    }

    fn agents(&mut self, option: &Element) {
        for child in &option.children {
            if child.name != "user_agent" {
                self.unknown(child, false);
                continue;
            }
            self.known(child, &["probability"]);
            let agent = child.text.split_whitespace().collect::<Vec<_>>().join(" ");
            let share = child.attribute("probability").and_then(|share| share.trim().parse::<f64>().ok());
            match share.filter(|share| share.is_finite() && *share >= 0.0 && !agent.is_empty()) {
                Some(share) if self.options.agents.len() < AGENTS_MAX => {
                    self.options.agents.push((share, agent));
                }
                Some(_) => self.tell(child, format!("been one of more than {AGENTS_MAX} browsers"), false),
                None => self.tell(child, "been a browser: its share or name cannot be read", false),
            }
        }
        self.options.agents.retain(|(share, _)| *share > 0.0);
        if self.options.agents.len() > 1 && self.options.agent.is_none() {
            self.options.agent = Some(self.own_variable("user_agent"));
        }
    }
}
