//! Who pays fees: whoever signs, or the stash of an agent that has no money of its own.
//!
//! An agent's key is on a machine that works, and what it lost by running out of money would be its stash's:
//! it would commit, seal and answer nothing any more. What a stash pays for is its agent's work alone. It is
//! burned: who steals the key and makes blocks could collect it otherwise, tip by tip.

use frame_support::{traits::fungible::Credit, weights::Weight};
use frame_system::Call as SystemCall;
use pallet_transaction_payment::{
    FungibleAdapter, OnChargeTransaction, TxCreditHold, weights::SubstrateWeight,
};
use sp_runtime::{
    traits::{DispatchInfoOf, PostDispatchInfoOf},
    transaction_validity::TransactionValidityError,
};
use surety_pallet_staking::Call as StakingCall;
use surety_pallet_trust_lock::Call as TrustLockCall;

use super::system::ToAuthor;
use crate::{AccountId, Balance, Balances, Runtime, RuntimeCall, Staking, units::SURE};

/// Most tip that a stash pays for its agent's call: ten times what workers offer at most by default.
pub const STASH_TIP_MAX: Balance = SURE / 10;

/// Has signers pay authors.
type Signer = FungibleAdapter<Balances, ToAuthor>;

/// Burns what stashes pay.
type Stash = FungibleAdapter<Balances, ()>;

type Info = DispatchInfoOf<RuntimeCall>;

/// What taking a fee weighs: beside the signer's account the stash that it acts for is looked up, and that
/// one's account is written.
pub struct FeeWeight;

impl pallet_transaction_payment::WeightInfo for FeeWeight {
    fn charge_transaction_payment() -> Weight {
        let db = <Runtime as frame_system::Config>::DbWeight::get();
        SubstrateWeight::<Runtime>::charge_transaction_payment().saturating_add(db.reads_writes(2, 1))
    }
}

/// Takes fees from signers, and from stashes whose agents cannot pay.
pub struct SignerOrStash;

impl SignerOrStash {
    fn payer(who: &AccountId, call: &RuntimeCall, info: &Info, fee: Balance, tip: Balance) -> AccountId {
        let can_pay = |who| {
            <Signer as OnChargeTransaction<Runtime>>::can_withdraw_fee(who, call, info, fee, tip).is_ok()
        };
        let stash = || works_for(who, call).filter(|_| tip <= STASH_TIP_MAX);
        match can_pay(who) {
            true => who.clone(),
            false => stash().unwrap_or_else(|| who.clone()),
        }
    }
}

/// The stash that this call is work for.
fn works_for(agent: &AccountId, call: &RuntimeCall) -> Option<AccountId> {
    let stash = Staking::stash_of_agent(agent);
    match call {
        // Whoever is an agent already cannot become another's.
        RuntimeCall::Staking(StakingCall::confirm_agent { stash: of }) => {
            (stash.is_none() && Staking::is_nominated(of, agent)).then(|| of.clone())
        }
        // Uses up a nonce whose call was lost.
        RuntimeCall::System(SystemCall::remark { remark }) if remark.is_empty() => stash,
        RuntimeCall::TrustLock(TrustLockCall::carry_out_slash { .. }) => stash,
        RuntimeCall::Results(_)
        | RuntimeCall::Disputes(_)
        | RuntimeCall::TaskAuction(_)
        | RuntimeCall::ProviderRegistry(_)
        | RuntimeCall::ModelRegistry(_)
        | RuntimeCall::Channels(_)
        | RuntimeCall::GpuProofs(_) => stash,
        _ => None,
    }
}

impl TxCreditHold<Runtime> for SignerOrStash {
    type Credit = <Signer as TxCreditHold<Runtime>>::Credit;
}

impl OnChargeTransaction<Runtime> for SignerOrStash {
    type Balance = Balance;
    type LiquidityInfo = Option<(AccountId, Option<Credit<AccountId, Balances>>)>;

    fn withdraw_fee(
        who: &AccountId,
        call: &RuntimeCall,
        info: &Info,
        fee: Balance,
        tip: Balance,
    ) -> Result<Self::LiquidityInfo, TransactionValidityError> {
        let payer = Self::payer(who, call, info, fee, tip);
        let tip = <Signer as OnChargeTransaction<Runtime>>::withdraw_fee(&payer, call, info, fee, tip)?;
        Ok(Some((payer, tip)))
    }

    fn can_withdraw_fee(
        who: &AccountId,
        call: &RuntimeCall,
        info: &Info,
        fee: Balance,
        tip: Balance,
    ) -> Result<(), TransactionValidityError> {
        let payer = Self::payer(who, call, info, fee, tip);
        <Signer as OnChargeTransaction<Runtime>>::can_withdraw_fee(&payer, call, info, fee, tip)
    }

    fn correct_and_deposit_fee(
        who: &AccountId,
        info: &Info,
        post_info: &PostDispatchInfoOf<RuntimeCall>,
        corrected_fee: Balance,
        tip: Balance,
        paid: Self::LiquidityInfo,
    ) -> Result<(), TransactionValidityError> {
        let (payer, paid) = paid.unwrap_or_else(|| (who.clone(), None));
        let settle = match payer == *who {
            true => <Signer as OnChargeTransaction<Runtime>>::correct_and_deposit_fee,
            false => <Stash as OnChargeTransaction<Runtime>>::correct_and_deposit_fee,
        };
        settle(&payer, info, post_info, corrected_fee, tip, paid)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn endow_account(who: &AccountId, amount: Balance) {
        <Signer as OnChargeTransaction<Runtime>>::endow_account(who, amount);
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn minimum_balance() -> Balance {
        <Signer as OnChargeTransaction<Runtime>>::minimum_balance()
    }
}
