#![doc = include_str!("../README.md")]

mod ask;
mod claims;
mod error;
mod http;
#[cfg(test)]
mod tests;

use std::{
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use surety_chain_client::{
    AccountId, Balance, Call, Chain, ChainError, ErrorClass, Hash, Refusal, Signer, Until, When, address,
};

pub use ask::{AskError, Given, ask};
use claims::Claims;
pub use claims::{Limits, Origin, TooSoon};
pub use error::{ClaimError, StartError, StoreError};
pub use http::{Site, router, serve};

/// What a transfer's fee may come to, in plancks: a tenth of a SURE, far more than one takes.
const FEE_MAX: Balance = 100_000_000_000;

/// Tells the time in seconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The machine's own clock.
pub fn machine_clock() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    })
}

/// Whose money is given, and how much.
pub struct Purse {
    /// The key that holds it.
    pub signer: Signer,
    /// What each claim is given, in plancks.
    pub amount: Balance,
}

/// A claim that was paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paid {
    /// How much, in plancks.
    pub amount: Balance,
    /// Hash of the extrinsic.
    pub extrinsic: Hash,
}

/// Pays claims.
pub struct Faucet {
    chain: Arc<dyn Chain>,
    purse: Purse,
    claims: Claims,
    clock: Clock,
}

impl Faucet {
    /// A faucet whose claims are kept in this file.
    ///
    /// # Errors
    /// When the chain is no test network, or the file cannot be used.
    pub async fn open(
        chain: Arc<dyn Chain>,
        purse: Purse,
        limits: Limits,
        (file, clock): (&Path, Clock),
    ) -> Result<Arc<Self>, StartError> {
        if !chain.is_test_network().await? {
            return Err(StartError::RealMoney);
        }
        let least = chain.info().existential_deposit;
        if purse.amount < least {
            return Err(StartError::TooLittle { least });
        }
        Ok(Arc::new(Self {
            chain,
            purse,
            claims: Claims::open(file, limits)?,
            clock,
        }))
    }

    /// Pays an account, once the claim is on disk. Whoever stops waiting for it stops nothing.
    ///
    /// # Errors
    /// When a limit is reached, or the transfer is not known to be in a block.
    pub async fn claim(self: &Arc<Self>, account: AccountId, origin: Origin) -> Result<Paid, ClaimError> {
        let faucet = self.clone();
        let paying = tokio::spawn(async move {
            let paid = faucet.pay(account.clone(), origin).await;
            let account = address(&account);
            match &paid {
                Ok(paid) => tracing::info!(account, extrinsic = ?paid.extrinsic, "paid"),
                Err(error @ ClaimError::TooSoon(_)) => tracing::info!(account, %error, "refused"),
                Err(error) => tracing::error!(account, %error, "not paid"),
            }
            paid
        });
        paying.await.map_err(|e| ClaimError::Internal(e.to_string()))?
    }

    async fn pay(self: Arc<Self>, account: AccountId, origin: Origin) -> Result<Paid, ClaimError> {
        let now = (self.clock)();
        let taking = {
            let (faucet, account) = (self.clone(), account.clone());
            tokio::task::spawn_blocking(move || faucet.claims.take(now, account, origin))
        };
        let number = taking.await.map_err(|e| ClaimError::Internal(e.to_string()))??;
        let paid = match self.funds().await {
            Ok(_) => self.transfer(&account).await,
            Err(error) => Err(error),
        };
        if paid.as_ref().is_err_and(ClaimError::is_unpaid) {
            let returning = tokio::task::spawn_blocking(move || self.claims.give_back(number));
            returning
                .await
                .map_err(|e| ClaimError::Internal(e.to_string()))??;
        }
        paid
    }

    async fn transfer(&self, account: &AccountId) -> Result<Paid, ClaimError> {
        let amount = self.purse.amount;
        let call = Call::Transfer {
            to: account.clone(),
            amount,
        };
        let included = self
            .chain
            .submit(&self.purse.signer, call, Until::Included.into())
            .await;
        match included {
            Ok(included) => Ok(Paid {
                amount,
                extrinsic: included.extrinsic,
            }),
            Err(ChainError::Rejected(Refusal::Payment)) => Err(ClaimError::Empty),
            Err(error @ (ChainError::Rejected(_) | ChainError::Busy { .. })) => Err(ClaimError::Chain(error)),
            Err(error) if error.class() == ErrorClass::Failed => Err(ClaimError::Chain(error)),
            Err(error) => Err(ClaimError::Unknown(error)),
        }
    }

    /// What the purse has, if that is enough for a claim.
    async fn funds(&self) -> Result<Balance, ClaimError> {
        let funds = self.chain.funds(When::Best, self.purse.signer.account()).await;
        let free = funds.map_err(ClaimError::Chain)?.free;
        let needed = self.purse.amount.saturating_add(FEE_MAX);
        (free >= needed).then_some(free).ok_or(ClaimError::Empty)
    }
}
