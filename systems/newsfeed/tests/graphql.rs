//! GraphQL of the news feed, from outside, over HTTP.

use crate::client::Client;
use crate::feed::{JSON, Running, befriend, participant, post, send};
use serde_json::{Value, json};

fn asked(client: &mut Client, body: &Value) -> Value {
    let reply = send(client, "/", body);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{body}");
    reply.json()
}

/// The data of a query that succeeds.
fn data(client: &mut Client, query: &str) -> Value {
    let mut answer = asked(client, &json!({"query": query}));
    assert!(answer.get("errors").is_none(), "{query}: {answer}");
    answer["data"].take()
}

/// The message and the code of the one error of a query that fails.
fn error(client: &mut Client, query: &str) -> (String, Value) {
    let answer = asked(client, &json!({"query": query}));
    let errors = answer["errors"].as_array().unwrap_or_else(|| panic!("{query}: {answer}"));
    assert_eq!(errors.len(), 1, "{answer}");
    (errors[0]["message"].as_str().unwrap().to_owned(), errors[0]["extensions"]["code"].clone())
}

#[test]
fn a_whole_visit() {
    let running = Running::start(&[]);
    let mut client = running.client();
    let made = data(
        &mut client,
        r#"mutation {
            joe: createParticipant(input: {name: "joe"}) { id name friends { to { id } } }
            ann: createParticipant(input: {name: "ann \"ä\""}) { id name }
            createFriend(input: {from_id: 1, to_id: "/participant/2"}) { id from { id name } to { name } }
            createOutbound(input: {from_id: "1", occurred: "2014-01-05", subject: "a subject", story: "A story"}) {
                from { name } occurred subject story
            }
        }"#,
    );
    let expected = json!({
        "joe": {"id": "1", "name": "joe", "friends": []},
        "ann": {"id": "2", "name": "ann \"ä\""},
        "createFriend": {"id": "1", "from": {"id": "1", "name": "joe"}, "to": {"name": "ann \"ä\""}},
        "createOutbound": {
            "from": {"name": "joe"}, "occurred": "2014-01-05", "subject": "a subject", "story": "A story",
        },
    });
    assert_eq!(made, expected);

    let day = client.get("/participant/1/outbound").json()[0]["occurred"].clone();
    let read = data(
        &mut client,
        "{ participant(id: 2) { name
            friends { from { name } to { name outbound { story friends: from { friends { to { id } } } } } }
            inbound { from { name } to { id } occurred subject story } outbound { story } }
          posters(keywords: \"STORY\") { id name } none: posters(keywords: \"rain\") { id }
          nobody: participant(id: 99) { name } }",
    );
    let outbound = json!([{"story": "A story", "friends": {"friends": [{"to": {"id": "2"}}]}}]);
    let expected = json!({
        "participant": {
            "name": "ann \"ä\"",
            "friends": [{"from": {"name": "ann \"ä\""}, "to": {"name": "joe", "outbound": outbound}}],
            "inbound": [{
                "from": {"name": "joe"}, "to": {"id": "2"}, "occurred": day, "subject": "a subject", "story": "A story",
            }],
            "outbound": [],
        },
        "posters": [{"id": "1", "name": "joe"}],
        "none": [],
        "nobody": null,
    });
    assert_eq!(read, expected);
    assert_eq!(client.get("/participant/2/friends").json()[0]["to"], "/participant/1", "REST has the same");
    assert!(client.get("/").text().starts_with("<!doctype html>"));
}

#[test]
fn variables_fragments_and_introspection() {
    let running = Running::start(&[]);
    let mut client = running.client();
    let query = "mutation add($new: CreateParticipantRequest) { createParticipant(input: $new) { ...who } }
        query read($id: ID!, $with: Boolean = false) { participant(id: $id) { ...who friends @include(if: $with) { id } } }
        fragment who on Participant { id name }";
    let mut named = |name: &str, variables: Value| {
        asked(&mut client, &json!({"query": query, "operationName": name, "variables": variables}))
    };
    let joe = json!({"id": "1", "name": "joe"});
    assert_eq!(named("add", json!({"new": {"name": "joe"}})), json!({"data": {"createParticipant": joe}}));
    for id in [json!(1), json!("1"), json!("/participant/1")] {
        assert_eq!(named("read", json!({"id": id})), json!({"data": {"participant": joe}}), "{id}");
    }
    assert_eq!(named("read", json!({"id": 1, "with": true}))["data"]["participant"]["friends"], json!([]));
    assert!(named("read", json!({}))["errors"][0]["message"].as_str().unwrap().contains("id"));
    assert!(named("nothing", json!({}))["errors"].is_array());

    let of = "kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { \
        kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } }";
    let introspection = format!(
        "{{ __schema {{ queryType {{ name }} mutationType {{ name }} types {{ ...Full }} }} }}
        fragment Full on __Type {{ kind name description fields(includeDeprecated: true) {{ name args {{ ...In }}
            type {{ ...Ref }} }} inputFields {{ ...In }} interfaces {{ ...Ref }} enumValues {{ name }} possibleTypes {{ ...Ref }} }}
        fragment In on __InputValue {{ name type {{ ...Ref }} defaultValue }} fragment Ref on __Type {{ {of} }}"
    );
    let schema = data(&mut client, &introspection);
    let types = schema["__schema"]["types"].as_array().unwrap();
    let input = types.iter().find(|of| of["name"] == "CreateFriendRequest").unwrap();
    let fields: Vec<_> =
        input["inputFields"].as_array().unwrap().iter().map(|field| &field["name"]).collect();
    assert_eq!(fields, ["from_id", "to_id"]);
    for name in ["Participant", "Friend", "Inbound", "Outbound"] {
        assert!(types.iter().any(|of| of["name"] == name), "{name}");
    }
}

