//! What `tidemark` alone says: every verb with an example.

use crate::failure::Failure;
use crate::output;

const TEXT: &str = "\
Tidemark measures how much load a system really holds, at what latency and cost.

  tidemark run airline                    drive a shipped scenario, and report
  tidemark run my.yaml --rate 5k/s        drive your own, with another load
  tidemark run kv-redis --help            its settings, each with its default
  tidemark run my.yaml --once -v          one session, each request and answer
  tidemark hit http://127.0.0.1:8080/     hit one URL, and report
  tidemark init http://127.0.0.1:8080/    write a first scenario of your own
  tidemark check my.yaml                  look for mistakes without running
  tidemark report last --html last.html   show a run again
  tidemark compare runs/a runs/b          hold two runs against each other
  tidemark compare my.yaml --vs pool=20   two settings, in turn until it is sure
  tidemark limit my.yaml                  the highest load that holds
  tidemark history                        how figures went over all runs
  tidemark verify last                    check again whether it lost anything
  tidemark cube last                      what its system says that it did
  tidemark ui                             all runs in a browser, live
  tidemark serve airline --data ./data    only serve a system, on 127.0.0.1:9080

Every verb has --help.
Shipped scenarios:";

/// Longest line.
const COLUMNS: usize = 80;

/// Prints the verbs.
pub fn print() -> Result<u8, Failure> {
    let mut text = TEXT.to_owned();
    let mut column = text.len() - text.rfind('\n').map_or(0, |end| end + 1);
    let mut names = tidemark_scenario::shipped_names().peekable();
    while let Some(name) = names.next() {
        let comma = if names.peek().is_some() { "," } else { "" };
        let length = 1 + name.len() + comma.len();
        if column + length > COLUMNS {
            text += "\n ";
            column = 1;
        }
        text += &format!(" {name}{comma}");
        column += length;
    }
    output::print(&format!("{text}\n"))?;
    Ok(tidemark_lab::EXIT_PASS)
}
