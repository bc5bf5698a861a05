//! Which dimensions a model may have.

use core::fmt;

use super::{Activation, Architecture, ModelFamily, Operation, Pooling, Precision, Smoothed};
use crate::limits;

/// Quantized values come before their scales in a row, and a word must not lie across two of its segments.
const WORD: u32 = 4;

/// Why there can be no model of these dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchitectureError {
    /// One of the dimensions is 0.
    ZeroDimension,
    /// More than [`limits::VOCABULARY_MAX`] tokens.
    VocabularyTooLarge,
    /// Wider than [`limits::WIDTH_MAX`].
    TooWide,
    /// More than [`limits::LAYERS_MAX`] layers.
    TooManyLayers,
    /// More than [`limits::HEADS_MAX`] heads.
    TooManyHeads,
    /// A head of more than [`limits::HEAD_DIM_MAX`] numbers, or all together of more than
    /// [`limits::QUERIES_MAX`].
    HeadsTooWide,
    /// An inner width above [`limits::INNER_MAX`].
    InnerTooWide,
    /// More positions than [`limits::POSITIONS_MAX`], or an encoder's [`limits::ENCODER_POSITIONS_MAX`].
    TooManyPositions,
    /// A decoder that has no position for a token of a prompt and one that follows.
    TooFewPositions,
    /// The heads are not what the family makes of them.
    UnevenHeads,
    /// A width is no multiple of four.
    UnalignedWidth,
    /// The family does not use this activation.
    ForeignActivation,
    /// A decoder that says how it pools.
    ForeignPooling,
    /// What is added to a variance is not between 0 and 1.
    InvalidEpsilon,
}

impl fmt::Display for ArchitectureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let above = |f: &mut fmt::Formatter<'_>, what, most| write!(f, "{what} must not be more than {most}");
        match self {
            Self::ZeroDimension => f.write_str("a dimension is 0"),
            Self::VocabularyTooLarge => above(f, "the vocabulary", limits::VOCABULARY_MAX),
            Self::TooWide => above(f, "the width of a state", limits::WIDTH_MAX),
            Self::TooManyLayers => above(f, "the number of layers", limits::LAYERS_MAX),
            Self::TooManyHeads => above(f, "the number of heads", limits::HEADS_MAX),
            Self::HeadsTooWide => write!(
                f,
                "a head must not be wider than {}, and all together not wider than {}",
                limits::HEAD_DIM_MAX,
                limits::QUERIES_MAX
            ),
            Self::InnerTooWide => above(f, "the inner width", limits::INNER_MAX),
            Self::TooManyPositions => write!(
                f,
                "the number of positions must not be more than {}, an encoder's not more than {}",
                limits::POSITIONS_MAX,
                limits::ENCODER_POSITIONS_MAX
            ),
            Self::TooFewPositions => f.write_str("a decoder must have two positions at least"),
            Self::UnevenHeads => f.write_str(
                "the heads must be a multiple of those of keys, a decoder's of an even width; an encoder's must share the \
                 width of a state",
            ),
            Self::UnalignedWidth => {
                f.write_str("the widths of a state, of all heads and between the last products must be multiples of 4")
            }
            Self::ForeignActivation => f.write_str("a decoder's activation is SwiGLU, an encoder's is a form of GELU"),
            Self::ForeignPooling => f.write_str("a decoder pools nothing: its pooling is the mean"),
            Self::InvalidEpsilon => f.write_str("epsilon must be between 0 and 1"),
        }
    }
}

impl core::error::Error for ArchitectureError {}

impl Architecture {
    /// A model with every dimension at its limit; an encoder with as many positions as one of these has.
    /// Nobody could run it: it shows that nothing a node does takes longer for it.
    pub const fn largest(family: ModelFamily) -> Self {
        let (width, positions, activation) = match family {
            ModelFamily::Bert => (limits::WIDTH_MAX, 512, Activation::Gelu),
            ModelFamily::Llama | ModelFamily::Qwen3 => {
                (limits::QUERIES_MAX, limits::POSITIONS_MAX, Activation::SwiGlu)
            }
        };
        Self {
            vocabulary: limits::VOCABULARY_MAX,
            width: limits::WIDTH_MAX,
            layers: limits::LAYERS_MAX,
            heads: limits::HEADS_MAX,
            kv_heads: limits::HEADS_MAX,
            // An encoder's heads share the width of a state.
            head_dim: width / limits::HEADS_MAX,
            inner: limits::INNER_MAX,
            positions,
            epsilon: 1e-5f32.to_bits(),
            activation,
            smoothed: Smoothed {
                attention: true,
                output: true,
                inner: true,
                down: true,
            },
            tied: false,
            precision: Precision::Int12,
            pooling: Pooling::Mean,
        }
    }

