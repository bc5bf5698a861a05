//! Models on this machine: `<home>/models/<name>/{model.safetensors, tokenizer.json, config.json,
//! chat_template.jinja, manifest.json}`, of which the fourth is not in all of them.
//!
//! A file's bytes leave the store only when they have the hash that the manifest gives: what is parsed later
//! has been checked first, from the very bytes that were read; exact weights from the very file.

mod manifest;
#[cfg(test)]
mod tests;
mod weights;

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use surety_types::{
    ContentHash, ModelId,
    model::{ModelManifest, Tier},
};

pub use self::weights::WeightBytes;
use crate::hash::{file_hash, file_hash_of};

/// Name of the manifest's file.
pub(crate) const MANIFEST: &str = "manifest.json";

const MANIFEST_BYTES_MAX: u64 = 16 * 1024;
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;
const TOKENIZER_BYTES_MAX: u64 = 64 * 1024 * 1024;
const GIB: u64 = 1 << 30;
/// A decoder of 60 billion parameters in int8. In memory once, when it is used.
const EXACT_WEIGHTS_BYTES_MAX: u64 = 64 * GIB;
/// Outside of the exact tier weights are read into memory and copied once: twice this must fit.
const OTHER_WEIGHTS_BYTES_MAX: u64 = 4 * GIB;

/// The files that a manifest names by hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelFile {
    /// `model.safetensors`: the weights.
    Weights,
    /// How text becomes tokens.
    Tokenizer,
    /// `config.json`: the dimensions.
    Config,
    /// `chat_template.jinja`: how a conversation becomes a text, where a model has one.
    Template,
}

impl ModelFile {
    /// Every file that a model may have, small ones first.
    pub const ALL: [Self; 4] = [Self::Config, Self::Template, Self::Tokenizer, Self::Weights];

    /// Those that text needs.
    pub const TEXT: [Self; 3] = [Self::Config, Self::Template, Self::Tokenizer];

    /// Its name on disk, and wherever models are published.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weights => "model.safetensors",
            Self::Tokenizer => "tokenizer.json",
            Self::Config => "config.json",
            Self::Template => "chat_template.jinja",
        }
    }

    /// Most bytes that such a file may have in the exact tier.
    pub const fn bytes_max(self) -> u64 {
        match self {
            Self::Weights => EXACT_WEIGHTS_BYTES_MAX,
            Self::Tokenizer => TOKENIZER_BYTES_MAX,
            Self::Config | Self::Template => CONFIG_BYTES_MAX,
        }
    }

    /// Its hash by a manifest; nothing where the model has no such file.
    pub fn hash_in(self, manifest: &ModelManifest) -> Option<ContentHash> {
        match self {
            Self::Weights => Some(manifest.weights),
            Self::Tokenizer => Some(manifest.text.tokenizer),
            Self::Config => Some(manifest.config),
            Self::Template => manifest.text.template,
        }
    }
}

/// Why a model cannot be had from the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No folder here has this model's manifest.
    #[error("model {model:?} is not in {}", path.display())]
    NotInstalled {
        /// The id that was asked for.
        model: ModelId,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Not fit for a folder's name.
    #[error("`{0}` is no name for a model: letters, digits, `.`, `_` and `-`, not starting with a `.`")]
    InvalidName(String),
    /// The manifest cannot be read as one.
    #[error("{} is no model manifest: {reason}", path.display())]
    Manifest {
        /// The manifest's file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Longer or shorter than it should be: cut off, or another file.
    #[error("{} has {actual} bytes, but should have {expected}", path.display())]
    WrongSize {
        /// The file.
        path: PathBuf,
        /// Size by the manifest.
        expected: u64,
        /// Size found.
        actual: u64,
    },
    /// Too big for this build.
    #[error("{} has {actual} bytes, but at most {max} are taken", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Size found.
        actual: u64,
        /// Bytes that such a file may have.
        max: u64,
    },
    /// Damaged, or another file.
    #[error("{} has the hash {actual:?}, but its manifest says {expected:?}", path.display())]
    WrongHash {
        /// The file.
        path: PathBuf,
        /// Hash by the manifest.
        expected: ContentHash,
        /// Hash found.
        actual: ContentHash,
    },
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl StoreError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Io {
            path: path.into(),
            source,
        }
    }
}

