//! Price files: what machines cost, and which tier of a system stands on which. They are read as strictly as scenarios.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use jiff::civil::Date;
use serde_json::Value;
use tidemark_record::bill::Amount;

use crate::diagnostic::{Diagnostics, did_you_mean};
use crate::grammar::check::check;
use crate::grammar::kinds::{Bandwidth, Decimal, Size, Text, nodes};
use crate::grammar::record::{Kind, record};
use crate::grammar::{Keys, Scalar, Shape};
use crate::load::{alone, read_bounded};
use crate::reader::{Checker, Reader};
use crate::schema;
use crate::settings::Settings;
use crate::sink::Sink;
use crate::yaml::{self, Node};

/// Most cores of a machine.
const CORES_MAX: u64 = 65_536;

/// A price file as an example; it says so in its first line.
pub const EXAMPLE: &str = include_str!("prices/example.yaml");

/// Which tiers a kind of machine is for where a price file names no tier of this name.
pub const ROLES: [&str; 6] = ["web", "services", "balancer", "stores", "watched", "driver"];

/// What machines cost. Watts and factors are exact, as money is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices {
    /// Of what money they are.
    pub currency: String,
    /// Where they are from.
    pub source: String,
    /// The day on which they were so: `2026-11-29`.
    pub date: String,
    /// Kinds of machines by name.
    pub machines: BTreeMap<String, MachineKind>,
    /// The kind of every tier that none is named for.
    pub machine: Option<String>,
    /// Kinds of machines by tier, or by one of [`ROLES`].
    pub tiers: BTreeMap<String, String>,
    /// The same of the command line; they go before the file's.
    pub given: BTreeMap<String, String>,
    /// A kilowatt-hour.
    pub kwh: Option<Amount>,
    /// By which prices have risen since a year.
    pub inflation: BTreeMap<u16, Amount>,
}

/// A kind of machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineKind {
    /// Cores, above 0; 0.25 is a quarter of one.
    pub cores: Amount,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Disk, bytes.
    pub disk_bytes: Option<u64>,
    /// Network, bytes each second.
    pub network_bytes_per_s: Option<u64>,
    /// An hour on demand.
    pub hour: Amount,
    /// An hour where it is reserved.
    pub reserved_hour: Option<Amount>,
    /// An hour at spot prices.
    pub spot_hour: Option<Amount>,
    /// Watts while it is idle.
    pub idle_watts: Option<Amount>,
    /// Watts of a busy core, beside those.
    pub core_watts: Option<Amount>,
}

nodes! {
    pub(crate) Machines = Shape::Map(Keys::Text("kinds of machines"), &Shape::Record(Machine::record));
    pub(crate) Tiers = Shape::Map(Keys::Text("tiers"), &Shape::Scalar(Scalar::Text));
    pub(crate) Inflation = Shape::Map(Keys::Text("years"), &Shape::Scalar(Scalar::Decimal));
}

record! {
    /// What machines cost, and which tier stands on which.
    pub(crate) struct PriceFile("prices", "a price file") {
        currency (required): Text = "The money: USD.",
        source (required): Text = "Where the prices are from.",
        date (required): Text = "The day on which they were so: 2026-11-29.",
        machines (required): Machines = "Kinds of machines by name.",
        machine: Text = "The kind of every tier that `tiers` does not name.",
        tiers: Tiers = "Kinds of machines by tier: the name of a service or store, or `web` (what is driven), `services`, \
                        `balancer`, `stores`, `watched`, `driver`.",
        energy: Power<'n> = "What energy costs.",
        inflation: Inflation = "By which factor prices have risen since a year: {2014: 1.4}.",
    }
}

record! {
    /// A kind of machine.
    pub(crate) struct Machine("machine", "a kind of machine") {
        cores (required): Decimal = "Cores: 2, or 0.25.",
        memory (required): Size = "Memory: 8GiB.",
        disk: Size = "Disk; for the reader.",
        network: Bandwidth = "Network: 1GB/s; for the reader.",
        hour (required): Decimal = "Price of an hour.",
        reserved_hour: Decimal = "Price of an hour where the machine is reserved.",
        spot_hour: Decimal = "Price of an hour at spot prices.",
        idle_watts: Decimal = "Watts that it draws while it is idle.",
        core_watts: Decimal = "Watts that a busy core draws beside those.",
    }
}

record! {
    /// What energy costs.
    pub(crate) struct Power("energy", "a block of energy") {
        kwh (required): Decimal = "Price of a kilowatt-hour.",
    }
}

