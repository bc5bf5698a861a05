//! A model that nobody has put on the list of known ones: whatever a repository on the hub holds, converted
//! to its exact form.
//!
//! There is no hash to compare with. What vouches for the result is its own hash: whoever converts the same
//! files gets the same model, and the chain knows it by that.

use std::{fmt, fs, str::FromStr};

use super::{FetchError, FetchEvent, FetchOptions, OnEvent, Source, fresh, hub};
use crate::file::Wanted;
use surety_models::{
    ModelFile, ModelStore, StoredModel,
    convert::{OPTIONAL, calibration::Calibrator, convert_locked},
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

/// Downloads a repository's model, converts it, and puts the result into the store under `name`. Blocks.
///
/// # Errors
/// [`FetchError`]; the store is then as it was.
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
    let staging = fresh(store, name, "source")?;
    let stored = (|| {
        on_event(FetchEvent::Trying { source: Source::Hub });
        let agent = hub::agent(options);
        let needed = [ModelFile::Config, ModelFile::Tokenizer, ModelFile::Weights];
        let needed = needed.map(|file| (file.name(), file.bytes_max(), false));
        let optional = OPTIONAL.map(|name| (name, ModelFile::Config.bytes_max(), true));
        for (name, max, is_optional) in optional.into_iter().chain(needed) {
            let url = hub::url(options, &model.repository(), &model.revision, name);
            let bytes = match hub::length(&agent, &url) {
                Err(FetchError::Status { status: 404, .. }) if is_optional => continue,
                length => length?,
            };
            if bytes > max {
                return Err(FetchError::TooLarge {
                    name: name.into(),
                    actual: bytes,
                    max,
                });
            }
            if let Some(folder) = staging.join(name).parent() {
                fs::create_dir_all(folder).map_err(FetchError::disk(folder))?;
            }
            let wanted = Wanted::unknown(&staging, name, bytes);
            hub::download(&agent, &url, &wanted, on_event)?;
        }
        let report = &mut |event| on_event(FetchEvent::Converting(event));
        Ok(convert_locked(&staging, store, name, None, calibrator, report)?)
    })();
    // Without hashes nothing in it could be resumed.
    fs::remove_dir_all(&staging).ok();
    let stored = stored?;
    on_event(FetchEvent::Ready {
        path: stored.path.clone(),
    });
    Ok(stored)
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
