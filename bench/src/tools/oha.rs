//! oha.

use serde_json::Value;

use crate::job::Job;
use crate::process::Used;
use crate::tool::{Figures, Tool, words};

pub struct Oha;

impl Tool for Oha {
    fn name(&self) -> &'static str {
        "oha"
    }

    fn arguments(&self, job: &Job) -> std::io::Result<Option<Vec<String>>> {
        if job.session || job.pipeline > 1 {
            return Ok(None);
        }
        let (connections, time) = (job.connections.to_string(), format!("{}s", job.seconds));
        let mut arguments = words([
            "--no-tui",
            "--output-format",
            "json",
            "--insecure",
            "-t",
            "30s",
            "-c",
            &connections,
            "-z",
            &time,
        ]);
        if let Some(rate) = job.rate {
            // the correction is what its manual advises for a rate
            arguments.extend(words(["-q", &rate.to_string()]));
            if !job.uncorrected {
                arguments.push("--latency-correction".to_owned());
            }
        }
        if job.close {
            arguments.push("--disable-keepalive".to_owned());
        }
        if let Some(body) = job.body_file() {
            arguments.extend(words(["-m", "POST", "-T", "application/json", "-D", &body]));
        }
        arguments.push(job.url());
        Ok(Some(arguments))
    }

    fn figures(&self, _job: &Job, used: &Used) -> Figures {
        let all: Value = serde_json::from_str(used.stdout.trim()).unwrap_or_default();
        let us = |value: &Value| value.as_f64().map(|seconds| seconds * 1e6);
        let errors = all["errorDistribution"].as_object().map(|errors| {
            // what was under way at the end is no error
            let counted = errors.iter().filter(|(kind, _)| !kind.contains("deadline"));
            counted.filter_map(|(_, count)| count.as_f64()).sum()
        });
        Figures {
            per_s: all["summary"]["requestsPerSec"].as_f64(),
            p50_us: us(&all["latencyPercentiles"]["p50"]),
            p99_us: us(&all["latencyPercentiles"]["p99"]),
            max_us: us(&all["summary"]["slowest"]),
            errors,
            remark: String::new(),
        }
    }
}
