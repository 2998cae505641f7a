//! What is deployed: the services of a scenario, who calls whom, and what each is told.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::path::Path;

use tidemark_lab::system::ShippedCommand;
use tidemark_lab::tier::{INSTANCE_SETTINGS, service_fact};
use tidemark_scenario::plan::{Product, SYSTEM_TARGET, StoreOrigin, System, SystemOrigin};
use tidemark_scenario::secrets::{is_secret, password_in};
use tidemark_scenario::{
    Experiment, Plan, StoreFact, WrongSetting, service_facts, store_facts, with_service_facts,
    with_store_facts,
};
use tidemark_service::{Limits, Setting, SettingError, Settings, SystemEntry};

use crate::failure::Failure;
use crate::scenario::{load, nearest_or_all};
use crate::{settings, systems};

/// What one that ends does beside answering what it has: it leaves its registry and closes its stores.
const CLEAN_UP_S: u64 = 10;
/// Settings, beside those of stores, that are addresses.
const ADDRESSES: [&str; 3] = ["auth", "data", "registry"];

/// A reference system, ready to be written down.
pub struct Deployment {
    /// What it is called.
    pub name: &'static str,
    /// Its services, in the order in which they are started; what is called by users is last.
    pub parts: Vec<Part>,
    /// Variables of the environment with what is secret.
    pub secrets: BTreeMap<String, String>,
}

/// A service.
pub struct Part {
    /// What it is called everywhere: `airline-web`.
    pub name: String,
    /// Whether users call it.
    pub is_entry: bool,
    /// How many instances there are at the beginning.
    pub instances: usize,
    /// Whether it keeps data on disk.
    pub keeps_data: bool,
    /// Whether instances share what they know, so that there may be any number of them.
    pub can_grow: bool,
    /// Those that it calls.
    pub calls: Vec<String>,
    /// Those that call it.
    pub called_by: Vec<String>,
    /// Ports of what it calls that is not deployed; none where one of them is not known.
    pub outside: Option<BTreeSet<u16>>,
    /// Settings that are in the environment, with the variable of each.
    pub secrets: Vec<(String, String)>,
    /// How many seconds it may take until it is ready.
    pub ready_within_s: u64,
    /// How many it may take until it has ended.
    pub stops_within_s: u64,
    /// What it serves, with `{services.NAME.FACT}` in its settings.
    system: System,
    serves: &'static SystemEntry,
}

impl Deployment {
    /// The services of a scenario with these settings: of the scenario, or of the services that take them.
    pub fn of(name: &'static str, scenario: &str, given: &[(String, String)]) -> Result<Deployment, Failure> {
        let (of_scenario, of_services): (Vec<_>, Vec<_>) =
            given.iter().cloned().partition(|(name, _)| settings::has(scenario, name));
        let Experiment::One(plan) = load(scenario, &of_scenario)? else {
            return Err(Failure::broken(format!("{scenario} is a comparison")));
        };
        let mut parts = Vec::new();
        for system in plan.services.iter().chain([&plan.system]) {
            parts.push(part(name, system, &plan, &of_services)?);
        }
        for (setting, value) in &of_services {
            if !parts.iter().any(|part| part.takes(setting)) {
                let mut known = settings::names(scenario);
                known.extend(parts.iter().flat_map(|part| part.settings()).map(str::to_owned));
                let hint = nearest_or_all(setting, known.iter().map(String::as_str));
                return Err(Failure::usage(format!("--set {setting}: {name} has no such setting; {hint}")));
            }
            if !parts.iter().any(|part| part.is_told(setting, value)) {
                let reason = "nothing uses it with the other settings; choose what it is for, too";
                return Err(Failure::usage(format!("--set {setting}: {reason}")));
            }
        }
        if let Some(entry) = parts.last_mut() {
            entry.is_entry = true;
        }
        connect(&mut parts);
        let mut secrets = BTreeMap::new();
        parts.iter_mut().for_each(|part| part.hide_secrets(&mut secrets));
        for (variable, value) in &secrets {
            if value.contains(['\'', '\\']) {
                let reason = "has ' or \\ in it, which files of variables cannot hold; write %27 and %5C in an address";
                return Err(Failure::usage(format!("the value for {variable} {reason}")));
            }
        }
        Ok(Deployment { name, parts, secrets })
    }

    /// The part of this name.
    pub fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.name == name)
    }
}

