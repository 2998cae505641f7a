//! The trade service by real connections: all ways to call it count the same trades.

#[path = "../../service/tests/client/mod.rs"]
mod client;

use std::net::SocketAddr;

use client::{Reply, Serving};
use tidemark_rpc::{Client, ClientOptions, Form, RestClient};
use tidemark_service::{Options, ReferenceSystem};
use tidemark_trade::{Trade, TradeSystem, TradesClient};
use tidemark_wire::grpc::{Messages, write_message};

fn start(settings: &[(&str, &str)]) -> Serving {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let options = Options { listen, workers: Some(2), announce: false, settings, ..Options::default() };
    Serving::start(TradeSystem::bind(options).unwrap())
}

fn put(running: &Serving, body: &str) -> Reply {
    running.client().request("PUT", "/trade", &[("content-type", "application/json")], body.as_bytes())
}

fn count(running: &Serving) -> String {
    running.client().get("/count").text().to_owned()
}

fn end(running: Serving) {
    assert_eq!(running.end().connections_cut, 0);
}

#[test]
fn trades_are_counted_however_they_come() {
    let running = start(&[]);
    let answer = put(&running, r#"{"name":"ibm","amount":1}"#);
    assert_eq!((answer.status, answer.text()), (200, "true"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let binary = ClientOptions { form: Form::Binary, ..ClientOptions::default() };
        let ways = [
            TradesClient::new(Client::connect(running.addr, ClientOptions::default())),
            TradesClient::new(Client::connect(running.addr, binary)),
            TradesClient::new(RestClient::new(running.addr)),
        ];
        for way in &ways {
            assert_eq!(way.trade(Trade { name: "ibm".into(), amount: -7 }).await, Ok(true));
        }
        assert_eq!(ways[0].count().await, Ok(4));
    });
    drop(runtime);
    assert_eq!(count(&running), "4");
    let metrics = running.client().get("/metrics");
    for line in [
        "trade_trades_total 4",
        "tidemark_calls_total{method=\"trade.trade\",outcome=\"done\"} 2",
        "tidemark_requests_total{route=\"/trade\",method=\"PUT\",status=\"200\"} 2",
    ] {
        assert!(metrics.text().lines().any(|one| one == line), "no {line} in\n{}", metrics.text());
    }
    end(running);
}

/// Calls a method by gRPC with these messages, each with its length in front: the messages of the answer and its status.
async fn call(addr: SocketAddr, path: &str, messages: &[u8]) -> (Vec<Vec<u8>>, String) {
    let stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request =
        http::Request::post(format!("http://{addr}{path}")).header("content-type", "application/grpc");
    let mut client = client.ready().await.unwrap();
    let (answer, mut sending) = client.send_request(request.body(()).unwrap(), false).unwrap();
    sending.send_data(bytes::Bytes::copy_from_slice(messages), true).unwrap();
    let answer = answer.await.unwrap();
    let mut trailers = answer.headers().clone();
    let mut body = answer.into_body();
    let mut come = Messages::new(1 << 20);
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        come.push(&piece);
    }
    trailers.extend(body.trailers().await.unwrap_or_default().unwrap_or_default());
    let mut messages = Vec::new();
    while let Some(message) = come.next().unwrap() {
        messages.push(message.bytes.to_vec());
    }
    (messages, trailers["grpc-status"].to_str().unwrap().to_owned())
}

