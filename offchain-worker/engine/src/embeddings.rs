//! Output blobs of the operation `Embed`: safetensors with one F32 tensor, `embeddings`, of shape `[items,
//! width]`.

use safetensors::{Dtype, SafeTensors};
use surety_model_trace::embeddings_header;

const TENSOR: &str = "embeddings";

/// Longest output, in bytes: what peers take as one blob.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Vectors of equal width, one per item, in the order of the input.
#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    width: usize,
    values: Vec<f32>,
}

/// Why a blob holds no embeddings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddingsError {
    /// Not safetensors.
    #[error("not a safetensors blob: {0}")]
    Malformed(String),
    /// Not exactly the one tensor `embeddings`.
    #[error("a tensor `embeddings`, and no other, was expected")]
    WrongTensors,
    /// Of another type or shape.
    #[error("`embeddings` should be F32 with two dimensions, not {dtype} of shape {shape:?}")]
    WrongShape {
        /// Element type that the tensor has.
        dtype: String,
        /// Shape that the tensor has.
        shape: Vec<usize>,
    },
    /// It holds NaN or infinity.
    #[error("value {index} is not finite")]
    NotFinite {
        /// Index into the values, row by row.
        index: usize,
    },
    /// Of 4 GiB, or more.
    #[error("there are more embeddings than an output can hold")]
    TooMany,
}

impl Embeddings {
    /// Rows of `width` values each, one after the other. `None` when they make no whole number of rows.
    pub fn new(width: usize, values: Vec<f32>) -> Option<Self> {
        (width > 0 && values.len().is_multiple_of(width)).then_some(Self { width, values })
    }

    /// Values in one row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Items that were embedded.
    pub fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The rows, in the order of the input.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.width)
    }

    /// One row.
    pub fn row(&self, index: usize) -> Option<&[f32]> {
        self.rows().nth(index)
    }

    /// The output blob. Equal embeddings give equal bytes.
    pub fn encode(&self) -> Result<Vec<u8>, EmbeddingsError> {
        let shape = u32::try_from(self.len()).ok().zip(u32::try_from(self.width).ok());
        let header = shape.and_then(|(items, width)| embeddings_header(items, width));
        let mut blob = header.ok_or(EmbeddingsError::TooMany)?;
        blob.extend(self.values.iter().flat_map(|value| value.to_le_bytes()));
        Ok(blob)
    }

    /// Reads an output blob, and trusts nothing in it.
    pub fn decode(blob: &[u8]) -> Result<Self, EmbeddingsError> {
        let file =
            SafeTensors::deserialize(blob).map_err(|error| EmbeddingsError::Malformed(error.to_string()))?;
        if file.len() != 1 {
            return Err(EmbeddingsError::WrongTensors);
        }
        let tensor = file.tensor(TENSOR).map_err(|_| EmbeddingsError::WrongTensors)?;
        let wrong_shape = || EmbeddingsError::WrongShape {
            dtype: tensor.dtype().to_string(),
            shape: tensor.shape().to_vec(),
        };
        let &[_, width] = tensor.shape() else {
            return Err(wrong_shape());
        };
        if tensor.dtype() != Dtype::F32 {
            return Err(wrong_shape());
        }
        let values = f32_values(tensor.data());
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(EmbeddingsError::NotFinite { index });
        }
        Self::new(width, values).ok_or_else(wrong_shape)
    }
}

/// Little-endian bytes as numbers. Bytes need not be aligned.
pub(crate) fn f32_values(bytes: &[u8]) -> Vec<f32> {
    let (quads, _) = bytes.as_chunks::<4>();
    quads.iter().map(|quad| f32::from_le_bytes(*quad)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use safetensors::tensor::TensorView;

    use super::*;

    fn blob(name: &str, dtype: Dtype, shape: &[usize], data: &[u8]) -> Vec<u8> {
        let view = TensorView::new(dtype, shape.to_vec(), data).unwrap();
        safetensors::serialize([(name, view)], None).unwrap()
    }

    #[test]
    fn a_blob_reads_back_as_written() {
        let embeddings = Embeddings::new(2, vec![1.0, -2.5, 0.0, 3.0, 4.0, f32::MIN_POSITIVE]).unwrap();
        let blob = embeddings.encode().unwrap();
        assert_eq!(blob, embeddings.encode().unwrap());
        let bytes: Vec<u8> = embeddings
            .values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        assert_eq!(blob, self::blob(TENSOR, Dtype::F32, &[3, 2], &bytes));
        let read = Embeddings::decode(&blob).unwrap();
        assert_eq!(read, embeddings);
        assert_eq!(read.len(), 3);
        assert_eq!(read.row(1), Some(&[0.0, 3.0][..]));
        assert_eq!(read.row(3), None);
    }

    #[test]
    fn rows_are_whole() {
        assert_eq!(Embeddings::new(2, vec![1.0]), None);
        assert_eq!(Embeddings::new(0, vec![]), None);
    }

    #[test]
    fn hostile_blobs_are_refused() {
        let good = Embeddings::new(1, vec![1.0]).unwrap().encode().unwrap();
        for cut in 0..good.len() {
            assert!(matches!(
                Embeddings::decode(&good[..cut]),
                Err(EmbeddingsError::Malformed(_))
            ));
        }
        let one = 1f32.to_le_bytes();
        assert_eq!(
            Embeddings::decode(&blob("other", Dtype::F32, &[1, 1], &one)),
            Err(EmbeddingsError::WrongTensors)
        );
        assert!(matches!(
            Embeddings::decode(&blob(TENSOR, Dtype::I32, &[1, 1], &one)),
            Err(EmbeddingsError::WrongShape { .. })
        ));
        assert!(matches!(
            Embeddings::decode(&blob(TENSOR, Dtype::F32, &[1], &one)),
            Err(EmbeddingsError::WrongShape { .. })
        ));
        assert!(matches!(
            Embeddings::decode(&blob(TENSOR, Dtype::F32, &[1, 0], &[])),
            Err(EmbeddingsError::WrongShape { .. })
        ));
        let nan = f32::NAN.to_le_bytes();
        assert_eq!(
            Embeddings::decode(&blob(TENSOR, Dtype::F32, &[1, 1], &nan)),
            Err(EmbeddingsError::NotFinite { index: 0 })
        );
    }
}
