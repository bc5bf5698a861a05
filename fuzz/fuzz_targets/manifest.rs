//! `manifest.json`, by way of a store.
#![no_main]

use std::{fs, sync::OnceLock};

use libfuzzer_sys::fuzz_target;
use surety_models::ModelStore;
use tempfile::TempDir;

static HOME: OnceLock<TempDir> = OnceLock::new();

fuzz_target!(|json: &[u8]| {
    let home = HOME.get_or_init(|| tempfile::tempdir().expect("a temporary folder"));
    let folder = home.path().join("models").join("fuzz");
    fs::create_dir_all(&folder).expect("room for a folder");
    fs::write(folder.join("manifest.json"), json).expect("room for a file");
    if let Ok(stored) = ModelStore::new(home.path()).by_name("fuzz") {
        stored.manifest.id();
    }
});
