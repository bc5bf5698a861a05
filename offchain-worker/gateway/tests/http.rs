//! The door over real sockets, in front of providers that fail, lie and stall as they are told to.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use common::{
    ANSWER, asked,
    door::{DAY, Door, Tasks, settings},
    plain,
    providers::Providers,
    sent,
};
use serde_json::{Value, json};
use surety_gateway::{
    Finish::{self, Cut, Stop},
    KeyTerms, Ledger, NoProviders, Upstream, Verdict,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const TERMS: KeyTerms = KeyTerms {
    cap: 10_000,
    requests_per_minute: 100,
    tokens_per_minute: 100_000,
};

async fn served(
    providers: Arc<dyn Upstream>,
    home: &Path,
    without_key: Option<KeyTerms>,
) -> (SocketAddr, Arc<Ledger>) {
    let tasks = Tasks::new(&home.join("chain"));
    let settings = settings(without_key, DAY);
    let door = Door::before(providers, &home.join("ledger"), tasks, settings).await;
    (door.address, door.ledger)
}

async fn chat(address: SocketAddr, more: Value) -> (u16, String, String) {
    let mut body = json!({"model": "talker", "messages": [{"role": "user", "content": "hi"}], "seed": 7});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    asked(address, "POST /v1/chat/completions", "none", &body.to_string()).await
}

fn chunks(body: &str) -> (String, Vec<u64>, Vec<Value>) {
    let lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let all: Vec<Value> = lines
        .filter(|line| *line != "[DONE]")
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let text = all
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    let ids = all
        .iter()
        .filter_map(|chunk| chunk["surety"]["token_ids"].as_array())
        .flatten();
    (text, ids.map(|id| id.as_u64().unwrap()).collect(), all)
}

#[tokio::test]
async fn a_stream_has_whole_characters_its_ids_and_its_usage_although_a_provider_dies_within_one() {
    let home = tempfile::tempdir().unwrap();
    // Within the two bytes of the first umlaut.
    let providers = Arc::new(Providers {
        fails_after: Some(3),
        ..Providers::default()
    });
    let (address, ledger) = served(providers.clone(), home.path(), Some(TERMS)).await;
    let (status, head, body) = chat(
        address,
        json!({"stream": true, "stream_options": {"include_usage": true}}),
    )
    .await;
    assert_eq!(status, 200, "{body}");
    let (text, ids, all) = chunks(&body);
    assert_eq!(text, ANSWER);
    assert_eq!(ids, ANSWER.bytes().map(u64::from).collect::<Vec<_>>());
    assert!(!body.contains('\u{fffd}') && body.ends_with("data: [DONE]\n\n"));
    let usage = &all.last().unwrap()["usage"];
    assert_eq!(usage["completion_tokens"], ANSWER.len());
    assert_eq!(providers.asked.load(SeqCst), 2);
    // Both providers are paid for what they said.
    let key = ledger.keys().unwrap().remove(0);
    assert_eq!((key.spent, key.reserved), (ANSWER.len() as u128 + 3, 0));
    let id = head
        .split("x-surety-receipt: ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap()
        .to_owned();
    assert!(head.contains("x-ratelimit-remaining-requests: 99"));
    let (_, _, told) = asked(address, &format!("GET /v1/receipts/{id}"), "none", "").await;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&told["state"], &told["receipts"][0]["verdict"]),
        (&json!("closed"), &json!("challengeable"))
    );
    // Also what the first one has signed, who has not answered to the end.
    let signed = told["receipts"].as_array().unwrap().iter();
    let signed: Vec<_> = signed
        .map(|one| one["receipt"]["finish"].as_str().unwrap())
        .collect();
    assert_eq!(signed, ["cut", "stop"]);
    assert_eq!(told["spent"], key.spent.to_string());
}

#[tokio::test]
async fn an_answer_is_as_good_as_what_it_is_made_of_unless_something_is_wrong() {
    for (of_cut, expected) in [(Verdict::Unproven, "challengeable"), (Verdict::Wrong, "wrong")] {
        let home = tempfile::tempdir().unwrap();
        let providers = Arc::new(Providers {
            fails_after: Some(3),
            of_cut: Some(of_cut),
            ..Providers::default()
        });
        let (address, _) = served(providers, home.path(), Some(TERMS)).await;
        let (status, _, body) = chat(address, json!({})).await;
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        let id = answer["surety"]["receipt"].as_str().unwrap();
        let (_, _, told) = asked(address, &format!("GET /v1/receipts/{id}"), "x", "").await;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["receipts"][0]["verdict"], json!(of_cut));
        assert_eq!(told["verdict"], expected);
    }
}

