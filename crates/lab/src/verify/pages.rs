//! The system's own API as what it holds: asked path by path, each perhaps with many pages.

use tidemark_drive::Target;
use tidemark_wire::json::{Path, write_text};

use super::client::{Client, Unfinished, failed};
use super::recipe::{Count, Recipe, Source};
use super::search::{Bounds, Holdings, Part};
use crate::LabError;

/// Digits of the largest count.
const COUNT_DIGITS: usize = 20;

/// Asks a system by a recipe.
pub struct Pages<'a> {
    target: &'a Target,
    recipe: &'a Recipe,
    paths: &'a [String],
    behind: Option<Number<'a>>,
    count: Option<Number<'a>>,
    items: Path,
    next: Option<Next<'a>>,
}

/// A question for a number.
pub(super) struct Number<'a> {
    path: &'a str,
    /// Where in its answer the number stands.
    json: Option<Path>,
}

struct Next<'a> {
    source: NextSource<'a>,
    parameter: Option<&'a str>,
}

enum NextSource<'a> {
    Header(&'a str),
    Json(Path),
}

impl<'a> Pages<'a> {
    /// Of a system at this target.
    ///
    /// # Errors
    /// If a path of the recipe is none.
    pub fn new(recipe: &'a Recipe, target: &'a Target) -> Result<Pages<'a>, LabError> {
        let number = |question: &'a Option<Count>| question.as_ref().map(Number::of).transpose();
        let (behind, count) = (number(&recipe.behind)?, number(&recipe.count)?);
        let Some(contents) = &recipe.contents else {
            return Err(LabError::Usage("the recipe to verify has nothing to ask".into()));
        };
        let next = match &contents.next {
            Some(next) => {
                let source = match &next.source {
                    Source::Header(name) => NextSource::Header(name),
                    Source::Json(text) => NextSource::Json(path(text)?),
                };
                Some(Next { source, parameter: next.parameter.as_deref() })
            }
            None => None,
        };
        Ok(Pages {
            target,
            recipe,
            paths: &contents.paths,
            behind,
            count,
            items: path(&contents.items)?,
            next,
        })
    }

    fn client(&self) -> Client<'_> {
        Client::new(self.target, &self.recipe.headers)
    }

    /// Asks for a number, where there is a question for it.
    fn number(&self, question: &Option<Number<'_>>, bounds: &Bounds) -> Result<Option<u64>, Unfinished> {
        question.as_ref().map(|question| question.ask(self.client(), bounds)).transpose()
    }
}

impl<'a> Number<'a> {
    /// As a recipe has it.
    ///
    /// # Errors
    /// If its path within the answer is none.
    pub(super) fn of(question: &'a Count) -> Result<Number<'a>, LabError> {
        let json = question.json.as_deref().map(path).transpose()?;
        Ok(Number { path: &question.path, json })
    }

    /// Asks for it.
    pub(super) fn ask(&self, mut client: Client<'_>, bounds: &Bounds) -> Result<u64, Unfinished> {
        let path = self.path;
        client.get(path, bounds)?;
        let number = match &self.json {
            None => client.body().trim_ascii(),
            Some(json) => {
                let found = json.find(client.body()).map_err(|error| failed(path, &error.to_string()))?;
                found.ok_or_else(|| failed(path, &format!("the answer has nothing at {json}")))?
            }
        };
        number_of(number).ok_or_else(|| {
            let start = String::from_utf8_lossy(&number[..number.len().min(COUNT_DIGITS)]).into_owned();
            failed(path, &format!("the answer is no number: {start}"))
        })
    }
}

fn path(text: &str) -> Result<Path, LabError> {
    let wrong = |error| LabError::Usage(format!("the recipe to verify names {text}: {error}"));
    Path::parse(text).map_err(wrong)
}

impl Holdings for Pages<'_> {
    fn parts(&self) -> usize {
        self.paths.len()
    }

    fn reader(&self) -> Result<Box<dyn Part + '_>, Unfinished> {
        Ok(Box::new(PageReader { pages: self, client: self.client(), text: Vec::new() }))
    }

    fn behind(&self, bounds: &Bounds) -> Result<u64, Unfinished> {
        Ok(self.number(&self.behind, bounds)?.unwrap_or(0))
    }

    fn count(&self, bounds: &Bounds) -> Result<Option<u64>, Unfinished> {
        self.number(&self.count, bounds)
    }
}

fn number_of(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim_matches('"');
    text.parse().ok()
}

struct PageReader<'a> {
    pages: &'a Pages<'a>,
    client: Client<'a>,
    text: Vec<u8>,
}

impl Part for PageReader<'_> {
    fn read(&mut self, part: usize, bounds: &Bounds, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unfinished> {
        let first = &self.pages.paths[part];
        let mut path = first.clone();
        let mut before = None;
        loop {
            // a page is shown only once it is whole, so that asking again shows nothing twice
            self.client.get(&path, bounds)?;
            let text = &mut self.text;
            let shown = self.pages.items.find_all(self.client.body(), &mut |token| {
                text.clear();
                write_text(token, text);
                visit(text);
            });
            shown.map_err(|error| failed(&path, &error.to_string()))?;
            let Some(next) = &self.pages.next else { return Ok(()) };
            let Some(found) = next.find(&self.client).map_err(|reason| failed(&path, &reason))? else {
                return Ok(());
            };
            if before.as_deref() == Some(&found[..]) {
                let reason = "the answer names itself as the next page; the pages would never end";
                return Err(failed(&path, reason));
            }
            path = next.path(first, &found);
            before = Some(found);
        }
    }
}

impl Next<'_> {
    /// What the answer names as the next page; none on the last one.
    fn find(&self, client: &Client<'_>) -> Result<Option<String>, String> {
        let mut text = Vec::new();
        match &self.source {
            NextSource::Header(name) => text.extend_from_slice(client.header(name).unwrap_or_default()),
            NextSource::Json(path) => {
                let token = path.find(client.body()).map_err(|error| error.to_string())?;
                token
                    .filter(|token| *token != b"null")
                    .into_iter()
                    .for_each(|token| write_text(token, &mut text));
            }
        }
        if text.is_empty() {
            return Ok(None);
        }
        String::from_utf8(text).map(Some).map_err(|_| "the next page's name is no text".into())
    }

    /// The next page's path.
    fn path(&self, first: &str, found: &str) -> String {
        let Some(parameter) = self.parameter else { return found.to_owned() };
        let separator = if first.contains('?') { '&' } else { '?' };
        let found = percent_encoding::utf8_percent_encode(found, percent_encoding::NON_ALPHANUMERIC);
        format!("{first}{separator}{parameter}={found}")
    }
}
