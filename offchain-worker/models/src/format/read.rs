//! Reading the exact form.

use std::collections::BTreeMap;

use surety_exact::{Precision, Turns, groups};
use surety_types::model::ModelFamily;

use super::{Dtype, Entry, FORMAT, FORMAT_KEY, PREFIX_BYTES, Parts, assemble, header_bytes, parse};
use crate::{
    config::{BertConfig, LlamaConfig},
    error::ModelError,
    form::same_family,
    store::WeightBytes,
    weights::{BertWeights, Linear, LlamaWeights, Norm, Quanta, Table},
};

/// Read at once; a multiple of every element's size.
const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// A model of any family.
#[derive(Clone, Debug, PartialEq)]
pub enum Weights {
    /// An encoder.
    Bert(BertWeights),
    /// A decoder.
    Llama(LlamaWeights),
}

impl Weights {
    /// What computes with them.
    pub fn family(&self) -> ModelFamily {
        match self {
            Self::Bert(_) => ModelFamily::Bert,
            Self::Llama(weights) => weights.family(),
        }
    }

    /// The tensors under the names that the file has for them.
    pub fn parts(&self) -> Parts<'_> {
        match self {
            Self::Bert(weights) => weights.into(),
            Self::Llama(weights) => weights.into(),
        }
    }
}

/// Reads a model file. Nothing in it is trusted: its hash says whose file it is, not that it is well made.
///
/// A tensor's values are read only where the configuration asks for so many, and from a file on disk in
/// pieces: a model is never in memory twice.
///
/// # Errors
/// [`ModelError`] for anything but a file that the configuration's architecture could have been written to.
pub fn read(file: impl Into<WeightBytes>, config: &[u8], family: ModelFamily) -> Result<Weights, ModelError> {
    let file = file.into();
    match family {
        ModelFamily::Bert => {
            let config = BertConfig::parse(config)?;
            assemble::bert(Tensors::open(file)?, &config).map(Weights::Bert)
        }
        ModelFamily::Llama | ModelFamily::Qwen3 => {
            let config = LlamaConfig::parse(config)?;
            same_family(family, config.family())?;
            assemble::llama(Tensors::open(file)?, &config).map(Weights::Llama)
        }
    }
}

/// The tensors of a file, to be taken out one by one.
pub(super) struct Tensors {
    file: WeightBytes,
    left: BTreeMap<String, Entry>,
    /// That of the file's first quantized tensor; all must be of one.
    precision: Precision,
}

impl Tensors {
    /// Reads the header.
    fn open(file: WeightBytes) -> Result<Self, ModelError> {
        let file_bytes = file.count()?;
        let mut prefix = [0; PREFIX_BYTES];
        file.read_at(0, &mut prefix)?;
        let mut json = vec![0; header_bytes(&prefix, file_bytes)?];
        file.read_at(PREFIX_BYTES as u64, &mut json)?;
        let header = parse(&json, file_bytes)?;
        if header.metadata.get(FORMAT_KEY).map(String::as_str) != Some(FORMAT) {
            return Err(ModelError::Malformed(format!(
                "its metadata does not say that the format is {FORMAT}"
            )));
        }
        let precision = header.tensors.values().find_map(|entry| match entry.dtype {
            Dtype::I8 => Some(Precision::Int8),
            Dtype::I16 => Some(Precision::Int12),
            _ => None,
        });
        Ok(Self {
            file,
            left: header.tensors,
            precision: precision.unwrap_or_default(),
        })
    }

    /// Whether there is such a tensor.
    pub(super) fn has(&self, name: &str) -> bool {
        self.left.contains_key(name)
    }

    /// Everything must have been taken.
    pub(super) fn finish(mut self) -> Result<(), ModelError> {
        match self.left.pop_first() {
            Some((name, _)) => Err(ModelError::UnknownTensor(name)),
            None => Ok(()),
        }
    }

