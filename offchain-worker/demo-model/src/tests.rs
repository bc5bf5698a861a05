//! Short trainings of tiny networks.
#![allow(clippy::unwrap_used)]

use std::{fs, sync::Mutex};

use candle_core::{DType, Device, Tensor, safetensors as tensors};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::{Cache, Llama, LlamaConfig};

use super::*;

fn tiny() -> TrainOptions {
    TrainOptions {
        dimensions: Dimensions {
            vocabulary: 320,
            hidden: 32,
            layers: 2,
            heads: 4,
            kv_heads: 2,
            head_dim: 8,
            feed_forward: 64,
            context: 48,
        },
        steps: 30,
        batch: 6,
        window: 32,
        learning_rate: 1e-2,
        seed: 5,
        threads: 2,
    }
}

/// Sentences with something to learn from.
fn text() -> String {
    let mut random = Random::new(11);
    let mut pick = |words: &[&'static str]| words[random.below(words.len())];
    let mut text = String::new();
    for _ in 0..200 {
        let who = pick(&["The captain", "A sailor", "The cook", "Nobody"]);
        let what = pick(&["saw", "heard", "feared", "followed"]);
        let whom = pick(&["the whale", "the storm", "a distant sail"]);
        text.push_str(&format!("{who} {what} {whom} before the sun went down.\n\n"));
    }
    text
}

fn go_on(_: TrainEvent) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn training_learns_and_writes_a_model_that_others_read_alike() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("models").join("tiny");
    let losses = Mutex::new(Vec::new());
    let trained = train(&text(), &tiny(), &out, &mut |event| {
        if let TrainEvent::Step { loss, done, total } = event {
            assert_eq!(total, 30);
            losses.lock().unwrap().push((done, loss));
        }
        ControlFlow::Continue(())
    })
    .unwrap();

    let losses = losses.into_inner().unwrap();
    assert_eq!(losses.len(), 30);
    let (first, last) = (losses[0].1, losses[29].1);
    assert!(last < 0.6 * first, "from {first} to {last}");
    assert!(trained.held_out_loss < 0.7 * first, "{}", trained.held_out_loss);
    assert_eq!(trained.samples.len(), PROMPTS.len());
    for (sample, prompt) in trained.samples.iter().zip(PROMPTS) {
        assert!(sample.starts_with(prompt), "{sample}");
    }

    // Nothing but the model is left.
    let files = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        files(&out),
        ["config.json", "model.safetensors", "tokenizer.json"]
    );
    assert_eq!(files(out.parent().unwrap()), ["tiny"]);
}

/// The published architecture, as another program implements it.
fn published_logits(folder: &Path, tokens: &[u32]) -> Vec<f32> {
    let config: LlamaConfig = serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap();
    let config = config.into_config(false);
    let weights = tensors::load(folder.join("model.safetensors"), &Device::Cpu).unwrap();
    let weights = VarBuilder::from_tensors(weights, DType::F32, &Device::Cpu);
    let llama = Llama::load(weights, &config).unwrap();
    let mut cache = Cache::new(false, DType::F32, &config, &Device::Cpu).unwrap();
    let tokens = Tensor::new(tokens, &Device::Cpu).unwrap().unsqueeze(0).unwrap();
    let logits = llama.forward(&tokens, 0, &mut cache).unwrap();
    logits.flatten_all().unwrap().to_vec1().unwrap()
}

#[test]
fn what_is_trained_is_the_published_architecture() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("model");
    let options = tiny();
    let corpus = Corpus::new(&text(), &options).unwrap();
    let dimensions = Dimensions {
        vocabulary: corpus.tokenizer.get_vocab_size(true),
        ..options.dimensions
    };
    let network = Network::new(dimensions, &mut Random::new(3)).unwrap();
    // Far from the initial weights, so that no part of the network is nearly idle.
    let mut random = Random::new(4);
    for parameter in network.parameters.values() {
        let noise = (0..parameter.elem_count())
            .map(|_| 0.1 * random.normal())
            .collect();
        let noise = Tensor::from_vec(noise, parameter.shape(), &Device::Cpu).unwrap();
        parameter.set(&(parameter.as_tensor() + noise).unwrap()).unwrap();
    }
    files::write(&network, &corpus.tokenizer, &out).unwrap();
    let tokens = &corpus.training[..40];
    let ours = network.next(tokens).unwrap();
    let theirs = published_logits(&out, tokens);
    assert_eq!(ours.len(), theirs.len());
    let spread = theirs.iter().fold(0.0f32, |most, logit| most.max(logit.abs()));
    assert!(spread > 0.5, "{spread}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!((ours - theirs).abs() < 1e-4, "{ours} for {theirs}");
    }
}

#[test]
fn a_seed_fixes_the_beginning() {
    let weights = |seed| {
        let network = Network::new(tiny().dimensions, &mut Random::stream(seed, 0)).unwrap();
        let all: Vec<Vec<f32>> = network
            .parameters
            .values()
            .map(|parameter| parameter.flatten_all().unwrap().to_vec1().unwrap())
            .collect();
        all
    };
    assert_eq!(weights(1), weights(1));
    assert_ne!(weights(1), weights(2));
}

#[test]
fn on_one_machine_the_number_of_threads_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let weights = |threads| {
        let options = TrainOptions {
            steps: 3,
            threads,
            ..tiny()
        };
        let out = home.path().join(threads.to_string());
        train(&text(), &options, &out, &mut go_on).unwrap();
        fs::read(out.join("model.safetensors")).unwrap()
    };
    assert!(weights(1) == weights(3));
}

#[test]
fn a_stopped_training_leaves_what_was_there() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("model");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("config.json"), "of before").unwrap();
    let stopped = train(&text(), &tiny(), &out, &mut |event| match event {
        TrainEvent::Step { done: 2, .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert!(matches!(stopped, Err(TrainError::Cancelled)));
    assert_eq!(fs::read_to_string(out.join("config.json")).unwrap(), "of before");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
}

#[test]
fn no_folder_is_replaced_that_holds_anything_but_a_model() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("thesis.txt"), "years of work").unwrap();
    let refused = train(&text(), &tiny(), home.path(), &mut go_on);
    assert!(matches!(refused, Err(TrainError::Occupied { found, .. }) if found == "thesis.txt"));
    assert!(home.path().join("thesis.txt").exists());
}

#[test]
fn settings_that_make_no_network_are_refused() {
    let out = Path::new("nowhere");
    let mut heads = tiny();
    heads.dimensions.kv_heads = 3;
    let refused = train(&text(), &heads, out, &mut go_on);
    assert!(matches!(refused, Err(TrainError::Heads { .. })));
    let mut window = tiny();
    window.window = 49;
    let refused = train(&text(), &window, out, &mut go_on);
    assert!(matches!(
        refused,
        Err(TrainError::OutOfRange { field: "window", .. })
    ));
    let refused = train("Call me Ishmael.", &tiny(), out, &mut go_on);
    assert!(matches!(refused, Err(TrainError::TooShort { .. })));
}
