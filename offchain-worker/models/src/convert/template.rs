//! Which of a published model's chat templates is its own.
//!
//! As `transformers` chooses where nobody names one: `chat_template.jinja` before all others, then files of
//! their own, then what `tokenizer_config.json` says; of several that have names, the one named `default`.
//! What is left then is for other uses (tools, retrieval): none of those is taken in its place.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::Deserialize;

use super::{ConvertError, optional};
use crate::{
    error::ModelError,
    store::{ModelFile, read_bounded},
};

/// Where published models have their chat template if it has no file of its own.
pub(super) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// The folder of templates that have files of their own, called by their names.
const ADDITIONAL: &str = "additional_chat_templates";
const SUFFIX: &str = ".jinja";

/// The one that is taken where nobody names another.
const DEFAULT: &str = "default";

/// Most templates of one model: published ones have two or three.
const TEMPLATES_MAX: usize = 64;

#[derive(Deserialize)]
struct TokenizerConfig {
    chat_template: Option<Said>,
}

/// What `tokenizer_config.json` says under `chat_template`.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "chat_template is neither a text nor a list of templates with names"
)]
enum Said {
    One(String),
    Named(Vec<Named>),
}

#[derive(Deserialize)]
struct Named {
    name: String,
    template: String,
}

/// The chat template of the model in `folder`, where it has one.
///
/// # Errors
/// When there are several and none is the default, or a file is not what it should be.
pub(super) fn template(folder: &Path) -> Result<Option<Vec<u8>>, ConvertError> {
    if let Some(template) = optional(folder, ModelFile::Template.name())? {
        return Ok(Some(template));
    }
    let files = files(folder)?;
    if !files.is_empty() {
        return default_of(files, ADDITIONAL).map(Some);
    }
    let Some(bytes) = optional(folder, TOKENIZER_CONFIG)? else {
        return Ok(None);
    };
    let config: TokenizerConfig = serde_json::from_slice(&bytes)
        .map_err(|error| ModelError::Config(format!("{TOKENIZER_CONFIG}: {error}")))?;
    match config.chat_template {
        None => Ok(None),
        Some(Said::One(template)) => Ok(Some(template.into_bytes())),
        Some(Said::Named(several)) if several.is_empty() => Ok(None),
        Some(Said::Named(several)) => {
            let mut named = BTreeMap::new();
            for Named { name, template } in several {
                if named.insert(name.clone(), template.into_bytes()).is_some() {
                    return Err(ModelError::TemplateTwice(name).into());
                }
            }
            default_of(named, TOKENIZER_CONFIG).map(Some)
        }
    }
}

/// Templates that have files of their own, by their names.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, ConvertError> {
    let folder = folder.join(ADDITIONAL);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        read => read.map_err(ConvertError::io(&folder))?,
    };
    let mut named = BTreeMap::new();
    for entry in entries {
        let entry = entry.map_err(ConvertError::io(&folder))?;
        let file = entry.file_name();
        let Some(name) = file.to_str().and_then(|file| file.strip_suffix(SUFFIX)) else {
            continue;
        };
        if named.len() == TEMPLATES_MAX {
            return Err(ModelError::TooManyTemplates { max: TEMPLATES_MAX }.into());
        }
        let template = read_bounded(&entry.path(), ModelFile::Config.bytes_max())?;
        named.insert(name.into(), template);
    }
    Ok(named)
}

fn default_of(mut named: BTreeMap<String, Vec<u8>>, place: &'static str) -> Result<Vec<u8>, ConvertError> {
    let found = named.remove(DEFAULT);
    let missing = || ModelError::NoDefaultTemplate {
        place,
        names: named.keys().cloned().collect::<Vec<_>>().join(", "),
    };
    found.ok_or_else(|| missing().into())
}
