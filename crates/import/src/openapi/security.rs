//! Who asks: each scheme of a document becomes settings that hold its secrets.

use serde_json::Value as Json;
use tidemark_scenario::secrets::is_secret_name;
use tidemark_scenario::source::{Map, Request, verbatim};

use super::request::is_header;
use crate::names::{Settings, name_of, variable};

/// What a request carries for a scheme.
enum Carries {
    Bearer,
    Basic,
    Header(String),
    Query(String),
    Cookie(String),
}

/// What a login has left for the requests behind it: cookies, which the session keeps, and perhaps a token.
#[derive(Default)]
pub(super) struct Login {
    /// The variable with the token.
    pub(super) token: Option<&'static str>,
}

/// Puts in what an operation requires; a line for what cannot be sent. What is a comment `makes` no settings: a run would need
/// them.
pub(super) fn put(
    (document, operation): (&Json, &Json),
    settings: &mut Settings,
    login: Option<&Login>,
    makes: bool,
    request: &mut Request,
) -> Option<String> {
    let required = required(document, operation)?;
    let schemes = |of: &Json| -> Vec<(String, Option<Carries>)> {
        let names = of.as_object().into_iter().flatten().map(|(name, _)| name.clone());
        names
            .map(|name| {
                let carries = carries(document, &name);
                (name, carries)
            })
            .collect()
    };
    let is_known = |of: &&Json| schemes(of).iter().all(|(_, carries)| carries.is_some());
    let Some(alternative) = required.iter().find(is_known) else {
        let names: Vec<String> = required.iter().flat_map(&schemes).map(|(name, _)| name).collect();
        return Some(format!("it requires {}, which is not sent: add it by hand", names.join(" or ")));
    };
    for (name, carries) in schemes(alternative) {
        let comment =
            format!("a secret of the scheme {}: set this variable, or give --set", super::short(&name));
        let mut secret = |part: &str, wanted: &str| {
            let other = format!("{}_{wanted}", name_of(&name));
            let what = format!("scheme {name} {part}");
            if !makes && settings.of(&what).is_none() {
                return variable(&name_of(wanted));
            }
            let setting = settings.secret(what, wanted, &other, &comment);
            format!("${{{setting}}}")
        };
        let key = |header: &str| {
            let wanted = name_of(header);
            if is_secret_name(&wanted) { wanted } else { format!("{wanted}_key") }
        };
        match carries {
            Some(Carries::Bearer) => {
                let token = login
                    .and_then(|login| login.token)
                    .map_or_else(|| secret("token", "token"), |token| format!("${{{token}}}"));
                request.other.insert("auth", Map::from([("bearer", token)]));
            }
            Some(Carries::Basic) => {
                let login = [("user", secret("user", "user")), ("password", secret("password", "password"))];
                request.other.insert("auth", Map::from([("basic", Map::from(login))]));
            }
            Some(Carries::Header(header)) => {
                let value = secret("key", &key(&header));
                let names = request.headers.entries().iter().map(|entry| entry.key.clone());
                let same: Vec<String> = names.filter(|name| name.eq_ignore_ascii_case(&header)).collect();
                same.iter().for_each(|name| drop(request.headers.remove(name)));
                request.headers.insert(header, value);
            }
            Some(Carries::Query(parameter)) => {
                let value = secret("key", &key(&parameter));
                request.query.insert(verbatim(&parameter), value);
            }
            // the session keeps it
            Some(Carries::Cookie(_)) if login.is_some() => {}
            Some(Carries::Cookie(cookie)) => {
                let value = format!("{}={}", verbatim(&cookie), secret("key", &key(&cookie)));
                let before = request.headers.get("Cookie").and_then(|value| value.as_str());
                let all = before.map_or(value.clone(), |before| format!("{before}; {value}"));
                request.headers.insert("Cookie", all);
            }
            None => {}
        }
    }
    None
}

/// The alternatives, of which one is required; nothing where anybody may ask.
fn required<'d>(document: &'d Json, operation: &'d Json) -> Option<&'d Vec<Json>> {
    let security = operation.get("security").or(document.get("security"))?.as_array()?;
    let is_open = |of: &Json| of.as_object().is_none_or(serde_json::Map::is_empty);
    (!security.is_empty() && !security.iter().any(is_open)).then_some(security)
}

/// Whether nobody is asked who comes.
pub(super) fn is_open(document: &Json, operation: &Json) -> bool {
    required(document, operation).is_none()
}

/// Whether what a login gives, a token or a cookie, is what some scheme asks for.
pub(super) fn has_logins(document: &Json) -> bool {
    let schemes = document["components"]["securitySchemes"].as_object();
    let mut names = schemes.into_iter().flatten().map(|(name, _)| name);
    names.any(|name| matches!(carries(document, name), Some(Carries::Bearer | Carries::Cookie(_))))
}

fn carries(document: &Json, name: &str) -> Option<Carries> {
    let scheme = document["components"]["securitySchemes"].get(name)?;
    let scheme = scheme["$ref"]
        .as_str()
        .and_then(|place| place.strip_prefix('#'))
        .and_then(|pointer| document.pointer(pointer))
        .unwrap_or(scheme);
    let key = scheme["name"].as_str().filter(|name| !name.is_empty()).map(super::short);
    match (scheme["type"].as_str()?, scheme["in"].as_str().unwrap_or_default()) {
        ("http", _) => match scheme["scheme"].as_str()?.to_ascii_lowercase().as_str() {
            "bearer" => Some(Carries::Bearer),
            "basic" => Some(Carries::Basic),
            _ => None,
        },
        ("oauth2" | "openIdConnect", _) => Some(Carries::Bearer),
        ("apiKey", "header") => {
            let key = key?;
            match key.eq_ignore_ascii_case("authorization") {
                // a scheme of its own in front of the token is for the person to write
                true => Some(Carries::Header("Authorization".into())),
                false if is_header(&key) => Some(Carries::Header(key)),
                false => None,
            }
        }
        ("apiKey", "query") => Some(Carries::Query(key?)),
        ("apiKey", "cookie") => key.filter(|key| is_header(key)).map(Carries::Cookie),
        _ => None,
    }
}
