//! What an exact decoder generates, and the trace that goes with it.

#![allow(clippy::unwrap_used)]

mod common;

use std::{ops::ControlFlow, sync::Arc};

use common::{
    generating::{Request, engine, engine_stopped_by, generation, job, quiet, request},
    reference::{self, Steps},
    synthetic::{self, END, START},
};
use surety_engine::{
    Engine, EngineError, Event, Job, content_hash,
    exact::{Op, Step},
    generation::FinishReason,
};
use surety_exact::sample;
use surety_model_trace::{LayoutError, sampling_random};
use surety_models::weights::LlamaWeights;
use surety_proofs::{merkle_root, rows_digest};
use surety_types::{ContentHash, input::ShapeFault, model::Operation};

/// The tokens that the definition gives, and the steps on the way.
fn expected(weights: &LlamaWeights, job: &Job, request: &Request) -> (Vec<u32>, Steps) {
    let mut all = prompt(job);
    let mut tokens = Vec::new();
    loop {
        let (logits, steps) = reference::llama(weights, &all);
        let random = sampling_random(&content_hash(&job.input), request.seed, tokens.len() as u32);
        let last = logits.last().unwrap();
        let token = sample(last, &request.sampling(), random, &mut vec![0; last.len()]).unwrap();
        tokens.push(token);
        if token == END || tokens.len() == request.max_tokens as usize {
            return (tokens, steps);
        }
        all.push(token);
    }
}

