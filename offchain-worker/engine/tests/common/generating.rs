//! Generations of a synthetic decoder.

use std::ops::ControlFlow;

use surety_engine::{Event, Job, Outcome, exact::ExactLlama, generation::Generation};
use surety_exact::Sampling;
use surety_models::weights::LlamaWeights;
use surety_types::model::Operation;
use tokenizers::Tokenizer;

use super::synthetic::{self, START};

pub fn engine(weights: LlamaWeights) -> ExactLlama {
    engine_stopped_by(weights, &[synthetic::END])
}

/// An engine of which these tokens end a generation.
pub fn engine_stopped_by(weights: LlamaWeights, stop: &[u32]) -> ExactLlama {
    let mut manifest = synthetic::manifest(weights.family(), &weights);
    manifest.text.stop = stop.to_vec().try_into().unwrap();
    ExactLlama::new(manifest, weights).unwrap()
}

/// What is asked for, in text.
#[derive(Clone, Debug)]
pub struct Request {
    pub prompt: String,
    pub max_tokens: u32,
    pub temperature_milli: u32,
    pub top_k: u32,
    pub top_p_milli: u32,
    pub seed: u64,
}

pub fn request(prompt: &str, max_tokens: u32) -> Request {
    Request {
        prompt: prompt.into(),
        max_tokens,
        temperature_milli: 800,
        top_k: 40,
        top_p_milli: 950,
        seed: 7,
    }
}

impl Request {
    pub fn sampling(&self) -> Sampling {
        Sampling {
            temperature_milli: self.temperature_milli,
            top_k: self.top_k,
            top_p_milli: self.top_p_milli,
        }
    }

    /// Whatever it asks for.
    pub fn encode(&self) -> Vec<u8> {
        let settings = [
            self.max_tokens,
            self.temperature_milli,
            self.top_k,
            self.top_p_milli,
            self.seed as u32,
            (self.seed >> 32) as u32,
        ];
        let words = settings.into_iter().chain(encoded(&self.prompt));
        words.flat_map(u32::to_le_bytes).collect()
    }
}

pub fn job(request: &Request) -> Job {
    Job {
        operation: Operation::Generate,
        input: request.encode(),
        units_max: 1000,
    }
}

pub fn quiet(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

pub fn generation(outcome: &Outcome) -> Generation {
    Generation::decode(&outcome.output).unwrap()
}

pub fn tokenizer() -> Tokenizer {
    Tokenizer::from_bytes(synthetic::bytes_tokenizer().to_string()).unwrap()
}

pub fn encoded(prompt: &str) -> Vec<u32> {
    let tokens = tokenizer().encode(prompt, true).unwrap().get_ids().to_vec();
    assert_eq!(tokens[0], START);
    tokens
}
