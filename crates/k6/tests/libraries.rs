//! Libraries that scripts import: what they give back.

use std::fs;

use tidemark_k6::{Given, K6, Once, Source};

/// A script and the folder that it lies in.
#[derive(Debug)]
struct Read(K6, #[allow(dead_code)] tempfile::TempDir);

impl std::ops::Deref for Read {
    type Target = K6;

    fn deref(&self) -> &K6 {
        &self.0
    }
}

fn read(name: &str, text: &str, others: &[(&str, &str)]) -> Result<Read, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    for (name, text) in others {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let source = Source {
        name,
        path: &path,
        text: text.as_bytes(),
        env: &[],
        given: Given::default(),
        bounds: Default::default(),
    };
    let k6 = K6::read(&source).map_err(|error| error.to_string())?;
    Ok(Read(k6, folder))
}

fn run(text: &str) -> Once {
    let k6 = read("script.js", text, &[]).unwrap();
    k6.run_once("default", |_| (200, "Content-Type: text/html\n".into(), b"{\"a\":[1,2]}".to_vec())).unwrap()
}

/// What the function's body returns, as JSON.
fn returned(imports: &str, body: &str) -> String {
    run(&format!("{imports}\nexport default function () {{\n{body}\n}}")).returned.unwrap_or_default()
}

fn checks(once: &Once) -> Vec<(String, u64, u64)> {
    let told = |check: &tidemark_record::ScriptCheck| {
        (format!("{}::{}", check.group, check.name), check.passes, check.fails)
    };
    once.checks.iter().map(told).collect()
}

#[test]
fn k6_utils() {
    let imports =
        "import { uuidv4, randomIntBetween, randomItem, randomString, findBetween, normalDistributionStages,
        parseDuration } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';";
    let told = returned(
        imports,
        r"
        const is = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
        const numbers = Array.from({ length: 500 }, () => randomIntBetween(2, 4));
        return [
            is.test(uuidv4()), is.test(uuidv4(true)), uuidv4() !== uuidv4(),
            [...new Set(numbers)].sort(), ['a', 'b'].includes(randomItem(['a', 'b'])),
            /^[a-z]{9}$/.test(randomString(9)), /^[xy]{3}$/.test(randomString(3, 'xy')),
            findBetween('<b>one</b><b>two</b>', '<b>', '</b>'), findBetween('<b>one</b><b>two</b>', '<b>', '</b>', true),
            findBetween('none', '<', '>'),
            parseDuration('1d5h31m20s9ms'), parseDuration('1531209'), parseDuration('9.3ms'),
        ];",
    );
    let wanted = "[true,true,true,[2,3,4],true,true,true,\"one\",[\"one\",\"two\"],null,106280009,1531209,9]";
    assert_eq!(told, wanted);
    let stages = returned(imports, "return normalDistributionStages(10, 20, 5);");
    assert_eq!(
        stages,
        r#"[{"duration":"4s","target":1},{"duration":"3s","target":5},{"duration":"3s","target":10},{"duration":"3s","target":10},{"duration":"3s","target":5},{"duration":"3s","target":1},{"duration":"4s","target":0}]"#
    );
}

