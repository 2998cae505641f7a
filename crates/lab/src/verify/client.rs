//! Questions to the system, one after the other, over a connection that blocks: the driver's own codec, address and
//! TLS, so that whatever can be driven can be asked.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tidemark_drive::{Address, Target};
use tidemark_wire::http1::{DecoderLimits, HttpError, ResponseDecoder, request};

use super::search::Bounds;

/// Longest time to make a connection, TLS included.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How often a read that waits looks whether it should go on.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longest time without a byte of an answer.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// Largest answer.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// How often a question is asked at most: a connection may break, a system may be busy.
const ATTEMPTS: u32 = 10;
/// Wait before the second attempt; doubled before each further one, up to the next constant.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Longest wait that a `Retry-After` is granted.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 256 << 10;

/// Why not everything was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfinished {
    /// The user stopped it.
    #[error("stopped by the user before everything was read")]
    Stopped,
    /// The time for it was over.
    #[error(
        "not everything was read within {0:?}; give it longer with verify: {{within: …}}, or less to read"
    )]
    OutOfTime(Duration),
    /// What was taken could not be seen in time.
    #[error(
        "{0} of the writes that were taken could not be seen yet after {1:?}; give it longer with verify: {{within: …}}"
    )]
    Behind(u64, Duration),
    /// A question stayed without an answer that can be used.
    #[error("{0}")]
    Failed(String),
}

/// What carries bytes to the system and back.
trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// Asks a system.
pub struct Client<'a> {
    target: &'a Target,
    headers: &'a [(String, String)],
    stream: Option<Box<dyn Stream>>,
    decoder: ResponseDecoder,
    question: Vec<u8>,
    input: Vec<u8>,
}

/// What came of one attempt.
enum Attempt {
    Answered,
    /// It may be asked again, after this time if the system says so.
    Again(String, Option<Duration>),
    Hopeless(String),
}

