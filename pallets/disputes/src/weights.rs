//! What the calls cost. The runtime's figures come from `benchmarking.rs` and are kept with the runtime.

use frame_support::weights::Weight;

/// Weights of the calls and of what time brings about, at the bounds.
pub trait WeightInfo {
    /// A challenge of a full round.
    fn challenge() -> Weight;

    /// The longest opening of a product in int8: it is computed again, and who loses is convicted in a full
    /// round.
    fn play_int8_product() -> Weight;

    /// The same of a product in int12.
    fn play_int12_product() -> Weight;

    /// The same of a token that is drawn from the largest vocabulary.
    fn play_choice() -> Weight;

    /// Any move: which cell it opens is not known before it is read.
    fn play() -> Weight {
        Self::play_int8_product()
            .max(Self::play_int12_product())
            .max(Self::play_choice())
    }

    /// A side's time is over: it is convicted in a full round, and further disputes are opened.
    fn advance_dispute() -> Weight;

    /// The last of the most candidates comes, and draws better than another.
    fn join_committee() -> Weight;

    /// The last answer of a vote of all that decides: as many are suspended as can be at once, and the
    /// dispute ends.
    fn reveal_vote() -> Weight;

    /// An answer of the last of the most voters is found to open its seal.
    fn authorize_reveal_vote() -> Weight;

    /// Time passes for a vote of all: it is opened with the most voters; or it is over, and as the last
    /// answer would.
    fn advance_committee() -> Weight;
}

/// For tests, which do not run out of weight.
impl WeightInfo for () {
    fn challenge() -> Weight {
        Weight::zero()
    }

    fn play_int8_product() -> Weight {
        Weight::zero()
    }

    fn play_int12_product() -> Weight {
        Weight::zero()
    }

    fn play_choice() -> Weight {
        Weight::zero()
    }

    fn advance_dispute() -> Weight {
        Weight::zero()
    }

    fn join_committee() -> Weight {
        Weight::zero()
    }

    fn reveal_vote() -> Weight {
        Weight::zero()
    }

    fn authorize_reveal_vote() -> Weight {
        Weight::zero()
    }

    fn advance_committee() -> Weight {
        Weight::zero()
    }
}
