//! From a URL.

use tidemark_scenario::secrets::is_secret;
use tidemark_scenario::source::{Load, Map, Method, Request, Scenario, Session, System, verbatim};
use tidemark_scenario::system_url::SystemUrl;
use url::{Position, Url, form_urlencoded};

use crate::curl;
use crate::error::ImportError;
use crate::names::Settings;
use crate::objectives;
use crate::target::with_scheme;

/// How the path of an OpenAPI document ends, usually.
const DOCUMENTS: [&str; 4] = ["openapi.json", "openapi.yaml", "swagger.json", "swagger.yaml"];

/// What to do with a command line of curl.
pub const OF_CURL: &str =
    "init reads no command line of curl; hit does: tidemark hit --print-scenario curl … > my.yaml";

/// A scenario of one request.
pub(super) fn scenario(text: &str) -> Result<Scenario, ImportError> {
    let url = read(text)?;
    let (query, settings) = query(&url);
    let mut comment =
        "Made by tidemark init. All keys: docs/scenario.md; mistakes: tidemark check FILE.".to_owned();
    if DOCUMENTS.iter().any(|name| url.path().ends_with(name)) {
        comment += "\nThis looks like an OpenAPI document: save it and run tidemark init FILE.";
    }
    let step = Request {
        comment: "More steps go below this one: what a user does, in order; POST, think, extract, …".into(),
        check: Map::from([("status", 200u64)]),
        query: query.secret,
        ..Request::new(Method::Get, verbatim(url.path()) + &query.open)
    };
    Ok(Scenario {
        comment,
        settings,
        system: Some(System {
            url: Some(verbatim(&url[..Position::BeforePath]).into()),
            ..System::default()
        }),
        sessions: vec![("visitor".into(), Session { steps: vec![step.into()], ..Session::default() })],
        load: Some(Load {
            comment: "Open: so many arrive, whether or not the system keeps up; `users: 10` makes it closed."
                .into(),
            rate: Some("100/s".into()),
            warm_up: Some("2s".into()),
            hold: Some("10s".into()),
            ..Load::default()
        }),
        objectives: objectives(),
        ..Scenario::default()
    })
}

/// What is asked in a URL.
#[derive(Default)]
struct Query {
    /// As it stands there, with its `?`.
    open: String,
    /// Secrets: a setting stands for each.
    secret: Map,
}

/// What a URL asks, and the settings for what is secret in it.
fn query(url: &Url) -> (Query, Map) {
    let (mut query, mut settings) = (Query::default(), Settings::new(Map::new()));
    for pair in url.query().into_iter().flat_map(|query| query.split('&')) {
        let meant = form_urlencoded::parse(pair.as_bytes()).next();
        match meant.filter(|(name, value)| is_secret(name, value)) {
            Some((name, _)) => {
                let comment = "a secret, not copied from the URL: set this variable, or give --set";
                let setting = settings.secret(format!("secret {name}"), &name, "url_secret", comment);
                query.secret.insert(verbatim(&name), format!("${{{setting}}}"));
            }
            None => {
                query.open += if query.open.is_empty() { "?" } else { "&" };
                query.open += &verbatim(pair);
            }
        }
    }
    (query, settings.map)
}

fn read(text: &str) -> Result<Url, ImportError> {
    let whole = match text {
        _ if with_scheme(text).is_some() => text.to_owned(),
        // a port alone is one of this machine
        _ if text.starts_with(':') => format!("http://localhost{text}"),
        _ => format!("http://{text}"),
    };
    let wrong = |reason: &str| {
        ImportError::new(format!(
            "`{text}` is neither a file that is there nor a URL to begin with: {reason}"
        ))
    };
    if curl::command_line(text).is_some() {
        return Err(ImportError::new(OF_CURL));
    }
    let url = Url::parse(&whole).map_err(|error| wrong(&format!("{error}; write http://HOST:PORT/PATH")))?;
    match url.scheme() {
        "http" | "https" => {}
        "redis" | "rediss" | "memcached" | "postgres" | "postgresql" | "cql" | "aerospike" => {
            return Err(wrong(
                "init makes scenarios of HTTP; docs/kv.md, docs/sql.md, docs/cql.md and docs/aerospike.md have some to begin with",
            ));
        }
        "ws" | "wss" => {
            let of_http = whole.replacen("ws", "http", 1);
            return Err(wrong(&format!(
                "init makes scenarios of HTTP: give {of_http}, and write the step `ws connect: {}` into the scenario in place \
                 of `GET` (docs/scenario.md has a WebSocket to begin with)",
                url.path()
            )));
        }
        _ => {
            return Err(wrong(
                "it begins neither with http:// nor with https://; write http://HOST:PORT/PATH",
            ));
        }
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(
            "leave name and password out; in the scenario they stand under `auth`: ${env(\"NAME\")}",
        ));
    }
    SystemUrl::read(&url[..Position::BeforePath]).map_err(|reason| wrong(&reason))?;
    Ok(url)
}
