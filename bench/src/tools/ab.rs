//! ab, of Apache: one thread, HTTP/1.0 with connections kept.

use crate::job::Job;
use crate::process::Used;
use crate::text::number_behind;
use crate::tool::{Figures, Tool, words};

/// Requests for each second that it may make: it wants their number beforehand, and the time ends it.
const MOST_PER_S: u64 = 400_000;

pub struct Ab;

impl Tool for Ab {
    fn name(&self) -> &'static str {
        "ab"
    }

    fn arguments(&self, job: &Job) -> std::io::Result<Option<Vec<String>>> {
        if job.session || job.rate.is_some() || job.pipeline > 1 {
            return Ok(None);
        }
        let mut arguments = words(["-q", "-r", "-s", "30"]);
        if !job.close {
            arguments.push("-k".to_owned());
        }
        let (connections, seconds) = (job.connections.to_string(), job.seconds.to_string());
        let most = (job.seconds * MOST_PER_S).to_string();
        let table = job.file("ab.csv");
        arguments.extend(words(["-c", &connections, "-t", &seconds, "-n", &most, "-e", &table]));
        if job.tls() {
            arguments.extend(words(["-f", "TLS1.3"]));
        }
        if let Some(body) = job.body_file() {
            arguments.extend(words(["-p", &body, "-T", "application/json"]));
        }
        arguments.push(job.url());
        Ok(Some(arguments))
    }

    fn figures(&self, job: &Job, used: &Used) -> Figures {
        // milliseconds by percentage, with a line of titles above
        let table = std::fs::read_to_string(job.file("ab.csv")).unwrap_or_default();
        let at = |percentage: &str| {
            let line = table.lines().find_map(|line| line.strip_prefix(percentage)?.strip_prefix(','))?;
            Some(line.trim().parse::<f64>().ok()? * 1e3)
        };
        Figures {
            per_s: number_behind(&used.stdout, "Requests per second:"),
            p50_us: at("50"),
            p99_us: at("99"),
            max_us: at("100"),
            errors: number_behind(&used.stdout, "Failed requests:"),
            remark: String::new(),
        }
    }

    /// Its select-like loop looks at all of them.
    fn most_connections(&self) -> usize {
        10_000
    }
}