#[test]
fn what_is_wrong_is_refused_as_over_rest() {
    let running = Running::start(&[]);
    let mut client = running.client();
    participant(&mut client, "joe");
    participant(&mut client, "ann");
    let long = "ä".repeat(51);
    let story = "x".repeat(15_001);
    let name = |name: &str| format!("mutation {{ createParticipant(input: {{{name}}}) {{ id }} }}");
    let friend = |ids: &str| format!("mutation {{ createFriend(input: {{{ids}}}) {{ id }} }}");
    let outbound = |texts: &str| format!("mutation {{ createOutbound(input: {{{texts}}}) {{ story }} }}");
    for (query, code, part) in [
        (name(&format!("name: {long:?}")), "BAD_USER_INPUT", "51 characters"),
        (name(r#"name: " ""#), "BAD_USER_INPUT", "name is missing"),
        (name(""), "BAD_USER_INPUT", "name is missing"),
        ("mutation { createParticipant { id } }".into(), "BAD_USER_INPUT", "input is missing"),
        (friend("from_id: 1, to_id: 1"), "CONFLICT", "own friend"),
        (friend("from_id: 1, to_id: 9"), "NOT_FOUND", "no participant 9"),
        (friend(r#"from_id: 1, to_id: "x""#), "BAD_USER_INPUT", "to_id"),
        (friend("from_id: -1, to_id: 2"), "BAD_USER_INPUT", "from_id"),
        (outbound(r#"from_id: 1, subject: "s""#), "BAD_USER_INPUT", "story is missing"),
        (outbound(r#"from_id: 9, subject: "s", story: "s""#), "NOT_FOUND", "no participant 9"),
        (outbound(&format!("from_id: 1, subject: \"s\", story: {story:?}")), "BAD_USER_INPUT", "15001 bytes"),
        (r#"{ posters(keywords: " ") { id } }"#.into(), "BAD_USER_INPUT", "keywords is missing"),
        (r#"{ participant(id: "x") { id } }"#.into(), "BAD_USER_INPUT", "participant"),
        ("{ participant(id: 1) { inbound(limit: 1001) { story } } }".into(), "BAD_USER_INPUT", "limit"),
        ("{ participant(id: 1) { friends(limit: -1) { id } } }".into(), "BAD_USER_INPUT", "limit"),
        (r#"{ participant(id: 1) { outbound(before: "x") { story } } }"#.into(), "BAD_USER_INPUT", "before"),
    ] {
        let (message, is) = error(&mut client, &query);
        assert!(is == code && message.contains(part), "{query:.100}: {is} {message}");
    }
    for query in ["{", "{ nothing }", "{ participant { id } }", "{ participant(id: 1) }"] {
        let (message, code) = error(&mut client, query);
        assert!(!message.is_empty() && code == "BAD_USER_INPUT", "{query}: {code} {message}");
    }
    assert_eq!(client.get("/count").text(), "2");
    for body in ["", "{", "[]", "7", r#"{"query":7}"#, "{}", r#"{"query":" "}"#, r#"[{"query":"{ x }"}]"#] {
        let reply = client.request("POST", "/", &[JSON], body.as_bytes());
        assert_eq!((reply.status, reply.json()["error"].is_string()), (400, true), "{body}");
    }
}

#[test]
fn answers_are_bounded() {
    let running = Running::start(&[]);
    let mut client = running.client();
    let ids: Vec<_> = (0..30).map(|_| participant(&mut client, "x")).collect();
    for (at, from) in ids.iter().enumerate() {
        ids[at + 1..].iter().for_each(|to| drop(befriend(&mut client, *from, *to)));
    }
    post(&mut client, 1, &"long ".repeat(2_900));
    let friends = |levels: usize| {
        let (open, close) = ("friends { to { ".repeat(levels), "} } ".repeat(levels));
        format!("{{ participant(id: 1) {{ {open} id {close} }} }}")
    };
    // 29 friends and each of them again
    let two = data(&mut client, &friends(2));
    assert_eq!(two["participant"]["friends"][28]["to"]["friends"].as_array().unwrap().len(), 29);
    assert!(error(&mut client, &friends(3)).0.contains("objects"));
    assert!(error(&mut client, &friends(11)).0.contains("objects"));
    assert!(error(&mut client, &friends(12)).0.contains("levels"));
    let aliases =
        |count: usize, field: &str| (0..count).map(|at| format!("a{at}: {field} ")).collect::<String>();
    let of_all = |fields: &str| format!("{{ participant(id: 1) {{ friends {{ to {{ {fields} }} }} }} }}");
    assert!(error(&mut client, &of_all(&aliases(998, "id"))).0.contains("fields"));
    assert!(error(&mut client, &of_all(&aliases(400, "outbound { story }"))).0.contains("objects"));
    let stories = format!("{{ participant(id: 2) {{ inbound {{ {} }} }} }}", aliases(700, "story"));
    assert!(error(&mut client, &stories).0.contains("MiB"));
    let long = "a".repeat(120);
    let typenames: String = (0..60).map(|at| format!("{long}{at}: __typename ")).collect();
    let typenames = of_all(&format!("friends {{ {typenames} }}"));
    assert!(error(&mut client, &typenames).0.contains("MiB"));
    post(&mut client, 3, &"\u{1}".repeat(15_000));
    let control = format!("{{ participant(id: 3) {{ outbound {{ {} }} }} }}", aliases(100, "story"));
    assert!(error(&mut client, &control).0.contains("MiB"), "each is written with six bytes");
    let nested = (0..5)
        .fold(aliases(300, "description"), |of, _| format!("fields {{ type {{ ofType {{ {of} }} }} }}"));
    assert!(error(&mut client, &format!("{{ __schema {{ types {{ {nested} }} }} }}")).0.contains("schema"));
    // a short text that says two to the power of 20
    let chain: String =
        (0..20).map(|at| format!("fragment f{at} on Query {{ ...f{n} ...f{n} }} ", n = at + 1)).collect();
    let bomb = format!("{{ ...f0 }} {chain} fragment f20 on Query {{ participant(id: 1) {{ id }} }}");
    assert!(error(&mut client, &bomb).0.contains("fields"));
}

#[test]
fn errors_are_few_and_of_the_operation_that_is_asked_for() {
    let running = Running::start(&[]);
    let mut client = running.client();
    let operations: String = (0..20).map(|at| format!("query q{at} {{ ...f }} ")).collect();
    let variables: String = (0..100).map(|at| format!("$v{at} ")).collect();
    let query = format!("{operations} fragment f on Query {{ participant(id: [{variables}]) {{ id }} }}");
    let answer = asked(&mut client, &json!({"query": query, "operationName": "q0"}));
    let errors = answer["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 10, "{answer}");
    assert!(errors.iter().all(|error| error["extensions"]["code"] == "BAD_USER_INPUT"), "{answer}");
    assert!(error(&mut client, &query).0.contains("operationName"));
    let two = json!({"query": "query a { posters(keywords: 1) { id } } query b { participant(id: 1) { id } }", "operationName": "b"});
    assert_eq!(asked(&mut client, &two), json!({"data": {"participant": null}}), "of a nobody is told");
}

#[test]
fn a_mutation_is_not_done_twice_under_one_name() {
    let running = Running::start(&[]);
    let mut client = running.client();
    let create = r#"createParticipant(input: {name: "x"})"#;
    for query in [
        format!("mutation {{ {create} {{ id }} {create} {{ name }} }}"),
        format!("mutation {{ {create} {{ id }} ... on Mutation {{ {create} {{ name }} }} }}"),
        format!("mutation {{ ...f ...f }} fragment f on Mutation {{ {create} {{ name }} }}"),
    ] {
        let (message, code) = error(&mut client, &query);
        assert!(code == "BAD_USER_INPUT" && message.contains("createParticipant twice"), "{message}");
    }
    assert_eq!(client.get("/count").text(), "0");
    data(&mut client, &format!("mutation {{ {create} {{ id }} again: {create} {{ id }} }}"));
    assert_eq!(client.get("/count").text(), "2");
}

#[test]
fn what_all_requests_hold_is_bounded() {
    let running = Running::start(&[("graphql_mib_max", "1")]);
    let mut client = running.client();
    let ids: Vec<_> = (0..30).map(|_| participant(&mut client, "x")).collect();
    for (at, from) in ids.iter().enumerate() {
        ids[at + 1..].iter().for_each(|to| drop(befriend(&mut client, *from, *to)));
    }
    let friends = "friends { to { id } }";
    data(&mut client, &format!("{{ participant(id: 1) {{ {friends} }} }}"));
    let (message, code) =
        error(&mut client, &format!("{{ participant(id: 1) {{ friends {{ to {{ {friends} }} }} }} }}"));
    assert!(code == "UNAVAILABLE" && message.contains("try again"), "{code} {message}");
    data(&mut client, &format!("{{ participant(id: 1) {{ {friends} }} }}"));
    let metrics = client.get("/metrics");
    assert!(metrics.text().lines().any(|line| line == "newsfeed_graphql_held_bytes 0"), "all is given back");
}

#[test]
fn lists_are_read_page_by_page() {
    let running = Running::start(&[]);
    let mut client = running.client();
    let reader = participant(&mut client, "reader");
    for number in 0..5 {
        let poster = participant(&mut client, "poster");
        befriend(&mut client, reader, poster);
        post(&mut client, poster, &format!("story {number}"));
    }
    for (list, field, argument) in [("friends", "id", "after"), ("inbound", "cursor", "before")] {
        let (mut all, mut from) = (Vec::new(), String::new());
        loop {
            let query = format!(
                "{{ participant(id: 1) {{ {list}(limit: 2, {argument}: {from:?}) {{ {field} }} }} }}"
            );
            let page = data(&mut client, &query)["participant"][list].as_array().unwrap().clone();
            let Some(last) = page.last() else { break };
            from = last[field].as_str().unwrap().to_owned();
            all.extend(page);
        }
        let whole = data(&mut client, &format!("{{ participant(id: 1) {{ {list} {{ {field} }} }} }}"));
        assert_eq!(Value::from(all), whole["participant"][list], "{list}");
        assert_eq!(whole["participant"][list].as_array().unwrap().len(), 5);
    }
}

#[test]
fn operations_are_counted_and_names_read_once() {
    let running = Running::start(&[]);
    let mut client = running.client();
    data(
        &mut client,
        r#"mutation { createParticipant(input: {name: "a"}) { id } b: createParticipant(input: {name: "b"}) { id }
            createFriend(input: {from_id: 1, to_id: 2}) { id }
            createOutbound(input: {from_id: 1, subject: "s", story: "one"}) { story }
            c: createOutbound(input: {from_id: 1, subject: "s", story: "two"}) { story } }"#,
    );
    let mut counted = |operation: &str| {
        let start = format!("newsfeed_operation_seconds_count{{operation=\"{operation}\"}} ");
        let metrics = client.get("/metrics");
        let count = metrics.text().lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned));
        count.unwrap_or_else(|| panic!("{operation}")).parse::<u64>().unwrap()
    };
    for (operation, count) in
        [("participant_post", 2), ("friend_post", 1), ("outbound_post", 2), ("inbound_get", 0)]
    {
        assert_eq!(counted(operation), count, "{operation}");
    }
    let before = counted("participant_load");
    data(
        &mut running.client(),
        "{ participant(id: 2) { friends { to { name } } inbound { from { name } to { name } } } }",
    );
    data(&mut running.client(), "{ posters(keywords: \"one\") { id } }");
    for (operation, count) in
        [("participant_get", 1), ("friend_get", 1), ("inbound_get", 1), ("outbound_search", 1)]
    {
        assert_eq!(counted(operation), count, "{operation}");
    }
    // the participant, with the friends, before the feed, and the one name that was not known
    assert_eq!(counted("participant_load") - before, 4);
}

#[test]
fn a_field_that_fails_makes_null_what_may_be_null_and_no_more() {
    let running = Running::start(&[]);
    let mut client = running.client();
    participant(&mut client, "a");
    let query =
        "{ z: participant(id: 1) { name id } b: participant(id: 1) { name inbound(limit: 0) { story } }
        y: participant(id: \"/participant/1\") { id name } }";
    let answer = client.request("POST", "/", &[JSON], json!({"query": query}).to_string().as_bytes());
    let data = r#"{"data":{"z":{"name":"a","id":"1"},"b":null,"y":{"id":"1","name":"a"}},"errors":["#;
    assert!(answer.text().starts_with(data), "in the order of the query: {}", answer.text());
    assert_eq!(answer.json()["errors"][0]["path"], json!(["b", "inbound"]));
}
