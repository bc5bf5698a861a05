//! Openings of bids and commitments: without a signature, without money, and once.

use codec::Encode;
use sp_runtime::{
    DispatchError,
    transaction_validity::{InvalidTransaction, TransactionValidityError},
};
use surety_runtime::{RuntimeCall, UncheckedExtrinsic, units::SURE};
use surety_types::{TaskId, opening::PRIORITY, task::TaskState};

use crate::{
    chain::{Chain, account, general},
    market::*,
};

const PROVIDER: Provider = PROVIDERS[0];

fn opened(task: TaskId) -> RuntimeCall {
    PROVIDER.opened(task).1
}

fn revealed(task: TaskId, claim: &surety_types::task::ResultClaim) -> RuntimeCall {
    PROVIDER.reveals(task, claim).1
}

/// A task on which one has bid, whose bids can be opened.
fn revealing_bids(chain: &mut Chain) -> TaskId {
    let task = post(chain, 1);
    all_ok(chain.block(vec![PROVIDER.sealed(task)]));
    chain.run_until(60, || matches!(state(task), TaskState::Revealing { .. }));
    task
}

/// A task whose provider has committed to the right result.
fn committed(chain: &mut Chain) -> TaskId {
    let task = post(chain, 1);
    auction(chain, task, &[PROVIDER]);
    all_ok(chain.block(vec![PROVIDER.commits(task, &right())]));
    task
}

fn refused(chain: &mut Chain, call: RuntimeCall) -> InvalidTransaction {
    match chain.validity(general(call, 0)) {
        Err(TransactionValidityError::Invalid(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn enrich(chain: &mut Chain) {
    let call = pallet_balances::Call::transfer_allow_death {
        dest: account(PROVIDER.agent).into(),
        value: SURE,
    };
    chain.call(CLIENT, call);
}

#[test]
fn an_agent_without_any_money_opens_its_bid_and_its_commitment() {
    let mut chain = open();
    let task = revealing_bids(&mut chain);
    impoverish(&mut chain, PROVIDER.agent);
    assert_eq!(chain.try_extrinsic(general(opened(task), 0)), Ok(Ok(())));
    chain.run_until(60, || matches!(state(task), TaskState::Running { .. }));

    enrich(&mut chain);
    all_ok(chain.block(vec![PROVIDER.commits(task, &right())]));
    wait_for_reveals(&mut chain, task);
    impoverish(&mut chain, PROVIDER.agent);
    assert_eq!(
        chain.try_extrinsic(general(revealed(task, &right()), 0)),
        Ok(Ok(()))
    );
    wait_for_end(&mut chain, task);
    assert!(matches!(chain.query(|| state(task)), TaskState::Settled { .. }));
    assert_cleared(&mut chain, task);
}

#[test]
fn the_pool_takes_an_opening_when_its_time_has_come_and_once() {
    let mut chain = open();
    let task = post(&mut chain, 1);
    assert_eq!(refused(&mut chain, opened(task)), InvalidTransaction::Future);
    all_ok(chain.block(vec![PROVIDER.sealed(task)]));
    assert_eq!(refused(&mut chain, opened(task)), InvalidTransaction::Future);
    chain.run_until(60, || matches!(state(task), TaskState::Revealing { .. }));
    let valid = chain.validity(general(opened(task), 0)).unwrap();
    assert_eq!((valid.priority, valid.provides.len()), (PRIORITY, 1));
    assert!(valid.propagate && valid.longevity > u64::MAX / 2);
    // The same with other bytes around it: a pool keeps one of them.
    let again = chain.validity(general(opened(task), 1)).unwrap();
    assert_eq!(valid.provides, again.provides);
    assert_ne!(
        general(opened(task), 0).encode(),
        general(opened(task), 1).encode()
    );

    assert_eq!(chain.try_extrinsic(general(opened(task), 0)), Ok(Ok(())));
    assert_eq!(refused(&mut chain, opened(task)), InvalidTransaction::Stale);
    assert_eq!(
        chain.try_extrinsic(general(opened(task), 1)),
        Err(InvalidTransaction::Stale.into())
    );
    chain.run_until(60, || matches!(state(task), TaskState::Running { .. }));
    assert_eq!(refused(&mut chain, opened(task)), InvalidTransaction::Stale);
}

#[test]
fn the_pool_refuses_whatever_opens_no_commitment() {
    let mut chain = open();
    let task = committed(&mut chain);
    assert_eq!(
        refused(&mut chain, revealed(task, &right())),
        InvalidTransaction::Future
    );
    wait_for_reveals(&mut chain, task);
    let wrong = surety_types::task::ResultClaim { units: 49, ..right() };
    let of_nobody = PROVIDERS[1].reveals(task, &right()).1;
    for (call, why) in [
        (revealed(task, &wrong), InvalidTransaction::BadProof),
        (of_nobody, InvalidTransaction::Call),
        (revealed(task + 1, &right()), InvalidTransaction::Call),
        (opened(task), InvalidTransaction::Stale),
    ] {
        assert_eq!(refused(&mut chain, call.clone()), why, "{call:?}");
        // Nor does an author get it into a block.
        assert_eq!(chain.try_extrinsic(general(call, 0)), Err(why.into()));
    }
    assert!(chain.validity(general(revealed(task, &right()), 0)).is_ok());
    let twice = [0, 1].map(|nonce| general(revealed(task, &right()), nonce));
    let done = chain.try_extrinsics(twice);
    assert_eq!(done, [Ok(Ok(())), Err(InvalidTransaction::Stale.into())]);
}

#[test]
fn a_signed_opening_is_none_and_one_without_extensions_is_no_transaction() {
    let mut chain = open();
    let task = committed(&mut chain);
    wait_for_reveals(&mut chain, task);
    let signed = chain.query(|| crate::chain::signed(PROVIDER.agent, revealed(task, &right())));
    assert_eq!(chain.try_extrinsic(signed), Ok(Err(DispatchError::BadOrigin)));
    let bare = UncheckedExtrinsic::new_bare(revealed(task, &right()));
    assert!(chain.validity(bare).is_err());
    let other = surety_pallet_task_auction::Call::<surety_runtime::Runtime>::advance { task };
    assert!(chain.try_extrinsic(general(other, 0)).is_err());
    assert!(chain.validity(general(revealed(task, &right()), 0)).is_ok());
}

#[test]
fn an_opening_has_at_most_nine_bytes_beside_its_call() {
    // The nonces of a worker's attempts: those that fit two bytes.
    for (attempt, bytes) in [(0, 8), (63, 8), (64, 9), (16_383, 9), (16_384, 11)] {
        for call in [revealed(7, &right()), opened(7)] {
            let whole = general(call.clone(), attempt).encoded_size();
            assert_eq!(whole, call.encoded_size() + bytes, "{attempt}");
        }
    }
}
