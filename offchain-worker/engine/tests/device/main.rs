//! Exact models whole on a CUDA device, played by a C++ program with the kernels in it: outputs, traces,
//! faults and views of disputes are those of the processor, bit by bit.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code)]
#[path = "../../../cuda/tests/emulator/mod.rs"]
mod emulator;
mod failing;
mod graphs;
mod served;
mod several;
mod silent;

use std::sync::Arc;

use common::{
    embed_job,
    generating::{self, Request, generation, job, quiet, request},
    synthetic,
    trace::check_leaves,
};
use emulator::{Emulator, Order};
use failing::{Failing, Fails, Switch};
use surety_cuda::{Capped, Error};
use surety_engine::{
    Choice, Claimed, Device, Devices, Dropped, Engine, EngineError, Job, Outcome,
    exact::{ExactBert, ExactLlama},
};
use surety_models::weights::{BertLayer, BertWeights, LlamaWeights};
use surety_types::model::{ModelFamily, Pooling};

fn emulated() -> Devices {
    let machine = Emulator::start(Order::Forwards);
    Device::on(machine, "an emulator").unwrap().into()
}

/// A few layers, in two strides.
fn bert(seed: u64) -> BertWeights {
    let mut weights = synthetic::bert(seed);
    weights.layers.truncate(7);
    weights
}

/// The same of a decoder.
fn short(mut weights: LlamaWeights) -> LlamaWeights {
    weights.layers.truncate(3);
    weights
}

fn encoder(seed: u64, pooling: Pooling) -> ExactBert {
    let weights = bert(seed);
    let manifest = synthetic::manifest_pooling(ModelFamily::Bert, &weights, pooling);
    ExactBert::new(manifest, weights).unwrap()
}

fn decoder(weights: &LlamaWeights) -> ExactLlama {
    generating::engine(weights.clone())
}

/// Outcome, audit, leaves and own trace.
fn check(here: ExactLlama, there: ExactLlama, job: &Job) {
    let expected = here.run(job, &mut quiet).unwrap();
    let outcome = there.run(job, &mut quiet).unwrap();
    assert_eq!(outcome, expected);
    let claim = there.audit(job, &expected.output, &mut quiet).unwrap();
    assert_eq!(claim, expected.claim);
    // Of an answer that is wrong the own view is the same, too.
    let mut wrong = generation(&expected);
    *wrong.tokens.last_mut().unwrap() ^= 1;
    let wrong = wrong.encode();
    let leaves = |engine: &ExactLlama| engine.leaves(job, &wrong, &mut quiet).unwrap();
    assert_eq!(leaves(&there), leaves(&here));
    let claimed = Claimed::whole(expected.output.clone(), expected.claim.units);
    let there: Arc<dyn Engine> = Arc::new(there);
    let mut own = there.trace(job.clone(), claimed, common::trace::quiet()).unwrap();
    check_leaves(&mut own, expected.claim.trace_root, &expected.leaves);
}

#[test]
fn an_encoder_on_a_device_has_the_bits_of_the_processor() {
    // int12 and int8; with both functions and both poolings, and all that is quantized is smoothed before.
    for (seed, pooling) in [(18, Pooling::Mean), (9, Pooling::First)] {
        let smoothed =
            |layer: &BertLayer| layer.attention_smoothing.is_some() && layer.up_smoothing.is_some();
        assert!(bert(seed).layers.iter().all(smoothed));
        let here = encoder(seed, pooling);
        let there = encoder(seed, pooling).on(&emulated()).unwrap();
        let job = embed_job("a b c\nz\nq w e r t y u i o p a s d f g h j k l z x c v b n m\nm m");
        let expected = here.run(&job, &mut quiet).unwrap();
        assert_eq!(there.run(&job, &mut quiet).unwrap(), expected);
        let items = |engine: &ExactBert| engine.audit_items(&job, &[1, 3], &mut quiet).unwrap();
        assert_eq!(items(&there), items(&here));
        let claimed = Claimed::whole(expected.output.clone(), expected.claim.units);
        let there: Arc<dyn Engine> = Arc::new(there);
        let mut own = there.trace(job, claimed, common::trace::quiet()).unwrap();
        check_leaves(&mut own, expected.claim.trace_root, &expected.leaves);
    }
}

#[test]
fn a_decoder_on_a_device_has_the_bits_of_the_processor() {
    let weights = short(synthetic::llama(4, false));
    let there = decoder(&weights).on(&emulated()).unwrap();
    check(decoder(&weights), there, &job(&request("Once upon a time", 12)));
}

#[test]
fn a_decoder_that_norms_its_heads_has_the_bits_of_the_processor() {
    let weights = short(synthetic::qwen3(5, true));
    let there = decoder(&weights).on(&emulated()).unwrap();
    let greedy = Request {
        temperature_milli: 0,
        ..request("the.", 9)
    };
    check(decoder(&weights), there, &job(&greedy));
}

