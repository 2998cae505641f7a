//! Where imports lead: k6's own modules, libraries that are usual with it, and files beside the script.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Exception, Module, Object, Result};

use crate::intrinsics::complete;
use crate::script::{Script, normal};
use crate::{bytes, sockets, urls};

/// The modules that are built in.
const BUILT_IN: &[(&str, &str)] = &[
    ("k6", include_str!("js/k6.js")),
    ("k6/http", include_str!("js/http.js")),
    ("k6/metrics", include_str!("js/metrics.js")),
    ("k6/data", include_str!("js/data.js")),
    ("k6/encoding", include_str!("js/encoding.js")),
    ("k6/crypto", include_str!("js/crypto.js")),
    ("k6/execution", include_str!("js/execution.js")),
    ("k6/timers", include_str!("js/timers.js")),
    ("k6/html", include_str!("js/html.js")),
    ("k6/webcrypto", include_str!("js/webcrypto-module.js")),
    ("k6/net/grpc", include_str!("js/grpc.js")),
    ("k6/ws", include_str!("js/ws.js")),
    ("k6/websockets", include_str!("js/websockets.js")),
    ("k6/secrets", include_str!("js/secrets.js")),
    ("k6/experimental/fs", include_str!("js/fs.js")),
    ("k6/experimental/csv", include_str!("js/csv.js")),
];

/// What all that opens WebSockets or streams imports.
const SOCKETS: [&str; 2] = ["tidemark:sockets", "tidemark:heard"];

/// What the modules above and the libraries below share. A script has no use for it.
const SHARED: &[(&str, &str)] = &[
    ("tidemark:values", include_str!("js/lib/values.js")),
    ("tidemark:answer", include_str!("js/lib/answer.js")),
    ("tidemark:cookies", include_str!("js/cookies.js")),
    ("tidemark:response", include_str!("js/response.js")),
    ("tidemark:http", include_str!("js/http-core.js")),
    ("tidemark:more", include_str!("js/http-more.js")),
    ("tidemark:rehearsal", include_str!("js/rehearsal.js")),
    ("tidemark:requests", include_str!("js/requests.js")),
    ("tidemark:globals", include_str!("js/lib/globals.js")),
    (SOCKETS[0], include_str!("js/sockets.js")),
    (SOCKETS[1], include_str!("js/heard.js")),
];

/// Libraries that scripts import from jslib.k6.io, and k6-reporter, by their name in its URLs, whatever the version.
const LIBRARIES: &[(&str, &str)] = &[
    ("k6-utils", include_str!("js/lib/k6-utils.js")),
    ("k6-summary", include_str!("js/lib/k6-summary.js")),
    ("papaparse", include_str!("js/lib/papaparse.js")),
    ("url", include_str!("js/lib/url.js")),
    ("k6chaijs", include_str!("js/lib/k6chaijs.js")),
    ("k6-testing", include_str!("js/lib/k6-testing.js")),
    ("formdata", include_str!("js/lib/formdata.js")),
    ("httpx", include_str!("js/lib/httpx.js")),
    ("http-instrumentation-tempo", include_str!("js/lib/http-instrumentation-tempo.js")),
    ("k6-reporter", include_str!("js/lib/k6-reporter.js")),
];

/// What is not there, and why.
const REFUSED: &[(&str, &str)] = &[
    ("k6/browser", "k6/browser drives a browser; this program drives protocols"),
    ("k6/experimental/browser", "k6/browser drives a browser; this program drives protocols"),
    (
        "k6/experimental/redis",
        "k6/experimental/redis is not supported; a scenario's `redis` steps send to a Redis (docs/redis.md)",
    ),
    (
        "k6/experimental/streams",
        "k6/experimental/streams is not supported; k6/experimental/fs and k6/experimental/csv read files in parts",
    ),
];

/// Finds and loads modules.
#[derive(Debug, Clone)]
pub(crate) struct Modules(pub Arc<Script>);

/// The source of a module of its own name.
pub(crate) fn built_in(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().chain(SHARED).find(|(known, _)| *known == name).map(|(_, source)| *source)
}

/// Whether a module of this name is a part of this program.
pub(crate) fn is_ours(name: &str) -> bool {
    built_in(name).is_some()
        || name == "k6/globals"
        || name.starts_with("load tidemark:")
        || library(name).is_some()
}

/// The source that stands for a library of the web: one of jslib.k6.io or k6-reporter, from there or from where its source is
/// kept.
fn library(url: &str) -> Option<&'static str> {
    let place = url.split_once("://").map_or(url, |(_, place)| place);
    let (host, path) = place.split_once('/')?;
    let named = match host {
        "jslib.k6.io" => path.split('/').next()?,
        "raw.githubusercontent.com" | "github.com" | "cdn.jsdelivr.net"
            if path.contains("jslib") || path.contains("/k6-reporter") =>
        {
            path.split('/')
                .map(|part| part.split('@').next().unwrap_or_default())
                .map(|part| match part.strip_prefix("k6-jslib-") {
                    Some("k6chaijs") => "k6chaijs",
                    Some("utils") => "k6-utils",
                    Some("summary") => "k6-summary",
                    Some("testing") => "k6-testing",
                    Some(rest) => rest,
                    None => part,
                })
                .find(|part| LIBRARIES.iter().any(|(known, _)| known == part))?
        }
        _ => return None,
    };
    LIBRARIES.iter().find(|(known, _)| *known == named).map(|(_, source)| *source)
}

