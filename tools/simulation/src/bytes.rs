//! Bytes on chain: of a task that nobody disputes, and of disputes.
//!
//! Counted are the calls as they are encoded, with what makes an extrinsic of a call: [`SIGNED_BYTES`], or
//! [`UNSIGNED_BYTES`] for the openings that need no signature. Not counted are events and storage, which no
//! block carries.

use codec::Encode;
use serde_json::{Value, json};
use sp_core::H256;
use surety_dispute_game::bisection::{
    BYTES_MAX, CHILDREN_MAX, Cell, CellValue, LeafKind, Length, Referee, Shape, opening_room,
};
use surety_model_trace::{CellReferee, Layout, Part, TaskFacts};
use surety_proofs::SEGMENT_BYTES;
use surety_types::{
    limits,
    model::{Activation, Architecture, ModelFamily, Operation, Pooling, Precision, Smoothed},
    multiaddr::Endpoint,
    task::{Bid, ResultClaim, TaskSpec},
    trust::AuditProof,
};

/// What a signed extrinsic has besides its call: length 2, version 1, address 33, signature 65, era 2, nonce
/// 2, tip 1, mode of the metadata's hash 1. The runtime's other extensions encode to nothing.
pub const SIGNED_BYTES: usize = 2 + 1 + 33 + 65 + 2 + 2 + 1 + 1;
/// What a general transaction has besides its call: length 2, version 1, version of the extensions 1, era 1,
/// nonce 2 (of an attempt; one in 256 has a shorter one), tip 1, mode of the metadata's hash 1.
pub const UNSIGNED_BYTES: usize = 2 + 1 + 1 + 1 + 2 + 1 + 1;
/// The pallet's number and the call's.
const CALL_BYTES: usize = 2;
/// An address as providers and clients publish them.
const ENDPOINT: &str =
    "/ip4/203.0.113.7/udp/34567/quic-v1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN";

fn bytes(arguments: &impl Encode) -> usize {
    SIGNED_BYTES + CALL_BYTES + arguments.encoded_size()
}

fn unsigned(arguments: &impl Encode) -> usize {
    UNSIGNED_BYTES + CALL_BYTES + arguments.encoded_size()
}

/// Calls of a task that nobody disputes, and of an audit: name, bytes of one, how often with one provider.
pub fn happy_calls() -> Vec<(&'static str, usize, f64)> {
    // An account is as long as a hash.
    let (task, price, hash) = (7u64, 1u128, H256::zero());
    let (provider, verifier) = (H256::zero(), H256::zero());
    let endpoint = Endpoint::try_from(ENDPOINT.as_bytes().to_vec()).unwrap_or_default();
    let spec = TaskSpec {
        model: hash,
        operation: Operation::Embed,
        input: hash,
        input_bytes: 40_000,
        units_max: 512,
        redundancy: 1,
        sources: vec![endpoint].try_into().unwrap_or_default(),
        security: Default::default(),
        requirements: Default::default(),
    };
    let bid = Bid {
        price,
        seconds: 60,
        salt: hash,
    };
    let claim = ResultClaim {
        output: hash,
        trace_root: hash,
        units: 512,
    };
    let proof = AuditProof {
        pre_output: [0; 32],
        proof: [0; 64],
    };
    vec![
        ("post", bytes(&(spec, price)), 1.0),
        ("bid", bytes(&(task, hash)), 1.0),
        ("reveal_bid", unsigned(&(task, provider, bid)), 1.0),
        ("commit", bytes(&(task, hash)), 1.0),
        ("reveal", unsigned(&(task, provider, claim.clone(), hash)), 1.0),
        ("announce_audit", bytes(&(task, provider, proof, hash)), 0.0),
        (
            "reveal_audit",
            unsigned(&(task, provider, verifier, claim, hash)),
            0.0,
        ),
    ]
}

/// Bytes of a task that nobody disputes, with one provider, one bidder and no auditor.
pub fn happy_task() -> usize {
    happy_calls()
        .iter()
        .filter(|(_, _, times)| *times > 0.0)
        .map(|(_, bytes, _)| bytes)
        .sum()
}

/// What a dispute takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Moves.
    pub moves: u32,
    /// Bytes of them, in SCALE.
    pub bytes: u32,
}

impl Cost {
    const fn one(bytes: u32) -> Self {
        Self { moves: 1, bytes }
    }

