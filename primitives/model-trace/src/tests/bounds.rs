//! What a node looks at before anybody has paid: the same answer as a walk over every layer gives, in a
//! number of steps that no dimension of a model makes larger.

use proptest::prelude::*;
use sp_core::H256;
use surety_types::{
    input::ShapeFault,
    limits,
    model::{Activation, Architecture, ArchitectureError, ModelFamily, Operation, Pooling},
};

use super::small::facts;
use crate::{
    LEAF_BYTES_MAX, Layout, LayoutError, Op, Part, Source, Tensor, TraceShape, locate::Ground, tensors,
};
use surety_dispute_game::bisection::{
    Clocks, Game, LEAVES_MAX, OPENING_BYTES_MAX, RowsShape, STEPS_MAX, Shape,
};

/// Kinds of rows that a trace has at most: three strides, what is before and after their layers, and what is
/// given.
const KINDS_MAX: usize = 130;

/// Leaf by leaf and step by step: how it was decided when each layer was looked at.
fn walk(layout: &Layout) -> bool {
    let Some(leaves) = layout
        .chunks()
        .checked_mul(layout.each())
        .and_then(|leaves| leaves.checked_add(2))
    else {
        return false;
    };
    let given = |part, length| {
        let rows = layout.leaf_of(part).and_then(|leaf| layout.rows(leaf, length, 0));
        rows.is_some_and(|rows| rows.is_playable())
    };
    let (last, most) = match layout.facts().operation {
        Operation::Embed => (0, layout.architecture().positions),
        Operation::Generate => (layout.cut().chunks(layout.fed()).saturating_sub(1), layout.fed()),
    };
    let output = given(Part::Output, layout.output_bytes());
    let computed = |part, most| {
        let plan = layout.leaf_of(part).and_then(|leaf| layout.plan(leaf, most));
        plan.is_some_and(|plan| {
            let mut rows = (0..plan.steps()).map(|step| plan.rows_of(step));
            let bytes = |rows: RowsShape| u64::from(rows.rows) * u64::from(rows.row_bytes);
            plan.steps() <= STEPS_MAX
                && rows.clone().flatten().map(bytes).sum::<u64>() <= LEAF_BYTES_MAX
                && rows.all(|rows| rows.is_some_and(|rows| rows.is_playable()))
        })
    };
    let of_chunk = |chunk, most| {
        let mut strides = (0..layout.cut().strides()).map(|stride| Part::Rows {
            sequence: 0,
            chunk,
            stride,
        });
        let generates = layout.facts().operation == Operation::Generate;
        strides.all(|part| computed(part, most))
            && (!generates || computed(Part::SampledTokens { chunk }, most))
    };
    // The last may have fewer rows than the one before it.
    let before = last.checked_sub(1);
    let ends = before.map(|chunk| (chunk, layout.cut().rows_of(chunk, layout.fed()).end));
    leaves <= LEAVES_MAX
        && given(Part::Input, 0)
        && output
        && of_chunk(last, most)
        && ends.is_none_or(|(chunk, end)| of_chunk(chunk, end))
}

/// Rows of all weights, tensor by tensor; the architecture does not say how many kinds of segments there are.
fn walk_weights(family: ModelFamily, architecture: &Architecture) -> u32 {
    let rows = tensors(family, architecture).map(|tensor| match tensor {
        Tensor::Types => 256,
        tensor => tensor.shape(architecture).rows,
    });
    rows.fold(0, u32::saturating_add)
}

fn dimension(most: u32) -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1..=most.min(40), 2 => 1..=most, 1 => Just(most), 1 => Just(1)]
}

fn largest_divisor(of: u32, most: u32) -> u32 {
    (1..=most.min(of))
        .rev()
        .find(|divisor| of.is_multiple_of(*divisor))
        .unwrap_or(1)
}

prop_compose! {
    /// Any model that can be registered, and its family.
    fn registrable()(
        family in prop::sample::select(&ModelFamily::ALL[..]), vocabulary in dimension(limits::VOCABULARY_MAX), width in dimension(limits::WIDTH_MAX / 4),
        layers in dimension(limits::LAYERS_MAX), heads in dimension(limits::HEADS_MAX), kv_heads in dimension(limits::HEADS_MAX),
        head_dim in dimension(limits::HEAD_DIM_MAX / 4), inner in dimension(limits::INNER_MAX / 4),
        positions in dimension(limits::POSITIONS_MAX), smoothed in any::<bool>(), tied in any::<bool>(),
        first in any::<bool>(),
    ) -> (ModelFamily, Architecture) {
        let llama = family != ModelFamily::Bert;
        let largest = Architecture::largest(family);
        let all_heads = if llama { limits::QUERIES_MAX } else { limits::WIDTH_MAX };
        let head_dim = head_dim.min(all_heads / heads / 4) * 4;
        let mut architecture = Architecture {
            vocabulary, layers, heads, head_dim, tied,
            width: if llama { width * 4 } else { heads * head_dim },
            kv_heads: if llama { largest_divisor(heads, kv_heads) } else { heads },
            inner: inner * 4,
            positions: positions.min(largest.positions).max(if llama { 2 } else { 1 }),
            activation: if llama { Activation::SwiGlu } else { Activation::GeluTanh },
            pooling: if first && !llama { Pooling::First } else { Pooling::Mean },
            ..largest
        };
        architecture.smoothed.output = smoothed;
        (family, architecture)
    }
}

