//! What a converter wants to know of a model before it gives some channels' range to others.

use surety_exact::ArithmeticError;
use surety_kernels::{Heads, Rows};
use surety_model_trace::{Op, Step};
use surety_models::{
    convert::calibration::{Calibrator, Inputs, LayerInputs, Sequences},
    weights::{BertWeights, LlamaWeights},
};
use surety_types::model::Pooling;

use super::{
    bert::{BertModel, Scratch},
    llama::{LlamaModel, Sequence},
    probe::Probe,
};

impl Probe for Inputs {
    fn real(&mut self, _: Step, _: &[f32], _: usize) {}

    fn heads(&mut self, _: Step, _: &Heads) {}

    fn quantized(&mut self, step: Step, input: &[f32], width: usize, _: &Rows) {
        let number = step.layer as usize;
        if self.layers.len() <= number {
            self.layers.resize_with(number + 1, LayerInputs::default);
        }
        let made_up = self.made_up;
        let Some(layer) = self.layers.get_mut(number) else {
            return;
        };
        let seen = match step.op {
            Op::QuantQkv => &mut layer.attention,
            Op::QuantOutput => &mut layer.output,
            Op::QuantMlp => &mut layer.up,
            Op::QuantDown => &mut layer.down,
            _ => return,
        };
        // A site's inputs are all of one width.
        seen.observe(input, width, made_up).ok();
    }
}

/// Runs the calibration text through the engines of this crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExactCalibrator;

impl Calibrator for ExactCalibrator {
    fn bert(&self, weights: &BertWeights, sequences: &Sequences) -> Result<Inputs, ArithmeticError> {
        // No product is given what is pooled.
        let model = BertModel::new(weights.clone(), Pooling::Mean)?;
        let mut inputs = Inputs::default();
        let mut scratch = Scratch::default();
        for (ids, made_up) in all(sequences) {
            inputs.made_up = made_up;
            model.embed(&[ids], &mut scratch, &mut inputs)?;
        }
        Ok(inputs)
    }

    fn llama(&self, weights: &LlamaWeights, sequences: &Sequences) -> Result<Inputs, ArithmeticError> {
        let model = LlamaModel::new(weights.clone())?;
        let mut inputs = Inputs::default();
        for (ids, made_up) in all(sequences) {
            inputs.made_up = made_up;
            let mut sequence = Sequence::new(&model, ids.len());
            for chunk in ids.chunks(model.chunk()) {
                model.forward(&mut sequence, chunk, &mut inputs)?;
            }
        }
        Ok(inputs)
    }
}

/// Each sequence, and whether it is made up.
fn all(sequences: &Sequences) -> impl Iterator<Item = (&Vec<u32>, bool)> {
    let text = sequences.text.iter().map(|ids| (ids, false));
    text.chain(sequences.made_up.iter().map(|ids| (ids, true)))
}
