//! How long auditors have.

use sp_arithmetic::traits::SaturatedConversion;
use surety_types::{
    input::{ITEM_WORDS, WORD_BYTES},
    model::Operation,
    task::AuditTerms,
};

/// How many times longer than on the reference machine an audit may take.
pub const WINDOW_SLACK: u64 = 3;

/// How many times longer it may take on a machine that begins to offer audits: the rest of the window is for
/// fetching, and for what else there is to do.
pub const OFFERED_SLACK: u64 = WINDOW_SLACK - 1;

/// Seconds to which speeds are stated: a large model audits less than a token in one.
const SPEED_SECONDS: u64 = 1_000;

/// Bytes a second at which what an audit needs is fetched at least.
const FETCHED_BYTES: u64 = 256 * 1024;

/// Most bytes of a generation's output, which its auditors fetch.
const GENERATION_BYTES: u64 = 16 * 1024;

/// The work that can be in a task, as it is known before anybody has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditWork {
    /// What is asked of the model.
    pub operation: Operation,
    /// Most units (items, or tokens) that are paid for.
    pub units_max: u32,
    /// Size of the input, in bytes.
    pub input_bytes: u32,
    /// Most tokens of an item.
    pub item_tokens: u32,
    /// Tokens that the reference machine audits in 1,000 seconds.
    pub speed: u32,
}

impl AuditWork {
    /// That of a task of so many units.
    pub fn of(terms: &AuditTerms, units_max: u32) -> Self {
        Self {
            operation: terms.operation,
            units_max,
            input_bytes: terms.input_bytes,
            item_tokens: terms.item_tokens,
            speed: terms.speed,
        }
    }

    /// Most tokens that go through the model in an audit of `items`. Items may have ids in common, so that
    /// the size of the input bounds nothing.
    pub fn tokens(&self, items: u32) -> u64 {
        match self.operation {
            // Whatever an auditor looks at, what came before has to be computed.
            Operation::Generate => self.units_max.into(),
            Operation::Embed => u64::from(items.min(self.units_max)).saturating_mul(self.item_tokens.into()),
        }
    }

    /// Tokens that a client pays for at least: those of a generation, or as many as there are ids of items
    /// that have none in common.
    fn tokens_least(&self) -> u64 {
        let table = self.units_max.saturating_mul(ITEM_WORDS);
        let ids = (self.input_bytes / WORD_BYTES).saturating_sub(table);
        let all = self.tokens(u32::MAX);
        match self.operation {
            Operation::Generate => all,
            Operation::Embed => all.min(ids.max(self.units_max).into()),
        }
    }

    /// What all of the work is worth at least, where a second of the reference machine is worth `second`
    /// plancks. Rounded up.
    pub fn worth(&self, second: u128) -> u128 {
        tokens_worth(self.tokens_least(), self.speed, second)
    }

    /// Seconds for an audit of `items`: those of the reference machine three times over, and those for
    /// fetching what it takes. Rounded up.
    pub fn seconds(&self, items: u32) -> u32 {
        let computing = self
            .tokens(items)
            .saturating_mul(WINDOW_SLACK.saturating_mul(SPEED_SECONDS))
            .div_ceil(u64::from(self.speed).max(1));
        let output = match self.operation {
            Operation::Embed => 0,
            Operation::Generate => GENERATION_BYTES,
        };
        let fetching = output
            .saturating_add(self.input_bytes.into())
            .div_ceil(FETCHED_BYTES);
        computing.saturating_add(fetching).saturated_into()
    }
}

/// What so many tokens are worth of a model whose reference machine audits `speed` of them in 1,000 seconds,
/// where a second of that machine is worth `second` plancks. Rounded up.
pub fn tokens_worth(tokens: u64, speed: u32, second: u128) -> u128 {
    u128::from(tokens)
        .saturating_mul(SPEED_SECONDS.into())
        .saturating_mul(second)
        .div_ceil(u128::from(speed).max(1))
}
