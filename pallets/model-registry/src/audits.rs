//! Who can audit a model, and how fast its reference machine is.

use frame_support::ensure;
use sp_runtime::{DispatchError, DispatchResult, traits::Saturating};
use surety_types::{
    ModelId,
    input::Work,
    model::{ModelAudits, audit_speeds},
    stake::Role,
    traits::StakeLedger,
};

use crate::{AuditSpeeds, Auditors, BalanceOf, Config, Error, Event, Models, Pallet};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_set_audit_speed(model: ModelId, tokens: u32) -> DispatchResult {
        let entry = Models::<T>::get(model).ok_or(Error::<T>::UnknownModel)?;
        let (_, plausible) = audit_speeds(entry.manifest.work_per_token());
        ensure!(plausible.contains(&tokens), Error::<T>::ImplausibleSpeed);
        AuditSpeeds::<T>::insert(model, tokens);
        Self::deposit_event(Event::AuditSpeedSet { model, tokens });
        Ok(())
    }

    /// Where there are as many as can be, the one with least stake makes room for one with more. What was
    /// offered of a model that is gone can be taken back.
    pub(crate) fn do_offer_audits(agent: &T::AccountId, model: ModelId, offered: bool) -> DispatchResult {
        let verifier = T::Stake::stash_of(agent, Role::Verifier).ok_or(Error::<T>::NotVerifierAgent)?;
        let is_known = !offered || Models::<T>::contains_key(model);
        ensure!(is_known, Error::<T>::UnknownModel);
        let mut auditors = Auditors::<T>::get(model);
        let place = auditors.iter().position(|known| *known == verifier);
        match (place, offered) {
            (Some(_), true) | (None, false) => return Err(Error::<T>::NothingChanges.into()),
            (Some(place), false) => {
                auditors.swap_remove(place);
            }
            (None, true) => {
                if auditors.is_full() {
                    let stake = |stash: &T::AccountId| T::Stake::bonded(stash, Role::Verifier);
                    let places = auditors.iter().enumerate();
                    let least = places.map(|(place, stash)| (stake(stash), place)).min();
                    let least = least.filter(|(least, _)| *least < stake(&verifier));
                    let (_, place) = least.ok_or(Error::<T>::TooManyAuditors)?;
                    auditors.swap_remove(place);
                }
                let room = auditors.try_push(verifier.clone());
                ensure!(room.is_ok(), Error::<T>::TooManyAuditors);
            }
        }
        if auditors.is_empty() {
            Auditors::<T>::remove(model);
        } else {
            Auditors::<T>::insert(model, auditors);
        }
        Self::deposit_event(Event::AuditsOffered {
            model,
            verifier,
            offered,
        });
        Ok(())
    }

    /// Who has not the stake free for a bond audits nothing of it, whatever it has said.
    pub(crate) fn audits_of(model: &ModelId, work: &Work, bond: u128) -> Result<ModelAudits, DispatchError> {
        let manifest = Models::<T>::get(model).ok_or(Error::<T>::UnknownModel)?.manifest;
        let (reference, _) = audit_speeds(manifest.work_per_token());
        let mut able = BalanceOf::<T>::default();
        for stash in Auditors::<T>::get(model) {
            let free = T::Stake::unlocked_stake(&stash).try_into().unwrap_or(u128::MAX);
            if bond <= free {
                able = able.saturating_add(T::Stake::bonded(&stash, Role::Verifier));
            }
        }
        let speed = AuditSpeeds::<T>::get(model).unwrap_or(reference);
        Ok(ModelAudits {
            speed: manifest.speed_of(work, speed),
            item_tokens: manifest.item_tokens(),
            item_parts: manifest.item_parts(),
            has_referee: manifest.has_referee(),
            able: able.try_into().unwrap_or(u128::MAX),
        })
    }
}
