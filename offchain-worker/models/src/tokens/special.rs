//! The ids that are the model's own: what a manifest lists, found in its files.

use serde::Deserialize;
use surety_types::{
    input::IdBounds,
    model::{ModelFamily, SpecialIds, TextForm},
};
use tokenizers::{ModelWrapper, Tokenizer};

use super::{TextFiles, codec};
use crate::{error::ModelError, hash::file_hash};

/// A text of one token, to see what belongs before and after it.
const PROBE: &str = "a";

/// What a manifest has to say of these files. What `files` says of itself is not looked at, but for what ends
/// a generation: that is the manifest's own, because not all that it is taken from is kept.
///
/// # Errors
/// [`ModelError`] when they are none that are taken.
pub fn text_form(files: &TextFiles) -> Result<TextForm, ModelError> {
    let bounds = files.bounds()?;
    let (tokenizer, _) = codec::open(files.family, &files.tokenizer, &bounds)?;
    of(&tokenizer, files, &bounds)
}

/// Whether an id is one that a text never has.
pub(super) fn is_reserved(form: &TextForm, id: u32) -> bool {
    form.ids().any(|special| special == id) && form.unknown != Some(id)
}

#[derive(Deserialize)]
struct Config {
    pad_token_id: Option<u32>,
}

pub(super) fn of(
    tokenizer: &Tokenizer,
    files: &TextFiles,
    bounds: &IdBounds,
) -> Result<TextForm, ModelError> {
    let refused = |reason: &str| ModelError::Tokenizer(reason.into());
    let (before, after) = around(tokenizer)?;
    let few =
        |ids: Vec<u32>| SpecialIds::try_from(ids).map_err(|_| refused("it has too many special tokens"));
    let config: Config =
        serde_json::from_slice(&files.config).map_err(|error| ModelError::Config(error.to_string()))?;
    let stop = match files.family {
        ModelFamily::Bert => SpecialIds::default(),
        ModelFamily::Llama | ModelFamily::Qwen3 => files.form.stop.clone(),
    };
    let form = TextForm {
        tokenizer: file_hash(&files.tokenizer),
        template: files.template.as_deref().map(file_hash),
        before: few(before)?,
        after: few(after)?,
        unknown: unknown(tokenizer),
        // Some configurations name an id that there is not.
        padding: config.pad_token_id.filter(|id| *id < bounds.vocabulary),
        stop,
    };
    let ids: Vec<u32> = form.ids().collect();
    bounds
        .check(&ids)
        .map_err(|_| refused("it has a special token that the model does not have"))?;
    Ok(form)
}

/// The ids before and after those of a text.
fn around(tokenizer: &Tokenizer) -> Result<(Vec<u32>, Vec<u32>), ModelError> {
    let refused = |reason: String| ModelError::Tokenizer(reason);
    let encode = |special| {
        let encoded = tokenizer.encode(PROBE, special);
        encoded.map_err(|error| refused(error.to_string()))
    };
    let (bare, whole) = (encode(false)?, encode(true)?);
    if whole.get_type_ids().iter().any(|kind| *kind != 0) {
        return Err(refused("it puts texts into other segments than the first".into()));
    }
    let (bare, whole) = (bare.get_ids(), whole.get_ids());
    let at = whole.windows(bare.len().max(1)).position(|ids| ids == bare);
    let at = at.ok_or_else(|| refused("its special tokens are not around a text".into()))?;
    let (before, rest) = whole.split_at(at);
    Ok((
        before.to_vec(),
        rest.get(bare.len()..).unwrap_or_default().to_vec(),
    ))
}

fn unknown(tokenizer: &Tokenizer) -> Option<u32> {
    let name = match tokenizer.get_model() {
        ModelWrapper::WordPiece(model) => Some(model.unk_token.clone()),
        ModelWrapper::BPE(model) => model.unk_token.clone(),
        _ => None,
    };
    tokenizer.token_to_id(&name?)
}
