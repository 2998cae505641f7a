//! Scripts are read, and rehearsed without a network.

use std::fs;
use std::time::Duration;

use tidemark_k6::{Executor, Given, K6, Source};

fn read(text: &str) -> Result<(K6, tidemark_k6::Sent), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.js");
    fs::write(&path, text).unwrap();
    fs::write(folder.path().join("lib.js"), "export const base = 'http://127.0.0.1:1';").unwrap();
    let env = [("HOST".to_owned(), "127.0.0.1:2".to_owned())];
    let source = Source {
        name: "script.js",
        path: &path,
        text: text.as_bytes(),
        env: &env,
        given: Given::default(),
        bounds: Default::default(),
    };
    let k6 = K6::read(&source).map_err(|error| error.to_string())?;
    let sent = k6.rehearse(&source).map_err(|error| error.to_string())?;
    Ok((k6, sent))
}

#[test]
fn a_script_tells_its_load_and_where_it_sends_what() {
    let (k6, sent) = read(
        r"
        import http from 'k6/http';
        import { check, group, sleep } from 'k6';
        import { base } from './lib.js';
        export const options = { vus: 2, duration: '3s', thresholds: { http_req_duration: ['p(95)<200'] } };
        export function setup() {
            const token = http.post(`${base}/login`, { user: 'a' }).json('token');
            return { token };
        }
        export default function (data) {
            group('shop', () => {
                const list = http.get(`http://${__ENV.HOST}/items`).json();
                check(list, { some: (items) => items.length > 0 });
                for (const item of list.items) http.get(`${base}/items/17`, { tags: { name: 'item' } });
                http.del(`${base}/items/18`);
            });
            sleep(1);
        }",
    )
    .unwrap();
    assert_eq!(
        k6.scenarios()[0].executor,
        Executor::ConstantVus { vus: 2, duration: Duration::from_secs(3) }
    );
    assert_eq!(sent.origins, ["http://127.0.0.1:1", "http://127.0.0.1:2"]);
    let labels = ["GET /items", "item", "DELETE /items/{}"].map(str::to_owned).to_vec();
    assert_eq!(sent.labels, [("default".to_owned(), labels)]);
    // a host that is chosen by chance, or late
    let (_, sent) = read(
        "import http from 'k6/http';
        export default () => { http.get(`http://127.0.0.1:${__ITER < 3 ? 1 : 2}/`); };",
    )
    .unwrap();
    assert_eq!(sent.origins, ["http://127.0.0.1:1", "http://127.0.0.1:2"]);
}

#[test]
fn what_is_sent_at_once_is_known_too() {
    let (_, sent) = read(
        r"
        import http from 'k6/http';
        import { base } from './lib.js';
        export default async function () {
            const list = http.batch([`${base}/a`, ['POST', `${base}/b`, 'x']]);
            const [first] = await Promise.all([http.asyncRequest('GET', `${base}/c/${list.length}`)]);
            setTimeout(() => http.get(`${base}/timer`), 1000);
            http.asyncRequest('PUT', `${base}/d`).then(() => http.del(`${base}/e`));
            http.get(`${base}/last/${first.json('id')}`);
        }",
    )
    .unwrap();
    assert_eq!(sent.threw, None);
    let labels = ["GET /a", "POST /b", "GET /c/{}", "GET /last/{}", "PUT /d", "DELETE /e", "GET /timer"];
    let mut known = sent.labels[0].1.clone();
    known.sort_unstable();
    let mut wanted = labels.map(str::to_owned).to_vec();
    wanted.sort_unstable();
    assert_eq!(known, wanted);
}