    /// The values of a tensor that must be of this type and shape: of elements of `N` bytes.
    fn take<const N: usize, T>(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[usize],
        value: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, ModelError> {
        let missing = || ModelError::MissingTensor(name.into());
        let entry = self.left.remove(name).ok_or_else(missing)?;
        if entry.shape != shape {
            return Err(ModelError::WrongShape {
                name: name.into(),
                expected: shape.to_vec(),
                actual: entry.shape,
            });
        }
        if entry.dtype != dtype {
            return Err(wrong_type(name, dtype, entry.dtype));
        }
        let mut left = usize::try_from(entry.bytes)
            .map_err(|_| ModelError::Malformed(format!("tensor {name} is larger than any memory")))?;
        let (mut values, mut at) = (Vec::with_capacity(left / N), entry.start);
        let mut chunk = vec![0; left.min(CHUNK_BYTES)];
        while left > 0 {
            chunk.truncate(left);
            self.file.read_at(at, &mut chunk)?;
            values.extend(chunk.as_chunks().0.iter().map(|bytes| value(*bytes)));
            at += chunk.len() as u64;
            left -= chunk.len();
        }
        Ok(values)
    }

    fn quantized(&mut self, name: &str, shape: &[usize]) -> Result<Quanta, ModelError> {
        Ok(match self.precision {
            Precision::Int8 => Quanta::Int8(self.take(name, Dtype::I8, shape, i8::from_le_bytes)?),
            Precision::Int12 => Quanta::Int12(self.take(name, Dtype::I16, shape, i16::from_le_bytes)?),
        })
    }

    fn real(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let values = self.take(name, Dtype::F32, shape, f32::from_le_bytes)?;
        if values.iter().all(|value| value.is_finite()) {
            Ok(values)
        } else {
            Err(ModelError::NotFinite(name.into()))
        }
    }

    fn scales(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let scales = self.real(name, shape)?;
        if scales.iter().all(|scale| *scale >= 0.0) {
            Ok(scales)
        } else {
            Err(ModelError::NegativeScale(name.into()))
        }
    }

    pub(super) fn vector(&mut self, name: &str, width: usize) -> Result<Vec<f32>, ModelError> {
        self.real(name, &[width])
    }

    /// A vector that need not be there.
    pub(super) fn optional(&mut self, name: &str, width: usize) -> Result<Option<Vec<f32>>, ModelError> {
        if self.has(name) {
            self.vector(name, width).map(Some)
        } else {
            Ok(None)
        }
    }

    pub(super) fn turns(&mut self, name: &str, pairs: usize) -> Result<Vec<Turns>, ModelError> {
        self.take(name, Dtype::U64, &[pairs], |bytes| {
            Turns(u64::from_le_bytes(bytes))
        })
    }

    pub(super) fn table(&mut self, stem: &str, rows: usize, width: usize) -> Result<Table, ModelError> {
        Ok(Table {
            rows,
            width,
            q: self.quantized(&format!("{stem}.q"), &[rows, width])?,
            scales: self.scales(&format!("{stem}.scales"), &[rows, groups(width)])?,
        })
    }

    pub(super) fn linear(
        &mut self,
        stem: &str,
        (outputs, inputs): (usize, usize),
        bias: bool,
    ) -> Result<Linear, ModelError> {
        let bias = if bias {
            Some(self.vector(&format!("{stem}.bias"), outputs)?)
        } else {
            None
        };
        let Table { q, scales, .. } = self.table(stem, outputs, inputs)?;
        Ok(Linear {
            inputs,
            outputs,
            q,
            scales,
            bias,
        })
    }

    pub(super) fn norm(
        &mut self,
        stem: &str,
        width: usize,
        epsilon: f32,
        bias: bool,
    ) -> Result<Norm, ModelError> {
        Ok(Norm {
            weight: self.vector(&format!("{stem}.weight"), width)?,
            bias: if bias {
                Some(self.vector(&format!("{stem}.bias"), width)?)
            } else {
                None
            },
            epsilon,
        })
    }
}

fn wrong_type(name: &str, expected: Dtype, actual: Dtype) -> ModelError {
    ModelError::WrongType {
        name: name.into(),
        expected: match expected {
            Dtype::I8 => "I8",
            Dtype::I16 => "I16",
            Dtype::U64 => "U64",
            _ => "F32",
        },
        dtype: actual.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{fs::File, os::unix::fs::FileExt};

    use super::*;

    const GIB: u64 = 1 << 30;

    /// A sparse file: a tensor of 5 GiB without a byte on disk, and small ones behind it.
    fn sparse() -> (File, u64) {
        let big = 5 * GIB;
        let entry = |name: &str, dtype: &str, shape: &[u64], start: u64, bytes: u64| {
            format!(
                r#""{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{start},{}]}}"#,
                start + bytes
            )
        };
        let header = [
            format!(r#""__metadata__":{{"{FORMAT_KEY}":"{FORMAT}"}}"#),
            entry("big.q", "I8", &[5, GIB], 0, big),
            entry("far.q", "I8", &[2, 3], big, 6),
            entry("far.scales", "F32", &[2, 1], big + 6, 8),
            entry("turns", "U64", &[1], big + 14, 8),
        ];
        let header = format!("{{{}}}", header.join(","));
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&(header.len() as u64).to_le_bytes(), 0)
            .unwrap();
        file.write_all_at(header.as_bytes(), PREFIX_BYTES as u64).unwrap();
        let far = PREFIX_BYTES as u64 + header.len() as u64 + big;
        file.write_all_at(&[1, 2, 3, 255, 254, 253], far).unwrap();
        file.write_all_at(&0.5f32.to_le_bytes(), far + 6).unwrap();
        file.write_all_at(&2f32.to_le_bytes(), far + 10).unwrap();
        file.write_all_at(&7u64.to_le_bytes(), far + 14).unwrap();
        (file, far + 22)
    }

    #[test]
    fn what_lies_beyond_4_gib_is_read_without_what_lies_before_it() {
        let (file, bytes) = sparse();
        assert!(bytes > 4 * GIB && file.metadata().unwrap().len() == bytes);
        let mut tensors = Tensors::open(file.into()).unwrap();
        let table = tensors.table("far", 2, 3).unwrap();
        assert_eq!(table.q, Quanta::Int8(vec![1, 2, 3, -1, -2, -3]));
        assert_eq!(table.scales, [0.5, 2.0]);
        assert_eq!(tensors.turns("turns", 1).unwrap(), [Turns(7)]);
        // Nobody has asked for it: its 5 GiB are still not read, nor is there memory for them.
        assert_eq!(tensors.finish(), Err(ModelError::UnknownTensor("big.q".into())));
    }

    #[test]
    fn a_tensor_is_not_read_unless_it_has_the_size_that_is_asked_for() {
        let (file, _) = sparse();
        let mut tensors = Tensors::open(file.into()).unwrap();
        let refused = tensors.table("big", 5, 128);
        assert!(
            matches!(refused, Err(ModelError::WrongShape { .. })),
            "{refused:?}"
        );
    }

    #[test]
    fn a_file_that_shrinks_while_it_is_read_is_an_error() {
        let (file, bytes) = sparse();
        let shrinking = file.try_clone().unwrap();
        let mut tensors = Tensors::open(file.into()).unwrap();
        shrinking.set_len(bytes - 20).unwrap();
        assert_eq!(tensors.table("far", 2, 3), Err(ModelError::Truncated));
    }

    #[test]
    fn a_file_on_disk_is_read_as_one_in_memory_is() {
        let header = format!(
            r#"{{"__metadata__":{{"{FORMAT_KEY}":"{FORMAT}"}},"x":{{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}}}"#
        );
        let length = (header.len() as u64).to_le_bytes();
        let data = [1f32, -2.5].map(f32::to_le_bytes).concat();
        let bytes = [&length, header.as_bytes(), &data].concat();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        for weights in [WeightBytes::from(bytes.clone()), file.into()] {
            assert_eq!(weights.count().unwrap(), bytes.len() as u64);
            let mut tensors = Tensors::open(weights.clone()).unwrap();
            assert_eq!(tensors.vector("x", 2).unwrap(), [1.0, -2.5]);
            assert_eq!(weights.into_memory().unwrap(), bytes);
        }
    }
}
