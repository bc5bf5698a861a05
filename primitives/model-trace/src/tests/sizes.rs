//! How long openings are, of models of real sizes.

use std::collections::BTreeMap;

use sp_core::H256;
use surety_types::{
    limits,
    model::{Architecture, ModelFamily, Pooling, Precision, Smoothed},
};

use super::small::{bert, facts, llama, qwen3};
use crate::{CellReferee, Layout, LayoutError, Op, Part, TaskFacts};
use surety_dispute_game::bisection::{Cell, CellValue, Referee, Shape, opening_room};

const ALL: Smoothed = Smoothed {
    attention: true,
    output: true,
    inner: true,
    down: true,
};

/// For each kind of step the longest opening, or that it is not computable; `check` is given each with its
/// room.
fn openings(layout: &Layout, leaves: &[(u32, u32)]) -> BTreeMap<Op, Option<u32>> {
    let referee = CellReferee::new(layout, H256::zero());
    let mut longest = BTreeMap::new();
    for (leaf, length) in leaves {
        let plan = layout.plan(*leaf, *length).unwrap();
        for step in 0..plan.steps() {
            let shape = plan.rows_of(step).unwrap();
            let op = plan.step(step).unwrap().op;
            let room = opening_room(layout, *leaf, *length, step).unwrap();
            for row in [0, shape.rows - 1] {
                for cell in [0, shape.cells() / 2, shape.cells() - 1] {
                    let at = Cell {
                        leaf: *leaf,
                        length: *length,
                        step,
                        row,
                        cell,
                        value: CellValue::Byte(0),
                    };
                    let bytes = referee.opening_bytes(&at).filter(|bytes| *bytes <= room);
                    let most = longest.entry(op).or_insert(bytes);
                    *most = most.zip(bytes).map(|(most, bytes)| most.max(bytes));
                }
            }
        }
    }
    longest
}

fn not_computable(openings: &BTreeMap<Op, Option<u32>>) -> Vec<Op> {
    let not_computable = openings.iter().filter(|(_, bytes)| bytes.is_none());
    not_computable.map(|(op, _)| *op).collect()
}

fn minilm(precision: Precision) -> Architecture {
    Architecture {
        vocabulary: 30_522,
        width: 384,
        layers: 6,
        heads: 12,
        kv_heads: 12,
        head_dim: 32,
        inner: 1536,
        positions: 512,
        smoothed: ALL,
        precision,
        ..bert()
    }
}

#[test]
fn every_cell_of_a_minilm_can_be_opened() {
    for (precision, most) in [(Precision::Int8, 6 * 1024), (Precision::Int12, 8 * 1024)] {
        openable(&minilm(precision), most);
    }
}

/// With more inputs a product of int12 is for a committee: such an encoder is converted to int8.
#[test]
fn the_longest_products_of_a_bert_base_need_int8() {
    for (precision, too_long) in [(Precision::Int8, &[][..]), (Precision::Int12, &[Op::Down])] {
        let base = Architecture {
            width: 768,
            layers: 12,
            head_dim: 64,
            inner: 3072,
            ..minilm(precision)
        };
        let layout = Layout::new(&base, facts(ModelFamily::Bert, 10, H256::zero())).unwrap();
        let part = Part::Rows {
            sequence: 9,
            chunk: 0,
            stride: 0,
        };
        let found = openings(&layout, &[(layout.leaf_of(part).unwrap(), 512)]);
        assert_eq!(not_computable(&found), too_long, "{precision:?}");
        assert_eq!(
            (layout.beyond(), layout.needs_committee()),
            (too_long.to_vec(), !too_long.is_empty())
        );
    }
}

fn openable(minilm: &Architecture, most: u32) {
    let facts = TaskFacts {
        // As large as an input may be.
        input_bytes: limits::INPUT_BYTES_MAX,
        ..facts(ModelFamily::Bert, 10_000, H256::zero())
    };
    let layout = Layout::new(minilm, facts).unwrap();
    let leaf = |stride| {
        let part = Part::Rows {
            sequence: 9_999,
            chunk: 0,
            stride,
        };
        layout.leaf_of(part).unwrap()
    };
    for length in [128, 512] {
        let found = openings(&layout, &[(leaf(0), length), (leaf(1), length)]);
        println!("MiniLM, {length} tokens: {found:#?}");
        assert_eq!(not_computable(&found), []);
        assert_eq!((layout.beyond(), layout.needs_committee()), (vec![], false));
        let longest = found.values().flatten().max().unwrap();
        assert!(*longest < most, "{longest}");
    }
    let output = layout.leaves() - 1;
    let at = Cell {
        leaf: output,
        length: 0,
        step: 0,
        row: 0,
        cell: 384 * 9_000,
        value: CellValue::Byte(0),
    };
    let bytes = CellReferee::new(&layout, H256::zero())
        .opening_bytes(&at)
        .unwrap();
    assert!(bytes < 2 * 1024, "{bytes}");
}