#[tokio::test]
async fn of_vectors_the_next_provider_computes_those_alone_that_are_not_there() {
    let home = tempfile::tempdir().unwrap();
    let providers = Arc::new(Providers {
        at_once: Some(2),
        fails_after: Some(4),
        ..Providers::default()
    });
    let (address, ledger) = served(providers.clone(), home.path(), Some(TERMS)).await;
    let texts: Vec<String> = (1..=7).map(|length| "x".repeat(length)).collect();
    let body = json!({"model": "embedder", "input": texts}).to_string();
    let (status, _, told) = asked(address, "POST /v1/embeddings", "x", &body).await;
    assert_eq!(status, 200, "{told}");
    let told: Value = serde_json::from_str(&told).unwrap();
    let data = told["data"].as_array().unwrap();
    let first: Vec<f64> = data
        .iter()
        .map(|one| one["embedding"][0].as_f64().unwrap())
        .collect();
    assert_eq!(first, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(*providers.wanted.lock().unwrap(), [7, 5, 3, 3, 1]);
    // Two parts of one, what it has signed and may have been paid for a third, and two parts of the next.
    let call = ledger.call(0).unwrap();
    let finishes: Vec<Finish> = call.receipts.iter().map(|receipt| receipt.finish).collect();
    assert_eq!(finishes, [Stop, Stop, Cut, Stop, Stop]);
    let signed: u128 = call.receipts.iter().map(|receipt| receipt.price).sum();
    assert_eq!(
        (call.spent, ledger.keys().unwrap()[0].spent),
        (signed + 1, signed + 1)
    );
}

#[tokio::test]
async fn a_stop_string_ends_the_answer_and_what_was_served_is_paid() {
    let home = tempfile::tempdir().unwrap();
    let (address, ledger) = served(Arc::new(Providers::default()), home.path(), Some(TERMS)).await;
    let (_, _, body) = chat(address, json!({"stop": ["🐻! E"]})).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["choices"][0]["message"]["content"], "Grüße aus der Höhle ");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    let paid = "Grüße aus der Höhle 🐻! E".len();
    assert_eq!(ledger.keys().unwrap()[0].spent, paid as u128);
    let (_, _, body) = chat(address, json!({"max_tokens": 4})).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["choices"][0]["finish_reason"], "length");
    assert_eq!(body["surety"]["token_ids"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn providers_that_differ_end_the_call_with_an_error_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let providers = Arc::new(Providers {
        fails_after: Some(9),
        lies: true,
        ..Providers::default()
    });
    let (address, _) = served(providers, home.path(), Some(TERMS)).await;
    let (status, _, body) = chat(address, json!({})).await;
    assert_eq!(status, 502);
    assert!(body.contains("providers_differ"), "{body}");
}

#[tokio::test]
async fn who_says_nothing_of_what_it_is_owed_may_be_owed_all_that_was_reserved() {
    let home = tempfile::tempdir().unwrap();
    let providers = Arc::new(Providers {
        mute: true,
        ..Providers::default()
    });
    let (address, ledger) = served(providers, home.path(), Some(TERMS)).await;
    let (_, _, body) = chat(address, json!({"stop": ["🐻! E"]})).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    let number = u64::from_str_radix(body["surety"]["receipt"].as_str().unwrap(), 16).unwrap();
    let call = ledger.call(number).unwrap();
    assert_eq!((call.spent, call.receipts.len()), (call.reserved, 0));
    assert!(call.spent > ANSWER.len() as u128, "{}", call.spent);
    assert_eq!(ledger.keys().unwrap()[0].spent, call.spent);
}

#[tokio::test]
async fn a_client_that_hangs_up_cancels_its_answer_and_pays_what_was_said() {
    let home = tempfile::tempdir().unwrap();
    let providers = Arc::new(Providers {
        stalls: true,
        ..Providers::default()
    });
    let (address, ledger) = served(providers.clone(), home.path(), Some(TERMS)).await;
    let body = json!({"model": "talker", "messages": [{"role": "user", "content": "x"}], "stream": true})
        .to_string();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut some = [0; 64];
    assert!(stream.read(&mut some).await.unwrap() > 0);
    drop(stream);
    tokio::time::timeout(Duration::from_secs(10), providers.cancelled.notified())
        .await
        .unwrap();
    let settled = async {
        while ledger.keys().unwrap()[0].reserved != 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), settled)
        .await
        .unwrap();
    assert_eq!(ledger.keys().unwrap()[0].spent, 3);
}

