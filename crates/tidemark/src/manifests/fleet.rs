//! A fleet in Kubernetes: agents as an Indexed Job, and the NATS at which they wait.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::kubernetes::USER;
use super::{File, document};
use crate::failure::Failure;

/// What all of it is called, and the system's name on the command line.
pub const NAME: &str = "fleet";
/// What NATS runs in.
const NATS_IMAGE: &str = "nats:2.10-alpine";
const NATS: &str = "fleet-nats";
const NATS_PORT: u16 = 4222;
/// Where it says whether it is ready.
const HEALTH_PORT: u16 = 8222;
const AGENT: &str = "fleet-agent";
/// Driving threads of an agent, and the cores that it asks for.
const THREADS: &str = "2";
/// Agents that fail begin again, this often.
const FAILURES: u32 = 1_000;

/// A network like 10.0.0.0/8.
pub fn network(text: &str) -> Result<String, String> {
    let is_right = text.split_once('/').is_some_and(|(address, bits)| {
        let most = match address.parse() {
            Ok(IpAddr::V4(_)) => 32,
            Ok(IpAddr::V6(_)) => 128,
            Err(_) => return false,
        };
        bits.parse::<u8>().is_ok_and(|bits| bits <= most)
    });
    if is_right { Ok(text.to_owned()) } else { Err("write a network like 10.0.0.0/8".into()) }
}

/// Every file: so many agents, which drive these networks.
pub fn files(agents: u16, allowed: &[String], image: &str) -> Result<Vec<File>, Failure> {
    let password = password()?;
    let config = format!(
        "port: {NATS_PORT}\nhttp_port: {HEALTH_PORT}\njetstream {{ store_dir: /data }}\n\
         authorization {{ user: tidemark, password: \"{password}\" }}\n"
    );
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata(NAME), "type": "Opaque",
        "stringData": {"nats.conf": config, "password": password, "url": format!("nats://tidemark:{password}@{NATS}:{NATS_PORT}")},
    });
    let comment = "The login of NATS: whoever has it can have agents drive what they allow. Keep this out of repositories.";
    let secret = File { is_secret: true, ..File::new("kubernetes/secret.yaml", document(comment, &secret)?) };
    let nats = [
        document("", &account(NATS))?,
        document("", &service())?,
        document("A restart of the container loses nothing, as its folder stays with the pod.", &nats())?,
        document("Agents and coordinators reach it.", &network_of_nats())?,
    ];
    let head = "# The NATS server at which agents wait.\n";
    let nats = File::new("kubernetes/nats.yaml", head.to_owned() + &nats.join("---\n"));
    let comment =
        format!("-t and the request for CPU belong together. There is a pod for each of {agents} agents.");
    let agents = [
        document("", &account(AGENT))?,
        document(&comment, &job(agents, allowed, image))?,
        document("Agents reach NATS, names, and what they may drive.", &network_of_agents(allowed))?,
    ];
    let head = "# The agents: each drives its part of the load.\n";
    Ok(vec![secret, nats, File::new("kubernetes/agents.yaml", head.to_owned() + &agents.join("---\n"))])
}

/// What comes next, in words.
pub fn next(dir: &str) -> String {
    format!(
        "Next:\n  kubectl apply -f {dir}/kubernetes\n  kubectl rollout status deployment/{NATS}\n  kubectl port-forward service/{NATS} {NATS_PORT} &\n  \
         tidemark run SCENARIO --agents N --fleet URL   # of 127.0.0.1:{NATS_PORT}, with the login of the Secret {NAME}: docs/fleet.md\n  \
         kubectl delete -f {dir}/kubernetes"
    )
}

fn password() -> Result<String, Failure> {
    tidemark_lab::stores::password().map_err(|error| Failure::broken(format!("no random numbers: {error}")))
}

fn labels(name: &str) -> Value {
    json!({"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": NAME})
}

fn metadata(name: &str) -> Value {
    json!({"name": name, "labels": labels(name)})
}

fn account(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name),
        "automountServiceAccountToken": false,
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata(NATS),
        "spec": {"selector": labels(NATS), "ports": [{"name": "nats", "port": NATS_PORT, "targetPort": "nats"}]},
    })
}

/// What both kinds of pods have.
fn pod(name: &str, more: Value) -> Value {
    let mut pod = json!({
        "serviceAccountName": name,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    });
    if let (Value::Object(pod), Value::Object(more)) = (&mut pod, more) {
        pod.extend(more);
    }
    json!({"metadata": {"labels": labels(name)}, "spec": pod})
}

