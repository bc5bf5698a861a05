//! A book of escrows: who put in how much, and where it went. No account balances behind it.

use std::{cell::RefCell, collections::BTreeMap};

use sp_runtime::{DispatchError, DispatchResult, TokenError};
use surety_types::{
    TaskId,
    task::Assignment,
    traits::{Escrow, Settlement},
    trust::AuditToPay,
};

use crate::{AccountId, Balance};

#[derive(Default)]
struct Book {
    held: BTreeMap<TaskId, (AccountId, Balance)>,
    paid: BTreeMap<AccountId, Balance>,
    refunded: BTreeMap<AccountId, Balance>,
    opened: Balance,
    fees: Balance,
    forfeited: Vec<(AccountId, Vec<AccountId>)>,
    poor: Vec<AccountId>,
    settle_broken: bool,
    fee_raise: Balance,
}

thread_local! {
    static BOOK: RefCell<Book> = RefCell::new(Book::default());
}

/// Mock of [`Escrow`], which pays no auditors. The fee is [`MockEscrow::FEE_PERCENT`] of what is paid, at
/// least [`MockEscrow::FEE_MIN`].
pub struct MockEscrow;

impl MockEscrow {
    /// Smallest fee, in plancks.
    pub const FEE_MIN: Balance = 10;

    /// Fee, in per cent of what providers are paid, rounded down.
    pub const FEE_PERCENT: Balance = 5;

    /// The answer to a cap that covers no payment.
    pub const CAP_BELOW_FEE: DispatchError = DispatchError::Other("CapBelowFee");

    /// The answer to a task without escrow.
    pub const NO_ESCROW: DispatchError = DispatchError::Other("NoEscrow");

    /// The answer to payments that exceed the escrow.
    pub const OVERDRAWN: DispatchError = DispatchError::Other("Overdrawn");

    /// The answer to a client set up with [`MockEscrow::make_poor`].
    pub const TOO_POOR: DispatchError = DispatchError::Token(TokenError::FundsUnavailable);

    /// Forgets everything.
    pub fn reset() {
        BOOK.take();
    }

    /// Lets the client's escrows fail to open from now on.
    pub fn make_poor(client: AccountId) {
        BOOK.with_borrow_mut(|book| book.poor.push(client));
    }

    /// Lets every settlement fail as overdrawn, or work again.
    pub fn break_settle(broken: bool) {
        BOOK.with_borrow_mut(|book| book.settle_broken = broken);
    }

    /// Adds `amount` to every fee from now on.
    pub fn raise_fee(amount: Balance) {
        BOOK.with_borrow_mut(|book| book.fee_raise = amount);
    }

    /// The fee on top of payments of `paid` in all.
    pub fn fee(paid: Balance) -> Balance {
        let raise = BOOK.with_borrow(|book| book.fee_raise);
        (paid.saturating_mul(Self::FEE_PERCENT) / 100)
            .max(Self::FEE_MIN)
            .saturating_add(raise)
    }

    /// What the provider has been paid so far.
    pub fn paid_to(provider: AccountId) -> Balance {
        BOOK.with_borrow(|book| book.paid.get(&provider).copied().unwrap_or_default())
    }

    /// What the client has got back so far.
    pub fn refunded_to(client: AccountId) -> Balance {
        BOOK.with_borrow(|book| book.refunded.get(&client).copied().unwrap_or_default())
    }

    /// Clients that lost their locks so far, each with who shared in it. How much a client locks is not kept
    /// here.
    pub fn forfeited() -> Vec<(AccountId, Vec<AccountId>)> {
        BOOK.with_borrow(|book| book.forfeited.clone())
    }

    /// Fees taken so far.
    pub fn fees() -> Balance {
        BOOK.with_borrow(|book| book.fees)
    }

    /// How many escrows are open.
    pub fn open_count() -> usize {
        BOOK.with_borrow(|book| book.held.len())
    }

    /// Whether all that was ever put in is paid, taken as fee, refunded or still held.
    pub fn is_conserved() -> bool {
        BOOK.with_borrow(|book| {
            let held: Balance = book.held.values().map(|(_, amount)| *amount).sum();
            let paid: Balance = book.paid.values().sum();
            let refunded: Balance = book.refunded.values().sum();
            book.opened == held + paid + refunded + book.fees
        })
    }
}

