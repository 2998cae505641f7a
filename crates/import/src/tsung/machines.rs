//! The machines of a plan: where requests go, where they come from, what is watched.

use tidemark_scenario::source::{Map, Value};

use super::{Making, shown};
use crate::xml::Element;

/// Where requests go.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Server {
    /// `http` or `https`.
    pub(super) scheme: &'static str,
    /// With its port, where that is not the scheme's own.
    pub(super) host: String,
}

impl Server {
    pub(super) fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.host)
    }
}

/// A server of an element with `host`, `port` and a type, if HTTP can be spoken there; and whether it is IPv6.
pub(super) fn server(host: &str, port: &str, kind: &str) -> Option<(Server, bool)> {
    let (kind, is_v6) = kind.strip_suffix('6').map_or((kind, false), |kind| (kind, true));
    let (scheme, own) = match kind {
        "tcp" | "websocket" => ("http", "80"),
        "ssl" | "websocket_ssl" => ("https", "443"),
        _ => return None,
    };
    if !host.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:".contains(c)) {
        return None;
    }
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let port = port.trim();
    let host = if port.is_empty() || port == own { host } else { format!("{host}:{port}") };
    Some((Server { scheme, host }, is_v6))
}

impl Making<'_> {
    /// Which machines Tsung runs on is its own matter; only addresses of its own would be seen by the system.
    pub(super) fn clients(&mut self, clients: &Element) {
        self.known(clients, &[]);
        let (machines, other): (Vec<_>, Vec<_>) =
            clients.children.iter().partition(|child| child.name == "client");
        other.into_iter().for_each(|child| self.unknown(child, false));
        for client in &machines {
            let known =
                ["host", "cpu", "type", "batch", "scan_intf", "maxusers", "use_controller_vm", "weight"];
            self.known(client, &known);
            for child in &client.children {
                match child.name.as_str() {
                    "ip" | "iprange" => {
                        self.known(child, &["value", "scan", "version"]);
                        let address = shown(child.attribute("value").unwrap_or_default());
                        self.tell(child, format!("sent from the address {address}"), false);
                    }
                    _ => self.unknown(child, false),
                }
            }
        }
        if machines.len() > 1 {
            let hosts: Vec<&str> = machines.iter().filter_map(|client| client.attribute("host")).collect();
            self.tell(clients, format!("sent from several machines: {}", shown(&hosts.join(", "))), false);
        }
    }

    pub(super) fn servers(&mut self, servers: &Element) {
        self.known(servers, &[]);
        for child in &servers.children {
            if child.name != "server" {
                self.unknown(child, false);
                continue;
            }
            self.known(child, &["host", "port", "weight", "type"]);
            let of = |name: &str| child.attribute(name).unwrap_or_default().trim();
            let made = server(of("host"), of("port"), of("type"));
            match made {
                _ if self.server.is_some() => {
                    let weight = child.attribute("weight").unwrap_or("1");
                    let would = format!(
                        "been driven by a share of the sessions (weight {weight}): all go to the first server",
                    );
                    self.tell(child, would, true);
                }
                Some((server, is_v6)) if !server.host.is_empty() => {
                    (self.server, self.is_v6) = (Some(server), is_v6);
                }
                _ => self.tell(
                    child,
                    format!(
                        "been driven as {:?} over {}: http://127.0.0.1 stands in its place",
                        shown(of("host")),
                        shown(of("type"))
                    ),
                    true,
                ),
            }
        }
    }

    /// An agent needs tidemark on the other machine, so it is off until a setting says otherwise.
    pub(super) fn monitoring(&mut self, monitoring: &Element) -> Vec<Value> {
        self.known(monitoring, &[]);
        let mut watch = Vec::new();
        for child in &monitoring.children {
            if child.name != "monitor" {
                self.unknown(child, false);
                continue;
            }
            self.known(child, &["host", "batch", "type"]);
            let host = child.attribute("host").unwrap_or_default().trim();
            let kind = child.attribute("type").unwrap_or("erlang");
            for inner in &child.children {
                match inner.name.as_str() {
                    "snmp" | "munin" if inner.name == kind => {}
                    "mysqladmin" => self.tell(inner, "asked MySQL for its figures", false),
                    _ => self.unknown(inner, false),
                }
            }
            let is_host = !host.is_empty()
                && host.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c))
                && host.starts_with(|c: char| c.is_ascii_alphanumeric());
            let is_agent = kind == "erlang" && child.attribute("batch") != Some("true") && is_host;
            if is_agent && ["localhost", "127.0.0.1"].contains(&host) {
                self.tell(
                    child,
                    "shown CPU and memory of this machine: `watch` names the processes that are meant",
                    false,
                );
            } else if is_agent {
                let comment = "whether other machines are watched over ssh, which needs tidemark there";
                let on = self.settings.named("watch".into(), "watch", "watch_machines", comment, false);
                let when = format!("${{{on}}}");
                watch.push(Map::from([("agent", format!("ssh {host}")), ("when", when)]).into());
                self.tell(
                    child,
                    "watched this machine: it is under `watch`, and off until `--set watch=true`",
                    false,
                );
            } else {
                self.tell(child, format!("watched {} by {}", shown(host), shown(kind)), false);
            }
        }
        watch
    }
}
