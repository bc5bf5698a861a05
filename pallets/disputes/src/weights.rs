//! What the calls cost. The runtime's figures come from `benchmarking.rs` and are kept with the runtime.

use frame_support::weights::Weight;

/// Weights of the calls and of what time brings about, at the bounds.
pub trait WeightInfo {
    /// A challenge of a full round, the last that there is room for.
    fn challenge() -> Weight;

    /// The longest opening of a product in int8: it is computed again, and who loses is convicted in a full
    /// round.
    fn play_int8_product() -> Weight;

    /// The same of a product in int12.
    fn play_int12_product() -> Weight;

    /// The same of a token that is drawn from the largest vocabulary.
    fn play_choice() -> Weight;

    /// A challenger asks for what it has not got, in a full round.
    fn play_ask() -> Weight;

    /// The longest part of content is found to be what is due, and is kept; a committee that waited for it is
    /// called together.
    fn show_part() -> Weight;

    /// A dispute ends while seats of its committee are taken: a side concedes, root decides, or a party has
    /// lost elsewhere. What was sealed is opened as a vote of all is, and the dispute ends as by time.
    fn end_sitting() -> Weight {
        Self::open_vote().saturating_add(Self::advance_dispute())
    }

    /// Any move: which cell it opens is not known before it is read. A part is shown in a move that reads and
    /// writes what asking for it does.
    fn play() -> Weight {
        Self::play_int8_product()
            .max(Self::play_int12_product())
            .max(Self::play_choice())
            .max(Self::play_ask().saturating_add(Self::show_part()))
            .max(Self::end_sitting())
    }

    /// A side's time is over: it is convicted in a full round, and as many further disputes are opened as
    /// are opened at once.
    fn advance_dispute() -> Weight;

    /// The same, and as many audits end that contradict the loser as end at once.
    fn end_audits() -> Weight;

    /// The last of the most candidates comes, and draws better than another.
    fn join_committee() -> Weight;

    /// The last answer of a vote of all that decides: its loser is convicted, and what
    /// it pays the members is set aside.
    fn reveal_vote() -> Weight;

    /// An answer of the last of the most voters is found to open its seal.
    fn authorize_reveal_vote() -> Weight;

    /// Time is over for coming to a vote of all: it is opened with the most voters.
    fn open_vote() -> Weight;

    /// Time is over for a vote of all that decides nothing: as many are suspended as can be at once, and the
    /// dispute ends undecided.
    fn advance_committee() -> Weight;

    /// As many members of a committee that winds up are paid as are at once.
    fn pay_members() -> Weight;

    /// Whatever time brings about in a committee: a ballot is opened, or ends, or members are paid. One that
    /// decides does the same whether the last answer ends it or time does.
    fn run_committee() -> Weight {
        Self::open_vote()
            .max(Self::reveal_vote())
            .max(Self::advance_committee())
            .max(Self::pay_members())
    }

    /// Whatever time brings about in a dispute, its committee among it.
    fn poll() -> Weight {
        Self::advance_dispute()
            .max(Self::end_audits())
            .max(Self::end_sitting())
            .max(Self::run_committee())
    }
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

    fn play_ask() -> Weight {
        Weight::zero()
    }

    fn show_part() -> Weight {
        Weight::zero()
    }

    fn advance_dispute() -> Weight {
        Weight::zero()
    }

    fn end_audits() -> Weight {
        Weight::zero()
    }

    fn join_committee() -> Weight {
        Weight::zero()
    }

    fn open_vote() -> Weight {
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

    fn pay_members() -> Weight {
        Weight::zero()
    }
}
