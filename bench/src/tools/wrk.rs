//! wrk, and wrk2, which is wrk with a rate.

use crate::job::Job;
use crate::process::Used;
use crate::text::{number_behind, time_us};
use crate::tool::{Figures, Tool, words};

pub struct Wrk {
    pub name: &'static str,
}

impl Tool for Wrk {
    fn name(&self) -> &'static str {
        self.name
    }

    fn arguments(&self, job: &Job) -> std::io::Result<Option<Vec<String>>> {
        // wrk2 cannot do without a rate, wrk has none
        if job.session || job.rate.is_some() != (self.name == "wrk2") {
            return Ok(None);
        }
        let mut arguments = words(["-t1", "--latency", "--timeout", "30s"]);
        arguments.extend([format!("-c{}", job.connections), format!("-d{}s", job.seconds)]);
        arguments.extend(job.rate.map(|rate| format!("-R{rate}")));
        if job.close {
            arguments.extend(words(["-H", "Connection: close"]));
        }
        if let Some(body) = job.body_file() {
            let script = format!(
                "wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\n\
                 wrk.body = io.open('{body}', 'rb'):read('*a')\n"
            );
            arguments.extend(["-s".to_owned(), write(job, &script)?]);
        } else if job.pipeline > 1 {
            let script = format!(
                "local batch\nfunction init(args)\n  batch = string.rep(wrk.format(), {})\nend\n\
                 function request()\n  return batch\nend\n",
                job.pipeline
            );
            arguments.extend(["-s".to_owned(), write(job, &script)?]);
        }
        arguments.push(job.url());
        Ok(Some(arguments))
    }

    fn figures(&self, _job: &Job, used: &Used) -> Figures {
        let text = &used.stdout;
        let quantile = |names: [&str; 2]| {
            let mut lines = text.lines().map(str::split_whitespace);
            lines.find_map(|mut words| {
                let first = words.next()?;
                if names.contains(&first) { time_us(words.next()?) } else { None }
            })
        };
        let most = text
            .lines()
            .map(str::trim)
            .find(|line| line.starts_with("Latency") && !line.contains("Distribution"));
        let sockets = text.lines().find(|line| line.contains("Socket errors:")).unwrap_or_default();
        let numbers = sockets.split([' ', ',']).filter_map(|word| word.parse::<f64>().ok());
        Figures {
            per_s: number_behind(text, "Requests/sec:"),
            p50_us: quantile(["50%", "50.000%"]),
            p99_us: quantile(["99%", "99.000%"]),
            max_us: quantile(["100.000%", "100%"])
                .or_else(|| most.and_then(|line| time_us(line.split_whitespace().nth(3)?))),
            errors: Some(
                numbers.sum::<f64>() + number_behind(text, "Non-2xx or 3xx responses:").unwrap_or(0.0),
            ),
            remark: String::new(),
        }
    }
}

fn write(job: &Job, script: &str) -> std::io::Result<String> {
    let file = job.file("wrk.lua");
    std::fs::write(&file, script)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says() {
        let stdout = "Running 1s test @ http://127.0.0.1:1/\n  1 threads and 10 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     1.56ms    3.02ms  41.20ms   92.11%\n    Req/Sec    12.06k     1.92k   15.51k    70.00%\n  Latency Distribution\n     50%  724.00us\n     75%    1.32ms\n     90%    3.33ms\n     99%   15.02ms\n  120031 requests in 1.00s, 15.01MB read\n  Socket errors: connect 0, read 2, write 0, timeout 1\n  Non-2xx or 3xx responses: 4\nRequests/sec:  11999.08\nTransfer/sec:      1.50MB\n";
        let used = Used { stdout: stdout.to_owned(), ..Used::default() };
        let expected = Figures {
            per_s: Some(11_999.08),
            p50_us: Some(724.0),
            p99_us: Some(15_020.0),
            max_us: Some(41_200.0),
            errors: Some(7.0),
            remark: String::new(),
        };
        assert_eq!(Wrk { name: "wrk" }.figures(&Job::default(), &used), expected);
    }
}
