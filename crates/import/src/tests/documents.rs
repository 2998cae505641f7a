//! Documents of OpenAPI and Swagger.

use super::*;

#[test]
fn a_document_is_bounded() {
    let parameters =
        vec![json!({"name": "id", "in": "path", "schema": {"enum": ["\u{202e}".repeat(5_000)]}}); 60];
    let example: Vec<String> = (0..150).map(|number| format!("\u{1}{number}").repeat(60)).collect();
    let operation = json!({"parameters": parameters, "requestBody": {"content": {"application/json": {"example": example}}}});
    let paths: Json = (0..400)
        .map(|number| {
            (
                format!("/{number}{}", "/{id}{x}".repeat(number % 60)),
                json!({"get": operation, "post": operation}),
            )
        })
        .collect();
    let text = checked(&openapi::scenario("x", &json!({"openapi": "3.0.0", "paths": paths})).unwrap());
    assert!(text.contains("operations are taken"), "{}", &text[..1_000]);
}

#[test]
fn an_upload_is_a_form_of_parts() {
    let photo = json!({"properties": {"title": {"type": "string", "example": "Rex"}, "tags": {"type": "object"},
        "photo": {"type": "string", "format": "binary"}, "scan": {"$ref": "#/components/schemas/Scan"},
        "more": {"type": "array", "items": {"type": "string", "format": "binary"}}}});
    let upload = json!({"requestBody": {"content": {"multipart/form-data": {"schema": photo}}}});
    let document = json!({"openapi": "3.1.0", "paths": {"/photos": {"post": upload, "get": upload}},
        "components": {"schemas": {"Scan": {"contentMediaType": "image/png"}}}});
    let text = checked(&openapi::scenario("x.json", &document).unwrap());
    assert!(!text.contains("Content-Type"), "{text}");
    let of_lines = |prefix: &str| {
        let at = text.lines().position(|line| line.starts_with(prefix)).unwrap_or_else(|| panic!("{text}"));
        text.lines().skip(at + 1).take(8).collect::<Vec<_>>().join("\n")
    };
    let post = of_lines("      # - POST: /photos");
    for part in
        ["multipart:", "title: Rex", "photo: {file: FILE}", "scan: {file: FILE}", "more: {file: FILE}"]
    {
        assert!(post.contains(part), "{part}: {text}");
    }
    assert!(text.lines().any(|line| line == "      # # FILE must be there, beside the scenario."), "{text}");
    let get = text.split("- GET: /photos").nth(1).unwrap();
    assert!(
        get.lines().nth(1).is_some_and(|line| line.contains("multipart:") && !line.contains("FILE")),
        "{text}"
    );
}

#[test]
fn what_writes_can_be_taken_in_by_hand() {
    let document = json!({"openapi": "3.0.3", "info": {"title": "Pets"}, "servers": [{"url": "/v2"}], "paths": {
        "/pets": {
            "post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}},
                "responses": {"201": {}}},
            "get": {"parameters": [{"name": "limit", "in": "query", "required": true, "schema": {"type": "integer"}}],
                "responses": {"200": {}}}},
        "/pets/{id}": {"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"example": 7}}],
            "get": {}, "delete": {}},
        "/owners/{id}": {"get": {}}},
        "components": {"schemas": {"Pet": {"required": ["name"], "properties": {
            "name": {"type": "string", "example": "Rex ${x}"}, "parent": {"$ref": "#/components/schemas/Pet"}}}}}});
    let text = checked(&openapi::scenario("pets.json", &document).unwrap());
    for line in [
        "  url: http://127.0.0.1:8080/v2",
        "  id: 7",
        "  owners_id: \"1\"",
        "      - GET: /pets/${id}",
        "      - GET: /owners/${owners_id}",
        "        query: {limit: 1}",
        "      # - POST: /pets",
        "      #   json: {name: \"Rex $${x}\"}",
        "      # - DELETE: /pets/${id}",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    // nobody forgets to: they are steps as they stand there
    let by_hand: Vec<String> = text
        .lines()
        .filter(|line| !line.contains("# It writes"))
        .map(|line| match line.strip_prefix("      # ") {
            Some(step) if step.starts_with(['-', ' ']) => format!("      {step}"),
            _ => line.to_owned(),
        })
        .collect();
    let by_hand = by_hand.join("\n");
    let said = tidemark_scenario::check_text("by-hand.yaml", &by_hand, Path::new("."), &[]).1;
    assert_eq!(said.to_string(), "", "{by_hand}");
    assert!(by_hand.contains("\n      - DELETE: /pets/${id}\n"), "{by_hand}");
}

