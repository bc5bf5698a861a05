//! Our side of `scripts/bench exact` and of `scripts/on-device`: what is measured here is asked for line by
//! line, in turns with others.
//!
//! ```text
//! bench_exact train TEXT SOURCE                            a small decoder, where there is none
//! bench_exact prepare HOME SOURCE                          MiniLM and SOURCE's decoder, exact, in HOME
//! bench_exact embed HOME MODEL SENTENCES THREADS [DEVICE]  whole jobs, to a claim, of either tier
//! bench_exact encoder HOME MODEL SENTENCES THREADS         the pass alone, with and without the trace
//! bench_exact items SHAPE PRECISION THREADS [DEVICE]       both, with weights that are made up
//! bench_exact decoder SHAPE THREADS [DEVICE]               prefill and decoding, with such weights
//! bench_exact serving SHAPE THREADS [DEVICE]               generations side by side or in turn; memory
//! bench_exact products SHAPE DEVICE                        a decoder's products alone, and memory
//! bench_exact perplexity HOME MODEL SOURCE TEXT            of a decoder's two forms, on the same text
//! bench_exact device DEVICE                                what it is, or why it cannot be used
//! ```
//!
//! Each loads its model, prints `{"ready": true, ...}`, and then a line of JSON for each line of JSON it
//! reads. DEVICE is `cpu`, `cuda:N` (built with the feature `cuda`), `cuda:N-without-graphs`, or `emulated`.

mod clock;
mod decoder;
mod device;
mod embed;
mod encoder;
mod items;
mod made_up;
mod passes;
mod perplexity;
mod prepare;
mod products;
mod serving;
mod talk;

use std::{env, error::Error, path::Path, process::ExitCode};

use device::PROCESSOR;

/// A bench has nobody to tell faults apart for.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench_exact: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<()> {
    match *arguments {
        ["train", text, out] => prepare::train_decoder(Path::new(text), Path::new(out)),
        ["prepare", home, source] => prepare::run(Path::new(home), Path::new(source)),
        ["embed", home, model, sentences, threads, ref on @ ..] => embed::run(
            Path::new(home),
            model,
            Path::new(sentences),
            threads.parse()?,
            device_of(on)?,
        ),
        ["encoder", home, model, sentences, threads] => {
            encoder::run(Path::new(home), model, Path::new(sentences), threads.parse()?)
        }
        ["items", shape, precision, threads, ref on @ ..] => {
            items::run(shape, precision, threads.parse()?, device_of(on)?)
        }
        ["decoder", shape, threads] => decoder::run(shape, threads.parse()?),
        ["decoder", shape, threads, on] => passes::run(shape, threads.parse()?, on),
        ["serving", shape, threads, ref on @ ..] => serving::run(shape, threads.parse()?, device_of(on)?),
        ["products", shape, on] => products::run(shape, on),
        ["perplexity", home, model, source, text] => {
            perplexity::run(Path::new(home), model, Path::new(source), Path::new(text))
        }
        ["device", on] => device::describe(on),
        _ => Err("see the documentation at the top of this example; scripts/bench runs it".into()),
    }
}

/// The last argument, which may be missing.
fn device_of<'a>(rest: &[&'a str]) -> Result<&'a str> {
    match *rest {
        [] => Ok(PROCESSOR),
        [on] => Ok(on),
        _ => Err("there is one device at most".into()),
    }
}
