//! Moves of a hostile challenger against an honest defender: whatever comes, the defender does not lose.
#![no_main]

use std::sync::{Arc, LazyLock};

use codec::{Decode, Encode};
use libfuzzer_sys::fuzz_target;
use surety_dispute_game::bisection::{defend, Clocks, Game, Move, Side};
use surety_model_trace::{
    testsuite::{MemoryModel, MemoryTrace},
    CellReferee, Layout, Player, TaskFacts,
};
use surety_proofs::content_hash;
use surety_types::{
    input::{encode_items, IdBounds},
    model::{Activation, Architecture, ModelFamily, Operation, Precision, Smoothed},
};

struct Work {
    model: Arc<MemoryModel>,
    layout: Layout,
    trace: MemoryTrace,
}

static WORK: LazyLock<Work> = LazyLock::new(|| work().expect("a model that can be played over"));

fn work() -> Option<Work> {
    let architecture = Architecture {
        vocabulary: 16,
        width: 16,
        layers: 2,
        heads: 2,
        kv_heads: 2,
        head_dim: 8,
        inner: 32,
        positions: 4,
        epsilon: 1e-12f32.to_bits(),
        activation: Activation::Gelu,
        smoothed: Smoothed::default(),
        tied: false,
        precision: Precision::Int12,
    };
    let bounds = IdBounds {
        vocabulary: architecture.vocabulary,
        positions: architecture.positions,
    };
    let input = encode_items(&[vec![1, 2, 3], vec![4, 5]], &bounds).ok()?;
    let layout = |output| {
        let facts = TaskFacts {
            family: ModelFamily::Bert,
            operation: Operation::Embed,
            input: content_hash(&input),
            input_bytes: input.len() as u32,
            units_max: 2,
            stop: Default::default(),
            units: 2,
            output,
        };
        Layout::new(&architecture, facts).ok()
    };
    let model = Arc::new(MemoryModel::arbitrary(ModelFamily::Bert, architecture.clone(), 1));
    let trace = MemoryTrace::compute(model.clone(), &layout(Default::default())?, input.clone(), None).ok()?;
    let layout = layout(content_hash(&trace.own()?))?;
    Some(Work { model, layout, trace })
}

/// A move of the challenger's: of any bytes, or one that it can make.
fn challenge(bytes: &mut &[u8]) -> Option<Move> {
    let (kind, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(match kind {
        0..=99 => Move::Name(kind % 17),
        100..=199 => Move::Pick(u16::decode(bytes).ok()?),
        _ => {
            let found = Move::decode(bytes).ok()?;
            assert_eq!(Move::decode(&mut &found.encode()[..]), Ok(found.clone()));
            found
        }
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Work { model, layout, trace } = &*WORK;
    let referee = CellReferee::new(layout, model.weight_root());
    let mut defender = Player::new(layout.clone(), trace.clone());
    let Ok(mut game) = Game::new(trace.root(), layout, Clocks::equal(100)) else {
        return;
    };
    let mut bytes = bytes;
    while let Some(played) = challenge(&mut bytes) {
        let before = game.clone();
        if game.step(Side::Challenger, played, layout, &referee).is_err() {
            assert_eq!(game, before, "a refused move changed something");
        }
        while let Ok(right) = defend(&game, layout, &mut defender) {
            game.step(Side::Defender, right, layout, &referee)
                .expect("an honest move");
        }
        if let Some(outcome) = game.outcome() {
            assert_eq!(outcome.winner, Side::Defender, "{outcome:?}");
            return;
        }
    }
});
