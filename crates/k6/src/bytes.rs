//! Bytes in a script: text, encodings, digests.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use hmac::{Hmac, Mac};
use rquickjs::function::Func;
use rquickjs::{Array, ArrayBuffer, Ctx, Object, Result, Value};
use sha2::Digest;

use crate::host;
use crate::modules::thrown;
use crate::text::utf8;

/// Most rounds of HMAC that a password is derived by.
const ROUNDS_MAX: f64 = 4e6;
/// Most random bytes at once.
const RANDOM_MAX: usize = 16 << 20;

pub(crate) fn install(natives: &Object<'_>) -> Result<()> {
    natives.set("text", Func::from(text))?;
    natives.set("bytesOf", Func::from(bytes_of))?;
    natives.set("joined", Func::from(joined))?;
    natives.set("hex", Func::from(hex))?;
    natives.set("b64encode", Func::from(b64encode))?;
    natives.set("b64decode", Func::from(b64decode))?;
    natives.set("digest", Func::from(digest))?;
    natives.set("hmac", Func::from(hmac))?;
    natives.set("derived", Func::from(derived))?;
    natives.set("random", Func::from(random))?;
    natives.set("compressed", Func::from(compressed))
}

/// Bytes that a script gives as text, array buffer or typed array.
fn taken(value: &Value<'_>) -> Result<Option<Vec<u8>>> {
    if let Some(text) = value.as_string() {
        return utf8(text).map(|text| Some(text.into_bytes()));
    }
    let Some(object) = value.as_object() else { return Ok(None) };
    if let Some(buffer) = ArrayBuffer::from_object(object.clone()) {
        // SAFETY: nothing of the script runs before the bytes are copied.
        #[allow(unsafe_code)]
        let bytes = unsafe { buffer.as_bytes() }.map(<[u8]>::to_vec);
        return Ok(Some(bytes.unwrap_or_default()));
    }
    // the engine throws where it is none, and would tell it of what comes next
    drop(object.ctx().catch());
    let buffer: Option<ArrayBuffer<'_>> = object.get("buffer").ok().and_then(ArrayBuffer::from_object);
    let (Some(buffer), Ok(offset), Ok(length)) =
        (buffer, object.get::<_, usize>("byteOffset"), object.get::<_, usize>("byteLength"))
    else {
        drop(object.ctx().catch());
        return Ok(None);
    };
    // SAFETY: nothing of the script runs before the bytes are copied.
    #[allow(unsafe_code)]
    let all = unsafe { buffer.as_bytes() }.unwrap_or_default();
    Ok(all.get(offset..offset.saturating_add(length)).map(<[u8]>::to_vec))
}

/// The body of a request, if there is one.
pub(crate) fn optional(value: &Value<'_>) -> Result<Option<Vec<u8>>> {
    if value.is_null() || value.is_undefined() { Ok(None) } else { taken(value) }
}

fn needed(ctx: &Ctx<'_>, value: &Value<'_>) -> Result<Vec<u8>> {
    taken(value)?.ok_or_else(|| thrown(ctx, "a string, an ArrayBuffer or a typed array is expected"))
}

/// Bytes for a script, in its own memory, which is bounded.
fn buffer(ctx: Ctx<'_>, bytes: Vec<u8>) -> Result<ArrayBuffer<'_>> {
    ArrayBuffer::new_copy(ctx, bytes)
}

/// A whole number in decimal.
pub(crate) fn decimal(number: u32, into: &mut [u8; 8]) -> &str {
    let mut rest = &mut into[..];
    let _ = write!(rest, "{number}");
    let left = rest.len();
    std::str::from_utf8(&into[..8 - left]).unwrap_or_default()
}

fn text<'js>(ctx: Ctx<'js>, bytes: Value<'js>) -> Result<rquickjs::String<'js>> {
    let bytes = needed(&ctx, &bytes)?;
    rquickjs::String::from_str(ctx, &String::from_utf8_lossy(&bytes))
}

fn bytes_of<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<ArrayBuffer<'js>> {
    let list: Option<Vec<u8>> =
        value.as_array().map(|list| list.iter::<u8>().collect::<Result<_>>()).transpose()?;
    let bytes = list.map_or_else(|| needed(&ctx, &value), Ok)?;
    buffer(ctx, bytes)
}

fn joined<'js>(ctx: Ctx<'js>, parts: Array<'js>) -> Result<ArrayBuffer<'js>> {
    let mut all = Vec::new();
    for part in parts.iter::<Value<'_>>() {
        all.extend(needed(&ctx, &part?)?);
    }
    buffer(ctx, all)
}

fn hex<'js>(ctx: Ctx<'js>, bytes: Value<'js>) -> Result<String> {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in needed(&ctx, &bytes)? {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

