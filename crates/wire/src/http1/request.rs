//! Pieces of a request's head, appended to a buffer.
//!
//! ```
//! use tidemark_wire::http1::request;
//!
//! let mut out = Vec::new();
//! request::write_line(&mut out, "POST", &[b"/shop", b"/basket"])?;
//! request::write_host(&mut out, b"127.0.0.1:9080")?;
//! request::write_header(&mut out, b"Content-Length", b"2")?;
//! request::end_head(&mut out);
//! out.extend_from_slice(b"{}");
//! assert_eq!(
//!     out,
//!     b"POST /shop/basket HTTP/1.1\r\nHost: 127.0.0.1:9080\r\nContent-Length: 2\r\n\r\n{}"
//! );
//! # Ok::<(), tidemark_wire::http1::HttpError>(())
//! ```

use super::HttpError;

/// The request line; the target is given in parts, so that nobody has to join them beforehand. Blanks and control
/// characters in the target are an error: they would end it early.
pub fn write_line(out: &mut Vec<u8>, method: &str, target: &[&[u8]]) -> Result<(), HttpError> {
    let before = out.len();
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    for part in target {
        if part.iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
            out.truncate(before);
            return Err(HttpError::UnwritableHeader);
        }
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
    Ok(())
}

/// Any header.
pub fn write_header(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), HttpError> {
    if !writable(name) || !writable(value) {
        return Err(HttpError::UnwritableHeader);
    }
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// The Host header.
pub fn write_host(out: &mut Vec<u8>, authority: &[u8]) -> Result<(), HttpError> {
    write_header(out, b"Host", authority)
}

/// The blank line behind the headers.
pub fn end_head(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Whether bytes may stand in a header line without ending it.
pub fn writable(bytes: &[u8]) -> bool {
    memchr::memchr3(b'\r', b'\n', 0, bytes).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_split_a_request_is_refused_and_leaves_no_trace() {
        let mut out = b"before".to_vec();
        assert!(write_line(&mut out, "GET", &[b"/a", b" HTTP/1.1\r\nX: y"]).is_err());
        assert!(write_header(&mut out, b"X", b"a\r\nY: b").is_err());
        assert!(write_header(&mut out, b"X\n", b"a").is_err());
        assert_eq!(out, b"before");
    }
}
