//! Nanoseconds that the codecs take for what a load generator sees most. Run it alone on a core:
//!
//! ```text
//! cargo run --release -p tidemark-wire --example decode_speed
//! ```

use std::hint::black_box;
use std::time::Instant;

use tidemark_wire::http1::{DecoderLimits, RequestDecoder, ResponseDecoder, cookie, request};
use tidemark_wire::json::{self, Path};

const ROUNDS: usize = 9;
const REPEATS: u32 = 100_000;

const SMALL: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nserver: airline\r\n\
    content-length: 27\r\ndate: Tue, 04 Jun 2024 10:00:00 GMT\r\n\r\n{\"status\":\"ok\",\"flights\":3}";
const LOGIN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain;charset=UTF-8\r\n\
    Set-Cookie: sessionid=0d9c2b0e-5f0a-4c57-8f4e-7c9d6f1f2a3b; Path=/; HttpOnly\r\n\
    Cache-Control: no-store\r\nContent-Length: 9\r\nDate: Tue, 04 Jun 2024 10:00:00 GMT\r\n\r\nlogged in";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\
    Date: Tue, 04 Jun 2024 10:00:00 GMT\r\n\r\n1b\r\n{\"status\":\"ok\",\"flights\":3}\r\n0\r\n\r\n";
const REQUEST: &[u8] = b"POST /rest/api/flights/queryflights HTTP/1.1\r\nHost: 127.0.0.1:9080\r\n\
    Cookie: sessionid=0d9c2b0e-5f0a-4c57-8f4e-7c9d6f1f2a3b\r\n\
    Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 38\r\n\r\n\
    fromAirport=CDG&toAirport=LHR&oneWay=1";

fn main() {
    let mut decoder = ResponseDecoder::new(DecoderLimits::default());
    for (name, answer) in [("small answer", SMALL), ("login answer", LOGIN), ("chunked answer", CHUNKED)] {
        measure(name, answer.len(), || decode(&mut decoder, black_box(answer), true));
    }
    measure("small answer, body dropped", SMALL.len(), || decode(&mut decoder, black_box(SMALL), false));
    measure("small answer in two pieces", SMALL.len(), || {
        decoder.start(false, true);
        let (front, back) = black_box(SMALL).split_at(60);
        let _ = black_box(decoder.decode(front));
        assert!(decoder.decode(back).is_ok_and(|decoded| decoded.complete));
    });
    let large = [b"HTTP/1.1 200 OK\r\nContent-Length: 16384\r\n\r\n".as_slice(), &[b'x'; 16384]].concat();
    measure("16 KiB answer", large.len(), || decode(&mut decoder, black_box(&large), true));

    decode(&mut decoder, LOGIN, true);
    measure("find set-cookie and parse it", 0, || {
        let value = black_box(&decoder).header("set-cookie");
        assert!(value.and_then(cookie::parse).is_some_and(|cookie| !cookie.is_removed(0)));
    });

    let mut server = RequestDecoder::new(DecoderLimits::default());
    measure("request", REQUEST.len(), || {
        server.start();
        assert!(server.decode(black_box(REQUEST)).is_ok_and(|decoded| decoded.complete));
    });
    let mut out = Vec::new();
    measure("write a head with a cookie", 0, || {
        out.clear();
        let cookie = [(&b"sessionid"[..], &b"0d9c2b0e-5f0a-4c57-8f4e-7c9d6f1f2a3b"[..])];
        let written = request::write_line(&mut out, "POST", &[b"/rest/api", b"/flights/queryflights"])
            .and_then(|()| request::write_host(&mut out, b"127.0.0.1:9080"))
            .and_then(|()| request::write_cookies(&mut out, black_box(cookie)));
        assert!(written.is_ok());
        request::write_content_length(&mut out, black_box(38));
        request::end_head(&mut out);
    });
    json_speed();
}

fn json_speed() {
    let flight = |id: u32| {
        format!(
            r#"{{"_id":"f{id:032x}","flightSegmentId":"AA{id}","scheduledDepartureTime":"2024-06-04T00:00:00.000Z","economyClassBaseCost":200,"numEconomyClassSeats":200,"airplaneTypeId":"B747","flightSegment":{{"_id":"AA{id}","originPort":"CDG","destPort":"LHR","miles":216}}}}"#
        )
    };
    let flights = (0..4).map(flight).collect::<Vec<_>>().join(",");
    let text = format!(
        r#"{{"tripFlights":[{{"numPages":1,"flightsOptions":[{flights}],"currentPage":0,"hasMoreOptions":false,"pageSize":10}}],"tripLegs":1}}"#
    );
    let text = text.as_bytes();
    for path in
        ["$.tripFlights[0].flightsOptions[0]._id", "$.tripFlights[0].flightsOptions[-1]._id", "$.tripLegs"]
    {
        let compiled = Path::parse(path).expect("a path");
        measure(path, text.len(), || {
            assert!(compiled.find(black_box(text)).is_ok_and(|found| found.is_some()));
        });
    }
    measure("check the whole text", text.len(), || assert!(json::check(black_box(text)).is_ok()));
}

fn decode(decoder: &mut ResponseDecoder, answer: &[u8], keep_body: bool) {
    decoder.start(false, keep_body);
    assert!(decoder.decode(answer).is_ok_and(|decoded| decoded.complete));
    black_box(decoder.status());
}

/// The fastest of several rounds: what the code takes when nothing else is in its way.
fn measure(name: &str, input_bytes: usize, mut work: impl FnMut()) {
    let mut best_ns = f64::MAX;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        for _ in 0..REPEATS {
            work();
        }
        best_ns = best_ns.min(begin.elapsed().as_nanos() as f64 / f64::from(REPEATS));
    }
    println!("{best_ns:8.1} ns  {name} ({input_bytes} bytes)");
}
