//! Descriptions as an OpenAPI 3.1 document.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::describe::{Argument, Description, Method, Place};
use crate::{Form, RPC_PATH};

/// The document of these services.
pub(crate) fn document(title: &str, version: &str, services: &[&Description]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for service in services {
        for method in service.methods {
            let Some(route) = &method.route else { continue };
            let path = paths.entry(route.path).or_insert_with(|| json!({}));
            path[route.verb.as_str().to_ascii_lowercase()] = operation(service, method, &mut schemas);
        }
    }
    paths.insert(RPC_PATH.into(), json!({"get": rpc()}));
    let reason = json!({
        "type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"],
    });
    let mut definitions = schemas.take_definitions(true);
    definitions.insert("Reason".into(), reason);
    let tags = services.iter().map(|service| json!({"name": service.name, "description": service.doc}));
    json!({
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "tags": tags.collect::<Vec<_>>(),
        "paths": paths,
        "components": {"schemas": definitions},
    })
}

/// The WebSocket for calls, as far as HTTP goes.
fn rpc() -> Value {
    let protocols = [Form::Json, Form::Binary].map(Form::protocol);
    let header =
        |name: &str, schema: Value| json!({"name": name, "in": "header", "required": true, "schema": schema});
    json!({
        "operationId": "rpc",
        "summary": "Calls over a WebSocket",
        "description": format!(
            "Opens a WebSocket (RFC 6455) on which the methods above are called by their operationId, many in a frame. Offer the \
             subprotocol {}; docs/rpc.md of the project has the format.",
            protocols.join(" or ")
        ),
        "parameters": [
            header("Upgrade", json!({"const": "websocket"})),
            header("Sec-WebSocket-Version", json!({"const": "13"})),
            header("Sec-WebSocket-Key", json!({"type": "string", "pattern": "^[A-Za-z0-9+/]{21}[AQgw]==$"})),
            header("Sec-WebSocket-Protocol", json!({"type": "string", "examples": protocols})),
        ],
        "responses": {
            "101": {"description": "The connection is a WebSocket"},
            "400": refused("Not a WebSocket handshake with a supported subprotocol"),
            "426": refused("Not a WebSocket handshake"),
        },
    })
}

fn refused(text: &str) -> Value {
    json!({
        "description": text,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Reason"}}},
    })
}

fn operation(service: &Description, method: &Method, schemas: &mut SchemaGenerator) -> Value {
    let (summary, _) = method.doc.split_once('\n').unwrap_or((method.doc, ""));
    let returned = (method.returns)(schemas);
    let failed = refused("Refused, with the reason");
    let mut operation = json!({
        "operationId": format!("{}.{}", service.name, method.name),
        "tags": [service.name],
        "summary": summary,
        "description": method.doc,
        "responses": {
            "200": {"description": "Done", "content": {"application/json": {"schema": returned}}},
            "4XX": failed,
            "5XX": failed,
        },
    });
    let mut parameters = Vec::new();
    for Argument { name, place, required, schema } in method.arguments {
        let schema = schema(schemas);
        match place {
            Place::Body => {
                let content = json!({"application/json": {"schema": schema}});
                operation["requestBody"] = json!({"required": true, "content": content});
            }
            Place::Path => {
                parameters.push(json!({"name": name, "in": "path", "required": true, "schema": schema}));
            }
            Place::Query => {
                parameters.push(json!({"name": name, "in": "query", "required": required, "schema": schema}));
            }
        }
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation
}
