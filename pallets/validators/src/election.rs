//! Who validates in which session: the candidates with most stake behind them.
//!
//! Session asks as each session begins who works in the one after it. `None` says that nothing changes: then
//! GRANDPA's set, of which light clients need every change, stays as it is, and the root of the historical
//! trie is copied. So `None` is the answer only where the keys are the same, too: a copied root has the old
//! ones.

use alloc::vec::Vec;
use core::cmp::Reverse;
use frame_support::traits::Get;
use pallet_session::{NextKeys, Pallet as Session, historical};
use sp_runtime::{
    Permill,
    traits::{BlockNumberProvider, Zero},
};
use sp_staking::SessionIndex;
use surety_types::traits::{Jail, PoolLedger, ServicePay};

use crate::{BeganAt, Candidates, ChillReason, Config, Event, Pallet, RunningKeys, Services, StoodStill};

/// One unproven candidate for so many proven ones at most, and one at least. Finality can do without
/// `(n - 1) / 3` of n, so that from three proven ones on no number of names that are never there stops it.
const UNPROVEN_PART: usize = 10;

/// Each time somebody joins or leaves a pool after a slash, the others' stake may be worth a planck less: who
/// has had `MinSelfBond` stays a candidate down to so much of it.
const KEPT_PART: Permill = Permill::from_parts(999_000);

/// Validators and the keys that they sign with.
type Keyed<T> = Vec<(
    <T as frame_system::Config>::AccountId,
    <T as pallet_session::Config>::Keys,
)>;

fn validators_max<T: Config>() -> usize {
    usize::try_from(T::ValidatorsMax::get()).unwrap_or(usize::MAX)
}

fn take_one(room: &mut usize) -> bool {
    let left = room.checked_sub(1);
    *room = left.unwrap_or_default();
    left.is_some()
}

fn sort<AccountId: Ord, Keys>(keyed: &mut [(AccountId, Keys)]) {
    keyed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
}

impl<T: Config> Pallet<T> {
    /// The candidates with most stake behind them that can work, in the order of their accounts. Of two with
    /// as much the one with the lower account comes first. Of those that have made no block yet, or were
    /// absent since, few are taken at once.
    pub(crate) fn elect() -> Keyed<T> {
        let mut ranked: Vec<_> = Candidates::<T>::iter()
            .filter(|(operator, candidate)| candidate.wants_to && Self::has_bond(operator))
            .map(|(operator, candidate)| (Reverse(T::Pools::backing(&operator)), operator, candidate.proven))
            .collect();
        ranked.sort_unstable();
        let able: Vec<_> = ranked
            .into_iter()
            .filter(|(_, operator, _)| !T::Jail::is_jailed(operator))
            .filter_map(|(_, operator, proven)| Some((Session::<T>::load_keys(&operator)?, operator, proven)))
            .collect();
        let most = validators_max::<T>();
        // Those alone that can be elected: names without keys would make room for others.
        let proven = able.iter().filter(|(_, _, proven)| *proven).count().min(most);
        let mut room = proven.checked_div(UNPROVEN_PART).unwrap_or_default().max(1);
        let mut elected: Keyed<T> = able
            .into_iter()
            .filter(|(_, _, proven)| *proven || take_one(&mut room))
            .map(|(keys, operator, _)| (operator, keys))
            .take(most)
            .collect();
        // Whose stake moves within the set changes nothing.
        sort(&mut elected);
        elected
    }

    pub(crate) fn has_bond(operator: &T::AccountId) -> bool {
        T::Pools::own(operator) >= KEPT_PART.mul_ceil(T::MinSelfBond::get())
    }

    fn is_proven(operator: &T::AccountId) -> bool {
        Candidates::<T>::get(operator).is_some_and(|candidate| candidate.proven)
    }

    /// Has those elected no more that have taken all of their own out. When they come back they say so again:
    /// they may have done something else meanwhile, and be in jail for that.
    fn stop_who_left() {
        let left: Vec<_> = Candidates::<T>::iter()
            .filter(|(operator, candidate)| candidate.wants_to && T::Pools::own(operator).is_zero())
            .map(|(operator, _)| operator)
            .collect();
        for operator in left {
            Self::stop(&operator, ChillReason::NoBond);
        }
    }

    /// Where there are as many candidates as there may be, those with less of their own than `MinSelfBond`
    /// make room, but for who works now, was not paid yet, or may be when its slash is vetoed: whatever stays
    /// in a pool would else keep a place for good.
    fn make_room() {
        if Candidates::<T>::count() < T::CandidatesMax::get() {
            return;
        }
        let running = RunningKeys::<T>::get();
        let works = |operator: &T::AccountId| running.iter().any(|(other, _)| other == operator);
        let may_be_owed =
            |operator: &T::AccountId| Services::<T>::contains_key(operator) || T::Pools::is_pending(operator);
        let idle: Vec<_> = Candidates::<T>::iter_keys()
            .filter(|operator| !Self::has_bond(operator))
            .filter(|operator| !works(operator) && !may_be_owed(operator))
            .collect();
        for operator in idle {
            Self::stop(&operator, ChillReason::NoBond);
            Candidates::<T>::remove(&operator);
        }
    }

