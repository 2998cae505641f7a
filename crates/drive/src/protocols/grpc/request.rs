//! Calls made ready: headers and constant messages as they are sent.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use tidemark_scenario::plan::{GrpcCall, GrpcStep, RequestPlan};
use tidemark_scenario::protobuf::{Method, MethodName, Stencil, Types};
use tidemark_scenario::{Context, Template};
use tidemark_wire::grpc::metadata::{MetadataError, check_name, value_as_sent};
use tidemark_wire::grpc::{self, begin_message, end_message};

use crate::protocols::http2::request::{Message, Opening, coded_name};
use crate::protocols::transport::{Origin, Setup};
use crate::session::failure::Failure;
use crate::session::program::ProgramRequest;

/// What is said of types that nobody knows.
const NO_TYPES: &str = "its message types are not known";

/// A step made ready.
#[derive(Debug)]
pub(super) enum Prepared {
    /// A call that is sent whole.
    Call {
        head: CallHead,
        messages: Messages,
        /// Whether somebody looks at the messages of the answer.
        needs_body: bool,
    },
    /// The beginning of a stream.
    Open(CallHead),
    /// A message over a stream, as JSON.
    Send { message: Template, expects: bool },
    /// The wait for a message.
    Expect,
    /// The end of a stream.
    Close,
}

/// How a call begins.
#[derive(Debug)]
pub(super) struct CallHead {
    request: Message,
    varying: Vec<Varying>,
    pub method: Method,
    /// How long the server is told that the call has.
    pub deadline: Option<Duration>,
    /// Whether any number of messages answers it.
    pub answers_many: bool,
    pub compresses: bool,
}

/// Metadata that varies.
#[derive(Debug)]
struct Varying {
    name: String,
    coded_name: Vec<u8>,
    value: Template,
}

/// Room for a message as JSON, and for where its holes are.
#[derive(Debug, Default)]
pub(super) struct Room {
    pub text: Vec<u8>,
    holes: Vec<Range<usize>>,
}

/// What a call sends.
#[derive(Debug)]
pub(super) struct Messages {
    /// As JSON.
    pub json: Vec<Template>,
    /// How each is written without going through JSON, where it can be.
    stencils: Vec<Option<Stencil>>,
    /// Whether nothing varies: the request has their bytes.
    is_fixed: bool,
}

/// Why a server of these types does not take what these steps of a file send, if it does not.
pub(super) fn refusal<'p>(
    types: Option<&Types>,
    file: &str,
    steps: impl Iterator<Item = &'p GrpcStep> + Clone,
) -> Option<String> {
    let Some(types) = types else { return steps.clone().next().map(|_| NO_TYPES.to_owned()) };
    let opened: Vec<Method> = steps.clone().filter_map(|step| step.opens(types)).collect();
    for step in steps {
        let Err((_, wrong)) = step.check(types, opened.iter()) else { continue };
        let words = match step.call() {
            Some(call) if !wrong.way.is_empty() => format!("{}: {wrong}", call.method),
            _ => wrong.words,
        };
        // what stands for flags has lines that nobody has seen
        let is_file = Path::new(file).extension().is_some();
        return Some(if is_file { format!("{file}:{}: {words}", step.line()) } else { words });
    }
    None
}

/// The call that a program asks for: its path is the method, its headers are metadata, its body is the message as JSON. One
/// that stays open has none, and as much time as it takes.
pub(super) fn made(
    types: Option<&Types>,
    asked: &ProgramRequest,
    origin: Origin<'_>,
    message: &mut Message,
) -> Result<CallHead, String> {
    let name = asked.path.trim_start_matches('/');
    let method = MethodName::read(name).ok_or_else(|| format!("{name} is no method"))?;
    let literal =
        |(name, value): &(String, String)| (name.to_ascii_lowercase(), Template::literal(value.as_str()));
    let metadata = asked.headers.iter().map(literal).collect();
    let call = GrpcCall {
        method,
        metadata,
        deadline: Some(asked.timeout).filter(|_| !asked.stays_open),
        compresses: false,
        line: 0,
    };
    let head = CallHead::new(types, &call, origin)?;
    message.repeat(&head.request);
    if !asked.stays_open {
        write_message(&head.method, asked.body.as_deref().unwrap_or(b"{}"), false, message.own_body())?;
    }
    Ok(head)
}

/// Appends a message with its length, made of JSON.
pub(super) fn write_message(
    method: &Method,
    json: &[u8],
    compresses: bool,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    if compresses {
        let mut message = Vec::new();
        method.encode(json, &mut message)?;
        grpc::write_compressed(&message, out);
        return Ok(());
    }
    let start = out.len();
    let begin = begin_message(out);
    if let Err(why) = method.encode(json, out) {
        out.truncate(start);
        return Err(why);
    }
    end_message(begin, out);
    Ok(())
}

impl Prepared {
    /// Those of a plan; in words why one cannot be sent.
    pub fn all(types: Option<&Types>, setup: &Setup<'_>) -> Vec<Result<Prepared, String>> {
        let one = |(number, request): (usize, &RequestPlan)| match request.grpc() {
            None => Err("it is not a call of gRPC".to_owned()),
            Some(step) => {
                let needs_body = request.needs_body() || request.shown_body_bytes > 0;
                Prepared::new(types, (number, step), needs_body, setup.origin)
            }
        };
        setup.plan.requests.iter().enumerate().map(one).collect()
    }

