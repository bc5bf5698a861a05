//! Generations of a synthetic decoder.

use std::ops::ControlFlow;

use surety_engine::{
    Event, Job, Outcome,
    exact::ExactLlama,
    generation::{Generation, Request},
};
use surety_models::weights::LlamaWeights;
use surety_types::model::{ModelFamily, Operation};
use tokenizers::Tokenizer;

use super::synthetic::{self, START};

pub fn engine(weights: LlamaWeights) -> ExactLlama {
    let tokenizer = synthetic::bytes_tokenizer().to_string();
    let manifest = synthetic::manifest(ModelFamily::Llama, &weights);
    ExactLlama::new(manifest, weights, tokenizer.as_bytes()).unwrap()
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

pub fn decoded(tokens: &[u32]) -> String {
    tokenizer().decode(tokens, true).unwrap()
}