    const fn and(self, other: Self) -> Self {
        Self {
            moves: self.moves + other.moves,
            bytes: self.bytes + other.bytes,
        }
    }

    /// Bytes with the calls around the moves, their signatures, and the challenge.
    pub fn on_chain(&self) -> usize {
        // Each with the dispute's number and its own.
        let of_moves = self.moves as usize * bytes(&(7u32, 0u32)) + self.bytes as usize;
        bytes(&(7u64, H256::zero())) + of_moves
    }
}

/// To go down a tree: postings of all children there may be, and namings where there is more than one.
pub fn tree(leaves: u32) -> Cost {
    let mut stride = 1u32;
    while leaves.div_ceil(stride) > CHILDREN_MAX {
        stride *= CHILDREN_MAX;
    }
    let children = leaves.div_ceil(stride);
    let mut cost = Cost::one(2 + 32 * children);
    if children > 1 {
        cost = cost.and(Cost::one(2));
    }
    while stride > 1 {
        cost = cost.and(Cost::one(2 + 32 * CHILDREN_MAX)).and(Cost::one(2));
        stride /= CHILDREN_MAX;
    }
    cost
}

fn proof(leaves: u32) -> u32 {
    1 + 32 * leaves.next_power_of_two().ilog2()
}

/// All moves of a dispute that comes to a cell of this step, but for the opening's bytes.
///
/// None when there is no such step.
pub fn way(shape: &impl Shape, leaf: u32, length: u32, step: u32) -> Option<Cost> {
    let at = shape.leaf(leaf)?;
    let rows = shape.rows(leaf, length, step)?;
    let segment = rows.row_bytes.min(SEGMENT_BYTES);
    let mut cost = tree(shape.leaves());
    let mut entry = 0;
    if let Length::Word { .. } = at.length {
        let Length::Known(first) = shape.leaf(0)?.length else {
            return None;
        };
        let given = shape.rows(0, first, 0)?;
        let shown = given.row_bytes.min(SEGMENT_BYTES);
        entry += 4 + 2 + shown + proof(given.segments());
    }
    if at.kind == LeafKind::Computed {
        let steps = shape.steps(leaf, length)?;
        entry += 32 + proof(steps);
        cost = cost.and(tree(steps));
    }
    if entry > 0 {
        cost = cost.and(Cost::one(3 + entry));
    }
    // Show, pick, and an opening of no bytes.
    let end = Cost::one(3 + segment).and(Cost::one(3)).and(Cost::one(3));
    Some(cost.and(tree(rows.rows)).and(tree(rows.segments())).and(end))
}

/// A model and a task of real sizes.
pub struct Real {
    /// What it is.
    pub name: &'static str,
    /// Its trace.
    pub layout: Layout,
    /// Leaves in which disputes are looked at, and how long they are.
    pub leaves: Vec<(u32, u32)>,
}

const SMOOTHED: Smoothed = Smoothed {
    attention: true,
    output: true,
    inner: true,
    down: true,
};

const MINILM: Architecture = Architecture {
    vocabulary: 30_522,
    width: 384,
    layers: 6,
    heads: 12,
    kv_heads: 12,
    head_dim: 32,
    inner: 1_536,
    positions: 512,
    epsilon: 0x2b8c_bccc,
    activation: Activation::Gelu,
    smoothed: SMOOTHED,
    tied: false,
    precision: Precision::Int12,
    pooling: Pooling::Mean,
};

const LLAMA: Architecture = Architecture {
    vocabulary: 32_000,
    width: 2_048,
    layers: 22,
    heads: 32,
    kv_heads: 4,
    head_dim: 64,
    inner: 5_632,
    positions: 2_048,
    epsilon: 0x3727_c5ac,
    activation: Activation::SwiGlu,
    smoothed: SMOOTHED,
    tied: false,
    precision: Precision::Int8,
    pooling: Pooling::Mean,
};

fn layout(
    architecture: &Architecture,
    family: ModelFamily,
    operation: Operation,
    units: u32,
) -> Option<Layout> {
    let facts = TaskFacts {
        family,
        operation,
        input: H256::zero(),
        // Of `Embed` as large as an input may be; a prompt of one token.
        input_bytes: match operation {
            Operation::Embed => limits::INPUT_BYTES_MAX,
            Operation::Generate => 28,
        },
        units_max: units,
        stop: Default::default(),
        units,
        output: H256::zero(),
    };
    Layout::new(architecture, facts).ok()
}

