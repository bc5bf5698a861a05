//! Folders of the user.

use std::{env, path::PathBuf};

/// `${XDG_CACHE_HOME:-~/.cache}/surety`: a home for a [`crate::ModelStore`] whose models can be had again,
/// shared by tests and by the scripts. `None` when the environment names neither.
pub fn cache_home() -> Option<PathBuf> {
    let folder = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    folder("XDG_CACHE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("surety"))
}
