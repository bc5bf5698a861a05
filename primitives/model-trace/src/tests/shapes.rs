//! Leaves, steps and names.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sp_core::H256;
use surety_types::{
    input::ShapeFault,
    model::{Activation, Architecture, ModelFamily, Operation, Pooling},
};

use super::small::{bert, facts, llama, qwen3, works};
use crate::{InLayer, Layout, LayoutError, Op, Part, Tensor, TraceShape, embeddings_header, tensors};
use surety_dispute_game::bisection::{LeafKind, Length, RowsShape, Shape};

fn layout(family: ModelFamily, units: u32) -> Result<Layout, LayoutError> {
    let architecture = match family {
        ModelFamily::Bert => bert(),
        ModelFamily::Llama => llama(),
        ModelFamily::Qwen3 => qwen3(),
    };
    Layout::new(&architecture, facts(family, units, H256::repeat_byte(5)))
}

#[test]
fn leaves_are_in_the_order_input_chunks_output() {
    let embed = layout(ModelFamily::Bert, 3).unwrap();
    let rows = |sequence, chunk| Part::Rows {
        sequence,
        chunk,
        stride: 0,
    };
    let parts: Vec<Part> = (0..embed.leaves())
        .map(|leaf| embed.part(leaf).unwrap())
        .collect();
    assert_eq!(
        parts,
        [Part::Input, rows(0, 0), rows(1, 0), rows(2, 0), Part::Output]
    );
    let generate = layout(ModelFamily::Llama, 34).unwrap();
    let parts: Vec<Part> = (0..generate.leaves())
        .map(|leaf| generate.part(leaf).unwrap())
        .collect();
    let choices = |chunk| Part::SampledTokens { chunk };
    assert_eq!(
        parts,
        [
            Part::Input,
            rows(0, 0),
            choices(0),
            rows(0, 1),
            choices(1),
            rows(0, 2),
            choices(2),
            Part::Output
        ]
    );
    // 33 positions: the last chunk has one.
    let plan = generate.plan(5, 33).unwrap();
    assert_eq!((plan.positions(), plan.length()), (32..33, 33));
    assert_eq!(plan.reads().collect::<Vec<_>>(), [0, 1, 3]);
    assert!(generate.plan(5, 32).is_none() && generate.plan(0, 0).is_none() && generate.plan(7, 9).is_none());
    let last = generate.leaf(7).unwrap();
    // The reason, and all tokens but the prompt's one.
    assert_eq!(last.length, Length::Known(4 * (1 + 33)));
    assert_eq!(last.kind, LeafKind::Fixed(H256::repeat_byte(5)));
    assert_eq!(generate.leaf(5).unwrap().length, Length::Known(33));
    assert_eq!(embed.leaf(2).unwrap().length, Length::Word { word: 3, most: 6 });
    assert_eq!(embed.leaf(5), None);
}

#[test]
fn steps_have_one_number_each_and_rows_that_can_be_played_over() {
    for work in works() {
        for (leaf, length, step, shape) in work.steps() {
            assert!(shape.is_playable());
            let Some(plan) = work.layout.plan(leaf, length) else {
                continue;
            };
            let found = plan.step(step).unwrap();
            assert_eq!(plan.number(found.layer, found.op), Some(step));
            assert_eq!(found.op == Op::Record, step + 1 == plan.steps());
            assert_eq!(
                (plan.step(plan.steps()), plan.rows_of(plan.steps())),
                (None, None)
            );
        }
        for leaf in 0..work.layout.leaves() {
            let part = work.layout.part(leaf).unwrap();
            assert_eq!(work.layout.leaf_of(part), Some(leaf));
        }
    }
}

#[test]
fn the_mean_is_over_as_many_rows_as_are_pooled() {
    for (pooling, rows) in [(Pooling::Mean, 3), (Pooling::First, 1)] {
        let architecture = Architecture { pooling, ..bert() };
        let facts = facts(ModelFamily::Bert, 1, H256::zero());
        let layout = Layout::new(&architecture, facts).unwrap();
        let plan = layout.plan(1, 3).unwrap();
        let turned = plan.number(1, Op::StatesTransposed).unwrap();
        let shape = plan.rows_of(turned).unwrap();
        assert_eq!((shape.rows, shape.row_bytes), (32, 4 * rows), "{pooling:?}");
    }
}