    /// Those who are planned already, as far as they have keys still.
    fn same_again() -> Keyed<T> {
        Session::<T>::queued_keys()
            .into_iter()
            .filter_map(|(operator, _)| Session::<T>::load_keys(&operator).map(|keys| (operator, keys)))
            .collect()
    }

    /// The elected, who are too few, with those who are planned already. Of these go, as far as finality can
    /// do without them, the unproven ones, if one is elected for them to make room for, and those that have
    /// nothing to lose.
    fn with_planned(mut elected: Keyed<T>) -> Keyed<T> {
        let mut planned = Self::same_again();
        let newcomer = elected.iter().any(|(operator, _)| !Self::is_proven(operator));
        let mut going: Vec<_> = planned
            .iter()
            .filter(|planned| !elected.contains(planned))
            .map(|(operator, _)| (Self::is_proven(operator), operator.clone()))
            .filter(|(proven, operator)| (newcomer && !proven) || T::Pools::own(operator).is_zero())
            .collect();
        going.sort_unstable();
        going.truncate(planned.len().saturating_sub(1).checked_div(3).unwrap_or_default());
        planned
            .retain(|planned| !elected.contains(planned) && going.iter().all(|(_, one)| *one != planned.0));
        elected.append(&mut planned);
        elected.truncate(validators_max::<T>());
        sort(&mut elected);
        elected
    }

    /// The validators of the session `index`, if they or their keys are not those of the session before it.
    pub(crate) fn plan(index: SessionIndex) -> Option<Vec<(T::AccountId, ())>> {
        Self::stop_who_left();
        Self::make_room();
        let least = usize::try_from(T::ValidatorsMin::get().max(1)).unwrap_or(usize::MAX);
        let next = if StoodStill::<T>::get() {
            Self::same_again()
        } else {
            let elected = Self::elect();
            if elected.len() < least {
                Self::with_planned(elected)
            } else {
                elected
            }
        };
        // While the next session is planned, Session has the keys of the one that begins there.
        if next == Session::<T>::queued_keys() {
            return None;
        }
        Self::deposit_event(Event::Elected {
            session: index,
            validators: u32::try_from(next.len()).unwrap_or(u32::MAX),
        });
        Some(next.into_iter().map(|(operator, _)| (operator, ())).collect())
    }

    pub(crate) fn begin_session() {
        // Session has put nobody else there yet.
        RunningKeys::<T>::put(Session::<T>::queued_keys());
        BeganAt::<T>::put(T::BlockNumberProvider::current_block_number());
        Self::keep_disabled();
    }

    /// Counts a session, and forgets what can be reported no more.
    pub(crate) fn close_session(index: SessionIndex) {
        Self::count_session();
        Self::forget_punished(index);
        historical::Pallet::<T>::prune_up_to(index.saturating_add(1).saturating_sub(T::SessionsKept::get()));
    }

    fn finish_session(index: SessionIndex) {
        Self::close_session(index);
        T::Pay::session_ended(index);
    }
}

impl<T: Config> historical::SessionManager<T::AccountId, ()> for Pallet<T> {
    fn new_session(index: SessionIndex) -> Option<Vec<(T::AccountId, ())>> {
        Self::plan(index)
    }

    /// Those with keys in the genesis configuration: there are no pools yet. Without this answer the first
    /// sessions would have no historical root, and nobody could be held to what it signed in them.
    fn new_session_genesis(_: SessionIndex) -> Option<Vec<(T::AccountId, ())>> {
        let mut validators: Vec<_> = NextKeys::<T>::iter_keys().collect();
        validators.sort_unstable();
        Some(validators.into_iter().map(|validator| (validator, ())).collect())
    }

    fn start_session(_: SessionIndex) {
        Self::begin_session();
    }

    fn end_session(index: SessionIndex) {
        Self::finish_session(index);
    }
}

impl<T: Config> pallet_session::SessionManager<T::AccountId> for Pallet<T> {
    fn new_session(index: SessionIndex) -> Option<Vec<T::AccountId>> {
        let planned = <Self as historical::SessionManager<_, _>>::new_session(index);
        planned.map(|validators| validators.into_iter().map(|(validator, ())| validator).collect())
    }

    fn new_session_genesis(index: SessionIndex) -> Option<Vec<T::AccountId>> {
        let planned = <Self as historical::SessionManager<_, _>>::new_session_genesis(index);
        planned.map(|validators| validators.into_iter().map(|(validator, ())| validator).collect())
    }

    fn start_session(_: SessionIndex) {
        Self::begin_session();
    }

    fn end_session(index: SessionIndex) {
        Self::finish_session(index);
    }
}
