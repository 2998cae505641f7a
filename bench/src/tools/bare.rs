//! The bare loops of this program, as if they were tools.

use crate::job::Job;
use crate::process::Used;
use crate::tool::{Figures, Tool, words};

pub struct Bare {
    pub io: &'static str,
}

impl Tool for Bare {
    fn name(&self) -> &'static str {
        if self.io == "epoll" { "bare epoll loop" } else { "bare io_uring loop" }
    }

    fn program(&self) -> &'static str {
        "tidemark-bench"
    }

    fn arguments(&self, job: &Job) -> std::io::Result<Option<Vec<String>>> {
        let plain = job.rate.is_none() && job.body.is_none() && job.pipeline <= 1 && job.path == "/";
        if !plain || job.close || job.tls() || job.session {
            return Ok(None);
        }
        let address = job.origin.trim_start_matches("http://");
        let (connections, seconds) = (job.connections.to_string(), job.seconds.to_string());
        Ok(Some(words(["bare", self.io, address, "-c", &connections, "-d", &seconds])))
    }

    /// They measure nothing.
    fn figures(&self, _job: &Job, _used: &Used) -> Figures {
        Figures::default()
    }
}
