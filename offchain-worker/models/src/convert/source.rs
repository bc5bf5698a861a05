//! Published float weights, read row by row: no tensor is ever in memory as a whole.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use super::{ConvertError, check::Head};
use crate::{
    error::ModelError,
    format::{Dtype, Entry, PREFIX_BYTES, header_bytes, parse},
    shards::{INDEX, INDEX_BYTES_MAX, shards},
    store::{ModelFile, read_bounded},
};

/// Read at once.
const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// A folder's safetensors files.
pub(crate) struct Source {
    /// None of an outline.
    files: Vec<(PathBuf, File)>,
    tensors: BTreeMap<String, (usize, Entry)>,
    prefix: &'static str,
}

impl Source {
    /// Reads the headers.
    pub(crate) fn open(folder: &Path) -> Result<Self, ConvertError> {
        let mut source = Self::empty();
        for name in file_names(folder)? {
            source.add(folder.join(name))?;
        }
        Ok(source)
    }

    /// The headers of files that are not here: tensors have names, types and shapes, and no values.
    pub(super) fn outline(heads: Vec<Head>) -> Result<Self, ModelError> {
        let mut outline = Self::empty();
        for (file, Head(tensors)) in heads.into_iter().enumerate() {
            outline.insert(file, tensors)?;
        }
        Ok(outline)
    }

    fn empty() -> Self {
        Self {
            files: Vec::new(),
            tensors: BTreeMap::new(),
            prefix: "",
        }
    }

    /// Leaves out what all names begin with, when this tensor is there under the longer name.
    pub(crate) fn with_prefix(mut self, prefix: &'static str, tensor: &str) -> Self {
        if self.tensors.contains_key(&format!("{prefix}{tensor}")) {
            self.prefix = prefix;
        }
        self
    }

    fn add(&mut self, path: PathBuf) -> Result<(), ConvertError> {
        let mut file = File::open(&path).map_err(ConvertError::io(&path))?;
        let bytes = file.metadata().map_err(ConvertError::io(&path))?.len();
        let mut prefix = Vec::new();
        let mut take = |bytes: usize, into: &mut Vec<u8>| {
            let mut limited = (&mut file).take(bytes as u64);
            limited.read_to_end(into).map_err(ConvertError::io(&path))
        };
        take(PREFIX_BYTES, &mut prefix)?;
        let length = header_bytes(&prefix, bytes)?;
        let mut json = Vec::new();
        take(length, &mut json)?;
        self.insert(self.files.len(), parse(&json, bytes)?.tensors)?;
        self.files.push((path, file));
        Ok(())
    }

    /// Adds what the header of a file says.
    fn insert(&mut self, file: usize, tensors: BTreeMap<String, Entry>) -> Result<(), ModelError> {
        for (name, entry) in tensors {
            if self.tensors.insert(name.clone(), (file, entry)).is_some() {
                return Err(ModelError::Malformed(format!("tensor {name} is in two files")));
            }
        }
        Ok(())
    }

    /// A vector.
    pub(crate) fn vector(&mut self, name: &str, width: usize) -> Result<Vec<f32>, ConvertError> {
        let mut vector = Vec::new();
        self.rows(name, &[width], |values| {
            vector.extend_from_slice(values);
            Ok(())
        })?;
        Ok(vector)
    }

    /// Gives the rows of a matrix one after the other; those of a vector are its values all at once. An
    /// outline gives none.
    pub(crate) fn rows(
        &mut self,
        name: &str,
        shape: &[usize],
        mut row: impl FnMut(&mut [f32]) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        let name = format!("{}{name}", self.prefix);
        let missing = || ModelError::MissingTensor(name.clone());
        let (number, entry) = self.tensors.get(&name).ok_or_else(missing)?;
        if entry.shape != shape {
            return Err(ModelError::WrongShape {
                name,
                expected: shape.to_vec(),
                actual: entry.shape.clone(),
            }
            .into());
        }
        let convert = conversion(&name, entry.dtype)?;
        let width = shape.last().copied().unwrap_or(1).max(1);
        let row_bytes = width * entry.dtype.bytes();
        let chunk_bytes = (CHUNK_BYTES / row_bytes).max(1) * row_bytes;
        let Some((path, file)) = self.files.get_mut(*number) else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(entry.start))
            .map_err(ConvertError::io(path))?;
        let mut left = entry.bytes;
        let mut chunk = Vec::new();
        let mut values = Vec::new();
        while left > 0 {
            chunk.resize(usize::try_from(left).unwrap_or(usize::MAX).min(chunk_bytes), 0);
            file.read_exact(&mut chunk).map_err(|error| match error.kind() {
                // It has become shorter since its header was read.
                io::ErrorKind::UnexpectedEof => ModelError::Truncated.into(),
                _ => ConvertError::io(path)(error),
            })?;
            left -= chunk.len() as u64;
            values.clear();
            convert(&chunk, &mut values);
            if !values.iter().all(|value| value.is_finite()) {
                return Err(ModelError::NotFinite(name).into());
            }
            for values in values.chunks_mut(width) {
                row(values)?;
            }
        }
        Ok(())
    }
}

/// The folder's one file, or all that its index names.
fn file_names(folder: &Path) -> Result<BTreeSet<String>, ConvertError> {
    let one = ModelFile::Weights.name();
    let index = folder.join(INDEX);
    if folder.join(one).exists() || !index.exists() {
        return Ok(BTreeSet::from([one.into()]));
    }
    Ok(shards(&read_bounded(&index, INDEX_BYTES_MAX)?)?)
}

type Conversion = fn(&[u8], &mut Vec<f32>);

fn conversion(name: &str, dtype: Dtype) -> Result<Conversion, ModelError> {
    match dtype {
        Dtype::F32 => Ok(|bytes, out| out.extend(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)))),
        Dtype::F16 => Ok(|bytes, out| out.extend(halves(bytes).map(from_f16))),
        Dtype::BF16 => Ok(|bytes, out| out.extend(halves(bytes).map(from_bf16))),
        other => Err(ModelError::WrongType {
            name: name.into(),
            expected: "F32, F16 or BF16",
            dtype: other.to_string(),
        }),
    }
}

fn halves(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    bytes.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes))
}

fn from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Exact: every half-precision number is a single-precision one.
fn from_f16(bits: u16) -> f32 {
    const EXPONENT: u32 = 0x1f;
    let bits = u32::from(bits);
    let (sign, exponent, fraction) = (bits >> 15 << 31, bits >> 10 & EXPONENT, bits & 0x3ff);
    let size = match exponent {
        0 => fraction as f32 * f32::from_bits(0x3380_0000), // 2^-24
        EXPONENT => f32::from_bits(0x7f80_0000 | fraction << 13),
        _ => f32::from_bits((exponent + 112) << 23 | fraction << 13),
    };
    f32::from_bits(size.to_bits() | sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_numbers_keep_their_value() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x3555, 0.333_251_95),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            assert_eq!(from_f16(bits), value, "{bits:x}");
        }
        assert!(from_f16(0x7e01).is_nan());
        assert!(from_f16(0x8000).is_sign_negative());
        assert_eq!(from_bf16(0xbf80), -1.0);
    }
}
