//! Aerospike's protocol: how a request about a record is written, its reply.
//!
//! Spoken by a codec of our own like the other stores': Aerospike's client has its own connections and runtime, so that a request could
//! neither leave when it is due nor be timed to its last byte.

use std::io::{self, ErrorKind, Read, Write};
use std::ops::RangeInclusive;
use std::sync::Arc;

use tidemark_scenario::plan::{AerospikeRequest, RequestKind};
use tidemark_scenario::{Context, Template, Unmet};
use tidemark_wire::aerospike::{
    Action, EXPIRES_S, Extra, Form, GENERATIONS, InfoDecoder, Kind, ReplyDecoder, ReplyError, ReplyLimits,
    Wanted, ask, end,
};

use crate::io::Io;
use crate::io::greeted::read_whole;
use crate::protocols::codec::{Closed, Codec, Decoded, byte_transport};
use crate::protocols::store_status::{CONFLICT, NO_CONTENT, OK, SERVER_ERROR};
use crate::protocols::transport::{Client, Setup, Transport};
use crate::session::answer::{Answer, Wrote};
use crate::session::failure::Violation;
use crate::session::jar::Jar;

/// What a node is asked when it is greeted.
const NAMESPACES: &str = "namespaces";
const STATISTICS: &str = "statistics";

/// A node that speaks Aerospike's protocol. A connection begins without a word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aerospike {
    /// The namespace of all records.
    pub namespace: String,
}

impl Client for Aerospike {
    fn name(&self) -> &'static str {
        "Aerospike's protocol"
    }

    fn takes(&self, ask: &RequestKind) -> bool {
        matches!(ask, RequestKind::Aerospike(_))
    }

    fn greet(&mut self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        let mut question = Vec::new();
        ask(&[NAMESPACES, STATISTICS], &mut question);
        stream.write_all(&question)?;
        let mut decoder = InfoDecoder::default();
        read_whole(stream, (self.name(), "of its namespaces"), |bytes| decoder.decode(bytes))?;
        self.check(&decoder)
    }

    fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        let requests = setup.plan.requests.iter().filter_map(|request| match &request.ask {
            RequestKind::Aerospike(asked) => Some(Request::new(&self.namespace, asked, request.needs_body())),
            _ => None,
        });
        let requests = requests.collect();
        byte_transport::<_, Replies>(io, &setup, requests)
    }
}

impl Aerospike {
    /// Whether what a node tells of itself is what can be driven.
    fn check(&self, told: &InfoDecoder) -> io::Result<()> {
        let namespaces = told.answer(NAMESPACES).unwrap_or_default();
        if let Some(refusal) = [Some(namespaces), told.answer(STATISTICS)]
            .into_iter()
            .flatten()
            .find(|answer| answer.starts_with("ERROR") || answer.starts_with("FAIL"))
        {
            let words = format!(
                "the server answered \"{refusal}\" when it was asked for its namespaces; one that wants to know who comes cannot be \
                 driven"
            );
            return Err(io::Error::new(ErrorKind::PermissionDenied, words));
        }
        if !namespaces.split(';').any(|name| name == self.namespace) {
            let there_is = namespaces.replace(';', ", ");
            let words = format!("the server has no namespace \"{}\"; there is {there_is}", self.namespace);
            return Err(io::Error::new(ErrorKind::NotFound, words));
        }
        let statistics = told.answer(STATISTICS).unwrap_or_default().split(';');
        let nodes = statistics.filter_map(|of| of.strip_prefix("cluster_size=")).next();
        match nodes.filter(|nodes| *nodes != "1") {
            Some(nodes) => {
                let words = format!(
                    "the server is one of a cluster of {nodes} nodes, and each key belongs to one of them; only a node by itself is \
                     driven"
                );
                Err(io::Error::new(ErrorKind::Unsupported, words))
            }
            None => Ok(()),
        }
    }
}

