//! What clients see, over a real connection where it matters who they are.

use axum::{
    body::{Body, to_bytes},
    extract::connect_info::MockConnectInfo,
    http::{HeaderMap, Request, StatusCode},
};
use serde_json::{Value, json};
use surety_chain_client::address;
use tokio::net::TcpListener;
use tower::ServiceExt;

use super::*;

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

/// What a client with this address is answered.
async fn answered(site: &Site, peer: &str, request: Request<Body>) -> Answer {
    let peer = std::net::SocketAddr::new(peer.parse().unwrap(), 5_000);
    let routes = router(site.clone()).layer(MockConnectInfo(peer));
    let response = routes.oneshot(request).await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = to_bytes(response.into_body(), 1 << 16).await.unwrap();
    let body = serde_json::from_slice(&bytes).unwrap();
    Answer {
        status,
        headers,
        body,
    }
}

fn request(body: &Value, forwarded: Option<&str>) -> Request<Body> {
    let mut request = Request::post("/v1/claims").header("content-type", "application/json");
    if let Some(forwarded) = forwarded {
        request = request.header("x-forwarded-for", forwarded);
    }
    request.body(body.to_string().into()).unwrap()
}

fn claim_of(number: u8) -> Value {
    json!({ "account": address(&account(number)) })
}

async fn site(world: &World, proxies: &[&str]) -> Site {
    Site {
        faucet: world.open().await,
        proxies: proxies.iter().map(|proxy| proxy.parse().unwrap()).collect(),
    }
}

#[tokio::test]
async fn a_claim_is_answered_with_amount_and_hash_and_the_next_with_when_to_ask_again() {
    let world = World::new();
    let site = site(&world, &[]).await;
    let paid = answered(&site, "192.0.2.1", request(&claim_of(1), None)).await;
    assert_eq!(paid.status, StatusCode::OK);
    assert_eq!(paid.body["amount"], AMOUNT.to_string());
    assert!(paid.body["hash"].as_str().unwrap().starts_with("0x"));
    world.at(HOUR);
    let refused = answered(&site, "192.0.2.1", request(&claim_of(1), None)).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers["retry-after"], (23 * HOUR).to_string());
    let said = json!({
        "code": "too_soon",
        "message": "this account has claimed within the last day; ask again in 23 h 0 min",
    });
    assert_eq!(refused.body["error"], said);
}

#[tokio::test]
async fn what_is_no_claim_is_refused_and_counts_for_nothing() {
    let world = World::new();
    let site = site(&world, &[]).await;
    let long = "5".repeat(2_000);
    for (body, status) in [
        (json!({ "account": "5Gnobody" }), StatusCode::BAD_REQUEST),
        (json!({ "account": 5 }), StatusCode::BAD_REQUEST),
        (json!({}), StatusCode::BAD_REQUEST),
        (json!({ "account": long }), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let refused = answered(&site, "192.0.2.1", request(&body, None)).await;
        assert_eq!(refused.status, status, "{body}");
        assert!(refused.body["error"]["message"].is_string());
    }
    let nowhere = Request::get("/v1/claim").body(Body::empty()).unwrap();
    let nowhere = answered(&site, "192.0.2.1", nowhere).await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
    assert!(world.paid().is_empty());
}

#[tokio::test]
async fn an_empty_purse_and_a_silent_node_are_told_from_each_other() {
    let world = World::new();
    let site = site(&world, &[]).await;
    let health = || Request::get("/health").body(Body::empty()).unwrap();
    let well = answered(&site, "192.0.2.1", health()).await;
    assert_eq!(
        (well.status, &well.body["status"]),
        (StatusCode::OK, &json!("ok"))
    );
    world.fill(AMOUNT);
    let empty = answered(&site, "192.0.2.1", health()).await;
    assert_eq!(empty.status, StatusCode::SERVICE_UNAVAILABLE);
    let refused = answered(&site, "192.0.2.1", request(&claim_of(1), None)).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.body["error"]["code"], "empty");
    world.chain.set_unreachable(true);
    let silent = answered(&site, "192.0.2.1", request(&claim_of(1), None)).await;
    assert_eq!(silent.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(silent.body["error"]["code"], "chain");
}

#[tokio::test]
async fn only_a_trusted_proxy_says_whose_request_it_is() {
    let world = World::new();
    let site = site(&world, &["10.0.0.1", "10.0.0.2"]).await;
    let mut accounts = 1..;
    let mut claim = async |peer: &str, forwarded: &str| {
        let body = claim_of(accounts.next().unwrap());
        // An hour later each, so that only the clients' own limit counts.
        world.at(u64::from(accounts.start) * HOUR);
        answered(&site, peer, request(&body, Some(forwarded)))
            .await
            .status
    };
    // What a stranger says of itself counts for nothing.
    assert_eq!(claim("192.0.2.9", "198.51.100.1").await, StatusCode::OK);
    assert_eq!(claim("192.0.2.9", "198.51.100.2").await, StatusCode::OK);
    assert_eq!(
        claim("192.0.2.9", "198.51.100.3").await,
        StatusCode::TOO_MANY_REQUESTS
    );
    // What the client has made up stands before what the proxies have appended.
    assert_eq!(
        claim("10.0.0.1", "1.1.1.1, 203.0.113.7:4711, 10.0.0.2").await,
        StatusCode::OK
    );
    assert_eq!(claim("10.0.0.1", "2.2.2.2, 203.0.113.7").await, StatusCode::OK);
    let third = claim("10.0.0.1", "3.3.3.3, 203.0.113.7, 10.0.0.2").await;
    assert_eq!(third, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(claim("10.0.0.1", "203.0.113.8").await, StatusCode::OK);
    // Without a word it is the proxy's own.
    assert_eq!(claim("10.0.0.1", "").await, StatusCode::OK);
    assert_eq!(claim("10.0.0.1", "unknown").await, StatusCode::OK);
    assert_eq!(
        claim("10.0.0.1", "1.1.1.1, unknown").await,
        StatusCode::TOO_MANY_REQUESTS
    );
}

#[tokio::test]
async fn whoever_asks_over_a_connection_is_given_and_told_why_not() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let site = site(&world, &[]).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(async move { serve(&listener, site, async { drop(stopped.await) }).await });
    let given = ask(&url, &account(1)).await.unwrap();
    assert_eq!(given.amount, AMOUNT);
    let refused = ask(&url, &account(1)).await.unwrap_err().to_string();
    assert!(refused.contains("ask again in 24 h 0 min"), "{refused}");
    stop.send(()).unwrap();
    served.await.unwrap();
    let silent = ask(&url, &account(2)).await.unwrap_err();
    assert!(matches!(silent, AskError::Silent { .. }), "{silent}");
}
