//! Conversion to the exact form: the same bytes always, and a reason when there are none.

#![allow(clippy::unwrap_used)]

mod common;

use std::{collections::BTreeMap, fs, path::Path};

use common::{
    exact::{As, Published, safetensors},
    fetching::COMPLETE,
};
use serde_json::{Value, json};
use surety_engine::exact::{ExactCalibrator, kernels::Precision};
use surety_models::{
    Form, ModelError, ModelFile, ModelStore, StoreError, StoredModel,
    convert::{
        ConvertError, ConvertEvent, Head, Stage, check_heads, check_small, convert, convert_into, head_bytes,
        usual_precision,
    },
    format::{Weights, read, write},
    weights::{Activation, LlamaWeights, Quanta},
};
use surety_types::model::{ModelFamily, Operation, Pooling, Tier};
use tempfile::TempDir;

fn converted_as(published: &Published, kind: As) -> Result<(TempDir, StoredModel), ConvertError> {
    converted_to(published, kind, None)
}

fn converted_to(
    published: &Published,
    kind: As,
    precision: Option<Precision>,
) -> Result<(TempDir, StoredModel), ConvertError> {
    let home = tempfile::tempdir().unwrap();
    let source = tempfile::tempdir().unwrap();
    published.write(source.path(), kind);
    let store = ModelStore::new(home.path());
    convert(
        source.path(),
        &store,
        "tiny-exact",
        precision,
        &ExactCalibrator,
        &mut |_| (),
    )
    .map(|stored| (home, stored))
}

fn both_precisions<const N: usize>(models: [Published; N]) -> impl Iterator<Item = (Published, Precision)> {
    let both = [Precision::Int8, Precision::Int12];
    models
        .into_iter()
        .flat_map(move |model| both.map(|precision| (model.clone(), precision)))
}

fn converted(published: &Published) -> (TempDir, StoredModel) {
    converted_as(published, As::F32).unwrap()
}

fn weights(stored: &StoredModel) -> Weights {
    let files = stored.read().unwrap();
    read(files.weights, &files.config, files.manifest.family).unwrap()
}

fn llama(stored: &StoredModel) -> LlamaWeights {
    match weights(stored) {
        Weights::Llama(weights) => weights,
        Weights::Bert(_) => panic!("a Llama became a BERT"),
    }
}

fn error(published: &Published) -> ModelError {
    let error = match converted_as(published, As::F32).err() {
        Some(ConvertError::Model(error)) => error,
        other => panic!("{other:?}"),
    };
    // Values alone are read after it is known whether there is a conversion.
    let is_of_a_value = matches!(error, ModelError::NotFinite(_));
    assert_eq!(foreseen(published), (!is_of_a_value).then(|| error.clone()));
    error
}

