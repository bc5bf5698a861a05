//! What `/openapi.json` says is what is there. That all other tests hold what they send and are answered
//! against it is in `common`.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{collections::BTreeSet, sync::Arc};

use common::{
    description::{described, faults, operation},
    door::{DAY, Door, Tasks, settings},
    plain,
    providers::Providers,
};
use serde_json::{Value, json};

const GUIDE: &str = include_str!("../../../docs/guides/gateway.md");
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "DELETE", "PATCH"];

async fn door(home: &std::path::Path) -> Door {
    let tasks = Tasks::new(&home.join("chain"));
    // Every request needs a key, but for those that are described as open to all.
    Door::before(
        Arc::new(Providers::default()),
        &home.join("ledger"),
        tasks,
        settings(None, DAY),
    )
    .await
}

#[tokio::test]
async fn each_described_method_is_there_and_asks_for_a_key_where_it_is_said_to_and_no_other_is() {
    let home = tempfile::tempdir().unwrap();
    let door = door(home.path()).await;
    let api = described(door.address).await;
    let mut ids = BTreeSet::new();
    for (pattern, item) in api["paths"].as_object().unwrap() {
        let path = pattern.replace("{id}", "x").replace("{name}", "x");
        for method in METHODS {
            let (status, _) = plain(door.address, &format!("{method} {path}")).await;
            let described = &item[method.to_lowercase()];
            let expected = match (described.is_null(), described["security"].is_null()) {
                (true, _) => 405,
                (false, true) => 401,
                (false, false) => 200,
            };
            assert_eq!(status, expected, "{method} {pattern}");
            if !described.is_null() {
                assert!(
                    ids.insert(described["operationId"].to_string()),
                    "{method} {pattern}"
                );
                assert!(described["summary"].is_string(), "{method} {pattern}");
            }
        }
    }
    let scheme = &api["components"]["securitySchemes"]["key"];
    assert_eq!(
        (&scheme["type"], &scheme["scheme"]),
        (&json!("http"), &json!("bearer"))
    );
    assert_eq!(api["security"], json!([{"key": []}]));
}

#[tokio::test]
async fn every_schema_that_is_named_is_there_and_fields_are_said_to_be_what_they_are() {
    let home = tempfile::tempdir().unwrap();
    let api = described(door(home.path()).await.address).await;
    let mut names = Vec::new();
    named(api, &mut names);
    assert!(names.len() > 20);
    for name in names {
        assert!(api.pointer(&name[1..]).is_some(), "{name}");
    }
    let schemas = &api["components"]["schemas"];
    let chat = schemas["ChatRequest"].to_string();
    assert!(
        chat.contains("Most tokens of the answer") && chat.contains("4096"),
        "{chat}"
    );
    let others = &schemas["Others"]["properties"];
    assert_eq!(
        others["tools"]["description"],
        "Not offered: refused, unless it says what is so anyway."
    );
}

fn named(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            names.extend(fields.get("$ref").and_then(Value::as_str).map(String::from));
            fields.values().for_each(|field| named(field, names));
        }
        Value::Array(items) => items.iter().for_each(|item| named(item, names)),
        _ => {}
    }
}

#[tokio::test]
async fn the_requests_in_the_guide_are_as_they_are_described() {
    let home = tempfile::tempdir().unwrap();
    let api = described(door(home.path()).await.address).await;
    let starts = GUIDE.match_indices("{\"custom_id\"");
    let requests: Vec<Value> = starts
        .map(|(at, _)| {
            let mut values = serde_json::Deserializer::from_str(&GUIDE[at..]).into_iter::<Value>();
            values.next().unwrap().unwrap()
        })
        .collect();
    assert!(requests.len() >= 2);
    for request in requests {
        let (method, url) = (
            request["method"].as_str().unwrap(),
            request["url"].as_str().unwrap(),
        );
        let content = &operation(api, method, url).unwrap()["requestBody"]["content"];
        let schema = &content["application/json"]["schema"];
        assert_eq!(faults(api, schema, &request["body"]), [""; 0], "{request}");
    }
}
