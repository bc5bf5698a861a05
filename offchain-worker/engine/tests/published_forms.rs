//! What the authors of a model say of it beside its weights: how it pools, what ends a generation, which
//! decoder it is.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;

use common::{
    exact::{As, Published},
    fetching::hub,
    server::{Act, serve_beside},
};
use serde_json::{Value, json};
use surety_engine::{Embeddings, exact::ExactCalibrator, open};
use surety_model_fetch::{FetchError, FetchEvent, HubModel, fetch_from_hub};
use surety_models::{
    ModelError, ModelStore, StoredModel,
    convert::{ConvertError, ConvertEvent, convert},
};
use surety_types::model::{ModelFamily, Pooling};
use tempfile::TempDir;

const MODULES: &str = r#"[
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
]"#;
const FIRST: &str =
    r#"{"word_embedding_dimension": 8, "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#;
const MEAN: &str = r#"{"embedding_dimension": 8, "pooling_mode": "mean"}"#;

/// Converts a model with these files beside it, and says whether the mean was assumed.
fn converted(
    published: &Published,
    beside: &[(&str, &str)],
) -> Result<(TempDir, StoredModel, bool), ConvertError> {
    let home = tempfile::tempdir().unwrap();
    let source = tempfile::tempdir().unwrap();
    published.write(source.path(), As::F32);
    for (name, text) in beside {
        let path = source.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let store = ModelStore::new(home.path());
    let mut assumed = false;
    let mut look = |event| assumed |= event == ConvertEvent::MeanAssumed;
    let stored = convert(source.path(), &store, "tiny", None, &ExactCalibrator, &mut look);
    if stored.is_err() {
        assert_eq!(fs::read_dir(store.path()).unwrap().count(), 0);
    }
    Ok((home, stored?, assumed))
}

fn refused(published: &Published, beside: &[(&str, &str)]) -> ModelError {
    match converted(published, beside).err() {
        Some(ConvertError::Model(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn pooling(stored: &StoredModel) -> Pooling {
    stored.manifest.exact.as_ref().unwrap().architecture.pooling
}

#[test]
fn an_encoder_pools_as_its_authors_say() {
    let published = Published::bert();
    let said = |config| [("modules.json", MODULES), ("1_Pooling/config.json", config)];
    let (_, unsaid, assumed) = converted(&published, &[]).unwrap();
    assert!(assumed);
    let (_, mean, assumed) = converted(&published, &said(MEAN)).unwrap();
    assert!(!assumed);
    assert_eq!(mean.manifest, unsaid.manifest);
    let (_home, first, assumed) = converted(&published, &said(FIRST)).unwrap();
    assert!(!assumed);
    assert_eq!((pooling(&mean), pooling(&first)), (Pooling::Mean, Pooling::First));
    assert_eq!(first.manifest.weights, mean.manifest.weights);
    assert_ne!(first.manifest.id(), mean.manifest.id());

    // It is the manifest that says so from then on: the files are as they were.
    let engine = open(first.read().unwrap()).unwrap();
    let vectors = |text: &str| {
        let output = common::run(&engine, 1, text).output;
        let embeddings = Embeddings::decode(&output).unwrap();
        embeddings.rows().map(<[f32]>::to_vec).collect::<Vec<_>>()
    };
    let found = vectors("a b c\na b c");
    assert_eq!(found[0], found[1]);
    let (_home, mean, _) = converted(&published, &said(MEAN)).unwrap();
    let by_mean = common::run(&open(mean.read().unwrap()).unwrap(), 1, "a b c").output;
    assert_ne!(
        Embeddings::decode(&by_mean).unwrap().rows().next().unwrap(),
        found[0]
    );
}

#[test]
fn an_encoder_that_pools_in_another_way_is_refused_by_its_name() {
    let published = Published::bert();
    let with = |config: &str| {
        let beside = [("modules.json", MODULES), ("1_Pooling/config.json", config)];
        refused(&published, &beside).to_string()
    };
    assert!(with(r#"{"pooling_mode": "max"}"#).contains("pools by max"));
    assert!(with(r#"{"pooling_mode_lasttoken": true}"#).contains("pools by lasttoken"));
    assert!(with(r#"{"pooling_mode": ["mean", "cls"]}"#).contains("mean and cls"));
    let dense = MODULES.replace("models.Normalize", "models.Dense");
    let dense = [("modules.json", &dense[..]), ("1_Pooling/config.json", MEAN)];
    assert!(refused(&published, &dense).to_string().contains("a module Dense"));
    let alone = refused(&published, &[("1_Pooling/config.json", FIRST)]);
    assert!(matches!(alone, ModelError::Pooling(_)), "{alone}");
    // What says how an encoder pools says nothing of a decoder.
    let decoder = Published::llama(true, false);
    let beside = [("modules.json", MODULES), ("1_Pooling/config.json", FIRST)];
    let (_, stored, assumed) = converted(&decoder, &beside).unwrap();
    assert_eq!((pooling(&stored), assumed), (Pooling::Mean, false));
}

/// What a hub holds as `owner/tiny`.
fn fetched(beside: &[(&str, &str)]) -> (Result<StoredModel, FetchError>, bool) {
    let home = tempfile::tempdir().unwrap();
    let store = ModelStore::new(home.path());
    let (url, _) = serve_beside(Published::bert().files(), beside, &[Act::Serve]);
    let model: HubModel = "owner/tiny".parse().unwrap();
    let mut assumed = false;
    let mut look = |event| assumed |= event == FetchEvent::Converting(ConvertEvent::MeanAssumed);
    let stored = fetch_from_hub(&store, &model, "tiny", &hub(&url), &ExactCalibrator, &mut look);
    (stored, assumed)
}

#[test]
fn what_a_hub_says_of_pooling_is_fetched_with_the_model() {
    let (stored, assumed) = fetched(&[]);
    assert_eq!((pooling(&stored.unwrap()), assumed), (Pooling::Mean, true));
    let (stored, assumed) = fetched(&[("modules.json", MODULES), ("1_Pooling/config.json", FIRST)]);
    assert_eq!((pooling(&stored.unwrap()), assumed), (Pooling::First, false));
    let (refused, _) = fetched(&[("modules.json", MODULES)]);
    let refused = refused.unwrap_err();
    assert!(
        refused.to_string().contains("1_Pooling/config.json is missing"),
        "{refused}"
    );
}

#[test]
fn what_ends_a_generation_is_what_its_own_configuration_lists() {
    let published = Published::llama(true, false);
    let (_home, stored, _) = converted(&published, &[]).unwrap();
    assert_eq!(stored.manifest.text.stop.to_vec(), [2, 3]);
    let beside = [("generation_config.json", r#"{"eos_token_id": [1, 3, 2]}"#)];
    let (_home, stored, _) = converted(&published, &beside).unwrap();
    assert_eq!(stored.manifest.text.stop.to_vec(), [1, 3, 2]);
    // That file is not kept, and the model runs without it.
    open(stored.read().unwrap()).unwrap();
    stored.text().unwrap();
    let unknown = [("generation_config.json", r#"{"eos_token_id": 40}"#)];
    assert!(matches!(refused(&published, &unknown), ModelError::Config(_)));
}

const TEMPLATE: &str = "chat_template.jinja";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

fn named(names: &[&str]) -> String {
    let one = |name: &&str| json!({"name": name, "template": format!("{name} of the list")});
    let all: Vec<_> = names.iter().map(one).collect();
    json!({ "chat_template": all }).to_string()
}

/// Files of a published model: their names, and what is in them.
type Files<'a> = &'a [(&'a str, &'a str)];

#[test]
fn of_several_chat_templates_the_default_one_is_the_models() {
    let published = Published::llama(true, false);
    let default = |text| ("additional_chat_templates/default.jinja", text);
    let tools = ("additional_chat_templates/tool_use.jinja", "with tools");
    let (list, text) = (named(&["tool_use", "default"]), r#"{"chat_template": "a text"}"#);
    let (in_list, in_text) = ((TOKENIZER_CONFIG, list.as_str()), (TOKENIZER_CONFIG, text));
    let (own, none) = ((TEMPLATE, "a file"), named(&[]));
    let cases: [(Files, Option<&str>); 7] = [
        (&[in_text], Some("a text")),
        (&[in_list], Some("default of the list")),
        (&[in_list, default("by its name"), tools], Some("by its name")),
        (&[in_list, own], Some("a file")),
        (&[in_text, tools, own], Some("a file")),
        (&[(TOKENIZER_CONFIG, none.as_str())], None),
        (&[(TOKENIZER_CONFIG, r#"{"chat_template": null}"#)], None),
    ];
    for (beside, expected) in cases {
        let (_home, stored, _) = converted(&published, beside).unwrap();
        let kept = fs::read_to_string(stored.path.join(TEMPLATE)).ok();
        assert_eq!(kept.as_deref(), expected, "{beside:?}");
        assert_eq!(stored.manifest.text.template.is_some(), expected.is_some());
    }
}

#[test]
fn chat_templates_of_which_none_is_meant_are_refused_by_their_names() {
    let published = Published::llama(true, false);
    let list = named(&["tool_use", "rag"]);
    let one = named(&["tool_use"]);
    let twice = named(&["default", "default"]);
    let in_list = |text| (TOKENIZER_CONFIG, text);
    let cases: [(Files, &[&str]); 5] = [
        (
            &[in_list(list.as_str())],
            &[TOKENIZER_CONFIG, "rag, tool_use", TEMPLATE],
        ),
        // What is for tools alone is not asked for anything else.
        (&[in_list(one.as_str())], &["tool_use"]),
        (
            &[
                in_list(r#"{"chat_template": "a text"}"#),
                ("additional_chat_templates/rag.jinja", "documents"),
            ],
            &["additional_chat_templates", "rag", TEMPLATE],
        ),
        (&[in_list(twice.as_str())], &["two", "default"]),
        (
            &[in_list(r#"{"chat_template": 7}"#)],
            &["chat_template is neither"],
        ),
    ];
    for (beside, words) in cases {
        let said = refused(&published, beside).to_string();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

/// A Qwen 2 or a Mistral with the weights of the tiny Llama.
fn decoder(model_type: &str) -> Published {
    let mut published = Published::llama(true, false);
    if model_type == "qwen2" {
        for layer in 0..2 {
            for (name, outputs) in [("q", 8), ("k", 4), ("v", 4)] {
                let values = (0..outputs).map(|i| 0.5 - 0.25 * i as f32).collect();
                let name = format!("model.layers.{layer}.self_attn.{name}_proj.bias");
                published.tensors.insert(name, (vec![outputs], values));
            }
        }
    }
    let config = published.config.as_object_mut().unwrap();
    config.remove("attention_bias");
    config.remove("mlp_bias");
    published.config["model_type"] = model_type.into();
    published
}

#[test]
fn qwen_2_and_mistral_become_decoders() {
    for model_type in ["qwen2", "mistral"] {
        let (_home, stored, _) = converted(&decoder(model_type), &[]).unwrap();
        assert_eq!(stored.manifest.family, ModelFamily::Llama);
        open(stored.read().unwrap()).unwrap();
    }
    // Biases that it should have.
    let mut unbiased = decoder("qwen2");
    unbiased.tensors.remove("model.layers.1.self_attn.k_proj.bias");
    let missing = refused(&unbiased, &[]);
    assert_eq!(
        missing,
        ModelError::MissingTensor("model.layers.1.self_attn.k_proj.bias".into())
    );
}

#[test]
fn qwen_3_becomes_a_decoder_of_a_family_of_its_own() {
    let published = Published::qwen3();
    let (_home, stored, _) = converted(&published, &[]).unwrap();
    assert_eq!(stored.manifest.family, ModelFamily::Qwen3);
    let architecture = &stored.manifest.exact.as_ref().unwrap().architecture;
    // Not the width by the heads.
    assert_eq!(
        (architecture.width, architecture.heads, architecture.head_dim),
        (8, 4, 4)
    );
    open(stored.read().unwrap()).unwrap();
    for name in ["q_norm", "k_norm"] {
        let mut lacking = published.clone();
        let name = format!("model.layers.1.self_attn.{name}.weight");
        let (shape, values) = lacking.tensors.remove(&name).unwrap();
        assert_eq!(refused(&lacking, &[]), ModelError::MissingTensor(name.clone()));
        // One norm for all heads together is another architecture's.
        let (shape, values) = ([shape, vec![4]].concat(), values.repeat(4));
        lacking.tensors.insert(name, (shape, values));
        let wrong = refused(&lacking, &[]);
        assert!(matches!(wrong, ModelError::WrongShape { .. }), "{wrong}");
    }
}

#[test]
fn decoders_that_would_be_misread_are_refused_by_their_names() {
    let with = |model_type: &str, fields: Value| {
        let mut published = match model_type {
            "qwen3" => Published::qwen3(),
            _ => decoder(model_type),
        };
        for (field, value) in fields.as_object().unwrap() {
            published.config[field] = value.clone();
        }
        converted(&published, &[]).err().map(|error| error.to_string())
    };
    for (model_type, fields) in [
        (
            "qwen2",
            json!({"use_sliding_window": false, "sliding_window": 32}),
        ),
        ("qwen2", json!({"use_sliding_window": true, "sliding_window": 64})),
        ("mistral", json!({"sliding_window": null})),
        ("mistral", json!({"sliding_window": 64})),
        ("mistral", json!({"partial_rotary_factor": 1.0})),
        (
            "qwen2",
            json!({"layer_types": ["full_attention", "full_attention"]}),
        ),
        (
            "qwen3",
            json!({"use_sliding_window": false, "sliding_window": 32, "max_window_layers": 2}),
        ),
        ("qwen3", json!({"attention_bias": false, "rope_scaling": null})),
    ] {
        assert_eq!(with(model_type, fields.clone()), None, "{model_type} {fields}");
    }
    for (model_type, fields, said) in [
        ("qwen3", json!({"attention_bias": true}), "attention_bias is true"),
        ("qwen3", json!({"head_dim": null}), "head_dim is missing"),
        ("qwen3", json!({"head_dim": 0}), "head_dim is 0"),
        ("qwen3", json!({"head_dim": 3}), "head_dim is odd"),
        ("qwen3", json!({"head_dim": 514}), "head_dim is 514"),
        (
            "qwen3",
            json!({"use_sliding_window": true, "sliding_window": 63}),
            "sliding_window is 63",
        ),
        (
            "qwen3",
            json!({"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}}),
            "of the type \"yarn\"",
        ),
        (
            "qwen3",
            json!({"num_key_value_heads": null}),
            "num_key_value_heads is missing",
        ),
        ("qwen3", json!({"rms_norm_eps": 0.0}), "rms_norm_eps"),
        (
            "qwen2",
            json!({"use_sliding_window": true, "sliding_window": 63}),
            "sliding_window is 63",
        ),
        ("mistral", json!({"sliding_window": 63}), "sliding_window is 63"),
        // Where nothing is said Mistral's is 4,096.
        (
            "mistral",
            json!({"max_position_embeddings": 4097}),
            "sliding_window is 4096",
        ),
        (
            "qwen2",
            json!({"use_sliding_window": true, "max_position_embeddings": 4097}),
            "sliding_window is 4096",
        ),
        (
            "qwen2",
            json!({"layer_types": ["linear_attention"]}),
            "linear_attention",
        ),
        (
            "qwen2",
            json!({"num_key_value_heads": null}),
            "num_key_value_heads is missing",
        ),
        (
            "qwen2",
            json!({"rope_scaling": {"type": "yarn", "factor": 4.0}}),
            "of the type \"yarn\"",
        ),
        (
            "mistral",
            json!({"partial_rotary_factor": 0.5}),
            "partial_rotary_factor",
        ),
    ] {
        let error = with(model_type, fields.clone()).unwrap_or_default();
        assert!(error.contains(said), "{model_type} {fields}: {error}");
    }
    for other in [
        "qwen2_moe",
        "qwen3_moe",
        "qwen3_next",
        "qwen3_vl",
        "gemma2",
        "gemma3_text",
        "phi3",
        "mixtral",
        "gpt_oss",
        "deepseek_v3",
    ] {
        let error = with("qwen2", json!({"model_type": other})).unwrap_or_default();
        let said = format!("model_type is {other}, but must be bert, llama, mistral, qwen2 or qwen3");
        assert!(error.contains(&said), "{error}");
    }
}
