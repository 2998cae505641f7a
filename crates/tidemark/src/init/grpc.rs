//! A first scenario of a server of gRPC, from what its reflection tells.

use tidemark_scenario::protobuf::{MethodName, Types};
use tidemark_scenario::source::{Load, Map, Scenario, Session, Step, System, Value, verbatim};

use crate::failure::Failure;
use crate::hit::grpc::{own_methods, value};

/// How a method's name begins that only reads.
const READING: [&str; 8] = ["Get", "List", "Read", "Find", "Search", "Query", "Check", "Count"];

/// A step for each method that only reads, by its name; the others as a comment.
pub fn scenario(url: &str) -> Result<Scenario, Failure> {
    let url = url.trim_end_matches('/');
    let types = tidemark_lab::message_types(url)?;
    let methods = own_methods(&types);
    // `Check` reads, `Checkout` does not
    let reads = |method: &MethodName| {
        let rest = READING.iter().filter_map(|begin| method.method.strip_prefix(begin));
        rest.into_iter().any(|rest| !rest.starts_with(|next: char| next.is_ascii_lowercase()))
    };
    let (mut reading, mut writing): (Vec<MethodName>, Vec<MethodName>) = methods.into_iter().partition(reads);
    let none_reads = reading.is_empty();
    if none_reads {
        if writing.is_empty() {
            return Err(Failure::usage(format!("{url} names no service of its own by reflection")));
        }
        // one has to be there
        reading.push(writing.remove(0));
    }
    let mut steps =
        reading.iter().map(|method| step(&types, method)).collect::<Result<Vec<Map>, Failure>>()?;
    let commented =
        writing.iter().map(|method| step(&types, method)).collect::<Result<Vec<Map>, Failure>>()?;
    let mut lines = Vec::new();
    if !commented.is_empty() {
        lines.push("These may change something; take in those that a user calls:".to_owned());
        lines.extend(commented.iter().flat_map(as_step));
    }
    if none_reads {
        lines.push("No method's name says that it only reads: this one may change something.".to_owned());
    }
    if let Some(first) = steps.first_mut().filter(|_| !lines.is_empty()) {
        *first = with_comment(first, &lines.join("\n"));
    }
    let steps = steps.into_iter().map(Step::Other).collect();
    Ok(Scenario {
        comment:
            "Made by tidemark init from the server's reflection. All keys: docs/grpc.md, docs/scenario.md; \
                  mistakes: tidemark check FILE.\nMessages have each field with its default: fill them in."
                .into(),
        system: Some(System { url: Some(verbatim(url).into()), ..System::default() }),
        sessions: vec![("caller".into(), Session { steps, ..Session::default() })],
        load: Some(Load {
            comment: "Open: so many arrive, whether or not the system keeps up; `users: 10` makes it closed."
                .into(),
            rate: Some("100/s".into()),
            warm_up: Some("2s".into()),
            hold: Some("10s".into()),
            ..Load::default()
        }),
        objectives: vec!["p99 < 250ms".into(), "errors < 0.1%".into()],
        ..Scenario::default()
    })
}

/// A call with an example of a message.
fn step(types: &Types, name: &MethodName) -> Result<Map, Failure> {
    let method = types.method(name).map_err(Failure::usage)?;
    let example = value(&method.example());
    let mut step = Map::from([("grpc", verbatim(&name.to_string()))]);
    step.insert("message", if method.sends_many() { Value::List(vec![example]) } else { example });
    Ok(step)
}

/// The lines of a step.
fn as_step(step: &Map) -> Vec<String> {
    let text = step.to_yaml();
    let lines = text.lines().filter(|line| !line.trim().is_empty()).enumerate();
    lines.map(|(at, line)| format!("{}{line}", if at == 0 { "- " } else { "  " })).collect()
}

/// The same step with lines above it.
fn with_comment(step: &Map, comment: &str) -> Map {
    let mut commented = Map::new();
    for (at, entry) in step.entries().iter().enumerate() {
        let above = if at == 0 { comment } else { "" };
        commented.insert_with_comment(above, entry.key.as_str(), entry.value.clone());
    }
    commented
}
