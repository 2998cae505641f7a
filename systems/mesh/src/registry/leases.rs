//! Who is registered, and for how long yet.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

/// The longest name of an application or an instance, in bytes.
const NAME_BYTES_MAX: usize = 200;
/// Changes are told for so long, and no more of them.
const CHANGES_MS: u64 = 180_000;
const CHANGES_MAX: usize = 1000;
/// What holds where an instance does not say it, as Eureka has it.
const LEASE_S: u64 = 90;
/// The longest lease.
const LEASE_S_MAX: u64 = 3600;

/// Why an instance is not registered.
#[derive(Debug)]
pub(super) enum Refused {
    /// What it says of itself cannot be.
    Wrong(String),
    /// There is no room.
    Full(String),
}

#[derive(Debug)]
struct Lease {
    instance: Value,
    lease_ms: u64,
    renewed_ms: u64,
}

/// All leases, by application and instance.
#[derive(Debug)]
pub(super) struct Leases {
    apps: BTreeMap<String, BTreeMap<String, Lease>>,
    count: usize,
    max: usize,
    /// When, the application, and the instance with what became of it.
    changes: VecDeque<(u64, String, Value)>,
    versions: u64,
}

/// Most values, also within others, that describe an instance; Eureka's own clients have about 40.
const VALUES_MAX: usize = 256;

/// How many values there are within a value, itself included; counting ends soon behind `enough`.
fn values_in(value: &Value, enough: usize) -> usize {
    let mut count = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop().filter(|_| count <= enough) {
        count += 1;
        match value {
            Value::Array(list) => open.extend(list.iter().take(enough + 1)),
            Value::Object(map) => open.extend(map.values().take(enough + 1)),
            _ => {}
        }
    }
    count
}

