//! Eureka's REST, as JSON.

use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Registration, RegistryError, Ticket};
use crate::http::{Answered, ask};

fn refused<T>(place: &str, answered: &Answered) -> Result<T, RegistryError> {
    Err(RegistryError::Refused { place: place.to_owned(), status: answered.status.as_u16() })
}

/// An application's path. Eureka has all names in capitals.
fn app_path(path: &str, service: &str) -> String {
    format!("{path}/apps/{}", service.to_uppercase())
}

fn instance_path(path: &str, registration: &Registration) -> String {
    format!("{}/{}", app_path(path, &registration.service), registration.id())
}

/// An instance as Eureka describes it.
fn description(registration: &Registration) -> Value {
    let Registration { service, addr, lease, renew_every } = registration;
    let base = format!("http://{addr}");
    json!({ "instance": {
        "instanceId": registration.id(),
        "app": service.to_uppercase(),
        "hostName": addr.ip().to_string(),
        "ipAddr": addr.ip().to_string(),
        "status": "UP",
        "overriddenstatus": "UNKNOWN",
        "port": { "$": addr.port(), "@enabled": "true" },
        "securePort": { "$": 443, "@enabled": "false" },
        "countryId": 1,
        "vipAddress": service,
        "secureVipAddress": service,
        "homePageUrl": format!("{base}/"),
        "statusPageUrl": format!("{base}/metrics"),
        "healthCheckUrl": format!("{base}/health"),
        "dataCenterInfo": {
            "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo", "name": "MyOwn",
        },
        "leaseInfo": {
            "renewalIntervalInSecs": renew_every.as_secs().max(1), "durationInSecs": lease.as_secs(),
        },
        "metadata": {},
    }})
}

pub(super) async fn register(
    place: &str,
    path: &str,
    registration: &Registration,
) -> Result<Ticket, RegistryError> {
    let path = app_path(path, &registration.service);
    let answered = ask(place, "POST", &path, description(registration).to_string()).await?;
    if answered.status.is_success() { Ok(Ticket::new()) } else { refused(place, &answered) }
}

pub(super) async fn renew(
    place: &str,
    path: &str,
    registration: &Registration,
) -> Result<bool, RegistryError> {
    let path = format!("{}?status=UP", instance_path(path, registration));
    let answered = ask(place, "PUT", &path, String::new()).await?;
    match answered.status.as_u16() {
        200..300 => Ok(true),
        404 => Ok(false),
        _ => refused(place, &answered),
    }
}

pub(super) async fn leave(place: &str, path: &str, registration: &Registration) -> Result<(), RegistryError> {
    let answered = ask(place, "DELETE", &instance_path(path, registration), String::new()).await?;
    match answered.status.as_u16() {
        200..300 | 404 => Ok(()),
        _ => refused(place, &answered),
    }
}

pub(super) async fn find(place: &str, path: &str, service: &str) -> Result<Vec<SocketAddr>, RegistryError> {
    let answered = ask(place, "GET", &app_path(path, service), String::new()).await?;
    match answered.status.as_u16() {
        200 => read(&answered.body).map_err(|error| RegistryError::Unreadable {
            place: place.to_owned(),
            reason: error.to_string(),
        }),
        // nobody of that name
        404 => Ok(Vec::new()),
        _ => refused(place, &answered),
    }
}

#[derive(Deserialize)]
struct Answer {
    application: Application,
}

#[derive(Deserialize)]
struct Application {
    #[serde(default)]
    instance: Listed,
}

/// Some servers write a list of one as that one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Listed {
    Many(Vec<Value>),
    One(Value),
}

impl Default for Listed {
    fn default() -> Self {
        Listed::Many(Vec::new())
    }
}

#[derive(Deserialize)]
struct Instance {
    #[serde(rename = "ipAddr")]
    ip: IpAddr,
    status: String,
    port: Port,
}

#[derive(Deserialize)]
struct Port {
    #[serde(rename = "$")]
    number: Number,
}

/// Some servers write numbers as texts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Number(u16),
    Text(String),
}

/// Where the instances are that say that they are up. One that cannot be read is passed over: anybody may register.
fn read(body: &[u8]) -> Result<Vec<SocketAddr>, serde_json::Error> {
    let answer: Answer = serde_json::from_slice(body)?;
    let instances = match answer.application.instance {
        Listed::Many(instances) => instances,
        Listed::One(instance) => vec![instance],
    };
    let readable = instances.into_iter().filter_map(|one| serde_json::from_value::<Instance>(one).ok());
    let up = readable.filter(|instance| instance.status == "UP");
    let addr = |Instance { ip, port, .. }: Instance| match port.number {
        Number::Number(port) => Some(SocketAddr::new(ip, port)),
        Number::Text(port) => port.parse().ok().map(|port| SocketAddr::new(ip, port)),
    };
    Ok(up.filter_map(addr).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_every_server_are_read() {
        let instance = |port: &str, status: &str| {
            format!(r#"{{"ipAddr":"127.0.0.1","status":"{status}","port":{{"$":{port},"@enabled":"true"}}}}"#)
        };
        let up = instance("1", "UP");
        let all = format!("[{up},{},{}]", instance("2", "OUT_OF_SERVICE"), instance("\"3\"", "UP"));
        for (list, expected) in [(all.as_str(), &[1, 3][..]), (&up, &[1]), ("[]", &[])] {
            let body = format!(r#"{{"application":{{"name":"AUTH","instance":{list}}}}}"#);
            let ports: Vec<u16> = read(body.as_bytes()).unwrap().iter().map(SocketAddr::port).collect();
            assert_eq!(ports, expected, "{list}");
        }
        assert!(read(b"<application/>").is_err());
    }
}
