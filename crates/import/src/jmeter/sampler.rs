//! HTTP samplers become requests, with what holds for them: defaults, headers, credentials, timers, checks.

use std::collections::HashSet;

use percent_encoding::percent_decode_str;
use tidemark_scenario::source::{Map, Request, Step, Value, method_as_sent, verbatim};
use url::form_urlencoded;

use super::text::reference_end;
use super::tree::{self, Node};
use super::value::Expr;
use super::{Common, Making, REDIRECTS, STEPS_MAX, Scope, header_value};
use crate::har::hidden::is_secret_name;
use crate::xml::Element;

/// Headers that the load generator writes itself.
const OWN_HEADERS: [&str; 4] = ["host", "content-length", "transfer-encoding", "expect"];
/// Most headers of a request.
const HEADERS_MAX: usize = 200;

/// An HTTP sampler with its defaults.
struct Sampler<'a, 's> {
    node: &'a Node<'a>,
    defaults: &'s [&'a Node<'a>],
}

/// Where a request goes.
struct Place {
    /// Scheme, host and port, as the scenario has them.
    origin: String,
    /// The same with the defaults of settings.
    known: String,
    path: String,
}

/// A parameter of a request.
struct Parameter<'a> {
    element: &'a Element,
    name: &'a str,
    value: &'a str,
    is_encoded: bool,
}

impl<'a> Sampler<'a, '_> {
    /// The sampler's own property, or that of the nearest defaults.
    fn text(&self, name: &str) -> &'a str {
        let own = self.node.text(name);
        if !own.trim().is_empty() {
            return own;
        }
        let of_defaults = self.defaults.iter().map(|defaults| defaults.text(name));
        of_defaults.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> bool {
        self.text(name).trim() == "true"
    }

    /// The sampler's parameters, and behind them those of the defaults.
    fn parameters(&self) -> Vec<Parameter<'a>> {
        let all = std::iter::once(self.node).chain(self.defaults.iter().copied());
        let elements = all.flat_map(|node| node.arguments("HTTPsampler.Arguments"));
        let text = |element, name| tree::property(element, name).unwrap_or_default();
        let made = elements.map(|element| Parameter {
            element,
            name: text(element, "Argument.name"),
            value: text(element, "Argument.value"),
            is_encoded: text(element, "HTTPArgument.always_encode") == "true",
        });
        made.collect()
    }

    fn files(&self) -> &'a [Element] {
        let files = self.node.part("HTTPsampler.Files");
        let list = files.and_then(|files| {
            files.children.iter().find(|child| child.attribute("name") == Some("HTTPFileArgs.files"))
        });
        list.map(|list| list.children.as_slice()).unwrap_or_default()
    }
}

impl<'a> Making<'a> {
    /// The steps of a sampler: pauses before it, what is set, the request, what is made of its answer.
    pub(super) fn sampler(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let scope = scope.with(&node.children);
        node.children.iter().for_each(|child| match child.is_enabled() {
            true => self.aside(child),
            false => self.disable(child),
        });
        self.steps += 1;
        if self.steps > STEPS_MAX {
            self.leave_out_request(node, &format!("sent a request; this is beyond {STEPS_MAX}"));
            return Vec::new();
        }
        let mut steps = self.scripts(&scope, "PreProcessor");
        steps.extend(self.pauses(&scope));
        let before = std::mem::take(&mut self.before);
        let after = std::mem::take(&mut self.after);
        let request = self.request(node, &scope);
        steps.append(&mut std::mem::replace(&mut self.before, before));
        if let Some(mut request) = request {
            let ends = self.ends_where_failed(&mut request);
            steps.push(request.into());
            steps.extend(ends);
            steps.append(&mut self.after);
            steps.extend(self.scripts(&scope, "PostProcessor"));
        }
        self.after = after;
        steps
    }

