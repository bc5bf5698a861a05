//! Exact decoders: the bits of the definition for prompts in pieces, continuations and audits.

#![allow(clippy::unwrap_used)]

mod common;

use std::{ops::ControlFlow, sync::Arc};

use common::{
    reference::{self, bytes, check_opened, Steps},
    synthetic::{self, Dice, END, START},
};
use surety_engine::{
    content_hash,
    exact::{
        kernels::{available, with_isa, Rows},
        weights::LlamaWeights,
        ExactLlama, LlamaModel, Op, Probe, Sequence, Step,
    },
    generation::{FinishReason, Generation, Request, RequestError},
    Engine, EngineError, Event, Job, ModelError, Outcome, Refutation,
};
use surety_exact::sample;
use surety_types::{
    model::{ModelFamily, Operation},
    ContentHash,
};
use surety_verification::merkle_root;

/// Writes every step down.
#[derive(Default)]
struct Recorder(Steps);

impl Probe for Recorder {
    fn real(&mut self, step: Step, rows: &[f32], width: usize) {
        let rows = rows.chunks(width).map(bytes);
        self.0 .0.entry(step).or_default().extend(rows);
    }

    fn quantised(&mut self, step: Step, _: &[f32], _: usize, rows: &Rows) {
        let all = (0..rows.count()).map(|row| {
            let (q, scales) = rows.row(row).unwrap();
            q.iter().map(|q| *q as u8).chain(bytes(scales)).collect()
        });
        self.0 .0.entry(step).or_default().extend(all);
    }
}

/// Every step and every position's logits, for a sequence in pieces of these lengths.
fn pass(model: &LlamaModel, tokens: &[u32], pieces: &[usize]) -> (Vec<Vec<u8>>, Steps) {
    let mut sequence = Sequence::new(model, tokens.len());
    let (mut steps, mut all, mut some) = (Recorder::default(), Vec::new(), Vec::new());
    let mut rest = tokens;
    for piece in pieces.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((*piece).min(rest.len()));
        rest = later;
        model.forward(&mut sequence, now, &mut steps).unwrap();
        model.logits(sequence.states(), &mut some).unwrap();
        all.extend(some.chunks(model.vocabulary()).map(bytes));
    }
    assert_eq!(sequence.len(), tokens.len());
    (all, steps.0)
}

fn some_tokens(seed: u64, count: usize) -> Vec<u32> {
    let dice = &mut Dice(seed);
    (0..count).map(|_| dice.below(256) as u32).collect()
}

#[test]
fn every_cell_of_every_step_is_that_of_the_definition() {
    for (seed, tied) in [(1, true), (2, false)] {
        let weights = synthetic::llama(seed, tied);
        let model = LlamaModel::new(weights.clone()).unwrap();
        let tokens = some_tokens(seed, 21);
        let (logits, expected) = reference::llama(&weights, &tokens);
        let logits: Vec<_> = logits.iter().map(|row| bytes(row)).collect();
        for isa in available() {
            let (found, steps) = with_isa(*isa, || pass(&model, &tokens, &[21]));
            assert!(found == logits, "{isa:?}");
            for (step, rows) in &expected.0 {
                assert!(steps.0.get(step) == Some(rows), "{isa:?} {step:?}");
            }
            assert_eq!(steps.0.len(), expected.0.len());
        }
    }
}

#[test]
fn a_prompt_in_pieces_and_token_by_token_gives_the_same_bits() {
    let model = LlamaModel::new(synthetic::llama(3, true)).unwrap();
    let tokens = some_tokens(3, 130);
    let whole = pass(&model, &tokens, &[130]);
    for pieces in [&[1][..], &[2], &[7], &[32], &[65], &[64], &[100, 1, 1, 5]] {
        for threads in [1, 2, 7, 16] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let found = pool.install(|| pass(&model, &tokens, pieces));
            assert!(found == whole, "{pieces:?} {threads}");
        }
    }
}

