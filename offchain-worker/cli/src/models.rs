//! Finding out which model a name or id stands for.

use surety_chain_client::{Chain, RegisteredModel, When};
use surety_model_fetch::{FetchOptions, fetch_text};
use surety_models::{KnownModel, ModelStore, StoreError, known, paths, tokens::TextCodec};
use surety_types::{ModelId, model::ModelManifest};

use crate::error::{CliError, Result};

/// The model that commands mean when none is named: of the exact tier, whose tasks earn and whose results can
/// be disputed.
pub const DEFAULT: &str = "all-MiniLM-L6-v2-exact";

/// A hash written in hexadecimal, with or without `0x`.
pub fn parse_id(text: &str) -> Option<ModelId> {
    let mut bytes = [0u8; 32];
    let digits = text.strip_prefix("0x").unwrap_or(text);
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(ModelId::from(bytes))
}

/// A model's name, for people.
pub fn name(manifest: &ModelManifest) -> String {
    manifest.name.to_string()
}

/// The manifest of a model whose files are here, or that can be fetched.
///
/// # Errors
/// When the name or id means nothing here, or the folder of that name cannot be read.
pub fn local(store: &ModelStore, text: &str) -> Result<ModelManifest> {
    if let Some(id) = parse_id(text) {
        let found = store.find(id).ok().map(|stored| stored.manifest);
        return found
            .or_else(|| known_id(id).map(|model| model.manifest))
            .ok_or_else(|| CliError::UnknownModel(text.into()));
    }
    match store.by_name(text) {
        Ok(stored) => Ok(stored.manifest),
        Err(e @ StoreError::Manifest { .. }) => Err(e.into()),
        Err(_) => known::by_name(text)
            .map(|model| model.manifest)
            .ok_or_else(|| CliError::UnknownModel(text.into())),
    }
}

/// The registered model that a name or id stands for.
///
/// A name may be registered more than once, by anybody: then files or knowledge here decide, or the id must
/// be given.
///
/// # Errors
/// When the chain has no such model, or several of that name.
pub async fn registered(
    chain: &dyn Chain,
    store: &ModelStore,
    text: &str,
) -> Result<(ModelId, RegisteredModel)> {
    let here = local(store, text).ok();
    let id = parse_id(text).or(here.as_ref().map(ModelManifest::id));
    if let Some(id) = id {
        if let Some(model) = chain.model(When::Finalized, &id).await? {
            return Ok((id, model));
        }
        if parse_id(text).is_some() {
            return Err(match here {
                Some(manifest) => CliError::NotRegistered(name(&manifest)),
                None => CliError::UnknownModel(text.into()),
            });
        }
    }
    let all = chain.models(When::Finalized).await?;
    let mut named = all.into_iter().filter(|(_, model)| name(&model.manifest) == text);
    match (named.next(), named.next()) {
        (Some(found), None) => Ok(found),
        (None, _) if here.is_some() => Err(CliError::NotRegistered(text.into())),
        (None, _) => Err(CliError::UnknownModel(text.into())),
        (Some(_), Some(_)) => Err(CliError::Usage(format!(
            "several models on the chain are called {text:?}; name one by its id, see: surety model list"
        ))),
    }
}

/// What the text of a model becomes ids by: as [`text_here`], or fetched where it is a known one. Never its
/// weights.
///
/// # Errors
/// When they are nowhere, or not what the manifest says.
pub async fn text(store: &ModelStore, manifest: &ModelManifest) -> Result<TextCodec> {
    of_text(store, manifest, |store, manifest| {
        match (
            find_text(store, cached().as_ref(), manifest),
            known_id(manifest.id()),
        ) {
            (Err(_), Some(known)) => Ok(fetch_text(store, &known, &FetchOptions::default(), &mut |_| ())?),
            (found, _) => found,
        }
    })
    .await
}

/// What the text of a model becomes ids by: from its files or those of its text alone, in the home or in
/// the user's cache.
///
/// # Errors
/// [`CliError::NotFetched`] where a known one is not here; else as [`text`].
pub async fn text_here(store: &ModelStore, manifest: &ModelManifest) -> Result<TextCodec> {
    let find = |store: &ModelStore, manifest: &ModelManifest| find_text(store, cached().as_ref(), manifest);
    of_text(store, manifest, find).await
}

/// Loads on a thread of its own.
async fn of_text(
    store: &ModelStore,
    manifest: &ModelManifest,
    load: impl FnOnce(&ModelStore, &ModelManifest) -> Result<TextCodec> + Send + 'static,
) -> Result<TextCodec> {
    let (store, manifest) = (store.clone(), manifest.clone());
    let loaded = tokio::task::spawn_blocking(move || load(&store, &manifest)).await;
    loaded.map_err(|e| CliError::Internal(e.to_string()))?
}

