//! Kubernetes: a file for each service, with all that it has.

use serde_json::{Map, Value, json};

use super::parts::{Deployment, Part};
use super::{File, document, escape_dollars};
use crate::failure::Failure;

/// Where every instance listens.
pub const PORT: u16 = 9080;
/// Whom the image runs as.
pub const USER: u32 = 10001;
/// Where its data is: the image lets this user write there.
pub const DATA: &str = "/work/data";
/// The volume that this folder is in.
pub const VOLUME: &str = "/work";
/// How long an instance that is to end still takes requests, while others are told not to send any.
const PRE_STOP_S: u64 = 5;
/// How often it is asked whether it is ready, and whether it is alive.
const READY_EVERY_S: u64 = 2;
const ALIVE_EVERY_S: u64 = 10;
/// So many instances are made of each that there is at the beginning.
const GROWTH: usize = 4;

/// Every file.
pub fn files(deployment: &Deployment, image: &str) -> Result<Vec<File>, Failure> {
    let mut files = Vec::new();
    if !deployment.secrets.is_empty() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": deployment.name, "labels": of_all(deployment)},
            "type": "Opaque", "stringData": deployment.secrets,
        });
        let comment =
            "Addresses with passwords, as variables of the environment. Keep this out of repositories.";
        let text = document(comment, &secret)?;
        files.push(File { is_secret: true, ..File::new("kubernetes/secret.yaml", text) });
    }
    let deny = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": format!("{}-default-deny", deployment.name), "labels": of_all(deployment)},
        "spec": {"podSelector": {"matchLabels": of_all(deployment)}, "policyTypes": ["Ingress", "Egress"]},
    });
    let comment = "Denies all traffic that the other files do not allow.";
    files.push(File::new("kubernetes/default-deny.yaml", document(comment, &deny)?));
    for part in &deployment.parts {
        let mut documents = vec![
            document("", &account(deployment, part))?,
            document("", &service(deployment, part))?,
            document(about_pods(part), &pods(deployment, part, image))?,
            document("Nodes are drained one instance at a time.", &budget(deployment, part))?,
            document("", &network(deployment, part))?,
        ];
        if part.can_grow {
            documents.push(document(
                "Instances share what they know, so there may be more.",
                &growth(deployment, part),
            )?);
        }
        let head = format!("# {}: {}.\n", part.name, part.about());
        files.push(File::new(format!("kubernetes/{}.yaml", part.name), head + &documents.join("---\n")));
    }
    Ok(files)
}

fn of_all(deployment: &Deployment) -> Value {
    json!({"app.kubernetes.io/part-of": deployment.name})
}

/// What tells its pods from others.
fn labels(deployment: &Deployment, part: &str) -> Value {
    json!({"app.kubernetes.io/name": part, "app.kubernetes.io/part-of": deployment.name})
}

fn metadata(deployment: &Deployment, part: &Part) -> Value {
    json!({"name": part.name, "labels": labels(deployment, &part.name)})
}

fn account(deployment: &Deployment, part: &Part) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(deployment, part),
        "automountServiceAccountToken": false,
    })
}

/// One address for users; for other services the addresses of all instances, among which they choose themselves.
fn service(deployment: &Deployment, part: &Part) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata(deployment, part),
        "spec": {
            "clusterIP": if part.is_entry { Value::Null } else { "None".into() },
            "selector": labels(deployment, &part.name),
            "ports": [{"name": "http", "port": PORT, "targetPort": "http"}],
        },
    })
}

fn about_pods(part: &Part) -> &'static str {
    match (part.keeps_data, part.can_grow) {
        (true, _) => "It keeps its data for itself, so there is one instance, with a volume that stays.",
        (_, true) => "A new instance is ready before an old one goes.",
        _ => "It keeps what it knows in memory, so there is one instance.",
    }
}

