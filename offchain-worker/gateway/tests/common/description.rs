//! What is sent and answered in tests, held against `/openapi.json`.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::plain;

/// Holds what was sent and answered against the description, which the gateway itself gives.
pub async fn check(
    address: SocketAddr,
    head: &str,
    (status, told): (u16, &str),
    (sent_as, sent): (&str, &str),
    answered: &str,
) {
    let api = described(address).await;
    let (method, path) = head.split_once(' ').unwrap();
    let path = path.split('?').next().unwrap();
    let Some(operation) = operation(api, method, path) else {
        panic!("{head} is not described");
    };
    let content = |body: &Value, kind: &str| body["content"][kind]["schema"].clone();
    if status == 200 && sent_as == "application/json" && !operation["requestBody"].is_null() {
        let schema = content(&operation["requestBody"], "application/json");
        let sent: Value = serde_json::from_str(sent).unwrap();
        assert_eq!(faults(api, &schema, &sent), [""; 0], "{head}: {sent}");
    }
    let ranged = format!("{}XX", status / 100);
    let response = match &operation["responses"][status.to_string()] {
        Value::Null => &operation["responses"][ranged],
        known => known,
    };
    if told.contains("content-type: application/json\r\n") || told.ends_with("content-type: application/json")
    {
        let body: Value = serde_json::from_str(answered).unwrap();
        let schema = content(response, "application/json");
        assert_eq!(faults(api, &schema, &body), [""; 0], "{head}, {status}: {body}");
    }
    if told.contains("content-type: text/event-stream") {
        let schema = content(response, "text/event-stream");
        let parts = answered.lines().filter_map(|line| line.strip_prefix("data: "));
        for part in parts.filter(|part| *part != "[DONE]" && !part.starts_with("{\"error\"")) {
            let part: Value = serde_json::from_str(part).unwrap();
            assert_eq!(faults(api, &schema, &part), [""; 0], "{head}: {part}");
        }
    }
}

/// The description, the same of all gateways.
pub async fn described(address: SocketAddr) -> &'static Value {
    static API: OnceCell<Value> = OnceCell::const_new();
    let asked = async {
        let (status, body) = plain(address, "GET /openapi.json").await;
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    };
    API.get_or_init(|| asked).await
}

/// What is described of a method of a path; a name at its end may have slashes in it.
pub fn operation<'a>(api: &'a Value, method: &str, path: &str) -> Option<&'a Value> {
    let fits = |pattern: &str| {
        if let Some(before) = pattern.strip_suffix("{name}") {
            return path.strip_prefix(before).is_some_and(|name| !name.is_empty());
        }
        let mut parts = pattern.split('/').zip(path.split('/'));
        let is_same = |(part, given): (&str, &str)| part == given || part.starts_with('{');
        pattern.split('/').count() == path.split('/').count() && parts.all(is_same)
    };
    let paths = api["paths"].as_object().unwrap();
    let mut fitting = paths.iter().filter(|(pattern, _)| fits(pattern));
    fitting.next()?.1.get(method.to_lowercase())
}

/// What of a value is not as a schema says. What is not described is a fault, too.
pub fn faults(api: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    look(api, schema, value, "$", true, &mut all);
    all
}

fn resolved<'a>(api: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(path) => {
            let found = api.pointer(path.strip_prefix('#').unwrap());
            resolved(api, found.unwrap_or_else(|| panic!("{path} is not there")))
        }
        None => schema,
    }
}

fn look(api: &Value, schema: &Value, value: &Value, at: &str, closed: bool, all: &mut Vec<String>) {
    let schema = resolved(api, schema);
    if schema.is_null() {
        return all.push(format!("{at}: nothing is described"));
    }
    if let Some(variants) = schema["oneOf"].as_array() {
        let fits = |variant: &&Value| {
            let mut faults = Vec::new();
            look(api, variant, value, at, closed, &mut faults);
            faults.is_empty()
        };
        match variants.iter().filter(fits).count() {
            1 => {}
            count => all.push(format!("{at}: {value} is {count} of {schema}")),
        }
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        look(api, part, value, at, false, all);
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        Value::Null => Vec::new(),
        kind => vec![kind.clone()],
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_of(kind.as_str().unwrap(), value)) {
        return all.push(format!("{at}: {value} is no {kinds:?}"));
    }
    if let Some(known) = schema["enum"].as_array()
        && !known.contains(value)
    {
        all.push(format!("{at}: {value} is none of {known:?}"));
    }
    if let Some(number) = value.as_f64() {
        let is_low = schema["minimum"].as_f64().is_some_and(|least| number < least);
        let is_high = schema["maximum"].as_f64().is_some_and(|most| number > most);
        if is_low || is_high {
            all.push(format!("{at}: {value} is out of bounds"));
        }
    }
    for (place, item) in value.as_array().into_iter().flatten().enumerate() {
        if !schema["items"].is_null() {
            look(api, &schema["items"], item, &format!("{at}[{place}]"), true, all);
        }
    }
    let Some(fields) = value.as_object() else {
        return;
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(name.as_str().unwrap()) {
            all.push(format!("{at}.{name} is missing"));
        }
    }
    let known = properties(api, schema);
    for (name, field) in fields {
        let at = format!("{at}.{name}");
        match (
            known.iter().find(|(known, _)| known == name),
            &schema["additionalProperties"],
        ) {
            // Those of parts are looked at with these.
            (Some(_), _) if schema["properties"][name].is_null() => {}
            (Some((_, schema)), _) => look(api, schema, field, &at, true, all),
            (None, more @ Value::Object(_)) => look(api, more, field, &at, true, all),
            (None, Value::Bool(true)) => {}
            (None, _) if closed && !known.is_empty() => all.push(format!("{at} is not described")),
            (None, _) => {}
        }
    }
}

/// The fields that a schema describes, those of its parts included.
fn properties(api: &Value, schema: &Value) -> Vec<(String, Value)> {
    let own = schema["properties"].as_object().into_iter().flatten();
    let mut all: Vec<_> = own.map(|(name, schema)| (name.clone(), schema.clone())).collect();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        all.extend(properties(api, resolved(api, part)));
    }
    all
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    }
}

#[test]
fn what_is_not_described_is_a_fault() {
    let api = json!({"components": {"schemas": {
        "A": {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "maximum": 3}}},
        "B": {"allOf": [{"$ref": "#/components/schemas/A"}, {"properties": {"b": {"enum": ["x"]}}}]},
    }}});
    let schema = json!({"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/B"}]});
    for (value, fits) in [
        (json!(null), true),
        (json!({"a": 1}), true),
        (json!({"a": 1, "b": "x"}), true),
        (json!({"a": 4}), false),
        (json!({"a": "1"}), false),
        (json!({"b": "x"}), false),
        (json!({"a": 1, "b": "y"}), false),
        (json!({"a": 1, "c": 0}), false),
        (json!([]), false),
    ] {
        assert_eq!(faults(&api, &schema, &value).is_empty(), fits, "{value}");
    }
}