    /// Whether there can be a model of this family with these dimensions: they are within the [`limits`] and
    /// fit together. Then the smallest claim about it can be disputed.
    ///
    /// # Errors
    /// [`ArchitectureError`], the first that is found.
    pub fn check(&self, family: ModelFamily) -> Result<(), ArchitectureError> {
        self.check_limits(family)?;
        let queries = self.heads.saturating_mul(self.head_dim);
        if queries > limits::QUERIES_MAX {
            return Err(ArchitectureError::HeadsTooWide);
        }
        let generates = family.operation() == Operation::Generate;
        if generates && self.positions < 2 {
            return Err(ArchitectureError::TooFewPositions);
        }
        let gated = self.activation == Activation::SwiGlu;
        let (even, own) = match family {
            ModelFamily::Bert => (self.kv_heads == self.heads && queries == self.width, !gated),
            ModelFamily::Llama | ModelFamily::Qwen3 => (self.head_dim.is_multiple_of(2), gated),
        };
        if !even || !self.heads.is_multiple_of(self.kv_heads) {
            return Err(ArchitectureError::UnevenHeads);
        }
        if ![self.width, queries, self.inner]
            .iter()
            .all(|width| width.is_multiple_of(WORD))
        {
            return Err(ArchitectureError::UnalignedWidth);
        }
        if !own {
            return Err(ArchitectureError::ForeignActivation);
        }
        if generates && self.pooling != Pooling::Mean {
            return Err(ArchitectureError::ForeignPooling);
        }
        let epsilon = f32::from_bits(self.epsilon);
        // Written so that NaN fails too.
        if epsilon > 0.0 && epsilon < 1.0 {
            Ok(())
        } else {
            Err(ArchitectureError::InvalidEpsilon)
        }
    }

