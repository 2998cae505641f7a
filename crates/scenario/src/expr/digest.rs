//! Base64, digests and signatures of texts.

use base64::Engine as _;
use base64::alphabet::STANDARD as LETTERS;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use sha2::{Digest as _, Sha256};

use super::eval::{Absent, Bytes, Got, MADE_MAX, Machine, Made, TOO_LONG, argument};
use super::function::make;
use super::node::Node;

/// Reads what others wrote, with or without padding.
const READER: GeneralPurpose = GeneralPurpose::new(
    &LETTERS,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

tidemark_record::named! {
    /// How a digest is written.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum DigestForm {
        Hex = "hex",
        Base64 = "base64",
        Base64Url = "base64url",
        Raw = "raw",
    }
}

impl DigestForm {
    /// By its name.
    pub(super) fn read(name: &[u8]) -> Option<DigestForm> {
        std::str::from_utf8(name).ok().and_then(DigestForm::from_name)
    }

    fn write(self, digest: &[u8; 32], out: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        match self {
            DigestForm::Hex => out.extend(digest.iter().flat_map(digits)),
            DigestForm::Base64 => encode(&STANDARD, digest, out),
            DigestForm::Base64Url => encode(&URL_SAFE_NO_PAD, digest, out),
            DigestForm::Raw => out.extend_from_slice(digest),
        }
    }
}

/// Appends bytes in base64.
fn encode(engine: &GeneralPurpose, bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // there is room for all of it
    let length = engine.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + length);
}

/// A text as `base64()` has it, or `base64url()`.
pub(crate) fn base64_of(text: &str, is_for_urls: bool) -> String {
    let mut out = Vec::new();
    encode(if is_for_urls { &URL_SAFE_NO_PAD } else { &STANDARD }, text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Makes a text of another one, which may stand in the same buffer.
fn made_of<'e>(
    m: &mut Machine<'e>,
    text: Bytes<'e>,
    room: usize,
    write: impl FnOnce(&[u8], &mut [u8]) -> Option<usize>,
) -> Result<Option<Got<'e>>, Absent> {
    let start = m.made.len();
    if start + room > MADE_MAX {
        return Err(TOO_LONG);
    }
    m.made.resize(start + room, 0);
    let (before, out) = m.made.split_at_mut(start);
    let bytes = match text {
        Bytes::Borrowed(bytes) => bytes,
        Bytes::Made(from, to) => &before[from..to],
    };
    let length = write(bytes, out);
    m.made.truncate(start + length.unwrap_or(0));
    Ok(length.map(|_| Got::Text(Bytes::Made(start, m.made.len()))))
}

pub(super) fn base64<'e>(m: &mut Machine<'e>, node: &'e Node) -> Made<'e> {
    encoded(m, node, &STANDARD)
}

pub(super) fn base64url<'e>(m: &mut Machine<'e>, node: &'e Node) -> Made<'e> {
    encoded(m, node, &URL_SAFE_NO_PAD)
}

fn encoded<'e>(m: &mut Machine<'e>, node: &'e Node, engine: &GeneralPurpose) -> Made<'e> {
    let text = argument(m, node)?;
    let room = m.bytes(&text).len().div_ceil(3) * 4;
    let made = made_of(m, text, room, |bytes, out| engine.encode_slice(bytes, out).ok())?;
    made.ok_or(TOO_LONG)
}

pub(super) fn base64_decode<'e>(m: &mut Machine<'e>, node: &'e Node) -> Made<'e> {
    let text = argument(m, node)?;
    // both alphabets are brought into one
    let standard = make(m, |m| {
        let start = m.made.len();
        m.append(text);
        for byte in &mut m.made[start..] {
            match byte {
                b'-' => *byte = b'+',
                b'_' => *byte = b'/',
                _ => {}
            }
        }
    })?;
    let Got::Text(standard) = standard else { return Ok(standard) };
    let room = m.bytes(&standard).len().div_ceil(4) * 3;
    let made = made_of(m, standard, room, |bytes, out| READER.decode_slice(bytes, out).ok())?;
    made.ok_or(Absent::Failed("not base64"))
}

pub(super) fn sha256<'e>(m: &mut Machine<'e>, nodes: &'e [Node]) -> Made<'e> {
    let text = argument(m, &nodes[0])?;
    let form = form(m, nodes.get(1))?;
    let digest: [u8; 32] = Sha256::digest(m.bytes(&text)).into();
    make(m, |m| form.write(&digest, &mut m.made))
}

