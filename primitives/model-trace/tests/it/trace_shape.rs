use proptest::prelude::*;
use surety_model_trace::{CachedHeads, TraceShape, stride_for};
use surety_types::model::ModelFamily;

/// all-MiniLM-L6-v2, and a Llama of 22 layers with grouped keys.
const MINILM: TraceShape = TraceShape::bert(6, 384);
const TINY_LLAMA: TraceShape = TraceShape::llama(22, 2048, 4, 64);

fn shape() -> impl Strategy<Value = TraceShape> {
    (1u32..40, 1u32..3000, (1u32..9, 1u32..200), any::<bool>()).prop_map(|(layers, hidden, kv, encoder)| {
        if encoder {
            TraceShape::bert(layers, hidden)
        } else {
            TraceShape::llama(layers, hidden, kv.0, kv.1)
        }
    })
}

#[test]
fn strides_make_up_for_narrow_states() {
    for (hidden, layers, stride) in [
        (384, 6, 3),
        (64, 4, 4),
        (576, 30, 2),
        (1152, 30, 1),
        (4096, 32, 1),
        (8, 160, 96),
        (8, 96, 96),
        (16, 160, 72),
    ] {
        assert_eq!(stride_for(hidden, layers), stride, "{hidden} {layers}");
    }
    assert_eq!(
        (stride_for(0, 9), stride_for(0, 0), stride_for(u32::MAX, 5)),
        (9, 1, 1)
    );
}

#[test]
fn a_bert_item_has_one_chunk_and_ends_in_one_vector() {
    assert_eq!((MINILM.stride, MINILM.strides(), MINILM.chunks(25)), (3, 2, 1));
    assert_eq!(
        (MINILM.layers_of(0), MINILM.layers_of(1), MINILM.layers_of(2)),
        (0..3, 3..6, 6..6)
    );
    assert_eq!((MINILM.pools(0), MINILM.pools(1)), (false, true));
    assert_eq!(MINILM.rows_of(0, 25), 0..25);
    assert_eq!(
        (MINILM.row_bytes(0), MINILM.row_bytes(1)),
        (Some(1536), Some(1536))
    );
}

#[test]
fn a_llama_leaf_is_16_positions_of_one_layer() {
    assert_eq!(
        (TINY_LLAMA.stride, TINY_LLAMA.strides(), TINY_LLAMA.chunks(100)),
        (1, 22, 7)
    );
    assert_eq!(
        (TINY_LLAMA.rows_of(6, 100), TINY_LLAMA.rows_of(7, 100)),
        (96..100, 100..100)
    );
    assert_eq!(
        (TINY_LLAMA.quantized(3), TINY_LLAMA.row_bytes(3)),
        (Some(2 * 512), Some(2 * (512 + 16) + 8192))
    );
    let cached = |q, scales| Some(CachedHeads { q, scales });
    assert_eq!(
        (TINY_LLAMA.key(3), TINY_LLAMA.value(3), TINY_LLAMA.state(3)),
        (
            cached(0..512, 9216..9232),
            cached(512..1024, 9232..9248),
            Some(1024..9216)
        )
    );
    assert!(!TINY_LLAMA.pools(21));
}

#[test]
fn hostile_shapes_have_no_places() {
    for shape in [
        TraceShape { layers: 0, ..MINILM },
        TraceShape {
            stride: 0,
            layers: 0,
            ..MINILM
        },
    ] {
        assert_eq!(
            (shape.strides(), shape.layers_of(0), shape.key(0)),
            (0, 0..0, None)
        );
    }
    let vast = TraceShape {
        family: ModelFamily::Llama,
        layers: u32::MAX,
        stride: 1,
        hidden: u32::MAX,
        kv_heads: u32::MAX,
        head_dim: 64,
        chunk: 1,
    };
    assert_eq!(
        (vast.row_bytes(0), vast.state(0), vast.value(9)),
        (None, None, None)
    );
}

proptest! {
    #[test]
    fn every_row_and_layer_is_in_exactly_one_leaf(shape in shape(), rows in 1u32..200) {
        let all: Vec<u32> = (0..shape.chunks(rows)).flat_map(|chunk| shape.rows_of(chunk, rows)).collect();
        prop_assert_eq!(all, (0..rows).collect::<Vec<_>>());
        prop_assert!(shape.rows_of(shape.chunks(rows), rows).is_empty());
        let all: Vec<u32> = (0..shape.strides()).flat_map(|stride| shape.layers_of(stride)).collect();
        prop_assert_eq!(all, (0..shape.layers).collect::<Vec<_>>());
        for stride in 0..shape.strides() {
            prop_assert!(shape.layers_of(stride).all(|layer| shape.stride_of(layer) == Some(stride)));
        }
        prop_assert_eq!(shape.stride_of(shape.layers), None);
    }

    #[test]
    fn a_row_is_keys_and_values_the_state_and_scales_without_a_gap(shape in shape()) {
        let (width, heads) = (2 * (shape.kv_heads * shape.head_dim) as usize, 4 * shape.kv_heads as usize);
        for stride in 0..shape.strides() {
            let state = shape.state(stride).unwrap();
            prop_assert_eq!((Some(state.start), state.len()), (shape.quantized(stride), 4 * shape.hidden as usize));
            let (mut values, mut scales) = (0, state.end);
            for layer in shape.layers_of(stride) {
                for cached in [shape.key(layer).unwrap(), shape.value(layer).unwrap()] {
                    prop_assert_eq!((cached.q.start, cached.scales.start), (values, scales));
                    prop_assert_eq!((cached.q.len(), cached.scales.len()), (width, heads));
                    (values, scales) = (cached.q.end, cached.scales.end);
                }
            }
            prop_assert_eq!((values, Some(scales)), (state.start, shape.row_bytes(stride)));
        }
    }
}
