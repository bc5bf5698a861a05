//! A model that nobody has put on the list of known ones: whatever a repository on the hub holds, converted
//! to its exact form.
//!
//! Hashes of its files are the hub's own word: they tell that a file is whole, not that it is good. What
//! vouches for the result is its own hash: whoever converts the same files gets the same model, and the chain
//! knows it by that.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use super::{FetchError, FetchEvent, FetchOptions, OnEvent, Source};
use crate::{file::Wanted, hub::Hub};
use surety_models::{
    ModelFile, ModelStore, StoredModel,
    convert::{
        ConvertError, Head, OPTIONAL, calibration::Calibrator, check_heads, check_small, convert_locked,
        head_bytes,
    },
    shards::{INDEX, INDEX_BYTES_MAX, shards},
};

/// The revision that is meant when none is named.
const MAIN: &str = "main";

/// A repository on the model hub, as `OWNER/NAME` or `OWNER/NAME@REVISION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubModel {
    owner: String,
    name: String,
    revision: String,
}

/// The text names no repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no repository on the hub: OWNER/NAME or OWNER/NAME@REVISION")]
pub struct UnknownModel(String);

impl HubModel {
    /// What its exact form is called, unless told otherwise.
    pub fn exact_name(&self) -> String {
        format!("{}-exact", self.name)
    }

    fn repository(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}

impl FromStr for HubModel {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<Self, UnknownModel> {
        // These go into an address as they are.
        let plain = |part: &&str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !part.is_empty() && !part.starts_with('.') && part.bytes().all(known)
        };
        let (repository, revision) = text.split_once('@').unwrap_or((text, MAIN));
        repository
            .split_once('/')
            .filter(|(owner, name)| [*owner, *name, revision].iter().all(plain))
            .map(|(owner, name)| Self {
                owner: owner.into(),
                name: name.into(),
                revision: revision.into(),
            })
            .ok_or_else(|| UnknownModel(text.into()))
    }
}

impl fmt::Display for HubModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.owner, self.name, self.revision)
    }
}

/// Most bytes of published weights, in all files: four, F32, for each that an exact file may have in int8.
const PUBLISHED_BYTES_MAX: u64 = 4 * ModelFile::Weights.bytes_max();

/// First bytes of a file of weights that are asked for at once: most headers, of a hundred bytes for each
/// tensor, are shorter.
const HEAD_BYTES: u64 = 64 * 1024;

/// Downloads a repository's model, converts it, and puts the result into the store under `name`. All files
/// are those of one commit; each is used only when it has the hash that the hub says. What an interrupted run
/// has brought of that commit is kept. Blocks.
///
/// # Errors
/// [`FetchError`]; the store's models are then as they were.
pub fn fetch_from_hub(
    store: &ModelStore,
    model: &HubModel,
    name: &str,
    options: &FetchOptions,
    calibrator: &dyn Calibrator,
    on_event: OnEvent<'_>,
) -> Result<StoredModel, FetchError> {
    store.folder(name)?;
    let _lock = store.lock()?;
    on_event(FetchEvent::Trying { source: Source::Hub });
    let (hub, commit) = enter(model, options, on_event)?;
    let all = store.path().join(format!(".{name}.source"));
    let folder = alone(&all, &commit)?;
    let checkout = Checkout { hub, commit, folder };
    let stored = checkout.bring(on_event).and_then(|()| {
        let report = &mut |event| on_event(FetchEvent::Converting(event));
        Ok(convert_locked(
            &checkout.folder,
            store,
            name,
            None,
            calibrator,
            report,
        )?)
    });
    if !stored.as_ref().is_err_and(FetchError::may_be_resumed) {
        fs::remove_dir_all(&all).ok();
    }
    let stored = stored?;
    on_event(FetchEvent::Ready {
        path: stored.path.clone(),
    });
    Ok(stored)
}

/// Finds out which commit the revision is. A token is shown only where nothing is given without one.
fn enter(
    model: &HubModel,
    options: &FetchOptions,
    on_event: OnEvent<'_>,
) -> Result<(Hub, String), FetchError> {
    let config = ModelFile::Config.name();
    let mut hub = Hub::new(options, &model.repository())?;
    let mut facts = hub.facts(&model.revision, config, on_event);
    if let (Err(FetchError::Gated { .. }), Some(token)) = (&facts, &options.token) {
        hub = hub.with_token(token.clone())?;
        facts = hub.facts(&model.revision, config, on_event);
    }
    let facts = facts?.ok_or_else(|| hub.missing(&model.revision, config))?;
    Ok((hub, facts.commit))
}

/// The folder for a commit's files, where those of other commits are no more.
fn alone(all: &Path, commit: &str) -> Result<PathBuf, FetchError> {
    let folder = all.join(commit);
    fs::create_dir_all(&folder).map_err(FetchError::disk(&folder))?;
    for entry in fs::read_dir(all).map_err(FetchError::disk(all))? {
        let path = entry.map_err(FetchError::disk(all))?.path();
        if path != folder {
            fs::remove_dir_all(&path).map_err(FetchError::disk(&path))?;
        }
    }
    Ok(folder)
}

/// A commit of a repository, and the folder for its files.
struct Checkout {
    hub: Hub,
    commit: String,
    folder: PathBuf,
}

