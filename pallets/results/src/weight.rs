//! What blocks have to have room for, and whether they do.

use frame_support::{dispatch::DispatchClass, traits::Get, weights::Weight};
use frame_system::pallet_prelude::BlockNumberFor;
use surety_types::limits;

use crate::{Config, Pallet, RoundDisputes, SHOWN_MAX, WeightInfo};

impl<T: Config> Pallet<T> {
    /// Most that one [`TaskTrust::advance`](surety_types::traits::TaskTrust::advance) costs, without what it
    /// asks of [`Config::Outcome`].
    ///
    /// A change of phase that a call can bring as well costs no more than the call.
    pub fn advance_weight() -> Weight {
        Self::phase_weight()
            .max(<T as Config>::WeightInfo::close(limits::AUDITS_MAX, SHOWN_MAX))
            .max(<T as Config>::WeightInfo::withhold_input())
    }

    /// The same of one by which the round goes on.
    pub(crate) fn phase_weight() -> Weight {
        <T as Config>::WeightInfo::replace_members()
            .max(<T as Config>::WeightInfo::commit())
            .max(<T as Config>::WeightInfo::seed_auditors())
            .max(<T as Config>::WeightInfo::reveal())
            .max(<T as Config>::WeightInfo::convict_silent())
            .max(<T as Config>::WeightInfo::convict_absent())
            .max(<T as Config>::WeightInfo::end_demand())
            .max(T::Disputes::poll_weight())
    }

    /// Most that one of the calls weighs for which blocks keep room, because somebody loses money for being
    /// late with it: moves, seats in committees, commitments, announcements, demands, what is shown,
    /// openings, reports of equivocation, refutations.
    pub fn answer_weight() -> Weight {
        let reveal =
            <T as Config>::WeightInfo::reveal().saturating_add(<T as Config>::WeightInfo::authorize_reveal());
        let audit = <T as Config>::WeightInfo::reveal_audit()
            .saturating_add(<T as Config>::WeightInfo::authorize_reveal_audit());
        let items = <T as Config>::WeightInfo::reveal_items()
            .saturating_add(<T as Config>::WeightInfo::authorize_reveal_items());
        <T as Config>::WeightInfo::commit()
            .max(<T as Config>::WeightInfo::announce_audit())
            .max(items)
            .max(<T as Config>::WeightInfo::demand(limits::DEMAND_PARTS_MAX))
            .max(<T as Config>::WeightInfo::supply(limits::DEMANDS_MAX))
            .max(<T as Config>::WeightInfo::demand_input())
            .max(<T as Config>::WeightInfo::supply_input())
            .max(<T as Config>::WeightInfo::report_equivocation())
            .max(<T as Config>::WeightInfo::refute_audit())
            .max(reveal)
            .max(audit)
            .max(T::Disputes::answer_weight())
    }

    /// Checks relations between the parameters on which progress depends.
    #[cfg(feature = "std")]
    pub(crate) fn check_configuration() {
        let one = BlockNumberFor::<T>::from(1u32);
        assert!(
            T::InputWindow::get() >= one,
            "a client needs time to supply its input"
        );
        let seals = [
            (T::OpeningWindow::get(), T::RevealWindow::get()),
            (T::OpeningWindow::get(), T::ChallengeWindow::get()),
        ];
        assert!(
            seals.iter().all(|(long, short)| long >= short),
            "who was late needs no less time to open what it sealed than who was not"
        );
        let block = T::BlockWeights::get().max_block;
        let dearest = Self::advance_weight().max(Self::answer_weight());
        let room = T::BlockWeights::get().get(DispatchClass::Operational).reserved;
        assert!(
            room.is_none_or(|room| Self::answer_weight().all_lte(room)),
            "blocks keep too little room for an answer"
        );
        assert!(
            dearest.saturating_mul(4).all_lte(block),
            "one step of a round ({dearest:?}) takes more than a quarter of a block ({block:?})"
        );
    }
}
