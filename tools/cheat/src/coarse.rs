//! A cheaper model under the name of the right one.

use std::sync::Arc;

use surety_engine::{Claimed, Engine, EngineError, Job, Outcome, Sink, exact::OwnTrace, open};
use surety_models::{Form, ModelFiles, format};
use surety_types::model::ModelManifest;

/// A model with coarser weights, under the name of the right one. Models of other tiers stay as they are.
///
/// # Errors
/// When the files are not those of a model.
pub fn open_coarse(mut files: ModelFiles) -> Result<Arc<dyn Engine>, EngineError> {
    let manifest = files.manifest.clone();
    let Some(exact) = &manifest.exact else {
        return open(files);
    };
    let mut bytes = files.weights.into_memory()?;
    coarsen(&mut bytes).ok_or(EngineError::NotTraced)?;
    let weights = format::read(bytes.clone(), &files.config, manifest.family)?;
    files.weights = bytes.into();
    files.manifest.exact = Some(weights.form(exact.architecture.pooling)?);
    let engine = open(files)?;
    Ok(Arc::new(Swapped { engine, manifest }))
}

/// Leaves four bits of every quantized weight of a safetensors file.
fn coarsen(file: &mut [u8]) -> Option<()> {
    let header_bytes = usize::try_from(u64::from_le_bytes(*file.first_chunk()?)).ok()?;
    let data = header_bytes.checked_add(8)?;
    let header: serde_json::Value = serde_json::from_slice(file.get(8..data)?).ok()?;
    // What the format's authors put beside the tensors is under this name.
    let tensors = header
        .as_object()?
        .iter()
        .filter(|(name, _)| *name != "__metadata__");
    for (_, tensor) in tensors {
        let dtype = tensor.get("dtype").and_then(|dtype| dtype.as_str());
        let offset = |at: usize| usize::try_from(tensor.get("data_offsets")?.get(at)?.as_u64()?).ok();
        let range = data.checked_add(offset(0)?)?..data.checked_add(offset(1)?)?;
        let values = file.get_mut(range)?;
        match dtype {
            Some("I8") => {
                for byte in values {
                    *byte = (byte.cast_signed() / 16 * 16).cast_unsigned();
                }
            }
            Some("I16") => {
                for pair in values.as_chunks_mut::<2>().0 {
                    *pair = (i16::from_le_bytes(*pair) / 256 * 256).to_le_bytes();
                }
            }
            _ => {}
        }
    }
    Some(())
}

struct Swapped {
    engine: Arc<dyn Engine>,
    /// The right model's.
    manifest: ModelManifest,
}

impl Engine for Swapped {
    fn manifest(&self) -> &ModelManifest {
        &self.manifest
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        self.engine.run(job, sink)
    }

    fn trace(
        self: Arc<Self>,
        job: Job,
        claimed: Claimed,
        sink: Box<dyn Sink + Send>,
    ) -> Result<OwnTrace, EngineError> {
        self.engine.clone().trace(job, claimed, sink)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn coarse_weights_have_four_bits_and_everything_else_stays() {
        let header = br#"{"__metadata__":{"format":"pt"},"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"c":{"dtype":"I16","shape":[2],"data_offsets":[8,12]}}"#;
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header);
        file.extend([15, 16, 0xf1, 0x91, 1, 2, 3, 4]);
        file.extend([0x11fi16, -2047].map(i16::to_le_bytes).as_flattened());
        coarsen(&mut file).unwrap();
        let right = [0, 16, 0, 0xa0, 1, 2, 3, 4].into_iter();
        let right = right.chain([0x100i16, -0x700].map(i16::to_le_bytes).concat());
        assert_eq!(file[8 + header.len()..], right.collect::<Vec<u8>>());
        assert_eq!(coarsen(&mut [1, 2]), None);
    }
}
