//! Exact weights are read from their file after its hash matched: what somebody does to the file in between.

#![allow(clippy::unwrap_used)]

mod common;

use std::{fs::OpenOptions, os::unix::fs::FileExt, sync::Arc};

use common::exact::{As, Published};
use surety_engine::{Engine, EngineError, exact::ExactCalibrator, open};
use surety_models::{ModelError, ModelStore, StoredModel, convert::convert};
use tempfile::TempDir;

fn stored() -> (TempDir, StoredModel) {
    let [home, source] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    Published::bert().write(source.path(), As::F32);
    let store = ModelStore::new(home.path());
    let stored = convert(source.path(), &store, "tiny", None, &ExactCalibrator, &mut |_| ()).unwrap();
    (home, stored)
}

/// What comes of a model whose file is changed between the check of its hash and its being read.
fn opened_after(change: impl FnOnce(&std::fs::File, u64)) -> Result<Arc<dyn Engine>, EngineError> {
    let (_home, stored) = stored();
    let files = stored.read().unwrap();
    let path = stored.path.join("model.safetensors");
    let file = OpenOptions::new().write(true).open(path).unwrap();
    change(&file, stored.manifest.weights_bytes);
    open(files)
}

#[test]
fn weights_that_are_changed_after_their_check_are_refused() {
    assert!(opened_after(|_, _| ()).is_ok());
    // The last bytes are a quantized row's.
    let changed = opened_after(|file, bytes| file.write_all_at(&[0x55], bytes - 2).unwrap());
    assert!(matches!(changed, Err(EngineError::Model(ModelError::WeightRoot))));
}

#[test]
fn weights_that_are_cut_short_after_their_check_are_an_error_and_no_crash() {
    for left in [0, 4, 100, 2000] {
        let cut = opened_after(|file, _| file.set_len(left).unwrap());
        assert!(
            matches!(cut, Err(EngineError::Model(ModelError::Truncated))),
            "{left}"
        );
    }
}
