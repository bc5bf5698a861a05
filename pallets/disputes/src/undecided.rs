//! What becomes of the parties of a dispute that nobody could decide.

use sp_runtime::traits::Zero;
use surety_pallet_results::{Pallet as Results, RoundOf};
use surety_types::{
    TaskId,
    trust::{DisputeId, FaultKind, Party},
};

use crate::{Config, DisputeOf, Event, Pallet, bond};

impl<T: Config> Pallet<T> {
    /// Nobody loses stake. Half of a challenger's bond is burned where all places are taken: others have
    /// their whole window again then, and nobody is to move it on for nothing. Of providers that contradict
    /// each other or their auditor neither is paid: nobody knows who is right. A challenge by anybody else
    /// does not take away a provider's pay, or it would be too cheap; nor does an auditor that defends
    /// itself, because its provider has lost already.
    pub(crate) fn leave_undecided(round: &mut RoundOf<T>, id: DisputeId, dispute: &DisputeOf<T>) {
        let task = dispute.task;
        match (&dispute.defender, &dispute.challenger) {
            (_, Party::Account(challenger)) if Self::are_places_taken(round) => {
                Self::halve_bond(round, id, dispute, challenger);
            }
            (_, Party::Account(challenger)) => Self::release_challenger(round, id, dispute, challenger),
            (Party::Provider(one), Party::Provider(other)) => {
                Self::discredit(task, round, one, other);
            }
            (defender, challenger) => {
                if let Party::Provider(provider) = defender {
                    Results::<T>::convict_provider(task, round, provider, FaultKind::Undecided, None);
                }
                for party in [defender, challenger] {
                    if let Party::Auditor { verifier, provider } = party {
                        Results::<T>::release_audit(round, verifier, provider);
                    }
                }
            }
        }
    }

    /// After a dispute of two providers that nobody could decide. Where that is so of one of them for the
    /// second time it says nothing of the other, but no third one plays it.
    fn discredit(task: TaskId, round: &mut RoundOf<T>, one: &T::AccountId, other: &T::AccountId) {
        let mut known = false;
        for member in &mut round.members {
            if (member.provider == *one || member.provider == *other) && member.fault.is_some() {
                member.undecided_again = true;
                known = true;
            }
        }
        if !known {
            for provider in [one, other] {
                Results::<T>::convict_provider(task, round, provider, FaultKind::Undecided, None);
            }
        }
    }

    /// Burns half of a challenger's bond, but for what is a committee's.
    fn halve_bond(round: &mut RoundOf<T>, id: DisputeId, dispute: &DisputeOf<T>, challenger: &T::AccountId) {
        let (burned, amount) = bond::halve::<T>(challenger, dispute.bond, dispute.committee_bond);
        Self::deposit_event(Event::BondForfeited {
            dispute: id,
            challenger: challenger.clone(),
            defender: dispute.defender.account().clone(),
            awarded: Zero::zero(),
            burned,
        });
        Self::deposit_event(Event::BondReturned {
            dispute: id,
            challenger: challenger.clone(),
            amount,
        });
        Self::free_place(dispute.task, round);
    }
}
