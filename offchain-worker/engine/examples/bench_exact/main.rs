//! Our side of `scripts/bench exact`: what is measured here is asked for line by line, in turns with others.
//!
//! ```text
//! bench_exact train TEXT SOURCE                     a small decoder, where there is none
//! bench_exact prepare HOME SOURCE                   MiniLM and SOURCE's decoder in the exact format, in HOME
//! bench_exact embed HOME MODEL SENTENCES THREADS    whole jobs, from text to a claim, of either tier
//! bench_exact encoder HOME MODEL SENTENCES THREADS  the forward pass alone, with and without the trace
//! bench_exact decoder SHAPE THREADS                 prefill and decoding, with weights that are made up
//! bench_exact serving SHAPE THREADS                 generations side by side, beside one after another
//! bench_exact perplexity HOME MODEL SOURCE TEXT     of a decoder's two forms, on the same text
//! ```
//!
//! Each loads its model, prints `{"ready": true, ...}`, and then a line of JSON for each line of JSON it
//! reads.

mod clock;
mod decoder;
mod embed;
mod encoder;
mod perplexity;
mod prepare;
mod serving;
mod talk;

use std::{env, error::Error, path::Path};

/// A bench has nobody to tell faults apart for.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["train", text, out] => prepare::train_decoder(Path::new(text), Path::new(out)),
        ["prepare", home, source] => prepare::run(Path::new(home), Path::new(source)),
        ["embed", home, model, sentences, threads] => {
            embed::run(Path::new(home), model, Path::new(sentences), threads.parse()?)
        }
        ["encoder", home, model, sentences, threads] => {
            encoder::run(Path::new(home), model, Path::new(sentences), threads.parse()?)
        }
        ["decoder", shape, threads] => decoder::run(shape, threads.parse()?),
        ["serving", shape, threads] => serving::run(shape, threads.parse()?),
        ["perplexity", home, model, source, text] => {
            perplexity::run(Path::new(home), model, Path::new(source), Path::new(text))
        }
        _ => Err("see the documentation at the top of this example; scripts/bench runs it".into()),
    }
}
