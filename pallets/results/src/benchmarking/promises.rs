//! Promises that contradict each other.

use frame_benchmarking::v2::account;
use sp_core::H256;
use sp_runtime::traits::One;
use surety_pallet_trust_lock::fill_convictions;
use surety_proofs::{CommitStatement, SignedStatement};
use surety_types::{
    model::Operation,
    stake::Role,
    traits::{SignatureVerifier, StakeLedger},
};

use super::setup::{TASK, at, audited_by_all, challengeable, claim, stake};
use crate::{Config, Pallet, Rounds};

/// Two of the first provider, all of whose auditors were shown another output, among the most convictions.
pub(super) fn equivocation<T: Config>() -> (
    SignedStatement<T::AccountId>,
    Option<SignedStatement<T::AccountId>>,
) {
    let provider: T::AccountId = account("provider", 0, 0);
    let promise = |output| CommitStatement {
        task: TASK,
        provider: provider.clone(),
        commitment: H256::repeat_byte(2),
        output: H256::repeat_byte(output),
    };
    let (one, other) = (promise(1), promise(2));
    let genesis = Pallet::<T>::genesis();
    let (agent, signatures) = T::Signatures::for_benchmark(&[one.message(&genesis), other.message(&genesis)]);
    at::<T>(One::one());
    T::Stake::endow(&provider, &agent, Role::Provider, stake::<T>());
    let mut round = challengeable::<T>(&claim(0), |_| None);
    round.terms.operation = Operation::Generate;
    audited_by_all::<T>(&mut round, &provider);
    Rounds::<T>::insert(TASK, round);
    fill_convictions::<T>(One::one());
    let mut signed = [one, other]
        .into_iter()
        .zip(signatures)
        .map(|(statement, signature)| SignedStatement {
            statement,
            agent: agent.clone(),
            signature,
        });
    (signed.next().expect("there are two"), signed.next())
}