fn engine(weights: LlamaWeights) -> ExactLlama {
    let tokenizer = synthetic::bytes_tokenizer().to_string();
    ExactLlama::new(
        synthetic::manifest(ModelFamily::Llama),
        weights,
        tokenizer.as_bytes(),
    )
    .unwrap()
}

fn request(prompt: &str, max_tokens: u32) -> Request {
    Request {
        prompt: prompt.into(),
        max_tokens,
        temperature_milli: 800,
        top_k: 40,
        top_p_milli: 950,
        seed: 7,
    }
}

fn job(request: &Request) -> Job {
    Job {
        operation: Operation::Generate,
        input: request.encode(),
        units_max: 1000,
    }
}

fn quiet(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn generation(outcome: &Outcome) -> Generation {
    Generation::decode(&outcome.output).unwrap()
}

fn encoded(prompt: &str) -> Vec<u32> {
    let tokenizer = tokenizers::Tokenizer::from_bytes(synthetic::bytes_tokenizer().to_string()).unwrap();
    let tokens = tokenizer.encode(prompt, true).unwrap().get_ids().to_vec();
    assert_eq!(tokens[0], START);
    tokens
}

/// The tokens that the definition gives, and the trace's root.
fn expected(weights: &LlamaWeights, job: &Job) -> (Vec<u32>, ContentHash) {
    let request = Request::decode(&job.input).unwrap();
    let tokenizer = tokenizers::Tokenizer::from_bytes(synthetic::bytes_tokenizer().to_string()).unwrap();
    let mut all = tokenizer
        .encode(&request.prompt[..], true)
        .unwrap()
        .get_ids()
        .to_vec();
    assert_eq!(all[0], START);
    let mut tokens = Vec::new();
    loop {
        let (logits, steps) = reference::llama(weights, &all);
        let mut preimage = content_hash(&job.input).as_bytes().to_vec();
        preimage.extend(request.seed.to_le_bytes());
        preimage.extend((tokens.len() as u32).to_le_bytes());
        let random = u64::from_le_bytes(content_hash(&preimage)[..8].try_into().unwrap());
        let last = logits.last().unwrap();
        let token = sample(last, &request.sampling(), random, &mut vec![0; last.len()]).unwrap();
        tokens.push(token);
        if token == END || tokens.len() == request.max_tokens as usize {
            return (tokens, trace_root(&steps, all.len()));
        }
        all.push(token);
    }
}

fn trace_root(steps: &Steps, rows: usize) -> ContentHash {
    let row = |stride: &[usize], at: usize| {
        let cell = |layer: usize, op| steps.0[&Step { layer, op }][at].clone();
        let mut bytes = cell(*stride.last().unwrap(), Op::Sum);
        for layer in stride {
            bytes.extend(cell(*layer, Op::RotateKey));
            bytes.extend(cell(*layer, Op::Value));
        }
        merkle_root(bytes.chunks(1024).map(content_hash))
    };
    let positions: Vec<usize> = (0..rows).collect();
    let leaves = positions.chunks(16).flat_map(|chunk| {
        // 1152 / 640: strides of 2 layers.
        let strides: [&[usize]; 3] = [&[0, 1], &[2, 3], &[4]];
        strides.map(|stride| merkle_root(chunk.iter().map(|at| row(stride, *at))))
    });
    merkle_root(leaves.collect::<Vec<_>>().into_iter())
}

#[test]
fn tokens_and_trace_are_those_of_the_definition() {
    for seed in [4, 5] {
        let weights = synthetic::llama(seed, seed == 4);
        let job = job(&request("Once upon", 12));
        let outcome = engine(weights.clone()).run(&job, &mut quiet).unwrap();
        let (tokens, root) = expected(&weights, &job);
        let found = generation(&outcome);
        assert_eq!(found.tokens, tokens);
        assert_eq!(outcome.claim.trace_root, root);
        assert_eq!(found.prompt_tokens, 10);
        assert_eq!(outcome.claim.units, 10 + tokens.len() as u32);
        assert_eq!(outcome.claim.output, content_hash(&outcome.output));
    }
}

#[test]
fn an_audit_in_one_pass_gives_the_claim_of_the_run() {
    let engine = engine(synthetic::llama(6, true));
    for (prompt, max_tokens) in [("", 1), ("x", 40), (&"long ".repeat(20), 90)] {
        for temperature_milli in [0, 1500] {
            let request = Request {
                temperature_milli,
                ..request(prompt, max_tokens)
            };
            let job = job(&request);
            let outcome = engine.run(&job, &mut quiet).unwrap();
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                let claim = pool
                    .install(|| engine.audit(&job, &outcome.output, &mut quiet))
                    .unwrap();
                assert_eq!(claim, outcome.claim);
            }
        }
    }
}