    fn new(
        types: Option<&Types>,
        (number, step): (usize, &GrpcStep),
        needs_body: bool,
        origin: Origin<'_>,
    ) -> Result<Prepared, String> {
        Ok(match step {
            GrpcStep::Call { call, messages } => {
                let mut head = CallHead::new(types, call, origin)?;
                let constant = messages.iter().map(Template::as_literal).collect::<Option<Vec<_>>>();
                let write = |constant: Vec<&[u8]>| {
                    let mut bytes = Vec::new();
                    for json in constant {
                        write_message(&head.method, json, head.compresses, &mut bytes)?;
                    }
                    Ok::<_, String>(Bytes::from(bytes))
                };
                let fixed = constant.map(write).transpose()?;
                if let Some(bytes) = &fixed {
                    head.request.share(bytes);
                    head.request.mark_constant(number);
                }
                let stencils = messages.iter().map(|json| head.method.stencil(json)).collect();
                let messages = Messages { json: messages.clone(), stencils, is_fixed: fixed.is_some() };
                Prepared::Call { head, messages, needs_body }
            }
            GrpcStep::Open(call) => Prepared::Open(CallHead::new(types, call, origin)?),
            GrpcStep::Send { message, expects, .. } => {
                Prepared::Send { message: message.clone(), expects: *expects }
            }
            GrpcStep::Expect => Prepared::Expect,
            GrpcStep::Close => Prepared::Close,
        })
    }
}

impl CallHead {
    fn new(types: Option<&Types>, call: &GrpcCall, origin: Origin<'_>) -> Result<CallHead, String> {
        let method = types.ok_or(NO_TYPES)?.method(&call.method)?;
        let mut request = Message::default();
        let opening = Opening::new("POST", origin.is_secured, origin.authority)?;
        request.begin(&opening, call.method.path().as_bytes())?;
        let mut append = |name: &str, value: &[u8]| request.header(&coded_name(name)?, value);
        // as the specification orders them
        if let Some(deadline) = call.deadline {
            append("grpc-timeout", grpc::timeout(deadline).as_bytes())?;
        }
        append("te", b"trailers")?;
        append("content-type", b"application/grpc")?;
        if call.compresses {
            append("grpc-encoding", b"gzip")?;
        }
        append("grpc-accept-encoding", b"gzip,deflate,identity")?;
        append("user-agent", b"tidemark")?;
        let mut varying = Vec::new();
        for (name, value) in &call.metadata {
            check_name(name).map_err(|why| unsendable(name, why))?;
            match value.as_literal() {
                Some(literal) => {
                    append(name, value_as_sent(name, literal).map_err(|why| unsendable(name, why))?)?
                }
                None => varying.push(Varying {
                    name: name.clone(),
                    coded_name: coded_name(name)?,
                    value: value.clone(),
                }),
            }
        }
        let answers_many = method.answers_many();
        let GrpcCall { deadline, compresses, .. } = *call;
        Ok(CallHead { request, varying, method, deadline, answers_many, compresses })
    }

    /// A request without a body as a person reads it.
    pub fn show(request: &Message, out: &mut Vec<u8>) {
        out.extend_from_slice(request.path().strip_prefix(b"/").unwrap_or(request.path()));
        for (name, value) in request.fields().iter().filter(|(name, _)| !name.starts_with(b":")) {
            out.push(b'\n');
            let parts = [name, b": ", value];
            parts.iter().for_each(|part| out.extend_from_slice(part));
        }
        out.extend_from_slice(b"\n\n");
    }

    /// The request, with what varies in it. `scratch` is room.
    pub fn make(
        &self,
        cx: &mut Context<'_>,
        scratch: &mut Vec<u8>,
        message: &mut Message,
    ) -> Result<(), Failure> {
        message.repeat(&self.request);
        for Varying { name, coded_name, value } in &self.varying {
            scratch.clear();
            value.render(cx, scratch)?;
            let value =
                value_as_sent(name, scratch).map_err(|why| Failure::Unsendable(unsendable(name, why)))?;
            message.header(coded_name, value).map_err(Failure::Unsendable)?;
        }
        Ok(())
    }
}

fn unsendable(name: &str, why: MetadataError) -> String {
    format!("the request cannot be sent with the metadata {name:?}: {why}")
}

impl Messages {
    /// Makes the bytes of the messages a request's body.
    pub fn make(
        &self,
        head: &CallHead,
        cx: &mut Context<'_>,
        room: &mut Room,
        message: &mut Message,
    ) -> Result<(), Failure> {
        if self.is_fixed {
            return Ok(());
        }
        let bytes = message.own_body();
        for (template, stencil) in self.json.iter().zip(&self.stencils) {
            room.text.clear();
            room.holes.clear();
            template.render_telling(cx, &mut room.text, |hole| room.holes.push(hole))?;
            let stencil = stencil.as_ref().filter(|_| !head.compresses);
            if stencil.is_some_and(|stencil| write_fields(stencil, room, bytes)) {
                continue;
            }
            write_message(&head.method, &room.text, head.compresses, bytes).map_err(Failure::Unsendable)?;
        }
        Ok(())
    }
}

/// Appends a message with its length whose fields are written into its bytes; false, and nothing, where JSON is gone through.
fn write_fields(stencil: &Stencil, room: &Room, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let begin = begin_message(out);
    if !stencil.write(&room.text, &room.holes, out) {
        out.truncate(start);
        return false;
    }
    end_message(begin, out);
    true
}