impl Prices {
    /// Reads a price file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(path: &Path) -> Result<Prices, Diagnostics> {
        let name = path.display().to_string();
        let bytes = read_bounded(path).map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => "; tidemark cost --example > prices.yaml writes one",
                _ => "",
            };
            alone(&name, format!("cannot read the price file: {error}{hint}"))
        })?;
        let text = String::from_utf8(bytes).map_err(|_| alone(&name, "this is not UTF-8 text".into()))?;
        Prices::parse(&name, &text)
    }

    /// Reads a price file's text; `name` stands before what is wrong.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(name: &str, text: &str) -> Result<Prices, Diagnostics> {
        let sink = Sink::new(name, text);
        let empty = "the price file is empty; tidemark cost --example > prices.yaml writes one";
        let prices = yaml::read_or(&sink, empty).and_then(|root| {
            let settings = Settings::default();
            let reader = Reader { sink: &sink, settings: &settings, checker: Checker::default() };
            check(&root, &Shape::Record(PriceFile::record), "the price file", &reader);
            // what is wrong with its shape has been told
            if sink.has_errors() { None } else { prices_of(&PriceFile::read(&root, &reader)?, &reader) }
        });
        match prices {
            Some(prices) if !sink.has_errors() => Ok(prices),
            _ => Err(sink.into_diagnostics()),
        }
    }

    /// The kind of machine that a tier stands on: by its name or its role on the command line, else by the same in the file,
    /// else that of every other.
    pub fn machine_of(&self, tier: &str, role: &str) -> Option<(&str, &MachineKind)> {
        let of = |map: &'_ BTreeMap<String, String>| map.get(tier).or_else(|| map.get(role)).cloned();
        let name = of(&self.given).or_else(|| of(&self.tiers)).or_else(|| self.machine.clone())?;
        self.machines.get_key_value(&name).map(|(name, kind)| (name.as_str(), kind))
    }

    /// Has a tier stand on a kind of machine, whatever the file says.
    ///
    /// # Errors
    /// There is no such kind, with the nearest one; or the tier has one already.
    pub fn place(&mut self, tier: &str, machine: &str) -> Result<(), String> {
        unknown_machine(machine, self.machines.keys().map(String::as_str)).map_or(Ok(()), Err)?;
        match self.given.insert(tier.to_owned(), machine.to_owned()) {
            Some(other) => Err(format!("{tier} has {other} already; name one kind of machine for it")),
            None => Ok(()),
        }
    }
}

fn unknown_machine<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    if known.clone().any(|of| of == name) {
        return None;
    }
    let mut hint = did_you_mean(name, known.clone());
    if hint.is_empty() {
        hint = format!("; there are {}", known.collect::<Vec<_>>().join(", "));
    }
    Some(format!("unknown kind of machine \"{name}\"{hint}"))
}

fn cores(of: &Machine<'_>, sink: &Sink<'_>) -> Option<Amount> {
    let cores = of.cores.value?;
    let wrong = match cores {
        Amount::ZERO => "is too small: a machine has at least a part of a core".to_owned(),
        most if most > Amount::whole(CORES_MAX) => format!("is too large; at most {CORES_MAX}"),
        cores => return Some(cores),
    };
    of.cores.error(sink, format!("{cores} {wrong}"));
    None
}

fn prices_of(file: &PriceFile<'_>, reader: &Reader<'_>) -> Option<Prices> {
    let sink = reader.sink;
    let mut machines = BTreeMap::new();
    for (name, node) in file.machines.value?.entries() {
        let of = Machine::read(node, reader)?;
        machines.insert(
            name.text()?.to_owned(),
            MachineKind {
                cores: cores(&of, sink)?,
                memory_bytes: of.memory.value?,
                disk_bytes: of.disk.value,
                network_bytes_per_s: of.network.value,
                hour: of.hour.value?,
                reserved_hour: of.reserved_hour.value,
                spot_hour: of.spot_hour.value,
                idle_watts: of.idle_watts.value,
                core_watts: of.core_watts.value,
            },
        );
    }
    if machines.is_empty() {
        file.machines.error(
            sink,
            "there is no kind of machine; write one like m.large: {cores: 2, memory: 8GiB, hour: 0.10}",
        );
    }
    let known = |node: &Node, name: &str| {
        if let Some(reason) = unknown_machine(name, machines.keys().map(String::as_str)) {
            sink.error(node, reason);
        }
    };
    if let Some((node, name)) = file.machine.node().zip(file.machine.value.as_deref()) {
        known(node, name);
    }
    let mut tiers = BTreeMap::new();
    for (tier, node) in file.tiers.value.map(Node::entries).unwrap_or_default() {
        let name = reader.text(node)?;
        known(node, &name);
        tiers.insert(tier.text()?.to_owned(), name);
    }
    let date = file.date.value.clone()?;
    if date.parse::<Date>().map_or(true, |day| day.to_string() != date) {
        file.date.error(sink, format!("\"{date}\" is no day; write it like 2026-11-29"));
    }
    let mut inflation = BTreeMap::new();
    for (year, node) in file.inflation.value.map(Node::entries).unwrap_or_default() {
        match year.text()?.parse() {
            Ok(number @ 1900..=2999) => {
                if inflation.insert(number, Decimal::read(node, reader)?).is_some() {
                    sink.error(year, format!("the year {number} is here twice"));
                }
            }
            _ => sink.error(year, "this is no year; write it like 2014: 1.4"),
        }
    }
    Some(Prices {
        currency: file.currency.value.clone()?,
        source: file.source.value.clone()?,
        date,
        machines,
        machine: file.machine.value.clone(),
        tiers,
        kwh: file.energy.value.as_ref().and_then(|energy| energy.kwh.value),
        inflation,
        given: BTreeMap::new(),
    })
}