    /// Ends the session where the request fails, if its thread group does: what a failed request extracts is missing.
    fn ends_where_failed(&mut self, request: &mut Request) -> Vec<Step> {
        if !self.group.ends_on_error && !self.asks_last {
            return Vec::new();
        }
        let name = self.answered();
        request.extract.insert(name.clone(), "status");
        if !self.group.ends_on_error {
            return Vec::new();
        }
        let steps = vec![Step::Other(Map::from([("end", "session")]))];
        self.conditional(&format!("not exists({name})"), steps)
    }

    /// The variable that is missing behind a request that failed.
    pub(super) fn answered(&mut self) -> String {
        let name = self.group.answered.take().unwrap_or_else(|| self.own_name("answered"));
        self.group.answered = Some(name.clone());
        name
    }

    fn request(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Option<Request> {
        let defaults: Vec<&Node<'_>> = scope.inward(&["ConfigTestElement"]).collect();
        let sampler = Sampler { node, defaults: &defaults };
        let Some(Place { origin, known: server, mut path }) = self.place(&sampler) else {
            self.leave_out_request(node, "sent a request to a host that is known only while it runs");
            return None;
        };
        let written = match sampler.text("HTTPSampler.method").trim() {
            "" => "GET",
            method => method,
        };
        let known = self.known(written, node).unwrap_or_default();
        let Some(method) = method_as_sent(known.trim()).map(str::to_owned) else {
            self.leave_out_request(
                node,
                &format!("sent a request with the method {}", super::shown(written)),
            );
            return None;
        };
        let mut common = Common::default();
        let mut request = Request::named(&method, "");
        let closes;
        (common.headers, closes) = self.headers(scope, node);
        let takes_body = !matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE")
            && (method != "DELETE" || sampler.flag("HTTPSampler.postBodyRaw"));
        let is_raw = sampler.flag("HTTPSampler.postBodyRaw")
            || (!sampler.parameters().is_empty()
                && sampler.parameters().iter().all(|parameter| parameter.name.is_empty())
                && takes_body);
        if is_raw && (takes_body || !sampler.parameters().is_empty()) {
            self.raw_body(&sampler, &mut request);
        } else {
            // JMeter puts the parameters of a DELETE into both
            if takes_body || method == "DELETE" {
                self.form(&sampler, &mut request, &common.headers);
            }
            if !takes_body {
                self.query(&sampler, &mut request, &mut path);
            }
        }
        if is_raw && !sampler.files().is_empty() {
            self.leave_out_request(node, "sent a file beside the body that it has");
        } else if request.body.is_none()
            && request.form.is_empty()
            && request.multipart.is_empty()
            && request.other.get("body").is_none()
            && !sampler.files().is_empty()
        {
            self.leave_out_request(node, "sent files with its request");
        }
        // as far as it is known, for credentials
        let place = server + &path;
        request.path = self.path(&origin, path).into();
        request.label = self.label(node, &origin);
        let has_redirects =
            sampler.flag("HTTPSampler.follow_redirects") || sampler.flag("HTTPSampler.auto_redirects");
        common.follow = has_redirects.then_some(REDIRECTS);
        common.timeout = self.timeout(&sampler);
        self.keep_alive.push(!closes && sampler.text("HTTPSampler.use_keepalive").trim() != "false");
        if !self.has_cookies(scope) {
            common.headers.push(("Cookie".into(), String::new()));
        }
        if sampler.flag("HTTPSampler.image_parser") {
            self.leave_out_request(node, "loaded the images, styles and scripts of the page as well");
        }
        if !sampler.text("HTTPSampler.proxyHost").trim().is_empty() {
            self.leave_out(node, "gone through a proxy; here: system: proxy");
        }
        let encoding = sampler.text("HTTPSampler.contentEncoding").trim();
        if !matches!(encoding.to_ascii_lowercase().as_str(), "" | "utf-8" | "utf8")
            && !encoding.contains("${")
        {
            self.leave_out(node, &format!("encoded its texts as {}", super::shown(encoding)));
        }
        if !sampler.text("HTTPSampler.ipSource").trim().is_empty() {
            self.leave_out(node, "sent from an address of its own");
        }
        self.credentials(scope, &place, &mut request);
        self.answer(scope, &mut request);
        self.put_common(&mut request, &common);
        self.requests.push(common);
        if !node.element.attribute("testname").unwrap_or_default().is_empty() {
            self.comment(node, &mut request);
        }
        Some(request)
    }

    /// What the author wrote beside it.
    fn comment(&mut self, node: &Node<'_>, request: &mut Request) {
        let comment = super::shown(node.text("TestPlan.comments"));
        if !comment.is_empty() {
            request.comment = comment;
        }
    }

    fn put_common(&mut self, request: &mut Request, common: &Common) {
        for (name, value) in common.headers.iter().filter(|header| !self.common.headers.contains(header)) {
            request.headers.insert(name.as_str(), header_value(value));
        }
        if common.follow != self.common.follow {
            request.other.insert("follow", common.follow.unwrap_or(0));
        }
        if let Some((own, common)) = request.timeout.clone().zip(common.timeout.clone()) {
            request.timeout = Some(super::response::shorter(own, common.into()));
        } else if request.timeout.is_none() && common.timeout != self.common.timeout {
            request.timeout = common.timeout.clone().map(Into::into);
        }
    }

    /// Scheme, host and port, and the path behind them.
    fn place(&mut self, sampler: &Sampler<'a, '_>) -> Option<Place> {
        let node = sampler.node;
        let path = sampler.text("HTTPSampler.path").trim();
        // a URL in the place of the path
        let is_url = |text: &str| text.starts_with("http://") || text.starts_with("https://");
        let begin = path.split(['?', '#']).next().unwrap_or_default();
        if is_url(path) || self.known(begin, node).is_some_and(|known| is_url(&known)) {
            return self.place_of_url(path, node);
        }
        let (domain, port) =
            (sampler.text("HTTPSampler.domain").trim(), sampler.text("HTTPSampler.port").trim());
        let protocol = match sampler.text("HTTPSampler.protocol").trim() {
            "" => "http",
            protocol => protocol,
        };
        // all of it is known before the run
        let mut known = |text: &str| self.known(text, node);
        let (domain_value, port_value, protocol_value) = (known(domain)?, known(port)?, known(protocol)?);
        if protocol_value.trim().eq_ignore_ascii_case("file") {
            return None;
        }
        // of a list of URLs
        if domain_value.trim().is_empty()
            && reference_end(path) == Some(path.len())
            && let Some(Expr { text, value: None, .. }) = self.expression(path, node)
        {
            let would = "sent its request to the host that a variable names; here it goes to the system, and not to another host";
            self.leave_out_request(node, would);
            let origin = self.system.clone().unwrap_or_else(|| "http://localhost".to_owned());
            return Some(Place { known: origin.clone(), origin, path: format!("${{{text}}}") });
        }
        let domain = match domain_value.trim() {
            "" => "localhost".to_owned(),
            _ => self.text(domain, node),
        };
        let protocol = self.text(protocol, node);
        // schemes are written small; what has holes stays
        let protocol = if protocol.contains("${") { protocol } else { protocol.to_ascii_lowercase() };
        let has_port = port_value.trim().parse::<i64>().is_ok_and(|port| port > 0);
        let is_default = matches!((protocol.as_str(), port), ("http", "80") | ("https", "443"));
        let has_port = has_port && !is_default;
        let port = if has_port { format!(":{}", self.text(port, node)) } else { String::new() };
        let known_port = if has_port { format!(":{}", port_value.trim()) } else { String::new() };
        Some(Place {
            origin: format!("{protocol}://{domain}{port}"),
            known: format!("{}://{}{known_port}", protocol_value.trim(), domain_value.trim()),
            path: self.path_from(path, node),
        })
    }

    fn place_of_url(&mut self, url: &str, node: &Node<'_>) -> Option<Place> {
        let (scheme, rest) = match url.split_once("://") {
            Some((scheme, rest)) => (scheme.to_owned(), rest.to_owned()),
            None => {
                let known = self.known(url, node)?;
                let (scheme, rest) = known.split_once("://")?;
                (scheme.to_owned(), rest.to_owned())
            }
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let known = self.known(&rest[..end], node)?;
        let host = self.text(&rest[..end], node);
        Some(Place {
            origin: format!("{scheme}://{host}"),
            known: format!("{scheme}://{known}"),
            path: self.path_from(&rest[end..], node),
        })
    }

    /// A path that begins with a slash.
    fn path_from(&mut self, path: &str, node: &Node<'_>) -> String {
        let end = reference_end(path);
        let first = match end {
            Some(end) => self.expression(&path[..end], node),
            None => Some(Expr::literal(path)),
        };
        match first {
            // what a variable at the begin holds may have the slash already
            Some(Expr { text: x, value: None, .. }) => {
                if end == Some(path.len()) {
                    self.note(format!(
                        "line {}: {} is a path here, also where it holds a whole URL, to which JMeter would go",
                        node.element.line,
                        super::shown(path)
                    ));
                }
                let rest = self.path_text(end.map_or("", |end| &path[end..]), node);
                format!("/${{path(if(starts_with({x}, '/'), slice({x}, 1, len({x})), {x}))}}{rest}")
            }
            Some(Expr { value: Some(begin), .. }) if begin.starts_with('/') => self.path_text(path, node),
            _ => format!("/{}", self.path_text(path, node)),
        }
    }

    /// The path of a request to the system, or a URL.
    fn path(&mut self, origin: &str, path: String) -> String {
        match self.origins.iter_mut().find(|(known, _)| known == origin) {
            Some((_, requests)) => *requests += 1,
            None => self.origins.push((origin.to_owned(), 1)),
        }
        if self.system.as_deref() == Some(origin) { path } else { format!("{origin}{path}") }
    }

    /// The sampler's name; what varies in it is named only. No label is of two places.
    fn label(&mut self, node: &Node<'_>, origin: &str) -> Option<tidemark_scenario::source::Scalar> {
        let mut label = String::new();
        for piece in super::text::pieces(node.name()) {
            match piece {
                super::text::Piece::Text(text) => label.push_str(&text),
                super::text::Piece::Variable(name) => {
                    label.push_str(
                        &self.known(&format!("${{{name}}}"), node).unwrap_or_else(|| format!("{{{name}}}")),
                    );
                }
                super::text::Piece::Call(name, _) => label.push_str(&format!("{{{name}}}")),
            }
        }
        let mut label = super::shown(&label);
        if label.is_empty() {
            return None;
        }
        if self.labels.get(&label).is_some_and(|known| known != origin) {
            let place = origin.split("://").nth(1).unwrap_or_default();
            label = format!("{label} ({})", super::shown(place).replace("${", "{"));
        }
        self.labels.insert(label.clone(), origin.to_owned());
        Some(verbatim(&label).into())
    }

    /// Headers of all managers around, the nearest first; a name that a nearer one has is left out.
    /// The second is whether one of them closes the connection.
    fn headers(&mut self, scope: &Scope<'a>, node: &'a Node<'a>) -> (Vec<(String, String)>, bool) {
        let mut closes = None;
        let mut headers: Vec<(String, String)> = Vec::new();
        let mut nearer: HashSet<String> = HashSet::new();
        for manager in scope.inward(&["HeaderManager"]) {
            let mut names = Vec::new();
            for header in manager.list("HeaderManager.headers") {
                let name = tree::property(header, "Header.name").unwrap_or_default().trim();
                let value = tree::property(header, "Header.value").unwrap_or_default();
                let small = name.to_ascii_lowercase();
                if name.is_empty() || nearer.contains(&small) {
                    continue;
                }
                if headers.len() >= HEADERS_MAX {
                    self.leave_out_request(manager, &format!("sent more than {HEADERS_MAX} headers"));
                    break;
                }
                names.push(small.clone());
                if small == "connection" {
                    closes.get_or_insert(value.trim().eq_ignore_ascii_case("close"));
                    continue;
                }
                if OWN_HEADERS.contains(&small.as_str()) {
                    let would = format!("sent the header {name}: {}", super::shown(value));
                    self.leave(manager, &would, matches!(small.as_str(), "host" | "expect"));
                    continue;
                }
                let Some(known) = self.known(name, node) else {
                    self.leave_out_request(
                        manager,
                        &format!("sent a header whose name is {}", super::shown(name)),
                    );
                    continue;
                };
                let value = self.header(&known, value, manager);
                headers.push((verbatim(&known), value));
            }
            nearer.extend(names);
        }
        (headers, closes == Some(true))
    }

    /// A header's value; a secret becomes a setting, with the word before it left where it is.
    fn header(&mut self, name: &str, value: &str, node: &Node<'_>) -> String {
        let value = value.trim();
        if !is_secret_name(name) || value.contains("${") {
            return self.text(value, node);
        }
        match value.split_once(' ') {
            Some((scheme, token)) if name.eq_ignore_ascii_case("authorization") => {
                let token = self.secret("token", token.trim(), node);
                format!("{} {token}", verbatim(scheme))
            }
            _ => self.secret(name, value, node),
        }
    }

    fn timeout(&mut self, sampler: &Sampler<'a, '_>) -> Option<String> {
        let node = sampler.node;
        let connect = self.number(sampler.text("HTTPSampler.connect_timeout"), node).filter(|ms| *ms >= 1.0);
        if let Some(connect) = connect {
            let time = super::group::time(connect / 1e3);
            match self.limits.get("connect timeout").and_then(Value::as_str) {
                None => self.limits.insert("connect timeout", time),
                Some(known) if known == time.as_str() => {}
                Some(known) => {
                    let known = known.to_owned();
                    self.note(format!(
                        "connect timeouts differ from request to request; here all have {known}"
                    ));
                }
            }
        }
        let answer =
            self.number(sampler.text("HTTPSampler.response_timeout"), node).filter(|ms| *ms >= 1.0)?;
        Some(super::group::time(answer / 1e3).as_str().to_owned())
    }

    /// Parameters behind the path.
    fn query(&mut self, sampler: &Sampler<'a, '_>, request: &mut Request, path: &mut String) {
        let parameters = sampler.parameters();
        if parameters.is_empty() {
            return;
        }
        let mut query = Map::new();
        let mut is_plain = !path.contains('?');
        for parameter in &parameters {
            let Some((name, value)) = self.parameter(parameter, "%20", sampler.node) else {
                is_plain = false;
                break;
            };
            is_plain &= query.get(&name).is_none() && !name.is_empty();
            query.insert(name, value);
        }
        if is_plain {
            request.query = query;
            return;
        }
        let pairs = self.pairs(&parameters, true, sampler.node);
        path.push(if path.contains('?') { '&' } else { '?' });
        path.push_str(&pairs);
    }

    /// A parameter's name and value before they are encoded; none where it was encoded already, in a
    /// way of its own. `space` is what a space becomes there.
    fn parameter(
        &mut self,
        parameter: &Parameter<'a>,
        space: &str,
        node: &Node<'_>,
    ) -> Option<(String, String)> {
        let decoded = |text: &str| -> Option<String> {
            if !parameter.is_encoded && text.contains("${__urlencode(") {
                return None;
            }
            if parameter.is_encoded || text.contains("${") || !text.contains(['%', '+', '&', '=', ' ', '#']) {
                return Some(text.to_owned());
            }
            let plain = percent_decode_str(&text.replace(space, " ")).decode_utf8().ok()?.into_owned();
            let again: String = form_urlencoded::byte_serialize(plain.as_bytes()).collect();
            let is_same = again.replace('+', space) == text || !text.contains(['%', '+', '&', '=', '#']);
            is_same.then_some(plain)
        };
        let has_no_equals = tree::property(parameter.element, "HTTPArgument.use_equals") == Some("false");
        if has_no_equals && parameter.value.is_empty() {
            return None;
        }
        let (name, value) = (decoded(parameter.name)?, decoded(parameter.value)?);
        let name = match self.known(&name, node) {
            Some(name) => verbatim(&name),
            None => return None,
        };
        let value = match is_secret_name(&name) {
            true => self.secret(&name, &value, node),
            false => self.text(&value, node),
        };
        Some((name, value))
    }

    /// Parameters as they are sent.
    fn pairs(&mut self, parameters: &[Parameter<'a>], in_path: bool, node: &Node<'_>) -> String {
        let mut pairs = Vec::new();
        for parameter in parameters {
            let mut part = |text: &str, name: &str| -> String {
                if !text.contains("${") {
                    if is_secret_name(name) && !text.is_empty() {
                        let hole = self.secret(name, text, node);
                        if in_path {
                            return hole;
                        }
                        return hole.replace("${", "${url(").replace('}', ")}");
                    }
                    let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
                    return verbatim(if parameter.is_encoded { &encoded } else { text });
                }
                match self.expression(text, node) {
                    // a path's query is encoded by itself
                    Some(expr) if parameter.is_encoded && in_path => format!("${{{}}}", expr.text),
                    Some(expr) if parameter.is_encoded => format!("${{url({})}}", expr.text),
                    _ if in_path => self.path_text(text, node),
                    _ => self.text(text, node),
                }
            };
            let name = part(parameter.name, "");
            let value = part(parameter.value, parameter.name);
            let has_equals = tree::property(parameter.element, "HTTPArgument.use_equals") != Some("false");
            pairs.push(match (name.is_empty(), has_equals || !value.is_empty()) {
                (true, _) => value,
                (false, true) => format!("{name}={value}"),
                (false, false) => name,
            });
        }
        pairs.join("&")
    }

    fn raw_body(&mut self, sampler: &Sampler<'a, '_>, request: &mut Request) {
        let mut body = String::new();
        for parameter in sampler.parameters() {
            body.push_str(&self.text(parameter.value, sampler.node));
        }
        if body.is_empty() {
            return;
        }
        request.body = Some(body.into());
    }

    /// Parameters and files in the body.
    fn form(&mut self, sampler: &Sampler<'a, '_>, request: &mut Request, headers: &[(String, String)]) {
        let has_type = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let (parameters, files) = (sampler.parameters(), sampler.files());
        let text = |file, name| tree::property(file, name).unwrap_or_default();
        let is_parts = sampler.flag("HTTPSampler.DO_MULTIPART_POST")
            || files.iter().any(|file| !text(file, "File.paramname").trim().is_empty());
        let node = sampler.node;
        if !is_parts && let [file] = files {
            // the file is the body
            let path = text(file, "File.path");
            let Some(path) = self.known(path, node).and_then(|path| self.file_beside(&path)) else {
                return self.leave_out_request(
                    node,
                    &format!("sent the file {}, which is not in the plan's folder", super::shown(path)),
                );
            };
            let kind = text(file, "File.mimetype").trim();
            if !has_type && !kind.is_empty() {
                request.headers.insert("Content-Type", verbatim(kind));
            }
            request.other.insert("body", Map::from([("file", self.named_file(&path))]));
            return;
        }
        if is_parts {
            return self.parts(&parameters, files, request, node);
        }
        let mut form = Map::new();
        let is_form = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("content-type")
                && value.starts_with("application/x-www-form-urlencoded")
        };
        let mut is_plain = !has_type || headers.iter().any(is_form);
        for parameter in &parameters {
            let Some((name, value)) = self.parameter(parameter, "+", node) else {
                is_plain = false;
                break;
            };
            is_plain &= form.get(&name).is_none() && !name.is_empty();
            form.insert(name, value);
        }
        if parameters.is_empty() {
        } else if is_plain {
            request.form = form;
        } else {
            let pairs = self.pairs(&parameters, false, node);
            if !has_type {
                request.headers.insert("Content-Type", "application/x-www-form-urlencoded");
            }
            request.body = Some(pairs.into());
        }
    }

    fn parts(
        &mut self,
        parameters: &[Parameter<'a>],
        files: &'a [Element],
        request: &mut Request,
        node: &Node<'_>,
    ) {
        let mut parts = Map::new();
        for parameter in parameters {
            let Some(name) =
                self.known(parameter.name, node).filter(|name| !name.is_empty() && parts.get(name).is_none())
            else {
                self.leave_out_request(node, &format!("sent a part called {}", super::shown(parameter.name)));
                continue;
            };
            let value = match is_secret_name(&name) {
                true => self.secret(&name, parameter.value, node),
                false => self.text(parameter.value, node),
            };
            parts.insert(verbatim(&name), Map::from([("text", value)]));
        }
        for file in files {
            let text = |name| tree::property(file, name).unwrap_or_default().trim();
            let name = self.known(text("File.paramname"), node).filter(|name| parts.get(name).is_none());
            let path = self.known(text("File.path"), node).and_then(|path| self.file_beside(&path));
            let (Some(name), Some(path)) = (name, path) else {
                self.leave_out_request(
                    node,
                    &format!(
                        "sent the file {}, which is not in the plan's folder",
                        super::shown(text("File.path"))
                    ),
                );
                continue;
            };
            let mut part = Map::from([("file", self.named_file(&path))]);
            if !text("File.mimetype").is_empty() {
                part.insert("type", verbatim(text("File.mimetype")));
            }
            parts.insert(verbatim(&name), part);
        }
        request.multipart = parts;
    }

    /// User and password of the manager whose URL is the request's.
    fn credentials(&mut self, scope: &Scope<'a>, place: &str, request: &mut Request) {
        let places = self.ways_to_write(place);
        for manager in scope.inward(&["AuthManager"]) {
            for entry in manager.list("AuthManager.auth_list") {
                let text = |name| tree::property(entry, name).unwrap_or_default();
                let Some(url) = self.known(text("Authorization.url").trim(), manager) else {
                    self.leave_out_request(
                        manager,
                        "authenticated where a URL begins as one known only while it runs",
                    );
                    continue;
                };
                let url = url.trim();
                if !places.iter().any(|place| place.starts_with(url)) {
                    let open = places.iter().filter_map(|place| place.split_once("${"));
                    if open.into_iter().any(|(begin, _)| url.starts_with(begin)) {
                        let would = format!(
                            "authenticated where a URL begins with {}: that of a request is known only while it runs",
                            super::shown(url)
                        );
                        self.leave_out_request(manager, &would);
                    }
                    continue;
                }
                let way = text("Authorization.mechanism").trim();
                if !matches!(way, "" | "BASIC" | "BASIC_DIGEST") {
                    self.leave_out_request(manager, &format!("authenticated by {way}"));
                    return;
                }
                let user = self.text(text("Authorization.username"), manager);
                let password = self.secret("password", text("Authorization.password"), manager);
                let basic = Map::from([("user", user), ("password", password)]);
                request.other.insert("auth", Map::from([("basic", basic)]));
                return;
            }
        }
    }

    /// Whether a cookie manager is there; without one JMeter keeps no cookies.
    fn has_cookies(&mut self, scope: &Scope<'a>) -> bool {
        let Some(manager) = scope.inward(&["CookieManager"]).next() else { return false };
        if manager.text("CookieManager.policy").trim() == "ignoreCookies" {
            return false;
        }
        if !manager.list("CookieManager.cookies").is_empty() {
            self.leave_out_request(manager, "sent cookies that stand in the plan");
        }
        if manager.flag("CookieManager.clearEachIteration")
            && self.group.is_thread
            && self.group.iteration.is_some()
        {
            self.leave_out(manager, "forgotten all cookies at the begin of each round");
        }
        true
    }

    /// Whether a user keeps cookies from round to round.
    pub(super) fn keeps_cookies(&self, node: &'a Node<'a>, scope: &Scope<'a>) -> bool {
        let scope = scope.with(&node.children);
        let manager = scope.inward(&["CookieManager"]).next();
        manager.is_some_and(|manager| match manager.flag("CookieManager.controlledByThreadGroup") {
            true => node.flag("ThreadGroup.same_user_on_next_iteration"),
            false => !manager.flag("CookieManager.clearEachIteration"),
        })
    }
}