impl<'a> Client<'a> {
    /// Not connected yet.
    pub fn new(target: &'a Target, headers: &'a [(String, String)]) -> Client<'a> {
        let limits = DecoderLimits { body_bytes: ANSWER_BYTES_MAX, ..DecoderLimits::default() };
        Client {
            target,
            headers,
            stream: None,
            decoder: ResponseDecoder::new(limits),
            question: Vec::new(),
            input: vec![0; READ_BYTES],
        }
    }

    /// Asks until there is an answer with a status of success, as often as makes sense.
    pub fn get(&mut self, path: &str, bounds: &Bounds) -> Result<(), Unfinished> {
        let mut pause = PAUSE_FIRST;
        let mut attempt = 1;
        loop {
            let (reason, wished) = match self.attempt(path, bounds)? {
                Attempt::Answered => return Ok(()),
                Attempt::Again(reason, wished) if attempt < ATTEMPTS => (reason, wished),
                Attempt::Again(reason, _) => {
                    return Err(failed(path, &format!("{reason}, {ATTEMPTS} times over")));
                }
                Attempt::Hopeless(reason) => return Err(failed(path, &reason)),
            };
            let wait = wished.unwrap_or(pause).min(RETRY_AFTER_MAX);
            bounds.sleep(wait).map_err(|error| match error {
                Unfinished::OutOfTime(_) => failed(path, &format!("{reason}, until the time was over")),
                error => error,
            })?;
            pause = (pause * 2).min(PAUSE_MAX);
            attempt += 1;
        }
    }

    /// The body of the last answer.
    pub fn body(&self) -> &[u8] {
        self.decoder.body()
    }

    /// A header of the last answer, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.decoder.header(name)
    }

    fn attempt(&mut self, path: &str, bounds: &Bounds) -> Result<Attempt, Unfinished> {
        if let Err(reason) = self.write_question(path) {
            return Ok(Attempt::Hopeless(reason));
        }
        let asked = match self.stream.take() {
            Some(stream) => Ok(stream),
            None => connect(self.target),
        };
        let mut stream = match asked {
            Ok(stream) => stream,
            Err(error) => return Ok(Attempt::Again(format!("no connection: {error}"), None)),
        };
        self.decoder.start(false, true);
        if let Err(error) = stream.write_all(&self.question).and_then(|()| stream.flush()) {
            return Ok(Attempt::Again(format!("it could not be asked: {error}"), None));
        }
        match self.read_answer(&mut *stream, bounds)? {
            Ok(keeps) => {
                if keeps {
                    self.stream = Some(stream);
                }
                Ok(self.judge())
            }
            Err(attempt) => Ok(attempt),
        }
    }

    fn write_question(&mut self, path: &str) -> Result<(), String> {
        let out = &mut self.question;
        out.clear();
        let write = |out: &mut Vec<u8>| -> Result<(), HttpError> {
            request::write_line(out, "GET", &[self.target.base_path.as_bytes(), path.as_bytes()])?;
            request::write_host(out, self.target.authority.as_bytes())?;
            for (name, value) in self.headers {
                request::write_header(out, name.as_bytes(), value.as_bytes())?;
            }
            request::end_head(out);
            Ok(())
        };
        write(out).map_err(|error| format!("it cannot be asked: {error}"))
    }

    /// Reads until the answer is whole; whether the connection can carry another question.
    fn read_answer(
        &mut self,
        stream: &mut dyn Stream,
        bounds: &Bounds,
    ) -> Result<Result<bool, Attempt>, Unfinished> {
        let mut last_byte = Instant::now();
        loop {
            let read = match stream.read(&mut self.input) {
                Ok(0) => {
                    let ended = self.decoder.finish();
                    return Ok(ended
                        .map(|()| false)
                        .map_err(|error| Attempt::Again(error.to_string(), None)));
                }
                Ok(read) => read,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    bounds.check()?;
                    if last_byte.elapsed() > SILENCE_MAX {
                        let reason = format!("no byte of an answer within {SILENCE_MAX:?}");
                        return Ok(Err(Attempt::Hopeless(reason)));
                    }
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Ok(Err(Attempt::Again(format!("the connection broke: {error}"), None)));
                }
            };
            last_byte = Instant::now();
            bounds.check()?;
            match self.decoder.decode(&self.input[..read]) {
                Ok(decoded) if decoded.complete => {
                    return Ok(Ok(decoded.consumed == read && self.decoder.keep_alive()));
                }
                Ok(_) => {}
                Err(error @ HttpError::BodyTooLarge { .. }) => {
                    let reason = format!("{error}; ask for smaller pages");
                    return Ok(Err(Attempt::Hopeless(reason)));
                }
                Err(error) => return Ok(Err(Attempt::Hopeless(error.to_string()))),
            }
        }
    }

    /// What the status says.
    fn judge(&self) -> Attempt {
        let status = self.decoder.status();
        match status {
            200..300 => match self.header("content-encoding") {
                None | Some(b"identity") => Attempt::Answered,
                Some(coding) => {
                    let coding = String::from_utf8_lossy(coding);
                    Attempt::Hopeless(format!(
                        "the answer is encoded as {coding}, though nobody asked for that"
                    ))
                }
            },
            429 | 502 | 503 | 504 => {
                let seconds = self.header("retry-after").and_then(|text| std::str::from_utf8(text).ok());
                let wished = seconds.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
                Attempt::Again(format!("status {status}"), wished)
            }
            _ => Attempt::Hopeless(format!("status {status}")),
        }
    }
}

pub(super) fn failed(path: &str, reason: &str) -> Unfinished {
    Unfinished::Failed(format!("GET {path}: {reason}"))
}

fn connect(target: &Target) -> io::Result<Box<dyn Stream>> {
    /// Shorter ones once the handshake is over, so that a wait can be given up.
    macro_rules! ready {
        ($stream:expr) => {{
            let stream = $stream;
            stream.set_read_timeout(Some(CONNECT_MAX))?;
            stream.set_write_timeout(Some(CONNECT_MAX))?;
            match &target.tls {
                None => {
                    stream.set_read_timeout(Some(LOOK_EVERY))?;
                    Ok(Box::new(stream))
                }
                Some(tls) => {
                    let secured = tls.connect(stream)?;
                    secured.get_ref().set_read_timeout(Some(LOOK_EVERY))?;
                    Ok(Box::new(secured))
                }
            }
        }};
    }
    match &target.address {
        Address::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, CONNECT_MAX)?;
            stream.set_nodelay(true)?;
            ready!(stream)
        }
        Address::Unix(path) => ready!(UnixStream::connect(path)?),
    }
}
