//! The life of an escrow.

use frame_support::{dispatch::DispatchResult, ensure, storage::with_storage_layer, traits::Get};
use sp_runtime::{
    ArithmeticError, DispatchError, SaturatedConversion, Saturating,
    traits::{CheckedAdd, CheckedSub, Zero},
};
use surety_emission::fee_part;
use surety_types::{
    TaskId,
    task::Assignment,
    traits::{Escrow, Settlement, WorkPay},
    trust::AuditToPay,
};

use crate::{
    BalanceOf, Config, Error, EscrowRecord, Escrows, Event, FeeTerms, Pallet, Totals, TotalsOf,
    asset::{self, Delivery},
    split::{FeeSplit, split},
};

impl<T: Config> Escrow<T::AccountId, BalanceOf<T>> for Pallet<T> {
    fn price_limit(cap: BalanceOf<T>, redundancy: u32) -> Result<BalanceOf<T>, DispatchError> {
        Ok(Self::fee_terms()
            .price_limit(cap, redundancy)
            .ok_or(Error::<T>::CapBelowFee)?)
    }

    fn open(task: TaskId, client: &T::AccountId, cap: BalanceOf<T>) -> DispatchResult {
        with_storage_layer(|| Self::do_open(task, client, cap))
    }

    fn settle(
        task: TaskId,
        payments: &[Assignment<T::AccountId, BalanceOf<T>>],
        audits: &[AuditToPay<T::AccountId>],
    ) -> Result<Settlement<BalanceOf<T>>, DispatchError> {
        with_storage_layer(|| Self::do_settle(task, payments, audits))
    }

    fn pay_audits(
        task: TaskId,
        unpaid: &[Assignment<T::AccountId, BalanceOf<T>>],
        audits: &[AuditToPay<T::AccountId>],
    ) -> Result<BalanceOf<T>, DispatchError> {
        with_storage_layer(|| Self::do_pay_audits(task, unpaid, audits))
    }

    fn refund(task: TaskId) -> DispatchResult {
        with_storage_layer(|| Self::do_refund(task))
    }

    fn forfeit(task: TaskId, providers: &[T::AccountId]) -> DispatchResult {
        with_storage_layer(|| Self::do_forfeit(task, providers))
    }

    fn held(task: TaskId) -> BalanceOf<T> {
        Escrows::<T>::get(task).map_or_else(Zero::zero, |escrow| escrow.held)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn endow(client: &T::AccountId, cap: BalanceOf<T>) {
        frame_support::assert_ok!(asset::endow::<T>(
            client,
            cap.saturating_add(Self::client_lock(cap))
        ));
    }
}

impl<T: Config> Pallet<T> {
    pub(crate) fn fee_terms() -> FeeTerms<BalanceOf<T>> {
        FeeTerms {
            rate: T::FeeRate::get(),
            minimum: T::FeeMin::get(),
        }
    }

    fn do_open(task: TaskId, client: &T::AccountId, cap: BalanceOf<T>) -> DispatchResult {
        ensure!(!cap.is_zero(), Error::<T>::CapBelowFee);
        ensure!(!Escrows::<T>::contains_key(task), Error::<T>::EscrowExists);
        asset::take::<T>(client, cap)?;
        let lock = Self::client_lock(cap);
        Escrows::<T>::insert(
            task,
            EscrowRecord {
                client: client.clone(),
                held: cap,
                lock,
                fee: Self::fee_terms(),
            },
        );
        Self::add_to_totals(|totals| &mut totals.opened, cap)?;
        Self::deposit_event(Event::EscrowOpened {
            task,
            client: client.clone(),
            amount: cap,
        });
        Self::take_lock(task, client, lock)
    }

    fn do_settle(
        task: TaskId,
        payments: &[Assignment<T::AccountId, BalanceOf<T>>],
        audits: &[AuditToPay<T::AccountId>],
    ) -> Result<Settlement<BalanceOf<T>>, DispatchError> {
        let escrow = Escrows::<T>::take(task).ok_or(Error::<T>::UnknownEscrow)?;
        let paid = payments
            .iter()
            .try_fold(BalanceOf::<T>::zero(), |sum, payment| {
                sum.checked_add(&payment.price)
            })
            .ok_or(Error::<T>::PaymentsExceedEscrow)?;
        let left = escrow
            .held
            .checked_sub(&paid)
            .ok_or(Error::<T>::PaymentsExceedEscrow)?;
        // The fee may have been lower when the prices were limited: it takes what is left at most.
        let fee = escrow.fee.fee(paid).min(left);
        let refund = left.saturating_sub(fee);

        for payment in payments {
            let rest = Self::pay_auditors(task, payment, audits)?;
            Self::pay(task, rest)?;
        }
        Self::take_fee(task, fee)?;
        Self::give_back(task, &escrow.client, refund)?;
        Self::return_lock(task, &escrow.client, escrow.lock)?;
        Self::note_work(payments, paid, fee);
        Ok(Settlement { paid, fee, refund })
    }