/// What comes after the settings.
fn prompt(job: &Job) -> Vec<u32> {
    let (words, _) = job.input.as_chunks();
    words[6..].iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// The trace's root, by its definition.
fn trace_root(steps: &Steps, job: &Job, tokens: &[u32], output: &[u8]) -> ContentHash {
    let words = |words: &[u32]| {
        words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let prompt = prompt(job);
    let mut leaves = vec![content_hash(&job.input)];
    let mut choices = vec![0; prompt.len() - 1];
    choices.extend(tokens);
    let positions: Vec<usize> = (0..choices.len()).collect();
    for chunk in positions.chunks(16) {
        // 1152 / 640: strides of 2 layers.
        for stride in [&[0, 1][..], &[2, 3], &[4]] {
            let rows: Vec<Vec<u8>> = chunk.iter().map(|at| row(steps, stride, *at)).collect();
            leaves.push(rows_digest(rows.iter().map(|row| &row[..])));
        }
        let choices: Vec<Vec<u8>> = chunk.iter().map(|at| words(&choices[*at..=*at])).collect();
        leaves.push(rows_digest(choices.iter().map(|row| &row[..])));
    }
    leaves.push(content_hash(output));
    merkle_root(leaves.into_iter())
}

/// Of the made-up decoders.
const KV_HEADS: usize = 2;

fn row(steps: &Steps, stride: &[usize], at: usize) -> Vec<u8> {
    let cell = |layer: usize, op| {
        let layer = layer as u32;
        steps.0[&Step { layer, op }][at].clone()
    };
    let (mut q, mut scales) = (vec![], vec![]);
    for (layer, op) in stride
        .iter()
        .flat_map(|layer| [(*layer, Op::QuantKey), (*layer, Op::QuantValue)])
    {
        // Two bytes a value, and a scale for each head.
        let mut heads = cell(layer, op);
        scales.push(heads.split_off(heads.len() - 4 * KV_HEADS));
        q.push(heads);
    }
    let state = cell(*stride.last().unwrap(), Op::Sum);
    [q.concat(), state, scales.concat()].concat()
}

#[test]
fn tokens_and_trace_are_those_of_the_definition() {
    for seed in [4, 5] {
        let weights = synthetic::llama(seed, seed == 4);
        let request = request("Once upon", 12);
        let job = job(&request);
        let outcome = engine(weights.clone()).run(&job, &mut quiet).unwrap();
        let (tokens, steps) = expected(&weights, &job, &request);
        let found = generation(&outcome);
        assert_eq!(found.tokens, tokens);
        let root = trace_root(&steps, &job, &tokens, &outcome.output);
        assert_eq!(outcome.claim.trace_root, root);
        assert_eq!(prompt(&job).len(), 10);
        assert_eq!(outcome.claim.units, 10 + tokens.len() as u32);
        assert_eq!(outcome.claim.output, content_hash(&outcome.output));
    }
}

#[test]
fn one_changed_weight_changes_the_trace() {
    let greedy = Request {
        temperature_milli: 0,
        ..request("once upon a", 1)
    };
    let root = |weights| {
        engine(weights)
            .run(&job(&greedy), &mut quiet)
            .unwrap()
            .claim
            .trace_root
    };
    let weights = synthetic::llama(9, false);
    let honest = root(weights.clone());
    let changes: [fn(&mut LlamaWeights); 5] = [
        |weights| synthetic::flip(&mut weights.layers[4].down.q, 100, 2),
        |weights| synthetic::flip(&mut weights.layers[0].key.q, 3, 2),
        |weights| weights.layers[2].gate.scales[9] *= 2.0,
        |weights| synthetic::flip(&mut weights.tokens.q, START as usize * 640, 1),
        |weights| weights.turns[0].0 ^= 1 << 50,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut changed = weights.clone();
        change(&mut changed);
        assert_ne!(root(changed), honest, "{number}");
    }
}

#[test]
fn a_continuation_stops_at_an_end_token() {
    let weights = synthetic::llama(10, true);
    let job = job(&Request {
        temperature_milli: 0,
        ..request("once", 30)
    });
    let free = generation(&engine(weights.clone()).run(&job, &mut quiet).unwrap());
    // Let one of its tokens be an end.
    let at = free
        .tokens
        .iter()
        .position(|token| *token != free.tokens[0])
        .unwrap_or(0);
    let engine = engine_stopped_by(weights, &[END, free.tokens[at]]);
    let outcome = engine.run(&job, &mut quiet).unwrap();
    let stopped = generation(&outcome);
    assert_eq!(stopped.tokens, free.tokens[..=at]);
    assert_eq!(stopped.finish_reason, FinishReason::Stop);
    assert_eq!(
        engine.audit(&job, &outcome.output, &mut quiet).unwrap(),
        outcome.claim
    );
}

#[test]
fn seeds_and_inputs_draw_other_tokens() {
    let engine = engine(synthetic::llama(11, true));
    let tokens = |request: &Request| generation(&engine.run(&job(request), &mut quiet).unwrap()).tokens;
    let first = tokens(&request("once", 20));
    assert_eq!(tokens(&request("once", 20)), first);
    let reseeded = Request {
        seed: 8,
        ..request("once", 20)
    };
    assert_ne!(tokens(&reseeded), first);
}

#[test]
fn tokens_are_told_as_they_come() {
    let engine = engine(synthetic::llama(12, true));
    let (mut tokens, mut progress) = (Vec::new(), Vec::new());
    let outcome = engine
        .run(&job(&request("once", 100)), &mut |event| {
            match event {
                Event::Token { index, token } => {
                    assert_eq!(index as usize, tokens.len());
                    tokens.push(token);
                }
                Event::Progress { done, total: 105 } => progress.push(done),
                other => panic!("{other:?}"),
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(tokens, generation(&outcome).tokens);
    assert!(progress.is_sorted() && progress[0] == 0 && progress.last() == Some(&outcome.claim.units));
}

#[test]
fn a_sink_ends_a_generation() {
    let engine = engine(synthetic::llama(13, true));
    let job = job(&request(&"long ".repeat(30), 50));
    let mut events = 0;
    let mut sink = |event| {
        events += 1;
        match event {
            Event::Token { index: 2, .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    assert!(matches!(engine.run(&job, &mut sink), Err(EngineError::Cancelled)));
    assert!(events < 12, "{events}");
}

#[test]
fn as_much_is_made_as_there_is_room_for_whatever_is_asked_for() {
    let engine = engine(synthetic::llama(14, true));
    let made = |max_tokens, units_max| {
        let job = Job {
            units_max,
            ..job(&request("abc", max_tokens))
        };
        let outcome = engine.run(&job, &mut quiet).unwrap();
        assert_eq!(
            engine.audit(&job, &outcome.output, &mut quiet).unwrap(),
            outcome.claim
        );
        outcome.claim.units
    };
    // Of 256 positions; of what is paid for; at least one.
    assert!(made(300, 1000) <= 256);
    assert!(made(10, 13) <= 13);
    assert_eq!(made(0, 13), 5);
}

#[test]
fn an_input_that_no_chain_takes_is_refused() {
    let engine = engine(synthetic::llama(14, true));
    let refused = |input: &[u8], units_max| {
        let job = Job {
            input: input.into(),
            units_max,
            ..job(&request("abc", 1))
        };
        let (run, audit) = (
            engine.run(&job, &mut quiet).err(),
            engine.audit(&job, b"", &mut quiet).err(),
        );
        match (run, audit) {
            (Some(EngineError::Untraceable(run)), Some(EngineError::Untraceable(audit))) => {
                assert_eq!(run, audit);
                run
            }
            other => panic!("{other:?}"),
        }
    };
    let fault = LayoutError::Input;
    assert_eq!(refused(&[0; 30], 9), fault(ShapeFault::Ragged));
    assert_eq!(refused(&[0; 24], 9), fault(ShapeFault::TooShort));
    assert_eq!(refused(&[0; 24 + 4 * 9], 9), fault(ShapeFault::PromptTooLong));
    assert_eq!(refused(&[0; 24 + 4 * 256], 999), fault(ShapeFault::PromptTooLong));
    let embed = Job {
        operation: Operation::Embed,
        ..job(&request("abc", 1))
    };
    assert!(matches!(
        engine.run(&embed, &mut quiet),
        Err(EngineError::OperationNotOffered(Operation::Embed))
    ));
}

#[test]
fn an_engine_is_shared_between_threads() {
    let engine: Arc<dyn Engine> = Arc::new(engine(synthetic::llama(17, true)));
    let job = job(&request("once", 10));
    let expected = engine.run(&job, &mut quiet).unwrap();
    let runs = std::thread::scope(|scope| {
        let run = || engine.run(&job, &mut quiet).unwrap();
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(run)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert!(runs.iter().all(|outcome| *outcome == expected));
}