/// Adds the natives that a module needs beside those that all have: a user begins sooner without them.
fn install_for(ctx: &Ctx<'_>, name: &str) -> Result<()> {
    let natives = || ctx.globals().get::<_, Object<'_>>("__k6");
    // they return bytes
    let with_bytes = || complete(ctx).and_then(|()| bytes::install(&natives()?));
    match name {
        name if SOCKETS.contains(&name) => sockets::install(&natives()?),
        "tidemark:more" | "tidemark:globals" | "k6/crypto" | "k6/encoding" | "k6/net/grpc"
        | "k6/webcrypto" | "k6/experimental/fs" => with_bytes(),
        _ if built_in(name).is_some() => Ok(()),
        _ => with_bytes().and_then(|()| urls::install(&natives()?)),
    }
}

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        let told = name.strip_prefix("file://").unwrap_or(name);
        if built_in(told).is_some() {
            return Ok(told.to_owned());
        }
        if let Some(timer) = told.strip_prefix("k6/experimental/")
            && BUILT_IN.iter().any(|(known, _)| known.strip_prefix("k6/") == Some(timer))
        {
            return Ok(format!("k6/{timer}"));
        }
        let refused =
            REFUSED.iter().find(|(known, _)| *known == told || told.starts_with(&format!("{known}/")));
        if let Some((_, why)) = refused {
            return Err(Exception::throw_message(ctx, why));
        }
        if told.contains("://") || told.starts_with("jslib.") {
            if library(told).is_some() {
                return Ok(told.to_owned());
            }
            let names: Vec<&str> = LIBRARIES.iter().map(|(name, _)| *name).collect();
            let why = format!(
                "{told}: nothing is fetched; save it beside the script, and import it by its path (built in are {})",
                names.join(", ")
            );
            return Err(Exception::throw_message(ctx, &why));
        }
        if told.starts_with("k6/") || told == "k6" {
            return Err(Exception::throw_message(ctx, &format!("there is no module {told}")));
        }
        let is_path = told.starts_with('.') || Path::new(told).is_absolute();
        if !is_path {
            let why = format!("{told} is not a module of k6; a file's path begins with ./, ../ or /");
            return Err(Exception::throw_message(ctx, &why));
        }
        let folder = Path::new(base).parent().unwrap_or(Path::new("."));
        let path = normal(&folder.join(told));
        let with = |end: &str| {
            let mut name = path.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        };
        let candidates =
            [path.clone(), with(".js"), with(".ts"), path.join("index.js"), path.join("index.ts")];
        let found = candidates.iter().find(|path| path.is_file()).unwrap_or(&path);
        Ok(found.to_string_lossy().into_owned())
    }
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        if let Some(source) = built_in(name).or_else(|| library(name)) {
            if SOCKETS.contains(&name) {
                self.0.opens_websockets.store(true, Ordering::Relaxed);
            }
            install_for(ctx, name)?;
            return self.0.compiled.module(ctx, name, || Ok(source.to_owned()));
        }
        let failed = |why: String| Exception::throw_message(ctx, &why);
        self.0.compiled.module(ctx, name, || {
            let bytes = self.0.file(Path::new(name)).map_err(failed)?;
            let text =
                String::from_utf8(bytes.to_vec()).map_err(|_| failed(format!("{name} is not UTF-8")))?;
            match name.ends_with(".json") {
                true => Ok(format!("export default {text}")),
                false => self.0.plain(Path::new(name), text).map_err(failed),
            }
        })
    }
}

/// Whether code may list the fields of an object, as `Object.keys(res)` and `{...res}` do.
fn lists_fields(text: &str) -> bool {
    let spreads = |(at, dots): (usize, &str)| {
        let next = text[at + dots.len()..].trim_start().chars().next();
        next.is_some_and(|next| next.is_alphabetic() || "_$([".contains(next))
    };
    ["Object.", "Object[", "Reflect", "ownProperty", "OwnProperty"].iter().any(|word| text.contains(word))
        || text.match_indices("...").any(spreads)
}

impl Script {
    /// A file's JavaScript.
    ///
    /// # Errors
    /// If it is TypeScript, and this program cannot read that.
    pub fn plain(&self, path: &Path, text: String) -> std::result::Result<String, String> {
        if lists_fields(&text) {
            self.lists_fields.store(true, Ordering::Relaxed);
        }
        let is_typed = path.extension().is_some_and(|extension| extension == "ts" || extension == "mts");
        #[cfg(feature = "typescript")]
        if is_typed {
            let shown =
                if path == self.path { self.name.clone() } else { path.to_string_lossy().into_owned() };
            return crate::typescript::plain(&shown, &text);
        }
        #[cfg(not(feature = "typescript"))]
        if is_typed {
            return Err(format!(
                "{}: TypeScript is not supported in this build; make JavaScript of it, or build this program with --features typescript",
                path.display()
            ));
        }
        // an interpreter's line; the lines after it keep their numbers
        let text = match text.strip_prefix("#!") {
            Some(rest) => format!("//{rest}"),
            None => text,
        };
        Ok(crate::commonjs::as_module(text))
    }
}

/// An error of ours in a script.
pub(crate) fn thrown(ctx: &Ctx<'_>, why: &str) -> Error {
    Exception::throw_message(ctx, why)
}
