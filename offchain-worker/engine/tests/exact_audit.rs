//! Audits of generations: the own claim about somebody's answer.

#![allow(clippy::unwrap_used)]

mod common;

use std::{collections::BTreeSet, ops::ControlFlow};

use common::{
    generating::{decoded, engine, generation, job, quiet, request},
    synthetic::{self, END},
};
use surety_engine::{
    Engine, EngineError, Event, Refutation, content_hash,
    generation::{FinishReason, Generation, Request},
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
        wrong.text = decoded(&wrong.tokens);
        let wrong = wrong.encode();
        let own = engine.audit(&job, &wrong, &mut quiet).unwrap();
        assert_ne!(own.output, content_hash(&wrong));
        assert_eq!(own.units, outcome.claim.units);
        let own = engine.leaves(&job, &wrong, &mut quiet).unwrap();
        // Until the token is fed all that differs may be the output's size.
        let chunk = (honest.prompt_tokens as usize + at) / 16;
        let same = (1 + chunk * 4).min(leaves.len() - 1);
        assert_eq!(first_difference(&own[1..same], &leaves[1..same]), None, "{at}");
    }
}

#[test]
fn what_can_be_no_whole_answer_is_not_claimed() {
    let engine = engine(synthetic::llama(8, true));
    let job = job(&request("once", 20));
    let outcome = engine.run(&job, &mut quiet).unwrap();
    let honest = generation(&outcome);
    assert_eq!(honest.finish_reason, FinishReason::Length, "choose another seed");
    let changes: [fn(&mut Generation); 8] = [
        |wrong| wrong.text.push('!'),
        |wrong| wrong.text.truncate(1),
        |wrong| wrong.text.clear(),
        |wrong| wrong.prompt_tokens += 1,
        |wrong| wrong.finish_reason = FinishReason::Stop,
        |wrong| wrong.tokens.truncate(19),
        |wrong| wrong.tokens.push(1),
        |wrong| wrong.tokens[3] = END,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut wrong = honest.clone();
        change(&mut wrong);
        for text in [wrong.text.clone(), decoded(&wrong.tokens)] {
            wrong.text = text;
            let blob = wrong.encode();
            if wrong == honest {
                continue;
            }
            let own = engine.audit(&job, &blob, &mut quiet).unwrap();
            assert_ne!(own.output, content_hash(&blob), "{number}");
            assert_eq!(own.units, 5 + wrong.tokens.len() as u32);
        }
    }
}

#[test]
fn what_is_no_answer_is_refuted() {
    let engine = engine(synthetic::llama(8, true));
    let job = job(&request("once", 20));
    let honest = generation(&engine.run(&job, &mut quiet).unwrap());
    let refuted = |output: &[u8]| match engine.audit(&job, output, &mut quiet) {
        Err(EngineError::Refuted(refutation)) => refutation,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refuted(b""), Refutation::Malformed(_)));
    assert!(matches!(refuted(b"{\"tokens\":[1]}"), Refutation::Malformed(_)));
    assert!(matches!(
        refuted(&honest.encode()[..91]),
        Refutation::Malformed(_)
    ));
    let of = |tokens: Vec<u32>| {
        let wrong = Generation {
            tokens,
            ..honest.clone()
        };
        refuted(&wrong.encode())
    };
    assert_eq!(of(vec![]), Refutation::Length { tokens: 0 });
    // The model has 256 positions.
    assert_eq!(of(vec![1; 252]), Refutation::Length { tokens: 252 });
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