/// The JSON Schema of price files, for editors.
pub fn json_schema() -> Value {
    schema::of_record("Prices of machines", PriceFile::record())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        Prices::parse("p.yaml", text).unwrap_err().to_string()
    }

    #[test]
    fn the_example_is_right_and_says_that_it_is_one() {
        let prices = Prices::parse("example", EXAMPLE).unwrap();
        assert!(EXAMPLE.lines().next().unwrap().contains("EXAMPLE of 2026-"));
        assert!(prices.source.contains("example"));
        let of = |tier: &str, role: &str| prices.machine_of(tier, role).unwrap().0;
        assert_eq!((of("redis", "stores"), of("auth", "services")), ("r.large", "m.large"));
        let large = &prices.machines["m.large"];
        assert_eq!((large.hour.to_string(), large.memory_bytes), ("0.1".to_owned(), 8 << 30));
        // so that no sum of the example lacks a machine
        let is_whole = |of: &MachineKind| {
            [of.reserved_hour, of.spot_hour, of.core_watts, of.idle_watts].iter().all(Option::is_some)
        };
        assert!(prices.machines.values().all(is_whole));
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        let text = EXAMPLE.replace("stores: r.large", "stores: r.large\n  redis: r.large");
        let mut prices = Prices::parse("p.yaml", &text).unwrap();
        prices.place("stores", "m.small").unwrap();
        assert_eq!(prices.machine_of("redis", "stores").unwrap().0, "m.small");
        prices.place("redis", "m.large").unwrap();
        assert_eq!(prices.machine_of("redis", "stores").unwrap().0, "m.large");
        assert!(prices.place("redis", "m.large").unwrap_err().contains("already"));
        assert!(prices.place("web", "m.larg").unwrap_err().contains("did you mean m.large?"));
        let quarter = EXAMPLE.replace("cores: 1,", "cores: 0.25,");
        let prices = Prices::parse("p.yaml", &quarter).unwrap();
        assert_eq!(prices.machines["m.small"].cores.to_string(), "0.25");
    }

    #[test]
    fn the_document_has_one_that_is_right() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cost.md");
        let text = std::fs::read_to_string(path).unwrap();
        let block = text.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
        assert_eq!(Prices::parse("cost.md", block).unwrap().machines.len(), 2);
    }

    #[test]
    fn a_mistake_is_told_with_its_line_and_the_nearest_word() {
        let told = wrong(&EXAMPLE.replace("reserved_hour: 0.06", "reservd_hour: 0.06"));
        assert!(
            told.starts_with("p.yaml:13:5: unknown key \"reservd_hour\"; did you mean reserved_hour?"),
            "{told}"
        );
        let told = wrong(&EXAMPLE.replace("stores: r.large", "stores: r.larg"));
        assert!(
            told.starts_with("p.yaml:20:11: unknown kind of machine \"r.larg\"; did you mean r.large?"),
            "{told}"
        );
        for (from, to, says) in [
            ("hour: 0.10", "hour: -1", "\"-1\" is not a number like 0.0416"),
            ("hour: 0.10", "hour: 1e3", "is not a number like 0.0416"),
            ("hour: 0.10", "hour: 0.0000000001", "9 decimals at most"),
            ("hour: 0.10", "hour: 1000001", "larger than 1000000"),
            ("cores: 1,", "cores: 0,", "too small"),
            ("cores: 1,", "cores: 100000,", "too large"),
            ("date: 2026-11-29", "date: 2026-13-29", "is no day"),
            ("date: 2026-11-29", "date: 2026-11-29T10:00", "is no day"),
            ("# inflation: {2014: 1.4}", "inflation: {2014: 1.4, 02014: 1.5}", "the year 2014 is here twice"),
            ("currency: USD", "# USD", "needs the key \"currency\""),
            ("# inflation: {2014: 1.4}", "inflation: {14: 1.4}", "is no year"),
        ] {
            let told = wrong(&EXAMPLE.replacen(from, to, 1));
            assert!(told.contains(says), "{to}: {told}");
        }
        assert!(wrong("# nothing\n").contains("the price file is empty"));
        let missing = Prices::read(Path::new("/nonexistent/p.yaml")).unwrap_err().to_string();
        assert!(missing.contains("cost --example > prices.yaml"), "{missing}");
    }

    #[test]
    fn the_shipped_schema_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/prices.schema.json");
        let shipped: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let how = "run: cargo run -p tidemark-scenario --example schema prices > docs/prices.schema.json";
        assert!(shipped == json_schema(), "{how}");
    }
}
