//! The header of a safetensors file, read by our own few lines: the published library adds hostile offsets up
//! without looking, and takes a name that stands twice.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};

use crate::error::ModelError;

/// Length of the number at the front that says how long the header is.
pub(crate) const PREFIX_BYTES: usize = 8;

/// Longest header: a thousand times that of a model with two hundred layers.
const HEADER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// More than any tensor has.
const DIMENSIONS_MAX: usize = 8;

/// Where a tensor lies and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    /// First byte, counted from the start of the file.
    pub(crate) start: u64,
    /// Within the file, and as many as the shape asks for.
    pub(crate) bytes: u64,
}

/// Element types that a model file may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Dtype {
    #[serde(rename = "BOOL")]
    Bool,
    U8,
    I8,
    U16,
    I16,
    F16,
    BF16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

impl Dtype {
    /// Of one element.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Everything in a file's header.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) tensors: BTreeMap<String, Entry>,
}

/// How long the header is, from the first bytes of a file of `file_bytes`.
pub(crate) fn header_bytes(prefix: &[u8], file_bytes: u64) -> Result<usize, ModelError> {
    let prefix = prefix.first_chunk().ok_or(ModelError::Truncated)?;
    let bytes = u64::from_le_bytes(*prefix);
    if bytes > HEADER_BYTES_MAX {
        return Err(ModelError::Malformed(format!("a header of {bytes} bytes")));
    }
    if bytes > file_bytes.saturating_sub(PREFIX_BYTES as u64) {
        return Err(ModelError::Truncated);
    }
    usize::try_from(bytes).map_err(|_| ModelError::Truncated)
}

/// Reads the JSON of a header. The tensors must fill the rest of the file, one after the other.
pub(crate) fn parse(json: &[u8], file_bytes: u64) -> Result<Header, ModelError> {
    let malformed = |error: serde_json::Error| ModelError::Malformed(error.to_string());
    let raw: Raw = serde_json::from_slice(json).map_err(malformed)?;
    let mut order: Vec<(&String, &RawEntry)> = raw.tensors.iter().collect();
    order.sort_by_key(|(_, entry)| entry.data_offsets);
    let mut tensors = BTreeMap::new();
    let data = (PREFIX_BYTES + json.len()) as u64;
    let mut next = data;
    for (name, entry) in order {
        let wrong = |what: &str| ModelError::Malformed(format!("tensor {name} has {what}"));
        let (start, end) = entry.data_offsets;
        let (start, end) = (start.checked_add(data), end.checked_add(data));
        let (Some(start), Some(end)) = (start, end) else {
            return Err(wrong("an offset beyond all files"));
        };
        if start != next || end < start {
            return Err(wrong("offsets that overlap or leave a gap"));
        }
        if entry.shape.len() > DIMENSIONS_MAX {
            return Err(wrong("too many dimensions"));
        }
        let size = entry
            .shape
            .iter()
            .try_fold(entry.dtype.bytes() as u64, |size, dimension| {
                size.checked_mul(*dimension as u64)
            });
        if size != Some(end - start) {
            return Err(wrong("a shape that does not make its bytes"));
        }
        let entry = Entry {
            dtype: entry.dtype,
            shape: entry.shape.clone(),
            start,
            bytes: end - start,
        };
        tensors.insert(name.clone(), entry);
        next = end;
    }
    match next.cmp(&file_bytes) {
        std::cmp::Ordering::Equal => Ok(Header {
            metadata: raw.metadata,
            tensors,
        }),
        std::cmp::Ordering::Greater => Err(ModelError::Truncated),
        std::cmp::Ordering::Less => Err(ModelError::Malformed("bytes that belong to no tensor".into())),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    dtype: Dtype,
    shape: Vec<usize>,
    data_offsets: (u64, u64),
}

struct Raw {
    metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, RawEntry>,
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Raw;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
                let (mut metadata, mut tensors) = (None, BTreeMap::new());
                while let Some(name) = map.next_key::<String>()? {
                    let twice = match &name[..] {
                        "__metadata__" => metadata.replace(map.next_value()?).is_some(),
                        _ => {
                            let entry = map.next_value()?;
                            tensors.insert(name.clone(), entry).is_some()
                        }
                    };
                    if twice {
                        return Err(A::Error::custom(format!("{name} stands there twice")));
                    }
                }
                Ok(Raw {
                    metadata: metadata.unwrap_or_default(),
                    tensors,
                })
            }
        }
        deserializer.deserialize_map(Fields)
    }
}
