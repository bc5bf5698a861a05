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
use sp_runtime::traits::BlockNumberProvider;
use sp_staking::SessionIndex;
use surety_types::traits::{Jail, PoolLedger, ServicePay};

use crate::{BeganAt, Candidates, ChillReason, Config, Event, Pallet, RunningKeys, Services, StoodStill};

/// Validators and the keys that they sign with.
type Keyed<T> = Vec<(
    <T as frame_system::Config>::AccountId,
    <T as pallet_session::Config>::Keys,
)>;

impl<T: Config> Pallet<T> {
    /// The candidates with most stake behind them that can work, in the order of their accounts. Of two with
    /// as much the one with the lower account comes first.
    pub(crate) fn elect() -> Keyed<T> {
        let least = T::MinSelfBond::get();
        let mut ranked: Vec<_> = Candidates::<T>::iter()
            .filter(|(operator, candidate)| candidate.wants_to && T::Pools::own(operator) >= least)
            .map(|(operator, _)| (Reverse(T::Pools::backing(&operator)), operator))
            .collect();
        ranked.sort_unstable();
        let most = usize::try_from(T::ValidatorsMax::get()).unwrap_or(usize::MAX);
        let mut elected: Keyed<T> = ranked
            .into_iter()
            .filter(|(_, operator)| !T::Jail::is_jailed(operator))
            .filter_map(|(_, operator)| Session::<T>::load_keys(&operator).map(|keys| (operator, keys)))
            .take(most)
            .collect();
        // Whose stake moves within the set changes nothing.
        elected.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        elected
    }

    /// Where there are as many candidates as there may be, those with less of their own than `MinSelfBond`
    /// make room, but for who works now or was not paid yet: whatever stays in a pool would else keep a place
    /// for good.
    fn make_room() {
        if Candidates::<T>::count() < T::CandidatesMax::get() {
            return;
        }
        let least = T::MinSelfBond::get();
        let running = RunningKeys::<T>::get();
        let works = |operator: &T::AccountId| running.iter().any(|(other, _)| other == operator);
        let idle: Vec<_> = Candidates::<T>::iter_keys()
            .filter(|operator| T::Pools::own(operator) < least)
            .filter(|operator| !Services::<T>::contains_key(operator) && !works(operator))
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

    /// The validators of the session `index`, if they or their keys are not those of the session before it.
    pub(crate) fn plan(index: SessionIndex) -> Option<Vec<(T::AccountId, ())>> {
        Self::make_room();
        let elected = (!StoodStill::<T>::get()).then(Self::elect).unwrap_or_default();
        let least = usize::try_from(T::ValidatorsMin::get().max(1)).unwrap_or(usize::MAX);
        let next = if elected.len() < least {
            Self::same_again()
        } else {
            elected
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
        historical::Pallet::<T>::prune_up_to(index.saturating_sub(T::SessionsKept::get()));
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
