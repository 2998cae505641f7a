//! A fleet on the command line: `--fleet` of the verbs that drive, and how NATS is reached.

use std::path::PathBuf;

use clap::Args;
#[cfg(feature = "fleet")]
use std::sync::Arc;
#[cfg(feature = "fleet")]
use tidemark_fleet::{FleetError, ListedAgent, Server};
use tidemark_lab::RunOptions;
#[cfg(feature = "fleet")]
use tidemark_lab::drivers::fleet::{FleetOptions, OnLoss, Place};
#[cfg(feature = "fleet")]
use tidemark_lab::drivers::fleet_ssh::Machines;

use crate::args::FleetListArguments;
use crate::failure::Failure;
#[cfg(feature = "fleet")]
use crate::output;

/// Who drives in place of this process.
#[derive(Debug, Clone, Default, Args)]
pub struct FleetArguments {
    /// Agents drive in place of this process: the URL of the NATS server at which they wait, or ssh://HOST,USER@HOST:PORT,… to start them (docs/fleet.md)
    #[arg(long, value_name = "URL")]
    pub fleet: Option<String>,
    /// With --fleet: so many agents [default: all that are idle]
    #[arg(long, value_name = "N", requires = "fleet", value_parser = clap::value_parser!(u16).range(1..=999))]
    pub agents: Option<u16>,
    /// With --fleet: what becomes of the share of an agent that is lost: never-sent (it counts so), or rebalance (the others take it over) [default: never-sent]
    #[arg(long, value_name = "WHAT", value_parser = ["never-sent", "rebalance"])]
    pub on_agent_loss: Option<String>,
    /// With --fleet ssh://…: a file of settings for ssh in place of ~/.ssh/config
    #[arg(long, value_name = "FILE", requires = "fleet")]
    pub ssh_config: Option<PathBuf>,
    /// How NATS is reached.
    #[command(flatten)]
    pub nats: NatsArguments,
}

/// How NATS is reached.
#[cfg_attr(not(feature = "fleet"), allow(dead_code, reason = "what is refused is not looked at"))]
#[derive(Debug, Clone, Default, Args)]
pub struct NatsArguments {
    /// Of NATS: a file of credentials
    #[arg(long = "nats-creds", value_name = "FILE")]
    pub creds: Option<PathBuf>,
    /// Of NATS: a file of certificates that are trusted, too; TLS is spoken then
    #[arg(long, value_name = "FILE")]
    pub nats_ca: Option<PathBuf>,
    /// Of NATS: the certificate to show, with --nats-key
    #[arg(long, value_name = "FILE", requires = "nats_key")]
    pub nats_cert: Option<PathBuf>,
    /// Of NATS: its key
    #[arg(long, value_name = "FILE", requires = "nats_cert")]
    pub nats_key: Option<PathBuf>,
}

impl NatsArguments {
    /// The server at a URL.
    #[cfg(feature = "fleet")]
    pub fn server(&self, url: &str) -> Server {
        Server {
            url: url.to_owned(),
            credentials: self.creds.clone(),
            ca: self.nats_ca.clone(),
            certificate: self.nats_cert.clone().zip(self.nats_key.clone()),
        }
    }

    fn is_given(&self) -> bool {
        self.creds.is_some() || self.nats_ca.is_some() || self.nats_cert.is_some()
    }
}

impl FleetArguments {
    /// Options of a run, with agents where they are asked for.
    pub fn apply(&self, options: RunOptions) -> Result<RunOptions, Failure> {
        let Some(url) = &self.fleet else {
            if self.on_agent_loss.is_some() {
                let reason = "--on-agent-loss needs --fleet URL; add it, or leave this out";
                return Err(Failure::usage(reason));
            }
            return match self.nats.is_given() {
                true => Err(Failure::usage(
                    "--nats-creds, --nats-ca and --nats-cert are of --fleet; give that, too",
                )),
                false => Ok(options),
            };
        };
        self.with_agents(url, options)
    }

    #[cfg(feature = "fleet")]
    fn with_agents(&self, url: &str, options: RunOptions) -> Result<RunOptions, Failure> {
        let at = match url.strip_prefix("ssh://") {
            Some(_) if self.nats.is_given() => {
                return Err(Failure::usage("--fleet ssh:// starts a NATS of its own; leave --nats-… out"));
            }
            Some(machines) => {
                let machines = Machines::parse(machines, self.ssh_config.clone()).map_err(Failure::usage)?;
                Place::Ssh(machines, Box::default())
            }
            None if self.ssh_config.is_some() => {
                return Err(Failure::usage("--ssh-config needs --fleet ssh://…"));
            }
            None => Place::Nats(self.nats.server(url)),
        };
        let on_loss = self.on_agent_loss.as_deref().map_or(Ok(OnLoss::default()), str::parse);
        let fleet = FleetOptions {
            at,
            agents: self.agents.map(usize::from),
            threads: options.threads,
            on_loss: on_loss.map_err(|reason| Failure::usage(format!("--on-agent-loss: {reason}")))?,
        };
        Ok(RunOptions { fleet: Some(Arc::new(fleet)), ..options })
    }

    #[cfg(not(feature = "fleet"))]
    fn with_agents(&self, _: &str, _: RunOptions) -> Result<RunOptions, Failure> {
        Err(without_fleets())
    }
}

