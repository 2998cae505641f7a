//! The system's own API as what it holds: asked path by path, each perhaps with many pages.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use regex::bytes::Regex;
use tidemark_drive::Target;
use tidemark_scenario::plan::{CountQuestion, NextPage, NextSource};
use tidemark_wire::json::write_text;

use super::client::{Client, failed};
use super::recipe::{Contents, Numbers, Recipe};
use super::search::{Bounds, PartReader, StoredContents, Unfinished};
use crate::LabError;

/// Most questions that are asked for numbers.
const NUMBERS_MAX: u64 = 100_000_000;
/// Digits of the largest count.
const COUNT_DIGITS: usize = 20;

/// Asks a system by a recipe.
pub struct Pages<'a> {
    target: &'a Target,
    recipe: &'a Recipe,
    contents: &'a Contents,
    /// The last number, where paths have one.
    last: OnceLock<u64>,
    copies: Option<Regex>,
    /// Numbers whose first path was answered 404.
    absent: AtomicU64,
}

impl<'a> Pages<'a> {
    /// Of a system at this target.
    ///
    /// # Errors
    /// If there is nothing to ask.
    pub fn new(recipe: &'a Recipe, target: &'a Target) -> Result<Pages<'a>, LabError> {
        let contents = recipe.contents.as_ref();
        let contents =
            contents.ok_or_else(|| LabError::Usage("the recipe to verify has nothing to ask".into()))?;
        let copies = contents.copies.as_deref().map(Regex::new).transpose();
        let copies = copies.map_err(|error| LabError::Usage(format!("the recipe to verify: {error}")))?;
        Ok(Pages { target, recipe, contents, last: OnceLock::new(), copies, absent: AtomicU64::new(0) })
    }

    fn client(&self) -> Client<'_> {
        Client::new(self.target, &self.recipe.headers)
    }

    /// The path of a part's first page.
    fn path(&self, part: usize) -> String {
        match &self.contents.numbers {
            Some(Numbers { from, around, .. }) => {
                let [before, behind] = &around[part % around.len()];
                format!("{before}{}{behind}", from + (part / around.len()) as u64)
            }
            None => self.contents.paths[part].clone(),
        }
    }

    /// Asks for a number, where there is a question for it.
    fn number(&self, question: Option<&CountQuestion>, bounds: &Bounds) -> Result<Option<u64>, Unfinished> {
        question.map(|question| ask_number(question, self.client(), bounds)).transpose()
    }
}

/// Asks for a number.
pub(super) fn ask_number(
    CountQuestion { path, json }: &CountQuestion,
    mut client: Client<'_>,
    bounds: &Bounds,
) -> Result<u64, Unfinished> {
    client.get(path, bounds)?;
    let number = match json {
        None => client.body().trim_ascii(),
        Some(json) => {
            let found = json.find(client.body()).map_err(|error| failed(path, &error.to_string()))?;
            found.ok_or_else(|| failed(path, &format!("the answer has nothing at {json}")))?
        }
    };
    number_of(number).ok_or_else(|| {
        let start = String::from_utf8_lossy(&number[..number.len().min(COUNT_DIGITS)]).into_owned();
        failed(path, &format!("the answer is not a number: {start}"))
    })
}
impl StoredContents for Pages<'_> {
    fn prepare(&self, bounds: &Bounds) -> Result<(), Unfinished> {
        let Some(Numbers { from, to, around }) = &self.contents.numbers else { return Ok(()) };
        let last = ask_number(to, self.client(), bounds)?;
        let questions = (last + 1).saturating_sub(*from).saturating_mul(around.len() as u64);
        if questions > NUMBERS_MAX {
            return Err(failed(&to.path, &format!("{questions} questions are more than {NUMBERS_MAX}")));
        }
        let _ = self.last.set(last);
        Ok(())
    }

    fn parts(&self) -> usize {
        match (&self.contents.numbers, self.last.get()) {
            (Some(Numbers { from, around, .. }), Some(last)) => {
                (last + 1).saturating_sub(*from) as usize * around.len()
            }
            _ => self.contents.paths.len(),
        }
    }

    fn copies(&self, content: &[u8]) -> u32 {
        let number = self.copies.as_ref().and_then(|regex| regex.captures(content)?.get(1));
        number.and_then(|number| std::str::from_utf8(number.as_bytes()).ok()?.parse().ok()).unwrap_or(1)
    }

    fn absent(&self) -> u64 {
        self.absent.load(Ordering::Relaxed)
    }

    fn reader(&self) -> Result<Box<dyn PartReader + '_>, Unfinished> {
        Ok(Box::new(PageReader { pages: self, client: self.client(), text: Vec::new() }))
    }

    fn behind(&self, bounds: &Bounds) -> Result<u64, Unfinished> {
        Ok(self.number(self.recipe.behind.as_ref(), bounds)?.unwrap_or(0))
    }

    fn count(&self, bounds: &Bounds) -> Result<Option<u64>, Unfinished> {
        self.number(self.recipe.count.as_ref(), bounds)
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

impl PartReader for PageReader<'_> {
    fn read(&mut self, part: usize, bounds: &Bounds, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unfinished> {
        let Contents { items, next, numbers, .. } = self.pages.contents;
        let first = &self.pages.path(part);
        let mut path = first.clone();
        let mut before = None;
        loop {
            // a page is shown only once it is whole, so that asking again shows nothing twice
            if !self.client.find(&path, bounds)? {
                // a number that nobody has; what was to be there is lost then
                let Some(numbers) = numbers.as_ref().filter(|_| path == *first) else {
                    return Err(failed(&path, "status 404"));
                };
                let is_its_first = part.is_multiple_of(numbers.around.len());
                self.pages.absent.fetch_add(u64::from(is_its_first), Ordering::Relaxed);
                return Ok(());
            }
            let text = &mut self.text;
            let shown = items.find_all(self.client.body(), &mut |token| {
                text.clear();
                write_text(token, text);
                visit(text);
            });
            shown.map_err(|error| failed(&path, &error.to_string()))?;
            let Some(next) = next else { return Ok(()) };
            let Some(found) = named(next, &self.client).map_err(|reason| failed(&path, &reason))? else {
                return Ok(());
            };
            if before.as_deref() == Some(&found[..]) {
                let reason = "the answer names itself as the next page; the pages would never end";
                return Err(failed(&path, reason));
            }
            path = path_of(next, first, &found);
            before = Some(found);
        }
    }
}

/// What the answer names as the next page; none on the last one.
fn named(next: &NextPage, client: &Client<'_>) -> Result<Option<String>, String> {
    let mut text = Vec::new();
    match &next.source {
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
    String::from_utf8(text).map(Some).map_err(|_| "the next page's name is not UTF-8 text".into())
}

/// The next page's path.
fn path_of(next: &NextPage, first: &str, found: &str) -> String {
    let Some(parameter) = &next.parameter else { return found.to_owned() };
    let separator = if first.contains('?') { '&' } else { '?' };
    let found = percent_encoding::utf8_percent_encode(found, percent_encoding::NON_ALPHANUMERIC);
    format!("{first}{separator}{parameter}={found}")
}