#[test]
fn what_no_block_can_compute_of_a_llama_of_width_2048() {
    let model = Architecture {
        vocabulary: 32_000,
        width: 2048,
        layers: 22,
        heads: 32,
        kv_heads: 4,
        head_dim: 64,
        inner: 5632,
        positions: 2048,
        smoothed: ALL,
        ..llama()
    };
    let layout = Layout::new(&model, facts(ModelFamily::Llama, 1025, H256::zero())).unwrap();
    let leaf = |part| layout.leaf_of(part).unwrap();
    let rows = |chunk, stride| {
        leaf(Part::Rows {
            sequence: 0,
            chunk,
            stride,
        })
    };
    for (chunk, length) in [(7, 128), (63, 1024)] {
        let choices = leaf(Part::SampledTokens { chunk });
        let found = openings(
            &layout,
            &[
                (rows(chunk, 0), length),
                (rows(chunk, 21), length),
                (choices, length),
            ],
        );
        println!("Llama of width 2048, {length} tokens: {found:#?}");
        // A row of 5,632 values and its weights; 32,000 logits, of which a token is chosen.
        assert_eq!(not_computable(&found), [Op::Down, Op::Record]);
        let record = openings(&layout, &[(rows(chunk, 1), length)]);
        assert_eq!(not_computable(&record), [Op::Down]);
    }
    assert_eq!(layout.beyond(), [Op::Down, Op::Record]);
}

/// What is beyond of a decoder with heads of 64 and so many inner values and ids, which says as much as it
/// can.
fn of_decoder(width: u32, inner: u32, vocabulary: u32, positions: u32) -> Vec<Op> {
    let model = Architecture {
        vocabulary,
        width,
        layers: 4,
        heads: width / 64,
        kv_heads: 1,
        head_dim: 64,
        inner,
        positions,
        smoothed: ALL,
        ..llama()
    };
    let facts = facts(ModelFamily::Llama, positions, H256::zero());
    Layout::new(&model, facts).unwrap().beyond()
}

/// The same of an encoder.
fn of_encoder(width: u32, inner: u32, positions: u32, precision: Precision) -> Vec<Op> {
    let model = Architecture {
        width,
        layers: 12,
        heads: width / 32,
        kv_heads: width / 32,
        inner,
        positions,
        ..minilm(precision)
    };
    let facts = facts(ModelFamily::Bert, 10, H256::zero());
    Layout::new(&model, facts).unwrap().beyond()
}

/// What a committee sits for, and what not: docs/adr/0014-from-a-leaf-to-a-cell.md has these numbers.
#[test]
fn a_committee_is_for_products_norms_and_choices_that_are_wide() {
    const NONE: [Op; 0] = [];
    // Product with the inner width; tokens to choose from; width, by its norms. However long the context is.
    assert_eq!(of_decoder(2048, 5_500, 1_024, 256), NONE);
    assert_eq!(of_decoder(2048, 5_632, 1_024, 256), [Op::Down]);
    assert_eq!(of_decoder(256, 1_024, 2_900, 256), NONE);
    assert_eq!(of_decoder(256, 1_024, 3_200, 256), [Op::Record]);
    assert_eq!(of_decoder(2_624, 1_024, 1_024, 256), NONE);
    assert_eq!(
        of_decoder(4_096, 1_024, 1_024, 256),
        [Op::AttentionStats, Op::MlpStats, Op::FinalStats]
    );
    assert_eq!(of_decoder(2048, 1_024, 1_024, 32_768), NONE);

    // BERT base, and large.
    assert_eq!(of_encoder(768, 3_072, 512, Precision::Int8), NONE);
    assert_eq!(of_encoder(1024, 4_096, 512, Precision::Int8), NONE);
    assert_eq!(of_encoder(768, 5_400, 512, Precision::Int8), NONE);
    assert_eq!(of_encoder(768, 5_500, 512, Precision::Int8), [Op::Down]);
    assert_eq!(of_encoder(384, 2_700, 512, Precision::Int12), NONE);
    assert_eq!(of_encoder(384, 2_800, 512, Precision::Int12), [Op::Down]);
    // A mean over as many tokens.
    assert_eq!(of_encoder(384, 1_536, 2_048, Precision::Int8), NONE);
    // Over one of them.
    for (pooling, beyond) in [(Pooling::Mean, &[Op::Mean][..]), (Pooling::First, &NONE)] {
        let few_heads = Architecture {
            heads: 2,
            kv_heads: 2,
            head_dim: 192,
            positions: 4_096,
            pooling,
            ..minilm(Precision::Int8)
        };
        let layout = Layout::new(&few_heads, facts(ModelFamily::Bert, 10, H256::zero())).unwrap();
        assert_eq!(layout.beyond(), beyond);
    }
}

