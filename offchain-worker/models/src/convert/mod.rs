//! From published float weights to an exact model.
//!
//! 1. Every matrix is quantized as it is. With int12 that is all.
//! 2. That model reads the calibration text; the size of each channel of each input is noted, and a sample of
//!    rows.
//! 3. Every matrix is quantized again, with the inputs' channels smoothed as suits what was seen.
//!
//! The same source gives the same bytes on every machine: only IEEE basic operations, `libm`'s own functions,
//! and the exact arithmetic itself. Weights are read row by row; what is in memory is the quantized model,
//! never the float one.

mod bert;
pub mod calibration;
mod check;
mod llama;
mod quantize;
mod rotary;
mod rounding;
mod smooth;
mod source;
mod template;

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use surety_exact::{ArithmeticError, Precision};
use surety_types::{
    ContentHash,
    model::{ModelFamily, ModelManifest, Pooling, SpecialIds, TextForm, Tier},
};

use crate::{
    config::{
        BertConfig, Dimensions, GENERATION_CONFIG, LlamaConfig, MODULES, POOLING_CONFIG, family, pooling,
        stop_tokens,
    },
    error::ModelError,
    form::Form,
    format::{Weights, write},
    hash::{file_hash, file_hash_of},
    store::{ModelFile, ModelStore, StoreError, StoredModel, read_bounded, write_manifest},
    tokens::{TextCodec, TextFiles, text_form},
};
use calibration::{Calibrator, Inputs, LayerInputs, Sequences};
pub use check::{Head, check_heads, check_small, head_bytes};
use source::Source;
use template::{TOKENIZER_CONFIG, template};

/// Why a model could not be converted. Nothing in the store has changed then.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The source is not one that could be converted.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The store refused, or a file of the source is too large.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Numbers that cannot be quantized.
    #[error("{stem} cannot be quantized: {fault:?}")]
    Arithmetic {
        /// The tensor's stem.
        stem: String,
        /// Why the arithmetic gives no value.
        fault: ArithmeticError,
    },
    /// The quantized model cannot read the calibration text.
    #[error("the quantized model does not compute with the calibration text: {0:?}")]
    Calibration(ArithmeticError),
    /// There is another model of that name.
    #[error("there is another model in {}; choose another name", path.display())]
    NameTaken {
        /// Folder of the model that has the name.
        path: PathBuf,
    },
    /// Not fit for a manifest.
    #[error("the name `{0}` is too long")]
    NameTooLong(String),
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl ConvertError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Io {
            path: path.into(),
            source,
        }
    }
}

/// What a conversion is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Quantizing every matrix as it is.
    Quantizing,
    /// Reading the calibration text.
    Calibrating,
    /// Quantizing with smoothed inputs.
    Smoothing,
    /// Writing and hashing the result.
    Writing,
}

/// What a conversion tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvertEvent {
    /// No file says how the encoder pools: its vectors will be the mean over all tokens.
    MeanAssumed,
    /// How far it is.
    Progress {
        /// The part of the conversion that `done` and `total` count in.
        stage: Stage,
        /// Layers, sequences or files that are done.
        done: usize,
        /// Layers (the tables of vectors count as one), sequences of the calibration text, or files in all.
        total: usize,
    },
}

/// Takes the events of a conversion.
pub type OnConvert<'a> = &'a mut dyn FnMut(ConvertEvent);

/// Reports one stage.
struct Step<'a> {
    stage: Stage,
    total: usize,
    on_event: OnConvert<'a>,
}

impl Step<'_> {
    fn done(&mut self, done: usize) {
        (self.on_event)(ConvertEvent::Progress {
            stage: self.stage,
            done,
            total: self.total,
        });
    }
}

/// Most inputs of a product of int12 whose cells a dispute can show on chain beside its other moves.
const INT12_INPUTS_MAX: usize = 1536;

/// The precision that suits a family: vectors are compared with each other, where small errors count; a
/// decoder reads all of its weights for every token, so that half as many bytes are twice as many tokens. An
/// encoder with a product of more `inputs` than fit a dispute with int12 is left to int8: a referee is worth
/// more than digits.
pub const fn usual_precision(family: ModelFamily, inputs: usize) -> Precision {
    match family {
        ModelFamily::Bert if inputs <= INT12_INPUTS_MAX => Precision::Int12,
        ModelFamily::Bert | ModelFamily::Llama | ModelFamily::Qwen3 => Precision::Int8,
    }
}

/// Converts the model in `folder` (`model.safetensors` or the files that its index names, `tokenizer.json`,
/// `config.json`, and those of [`OPTIONAL`] that it has) and puts it into the store under `name`, in the
/// family's [`usual_precision`] unless another is given. Does not replace a model that differs.
///
/// # Errors
/// [`ConvertError`]; the store is then as it was.
pub fn convert(
    folder: &Path,
    store: &ModelStore,
    name: &str,
    precision: Option<Precision>,
    calibrator: &dyn Calibrator,
    on_event: OnConvert<'_>,
) -> Result<StoredModel, ConvertError> {
    // A bad name should create nothing.
    store.folder(name)?;
    let _lock = store.lock()?;
    convert_locked(folder, store, name, precision, calibrator, on_event)
}