/// One service, with all that it is told.
fn part(deployment: &str, system: &System, plan: &Plan, given: &[(String, String)]) -> Result<Part, Failure> {
    let serves = match &system.origin {
        SystemOrigin::Shipped(name) => systems::shipped(name),
        _ => None,
    };
    let Some(serves) = serves else {
        return Err(Failure::broken(format!("{} is no shipped system", system.tier.name)));
    };
    let mut part = Part {
        name: name_of(deployment, &system.tier.name),
        is_entry: false,
        instances: system.tier.instances,
        keeps_data: false,
        can_grow: false,
        calls: Vec::new(),
        called_by: Vec::new(),
        outside: None,
        secrets: Vec::new(),
        ready_within_s: system.ready_within.as_secs().max(1),
        stops_within_s: 0,
        system: system.clone(),
        serves,
    };
    part.take(given)?;
    part.forget_unused_stores();
    part.find_stores(plan)?;
    part.decide()?;
    Ok(part)
}

/// What a service is called beside those of other systems; what is driven may be the whole system.
fn name_of(deployment: &str, service: &str) -> String {
    match service {
        SYSTEM_TARGET => deployment.to_owned(),
        service => format!("{deployment}-{service}"),
    }
}

/// Where a store is that is there already.
fn of_store(plan: &Plan, fact: &StoreFact<'_>) -> Option<String> {
    let store = plan.stores.iter().find(|store| store.name == fact.store)?;
    match (&store.origin, fact.fact) {
        (StoreOrigin::Url(url), "url") => Some(url.clone()),
        (StoreOrigin::Addresses(all), "addresses") => Some(all.join(",")),
        _ => None,
    }
}

/// Finds out who calls whom: a service calls those that its settings name, and those above it in the same registry.
fn connect(parts: &mut [Part]) {
    for caller in 0..parts.len() {
        let mut calls = BTreeSet::new();
        for value in parts[caller].system.settings.values() {
            for fact in service_facts(value) {
                calls.extend(parts.iter().position(|part| part.is_service(fact.store)));
            }
        }
        let registry = |part: &Part| part.system.settings.get("registry").cloned();
        if let Some(own) = registry(&parts[caller]) {
            calls.extend((0..caller).filter(|other| registry(&parts[*other]).as_ref() == Some(&own)));
        }
        for called in calls {
            let (of_caller, of_called) = (parts[caller].name.clone(), parts[called].name.clone());
            parts[caller].calls.push(of_called);
            parts[called].called_by.push(of_caller);
        }
        parts[caller].outside = parts[caller].ports_outside();
    }
}

/// Where a server listens whose address does not say it.
fn usual_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "etcd" => Some(2379),
        "mysql" | "mariadb" => Some(3306),
        "postgres" | "postgresql" => Some(5432),
        "redis" => Some(6379),
        _ => None,
    }
}

impl Part {
    /// Whether the scenario calls it so.
    fn is_service(&self, name: &str) -> bool {
        self.system.tier.name == name
    }

