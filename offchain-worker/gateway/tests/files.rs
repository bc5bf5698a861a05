//! Files over real sockets.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{
    asked,
    door::{DAY, Door, TERMS, Tasks, embed, lines, settings},
    sent,
};
use serde_json::{Value, json};

#[tokio::test]
async fn files_and_batches_are_their_keys_own_and_come_in_pages() {
    let home = tempfile::tempdir().unwrap();
    let tasks = Tasks::new(&home.path().join("chain"));
    let door = Door::new(&home.path().join("ledger"), tasks, settings(None, DAY)).await;
    let [(_, own), (_, other)] = ["own", "other"].map(|label| door.ledger.create_key(label, TERMS).unwrap());
    let mut ids = Vec::new();
    for _ in 0..3 {
        let file = door
            .give(&own, &lines("/v1/embeddings", &[embed(json!("a"))]))
            .await;
        ids.push(file["id"].as_str().unwrap().to_owned());
    }
    let list = async |query: &str| {
        let (status, body) = door.get(&format!("/v1/files{query}"), &own).await;
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status, 200, "{body}");
        let ids: Vec<String> = body["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["id"].as_str().unwrap().to_owned())
            .collect();
        (ids, body["has_more"] == true)
    };
    let reversed: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(list("").await, (reversed.clone(), false));
    assert_eq!(list("?limit=2").await, (reversed[..2].to_vec(), true));
    let next = format!("?limit=2&after={}", reversed[1]);
    assert_eq!(list(&next).await, (reversed[2..].to_vec(), false));
    assert_eq!(list("?order=asc").await, (ids.clone(), false));
    assert_eq!(list("?purpose=batch_output").await, (Vec::new(), false));

    let (_, batch) = door.create(&own, &ids[0], "/v1/embeddings").await;
    let batch = batch["id"].as_str().unwrap().to_owned();
    for path in [
        format!("/v1/files/{}", ids[0]),
        format!("/v1/files/{}/content", ids[0]),
        format!("/v1/batches/{batch}"),
    ] {
        assert_eq!(door.get(&path, &own).await.0, 200, "{path}");
        assert_eq!(door.get(&path, &other).await.0, 404, "{path}");
        assert_eq!(door.get(&path, "sk-surety-00").await.0, 401, "{path}");
    }
    assert_eq!(door.create(&other, &ids[0], "/v1/embeddings").await.0, 404);
    let delete = format!("DELETE /v1/files/{}", ids[1]);
    assert_eq!(asked(door.address, &delete, &other, "").await.0, 404);
    assert_eq!(asked(door.address, &delete, &own, "").await.0, 200);
    assert_eq!(asked(door.address, &delete, &own, "").await.0, 404);
    // The batch may have written others.
    assert_eq!(list("?purpose=batch").await.0.len(), 2);
}

#[tokio::test]
async fn a_form_that_is_no_file_for_a_batch_is_refused_with_what_is_wrong() {
    let home = tempfile::tempdir().unwrap();
    let door = Door::open(home.path(), Tasks::new(&home.path().join("chain"))).await;
    let field = |name: &str, text: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
    };
    let kind = "multipart/form-data; boundary=b";
    for (kind, form, param) in [
        ("application/json", "{}".to_owned(), "body"),
        (kind, "--b\r\n".to_owned(), "body"),
        (kind, field("file", "{}") + "--b--", "purpose"),
        (
            kind,
            field("purpose", "fine-tune") + &field("file", "{}") + "--b--",
            "purpose",
        ),
        (kind, field("purpose", "batch") + "--b--", "file"),
        (
            kind,
            field("purpose", "batch") + &field("file", "") + "--b--",
            "file",
        ),
        (
            kind,
            field("purpose", "batch") + &field("other", "") + "--b--",
            "other",
        ),
    ] {
        let (status, _, told) = sent(door.address, "POST /v1/files", "x", kind, &form).await;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((status, &told["error"]["param"]), (400, &json!(param)), "{form}");
    }
}