fn engine(kind: &str, is_lenient: bool) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    match (kind, is_lenient) {
        ("url" | "rawurl", true) => GeneralPurpose::new(&base64::alphabet::URL_SAFE, config),
        (_, true) => GeneralPurpose::new(&base64::alphabet::STANDARD, config),
        ("url", false) => URL_SAFE,
        ("rawurl", false) => URL_SAFE_NO_PAD,
        ("rawstd", false) => STANDARD_NO_PAD,
        _ => STANDARD,
    }
}

fn b64encode<'js>(ctx: Ctx<'js>, bytes: Value<'js>, kind: String) -> Result<String> {
    Ok(engine(&kind, false).encode(needed(&ctx, &bytes)?))
}

fn b64decode<'js>(ctx: Ctx<'js>, text: String, kind: String) -> Result<ArrayBuffer<'js>> {
    let text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let bytes = engine(&kind, true)
        .decode(text)
        .map_err(|error| thrown(&ctx, &format!("illegal base64: {error}")))?;
    buffer(ctx, bytes)
}

macro_rules! algorithms {
    ($ctx:expr, $name:expr, $does:ident) => {
        match $name {
            "md5" => $does!(md5::Md5),
            "sha1" => $does!(sha1::Sha1),
            "sha256" => $does!(sha2::Sha256),
            "sha384" => $does!(sha2::Sha384),
            "sha512" => $does!(sha2::Sha512),
            "sha512_224" => $does!(sha2::Sha512_224),
            "sha512_256" => $does!(sha2::Sha512_256),
            "ripemd160" => $does!(ripemd::Ripemd160),
            other => return Err(thrown($ctx, &format!("invalid algorithm: {other}"))),
        }
    };
}

fn digest<'js>(ctx: Ctx<'js>, algorithm: String, bytes: Value<'js>) -> Result<ArrayBuffer<'js>> {
    let bytes = needed(&ctx, &bytes)?;
    macro_rules! digested {
        ($kind:ty) => {
            <$kind>::digest(&bytes).to_vec()
        };
    }
    let made: Vec<u8> = algorithms!(&ctx, algorithm.as_str(), digested);
    buffer(ctx, made)
}

fn hmac<'js>(
    ctx: Ctx<'js>,
    algorithm: String,
    key: Value<'js>,
    bytes: Value<'js>,
) -> Result<ArrayBuffer<'js>> {
    let (key, bytes) = (needed(&ctx, &key)?, needed(&ctx, &bytes)?);
    macro_rules! signed {
        ($kind:ty) => {{
            let mut mac = <Hmac<$kind> as Mac>::new_from_slice(&key)
                .map_err(|error| thrown(&ctx, &error.to_string()))?;
            mac.update(&bytes);
            mac.finalize().into_bytes().to_vec()
        }};
    }
    let made: Vec<u8> = algorithms!(&ctx, algorithm.as_str(), signed);
    buffer(ctx, made)
}

/// So many bytes of a password (PBKDF2 with HMAC; RFC 8018, 5.2).
fn derived<'js>(
    ctx: Ctx<'js>,
    algorithm: String,
    password: Value<'js>,
    salt: Value<'js>,
    iterations: f64,
    size: f64,
) -> Result<ArrayBuffer<'js>> {
    let (password, salt) = (needed(&ctx, &password)?, needed(&ctx, &salt)?);
    // no digest is shorter than 16 bytes
    if !(1.0..=ROUNDS_MAX).contains(&(iterations * (size / 16.0).ceil())) {
        let why = format!(
            "too many rounds: {iterations} iterations for {size} bytes; at most {ROUNDS_MAX} rounds in all"
        );
        return Err(thrown(&ctx, &why));
    }
    let mut made = vec![0; size as usize];
    macro_rules! derive_by {
        ($kind:ty) => {
            pbkdf2::pbkdf2_hmac::<$kind>(&password, &salt, iterations as u32, &mut made)
        };
    }
    algorithms!(&ctx, algorithm.as_str(), derive_by);
    buffer(ctx, made)
}

fn random(ctx: Ctx<'_>, size: f64) -> Result<ArrayBuffer<'_>> {
    if !(0.0..=RANDOM_MAX as f64).contains(&size) {
        return Err(thrown(&ctx, &format!("so many random bytes are not possible: {size}")));
    }
    let mut bytes = vec![0; size as usize];
    fastrand::Rng::new().fill(&mut bytes);
    buffer(ctx, bytes)
}

fn compressed<'js>(ctx: Ctx<'js>, kind: String, bytes: Value<'js>) -> Result<ArrayBuffer<'js>> {
    let bytes = needed(&ctx, &bytes)?;
    let made = host::host(&ctx)?.on_thread_stack(|| match kind.as_str() {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&bytes).and_then(|()| encoder.finish())
        }
        "deflate" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&bytes).and_then(|()| encoder.finish())
        }
        other => Err(std::io::Error::other(format!("compression {other} is not supported: gzip or deflate"))),
    });
    ArrayBuffer::new(ctx.clone(), made.map_err(|error| thrown(&ctx, &error.to_string()))?)
}
