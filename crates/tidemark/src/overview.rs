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
  tidemark cost last --prices p.yaml      what it costs in money
  tidemark plan last --growth 10          what ten times the load takes
  tidemark reproduce                      the five experiments, on one page
  tidemark ui                             all runs in a browser, live
  tidemark serve airline --data ./data    only serve a system, on 127.0.0.1:9080
  tidemark up airline                     all that it has, until Ctrl-C
  tidemark roll airline                   replace its instances meanwhile
  tidemark scale airline web=5            have more or fewer of them
  tidemark manifests airline              for Kubernetes, systemd, Compose

Every verb has --help.
Shipped scenarios:";

/// Longest line; on a narrower terminal what an example does stands below it.
const COLUMNS: usize = 80;
/// Where that stands beside it.
const BESIDE: usize = 42;

/// Prints the verbs.
pub fn print() -> Result<u8, Failure> {
    let columns = output::columns().clamp(output::NARROWEST, COLUMNS);
    let mut text = TEXT.to_owned();
    if columns < COLUMNS {
        text = output::fit(&text.lines().map(below).collect::<Vec<_>>().join("\n"), Some(columns));
    }
    let mut column = text.len() - text.rfind('\n').map_or(0, |end| end + 1);
    let mut names = tidemark_scenario::shipped_names().peekable();
    while let Some(name) = names.next() {
        let comma = if names.peek().is_some() { "," } else { "" };
        let length = 1 + name.len() + comma.len();
        if column + length > columns {
            text += "\n ";
            column = 1;
        }
        text += &format!(" {name}{comma}");
        column += length;
    }
    output::print(&format!("{text}\n"))?;
    Ok(tidemark_lab::EXIT_PASS)
}

/// An example above what it does.
fn below(line: &str) -> String {
    match (line.starts_with("  "), line.split_at_checked(BESIDE)) {
        (true, Some((example, does))) => format!("{}\n      {does}", example.trim_end()),
        _ => line.to_owned(),
    }
}
