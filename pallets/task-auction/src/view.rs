//! What people and their programs ask of the auction.

use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::DispatchError;
use surety_types::{
    TaskId,
    task::{AuditTerms, Security, TaskSpec},
    traits::{Escrow, TaskTrust},
    view::{AuctionView, BidTerms, Quote},
};

use crate::{Balance, BidCounts, Config, Pallet, TaskOf, Tasks};

impl<T: Config> Pallet<T> {
    pub(crate) fn auction_view(id: TaskId) -> Option<AuctionView<T::AccountId, Balance, BlockNumberFor<T>>> {
        let task = Tasks::<T>::get(id)?;
        let count = BidCounts::<T>::get(id);
        Some(AuctionView {
            terms: Self::terms_of(&task),
            task,
            placed: count.placed,
            opened: count.opened,
            escrow: T::Escrow::held(id),
        })
    }

    /// What a bid for this task can come to; nothing when its cap is below the fee.
    pub(crate) fn terms_of(task: &TaskOf<T>) -> Option<BidTerms<Balance>> {
        let price_limit = T::Escrow::price_limit(task.cap, task.spec.redundancy).ok()?;
        Some(Self::terms(price_limit, &task.spec.security, &task.audits))
    }

    pub(crate) fn quote_of(mut spec: TaskSpec, cap: Balance) -> Result<Quote<Balance>, DispatchError> {
        let (price_limit, audits) = Self::secure(&mut spec, cap)?;
        Ok(Quote {
            level: spec.security.level,
            audits,
            terms: Self::terms(price_limit, &spec.security, &audits),
        })
    }

    /// The draw asks for the lock of the limit, whatever is asked for.
    fn terms(price_limit: Balance, security: &Security, audits: &AuditTerms) -> BidTerms<Balance> {
        BidTerms {
            price_limit,
            lock: T::Trust::lock_for(price_limit, security, audits),
        }
    }
}
