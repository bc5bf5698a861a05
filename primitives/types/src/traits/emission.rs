//! Glue about what is minted for work.

/// What work is worth beyond its price. Provided by emission.
pub trait WorkPay<AccountId, Balance> {
    /// Work of `provider` is settled, and `fee` is the part of the protocol fee that was taken for its price:
    /// of all providers of a task together never more than was taken. In the same call as that, so that
    /// nobody can change how fees are shared in between.
    fn note_settled(provider: &AccountId, fee: Balance);
}

/// Nobody is paid.
impl<AccountId, Balance> WorkPay<AccountId, Balance> for () {
    fn note_settled(_: &AccountId, _: Balance) {}
}

/// Who can be relied on. Provided by trust-lock.
pub trait Reliability<AccountId> {
    /// Deadlines that `stash` has missed and not made good for by work.
    fn missed(stash: &AccountId) -> u32;
}