#[test]
fn websockets_are_rehearsed() {
    let (_, sent) = read(
        r"
        import ws from 'k6/ws';
        import http from 'k6/http';
        import { WebSocket } from 'k6/websockets';
        export default function () {
            const res = ws.connect('ws://127.0.0.1:1/rooms/17', {}, (socket) => {
                socket.on('open', () => socket.setInterval(() => socket.send('x'), 1000));
                socket.on('message', (text) => http.get(`http://127.0.0.1:2/${JSON.parse(text).id}`));
                socket.setTimeout(() => socket.close(), 60000);
            });
            if (res.status !== 101) throw new Error('no WebSocket');
            const socket = new WebSocket('wss://127.0.0.1:3/feed', null, { tags: { name: 'feed' } });
            socket.onopen = () => setInterval(() => {}, 1000);
            socket.onclose = () => http.get('http://127.0.0.1:2/closed');
            socket.addEventListener('message', () => http.get('http://127.0.0.1:2/heard'));
        }",
    )
    .unwrap();
    assert_eq!(sent.threw, None);
    assert_eq!(sent.origins, ["http://127.0.0.1:1", "http://127.0.0.1:2", "https://127.0.0.1:3"]);
    let labels = ["WS /rooms/{}", "GET /{}", "feed", "GET /heard", "GET /closed"].map(str::to_owned).to_vec();
    assert_eq!(sent.labels, [("default".to_owned(), labels)]);
}

#[test]
fn connections_of_grpc_are_in_the_scenario() {
    let scenario = |params: &str| {
        let (k6, sent) = read(&format!(
            "import grpc from 'k6/net/grpc';
            const pem = open('./lib.js');
            const client = new grpc.Client();
            export default function () {{
                client.connect('127.0.0.1:2', {params});
                client.invoke('a.B/C', {{}});
            }}"
        ))?;
        k6.scenario("script.js", &[], &sent).map(|made| made.to_yaml()).map_err(|error| error.to_string())
    };
    let told = scenario("{ authority: 'shop.test', tls: { cacerts: [pem], cert: pem, key: pem } }").unwrap();
    for words in ["grpcs://shop.test", "connect to:", "127.0.0.1:2", "ca:", "certificate:", "key:", "lib.js"]
    {
        assert!(told.contains(words), "{words} in {told}");
    }
    for params in ["{ tls: { cert: pem, key: pem, password: 'x' } }", "{ tls: { cacerts: ['x'] } }"] {
        let told = scenario(params).unwrap_err();
        assert!(told.contains("tls:"), "{told}");
    }
}

#[test]
fn mistakes_are_told_with_their_place() {
    for (text, words) in [
        ("export default function () {\n  let x = ;\n}", "script.js:2"),
        ("import x from 'k6/nothing';\nexport default function () {}", "there is no module k6/nothing"),
        ("import x from 'https://example.org/a.js';\nexport default function () {}", "nothing is fetched"),
        ("import { browser } from 'k6/browser';\nexport default function () {}", "drives protocols"),
        ("import r from 'k6/experimental/redis';\nexport default function () {}", "`redis` steps"),
        ("import s from 'k6/experimental/streams';\nexport default function () {}", "k6/experimental/csv"),
        ("export const options = {};", "exports no function default"),
        ("const x = null;\nx.y;\nexport default function () {}", "script.js:2"),
        (
            "import http from 'k6/http';\nhttp.get('http://127.0.0.1:1/');\nexport default function () {}",
            "init context",
        ),
        (
            "export const options = { thresholds: { nothing: ['avg<1'] } };\nexport default function () {}",
            "no metric nothing",
        ),
        (
            "export const options = { thresholds: { checks: ['p(95)<1'] } };\nexport default function () {}",
            "no figure of a rate",
        ),
        (
            "export const options = { scenarios: { a: { executor: 'x' } } };\nexport default function () {}",
            "scenarios: a",
        ),
        ("open('none.txt');\nexport default function () {}", "cannot read"),
        (
            "for (const a = []; ; ) a.push(new Array(1e6).fill(0));\nexport default function () {}",
            "out of memory",
        ),
        ("const f = () => f() + 1;\nf();\nexport default function () {}", "stack"),
    ] {
        let told = read(text).map(|_| ()).unwrap_err();
        assert!(told.contains(words), "{text}\n{told}");
    }
}