#[test]
fn an_audit_refutes_every_changed_token() {
    let engine = engine(synthetic::llama(7, true));
    let job = job(&request("once", 30));
    let honest = generation(&engine.run(&job, &mut quiet).unwrap());
    let distinct: std::collections::BTreeSet<_> = honest.tokens.iter().collect();
    assert!(distinct.len() > 10, "a continuation worth the test: {distinct:?}");
    let decode = {
        let json = synthetic::bytes_tokenizer().to_string();
        let tokenizer = tokenizers::Tokenizer::from_bytes(json).unwrap();
        move |tokens: &[u32]| tokenizer.decode(tokens, true).unwrap()
    };
    for at in 0..honest.tokens.len() - 1 {
        let mut wrong = honest.clone();
        wrong.tokens[at] = (wrong.tokens[at] + 1) % 256;
        wrong.text = decode(&wrong.tokens);
        match engine.audit(&job, &wrong.encode(), &mut quiet) {
            Err(EngineError::Refuted(Refutation::Token {
                index,
                claimed,
                expected,
            })) => {
                assert_eq!(index as usize, at);
                assert_eq!((claimed, expected), (wrong.tokens[at], honest.tokens[at]));
            }
            other => panic!("{at}: {other:?}"),
        }
    }
}

#[test]
fn an_audit_refutes_what_is_no_answer() {
    let engine = engine(synthetic::llama(8, true));
    let job = job(&request("once", 20));
    let honest = generation(&engine.run(&job, &mut quiet).unwrap());
    assert_eq!(honest.finish_reason, FinishReason::Length, "choose another seed");
    let refuted = |output: &[u8]| match engine.audit(&job, output, &mut quiet) {
        Err(EngineError::Refuted(refutation)) => refutation,
        other => panic!("{other:?}"),
    };
    let changed = |change: fn(&mut Generation)| {
        let mut wrong = honest.clone();
        change(&mut wrong);
        refuted(&wrong.encode())
    };
    assert!(matches!(refuted(b""), Refutation::Malformed(_)));
    assert!(matches!(refuted(b"{\"tokens\":[1]}"), Refutation::Malformed(_)));
    assert_eq!(changed(|wrong| wrong.text.push('!')), Refutation::Encoding);
    assert_eq!(changed(|wrong| wrong.prompt_tokens += 1), Refutation::Encoding);
    assert_eq!(
        changed(|wrong| wrong.finish_reason = FinishReason::Stop),
        Refutation::Encoding
    );
    assert_eq!(
        refuted(&[honest.encode(), b" ".to_vec()].concat()),
        Refutation::Encoding
    );
    assert_eq!(
        changed(|wrong| wrong.tokens.clear()),
        Refutation::Length { tokens: 0 }
    );
    assert_eq!(
        changed(|wrong| wrong.tokens.truncate(19)),
        Refutation::Length { tokens: 19 }
    );
    assert_eq!(
        changed(|wrong| wrong.tokens.push(1)),
        Refutation::Length { tokens: 21 }
    );
    assert_eq!(
        changed(|wrong| wrong.tokens[3] = END),
        Refutation::Length { tokens: 20 }
    );
    assert_eq!(
        changed(|wrong| wrong.tokens[3] = 260),
        Refutation::UnknownToken { token: 260 }
    );
    assert_eq!(
        changed(|wrong| wrong.tokens[3] = u32::MAX),
        Refutation::UnknownToken { token: u32::MAX }
    );
}

