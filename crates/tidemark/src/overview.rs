//! What `tidemark` alone says: every verb with an example.

use crate::failure::Failure;
use crate::output;

const TEXT: &str = "\
Tidemark measures how much load a system really holds, at what latency and cost.

  tidemark run airline                    drive a shipped scenario, and report
  tidemark run my.yaml --rate 5k/s        drive your own, with another load
  tidemark hit http://127.0.0.1:8080/     hit one URL, and report
  tidemark check my.yaml                  look for mistakes without running
  tidemark report last --html last.html   show a run again
  tidemark verify last                    check again whether it lost anything
  tidemark serve airline --data ./data    only serve a system, on 127.0.0.1:9080

Every verb has --help.
Shipped scenarios: ";

/// Prints the verbs.
pub fn print() -> Result<u8, Failure> {
    let names: Vec<&str> = tidemark_scenario::shipped_names().collect();
    output::print(&format!("{TEXT}{}\n", names.join(", ")))?;
    Ok(tidemark_lab::EXIT_PASS)
}