    fn check_limits(&self, family: ModelFamily) -> Result<(), ArchitectureError> {
        let positions = match family {
            ModelFamily::Bert => limits::ENCODER_POSITIONS_MAX,
            ModelFamily::Llama | ModelFamily::Qwen3 => limits::POSITIONS_MAX,
        };
        let dimensions = [
            (
                self.vocabulary,
                limits::VOCABULARY_MAX,
                ArchitectureError::VocabularyTooLarge,
            ),
            (self.width, limits::WIDTH_MAX, ArchitectureError::TooWide),
            (self.layers, limits::LAYERS_MAX, ArchitectureError::TooManyLayers),
            (self.heads, limits::HEADS_MAX, ArchitectureError::TooManyHeads),
            (self.kv_heads, limits::HEADS_MAX, ArchitectureError::TooManyHeads),
            (
                self.head_dim,
                limits::HEAD_DIM_MAX,
                ArchitectureError::HeadsTooWide,
            ),
            (self.inner, limits::INNER_MAX, ArchitectureError::InnerTooWide),
            (self.positions, positions, ArchitectureError::TooManyPositions),
        ];
        for (value, most, error) in dimensions {
            match value {
                0 => return Err(ArchitectureError::ZeroDimension),
                value if value > most => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A published model: vocabulary, width, layers, heads, heads of keys, numbers of a head, inner width,
    /// positions.
    fn llama(dimensions: [u32; 8]) -> Architecture {
        let [
            vocabulary,
            width,
            layers,
            heads,
            kv_heads,
            head_dim,
            inner,
            positions,
        ] = dimensions;
        Architecture {
            vocabulary,
            width,
            layers,
            heads,
            kv_heads,
            head_dim,
            inner,
            positions,
            ..Architecture::largest(ModelFamily::Llama)
        }
    }

    #[test]
    fn published_models_are_within_the_limits() {
        for dimensions in [
            // Llama 3.1 8B, 70B and 405B.
            [128_256, 4_096, 32, 32, 8, 128, 14_336, 131_072],
            [128_256, 8_192, 80, 64, 8, 128, 28_672, 131_072],
            [128_256, 16_384, 126, 128, 8, 128, 53_248, 131_072],
            // Qwen 2.5 72B, with a context of a million; SmolLM2 135M; Goliath 120B.
            [152_064, 8_192, 80, 64, 8, 128, 29_568, 1_010_000],
            [49_152, 576, 30, 9, 3, 64, 1_536, 8_192],
            [32_000, 8_192, 137, 64, 8, 128, 28_672, 4_096],
            // A vocabulary as large as Gemma 3's.
            [262_208, 5_376, 62, 32, 16, 128, 21_504, 131_072],
        ] {
            assert_eq!(
                llama(dimensions).check(ModelFamily::Llama),
                Ok(()),
                "{dimensions:?}"
            );
        }
        for dimensions in [
            // Qwen 3 0.6B and 32B, whose heads are wider together than a state.
            [151_936, 1_024, 28, 16, 8, 128, 3_072, 40_960],
            [151_936, 5_120, 64, 64, 8, 128, 25_600, 40_960],
        ] {
            assert_eq!(
                llama(dimensions).check(ModelFamily::Qwen3),
                Ok(()),
                "{dimensions:?}"
            );
        }
        // XLM-R's vocabulary and the size of BERT large.
        let large = Architecture {
            vocabulary: 250_002,
            width: 1_024,
            layers: 24,
            heads: 16,
            kv_heads: 16,
            head_dim: 64,
            inner: 4_096,
            positions: 8_192,
            ..Architecture::largest(ModelFamily::Bert)
        };
        assert_eq!(large.check(ModelFamily::Bert), Ok(()));
        let first = Architecture {
            pooling: Pooling::First,
            ..large
        };
        assert_eq!(first.check(ModelFamily::Bert), Ok(()));
    }

    /// What a change makes of a model at the limits.
    fn refused(family: ModelFamily, change: fn(&mut Architecture)) -> Option<ArchitectureError> {
        let mut architecture = Architecture::largest(family);
        assert_eq!(architecture.check(family), Ok(()));
        change(&mut architecture);
        architecture.check(family).err()
    }

    #[test]
    fn each_dimension_has_its_own_refusal() {
        use ArchitectureError::*;
        use ModelFamily::{Bert, Llama, Qwen3};
        type Change = fn(&mut Architecture);
        let cases: [(ModelFamily, Change, ArchitectureError); 28] = [
            (Llama, |a| a.vocabulary += 1, VocabularyTooLarge),
            (Llama, |a| a.width += 4, TooWide),
            (Llama, |a| a.layers += 1, TooManyLayers),
            (Llama, |a| a.layers = u32::MAX, TooManyLayers),
            (Llama, |a| a.heads += 1, TooManyHeads),
            (Llama, |a| a.kv_heads = u32::MAX, TooManyHeads),
            (Llama, |a| a.head_dim += 2, HeadsTooWide),
            (Llama, |a| a.head_dim = u32::MAX, HeadsTooWide),
            (Llama, |a| a.inner += 4, InnerTooWide),
            (Llama, |a| a.positions += 1, TooManyPositions),
            (Bert, |a| a.positions = 1 + (1 << 14), TooManyPositions),
            (Llama, |a| a.positions = 1, TooFewPositions),
            (Llama, |a| a.kv_heads = 3, UnevenHeads),
            (Bert, |a| a.kv_heads /= 2, UnevenHeads),
            (Bert, |a| a.width -= 4, UnevenHeads),
            (
                Llama,
                |a| (a.heads, a.kv_heads, a.head_dim) = (4, 4, 31),
                UnevenHeads,
            ),
            (Llama, |a| a.inner = 30, UnalignedWidth),
            (Bert, |a| a.activation = Activation::SwiGlu, ForeignActivation),
            (Llama, |a| a.activation = Activation::Gelu, ForeignActivation),
            (Llama, |a| a.pooling = Pooling::First, ForeignPooling),
            (Bert, |a| a.epsilon = f32::NAN.to_bits(), InvalidEpsilon),
            (Qwen3, |a| a.head_dim += 2, HeadsTooWide),
            (Qwen3, |a| a.positions += 1, TooManyPositions),
            (Qwen3, |a| a.positions = 1, TooFewPositions),
            (
                Qwen3,
                |a| (a.heads, a.kv_heads, a.head_dim) = (4, 4, 31),
                UnevenHeads,
            ),
            (Qwen3, |a| a.activation = Activation::Gelu, ForeignActivation),
            (Qwen3, |a| a.pooling = Pooling::First, ForeignPooling),
            (Qwen3, |a| a.epsilon = 0, InvalidEpsilon),
        ];
        for (number, (family, change, expected)) in cases.into_iter().enumerate() {
            assert_eq!(refused(family, change), Some(expected), "{number}");
        }
        let zeros: [fn(&mut Architecture); 8] = [
            |a| a.vocabulary = 0,
            |a| a.width = 0,
            |a| a.layers = 0,
            |a| a.heads = 0,
            |a| a.kv_heads = 0,
            |a| a.head_dim = 0,
            |a| a.inner = 0,
            |a| a.positions = 0,
        ];
        for change in zeros {
            assert_eq!(refused(Llama, change), Some(ZeroDimension));
            assert_eq!(refused(Qwen3, change), Some(ZeroDimension));
        }
        for bits in [0, 1f32.to_bits(), (-1e-5f32).to_bits(), f32::INFINITY.to_bits()] {
            let architecture = Architecture {
                epsilon: bits,
                ..Architecture::largest(Llama)
            };
            assert_eq!(architecture.check(Llama), Err(InvalidEpsilon));
        }
    }
}
