//! What a token costs, and how fast audits are.

use core::ops::RangeInclusive;

use super::{Activation, Architecture, ModelFamily, ModelManifest, Operation, Tier};
use crate::{
    input::Work,
    limits::{LAYERS_MAX, PART_BYTES},
};

/// Positions at which a decoder's attention is metered, whose tokens look at those before them alone: in a
/// sequence of up to twice as many a token costs no more in the mean. Of a longer one it is metered by
/// itself.
const METERED_POSITIONS: u32 = 2_048;

/// Multiplications a second of the reference machine: 16 cores of a server, without a GPU. Every verifier
/// should have as much; who is three times slower may come too late.
pub const REFERENCE_WORK: u64 = 10_000_000_000;

/// What a model's owner may say of its reference machine: a tenth to a hundred times that.
const WORK_RANGE: RangeInclusive<u64> = REFERENCE_WORK / 10..=REFERENCE_WORK.saturating_mul(100);

/// What is known of a model's audits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelAudits {
    /// Tokens of this work that the reference machine audits in 1,000 seconds.
    pub speed: u32,
    /// Most tokens of an item.
    pub item_tokens: u32,
    /// Bonded stake of verifiers that said that they audit the model, in plancks.
    pub able: u128,
    /// Most parts of content that one of its items is held against ([`ModelManifest::item_parts`]).
    pub item_parts: u32,
    /// Whether there is a referee, who can prove a result wrong: without one no lie ever costs stake.
    pub has_referee: bool,
}

impl Architecture {
    /// Multiplications for a token that are metered. An encoder's tokens look at all of their item: those of
    /// the longest that there is.
    pub fn work_per_token(&self, family: ModelFamily) -> u64 {
        let seen = match family {
            ModelFamily::Bert => self.positions,
            ModelFamily::Llama | ModelFamily::Qwen3 => self.positions.min(METERED_POSITIONS),
        };
        self.work_of_token(family, seen)
    }

    /// Most parts of content that an item's leaves and its output row lie in.
    fn item_parts(&self) -> u32 {
        const _: () = assert!(
            LAYERS_MAX * 32 <= PART_BYTES,
            "an item's leaves are in two parts at most"
        );
        // Rows are of numbers of 4 bytes, and begin with any of them.
        let row = self.width.saturating_mul(4);
        let row_parts = row.saturating_sub(4).div_ceil(PART_BYTES).saturating_add(1);
        row_parts.saturating_add(2)
    }

    /// Multiplications for a token that looks at so many positions.
    fn work_of_token(&self, family: ModelFamily, seen: u32) -> u64 {
        let product = |rows: u32, columns: u32| u64::from(rows).saturating_mul(u64::from(columns));
        let queries = self.heads.saturating_mul(self.head_dim);
        let keys = self.kv_heads.saturating_mul(self.head_dim);
        let inner = match self.activation {
            Activation::SwiGlu => 3,
            Activation::Gelu | Activation::GeluTanh => 2u64,
        };
        // A square, and by what it is scaled and weighed.
        let head_norms = match family {
            ModelFamily::Bert | ModelFamily::Llama => 0,
            ModelFamily::Qwen3 => product(queries.saturating_add(keys), 3),
        };
        let of_layer = product(self.width, queries)
            .saturating_add(product(self.width, keys))
            .saturating_mul(2)
            .saturating_add(product(self.width, self.inner).saturating_mul(inner))
            .saturating_add(product(queries, seen).saturating_mul(2))
            .saturating_add(head_norms);
        let choice = match family {
            ModelFamily::Bert => 0,
            ModelFamily::Llama | ModelFamily::Qwen3 => product(self.width, self.vocabulary),
        };
        of_layer
            .saturating_mul(self.layers.into())
            .saturating_add(choice)
            .max(1)
    }

    /// Multiplications for a token in the mean of an item, or a sequence, of so many: an encoder's looks at
    /// all of it, a decoder's at those before it.
    fn work_in(&self, family: ModelFamily, length: u32) -> u64 {
        let length = length.min(self.positions);
        let seen = match family.operation() {
            Operation::Embed => length,
            Operation::Generate => length.div_ceil(2),
        };
        self.work_of_token(family, seen)
    }

    /// Tokens as they are metered that take the time of `tokens` of items, or sequences, that have `length`
    /// each: a token of a longer one costs more, as it looks at more.
    fn as_metered(&self, family: ModelFamily, tokens: u64, length: u32) -> u64 {
        scaled(tokens, self.work_in(family, length), self.work_per_token(family))
    }

