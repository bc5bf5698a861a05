#![doc = include_str!("../README.md")]

mod error;
mod files;
mod network;
mod ops;
mod optimizer;
mod random;
mod text;

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use candle_core::Result as Computed;
use rayon::prelude::*;
use surety_exact::Sampling;

pub use error::TrainError;
pub use network::Dimensions;

use network::Network;
use optimizer::{Optimizer, learning_rate};
use random::Random;
use text::{END_ID, Tokenizer, Windows};

/// Sequences whose gradient one thread computes at a time. Fixed, so that the number of threads changes no
/// sum.
const SEQUENCES_OF_A_SHARD: usize = 2;

/// Share of the text that is kept back to measure with: one part in so many.
const HELD_OUT_PART: usize = 20;

/// Least text to train on, in tokens for each position of a window.
const WINDOWS_MIN: usize = 4;

/// What to train, and how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainOptions {
    /// The network; of the vocabulary, the most it may have.
    pub dimensions: Dimensions,
    /// Steps of the optimizer.
    pub steps: usize,
    /// Sequences that a step looks at.
    pub batch: usize,
    /// Tokens of a sequence; no more than the context.
    pub window: usize,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// Decides everything that is random.
    pub seed: u64,
    /// Threads that compute.
    pub threads: usize,
}

impl TrainOptions {
    /// The demonstration model: recognisable English within five minutes on two cores.
    pub fn demo() -> Self {
        Self {
            // Small for its text: in the same time a network of twice the width sees a third of the tokens,
            // and is left far behind.
            dimensions: Dimensions {
                vocabulary: 2048,
                hidden: 128,
                layers: 4,
                heads: 4,
                kv_heads: 2,
                head_dim: 32,
                feed_forward: 384,
                context: 256,
            },
            steps: 2000,
            batch: 4,
            window: 256,
            learning_rate: 5e-3,
            seed: 1,
            threads: 1,
        }
    }

    /// The same network, a minute's training: for tests that need a model more than they need English.
    pub fn quick() -> Self {
        Self {
            steps: 400,
            ..Self::demo()
        }
    }

    fn check(&self) -> Result<(), TrainError> {
        let Dimensions {
            vocabulary,
            hidden,
            layers,
            heads,
            kv_heads,
            head_dim,
            feed_forward,
            context,
        } = self.dimensions;
        let ranges = [
            ("vocabulary", vocabulary, 258, 65_536),
            ("hidden", hidden, 1, 8192),
            ("layers", layers, 1, 128),
            ("heads", heads, 1, 128),
            ("kv_heads", kv_heads, 1, heads),
            ("head_dim", head_dim, 2, 512),
            ("feed_forward", feed_forward, 1, 65_536),
            ("context", context, 2, 65_536),
            ("window", self.window, 2, context),
            ("batch", self.batch, 1, 65_536),
            ("steps", self.steps, 1, 1_000_000),
            ("threads", self.threads, 1, 1024),
        ];
        for (field, value, min, max) in ranges {
            if !(min..=max).contains(&value) {
                return Err(TrainError::OutOfRange {
                    field,
                    value,
                    min,
                    max,
                });
            }
        }
        if heads % kv_heads != 0 || head_dim % 2 != 0 {
            return Err(TrainError::Heads {
                heads,
                kv_heads,
                head_dim,
            });
        }
        Ok(())
    }
}

/// What happens during a training.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TrainEvent {
    /// The text is read.
    Started {
        /// Parameters of the network.
        parameters: usize,
        /// Tokens to train on.
        tokens: usize,
        /// Tokens that are kept back.
        held_out: usize,
    },
    /// A step is done.
    Step {
        /// Steps done.
        done: usize,
        /// Steps in all.
        total: usize,
        /// Mean loss of its sequences, in nats a token.
        loss: f64,
    },
}

/// Takes the events of a training, and may end it.
pub type OnTrainEvent<'a> = &'a mut (dyn FnMut(TrainEvent) -> ControlFlow<()> + Send);

/// What was trained.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// Folder with the three files.
    pub path: PathBuf,
    /// Parameters of the network.
    pub parameters: usize,
    /// Tokens that were trained on, repetitions counted.
    pub tokens: usize,
    /// Mean loss of the last steps, in nats a token.
    pub loss: f64,
    /// Mean loss on the text that was kept back, in nats a token.
    pub held_out_loss: f64,
    /// The same in bits for each byte of text, which does not depend on the vocabulary.
    pub held_out_bits_per_byte: f64,
    /// How it goes on from some beginnings.
    pub samples: Vec<String>,
}

