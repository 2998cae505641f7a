//! Descriptions as an OpenAPI 3.1 document.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::describe::{Argument, Description, Method, Place};

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

fn operation(service: &Description, method: &Method, schemas: &mut SchemaGenerator) -> Value {
    let (summary, _) = method.doc.split_once('\n').unwrap_or((method.doc, ""));
    let returned = (method.returns)(schemas);
    let failed = json!({
        "description": "Refused, with the reason",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Reason"}}},
    });
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
