//! What a token costs, and how fast audits are.

use core::ops::RangeInclusive;

use super::{Activation, Architecture, ModelFamily, ModelManifest, Tier};

/// Positions at which a decoder's attention is metered, whose tokens look at those before them alone: in a
/// sequence of up to twice as many a token costs no more in the mean. What a longer one costs, the slack in
/// windows has to cover.
const METERED_POSITIONS: u32 = 2_048;

/// Multiplications a second of the reference machine: 16 cores of a server, without a GPU. Every verifier
/// should have as much; who is three times slower may come too late.
pub const REFERENCE_WORK: u64 = 10_000_000_000;

/// What a model's owner may say of its reference machine: a tenth to a hundred times that.
const WORK_RANGE: RangeInclusive<u64> = REFERENCE_WORK / 10..=REFERENCE_WORK.saturating_mul(100);

/// What is known of a model's audits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelAudits {
    /// Tokens that the reference machine audits in 1,000 seconds.
    pub speed: u32,
    /// Most tokens of an item.
    pub item_tokens: u32,
    /// Bonded stake of verifiers that said that they audit the model, in plancks.
    pub able: u128,
    /// Whether an item can be computed alone, and held against what a provider says of it.
    pub items_alone: bool,
    /// Whether there is a referee, who can prove a result wrong: without one no lie ever costs stake.
    pub has_referee: bool,
}

impl Architecture {
    /// Multiplications for a token that are metered. An encoder's tokens look at all of their item: those of
    /// the longest that there is.
    pub fn work_per_token(&self, family: ModelFamily) -> u64 {
        let seen = match family {
            ModelFamily::Bert => self.positions,
            ModelFamily::Llama => self.positions.min(METERED_POSITIONS),
        };
        self.work_of_token(family, seen)
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
        let of_layer = product(self.width, queries)
            .saturating_add(product(self.width, keys))
            .saturating_mul(2)
            .saturating_add(product(self.width, self.inner).saturating_mul(inner))
            .saturating_add(product(queries, seen).saturating_mul(2));
        let choice = match family {
            ModelFamily::Bert => 0,
            ModelFamily::Llama => product(self.width, self.vocabulary),
        };
        of_layer
            .saturating_mul(self.layers.into())
            .saturating_add(choice)
            .max(1)
    }

    /// Tokens of the longest items that are audited in the time in which `tokens` are of items that have
    /// `length` each: an encoder's token of a longer one costs more, as it looks at more.
    fn in_longest_items(&self, family: ModelFamily, tokens: u64, length: u32) -> u64 {
        if family != ModelFamily::Bert {
            return tokens;
        }
        let measured = self.work_of_token(family, length.min(self.positions));
        let done = u128::from(tokens).saturating_mul(measured.into());
        let longest = done.checked_div(self.work_per_token(family).into());
        longest.map_or(tokens, |tokens| u64::try_from(tokens).unwrap_or(u64::MAX))
    }
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

    /// Whether an item can be computed alone, and held against what a provider says of it: on the exact tier,
    /// where a trace has leaves of each.
    pub fn has_items_alone(&self) -> bool {
        self.has_referee()
    }

    /// Tokens of the longest items that are audited in the time in which `tokens` are of items that have
    /// `length` each, as far as the model's dimensions are known.
    pub fn in_longest_items(&self, tokens: u64, length: u32) -> u64 {
        let exact = self.exact.as_ref();
        exact.map_or(tokens, |exact| {
            exact.architecture.in_longest_items(self.family, tokens, length)
        })
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
    fn what_was_measured_on_short_items_counts_for_less_of_long_ones() {
        let long = |tokens, length| encoder(8_192).in_longest_items(ModelFamily::Bert, tokens, length);
        // 13.6 million multiplications a layer with 512 positions, and 29.4 million with 8,192.
        assert_eq!(long(1_000_000, 512), 464_285);
        assert_eq!(long(1_000_000, 8_192), 1_000_000);
        assert_eq!(long(u64::MAX, 8_192), u64::MAX);
        let short = |length| encoder(512).in_longest_items(ModelFamily::Bert, 1_000_000, length);
        assert_eq!((short(512), short(4_096)), (1_000_000, 1_000_000));
        let decoder = Architecture::largest(ModelFamily::Llama);
        assert_eq!(decoder.in_longest_items(ModelFamily::Llama, 1_000, 512), 1_000);
    }
}