impl Checkout {
    /// Brings what a conversion reads, small files first. What cannot be converted is refused before its
    /// weights are loaded: by its small files, then by the headers of the large ones.
    fn bring(&self, on_event: OnEvent<'_>) -> Result<(), FetchError> {
        for name in OPTIONAL {
            if let Some(file) = self.find(name, ModelFile::Config.bytes_max(), on_event)? {
                self.get(&file, on_event)?;
            }
        }
        for file in [ModelFile::Config, ModelFile::Tokenizer] {
            let file = self.need(file.name(), file.bytes_max(), on_event)?;
            self.get(&file, on_event)?;
        }
        check_small(&self.folder)?;
        let (mut missing, mut heads) = (Vec::new(), Vec::new());
        for file in self.weights(on_event)? {
            if file.bytes <= HEAD_BYTES {
                self.get(&file, on_event)?;
            }
            let (is_there, resumed) = (file.is_there()?, file.part_bytes() > 0);
            heads.push(self.head(&file, is_there, on_event)?);
            if !is_there {
                missing.push((file, resumed));
            }
        }
        check_heads(&self.folder, heads)?;
        for (file, resumed) in missing {
            self.hub.complete(&self.commit, &file, resumed, on_event)?;
        }
        Ok(())
    }

    /// The header of a file of weights.
    fn head(&self, file: &Wanted, is_there: bool, on_event: OnEvent<'_>) -> Result<Head, FetchError> {
        let read = |on_event: OnEvent<'_>| {
            let first = |bytes: u64, on_event: OnEvent<'_>| {
                if !is_there {
                    self.hub.begin(&self.commit, file, bytes, on_event)?;
                }
                file.first(bytes)
            };
            let refused = |error| FetchError::from(ConvertError::Model(error));
            let mut head = first(HEAD_BYTES, on_event)?;
            let needed = head_bytes(&head, file.bytes).map_err(refused)?;
            if needed > HEAD_BYTES {
                head = first(needed, on_event)?;
            }
            Head::parse(&head, file.bytes).map_err(refused)
        };
        let resumed = file.part_bytes() > 0;
        match read(on_event) {
            // What an earlier run has left may be at fault, not this file.
            Err(FetchError::Convert(_)) if resumed => {
                file.discard();
                read(on_event)
            }
            head => head,
        }
    }

    /// The weights: one file, or those that an index names, which is brought.
    fn weights(&self, on_event: OnEvent<'_>) -> Result<Vec<Wanted>, FetchError> {
        let one = self.find(ModelFile::Weights.name(), PUBLISHED_BYTES_MAX, on_event)?;
        if let Some(file) = one {
            return Ok(vec![file]);
        }
        let index = self.find(INDEX, INDEX_BYTES_MAX, on_event)?;
        let index = index.ok_or_else(|| FetchError::NoWeights(self.hub.repository().into()))?;
        self.get(&index, on_event)?;
        let path = self.folder.join(INDEX);
        let named = shards(&fs::read(&path).map_err(FetchError::disk(&path))?);
        let mut files = Vec::new();
        let mut total = 0u64;
        for name in named.map_err(|error| FetchError::Index(Box::new(error)))? {
            let file = self.need(&name, PUBLISHED_BYTES_MAX, on_event)?;
            total = total.saturating_add(file.bytes);
            within(PUBLISHED_BYTES_MAX, total, "the weights")?;
            files.push(file);
        }
        Ok(files)
    }

    fn need(&self, name: &str, max: u64, on_event: OnEvent<'_>) -> Result<Wanted, FetchError> {
        let found = self.find(name, max, on_event)?;
        found.ok_or_else(|| self.hub.missing(&self.commit, name))
    }

    /// What a file has to be, by the hub; nothing where the repository has none of that name.
    fn find(&self, name: &str, max: u64, on_event: OnEvent<'_>) -> Result<Option<Wanted>, FetchError> {
        let Some(facts) = self.hub.facts(&self.commit, name, on_event)? else {
            return Ok(None);
        };
        if facts.commit != self.commit {
            return Err(FetchError::OtherCommit {
                name: name.into(),
                expected: self.commit.clone(),
                actual: facts.commit,
            });
        }
        within(max, facts.bytes, name)?;
        Ok(Some(Wanted::new(&self.folder, name, facts.bytes, facts.hash)))
    }

    /// Brings a file, unless an earlier run has.
    fn get(&self, file: &Wanted, on_event: OnEvent<'_>) -> Result<(), FetchError> {
        if file.is_there()? {
            return Ok(());
        }
        if let Some(folder) = file.part.parent() {
            fs::create_dir_all(folder).map_err(FetchError::disk(folder))?;
        }
        self.hub.download(&self.commit, file, on_event)
    }
}

fn within(max: u64, actual: u64, name: &str) -> Result<(), FetchError> {
    if actual <= max {
        return Ok(());
    }
    Err(FetchError::TooLarge {
        name: name.into(),
        actual,
        max,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn repositories_are_named_as_on_the_hub() {
        let model: HubModel = "owner/Some-Model_1.1B".parse().unwrap();
        assert_eq!(model.to_string(), "owner/Some-Model_1.1B@main");
        assert_eq!(model.exact_name(), "Some-Model_1.1B-exact");
        let model: HubModel = "owner/name@v2".parse().unwrap();
        assert_eq!(model.to_string(), "owner/name@v2");
        for text in [
            "", "name", "a/", "/a", "a/b/c", "a/../b", "a/b@", "a/b?c", "a/b@c/d", "../b",
        ] {
            assert!(text.parse::<HubModel>().is_err(), "{text}");
        }
    }
}