#[test]
fn calls_of_grpc_are_answered_on_the_same_port() {
    const TRADE: &[u8] = b"\x0a\x03ibm\x10\x01";
    let running = start(&[]);
    let framed = |messages: &[&[u8]]| {
        let mut all = Vec::new();
        messages.iter().for_each(|message| write_message(message, &mut all));
        all
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ask =
            |path: &'static str, messages: Vec<u8>| async move { call(running.addr, path, &messages).await };
        let (taken, counted) = (vec![8, 1], |trades| vec![8, trades]);
        let told = ask("/trade.Trades/Take", framed(&[TRADE])).await;
        assert_eq!(told, (vec![taken.clone()], "0".to_owned()));
        let told = ask("/trade.Trades/TakeEach", framed(&[TRADE, TRADE, b""])).await;
        assert_eq!(told, (vec![taken; 3], "0".to_owned()));
        assert_eq!(ask("/trade.Trades/Count", framed(&[b""])).await, (vec![counted(4)], "0".to_owned()));
        let serving = (vec![vec![8, 1]], "0".to_owned());
        assert_eq!(ask("/grpc.health.v1.Health/Check", framed(&[b"\x0a\x0ctrade.Trades"])).await, serving);
        for (path, messages, status) in [
            ("/trade.Trades/Take", framed(&[b"\x0a\x09ibm"]), "3"),
            ("/trade.Trades/Take", framed(&[b"\x08\x01"]), "3"),
            ("/trade.Trades/Take", framed(&[b"\x0a\x02\xff\xff"]), "3"),
            ("/trade.Trades/Take", framed(&[]), "3"),
            ("/trade.Trades/Take", framed(&[TRADE])[..6].to_vec(), "3"),
            ("/trade.Trades/Take", vec![9, 0, 0, 0, 0], "3"),
            ("/trade.Trades/Take", vec![0, 0xff, 0xff, 0xff, 0xff], "8"),
            ("/trade.Trades/Sell", framed(&[TRADE]), "12"),
            ("/grpc.health.v1.Health/Check", framed(&[b"\x0a\x01x"]), "5"),
        ] {
            let (answers, told) = ask(path, messages.clone()).await;
            assert_eq!((answers.len(), told.as_str()), (0, status), "{path} {messages:?}");
        }
    });
    drop(runtime);
    assert_eq!(count(&running), "4");
    end(running);
}

#[test]
fn an_answer_larger_than_the_window_comes_whole() {
    let running = start(&[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // the symbol that is asked for, 65,500 bytes; the answer repeats the question
        let mut question = vec![0x22, 0xdc, 0xff, 0x03];
        question.resize(question.len() + 65_500, b'x');
        let mut message = Vec::new();
        write_message(&question, &mut message);
        let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        let (answers, told) = call(running.addr, path, &message).await;
        assert_eq!((answers.len(), told.as_str()), (1, "0"));
        assert!(answers[0].len() > 65_535, "{}", answers[0].len());
    });
    drop(runtime);
    end(running);
}

#[test]
fn calls_from_which_nothing_comes_take_no_memory_of_others_and_end() {
    let running = start(&[("held_mib_max", "1"), ("head_timeout_s", "2")]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut calls = Vec::new();
        for _ in 0..3 {
            let stream = tokio::net::TcpStream::connect(running.addr).await.unwrap();
            let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            for _ in 0..100 {
                let request = http::Request::post(format!("http://{}/trade.Trades/TakeEach", running.addr))
                    .header("content-type", "application/grpc");
                client = client.ready().await.unwrap();
                let (answer, sending) = client.send_request(request.body(()).unwrap(), false).unwrap();
                calls.push((answer.await.unwrap(), sending));
            }
        }
        let name = "x".repeat(60_000);
        let answer = put(&running, &format!(r#"{{"name":"{name}","amount":1}}"#));
        assert_eq!(answer.status, 200, "{}", answer.text());
        for (answer, _sending) in calls {
            let mut body = answer.into_body();
            assert!(body.data().await.is_none());
            let trailers = body.trailers().await.unwrap().unwrap();
            assert_eq!(trailers["grpc-status"], "4");
        }
    });
    drop(runtime);
    end(running);
}

#[test]
fn what_is_no_trade_is_refused_with_a_reason() {
    let running = start(&[]);
    for (body, reason) in [
        (r#"{"name":"ibm"}"#, "missing field `amount`"),
        (r#"{"name":"ibm","amount":"1"}"#, "invalid type"),
        ("ibm", "expected value"),
        (r#"["ibm",1]"#, "invalid type: sequence"),
        (r#"["ibm",1.0]"#, "invalid type: sequence"),
        ("null", "invalid type"),
        (r#"{"name":["ibm"],"amount":1}"#, "invalid type"),
    ] {
        let answer = put(&running, body);
        assert!(answer.status == 400 && answer.text().contains(reason), "{}", answer.text());
    }
    assert_eq!(running.client().request("PATCH", "/trade", &[], b"{}").status, 405);
    assert_eq!(count(&running), "0");
    end(running);
}
