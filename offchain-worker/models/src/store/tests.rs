#![allow(clippy::unwrap_used)]

use surety_types::model::{ModelFamily, Operation, TextForm};

use super::*;

/// A model of this tier, whose weights are `bytes` zeros that take no disk.
fn sparse(tier: Tier, bytes: u64) -> (tempfile::TempDir, StoredModel) {
    let folder = tempfile::tempdir().unwrap();
    for file in [ModelFile::Tokenizer, ModelFile::Config] {
        fs::write(folder.path().join(file.name()), "{}").unwrap();
    }
    let weights = File::create(folder.path().join(ModelFile::Weights.name())).unwrap();
    weights.set_len(bytes).unwrap();
    let manifest = ModelManifest {
        name: b"sparse".to_vec().try_into().unwrap(),
        family: ModelFamily::Llama,
        tier,
        operations: vec![Operation::Generate].try_into().unwrap(),
        weights: ContentHash::zero(),
        weights_bytes: 1,
        text: TextForm {
            tokenizer: file_hash(b"{}"),
            ..TextForm::default()
        },
        config: file_hash(b"{}"),
        exact: None,
    };
    let path = folder.path().into();
    (folder, StoredModel { manifest, path })
}

#[test]
fn exact_weights_may_have_64_gib_and_others_4() {
    for (tier, max) in [(Tier::Exact, 64 * GIB), (Tier::HardwareClass, 4 * GIB)] {
        let (_folder, stored) = sparse(tier, max + 1);
        for refused in [stored.verify(), stored.read().map(drop)] {
            let too_large = matches!(refused, Err(StoreError::TooLarge { max: said, .. }) if said == max);
            assert!(too_large, "{tier:?}: {refused:?}");
        }
        // So many are taken; these are not what the manifest says.
        let (_folder, stored) = sparse(tier, max);
        for refused in [stored.verify(), stored.read().map(drop)] {
            let other_size = matches!(refused, Err(StoreError::WrongSize { actual, .. }) if actual == max);
            assert!(other_size, "{tier:?}: {refused:?}");
        }
    }
}

#[test]
fn what_is_put_in_the_place_of_checked_weights_is_not_read() {
    let (_folder, mut stored) = sparse(Tier::Exact, 3);
    let path = stored.path.join(ModelFile::Weights.name());
    fs::write(&path, "one").unwrap();
    (stored.manifest.weights, stored.manifest.weights_bytes) = (file_hash(b"one"), 3);
    let files = stored.read().unwrap();
    assert!(matches!(files.weights, WeightBytes::Disk(_)));
    let other = stored.path.join("other");
    fs::write(&other, "two").unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(files.weights.into_memory().unwrap(), b"one");
    assert!(matches!(stored.read(), Err(StoreError::WrongHash { .. })));
}
