//! What auditors get, out of what the provider earned that they audited.
//!
//! Not out of the fee, which is smaller than what the usual number of audits costs, and not on top of the
//! price: so the client's cost stays what it was. A client that is its own provider and auditor moves its own
//! money and loses the fee.
//!
//! Auditors of a provider that revealed too late, and is not paid for that, are paid out of the same: they
//! have worked, and the client has a result that was audited. Otherwise a client that is its own provider
//! could have everybody audit for nothing, by being late.

use frame_support::dispatch::DispatchResult;
use sp_runtime::{
    DispatchError,
    traits::{Saturating, Zero},
};
use surety_audit_economics::AuditPay;
use surety_types::{TaskId, task::Assignment, trust::AuditToPay};

use crate::{
    BalanceOf, Config, Event, Pallet,
    asset::{self, Delivery},
};

impl<T: Config> Pallet<T> {
    /// Pays a provider's auditors out of what it is paid, or would have been. Returns what is left of that.
    pub(crate) fn pay_auditors(
        task: TaskId,
        payment: &Assignment<T::AccountId, BalanceOf<T>>,
        audits: &[AuditToPay<T::AccountId>],
    ) -> Result<Assignment<T::AccountId, BalanceOf<T>>, DispatchError> {
        let of_provider = || audits.iter().filter(|audit| audit.provider == payment.provider);
        let count = u32::try_from(of_provider().count()).unwrap_or(u32::MAX);
        let mut left = payment.price;
        for audit in of_provider() {
            let each = AuditPay::of(audit.share, payment.price, count);
            left = left.saturating_sub(each);
            Self::pay_auditor(task, audit, each)?;
        }
        Ok(Assignment {
            provider: payment.provider.clone(),
            price: left,
        })
    }

    fn pay_auditor(task: TaskId, audit: &AuditToPay<T::AccountId>, amount: BalanceOf<T>) -> DispatchResult {
        if amount.is_zero() {
            return Ok(());
        }
        let AuditToPay {
            provider, verifier, ..
        } = audit.clone();
        match asset::deliver::<T>(&verifier, amount)? {
            Delivery::Arrived => {
                Self::add_to_totals(|totals| &mut totals.paid, amount)?;
                Self::deposit_event(Event::AuditorPaid {
                    task,
                    verifier,
                    provider,
                    amount,
                });
            }
            Delivery::Burned => Self::note_dust(task, verifier, amount)?,
        }
        Ok(())
    }
}
