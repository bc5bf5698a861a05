//! Bytes on chain: of a task that nobody disputes, and of disputes.
//!
//! Counted are the calls as they are encoded, with what makes a signed extrinsic of a call ([`SIGNED_BYTES`]). Not
//! counted are events and storage, which no block carries.

use std::convert::Infallible;

use codec::Encode;
use serde_json::{json, Value};
use sp_core::H256;
use surety_types::{
    model::Operation,
    multiaddr::Endpoint,
    task::{Bid, ResultClaim, TaskSpec},
    trust::AuditProof,
};
use surety_verification::{
    bisection::{
        challenge, defend, opening_room, Cell, Clocks, Game, Judgement, LeafKind, LeafShape, Length, Move,
        Referee, Roots, RowsShape, Shape, Side, State, Trace, BYTES_MAX,
    },
    merkle_root, row_digest, TraceShape,
};

/// What a signed extrinsic has besides its call: length 2, version 1, address 33, signature 65, era 2, nonce 2, tip 1,
/// mode of the metadata's hash 1. The runtime's other extensions encode to nothing.
pub const SIGNED_BYTES: usize = 2 + 1 + 33 + 65 + 2 + 2 + 1 + 1;
/// The pallet's number and the call's.
const CALL_BYTES: usize = 2;
/// An address as providers and clients publish them.
const ENDPOINT: &str =
    "/ip4/203.0.113.7/udp/34567/quic-v1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN";

fn bytes(arguments: &impl Encode) -> usize {
    SIGNED_BYTES + CALL_BYTES + arguments.encoded_size()
}

