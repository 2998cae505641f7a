//! A REST request, as the methods of a service take their arguments from it.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use crate::form::whole;
use crate::{Form, Refusal};

/// Most arguments in one path.
pub(crate) const PATH_ARGUMENTS_MAX: usize = 8;

/// A REST request whose route is known.
#[derive(Debug)]
pub struct Request {
    /// Empty where no part of it is an argument.
    path: Box<str>,
    /// The parts of the path that are arguments, in order.
    arguments: [Range<u16>; PATH_ARGUMENTS_MAX],
    query: Box<str>,
    body: Box<[u8]>,
}

impl Request {
    pub(crate) fn new(
        path: &str,
        arguments: [Range<u16>; PATH_ARGUMENTS_MAX],
        query: Option<&str>,
        body: &[u8],
    ) -> Self {
        let path = if arguments[0].is_empty() { "" } else { path };
        Request { path: path.into(), arguments, query: query.unwrap_or_default().into(), body: body.into() }
    }

    /// The argument with this place among those of the path.
    ///
    /// # Errors
    /// 400: it is no such value.
    pub fn path<T>(&self, place: usize, name: &str) -> Result<T, Refusal>
    where
        T: FromStr,
        T::Err: Display,
    {
        let range = self.arguments.get(place).cloned().unwrap_or_default();
        let text = self.path.get(usize::from(range.start)..usize::from(range.end));
        parse(name, percent_decode_str(text.unwrap_or_default()).decode_utf8())
    }

    /// A field of the query that has to be there.
    ///
    /// # Errors
    /// 400: it is not there, or no such value.
    pub fn query<T>(&self, name: &str) -> Result<T, Refusal>
    where
        T: FromStr,
        T::Err: Display,
    {
        let value = self.query_maybe(name)?;
        value.ok_or_else(|| Refusal::bad(format!("the field {name} of the query is missing")))
    }

    /// A field of the query, if it is there.
    ///
    /// # Errors
    /// 400: it is no such value.
    pub fn query_maybe<T>(&self, name: &str) -> Result<Option<T>, Refusal>
    where
        T: FromStr,
        T::Err: Display,
    {
        let mut fields = self.query.split('&');
        let value = fields.find_map(|field| {
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            (key == name).then_some(value)
        });
        let Some(value) = value else { return Ok(None) };
        let spaced = value.replace('+', " ");
        parse(name, percent_decode_str(&spaced).decode_utf8()).map(Some)
    }

    /// The body, read as JSON.
    ///
    /// # Errors
    /// 400, with what is wrong.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        Form::Json.read(&self.body)
    }
}

fn parse<T>(name: &str, text: Result<Cow<'_, str>, std::str::Utf8Error>) -> Result<T, Refusal>
where
    T: FromStr,
    T::Err: Display,
{
    let text = text.map_err(|_| Refusal::bad(format!("{name} is not UTF-8")))?;
    text.parse().or_else(|error| {
        // an integer with a fraction of nothing, as JSON Schema has it
        let whole = text.parse().ok().and_then(whole);
        let read = whole.and_then(|whole| itoa::Buffer::new().format(whole).parse().ok());
        read.ok_or_else(|| Refusal::bad(format!("{name} is {text:?}: {error}")))
    })
}