/// [`convert`], for a caller that holds [`ModelStore::lock`].
///
/// # Errors
/// Those of [`convert`].
pub fn convert_locked(
    folder: &Path,
    store: &ModelStore,
    name: &str,
    precision: Option<Precision>,
    calibrator: &dyn Calibrator,
    on_event: OnConvert<'_>,
) -> Result<StoredModel, ConvertError> {
    let target = store.folder(name)?;
    let staging = store.path().join(format!(".{name}.convert"));
    // What an interrupted run has left.
    remove(&staging)?;
    fs::create_dir_all(&staging).map_err(ConvertError::io(&staging))?;
    let converted = convert_into(folder, &staging, name, precision, calibrator, on_event);
    let installed = converted.and_then(|manifest| match store.by_name(name) {
        // The very model: its files may be damaged, these are not.
        Ok(stored) if stored.manifest == manifest => replace(&staging, &target),
        Err(_) if !target.exists() => replace(&staging, &target),
        _ => Err(ConvertError::NameTaken { path: target.clone() }),
    });
    if let Err(error) = installed {
        remove(&staging)?;
        return Err(error);
    }
    Ok(store.by_name(name)?)
}

fn remove(folder: &Path) -> Result<(), ConvertError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ConvertError::io(folder)(error)),
        _ => Ok(()),
    }
}

fn replace(staging: &Path, target: &Path) -> Result<(), ConvertError> {
    remove(target)?;
    fs::rename(staging, target).map_err(ConvertError::io(target))
}

/// Converts the model in `folder` and writes its files into `into`, which must be there.
///
/// # Errors
/// [`ConvertError`].
pub fn convert_into(
    folder: &Path,
    into: &Path,
    name: &str,
    precision: Option<Precision>,
    calibrator: &dyn Calibrator,
    on_event: OnConvert<'_>,
) -> Result<ModelManifest, ConvertError> {
    let name = name
        .as_bytes()
        .to_vec()
        .try_into()
        .map_err(|_| ConvertError::NameTooLong(name.into()))?;
    let text = text_files(folder)?;
    let pooling = pooling_of(folder, text.family, on_event)?;
    let weights = quantize(folder, &text, precision, calibrator, on_event)?;
    let mut step = Step {
        stage: Stage::Writing,
        total: 1,
        on_event,
    };
    step.done(0);
    let (weights_hash, weights_bytes) = write_weights(&weights, &into.join(ModelFile::Weights.name()))?;
    let small = [
        (ModelFile::Config, Some(&text.config)),
        (ModelFile::Tokenizer, Some(&text.tokenizer)),
        (ModelFile::Template, text.template.as_ref()),
    ];
    for (file, bytes) in small {
        let path = into.join(file.name());
        if let Some(bytes) = bytes {
            fs::write(&path, bytes).map_err(ConvertError::io(&path))?;
        }
    }
    let manifest = ModelManifest {
        name,
        family: weights.family(),
        tier: Tier::Exact,
        operations: vec![weights.family().operation()].try_into().unwrap_or_default(),
        weights: weights_hash,
        weights_bytes,
        config: file_hash(&text.config),
        text: text.form,
        exact: Some(weights.form(pooling)?),
    };
    write_manifest(into, &manifest).map_err(ConvertError::io(into))?;
    step.done(1);
    Ok(manifest)
}

/// What text becomes ids by, and what a manifest has to say of it.
fn text_files(folder: &Path) -> Result<TextFiles, ConvertError> {
    let small = |file: ModelFile| read_bounded(&folder.join(file.name()), file.bytes_max());
    let config = small(ModelFile::Config)?;
    let family = family(&config)?;
    let generation = optional(folder, GENERATION_CONFIG)?;
    let stop = match family {
        ModelFamily::Bert => SpecialIds::default(),
        ModelFamily::Llama | ModelFamily::Qwen3 => stop_tokens(&config, generation.as_deref())?,
    };
    let mut text = TextFiles {
        family,
        form: TextForm {
            stop,
            ..TextForm::default()
        },
        tokenizer: small(ModelFile::Tokenizer)?,
        config,
        template: template(folder)?,
    };
    text.form = text_form(&text)?;
    Ok(text)
}

/// How the model's authors pool, where its files say so.
fn pooling_of(folder: &Path, family: ModelFamily, on_event: OnConvert<'_>) -> Result<Pooling, ConvertError> {
    if family != ModelFamily::Bert {
        return Ok(Pooling::Mean);
    }
    let (modules, config) = (optional(folder, MODULES)?, optional(folder, POOLING_CONFIG)?);
    let said = pooling(modules.as_deref(), config.as_deref())?;
    Ok(said.unwrap_or_else(|| {
        on_event(ConvertEvent::MeanAssumed);
        Pooling::Mean
    }))
}

/// The files of a published model that not every one has.
pub const OPTIONAL: [&str; 5] = [
    TOKENIZER_CONFIG,
    GENERATION_CONFIG,
    MODULES,
    POOLING_CONFIG,
    ModelFile::Template.name(),
];

