//! What a node evaluates of a model in calls whose weight knows nothing of it, at the limits and far beyond:
//! nanoseconds, as JSON. `scripts/bench bounds` sets them beside the declared weights.

use std::{hint::black_box, time::Instant};

use sp_core::H256;
use surety_dispute_game::bisection::{Cell, CellValue, Clocks, Game, Length, Referee, Shape, opening_room};
use surety_model_trace::{CellReferee, Layout, TaskFacts};
use surety_types::{
    limits,
    model::{Architecture, ModelFamily, Precision},
};

/// Leaves of every trace here are as many as a game can be played over, or as the model has positions for.
const UNITS: u32 = 1 << 16;

fn facts(family: ModelFamily, units: u32) -> TaskFacts {
    TaskFacts {
        family,
        operation: family.operation(),
        input: H256::repeat_byte(1),
        // As many as an input may hold, or one.
        input_bytes: match family {
            ModelFamily::Bert => limits::INPUT_BYTES_MAX,
            ModelFamily::Llama | ModelFamily::Qwen3 => 28,
        },
        units_max: units,
        stop: vec![0; limits::SPECIAL_IDS_MAX as usize]
            .try_into()
            .unwrap_or_default(),
        units,
        output: H256::repeat_byte(2),
    }
}

/// The most units, below [`UNITS`], of which there is a layout.
fn units(family: ModelFamily, architecture: &Architecture) -> u32 {
    let fits = |units: &u32| Layout::new(architecture, facts(family, *units)).is_ok();
    (1..=UNITS.ilog2())
        .rev()
        .map(|bits| 1 << bits)
        .find(fits)
        .unwrap_or(2)
}

/// The median of so many runs of a thousand each, in nanoseconds.
fn nanoseconds<T>(mut run: impl FnMut() -> T) -> u128 {
    const RUNS: usize = 21;
    const EACH: u32 = 1_000;
    let mut times = [0; RUNS];
    for time in &mut times {
        let began = Instant::now();
        for _ in 0..EACH {
            black_box(run());
        }
        *time = began.elapsed().as_nanos() / u128::from(EACH);
    }
    times.sort_unstable();
    times[RUNS / 2]
}

/// What `is_impossible` and `new_game` do: of every reveal, in the pool too, and of whatever opens a dispute.
fn begun(architecture: &Architecture, facts: &TaskFacts) -> bool {
    let layout = Layout::new(architecture, facts.clone());
    layout.is_ok_and(|layout| Game::new(H256::zero(), &layout, Clocks::equal(1)).is_ok())
}

/// What `supply` asks.
fn output_bytes(architecture: &Architecture, facts: &TaskFacts) -> Option<u32> {
    let layout = Layout::new(architecture, facts.clone()).ok()?;
    let output = layout.leaves().checked_sub(1)?;
    let Length::Known(length) = layout.leaf(output)?.length else {
        return None;
    };
    layout.rows(output, length, 0).map(|rows| rows.row_bytes)
}

/// What picking a cell asks, of a cell of every kind of step: the longest.
fn picked(architecture: &Architecture, facts: &TaskFacts) -> Option<(u32, u32, u128)> {
    let layout = Layout::new(architecture, facts.clone()).ok()?;
    let leaf = layout.leaves().checked_sub(2)?;
    let length = match layout.leaf(leaf)?.length {
        Length::Known(length) => length,
        Length::Word { .. } => architecture.positions,
    };
    let longest = |leaf: u32| {
        let of_step = |step| {
            let rows = layout.rows(leaf, length, step);
            let at = Cell {
                leaf,
                length,
                step,
                // The last sees most.
                row: rows.map_or(0, |rows| rows.rows.saturating_sub(1)),
                cell: 0,
                value: CellValue::Word([0; 4]),
            };
            let time = nanoseconds(|| {
                let layout = Layout::new(architecture, facts.clone()).ok()?;
                let bytes = CellReferee::new(&layout, H256::zero()).opening_bytes(&at);
                bytes.zip(opening_room(&layout, leaf, length, step))
            });
            (leaf, step, time)
        };
        // Before the layers, of the first of them, after them.
        let steps = layout.steps(leaf, length)?;
        let few = (0..steps.min(36)).chain(steps.saturating_sub(5)..steps);
        few.map(of_step).max_by_key(|(.., time)| *time)
    };
    // The last strides, and what chooses.
    (leaf.saturating_sub(1)..=leaf)
        .filter_map(longest)
        .max_by_key(|(.., time)| *time)
}

fn main() {
    let hostile = |layers| Architecture {
        width: 8,
        layers,
        heads: 1,
        kv_heads: 1,
        head_dim: 8,
        inner: 4,
        positions: 4,
        ..Architecture::largest(ModelFamily::Bert)
    };
    let largest = |family| (family, Architecture::largest(family));
    let deep = |layers| {
        let (family, model) = largest(ModelFamily::Llama);
        (family, Architecture { layers, ..model })
    };
    // Of this one most cells can be opened, so that as much of them as can be is measured.
    let openable = Architecture {
        vocabulary: 2_048,
        width: 1_024,
        heads: 16,
        kv_heads: 4,
        head_dim: 64,
        inner: 4_096,
        precision: Precision::Int8,
        ..Architecture::largest(ModelFamily::Llama)
    };
    let bert = ModelFamily::Bert;
    let models = [
        ("Llama at every limit", largest(ModelFamily::Llama)),
        ("Qwen 3 at every limit", largest(ModelFamily::Qwen3)),
        ("Llama at every limit, 3 layers", deep(3)),
        ("Llama at every limit, 1 layer", deep(1)),
        ("Llama whose cells can be opened", (ModelFamily::Llama, openable)),
        ("BERT at every limit", largest(bert)),
        ("narrow BERT, most layers", (bert, hostile(limits::LAYERS_MAX))),
        ("narrow BERT, 15 million layers", (bert, hostile(15_099_465))),
        ("narrow BERT, 150 million layers", (bert, hostile(150_994_656))),
    ];
    let rows = models.map(|(name, (family, model))| {
        let facts = facts(family, units(family, &model));
        let (leaf, step, pick) = picked(&model, &facts).unwrap_or_default();
        serde_json::json!({
            "model": name,
            "layers": model.layers,
            "units": facts.units,
            "can_be_registered": model.check(family).is_ok(),
            "has_a_trace": Layout::new(&model, facts.clone()).is_ok(),
            "claim_ns": nanoseconds(|| begun(&model, &facts)) as u64,
            "output_bytes_ns": nanoseconds(|| output_bytes(&model, &facts)) as u64,
            "pick_ns": pick as u64,
            "pick_at": [leaf, step],
        })
    });
    println!("{}", serde_json::Value::from(rows.to_vec()));
}
