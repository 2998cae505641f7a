//! Fields of a form, as browsers and the JMeter plan send them.

use std::borrow::Cow;

use axum::http::{HeaderMap, StatusCode, header};

use crate::refusal::Refusal;

/// More fields than any request of the airline has.
pub(crate) const FIELDS_MAX: usize = 32;

/// The decoded fields of a body or of a query.
#[derive(Debug)]
pub struct Form<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Form<'a> {
    /// The fields of a body, which must say that it is a form if it says anything.
    pub fn of_body(headers: &HeaderMap, body: &'a [u8]) -> Result<Self, Refusal> {
        if let Some(content_type) = headers.get(header::CONTENT_TYPE) {
            let essence = content_type.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default();
            if !essence.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
                let text = "the body must be a form: application/x-www-form-urlencoded";
                return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
            }
        }
        Self::parse(body)
    }

    /// The fields of an encoded text.
    pub fn parse(text: &'a [u8]) -> Result<Self, Refusal> {
        if text.iter().filter(|&&byte| byte == b'&').count() >= FIELDS_MAX {
            return Err(Refusal::bad_request(format!("a form has at most {FIELDS_MAX} fields")));
        }
        let fields = serde_urlencoded::from_bytes(text)
            .map_err(|error| Refusal::bad_request(format!("not a form: {error}")))?;
        Ok(Form(fields))
    }

    /// The value of a field, if it is there. Of several with one name the first counts.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    /// The value of a field that must be there.
    pub fn need(&self, name: &str) -> Result<&str, Refusal> {
        self.get(name).ok_or_else(|| Refusal::bad_request(format!("the field {name} is missing")))
    }

    /// Whether a box is ticked: `true` or `false`; false when it is missing or empty.
    pub fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.get(name) {
            None | Some("") => Ok(false),
            Some(word) if word.eq_ignore_ascii_case("true") => Ok(true),
            Some(word) if word.eq_ignore_ascii_case("false") => Ok(false),
            Some(_) => Err(Refusal::bad_request(format!("the field {name} must be true or false"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_decoded() {
        let form = Form::parse(b"login=uid0%40email.com&password=a+b%26c&empty=&login=other").unwrap();
        assert_eq!(form.get("login"), Some("uid0@email.com"));
        assert_eq!(form.get("password"), Some("a b&c"));
        assert_eq!(form.get("empty"), Some(""));
        assert!(form.need("missing").unwrap_err().to_string().contains("missing"));
    }

    #[test]
    fn a_flag_is_true_false_or_broken() {
        let form = Form::parse(b"a=true&b=FALSE&c=&d=yes").unwrap();
        assert_eq!(["a", "b", "c", "none"].map(|name| form.flag(name).unwrap()), [true, false, false, false]);
        assert_eq!(form.flag("d").unwrap_err().status(), 400);
    }

    #[test]
    fn a_body_of_another_kind_or_with_too_many_fields_is_refused() {
        let mut headers = HeaderMap::new();
        assert!(Form::of_body(&headers, b"a=b").is_ok());
        headers.insert("content-type", "application/x-www-form-urlencoded; charset=UTF-8".parse().unwrap());
        assert!(Form::of_body(&headers, b"a=b").is_ok());
        headers.insert("content-type", "application/json".parse().unwrap());
        assert_eq!(Form::of_body(&headers, b"{}").unwrap_err().status(), 415);
        assert_eq!(Form::parse("a=b&".repeat(1000).as_bytes()).unwrap_err().status(), 400);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            if let Ok(form) = Form::parse(&bytes) {
                let _ = form.flag("a");
            }
        }

        #[test]
        fn what_was_encoded_is_decoded(value in ".{0,50}") {
            let text = serde_urlencoded::to_string([("key", &value)]).unwrap();
            let form = Form::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(form.get("key"), Some(value.as_str()));
        }
    }
}
