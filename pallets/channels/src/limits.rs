//! How much there may be of what others read, or wait for.

/// Most channels of a payer.
pub const CHANNELS_MAX: u32 = 128;

/// Most channels that pay a provider: all are read by its worker, and by payers that ask what its lock
/// covers. An answer with all of them is below the 15 MiB that a node answers with at most.
pub const PAYEE_CHANNELS_MAX: u32 = 16_384;

/// Most batches of a provider that are not final.
pub const UNFINISHED_MAX: u32 = 64;

/// Most verifiers that audit a batch.
pub const ANNOUNCED_MAX: u32 = 64;

/// Most receipts of a provider that are disputed at once.
pub const DISPUTED_MAX: u32 = 16;

/// Most that somebody demands of a provider at once, receipts and points: more points than anybody expects to
/// draw on all that a provider has open.
pub const DEMANDS_MAX: u32 = 32;

/// Newest final batches of a provider that its record is made of. All offers are read in each block by
/// whoever buys or sells: no more of each provider than it usually has that are not final.
pub const SETTLED_MAX: u32 = 16;

/// Most offers of a provider.
pub const OFFERS_MAX: u32 = 16;

/// Most offers of one operation of a model: all are read by whoever chooses one.
pub const POOL_OFFERS_MAX: u32 = 1_024;

/// Most places of an offer: more requests at once than a machine answers.
pub const PLACES_MAX: u32 = 1_024;

/// Most agents whose statements bind a provider.
pub const SIGNERS_MAX: u32 = 8;
