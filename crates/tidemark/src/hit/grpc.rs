//! A call of gRPC as what is hit: `hit grpc://127.0.0.1:50051/shop.Cart/Add -b '{"amount": 1}'`.

use std::path::Path;

use tidemark_import::{header, read_small};
use tidemark_record::GrpcCode;
use tidemark_scenario::protobuf::{MethodName, Types};
use tidemark_scenario::source::{Map, Scalar, Step, Value, verbatim};
use tidemark_scenario::units::Time;

use super::args::HitArguments;
use crate::failure::Failure;

/// What such URLs begin with.
const SCHEMES: [&str; 2] = ["grpc://", "grpcs://"];
/// Services that every server may have, which nobody wants to load.
const OF_ALL: [&str; 3] = ["grpc.reflection.", "grpc.health.", "grpc.channelz."];
/// Methods that an error names.
const SHOWN: usize = 20;

/// Whether a URL is of a server that speaks gRPC.
pub fn is_grpc(url: &str) -> bool {
    SCHEMES.iter().any(|scheme| url.starts_with(scheme))
}

/// The server of a URL, and the method in its path, if one stands there.
fn split(url: &str) -> (&str, Option<MethodName>) {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let at = url[begin..].find('/').map_or(url.len(), |at| begin + at);
    (&url[..at], MethodName::read(&url[at..]))
}

/// The server of a URL, and the method in its path. Where there is none, the server's reflection tells those that there are.
pub fn asked(url: &str) -> Result<(&str, MethodName), Failure> {
    let (server, method) = split(url);
    if let Some(method) = method {
        return Ok((server, method));
    }
    let there = match tidemark_lab::message_types(server).map(|types| own_methods(&types)) {
        Err(reason) => format!("which it has is not known: {reason}"),
        Ok(known) => {
            let names: Vec<String> = known.iter().take(SHOWN).map(MethodName::to_string).collect();
            let more = if known.len() > SHOWN { ", …" } else { "" };
            format!("the server has {}{more}", names.join(", "))
        }
    };
    let scheme = url.split("://").next().unwrap_or("grpc");
    Err(Failure::usage(format!("`{url}` needs a method, as in {scheme}://HOST:PORT/shop.Cart/Add; {there}")))
}

/// The methods of a server's own services.
pub fn own_methods(types: &Types) -> Vec<MethodName> {
    let mut methods = types.methods();
    methods.retain(|method| !OF_ALL.iter().any(|begin| method.service.starts_with(begin)));
    methods
}

/// The call; its message is the body.
pub fn step(arguments: &HitArguments, method: &MethodName) -> Result<Step, Failure> {
    let of_http = [
        ("-m", arguments.method.is_some()),
        ("--content-type", arguments.content_type.is_some()),
        ("--urls", arguments.urls.is_some()),
        ("--random-path", arguments.random_path.is_some()),
        ("--http", arguments.reach.http.is_some()),
        ("--pipeline", arguments.pipeline > 1),
    ];
    if let Some((flag, _)) = of_http.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(format!(
            "{flag} is for HTTP; of gRPC the method stands in the URL and the message is the body: -b '{{\"amount\": 1}}'"
        )));
    }
    let mut step = Map::from([("grpc", verbatim(&method.to_string()))]);
    if let Some(message) = message(arguments)? {
        step.insert("message", message);
    }
    let mut metadata = Map::new();
    for line in &arguments.headers {
        let (name, value) = header(line).ok_or_else(|| {
            Failure::usage(format!("-H '{line}' is not metadata; write it as 'name: value'"))
        })?;
        metadata.insert(verbatim(name), verbatim(value));
    }
    if !metadata.is_empty() {
        step.insert("metadata", metadata);
    }
    if let Some(timeout) = arguments.timeout {
        step.insert("timeout", Scalar::from(Time(timeout)));
    }
    if !arguments.expect.is_empty() {
        let code = |text: &String| {
            GrpcCode::from_name(text).map(|code| Value::from(code.name())).ok_or_else(|| {
                Failure::usage(format!(
                    "--expect {text}: a status of gRPC is one of {}",
                    GrpcCode::NAMES.join(", ")
                ))
            })
        };
        let codes = arguments.expect.iter().map(code).collect::<Result<Vec<_>, _>>()?;
        step.insert("check", Map::from([("status", codes)]));
    }
    Ok(Step::Other(step))
}

/// What is said of the server beside its URL.
pub fn types(arguments: &HitArguments) -> Result<Map, Failure> {
    let named = |files: &[std::path::PathBuf]| -> Result<Vec<Value>, Failure> {
        files.iter().map(|file| absolute(file)).collect()
    };
    let mut types = Map::new();
    if !arguments.proto.is_empty() {
        types.insert("protos", named(&arguments.proto)?);
    }
    if !arguments.import_path.is_empty() {
        types.insert("includes", named(&arguments.import_path)?);
    }
    if let Some(file) = &arguments.protoset {
        types.insert("descriptors", absolute(file)?);
    }
    Ok(types)
}

fn absolute(file: &Path) -> Result<Value, Failure> {
    let whole =
        std::path::absolute(file).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    Ok(verbatim(&whole.to_string_lossy()).into())
}

fn message(arguments: &HitArguments) -> Result<Option<Value>, Failure> {
    let bytes = match (&arguments.body, &arguments.body_file) {
        (_, Some(file)) => read_small(file, "the message")?,
        (Some(body), None) => match body.strip_prefix('@') {
            Some(file) => read_small(file.as_ref(), "the message")?,
            None => body.clone().into_bytes(),
        },
        (None, None) => return Ok(None),
    };
    let json: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::usage(format!("the message is not JSON: {error}")))?;
    Ok(Some(value(&json)))
}

/// JSON as it stands in a scenario, where nothing in it is a hole.
pub fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::default(),
        serde_json::Value::Bool(truth) => Value::from(*truth),
        serde_json::Value::Number(number) => Value::from(Scalar::unquoted(&number.to_string())),
        serde_json::Value::String(text) => Value::from(verbatim(text)),
        serde_json::Value::Array(items) => Value::List(items.iter().map(value).collect()),
        serde_json::Value::Object(fields) => {
            Value::Map(fields.iter().map(|(name, field)| (verbatim(name), value(field))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_server_and_a_method() {
        let (server, method) = split("grpc://127.0.0.1:50051/shop.Cart/Add");
        assert_eq!((server, method.unwrap().path()), ("grpc://127.0.0.1:50051", "/shop.Cart/Add".to_owned()));
        for url in ["grpc://h", "grpc://h/", "grpc://h/Add"] {
            assert_eq!(split(url), ("grpc://h", None), "{url}");
        }
    }
}
