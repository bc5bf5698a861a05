#![allow(clippy::unwrap_used)]

mod chat;
mod kept;

use std::time::Duration;

use axum::{
    body::Body,
    http::{Request, Response, StatusCode},
    response::IntoResponse,
};
use serde_json::{Value, json};
use surety_access::Gate;
use surety_chain_client::{AccountId, FakeChain, ProviderRecord, RoundRecord, Signer, TaskRecord, address};
use surety_engine::{Embeddings, content_hash};
use surety_network::{
    Announcement, Bytes, FetchOptions, Readers,
    memory::{MemoryNet, MemoryPlane},
};
use surety_types::{
    ContentHash, TaskId,
    input::InputFault,
    model::Operation,
    multiaddr::Endpoint,
    provider::{DeviceKind, DeviceProfile},
    task::{Assignment, ResultClaim, RoundMember, TaskSpec, TaskState},
};
use tower::ServiceExt;

use super::*;
use crate::text::TextInputError;

const TASK: TaskId = 5;
const PAGE: &str = "http://localhost:5173";

/// No model is known.
struct NoModels;

#[async_trait]
impl Models for NoModels {
    async fn find(&self, named: &str) -> Result<FoundModel, String> {
        Err(format!("nobody knows {named}"))
    }
}

/// A server, its chain, and a provider.
struct World {
    chain: FakeChain,
    net: MemoryNet,
    provider: MemoryPlane,
    backend: Backend,
    home: tempfile::TempDir,
}

fn endpoint(name: &str) -> Endpoint {
    Endpoint::try_from(name.as_bytes().to_vec()).unwrap()
}

fn client() -> AccountId {
    Signer::from_uri("//Client").unwrap().account().clone()
}

fn provider() -> AccountId {
    AccountId::new([1; 32])
}

impl World {
    async fn new() -> Self {
        let (net, chain) = (MemoryNet::default(), FakeChain::new());
        let home = tempfile::tempdir().unwrap();
        let plane = Arc::new(net.join(endpoint("server")));
        let kept = Kept::open(home.path().join("kept"), &*plane).await.unwrap();
        // What is not in use when somebody looks is dropped.
        let kept = Arc::new(kept.unused_for(Duration::ZERO));
        let shared: Arc<dyn Chain> = Arc::new(chain.clone());
        plane.set_gate(Arc::new(Gate::of_inputs(shared.clone(), kept.clone())));
        let backend = Backend {
            chain: shared,
            plane,
            models: Arc::new(NoModels),
            renderer: Arc::new(surety_models::chat::Here),
            home: home.path().into(),
            kept,
        };
        Self {
            provider: net.join(endpoint("provider")),
            chain,
            net,
            backend,
            home,
        }
    }

    async fn ask(&self, request: Request<Body>) -> Response<Body> {
        let routes = router(self.backend.clone(), &[PAGE.into()]).unwrap();
        routes.oneshot(request).await.unwrap()
    }

    async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        let response = self
            .ask(request(path, "application/json", body.to_string()))
            .await;
        (response.status(), read(response).await)
    }

    async fn upload(&self, blob: &[u8]) -> (StatusCode, Value) {
        let response = self
            .ask(request(&blobs(), "application/octet-stream", blob.to_vec()))
            .await;
        (response.status(), read(response).await)
    }

    /// The provider has the output, for whoever its gate lets in.
    async fn serves_output(&self) {
        let chain = Arc::new(self.chain.clone());
        self.provider
            .set_gate(Arc::new(Gate::of_provider(chain, provider(), Arc::default())));
        self.provider.publish(output()).await.unwrap();
    }

    fn has(&self, blob: &[u8]) -> bool {
        self.net.has(&endpoint("server"), &content_hash(blob))
    }

    /// A task with this input is in this state.
    fn task(&self, input: ContentHash, state: TaskState<AccountId, u128, u32>) {
        let task = TaskRecord {
            client: client(),
            spec: TaskSpec {
                model: ContentHash::zero(),
                operation: Operation::Embed,
                input,
                input_bytes: 1_500,
                units_max: 1,
                redundancy: 1,
                sources: Default::default(),
                security: Default::default(),
                requirements: Default::default(),
            },
            cap: 100,
            audits: surety_types::task::AuditTerms::default(),
            posted_at: 0,
            state,
        };
        self.chain.change(|all| {
            all.tasks.insert(TASK, task);
            let record = ProviderRecord {
                device: DeviceProfile {
                    name: Default::default(),
                    kind: DeviceKind::Cpu,
                    cores: 1,
                    memory_mib: 1,
                    region: None,
                },
                endpoints: vec![endpoint("provider")].try_into().unwrap(),
                last_heartbeat: 0,
            };
            all.providers.insert(provider(), record);
        });
        self.chain.finalize();
    }
}

