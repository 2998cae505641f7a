//! Texts of a script as UTF-8. Half of a surrogate pair that stands alone is U+FFFD, as in k6.

use rquickjs::{Coerced, Ctx, Error, FromJs, Function, Object, Result, String as Text, Value};

/// A value as text.
pub(crate) struct Told(pub String);

impl<'js> FromJs<'js> for Told {
    fn from_js(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let Coerced(text) = Coerced::<Text<'js>>::from_js(ctx, value)?;
        utf8(&text).map(Told)
    }
}

/// A text as UTF-8.
pub(crate) fn utf8(text: &Text<'_>) -> Result<String> {
    match text.to_string() {
        Err(Error::Utf8(_)) => {
            let natives: Object<'_> = text.as_value().ctx().globals().get("__k6")?;
            let well_formed: Function<'_> = natives.get("wellFormed")?;
            well_formed.call((text.clone(),))
        }
        told => told,
    }
}
