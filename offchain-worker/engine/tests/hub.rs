//! Models that are converted on this machine: known ones, and whatever a repository on the hub holds.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;

use common::{
    exact::Published,
    fetching::{COMPLETE, Fixture, hub},
    server::{Act, serve},
};
use surety_engine::exact::ExactCalibrator;
use surety_model_fetch::{FetchError, FetchEvent, HubModel, fetch_from_hub};
use surety_models::{
    ModelStore, StoredModel,
    convert::{ConvertError, convert_into},
};
use surety_types::{
    ContentHash,
    model::{ModelFamily, Operation, Tier},
};
use tempfile::TempDir;

/// Fetches what a hub holds as `owner/tiny`.
fn fetched(published: &Published, acts: &[Act]) -> (TempDir, Result<StoredModel, FetchError>) {
    let home = tempfile::tempdir().unwrap();
    let store = ModelStore::new(home.path());
    let (url, _) = serve(published.files(), acts);
    let model: HubModel = "owner/tiny".parse().unwrap();
    let stored = fetch_from_hub(
        &store,
        &model,
        &model.exact_name(),
        &hub(&url),
        &ExactCalibrator,
        &mut |_| (),
    );
    (home, stored)
}

fn left(home: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(home.path().join("models")).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn any_llama_on_the_hub_becomes_an_exact_model() {
    let published = Published::llama(true, false);
    let (home, stored) = fetched(&published, &[Act::DropAfter(1000), Act::Serve]);
    let stored = stored.unwrap();
    stored.verify().unwrap();
    let manifest = &stored.manifest;
    assert_eq!(&*manifest.name, "tiny-exact");
    assert_eq!(
        (manifest.family, manifest.tier),
        (ModelFamily::Llama, Tier::Exact)
    );
    assert_eq!(manifest.operations.to_vec(), [Operation::Generate]);
    assert_eq!(left(&home), ["tiny-exact"]);
    // Another machine, another line: the same model.
    let (_, again) = fetched(&published, &[Act::Serve]);
    assert_eq!(again.unwrap().manifest.id(), manifest.id());
}

#[test]
fn what_cannot_be_converted_leaves_nothing_behind() {
    let mut published = Published::llama(true, false);
    published.config["model_type"] = "gpt2".into();
    let (home, refused) = fetched(&published, &[Act::Serve]);
    assert!(
        matches!(&refused, Err(FetchError::Convert(error)) if matches!(**error, ConvertError::Model(_))),
        "{refused:?}"
    );
    assert!(left(&home).is_empty());
    let (home, refused) = fetched(&Published::bert(), &[Act::Status(404)]);
    assert!(
        matches!(refused, Err(FetchError::Status { status: 404, .. })),
        "{refused:?}"
    );
    assert!(left(&home).is_empty());
}

/// The fixture with a model that is converted from the one that its hub has.
fn derived(fixture: &Fixture) -> Fixture {
    let mut derived = Fixture::new();
    derived.model.converted_from = Some(Box::new(fixture.model.clone()));
    derived.model.manifest.name = b"tiny-exact".to_vec().try_into().unwrap();
    derived.model.manifest.tier = Tier::Exact;
    derived
}

#[test]
fn a_known_conversion_must_give_the_known_model() {
    let fixture = Fixture::new();
    let (url, seen) = serve(fixture.files.clone(), &[Act::Serve]);
    let mut wrong = derived(&fixture);
    wrong.model.manifest.weights = ContentHash::zero();
    let refused = wrong.fetch_from(&url).unwrap_err();
    let FetchError::OtherConversion { expected, actual } = refused else {
        panic!("{refused}");
    };
    assert_eq!(expected, ContentHash::zero());
    // The published files stay; half a conversion does not.
    assert_eq!(wrong.left(), COMPLETE);

    // What came out elsewhere is the known one here.
    let elsewhere = tempfile::tempdir().unwrap();
    let manifest = convert_into(
        &wrong.store().by_name("tiny").unwrap().path,
        elsewhere.path(),
        "tiny-exact",
        None,
        &ExactCalibrator,
        &mut |_| (),
    )
    .unwrap();
    assert_eq!(manifest.weights, actual);
    let mut right = derived(&fixture);
    right.model.manifest = manifest.clone();
    let stored = right.fetch_from(&url).unwrap();
    assert_eq!(stored.manifest, manifest);
    assert_eq!(right.left().len(), 2 * COMPLETE.len());
    let converting = |event: &FetchEvent| matches!(event, FetchEvent::Converting(_));
    assert!(right.events.iter().any(converting));

    // It is there: nobody is asked, and nothing is computed.
    let asked = seen.lock().unwrap().len();
    right.events.clear();
    right.fetch_from(&url).unwrap();
    assert_eq!(seen.lock().unwrap().len(), asked);
    assert!(!right.events.iter().any(converting));
}