impl Leases {
    pub(super) fn new(max: usize) -> Self {
        Leases { apps: BTreeMap::new(), count: 0, max, changes: VecDeque::new(), versions: 1 }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn register(&mut self, app: &str, mut described: Value, now_ms: u64) -> Result<(), Refused> {
        let mut instance = described.get_mut("instance").map(Value::take).unwrap_or_default();
        let text = |name: &str| {
            let text = instance[name].as_str().filter(|text| is_name(text));
            text.map(str::to_owned).ok_or_else(|| {
                Refused::Wrong(format!("{name} is missing, or longer than {NAME_BYTES_MAX} bytes"))
            })
        };
        // of its own clients the older ones say only where they are
        let id = text("instanceId").or_else(|_| text("hostName"))?;
        if text("ipAddr")?.parse::<std::net::IpAddr>().is_err() {
            return Err(Refused::Wrong("ipAddr is not an IP address".into()));
        }
        // what is kept of a text can be a hundred times as large
        if values_in(&instance, VALUES_MAX) > VALUES_MAX {
            return Err(Refused::Wrong(format!("an instance is described by more than {VALUES_MAX} values")));
        }
        if !is_name(app) {
            return Err(Refused::Wrong(format!("the name is longer than {NAME_BYTES_MAX} bytes")));
        }
        let app = app.to_uppercase();
        let is_known = self.apps.get(&app).is_some_and(|instances| instances.contains_key(&id));
        if !is_known && self.count >= self.max {
            return Err(Refused::Full(format!("{} instances are registered, the limit", self.max)));
        }
        let lease_s = instance["leaseInfo"]["durationInSecs"].as_u64().unwrap_or(LEASE_S);
        let lease_ms = lease_s.clamp(1, LEASE_S_MAX) * 1000;
        instance["app"] = app.clone().into();
        instance["actionType"] = "ADDED".into();
        self.note(now_ms, &app, instance.clone());
        let lease = Lease { instance, lease_ms, renewed_ms: now_ms };
        self.apps.entry(app).or_default().insert(id, lease);
        self.count += usize::from(!is_known);
        Ok(())
    }

    pub(super) fn renew(&mut self, app: &str, id: &str, now_ms: u64) -> bool {
        let lease = self.apps.get_mut(&app.to_uppercase()).and_then(|instances| instances.get_mut(id));
        lease.map(|lease| lease.renewed_ms = now_ms).is_some()
    }

    pub(super) fn cancel(&mut self, app: &str, id: &str, now_ms: u64) -> bool {
        let app = app.to_uppercase();
        let Some(instances) = self.apps.get_mut(&app) else { return false };
        let Some(mut lease) = instances.remove(id) else { return false };
        if instances.is_empty() {
            self.apps.remove(&app);
        }
        self.count -= 1;
        lease.instance["actionType"] = "DELETED".into();
        self.note(now_ms, &app, lease.instance);
        true
    }

    /// Forgets all whose lease is over; their ids.
    pub(super) fn expire(&mut self, now_ms: u64) -> Vec<String> {
        let mut over = Vec::new();
        for (app, instances) in &self.apps {
            let is_over = |lease: &Lease| now_ms.saturating_sub(lease.renewed_ms) > lease.lease_ms;
            let ids = instances.iter().filter(|(_, lease)| is_over(lease)).map(|(id, _)| id);
            over.extend(ids.map(|id| (app.clone(), id.clone())));
        }
        over.retain(|(app, id)| self.cancel(app, id, now_ms));
        over.into_iter().map(|(_, id)| id).collect()
    }

    fn note(&mut self, now_ms: u64, app: &str, instance: Value) {
        if self.changes.len() >= CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back((now_ms, app.to_owned(), instance));
        self.versions += 1;
    }

    /// How many there are of each status, which is how a client sees that it has missed none.
    fn hash(&self) -> String {
        let mut counts = BTreeMap::<&str, usize>::new();
        for lease in self.apps.values().flat_map(BTreeMap::values) {
            *counts.entry(lease.instance["status"].as_str().unwrap_or("UP")).or_default() += 1;
        }
        counts.iter().map(|(status, count)| format!("{status}_{count}_")).collect()
    }

    pub(super) fn all(&self) -> Value {
        let apps: Vec<_> = self.apps.iter().map(|(name, instances)| shown(name, instances)).collect();
        json!({"applications": {
            "versions__delta": self.versions.to_string(), "apps__hashcode": self.hash(), "application": apps,
        }})
    }

    pub(super) fn of_app(&self, app: &str) -> Option<Value> {
        let app = app.to_uppercase();
        self.apps.get(&app).map(|instances| json!({"application": shown(&app, instances)}))
    }

    pub(super) fn one(&self, app: &str, id: &str) -> Option<Value> {
        let lease = self.apps.get(&app.to_uppercase())?.get(id)?;
        Some(json!({"instance": lease.instance}))
    }

    /// What has changed lately.
    pub(super) fn delta(&mut self, now_ms: u64) -> Value {
        self.changes.retain(|(at_ms, ..)| now_ms.saturating_sub(*at_ms) <= CHANGES_MS);
        let mut apps = BTreeMap::<&str, Vec<&Value>>::new();
        self.changes.iter().for_each(|(_, app, instance)| apps.entry(app).or_default().push(instance));
        let apps: Vec<_> = apps.iter().map(|(name, list)| json!({"name": name, "instance": list})).collect();
        json!({"applications": {
            "versions__delta": self.versions.to_string(), "apps__hashcode": self.hash(), "application": apps,
        }})
    }
}

fn shown(name: &str, instances: &BTreeMap<String, Lease>) -> Value {
    let list: Vec<_> = instances.values().map(|lease| &lease.instance).collect();
    json!({"name": name, "instance": list})
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(id: &str, lease_s: u64) -> Value {
        json!({"instance": {"instanceId": id, "ipAddr": "127.0.0.1", "status": "UP",
            "leaseInfo": {"durationInSecs": lease_s}}})
    }

    #[test]
    fn whoever_is_silent_for_the_time_of_its_lease_is_forgotten() {
        let mut leases = Leases::new(9);
        leases.register("auth", described("a", 2), 0).unwrap();
        leases.register("AUTH", described("b", 2), 0).unwrap();
        assert!(leases.renew("Auth", "a", 1_500) && !leases.renew("auth", "c", 1_500));
        assert_eq!((leases.expire(2_000).len(), leases.expire(2_001)), (0, vec!["b".to_owned()]));
        assert_eq!(leases.of_app("auth").unwrap()["application"]["instance"].as_array().unwrap().len(), 1);
        assert!(!leases.renew("auth", "b", 2_001) && leases.cancel("auth", "a", 2_001));
        assert_eq!((leases.of_app("auth"), leases.count()), (None, 0));
        let delta = leases.delta(2_001);
        let actions = delta["applications"]["application"][0]["instance"].as_array().unwrap();
        let actions: Vec<_> = actions.iter().map(|change| change["actionType"].as_str().unwrap()).collect();
        assert_eq!(actions, ["ADDED", "ADDED", "DELETED", "DELETED"]);
        let later = leases.delta(2_002 + CHANGES_MS);
        assert_eq!(later["applications"]["application"], json!([]));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut leases = Leases::new(2);
        for id in ["a", "b", "a"] {
            leases.register("auth", described(id, 90), 0).unwrap();
        }
        assert!(matches!(leases.register("auth", described("c", 90), 0), Err(Refused::Full(_))));
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for (app, body) in
            [("auth", described(&long, 9)), (long.as_str(), described("a", 9)), ("auth", json!([]))]
        {
            assert!(matches!(leases.register(app, body, 0), Err(Refused::Wrong(_))));
        }
        for now_ms in 0..2 * CHANGES_MAX as u64 {
            leases.register("auth", described("a", 90), now_ms).unwrap();
        }
        assert_eq!(leases.changes.len(), CHANGES_MAX);
    }
}
