//! Messages: those of a client written, those of a server taken from a connection's bytes.

use super::PostgresError;
use crate::http1::Decoded;

/// What stands before a payload: its kind and its length.
const HEAD_BYTES: usize = 5;

/// A message of a server.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Its kind: `Z`, `D`, …
    pub kind: u8,
    /// What it holds.
    pub payload: &'a [u8],
}

/// Takes messages from bytes as they come.
#[derive(Debug)]
pub struct Messages {
    most_bytes: usize,
    /// The beginning of one that is not whole.
    partial: Vec<u8>,
}

impl Messages {
    /// For messages of so many bytes at most.
    pub fn new(most_bytes: usize) -> Self {
        Messages { most_bytes, partial: Vec::new() }
    }

    /// Forgets what has come.
    pub fn clear(&mut self) {
        self.partial.clear();
    }

    /// Hands whole messages over until one is the last (`take` says so) or there is none; what is not whole is kept.
    ///
    /// # Errors
    /// Bytes that are no messages, one that is too large, or the error of `take`.
    pub fn each(
        &mut self,
        input: &[u8],
        mut take: impl FnMut(Message<'_>) -> Result<bool, PostgresError>,
    ) -> Result<Decoded, PostgresError> {
        let mut at = 0;
        while !self.partial.is_empty() {
            let wanted = match self.partial.len() {
                bytes @ 0..HEAD_BYTES => HEAD_BYTES - bytes,
                bytes => HEAD_BYTES + self.length(&self.partial)? - bytes,
            };
            let taken = wanted.min(input.len() - at);
            self.partial.extend_from_slice(&input[at..at + taken]);
            at += taken;
            if taken < wanted {
                return Ok(Decoded { consumed: at, complete: false });
            }
            if self.partial.len() == HEAD_BYTES + self.length(&self.partial)? {
                let message = Message { kind: self.partial[0], payload: &self.partial[HEAD_BYTES..] };
                let is_last = take(message)?;
                self.partial.clear();
                if is_last {
                    return Ok(Decoded { consumed: at, complete: true });
                }
            }
        }
        loop {
            let rest = &input[at..];
            if rest.len() < HEAD_BYTES || rest.len() < HEAD_BYTES + self.length(rest)? {
                self.partial.extend_from_slice(rest);
                return Ok(Decoded { consumed: input.len(), complete: false });
            }
            let end = HEAD_BYTES + self.length(rest)?;
            at += end;
            if take(Message { kind: rest[0], payload: &rest[HEAD_BYTES..end] })? {
                return Ok(Decoded { consumed: at, complete: true });
            }
        }
    }

    /// Bytes of the payload of a message that begins here.
    fn length(&self, head: &[u8]) -> Result<usize, PostgresError> {
        let length: [u8; 4] = head[1..HEAD_BYTES].try_into().map_err(|_| PostgresError::Malformed)?;
        let length = usize::try_from(i32::from_be_bytes(length)).map_err(|_| PostgresError::Malformed)?;
        let payload = length.checked_sub(4).ok_or(PostgresError::Malformed)?;
        match payload > self.most_bytes {
            true => Err(PostgresError::TooLarge { limit_bytes: self.most_bytes }),
            false => Ok(payload),
        }
    }
}

/// What a server wants to know of who comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// Nothing more.
    Ok,
    /// The password.
    Cleartext,
    /// The password's MD5 with this salt.
    Md5([u8; 4]),
    /// One of these mechanisms of SASL, each ended by a zero.
    Sasl(&'a [u8]),
    /// The next step of SASL.
    SaslContinue(&'a [u8]),
    /// The last step of SASL.
    SaslFinal(&'a [u8]),
    /// Something that is not spoken here.
    Other(i32),
}

impl<'a> Authentication<'a> {
    /// Reads a message of kind `R`.
    ///
    /// # Errors
    /// It is malformed.
    pub fn read(payload: &'a [u8]) -> Result<Self, PostgresError> {
        let (kind, rest) = payload.split_first_chunk::<4>().ok_or(PostgresError::Malformed)?;
        Ok(match i32::from_be_bytes(*kind) {
            0 => Authentication::Ok,
            3 => Authentication::Cleartext,
            5 => Authentication::Md5(rest.try_into().map_err(|_| PostgresError::Malformed)?),
            10 => Authentication::Sasl(rest),
            11 => Authentication::SaslContinue(rest),
            12 => Authentication::SaslFinal(rest),
            other => Authentication::Other(other),
        })
    }
}

/// SQLSTATE and message of an error or warning.
pub(super) fn write_error(mut fields: &[u8], out: &mut Vec<u8>) -> Result<(), PostgresError> {
    let (mut code, mut words) = (&b"XX000"[..], &b""[..]);
    loop {
        match fields.split_first() {
            None => return Err(PostgresError::Malformed),
            Some((0, _)) => break,
            Some((kind, rest)) => {
                let end = memchr::memchr(0, rest).ok_or(PostgresError::Malformed)?;
                match kind {
                    b'C' if end == 5 => code = &rest[..end],
                    b'M' => words = &rest[..end],
                    _ => {}
                }
                fields = &rest[end + 1..];
            }
        }
    }
    out.extend_from_slice(code);
    out.extend_from_slice(b": ");
    out.extend_from_slice(words);
    Ok(())
}

/// SQLSTATE and message of an error, for a person.
///
/// # Errors
/// It is malformed.
pub fn error_words(payload: &[u8]) -> Result<String, PostgresError> {
    let mut words = Vec::new();
    write_error(payload, &mut words)?;
    Ok(String::from_utf8_lossy(&words).into_owned())
}

/// Messages of a client.
pub mod write {
    /// Version 3.0.
    const VERSION: i32 = 196_608;

    fn message(kind: Option<u8>, out: &mut Vec<u8>, with: impl FnOnce(&mut Vec<u8>)) {
        out.extend(kind);
        let begin = out.len();
        out.extend_from_slice(&[0; 4]);
        with(out);
        end(begin, out);
    }

    /// Fills a length in, of what goes from there to the end.
    fn end(begin: usize, out: &mut [u8]) {
        let length = i32::try_from(out.len() - begin).unwrap_or(i32::MAX);
        out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
    }

    fn text(text: &[u8], out: &mut Vec<u8>) {
        // a zero would end it early
        out.extend(text.iter().copied().take_while(|byte| *byte != 0));
        out.push(0);
    }

    /// The first message: settings of the connection, `user` and `database` among them.
    pub fn startup(settings: &[(&str, &str)], out: &mut Vec<u8>) {
        message(None, out, |out| {
            out.extend_from_slice(&VERSION.to_be_bytes());
            for (name, value) in settings {
                text(name.as_bytes(), out);
                text(value.as_bytes(), out);
            }
            out.push(0);
        });
    }

    /// A password, or its MD5.
    pub fn password(password: &[u8], out: &mut Vec<u8>) {
        message(Some(b'p'), out, |out| text(password, out));
    }

    /// Begins SASL.
    pub fn sasl_begin(mechanism: &str, first: &[u8], out: &mut Vec<u8>) {
        message(Some(b'p'), out, |out| {
            text(mechanism.as_bytes(), out);
            let length = i32::try_from(first.len()).unwrap_or(i32::MAX);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(first);
        });
    }

    /// Goes on with SASL.
    pub fn sasl_next(data: &[u8], out: &mut Vec<u8>) {
        message(Some(b'p'), out, |out| out.extend_from_slice(data));
    }

    /// Prepares a statement; types of its parameters are the server's to infer.
    pub fn parse(name: &str, sql: &str, out: &mut Vec<u8>) {
        message(Some(b'P'), out, |out| {
            text(name.as_bytes(), out);
            text(sql.as_bytes(), out);
            out.extend_from_slice(&[0; 2]);
        });
    }

    /// Asks what a prepared statement takes and returns.
    pub fn describe_statement(name: &str, out: &mut Vec<u8>) {
        message(Some(b'D'), out, |out| {
            out.push(b'S');
            text(name.as_bytes(), out);
        });
    }

    /// Asks what the bound statement returns.
    pub fn describe_portal(out: &mut Vec<u8>) {
        message(Some(b'D'), out, |out| out.extend_from_slice(b"P\0"));
    }

    /// Binds parameters to a prepared statement: [`parameter`](Bind::parameter) for each, then [`end`](Bind::end).
    #[derive(Debug)]
    pub struct Bind {
        begin: usize,
    }

    impl Bind {
        /// For so many parameters.
        pub fn begin(statement: &str, parameters: u16, out: &mut Vec<u8>) -> Bind {
            out.push(b'B');
            let begin = out.len();
            out.extend_from_slice(&[0; 4]);
            out.push(0);
            text(statement.as_bytes(), out);
            // all of them are text
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&parameters.to_be_bytes());
            Bind { begin }
        }

        /// Appends a parameter, which `with` writes.
        ///
        /// # Errors
        /// That of `with`; what was written is to be taken away again.
        pub fn parameter<E>(
            &self,
            out: &mut Vec<u8>,
            with: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
        ) -> Result<(), E> {
            let begin = out.len();
            out.extend_from_slice(&[0; 4]);
            with(out)?;
            let length = i32::try_from(out.len() - begin - 4).unwrap_or(i32::MAX);
            out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
            Ok(())
        }

        /// All parameters are there; all columns come as text.
        pub fn end(self, out: &mut Vec<u8>) {
            out.extend_from_slice(&[0; 2]);
            end(self.begin, out);
        }
    }

    /// Executes what is bound, all of its rows.
    pub fn execute(out: &mut Vec<u8>) {
        message(Some(b'E'), out, |out| out.extend_from_slice(&[0; 5]));
    }

    /// Ends the transaction, and what was sent: the server says when it is ready.
    pub fn sync(out: &mut Vec<u8>) {
        message(Some(b'S'), out, |_| ());
    }
}
