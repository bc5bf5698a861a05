//! The encoder's forward pass by itself: what the trace costs, and where the time goes.

use std::{fs, path::Path, time::Instant};

use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use surety_engine::exact::{BertModel, Scratch, TopLevel};
use surety_exact::ArithmeticError;
use surety_types::model::Pooling;
use tokenizers::Tokenizer;

use crate::{
    Result,
    clock::{Blind, Clock, Looking},
    decoder::fault,
    prepare,
    talk::{answer, measured, say, threads},
};

/// Longest sentence, in tokens: as the tokenizer's file says.
const TOKENS_MAX: usize = 128;

#[derive(Deserialize)]
struct Command {
    look: Looking,
    /// Measure with every so many-th sentence.
    stride: usize,
    /// Sentences that go through the products together.
    together: usize,
}

pub fn run(home: &Path, model: &str, sentences: &Path, count: usize) -> Result<()> {
    let sentences = fs::read_to_string(sentences)?;
    let pool = threads(count)?;
    let begun = Instant::now();
    let (weights, tokenizer) = prepare::bert(home, model)?;
    let model = BertModel::new(weights, Pooling::Mean).map_err(fault)?;
    let load = begun.elapsed().as_secs_f64();
    let mut tokenizer = Tokenizer::from_bytes(tokenizer)?;
    tokenizer.with_padding(None);
    let tokens: Vec<Vec<u32>> = sentences
        .lines()
        .map(|sentence| tokens_of(&tokenizer, sentence))
        .collect::<Result<_>>()?;
    say(&json!({"ready": true, "load_seconds": load}))?;
    answer(|command: Command| {
        let chosen: Vec<&[u32]> = tokens
            .iter()
            .step_by(command.stride.max(1))
            .map(Vec::as_slice)
            .collect();
        pool.install(|| measure(&model, &chosen, &command))
    })
}

fn tokens_of(tokenizer: &Tokenizer, sentence: &str) -> Result<Vec<u32>> {
    let encoding = tokenizer.encode(sentence, true)?;
    let mut ids = encoding.get_ids().to_vec();
    ids.truncate(TOKENS_MAX);
    Ok(ids)
}

fn measure(model: &BertModel, chosen: &[&[u32]], command: &Command) -> Result<Value> {
    let mut shares = Value::Null;
    let mut answer = measured(|| {
        match command.look {
            Looking::Timed => shares = timed(model, chosen, command.together)?,
            look => all(model, chosen, command.together, matches!(look, Looking::Traced))?,
        }
        Ok(chosen.len())
    })?;
    answer["shares"] = shares;
    Ok(answer)
}

/// Threads share groups of sentences between them.
fn all(model: &BertModel, chosen: &[&[u32]], together: usize, traced: bool) -> Result<()> {
    let done: std::result::Result<Vec<usize>, String> = chosen
        .par_chunks(together.max(1))
        .map_init(Scratch::default, |scratch, group| {
            if traced {
                traced_leaves(model, group, scratch)
            } else {
                model
                    .embed(group, scratch, &mut Blind)
                    .map(|vectors| vectors.len())
            }
            .map_err(fault)
        })
        .collect();
    done.map(|_| ()).map_err(Into::into)
}

/// How many there are.
fn traced_leaves(
    model: &BertModel,
    group: &[&[u32]],
    scratch: &mut Scratch,
) -> std::result::Result<usize, ArithmeticError> {
    let mut trace = TopLevel::new(model.trace_shape());
    model.embed(group, scratch, &mut trace)?;
    let rows: Vec<usize> = group.iter().map(|ids| ids.len()).collect();
    Ok(trace.leaves(&rows).iter().map(Vec::len).sum())
}

fn timed(model: &BertModel, chosen: &[&[u32]], together: usize) -> Result<Value> {
    let (mut scratch, mut clock) = (Scratch::default(), Clock::start());
    for group in chosen.chunks(together.max(1)) {
        clock.resume();
        model.embed(group, &mut scratch, &mut clock).map_err(fault)?;
    }
    Ok(clock.shares())
}
