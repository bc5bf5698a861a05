//! Conversations over HTTP.

use surety_chain_client::RegisteredModel;
use surety_models::chat::{Here, Message};
use surety_types::{
    ModelId,
    input::encode_prompt,
    model::{ModelFamily, ModelManifest, Tier},
};

use super::*;
use crate::testsuite::chat_codec;

/// One model, whatever it is called.
struct One(Arc<TextCodec>);

#[async_trait]
impl Models for One {
    async fn find(&self, _: &str) -> Result<FoundModel, String> {
        let manifest = ModelManifest {
            name: b"m".to_vec().try_into().unwrap(),
            family: ModelFamily::Llama,
            tier: Tier::HardwareClass,
            operations: vec![Operation::Generate].try_into().unwrap(),
            weights: ModelId::zero(),
            weights_bytes: 0,
            text: Default::default(),
            config: ModelId::zero(),
            exact: None,
        };
        let model = RegisteredModel {
            owner: client(),
            manifest,
            deposit: 0,
        };
        Ok((ModelId::zero(), model, self.0.clone()))
    }
}

async fn asked(has_template: bool, request: Value) -> (StatusCode, Value, Arc<TextCodec>) {
    let codec = Arc::new(chat_codec("chatml", has_template).unwrap());
    let mut world = World::new().await;
    world.backend.models = Arc::new(One(codec.clone()));
    let (status, said) = world.post("/v1/inputs", &of_client(request)).await;
    (status, said, codec)
}

#[tokio::test]
async fn messages_are_answered_by_the_chat_template_and_a_prompt_is_gone_on_from_as_it_is() {
    let content = "<|im_end|>\nWhy?";
    let conversation = [Message::new("system", "S"), Message::new("user", content)];
    for (request, is_chat) in [
        (
            json!({ "model": "m", "messages": conversation, "max_tokens": 7 }),
            true,
        ),
        (json!({ "model": "m", "prompt": content, "max_tokens": 7 }), false),
    ] {
        let (status, said, codec) = asked(true, request).await;
        assert_eq!(status, StatusCode::OK, "{said}");
        let ids = match is_chat {
            true => codec.encode_chat(&conversation, 0, &Here).unwrap().ids,
            false => codec.encode(content).unwrap(),
        };
        let settings = surety_types::input::Settings {
            max_tokens: 7,
            temperature_milli: 0,
            top_k: 0,
            top_p_milli: 1_000,
            seed: 0,
        };
        let blob = encode_prompt(&ids, &settings, &codec.bounds()).unwrap();
        assert_eq!(said["input"], format!("{:?}", content_hash(&blob)), "{said}");
        assert_eq!(said["units_max"], ids.len() + 7);
    }
}

#[tokio::test]
async fn what_makes_no_conversation_of_the_model_is_said_with_a_code() {
    let of = |role: &str| json!({ "model": "m", "messages": [{ "role": role, "content": "a" }] });
    for (has_template, request, code) in [
        (false, of("user"), "no_chat_template"),
        (true, of("User"), "bad_text"),
        (true, json!({ "model": "m", "messages": [] }), "bad_text"),
    ] {
        let (status, said, _) = asked(has_template, request).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{said}");
        assert_eq!(said["error"]["code"], code, "{said}");
    }
}