impl Trained {
    /// Among how many equally likely tokens it would be as unsure, on the text that was kept back.
    pub fn perplexity(&self) -> f64 {
        self.held_out_loss.exp()
    }
}

/// Trains a model on `text` (paragraphs between empty lines) and writes it to the folder `out`, which appears
/// only when everything is in it. Replaces a model that is there, and nothing else. Blocks; call it on a
/// thread of its own.
///
/// # Errors
/// See [`TrainError`]. The folder is as it was then.
pub fn train(
    text: &str,
    options: &TrainOptions,
    out: &Path,
    on_event: OnTrainEvent<'_>,
) -> Result<Trained, TrainError> {
    options.check()?;
    files::check_target(out)?;
    let threads = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .thread_name(|index| format!("train-{index}"))
        .build()
        .map_err(|error| TrainError::Threads(error.to_string()))?;
    threads.install(|| run(text, options, out, on_event))
}

fn run(
    text: &str,
    options: &TrainOptions,
    out: &Path,
    on_event: OnTrainEvent<'_>,
) -> Result<Trained, TrainError> {
    let corpus = Corpus::new(text, options)?;
    let dimensions = Dimensions {
        vocabulary: corpus.tokenizer.get_vocab_size(true),
        ..options.dimensions
    };
    let network = Network::new(dimensions, &mut Random::stream(options.seed, 0))?;
    let parameters = network.size();
    let started = TrainEvent::Started {
        parameters,
        tokens: corpus.training.len(),
        held_out: corpus.held_out.len(),
    };
    if on_event(started).is_break() {
        return Err(TrainError::Cancelled);
    }
    let loss = fit(&network, &corpus.training, options, on_event)?;
    let held_out_loss = measure(&network, &corpus.held_out, options.window)?;
    let trained = Trained {
        path: out.to_path_buf(),
        parameters,
        tokens: options.steps * options.batch * options.window,
        loss,
        held_out_loss,
        held_out_bits_per_byte: held_out_loss * corpus.held_out.len() as f64
            / corpus.held_out_bytes.max(1) as f64
            / std::f64::consts::LN_2,
        samples: samples(&network, &corpus.tokenizer, options.seed)?,
    };
    files::write(&network, &corpus.tokenizer, out)?;
    Ok(trained)
}

struct Corpus {
    tokenizer: Tokenizer,
    training: Vec<u32>,
    held_out: Vec<u32>,
    held_out_bytes: usize,
}

impl Corpus {
    fn new(text: &str, options: &TrainOptions) -> Result<Self, TrainError> {
        let mut paragraphs = text::paragraphs(text);
        let mut kept_bytes = text.len() - text.len() / HELD_OUT_PART;
        // The end of the text, so that no other part of a chapter has been seen.
        let kept = paragraphs
            .iter()
            .take_while(|paragraph| {
                let fits = paragraph.len() <= kept_bytes;
                kept_bytes = kept_bytes.saturating_sub(paragraph.len());
                fits
            })
            .count();
        let rest = paragraphs.split_off(kept);
        let tokenizer = text::tokenizer(&paragraphs, options.dimensions.vocabulary)?;
        let training = text::stream(&tokenizer, &paragraphs)?;
        let held_out = text::stream(&tokenizer, &rest)?;
        let least = (options.window + 1).saturating_mul(WINDOWS_MIN);
        if training.len() < least || held_out.len() < 2 {
            return Err(TrainError::TooShort {
                tokens: training.len() + held_out.len(),
                least,
            });
        }
        Ok(Self {
            tokenizer,
            training,
            held_out,
            held_out_bytes: rest.iter().map(String::len).sum(),
        })
    }
}