/// Two models and the largest tasks that the bench gives them.
pub fn real_sizes() -> Vec<Real> {
    let of = |name, layout: Option<Layout>, parts: &[(Part, u32)]| {
        let layout = layout?;
        let leaves = parts
            .iter()
            .filter_map(|(part, length)| Some((layout.leaf_of(*part)?, *length)));
        let leaves = leaves.collect();
        Some(Real { name, layout, leaves })
    };
    let rows = |sequence, chunk, stride| Part::Rows {
        sequence,
        chunk,
        stride,
    };
    let minilm = of(
        "all-MiniLM-L6, 512 sentences of up to 512 tokens",
        layout(&MINILM, ModelFamily::Bert, Operation::Embed, 512),
        &[(rows(511, 0, 0), 512), (rows(511, 0, 1), 512)],
    );
    let llama = of(
        "Llama of width 2,048, 1,025 tokens",
        layout(&LLAMA, ModelFamily::Llama, Operation::Generate, 1_025),
        &[
            (rows(0, 63, 0), 1_024),
            (rows(0, 63, 10), 1_024),
            (rows(0, 63, 21), 1_024),
            (Part::SampledTokens { chunk: 63 }, 1_024),
        ],
    );
    minilm.into_iter().chain(llama).collect()
}

/// The dearest dispute of a task, over all steps of its leaves and the corners of their rows, with the bytes
/// of its opening; and how many of these cells no block can compute again.
pub fn dearest(real: &Real) -> (Cost, u32, u32) {
    let layout = &real.layout;
    let referee = CellReferee::new(layout, H256::zero());
    let (mut most, mut opening, mut not_computable) = (Cost::default(), 0, 0);
    for (leaf, length) in &real.leaves {
        for step in 0..layout.steps(*leaf, *length).unwrap_or(0) {
            for at in corners(layout, *leaf, *length, step) {
                let room = opening_room(layout, *leaf, *length, step);
                let bytes = referee.opening_bytes(&at).filter(|bytes| Some(*bytes) <= room);
                let (Some(bytes), Some(way)) = (bytes, way(layout, *leaf, *length, step)) else {
                    not_computable += 1;
                    continue;
                };
                let cost = Cost {
                    bytes: way.bytes + bytes,
                    ..way
                };
                if cost.on_chain() > most.on_chain() {
                    (most, opening) = (cost, bytes);
                }
            }
        }
    }
    (most, opening, not_computable)
}

fn corners(shape: &impl Shape, leaf: u32, length: u32, step: u32) -> Vec<Cell> {
    let Some(rows) = shape.rows(leaf, length, step) else {
        return Vec::new();
    };
    let last = (rows.rows - 1, rows.cells() - 1);
    let places = [
        (0, 0),
        (0, last.1 / 2),
        (0, last.1),
        (last.0, 0),
        (last.0, last.1 / 2),
        last,
    ];
    let cell = |(row, cell)| Cell {
        leaf,
        length,
        step,
        row,
        cell,
        value: CellValue::Byte(0),
    };
    places.map(cell).to_vec()
}

/// All of it as JSON.
pub fn json() -> Value {
    let calls: Vec<Value> = happy_calls()
        .into_iter()
        .map(|(name, bytes, times)| json!({ "call": name, "bytes": bytes, "times": times }))
        .collect();
    let audit: usize = happy_calls()
        .iter()
        .filter(|call| call.2 == 0.0)
        .map(|call| call.1)
        .sum();
    let disputes: Vec<Value> = real_sizes()
        .iter()
        .map(|real| {
            let (cost, opening, not_computable) = dearest(real);
            json!({
                "name": real.name,
                "leaves": real.layout.leaves(),
                "moves": cost.moves,
                "bytes_of_opening": opening,
                "bytes_of_moves": cost.bytes,
                "bytes_on_chain": cost.on_chain(),
                "cells_not_computable": not_computable,
            })
        })
        .collect();
    json!({
        "signed_bytes": SIGNED_BYTES,
        "unsigned_bytes": UNSIGNED_BYTES,
        "calls": calls,
        "happy_task": happy_task(),
        "happy_task_without_signatures": happy_task() - 3 * SIGNED_BYTES - 2 * UNSIGNED_BYTES,
        "audit": audit,
        "moves_bytes_max": BYTES_MAX,
        "disputes": disputes,
    })
}
