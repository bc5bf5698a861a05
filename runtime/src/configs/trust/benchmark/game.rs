//! The largest model that there can be, and games that end with an opening of a cell that takes long to
//! compute again.

use alloc::{sync::Arc, vec::Vec};
use sp_core::H256;
use surety_dispute_game::bisection::{
    Cell, CellValue, Clocks, Game, Length, Move, OPENING_BYTES_MAX, Referee, Shape, Side, State, challenge,
    defend, opening_room,
};
use surety_model_trace::{
    CellReferee, Layout, Op, Part, Player, sampling_random, show_item,
    testsuite::{MemoryModel, MemoryTrace, generation_output},
};
use surety_pallet_results::{DisputeReferee, LongCell};
use surety_proofs::{content_hash, merkle_root};
use surety_types::{
    input::{IdBounds, Settings, Work, encode_prompt},
    limits::{INPUT_BYTES_MAX, SPECIAL_IDS_MAX},
    model::{
        Activation, Architecture, ExactForm, ModelFamily, Operation, Opset, Pooling, Precision, Smoothed,
        SpecialIds,
    },
    task::ResultClaim,
    trust::ItemLeaves,
};

use crate::configs::trust::{ExactContext, ExactReferee};

/// The context of a model with every dimension at its limit, and a claim about it: of an output of more than
/// a mebibyte, or of about as many tokens as there is a trace of.
pub fn largest(operation: Operation) -> (ExactContext, ResultClaim) {
    let (family, units, input_bytes) = match operation {
        Operation::Embed => (ModelFamily::Bert, 17, INPUT_BYTES_MAX),
        // Of the decoders the one whose layers have most steps.
        Operation::Generate => (ModelFamily::Qwen3, 1 << 16, INPUT_BYTES),
    };
    let context = ExactContext {
        family,
        work: Work {
            operation,
            input_bytes,
            units_max: units,
        },
        input: content_hash(b"benchmark"),
        stop: stop(),
        exact: ExactForm {
            opset: Opset::V1,
            weight_root: H256::repeat_byte(1),
            architecture: Architecture::largest(family),
        },
    };
    let claim = ResultClaim {
        output: content_hash(b"output"),
        trace_root: H256::repeat_byte(1),
        units,
    };
    assert!(ExactReferee::claim_referee(&context, &claim).is_some());
    (context, claim)
}

/// A claim about a task of so many items that a way up its trace is about as long as it can be, and the
/// leaves of the first, of the model with most of them.
pub fn item() -> (ExactContext, ResultClaim, ItemLeaves) {
    let (context, mut claim) = largest(Operation::Embed);
    let layout = ExactReferee::claim_referee(&context, &claim).map(|referee| referee.layout);
    let layout = layout.expect("the claim can be played over");
    let leaves: Vec<H256> = (0..layout.leaves())
        .map(|leaf| content_hash(&leaf.to_le_bytes()))
        .collect();
    claim.trace_root = merkle_root(leaves.iter().copied());
    let shown = show_item(&layout, 0, &leaves).expect("there is a first item");
    (context, claim, shown)
}

/// A prompt of one token, after the settings.
const INPUT_BYTES: u32 = 7 * 4;

/// As many ids as a manifest may list, none of which is ever chosen.
fn stop() -> SpecialIds {
    SpecialIds::truncate_from([u32::MAX; SPECIAL_IDS_MAX as usize].to_vec())
}

/// One token is drawn after one, from the whole vocabulary, and of that one of the last: whoever posts a task
/// can look for such a seed.
fn input() -> Option<Vec<u8>> {
    let of_seed = |seed| {
        let settings = Settings {
            max_tokens: 1,
            temperature_milli: 1_000,
            top_k: 0,
            top_p_milli: 1_000,
            seed,
        };
        let bounds = IdBounds {
            vocabulary: 16,
            positions: 4,
        };
        encode_prompt(&[1], &settings, &bounds).ok()
    };
    let drawn = |seed| {
        let input = of_seed(seed)?;
        (sampling_random(&content_hash(&input), seed, 0) > u64::MAX / 1_000 * 999).then_some(input)
    };
    (0..u64::MAX).find_map(drawn)
}

/// A claim with one wrong cell, what its task's referee knows, and the game that finds it. Its last move
/// opens the cell.
pub fn game(cell: LongCell) -> (ExactContext, ResultClaim, Vec<Move>) {
    make(cell).expect("the model is one that can be played over")
}