/// Trains, and returns the mean loss of the last steps.
fn fit(
    network: &Network,
    stream: &[u32],
    options: &TrainOptions,
    on_event: OnTrainEvent<'_>,
) -> Result<f64, TrainError> {
    let mut windows = Windows::new(stream, options.window + 1, Random::stream(options.seed, 1))
        .into_iter()
        .flatten();
    let mut optimizer = Optimizer::new(network);
    let mut losses = Vec::with_capacity(options.steps);
    for step in 0..options.steps {
        let batch: Vec<&[u32]> = windows.by_ref().take(options.batch).collect();
        let (loss, gradients) = gradients(network, &batch)?;
        let rate = learning_rate(options.learning_rate, step, options.steps);
        optimizer.step(network, &gradients, rate)?;
        losses.push(loss);
        let event = TrainEvent::Step {
            done: step + 1,
            total: options.steps,
            loss,
        };
        if on_event(event).is_break() {
            return Err(TrainError::Cancelled);
        }
    }
    let last = losses.len().saturating_sub(losses.len().div_ceil(20));
    Ok(mean(losses.get(last..).unwrap_or_default()))
}

/// Mean loss of the windows, and the gradients of all parameters.
fn gradients(network: &Network, windows: &[&[u32]]) -> Result<(f64, Vec<Vec<f32>>), TrainError> {
    let shards: Vec<(f64, Vec<Vec<f32>>)> = windows
        .par_chunks(SEQUENCES_OF_A_SHARD)
        .map(|shard| {
            let weight = shard.len() as f64 / windows.len() as f64;
            let loss = (network.loss(shard)? * weight)?;
            let mut gradients = loss.backward()?;
            let gradients = network
                .parameters
                .values()
                .map(|parameter| match gradients.remove(parameter) {
                    Some(gradient) => gradient.flatten_all()?.to_vec1(),
                    None => Ok(vec![0.0; parameter.elem_count()]),
                })
                .collect::<Computed<_>>()?;
            Ok((f64::from(loss.to_scalar::<f32>()?), gradients))
        })
        .collect::<Computed<_>>()?;
    let mut shards = shards.into_iter();
    let Some((mut loss, mut gradients)) = shards.next() else {
        return Err(TrainError::Library("a batch without windows".into()));
    };
    for (more_loss, more) in shards {
        loss += more_loss;
        gradients.par_iter_mut().zip(more).for_each(|(into, more)| {
            for (into, more) in into.iter_mut().zip(more) {
                *into += more;
            }
        });
    }
    Ok((loss, gradients))
}

/// Mean loss over a stream, each token foretold once.
fn measure(network: &Network, stream: &[u32], window: usize) -> Result<f64, TrainError> {
    let starts: Vec<usize> = (0..stream.len().saturating_sub(1)).step_by(window).collect();
    let losses: Vec<(f64, f64)> = starts
        .par_iter()
        .map(|start| {
            let end = stream.len().min(start + window + 1);
            let tokens = stream.get(*start..end).unwrap_or_default();
            let loss = network.loss(&[tokens])?.to_scalar::<f32>()?;
            let count = tokens.len().saturating_sub(1) as f64;
            Ok((f64::from(loss) * count, count))
        })
        .collect::<Computed<_>>()?;
    let (total, count) = losses
        .iter()
        .fold((0.0, 0.0), |(total, count), (loss, n)| (total + loss, count + n));
    Ok(total / count)
}

/// What to let a new model go on from.
const PROMPTS: [&str; 3] = ["The whale", "Captain Ahab stood", "It was a"];
const SAMPLE_TOKENS: usize = 40;
const SAMPLING: Sampling = Sampling {
    temperature_milli: 800,
    top_k: 0,
    top_p_milli: 950,
};

fn samples(network: &Network, tokenizer: &Tokenizer, seed: u64) -> Result<Vec<String>, TrainError> {
    let sample = |(prompt, purpose): (&&str, u64)| {
        let mut random = Random::stream(seed, purpose);
        let failed = |error: tokenizers::Error| TrainError::Tokenizer(error.to_string());
        let mut tokens = tokenizer
            .encode(*prompt, true)
            .map_err(failed)?
            .get_ids()
            .to_vec();
        let mut order = vec![0; network.dimensions.vocabulary];
        let most = network.dimensions.context.min(tokens.len() + SAMPLE_TOKENS);
        while tokens.len() < most {
            let logits = network.next(&tokens)?;
            let token = surety_exact::sample(&logits, &SAMPLING, random.next(), &mut order)
                .map_err(|fault| TrainError::Library(format!("{fault:?}")))?;
            if token == END_ID {
                break;
            }
            tokens.push(token);
        }
        tokenizer.decode(&tokens, true).map_err(failed)
    };
    PROMPTS
        .iter()
        .zip(2..)
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(sample)
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests;