#[test]
fn what_a_document_repeats_is_bounded() {
    let url = format!("http://h/{}", "{a}".repeat(600));
    let server = json!({"url": url, "variables": {"a": {"default": "x".repeat(3 << 20)}}});
    let names: Vec<String> = (0..20_000).map(|number| format!("m{number}")).collect();
    let properties: Json = names.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect();
    let schema = json!({"required": names, "properties": properties});
    let parameter = json!({"in": "query", "name": "q", "required": true, "schema": {"type": "string", "minLength": 1_000_000}});
    let tags =
        json!({"type": "array", "minItems": 1_000_000, "items": {"type": "array", "minItems": 1_000_000}});
    let content =
        |schema: &Json| json!({"requestBody": {"content": {"application/json": {"schema": schema}}}});
    let paths =
        json!({"/": {"get": {"parameters": [parameter]}, "post": content(&schema), "put": content(&tags)}});
    let document = json!({"openapi": "3.0.0", "servers": [server], "paths": paths});
    let text = checked(&openapi::scenario("x.json", &document).unwrap());
    assert!(text.len() < 20_000, "{}", text.len());
}

#[test]
fn samples_fit_what_a_schema_asks_for() {
    let query =
        |name: &str, schema: Json| json!({"in": "query", "name": name, "required": true, "schema": schema});
    let parameters = json!([
        query("word", json!({"type": "string", "minLength": 4})),
        query("mail", json!({"type": "string", "format": "email", "maxLength": 7})),
        query("count", json!({"type": "integer", "exclusiveMinimum": 10})),
        query("step", json!({"type": "integer", "minimum": 5, "multipleOf": 4})),
        query("above", json!({"type": "integer", "minimum": 3, "exclusiveMinimum": true})),
        {"in": "cookie", "name": "sid", "required": true},
    ]);
    let tags = json!({"properties": {"tags": {"type": "array", "minItems": 3, "items": {"type": "string"}}}});
    let post = json!({"requestBody": {"content": {"application/json": {"schema": tags}}}});
    let document =
        json!({"openapi": "3.0.0", "paths": {"/": {"get": {"parameters": parameters}, "post": post}}});
    let text = checked(&openapi::scenario("x.json", &document).unwrap());
    for line in [
        "        headers: {Cookie: \"sid=${sid_secret}\"}",
        "        query: {word: xxxx, mail: someone, count: 11, step: 8, above: 4}",
        "      #   json: {tags: [x, x, x]}",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn a_documents_address_says_what_to_do() {
    let text = checked(&page::scenario("http://h/v3/openapi.json").unwrap().into());
    assert!(text.contains("save it and run tidemark init FILE"), "{text}");
    assert!(!checked(&page::scenario("http://h/").unwrap().into()).contains("save it"));
    let text = checked(&page::scenario("http://h/a?n=5&api_key=Hunter2xZq&token_bytes=64").unwrap().into());
    assert!(!text.contains("Hunter2xZq") && text.contains("${env("), "{text}");
    assert!(text.contains("/a?n=5&token_bytes=64") && text.contains("{api_key: \"${api_key}\"}"), "{text}");
}

#[test]
fn parameters_are_written_in_their_style() {
    let query = |name: &str, more: Json| {
        let mut parameter = json!({"in": "query", "name": name, "required": true});
        merge(&mut parameter, more);
        parameter
    };
    let object = json!({"R": 100, "G": 200});
    for (parameter, wanted) in [
        (query("ids", json!({"example": [1, 2]})), "/s?ids=1&ids=2"),
        (query("ids", json!({"style": "form", "explode": false, "example": ["a", "b c"]})), "/s?ids=a,b%20c"),
        (
            query("ids", json!({"style": "spaceDelimited", "explode": false, "example": [1, 2]})),
            "/s?ids=1%202",
        ),
        (
            query("ids", json!({"style": "pipeDelimited", "explode": false, "example": [1, 2]})),
            "/s?ids=1%7C2",
        ),
        (query("ids", json!({"style": "pipeDelimited", "example": [1, 2]})), "/s?ids=1%7C2"),
        (
            query("ids", json!({"schema": {"type": "array", "minItems": 2, "items": {"type": "integer"}}})),
            "/s?ids=1&ids=1",
        ),
        (query("c", json!({"example": object})), "/s?R=100&G=200"),
        (query("c", json!({"explode": false, "example": object})), "/s?c=R,100,G,200"),
        (
            query("c", json!({"style": "deepObject", "explode": true, "example": {"a": {"b": "1"}}})),
            "/s?c%5Ba%5D%5Bb%5D=1",
        ),
        (query("q", json!({"examples": {"one": {"value": ["x"]}}})), "/s?q=x"),
    ] {
        let document = json!({"openapi": "3.0.3", "paths": {"/s": {"get": {"parameters": [parameter]}}}});
        has_lines(&documented(&document), &[&format!("- GET: {wanted}")]);
    }
    let json_text = query("q", json!({"content": {"application/json": {"example": {"a": "${x}"}}}}));
    let document = json!({"openapi": "3.0.3", "paths": {"/s": {"get": {"parameters": [json_text]}}}});
    has_lines(&documented(&document), &["query: {q: '{\"a\":\"$${x}\"}'}"]);
    let path = |more: Json| {
        let mut parameter = json!({"in": "path", "name": "id", "required": true});
        merge(&mut parameter, more);
        json!({"openapi": "3.0.3", "paths": {"/s/{id}": {"get": {"parameters": [parameter]}}}})
    };
    for (more, wanted) in [
        (json!({"example": 7}), "/s/${id}"),
        (json!({"style": "label", "example": 7}), "/s/.${id}"),
        (json!({"style": "matrix", "example": 7}), "/s/;id=${id}"),
        (json!({"example": [3, 4]}), "/s/3,4"),
        (json!({"style": "label", "explode": true, "example": [3, 4]}), "/s/.3.4"),
        (json!({"style": "matrix", "example": [3, 4]}), "/s/;id=3,4"),
        (json!({"style": "matrix", "explode": true, "example": [3, 4]}), "/s/;id=3;id=4"),
        (json!({"explode": true, "example": object}), "/s/R=100,G=200"),
        (json!({"example": object}), "/s/R,100,G,200"),
    ] {
        has_lines(&documented(&path(more)), &[&format!("- GET: {wanted}")]);
    }
    for (example, wanted) in [("x y/z", "id: x%20y%2Fz"), ("50%", "id: 50%25"), ("a:b@c", "id: a:b@c")] {
        let text = documented(&path(json!({"example": example})));
        assert!(text.contains(wanted), "{text}");
    }
    let header = json!({"in": "header", "name": "X-Ids", "required": true, "example": [1, 2]});
    let document = json!({"openapi": "3.0.3", "paths": {"/s": {"get": {"parameters": [header]}}}});
    has_lines(&documented(&document), &["headers: {X-Ids: \"1,2\"}"]);
}

#[test]
fn a_stream_of_events_is_left_out_and_told() {
    let of = |answer: Json| {
        documented(
            &json!({"openapi": "3.0.3", "paths": {"/feed": {"get": {"responses": {"200": answer}}}, "/a": {"get": {}}}}),
        )
    };
    let text = of(json!({"content": {"text/event-stream": {}}}));
    assert!(!text.contains("GET: /feed") && text.contains("- GET: /a"), "{text}");
    let both = of(json!({"content": {"text/event-stream": {}, "application/json": {}}}));
    assert!(both.contains("- GET: /feed"), "{both}");
}

#[test]
fn a_body_has_its_media_type() {
    let of = |content: Json| {
        documented(
            &json!({"openapi": "3.0.3", "paths": {"/a": {"post": {"requestBody": {"content": content}}}}}),
        )
    };
    let schema =
        json!({"schema": {"type": "object", "required": ["v"], "properties": {"v": {"type": "integer"}}}});
    let text = of(json!({"application/vnd.api+json": {"example": {"data": {"type": "articles"}}}}));
    has_lines(
        &text,
        &["#   headers: {Content-Type: application/vnd.api+json}", "#   json: {data: {type: articles}}"],
    );
    has_lines(&of(json!({"application/merge-patch+json": schema})), &["#   json: {v: 1}"]);
    for any in ["*/*", "application/*", "application/*+json", "application/json; charset=utf-8"] {
        has_lines(&of(Json::from_iter([(any.to_owned(), schema.clone())])), &["#   json: {v: 1}"]);
    }
    let two = of(json!({"application/problem+json": {"example": 1}, "application/json": schema}));
    assert!(two.contains("json: {v: 1}") && !two.contains("problem"), "{two}");
    has_lines(&of(json!({"application/json": {"example": "{\"a\": [1]}"}})), &["#   json: {a: [1]}"]);
    has_lines(&of(json!({"text/csv": {"example": "a,b"}})), &["#   body: a,b"]);
    // of several, one with an example; what cannot be made is told
    let two = of(json!({"application/octet-stream": {}, "text/csv": {"example": "a,b"}}));
    has_lines(&two, &["#   headers: {Content-Type: text/csv}", "#   body: a,b"]);
    for kind in ["application/octet-stream", "application/xml"] {
        let media = if kind.ends_with("xml") { schema.clone() } else { json!({}) };
        let told = format!("# # Its body is a placeholder: put one of {kind} here.");
        has_lines(&of(Json::from_iter([(kind.to_owned(), media)])), &[&told, "#   body: x"]);
    }
    let form = json!({"example": {"amount": 5, "tags": ["a", "b c"], "metadata": {"order": "7"}},
        "encoding": {"metadata": {"style": "deepObject", "explode": true}}});
    let text = of(json!({ "application/x-www-form-urlencoded": form }));
    has_lines(&text, &["#   body: amount=5&tags=a&tags=b%20c&metadata%5Border%5D=7"]);
    let text = of(json!({"multipart/form-data": {"example": {"a": "x", "b": {"c": [1]}}}}));
    has_lines(&text, &["#   multipart: {a: x, b: {text: '{\"c\":[1]}', type: application/json}}"]);
}

#[test]
fn the_nearest_server_counts() {
    let at = |url: &str| json!([{ "url": url }]);
    let document = json!({"openapi": "3.0.3", "servers": at("https://h.test/v1"), "paths": {
        "/a": {"get": {}, "head": {}},
        "/b": {"servers": at("https://path.test/"), "get": {}, "post": {"servers": at("/v2")}},
        "/c": {"get": {"servers": [{"url": "https://{region}.h.test", "variables": {"region": {"enum": ["eu"]}}}]}}}});
    let text = documented(&document);
    has_lines(
        &text,
        &[
            "url: https://h.test/v1",
            "- HEAD: /a",
            "path_test: {url: https://path.test}",
            "eu_h_test: {url: https://eu.h.test}",
            "at: path_test",
            "# - POST: https://h.test/v2/b",
            "at: eu_h_test",
        ],
    );
    // where no operation is at the document's, the first is the system
    let document =
        json!({"openapi": "3.0.3", "paths": {"/a": {"servers": at("https://path.test"), "get": {}}}});
    let text = documented(&document);
    assert!(text.contains("url: https://path.test\n") && !text.contains("at: "), "{text}");
}

#[test]
fn who_comes_is_a_setting_and_a_login_gives_its_token() {
    let schemes = json!({"securitySchemes": {
        "bearer": {"type": "http", "scheme": "bearer"}, "basic": {"type": "http", "scheme": "basic"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
        "query": {"type": "apiKey", "in": "query", "name": "key"}, "sid": {"type": "apiKey", "in": "cookie", "name": "SID"},
        "oauth": {"type": "oauth2", "flows": {}}, "digest": {"type": "http", "scheme": "digest"}}});
    let of = |security: Json| {
        let get = json!({"security": security});
        documented(&json!({"openapi": "3.0.3", "components": schemes, "paths": {"/a": {"get": get}}}))
    };
    for (security, line) in [
        (json!([{"bearer": []}]), "auth: {bearer: \"${token}\"}"),
        (json!([{"oauth": ["read"]}]), "auth: {bearer: \"${token}\"}"),
        (
            json!([{"digest": []}, {"basic": []}]),
            "auth: {basic: {user: \"${user}\", password: \"${password}\"}}",
        ),
        (json!([{"key": []}]), "headers: {X-Api-Key: \"${X_Api_Key}\"}"),
        (json!([{"query": []}]), "query: {key: \"${key}\"}"),
        (json!([{"sid": []}]), "headers: {Cookie: \"SID=${SID_key}\"}"),
        (json!([{"digest": []}]), "# it requires digest, which is not sent: add it by hand"),
    ] {
        has_lines(&of(security), &[line]);
    }
    // nobody is asked for what only a comment needs
    let post = json!({"openapi": "3.0.3", "components": schemes, "security": [{"bearer": []}], "paths": {"/a": {"post": {}}}});
    let made = openapi::scenario("x.json", &post).unwrap();
    has_lines(&checked(&made), &["#   auth: {bearer: '${env(\"TIDEMARK_TOKEN\")}'}"]);
    assert!(made.secrets().is_empty());
    for open in [json!([]), json!([{}, {"bearer": []}])] {
        assert!(!of(open).contains("auth:"));
    }
    let login = json!({"security": [], "requestBody": {"content": {"application/json": {"schema": {"type": "object",
        "properties": {"user": {"type": "string", "example": "ann"}, "password": {"type": "string"}}}}}},
        "responses": {"200": {"content": {"application/json": {"schema": {"properties": {"accessToken": {"type": "string"}}}}}}}});
    let document = json!({"openapi": "3.0.3", "components": schemes, "security": [{"bearer": []}],
        "paths": {"/a": {"get": {}}, "/auth/login": {"post": login}}});
    let text = documented(&document);
    has_lines(
        &text,
        &[
            "- POST: /auth/login",
            "user: ann",
            "json: {user: \"${user}\", password: \"${password}\"}",
            "extract: {token: $.accessToken}",
            "auth: {bearer: \"${token}\"}",
            "rate: ${rate}",
        ],
    );
    assert!(text.find("/auth/login") < text.find("- GET: /a"), "{text}");
    assert!(!text.contains("TIDEMARK_TOKEN") && text.contains("TIDEMARK_PASSWORD"), "{text}");
}

#[test]
fn a_login_that_sets_a_cookie_comes_first_and_a_logout_last() {
    let form = json!({"application/x-www-form-urlencoded": {"schema": {"required": ["login", "password"], "properties": {
        "login": {"type": "string", "example": "ann"}, "password": {"type": "string", "example": "open-sesame"}}}}});
    let secured = json!({"security": [{"session": []}]});
    let document = json!({"openapi": "3.0.3", "paths": {
            "/api/login/logout": {"get": {}}, "/api/login": {"post": {"requestBody": {"content": form}}}, "/mine": {"get": secured}},
        "components": {"securitySchemes": {"session": {"type": "apiKey", "in": "cookie", "name": "sid"}}}});
    let made = openapi::scenario("x.json", &document).unwrap();
    let text = checked(&made);
    has_lines(&text, &["password: open-sesame", "form: {login: \"${login}\", password: \"${password}\"}"]);
    assert!(made.secrets().is_empty() && !text.contains("Cookie"), "{text}");
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}\n{text}"));
    assert!(at("- POST: /api/login") < at("- GET: /mine") && at("- GET: /mine") < at("logout"), "{text}");
}

#[test]
fn a_document_of_swagger_2_is_read() {
    let document = json!({"swagger": "2.0", "host": "h.test", "basePath": "/v2", "schemes": ["https", "http"],
        "securityDefinitions": {"b": {"type": "basic"}}, "consumes": ["application/json"],
        "parameters": {"limit": {"in": "query", "name": "limit", "required": true, "type": "integer", "minimum": 5}},
        "definitions": {"Pet": {"required": ["name"], "properties": {"name": {"type": "string", "example": "Rex"}}}},
        "paths": {"/pets": {
            "get": {"security": [{"b": []}], "parameters": [{"$ref": "#/parameters/limit"},
                {"in": "query", "name": "tags", "required": true, "type": "array", "collectionFormat": "multi", "minItems": 2, "items": {"type": "string"}},
                {"in": "query", "name": "tabs", "required": true, "type": "array", "collectionFormat": "tsv", "minItems": 2, "items": {"type": "string"}}]},
            "post": {"parameters": [{"in": "body", "name": "pet", "schema": {"$ref": "#/definitions/Pet"}}]},
            "put": {"consumes": ["multipart/form-data"], "parameters": [{"in": "formData", "name": "photo", "type": "file"}]}}}});
    has_lines(
        &documented(&document),
        &[
            "url: https://h.test/v2",
            "- GET: /pets?tags=x&tags=x&tabs=x%09x",
            "query: {limit: 5}",
            "auth: {basic: {user: \"${user}\", password: \"${password}\"}}",
            "#   json: {name: Rex}",
            "#   multipart: {photo: {file: FILE}}",
        ],
    );
}

#[test]
fn samples_are_of_openapi_3_1_and_end() {
    let of = |schema: Json| {
        let content = json!({"application/json": {"schema": schema}});
        let post = json!({"requestBody": {"content": content}});
        documented(&json!({"openapi": "3.1.0", "paths": {"/a": {"post": post}}, "components": {"schemas": {
            "Node": {"required": ["next", "name"], "properties": {"name": {"const": "n"}, "next": {"$ref": "#/components/schemas/Node"}}}}}}))
    };
    let typed = |schema: Json| json!({"properties": {"v": schema}});
    for (schema, wanted) in [
        (json!({"type": ["null", "integer"]}), "1"),
        (json!({"anyOf": [{"type": "null"}, {"type": "string", "examples": ["e"]}]}), "e"),
        (json!({"oneOf": [{"const": 4}, {"const": 5}]}), "4"),
        (json!({"allOf": [{"type": "string", "enum": ["a", "b"]}]}), "a"),
        (json!({"type": "string", "format": "ipv4"}), "192.0.2.1"),
        (
            json!({"properties": {"a": {"const": 1}}, "oneOf": [{"properties": {"b": {"const": 2}}}]}),
            "{a: 1, b: 2}",
        ),
    ] {
        has_lines(&of(typed(schema)), &[&format!("#   json: {{v: {wanted}}}")]);
    }
    let text = of(json!({"$ref": "#/components/schemas/Node"}));
    assert!(text.contains("name: n") && text.len() < 5_000, "{text}");
}

#[test]
fn other_files_of_the_folder_are_read_and_what_is_not_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("parts")).unwrap();
    write(
        "parts/pet.yaml",
        "Pet:\n  properties:\n    name: {$ref: 'name.json'}\n    mother: {$ref: '#/Own'}\nOwn: {const: Ada}\n",
    );
    write("parts/name.json", "{\"const\": \"Rex\"}");
    write(
        "api.yaml",
        "openapi: 3.0.0\npaths:\n  /a:\n    post:\n      requestBody: {content: {application/json: {schema: {$ref: 'parts/pet.yaml#/Pet'}}}}\n  \
         /b: {$ref: 'none.yaml'}\n  /c:\n    get: {parameters: [{$ref: 'https://h/p.yaml#/P'}, {$ref: '../up.yaml'}]}\n",
    );
    let file = folder.path().join("api.yaml");
    let made = scenario(&file.display().to_string(), &[]).unwrap();
    let text = checked(&made);
    has_lines(&text, &["#   json: {name: Rex, mother: Ada}"]);
    for part in ["none.yaml", "https://h/p.yaml#/P", "../up.yaml", "as they write: 1 operation."] {
        assert!(made.remark.contains(part), "{part}\n{}", made.remark);
    }
}

#[test]
fn each_class_of_good_statuses_is_checked() {
    for (codes, check) in [
        (&["200"][..], "check: {status: 200}"),
        (&["2XX"], "check: {status: 2xx}"),
        (&["2xx", "404"], "check: {status: 2xx}"),
        (&["200", "2XX"], "check: {status: 2xx}"),
        (&["default"], "check: {status: 2xx}"),
        (&["404", "default"], "check: {status: 2xx}"),
        (&["201", "default"], "check: {status: 201}"),
        (&["200", "304", "204"], "check: {status: [200, 204]}"),
        (&["302", "404"], "check: {status: 302}"),
        (&["3XX"], "check: {status: 3xx}"),
        (&["404"], ""),
        (&["2\u{e9}", "x-a", "20", "2000"], ""),
    ] {
        let responses: serde_json::Map<String, Json> =
            codes.iter().map(|code| ((*code).to_owned(), json!({"description": ""}))).collect();
        let text =
            documented(&json!({"openapi": "3.0.3", "paths": {"/a": {"get": {"responses": responses}}}}));
        assert_eq!(text.contains("check:"), !check.is_empty(), "{codes:?}\n{text}");
        assert!(text.contains(check), "{codes:?}\n{text}");
    }
}