fn make(cell: LongCell) -> Option<(ExactContext, ResultClaim, Vec<Move>)> {
    let architecture = longest(cell)?;
    let model = Arc::new(MemoryModel::arbitrary(
        ModelFamily::Llama,
        architecture.clone(),
        1,
    ));
    let input = input()?;
    let context = context(architecture, model.weight_root(), &input);
    let (mut claim, trace) = honest(&context, &model, input)?;
    let referee = ExactReferee::claim_referee(&context, &claim)?;
    let mut honest = Player::new(referee.layout.clone(), trace.clone());
    let mut liar = Player::new(referee.layout.clone(), trace);
    let (leaf, _, step) = place(&referee.layout, cell)?;
    claim.trace_root = liar.alter(leaf, step, 0, 0).ok()?;
    let mut game = Game::new(claim.trace_root, &referee, Clocks::equal(1_000)).ok()?;
    let mut moves = Vec::new();
    while let Some(side) = game.to_move() {
        let played = match side {
            Side::Defender => defend(&game, &referee, &mut liar).ok()?,
            Side::Challenger => challenge(&game, &mut honest).ok()?,
        };
        game.step(side, played.clone(), &referee, &referee).ok()?;
        moves.push(played);
    }
    matches!(game.state(), State::Over(_)).then_some((context, claim, moves))
}

fn context(architecture: Architecture, weight_root: H256, input: &[u8]) -> ExactContext {
    ExactContext {
        family: ModelFamily::Llama,
        work: Work {
            operation: Operation::Generate,
            input_bytes: INPUT_BYTES,
            units_max: 2,
        },
        input: content_hash(input),
        stop: stop(),
        exact: ExactForm {
            opset: Opset::V1,
            weight_root,
            architecture,
        },
    }
}

/// What the prompt leads to, and the work behind it.
fn honest(
    context: &ExactContext,
    model: &Arc<MemoryModel>,
    input: Vec<u8>,
) -> Option<(ResultClaim, MemoryTrace)> {
    let of_token = |token| {
        let output = generation_output(&[token], false);
        let claim = claim(content_hash(&output));
        let layout = ExactReferee::claim_referee(context, &claim)?.layout;
        let trace = MemoryTrace::compute(model.clone(), &layout, input.clone(), Some(output)).ok()?;
        let chosen = *trace.choices(&layout).first()?;
        Some((chosen, claim, trace))
    };
    // The output is part of the layout: once to find it, once with it.
    let (chosen, ..) = of_token(0)?;
    let (_, claim, trace) = of_token(chosen)?;
    Some((claim, trace))
}

fn claim(output: H256) -> ResultClaim {
    ResultClaim {
        output,
        trace_root: H256::zero(),
        units: 2,
    }
}

/// As small as can be, but for what the cell is computed from: what other moves of a game do not take is the
/// opening's, and a referee takes no longer for a model of more layers ([`largest`] is what other calls are
/// measured with).
fn architecture(cell: LongCell, size: u32) -> Architecture {
    let (precision, inner, vocabulary) = match cell {
        LongCell::Int8Product => (Precision::Int8, size, 16),
        LongCell::Int12Product => (Precision::Int12, size, 16),
        LongCell::Choice => (Precision::Int8, 32, size),
    };
    Architecture {
        vocabulary,
        width: 32,
        layers: 1,
        heads: 1,
        kv_heads: 1,
        head_dim: 32,
        inner,
        positions: 4,
        epsilon: 1e-5f32.to_bits(),
        activation: Activation::SwiGlu,
        smoothed: Smoothed::default(),
        tied: true,
        precision,
        pooling: Pooling::Mean,
    }
}

/// The largest of these models of which the cell's opening is still taken.
fn longest(cell: LongCell) -> Option<Architecture> {
    // A cell is computed from at least two bytes of each place: of a row and of a weight, or of a logit.
    let sizes = (1..=OPENING_BYTES_MAX / 2 / 32)
        .rev()
        .map(|size| size.saturating_mul(32));
    let mut models = sizes.map(|size| architecture(cell, size));
    models.find(|model| is_taken(model, cell).unwrap_or(false))
}

fn is_taken(model: &Architecture, cell: LongCell) -> Option<bool> {
    let context = context(model.clone(), H256::zero(), &[]);
    let layout = ExactReferee::claim_referee(&context, &claim(H256::zero()))?.layout;
    let (leaf, length, step) = place(&layout, cell)?;
    let at = Cell {
        leaf,
        length,
        step,
        row: 0,
        cell: 0,
        value: CellValue::Word([0; 4]),
    };
    let bytes = CellReferee::new(&layout, H256::zero()).opening_bytes(&at)?;
    Some(bytes <= opening_room(&layout, leaf, length, step)?)
}

/// Where the cell is: its leaf, the leaf's length, its step.
fn place(layout: &Layout, cell: LongCell) -> Option<(u32, u32, u32)> {
    let rows = Part::Rows {
        sequence: 0,
        chunk: 0,
        stride: 0,
    };
    let (part, op) = match cell {
        LongCell::Int8Product | LongCell::Int12Product => (rows, Op::Down),
        LongCell::Choice => (Part::SampledTokens { chunk: 0 }, Op::Record),
    };
    let leaf = layout.leaf_of(part)?;
    let Length::Known(length) = layout.leaf(leaf)?.length else {
        return None;
    };
    let step = layout.plan(leaf, length)?.number(0, op)?;
    Some((leaf, length, step))
}