/// A number of a request.
#[derive(Debug)]
enum Number {
    Constant(i64),
    Varying(Template, Whole),
}

/// What a whole number must be.
#[derive(Debug, Clone)]
struct Whole {
    within: RangeInclusive<i64>,
    /// What it is called where it is wrong, and why.
    name: Arc<str>,
    reason: &'static str,
}

impl Whole {
    fn read(&self, text: &[u8]) -> Result<i64, Unmet> {
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        number
            .filter(|number| self.within.contains(number))
            .ok_or_else(|| Unmet::Expression { text: Arc::clone(&self.name), reason: self.reason })
    }
}

impl Number {
    fn new(template: &Template, whole: Whole) -> Number {
        // one that is wrong is told of as if it varied
        match template.as_literal().and_then(|text| whole.read(text).ok()) {
            Some(number) => Number::Constant(number),
            None => Number::Varying(template.clone(), whole),
        }
    }

    fn value(&self, cx: &mut Context<'_>, scratch: &mut Vec<u8>) -> Result<i64, Unmet> {
        match self {
            Number::Constant(number) => Ok(*number),
            Number::Varying(template, whole) => {
                scratch.clear();
                template.render(cx, scratch)?;
                whole.read(scratch)
            }
        }
    }
}

/// What is written to a bin.
#[derive(Debug)]
enum Value {
    Text(Template),
    Number(Number),
}

/// A request made ready.
#[derive(Debug)]
pub(crate) struct Request {
    form: Form,
    key: Template,
    values: Vec<Value>,
    expires: Option<Number>,
    generation: Option<Number>,
    wanted: Wanted,
    /// Whether the reply is kept.
    needs_body: bool,
}

impl Request {
    fn new(namespace: &str, asked: &AerospikeRequest, needs_body: bool) -> Request {
        let AerospikeRequest { action, set, key, bins, expires, generation } = asked;
        let names: Vec<&str> = bins.iter().map(|(name, _)| name.as_str()).collect();
        let value = |(name, value): &(String, Option<Template>)| {
            let whole = Whole {
                within: i64::MIN..=i64::MAX,
                name: format!("what is added to {name}").into(),
                reason: "this is not a whole number of 64 bits",
            };
            let value = value.as_ref()?;
            Some(match action {
                Action::Add => Value::Number(Number::new(value, whole)),
                _ => Value::Text(value.clone()),
            })
        };
        let expires = expires.as_ref().map(|expires| {
            let (name, reason) = ("`expires`".into(), "this is not a whole number of seconds, -1 or -2");
            Number::new(expires, Whole { within: EXPIRES_S, name, reason })
        });
        let generation = generation.as_ref().map(|generation| {
            let (name, reason) = ("`generation`".into(), "this is not a whole number from 1 to 65535");
            Number::new(generation, Whole { within: GENERATIONS, name, reason })
        });
        Request {
            form: Form::new(*action, namespace, set, &names),
            key: key.clone(),
            values: bins.iter().filter_map(value).collect(),
            expires,
            generation,
            wanted: match (action, names.len()) {
                (Action::Get, 1) => Wanted::Bin,
                (Action::Get, _) => Wanted::Bins,
                _ => Wanted::Nothing,
            },
            needs_body,
        }
    }

    /// Appends the request to `out`; what was appended, where something that it needs is not there or cannot be said, is to
    /// be taken away again.
    fn append(&self, cx: &mut Context<'_>, out: &mut Vec<u8>, scratch: &mut Vec<u8>) -> Result<(), Unmet> {
        let mut number = |of: &Option<Number>| of.as_ref().map(|of| of.value(cx, scratch)).transpose();
        let (expires, generation) = (number(&self.expires)?, number(&self.generation)?);
        let extra = Extra {
            expires_s: expires.and_then(|expires| i32::try_from(expires).ok()).unwrap_or(0),
            generation: generation.and_then(|generation| u32::try_from(generation).ok()),
        };
        scratch.clear();
        self.key.render(cx, scratch)?;
        let begin = self.form.begin(scratch, extra, out);
        for (bin, value) in self.values.iter().enumerate() {
            self.form.value(bin, out, |out| match value {
                Value::Text(template) => template.render(cx, out),
                Value::Number(number) => {
                    let number = number.value(cx, scratch)?;
                    out.extend_from_slice(&number.to_be_bytes());
                    Ok(())
                }
            })?;
        }
        end(begin, out);
        Ok(())
    }
}