/// Its keys and values take a second page, and it attends to more than one block.
#[test]
fn a_long_context_is_kept_on_the_device() {
    let weights = short(synthetic::llama(6, true));
    let there = decoder(&weights).on(&emulated()).unwrap();
    let job = job(&request(&"long ".repeat(25), 8));
    let expected = decoder(&weights).run(&job, &mut quiet).unwrap();
    assert!(expected.claim.units > 128);
    assert_eq!(there.run(&job, &mut quiet).unwrap(), expected);
}

/// Who has the fault is named as it is on the processor, and others have their results.
#[test]
fn what_has_no_result_has_none_on_a_device() {
    let mut weights = bert(2);
    // The word of one item alone.
    let word = embed_job("q").input;
    let word = u32::from_le_bytes(word[word.len() - 8..][..4].try_into().unwrap()) as usize;
    let groups = weights.word_embeddings.scales.len() / weights.word_embeddings.rows;
    weights.word_embeddings.scales[word * groups..][..groups].fill(f32::MAX);
    let manifest = synthetic::manifest(ModelFamily::Bert, &weights);
    let here = ExactBert::new(manifest.clone(), weights.clone()).unwrap();
    let there = ExactBert::new(manifest, weights).unwrap().on(&emulated());
    let there = there.unwrap();
    let bad = embed_job("a b\nq\nz");
    let fault = |engine: &ExactBert| format!("{:?}", engine.run(&bad, &mut quiet).unwrap_err());
    assert_eq!(fault(&there), fault(&here));
    assert!(fault(&here).contains("NotFinite"), "{}", fault(&here));
    let good = embed_job("a b\nz");
    assert_eq!(
        there.run(&good, &mut quiet).unwrap(),
        here.run(&good, &mut quiet).unwrap()
    );
}

/// The device's own error, by which a job has ended.
fn device_error(ended: Result<Outcome, EngineError>) -> Error {
    match ended {
        Err(EngineError::Device { error, .. }) => error,
        other => panic!("{other:?}"),
    }
}

/// A device that fails when it is told to, and models on it.
fn failing(weights: &LlamaWeights) -> (Devices, ExactBert, ExactLlama, Switch) {
    let (machine, fails) = Failing::new(Emulator::start(Order::Forwards));
    let devices = Device::on(machine, "one that fails").unwrap().into();
    let encoder = encoder(2, Pooling::Mean).on(&devices).unwrap();
    let decoder = decoder(weights).on(&devices).unwrap();
    (devices, encoder, decoder, fails)
}