#[tokio::test]
async fn what_is_not_offered_is_refused_by_name_and_nothing_is_spent() {
    let home = tempfile::tempdir().unwrap();
    let providers = Arc::new(Providers::default());
    let (address, _) = served(providers.clone(), home.path(), Some(TERMS)).await;
    for (more, param, code) in [
        (
            json!({"tools": [{"type": "function"}]}),
            "tools",
            "unsupported_parameter",
        ),
        (
            json!({"response_format": {"type": "json_object"}}),
            "response_format",
            "unsupported_parameter",
        ),
        (json!({"logprobs": true}), "logprobs", "unsupported_parameter"),
        (json!({"n": 2}), "n", "unsupported_parameter"),
        (
            json!({"frequency_penalty": 0.5}),
            "frequency_penalty",
            "unsupported_parameter",
        ),
        (json!({"hotness": 1}), "hotness", "invalid_value"),
        (json!({"temperature": 11}), "temperature", "invalid_value"),
        (json!({"max_tokens": 0}), "max_tokens", "invalid_value"),
        (json!({"model": "embedder"}), "model", "model_not_found"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
            "messages[0].content",
            "unsupported_parameter",
        ),
    ] {
        let (_, _, body) = chat(address, more).await;
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (&body["error"]["param"], &body["error"]["code"]),
            (&json!(param), &json!(code))
        );
    }
    let neutral =
        json!({"tools": [], "response_format": {"type": "text"}, "logprobs": false, "n": 1, "user": "u"});
    assert_eq!(chat(address, neutral).await.0, 200);
    assert_eq!(providers.asked.load(SeqCst), 1);
    let (_, counts) = plain(address, "GET /metrics").await;
    assert!(
        counts.contains("\nsurety_gateway_requests_refused_total 10\n"),
        "{counts}"
    );
}

#[tokio::test]
async fn embeddings_come_as_numbers_or_base64_for_texts_and_ids() {
    let home = tempfile::tempdir().unwrap();
    let (address, _) = served(Arc::new(Providers::default()), home.path(), Some(TERMS)).await;
    for (input, vectors) in [
        (json!("abc"), 1),
        (json!(["a", "bc"]), 2),
        (json!([1, 2, 3]), 1),
        (json!([[1], [2]]), 2),
    ] {
        let body = json!({"model": "embedder", "input": input}).to_string();
        let (status, _, body) = asked(address, "POST /v1/embeddings", "x", &body).await;
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, body["data"].as_array().unwrap().len()), (200, vectors));
    }
    let body = json!({"model": "embedder", "input": "abc", "encoding_format": "base64"}).to_string();
    let (_, _, body) = asked(address, "POST /v1/embeddings", "x", &body).await;
    // 3.0 and 0.5, little-endian.
    assert!(body.contains("\"AABAQAAAAD8=\""), "{body}");
}

#[tokio::test]
async fn without_providers_models_are_shown_for_batches_and_nobody_answers_at_once() {
    let home = tempfile::tempdir().unwrap();
    let (address, _) = served(Arc::new(NoProviders), home.path(), Some(TERMS)).await;
    let (status, _, body) = asked(address, "GET /v1/models", "x", "").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    let names: Vec<_> = body["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["id"])
        .collect();
    assert_eq!(status, 200);
    assert_eq!(names, ["embedder", "talker"]);
    assert_eq!(asked(address, "GET /v1/models/talker", "x", "").await.0, 200);
    for (route, body, code) in [
        (
            "embeddings",
            json!({"model": "embedder", "input": "a"}),
            "no_provider",
        ),
        (
            "completions",
            json!({"model": "talker", "prompt": "a"}),
            "no_provider",
        ),
        (
            "embeddings",
            json!({"model": "talker", "input": "a"}),
            "model_not_found",
        ),
        (
            "completions",
            json!({"model": "nobody", "prompt": "a"}),
            "model_not_found",
        ),
    ] {
        let (_, _, told) = asked(address, &format!("POST /v1/{route}"), "x", &body.to_string()).await;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["error"]["code"], code, "{body}");
    }
}

#[tokio::test]
async fn without_a_key_nothing_is_done_that_a_web_page_sends() {
    let home = tempfile::tempdir().unwrap();
    let (address, _) = served(Arc::new(NoProviders), home.path(), Some(TERMS)).await;
    for path in ["files", "batches", "completions", "embeddings"] {
        let head = format!("POST /v1/{path}");
        // What a browser sends without asking first.
        for (kind, status) in [
            ("text/plain\r\norigin: https://example.org", 403),
            ("text/plain\r\norigin: null", 403),
            ("text/plain", 400),
        ] {
            assert_eq!(
                sent(address, &head, "x", kind, "{}").await.0,
                status,
                "{path}: {kind}"
            );
        }
    }
}