/// What is found out before the weights are here.
fn foreseen(published: &Published) -> Option<ModelError> {
    let folder = tempfile::tempdir().unwrap();
    published.write_small(folder.path());
    let file = safetensors(&published.tensors, As::F32);
    let head = || {
        let bytes = head_bytes(&file[..8], file.len() as u64)? as usize;
        Head::parse(&file[..bytes], file.len() as u64)
    };
    let checked = || {
        check_small(folder.path())?;
        check_heads(folder.path(), vec![head()?])
    };
    match checked() {
        Ok(()) => None,
        Err(ConvertError::Model(error)) => Some(error),
        Err(other) => panic!("{other}"),
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn what_is_converted_reads_back_as_it_was_written() {
    let all = both_precisions([
        Published::bert(),
        Published::llama(true, false),
        Published::llama(false, true),
        Published::qwen3(),
    ]);
    for (published, precision) in all {
        let (_home, stored) = converted_to(&published, As::F32, Some(precision)).unwrap();
        stored.verify().unwrap();
        assert_eq!(names(&stored.path), COMPLETE);
        let manifest = &stored.manifest;
        assert_eq!(manifest.tier, Tier::Exact);
        let weights = weights(&stored);
        assert_eq!(manifest.family, weights.family());
        assert_eq!(manifest.exact, Some(weights.form(Pooling::Mean).unwrap()));
        let architecture = weights.architecture(Pooling::Mean).unwrap();
        assert_eq!(Precision::from(architecture.precision), precision);
        let mut again = Vec::new();
        write(&weights.parts(), &mut again).unwrap();
        assert_eq!(again, stored.read().unwrap().weights.into_memory().unwrap());
    }
    let (_home, stored) = converted(&Published::bert());
    assert_eq!(stored.manifest.operations.to_vec(), [Operation::Embed]);
    let (_home, stored) = converted(&Published::llama(true, false));
    assert_eq!(stored.manifest.operations.to_vec(), [Operation::Generate]);
}

#[test]
fn a_file_of_two_precisions_is_refused() {
    let (_home, stored) = converted(&Published::llama(false, false));
    let mut weights = llama(&stored);
    let up = &mut weights.layers[0].up;
    up.q = Quanta::Int12(vec![1; up.q.len()]);
    let mut file = Vec::new();
    write(&Weights::Llama(weights).parts(), &mut file).unwrap();
    let config = stored.read().unwrap().config;
    let refused = read(file, &config, ModelFamily::Llama);
    let wrong = matches!(&refused, Err(ModelError::WrongType { name, .. }) if name.ends_with("up_proj.q"));
    assert!(wrong, "{:?}", refused.err());
}

/// The bits of a conversion are what people on other machines get: a change of any step shows here. It is
/// right only together with new hashes for every known model.
#[test]
fn conversions_are_the_ones_that_everybody_gets() {
    let models = both_precisions([
        Published::bert(),
        Published::llama(true, false),
        Published::llama(false, true),
        Published::qwen3(),
    ]);
    let ids: Vec<String> = models
        .map(|(published, precision)| {
            let (_home, stored) = converted_to(&published, As::F32, Some(precision)).unwrap();
            format!("{:?}", stored.manifest.id())
        })
        .collect();
    assert_eq!(
        ids,
        [
            "0xa21549b19fbd08c6886a88f4919da9fd14f8b34c524c1c60953db51dd19e3fab",
            "0xfb0d6157c1b60a2fe7a858e0b276bc8fe1eeaa977bd14321839df2c1e73c582d",
            "0x5988252138420d9d6f4e03553b9f16c214fd49ae32915cd97c4ed4d8bff849f9",
            "0xbee753ca9ac96abd6ecaff64a80b0c986218d5f0e80c5611f0a0dd69ba9ff825",
            "0x720f6cd8509529a381d6004db33e83e47da850b409bb2128234569a1b58ede38",
            "0xf812453e5a4c397e52ee61d63c572c36aed767a49094ceb83dd177e362e671c7",
            "0x81551bcb145dcff840173f007aabc7dff364da4fc29d3df859357f491f463d73",
            "0x478fa4a6000c8bf17acfaf32929c0d94fd6acb42d76c5f3ea46b83e8a43695a6",
        ]
    );
}

#[test]
fn encoders_are_finer_than_decoders_unless_somebody_wants_otherwise() {
    for (published, family) in [
        (Published::bert(), ModelFamily::Bert),
        (Published::llama(true, false), ModelFamily::Llama),
    ] {
        let (_home, stored) = converted(&published);
        let architecture = stored.manifest.exact.unwrap().architecture;
        let usual = usual_precision(family, architecture.inner as usize);
        assert_eq!(Precision::from(architecture.precision), usual);
    }
    // A MiniLM's, a BERT base's and a Llama's longest products.
    assert_eq!(usual_precision(ModelFamily::Bert, 1536), Precision::Int12);
    assert_eq!(usual_precision(ModelFamily::Bert, 3072), Precision::Int8);
    assert_eq!(usual_precision(ModelFamily::Llama, 384), Precision::Int8);
}

#[test]
fn half_precision_sources_say_the_same() {
    let published = Published::llama(false, false);
    let whole = converted(&published).1.manifest;
    for kind in [As::F16, As::BF16] {
        assert_eq!(converted_as(&published, kind).unwrap().1.manifest, whole);
    }
}

#[test]
fn a_prefix_of_all_names_changes_nothing() {
    let plain = Published::bert();
    let mut prefixed = plain.clone();
    prefixed.tensors = plain
        .tensors
        .iter()
        .map(|(name, tensor)| (format!("bert.{name}"), tensor.clone()))
        .collect();
    assert_eq!(converted(&prefixed).1.manifest, converted(&plain).1.manifest);
}

#[test]
fn a_model_in_several_files_is_put_together() {
    let published = Published::llama(false, false);
    let source = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    published.write_small(source.path());
    let mut index = BTreeMap::new();
    let mut parts = [BTreeMap::new(), BTreeMap::new()];
    for (number, (name, tensor)) in published.tensors.iter().enumerate() {
        index.insert(name.clone(), format!("model-{}.safetensors", number % 2));
        parts[number % 2].insert(name.clone(), tensor.clone());
    }
    for (number, part) in parts.iter().enumerate() {
        let path = source.path().join(format!("model-{number}.safetensors"));
        fs::write(path, safetensors(part, As::F32)).unwrap();
    }
    let write_index = |index: &BTreeMap<String, String>| {
        let json = json!({ "weight_map": index }).to_string();
        fs::write(source.path().join("model.safetensors.index.json"), json).unwrap();
    };
    let store = ModelStore::new(home.path());
    write_index(&index);
    let stored = convert(
        source.path(),
        &store,
        "tiny-exact",
        None,
        &ExactCalibrator,
        &mut |_| (),
    )
    .unwrap();
    assert_eq!(stored.manifest, converted(&published).1.manifest);
    for outside in ["../model.safetensors", "/etc/passwd", ".hidden"] {
        index.insert("x".into(), outside.into());
        write_index(&index);
        let refused = convert(
            source.path(),
            &store,
            "other",
            None,
            &ExactCalibrator,
            &mut |_| (),
        )
        .unwrap_err();
        assert!(
            matches!(refused, ConvertError::Model(ModelError::ShardName(_))),
            "{refused}"
        );
    }
}

#[test]
fn quantized_rows_are_near_the_published_ones() {
    let published = Published::llama(false, true);
    let (_home, stored) = converted(&published);
    let weights = llama(&stored);
    let layer = &weights.layers[1];
    let smoothing_scale = layer.down_smoothing.as_ref().unwrap();
    let (_, values) = &published.tensors["model.layers.1.mlp.down_proj.weight"];
    for (row, values) in values.chunks(12).enumerate() {
        let (q, scale) = (layer.down.q.row(12, row).unwrap(), layer.down.scales[row]);
        for (column, value) in values.iter().enumerate() {
            let quantized = f32::from(q[column]) * scale * smoothing_scale[column];
            // Half a step, in the units of this column.
            assert!((quantized - value).abs() <= 0.51 * scale * smoothing_scale[column] + 0.13 * value.abs());
        }
    }
    assert_eq!(layer.query.bias.as_ref().map(Vec::len), Some(8));
    assert_eq!((weights.heads, weights.kv_heads, weights.head_dim), (4, 2, 2));
    assert_eq!(stored.manifest.text.stop.to_vec(), [2, 3]);
    assert_eq!(weights.head.map(|head| head.outputs), Some(40));
    assert!(
        smoothing_scale
            .iter()
            .any(|smoothing_scale| *smoothing_scale != 1.0)
    );
}

#[test]
fn what_is_wrong_with_a_source_is_named() {
    const QUERY: &str = "model.layers.1.self_attn.q_proj.weight";
    let with = |change: &dyn Fn(&mut Published)| {
        let mut published = Published::llama(false, false);
        change(&mut published);
        error(&published)
    };
    let missing = with(&|published| drop(published.tensors.remove(QUERY)));
    assert_eq!(missing, ModelError::MissingTensor(QUERY.into()));
    let shape = with(&|published| published.tensors.get_mut(QUERY).unwrap().0 = vec![4, 16]);
    assert!(matches!(shape, ModelError::WrongShape { .. }), "{shape}");
    for value in [f32::NAN, f32::INFINITY] {
        let poisoned = with(&|published| published.tensors.get_mut(QUERY).unwrap().1[63] = value);
        assert_eq!(poisoned, ModelError::NotFinite(QUERY.into()));
    }
    let vocabulary = with(&|published| {
        published.config["vocab_size"] = 30.into();
        for name in ["model.embed_tokens.weight", "lm_head.weight"] {
            let (shape, values) = published.tensors.get_mut(name).unwrap();
            *shape = vec![30, 8];
            values.truncate(240);
        }
    });
    assert!(
        matches!(vocabulary, ModelError::Vocabulary { .. }),
        "{vocabulary}"
    );
}

#[test]
fn configurations_that_would_be_misread_are_refused() {
    let with = |field: &str, value: Value| {
        let mut published = Published::llama(false, false);
        published.config[field] = value;
        error(&published)
    };
    for (field, value) in [
        ("model_type", json!("gemma")),
        ("model_type", json!(null)),
        ("hidden_act", json!("gelu")),
        ("sliding_window", json!(4)),
        ("rope_scaling", json!({"type": "linear", "factor": 2.0})),
        ("rope_scaling", json!({"rope_type": "yarn", "factor": 4.0})),
        ("rope_scaling", json!({"rope_type": "llama3", "factor": 8.0})),
        ("rope_theta", json!(-1.0)),
        ("num_key_value_heads", json!(3)),
        ("head_dim", json!(3)),
        ("rms_norm_eps", json!(0.0)),
        ("eos_token_id", json!(40)),
        ("eos_token_id", json!(vec![2; 9])),
        ("partial_rotary_factor", json!(0.5)),
        ("hidden_size", json!(-8)),
        ("hidden_size", json!(8.5)),
        ("quantization_config", json!({"quant_method": "gptq", "bits": 4})),
        ("architectures", json!(["LlamaForSequenceClassification"])),
        ("architectures", json!(["LlamaModel"])),
    ] {
        let refused = with(field, value.clone());
        assert!(
            matches!(refused, ModelError::Config(_)),
            "{field} {value}: {refused}"
        );
    }
    for (field, value) in [
        ("hidden_size", json!(0)),
        ("num_hidden_layers", json!(usize::MAX)),
        ("vocab_size", json!(4_000_001)),
        ("num_attention_heads", json!(1_000)),
        ("num_key_value_heads", json!(0)),
    ] {
        let refused = with(field, value.clone());
        assert!(
            matches!(refused, ModelError::Dimension { .. }),
            "{field} {value}: {refused}"
        );
    }
    let mut published = Published::bert();
    published.config["hidden_act"] = "gelu_new".into();
    let (_home, stored) = converted(&published);
    let Weights::Bert(weights) = weights(&stored) else {
        panic!("a BERT became a Llama");
    };
    assert_eq!(weights.activation, Activation::GeluTanh);
    published.config["position_embedding_type"] = "relative_key".into();
    assert!(matches!(error(&published), ModelError::Config(_)));
}

#[test]
fn an_encoder_without_the_head_that_its_authors_gave_it_would_be_another_model() {
    let with = |architectures: Value| {
        let mut published = Published::bert();
        published.config["architectures"] = architectures;
        published
    };
    for same in [json!(null), json!(["BertModel"]), json!(["BertForMaskedLM"])] {
        assert_eq!(foreseen(&with(same.clone())), None, "{same}");
    }
    let reranker = error(&with(json!(["BertForSequenceClassification"]))).to_string();
    assert!(
        reranker.contains("BertForSequenceClassification") && reranker.contains("BertModel"),
        "{reranker}"
    );
}

#[test]
fn a_model_that_differs_is_not_replaced() {
    let home = tempfile::tempdir().unwrap();
    let source = tempfile::tempdir().unwrap();
    let store = ModelStore::new(home.path());
    let convert = |name: &str| convert(source.path(), &store, name, None, &ExactCalibrator, &mut |_| ());
    Published::bert().write(source.path(), As::F32);
    let first = convert("tiny").unwrap();
    // Damaged files of the same model are, though.
    fs::write(first.path.join("model.safetensors"), "damaged").unwrap();
    convert("tiny").unwrap().verify().unwrap();
    Published::llama(true, false).write(source.path(), As::F32);
    assert!(matches!(convert("tiny"), Err(ConvertError::NameTaken { .. })));
    assert_eq!(store.by_name("tiny").unwrap().manifest, first.manifest);
    let bad = convert("../tiny");
    assert!(matches!(
        bad,
        Err(ConvertError::Store(StoreError::InvalidName(_)))
    ));
    let long = convert(&"x".repeat(65));
    assert!(matches!(long, Err(ConvertError::NameTooLong(_))));
    // Nothing is left behind.
    assert_eq!(names(store.path()), ["tiny"]);
}

#[test]
fn every_stage_is_reported_to_its_end() {
    let source = tempfile::tempdir().unwrap();
    let into = tempfile::tempdir().unwrap();
    Published::bert().write(source.path(), As::F32);
    let mut events = Vec::new();
    let precision = Some(Precision::Int8);
    convert_into(
        source.path(),
        into.path(),
        "tiny",
        precision,
        &ExactCalibrator,
        &mut |event| events.push(event),
    )
    .unwrap();
    assert_eq!(events[0], ConvertEvent::MeanAssumed);
    let counts = events[1..].iter().map(|event| match event {
        ConvertEvent::Progress { stage, done, total } => (*stage, (*done, *total)),
        ConvertEvent::MeanAssumed => panic!("it is said once"),
    });
    let counts: Vec<_> = counts.collect();
    for stage in [Stage::Quantizing, Stage::Smoothing, Stage::Writing] {
        let (_, (done, total)) = counts.iter().rfind(|(of, _)| *of == stage).unwrap();
        assert_eq!(done, total, "{stage:?}");
    }
    assert!(counts.iter().any(|(stage, _)| *stage == Stage::Calibrating));
    let weights = fs::read(into.path().join(ModelFile::Weights.name())).unwrap();
    let config = fs::read(into.path().join(ModelFile::Config.name())).unwrap();
    assert!(read(weights.clone(), &config, ModelFamily::Bert).is_ok());
    assert!(read(weights, &config, ModelFamily::Llama).is_err());
}
