//! What a converter wants to know of a model before it gives some channels' range to others.

use std::collections::BTreeMap;

use surety_exact::Fault;
use surety_kernels::Rows;

use super::{
    bert::{BertModel, Scratch, TokensOf},
    llama::{LlamaModel, Sequence},
    probe::{Op, Probe, Step},
    weights::{BertWeights, LlamaWeights},
};

/// Products that share an input, and so the factors of its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// Query, key and value.
    Qkv,
    /// What attention found.
    Output,
    /// `up`, with Llama also `gate`.
    Mlp,
    /// `down`.
    Down,
}

/// The largest size that each channel of each site's input had.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Maxima(BTreeMap<(usize, Site), Vec<f32>>);

impl Maxima {
    /// Those of one site of a layer, one per channel.
    pub fn of(&self, layer: usize, site: Site) -> Option<&[f32]> {
        self.0.get(&(layer, site)).map(|maxima| &maxima[..])
    }
}

impl Probe for Maxima {
    fn real(&mut self, _: Step, _: &[f32], _: usize) {}

    fn quantised(&mut self, step: Step, input: &[f32], width: usize, _: &Rows) {
        let site = match step.op {
            Op::QuantQkv => Site::Qkv,
            Op::QuantOutput => Site::Output,
            Op::QuantMlp => Site::Mlp,
            Op::QuantDown => Site::Down,
            _ => return,
        };
        let maxima = self
            .0
            .entry((step.layer, site))
            .or_insert_with(|| vec![0.0; width]);
        for row in input.chunks(width) {
            for (most, value) in maxima.iter_mut().zip(row) {
                *most = most.max(value.abs());
            }
        }
    }
}

/// Runs sequences through an encoder, all tokens of the first kind of segment.
///
/// # Errors
/// [`Fault::Shape`] for weights that do not fit together or sequences that the model does not take; the faults of the
/// arithmetic.
pub fn calibrate_bert(weights: &BertWeights, sequences: &[Vec<u32>]) -> Result<Maxima, Fault> {
    let model = BertModel::new(weights.clone())?;
    let mut maxima = Maxima::default();
    let mut scratch = Scratch::default();
    for ids in sequences {
        let tokens = TokensOf {
            ids: ids.clone(),
            types: vec![0; ids.len()],
        };
        model.embed(&[&tokens], &mut scratch, &mut maxima)?;
    }
    Ok(maxima)
}

/// Runs sequences through a decoder.
///
/// # Errors
/// Those of [`calibrate_bert`].
pub fn calibrate_llama(weights: &LlamaWeights, sequences: &[Vec<u32>]) -> Result<Maxima, Fault> {
    let model = LlamaModel::new(weights.clone())?;
    let mut maxima = Maxima::default();
    for ids in sequences {
        let mut sequence = Sequence::new(&model, ids.len());
        for chunk in ids.chunks(model.chunk()) {
            model.forward(&mut sequence, chunk, &mut maxima)?;
        }
    }
    Ok(maxima)
}