#[test]
fn stages_are_tagged_with() {
    let text = |stages: &str| {
        format!(
            "import {{ tagWithCurrentStageIndex, tagWithCurrentStageProfile, getCurrentStageIndex }} from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';
            import exec from 'k6/execution';
            export const options = {{ scenarios: {{ load: {{ executor: 'ramping-vus', stages: {stages} }} }} }};
            export default function () {{
                tagWithCurrentStageIndex();
                tagWithCurrentStageProfile();
                return [getCurrentStageIndex(), exec.vu.tags.stage, exec.vu.tags.stage_profile];
            }}"
        )
    };
    let told = |stages: &str| run(&text(stages)).returned.unwrap();
    assert_eq!(told("[{ duration: '10m', target: 3 }]"), r#"[0,"0","ramp-up"]"#);
    assert_eq!(
        told("[{ duration: '0s', target: 3 }, { duration: '1h', target: 1 }]"),
        r#"[1,"1","ramp-down"]"#
    );
}

#[test]
fn k6_summary() {
    let told = run(r"
        import { textSummary, jUnit, humanizeValue } from 'https://jslib.k6.io/k6-summary/0.0.2/index.js';
        import { htmlReport } from 'https://raw.githubusercontent.com/benc-uk/k6-reporter/2.4.0/dist/bundle.js';
        const data = {
            options: { summaryTrendStats: ['avg', 'p(95)'], summaryTimeUnit: '' },
            metrics: {
                http_reqs: { type: 'counter', contains: 'default', values: { count: 1200, rate: 39.98321 } },
                data_sent: { type: 'counter', contains: 'data', values: { count: 1234567, rate: 9.5 } },
                checks: { type: 'rate', contains: 'default', values: { rate: 0.75, passes: 3, fails: 1 },
                    thresholds: { 'rate>0.9': { ok: false } } },
                http_req_duration: { type: 'trend', contains: 'time', values: { avg: 0.5, 'p(95)': 61234 },
                    thresholds: { 'p(95)<200': { ok: true } } },
                'http_req_duration{name:a}': { type: 'trend', contains: 'time', values: { avg: 12.345, 'p(95)': 999 } },
                vus: { type: 'gauge', contains: 'default', values: { value: 1, min: 1, max: 20 } },
            },
            root_group: { name: '', checks: [{ name: 'is there', passes: 4, fails: 0 }], groups: [
                { name: 'shop', path: '::shop', checks: [{ name: 'is quick', passes: 3, fails: 1 }], groups: [] },
            ] },
        };
        export default function () {
            return [
                textSummary(data, { indent: ' ', enableColors: false }), jUnit(data, { name: 'a & b' }),
                humanizeValue(0.5, { type: 'rate' }), textSummary(data, { enableColors: true }).includes('\x1b[32m'),
                htmlReport(data, { title: 'a < b' }),
            ];
        }");
    let told: Vec<serde_json::Value> = serde_json::from_str(&told.returned.unwrap()).unwrap();
    let wanted = [
        "     ✓ is there",
        "",
        "     █ shop",
        "",
        "       ✗ is quick",
        "        ↳  75% — ✓ 3 / ✗ 1",
        "",
        "   ✗ checks..............: 75.00% ✓ 3        ✗ 1   ",
        "     data_sent...........: 1.2 MB 9.5 B/s",
        "   ✓ http_req_duration...: avg=500µs   p(95)=1m1s ",
        "       { name:a }........: avg=12.34ms p(95)=999ms",
        "     http_reqs...........: 1200   39.98321/s",
        "     vus.................: 1      min=1      max=20",
    ];
    assert_eq!(told[0].as_str().unwrap().lines().collect::<Vec<_>>(), wanted);
    let junit = told[1].as_str().unwrap();
    for part in [
        "<testsuite name=\"a &amp; b\" tests=\"2\" failures=\"1\">",
        "<testcase name=\"checks - rate&gt;0.9\"><failure message=\"failed\" /></testcase>",
        "<testcase name=\"http_req_duration - p(95)&lt;200\" />",
    ] {
        assert!(junit.contains(part), "{junit}");
    }
    assert_eq!((told[2].as_str(), told[3].as_bool()), (Some("50.00%"), Some(true)));
    let page = told[4].as_str().unwrap();
    for part in [
        "<title>a &lt; b</title>",
        "<td>checks</td><td>rate&gt;0.9</td>",
        "<td>::shop</td><td>is quick</td><td>3</td><td>1</td>",
        "<td>http_req_duration</td><td>avg=500µs p(95)=1m1s</td>",
        "<td>http_reqs</td><td>count=1200 rate=39.98321</td>",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[test]
fn papaparse() {
    let k6 = read(
        "script.js",
        r"
        import papaparse from 'https://jslib.k6.io/papaparse/5.1.1/index.js';
        import { SharedArray } from 'k6/data';
        const users = new SharedArray('users', () => papaparse.parse(open('./users.csv'), { header: true, dynamicTyping: true, skipEmptyLines: true }).data);
        export default function () {
            return [
                users.length, users[1],
                papaparse.parse('a;b\r\n1;2').data, papaparse.parse('a\tb').meta.delimiter,
                papaparse.parse('a,b\n1,2,3\n', { header: true, skipEmptyLines: true }),
                papaparse.parse('# no\n1,2', { comments: '#' }).data,
                papaparse.unparse([{ a: 'x, y', b: 'a ' + String.fromCharCode(34) }, { a: null, b: 2 }]),
                papaparse.unparse([['a', 'b'], [1, 2]], { quotes: true, newline: '\n' }),
            ];
        }",
        &[("users.csv", "name,age,on\r\n\"Ann, \"\"A\"\"\",31,true\r\nBob,,FALSE\r\n\r\n")],
    )
    .unwrap();
    let told = k6.run_once("default", |_| Default::default()).unwrap().returned.unwrap();
    let wanted = r##"[2,{"name":"Bob","age":null,"on":false},[["a","b"],["1","2"]],"\t",{"data":[{"a":"1","b":"2","__parsed_extra":["3"]}],"errors":[{"type":"FieldMismatch","code":"TooManyFields","message":"Too many fields: expected 2 fields but parsed 3","row":0}],"meta":{"delimiter":",","linebreak":"\n","aborted":false,"truncated":false,"cursor":10,"fields":["a","b"]}},[["1","2"]],"a,b\r\n\"x, y\",\"a \"\"\"\r\n,2","\"a\",\"b\"\n\"1\",\"2\""]"##;
    assert_eq!(told, wanted);
}

#[test]
fn url() {
    let told = returned(
        "import { URL, URLSearchParams } from 'https://jslib.k6.io/url/1.0.0/index.js';",
        r"
        const url = new URL('https://me:secret@Example.org:8443/a/../b c?x=1&y=2#top');
        const parts = ['origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'].map((name) => url[name]);
        url.searchParams.append('z', 'a b&c');
        url.searchParams.delete('x');
        url.pathname = '/c';
        url.port = '443';
        url.hash = '';
        const params = new URLSearchParams([['a', '1'], ['b', '2'], ['a', '3']]);
        params.set('b', 'x y');
        const turned = new URL('/rel?q=1', 'http://127.0.0.1:8080/x/');
        turned.search = '?q=2';
        let wrong;
        try { new URL('no url'); } catch (error) { wrong = error.name; }
        return [parts, url.toString(), JSON.stringify({ url }), params.toString(), params.getAll('a'), params.get('none'), [...params.keys()],
            new URLSearchParams('?a=1&b=%20').toString(), new URLSearchParams({ q: 'ä' }).toString(), turned.searchParams.get('q'), wrong, String(params) + ''];",
    );
    let wanted = r##"[["https://example.org:8443","https:","me","secret","example.org:8443","example.org","8443","/b%20c","?x=1&y=2","#top"],"https://me:secret@example.org/c?y=2&z=a+b%26c","{\"url\":\"https://me:secret@example.org/c?y=2&z=a+b%26c\"}","a=1&b=x+y&a=3",["1","3"],null,["a","b","a"],"a=1&b=+","q=%C3%A4","2","TypeError","a=1&b=x+y&a=3"]"##;
    assert_eq!(told, wanted);
}

#[test]
fn k6chaijs() {
    let once = run(r"
        import http from 'k6/http';
        import chai, { describe, expect } from 'https://jslib.k6.io/k6chaijs/4.3.4.3/index.js';
        chai.config.logFailures = false;
        export default function () {
            const good = describe('good', () => {
                const response = http.get('http://127.0.0.1:1/');
                expect(response.status, 'status').to.equal(200);
                expect(response).to.have.validJsonBody();
                expect(response.json()).to.be.an('object').that.has.property('a').with.lengthOf(2);
                expect(response.json('a')).to.deep.equal([1, 2]).and.not.be.empty;
            });
            const bad = describe('bad', () => {
                expect(3, 'three').to.be.above(4);
                expect(1).to.equal(1);
            });
            const broken = describe('broken', () => null.x);
            return [good, bad, broken];
        }");
    assert_eq!(once.returned.as_deref(), Some("[true,false,false]"));
    let told = checks(&once);
    for (name, passes, fails) in [
        ("::good::expected status to equal 200", 1, 0),
        ("::good::has valid json body", 1, 0),
        ("::good::expected ${this} to be an object", 1, 0),
        ("::good::expected ${this} to have property 'a'", 1, 0),
        ("::good::expected ${this} to have a length of 2 got ${actual}", 1, 0),
        ("::good::expected ${this} to deeply equal [ 1, 2 ]", 1, 0),
        ("::good::expected ${this} not to be empty", 1, 0),
        ("::bad::expected three to be above 4", 0, 1),
    ] {
        assert!(told.contains(&(name.to_owned(), passes, fails)), "{name}\n{told:#?}");
    }
    assert!(
        told.iter().any(|(name, _, fails)| name.starts_with("::broken::Exception raised") && *fails == 1)
    );
    assert!(
        !told.iter().any(|(name, _, _)| name.contains("to equal 1")),
        "an assertion behind one that failed ran"
    );
}

#[test]
fn chai_assertions_hold_or_fail() {
    let told = returned(
        "import { expect } from 'https://jslib.k6.io/k6chaijs/4.3.4.3/index.js';",
        r"
        class Shape {}
        const holds = [
            () => expect('foobar').to.include('oba'), () => expect([{ a: 1 }]).to.deep.include({ a: 1 }),
            () => expect({ a: 1, b: 2 }).to.include({ a: 1 }), () => expect({ a: 1 }).to.have.property('a', 1),
            () => expect({ a: { b: [5] } }).to.have.nested.property('a.b[0]', 5), () => expect([1, 2]).to.have.members([2, 1]),
            () => expect({ a: 1, b: 2 }).to.have.all.keys('a', 'b'), () => expect(2).to.be.oneOf([1, 2]), () => expect(null).to.be.null,
            () => expect(undefined).to.be.undefined, () => expect(0).to.exist, () => expect(5).to.be.within(1, 5),
            () => expect('a1').to.match(/\d/), () => expect(() => { throw new TypeError('odd'); }).to.throw(TypeError, 'odd'),
            () => expect(new Shape()).to.be.instanceOf(Shape), () => expect(4).to.satisfy((n) => n % 2 === 0), () => expect(1.5).to.be.closeTo(1.4, 0.2),
            () => expect([]).to.be.an('array').that.is.empty, () => expect({ status: 200 }).to.have.status(200), () => expect(1).to.be.at.least(1).and.at.most(1),
        ];
        const fails = [
            () => expect([1]).to.include(2), () => expect({}).to.have.property('a'), () => expect('x').to.be.a('number'), () => expect([1]).to.eql([2]),
            () => expect({ a: 1 }).to.have.keys('a', 'b'), () => expect(true).to.be.false, () => expect(() => {}).to.throw(), () => expect(1).to.not.equal(1),
            () => expect('').to.be.ok, () => expect({ json() { throw new Error('x'); } }).to.have.validJsonBody(),
        ];
        const threw = (call) => { try { call(); return null; } catch (error) { return error.name; } };
        let odd;
        try { expect(1).to.bee.ok; } catch (error) { odd = error.message; }
        return [holds.map(threw).filter((name) => name !== null), fails.map(threw).filter((name) => name !== 'AssertionError'), odd];",
    );
    assert_eq!(told, r#"[[],[],"Invalid Chai property: bee"]"#);
}

#[test]
fn k6_testing() {
    let script = |body: &str| {
        run(&format!(
            "import {{ expect }} from 'https://jslib.k6.io/k6-testing/0.5.0/index.js';
            export default function () {{ {body} }}"
        ))
    };
    let good = script(
        r"
        expect(1).toBe(1); expect({ a: [1] }).toEqual({ a: [1] }); expect('x').toBeTruthy(); expect([1, 2]).toContain(2); expect('abc').toHaveLength(3);
        expect(3).toBeGreaterThan(2); expect(3).toBeLessThanOrEqual(3); expect(undefined).not.toBeDefined(); expect(0.1 + 0.2).toBeCloseTo(0.3);
        expect([{ a: 1 }]).toContainEqual({ a: 1 }); expect({ a: { b: 1 } }).toHaveProperty('a.b', 1); expect(null).toBeNull(); expect(1).not.toBe(2);
        return 'end';",
    );
    assert_eq!((good.returned.as_deref(), good.ended), (Some("\"end\""), None));
    let soft = script("expect.soft(1).toBe(2); return 'end';");
    assert_eq!(soft.returned.as_deref(), Some("\"end\""));
    assert_eq!(
        soft.ended.as_deref(),
        Some("script.js: expect(received).toBe(expected)\nExpected: 2\nReceived: 1")
    );
    let hard = script("expect([1], 'the list').not.toContain(1); return 'end';");
    assert_eq!(hard.returned, None);
    assert!(hard.ended.is_some_and(|why| why.contains("the list")));
}

#[test]
fn formdata_and_httpx() {
    let once = run(r"
        import http from 'k6/http';
        import { FormData } from 'https://jslib.k6.io/formdata/0.0.2/index.js';
        import { Httpx, Get, Post } from 'https://jslib.k6.io/httpx/0.1.0/index.js';
        import tempo from 'https://jslib.k6.io/http-instrumentation-tempo/1.0.1/index.js';
        const session = new Httpx({ baseURL: 'http://127.0.0.1:1/api', headers: { 'X-One': '1' }, tags: { kind: 'x' } });
        export default function () {
            const form = new FormData();
            form.append('text', 'hällo');
            form.append('file', http.file('bytes', 'a.txt', 'text/plain'));
            http.post('http://127.0.0.1:1/form', form.body(), { headers: { 'Content-Type': 'multipart/form-data; boundary=' + form.boundary } });
            session.addHeader('Authorization', 'Bearer x');
            const answer = session.post('/items', JSON.stringify({ a: 1 }), { headers: { 'Content-Type': 'application/json' } });
            session.get('http://127.0.0.1:2/elsewhere');
            session.batch([new Get('/one'), new Post('/two', { body: 'b' }), ['PUT', '/three', 'c']], { tags: { name: 'batch' } });
            session.execute(new Get('/four').addHeader('X-Two', '2'));
            tempo.instrumentHTTP({ propagator: 'w3c', sampling: 0 });
            http.get('http://127.0.0.1:1/traced', { headers: { 'X-Two': '3' } });
            return [answer.json('a.0'), form.boundary];
        }");
    let (first, boundary): (u32, String) = serde_json::from_str(&once.returned.unwrap()).unwrap();
    assert_eq!(first, 1);
    let body = String::from_utf8(once.sent[0].body.clone().unwrap()).unwrap();
    assert_eq!(
        body,
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"text\"\r\nContent-Type: application/octet-stream\r\n\r\nhällo\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nbytes\r\n--{boundary}--\r\n"
        )
    );
    let sent: Vec<(&str, &str)> =
        once.sent[1..].iter().map(|one| (one.method.as_str(), one.url.as_str())).collect();
    assert_eq!(
        sent,
        [
            ("POST", "http://127.0.0.1:1/api/items"),
            ("GET", "http://127.0.0.1:2/elsewhere"),
            ("GET", "http://127.0.0.1:1/api/one"),
            ("POST", "http://127.0.0.1:1/api/two"),
            ("PUT", "http://127.0.0.1:1/api/three"),
            ("GET", "http://127.0.0.1:1/api/four"),
            ("GET", "http://127.0.0.1:1/traced"),
        ]
    );
    let has = |at: usize, name: &str, value: &str| {
        once.sent[at].headers.iter().any(|(known, is)| known.eq_ignore_ascii_case(name) && is == value)
    };
    assert!(
        has(1, "X-One", "1")
            && has(1, "Authorization", "Bearer x")
            && has(1, "Content-Type", "application/json")
    );
    assert!(has(6, "X-Two", "2") && !has(5, "X-Two", "2") && has(7, "X-Two", "3"));
    let trace = once.sent[7].headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("traceparent"));
    assert!(trace.is_some_and(|(_, value)| value.starts_with("00-") && value.ends_with("-00")), "{trace:?}");
}

#[test]
fn libraries_are_known_by_their_place() {
    for (url, is_known) in [
        ("https://jslib.k6.io/k6-utils/1.2.0/index.js", true),
        ("https://jslib.k6.io/url/1.0.0/index.js", true),
        ("https://raw.githubusercontent.com/grafana/jslib.k6.io/main/lib/papaparse/5.1.1/index.js", true),
        ("https://raw.githubusercontent.com/grafana/k6-jslib-summary/v0.0.3/index.js", true),
        ("https://raw.githubusercontent.com/benc-uk/k6-reporter/main/dist/bundle.js", true),
        ("https://cdn.jsdelivr.net/gh/benc-uk/k6-reporter@3.0.4/dist/bundle.js", true),
        ("https://raw.githubusercontent.com/somebody/url/main/index.js", false),
        ("https://jslib.k6.io/ajv/6.12.5/index.js", false),
        ("https://example.org/k6-utils/1.4.0/index.js", false),
    ] {
        let told =
            read("script.js", &format!("import * as x from '{url}';\nexport default function () {{}}"), &[]);
        match is_known {
            true => assert!(told.is_ok(), "{url}: {told:?}"),
            false => assert!(told.unwrap_err().contains("nothing is fetched"), "{url}"),
        }
    }
}

const SHOP: &str = r#"<!DOCTYPE html><html lang="en"><head><title>Shop &amp; more</title></head><body>
<div id="main" class="a b" data-user-id="7" data-x='{"q":1}'><h1>Head <em>in</em></h1><p class="one">P1</p><p class="two">P2</p></div>
<ul><li>1</li><li class="mid">2</li><li>3</li></ul>
<form action="/go?old=1" method="get"><input type="hidden" name="tok" value="a b&c"><input type="checkbox" name="c" checked="checked">
<input type="checkbox" name="d"><select name="s"><option value="1">One</option><option selected>Two</option></select>
<textarea name="t">text</textarea><input type="submit" name="buy" value="Buy"></form>
<a href="two?x=1">A2</a></body></html>"#;

#[test]
fn html() {
    let k6 = read(
        "script.js",
        r"
        import { parseHTML } from 'k6/html';
        const page = open('./page.html');
        export default function () {
            const d = parseHTML(page);
            const texts = (s) => s.toArray().map((one) => one.text());
            const seen = [];
            d.find('li').each((at, element) => seen.push([at, element.textContent(), element.nodeName()]));
            const main = d.find('#main').get(0);
            return [
                d.find('title').text(), d.find('#main').attr('class'), d.find('a').attr('none', 'other'),
                texts(d.find('p').next()), texts(d.find('li').not('.mid')), texts(d.find('li').filter((at) => at > 1)),
                d.find('em').closest('div').attr('id'), d.find('em').parentsUntil('body').size(), texts(d.find('h1').nextUntil('.two')),
                d.find('li').is('.mid'), d.find('div').has('em').size(), d.find('li').map((at, one) => at + one.text()),
                d.find('#main').data('userId'), d.find('#main').data('x'), d.find('form').serialize(), d.find('form').serializeObject(),
                d.find('p').html(), d.find('li').eq(-1).text(), d.find('li').slice(1, 2).text(), d.find('nope').size(), d.find('p:contains(P2)').size(),
                d.find(':checked').size(), seen, [main.id(), main.classList(), main.firstElementChild().nodeName(), main.childElementCount()],
            ];
        }",
        &[("page.html", SHOP)],
    )
    .unwrap();
    let told = k6.run_once("default", |_| Default::default()).unwrap().returned.unwrap();
    let wanted = r##"["Shop & more","a b","other",["P2"],["1","3"],["3"],"main",2,["P1"],true,1,["01","12","23"],7,{"q":1},"c=on&s=Two&t=text&tok=a+b%26c",{"tok":"a b&c","c":"on","s":"Two","t":"text"},"P1","3","2",0,1,2,[[0,"1","li"],[1,"2","li"],[2,"3","li"]],["main",["a","b"],"h1",3]]"##;
    assert_eq!(told, wanted);
}

#[test]
fn html_of_answers() {
    let text = r"
        import http from 'k6/http';
        export default function () {
            const page = http.get('http://127.0.0.1:1/shop/');
            const answer = page.submitForm({ fields: { t: 'mine' } });
            page.clickLink();
            return [page.html('title').text(), page.html().find('li').size(), answer.status];
        }";
    let k6 = read("script.js", text, &[]).unwrap();
    let once = k6.run_once("default", |_| (200, String::new(), SHOP.into())).unwrap();
    assert_eq!(once.returned.as_deref(), Some("[\"Shop & more\",3,200]"));
    let sent: Vec<&str> = once.sent.iter().map(|one| one.url.as_str()).collect();
    assert_eq!(
        sent,
        [
            "http://127.0.0.1:1/shop/",
            "http://127.0.0.1:1/go?buy=Buy&c=on&s=Two&t=mine&tok=a+b%26c",
            "http://127.0.0.1:1/shop/two?x=1",
        ]
    );
}

#[test]
fn html_has_bounds() {
    let told = returned(
        "import { parseHTML } from 'k6/html';",
        r"
        const wrong = (call) => { try { call(); return null; } catch (error) { return error.message; } };
        const page = parseHTML('<p>a</p>');
        const kept = [];
        return [
            wrong(() => parseHTML('<div>'.repeat(100000))), wrong(() => { for (let at = 0; at < 40; at++) kept.push(parseHTML('x'.repeat(4 << 20))); }),
            wrong(() => page.find('p:::')), wrong(() => page.find(':not('.repeat(400))), page.find('p').text(),
            wrong(() => { kept.length = 0; for (let at = 0; at < 20; at++) parseHTML('x'.repeat(4 << 20)); }),
        ];",
    );
    let wanted = r#"["parseHTML: elements are nested deeper than 1000","parseHTML: the pages that are kept at once take more than 64MiB","the selector \"p:::\" is not understood; it is one of CSS, with :contains()","the selector is too long or too deep","a",null]"#;
    assert_eq!(told, wanted);
}

#[cfg(not(feature = "typescript"))]
#[test]
fn typescript_needs_its_feature() {
    let told = read("script.ts", "export default function (): void {}", &[]).unwrap_err();
    assert!(told.contains("--features typescript"), "{told}");
}

#[cfg(feature = "typescript")]
#[test]
fn typescript() {
    let text = r"
import http, { RefinedResponse, type Params } from 'k6/http';
import { Options } from 'k6/options';
import type { Nothing } from './nothing';
import { double, Kind } from './more';
interface User { name: string; age?: number }
type Names = Record<string, User[]>;
declare const outer: string;
export const options: Options = { vus: 1 };
export type Out = { a: number };
function over(a: string): string;
function over(a: number): number;
function over(a: any): any { return a; }
abstract class Shape<T> {
    private readonly kind: string = 'shape';
    protected size?: number;
    static count = 0;
    abstract area(): number;
    constructor(size?: number) { this.size = size!; }
    public get name(): string { return this.kind; }
    private async later<U>(this: Shape<T>, what: U): Promise<U> { return what; }
}
class Square extends Shape<number> implements Kind {
    override area(): number { return (this.size as number) ** 2; }
    [key: string]: any;
}
const pick = <T, K extends keyof T>(of: T, key: K): T[K] => of[key];
export default function (): unknown {
    const list: Array<number> = [1, 2].map((n: number): number => n + 1);
    let later!: string;
    const user = { name: 'Ann', age: 3 } satisfies User;
    const square = new Square(3);
    const [first, ...rest]: number[] = list;
    try { throw new Error('x'); } catch (error: unknown) { later = (error as Error).message; }
    const answer: RefinedResponse<'text'> = http.get('http://127.0.0.1:1/');
    return [list, user.name, square.area(), square.name, pick(user, 'age'), double(first!), rest, over(1), later, <number>answer.status, list?.[0] ?? 0];
}";
    let k6 = read(
        "script.ts",
        text,
        &[("more.ts", "export interface Kind { x: 1 }\nexport const double = (n: number) => n * 2;")],
    )
    .unwrap();
    let told = k6.run_once("default", |_| (200, String::new(), Vec::new())).unwrap().returned.unwrap();
    assert_eq!(told, "[[2,3],\"Ann\",9,\"shape\",3,4,[3],1,\"x\",200,2]");

    for (text, words) in [
        ("interface A {\n  x: 1\n}\nconst a: A = null;\na.x;\nexport default function () {}", "script.ts:5"),
        ("const a: number = ;\nexport default function () {}", "script.ts:1: SyntaxError"),
        ("\nenum A { X }\nexport default function () {}", "script.ts:2: an enum is more than a type"),
        (&format!("const a = {}1{};", "(".repeat(3000), ")".repeat(3000)), "script.ts"),
    ] {
        let told = read("script.ts", text, &[]).unwrap_err();
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn webcrypto() {
    let told = run(r"
        import { crypto as imported } from 'k6/experimental/webcrypto';
        const bytes = (text) => Uint8Array.from(text, (c) => c.charCodeAt(0));
        const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');
        const algorithm = { name: 'HMAC', hash: 'SHA-256' };
        export default async function () {
            const key = await crypto.subtle.importKey('raw', bytes('key'), algorithm, true, ['sign', 'verify']);
            const signature = await crypto.subtle.sign('HMAC', key, bytes('The quick brown fox jumps over the lazy dog'));
            const jwk = await crypto.subtle.exportKey('jwk', key);
            const again = await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['sign']);
            const made = await crypto.subtle.generateKey({ name: 'HMAC', hash: { name: 'SHA-512' } }, true, ['sign', 'verify']);
            const password = await crypto.subtle.importKey('raw', bytes('password'), 'PBKDF2', false, ['deriveBits', 'deriveKey']);
            const by = { name: 'PBKDF2', hash: 'SHA-256', salt: bytes('salt'), iterations: 3 };
            const wrong = async (promise) => { try { await promise; return null; } catch (error) { return error.name; } };
            return [
                imported === crypto, hex(await crypto.subtle.digest('SHA-256', bytes('abc'))), hex(signature),
                await crypto.subtle.verify('HMAC', key, signature, bytes('The quick brown fox jumps over the lazy dog')),
                await crypto.subtle.verify('HMAC', key, signature, bytes('another')), jwk.k, jwk.alg,
                hex(await crypto.subtle.sign('HMAC', again, bytes('The quick brown fox jumps over the lazy dog'))) === hex(signature),
                (await crypto.subtle.exportKey('raw', made)).byteLength,
                await wrong(crypto.subtle.exportKey('raw', again)), await wrong(crypto.subtle.verify('HMAC', again, signature, bytes('x'))),
                await wrong(crypto.subtle.encrypt({ name: 'AES-GCM' }, key, bytes('x'))), await wrong(crypto.subtle.digest('MD5', bytes('x'))),
                hex(await crypto.subtle.deriveBits(by, password, 320)),
                (await crypto.subtle.deriveKey(by, password, algorithm, false, ['sign'])).algorithm.length,
                await wrong(crypto.subtle.sign('HMAC', password, bytes('x'))),
                await wrong(crypto.subtle.importKey('raw', bytes('0123456789abcdef'), 'AES-CBC', false, ['encrypt'])),
                await wrong(crypto.subtle.deriveBits({ ...by, iterations: 1e9 }, password, 256)),
            ];
        }");
    let wanted = r#"[true,"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8",true,false,"a2V5","HS256",true,128,"InvalidAccessError","InvalidAccessError","NotSupportedError","NotSupportedError","ad35240ac683febfaf3cd49d845473fbbbaa2437f5f82d5a415ae00ac76c6bfccf9a9b8d6d2fe4a1",512,"InvalidAccessError","NotSupportedError","Error"]"#;
    assert_eq!(told.returned.as_deref(), Some(wanted));
}

#[test]
fn require_and_module_exports() {
    let text = r"'use strict';
const http = require('k6/http');
const { double } = require('./double.js');
const k6 = require('k6');
module.exports.options = { vus: 3, iterations: 3 };
exports.other = () => 'other';
exports.default = function () {
    const answer = http.get('http://127.0.0.1:1/a');
    k6.check(answer, { ok: (r) => r.status === 200 });
    return [double(4), answer.status, http.default.get === http.get];
};";
    let others = [("double.js", "exports.double = (n) => n * 2;")];
    let k6 = read("script.js", text, &others).unwrap();
    assert!(k6.exports("other") && k6.option("vus").is_some());
    let once = k6.run_once("default", |_| (200, String::new(), Vec::new())).unwrap();
    assert_eq!(once.returned.as_deref(), Some("[8,200,true]"));
    assert_eq!(checks(&once), [("::ok".to_owned(), 1, 0)]);

    let mixed = "import { double } from './double.js';\nconst other = require('./double.js');
        export default function () { return double(other.double(global.Math.max(1, 0))); }";
    let k6 = read("script.js", mixed, &others).unwrap();
    assert_eq!(k6.run_once("default", |_| Default::default()).unwrap().returned.as_deref(), Some("4"));

    let wrong = "const x = require('k6');\nconst y = null;\ny.z;\nexports.default = function () {};";
    let told = read("script.js", wrong, &[]).unwrap_err();
    assert!(told.contains("script.js:3"), "{told}");
}

/// What k6 1.8.1 gives back, but for where a secret comes from.
#[test]
fn files_tables_and_secrets() {
    let text = r#"
import { open as openFile, SeekMode } from 'k6/experimental/fs';
import csv, { parse } from 'k6/experimental/csv';
import secrets from 'k6/secrets';
import { check } from 'k6';
let file, table, objects, some, parser;
const broken = [];
(async () => {
    file = await openFile('./words.txt');
    table = await parse(await openFile('rows.csv'));
    objects = await csv.parse(await openFile('rows.csv'), { asObjects: true });
    some = await csv.parse(await openFile('semi.csv'), { delimiter: ';', skipFirstLine: true, toLine: 2 });
    parser = new csv.Parser(await openFile('rows.csv'), { skipFirstLine: true });
    for (const name of ['open.csv', 'behind.csv', 'within.csv']) {
        try { await parse(await openFile(name)); } catch (error) { broken.push(/quote/.test(error.message)); }
    }
})();
export default async function () {
    check(1, { [`it is ${await secrets.get('PATH')}`]: true });
    const buffer = new Uint8Array(4);
    const read = [];
    for (let n; (n = await file.read(buffer)) !== null; ) read.push([n, String.fromCharCode(...buffer.subarray(0, n))]);
    await file.seek(-2, SeekMode.End);
    read.push(await file.read(buffer));
    const parsed = [];
    for (let next = await parser.next(); !next.done; next = await parser.next()) parsed.push(next.value);
    let missing;
    try { await secrets.get('MISSING'); } catch (error) { missing = /MISSING/.test(error.message); }
    return [
        await file.stat(), read, table.length, table[1], [...objects], [...some], parsed.length, await secrets.get('PATH') === __ENV.PATH,
        await secrets.source('any').get('PATH') === __ENV.PATH, missing, broken,
    ];
}"#;
    let others = [
        ("words.txt", "abcdefghij"),
        ("rows.csv", "name,words\r\nann,\"a, \"\"b\"\"\nc\"\nbob,\n\n"),
        ("open.csv", "a,b\n1,\"open\n4,5\n"),
        ("behind.csv", "a,b\n1,\"x\"y\n"),
        ("within.csv", "a,b\n1,x\"y\n"),
        ("semi.csv", "n;m\n1;x|y\n2;z\n3;late\n"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.js");
    others.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
    let env = [("PATH".to_owned(), "secret-17".to_owned())];
    let source = Source {
        name: "script.js",
        path: &path,
        text: text.as_bytes(),
        env: &env,
        given: Given::default(),
        bounds: Default::default(),
    };
    let k6 = K6::read(&source).unwrap();
    assert_eq!(k6.rehearse(&source).unwrap().secrets, ["PATH"]);
    let once = k6.run_once("default", |_| Default::default()).unwrap();
    assert_eq!(checks(&once), [("::it is ***SECRET_REDACTED***".to_owned(), 1, 0)]);
    let told = once.returned.unwrap();
    let wanted = r#"[{"name":"words.txt","size":10},[[4,"abcd"],[4,"efgh"],[2,"ij"],3],3,["ann","a, \"b\"\nc"],[{"name":"ann","words":"a, \"b\"\nc"},{"name":"bob","words":""}],[["1","x|y"],["2","z"]],2,true,true,true,[true,true,true]]"#;
    assert_eq!(told, wanted);
}

/// What k6 1.8.1 gives back.
#[test]
fn tables_are_read_as_k6_reads_them() {
    let text = r#"
import { open as openFile } from 'k6/experimental/fs';
import csv from 'k6/experimental/csv';
const told = [];
(async () => {
    for (const options of [
        { toLine: 0 }, { fromLine: 2 }, { asObjects: true, toLine: 1 }, { fromLine: 5 }, { asObjects: true, skipFirstLine: true },
        { asObjects: true, fromLine: 1 }, { fromLine: 2, toLine: 2 },
    ]) {
        try { told.push([...await csv.parse(await openFile('rows.csv'), options)]); } catch (error) { told.push(error.message); }
    }
    const parser = new csv.Parser(await openFile('bad.csv'));
    for (let at = 0; at < 4; at += 1) {
        try { told.push((await parser.next()).value); } catch (error) { told.push(error.message); }
    }
})();
export default () => told;"#;
    let others = [("rows.csv", "n,m\r\n1,\"a\r\nb\"\r\n2,c\r\n"), ("bad.csv", "a,b\n1,x\"y\n2\n\n3,z")];
    let k6 = read("script.js", text, &others).unwrap();
    let told = k6.run_once("default", |_| Default::default()).unwrap().returned.unwrap();
    let wanted = serde_json::json!([
        [["n", "m"], ["1", "a\nb"], ["2", "c"]],
        [["2", "c"]],
        [{"n": "1", "m": "a\nb"}],
        "failed to create a new parser; reason: failed to skip lines until line 5; reason: EOF",
        "failed to create a new parser; reason: the 'header' option cannot be enabled when 'skipFirstLine' is true",
        "failed to create a new parser; reason: the 'header' option cannot be enabled when 'fromLine' is set to a value greater than 0",
        "failed to interpret the provided Parser options; reason: fromLine must be less than or equal to toLine",
        ["a", "b"],
        "parse error on line 2, column 4: bare \" in non-quoted field",
        "record on line 3: wrong number of fields",
        ["3", "z"],
    ]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&told).unwrap(), wanted);
}

/// What k6 1.8.1 makes of parameters and metadata, but for the spaces around a value.
#[test]
fn grpc_takes_what_k6_takes() {
    let text = r#"
import grpc from 'k6/net/grpc';
const client = new grpc.Client();
const threw = (does) => { try { does(); return null; } catch (error) { return error.message.split('parameters: ')[1]; } };
export default () => {
    const told = [
        { plaintext: 'yes' }, { maxSendSize: 1.5 }, { tls: 'x' }, { reflectMetadata: { a: 1 } }, { authority: 1 }, { nope: 1 },
    ].map((params) => threw(() => client.connect('127.0.0.1:1', params)));
    client.connect('127.0.0.1:1', { plaintext: true, timeout: '5s', maxReceiveSize: 1024 });
    for (const params of [{ nope: 1 }, { metadata: { a: 1 } }, { metadata: { 'a-bin': 'x' } }, { metadata: ['a'] }]) {
        told.push(threw(() => client.invoke('a.B/C', {}, params)));
    }
    const { headers, trailers } = client.invoke('a.B/C', {}, { metadata: { 'a-bin': new Uint8Array([104, 105]), b: ' c d ' } });
    return [told, headers, trailers];
};"#;
    let k6 = read("script.js", text, &[]).unwrap();
    let head = "content-type: application/grpc\ngrpc-encoding: gzip\ngrpc-accept-encoding: gzip\nx-bin: aGk=\n\ny-bin: w6n/\n";
    let once = k6.run_once("default", |_| (10_000, head.into(), Vec::new())).unwrap();
    let wanted = serde_json::json!([
        [
            "invalid plaintext value: 'yes', it needs to be boolean",
            "invalid maxSendSize value: '1.5', it needs to be an integer",
            "invalid tls value, expected (optional) keys: cert, key, password, and cacerts",
            "invalid reflectMetadata param: \"a\" value must be a string",
            "invalid authority value: '1', it needs to be a string",
            "unknown connect param: \"nope\"",
            "unknown param: \"nope\"",
            "invalid metadata param: \"a\" value must be a string",
            "invalid metadata param: \"a-bin\" value must be binary",
            "invalid metadata param: must be an object with key-value pairs",
        ],
        {"content-type": ["application/grpc"], "grpc-accept-encoding": ["gzip"], "x-bin": ["hi"]},
        {"y-bin": ["é\u{fffd}"]},
    ]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&once.returned.unwrap()).unwrap(), wanted);
    let sent = [("a-bin", "aGk"), ("b", "c d")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(once.sent[0].headers, sent);
    let ignored = ["maxReceiveSize of grpc.Client.connect", "timeout of grpc.Client.connect"];
    assert_eq!(k6.parameters_not_read(), ignored);
}
