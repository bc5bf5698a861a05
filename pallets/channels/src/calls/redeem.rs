//! What the payee gets.

use frame_support::{ensure, traits::Get};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{DispatchError, DispatchResult};
use surety_channels::{
    BatchNumber, ChannelId, ChannelOpening, ProvenChannel, SignedVoucher, demandable_for, paid_after,
};
use surety_types::{stake::Role, traits::StakeLedger};

use crate::{
    BatchRecord, Batches, Channel, Channels, Config, Error, Event, Openings, Pallet, SignedBytes, Standings,
    asset,
};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_redeem(signed: SignedVoucher<T::AccountId>, batches: Openings) -> DispatchResult {
        let id = signed.voucher.channel;
        let mut channel = Channels::<T>::get(id).ok_or(Error::<T>::NoChannel)?;
        Self::ensure_pays(&channel)?;
        let now = Self::now();
        // What its payee has to wait for keeps its voucher alive: it could not have been redeemed before.
        let at = if now <= channel.purse.held_until {
            now.min(signed.voucher.expiry)
        } else {
            now
        };
        let checked = signed.voucher.check(&channel.terms(), at);
        checked.map_err(|_| Error::<T>::BadVoucher)?;
        let genesis = T::Genesis::get();
        let is_signed = signed.is_signed(&genesis, &channel.key, T::Signatures::is_signed);
        ensure!(is_signed, Error::<T>::BadSignature);
        let (redeem_by, supply) = (T::RedeemBy::get(), T::SupplyWindow::get());
        for (batch, opening) in batches {
            let (record, shown) = Self::shown(&channel, batch, &opening)?;
            let (window, next) = (record.window, channel.purse.next);
            let counted = channel.purse.count(&window, &shown, now, supply);
            counted.map_err(|_| Error::<T>::NotCounted)?;
            let is_in_time = now <= window.counted_until(redeem_by, supply);
            ensure!(is_in_time, Error::<T>::NotCounted);
            // Who holds something else has longer to ask for it than its provider to show it.
            channel.counted.note(now, next, batch, demandable_for(supply));
            channel.batch = channel.batch.max(batch);
            // A payee can make up receipts: what was committed too late holds back nothing.
            if record.begun <= channel.purse.last(channel.expiry) {
                let due = now.saturating_add(paid_after(supply));
                channel.purse.wait(due.saturating_add(supply));
            }
        }
        // Nothing while a receipt is demanded: whoever shows it is paid that then.
        let amount = channel.purse.redeem(signed.voucher.sum, now, supply);
        if amount > 0 {
            let paid = asset::pay::<T>(&channel.payee, amount)?;
            ensure!(paid, Error::<T>::PayeeCannotTake);
        }
        Channels::<T>::insert(id, channel);
        Self::deposit_event(Event::Redeemed {
            channel: id,
            paid: amount,
        });
        Ok(())
    }

    pub(crate) fn do_hold(
        who: T::AccountId,
        id: ChannelId,
        batch: BatchNumber,
        opening: ChannelOpening,
    ) -> DispatchResult {
        let mut channel = Channels::<T>::get(id).ok_or(Error::<T>::NoChannel)?;
        Self::ensure_payee(&who, &channel.payee)?;
        Self::ensure_pays(&channel)?;
        let (record, shown) = Self::shown(&channel, batch, &opening)?;
        // New batches do not keep a payer's money for ever. One that was in time does until it is final.
        let is_in_time = record.begun <= channel.purse.last(channel.expiry);
        ensure!(is_in_time, Error::<T>::NotHeld);
        let until = Self::now().saturating_add(T::ClosingPeriod::get());
        let held = channel.purse.hold(&record.window, &shown, Self::now(), until);
        held.map_err(|_| Error::<T>::NotHeld)?;
        Channels::<T>::insert(id, channel);
        Self::deposit_event(Event::Held { channel: id, until });
        Ok(())
    }

    fn shown(
        channel: &Channel<T::AccountId>,
        batch: BatchNumber,
        opening: &ChannelOpening,
    ) -> Result<(BatchRecord<BlockNumberFor<T>>, ProvenChannel), DispatchError> {
        let record = Batches::<T>::get(&channel.payee, batch).ok_or(Error::<T>::NoBatch)?;
        let shown = opening.verify(&record.window.root);
        Ok((record, shown.ok_or(Error::<T>::BadOpening)?))
    }

    /// What was not paid when its provider was convicted is not paid any more.
    fn ensure_pays(channel: &Channel<T::AccountId>) -> DispatchResult {
        let provider = Standings::<T>::get(&channel.payee).ok_or(Error::<T>::NotStanding)?;
        ensure!(provider.since.pays(channel.purse.channel), Error::<T>::TooLate);
        Ok(())
    }

    /// A demand of a receipt is over. When it was shown, and nothing else of the channel is demanded, what
    /// that has kept back is paid now: nobody can come in between with another demand.
    pub(crate) fn end_hold(id: ChannelId, is_shown: bool) {
        let Some(mut channel) = Channels::<T>::get(id) else {
            return;
        };
        channel.purse.end_demand();
        if is_shown && Self::ensure_pays(&channel).is_ok() {
            let mut after = channel.purse;
            let paid = after.redeem(0, Self::now(), T::SupplyWindow::get());
            // Where its account cannot take that, or the pot lacks it, it can be redeemed later.
            if paid > 0 && asset::pay::<T>(&channel.payee, paid).unwrap_or(false) {
                channel.purse = after;
                Self::deposit_event(Event::Redeemed { channel: id, paid });
            }
        }
        Channels::<T>::insert(id, channel);
    }

    pub(crate) fn ensure_payee(who: &T::AccountId, payee: &T::AccountId) -> DispatchResult {
        let is_payee = who == payee || T::Stake::stash_of(who, Role::Provider).as_ref() == Some(payee);
        ensure!(is_payee, Error::<T>::NotPayee);
        Ok(())
    }
}
