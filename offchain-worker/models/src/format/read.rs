//! Reading the exact form.

use std::collections::BTreeMap;

use surety_exact::{Precision, Turns, groups};
use surety_types::model::ModelFamily;

use super::{Dtype, Entry, FORMAT, FORMAT_KEY, PREFIX_BYTES, Parts, assemble, header_bytes, parse};
use crate::{
    config::{BertConfig, LlamaConfig},
    error::ModelError,
    weights::{BertWeights, Linear, LlamaWeights, Norm, Quanta, Table},
};

/// Spare memory at the end of the file's buffer that is worth giving back at once.
const SPARE_BYTES: usize = 16 * 1024 * 1024;

/// A model of either family.
#[derive(Clone, Debug, PartialEq)]
pub enum Weights {
    /// An encoder.
    Bert(BertWeights),
    /// A decoder.
    Llama(LlamaWeights),
}

impl Weights {
    /// Encoder or decoder: which form the file has.
    pub fn family(&self) -> ModelFamily {
        match self {
            Self::Bert(_) => ModelFamily::Bert,
            Self::Llama(_) => ModelFamily::Llama,
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
/// Takes the bytes, and gives their memory back piece by piece: a model is never in memory twice.
///
/// # Errors
/// [`ModelError`] for anything but a file that the configuration's architecture could have been written to.
pub fn read(file: Vec<u8>, config: &[u8], family: ModelFamily) -> Result<Weights, ModelError> {
    match family {
        ModelFamily::Bert => {
            let config = BertConfig::parse(config)?;
            assemble::bert(Tensors::read(file)?, &config).map(Weights::Bert)
        }
        ModelFamily::Llama => {
            let config = LlamaConfig::parse(config)?;
            assemble::llama(Tensors::read(file)?, &config).map(Weights::Llama)
        }
    }
}

enum Values {
    Quantized(Quanta),
    Real(Vec<f32>),
    Whole(Vec<u64>),
}

impl Values {
    fn dtype(&self) -> Dtype {
        match self {
            Self::Quantized(Quanta::Int8(_)) => Dtype::I8,
            Self::Quantized(Quanta::Int12(_)) => Dtype::I16,
            Self::Real(_) => Dtype::F32,
            Self::Whole(_) => Dtype::U64,
        }
    }
}

/// The tensors of a file, to be taken out one by one.
pub(super) struct Tensors {
    left: BTreeMap<String, (Vec<usize>, Values)>,
    /// That of the file's first quantized tensor; all must be of one.
    precision: Precision,
}

impl Tensors {
    fn read(mut file: Vec<u8>) -> Result<Self, ModelError> {
        let bytes = header_bytes(&file, file.len() as u64)?;
        let json = file
            .get(PREFIX_BYTES..PREFIX_BYTES + bytes)
            .ok_or(ModelError::Truncated)?;
        let header = parse(json, file.len() as u64)?;
        if header.metadata.get(FORMAT_KEY).map(String::as_str) != Some(FORMAT) {
            return Err(ModelError::Malformed(format!(
                "its metadata does not say that the format is {FORMAT}"
            )));
        }
        let mut order: Vec<(String, Entry)> = header.tensors.into_iter().collect();
        // From the end, so that what has been read can be cut off.
        order.sort_by_key(|(_, entry)| std::cmp::Reverse((entry.start, entry.bytes)));
        let mut tensors = BTreeMap::new();
        for (name, entry) in order {
            let data = file
                .get(entry.start..entry.start.saturating_add(entry.bytes))
                .ok_or(ModelError::Truncated)?;
            let values = values(&name, entry.dtype, data)?;
            file.truncate(entry.start);
            if file.capacity() - file.len() > SPARE_BYTES {
                file.shrink_to_fit();
            }
            tensors.insert(name, (entry.shape, values));
        }
        let precision = tensors.values().find_map(|(_, values)| match values {
            Values::Quantized(values) => Some(values.precision()),
            _ => None,
        });
        Ok(Self {
            left: tensors,
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

    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Values, ModelError> {
        let missing = || ModelError::MissingTensor(name.into());
        let (actual, values) = self.left.remove(name).ok_or_else(missing)?;
        if actual != shape {
            return Err(ModelError::WrongShape {
                name: name.into(),
                expected: shape.to_vec(),
                actual,
            });
        }
        Ok(values)
    }

    fn quantized(&mut self, name: &str, shape: &[usize]) -> Result<Quanta, ModelError> {
        match self.take(name, shape)? {
            Values::Quantized(values) if values.precision() == self.precision => Ok(values),
            other => {
                let expected = match self.precision {
                    Precision::Int8 => Dtype::I8,
                    Precision::Int12 => Dtype::I16,
                };
                Err(wrong_type(name, expected, other.dtype()))
            }
        }
    }

    fn real(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        match self.take(name, shape)? {
            Values::Real(values) if values.iter().all(|value| value.is_finite()) => Ok(values),
            Values::Real(_) => Err(ModelError::NotFinite(name.into())),
            other => Err(wrong_type(name, Dtype::F32, other.dtype())),
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
        match self.take(name, &[pairs])? {
            Values::Whole(values) => Ok(values.into_iter().map(Turns).collect()),
            other => Err(wrong_type(name, Dtype::U64, other.dtype())),
        }
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

fn values(name: &str, dtype: Dtype, data: &[u8]) -> Result<Values, ModelError> {
    Ok(match dtype {
        Dtype::I8 => Values::Quantized(Quanta::Int8(data.iter().map(|byte| byte.cast_signed()).collect())),
        Dtype::I16 => Values::Quantized(Quanta::Int12(
            data.as_chunks()
                .0
                .iter()
                .map(|b| i16::from_le_bytes(*b))
                .collect(),
        )),
        Dtype::F32 => Values::Real(
            data.as_chunks()
                .0
                .iter()
                .map(|b| f32::from_le_bytes(*b))
                .collect(),
        ),
        Dtype::U64 => Values::Whole(
            data.as_chunks()
                .0
                .iter()
                .map(|b| u64::from_le_bytes(*b))
                .collect(),
        ),
        other => {
            return Err(ModelError::WrongType {
                name: name.into(),
                expected: "I8, I16, F32 or U64",
                dtype: other.to_string(),
            });
        }
    })
}