proptest! {
    #[test]
    fn a_layout_is_refused_exactly_when_a_walk_over_all_layers_refuses_it(
        (family, architecture) in registrable(), units in dimension(limits::POSITIONS_MAX), stride in dimension(200), cut in any::<bool>(),
    ) {
        let own = TraceShape::of(family, &architecture);
        let cut = if cut {
            TraceShape { stride: stride.min(architecture.layers), ..own }
        } else {
            own
        };
        let facts = facts(family, units, H256::repeat_byte(5));
        let layout = Layout::of_any_size(&architecture, facts.clone(), cut).unwrap();
        let possible = family == ModelFamily::Bert || (2..=architecture.positions).contains(&units);
        let expected = match (possible, walk(&layout)) {
            // The prompt has one.
            (false, _) if units == 1 => Some(LayoutError::Input(ShapeFault::PromptTooLong)),
            (false, _) => Some(LayoutError::Units),
            (true, false) => Some(LayoutError::TooLarge),
            (true, true) => None,
        };
        prop_assert_eq!(Layout::with_cut(&architecture, facts, cut).err(), expected);
        prop_assert_eq!(layout.weight_rows(), walk_weights(family, &architecture));
        prop_assert!(layout.kinds().count() <= KINDS_MAX);
    }

    /// What was committed to is not refused when it is opened: an answer may be shorter than was posted.
    #[test]
    fn a_shorter_answer_is_played_wherever_a_longer_one_is(
        (family, architecture) in registrable(), longer in 2u32..40_000, shorter in 2u32..40_000,
    ) {
        prop_assume!(family != ModelFamily::Bert);
        let (shorter, longer) = (shorter.min(longer), shorter.max(longer));
        let is_playable = |units| Layout::new(&architecture, facts(family, units, H256::zero())).is_ok();
        prop_assert!(!is_playable(longer) || is_playable(shorter));
    }

    /// Who registered a model cannot keep the providers that it attracts from showing that they are right.
    /// The registry asks for the smallest task of an encoder, which may have as long an item as any.
    #[test]
    fn the_smallest_task_of_every_model_that_can_be_registered_can_be_disputed((family, architecture) in registrable()) {
        prop_assert_eq!(architecture.check(family), Ok(()));
        let cut = TraceShape::of(family, &architecture);
        let any_size = Layout::of_any_size(&architecture, facts(family, 1, H256::zero()), cut).unwrap();
        prop_assume!(family != ModelFamily::Bert || walk(&any_size));
        prop_assert_eq!(smallest(family, &architecture), Ok(()));
    }
}

fn smallest(family: ModelFamily, architecture: &Architecture) -> Result<(), LayoutError> {
    let units = match family {
        ModelFamily::Bert => 1,
        ModelFamily::Llama | ModelFamily::Qwen3 => 2,
    };
    let layout = Layout::new(architecture, facts(family, units, H256::zero()))?;
    let game = Game::new(H256::zero(), &layout, Clocks::equal(1));
    game.map(|_| ()).map_err(|_| LayoutError::TooLarge)
}

#[test]
fn models_at_every_corner_of_the_limits_have_a_smallest_task() {
    for family in ModelFamily::ALL {
        let largest = Architecture::largest(family);
        assert_eq!(smallest(family, &largest), Ok(()));
        // All layers in one leaf, with keys as wide as they may be.
        let narrow = Architecture {
            width: 4,
            ..Architecture::largest(ModelFamily::Llama)
        };
        assert_eq!(smallest(ModelFamily::Llama, &narrow), Ok(()));
        let smallest_of_all = Architecture {
            vocabulary: 1,
            width: 4,
            layers: 1,
            heads: 1,
            kv_heads: 1,
            head_dim: 4,
            inner: 4,
            positions: 2,
            ..largest
        };
        assert_eq!(smallest(family, &smallest_of_all), Ok(()));
    }
}

#[test]
fn as_much_is_looked_at_of_three_strides_as_of_any_number_of_them() {
    for family in ModelFamily::ALL {
        let kinds = |layers| {
            let architecture = Architecture {
                layers,
                ..Architecture::largest(family)
            };
            let layout = Layout::new(&architecture, facts(family, 2, H256::zero())).unwrap();
            assert_eq!(layout.cut().strides(), layers);
            layout.kinds().count()
        };
        for layers in [4, 17, limits::LAYERS_MAX] {
            assert_eq!(kinds(layers), kinds(3), "{layers}");
        }
        assert!(kinds(limits::LAYERS_MAX) <= KINDS_MAX);
    }
}

/// A picked cell's inputs are measured before anybody shows them.
#[test]
fn the_way_to_a_piece_that_no_opening_can_have_is_not_counted() {
    let llama = Architecture::largest(ModelFamily::Llama);
    let layout = Layout::new(&llama, facts(ModelFamily::Llama, 1 << 14, H256::zero())).unwrap();
    let chunk = layout.cut().chunks(layout.fed()) - 1;
    let leaf = layout.leaf_of(Part::SampledTokens { chunk }).unwrap();
    let plan = layout.plan(leaf, layout.fed()).unwrap();
    let logits = plan.number(0, Op::Logits).unwrap();
    let ground = Ground {
        layout: &layout,
        leaf,
        length: Some(layout.fed()),
    };
    let size = |words| {
        ground
            .words(Source::Step(logits), 0, &(0..words))
            .unwrap()
            .0
            .size()
    };
    assert!(size(OPENING_BYTES_MAX / 4).is_some());
    assert_eq!(size(limits::VOCABULARY_MAX), None);
}

#[test]
fn the_model_that_stopped_the_chain_is_no_model() {
    let architecture = Architecture {
        width: 8,
        layers: 150_994_656,
        heads: 1,
        kv_heads: 1,
        head_dim: 8,
        inner: 4,
        positions: 1,
        ..Architecture::largest(ModelFamily::Bert)
    };
    let refused = Layout::new(&architecture, facts(ModelFamily::Bert, 1, H256::zero()));
    let expected = ArchitectureError::TooManyLayers;
    assert_eq!(refused.err(), Some(LayoutError::Architecture(expected)));
}
