//! k6: a script for each job.

use serde_json::Value;

use crate::job::Job;
use crate::process::Used;
use crate::tool::{Figures, Tool, words};

pub struct K6;

const SESSION: &str = "
export default () => {
  const login = http.post(`${origin}/login`, 'user=ada&password=lovelace');
  check(login, {'200': (r) => r.status === 200});
  const token = login.json('token');
  for (const page of ['item', 'item/list']) {
    const answer = http.get(`${origin}/${page}?token=${token}`, {tags: {name: page}});
    check(answer, {'200': (r) => r.status === 200, 'token': (r) => r.body.includes(token)});
  }
};
";

impl Tool for K6 {
    fn name(&self) -> &'static str {
        "k6"
    }

    fn arguments(&self, job: &Job) -> std::io::Result<Option<Vec<String>>> {
        if job.pipeline > 1 {
            return Ok(None);
        }
        let (script, summary) = (job.file("k6.js"), job.file("k6.json"));
        std::fs::write(&script, self::script(job))?;
        Ok(Some(words(["run", "--quiet", "--no-usage-report", "--summary-export", &summary, &script])))
    }

    fn figures(&self, job: &Job, _used: &Used) -> Figures {
        let text = std::fs::read_to_string(job.file("k6.json")).unwrap_or_default();
        let all: Value = serde_json::from_str(&text).unwrap_or_default();
        let metrics = &all["metrics"];
        let us = |key: &str| metrics["http_req_duration"][key].as_f64().map(|ms| ms * 1e3);
        // of a share of failures, what it calls passes are those that failed
        let failed = metrics["http_req_failed"]["passes"].as_f64();
        let unchecked = metrics["checks"]["fails"].as_f64().unwrap_or(0.0);
        let dropped = metrics["dropped_iterations"]["count"].as_f64();
        Figures {
            per_s: metrics["http_reqs"]["rate"].as_f64(),
            p50_us: us("med"),
            p99_us: us("p(99)"),
            max_us: us("max"),
            errors: failed.map(|failed| failed + unchecked),
            remark: dropped.map_or_else(String::new, |count| format!("{count} dropped")),
        }
    }

    /// A user is a JavaScript machine of its own.
    fn most_connections(&self) -> usize {
        1_000
    }
}

fn script(job: &Job) -> String {
    let (users, seconds) = (job.connections, job.seconds);
    let load = match job.rate {
        None => format!("executor: 'constant-vus', vus: {users}, duration: '{seconds}s'"),
        Some(rate) => {
            let most = if job.unlimited { users * 10 } else { users };
            format!(
                "executor: 'constant-arrival-rate', rate: {rate}, timeUnit: '1s', duration: '{seconds}s', \
                 preAllocatedVUs: {users}, maxVUs: {most}"
            )
        }
    };
    let options = format!(
        "import http from 'k6/http';\nimport {{check}} from 'k6';\nconst origin = '{}';\n\
         export const options = {{\n  scenarios: {{one: {{{load}, gracefulStop: '30s'}}}},\n  \
         summaryTrendStats: ['med', 'p(99)', 'max'],\n  insecureSkipTLSVerify: true,\n  \
         discardResponseBodies: {},\n  noConnectionReuse: {},\n}};\n",
        job.origin, !job.session, job.close
    );
    let url = job.url();
    let body = match (&job.body, job.session) {
        (_, true) => SESSION.to_owned(),
        (Some(file), _) => format!(
            "const body = open('{}', 'b');\nexport default () => {{\n  \
             http.post('{url}', body, {{headers: {{'Content-Type': 'application/json'}}}});\n}};\n",
            file.display()
        ),
        (None, _) => format!("export default () => {{ http.get('{url}'); }};\n"),
    };
    options + &body
}
