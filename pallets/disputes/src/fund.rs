//! What members of committees are paid, and by whom.
//!
//! ```text
//!  dispute is decided: collect ─> what is sealed is opened ─> suspend_some ─> pay_some ─> the rest goes back
//! ```
//!
//! Whoever loses a dispute that a committee sat about pays its members for computing, on top of what losing
//! costs: out of stake that nothing has locked, and of the lock behind the dispute where that is not enough;
//! a challenger out of its bond. It is set aside in the block in which the dispute is decided, so that
//! conceding, losing elsewhere or leaving saves nothing of it. Nobody pays for a dispute that nobody could
//! decide, because nobody knows who should.

use alloc::vec::Vec;
use frame_support::traits::Get;
use sp_runtime::traits::{Saturating, Zero};
use surety_audit_economics::CommitteePay;
use surety_dispute_game::{
    bisection::Side,
    committee::{CANDIDATES_EXPECTED, CommitteeFund},
    quorum_streak::{SEATS, STREAK},
};
use surety_pallet_results::{DisputeContexts, DisputeReferee, Pallet as Results, RoundOf, asset};
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{
    TaskId,
    task::ResultClaim,
    traits::StakeLedger,
    trust::{DisputeId, Party, SlashId},
};

use crate::{CommitteeOf, Committees, Config, DisputeOf, Event, FundOf, HoldReason, Pallet, PartyOf};

/// Most members that are paid in one step. The rest are by the agenda, in the next blocks.
pub const PAID_AT_ONCE: u32 = 8;

impl<T: Config> Pallet<T> {
    /// What members of a committee are paid at most, all of them together, where their work is for a task
    /// that pays `price`.
    pub(crate) fn committee_price(round: &RoundOf<T>, price: T::Balance) -> T::Balance {
        let cost = Results::<T>::computing_cost(round, price);
        committee_pay::<T>().pot(cost.into()).into()
    }

    /// What a challenger of this claim locks for a committee: nothing where no cell needs one.
    pub(crate) fn committee_bond(
        task: TaskId,
        round: &RoundOf<T>,
        (claim, price): (&ResultClaim, T::Balance),
    ) -> T::Balance {
        let context = DisputeContexts::<T>::get(task);
        if context.is_some_and(|context| T::Referee::needs_committee(&context, claim)) {
            Self::committee_price(round, price)
        } else {
            Zero::zero()
        }
    }

    /// Has the committee of a dispute that is decided wind up, if it has any work to be paid for: what is
    /// sealed is opened, and the loser pays. Says whether there is one.
    ///
    /// `claim_holds`: whether the defender was right, where that is known.
    pub(crate) fn wind_up(
        round: &mut RoundOf<T>,
        id: DisputeId,
        dispute: &DisputeOf<T>,
        (loser, claim_holds): (Side, Option<bool>),
    ) -> bool {
        let Some(mut committee) = Committees::<T>::get(id) else {
            return false;
        };
        if committee.candidates.is_empty() && !committee.state.has_members() {
            return false;
        }
        if committee.state.decision().is_none() {
            committee.dismiss();
            Self::deposit_event(Event::CommitteeDismissed { dispute: id });
        }
        let fund = Self::collect(round, dispute, loser, claim_holds);
        Self::deposit_event(Event::CommitteeFunded {
            dispute: id,
            payer: fund.payer.clone(),
            pot: fund.pot,
        });
        committee.fund = Some(fund);
        committee.ticked_at = TrustLock::<T>::now();
        Committees::<T>::insert(id, committee);
        true
    }

    /// Sets aside what the loser of a dispute pays its committee.
    fn collect(
        round: &mut RoundOf<T>,
        dispute: &DisputeOf<T>,
        loser: Side,
        claim_holds: Option<bool>,
    ) -> FundOf<T> {
        let wanted = Self::committee_price(round, price_of::<T>(round, &dispute.defender));
        let party = match loser {
            Side::Defender => &dispute.defender,
            Side::Challenger => &dispute.challenger,
        };
        let payer = party.account().clone();
        let is_stake = !matches!(party, Party::Account(_));
        let (free, from_lock) = if is_stake {
            let free = T::Stake::unlocked_stake(&payer).min(wanted);
            let free = T::Stake::lock(&payer, free).map_or_else(|_| Zero::zero(), |()| free);
            (free, Self::take_lock(round, party, wanted.saturating_sub(free)))
        } else {
            (dispute.committee_bond.min(wanted), Zero::zero())
        };
        let pot = free.saturating_add(from_lock);
        CommitteeFund {
            payer,
            is_stake,
            pot,
            left: pot,
            claim_holds,
            paid: 0,
            from_lock,
            slash: None,
        }
    }

