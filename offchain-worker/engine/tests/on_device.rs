//! Whole models on a device, bit by bit as on the processor: an encoder of MiniLM's dimensions and a decoder
//! of 1.1 billion parameters on a real one, which `scripts/on-device` asks for; and the very same with small
//! ones on a program that plays a device.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../../cuda/tests/emulator/mod.rs"]
mod emulator;
#[allow(dead_code)]
#[path = "../examples/bench_exact/made_up.rs"]
mod made_up;

use std::{ops::ControlFlow, sync::Arc, time::Instant};

use emulator::{Emulator, Order};
use made_up::{DecoderShape, EncoderShape};
use surety_cuda::Graphs;
use surety_engine::{
    Device, Devices, Engine, Event, Job, Outcome,
    exact::{ExactBert, ExactLlama},
    serving::{Batcher, ClientKey, Limits},
};
use surety_exact::Precision;
use surety_models::weights::LlamaWeights;
use surety_types::{input::Settings, model::ModelManifest};

/// Opens devices, with graphs or without.
type Open = fn(bool) -> Devices;

/// How large everything is.
struct Sizes {
    encoder: EncoderShape,
    items: usize,
    decoder: DecoderShape,
    prompt: usize,
    new_tokens: u32,
    /// Generations side by side.
    streams: [usize; 2],
    /// Tokens of the longest of their prompts.
    stream_prompt: usize,
    stream_tokens: u32,
}

/// What takes seconds on a device, and not many more on 16 of a processor's cores.
#[cfg(feature = "cuda")]
const WHOLE: Sizes = Sizes {
    encoder: EncoderShape {
        hidden: 384,
        inner: 1536,
        layers: 6,
        heads: 12,
        vocabulary: 30_522,
        positions: 512,
    },
    items: 200,
    decoder: DecoderShape {
        hidden: 2048,
        inner: 5632,
        layers: 22,
        heads: 32,
        kv_heads: 4,
        vocabulary: 32_000,
        context: 2048,
        untied: true,
    },
    prompt: 512,
    new_tokens: 64,
    streams: [8, 64],
    stream_prompt: 64,
    stream_tokens: 8,
};

/// Two blocks of attention, groups that are not full, and more generations than a launch takes.
const SMALL: Sizes = Sizes {
    encoder: EncoderShape {
        hidden: 192,
        inner: 160,
        layers: 7,
        heads: 6,
        vocabulary: 50,
        positions: 40,
    },
    items: 12,
    decoder: DecoderShape {
        hidden: 192,
        inner: 160,
        layers: 2,
        heads: 6,
        kv_heads: 2,
        vocabulary: 70,
        context: 256,
        untied: true,
    },
    prompt: 130,
    new_tokens: 5,
    streams: [3, 9],
    stream_prompt: 12,
    stream_tokens: 4,
};

fn emulated(has_graphs: bool) -> Devices {
    let machine = Graphs::new(Emulator::start(Order::Forwards), has_graphs);
    Device::on(machine, "an emulator").unwrap().into()
}

#[cfg(feature = "cuda")]
fn cuda(has_graphs: bool) -> Devices {
    let first = surety_engine::Choice::Cuda(vec![0]);
    Devices::open(&first, None, has_graphs).unwrap_or_else(|error| panic!("{error}"))
}

fn by(has_graphs: bool) -> &'static str {
    match has_graphs {
        true => "with graphs",
        false => "without graphs",
    }
}

