//! Which method a REST request is for.

use std::ops::Range;
use std::sync::Arc;

use axum::http::Method as HttpMethod;

use crate::describe::Verb;
use crate::request::PATH_ARGUMENTS_MAX;
use crate::serve::{AnyService, Services};
use tidemark_service::{RouteId, ServiceError, Starting};

/// All paths of the services.
#[derive(Default)]
pub(crate) struct Routes {
    /// Those without arguments, sorted: a handful, found by comparing rather than by a hash.
    plain: Vec<(&'static str, usize)>,
    /// Those with arguments, the more special before the more general.
    patterns: Vec<(Vec<Part>, usize)>,
    paths: Vec<Path>,
}

/// A path with its methods.
pub(crate) struct Path {
    pub(crate) route: RouteId,
    methods: Vec<(Verb, Target)>,
    /// The verbs, as the header `Allow` has them.
    pub(crate) allow: String,
}

/// What is called.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) service: Arc<dyn AnyService>,
    pub(crate) method: usize,
}

// Plain parts come before arguments where patterns are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Plain(&'static str),
    Argument,
}

/// Where in a path its arguments are.
pub(crate) type Arguments = [Range<u16>; PATH_ARGUMENTS_MAX];

impl Routes {
    /// The routes of all services.
    pub(crate) fn new(services: &Services, server: &Starting<'_>) -> Result<Self, ServiceError> {
        let mut routes = Routes::default();
        for service in services.iter() {
            for (method, described) in service.description().methods.iter().enumerate() {
                let Some(route) = described.route else { continue };
                let target = Target { service: service.clone(), method };
                routes.add(route.verb, route.path, target, server)?;
            }
        }
        routes.plain.sort_unstable();
        routes.patterns.sort();
        Ok(routes)
    }

    fn add(
        &mut self,
        verb: Verb,
        pattern: &'static str,
        target: Target,
        server: &Starting<'_>,
    ) -> Result<(), ServiceError> {
        let parts: Vec<Part> = parts(pattern).collect();
        let arguments = parts.iter().filter(|part| **part == Part::Argument).count();
        if arguments > PATH_ARGUMENTS_MAX {
            return Err(ServiceError::Route {
                verb: verb.as_str(),
                path: pattern,
                why: "it has too many arguments",
            });
        }
        let known = match arguments {
            0 => self.plain.iter().find(|(other, _)| *other == pattern).map(|(_, at)| *at),
            _ => self.patterns.iter().find(|(other, _)| *other == parts).map(|(_, at)| *at),
        };
        let at = known.unwrap_or_else(|| {
            let route = server.route(pattern);
            self.paths.push(Path { route, methods: Vec::new(), allow: String::new() });
            let at = self.paths.len() - 1;
            match arguments {
                0 => self.plain.push((pattern, at)),
                _ => self.patterns.push((parts, at)),
            }
            at
        });
        let path = &mut self.paths[at];
        if path.methods.iter().any(|(other, _)| *other == verb) {
            let why = "another method of a service has the same route";
            return Err(ServiceError::Route { verb: verb.as_str(), path: pattern, why });
        }
        path.methods.push((verb, target));
        path.methods.sort_by_key(|(verb, _)| *verb);
        let verbs = path.methods.iter().flat_map(|(verb, _)| match verb {
            Verb::Get => vec!["GET", "HEAD"],
            other => vec![other.as_str()],
        });
        path.allow = verbs.collect::<Vec<_>>().join(",");
        Ok(())
    }

    /// The path that a request is for.
    pub(crate) fn find(&self, path: &str) -> Option<(&Path, Arguments)> {
        if let Ok(found) = self.plain.binary_search_by_key(&path, |(plain, _)| plain) {
            return Some((&self.paths[self.plain[found].1], Arguments::default()));
        }
        self.patterns.iter().find_map(|(parts, at)| Some((&self.paths[*at], matched(parts, path)?)))
    }
}

impl Path {
    /// What a request with this method is for; none where the path does not have it.
    pub(crate) fn target(&self, method: &HttpMethod) -> Option<&Target> {
        let verb = match *method {
            HttpMethod::GET | HttpMethod::HEAD => Verb::Get,
            HttpMethod::PUT => Verb::Put,
            HttpMethod::POST => Verb::Post,
            HttpMethod::PATCH => Verb::Patch,
            HttpMethod::DELETE => Verb::Delete,
            _ => return None,
        };
        self.methods.iter().find(|(other, _)| *other == verb).map(|(_, target)| target)
    }
}

fn parts(pattern: &'static str) -> impl Iterator<Item = Part> {
    pattern
        .split('/')
        .skip(1)
        .map(|part| if part.starts_with('{') { Part::Argument } else { Part::Plain(part) })
}

/// Whether a path has these parts; an argument is never empty.
fn matched(parts: &[Part], path: &str) -> Option<Arguments> {
    let mut arguments = Arguments::default();
    let (mut at, mut count) = (0, 0);
    for part in parts {
        let rest = path.get(at..)?.strip_prefix('/')?;
        let length = rest.find('/').unwrap_or(rest.len());
        match part {
            Part::Plain(plain) if *plain == &rest[..length] => {}
            Part::Argument if length > 0 => {
                let range = u16::try_from(at + 1).ok()?..u16::try_from(at + 1 + length).ok()?;
                *arguments.get_mut(count)? = range;
                count += 1;
            }
            _ => return None,
        }
        at += 1 + length;
    }
    (at == path.len()).then_some(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments_of<'a>(pattern: &'static str, path: &'a str) -> Option<Vec<&'a str>> {
        let parts: Vec<Part> = parts(pattern).collect();
        let ranges = matched(&parts, path)?;
        let used = ranges.into_iter().filter(|range| !range.is_empty());
        Some(used.map(|range| &path[usize::from(range.start)..usize::from(range.end)]).collect())
    }

    #[test]
    fn a_path_has_exactly_the_parts_of_its_pattern() {
        assert_eq!(arguments_of("/a/{b}/c", "/a/1/c"), Some(vec!["1"]));
        assert_eq!(arguments_of("/a/{b}/{c}", "/a/1/c"), Some(vec!["1", "c"]));
        for wrong in ["/a/1", "/a/1/c/", "/a//c", "a/1/c", "", "/", "/a/1/d"] {
            assert_eq!(arguments_of("/a/{b}/c", wrong), None, "{wrong}");
        }
        assert_eq!(arguments_of("/{a}", &format!("/{}", "x".repeat(70_000))), None);
    }

    #[test]
    fn a_plain_part_is_more_special_than_an_argument() {
        let mut patterns: Vec<Vec<Part>> =
            ["/{x}/b", "/a/{y}", "/a/b/{c}"].into_iter().map(|pattern| parts(pattern).collect()).collect();
        patterns.sort();
        let first = patterns.iter().find(|parts| matched(parts, "/a/b").is_some()).unwrap();
        assert_eq!(first[0], Part::Plain("a"));
    }
}