    /// Takes up to `amount` of what a party has locked for the round. It stays locked.
    fn take_lock(round: &mut RoundOf<T>, party: &PartyOf<T>, amount: T::Balance) -> T::Balance {
        let lock = match party {
            Party::Provider(provider) => {
                let mut members = round.members.iter_mut();
                let member = members.find(|member| member.provider == *provider);
                member.map(|member| &mut member.lock)
            }
            Party::Auditor { verifier, provider } => {
                Results::<T>::audit(round, verifier, provider).map(|audit| &mut audit.bond)
            }
            Party::Account(_) => None,
        };
        lock.map_or_else(Zero::zero, |lock| {
            let taken = amount.min(*lock);
            *lock = lock.saturating_sub(taken);
            taken
        })
    }

    /// Does what is due next of a committee that winds up. Says whether that was the last.
    pub(crate) fn go_on_winding_up(
        id: DisputeId,
        dispute: &mut DisputeOf<T>,
        committee: &mut CommitteeOf<T>,
    ) -> bool {
        if committee.state.decision().is_none() {
            let blocks = Self::committee_blocks(committee);
            committee.ticked_at = committee.ticked_at.max(TrustLock::<T>::now());
            committee.state.tick(blocks);
            return false;
        }
        if Self::has_absent(committee) {
            Self::suspend_some(committee);
            return false;
        }
        let more = Self::pay_some(id, committee);
        if let Some(fund) = &committee.fund
            && !fund.is_stake
        {
            dispute.bond = fund.left;
        }
        !more
    }

    /// Pays the next few members that gave the right answer. Says whether there are more.
    fn pay_some(id: DisputeId, committee: &mut CommitteeOf<T>) -> bool {
        let members = right_members::<T>(committee);
        let Some(fund) = &mut committee.fund else {
            return false;
        };
        let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let each = committee_pay::<T>().each(fund.pot.into(), count).into();
        let next = members.iter().skip(fund.paid as usize);
        let payees: Vec<_> = next.take(PAID_AT_ONCE as usize).cloned().collect();
        let paying = u32::try_from(payees.len()).unwrap_or(u32::MAX);
        if payees.is_empty() || T::Balance::is_zero(&each) {
            return false;
        }
        let sum = each.saturating_mul(paying.into());
        if fund.is_stake {
            let shares: Vec<_> = payees.into_iter().map(|member| (member, each)).collect();
            T::Stake::seize(&fund.payer, sum, Zero::zero(), &shares);
        } else {
            for member in &payees {
                asset::hand_over::<T>(HoldReason::Challenge, &fund.payer, member, each);
            }
        }
        fund.left = fund.left.saturating_sub(sum);
        fund.paid = fund.paid.saturating_add(paying);
        Self::deposit_event(Event::MembersPaid {
            dispute: id,
            members: paying,
            each,
        });
        fund.paid < count
    }

    /// Notes what the loser is slashed with, whose committee winds up.
    pub(crate) fn note_slash(id: DisputeId, slash: Option<SlashId>) {
        Committees::<T>::mutate_extant(id, |committee| {
            if let Some(fund) = &mut committee.fund {
                fund.slash = slash;
            }
        });
    }

    /// Gives back what no member has earned. What of that was behind the dispute is lost all the same, or
    /// whoever pays a small committee would lose less than without one.
    pub(crate) fn return_rest(committee: &CommitteeOf<T>) {
        let Some(fund) = &committee.fund else {
            return;
        };
        if !fund.is_stake {
            asset::release::<T>(HoldReason::Challenge, &fund.payer, fund.left);
            return;
        }
        let lost = fund.left.min(fund.from_lock);
        T::Stake::unlock(&fund.payer, fund.left.saturating_sub(lost));
        if !fund
            .slash
            .is_some_and(|slash| TrustLock::<T>::raise_slash(slash, lost))
        {
            T::Stake::seize(&fund.payer, lost, Zero::zero(), &[]);
        }
    }
}

/// Who gave the answer that was decided. Where the dispute was decided elsewhere, that which most gave of all
/// that agree with what is known.
fn right_members<T: Config>(committee: &CommitteeOf<T>) -> Vec<T::AccountId> {
    let decided = committee.state.decision().and_then(|decision| decision.value());
    let value = decided.or_else(|| {
        let holds = committee.fund.as_ref().and_then(|fund| fund.claim_holds);
        let fits = |value: &_| holds.is_none_or(|holds| (*value == committee.claimed) == holds);
        committee.state.most_given(fits)
    });
    value.map_or_else(Vec::new, |value| committee.state.gave(&value))
}

fn committee_pay<T: Config>() -> CommitteePay {
    CommitteePay {
        premium: T::AuditPremium::get(),
        computing: CANDIDATES_EXPECTED.saturating_mul(STREAK),
        seats: SEATS.saturating_mul(STREAK),
    }
}

/// What the provider is paid whose result somebody defends.
fn price_of<T: Config>(round: &RoundOf<T>, defender: &PartyOf<T>) -> T::Balance {
    let (Party::Provider(provider) | Party::Auditor { provider, .. } | Party::Account(provider)) = defender;
    let mut members = round.members.iter();
    let member = members.find(|member| member.provider == *provider);
    member.map_or_else(Zero::zero, |member| member.price)
}
