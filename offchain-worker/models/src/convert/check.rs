//! Whether a published model can be converted, by its small files and by the beginnings of its large ones:
//! before anybody downloads the rest.

use std::{collections::BTreeMap, path::Path};

use surety_exact::Precision;
use surety_types::model::ModelFamily;

use super::{ConvertError, Recipe, Stage, Step, pooling_of, source::Source, text_files};
use crate::{
    config::{BertConfig, LlamaConfig},
    error::ModelError,
    format::{Entry, PREFIX_BYTES, header_bytes, parse},
    tokens::{TextCodec, TextFiles},
};

/// What the header of a file of weights says: its tensors' names, types, shapes and places.
#[derive(Clone, Debug)]
pub struct Head(pub(super) BTreeMap<String, Entry>);

impl Head {
    /// Reads it from the first bytes of a file of `file_bytes`: as many as [`head_bytes`] says, or more.
    ///
    /// # Errors
    /// [`ModelError::Truncated`] and [`ModelError::Malformed`].
    pub fn parse(first: &[u8], file_bytes: u64) -> Result<Self, ModelError> {
        let length = header_bytes(first, file_bytes)?;
        let json = first.get(PREFIX_BYTES..).unwrap_or_default();
        let json = json.get(..length).ok_or(ModelError::Truncated)?;
        Ok(Self(parse(json, file_bytes)?.tensors))
    }
}

/// How many of the first bytes of a file of `file_bytes` its header takes, by the eight at its front.
///
/// # Errors
/// [`ModelError::Truncated`] and [`ModelError::Malformed`].
pub fn head_bytes(front: &[u8], file_bytes: u64) -> Result<u64, ModelError> {
    let header = header_bytes(front, file_bytes)?;
    Ok(PREFIX_BYTES.saturating_add(header) as u64)
}

/// Reads what is in `folder` beside the weights as a conversion does.
///
/// # Errors
/// Those that [`super::convert`] would find there.
pub fn check_small(folder: &Path) -> Result<(), ConvertError> {
    let text = text_files(folder)?;
    pooling_of(folder, text.family, &mut |_| ())?;
    let codec = &TextCodec::new(&text)?;
    match text.family {
        ModelFamily::Bert => {
            BertConfig::parse(&text.config)?;
            BertConfig::calibration(codec)?;
        }
        ModelFamily::Llama | ModelFamily::Qwen3 => {
            LlamaConfig::parse(&text.config)?;
            LlamaConfig::calibration(codec)?;
        }
    }
    Ok(())
}

/// Looks for every tensor that a conversion of the model in `folder` reads, in the headers of its files:
/// names, types and shapes.
///
/// # Errors
/// Those that [`super::convert`] would find there.
pub fn check_heads(folder: &Path, heads: Vec<Head>) -> Result<(), ConvertError> {
    let source = Source::outline(heads)?;
    let TextFiles { family, config, .. } = text_files(folder)?;
    match family {
        ModelFamily::Bert => outlined(&BertConfig::parse(&config)?, source),
        ModelFamily::Llama | ModelFamily::Qwen3 => outlined(&LlamaConfig::parse(&config)?, source),
    }
}

/// A conversion of tensors without values asks for the same ones as any other.
fn outlined<R: Recipe>(recipe: &R, source: Source) -> Result<(), ConvertError> {
    let mut step = Step {
        stage: Stage::Quantizing,
        total: 0,
        on_event: &mut |_| (),
    };
    let hollow = recipe.quantize(&mut R::named(source), Precision::Int8, None, &mut step);
    hollow.map(drop)
}
