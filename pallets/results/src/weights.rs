//! What the calls cost. The runtime's figures come from `benchmarking.rs` and are kept with the runtime.

use frame_support::weights::Weight;

/// Weights of the calls and of what time brings about, at the bounds.
pub trait WeightInfo {
    /// The last commitment of a full round: auditing begins.
    fn commit() -> Weight;

    /// It is known what the auditors of a full round draw themselves with. No round costs more to look at.
    fn seed_auditors() -> Weight;

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
    /// Weight of `reveal_items`, of as many as there can be, that contradicts and finds a dispute to open.
    fn reveal_items() -> Weight;
    /// Weight of letting it in.
    fn authorize_reveal_items() -> Weight;
    /// Weight of `refute_audit`.
    fn refute_audit() -> Weight;

    /// A demand of so many parts of a drawn auditor that is served nothing: the last that a provider of a
    /// full round has a place for.
    fn demand_unserved(parts: u32) -> Weight;

    /// The same of leaves of the largest trace, after the reveal.
    fn demand_leaves(parts: u32) -> Weight;

    /// A demand of so many parts.
    fn demand(parts: u32) -> Weight {
        Self::demand_unserved(parts).max(Self::demand_leaves(parts))
    }

    /// A part of an output is shown before any is revealed, which so many have demanded: it names the output.
    fn supply_output(demands: u32) -> Weight;

    /// The same of a part of the largest input.
    fn supply_input_part(demands: u32) -> Weight;

    /// The same of leaves of the largest trace.
    fn supply_leaves(demands: u32) -> Weight;

    /// A part of any of them.
    fn supply(demands: u32) -> Weight {
        let known = Self::supply_output(demands).max(Self::supply_input_part(demands));
        known.max(Self::supply_leaves(demands))
    }

    /// A demand to the last provider of a full round was in vain: it is convicted.
    fn end_demand() -> Weight;

    /// The most members are found at fault that one step of a full round takes, for silence.
    fn convict_silent() -> Weight;

    /// The same of auditors.
    fn convict_absent() -> Weight;

    /// A commit window that ends with one member having committed: the most reserves are looked at, and every
    /// other seat is filled again.
    fn replace_members() -> Weight;

    /// The end of a full round with `a` audits: every lock is released, and the client is paid because it was
    /// told a wrong result.
    fn close(a: u32, p: u32) -> Weight;

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

    fn seed_auditors() -> Weight {
        Weight::zero()
    }

    fn reveal() -> Weight {
        Weight::zero()
    }

    fn authorize_reveal() -> Weight {
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

    fn demand_unserved(_: u32) -> Weight {
        Weight::zero()
    }

    fn demand_leaves(_: u32) -> Weight {
        Weight::zero()
    }

    fn supply_output(_: u32) -> Weight {
        Weight::zero()
    }

    fn supply_input_part(_: u32) -> Weight {
        Weight::zero()
    }

    fn supply_leaves(_: u32) -> Weight {
        Weight::zero()
    }

    fn end_demand() -> Weight {
        Weight::zero()
    }

    fn convict_silent() -> Weight {
        Weight::zero()
    }

    fn convict_absent() -> Weight {
        Weight::zero()
    }

    fn replace_members() -> Weight {
        Weight::zero()
    }

    fn close(_: u32, _: u32) -> Weight {
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
    fn reveal_items() -> Weight {
        Weight::zero()
    }
    fn authorize_reveal_items() -> Weight {
        Weight::zero()
    }
    fn refute_audit() -> Weight {
        Weight::zero()
    }
}