fn pods(deployment: &Deployment, part: &Part, image: &str) -> Value {
    let labels = labels(deployment, &part.name);
    let template = json!({"metadata": {"labels": labels}, "spec": pod(deployment, part, image)});
    let replicas = if part.can_grow { Value::Null } else { part.instances.into() };
    let mut spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
    let (kind, more) = match (part.keeps_data, part.can_grow) {
        (true, _) => {
            let claim = json!({
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}},
            });
            ("StatefulSet", json!({"serviceName": part.name, "volumeClaimTemplates": [claim]}))
        }
        (_, true) => {
            let rolling = json!({"maxUnavailable": 0, "maxSurge": 1});
            ("Deployment", json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}))
        }
        _ => ("Deployment", json!({"strategy": {"type": "Recreate"}})),
    };
    if let (Value::Object(spec), Value::Object(more)) = (&mut spec, more) {
        spec.extend(more);
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata(deployment, part), "spec": spec})
}

fn pod(deployment: &Deployment, part: &Part, image: &str) -> Value {
    let spread = json!([{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels(deployment, &part.name)},
    }]);
    json!({
        "serviceAccountName": part.name,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": PRE_STOP_S + part.stops_within_s,
        "topologySpreadConstraints": if part.can_grow { spread } else { Value::Null },
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container(deployment, part, image)],
    })
}

fn container(deployment: &Deployment, part: &Part, image: &str) -> Value {
    let addresses = |part: &str| vec![format!("{part}:{PORT}")];
    let words = part.words(deployment.name, format!("0.0.0.0:{PORT}"), DATA, &addresses);
    let args: Vec<String> = words.iter().map(|word| escape_dollars(word)).collect();
    let env: Vec<Value> = part.secrets.iter().map(|(_, variable)| {
        json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": deployment.name, "key": variable}}})
    }).collect();
    let probe = |path: &str, every_s: u64, failures: u64| {
        json!({
            "httpGet": {"path": path, "port": "http"}, "periodSeconds": every_s, "timeoutSeconds": every_s,
            "failureThreshold": failures,
        })
    };
    let mount = json!([{"name": "data", "mountPath": VOLUME}]);
    json!({
        "name": "tidemark",
        "image": image,
        "args": args,
        "env": if env.is_empty() { Value::Null } else { env.into() },
        "ports": [{"name": "http", "containerPort": PORT}],
        "startupProbe": probe("/health", READY_EVERY_S, part.ready_within_s.div_ceil(READY_EVERY_S)),
        "readinessProbe": probe("/health", READY_EVERY_S, 2),
        // answered also while a store is away, or it ends: no reason to start it again
        "livenessProbe": probe("/metrics", ALIVE_EVERY_S, 6),
        "lifecycle": {"preStop": {"sleep": {"seconds": PRE_STOP_S}}},
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": if part.keeps_data { mount } else { Value::Null },
    })
}

fn budget(deployment: &Deployment, part: &Part) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata(deployment, part),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels(deployment, &part.name)}},
    })
}

/// Who reaches it, and whom it reaches: names, the services that it calls, and ports of what is not deployed.
fn network(deployment: &Deployment, part: &Part) -> Value {
    let pods = |names: &[String]| -> Value {
        names.iter().map(|name| json!({"podSelector": {"matchLabels": labels(deployment, name)}})).collect()
    };
    let own = json!([{"port": PORT}]);
    let ingress = match (part.is_entry, &part.called_by[..]) {
        (true, _) => json!([{"ports": own}]),
        (false, []) => json!([]),
        (false, callers) => json!([{"from": pods(callers), "ports": own}]),
    };
    let mut egress = Vec::new();
    if !part.calls.is_empty() {
        egress.push(json!({"to": pods(&part.calls), "ports": own}));
    }
    match &part.outside {
        Some(ports) if ports.is_empty() => {}
        Some(ports) => {
            egress.push(json!({"ports": ports.iter().map(|port| json!({"port": port})).collect::<Value>()}))
        }
        None => egress.push(Value::Object(Map::new())),
    }
    if !egress.is_empty() {
        egress.push(json!({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata(deployment, part),
        "spec": {
            "podSelector": {"matchLabels": labels(deployment, &part.name)},
            "policyTypes": ["Ingress", "Egress"], "ingress": ingress, "egress": egress,
        },
    })
}

fn growth(deployment: &Deployment, part: &Part) -> Value {
    let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}});
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata(deployment, part),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": part.name},
            "minReplicas": part.instances, "maxReplicas": part.instances * GROWTH,
            "metrics": [{"type": "Resource", "resource": cpu}],
        },
    })
}