#[test]
fn what_can_be_no_claim_has_no_layout() {
    let refused = |family, units| layout(family, units).err();
    for units in [0, 1 << 20, u32::MAX] {
        assert!(refused(ModelFamily::Bert, units).is_some(), "{units}");
    }
    for units in [0, 1] {
        let no_room = LayoutError::Input(ShapeFault::PromptTooLong);
        assert_eq!(refused(ModelFamily::Llama, units), Some(no_room));
    }
    for units in [65, u32::MAX] {
        assert_eq!(refused(ModelFamily::Llama, units), Some(LayoutError::Units));
    }
    assert_eq!(
        (
            refused(ModelFamily::Bert, 1 << 18),
            refused(ModelFamily::Llama, 64)
        ),
        (None, None)
    );
    // All items, and tokens for no more than is paid for.
    let claimed = |family, units, units_max| {
        let mut facts = facts(family, units_max, H256::zero());
        facts.units = units;
        let architecture = if family == ModelFamily::Bert {
            bert()
        } else {
            llama()
        };
        Layout::new(&architecture, facts).err()
    };
    for units in [0, 1, 3] {
        assert_eq!(claimed(ModelFamily::Bert, units, 2), Some(LayoutError::Units));
    }
    for (units, refused) in [(1, true), (2, false), (9, false), (10, true)] {
        assert_eq!(
            claimed(ModelFamily::Llama, units, 9).is_some(),
            refused,
            "{units}"
        );
    }
    let mut short = facts(ModelFamily::Bert, 2, H256::zero());
    short.input_bytes = 20;
    let too_short = LayoutError::Input(ShapeFault::TooShort);
    assert_eq!(Layout::new(&bert(), short).err(), Some(too_short));
    let mut other = facts(ModelFamily::Bert, 1, H256::zero());
    other.operation = Operation::Generate;
    assert_eq!(Layout::new(&bert(), other).err(), Some(LayoutError::Operation));
    let wrong: [fn(&mut Architecture); 6] = [
        |a| a.width = 30,
        |a| a.heads = 0,
        |a| a.kv_heads = 1,
        |a| a.activation = Activation::SwiGlu,
        |a| a.inner = u32::MAX,
        |a| a.head_dim = u32::MAX,
    ];
    for change in wrong {
        let mut architecture = bert();
        change(&mut architecture);
        let refused = Layout::new(&architecture, facts(ModelFamily::Bert, 1, H256::zero()));
        assert!(refused.is_err(), "{architecture:?}");
    }
}

#[test]
fn names_are_those_of_published_files() {
    let name = |tensor: Tensor, family| tensor.name(family).unwrap();
    let query = Tensor::Layer(11, InLayer::Query);
    assert_eq!(
        name(query, ModelFamily::Bert),
        "encoder.layer.11.attention.self.query"
    );
    assert_eq!(
        name(query, ModelFamily::Llama),
        "model.layers.11.self_attn.q_proj"
    );
    assert_eq!(Tensor::Layer(0, InLayer::Gate).name(ModelFamily::Bert), None);
    let norm = Tensor::Layer(3, InLayer::KeyNorm);
    assert_eq!(
        name(norm, ModelFamily::Qwen3),
        "model.layers.3.self_attn.k_norm.weight"
    );
    assert_eq!(norm.name(ModelFamily::Llama), None);
    for (family, architecture, count) in [
        (ModelFamily::Bert, bert(), 5 + 2 * (12 - 2 + 2)),
        (ModelFamily::Llama, llama(), 4 + 2 * (9 + 2)),
        (ModelFamily::Qwen3, qwen3(), 3 + 2 * (11 + 2)),
    ] {
        let names: BTreeSet<_> = tensors(family, &architecture)
            .map(|tensor| tensor.name(family))
            .collect();
        assert_eq!(names.len(), tensors(family, &architecture).count());
        assert_eq!(names.len(), count, "{names:?}");
    }
}

#[test]
fn a_header_is_that_of_a_safetensors_file() {
    let header = embeddings_header(2, 384).unwrap();
    let json = r#"{"embeddings":{"dtype":"F32","shape":[2,384],"data_offsets":[0,3072]}}"#;
    assert_eq!(header[..8], 72u64.to_le_bytes());
    assert_eq!(header[8..], *format!("{json:<72}").as_bytes());
    assert_eq!(embeddings_header(u32::MAX, 384), None);
}

fn is_anything(shape: Option<RowsShape>) -> bool {
    shape.is_none_or(|shape| shape.rows > 0)
}

proptest! {
    #[test]
    fn nothing_overflows(
        dims in proptest::array::uniform8(prop_oneof![0u32..70, any::<u32>()]), units in any::<u32>(),
        leaf in any::<u32>(), length in any::<u32>(), step in 0u32..200, family in prop::sample::select(&ModelFamily::ALL[..]),
    ) {
        let [vocabulary, width, layers, heads, kv_heads, head_dim, inner, positions] = dims;
        let activation = match family {
            ModelFamily::Bert => Activation::Gelu,
            ModelFamily::Llama | ModelFamily::Qwen3 => Activation::SwiGlu,
        };
        let architecture = Architecture {
            vocabulary, width, layers: layers % 300, heads, kv_heads, head_dim, inner, positions, activation, ..bert()
        };
        let _ = TraceShape::of(family, &architecture);
        if let Ok(layout) = Layout::new(&architecture, facts(family, units, H256::zero())) {
            prop_assert!(is_anything(layout.rows(leaf % layout.leaves(), length, step)));
        }
    }
}
