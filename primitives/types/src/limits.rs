//! Bounds that the storage layout depends on. Everything else is a runtime parameter.

/// Most providers that compute one task (redundancy `k`).
pub const REDUNDANCY_MAX: u32 = 16;

/// Most bids one task takes. The shortlist is twice the redundancy; the rest are reserves.
pub const BIDS_MAX: u32 = 64;

/// Longest endpoint address, in bytes of its text form.
pub const MULTIADDR_BYTES_MAX: u32 = 192;

/// Most addresses a peer may publish.
pub const ENDPOINTS_MAX: u32 = 4;

/// Longest name of a device or a model, in bytes of UTF-8.
pub const NAME_BYTES_MAX: u32 = 64;

/// Most operations one model offers.
pub const OPERATIONS_MAX: u32 = 8;

/// Most unbonding chunks a stash may have open at once.
pub const UNLOCKING_MAX: u32 = 32;