/// A connection's replies.
#[derive(Debug)]
pub(crate) struct Replies(ReplyDecoder);

impl Codec for Replies {
    type Request = Request;

    fn new(body_bytes: usize) -> Self {
        Replies(ReplyDecoder::new(ReplyLimits { body_bytes }))
    }

    fn write(
        &mut self,
        request: &Request,
        cx: &mut Context<'_>,
        _: &Jar,
        out: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Unmet> {
        let begin = out.len();
        request.append(cx, out, scratch).inspect_err(|_| out.truncate(begin))?;
        self.0.start(request.wanted, request.needs_body);
        Ok(())
    }

    fn decode(&mut self, received: &[u8]) -> Result<Decoded, Violation> {
        self.0
            .decode(received)
            .map(Decoded::from)
            .map_err(|error| Violation::of(&error, matches!(error, ReplyError::TooLarge { .. })))
    }

    fn finish(&mut self) -> Result<(), Closed> {
        match self.0.finish() {
            ReplyError::Empty => Err(Closed::Before),
            _ => Err(Closed::Within),
        }
    }

    fn keeps_open(&self) -> bool {
        true
    }

    fn answer(&self) -> &dyn Answer {
        &self.0
    }
}

impl Answer for ReplyDecoder {
    fn status(&self) -> u16 {
        match self.kind() {
            Kind::Error => SERVER_ERROR,
            Kind::NotDone => CONFLICT,
            Kind::Miss => NO_CONTENT,
            Kind::Done => OK,
        }
    }

    fn status_words(&self) -> String {
        match self.kind() {
            Kind::Error => "an error".into(),
            Kind::NotDone => "not done".into(),
            Kind::Miss => "a miss".into(),
            Kind::Done => "a reply".into(),
        }
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.field(name)
    }

    fn body(&self) -> &[u8] {
        self.body()
    }

    fn body_bytes(&self) -> Option<u64> {
        self.body_bytes().map(|bytes| bytes as u64)
    }