/// The files of a model, checked against its manifest.
#[derive(Clone)]
pub struct ModelFiles {
    /// What they were checked against.
    pub manifest: ModelManifest,
    /// The safetensors file: open where it is in the exact tier, else in memory.
    pub weights: WeightBytes,
    /// `tokenizer.json`.
    pub tokenizer: Vec<u8>,
    /// `config.json`.
    pub config: Vec<u8>,
    /// `chat_template.jinja`, where there is one.
    pub template: Option<Vec<u8>>,
}

/// A model's folder, whose manifest has been read.
#[derive(Clone, Debug)]
pub struct StoredModel {
    /// What the folder's manifest says; the files are checked against it when they are read.
    pub manifest: ModelManifest,
    /// Folder with the manifest and the files.
    pub path: PathBuf,
}

impl StoredModel {
    /// Reads a folder's manifest.
    fn open(path: PathBuf) -> Result<Self, StoreError> {
        let file = path.join(MANIFEST);
        let json = read_bounded(&file, MANIFEST_BYTES_MAX)?;
        match manifest::from_json(&json) {
            Ok(manifest) => Ok(Self { manifest, path }),
            Err(reason) => Err(StoreError::Manifest { path: file, reason }),
        }
    }

    /// Checks every file's hash, without keeping it in memory.
    pub fn verify(&self) -> Result<(), StoreError> {
        let here = |file: &ModelFile| file.hash_in(&self.manifest).is_some();
        for file in ModelFile::ALL.into_iter().filter(here) {
            self.verified(file)?;
        }
        Ok(())
    }

    /// Opens a file and checks its hash, without keeping it in memory.
    fn verified(&self, file: ModelFile) -> Result<File, StoreError> {
        let (path, opened) = self.open_file(file)?;
        let actual = file_hash_of(&opened).map_err(StoreError::io(&path))?;
        self.check_hash(file, &path, actual)?;
        Ok(opened)
    }

    fn open_file(&self, file: ModelFile) -> Result<(PathBuf, File), StoreError> {
        let path = self.path.join(file.name());
        let opened = open_bounded(&path, self.bytes_max(file))?;
        self.check_size(file, &path, &opened)?;
        Ok((path, opened))
    }

    fn bytes_max(&self, file: ModelFile) -> u64 {
        match (file, self.manifest.tier) {
            (ModelFile::Weights, tier) if tier != Tier::Exact => OTHER_WEIGHTS_BYTES_MAX,
            _ => file.bytes_max(),
        }
    }

    /// Reads every file and checks its hash. Exact weights are not kept in memory, only their file open.
    pub fn read(&self) -> Result<ModelFiles, StoreError> {
        Ok(ModelFiles {
            manifest: self.manifest.clone(),
            weights: match self.manifest.tier {
                Tier::Exact => self.verified(ModelFile::Weights)?.into(),
                _ => self.read_file(ModelFile::Weights)?.into(),
            },
            tokenizer: self.read_file(ModelFile::Tokenizer)?,
            config: self.read_file(ModelFile::Config)?,
            template: self.read_template()?,
        })
    }

    /// `chat_template.jinja`, where the model has one.
    pub(crate) fn read_template(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let named = self.manifest.text.template;
        named.map(|_| self.read_file(ModelFile::Template)).transpose()
    }

    pub(crate) fn read_file(&self, file: ModelFile) -> Result<Vec<u8>, StoreError> {
        let (path, opened) = self.open_file(file)?;
        let bytes = read_all(opened, self.bytes_max(file)).map_err(StoreError::io(&path))?;
        self.check_hash(file, &path, file_hash(&bytes))?;
        Ok(bytes)
    }

    fn check_size(&self, file: ModelFile, path: &Path, opened: &File) -> Result<(), StoreError> {
        let actual = opened.metadata().map_err(StoreError::io(path))?.len();
        let expected = self.manifest.weights_bytes;
        if file == ModelFile::Weights && actual != expected {
            return Err(StoreError::WrongSize {
                path: path.into(),
                expected,
                actual,
            });
        }
        Ok(())
    }

