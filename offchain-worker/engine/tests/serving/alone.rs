//! Each generation is as if it were alone.

use std::{mem, sync::OnceLock};

use proptest::{collection::vec, prelude::*};
use surety_engine::serving::{Load, Refusal};

use super::*;

fn decoders() -> &'static [Arc<ExactLlama>] {
    static DECODERS: OnceLock<Vec<Arc<ExactLlama>>> = OnceLock::new();
    // int8 and int12.
    DECODERS.get_or_init(|| {
        [
            synthetic::llama(3, true),
            synthetic::llama(4, false),
            synthetic::qwen3(5, true),
        ]
        .map(decoder)
        .into()
    })
}

/// What becomes of a reader once it has so many tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Finishes,
    Cancels,
    Leaves,
}

#[derive(Clone, Debug)]
struct Plan {
    client: u8,
    prompt: Vec<u32>,
    settings: Settings,
    /// The step that it comes in.
    arrives: usize,
    /// Takes tokens every so many steps.
    pace: usize,
    fate: (Fate, usize),
}

fn prompt() -> impl Strategy<Value = Vec<u32>> {
    // Many begin alike.
    let whole = (0u64..2, 1usize..60, 0u64..3, 0usize..40);
    let whole = whole.prop_map(|(first, most, then, more)| [ids(first, most), ids(10 + then, more)].concat());
    whole.prop_filter("too long", |prompt| prompt.len() < 100)
}

fn plan() -> impl Strategy<Value = Plan> {
    let settings = (
        1u32..25,
        prop_oneof![Just(0u32), Just(900)],
        0u32..50,
        1u32..=1000,
        any::<u64>(),
    );
    let settings = settings.prop_map(
        |(max_tokens, temperature_milli, top_k, top_p_milli, seed)| Settings {
            max_tokens,
            temperature_milli,
            top_k,
            top_p_milli,
            seed,
        },
    );
    let fate = prop_oneof![4 => Just(Fate::Finishes), 2 => Just(Fate::Cancels), 1 => Just(Fate::Leaves)];
    let rest = (0u8..3, 0usize..30, 1usize..6, fate, 0usize..12);
    (prompt(), settings, rest).prop_map(|(prompt, settings, (client, arrives, pace, fate, after))| Plan {
        client,
        prompt,
        settings,
        arrives,
        pace,
        fate: (fate, after),
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    // The largest of them takes 180 kB.
    let all = (
        200_000u64..2_000_000,
        0u64..2_000_000,
        0u64..2_000_000,
        1usize..24,
        1usize..6,
    );
    all.prop_map(
        |(bytes_max, client_bytes_max, prefix_bytes_max, step_rows, ahead_max)| Limits {
            bytes_max,
            client_bytes_max: client_bytes_max.max(200_000),
            prefix_bytes_max,
            step_rows,
            ahead_max,
            waiting_max: 6,
            client_waiting_max: 3,
            looked_at: 1,
            new_looked_at: 4,
        },
    )
}

/// A plan's reader.
enum Reader {
    Coming,
    Reading(TokenStream, Vec<u32>),
    Ending(
        Pin<Box<dyn Future<Output = Result<Ended, EngineError>>>>,
        Vec<u32>,
    ),
    Ended(Ended, Vec<u32>),
    Gone,
}

/// What a reader does in a step.
fn go_on(reader: Reader, plan: &Plan, submit: impl Fn() -> Result<TokenStream, Refusal>) -> Reader {
    match reader {
        Reader::Coming => match submit() {
            Ok(stream) => Reader::Reading(stream, Vec::new()),
            Err(Refusal::Busy { limit: 6 } | Refusal::ClientBusy { limit: 3 }) => Reader::Coming,
            Err(other) => panic!("{other}"),
        },
        Reader::Reading(mut stream, mut tokens) => {
            let (fate, after) = plan.fate;
            tokens.extend(take(&mut stream, after - tokens.len()));
            match fate {
                _ if tokens.len() < after => Reader::Reading(stream, tokens),
                Fate::Leaves => Reader::Gone,
                Fate::Cancels => Reader::Ending(Box::pin(stream.cancel()), tokens),
                Fate::Finishes => Reader::Ending(Box::pin(stream.finish()), tokens),
            }
        }
        Reader::Ending(mut ending, tokens) => match poll(ending.as_mut()) {
            Poll::Ready(ended) => Reader::Ended(ended.unwrap(), tokens),
            Poll::Pending => Reader::Ending(ending, tokens),
        },
        over => over,
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(24)))]

    #[test]
    fn whatever_joins_and_leaves_each_is_as_if_it_were_alone(
        which in 0usize..3, limits in limits(), mut plans in vec(plan(), 1..14),
    ) {
        let decoder = &decoders()[which];
        for plan in &mut plans {
            // Who waits for more than there are would wait for ever.
            let all = alone(decoder, &job(&plan.prompt, plan.settings)).claim.units as usize;
            plan.fate.1 = plan.fate.1.min(all - plan.prompt.len());
        }
        let mut batcher = Batcher::new(decoder.clone(), limits);
        let handle = batcher.handle();
        let mut readers: Vec<Reader> = plans.iter().map(|_| Reader::Coming).collect();
        let is_over = |reader: &Reader| matches!(reader, Reader::Ended(..) | Reader::Gone);
        let mut step = 0;
        while !readers.iter().all(is_over) {
            prop_assert!(step < 10_000);
            for (reader, plan) in readers.iter_mut().zip(&plans) {
                if step >= plan.arrives && step % plan.pace == 0 {
                    let submit = || handle.submit(client(plan.client), &job(&plan.prompt, plan.settings));
                    *reader = go_on(mem::replace(reader, Reader::Gone), plan, submit);
                }
            }
            batcher.step();
            prop_assert!(handle.load().bytes <= limits.bytes_max);
            step += 1;
        }
        for (reader, plan) in readers.iter().zip(&plans) {
            let Reader::Ended(ended, tokens) = reader else { continue };
            let job = job(&plan.prompt, plan.settings);
            let whole = alone(decoder, &job);
            let made = whole.claim.units as usize - plan.prompt.len();
            if plan.fate.0 == Fate::Finishes || tokens.len() == made {
                prop_assert_eq!(ended.outcome.as_ref(), Some(&whole));
            } else {
                prop_assert_eq!(ended.end, End::Cancelled);
                prop_assert_eq!(&ended.outcome, &cut(decoder, &job, tokens.len()));
            }
        }
        drop(readers);
        batcher.step();
        prop_assert_eq!(handle.load(), Load::default());
    }
}