fn confined() -> Value {
    json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}})
}

fn nats() -> Value {
    let container = json!({
        "name": "nats",
        "image": NATS_IMAGE,
        "args": ["-c", "/etc/nats/nats.conf"],
        "ports": [{"name": "nats", "containerPort": NATS_PORT}, {"name": "health", "containerPort": HEALTH_PORT}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "periodSeconds": 2},
        "livenessProbe": {"httpGet": {"path": "/", "port": "health"}, "periodSeconds": 10, "failureThreshold": 6},
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": confined(),
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/nats", "readOnly": true}, {"name": "data", "mountPath": "/data"},
        ],
    });
    let items = json!([{"key": "nats.conf", "path": "nats.conf"}]);
    let volumes = json!([
        {"name": "config", "secret": {"secretName": NAME, "items": items}},
        {"name": "data", "emptyDir": {"sizeLimit": "8Gi"}},
    ]);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(NATS),
        "spec": {
            "replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": labels(NATS)},
            "template": pod(NATS, json!({"containers": [container], "volumes": volumes})),
        },
    })
}

/// Its pods are called by their number: an agent's name is that of its machine.
fn job(agents: u16, allowed: &[String], image: &str) -> Value {
    let mut args = vec!["agent", "--nats", "$(NATS_URL)", "-t", THREADS];
    args.extend(allowed.iter().flat_map(|network| ["--allow", network]));
    let url = json!({"name": "NATS_URL", "valueFrom": {"secretKeyRef": {"name": NAME, "key": "url"}}});
    let container = json!({
        "name": "tidemark",
        "image": image,
        "args": args,
        "env": [url, {"name": "TMPDIR", "value": "/work"}],
        // a limit of CPU would have requests sent late
        "resources": {"requests": {"cpu": THREADS, "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        "securityContext": confined(),
        "volumeMounts": [{"name": "work", "mountPath": "/work"}],
    });
    let spread = json!([{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels(AGENT)},
    }]);
    let template = pod(
        AGENT,
        json!({
            "restartPolicy": "OnFailure", "topologySpreadConstraints": spread, "containers": [container],
            "volumes": [{"name": "work", "emptyDir": {"sizeLimit": "8Gi"}}],
        }),
    );
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(AGENT),
        "spec": {
            "completionMode": "Indexed", "completions": agents, "parallelism": agents, "backoffLimit": FAILURES,
            "template": template,
        },
    })
}

fn policy(name: &str, ingress: Value, egress: Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata(name),
        "spec": {
            "podSelector": {"matchLabels": labels(name)}, "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress, "egress": egress,
        },
    })
}

fn network_of_nats() -> Value {
    let all = json!({"app.kubernetes.io/part-of": NAME});
    let from = json!([{"podSelector": {"matchLabels": all}}]);
    policy(NATS, json!([{"from": from, "ports": [{"port": NATS_PORT}]}]), json!([]))
}

fn network_of_agents(allowed: &[String]) -> Value {
    let to_nats =
        json!({"to": [{"podSelector": {"matchLabels": labels(NATS)}}], "ports": [{"port": NATS_PORT}]});
    let names = json!({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]});
    let blocks: Vec<Value> = allowed.iter().map(|network| json!({"ipBlock": {"cidr": network}})).collect();
    policy(AGENT, json!([]), json!([to_nats, names, {"to": blocks}]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_and_bits() {
        assert!(["10.0.0.0/8", "fd00::/8", "0.0.0.0/0"].iter().all(|text| network(text).is_ok()));
        assert!(
            ["", "10.0.0.0", "10.0.0.0/33", "a/8", "10.0.0.0/8 x"].iter().all(|text| network(text).is_err())
        );
    }

    #[test]
    fn the_login_stands_in_the_secret_alone() {
        let files = files(20, &["10.0.0.0/8".into()], "t:1").unwrap();
        let login = files[0].text.lines().find_map(|line| line.trim().strip_prefix("password: ")).unwrap();
        assert!(login.len() >= 32 && files[0].is_secret);
        assert!(files[1..].iter().all(|file| !file.text.contains(login) && !file.is_secret));
        assert!(files[2].text.contains("completions: 20") && files[2].text.contains("cidr: 10.0.0.0/8"));
    }
}