    fn wrote(&self) -> Wrote {
        match self.kind() {
            Kind::Done => Wrote::Yes,
            Kind::NotDone | Kind::Miss => Wrote::No,
            // a time-out within the server, for example: it may be carried out yet
            Kind::Error => Wrote::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tidemark_scenario::Expr;
    use tidemark_scenario::Shared;
    use tidemark_scenario::template::{Encoding, Part};
    use tidemark_wire::aerospike::digest;

    use super::*;

    fn asked(action: Action, bins: Vec<(String, Option<Template>)>) -> AerospikeRequest {
        AerospikeRequest {
            action,
            set: "s".into(),
            key: Template::literal("k"),
            bins,
            expires: None,
            generation: None,
        }
    }

    fn hole() -> Template {
        Template { parts: vec![Part::Hole(Expr::variable(0), Encoding::Raw)] }
    }

    /// What a request is written as with a text in its hole.
    fn written(asked: &AerospikeRequest, hole: &str) -> Result<Vec<u8>, String> {
        let shared = Shared::new(0, Vec::new());
        let mut random = fastrand::Rng::with_seed(1);
        let mut slot = tidemark_scenario::Slot::default();
        slot.set_text(hole.as_bytes());
        let mut cx = Context { slots: &[slot], shared: &shared, random: &mut random, epoch_ms: 0 };
        let mut out = b"before".to_vec();
        let request = Request::new("test", asked, false);
        let result = Replies::new(64).write(&request, &mut cx, &Jar::default(), &mut out, &mut Vec::new());
        let sent = out.strip_prefix(b"before").unwrap().to_vec();
        assert_eq!(result.is_err(), sent.is_empty());
        result.map(|()| sent).map_err(|unmet| unmet.describe(&[]))
    }

    #[test]
    fn a_put_is_written_as_the_protocol_has_it() {
        let put = AerospikeRequest {
            expires: Some(Template::literal("60")),
            generation: Some(hole()),
            ..asked(Action::Put, vec![("v".into(), Some(Template::literal("xy")))])
        };
        let fields = [&b"\0\0\0\x05\0test\0\0\0\x02\x01s\0\0\0\x15\x04"[..], &digest("s", b"k")].concat();
        let header = b"\x16\0\x05\0\0\0\0\0\0\x07\0\0\0\x3c\0\0\0\0\0\x03\0\x01";
        let bin = b"\0\0\0\x07\x02\x03\0\x01vxy";
        let length = header.len() + fields.len() + bin.len();
        let whole = [&[2, 3, 0, 0, 0, 0, 0, length as u8][..], header, &fields, bin].concat();
        assert_eq!(written(&put, "7").unwrap(), whole);
    }

    #[test]
    fn what_cannot_be_said_is_not_sent() {
        let with = |expires, generation| AerospikeRequest {
            expires,
            generation,
            ..asked(Action::Put, vec![("v".into(), Some(Template::literal("x")))])
        };
        let add = asked(Action::Add, vec![("n".into(), Some(hole()))]);
        assert!(
            written(&add, "-9223372036854775808")
                .unwrap()
                .ends_with(b"\0\0\0\x0d\x05\x01\0\x01n\x80\0\0\0\0\0\0\0")
        );
        for (asked, text, told) in [
            (&add, "1.5", "what is added to n"),
            (&add, "9223372036854775808", "64 bits"),
            (&with(Some(hole()), None), "-3", "`expires`"),
            (&with(Some(hole()), None), "soon", "`expires`"),
            (&with(None, Some(hole())), "0", "`generation`"),
            (&with(None, Some(hole())), "", "from 1 to 65535"),
        ] {
            let unmet = written(asked, text).unwrap_err();
            assert!(unmet.contains(told), "{unmet}");
        }
    }

    /// Takes what it is asked, and has said this already.
    struct Says(Cursor<Vec<u8>>);

    impl Read for Says {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl Write for Says {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_a_node_by_itself_that_has_the_namespace_is_driven() {
        let greeted = |answer: &str| {
            let mut said = vec![2, 1, 0, 0, 0, 0, 0, answer.len() as u8];
            said.extend_from_slice(answer.as_bytes());
            let mut aerospike = Aerospike { namespace: "test".into() };
            aerospike.greet(&mut Says(Cursor::new(said))).map_err(|error| error.to_string())
        };
        assert_eq!(greeted("namespaces\tbar;test\nstatistics\ta=b;cluster_size=1;c=d\n"), Ok(()));
        for (answer, told) in [
            ("namespaces\tbar;baz\nstatistics\tcluster_size=1\n", "no namespace \"test\"; there is bar, baz"),
            ("namespaces\ttest\nstatistics\tcluster_size=3\n", "a cluster of 3 nodes"),
            ("namespaces\tERROR:80:not authenticated\nstatistics\t\n", "not authenticated"),
        ] {
            let error = greeted(answer).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        let mut aerospike = Aerospike { namespace: "test".into() };
        let error = aerospike.greet(&mut Says(Cursor::new(b"HTTP/1.1 400 Bad\r\n".to_vec()))).unwrap_err();
        assert!(error.to_string().contains("does not speak Aerospike's protocol"), "{error}");
        let error = aerospike.greet(&mut Says(Cursor::new(Vec::new()))).unwrap_err();
        assert!(error.to_string().contains("closed the connection"), "{error}");
    }
}