    /// Tokens of a sequence of so many that take the time of `tokens` as they are metered, and no more than
    /// those.
    fn in_sequence(&self, family: ModelFamily, tokens: u64, length: u32) -> u64 {
        let metered = self.work_per_token(family);
        scaled(tokens, metered, self.work_in(family, length).max(metered))
    }
}

/// How many of work `each` take the time of `tokens` of work `known`.
fn scaled(tokens: u64, known: u64, each: u64) -> u64 {
    let done = u128::from(tokens).saturating_mul(known.into());
    let scaled = done.checked_div(each.into());
    scaled.map_or(tokens, |scaled| u64::try_from(scaled).unwrap_or(u64::MAX))
}

impl ModelManifest {
    /// Multiplications for a token: of a model whose dimensions are not known, one for four bytes of weights.
    pub fn work_per_token(&self) -> u64 {
        match &self.exact {
            Some(exact) => exact.architecture.work_per_token(self.family),
            None => (self.weights_bytes / 4).max(1),
        }
    }

    /// Whether there is a referee, who can prove a result wrong: on the exact tier.
    pub fn has_referee(&self) -> bool {
        self.tier == Tier::Exact && self.exact.is_some()
    }

    /// Most parts of content that an item is held against which is computed alone, wherever it lies. None
    /// where no item is: there have to be leaves of each in a trace, as on the exact tier.
    pub fn item_parts(&self) -> u32 {
        let exact = self.exact.as_ref().filter(|_| self.has_referee());
        exact.map_or(0, |exact| exact.architecture.item_parts())
    }

    /// Tokens as they are metered that take the time of `tokens` of items, or sequences, that have `length`
    /// each, as far as the model's dimensions are known.
    pub fn as_metered(&self, tokens: u64, length: u32) -> u64 {
        let exact = self.exact.as_ref();
        exact.map_or(tokens, |exact| {
            exact.architecture.as_metered(self.family, tokens, length)
        })
    }

    /// How many tokens of this work are audited in the time of `speed` as they are metered: fewer of a long
    /// sequence.
    pub fn speed_of(&self, work: &Work, speed: u32) -> u32 {
        let exact = self.exact.as_ref();
        let exact = exact.filter(|_| work.operation == Operation::Generate);
        let tokens = exact.map_or(speed.into(), |exact| {
            let model = &exact.architecture;
            model.in_sequence(self.family, speed.into(), work.units_max)
        });
        u32::try_from(tokens).unwrap_or(speed).max(1)
    }

    /// Most tokens of one item.
    pub fn item_tokens(&self) -> u32 {
        let known = self.exact.as_ref().map(|exact| exact.architecture.positions);
        known.unwrap_or(METERED_POSITIONS)
    }
}

