//! vegeta: what it measures goes to a file, of which another call makes a report.

use serde_json::Value;

use crate::job::Job;
use crate::process::Used;
use crate::tool::{Figures, Tool, words};

/// Most connections at once where they are not limited.
const MOST: usize = 10_000;

pub struct Vegeta;

impl Tool for Vegeta {
    fn name(&self) -> &'static str {
        "vegeta"
    }

    fn arguments(&self, job: &Job) -> std::io::Result<Option<Vec<String>>> {
        if job.session || job.pipeline > 1 {
            return Ok(None);
        }
        let targets = job.file("targets");
        let method = if job.body.is_some() { "POST" } else { "GET" };
        std::fs::write(&targets, format!("{method} {}\n", job.url()))?;
        let (output, time) = (job.file("vegeta.bin"), format!("{}s", job.seconds));
        let connections = job.connections.to_string();
        let most = if job.unlimited { MOST.to_string() } else { connections.clone() };
        let rate = job.rate.map_or("0".to_owned(), |rate| format!("{rate}/s"));
        let mut arguments = words([
            "attack",
            "-targets",
            &targets,
            "-output",
            &output,
            "-duration",
            &time,
            "-rate",
            &rate,
            "-workers",
            &connections,
            "-max-workers",
            &most,
            "-connections",
            &most,
            "-insecure",
            "-http2=false",
            "-max-body",
            "0",
        ]);
        if job.close {
            arguments.push("-keepalive=false".to_owned());
        }
        if job.tls() {
            arguments.push("-session-tickets".to_owned());
        }
        if let Some(body) = job.body_file() {
            arguments.extend(words(["-body", &body, "-header", "Content-Type: application/json"]));
        }
        Ok(Some(arguments))
    }

    fn report(&self, job: &Job) -> Option<Vec<String>> {
        Some(words(["report", "-type", "json", &job.file("vegeta.bin")]))
    }

    fn figures(&self, _job: &Job, used: &Used) -> Figures {
        let all: Value = serde_json::from_str(used.stdout.trim()).unwrap_or_default();
        let us = |key: &str| all["latencies"][key].as_f64().map(|ns| ns / 1e3);
        let failed = all["status_codes"].as_object().map(|codes| {
            let bad = codes.iter().filter(|(code, _)| !code.starts_with('2'));
            bad.filter_map(|(_, count)| count.as_f64()).sum()
        });
        Figures {
            per_s: all["throughput"].as_f64(),
            p50_us: us("50th"),
            p99_us: us("99th"),
            max_us: us("max"),
            errors: failed,
            remark: String::new(),
        }
    }

    fn most_connections(&self) -> usize {
        10_000
    }
}
