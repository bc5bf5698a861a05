//! What a payer does with its channel, and how channels end.

use frame_support::{ensure, traits::Get};
use sp_runtime::{ArithmeticError, DispatchError, DispatchResult};
use surety_channels::{ChannelId, Counted, Demanded, Purse, Time};

use crate::{
    CHANNELS_MAX, Channel, Channels, ChannelsBy, ChannelsOf, Config, Error, Event, NextChannel,
    PAYEE_CHANNELS_MAX, Pallet, Payers, Standings, asset,
};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_open(
        payer: T::AccountId,
        payee: T::AccountId,
        key: T::AccountId,
        deposit: u128,
        expiry: Time,
    ) -> DispatchResult {
        ensure!(payer != payee, Error::<T>::OwnChannel);
        ensure!(deposit >= T::MinDeposit::get(), Error::<T>::DepositTooSmall);
        Self::check_expiry(expiry, Self::now())?;
        let mut provider = Standings::<T>::get(&payee).ok_or(Error::<T>::NotStanding)?;
        ensure!(provider.lock > 0, Error::<T>::NotStanding);
        Self::ensure_takes_new(&payee, &provider)?;
        ensure!(provider.channels < PAYEE_CHANNELS_MAX, Error::<T>::PayeeFull);
        let mut of_payer = Payers::<T>::get(&payer);
        ensure!(of_payer.channels < CHANNELS_MAX, Error::<T>::TooManyChannels);
        of_payer.channels = of_payer.channels.saturating_add(1);
        provider.channels = provider.channels.saturating_add(1);
        let id = NextChannel::<T>::get();
        NextChannel::<T>::put(id.checked_add(1).ok_or(ArithmeticError::Overflow)?);
        asset::put::<T>(&payer, deposit)?;
        let channel = Channel {
            payer: payer.clone(),
            payee: payee.clone(),
            key,
            expiry,
            batch: provider.next,
            counted: Counted::new(provider.next),
            demanded: Demanded::default(),
            purse: Purse::new(id, deposit, Self::now()),
        };
        Channels::<T>::insert(id, channel);
        ChannelsOf::<T>::insert(&payee, id, ());
        ChannelsBy::<T>::insert(&payer, id, ());
        Payers::<T>::insert(&payer, of_payer);
        Standings::<T>::insert(&payee, provider);
        Self::deposit_event(Event::Opened {
            channel: id,
            payer,
            payee,
        });
        Ok(())
    }

    pub(crate) fn do_top_up(payer: T::AccountId, id: ChannelId, amount: u128) -> DispatchResult {
        let mut channel = Self::own_channel(&payer, id)?;
        let provider = Standings::<T>::get(&channel.payee).ok_or(Error::<T>::NotStanding)?;
        ensure!(provider.since.pays(id), Error::<T>::NotStanding);
        Self::ensure_takes_new(&channel.payee, &provider)?;
        let topped_up = channel.purse.top_up(amount, Self::now(), T::SupplyWindow::get());
        topped_up.map_err(|_| Error::<T>::Closing)?;
        asset::put::<T>(&payer, amount)?;
        Channels::<T>::insert(id, channel);
        Self::deposit_event(Event::Changed { channel: id });
        Ok(())
    }

    pub(crate) fn do_extend(payer: T::AccountId, id: ChannelId, expiry: Time) -> DispatchResult {
        let mut channel = Self::own_channel(&payer, id)?;
        ensure!(channel.purse.closing.is_none(), Error::<T>::Closing);
        Self::check_expiry(expiry, channel.expiry.max(Self::now()))?;
        // One from before a fault pays nothing.
        let provider = Standings::<T>::get(&channel.payee).ok_or(Error::<T>::NotStanding)?;
        ensure!(provider.since.pays(id), Error::<T>::NotStanding);
        Self::ensure_takes_new(&channel.payee, &provider)?;
        channel.expiry = expiry;
        Channels::<T>::insert(id, channel);
        Self::deposit_event(Event::Changed { channel: id });
        Ok(())
    }

    pub(crate) fn do_close(payer: T::AccountId, id: ChannelId) -> DispatchResult {
        let mut channel = Self::own_channel(&payer, id)?;
        let until = Self::now().saturating_add(T::ClosingPeriod::get());
        channel.purse.close(until);
        let is_void = Standings::<T>::get(&channel.payee).is_some_and(|payee| !payee.since.pays(id));
        let refund = match is_void {
            true => asset::pay_back::<T>(&payer, channel.purse.give_back(until, 0))?,
            false => 0,
        };
        let until = channel.purse.closing.unwrap_or_default();
        Channels::<T>::insert(id, channel);
        Self::deposit_event(Event::Closing {
            channel: id,
            until,
            refund,
        });
        Ok(())
    }

    pub(crate) fn do_close_agreed(who: T::AccountId, id: ChannelId) -> DispatchResult {
        let mut channel = Channels::<T>::get(id).ok_or(Error::<T>::NoChannel)?;
        Self::ensure_payee(&who, &channel.payee)?;
        let until = Self::now().saturating_add(T::ClosingPeriod::get());
        // Whoever is paid by itself would have its record here for the fee otherwise.
        let refund = channel.purse.give_back(until, T::MinDeposit::get());
        let refund = asset::pay_back::<T>(&channel.payer, refund)?;
        let until = channel.purse.last(channel.expiry);
        Channels::<T>::insert(id, channel);
        Self::deposit_event(Event::ClosedByPayee {
            channel: id,
            refund,
            until,
        });
        Ok(())
    }

    /// Ends a channel that is over.
    pub(crate) fn do_end(id: ChannelId) -> DispatchResult {
        let channel = Channels::<T>::get(id).ok_or(Error::<T>::NoChannel)?;
        let refund = channel.purse.refund(Self::now(), channel.expiry);
        let refund = refund.ok_or(Error::<T>::NotOver)?;
        let refund = asset::pay_back::<T>(&channel.payer, refund)?;
        Channels::<T>::remove(id);
        ChannelsOf::<T>::remove(&channel.payee, id);
        ChannelsBy::<T>::remove(&channel.payer, id);
        Payers::<T>::mutate_exists(&channel.payer, |payer| {
            let mut left = payer.take().unwrap_or_default();
            left.channels = left.channels.saturating_sub(1);
            *payer = (left.channels > 0).then_some(left);
        });
        Standings::<T>::mutate_extant(&channel.payee, |provider| {
            provider.channels = provider.channels.saturating_sub(1);
        });
        Self::deposit_event(Event::Ended { channel: id, refund });
        Ok(())
    }

    fn own_channel(payer: &T::AccountId, id: ChannelId) -> Result<Channel<T::AccountId>, DispatchError> {
        let channel = Channels::<T>::get(id).ok_or(Error::<T>::NoChannel)?;
        ensure!(channel.payer == *payer, Error::<T>::NotPayer);
        Ok(channel)
    }

    fn check_expiry(expiry: Time, after: Time) -> DispatchResult {
        let last = Self::now().saturating_add(T::MaxLife::get());
        ensure!(after < expiry && expiry <= last, Error::<T>::BadExpiry);
        Ok(())
    }
}
