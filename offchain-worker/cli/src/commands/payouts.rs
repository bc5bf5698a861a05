//! Who got what clients paid for results: providers, and the auditors of each.
//!
//! A task's record says what was paid for a result. What its auditors got of that, the events of the block
//! say in which the task was settled, and nothing else; a node that is no archive keeps those of some hundred
//! blocks.

use std::cmp::Reverse;

use surety_chain_client::{AccountId, Balance, BlockNumber, Chain, ChainError, ChainEvent, TaskRecord};
use surety_types::{TaskId, task::TaskState};

use crate::error::Result;

/// What was paid for a provider's result.
#[derive(Clone, Debug)]
pub(super) struct Payment {
    pub(super) task: TaskId,
    /// Block in which the task was settled.
    pub(super) settled_at: BlockNumber,
    pub(super) provider: AccountId,
    /// In plancks.
    pub(super) price: Balance,
}

/// What a task was paid for, if it is settled.
pub(super) fn payments((id, task): &(TaskId, TaskRecord)) -> Vec<Payment> {
    let TaskState::Settled { at, payments, .. } = &task.state else {
        return Vec::new();
    };
    let payment = |paid: &surety_types::task::Assignment<AccountId, Balance>| Payment {
        task: *id,
        settled_at: *at,
        provider: paid.provider.clone(),
        price: paid.price,
    };
    payments.iter().map(payment).collect()
}

/// What became of some payments, in plancks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Payouts {
    /// Arrived at auditors.
    pub(super) to_auditors: Balance,
    /// Arrived at providers.
    pub(super) kept: Balance,
    /// Of this the node no longer keeps who got it, and for so many payments.
    pub(super) untold: Balance,
    pub(super) untold_payments: usize,
}

impl Payouts {
    /// Asks the node, block by block.
    ///
    /// # Errors
    /// When the chain cannot be asked.
    pub(super) async fn of(chain: &dyn Chain, mut payments: Vec<Payment>) -> Result<Self> {
        payments.sort_by_key(|payment| Reverse(payment.settled_at));
        let (mut payouts, mut is_gone) = (Self::default(), false);
        for block in payments.chunk_by(|a, b| a.settled_at == b.settled_at) {
            let events = match block.first() {
                Some(first) if !is_gone => events(chain, first.settled_at).await?,
                // Where a block is gone, so are all before it.
                _ => None,
            };
            is_gone = events.is_none();
            for payment in block {
                payouts.add(payment, events.as_deref().unwrap_or_default());
            }
        }
        Ok(payouts)
    }

    fn add(&mut self, payment: &Payment, events: &[ChainEvent]) {
        let sum = |name| {
            let ours = events.iter().filter(|event| {
                event.is("Billing", name)
                    && event.task() == Some(payment.task)
                    && event.field("provider").as_ref() == Some(&payment.provider)
            });
            ours.filter_map(|event| event.field::<Balance>("amount"))
                .reduce(Balance::saturating_add)
        };
        let (auditors, provider) = (sum("AuditorPaid"), sum("ProviderPaid"));
        if auditors.or(provider).is_none() {
            self.untold = self.untold.saturating_add(payment.price);
            self.untold_payments = self.untold_payments.saturating_add(1);
        }
        self.to_auditors = self.to_auditors.saturating_add(auditors.unwrap_or(0));
        self.kept = self.kept.saturating_add(provider.unwrap_or(0));
    }
}

/// What happened in a block; nothing where the node does not keep that.
async fn events(chain: &dyn Chain, number: BlockNumber) -> Result<Option<Vec<ChainEvent>>> {
    let asked = async { chain.events(chain.block_at(number).await?.hash).await };
    match asked.await {
        Ok(events) => Ok(Some(events)),
        Err(ChainError::Pruned { .. }) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use codec::Encode;
    use surety_chain_client::{EventField, FakeChain};

    use super::*;

    /// Billing pays somebody for a provider's result.
    pub(in crate::commands) fn paid(
        name: &str,
        task: TaskId,
        provider: &AccountId,
        amount: Balance,
    ) -> ChainEvent {
        let field = |name: &str, bytes| EventField {
            name: name.into(),
            text: String::new(),
            bytes,
        };
        ChainEvent {
            pallet: "Billing".into(),
            name: name.into(),
            extrinsic: None,
            fields: vec![
                field("task", task.encode()),
                field("provider", provider.encode()),
                field("amount", amount.encode()),
            ],
        }
    }

    fn account(byte: u8) -> AccountId {
        AccountId::new([byte; 32])
    }

    fn payment(task: TaskId, settled_at: BlockNumber, provider: u8, price: Balance) -> Payment {
        Payment {
            task,
            settled_at,
            provider: account(provider),
            price,
        }
    }

    #[tokio::test]
    async fn each_payment_is_split_by_the_events_of_its_own_task_and_provider() {
        let chain = FakeChain::new();
        for event in [
            paid("AuditorPaid", 1, &account(1), 3),
            paid("AuditorPaid", 1, &account(1), 4),
            paid("ProviderPaid", 1, &account(1), 93),
            // Another's, and of another task that was settled in the same block.
            paid("AuditorPaid", 1, &account(2), 50),
            paid("ProviderPaid", 2, &account(1), 60),
        ] {
            chain.happen(7, event);
        }
        chain.happen(9, paid("ProviderPaid", 3, &account(1), 10));
        let all = vec![payment(1, 7, 1, 100), payment(3, 9, 1, 10)];
        let payouts = Payouts::of(&chain, all).await.unwrap();
        let expected = Payouts {
            to_auditors: 7,
            kept: 103,
            ..Payouts::default()
        };
        assert_eq!(payouts, expected);
    }

    #[tokio::test]
    async fn what_the_node_no_longer_keeps_is_told_apart() {
        let chain = FakeChain::new();
        chain.happen(9, paid("AuditorPaid", 3, &account(1), 10));
        let all = vec![payment(1, 7, 1, 100), payment(3, 9, 1, 10), payment(4, 7, 1, 5)];
        let payouts = Payouts::of(&chain, all).await.unwrap();
        let expected = Payouts {
            to_auditors: 10,
            kept: 0,
            untold: 105,
            untold_payments: 2,
        };
        assert_eq!(payouts, expected);
    }
}