/// A request of the client, where it says nothing else.
fn of_client(mut body: Value) -> Value {
    let fields = body.as_object_mut().unwrap();
    fields
        .entry("account")
        .or_insert_with(|| json!(address(&client())));
    body
}

/// Where the client gives an input as bytes.
fn blobs() -> String {
    format!("/v1/blobs?account={}", address(&client()))
}

fn request(path: &str, kind: &str, body: impl Into<Body>) -> Request<Body> {
    let request = Request::post(path)
        .header("content-type", kind)
        .header("origin", PAGE);
    request.body(body.into()).unwrap()
}

async fn read(response: Response<Body>) -> Value {
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn running() -> TaskState<AccountId, u128, u32> {
    TaskState::Running {
        assignments: Default::default(),
        reserves: Default::default(),
    }
}

fn output() -> Bytes {
    Embeddings::new(2, vec![0.5, 1.0])
        .unwrap()
        .encode()
        .unwrap()
        .into()
}

fn settled() -> TaskState<AccountId, u128, u32> {
    let payment = Assignment {
        provider: provider(),
        price: 7,
    };
    TaskState::Settled {
        at: 3,
        claim: ResultClaim {
            output: content_hash(&output()),
            trace_root: ContentHash::zero(),
            units: 1,
        },
        payments: vec![payment].try_into().unwrap(),
        refund: 92,
        fee: 1,
    }
}

/// What is said to get the client's output, signed with a key.
async fn signed(world: &World, key: &str) -> Value {
    let account = address(&client());
    let path = format!("/v1/tasks/{TASK}/ticket");
    let (status, to_sign) = world.post(&path, &json!({ "account": account })).await;
    assert_eq!(status, StatusCode::OK);
    let message = to_sign["message"].as_str().unwrap().trim_start_matches("0x");
    let hash: [u8; 32] = hex::decode(message).unwrap().try_into().unwrap();
    let bytes = [b"<Bytes>", &hash[..], b"</Bytes>"].concat();
    let signature = Signer::from_uri(key).unwrap().sign_extrinsic(&bytes);
    json!({ "account": account, "signature": hex::encode(signature) })
}

#[tokio::test]
async fn an_input_is_kept_and_its_hash_and_sources_are_what_a_task_is_posted_with() {
    let world = World::new().await;
    let (status, said) = world.upload(b"an input").await;
    assert_eq!(status, StatusCode::OK, "{said}");
    let expected = json!({
        "input": format!("{:?}", content_hash(b"an input")),
        "input_bytes": 8,
        "sources": ["server"],
    });
    assert_eq!(said, expected);
    assert!(world.has(b"an input"));
    assert_eq!(
        world.upload(b"an input").await.1,
        expected,
        "again is nothing new"
    );
}

#[tokio::test]
async fn what_is_wrong_is_said_with_a_code_and_in_words() {
    let world = World::new().await;
    let account = address(&client());
    let texts = json!({ "account": account, "model": "m", "texts": ["a"] });
    let blob = |bytes: usize| request(&blobs(), "application/octet-stream", vec![0; bytes]);
    let input_bytes_max = INPUT_BYTES_MAX as usize;
    let cases = [
        (
            request("/v1/nowhere", "application/json", "{}"),
            404,
            "no_such_route",
        ),
        (
            request(&blobs(), "application/octet-stream", ""),
            400,
            "bad_request",
        ),
        (
            request("/v1/blobs", "application/octet-stream", "of nobody"),
            400,
            "bad_request",
        ),
        (blob(input_bytes_max + 1), 413, "input_too_large"),
        (blob(BODY_BYTES_MAX + 1), 413, "body_too_large"),
        (request("/v1/inputs", "application/json", "{"), 400, "bad_request"),
        // A page that asks nobody for leave can send this kind.
        (
            request("/v1/inputs", "text/plain", texts.to_string()),
            400,
            "bad_request",
        ),
        (
            request("/v1/inputs", "application/json", texts.to_string()),
            404,
            "unknown_model",
        ),
    ];
    for (request, status, code) in cases {
        let uri = request.uri().clone();
        let response = world.ask(request).await;
        assert_eq!(response.status().as_u16(), status, "{uri}");
        let said = read(response).await;
        assert_eq!(said["error"]["code"], code, "{uri}: {said}");
        assert!(!said["error"]["message"].as_str().unwrap().is_empty());
    }
    assert_eq!(world.ask(blob(input_bytes_max)).await.status(), StatusCode::OK);
    // Texts are found to be too many where they are encoded.
    let texts = HttpError::from(TextInputError::from(InputFault::TooLarge)).into_response();
    assert_eq!(texts.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(read(texts).await["error"]["code"], "input_too_large");
}

#[tokio::test]
async fn what_is_no_request_for_texts_a_prompt_or_messages_is_said_by_name() {
    let world = World::new().await;
    for (wrong, said) in [
        (json!({ "model": "m", "text": ["a"] }), "unknown field `text`"),
        (
            json!({ "model": "m", "prompt": "a", "max_token": 1 }),
            "unknown field `max_token`",
        ),
        (json!({ "texts": ["a"] }), "missing field `model`"),
        (json!({ "account": "me", "model": "m", "texts": ["a"] }), "SS58"),
        (json!({ "model": "m" }), "one of `texts`, `prompt` and `messages`"),
        (
            json!({ "model": "m", "texts": ["a"], "prompt": "b" }),
            "one of `texts`, `prompt` and `messages`",
        ),
        (
            json!({ "model": "m", "prompt": "a", "messages": [] }),
            "one of `texts`, `prompt` and `messages`",
        ),
        (
            json!({ "model": "m", "messages": [{ "role": "user", "text": "a" }] }),
            "unknown field `text`",
        ),
        (json!({ "model": "m", "texts": ["a"], "seed": 7 }), "`seed`"),
        (json!({ "model": "m", "prompt": 7 }), "prompt: invalid type"),
    ] {
        let (status, answer) = world.post("/v1/inputs", &of_client(wrong.clone())).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(said), "{wrong}: {message}");
    }
    for right in [
        json!({ "model": "m", "texts": ["a"] }),
        json!({ "model": "m", "prompt": "a", "seed": 7 }),
        json!({ "model": "m", "messages": [{ "role": "user", "content": "a" }], "seed": 7 }),
    ] {
        let (status, answer) = world.post("/v1/inputs", &of_client(right)).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{answer}");
    }
}

#[tokio::test]
async fn pages_of_named_origins_may_call_and_no_others() {
    let world = World::new().await;
    let asked = |origin: &str| {
        let request = Request::options("/v1/inputs").header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        request
            .header("access-control-request-headers", "content-type")
            .body(Body::empty())
            .unwrap()
    };
    let allowed = |response: Response<Body>| response.headers().contains_key("access-control-allow-origin");
    assert!(allowed(world.ask(asked(PAGE)).await));
    assert!(!allowed(world.ask(asked("http://evil.example")).await));
    for wrong in ["localhost:5173", "http://localhost:5173/"] {
        assert!(router(world.backend.clone(), &[wrong.into()]).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn what_a_page_of_another_origin_sends_without_asking_for_leave_does_nothing() {
    let world = World::new().await;
    // One that names itself, and one whose name leads to this machine since its page was loaded.
    for (origin, host) in [
        ("http://evil.example", "127.0.0.1:8787"),
        ("http://evil.example:8787", "evil.example:8787"),
        ("null", "127.0.0.1:8787"),
    ] {
        let mut sent = request(&blobs(), "text/plain", "an input");
        sent.headers_mut().insert("origin", origin.parse().unwrap());
        sent.headers_mut().insert("host", host.parse().unwrap());
        let answer = world.ask(sent).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{origin}");
        assert_eq!(read(answer).await["error"]["code"], "foreign_origin");
        assert!(!world.has(b"an input"), "{origin}");
    }
    // Programs name no origin.
    let mut sent = request(&blobs(), "application/octet-stream", "an input");
    sent.headers_mut().remove("origin");
    assert_eq!(world.ask(sent).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn the_client_gets_its_output_as_numbers_or_as_bytes() {
    let world = World::new().await;
    world.task(ContentHash::zero(), settled());
    world.serves_output().await;
    let client = signed(&world, "//Client").await;
    let path = format!("/v1/tasks/{TASK}/output");
    let (status, said) = world.post(&path, &client).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    let hash = format!("{:?}", content_hash(&output()));
    assert_eq!(said, json!({ "output": hash, "vectors": [[0.5, 1.0]] }));

    let mut raw = request(&path, "application/json", client.to_string());
    raw.headers_mut()
        .insert("accept", "application/octet-stream".parse().unwrap());
    let bytes = axum::body::to_bytes(world.ask(raw).await.into_body(), 1 << 20)
        .await
        .unwrap();
    assert_eq!(bytes, output());
}

#[tokio::test]
async fn nobody_else_s_signature_opens_an_output_wherever_it_lies() {
    let world = World::new().await;
    world.task(ContentHash::zero(), settled());
    world.serves_output().await;
    let path = format!("/v1/tasks/{TASK}/output");
    let forged = signed(&world, "//Somebody").await;
    let refused = (StatusCode::FORBIDDEN, json!("bad_signature"));
    let ask = async || {
        let (status, said) = world.post(&path, &forged).await;
        (status, said["error"]["code"].clone())
    };
    // The task names this server as the source of its input: providers serve it without any ticket.
    let announcement = Announcement::new(content_hash(&output()));
    let source = [endpoint("server")];
    let announced = world
        .provider
        .announce_output(TASK, announcement, Readers::Only(&source));
    announced.await.unwrap();
    assert_eq!(ask().await, refused, "from a provider that serves this server");

    let (status, _) = world.post(&path, &signed(&world, "//Client").await).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(ask().await, refused, "from this server's own store");
}

#[tokio::test]
async fn an_output_is_for_who_has_posted_the_task_and_once_there_is_one() {
    let world = World::new().await;
    world.task(ContentHash::zero(), settled());
    let path = format!("/v1/tasks/{TASK}/output");
    let signature = hex::encode([1; 64]);
    let code = async |path: &str, body: Value| world.post(path, &body).await.1["error"]["code"].clone();
    let of =
        |account: &AccountId, signature: &str| json!({ "account": address(account), "signature": signature });
    assert_eq!(code(&path, of(&provider(), &signature)).await, "not_the_client");
    assert_eq!(code(&path, of(&client(), "0x12")).await, "bad_request");
    assert_eq!(
        code(&path, json!({ "account": "me", "signature": signature })).await,
        "bad_request"
    );
    assert_eq!(
        code("/v1/tasks/6/output", of(&client(), &signature)).await,
        "unknown_task"
    );
    let right = signed(&world, "//Client").await;
    assert_eq!(code(&path, right.clone()).await, "not_served");
    world.task(ContentHash::zero(), running());
    assert_eq!(code(&path, right).await, "no_result");
}

#[tokio::test]
async fn a_provider_that_names_another_s_output_as_its_own_is_not_served_from_this_server_s_store() {
    let world = World::new().await;
    world.task(ContentHash::zero(), settled());
    world.serves_output().await;
    let path = format!("/v1/tasks/{TASK}/output");
    let client = signed(&world, "//Client").await;
    assert_eq!(world.post(&path, &client).await.0, StatusCode::OK);
    // Nobody has it any more but this server: the hash in a claim proves nothing.
    world.net.set_down(&endpoint("provider"), true);
    assert!(world.has(&output()));
    let (status, said) = world.post(&path, &client).await;
    assert_eq!(
        (status, &said["error"]["code"]),
        (StatusCode::BAD_GATEWAY, &json!("not_served"))
    );
}