pub(super) fn hmac<'e>(m: &mut Machine<'e>, nodes: &'e [Node]) -> Made<'e> {
    let (key, text) = (argument(m, &nodes[0])?, argument(m, &nodes[1])?);
    let form = form(m, nodes.get(2))?;
    let mac = Hmac::<Sha256>::new_from_slice(m.bytes(&key));
    let mut mac = mac.map_err(|_| Absent::Failed("the key has a length that HMAC does not take"))?;
    mac.update(m.bytes(&text));
    let digest: [u8; 32] = mac.finalize().into_bytes().into();
    make(m, |m| form.write(&digest, &mut m.made))
}

fn form<'e>(m: &mut Machine<'e>, node: Option<&'e Node>) -> Result<DigestForm, Absent> {
    let Some(node) = node else { return Ok(DigestForm::Hex) };
    let word = argument(m, node)?;
    DigestForm::read(m.bytes(&word))
        .ok_or(Absent::Failed("a digest is written as hex, base64, base64url or raw"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::context::{Context, Shared};
    use crate::expr::Expr;
    use crate::slot::{Slot, Value};

    /// The value of an expression in which the variable 0 is this.
    fn value(text: &str) -> Result<Vec<u8>, String> {
        let expr = Expr::parse_constant(text).map_err(|error| error.reason)?;
        let shared = Shared::default();
        let mut random = fastrand::Rng::with_seed(1);
        let mut cx = Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
        let mut out = Vec::new();
        expr.write(&mut cx, &mut out).map_err(|unmet| unmet.describe(&[]))?;
        Ok(out)
    }

    fn text(expression: &str) -> String {
        String::from_utf8(value(expression).unwrap()).unwrap()
    }

    #[test]
    fn what_the_standards_show() {
        // RFC 4648, RFC 4231 (2), FIPS 180-2
        assert_eq!(text("base64('fooba')"), "Zm9vYmE=");
        assert_eq!(text("base64url('fooba')"), "Zm9vYmE");
        assert_eq!(text("base64('')"), "");
        for encoded in ["Zm9vYmE=", "Zm9vYmE"] {
            assert_eq!(text(&format!("base64_decode('{encoded}')")), "fooba");
        }
        assert_eq!(value("base64_decode('-_-_')"), value("base64_decode('+/+/')"));
        assert_eq!(text("sha256('abc')"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(
            text("hmac('Jefe', 'what do ya want for nothing?')"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(text("base64(sha256('abc', 'raw'))"), text("sha256('abc', 'base64')"));
        assert_eq!(text("base64url(hmac('k', 'abc', 'raw'))"), text("hmac('k', 'abc', 'base64url')"));
        // of what is made on the way
        assert_eq!(text("base64(concat('foo', 'ba'))"), "Zm9vYmE=");
        assert_eq!(text("base64_decode(base64(upper('foo')))"), "FOO");
        // a signed token, as jwt.io makes it
        let head = "concat(base64url('{\"alg\":\"HS256\"}'), '.', base64url('{}'))";
        assert_eq!(text(head), "eyJhbGciOiJIUzI1NiJ9.e30");
    }

    #[test]
    fn what_cannot_be_is_told() {
        assert!(value("base64_decode('a')").unwrap_err().ends_with("not base64"));
        assert!(value("base64_decode('a b=')").unwrap_err().ends_with("not base64"));
        for expression in ["sha256('a', 'hexa')", "hmac('k', 'a', 'hexa')"] {
            let error = value(expression).unwrap_err();
            assert_eq!(error, "a digest is written as hex, base64, base64url, raw");
        }
        assert!(value("file('x')").unwrap_err().contains("no file can be read here"));
        assert!(value("file(x)").unwrap_err().contains("in quotes"));
    }

    proptest! {
        #[test]
        fn whatever_came_is_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut slot = Slot::default();
            slot.set_text(&bytes);
            let slots = [slot];
            let shared = Shared::default();
            let mut random = fastrand::Rng::with_seed(1);
            let mut cx = Context { slots: &slots, shared: &shared, random: &mut random, epoch_ms: 0 };
            let call = |name: &str, inner| {
                let function = crate::expr::function::find(name).unwrap();
                crate::expr::Node::Call(function, Box::new([inner]))
            };
            let variable = || crate::expr::Node::Variable(0);
            let mut out = Slot::default();
            Expr::new(call("base64_decode", variable())).eval_into(&mut cx, &mut out);
            for name in ["base64", "base64url"] {
                Expr::new(call("base64_decode", call(name, variable()))).eval_into(&mut cx, &mut out);
                prop_assert_eq!(out.value(), Value::Text(&bytes));
            }
        }
    }
}