/// Calls of a task that nobody disputes, and of an audit: name, bytes of one, how often with one provider.
pub fn happy_calls() -> Vec<(&'static str, usize, f64)> {
    let (task, price, hash) = (7u64, 1u128, H256::zero());
    let endpoint = Endpoint::try_from(ENDPOINT.as_bytes().to_vec()).unwrap_or_default();
    let spec = TaskSpec {
        model: hash,
        operation: Operation::Embed,
        input: hash,
        input_bytes: 40_000,
        units_max: 512,
        redundancy: 1,
        sources: vec![endpoint].try_into().unwrap_or_default(),
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
        ("reveal_bid", bytes(&(task, bid)), 1.0),
        ("commit", bytes(&(task, hash)), 1.0),
        ("reveal", bytes(&(task, claim.clone(), hash)), 1.0),
        ("announce_audit", bytes(&(task, hash, proof, hash)), 0.0),
        ("reveal_audit", bytes(&(task, hash, claim, hash)), 0.0),
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

/// A trace of which all steps are alike.
#[derive(Clone, Copy, Debug)]
pub struct Alike {
    /// What it stands for.
    pub name: &'static str,
    /// Leaves.
    pub leaves: u32,
    /// Steps of each.
    pub steps: u32,
    /// Rows of each.
    pub rows: u32,
    /// Bytes of each.
    pub row_bytes: u32,
}

/// Of the sizes of real models. The steps and the longest rows are those of the widest step.
pub fn real_sizes() -> [Alike; 2] {
    let bert = TraceShape::bert(6, 384);
    let llama = TraceShape::llama(32, 4_096, 1_024);
    let steps = |shape: &TraceShape, of_layer: u32| of_layer * shape.stride + 4;
    [
        Alike {
            name: "all-MiniLM-L6, 512 sentences of 256 tokens",
            leaves: 2 + 512 * bert.strides(),
            steps: steps(&bert, 23),
            rows: 256,
            row_bytes: 4 * 1_536,
        },
        Alike {
            name: "Llama of 8 billion weights, 2,048 tokens",
            leaves: 2 + 128 * (llama.strides() + 1),
            steps: steps(&llama, 22),
            rows: 1_024,
            row_bytes: 4 * 14_336,
        },
    ]
}

impl Shape for Alike {
    fn leaves(&self) -> u32 {
        self.leaves
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        let kind = if leaf == 0 {
            LeafKind::Given
        } else {
            LeafKind::Computed
        };
        (leaf < self.leaves).then_some(LeafShape {
            length: Length::Known(1),
            kind,
        })
    }

    fn steps(&self, leaf: u32, _: u32) -> Option<u32> {
        (leaf > 0).then_some(self.steps)
    }

    fn rows(&self, _: u32, _: u32, _: u32) -> Option<RowsShape> {
        Some(RowsShape {
            rows: self.rows,
            row_bytes: self.row_bytes,
            quantised: None,
        })
    }
}

/// Takes every opening that the game does.
impl Referee for Alike {
    fn opening_bytes(&self, cell: &Cell) -> Option<u32> {
        opening_room(self, cell.leaf, cell.length, cell.step)
    }

    fn judge(&self, _: &Cell, _: &Roots, _: &[u8]) -> Judgement {
        Judgement::Refuted
    }
}

/// A trace of which only the way to one cell is there: the middle one of everything. The rest are zeros.
struct Way {
    shape: Alike,
    leaf: H256,
    leaves: Vec<H256>,
    steps: Vec<H256>,
    rows: Vec<H256>,
    row: Vec<u8>,
    opening: usize,
}

fn with(count: u32, place: u32, digest: H256) -> Vec<H256> {
    (0..count)
        .map(|at| if at == place { digest } else { H256::zero() })
        .collect()
}

impl Way {
    fn new(shape: Alike, byte: u8) -> Self {
        let mut row = vec![0; shape.row_bytes as usize];
        if let Some(cell) = row.get_mut(shape.row_bytes as usize / 2) {
            *cell = byte;
        }
        let rows = with(shape.rows, shape.rows / 2, row_digest(&row));
        let mut steps = with(shape.steps, shape.steps / 2, merkle_root(rows.iter().copied()));
        // Everything after the cell differs as well.
        let leaf = H256::repeat_byte(1 + byte);
        if let Some(last) = steps.last_mut() {
            *last = leaf;
        }
        let leaves = with(shape.leaves, shape.leaves / 2, leaf);
        let opening = opening_room(&shape, shape.leaves / 2, 1, shape.steps / 2).unwrap_or(0);
        Self {
            shape,
            leaf,
            leaves,
            steps,
            rows,
            row,
            opening: opening as usize,
        }
    }
}

impl Trace for Way {
    type Error = Infallible;

    fn leaves(&mut self) -> Result<&[H256], Infallible> {
        Ok(&self.leaves)
    }

    fn steps(&mut self, _: u32) -> Result<Vec<H256>, Infallible> {
        Ok(self.steps.clone())
    }

    fn rows(&mut self, _: u32, _: u32) -> Result<Vec<H256>, Infallible> {
        Ok(self.rows.clone())
    }

    fn row(&mut self, _: u32, _: u32, _: u32) -> Result<Vec<u8>, Infallible> {
        Ok(self.row.clone())
    }

    fn open(&mut self, _: &Cell) -> Result<Vec<u8>, Infallible> {
        Ok(vec![0; self.opening])
    }
}

/// What a dispute costs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dispute {
    /// Moves.
    pub moves: usize,
    /// Bytes of them.
    pub bytes: usize,
    /// Bytes of the opening, which is one of them and as long as it may be.
    pub opening: usize,
}

impl Dispute {
    /// Bytes with the calls around the moves, their signatures, and the challenge.
    pub fn on_chain(&self) -> usize {
        let around = bytes(&7u32);
        self.bytes + self.moves * around + bytes(&(7u64, H256::zero()))
    }
}

/// The longest dispute over a trace of this size.
///
/// None when it cannot be played over.
pub fn dispute(shape: Alike) -> Option<Dispute> {
    let (mut defender, mut challenger) = (Way::new(shape, 1), Way::new(shape, 2));
    let root = merkle_root(defender.leaves.iter().copied());
    let mut game = Game::new(root, &defender.shape, Clocks::equal(1_000)).ok()?;
    let mut found = Dispute::default();
    debug_assert_ne!(defender.leaf, challenger.leaf);
    while let Some(side) = game.to_move() {
        let played: Move = match side {
            Side::Defender => defend(&game, &shape, &mut defender).ok()?,
            Side::Challenger => challenge(&game, &mut challenger).ok()?,
        };
        found.moves += 1;
        found.bytes += played.encoded_size();
        if let Move::Open(opening) = &played {
            found.opening = opening.len();
        }
        game.step(side, played, &shape, &shape).ok()?;
    }
    matches!(game.state(), State::Over(_)).then_some(found)
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
        .into_iter()
        .filter_map(|shape| {
            let found = dispute(shape)?;
            Some(json!({
                "name": shape.name,
                "leaves": shape.leaves,
                "steps": shape.steps,
                "rows": shape.rows,
                "row_bytes": shape.row_bytes,
                "moves": found.moves,
                "bytes_of_moves": found.bytes,
                "bytes_of_opening_max": found.opening,
                "bytes_on_chain": found.on_chain(),
            }))
        })
        .collect();
    json!({
        "signed_bytes": SIGNED_BYTES,
        "calls": calls,
        "happy_task": happy_task(),
        "happy_task_calls_alone": happy_task() - 5 * SIGNED_BYTES,
        "audit": audit,
        "moves_max": BYTES_MAX,
        "disputes": disputes,
    })
}
