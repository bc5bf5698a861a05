//! What the trust lock's benchmarks need: a draw, and a game that ends with a long opening.

use alloc::{sync::Arc, vec::Vec};
use codec::{Decode, Encode};
use sp_consensus_babe::AuthorityId;
use sp_core::H256;
use sp_runtime::RuntimeAppPublic;
use surety_types::{
    model::{Activation, Architecture, ExactForm, ModelFamily, Operation, Precision, Smoothed},
    task::ResultClaim,
    trust::AuditProof,
};
use surety_verification::{
    bisection::{challenge, defend, Clocks, Game, Move, Side, State},
    cells::{encoder_tokens, MemoryModel, MemoryTrace, Player},
    content_hash,
};

use super::{ExactFacts, ExactReferee};
use crate::AccountId;
use surety_pallet_trust_lock::DisputeReferee;

/// The public key of `//Benchmark`.
const AGENT: [u8; 32] = [
    0xd4, 0xd8, 0x27, 0x91, 0x1d, 0xa2, 0x1a, 0xc0, 0xc8, 0xce, 0xe6, 0x0c, 0xce, 0xff, 0x01, 0x1c, 0x88,
    0x97, 0xe8, 0xa2, 0x9d, 0x6b, 0x54, 0x0c, 0x95, 0x2e, 0x56, 0x79, 0xc0, 0x39, 0x1a, 0x4d,
];

/// Its VRF over an `AuditInput` of seed 0x04.., task 7, provider `account("provider", 0, 0)`, commitment 0x02.. and
/// tranche 0: the output and the proof, as sp-core's `Pair::vrf_sign` gave it.
const PRE_OUTPUT: [u8; 32] = [
    0x32, 0x8a, 0x7f, 0x07, 0xdd, 0x78, 0xa7, 0x24, 0xa6, 0x81, 0x40, 0x5c, 0xb7, 0x07, 0xc9, 0x99, 0x18,
    0xa2, 0x08, 0xde, 0xcb, 0x20, 0x04, 0xd1, 0x8f, 0x6b, 0xa5, 0x89, 0x98, 0x34, 0x03, 0x71,
];
const PROOF: [u8; 64] = [
    0x7d, 0x91, 0x64, 0xb3, 0x69, 0x9b, 0x01, 0x43, 0xf2, 0x1c, 0x29, 0x0e, 0x61, 0xf8, 0xe3, 0xd9, 0xd7,
    0x42, 0x19, 0x96, 0x47, 0xf6, 0x8d, 0x90, 0xdc, 0xcf, 0x62, 0x9f, 0x1e, 0x14, 0xb1, 0x0b, 0x68, 0x24,
    0x65, 0x1b, 0xbd, 0x89, 0xe5, 0x66, 0x47, 0x6d, 0xd8, 0xc6, 0x9e, 0x73, 0xc3, 0x1f, 0xf9, 0xf0, 0xaa,
    0xf3, 0x57, 0x67, 0xe8, 0x99, 0x7d, 0x7c, 0xc4, 0x56, 0x13, 0xa2, 0x60, 0x0a,
];

/// An agent, and its proof for the input of the benchmark.
pub(super) fn proof() -> (AccountId, AuditProof) {
    let proof = AuditProof {
        pre_output: PRE_OUTPUT,
        proof: PROOF,
    };
    (AGENT.into(), proof)
}

/// Its VRF over a `SeatInput` of seed 0x04.., dispute 0 and ballot 0, made in the same way.
const SEAT_PRE_OUTPUT: [u8; 32] = [
    0xda, 0x92, 0x65, 0xe9, 0x3b, 0xed, 0x8d, 0x5d, 0xb2, 0x79, 0x4a, 0x04, 0xd0, 0x3c, 0xb8, 0x80, 0x8e,
    0x15, 0xf6, 0x4c, 0x04, 0xa5, 0x84, 0x41, 0xf8, 0x74, 0x4a, 0x5d, 0x7a, 0x01, 0x6c, 0x7e,
];
const SEAT_PROOF: [u8; 64] = [
    0xc7, 0xeb, 0xf2, 0xaa, 0x2d, 0x9a, 0xdf, 0x9a, 0xfd, 0xdd, 0xd2, 0xf0, 0xea, 0x99, 0xa3, 0xeb, 0xf0,
    0x24, 0x2a, 0xf6, 0x69, 0x3a, 0xa0, 0xcf, 0x7d, 0x7e, 0xf3, 0x00, 0x7f, 0xf7, 0x7a, 0x02, 0x86, 0xe2,
    0xf5, 0x1a, 0x3f, 0xf2, 0xdc, 0xa1, 0xec, 0x88, 0xbd, 0xfd, 0xf1, 0xd2, 0x7f, 0x84, 0x56, 0x19, 0xbb,
    0x7b, 0xfb, 0x02, 0xf4, 0x44, 0xe9, 0x40, 0xd3, 0xf0, 0xc3, 0x84, 0x8e, 0x06,
];