    /// Tells for which work a fee was taken, and which part of it for each price: together never more than
    /// it.
    fn note_work(payments: &[Assignment<T::AccountId, BalanceOf<T>>], paid: BalanceOf<T>, fee: BalanceOf<T>) {
        if fee.is_zero() {
            return;
        }
        let (fee, paid) = (fee.saturated_into(), paid.saturated_into());
        for payment in payments {
            let part = fee_part(fee, payment.price.saturated_into(), paid);
            T::Work::note_settled(&payment.provider, part.saturated_into());
        }
    }

    fn do_pay_audits(
        task: TaskId,
        unpaid: &[Assignment<T::AccountId, BalanceOf<T>>],
        audits: &[AuditToPay<T::AccountId>],
    ) -> Result<BalanceOf<T>, DispatchError> {
        let mut escrow = Escrows::<T>::get(task).ok_or(Error::<T>::UnknownEscrow)?;
        let mut paid = BalanceOf::<T>::zero();
        for provider in unpaid {
            ensure!(provider.price <= escrow.held, Error::<T>::PaymentsExceedEscrow);
            let rest = Self::pay_auditors(task, provider, audits)?.price;
            let of_audits = provider.price.saturating_sub(rest);
            escrow.held = escrow.held.saturating_sub(of_audits);
            paid = paid.saturating_add(of_audits);
        }
        Escrows::<T>::insert(task, escrow);
        Ok(paid)
    }

    fn do_refund(task: TaskId) -> DispatchResult {
        let escrow = Escrows::<T>::take(task).ok_or(Error::<T>::UnknownEscrow)?;
        Self::give_back(task, &escrow.client, escrow.held)?;
        Self::return_lock(task, &escrow.client, escrow.lock)
    }

    fn do_forfeit(task: TaskId, providers: &[T::AccountId]) -> DispatchResult {
        let escrow = Escrows::<T>::take(task).ok_or(Error::<T>::UnknownEscrow)?;
        Self::give_back(task, &escrow.client, escrow.held)?;
        Self::lose_lock(task, &escrow.client, escrow.lock, providers)
    }

    fn pay(task: TaskId, payment: Assignment<T::AccountId, BalanceOf<T>>) -> DispatchResult {
        let Assignment {
            provider,
            price: amount,
        } = payment;
        if amount.is_zero() {
            return Ok(());
        }
        match asset::deliver::<T>(&provider, amount)? {
            Delivery::Arrived => {
                Self::add_to_totals(|totals| &mut totals.paid, amount)?;
                Self::deposit_event(Event::ProviderPaid {
                    task,
                    provider,
                    amount,
                });
            }
            Delivery::Burned => Self::note_dust(task, provider, amount)?,
        }
        Ok(())
    }

    fn take_fee(task: TaskId, fee: BalanceOf<T>) -> DispatchResult {
        if fee.is_zero() {
            return Ok(());
        }
        let FeeSplit {
            treasury,
            validators,
            burned,
        } = split(fee, T::TreasuryShare::get(), T::ValidatorShare::get());
        asset::burn::<T>(burned)?;
        let treasury = Self::deliver_share(&T::TreasuryAccount::get(), treasury)?;
        let validators = Self::deliver_share(&T::ValidatorPot::get(), validators)?;

        let delivered = treasury.saturating_add(validators);
        let burned = fee.saturating_sub(delivered);
        Self::add_to_totals(|totals| &mut totals.fees, delivered)?;
        Self::add_to_totals(|totals| &mut totals.burned, burned)?;
        Self::deposit_event(Event::FeeTaken {
            task,
            treasury,
            validators,
            burned,
        });
        Ok(())
    }

    /// Returns how much of `share` arrived: all or nothing of it.
    pub(crate) fn deliver_share(
        payee: &T::AccountId,
        share: BalanceOf<T>,
    ) -> Result<BalanceOf<T>, DispatchError> {
        if share.is_zero() {
            return Ok(share);
        }
        Ok(match asset::deliver::<T>(payee, share)? {
            Delivery::Arrived => share,
            Delivery::Burned => Zero::zero(),
        })
    }

    fn give_back(task: TaskId, client: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
        if amount.is_zero() {
            return Ok(());
        }
        let client = client.clone();
        match asset::deliver::<T>(&client, amount)? {
            Delivery::Arrived => {
                Self::add_to_totals(|totals| &mut totals.refunded, amount)?;
                Self::deposit_event(Event::EscrowRefunded { task, client, amount });
            }
            Delivery::Burned => Self::note_dust(task, client, amount)?,
        }
        Ok(())
    }

    pub(crate) fn note_dust(task: TaskId, payee: T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
        Self::add_to_totals(|totals| &mut totals.burned, amount)?;
        Self::deposit_event(Event::DustBurned { task, payee, amount });
        Ok(())
    }

    pub(crate) fn add_to_totals(
        field: fn(&mut TotalsOf<T>) -> &mut BalanceOf<T>,
        amount: BalanceOf<T>,
    ) -> DispatchResult {
        Totals::<T>::try_mutate(|totals| {
            let total = field(totals);
            *total = total.checked_add(&amount).ok_or(ArithmeticError::Overflow)?;
            Ok(())
        })
    }
}