fn quiet(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Does something, and prints how long it took.
fn timed<T>(what: &str, does: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let made = does();
    println!("{:7.2} s  {what}", begun.elapsed().as_secs_f64());
    made
}

/// An outcome of a large model is nothing to print: says where it differs.
fn same(found: &Outcome, expected: &Outcome, what: &str) {
    let differs = |(found, expected): (&[u8], &[u8])| {
        let same = found.iter().zip(expected).take_while(|(a, b)| a == b);
        same.count()
    };
    if found.output != expected.output {
        let at = differs((&found.output, &expected.output));
        panic!("{what}: the output differs from byte {at} on");
    }
    let leaves = found.leaves.iter().zip(&expected.leaves);
    let same = leaves.take_while(|(found, expected)| found == expected).count();
    assert!(
        same == expected.leaves.len() && found.leaves.len() == same,
        "{what}: of {} leaves the first that differs is {same}",
        expected.leaves.len()
    );
    assert_eq!(found.claim, expected.claim, "{what}");
}

/// Nothing was refused to them, and nobody has found them wrong.
fn are_as_good_as_new(devices: &Devices) {
    for device in devices {
        assert_eq!(device.dropped(), None, "{}", device.name());
        assert_eq!(device.slower(), None, "{}", device.name());
    }
}

fn items_are_embedded(open: Open, sizes: &Sizes) {
    let bounds = made_up::bounds(sizes.encoder.vocabulary, sizes.encoder.positions);
    let items = made_up::items(sizes.items, sizes.encoder.positions, &bounds);
    let job = made_up::embedding(&items, &bounds).unwrap();
    for precision in [Precision::Int12, Precision::Int8] {
        let weights = made_up::encoder(&sizes.encoder, precision);
        let manifest = made_up::manifest(&weights).unwrap();
        let here = ExactBert::new(manifest.clone(), weights.clone()).unwrap();
        let expected = timed(&format!("{precision:?}: the processor's vectors"), || {
            here.run(&job, &mut quiet).unwrap()
        });
        let devices = open(true);
        let there = timed("an encoder on a device, tried", || {
            ExactBert::new(manifest, weights).unwrap().on(&devices).unwrap()
        });
        let found = timed("its vectors", || there.run(&job, &mut quiet).unwrap());
        same(&found, &expected, &format!("{precision:?}"));
        are_as_good_as_new(&devices);
    }
}

/// A decoder's weights, and what says them: made once, since a large one's take seconds.
struct Made {
    weights: LlamaWeights,
    manifest: ModelManifest,
}

impl Made {
    fn new(sizes: &Sizes) -> Self {
        let weights = made_up::decoder(&sizes.decoder);
        let manifest = made_up::manifest(&weights).unwrap();
        Self { weights, manifest }
    }

    fn decoder(&self) -> ExactLlama {
        ExactLlama::new(self.manifest.clone(), self.weights.clone()).unwrap()
    }
}

/// A prompt of this length, and others for another seed.
fn generation(sizes: &Sizes, seed: u64, (length, new_tokens): (usize, u32)) -> Job {
    let bounds = made_up::bounds(sizes.decoder.vocabulary, sizes.decoder.context);
    let settings = Settings {
        max_tokens: new_tokens,
        // Half of them take the likeliest tokens, which a device chooses.
        temperature_milli: if seed.is_multiple_of(2) { 0 } else { 800 },
        top_k: 40,
        top_p_milli: 950,
        seed,
    };
    let prompt = made_up::tokens(seed, length, &bounds);
    made_up::generation(&prompt, &settings, &bounds).unwrap()
}

fn a_prompt_is_continued_and_audited(open: Open, sizes: &Sizes) {
    let job = generation(sizes, 1, (sizes.prompt, sizes.new_tokens));
    let made = timed("weights", || Made::new(sizes));
    let here = timed("a decoder", || made.decoder());
    let expected = timed("the processor's tokens", || here.run(&job, &mut quiet).unwrap());
    drop(here);
    for has_graphs in [true, false] {
        let what = by(has_graphs);
        let devices = open(has_graphs);
        let there = timed("a decoder on a device, tried", || {
            made.decoder().on(&devices).unwrap()
        });
        let found = timed(&format!("its tokens, {what}"), || {
            there.run(&job, &mut quiet).unwrap()
        });
        same(&found, &expected, what);
        let claim = timed("its audit", || there.audit(&job, &expected.output, &mut quiet));
        assert_eq!(claim.unwrap(), expected.claim, "{what}");
        are_as_good_as_new(&devices);
    }
}

/// Their prompts are of all lengths.
fn generations_share_a_device(open: Open, sizes: &Sizes) {
    let job = |seed: u64| {
        let length = 1 + (seed as usize * 37 + 5) % sizes.stream_prompt;
        generation(sizes, seed, (length, sizes.stream_tokens))
    };
    let [few, many] = sizes.streams;
    let jobs: Vec<Job> = (0..many as u64).map(job).collect();
    let made = timed("weights", || Made::new(sizes));
    let here = timed("a decoder", || made.decoder());
    let expected: Vec<Outcome> = timed("each alone on the processor", || {
        let alone = jobs.iter().map(|job| here.run(job, &mut quiet).unwrap());
        alone.collect()
    });
    drop(here);
    for has_graphs in [true, false] {
        let what = by(has_graphs);
        let devices = open(has_graphs);
        let there = timed("a decoder on a device, tried", || {
            Arc::new(made.decoder().on(&devices).unwrap())
        });
        for count in [few, many] {
            let found = timed(&format!("{count} at once, {what}"), || {
                side_by_side(&there, &jobs[..count])
            });
            for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
                same(found, expected, &format!("{number} of {count}, {what}"));
            }
            assert_eq!(found.len(), count);
        }
        are_as_good_as_new(&devices);
    }
}

fn side_by_side(decoder: &Arc<ExactLlama>, jobs: &[Job]) -> Vec<Outcome> {
    let limits = Limits {
        // Nobody reads before the end.
        ahead_max: 4096,
        client_waiting_max: jobs.len(),
        waiting_max: jobs.len(),
        ..Limits::default()
    };
    let mut batcher = Batcher::new(decoder.clone(), limits);
    let handle = batcher.handle();
    let submit = |job| handle.submit(ClientKey::default(), job).unwrap();
    let streams: Vec<_> = jobs.iter().map(submit).collect();
    while batcher.step() {}
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ended = streams.into_iter().map(|stream| {
        let ended = runtime.block_on(stream.finish());
        ended.unwrap_or_else(|error| panic!("{error}")).outcome.unwrap()
    });
    ended.collect()
}

#[test]
fn items_of_all_lengths_have_the_processors_vectors_on_an_emulated_device() {
    items_are_embedded(emulated, &SMALL);
}

#[test]
fn a_generation_and_its_audit_are_the_processors_on_an_emulated_device() {
    a_prompt_is_continued_and_audited(emulated, &SMALL);
}

#[test]
fn generations_that_share_an_emulated_device_are_as_if_each_were_alone() {
    generations_share_a_device(emulated, &SMALL);
}

#[cfg(feature = "cuda")]
#[test]
#[ignore = "needs an NVIDIA device"]
fn items_of_all_lengths_have_the_processors_vectors() {
    items_are_embedded(cuda, &WHOLE);
}

#[cfg(feature = "cuda")]
#[test]
#[ignore = "needs an NVIDIA device"]
fn a_generation_and_its_audit_are_the_processors() {
    a_prompt_is_continued_and_audited(cuda, &WHOLE);
}

#[cfg(feature = "cuda")]
#[test]
#[ignore = "needs an NVIDIA device"]
fn generations_that_share_a_device_are_as_if_each_were_alone() {
    generations_share_a_device(cuda, &WHOLE);
}