impl Escrow<AccountId, Balance> for MockEscrow {
    fn price_limit(cap: Balance, redundancy: u32) -> Result<Balance, DispatchError> {
        let redundancy = Balance::from(redundancy);
        let fits = |price: &Balance| {
            let paid = price.saturating_mul(redundancy);
            paid.saturating_add(Self::fee(paid)) <= cap
        };
        // The largest price is at most cap / k, and `fits` is monotone: halve the range until it is found.
        let (mut low, mut high) = (0, cap.checked_div(redundancy).unwrap_or_default());
        while low < high {
            let middle = high - (high - low) / 2;
            if fits(&middle) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        if low == 0 {
            return Err(Self::CAP_BELOW_FEE);
        }
        Ok(low)
    }

    fn open(task: TaskId, client: &AccountId, cap: Balance) -> DispatchResult {
        BOOK.with_borrow_mut(|book| {
            if book.poor.contains(client) {
                return Err(Self::TOO_POOR);
            }
            book.held.insert(task, (*client, cap));
            book.opened += cap;
            Ok(())
        })
    }

    fn settle(
        task: TaskId,
        payments: &[Assignment<AccountId, Balance>],
        _audits: &[AuditToPay<AccountId>],
    ) -> Result<Settlement<Balance>, DispatchError> {
        let paid: Balance = payments.iter().map(|payment| payment.price).sum();
        let due = Self::fee(paid);
        BOOK.with_borrow_mut(|book| {
            let (client, held) = *book.held.get(&task).ok_or(Self::NO_ESCROW)?;
            let left = held.checked_sub(paid).filter(|_| !book.settle_broken);
            let left = left.ok_or(Self::OVERDRAWN)?;
            let fee = due.min(left);
            let refund = left - fee;
            book.held.remove(&task);
            for payment in payments {
                *book.paid.entry(payment.provider).or_default() += payment.price;
            }
            book.fees += fee;
            *book.refunded.entry(client).or_default() += refund;
            Ok(Settlement { paid, fee, refund })
        })
    }

    /// Pays the whole of the shares.
    fn pay_audits(
        task: TaskId,
        unpaid: &[Assignment<AccountId, Balance>],
        audits: &[AuditToPay<AccountId>],
    ) -> Result<Balance, DispatchError> {
        BOOK.with_borrow_mut(|book| {
            let pay = |audit: &AuditToPay<AccountId>| {
                let provider = unpaid.iter().find(|unpaid| unpaid.provider == audit.provider)?;
                Some((audit.verifier, audit.share.mul_floor(provider.price)))
            };
            let pays: Vec<_> = audits.iter().filter_map(pay).collect();
            let paid: Balance = pays.iter().map(|(_, amount)| amount).sum();
            let (_, held) = book.held.get_mut(&task).ok_or(Self::NO_ESCROW)?;
            *held = held.checked_sub(paid).ok_or(Self::OVERDRAWN)?;
            for (verifier, amount) in pays {
                *book.paid.entry(verifier).or_default() += amount;
            }
            Ok(paid)
        })
    }

    fn refund(task: TaskId) -> DispatchResult {
        BOOK.with_borrow_mut(|book| {
            let (client, held) = book.held.remove(&task).ok_or(Self::NO_ESCROW)?;
            *book.refunded.entry(client).or_default() += held;
            Ok(())
        })
    }

    fn forfeit(task: TaskId, providers: &[AccountId]) -> DispatchResult {
        let client = BOOK.with_borrow(|book| book.held.get(&task).map(|(client, _)| *client));
        Self::refund(task)?;
        BOOK.with_borrow_mut(|book| {
            let client = client.ok_or(Self::NO_ESCROW)?;
            book.forfeited.push((client, providers.to_vec()));
            Ok(())
        })
    }

    fn held(task: TaskId) -> Balance {
        BOOK.with_borrow(|book| {
            book.held
                .get(&task)
                .map(|(_, amount)| *amount)
                .unwrap_or_default()
        })
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn endow(client: &AccountId, _cap: Balance) {
        BOOK.with_borrow_mut(|book| book.poor.retain(|poor| poor != client));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_limit_is_the_largest_that_fits() {
        for (cap, redundancy) in [(11, 1), (211, 1), (1_000, 3), (999_999, 16)] {
            let limit = MockEscrow::price_limit(cap, redundancy).unwrap_or_default();
            let cost = |price| {
                let paid = price * Balance::from(redundancy);
                paid + MockEscrow::fee(paid)
            };
            assert!(
                limit > 0 && cost(limit) <= cap && cost(limit + 1) > cap,
                "{cap} {redundancy}"
            );
        }
        assert_eq!(MockEscrow::price_limit(10, 1), Err(MockEscrow::CAP_BELOW_FEE));
    }

    #[test]
    fn settling_and_refunding_conserve_what_was_put_in() {
        MockEscrow::reset();
        assert_eq!(MockEscrow::open(0, &1, 1_000), Ok(()));
        assert_eq!(MockEscrow::open(1, &1, 500), Ok(()));
        let payments = [Assignment {
            provider: 7,
            price: 400,
        }];
        let expected = Settlement {
            paid: 400,
            fee: 20,
            refund: 580,
        };
        assert_eq!(MockEscrow::settle(0, &payments, &[]), Ok(expected));
        assert_eq!(MockEscrow::settle(0, &payments, &[]), Err(MockEscrow::NO_ESCROW));
        assert!(MockEscrow::is_conserved());
        assert_eq!(MockEscrow::refund(1), Ok(()));
        assert_eq!(MockEscrow::refunded_to(1), 1_080);
        assert!(MockEscrow::is_conserved());
    }
}
