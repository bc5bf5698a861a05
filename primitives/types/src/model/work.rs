//! What a token costs, and how fast audits are.

use core::ops::RangeInclusive;

use super::{Activation, Architecture, ModelFamily, ModelManifest, Tier};

/// Positions at which attention is metered: a token of a longer sequence costs more than is metered here, as
/// the slack in windows has to cover.
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
}

impl Architecture {
    /// Multiplications for a token, at a long sequence's positions.
    pub fn work_per_token(&self, family: ModelFamily) -> u64 {
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
            .saturating_add(product(queries, self.positions.min(METERED_POSITIONS)).saturating_mul(2));
        let choice = match family {
            ModelFamily::Bert => 0,
            ModelFamily::Llama => product(self.width, self.vocabulary),
        };
        of_layer
            .saturating_mul(self.layers.into())
            .saturating_add(choice)
            .max(1)
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

    /// Whether an item can be computed alone, and held against what a provider says of it: on the exact tier,
    /// where a trace has leaves of each.
    pub fn has_items_alone(&self) -> bool {
        self.tier == Tier::Exact && self.exact.is_some()
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