/// The first job that shows it ends; the processor goes on alone.
#[test]
fn a_device_that_computes_something_else_is_believed_no_more() {
    let weights = short(synthetic::llama(4, true));
    let (embed, generate) = (embed_job("a b c"), job(&request("once", 8)));
    let embedded = encoder(2, Pooling::Mean).run(&embed, &mut quiet).unwrap();
    let generated = decoder(&weights).run(&generate, &mut quiet).unwrap();
    type Run<'a> = &'a dyn Fn(&ExactBert, &ExactLlama) -> Result<(), EngineError>;
    let both = [Fails::FlipsBits, Fails::HashesNothing, Fails::RecordsNothing];
    // A decoder takes the norm of no vector.
    let of_encoders = [&both[..], &[Fails::NormsNothing]].concat();
    let runs: [(&[Fails], Run<'_>); 4] = [
        (&of_encoders, &|encoder, _| {
            encoder.run(&embed, &mut quiet).map(drop)
        }),
        (&of_encoders, &|encoder, _| {
            encoder.audit_items(&embed, &[0], &mut quiet).map(drop)
        }),
        (&both, &|_, decoder| decoder.run(&generate, &mut quiet).map(drop)),
        (&both, &|_, decoder| {
            decoder.audit(&generate, &generated.output, &mut quiet).map(drop)
        }),
    ];
    let cases = runs
        .iter()
        .flat_map(|(ways, run)| ways.iter().map(move |how| (run, *how)));
    for (run, how) in cases {
        let (devices, encoder, decoder, fails) = failing(&weights);
        fails.set(how);
        let found = run(&encoder, &decoder);
        assert!(
            matches!(found, Err(EngineError::DeviceDiffers { .. })),
            "{how:?}: {found:?}"
        );
        assert_eq!(encoder.run(&embed, &mut quiet).unwrap(), embedded);
        assert_eq!(decoder.run(&generate, &mut quiet).unwrap(), generated);
        // Nor does it get another model.
        let refused = self::encoder(3, Pooling::Mean).on(&devices).map(drop);
        assert!(
            matches!(refused, Err(EngineError::DeviceDiffers { .. })),
            "{refused:?}"
        );
    }
}

/// However few of many items are computed again.
#[test]
fn a_vector_that_is_not_what_its_device_has_hashed_is_found_in_every_item() {
    let text = vec!["a"; 24].join("\n");
    let many = embed_job(&text);
    let vector_bytes = bert(2).word_embeddings.width * size_of::<f32>();
    for item in [0, 11, 23] {
        let (machine, fails) = Failing::new(Emulator::start(Order::Forwards));
        let devices = Device::on(machine, "one that fails").unwrap().into();
        let encoder = encoder(2, Pooling::Mean).on(&devices).unwrap();
        fails.set(Fails::FlipsOne);
        fails.flip_at(item * vector_bytes + 40);
        let found = encoder.run(&many, &mut quiet);
        assert!(
            matches!(found, Err(EngineError::DeviceDiffers { .. })),
            "{item}: {found:?}"
        );
        assert!(
            devices
                .iter()
                .all(|device| device.dropped() == Some(&Dropped::Differs))
        );
    }
}

#[test]
fn a_device_that_vanishes_ends_a_job_and_the_processor_goes_on() {
    let weights = short(synthetic::llama(4, true));
    let (embed, generate) = (embed_job("a b c"), job(&request("once", 8)));
    let embedded = encoder(2, Pooling::Mean).run(&embed, &mut quiet).unwrap();
    let generated = decoder(&weights).run(&generate, &mut quiet).unwrap();
    let (_, encoder, decoder, fails) = failing(&weights);
    fails.set(Fails::Vanishes);
    let error = device_error(decoder.run(&generate, &mut quiet));
    assert!(matches!(error, Error::Lost(_)), "{error}");
    assert_eq!(encoder.run(&embed, &mut quiet).unwrap(), embedded);
    assert_eq!(decoder.run(&generate, &mut quiet).unwrap(), generated);
}

/// Also where the driver itself finds none, for a kernel's first launch: what has it may end.
#[test]
fn a_device_that_has_no_memory_for_a_launch_is_used_again() {
    let weights = short(synthetic::llama(4, true));
    let generate = job(&request("once", 8));
    let generated = decoder(&weights).run(&generate, &mut quiet).unwrap();
    let (devices, _, decoder, fails) = failing(&weights);
    fails.set(Fails::IsFull);
    let error = device_error(decoder.run(&generate, &mut quiet));
    assert_eq!(error, Error::OutOfMemory(0));
    assert!(devices.iter().all(|device| device.dropped().is_none()));
    fails.set(Fails::Nothing);
    fails.take_launches();
    assert_eq!(decoder.run(&generate, &mut quiet).unwrap(), generated);
    assert!(fails.take_launches() > 0, "on the device");
}

#[test]
fn a_model_that_is_larger_than_the_cap_is_refused() {
    let machine = Capped::new(Emulator::start(Order::Forwards), 100_000);
    let devices = Device::on(machine, "a small one").unwrap().into();
    let refused = encoder(2, Pooling::Mean).on(&devices).map(drop).unwrap_err();
    let EngineError::Device { device, error } = &refused else {
        panic!("{refused}");
    };
    let capped = device == "a small one" && matches!(error, Error::MemoryCap { max: 100_000, .. });
    assert!(capped, "{refused}");
    assert!(refused.to_string().contains("raise the memory cap"), "{refused}");
}

/// A run of the benchmark takes what they leave.
#[test]
fn what_models_take_of_a_device_is_told_while_they_have_it() {
    let device = Device::on(Emulator::start(Order::Forwards), "an emulator").unwrap();
    let before = device.memory_taken();
    let model = encoder(2, Pooling::Mean).on(&device.clone().into()).unwrap();
    let taken = device.memory_taken();
    assert!(taken > before, "{taken} after {before}");
    drop(model);
    assert!(device.memory_taken() < taken, "the weights are given back");
}

#[test]
fn a_choice_is_read_as_it_is_written() {
    for (text, choice) in [
        ("auto", Choice::Auto),
        ("cpu", Choice::Cpu),
        ("cuda:0", Choice::Cuda(vec![0])),
        ("cuda:12", Choice::Cuda(vec![12])),
        ("cuda:1,0,7", Choice::Cuda(vec![1, 0, 7])),
    ] {
        assert_eq!(choice.to_string(), text);
        assert_eq!(text.parse(), Ok(choice));
    }
    for text in [
        "", "cuda", "cuda:", "cuda:-1", "cuda:x", "cuda:0,", "cuda:0,0", "gpu", "CPU",
    ] {
        assert!(text.parse::<Choice>().is_err(), "{text}");
    }
    assert!(Devices::open(&Choice::Cpu, None, true).unwrap().is_empty());
    // No machine has so many.
    let refused = Devices::open(&Choice::Cuda(vec![usize::MAX]), None, true)
        .map(drop)
        .unwrap_err();
    let EngineError::Device { device, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(*device, format!("cuda:{}", usize::MAX));
    assert!(Devices::open(&Choice::Auto, None, true).is_ok());
}