/// How many tokens of a model that takes `work` multiplications for each are audited in 1,000 seconds: on the
/// reference machine, and the least and the most that its owner may say.
pub fn audit_speeds(work: u64) -> (u32, RangeInclusive<u32>) {
    let speed = |per_second: u64| {
        let tokens = per_second.saturating_mul(1_000).checked_div(work).unwrap_or(0);
        u32::try_from(tokens).unwrap_or(u32::MAX).max(1)
    };
    let range = speed(*WORK_RANGE.start())..=speed(*WORK_RANGE.end());
    (speed(REFERENCE_WORK), range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        limits::{AUDIT_ITEMS_MAX, DEMAND_PARTS_MAX},
        task::AuditTerms,
    };

    /// As large as BERT large, with so many positions.
    fn encoder(positions: u32) -> Architecture {
        Architecture {
            vocabulary: 250_002,
            width: 1_024,
            layers: 24,
            heads: 16,
            kv_heads: 16,
            head_dim: 64,
            inner: 4_096,
            positions,
            ..Architecture::largest(ModelFamily::Bert)
        }
    }

    #[test]
    fn an_encoders_token_costs_what_it_does_in_the_longest_item() {
        let products = 4 * 1_024 * 1_024 + 2 * 1_024 * 4_096u64;
        for positions in [512, 2_048, 8_192, 65_536] {
            let attention = 2 * 1_024 * u64::from(positions);
            let work = encoder(positions).work_per_token(ModelFamily::Bert);
            assert_eq!(work, 24 * (products + attention), "{positions}");
        }
        // 31 tokens of the longest items a second with 512 positions, and 2.8 with 65,536.
        let speed = |positions| audit_speeds(encoder(positions).work_per_token(ModelFamily::Bert)).0;
        assert_eq!((speed(512), speed(65_536)), (30_566, 2_838));
    }

    #[test]
    fn a_decoders_token_costs_no_more_for_a_longer_context() {
        let decoder = |positions| Architecture {
            positions,
            ..Architecture::largest(ModelFamily::Llama)
        };
        let work = |positions| decoder(positions).work_per_token(ModelFamily::Llama);
        assert_eq!(work(2_048), work(131_072));
        assert!(work(512) < work(2_048));
    }

    #[test]
    fn one_demand_names_all_that_items_are_held_against_wherever_they_lie() {
        for width in (8..=16_384).step_by(8) {
            let model = Architecture {
                width,
                ..encoder(512)
            };
            let row = width * 4;
            let starts = (0..PART_BYTES).step_by(4);
            // Leaves in two parts at most, and the row in these.
            let each = starts.map(|start| (start + row - 1) / PART_BYTES + 3).max();
            assert_eq!(Some(model.item_parts()), each, "{width}");
            let terms = AuditTerms {
                item_parts: model.item_parts(),
                ..AuditTerms::default()
            };
            let items = terms.items_max();
            assert!((1..=AUDIT_ITEMS_MAX).contains(&items), "{width}: {items}");
            assert!(terms.demand_parts(items) <= DEMAND_PARTS_MAX, "{width}: {items}");
            assert!(items == AUDIT_ITEMS_MAX || terms.demand_parts(items + 1) > DEMAND_PARTS_MAX);
            // Models of the usual width lose nothing by it.
            assert!(width > 2_048 || items == AUDIT_ITEMS_MAX, "{width}: {items}");
        }
    }

    #[test]
    fn norms_of_heads_are_metered() {
        let model = Architecture::largest(ModelFamily::Llama);
        let [plain, normed] =
            [ModelFamily::Llama, ModelFamily::Qwen3].map(|family| model.work_per_token(family));
        // As many queries as keys.
        let heads = 2 * u64::from(model.heads * model.head_dim);
        assert_eq!(normed - plain, u64::from(model.layers) * heads * 3);
    }

    /// Of 135 million weights, with a long context.
    fn small_decoder() -> Architecture {
        Architecture {
            vocabulary: 49_152,
            width: 576,
            layers: 30,
            heads: 9,
            kv_heads: 3,
            head_dim: 64,
            inner: 1_536,
            positions: 131_072,
            ..Architecture::largest(ModelFamily::Llama)
        }
    }

    #[test]
    fn a_long_sequence_is_metered_by_its_length() {
        let model = small_decoder();
        let in_sequence = |length| model.in_sequence(ModelFamily::Llama, 1_000_000, length);
        assert_eq!((in_sequence(1), in_sequence(4_096)), (1_000_000, 1_000_000));
        // A token looks at 4,000 in the mean, and at 65,536 where there is no more room.
        let work = |seen| model.work_of_token(ModelFamily::Llama, seen);
        let expected = |seen| 1_000_000 * work(2_048) / work(seen);
        assert_eq!(in_sequence(8_000), expected(4_000));
        assert_eq!(in_sequence(u32::MAX), expected(65_536));
        assert!(in_sequence(8_000) < 800_000 && in_sequence(u32::MAX) < 100_000);
    }

    #[test]
    fn what_was_measured_on_short_items_counts_for_less_of_long_ones() {
        let long = |tokens, length| encoder(8_192).as_metered(ModelFamily::Bert, tokens, length);
        // 13.6 million multiplications a layer with 512 positions, and 29.4 million with 8,192.
        assert_eq!(long(1_000_000, 512), 464_285);
        assert_eq!(long(1_000_000, 8_192), 1_000_000);
        assert_eq!(long(u64::MAX, 8_192), u64::MAX);
        let short = |length| encoder(512).as_metered(ModelFamily::Bert, 1_000_000, length);
        assert_eq!((short(512), short(4_096)), (1_000_000, 1_000_000));
        let decoder = |length| small_decoder().as_metered(ModelFamily::Llama, 1_000_000, length);
        // 205 million multiplications a token among 2,048 positions, and 143 million among 256.
        assert_eq!((decoder(512), decoder(4_096)), (698_275, 1_000_000));
    }
}