/// The same agent, and its proof for the seat of the benchmark.
pub(super) fn seat_proof() -> (AccountId, AuditProof) {
    let proof = AuditProof {
        pre_output: SEAT_PRE_OUTPUT,
        proof: SEAT_PROOF,
    };
    (AGENT.into(), proof)
}

/// A key of the benchmark's key store, and its signature of each message.
pub(super) fn signatures(messages: &[[u8; 32]]) -> (AccountId, Vec<[u8; 64]>) {
    let key = AuthorityId::generate_pair(None);
    let sign = |message| key.sign(message).expect("the key store has the key").encode();
    let bytes = |message| <[u8; 64]>::decode(&mut sign(message).as_slice());
    let signed = messages.iter().map(|message| bytes(message).expect("64 bytes"));
    let account = AccountId::decode(&mut key.encode().as_slice()).expect("32 bytes");
    (account, signed.collect())
}

/// A layer as wide as MiniLM's: its last product reads the longest rows, and opens in the most bytes.
fn architecture() -> Architecture {
    Architecture {
        vocabulary: 16,
        width: 384,
        layers: 1,
        heads: 12,
        kv_heads: 12,
        head_dim: 32,
        inner: 1_536,
        positions: 4,
        epsilon: 1e-12f32.to_bits(),
        activation: Activation::Gelu,
        smoothed: Smoothed::default(),
        tied: false,
        precision: Precision::Int12,
    }
}

/// A claim with one wrong cell, what its task's court knows, and the game that finds it.
pub(super) fn game() -> (ExactFacts, ResultClaim, Vec<Move>) {
    make().expect("the model is one that can be played over")
}

fn make() -> Option<(ExactFacts, ResultClaim, Vec<Move>)> {
    let architecture = architecture();
    let model = Arc::new(MemoryModel::arbitrary(ModelFamily::Bert, architecture.clone(), 1));
    let mut facts = ExactFacts {
        family: ModelFamily::Bert,
        operation: Operation::Embed,
        input: H256::zero(),
        exact: ExactForm {
            weight_root: model.weight_root(),
            architecture,
        },
    };
    facts.input = content_hash(b"benchmark");
    let mut claim = ResultClaim {
        output: H256::zero(),
        trace_root: H256::zero(),
        units: 1,
    };
    let tokens = encoder_tokens(core::iter::once(&[1, 2][..]), facts.exact.architecture.positions);
    // The output is part of the layout: once to find it, once with it.
    let layout = ExactReferee::court(&facts, &claim)?.layout;
    let own = MemoryTrace::compute(model.clone(), &layout, tokens.clone(), None)
        .ok()?
        .own()?;
    claim.output = content_hash(&own);
    let court = ExactReferee::court(&facts, &claim)?;
    let trace = MemoryTrace::compute(model, &court.layout, tokens, Some(own)).ok()?;

    let mut honest = Player::new(court.layout.clone(), trace.clone());
    let mut liar = Player::new(court.layout.clone(), trace);
    let step = longest_step(&court.layout)?;
    claim.trace_root = liar.alter(1, step, 0, 0).ok()?;
    let mut game = Game::new(claim.trace_root, &court, Clocks::equal(1_000)).ok()?;
    let mut moves = Vec::new();
    while let Some(side) = game.to_move() {
        let played = match side {
            Side::Defender => defend(&game, &court, &mut liar).ok()?,
            Side::Challenger => challenge(&game, &mut honest).ok()?,
        };
        game.step(side, played.clone(), &court, &court).ok()?;
        moves.push(played);
    }
    matches!(game.state(), State::Over(_)).then_some((facts, claim, moves))
}

/// The step of leaf 1 whose first cell takes the longest opening that fits.
fn longest_step(layout: &surety_verification::cells::Layout) -> Option<u32> {
    use surety_verification::{
        bisection::{opening_room, Cell, CellValue, Referee, Shape},
        cells::CellReferee,
    };

    let (leaf, length) = (1, 2);
    let bytes = |step: u32| {
        let cell = Cell {
            leaf,
            length,
            step,
            row: 0,
            cell: 0,
            value: CellValue::Word([0; 4]),
        };
        let bytes = CellReferee::new(layout, H256::zero()).opening_bytes(&cell)?;
        let room = opening_room(layout, leaf, length, step)?;
        (bytes <= room).then_some(bytes)
    };
    (0..layout.steps(leaf, length)?).max_by_key(|step| bytes(*step))
}
