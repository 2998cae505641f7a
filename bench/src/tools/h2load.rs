//! h2load, of nghttp2, speaking HTTP/1.1. It prints no percentiles.

use crate::job::Job;
use crate::process::Used;
use crate::text::{number_behind, time_us};
use crate::tool::{Figures, Tool, words};

pub struct H2load;

impl Tool for H2load {
    fn name(&self) -> &'static str {
        "h2load"
    }

    fn arguments(&self, job: &Job) -> std::io::Result<Option<Vec<String>>> {
        if job.session || job.rate.is_some() || job.close {
            return Ok(None);
        }
        let (connections, seconds, pipeline) =
            (job.connections.to_string(), job.seconds.to_string(), job.pipeline.max(1).to_string());
        let mut arguments = words(["--h1", "-t", "1", "-c", &connections, "-D", &seconds, "-m", &pipeline]);
        if let Some(body) = job.body_file() {
            arguments.extend(words(["-d", &body, "-H", "Content-Type: application/json"]));
        }
        arguments.push(job.url());
        Ok(Some(arguments))
    }

    fn figures(&self, _job: &Job, used: &Used) -> Figures {
        let line = |name: &str| used.stdout.lines().find_map(|line| line.trim().strip_prefix(name));
        let finished =
            line("finished in").and_then(|rest| rest.split(',').nth(1)?.trim().strip_suffix(" req/s"));
        let times = line("time for request:").unwrap_or_default();
        // 12 total, 12 started, 12 done, 12 succeeded, 0 failed, 0 errored, 0 timeout
        let failed = line("requests:").and_then(|rest| {
            let part = rest.split(',').find_map(|part| part.trim().strip_suffix(" failed"))?;
            part.trim().parse().ok()
        });
        Figures {
            per_s: finished
                .and_then(|number| number.parse().ok())
                .or_else(|| number_behind(&used.stdout, "req/s:")),
            p50_us: None,
            p99_us: None,
            max_us: times.split_whitespace().nth(1).and_then(time_us),
            errors: failed,
            remark: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says() {
        let stdout = "finished in 2.00s, 73045.50 req/s, 9.20MB/s\nrequests: 146091 total, 146101 started, 146091 done, 146091 succeeded, 3 failed, 0 errored, 0 timeout\n                     min         max         mean         sd        +/- sd\ntime for request:       11us     15.86ms       129us       310us    97.50%\n";
        let used = Used { stdout: stdout.to_owned(), ..Used::default() };
        let figures = H2load.figures(&Job::default(), &used);
        assert_eq!(
            (figures.per_s, figures.max_us, figures.errors),
            (Some(73_045.5), Some(15_860.0), Some(3.0))
        );
    }
}
