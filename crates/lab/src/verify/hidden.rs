//! A recipe is kept without its secrets: in their places stand their names, by which they can be given again.

use serde::Serialize;
use serde_json::{Value, json};
use tidemark_scenario::Secrets;
use tidemark_scenario::secrets::{MASK, Origin, in_form, is_secret_name, password_in};

use crate::LabError;

/// Where the names of the secrets stand that were taken out.
const SECRETS: &str = "secrets";
/// How their origins are written.
const ORIGINS: [(Origin, &str); 3] =
    [(Origin::Environment, "environment"), (Origin::Setting, "setting"), (Origin::Header, "header")];

/// What is written down of a recipe.
pub fn kept(recipe: &impl Serialize, secrets: &Secrets) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(recipe)?;
    let mut taken: Vec<(String, Origin)> = Vec::new();
    let mut take = |name: &str, origin, form: &str| {
        if taken.iter().all(|(known, _)| known != name) {
            taken.push((name.to_owned(), origin));
        }
        place(name, form)
    };
    texts(&mut value, &mut |text| {
        *text =
            secrets.replaced(text, &mut |secret, form| take(&secret.name, secret.origin, form)).into_owned();
    });
    // what is too short to be known by its value
    for header in value["headers"].as_array_mut().into_iter().flatten() {
        let Some([Value::String(name), Value::String(text)]) = header.as_array_mut().map(Vec::as_mut_slice)
        else {
            continue;
        };
        if is_secret_name(name) && !text.contains(MASK) {
            *text = take(name, Origin::Header, "");
        }
    }
    for key in ["url", "proxy"] {
        let password = value[key].as_str().and_then(password_in);
        let password = password.filter(|text| !text.contains(MASK)).map(str::to_owned);
        if let (Some(password), Value::String(url)) = (password, &mut value[key]) {
            let instead = format!(":{}@", take("password", Origin::Setting, ""));
            *url = url.replacen(&format!(":{password}@"), &instead, 1);
        }
    }
    let word =
        |origin: Origin| ORIGINS.iter().find(|(known, _)| *known == origin).map_or("", |(_, word)| *word);
    let taken: Vec<Value> =
        taken.iter().map(|(name, origin)| json!({"name": name, "from": word(*origin)})).collect();
    if let Some(fields) = value.as_object_mut().filter(|_| !taken.is_empty()) {
        fields.insert(SECRETS.into(), taken.into());
    }
    Ok(value)
}

/// A recipe with its secrets in their places again, and what they are.
///
/// # Errors
/// Which of them are missing, and how to give them.
pub fn given_back(mut kept: Value, given: &[(String, String)]) -> Result<(Value, Secrets), LabError> {
    let (mut known, mut missing) = (Vec::new(), Vec::new());
    let taken = kept.get_mut(SECRETS).map(Value::take).unwrap_or_default();
    for secret in taken.as_array().into_iter().flatten() {
        let (Some(name), Some(word)) = (secret["name"].as_str(), secret["from"].as_str()) else { continue };
        // the URL that it was in may be another one now
        let mut is_needed = false;
        texts(&mut kept, &mut |text| is_needed |= text.contains(&format!("{MASK}{name}")));
        if !is_needed {
            continue;
        }
        let Some((origin, _)) = ORIGINS.iter().find(|(_, known)| *known == word) else { continue };
        let from_flag = given.iter().rev().find(|(of, _)| of == name).map(|(_, value)| value.clone());
        let value = from_flag.or_else(|| std::env::var(name).ok().filter(|_| *origin == Origin::Environment));
        match (value, origin) {
            (Some(value), _) => known.push((name.to_owned(), *origin, value)),
            (None, Origin::Environment) => missing.push(format!("the environment variable {name}")),
            (None, Origin::Setting) => missing.push(format!("the setting {name} (--set {name}=…)")),
            (None, Origin::Header) => missing.push(format!("the header {name} (--set {name}=…)")),
        }
    }
    if !missing.is_empty() {
        let missing = missing.join("; ");
        return Err(LabError::Usage(format!("a run does not keep its secrets; give them again: {missing}")));
    }
    if let Some((name, _)) = given.iter().find(|(name, _)| known.iter().all(|(known, ..)| known != name)) {
        let names: Vec<&str> = known.iter().map(|(name, ..)| name.as_str()).collect();
        let needed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(LabError::Usage(format!(
            "--set {name}: this run needs no such secret; it needs {needed}"
        )));
    }
    let mut secrets = Secrets::default();
    for (name, origin, value) in &known {
        secrets.add(name, *origin, value);
    }
    texts(&mut kept, &mut |text| {
        for (name, _, value) in &known {
            for form in ["", ":url", ":path", ":form", ":json", ":base64", ":base64url"] {
                let place = place(name, form);
                if text.contains(&place) {
                    *text = text.replace(&place, &in_form(value, form));
                }
            }
        }
    });
    Ok((kept, secrets))
}

fn place(name: &str, form: &str) -> String {
    format!("{MASK}{name}{form}{MASK}")
}

fn texts(value: &mut Value, change: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| texts(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| texts(field, change)),
        _ => {}
    }
}
