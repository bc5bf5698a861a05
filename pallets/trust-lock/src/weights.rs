//! What the calls cost. The runtime's figures come from `benchmarking.rs` and are kept with the runtime.

use frame_support::weights::Weight;

/// Weights of the calls and of what time brings about, at the bounds.
pub trait WeightInfo {
    /// The last commitment of a full round: the audit window opens.
    fn commit() -> Weight;

    /// The last reveal of a full round: the verdict is reached.
    fn reveal() -> Weight;

    /// An opening of a full round is found to be right.
    fn authorize_reveal() -> Weight;

    /// The last audit that a full round takes.
    fn announce_audit() -> Weight;

    /// An audit of a full round that differs: its dispute is opened.
    fn reveal_audit() -> Weight;

    /// The opening of the last audit of a full round is found to be right.
    fn authorize_reveal_audit() -> Weight;

    /// A challenge of a full round.
    fn challenge() -> Weight;

    /// A demand to a provider of a full round.
    fn demand() -> Weight;

    /// The largest piece of output is supplied.
    fn supply() -> Weight;

    /// The longest opening of a product in int8: it is computed again, and who loses is convicted in a full round.
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

    /// The most members are found at fault that one step of a full round takes, for silence.
    fn convict_silent() -> Weight;

    /// The same of auditors.
    fn convict_absent() -> Weight;

    /// A side's time is over: it is convicted in a full round, and further disputes are opened.
    fn advance_dispute() -> Weight;

    /// A slash is vetoed, among the most convictions that are kept.
    fn cancel_slash() -> Weight;

    /// A slash is carried out, among the most convictions that are kept.
    fn carry_out_slash() -> Weight;

    /// A commit window that ends with nobody having committed: the most reserves are looked at, and every seat is
    /// filled again.
    fn replace_members() -> Weight;

    /// The end of a full round: every lock is released.
    fn close() -> Weight;

    /// The last of the most candidates comes, and draws better than another.
    fn join_committee() -> Weight;

    /// The last answer of a vote of all that decides: as many are suspended as can be at once, and the dispute ends.
    fn reveal_vote() -> Weight;

    /// An answer of the last of the most voters is found to open its seal.
    fn authorize_reveal_vote() -> Weight;

    /// Time passes for a vote of all: it is opened with the most voters; or it is over, and as the last answer would.
    fn advance_committee() -> Weight;

    /// Two statements are checked, and a provider of a full round is convicted.
    fn report_equivocation() -> Weight;

    /// A demand of input by a member of a full round.
    fn demand_input() -> Weight;

    /// A piece of the largest input is supplied to a full round.
    fn supply_input() -> Weight;

    /// The end of a full round whose input was withheld: every lock is released.
    fn withhold_input() -> Weight;
}

/// For tests, which do not run out of weight.
impl WeightInfo for () {
    fn commit() -> Weight {
        Weight::zero()
    }

    fn reveal() -> Weight {
        Weight::zero()
    }

    fn authorize_reveal() -> Weight {
        Weight::zero()
    }

    fn replace_members() -> Weight {
        Weight::zero()
    }

    fn close() -> Weight {
        Weight::zero()
    }

    fn announce_audit() -> Weight {
        Weight::zero()
    }

    fn reveal_audit() -> Weight {
        Weight::zero()
    }

    fn authorize_reveal_audit() -> Weight {
        Weight::zero()
    }

    fn challenge() -> Weight {
        Weight::zero()
    }

    fn demand() -> Weight {
        Weight::zero()
    }

    fn supply() -> Weight {
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

    fn cancel_slash() -> Weight {
        Weight::zero()
    }

    fn carry_out_slash() -> Weight {
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

    fn convict_silent() -> Weight {
        Weight::zero()
    }

    fn convict_absent() -> Weight {
        Weight::zero()
    }

    fn report_equivocation() -> Weight {
        Weight::zero()
    }

    fn demand_input() -> Weight {
        Weight::zero()
    }

    fn supply_input() -> Weight {
        Weight::zero()
    }

    fn withhold_input() -> Weight {
        Weight::zero()
    }
}