    fn settings(&self) -> impl Iterator<Item = &'static str> {
        self.serves.settings.iter().chain(Limits::SETTINGS).map(|setting| setting.name)
    }

    fn takes(&self, setting: &str) -> bool {
        self.settings().any(|name| name == setting)
    }

    /// Whether it is started with this setting, which need not be said where it is the default.
    fn is_told(&self, setting: &str, value: &str) -> bool {
        self.system.settings.contains_key(setting)
            || systems::default_of(self.serves.name, setting) == Some(value)
    }

    /// Takes those of the settings given that it has, and leaves out those that are as they are anyway.
    fn take(&mut self, given: &[(String, String)]) -> Result<(), Failure> {
        let [(drain, usual), _] = INSTANCE_SETTINGS;
        self.system.settings.entry(drain.into()).or_insert_with(|| usual.into());
        for (name, value) in given {
            if !self.takes(name) {
                continue;
            }
            let wrong = |text: String| Failure::usage(format!("--set {name}: {text}"));
            systems::check_setting(self.serves.name, name, value)
                .map_err(|(WrongSetting::Name(text) | WrongSetting::Value(text))| wrong(text))?;
            self.system.settings.insert(name.clone(), value.clone());
        }
        let name = self.serves.name;
        self.system
            .settings
            .retain(|setting, value| systems::default_of(name, setting) != Some(value.as_str()));
        Ok(())
    }

    /// Writes down where stores are that are there already. Others have to be said.
    fn find_stores(&mut self, plan: &Plan) -> Result<(), Failure> {
        for (name, value) in &mut self.system.settings {
            *value = with_store_facts(value, &|fact| of_store(plan, fact));
            if store_facts(value).next().is_some() {
                let shape = self.serves.settings.iter().find(|setting| setting.name == name);
                let shape = shape.map_or("ADDRESS", |setting| setting.allowed);
                return Err(Failure::usage(format!(
                    "{} needs a store that is not deployed with it; say where it is: --set {name}=… ({shape})",
                    self.name
                )));
            }
            if value.chars().any(char::is_control) {
                let reason = "a value has no line ends or other control characters";
                return Err(Failure::usage(format!("--set {name}: {reason}")));
            }
        }
        Ok(())
    }

    /// Finds out what follows from its settings.
    fn decide(&mut self) -> Result<(), Failure> {
        let wrong = |error: SettingError| Failure::usage(format!("--set: {error}"));
        // where other services are is not known yet, only that it is somewhere
        let somewhere = self.settings_at(&|_| vec!["127.0.0.1:1".into()]);
        let uses_directory = (self.serves.uses_directory)(&somewhere).map_err(wrong)?;
        self.keeps_data = uses_directory && self.system.durability.as_deref() != Some("memory");
        self.system.keeps_nothing = !self.keeps_data;
        let is_embedded = self.serves.settings.iter().any(|setting| self.value(setting) == "embedded");
        self.can_grow = !uses_directory && !is_embedded && self.serves.name != systems::REGISTRY;
        let limits = Limits::read(&Settings::new(self.serves.settings, &somewhere)).map_err(wrong)?;
        self.stops_within_s = (limits.drain + limits.stop_deadline).as_secs() + CLEAN_UP_S;
        Ok(())
    }

    /// What it is, in a few words.
    pub fn about(&self) -> &'static str {
        self.serves.description
    }

    /// What a setting is, also where nobody says it.
    fn value<'p>(&'p self, setting: &'p Setting) -> &'p str {
        self.system.settings.get(setting.name).map_or(setting.default, String::as_str)
    }

    /// Leaves out addresses of stores that none of its settings chooses: whoever does not know one cannot give it away.
    fn forget_unused_stores(&mut self) {
        let chooses = |product: &Product| {
            self.serves.settings.iter().any(|setting| self.value(setting) == product.name())
        };
        let used: Vec<&str> =
            Product::ALL.iter().filter(|one| chooses(one)).map(|product| product.setting()).collect();
        let is_unused =
            |name: &str| Product::ALL.iter().any(|one| one.setting() == name) && !used.contains(&name);
        self.system.settings.retain(|name, _| !is_unused(name));
    }

    /// Its settings where services are at these addresses, by their names in the scenario.
    fn settings_at(&self, addresses: &dyn Fn(&str) -> Vec<String>) -> BTreeMap<String, String> {
        let known = |fact: &StoreFact<'_>| {
            let all = addresses(fact.store);
            service_fact(fact.fact, all.first()?, &all)
        };
        let at = |value: &String| with_service_facts(value, &known);
        self.system.settings.iter().map(|(name, value)| (name.clone(), at(value))).collect()
    }

    /// The words of its command line behind the program. `addresses` says where a part of this name is reached.
    pub fn words(
        &self,
        deployment: &str,
        listen: String,
        data: &str,
        addresses: &dyn Fn(&str) -> Vec<String>,
    ) -> Vec<String> {
        let mut system = self.system.clone();
        system.settings = self.settings_at(&|service| addresses(&name_of(deployment, service)));
        let command = ShippedCommand {
            executable: Path::new("tidemark"),
            name: self.serves.name,
            system: &system,
            listen,
            data: Path::new(data),
            events: None,
        };
        let (mut words, _) = command.words();
        for (setting, variable) in &self.secrets {
            words.extend(["--set-env".into(), format!("{setting}={variable}")]);
        }
        words.split_off(1)
    }

    /// Ports of the addresses among its settings that are of nothing here.
    fn ports_outside(&self) -> Option<BTreeSet<u16>> {
        let is_address =
            |name: &str| ADDRESSES.contains(&name) || Product::ALL.iter().any(|one| one.setting() == name);
        let mut ports = BTreeSet::new();
        for (_, value) in self.system.settings.iter().filter(|(name, _)| is_address(name)) {
            if service_facts(value).next().is_some() {
                continue;
            }
            for server in value.split(',') {
                let (scheme, rest) = server.split_once("://").unwrap_or(("", server));
                let place = rest.split(['/', '?']).next().unwrap_or(rest);
                let port = place.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
                ports.insert(port.or_else(|| usual_port(scheme))?);
            }
        }
        Some(ports)
    }

    /// Moves what is secret from its settings into variables.
    fn hide_secrets(&mut self, all: &mut BTreeMap<String, String>) {
        let is_hidden = |name: &str, value: &str| password_in(value).is_some() || is_secret(name, value);
        let (hidden, shown): (BTreeMap<_, _>, BTreeMap<_, _>) =
            take(&mut self.system.settings).into_iter().partition(|(name, value)| is_hidden(name, value));
        self.system.settings = shown;
        for (name, value) in hidden {
            let variable = format!("TIDEMARK_SETTING_{}", name.to_uppercase());
            all.insert(variable.clone(), value);
            self.secrets.push((name, variable));
        }
    }
}
