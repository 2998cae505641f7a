//! How large an answer about the schema can be: what it has most of, and its longest texts.

/// The fields that ask about the schema.
pub(super) const ROOTS: [&str; 2] = ["__schema", "__type"];

/// The longest list that a field of an introspection has, and its longest text in bytes.
pub(super) fn most(field: &str) -> (usize, usize) {
    match field {
        "types" => (24, 0),
        "fields" => (12, 0),
        "args" | "inputFields" => (4, 0),
        "enumValues" => (20, 0),
        "directives" => (6, 0),
        "locations" => (8, 24),
        "name" => (1, 28),
        "kind" => (1, 16),
        "description" => (1, 540),
        "deprecationReason" | "defaultValue" | "specifiedByURL" => (1, 64),
        _ => (1, 8),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::schema::schema;
    use super::*;

    fn check(field: &str, value: &Value) {
        let (list, bytes) = most(field);
        match value {
            Value::Array(all) => {
                assert!(all.len() <= list, "{field} has {}", all.len());
                all.iter().for_each(|one| check(field, one));
            }
            Value::Object(fields) => fields.iter().for_each(|(field, value)| check(field, value)),
            leaf => {
                let text = leaf.to_string();
                assert!(text.len() <= bytes + 8, "{field} has {} bytes: {text}", text.len());
            }
        }
    }

    #[tokio::test]
    async fn the_schema_is_no_larger() {
        let args = "args { name description defaultValue type { name kind } }";
        let query = format!(
            "{{ __schema {{ types {{ kind name description specifiedByURL fields(includeDeprecated: true) {{ name description
                deprecationReason {args} type {{ name }} }} inputFields {{ name description defaultValue }}
                interfaces {{ name }} enumValues(includeDeprecated: true) {{ name description deprecationReason }}
                possibleTypes {{ name }} }} directives {{ name description locations {args} }} }} }}"
        );
        let answer = schema().execute(query).await;
        assert!(answer.errors.is_empty(), "{:?}", answer.errors);
        check("", &serde_json::to_value(&answer.data).unwrap());
    }
}
