//! Why a model's files make no model.

use surety_model_trace::LayoutError;
use surety_types::model::{Architecture, ArchitectureError, ModelFamily, TextForm};

/// Why files with the right hashes make no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// `config.json` is not that of a model which this engine runs.
    #[error("config.json: {0}")]
    Config(String),
    /// How the model's authors make a vector of its states is not how it is done here.
    #[error("{0}")]
    Pooling(String),
    /// A dimension outside of what this engine takes.
    #[error("config.json: {field} is {value}, but must be between 1 and {max}")]
    Dimension {
        /// Its name in `config.json`.
        field: &'static str,
        /// What the file says.
        value: usize,
        /// The largest that is taken.
        max: usize,
    },
    /// Dimensions of which no chain would register a model.
    #[error("config.json: a model of these dimensions cannot be registered: {0}")]
    Unregistrable(ArchitectureError),
    /// The safetensors file ends early, or says that it is longer than it is.
    #[error("model.safetensors is cut off")]
    Truncated,
    /// The safetensors file's header makes no sense.
    #[error("model.safetensors: {0}")]
    Malformed(String),
    /// The file system refused while the file was read.
    #[error("model.safetensors cannot be read: {0}")]
    Unreadable(String),
    /// `model.safetensors.index.json` is not one.
    #[error("model.safetensors.index.json: {0}")]
    Index(String),
    /// A file elsewhere, or one that is no safetensors file.
    #[error("model.safetensors.index.json names {0:?}, which is no plain name of a safetensors file")]
    ShardName(String),
    /// Weights in more files than are taken.
    #[error("model.safetensors.index.json names more than {max} files")]
    TooManyShards {
        /// How many are taken.
        max: usize,
    },
    /// A tensor that the architecture needs is not there.
    #[error("model.safetensors has no tensor {0}")]
    MissingTensor(String),
    /// A tensor that nothing would read: bytes that change the hash and no answer.
    #[error("model.safetensors has a tensor {0} that the architecture does not know")]
    UnknownTensor(String),
    /// A tensor of another element type.
    #[error("tensor {name} is of type {dtype}, not {expected}")]
    WrongType {
        /// Its name in the file.
        name: String,
        /// Element type and shape that the configuration asks for.
        expected: &'static str,
        /// Element type that the file has.
        dtype: String,
    },
    /// A tensor of another shape than `config.json` asks for.
    #[error("tensor {name} has the shape {actual:?}, not {expected:?}")]
    WrongShape {
        /// Its name in the file.
        name: String,
        /// By `config.json`.
        expected: Vec<usize>,
        /// As found.
        actual: Vec<usize>,
    },
    /// NaN or infinity among the parameters.
    #[error("tensor {0} has a value that is not finite")]
    NotFinite(String),
    /// A scale below zero: a group's scale is the largest size in it.
    #[error("tensor {0} has a scale below zero")]
    NegativeScale(String),
    /// `tokenizer.json` is not that of a model which this engine runs.
    #[error("tokenizer.json: {0}")]
    Tokenizer(String),
    /// Several chat templates, and none that is meant where nobody names one.
    #[error(
        "{place} has the chat templates {names}, and none is called default: save the one that is meant as \
         chat_template.jinja beside it, and convert that folder"
    )]
    NoDefaultTemplate {
        /// The file or folder that has them.
        place: &'static str,
        /// What they are called.
        names: String,
    },
    /// Two chat templates of one name.
    #[error("tokenizer_config.json has two chat templates called {0:?}")]
    TemplateTwice(String),
    /// More chat templates than are looked through.
    #[error("additional_chat_templates has more than {max} templates")]
    TooManyTemplates {
        /// How many are taken.
        max: usize,
    },
    /// The tokenizer knows tokens that the model has no vector for.
    #[error("tokenizer.json has a token {token}, but the model knows {vocabulary}")]
    Vocabulary {
        /// Highest token that the tokenizer gives.
        token: u32,
        /// Size of the model's vocabulary.
        vocabulary: usize,
    },
    /// The manifest says something else of the special tokens than the model's files.
    #[error("the manifest says {stated:?}, but the model's files say {found:?}")]
    Special {
        /// By the manifest.
        stated: Box<TextForm>,
        /// By `tokenizer.json`, `config.json` and `chat_template.jinja`.
        found: Box<TextForm>,
    },
    /// A layer that differs from the others in more than its numbers.
    #[error("layer {layer}: it {what}")]
    UnevenLayers {
        /// Which one, from 0.
        layer: usize,
        /// How.
        what: String,
    },
    /// The manifest is that of another architecture's model.
    #[error("the manifest says {stated:?}, but the model's files are of a {found:?}")]
    Family {
        /// By the manifest.
        stated: ModelFamily,
        /// By `config.json` and the weights.
        found: ModelFamily,
    },
    /// The manifest is that of a model with other dimensions.
    #[error("the manifest says {stated:?}, but the weights are {found:?}")]
    Architecture {
        /// By the manifest; nothing where it has no exact form.
        stated: Option<Box<Architecture>>,
        /// By the weights.
        found: Box<Architecture>,
    },
    /// The manifest commits to other weights: no number of a result could be shown to follow from these.
    #[error("the weights are not those that the manifest's weight root commits to")]
    WeightRoot,
    /// Results of a model of these dimensions could not be disputed.
    #[error("{0}")]
    Untraceable(LayoutError),
    /// The tensor library refused.
    #[error("{0}")]
    Library(String),
}