#[tokio::test]
async fn keys_open_until_they_are_revoked_or_spent_and_see_no_receipts_of_others() {
    let home = tempfile::tempdir().unwrap();
    let (address, ledger) = served(Arc::new(Providers::default()), home.path(), None).await;
    let (poor, poor_secret) = ledger.create_key("poor", KeyTerms { cap: 60, ..TERMS }).unwrap();
    let (_, other) = ledger
        .create_key(
            "other",
            KeyTerms {
                requests_per_minute: 1,
                ..TERMS
            },
        )
        .unwrap();
    let body = json!({"model": "talker", "prompt": "hi", "max_tokens": 50}).to_string();
    let ask = async |key: &str| asked(address, "POST /v1/completions", key, &body).await;
    assert_eq!(ask("sk-surety-00").await.0, 401);
    assert_eq!(ask(&poor_secret).await.0, 200);
    let (status, _, refused) = ask(&poor_secret).await;
    assert!(
        status == 429 && refused.contains("insufficient_quota"),
        "{refused}"
    );
    assert_eq!(ask(&other).await.0, 200);
    let (status, head, refused) = ask(&other).await;
    assert!(
        status == 429 && refused.contains("rate_limit_exceeded") && head.contains("retry-after"),
        "{refused}"
    );
    let first = "GET /v1/receipts/0000000000000000";
    assert_eq!(asked(address, first, &poor_secret, "").await.0, 200);
    assert_eq!(asked(address, first, &other, "").await.0, 404);
    ledger.revoke_key(&poor.id).unwrap();
    assert_eq!(asked(address, first, &poor_secret, "").await.0, 401);
}

#[tokio::test]
async fn a_provider_that_claims_more_than_was_reserved_makes_no_key_spend_it() {
    let home = tempfile::tempdir().unwrap();
    let providers = Arc::new(Providers {
        greedy: true,
        ..Providers::default()
    });
    let (address, ledger) = served(providers, home.path(), Some(TERMS)).await;
    let (status, _, _) = chat(address, json!({"max_tokens": 4})).await;
    let reserved = ledger.call(0).unwrap().reserved;
    assert_eq!((status, ledger.keys().unwrap()[0].spent), (200, reserved));
    let body = json!({"model": "embedder", "input": "abc"}).to_string();
    assert_eq!(asked(address, "POST /v1/embeddings", "x", &body).await.0, 200);
    let key = ledger.keys().unwrap().remove(0);
    assert_eq!((key.spent, key.reserved), (reserved + 1, 0));
    // What it has signed is kept as it is.
    assert_eq!(ledger.call(0).unwrap().receipts[0].price, u128::MAX);
}

#[tokio::test]
async fn a_receipt_and_what_has_become_of_it_are_told_with_the_answer_and_later() {
    let home = tempfile::tempdir().unwrap();
    let (address, _) = served(Arc::new(Providers::default()), home.path(), Some(TERMS)).await;
    let header = |head: &str, name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines
            .filter(|(header, _)| *header == name)
            .map(|(_, value)| value.to_owned());
        found.next()
    };
    let embed = json!({"model": "embedder", "input": "abc"}).to_string();
    for (stream, answered) in [
        (false, chat(address, json!({})).await),
        (true, chat(address, json!({"stream": true})).await),
        (false, asked(address, "POST /v1/embeddings", "x", &embed).await),
    ] {
        let (status, head, body) = answered;
        assert_eq!(status, 200, "{body}");
        assert_eq!(header(&head, "x-surety-verdict").unwrap(), "unbatched");
        assert_eq!(
            header(&head, "x-surety-privacy").unwrap(),
            "providers-and-auditors-read"
        );
        let id = header(&head, "x-surety-receipt").unwrap();
        let first = if stream {
            chunks(&body).2.remove(0)
        } else {
            serde_json::from_str(&body).unwrap()
        };
        assert_eq!(first["surety"]["receipt"], json!(id));
        // It is on disk by then.
        let (status, head, told) = asked(address, &format!("GET /v1/receipts/{id}"), "x", "").await;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(
            (status, &told["state"], &told["verdict"]),
            (200, &json!("closed"), &json!("challengeable"))
        );
        assert_eq!(header(&head, "x-surety-verdict").unwrap(), "challengeable");
        assert_eq!(header(&head, "x-surety-receipt").unwrap(), id);
    }
}
