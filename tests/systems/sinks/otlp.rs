//! A receiver of OTLP over HTTP that shares no code with the program: it decodes what it is sent.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

/// The wire format's forms.
#[derive(Debug, Clone)]
enum Field {
    Varint(u64),
    Fixed(u64),
    Bytes(Vec<u8>),
}

fn varint(from: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = from[0];
        *from = &from[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a varint of more than ten bytes");
}

fn fields(mut from: &[u8]) -> Vec<(u64, Field)> {
    let mut fields = Vec::new();
    while !from.is_empty() {
        let key = varint(&mut from);
        let field = match key & 7 {
            0 => Field::Varint(varint(&mut from)),
            1 => {
                let (value, rest) = from.split_at(8);
                from = rest;
                Field::Fixed(u64::from_le_bytes(value.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut from) as usize;
                let (value, rest) = from.split_at(length);
                from = rest;
                Field::Bytes(value.to_vec())
            }
            form => panic!("form {form}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn messages(of: &[u8], number: u64) -> Vec<Vec<u8>> {
    let found = fields(of).into_iter().filter(|(n, _)| *n == number);
    found
        .map(|(_, field)| if let Field::Bytes(bytes) = field { bytes } else { panic!("{field:?}") })
        .collect()
}

fn number(of: &[u8], wanted: u64) -> Option<u64> {
    fields(of).into_iter().find(|(n, _)| *n == wanted).map(|(_, field)| match field {
        Field::Varint(value) | Field::Fixed(value) => value,
        Field::Bytes(_) => panic!("field {wanted} is no number"),
    })
}

fn text(of: &[u8], number: u64) -> String {
    messages(of, number).first().map(|bytes| String::from_utf8(bytes.clone()).unwrap()).unwrap_or_default()
}

fn attributes(of: &[u8], field: u64) -> BTreeMap<String, String> {
    messages(of, field).iter().map(|pair| (text(pair, 1), text(&messages(pair, 2)[0], 1))).collect()
}

/// A point of a metric.
#[derive(Debug, Clone)]
pub struct Point {
    pub attributes: BTreeMap<String, String>,
    pub start_ns: u64,
    pub time_ns: u64,
    /// Of a number, or the count of a histogram.
    pub value: f64,
    /// Of a histogram.
    pub sum: f64,
}

/// One push.
#[derive(Debug, Clone, Default)]
pub struct Push {
    pub head: String,
    pub resource: BTreeMap<String, String>,
    pub metrics: BTreeMap<String, Vec<Point>>,
}

fn decode(head: String, body: &[u8]) -> Push {
    let of_resource = &messages(body, 1)[0];
    let resource = attributes(&messages(of_resource, 1)[0], 1);
    let of_scope = &messages(of_resource, 2)[0];
    assert_eq!(text(&messages(of_scope, 1)[0], 1), "tidemark");
    let mut metrics = BTreeMap::new();
    for metric in messages(of_scope, 2) {
        let (form, data) = [5, 7, 10]
            .into_iter()
            .find_map(|form| messages(&metric, form).first().map(|data| (form, data.clone())))
            .expect("a gauge, a sum or an exponential histogram");
        if form != 5 {
            assert_eq!(number(&data, 2), Some(2), "cumulative");
        }
        let points = messages(&data, 1)
            .iter()
            .map(|point| if form == 10 { histogram(point) } else { plain(point) })
            .collect();
        assert!(metrics.insert(text(&metric, 1), points).is_none(), "a metric twice");
    }
    Push { head, resource, metrics }
}

fn plain(point: &[u8]) -> Point {
    let value = match (number(point, 6), number(point, 4)) {
        (Some(int), None) => int as f64,
        (None, Some(double)) => f64::from_bits(double),
        other => panic!("{other:?}"),
    };
    let (start_ns, time_ns) = (number(point, 2).unwrap(), number(point, 3).unwrap());
    Point { attributes: attributes(point, 7), start_ns, time_ns, value, sum: 0.0 }
}

fn histogram(point: &[u8]) -> Point {
    let count = number(point, 4).unwrap();
    let mut counted = number(point, 7).unwrap_or(0);
    for buckets in messages(point, 8) {
        let packed = messages(&buckets, 2).concat();
        let mut rest = packed.as_slice();
        while !rest.is_empty() {
            counted += varint(&mut rest);
        }
    }
    assert_eq!(count, counted, "the buckets hold what is counted");
    let (start_ns, time_ns) = (number(point, 2).unwrap(), number(point, 3).unwrap());
    let sum = f64::from_bits(number(point, 5).unwrap());
    Point { attributes: attributes(point, 1), start_ns, time_ns, value: count as f64, sum }
}

/// Listens, and hands each push on before it is answered with what `answer` says.
pub fn receive(mut seen: impl FnMut(&Push) + Send + 'static) -> (SocketAddr, Receiver<Push>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (pushed, pushes) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (head, body) = request(&mut stream);
            let push = decode(head, &body);
            seen(&push);
            if pushed.send(push).is_err() {
                return;
            }
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n",
            );
        }
    });
    (address, pushes)
}

fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut part = [0; 8192];
    loop {
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "cut off: {}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&part[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let fields = || head.lines().filter_map(|line| line.split_once(": "));
        let length = fields().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length: usize = length.unwrap().1.parse().unwrap();
        if bytes.len() >= end + 4 + length {
            return (head, bytes[end + 4..].to_vec());
        }
    }
}