/// A token whose state is so large that what layer 2 adds to it cannot be normed any more by layer 3, while
/// all others can be.
const LARGE: u32 = 77;

fn with_a_large_token(added: f32) -> Arc<ExactLlama> {
    let mut weights = synthetic::llama(21, false);
    let groups = weights.tokens.scales.len() / weights.tokens.rows;
    let large = LARGE as usize * groups;
    weights.tokens.scales[large..large + groups].fill(6e17 / 73.0);
    weights.layers[2]
        .down
        .scales
        .iter_mut()
        .for_each(|scale| *scale *= added);
    Arc::new(engine_stopped_by(weights, &[]))
}

#[test]
fn a_fault_ends_its_own_generation_and_no_other() {
    let settings = drawn(20);
    let mut faulty = ids(1, 30);
    faulty[20] = LARGE;
    let faulty = job(&faulty, settings);
    assert!(with_a_large_token(1.0).run(&faulty, &mut quiet).is_ok());
    let amounts = (0..60).map(|step| 1e15 * 1.2f32.powi(step));
    let decoder = amounts
        .map(with_a_large_token)
        .find(|decoder| decoder.run(&faulty, &mut quiet).is_err())
        .unwrap();
    // Such as never say the large token.
    let candidates = (2..100).map(|seed| {
        let ids: Vec<u32> = ids(seed, 25).into_iter().map(|id| id.min(LARGE - 1)).collect();
        let greedy = Settings {
            temperature_milli: 0,
            ..settings
        };
        job(&ids, greedy)
    });
    let is_good = |job: &Job| decoder.run(job, &mut quiet).is_ok();
    let good: Vec<Job> = candidates.filter(is_good).take(4).collect();
    assert_eq!(good.len(), 4);
    let mut batcher = Batcher::new(decoder.clone(), LIMITS);
    let submit = |job| batcher.handle().submit(client(1), job).unwrap();
    let bad = submit(&faulty);
    let others: Vec<TokenStream> = good.iter().map(submit).collect();
    let also_bad = submit(&faulty);
    for stream in [bad, also_bad] {
        let fault = run_until(&mut batcher, stream.finish());
        assert!(matches!(fault, Err(EngineError::NotFinite { .. })), "{fault:?}");
    }
    for (stream, job) in others.into_iter().zip(&good) {
        let ended = finish(&mut batcher, stream);
        assert_eq!(ended.outcome, Some(alone(&decoder, job)));
    }
}