fn cached() -> Option<ModelStore> {
    paths::cache_home().map(|home| ModelStore::new(&home))
}

fn find_text(store: &ModelStore, cached: Option<&ModelStore>, manifest: &ModelManifest) -> Result<TextCodec> {
    if let Some(Ok(codec)) = cached.map(|cached| cached.text(manifest)) {
        return Ok(codec);
    }
    store
        .text(manifest)
        .map_err(|source| match known_id(manifest.id()) {
            Some(known) => CliError::NotFetched { model: known.name() },
            None => CliError::NoTokenizer {
                model: name(manifest),
                folder: store.text_folder(manifest),
                source: Box::new(source),
            },
        })
}

fn known_id(id: ModelId) -> Option<KnownModel> {
    known::all().into_iter().find(|model| model.manifest.id() == id)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_chain_client::FakeChain;
    use surety_types::model::{ModelFamily, Operation, Tier};

    use super::*;

    fn manifest(name: &str, weights_bytes: u64) -> ModelManifest {
        ModelManifest {
            name: name.as_bytes().to_vec().try_into().unwrap(),
            family: ModelFamily::Bert,
            tier: Tier::HardwareClass,
            operations: vec![Operation::Embed].try_into().unwrap(),
            weights: ModelId::zero(),
            weights_bytes,
            text: Default::default(),
            config: ModelId::zero(),
            exact: None,
        }
    }

    #[tokio::test]
    async fn a_name_must_stand_for_one_model() {
        let dir = tempfile::tempdir().unwrap();
        let store = ModelStore::new(dir.path());
        let chain = FakeChain::new();
        let register = |manifest: ModelManifest| {
            let model = RegisteredModel {
                owner: [0; 32].into(),
                manifest: manifest.clone(),
                deposit: 0,
            };
            chain.change(|state| state.models.insert(manifest.id(), model));
            chain.finalize();
            manifest.id()
        };
        let missing = registered(&chain, &store, "mine").await.err().unwrap();
        assert!(matches!(missing, CliError::UnknownModel(_)));
        // One that can be fetched is not therefore one that tasks can ask for.
        for known in [
            DEFAULT.to_owned(),
            format!("{:?}", local(&store, DEFAULT).unwrap().id()),
        ] {
            let unknown_there = registered(&chain, &store, &known).await.err().unwrap();
            assert!(
                matches!(&unknown_there, CliError::NotRegistered(name) if name == DEFAULT),
                "{unknown_there}"
            );
        }
        let first = register(manifest("mine", 1));
        assert_eq!(registered(&chain, &store, "mine").await.unwrap().0, first);
        let second = register(manifest("mine", 2));
        let twice = registered(&chain, &store, "mine").await.err().unwrap();
        assert!(matches!(twice, CliError::Usage(_)), "{twice}");
        let by_id = registered(&chain, &store, &format!("{second:?}")).await.unwrap();
        assert_eq!(by_id.0, second);
        let unknown = format!("{:?}", ModelId::repeat_byte(1));
        assert!(registered(&chain, &store, &unknown).await.is_err());
    }

    #[test]
    fn where_nothing_may_be_fetched_it_is_said_how_to_get_a_known_tokenizer_and_which_folder_another_needs() {
        let dir = tempfile::tempdir().unwrap();
        let store = ModelStore::new(dir.path());
        let told = |manifest: &ModelManifest| find_text(&store, None, manifest).err().unwrap().to_string();
        let known = told(&local(&store, DEFAULT).unwrap());
        for part in [&format!("surety model fetch {DEFAULT}"), "--fetch-tokenizers"] {
            assert!(known.contains(part), "{known}");
        }
        assert!(!known.contains(&dir.path().display().to_string()), "{known}");
        // Another model of that name is another model.
        let other = told(&manifest(DEFAULT, 1));
        assert!(other.contains("tokenizer.json"), "{other}");
        assert!(!dir.path().join("models").exists(), "something was fetched");
    }

    #[test]
    fn known_models_have_names_and_ids() {
        let dir = tempfile::tempdir().unwrap();
        let store = ModelStore::new(dir.path());
        let by_name = local(&store, DEFAULT).unwrap();
        assert_eq!(by_name.tier, Tier::Exact);
        let by_id = local(&store, &format!("{:?}", by_name.id())).unwrap();
        assert_eq!(by_name, by_id);
        assert!(matches!(local(&store, "nothing"), Err(CliError::UnknownModel(_))));
        assert!(matches!(local(&store, "../etc"), Err(CliError::UnknownModel(_))));
    }
}
