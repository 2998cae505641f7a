//! hey.

use crate::job::Job;
use crate::process::Used;
use crate::text::number_behind;
use crate::tool::{Figures, Tool, words};

pub struct Hey;

impl Tool for Hey {
    fn name(&self) -> &'static str {
        "hey"
    }

    fn arguments(&self, job: &Job) -> std::io::Result<Option<Vec<String>>> {
        if job.session || job.pipeline > 1 {
            return Ok(None);
        }
        let (connections, time) = (job.connections.to_string(), format!("{}s", job.seconds));
        let mut arguments = words(["-c", &connections, "-z", &time, "-t", "30", "-disable-redirects"]);
        if let Some(rate) = job.rate {
            // it wants a rate for each of its workers
            let each = format!("{:.3}", rate as f64 / job.connections as f64);
            arguments.extend(words(["-q", &each]));
        }
        if job.tls() {
            // it would name address and port as the server's name, which TLS forbids
            arguments.extend(words(["-host", "localhost"]));
        }
        if job.close {
            arguments.push("-disable-keepalive".to_owned());
        }
        if let Some(body) = job.body_file() {
            arguments.extend(words(["-m", "POST", "-T", "application/json", "-D", &body]));
        }
        arguments.push(job.url());
        Ok(Some(arguments))
    }

    fn figures(&self, _job: &Job, used: &Used) -> Figures {
        let text = &used.stdout;
        let seconds = |word: &str| number_behind(text, word).map(|seconds| seconds * 1e6);
        let errors = text.split_once("Error distribution:").map_or("", |(_, rest)| rest);
        let counts = errors
            .lines()
            .filter_map(|line| line.trim().strip_prefix('[')?.split_once(']')?.0.parse::<f64>().ok());
        // its percentages may be doubled by a printing mistake of some versions
        let quantile =
            |number: &str| seconds(&format!("{number}%% in")).or_else(|| seconds(&format!("{number}% in")));
        Figures {
            per_s: number_behind(text, "Requests/sec:"),
            p50_us: quantile("50"),
            p99_us: quantile("99"),
            max_us: seconds("Slowest:"),
            errors: Some(counts.sum()),
            remark: String::new(),
        }
    }

    fn most_connections(&self) -> usize {
        10_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says() {
        let stdout = "Summary:\n  Total:\t2.0023 secs\n  Slowest:\t0.0412 secs\n  Requests/sec:\t9000.5\n\nLatency distribution:\n  10% in 0.0004 secs\n  50% in 0.0011 secs\n  99%% in 0.0102 secs\n\nStatus code distribution:\n  [200]\t18022 responses\n\nError distribution:\n  [7]\tGet: connection refused\n";
        let used = Used { stdout: stdout.to_owned(), ..Used::default() };
        let figures = Hey.figures(&Job::default(), &used);
        assert_eq!((figures.per_s, figures.errors), (Some(9_000.5), Some(7.0)));
        assert_eq!(figures.p50_us.map(f64::round), Some(1_100.0));
        assert_eq!(figures.p99_us.map(f64::round), Some(10_200.0));
        assert_eq!(figures.max_us.map(f64::round), Some(41_200.0));
    }
}
