//! Ours.

use serde_json::Value;

use crate::job::Job;
use crate::process::Used;
use crate::tool::{Figures, Tool, find, words};

/// Ours, by the back end that it chooses or by one that it is told.
pub struct Tidemark {
    pub io: Option<&'static str>,
}

impl Tool for Tidemark {
    fn name(&self) -> &'static str {
        match self.io {
            None => "tidemark",
            Some("epoll") => "tidemark --io epoll",
            Some(_) => "tidemark --io io_uring",
        }
    }

    fn program(&self) -> &'static str {
        "tidemark"
    }

    fn arguments(&self, job: &Job) -> std::io::Result<Option<Vec<String>>> {
        let mut arguments = if job.session {
            let file = job.file("session.yaml");
            std::fs::write(&file, session(job))?;
            words(["run", &file, "--out", &job.file("run")])
        } else {
            let (connections, time) = (job.connections.to_string(), format!("{}s", job.seconds));
            words(["hit", &job.url(), "-c", &connections, "-d", &time, "--warm-up", "0s", "-T", "30s"])
        };
        arguments.extend(words(["--threads", "1", "--json", "--quiet"]));
        if let Some(rate) = job.rate {
            arguments.extend(["-r".to_owned(), format!("{rate}/s")]);
        }
        if let Some(body) = job.body_file() {
            arguments.extend(words(["-m", "POST", "--content-type", "application/json", "-B", &body]));
        }
        if job.close {
            arguments.push("--disable-keepalive".to_owned());
        }
        let wanted = [
            (job.tls(), "--insecure", None),
            (job.pipeline > 1, "--pipeline", Some(job.pipeline.to_string())),
            (self.io.is_some(), "--io", self.io.map(str::to_owned)),
        ];
        for (_, flag, value) in wanted.into_iter().filter(|(wanted, ..)| *wanted) {
            if !help().contains(flag) {
                return Ok(None);
            }
            arguments.push(flag.to_owned());
            arguments.extend(value);
        }
        Ok(Some(arguments))
    }

    fn figures(&self, _job: &Job, used: &Used) -> Figures {
        let all: Value = serde_json::from_str(used.stdout.trim()).unwrap_or_default();
        let us = |key: &str| all["response_time_us"][key].as_f64();
        let errors = all["errors"].as_object().map(|kinds| kinds.values().filter_map(Value::as_f64).sum());
        let reasons = all["verdict"]["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
        let driver_bound = reasons.iter().any(|reason| reason.to_string().contains("driver-bound"));
        let dropped = all["dropped"].as_f64().filter(|count| *count > 0.0);
        let said = [
            driver_bound.then(|| "driver-bound".to_owned()),
            dropped.map(|count| format!("{count} dropped")),
        ];
        Figures {
            per_s: all["achieved_per_s"].as_f64(),
            p50_us: us("p50"),
            p99_us: us("p99"),
            max_us: us("max"),
            errors,
            remark: said.into_iter().flatten().collect::<Vec<_>>().join(", "),
        }
    }
}

/// What `hit` says of itself: flags that it does not have yet are not used.
fn help() -> &'static str {
    static HELP: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    HELP.get_or_init(|| {
        let asked = find("tidemark")
            .map(|program| std::process::Command::new(program).args(["hit", "--help"]).output());
        asked
            .and_then(Result::ok)
            .map(|said| String::from_utf8_lossy(&said.stdout).into_owned())
            .unwrap_or_default()
    })
}

fn session(job: &Job) -> String {
    format!(
        "name: session
system: {{url: '{}'}}
sessions:
  shopper:
    steps:
      - POST: /login
        label: log in
        form: {{user: ada, password: lovelace}}
        check: {{status: 200}}
        extract: {{token: $.token}}
      - GET: /item
        label: item
        query: {{token: \"${{token}}\"}}
        check: {{status: 200, body: {{contains: \"${{token}}\"}}}}
      - GET: /item/list
        label: list
        query: {{token: \"${{token}}\"}}
        check: {{status: 200, body: {{contains: \"${{token}}\"}}}}
load: {{users: {}, hold: {}s}}
",
        job.origin, job.connections, job.seconds
    )
}
