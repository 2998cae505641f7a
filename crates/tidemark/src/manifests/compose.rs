//! Compose: all services in containers on one machine.

use serde_json::{Map, Value, json};

use super::kubernetes::{DATA, PORT, USER, VOLUME};
use super::parts::{Deployment, Part};
use super::{File, IMAGE, document, escape_dollars, systemd};
use crate::failure::Failure;

/// Where the variables with what is secret are.
const VARIABLES: &str = "compose.env";
/// Clients of stores that this program has, for an image with the same.
const FEATURES: [(&str, bool); 8] = [
    ("cassandra", cfg!(feature = "cassandra")),
    ("graphql", cfg!(feature = "graphql")),
    ("kafka", cfg!(feature = "kafka")),
    ("mariadb", cfg!(feature = "mariadb")),
    ("opensearch", cfg!(feature = "opensearch")),
    ("postgres", cfg!(feature = "postgres")),
    ("redis", cfg!(feature = "redis")),
    ("tantivy", cfg!(feature = "tantivy")),
];

/// `compose.yaml`, and what is secret. Without an image it is built.
pub fn files(deployment: &Deployment, image: Option<&str>) -> Result<Vec<File>, Failure> {
    let mut services = Map::new();
    for part in &deployment.parts {
        services.insert(part.name.clone(), service(deployment, part, image));
    }
    let keep = deployment.parts.iter().filter(|part| part.keeps_data);
    let volumes: Map<String, Value> = keep.map(|part| (part.name.clone(), json!({}))).collect();
    let volumes = if volumes.is_empty() { Value::Null } else { volumes.into() };
    let all = json!({"name": deployment.name, "services": services, "volumes": volumes});
    let mut comment = format!("The {} in containers of this machine.", deployment.name);
    if image.is_none() {
        comment += "\nThe image is built from Tidemark's sources: TIDEMARK_SOURCE is their folder.";
    }
    let mut files = vec![File::new("compose.yaml", document(&comment, &all)?)];
    if !deployment.secrets.is_empty() {
        files.push(File { is_secret: true, ..File::new(VARIABLES, systemd::variables(deployment)) });
    }
    Ok(files)
}

fn service(deployment: &Deployment, part: &Part, image: Option<&str>) -> Value {
    let addresses = |part: &str| vec![format!("{part}:{PORT}")];
    let words = part.words(deployment.name, format!("0.0.0.0:{PORT}"), DATA, &addresses);
    let command: Vec<String> = words.iter().map(|word| escape_dollars(word)).collect();
    let features: Vec<&str> = FEATURES.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
    let build = json!({
        "context": "${TIDEMARK_SOURCE:-../..}", "dockerfile": "Containerfile",
        "args": {"FEATURES": features.join(",")},
    });
    // as many ports as instances, of this machine alone
    let published = match part.instances {
        1 => PORT.to_string(),
        more => format!("{PORT}-{}", usize::from(PORT) + more - 1),
    };
    let ports = json!([{"target": PORT, "published": published, "host_ip": "127.0.0.1"}]);
    let calls: Map<String, Value> =
        part.calls.iter().map(|name| (name.clone(), json!({"condition": "service_healthy"}))).collect();
    let or_null = |is_there: bool, value: Value| if is_there { value } else { Value::Null };
    json!({
        "image": image.unwrap_or(IMAGE),
        "build": or_null(image.is_none(), build),
        "command": command,
        "user": format!("{USER}:{USER}"),
        "read_only": true,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "env_file": or_null(!part.secrets.is_empty(), json!([VARIABLES])),
        "ports": or_null(part.is_entry, ports),
        "volumes": or_null(part.keeps_data, json!([format!("{}:{VOLUME}", part.name)])),
        "depends_on": or_null(!calls.is_empty(), calls.into()),
        "deploy": or_null(part.instances > 1, json!({"replicas": part.instances})),
        "healthcheck": {
            "test": ["CMD", "tidemark", "hit", "-n", "1", "-q", format!("http://127.0.0.1:{PORT}/health")],
            "interval": "5s", "timeout": "5s", "retries": 3, "start_period": format!("{}s", part.ready_within_s),
        },
        "restart": "unless-stopped",
        "stop_grace_period": format!("{}s", part.stops_within_s),
    })
}
