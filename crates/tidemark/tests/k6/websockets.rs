//! WebSockets of scripts: what is measured of them, and how they end.

use super::{Recorder, folder};
use crate::program::{json, stderr, stdout};

#[test]
fn websockets_are_measured_as_in_k6() {
    let server = Recorder::start();
    let output = server.run(&folder().join("ws-metrics.js"), &["-t", "1"]);
    // what k6 1.8.1 writes
    let told = r#"told: {"ws_connecting":"trend time","ws_msgs_received":"counter default 6","ws_msgs_sent":"counter default 10","ws_msgs_sent{kind:own}":"counter default 4","ws_ping":"trend time","ws_session_duration":"trend time","ws_session_duration{kind:own}":"trend time","ws_sessions":"counter default 6","ws_sessions{group:::room}":"counter default 2","ws_sessions{name:std}":"counter default 2","ws_sessions{status:101}":"counter default 4","ws_sessions{subproto:v1}":"counter default 2"}"#;
    assert!(stdout(&output).contains(told), "{}{}", stdout(&output), stderr(&output));
    let output = server.run(&folder().join("ws-metrics.js"), &["-t", "1", "--json"]);
    let json = json(&output);
    let objectives = json["objectives"].as_array().unwrap();
    for of in objectives.iter().filter(|of| of["objective"] != "errors < 0.1%") {
        assert_eq!(of["met"], true, "{of}");
    }
    let labels = json["run"]["labels"].to_string();
    for (label, count) in [("WS /ws/echo", 2), ("std", 2), ("WS /ws/deny", 2)] {
        assert!(labels.contains(label), "{label}, {count} times: {labels}");
    }
    let shown = json.to_string();
    assert!(shown.contains("6 messages were sent over WebSockets and streams of the script"), "{shown}");
}

#[test]
fn the_run_ends_websockets_that_are_open() {
    let server = Recorder::start();
    for text in [
        "import ws from 'k6/ws';
export const options = { scenarios: { a: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '0s' } } };
export default () => { ws.connect(`${__ENV.BASE.replace('http', 'ws')}/ws/silent`, {}, () => {}); };",
        "import { WebSocket } from 'k6/websockets';
export const options = { scenarios: { a: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '0s' } } };
export default () => { new WebSocket(`${__ENV.BASE.replace('http', 'ws')}/ws/silent`); };",
    ] {
        server.forget();
        let output = server.run_text(text);
        let requests = server.requests_once(|sent| sent.matches("close\t1001").count() == 2);
        assert_eq!(requests.matches("GET\t/ws/silent").count(), 2, "{requests}{}", stderr(&output));
        assert_eq!(requests.matches("close\t1001").count(), 2, "{requests}{}", stdout(&output));
        assert!(stdout(&output).contains("WS /ws/silent"), "{}", stdout(&output));
    }
}

#[test]
fn a_flood_over_a_websocket_is_bounded() {
    let server = Recorder::start();
    let output = server.run_text(
        "import { WebSocket } from 'k6/websockets';
import http from 'k6/http';
import { sleep } from 'k6';
export const options = { iterations: 1 };
export default () => {
    const socket = new WebSocket(`${__ENV.BASE.replace('http', 'ws')}/ws/flood`);
    socket.binaryType = 'arraybuffer';
    let bytes = 0;
    let words = '';
    socket.onopen = () => sleep(5);
    socket.onmessage = (event) => { bytes += event.data.byteLength; };
    socket.onerror = (event) => { words = event.error; };
    socket.onclose = () => http.post(`${__ENV.BASE}/seen`, `${bytes > 1e6} ${bytes < 17e6} ${words}`);
};",
    );
    let words = "true true more came over the WebSocket than the script looked at";
    let requests = server.requests();
    assert!(requests.contains(words), "{requests}{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("the program took no more"), "{}", stdout(&output));
}
