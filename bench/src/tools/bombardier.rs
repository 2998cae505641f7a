//! bombardier, with its fast client.

use serde_json::Value;

use crate::job::Job;
use crate::process::Used;
use crate::tool::{Figures, Tool, words};

pub struct Bombardier;

impl Tool for Bombardier {
    fn name(&self) -> &'static str {
        "bombardier"
    }

    fn arguments(&self, job: &Job) -> std::io::Result<Option<Vec<String>>> {
        if job.session || job.pipeline > 1 {
            return Ok(None);
        }
        let (connections, time) = (job.connections.to_string(), format!("{}s", job.seconds));
        let mut arguments =
            words(["-c", &connections, "-d", &time, "-t", "30s", "-l", "-k", "-p", "r", "-o", "json"]);
        if let Some(rate) = job.rate {
            arguments.extend(words(["-r", &rate.to_string()]));
        }
        if job.close {
            arguments.extend(words(["-H", "Connection: close"]));
        }
        if let Some(body) = job.body_file() {
            arguments.extend(words(["-m", "POST", "-H", "Content-Type: application/json", "-f", &body]));
        }
        arguments.push(job.url());
        Ok(Some(arguments))
    }

    fn figures(&self, _job: &Job, used: &Used) -> Figures {
        let all: Value = serde_json::from_str(used.stdout.trim()).unwrap_or_default();
        let result = &all["result"];
        let latency = &result["latency"];
        let failed = ["req1xx", "req4xx", "req5xx", "others"].map(|key| result[key].as_f64());
        Figures {
            per_s: result["rps"]["mean"].as_f64(),
            p50_us: latency["percentiles"]["50"].as_f64(),
            p99_us: latency["percentiles"]["99"].as_f64(),
            max_us: latency["max"].as_f64(),
            errors: failed.into_iter().sum(),
            remark: String::new(),
        }
    }
}