    fn check_hash(&self, file: ModelFile, path: &Path, actual: ContentHash) -> Result<(), StoreError> {
        let expected = file.hash_in(&self.manifest).unwrap_or_default();
        if actual != expected {
            return Err(StoreError::WrongHash {
                path: path.into(),
                expected,
                actual,
            });
        }
        Ok(())
    }
}

/// The models below one home.
#[derive(Clone, Debug)]
pub struct ModelStore {
    models: PathBuf,
}

impl ModelStore {
    /// The store of this home. Nothing is created before something is put into it.
    pub fn new(home: &Path) -> Self {
        Self {
            models: home.join("models"),
        }
    }

    /// The folder that holds a folder for each model.
    pub fn path(&self) -> &Path {
        &self.models
    }

    /// Where the files are that the text of a model needs, where it is not here itself.
    pub fn text_folder(&self, manifest: &ModelManifest) -> PathBuf {
        self.models.join(format!(".text-{}", hex::encode(manifest.id())))
    }

    /// Every folder's model, or what is wrong with it, by the folder's name.
    pub fn list(&self) -> Result<Vec<Result<StoredModel, StoreError>>, StoreError> {
        let entries = match fs::read_dir(&self.models) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io(&self.models)(error)),
        };
        let mut folders = Vec::new();
        for entry in entries {
            let entry = entry.map_err(StoreError::io(&self.models))?;
            // Hidden folders are downloads under way.
            if !entry.file_name().to_string_lossy().starts_with('.') && entry.path().is_dir() {
                folders.push(entry.path());
            }
        }
        folders.sort();
        Ok(folders.into_iter().map(StoredModel::open).collect())
    }

    /// The model in the folder of this name.
    pub fn by_name(&self, name: &str) -> Result<StoredModel, StoreError> {
        StoredModel::open(self.folder(name)?)
    }

    /// The folder that has this model's manifest. Its other files have not been looked at.
    pub fn find(&self, model: ModelId) -> Result<StoredModel, StoreError> {
        let mut readable = self.list()?.into_iter().flatten();
        readable
            .find(|stored| stored.manifest.id() == model)
            .ok_or_else(|| StoreError::NotInstalled {
                model,
                path: self.models.clone(),
            })
    }

    /// The checked files of a model.
    pub fn load(&self, model: ModelId) -> Result<ModelFiles, StoreError> {
        self.find(model)?.read()
    }

    /// Keeps other processes from putting models into the store for as long as the result lives. The lock is
    /// the folder's own, so that no file of it is left behind.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn lock(&self) -> Result<File, StoreError> {
        fs::create_dir_all(&self.models).map_err(StoreError::io(&self.models))?;
        let lock = File::open(&self.models).map_err(StoreError::io(&self.models))?;
        lock.lock().map_err(StoreError::io(&self.models))?;
        Ok(lock)
    }

    /// Where a model of this name lives.
    ///
    /// # Errors
    /// [`StoreError::InvalidName`].
    pub fn folder(&self, name: &str) -> Result<PathBuf, StoreError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
            return Err(StoreError::InvalidName(name.into()));
        }
        Ok(self.models.join(name))
    }
}

/// Writes a folder's manifest.
///
/// # Errors
/// Those of the file system.
pub fn write_manifest(folder: &Path, manifest: &ModelManifest) -> io::Result<()> {
    let path = folder.join(MANIFEST);
    fs::write(&path, manifest::to_json(manifest))?;
    File::open(&path)?.sync_all()
}

fn open_bounded(path: &Path, max: u64) -> Result<File, StoreError> {
    let file = File::open(path).map_err(StoreError::io(path))?;
    let actual = file.metadata().map_err(StoreError::io(path))?.len();
    if actual > max {
        return Err(StoreError::TooLarge {
            path: path.into(),
            actual,
            max,
        });
    }
    Ok(file)
}

pub(crate) fn read_bounded(path: &Path, max: u64) -> Result<Vec<u8>, StoreError> {
    read_all(open_bounded(path, max)?, max).map_err(StoreError::io(path))
}

/// The file may grow while it is read: never more than the limit is taken.
fn read_all(file: File, max: u64) -> io::Result<Vec<u8>> {
    let len = file.metadata()?.len().min(max);
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or_default());
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}