#[test]
fn every_leaf_opens_to_the_steps_of_the_definition() {
    let weights = synthetic::llama(18, true);
    let engine = engine(weights.clone());
    let job = job(&request("Once upon a time", 20));
    let outcome = engine.run(&job, &mut quiet).unwrap();
    let leaves = engine.leaves(&job, &outcome.output, &mut quiet).unwrap();
    assert_eq!(merkle_root(leaves.iter().copied()), outcome.claim.trace_root);
    let tokens = generation(&outcome).tokens;
    let mut fed = encoded("Once upon a time");
    fed.extend(&tokens[..tokens.len() - 1]);
    let (_, expected) = reference::llama(&weights, &fed);
    assert_eq!(leaves.len(), fed.len().div_ceil(16) * 3);
    for (number, leaf) in leaves.iter().enumerate() {
        let opened = engine
            .open_leaf(&job, &outcome.output, number as u32, &mut quiet)
            .unwrap();
        let chunk = number / 3 * 16;
        assert_eq!(opened.positions, chunk as u32..fed.len().min(chunk + 16) as u32);
        assert_eq!(opened.layers, [0..2, 2..4, 4..5][number % 3]);
        check_opened(&opened, *leaf, &expected);
    }
    let beyond = leaves.len() as u32;
    let beyond = engine.open_leaf(&job, &outcome.output, beyond, &mut quiet);
    assert!(matches!(beyond, Err(EngineError::NoLeaf { .. })));
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
        |weights| weights.layers[4].down.q[100] ^= 2,
        |weights| weights.layers[0].key.q[3] ^= 2,
        |weights| weights.layers[2].gate.scales[9] *= 2.0,
        |weights| weights.tokens.q[START as usize * 640] ^= 1,
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
    let mut weights = synthetic::llama(10, true);
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
    weights.end_tokens = vec![END, free.tokens[at]];
    let engine = engine(weights);
    let outcome = engine.run(&job, &mut quiet).unwrap();
    let stopped = generation(&outcome);
    assert_eq!(stopped.tokens, free.tokens[..=at]);
    assert_eq!(stopped.finish_reason, FinishReason::Stop);
    assert_eq!(
        engine.audit(&job, &outcome.output, &mut quiet).unwrap(),
        outcome.claim
    );
    let gone_on = free.encode();
    let audit = engine.audit(&job, &gone_on, &mut quiet);
    assert!(matches!(
        audit,
        Err(EngineError::Refuted(Refutation::Length { .. }))
    ));
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
fn the_text_comes_in_whole_characters_and_adds_up() {
    let engine = engine(synthetic::llama(12, true));
    let hot = Request {
        temperature_milli: 3000,
        top_k: 0,
        top_p_milli: 1000,
        ..request("once", 100)
    };
    let (mut text, mut tokens, mut progress) = (String::new(), Vec::new(), Vec::new());
    let outcome = engine
        .run(&job(&hot), &mut |event| {
            match event {
                Event::Token {
                    index,
                    token,
                    text: more,
                } => {
                    assert_eq!(index as usize, tokens.len());
                    tokens.push(token);
                    text.push_str(&more);
                }
                Event::Progress { done, total: 105 } => progress.push(done),
                other => panic!("{other:?}"),
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    let found = generation(&outcome);
    assert_eq!(tokens, found.tokens);
    assert!(progress.is_sorted() && progress[0] == 0 && progress.last() == Some(&outcome.claim.units));
    // Random bytes are seldom characters; those that are must be whole.
    assert_eq!(text, found.text);
}

#[test]
fn a_sink_ends_a_generation_and_an_audit() {
    let engine = engine(synthetic::llama(13, true));
    let job = job(&request(&"long ".repeat(30), 50));
    let outcome = engine.run(&job, &mut quiet).unwrap();
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
    let mut sink = |event| match event {
        Event::Progress { done: 64, .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let audit = engine.audit(&job, &outcome.output, &mut sink);
    assert!(matches!(audit, Err(EngineError::Cancelled)));
}

#[test]
fn requests_that_do_not_fit_are_refused() {
    let engine = engine(synthetic::llama(14, true));
    let refused = |request: &Request, units_max| {
        let job = Job {
            units_max,
            ..job(request)
        };
        let run = engine.run(&job, &mut quiet).err();
        let audit = engine.audit(&job, b"", &mut quiet).err();
        match (run, audit) {
            (Some(EngineError::Request(run)), Some(EngineError::Request(audit))) => {
                assert_eq!(run, audit);
                run
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        refused(&request("abc", 253), 1000),
        RequestError::ContextExceeded {
            prompt: 4,
            max_tokens: 253,
            context: 256
        }
    );
    assert_eq!(
        refused(&request("abc", 10), 13),
        RequestError::Unpaid {
            prompt: 4,
            max_tokens: 10,
            units_max: 13
        }
    );
    assert!(matches!(
        refused(&request("abc", 0), 13),
        RequestError::OutOfRange { .. }
    ));
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
fn weights_that_do_not_fit_together_are_refused() {
    let changes: [fn(&mut LlamaWeights); 8] = [
        |weights| weights.heads = 3,
        |weights| weights.kv_heads = 0,
        |weights| weights.context = 0,
        |weights| weights.turns.truncate(7),
        |weights| weights.layers.clear(),
        |weights| weights.tokens.scales.truncate(7),
        |weights| weights.layers[1].output.inputs = 640,
        |weights| weights.head = Some(weights.layers[0].up.clone()),
    ];
    let tokenizer = synthetic::bytes_tokenizer().to_string();
    for (number, change) in changes.into_iter().enumerate() {
        let mut weights = synthetic::llama(15, true);
        change(&mut weights);
        let manifest = synthetic::manifest(ModelFamily::Llama);
        let made = ExactLlama::new(manifest, weights, tokenizer.as_bytes());
        assert!(matches!(made.err(), Some(ModelError::Malformed(_))), "{number}");
    }
}

#[test]
fn tokenizers_with_parts_that_may_take_for_ever_are_refused() {
    let refused = |change: fn(&mut serde_json::Value)| {
        let mut tokenizer = synthetic::bytes_tokenizer();
        change(&mut tokenizer);
        let manifest = synthetic::manifest(ModelFamily::Llama);
        let made = ExactLlama::new(
            manifest,
            synthetic::llama(16, true),
            tokenizer.to_string().as_bytes(),
        );
        made.err()
    };
    let pattern = |tokenizer: &mut serde_json::Value| {
        tokenizer["pre_tokenizer"] = serde_json::json!({ "type": "Sequence", "pretokenizers": [
            { "type": "Split", "pattern": { "Regex": "(a+)+$" }, "behavior": "Isolated", "invert": false },
        ]});
    };
    let changes: [fn(&mut serde_json::Value); 5] = [
        pattern,
        |tokenizer| tokenizer["normalizer"] = serde_json::json!({ "type": "NFKD" }),
        |tokenizer| {
            tokenizer["decoder"] = serde_json::json!({ "type": "WordPiece", "prefix": "##", "cleanup": true })
        },
        |tokenizer| tokenizer["model"]["dropout"] = serde_json::json!(0.5),
        |tokenizer| tokenizer["model"] = serde_json::json!(7),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert!(
            matches!(refused(change), Some(ModelError::Tokenizer(_))),
            "{number}"
        );
    }
    let far = refused(|tokenizer| tokenizer["model"]["vocab"]["far"] = serde_json::json!(260));
    assert_eq!(
        far,
        Some(ModelError::Vocabulary {
            token: 260,
            vocabulary: 260
        })
    );
    assert_eq!(refused(|_| ()), None);
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
