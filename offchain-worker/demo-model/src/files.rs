//! A trained network as files, as models are published.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use safetensors::{Dtype, tensor::TensorView};
use serde_json::json;
use surety_models::ModelFile;

use super::{
    TrainError,
    network::{Dimensions, NORM_EPSILON, Network, ROPE_THETA},
    text::{BEGIN_ID, END_ID, Tokenizer},
};

/// Whether a model may be put there: only where nothing is, or another model to replace.
pub(super) fn check_target(out: &Path) -> Result<(), TrainError> {
    let entries = match fs::read_dir(out) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(TrainError::io(out))?,
    };
    for entry in entries {
        let name = entry.map_err(TrainError::io(out))?.file_name();
        if !ModelFile::ALL.iter().any(|file| name == file.name()) {
            return Err(TrainError::Occupied {
                path: out.into(),
                found: name.to_string_lossy().into_owned(),
            });
        }
    }
    Ok(())
}

/// Writes all files to a folder beside `out`, which then takes its name.
pub(super) fn write(network: &Network, tokenizer: &Tokenizer, out: &Path) -> Result<(), TrainError> {
    let staging = staging(out)?;
    if let Some(parent) = staging.parent() {
        fs::create_dir_all(parent).map_err(TrainError::io(parent))?;
    }
    // What an earlier run left when it was killed.
    remove(&staging)?;
    let written = fs::create_dir(&staging)
        .map_err(TrainError::io(&staging))
        .and_then(|()| write_files(network, tokenizer, &staging))
        .and_then(|()| {
            check_target(out)?;
            remove(out)?;
            fs::rename(&staging, out).map_err(TrainError::io(out))
        });
    if written.is_err() {
        // The first error is the one to tell.
        fs::remove_dir_all(&staging).ok();
    }
    written
}

fn staging(out: &Path) -> Result<PathBuf, TrainError> {
    match out.file_name() {
        Some(name) => {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(".training");
            Ok(out.with_file_name(hidden))
        }
        None => Err(TrainError::io(out)(io::ErrorKind::InvalidInput.into())),
    }
}

fn remove(folder: &Path) -> Result<(), TrainError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(TrainError::io(folder)(error)),
        _ => Ok(()),
    }
}

fn write_files(network: &Network, tokenizer: &Tokenizer, folder: &Path) -> Result<(), TrainError> {
    let vocabulary = tokenizer
        .to_string(true)
        .map_err(|error| TrainError::Tokenizer(error.to_string()))?;
    for (file, bytes) in [
        (ModelFile::Config, config(&network.dimensions).into_bytes()),
        (ModelFile::Tokenizer, vocabulary.into_bytes()),
        (ModelFile::Weights, weights(network)?),
    ] {
        let path = folder.join(file.name());
        write_synced(&path, &bytes).map_err(TrainError::io(&path))?;
    }
    Ok(())
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn config(dimensions: &Dimensions) -> String {
    let config = json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": dimensions.vocabulary,
        "hidden_size": dimensions.hidden,
        "intermediate_size": dimensions.feed_forward,
        "num_hidden_layers": dimensions.layers,
        "num_attention_heads": dimensions.heads,
        "num_key_value_heads": dimensions.kv_heads,
        "head_dim": dimensions.head_dim,
        "max_position_embeddings": dimensions.context,
        "hidden_act": "silu",
        "rms_norm_eps": NORM_EPSILON,
        "rope_theta": ROPE_THETA,
        "attention_bias": false,
        "mlp_bias": false,
        "tie_word_embeddings": true,
        "bos_token_id": BEGIN_ID,
        "eos_token_id": END_ID,
        "torch_dtype": "float32",
    });
    // Keys are sorted: equal dimensions give equal bytes.
    format!("{config:#}\n")
}

fn weights(network: &Network) -> Result<Vec<u8>, TrainError> {
    let mut tensors = Vec::with_capacity(network.parameters.len());
    for (name, parameter) in &network.parameters {
        let values: Vec<f32> = parameter.flatten_all()?.to_vec1()?;
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        tensors.push((name, parameter.dims().to_vec(), bytes));
    }
    let library = |error: safetensors::SafeTensorError| TrainError::Library(error.to_string());
    let views = tensors
        .iter()
        .map(|(name, shape, bytes)| Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(library)?;
    let about = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    safetensors::serialize(views, Some(about)).map_err(library)
}
