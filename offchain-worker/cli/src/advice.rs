//! What to do about the errors of libraries: they say what is the matter, and know nothing of these commands.
//! Each text goes behind what the error says; where there is nothing to add it is empty.

use surety_engine::EngineError;
use surety_model_fetch::FetchError;
use surety_models::{StoreError, convert::ConvertError};
use surety_network::PlaneError;

pub(crate) fn fetching(error: &FetchError) -> &'static str {
    match error {
        FetchError::Unreachable { .. } | FetchError::AllFailed { .. } => {
            "; see that this machine reaches the internet, or name a mirror of the hub with --hub-url"
        }
        FetchError::Connection { .. } | FetchError::DiskFull { .. } => {
            "; the same command goes on where this one stopped"
        }
        _ => "",
    }
}

pub(crate) fn listening(error: &PlaneError) -> &'static str {
    match error {
        PlaneError::Listen { .. } => "; stop whatever has that port, or name another address with --listen",
        _ => "",
    }
}

/// Of a model's files that are damaged or gone.
pub(crate) fn stored(error: &StoreError) -> &'static str {
    match error {
        StoreError::Manifest { .. } | StoreError::WrongSize { .. } | StoreError::WrongHash { .. } => {
            "; get the model again with: surety model fetch NAME, or surety model convert"
        }
        StoreError::NotInstalled { .. } => "; get it with: surety model fetch NAME, or surety model convert",
        _ => "",
    }
}

pub(crate) fn loading(error: &EngineError) -> &'static str {
    match error {
        EngineError::Store(error) => stored(error),
        _ => "",
    }
}

/// Of a folder that was to be converted.
pub(crate) fn converting(error: &ConvertError) -> &'static str {
    const FOLDER: &str = "; a folder that can be converted has config.json, tokenizer.json and model.safetensors, or what \
        model.safetensors.index.json names";
    match error {
        ConvertError::Store(StoreError::Io { source, .. }) | ConvertError::Io { source, .. }
            if source.kind() == std::io::ErrorKind::NotFound =>
        {
            FOLDER
        }
        ConvertError::Store(error) => stored(error),
        _ => "",
    }
}
