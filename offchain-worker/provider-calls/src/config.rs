//! How much at once, and when.

use std::time::Duration;

use surety_channels::Time;

/// How much is done at once, and when. What is sold and for how much is what the stash has offered on the
/// chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallsConfig {
    /// Requests that are answered at once, of all models.
    pub open_max: usize,
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
}

impl Default for CallsConfig {
    fn default() -> Self {
        Self {
            open_max: 64,
            chunk_tokens_max: 64,
            items_max: 256,
            // A gateway that restarts is back before.
            patience: Duration::from_secs(30),
            // The longest generation at 7 tokens a second.
            answer_max: Duration::from_secs(600),
            threads: 1,
            memory_bytes_max: 4 << 30,
            // Ten minutes: a batch costs a fee, and a levy's transfer.
            batch_blocks: 300,
            batch_receipts_max: 1 << 16,
            // A hundredth of a SURE.
            redeem_min: 10_000_000_000,
            margin: 30,
            // Six hours.
            silent_blocks: 10_800,
            tip_max: 0,
        }
    }
}
