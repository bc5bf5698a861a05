//! Moves of a hostile side against an honest one: whatever comes, the honest does not lose. The first byte
//! says which side is hostile. Challengers ask for what they have or have not got, defenders show it or not.
#![no_main]

use std::sync::{Arc, LazyLock};

use codec::{Decode, Encode};
use libfuzzer_sys::fuzz_target;
use surety_dispute_game::bisection::{challenge, defend, Clocks, Game, Missing, Move, Side, State};
use surety_model_trace::{
    testsuite::{MemoryModel, MemoryTrace},
    CellReferee, Layout, Player, TaskFacts,
};
use surety_proofs::{content_hash, PartOpening};
use surety_types::{
    input::{encode_items, IdBounds},
    model::{Activation, Architecture, ModelFamily, Operation, Pooling, Precision, Smoothed},
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
        pooling: Pooling::Mean,
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

/// What bytes say, if it is read again as it was written.
fn decoded(bytes: &mut &[u8]) -> Option<Move> {
    let found = Move::decode(bytes).ok()?;
    assert_eq!(Move::decode(&mut &found.encode()[..]), Ok(found.clone()));
    Some(found)
}

const fn missing(kind: u8) -> Missing {
    match kind % 3 {
        0 => Missing::Input,
        1 => Missing::Output,
        _ => Missing::Both,
    }
}

/// A move of a challenger: of any bytes, or one that it can make.
fn contradiction(bytes: &mut &[u8]) -> Option<Move> {
    let (kind, rest) = bytes.split_first()?;
    *bytes = rest;
    match kind {
        0..=89 => Some(Move::Name(kind % 17)),
        90..=99 => Some(Move::Ask(missing(*kind))),
        100..=199 => Some(Move::Pick(u16::decode(bytes).ok()?)),
        _ => decoded(bytes),
    }
}

/// Makes a move. One that is refused changes nothing.
fn try_step(game: &mut Game, side: Side, played: Move, work: &Work) {
    let referee = CellReferee::new(&work.layout, work.model.weight_root());
    let before = game.clone();
    if game.step(side, played, &work.layout, &referee).is_err() {
        assert_eq!(*game, before, "a refused move changed something");
    }
}

fn against_a_defender(work: &Work, mut bytes: &[u8]) {
    let Work { model, layout, trace } = work;
    let referee = CellReferee::new(layout, model.weight_root());
    let mut defender = Player::new(layout.clone(), trace.clone());
    let Ok(mut game) = Game::new(trace.root(), layout, Clocks::equal(100)) else {
        return;
    };
    while let Some(played) = contradiction(&mut bytes) {
        try_step(&mut game, Side::Challenger, played, work);
        while let Ok(right) = defend(&game, layout, &mut defender) {
            game.step(Side::Defender, right, layout, &referee)
                .expect("an honest move");
        }
        if let Some(outcome) = game.outcome() {
            assert_eq!(outcome.winner, Side::Defender, "{outcome:?}");
            return;
        }
    }
}

/// A move of a defender that has something wrong: what follows from that, some part of some output, or any
/// bytes.
fn defence(game: &Game, work: &Work, liar: &mut Player<MemoryTrace>, bytes: &mut &[u8]) -> Option<Move> {
    let (kind, rest) = bytes.split_first()?;
    *bytes = rest;
    match kind {
        0..=179 => defend(game, &work.layout, liar).ok(),
        180..=199 => {
            let mut blob = work.trace.own()?;
            *blob.first_mut()? ^= kind % 2;
            PartOpening::new(&blob, u32::from(kind % 4 / 2)).map(Move::Supply)
        }
        _ => decoded(bytes),
    }
}

fn against_a_challenger(work: &Work, mut bytes: &[u8]) {
    let Work { model, layout, trace } = work;
    let referee = CellReferee::new(layout, model.weight_root());
    let Some(([asks, leaf, step, byte], rest)) = bytes.split_first_chunk() else {
        return;
    };
    bytes = rest;
    let mut liar = Player::new(layout.clone(), trace.clone());
    let Ok(root) = liar.alter(u32::from(*leaf), u32::from(*step), 0, u32::from(*byte)) else {
        return;
    };
    let mut challenger = Player::new(layout.clone(), trace.clone());
    let Ok(mut game) = Game::new(root, layout, Clocks::equal(100)) else {
        return;
    };
    while let Some(side) = game.to_move() {
        if side == Side::Defender {
            let Some(played) = defence(&game, work, &mut liar, &mut bytes) else {
                return;
            };
            try_step(&mut game, Side::Defender, played, work);
            continue;
        }
        let can_ask = matches!(game.state(), State::Naming { .. } | State::Picking { .. });
        let right = if asks % 2 == 0 && can_ask && game.asked().is_none() {
            Move::Ask(missing(asks / 2))
        } else {
            challenge(&game, &mut challenger).expect("its trace is whole")
        };
        game.step(Side::Challenger, right, layout, &referee)
            .expect("an honest move");
    }
    if let Some(outcome) = game.outcome() {
        assert_eq!(outcome.winner, Side::Challenger, "{outcome:?}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((side, moves)) = bytes.split_first() else {
        return;
    };
    match side % 2 {
        0 => against_a_defender(&WORK, moves),
        _ => against_a_challenger(&WORK, moves),
    }
});