/// Rows of a full chunk are further down in their trees than that of the last one.
#[test]
fn a_chunk_of_one_row_hides_nothing_that_is_beyond_in_the_others() {
    for inner in (5_000..5_700).step_by(20) {
        assert_eq!(
            of_decoder(2048, inner, 1_024, 18),
            of_decoder(2048, inner, 1_024, 33),
            "{inner}"
        );
    }
}

/// Who is challenged has all of a leaf in memory, or loses for want of it.
#[test]
fn a_leaf_that_takes_too_much_memory_is_no_leaf() {
    let layout = |positions| {
        let long = Architecture {
            positions,
            ..minilm(Precision::Int12)
        };
        Layout::new(&long, facts(ModelFamily::Bert, 10, H256::zero())).map(|_| ())
    };
    assert_eq!(layout(2_048), Ok(()));
    assert_eq!(layout(4_096), Err(LayoutError::TooLarge));
    assert_eq!(layout(8_192), Err(LayoutError::TooLarge));
}

/// Qwen 3 of 0.6 billion parameters, and heads as wide as there may be.
#[test]
fn norms_of_heads_are_for_a_block_however_wide_a_head_is() {
    let published = Architecture {
        vocabulary: 151_936,
        width: 1_024,
        layers: 28,
        heads: 16,
        kv_heads: 8,
        head_dim: 128,
        inner: 3_072,
        positions: 40_960,
        smoothed: ALL,
        ..qwen3()
    };
    let widest = Architecture {
        heads: 4,
        kv_heads: 2,
        head_dim: limits::HEAD_DIM_MAX,
        ..published.clone()
    };
    for model in [published, widest] {
        let layout = Layout::new(&model, facts(ModelFamily::Qwen3, 2_048, H256::zero())).unwrap();
        // A token is chosen of too many.
        assert_eq!(layout.beyond(), [Op::Record], "{}", model.head_dim);
        let part = Part::Rows {
            sequence: 0,
            chunk: 127,
            stride: 1,
        };
        let found = openings(&layout, &[(layout.leaf_of(part).unwrap(), 2_047)]);
        println!("Qwen 3, heads of {}: {found:#?}", model.head_dim);
        for op in [Op::NormQuery, Op::NormKey] {
            // A head, at most four rows of a vector's values where its weight is, and the ways to both.
            let most = 4 * model.head_dim + 4 * 128 + 3 * 1_024;
            assert!(found[&op].is_some_and(|bytes| bytes < most), "{op:?}");
        }
    }
}

#[test]
fn every_cell_of_the_demonstrations_decoder_can_be_opened() {
    let model = Architecture {
        vocabulary: 2048,
        width: 128,
        layers: 4,
        heads: 4,
        kv_heads: 2,
        head_dim: 32,
        inner: 384,
        positions: 256,
        smoothed: ALL,
        tied: true,
        ..llama()
    };
    let layout = Layout::new(&model, facts(ModelFamily::Llama, 256, H256::zero())).unwrap();
    let leaf = |part| layout.leaf_of(part).unwrap();
    let rows = |stride| Part::Rows {
        sequence: 0,
        chunk: 15,
        stride,
    };
    let strides = (0..layout.cut().strides()).map(rows);
    // The last token is not fed to the model.
    let leaves: Vec<_> = strides
        .chain([Part::SampledTokens { chunk: 15 }])
        .map(|part| (leaf(part), 255))
        .collect();
    let found = openings(&layout, &leaves);
    println!("The demonstration's decoder: {found:#?}");
    assert_eq!(not_computable(&found), []);
    assert_eq!((layout.beyond(), layout.needs_committee()), (vec![], false));
}
