//! Published weights that are cut into several files, shards: which these are.

use std::collections::BTreeSet;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};

use crate::error::ModelError;

/// Name of the file that lists them.
pub const INDEX: &str = "model.safetensors.index.json";

/// Most bytes that it may have: ten times those of a model with a hundred thousand tensors.
pub const INDEX_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Most files that weights may be cut into; the largest published models have two hundred.
pub const SHARDS_MAX: usize = 1024;

const NAME_BYTES_MAX: usize = 128;

const EXTENSION: &str = ".safetensors";

/// The files that an index names, each once. No name leads out of the index's folder.
///
/// # Errors
/// [`ModelError::Index`], [`ModelError::ShardName`] and [`ModelError::TooManyShards`].
pub fn shards(index: &[u8]) -> Result<BTreeSet<String>, ModelError> {
    let index: Index = serde_json::from_slice(index).map_err(|error| ModelError::Index(error.to_string()))?;
    let Shards(names) = index.weight_map;
    if names.is_empty() {
        return Err(ModelError::Index("it names no file".into()));
    }
    if names.len() > SHARDS_MAX {
        return Err(ModelError::TooManyShards { max: SHARDS_MAX });
    }
    match names.iter().find(|name| !is_plain(name)) {
        Some(name) => Err(ModelError::ShardName(name.chars().take(NAME_BYTES_MAX).collect())),
        None => Ok(names),
    }
}

fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    name.len() <= NAME_BYTES_MAX
        && !name.starts_with('.')
        && name.ends_with(EXTENSION)
        && name.bytes().all(plain)
}

#[derive(Deserialize)]
struct Index {
    weight_map: Shards,
}

/// The values of a map, of which no more are kept than show that there are too many.
struct Shards(BTreeSet<String>);

impl<'de> Deserialize<'de> for Shards {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Shards;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a file for each tensor")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shards, A::Error> {
                let mut names = BTreeSet::new();
                while let Some((IgnoredAny, name)) = map.next_entry::<IgnoredAny, String>()? {
                    if names.len() <= SHARDS_MAX {
                        names.insert(name);
                    }
                }
                Ok(Shards(names))
            }
        }
        deserializer.deserialize_map(Names)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn of(files: impl IntoIterator<Item = String>) -> Result<BTreeSet<String>, ModelError> {
        let files = files.into_iter().enumerate();
        let map: serde_json::Map<String, serde_json::Value> = files
            .map(|(tensor, file)| (tensor.to_string(), file.into()))
            .collect();
        shards(
            serde_json::json!({ "metadata": { "total_size": 7 }, "weight_map": map })
                .to_string()
                .as_bytes(),
        )
    }

    #[test]
    fn each_file_is_named_once() {
        let (one, two) = (
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
        );
        let named = of([two, one, two].map(String::from)).unwrap();
        assert!(named.iter().eq([one, two]));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = format!("{}{EXTENSION}", "x".repeat(NAME_BYTES_MAX));
        for name in [
            "../../etc/passwd",
            "/etc/passwd",
            "../x.safetensors",
            "a/b.safetensors",
            "a\\b.safetensors",
            ".safetensors",
            "config.json",
            "x.bin",
            "x\0.safetensors",
            "x?.safetensors",
            "%2e%2e%2fx.safetensors",
            "",
            &long,
        ] {
            let refused = of(["fine.safetensors".into(), name.into()]);
            assert!(matches!(refused, Err(ModelError::ShardName(_))), "{name}");
        }
    }

    #[test]
    fn there_are_not_more_than_so_many() {
        let many = |count: usize| of((0..count).map(|shard| format!("{shard}{EXTENSION}")));
        assert_eq!(many(SHARDS_MAX).unwrap().len(), SHARDS_MAX);
        for count in [SHARDS_MAX + 1, 10_000] {
            assert_eq!(many(count), Err(ModelError::TooManyShards { max: SHARDS_MAX }));
        }
    }

    #[test]
    fn what_is_no_index_is_refused() {
        for text in [
            "",
            "{}",
            "[]",
            r#"{"weight_map": 7}"#,
            r#"{"weight_map": {"a": 7}}"#,
            r#"{"weight_map": {}}"#,
        ] {
            assert!(
                matches!(shards(text.as_bytes()), Err(ModelError::Index(_))),
                "{text}"
            );
        }
    }
}
