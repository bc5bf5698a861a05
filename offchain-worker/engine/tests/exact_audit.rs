//! Audits of generations: the own claim about somebody's answer.

#![allow(clippy::unwrap_used)]

mod common;

use std::{collections::BTreeSet, ops::ControlFlow};

use common::{
    generating::{Request, engine, generation, job, quiet, request},
    synthetic::{self, END},
};
use surety_engine::{
    Engine, EngineError, Event, content_hash,
    generation::{FinishReason, Generation},
};
use surety_proofs::merkle_root;

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

/// Tokens of "once", with the one that starts it.
const PROMPT: usize = 5;

/// Which of the two lists' leaves differ first.
fn first_difference<T: PartialEq>(a: &[T], b: &[T]) -> Option<usize> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).position(|(a, b)| a != b)
}

#[test]
fn a_wrong_token_is_found_at_its_place_and_nothing_before_it_differs() {
    let engine = engine(synthetic::llama(7, true));
    let job = job(&request("once", 30));
    let outcome = engine.run(&job, &mut quiet).unwrap();
    let honest = generation(&outcome);
    let distinct: BTreeSet<_> = honest.tokens.iter().collect();
    assert!(distinct.len() > 6, "a continuation worth the test: {distinct:?}");
    let leaves = engine.leaves(&job, &outcome.output, &mut quiet).unwrap();
    assert_eq!(merkle_root(leaves.iter().copied()), outcome.claim.trace_root);
    for at in 0..honest.tokens.len() {
        let mut wrong = honest.clone();
        // The last two are no tokens of the model.
        wrong.tokens[at] = [(wrong.tokens[at] + 1) % 256, 260, u32::MAX][at % 3];
        let wrong = wrong.encode();
        let own = engine.audit(&job, &wrong, &mut quiet).unwrap();
        assert_ne!(own.output, content_hash(&wrong));
        assert_eq!(own.units, outcome.claim.units);
        let own = engine.leaves(&job, &wrong, &mut quiet).unwrap();
        // Until the token is fed nothing differs.
        let chunk = (PROMPT + at) / 16;
        let same = (1 + chunk * 4).min(leaves.len() - 1);
        assert_eq!(first_difference(&own[..same], &leaves[..same]), None, "{at}");
    }
}

#[test]
fn what_can_be_no_whole_answer_is_not_claimed() {
    let engine = engine(synthetic::llama(9, true));
    let job = job(&request("once", 20));
    let outcome = engine.run(&job, &mut quiet).unwrap();
    let honest = generation(&outcome);
    assert_eq!(honest.finish_reason, FinishReason::Length, "choose another seed");
    let changes: [fn(&mut Generation); 4] = [
        |wrong| wrong.finish_reason = FinishReason::Stop,
        |wrong| wrong.tokens.truncate(19),
        |wrong| wrong.tokens.push(1),
        |wrong| wrong.tokens[3] = END,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut wrong = honest.clone();
        change(&mut wrong);
        let blob = wrong.encode();
        let own = engine.audit(&job, &blob, &mut quiet).unwrap();
        assert_ne!(own.output, content_hash(&blob), "{number}");
        assert_eq!(own.units, (PROMPT + wrong.tokens.len()) as u32);
    }
}

/// Whoever delivers nonsense is contradicted like anybody else.
#[test]
fn what_is_no_answer_has_an_own_view_too() {
    let engine = engine(synthetic::llama(9, true));
    let job = job(&request("once", 20));
    let honest = generation(&engine.run(&job, &mut quiet).unwrap()).encode();
    let units = |output: &[u8]| {
        let own = engine.audit(&job, output, &mut quiet).unwrap();
        assert_ne!(own.output, content_hash(output));
        own.units as usize - PROMPT
    };
    assert_eq!(units(b""), 1);
    assert_eq!(units(b"{\"tokens\":[1]}"), 2);
    assert_eq!(units(&honest[..honest.len() - 1]), 19);
    assert_eq!(units(&honest[..4]), 1);
    // The model has 256 positions.
    let long = Generation {
        tokens: vec![1; 300],
        finish_reason: FinishReason::Length,
    };
    assert_eq!(units(&long.encode()), 256 - PROMPT);
}

#[test]
fn a_sink_ends_an_audit() {
    let engine = engine(synthetic::llama(13, true));
    let job = job(&request(&"long ".repeat(30), 50));
    let outcome = engine.run(&job, &mut quiet).unwrap();
    let mut sink = |event| match event {
        Event::Progress { done: 64, .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let audit = engine.audit(&job, &outcome.output, &mut sink);
    assert!(matches!(audit, Err(EngineError::Cancelled)));
}