/// A small file, where it is there.
fn optional(folder: &Path, name: &str) -> Result<Option<Vec<u8>>, ConvertError> {
    let path = folder.join(name);
    let found = path
        .exists()
        .then(|| read_bounded(&path, ModelFile::Config.bytes_max()));
    Ok(found.transpose()?)
}

fn write_weights(weights: &Weights, path: &Path) -> Result<(ContentHash, u64), ConvertError> {
    let file = File::create(path).map_err(ConvertError::io(path))?;
    let mut buffered = BufWriter::new(file);
    write(&weights.parts(), &mut buffered)
        .and_then(|()| buffered.flush())
        .and_then(|()| buffered.get_ref().sync_all())
        .map_err(ConvertError::io(path))?;
    let file = File::open(path).map_err(ConvertError::io(path))?;
    let bytes = file.metadata().map_err(ConvertError::io(path))?.len();
    let max = ModelFile::Weights.bytes_max();
    if bytes > max {
        let path = path.into();
        return Err(StoreError::TooLarge {
            path,
            actual: bytes,
            max,
        }
        .into());
    }
    let hash = file_hash_of(file).map_err(ConvertError::io(path))?;
    Ok((hash, bytes))
}

/// A family's part of a conversion, which its configuration can do.
trait Recipe {
    /// The quantized model in memory.
    type Weights;

    /// What fixes the model's size.
    fn dims(&self) -> &Dimensions;

    /// The file with the names that [`Self::quantize`] asks for.
    fn named(source: Source) -> Source;

    /// The calibration text in the model's tokens.
    fn calibration(codec: &TextCodec) -> Result<Sequences, ModelError>;

    /// Quantizes every matrix; with smoothed inputs where it is known what they are like.
    fn quantize(
        &self,
        source: &mut Source,
        precision: Precision,
        seen: Option<&Inputs>,
        step: &mut Step<'_>,
    ) -> Result<Self::Weights, ConvertError>;

    /// What the linear layers are given when the model reads that text.
    fn look(
        calibrator: &dyn Calibrator,
        weights: &Self::Weights,
        text: &Sequences,
    ) -> Result<Inputs, ArithmeticError>;
}

/// Every layer, made by `layer` of its number and what its linear layers are given. The tables of vectors
/// are done.
fn layers<L>(
    count: usize,
    seen: Option<&Inputs>,
    step: &mut Step<'_>,
    mut layer: impl FnMut(usize, Option<&LayerInputs>) -> Result<L, ConvertError>,
) -> Result<Vec<L>, ConvertError> {
    step.done(1);
    let mut layers = Vec::with_capacity(count);
    for number in 0..count {
        layers.push(layer(number, seen.and_then(|seen| seen.layers.get(number)))?);
        step.done(number + 2);
    }
    Ok(layers)
}

fn quantize(
    folder: &Path,
    text: &TextFiles,
    precision: Option<Precision>,
    calibrator: &dyn Calibrator,
    on_event: OnConvert<'_>,
) -> Result<Weights, ConvertError> {
    let (family, config) = (text.family, &text.config);
    let codec = &TextCodec::new(text)?;
    let source = Source::open(folder)?;
    let precision_for = |dims: &Dimensions| precision.unwrap_or(usual_precision(family, dims.inputs_max()));
    match family {
        ModelFamily::Bert => {
            let recipe = BertConfig::parse(config)?;
            let precision = precision_for(&recipe.dims);
            passes(&recipe, source, codec, precision, calibrator, on_event).map(Weights::Bert)
        }
        ModelFamily::Llama | ModelFamily::Qwen3 => {
            let recipe = LlamaConfig::parse(config)?;
            let precision = precision_for(&recipe.dims);
            passes(&recipe, source, codec, precision, calibrator, on_event).map(Weights::Llama)
        }
    }
}

/// Quantizes; with int8 it then looks, and quantizes again. The first model is dropped before the second is
/// made.
fn passes<R: Recipe>(
    recipe: &R,
    source: Source,
    codec: &TextCodec,
    precision: Precision,
    calibrator: &dyn Calibrator,
    on_event: OnConvert<'_>,
) -> Result<R::Weights, ConvertError> {
    let mut source = R::named(source);
    // With int12, too: a tokenizer that does not fit is found.
    let text = R::calibration(codec)?;
    // The tables of vectors count as one layer.
    let total = recipe.dims().num_hidden_layers + 1;
    let mut step = Step {
        stage: Stage::Quantizing,
        total,
        on_event,
    };
    let plain = recipe.quantize(&mut source, precision, None, &mut step)?;
    if precision == Precision::Int12 {
        // Smoothing and rounding would gain what is already below everything else.
        return Ok(plain);
    }
    step.stage = Stage::Calibrating;
    step.total = text.text.len() + text.made_up.len();
    step.done(0);
    let seen = R::look(calibrator, &plain, &text).map_err(ConvertError::Calibration)?;
    drop(plain);
    step.stage = Stage::Smoothing;
    step.total = total;
    recipe.quantize(&mut source, precision, Some(&seen), &mut step)
}