/// Shows who is there.
#[cfg(feature = "fleet")]
pub fn fleet(arguments: &FleetListArguments) -> Result<u8, Failure> {
    let agents = tidemark_fleet::look(&arguments.reach.server(&arguments.nats)).map_err(failed)?;
    let text = if arguments.json { json(&agents)? } else { table(&agents) };
    output::print(&text)?;
    Ok(tidemark_lab::EXIT_PASS)
}

/// Says that this program knows no fleet.
#[cfg(not(feature = "fleet"))]
pub fn fleet(_: &FleetListArguments) -> Result<u8, Failure> {
    Err(without_fleets())
}

/// What goes wrong in a fleet, for a person.
#[cfg(feature = "fleet")]
pub fn failed(error: FleetError) -> Failure {
    match error {
        FleetError::Usage(reason) => Failure::usage(reason),
        other => Failure::broken(other.to_string()),
    }
}

#[cfg(feature = "fleet")]
fn json(agents: &[ListedAgent]) -> Result<String, Failure> {
    let one = |agent: &ListedAgent| {
        let mut one = serde_json::to_value(&agent.presence)?;
        if let Some(object) = one.as_object_mut() {
            object.remove("instance");
            let offset_us = agent.offset.map(|offset| offset.offset_us);
            object.insert("clock_offset_us".into(), offset_us.into());
            object.insert("clock_bound_us".into(), agent.offset.map(|offset| offset.bound_us).into());
        }
        Ok(one)
    };
    let all: Result<Vec<serde_json::Value>, serde_json::Error> = agents.iter().map(one).collect();
    let text = all.and_then(|all| serde_json::to_string_pretty(&all));
    text.map(|text| format!("{text}\n")).map_err(|error| Failure::broken(error.to_string()))
}

/// A line for each agent, in columns.
#[cfg(feature = "fleet")]
fn table(agents: &[ListedAgent]) -> String {
    if agents.is_empty() {
        return "no agent is there; start one with: tidemark agent --nats URL\n".into();
    }
    let heads = ["NAME", "HOST", "CORES", "THREADS", "MEMORY", "CLOCK", "VERSION", "ALLOWS", "STATE"];
    let ms = |us: f64| us / 1_000.0;
    let row = |agent: &ListedAgent| {
        let of = &agent.presence;
        let clock = agent.offset.map_or("silent".to_owned(), |offset| {
            format!("{:+.3} ms ± {:.3}", ms(offset.offset_us as f64), ms(offset.bound_us as f64))
        });
        let state = of.run.as_ref().map_or("idle".to_owned(), |run| format!("drives {run}"));
        let memory = format!("{:.1} GiB", of.memory_bytes as f64 / (1u64 << 30) as f64);
        let (cores, threads) = (of.cores.to_string(), of.threads.to_string());
        [
            of.name.clone(),
            of.host.clone(),
            cores,
            threads,
            memory,
            clock,
            of.version.clone(),
            of.allows.clone(),
            state,
        ]
    };
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(agents.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |row: &[String; 9]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// That this program knows no fleet.
#[cfg(not(feature = "fleet"))]
pub fn without_fleets() -> Failure {
    Failure::usage(
        "this program was built without fleets; build it with: cargo build --release -p tidemark --features fleet",
    )
}

#[cfg(all(test, feature = "fleet"))]
mod tests {
    use tidemark_fleet::Presence;
    use tidemark_fleet::clock::Offset;

    use super::*;

    fn agents() -> Vec<ListedAgent> {
        let presence = |name: &str, run: Option<&str>| Presence {
            name: name.into(),
            instance: "i".into(),
            version: "0.1.0".into(),
            handover: 2,
            host: "load1".into(),
            cores: 4,
            threads: 3,
            memory_bytes: 8 << 30,
            allows: "loopback".into(),
            run: run.map(str::to_owned),
        };
        let offset = Some(Offset { offset_us: -1_500, bound_us: 80 });
        vec![
            ListedAgent { presence: presence("a", None), offset },
            ListedAgent { presence: presence("eu-1", Some("R")), offset: None },
        ]
    }

    #[test]
    fn agents_are_lines_in_columns() {
        let lines = table(&agents());
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(
            lines[0],
            "NAME  HOST   CORES  THREADS  MEMORY   CLOCK              VERSION  ALLOWS    STATE"
        );
        assert_eq!(
            lines[1],
            "a     load1  4      3        8.0 GiB  -1.500 ms ± 0.080  0.1.0    loopback  idle"
        );
        assert_eq!(
            lines[2],
            "eu-1  load1  4      3        8.0 GiB  silent             0.1.0    loopback  drives R"
        );
        assert!(table(&[]).contains("no agent is there"));
    }

    #[test]
    fn agents_are_json() {
        let all: serde_json::Value = serde_json::from_str(&json(&agents()).unwrap()).unwrap();
        assert_eq!(all[0]["name"], "a");
        assert_eq!((&all[0]["clock_offset_us"], &all[0]["clock_bound_us"]), (&(-1_500).into(), &80.into()));
        assert!(
            all[1]["clock_offset_us"].is_null() && all[1]["run"] == "R" && all[0].get("instance").is_none()
        );
    }
}
