//! How much at once, and when.

use std::time::Duration;

use surety_channel_calls::payee::PayeeLimits;
use surety_channels::Time;

use crate::watch::ONE;

/// How much is done at once, and when. What is sold and for how much is what the stash has offered on the
/// chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallsConfig {
    /// Requests that are answered at once, of all models.
    pub open_max: usize,
    /// Requests that are kept whole ([`PayeeLimits::calls_max`]).
    pub calls_max: usize,
    /// All others that are kept ([`PayeeLimits::kept_max`]).
    pub kept_max: usize,
    /// Most tokens of a chunk: what is computed ahead of the payment for it, for each open request.
    pub chunk_tokens_max: u32,
    /// Most items of a request for vectors. They are said, and paid for, together.
    pub items_max: u32,
    /// For so long an answer waits for its next voucher before it is cut.
    pub patience: Duration,
    /// For so long a request is answered in all: the receipts of its channel that come after it wait for it.
    pub answer_max: Duration,
    /// Threads that compute.
    pub threads: usize,
    /// Memory for keys and values of all generations of a model, in bytes.
    pub memory_bytes_max: u64,
    /// Whether tokens are chosen on the devices that engines have, if they have any. Each statement about
    /// them binds the provider, and only some of them are computed again before
    /// (`docs/adr/0047-answers-from-a-device.md`): off by default (`docs/cuda.md`).
    pub device_serves: bool,
    /// Finalised blocks for which a receipt waits for others at most before they are batched.
    pub batch_blocks: u32,
    /// Most receipts of a batch.
    pub batch_receipts_max: u32,
    /// Less is not redeemed before it has to be, in plancks: it has to be worth the fee.
    pub redeem_min: u128,
    /// So long before its last time everything is done, on the chain's clock.
    pub margin: Time,
    /// While what is deposited is more than the cap, channels over which nothing was asked for so long are
    /// given back, in finalised blocks: others see that their money asks for nothing only then.
    pub silent_blocks: u32,
    /// What the author of a block gets on top of the fee where something is pressing, in plancks.
    pub tip_max: u128,
    /// What calls to the chain cost while blocks are not full: so much stays free for them.
    pub fees: Fees,
}

/// What calls to the chain cost, in plancks. It tells no fee of a call before there is one: these are what
/// they come to where its multiplier of fees is one, and a tenth more for the next blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fees {
    /// Showing a receipt, with a segment of its output.
    pub show: u128,
    /// All that demands over a channel may cost in the end beyond what they pay, for each request that it has
    /// had, of 32 at most: the price of a demand rises with their number, until it pays more than showing
    /// costs. No less than two showings, as two accounts may demand each receipt at once.
    pub demand: u128,
    /// Showing a receipt that a verifier has drawn, with what was asked.
    pub show_point: u128,
    /// A batch, its levy aside.
    pub batch: u128,
    /// Showing a part of 8 KiB of what a receipt was computed from, or says.
    pub part: u128,
}

impl Fees {
    /// In the next block, by the chain's multiplier of fees; never less than these.
    pub(crate) fn at(self, multiplier: u128) -> Self {
        let multiplier = multiplier.max(ONE);
        let each = |fee: u128| fee.saturating_mul(multiplier).checked_div(ONE).unwrap_or(fee);
        Self {
            show: each(self.show),
            demand: each(self.demand),
            show_point: each(self.show_point),
            batch: each(self.batch),
            part: each(self.part),
        }
    }
}

impl Default for Fees {
    fn default() -> Self {
        Self {
            show: 6_000_000_000,
            demand: 13_000_000_000,
            show_point: 13_000_000_000,
            batch: 4_000_000_000,
            part: 10_000_000_000,
        }
    }
}

impl Default for CallsConfig {
    fn default() -> Self {
        let limits = PayeeLimits::default();
        Self {
            open_max: 64,
            calls_max: limits.calls_max,
            kept_max: limits.kept_max,
            chunk_tokens_max: 64,
            items_max: 256,
            // A gateway that restarts is back before.
            patience: Duration::from_secs(30),
            // The longest generation at 7 tokens a second.
            answer_max: Duration::from_secs(600),
            threads: 1,
            memory_bytes_max: 4 << 30,
            device_serves: false,
            // Ten minutes: a batch costs a fee, and a levy's transfer.
            batch_blocks: 300,
            batch_receipts_max: 1 << 16,
            // A hundredth of a SURE.
            redeem_min: 10_000_000_000,
            margin: 30,
            // Six hours.
            silent_blocks: 10_800,
            tip_max: 0,
            fees: Fees::default(),
        }
    }
}
