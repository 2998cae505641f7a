//! etcd's JSON: a key for each instance, with a lease that keeps it.

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Registration, RegistryError, Ticket};
use crate::http::ask;

/// What stands before the names of services.
const PREFIX: &str = "/tidemark/services/";

async fn call(place: &str, path: &str, body: Value) -> Result<Value, RegistryError> {
    let answered = ask(place, "POST", path, body.to_string()).await?;
    if answered.status != 200 {
        return Err(RegistryError::Refused { place: place.to_owned(), status: answered.status.as_u16() });
    }
    serde_json::from_slice(&answered.body).map_err(|error| unreadable(place, &error.to_string()))
}

fn unreadable(place: &str, reason: &str) -> RegistryError {
    RegistryError::Unreadable { place: place.to_owned(), reason: reason.to_owned() }
}

pub(super) async fn register(place: &str, registration: &Registration) -> Result<Ticket, RegistryError> {
    let granted = call(place, "/v3/lease/grant", json!({"TTL": registration.lease.as_secs()})).await?;
    let lease = granted["ID"].as_str().ok_or_else(|| unreadable(place, "there is no lease in it"))?;
    let key = format!("{PREFIX}{}/{}", registration.service, registration.id());
    // as etcd's own naming for gRPC has it
    let value = json!({"Op": 0, "Addr": registration.addr.to_string(), "Metadata": null}).to_string();
    let put = json!({"key": STANDARD.encode(key), "value": STANDARD.encode(value), "lease": lease});
    call(place, "/v3/kv/put", put).await?;
    Ok(lease.to_owned())
}

pub(super) async fn renew(place: &str, lease: &Ticket) -> Result<bool, RegistryError> {
    let kept = call(place, "/v3/lease/keepalive", json!({"ID": lease})).await?;
    // of a lease that is over no time is left, which is not even written
    Ok(kept["result"]["TTL"].as_str().is_some_and(|ttl| ttl != "0"))
}

pub(super) async fn leave(place: &str, lease: &Ticket) -> Result<(), RegistryError> {
    match call(place, "/v3/lease/revoke", json!({"ID": lease})).await {
        // it is over already
        Err(RegistryError::Refused { status: 404, .. }) => Ok(()),
        revoked => revoked.map(drop),
    }
}

pub(super) async fn find(place: &str, service: &str) -> Result<Vec<SocketAddr>, RegistryError> {
    let (first, behind) = (format!("{PREFIX}{service}/"), format!("{PREFIX}{service}0"));
    let range = json!({"key": STANDARD.encode(first), "range_end": STANDARD.encode(behind)});
    let found = call(place, "/v3/kv/range", range).await?;
    let values = found["kvs"].as_array().into_iter().flatten().filter_map(|pair| pair["value"].as_str());
    Ok(values.filter_map(addr_of).collect())
}

fn addr_of(value: &str) -> Option<SocketAddr> {
    let value: Value = serde_json::from_slice(&STANDARD.decode(value).ok()?).ok()?;
    value["Addr"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_others_are_passed_over() {
        let addr = |value: &str| addr_of(&STANDARD.encode(value));
        assert_eq!(addr(r#"{"Op":0,"Addr":"127.0.0.1:9"}"#), Some(([127, 0, 0, 1], 9).into()));
        assert_eq!((addr("{}"), addr("x"), addr(r#"{"Addr":"nowhere"}"#)), (None, None, None));
        // the key behind all that begin with it
        assert_eq!(char::from(b'/' + 1), '0');
    }
}
