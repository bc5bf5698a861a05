//! Whole task lives: from a posted task to money that moved, or did not.

use frame_support::{assert_noop, assert_ok, traits::Get};
use sp_keyring::Sr25519Keyring::AliceStash;
use surety_runtime::{
    AccountId, Balance, Balances, Runtime, RuntimeEvent,
    configs::{
        compute::{TreasuryAccount, ValidatorPot},
        stake::UNBONDING_MIN,
    },
    params::dynamic::billing::FeeMin,
    units::SURE,
};
use surety_types::task::{FailureReason, ResultClaim, TaskState, Verdict};

use crate::{
    chain::{Chain, account},
    market::{self, *},
};

/// Posts a task for three, has the four providers bid, and returns those who were drawn.
fn started(chain: &mut Chain) -> (surety_types::TaskId, Vec<Provider>) {
    let task = post(chain, 3);
    auction(chain, task, &PROVIDERS);
    let members = members(chain, task);
    assert_eq!(members.len(), 3);
    (task, members)
}

/// `members` commit and reveal `claims`, and the task runs to its end.
fn finish(chain: &mut Chain, task: u64, members: &[Provider], claims: &[ResultClaim]) {
    let pairs = || members.iter().zip(claims);
    all_ok(
        chain.block(
            pairs()
                .map(|(member, claim)| member.commits(task, claim))
                .collect(),
        ),
    );
    wait_for_reveals(chain, task);
    all_ok(
        chain.block(
            pairs()
                .map(|(member, claim)| member.reveals(task, claim))
                .collect(),
        ),
    );
    wait_for_end(chain, task);
}

/// What the client has locked beside the cap.
const CLIENT_LOCK: Balance = CAP / 4;

/// Balances of everybody that a settlement may pay, in the order client, treasury, validators.
fn parties(chain: &mut Chain) -> [Balance; 3] {
    chain.query(|| [account(CLIENT), TreasuryAccount::get(), ValidatorPot::get()].map(Balances::free_balance))
}

/// What the last block has minted for a provider.
fn minted_for(chain: &mut Chain, of: &AccountId) -> Balance {
    let minted = |event| match event {
        RuntimeEvent::Emission(surety_pallet_emission::Event::WorkPaid { provider, minted }) => {
            (provider == *of).then_some(minted)
        }
        _ => None,
    };
    chain.events().into_iter().filter_map(minted).sum()
}

#[test]
fn three_honest_providers_are_paid_and_the_rest_of_the_cap_comes_back() {
    let mut chain = open();
    let (task, members) = started(&mut chain);
    let before = members
        .iter()
        .map(|member| chain.free(&member.account()))
        .collect::<Vec<_>>();
    let [client, treasury, validators] = parties(&mut chain);

    finish(&mut chain, task, &members, &[right(), right(), right()]);

    let TaskState::Settled {
        payments,
        refund,
        fee,
        claim,
        ..
    } = chain.query(|| state(task))
    else {
        panic!("not settled")
    };
    assert_eq!(claim, right());
    assert_eq!(payments.len(), 3);
    for (member, before) in members.iter().zip(before) {
        let paid = payments
            .iter()
            .find(|payment| payment.provider == member.account())
            .unwrap();
        // Half of the units were needed; a bid of the whole price would have been at least its own.
        assert!(paid.price >= member.price / 2, "{paid:?}");
        // What its stake has earned since it was bonded is minted for its work.
        let minted = minted_for(&mut chain, &member.account());
        assert!(minted > 0 && minted < paid.price / 20, "{minted}");
        assert_eq!(chain.free(&member.account()), before + paid.price + minted);
    }
    let paid: Balance = payments.iter().map(|payment| payment.price).sum();
    assert_eq!(paid + refund + fee, CAP);
    assert_eq!(fee, paid / 20);
    // Who was paid by the same rule was paid the same: everybody weighs the same.
    assert!(payments.iter().all(|payment| payment.price == payments[0].price));
    assert_eq!(
        parties(&mut chain),
        [
            client + refund + CLIENT_LOCK,
            treasury + fee * 2 / 5,
            validators + fee * 2 / 5
        ]
    );
    assert_cleared(&mut chain, task);
}

#[test]
fn a_liar_is_named_and_not_paid() {
    let mut chain = open();
    let (task, members) = started(&mut chain);
    let liar = members[0];
    let before = chain.free(&liar.account());
    let lie = ResultClaim {
        output: hash(66),
        ..right()
    };

    all_ok(chain.block(vec![
        liar.commits(task, &lie),
        members[1].commits(task, &right()),
        members[2].commits(task, &right()),
    ]));
    wait_for_reveals(&mut chain, task);
    all_ok(chain.block(vec![
        liar.reveals(task, &lie),
        members[1].reveals(task, &right()),
        members[2].reveals(task, &right()),
    ]));
    let verdict = chain
        .events()
        .into_iter()
        .find_map(|event| match event {
            RuntimeEvent::Results(surety_pallet_results::Event::VerdictReached { verdict, .. }) => {
                Some(verdict)
            }
            _ => None,
        })
        .expect("all have revealed");
    let Verdict::Agreed {
        claim,
        majority,
        minority,
        absent,
    } = verdict
    else {
        panic!("no agreement")
    };
    assert_eq!(claim, right());
    assert_eq!(majority.len(), 2);
    assert_eq!(minority.to_vec(), [liar.account()]);
    assert!(absent.is_empty());

    wait_for_end(&mut chain, task);
    let TaskState::Settled { payments, .. } = chain.query(|| state(task)) else {
        panic!("not settled")
    };
    assert!(payments.iter().all(|payment| payment.provider != liar.account()));
    assert_eq!(chain.free(&liar.account()), before);
    assert_cleared(&mut chain, task);
}

#[test]
fn an_absent_provider_is_replaced_by_the_reserve() {
    let mut chain = open();
    let (task, members) = started(&mut chain);
    all_ok(
        chain.block(
            members[1..]
                .iter()
                .map(|member| member.commits(task, &right()))
                .collect(),
        ),
    );

    // A reserve that has not been heard of lately would be passed over.
    heartbeats(&mut chain);
    chain.run_until(60, || {
        surety_pallet_results::Rounds::<Runtime>::get(task).is_some_and(|round| !round.dropped.is_empty())
    });
    let now = market::members(&mut chain, task);
    let reserve = *now
        .iter()
        .find(|provider| members.iter().all(|member| member.stash != provider.stash))
        .expect("the fourth bidder takes over");

    let (signer, call) = reserve.commits(task, &right());
    chain.call(signer, call);
    wait_for_reveals(&mut chain, task);
    let workers = [members[1], members[2], reserve];
    all_ok(
        chain.block(
            workers
                .iter()
                .map(|member| member.reveals(task, &right()))
                .collect(),
        ),
    );
    wait_for_end(&mut chain, task);
    let TaskState::Settled { payments, .. } = chain.query(|| state(task)) else {
        panic!("not settled")
    };
    assert_eq!(payments.len(), 3);
    assert!(
        payments
            .iter()
            .all(|payment| payment.provider != members[0].account())
    );
    assert_cleared(&mut chain, task);
}

#[test]
fn two_of_three_are_enough_when_nobody_can_take_over() {
    let mut chain = open();
    let task = post(&mut chain, 3);
    auction(&mut chain, task, &PROVIDERS[..3]);
    let members = members(&mut chain, task);
    all_ok(
        chain.block(
            members[1..]
                .iter()
                .map(|member| member.commits(task, &right()))
                .collect(),
        ),
    );
    wait_for_reveals(&mut chain, task);
    all_ok(
        chain.block(
            members[1..]
                .iter()
                .map(|member| member.reveals(task, &right()))
                .collect(),
        ),
    );
    wait_for_end(&mut chain, task);
    let TaskState::Settled { payments, .. } = chain.query(|| state(task)) else {
        panic!("not settled")
    };
    assert_eq!(payments.len(), 2);
    assert_cleared(&mut chain, task);
}

#[test]
fn three_different_answers_pay_nobody() {
    let mut chain = open();
    let (task, members) = started(&mut chain);
    let before = parties(&mut chain);
    let claims = [1, 2, 3].map(|byte| ResultClaim {
        output: hash(byte),
        ..right()
    });
    finish(&mut chain, task, &members, &claims);
    assert!(matches!(
        chain.query(|| state(task)),
        TaskState::Failed {
            reason: FailureReason::NoAgreement,
            ..
        }
    ));
    let [client, treasury, validators] = before;
    assert_eq!(
        parties(&mut chain),
        [client + CAP + CLIENT_LOCK, treasury, validators]
    );
    assert_cleared(&mut chain, task);
}

#[test]
fn nobody_working_pays_nobody() {
    let mut chain = open();
    let (task, _) = started(&mut chain);
    wait_for_end(&mut chain, task);
    assert!(matches!(
        chain.query(|| state(task)),
        TaskState::Failed {
            reason: FailureReason::NotEnoughResults,
            ..
        }
    ));
    assert_cleared(&mut chain, task);
}

#[test]
fn too_few_bids_give_the_client_its_money_back() {
    let mut chain = open();
    let task = post(&mut chain, 3);
    let before = chain.free(&account(CLIENT));
    auction(&mut chain, task, &PROVIDERS[..2]);
    assert!(matches!(
        chain.query(|| state(task)),
        TaskState::Failed {
            reason: FailureReason::NotEnoughBids,
            ..
        }
    ));
    assert_eq!(chain.free(&account(CLIENT)), before + CAP + CLIENT_LOCK);
    assert_cleared(&mut chain, task);
}

#[test]
fn a_client_that_cancels_what_others_have_bid_for_pays_the_least_fee() {
    let mut chain = open();
    let task = post(&mut chain, 3);
    heartbeats(&mut chain);
    all_ok(chain.block(vec![PROVIDERS[0].sealed(task)]));
    let [client, treasury, validators] = parties(&mut chain);
    chain.query(|| {
        // Without a transaction, of which treasury and validators have their parts.
        let origin = frame_system::RawOrigin::Signed(account(CLIENT));
        assert_ok!(surety_runtime::TaskAuction::cancel(origin.into(), task));
    });
    let fee = chain.query(FeeMin::get);
    assert!(fee > 0);
    assert_eq!(
        parties(&mut chain),
        [
            client + CAP - fee + CLIENT_LOCK,
            treasury + fee * 2 / 5,
            validators + fee * 2 / 5
        ]
    );
    assert_cleared(&mut chain, task);
}

#[test]
fn a_client_can_cancel_until_the_draw() {
    let mut chain = open();
    let task = post(&mut chain, 3);
    let cancel = surety_pallet_task_auction::Call::cancel { task };
    let by_stranger = chain.try_call(PROVIDERS[0].agent, cancel.clone());
    assert_eq!(
        by_stranger,
        Err(surety_pallet_task_auction::Error::<Runtime>::NotClient.into())
    );
    chain.call(CLIENT, cancel);
    assert!(matches!(chain.query(|| state(task)), TaskState::Cancelled { .. }));
    assert_cleared(&mut chain, task);

    let (task, _) = started(&mut chain);
    let late = chain.try_call(CLIENT, surety_pallet_task_auction::Call::cancel { task });
    assert_eq!(
        late,
        Err(surety_pallet_task_auction::Error::<Runtime>::WrongPhase.into())
    );
}

#[test]
fn one_provider_alone_is_paid_the_second_price() {
    let mut chain = open();
    let task = post(&mut chain, 1);
    auction(&mut chain, task, &PROVIDERS);
    let members = members(&mut chain, task);
    assert_eq!(members[0].stash, PROVIDERS[0].stash);
    finish(&mut chain, task, &members, &[right()]);
    let TaskState::Settled { payments, .. } = chain.query(|| state(task)) else {
        panic!("not settled")
    };
    assert_eq!(payments[0].price, PROVIDERS[1].price / 2);
}

#[test]
fn stake_behind_a_task_cannot_leave() {
    let mut chain = open();
    let (task, members) = started(&mut chain);
    let unbond = surety_pallet_staking::Call::unbond { amount: BOND };
    let refused = chain.try_call(members[0].stash, unbond.clone());
    assert_eq!(
        refused,
        Err(surety_pallet_staking::Error::<Runtime>::StakeLocked.into())
    );
    finish(&mut chain, task, &members, &[right(), right(), right()]);
    chain.call(members[0].stash, unbond);
}

#[test]
fn a_provider_without_stake_is_off_the_list() {
    let mut chain = open();
    chain.query(|| {
        use surety_runtime::{RuntimeParameters, params::dynamic::staking};
        let short = RuntimeParameters::Staking(staking::Parameters::UnbondingPeriod(
            staking::UnbondingPeriod,
            Some(2),
        ));
        assert_ok!(surety_runtime::Parameters::set_parameter(
            frame_system::RawOrigin::Root.into(),
            short
        ));
    });
    let stash = PROVIDERS[0].account();
    let listed = || surety_pallet_provider_registry::Providers::<Runtime>::contains_key(&stash);
    chain.call(
        PROVIDERS[0].stash,
        surety_pallet_staking::Call::unbond { amount: BOND },
    );
    assert!(chain.query(listed));
    let withdraw = surety_pallet_staking::Call::withdraw_unbonded {};
    let from = chain.number();
    chain.run_to(from + 3);
    // Whatever governance says, it takes longer than a slash takes to be carried out.
    assert_eq!(
        chain.try_call(PROVIDERS[0].stash, withdraw.clone()),
        Err(surety_pallet_staking::Error::<Runtime>::NothingToWithdraw.into())
    );
    chain.run_to(from + UNBONDING_MIN + 3);
    chain.call(PROVIDERS[0].stash, withdraw);
    assert!(!chain.query(listed));
}

#[test]
fn bad_tasks_change_nothing() {
    use surety_pallet_task_auction::{Call, Error, Pallet};
    let mut chain = open();
    type Post = fn() -> (surety_types::task::TaskSpec, Balance, sp_runtime::DispatchError);
    let cases: [Post; 4] = [
        || {
            let spec = surety_types::task::TaskSpec {
                model: hash(99),
                ..spec(3)
            };
            (
                spec,
                CAP,
                surety_pallet_model_registry::Error::<Runtime>::UnknownModel.into(),
            )
        },
        || (spec(0), CAP, Error::<Runtime>::ZeroRedundancy.into()),
        || (spec(17), CAP, Error::<Runtime>::RedundancyTooHigh.into()),
        || {
            (
                spec(3),
                SURE / 100,
                surety_pallet_billing::Error::<Runtime>::CapBelowFee.into(),
            )
        },
    ];
    for case in cases {
        let (spec, cap, error) = case();
        chain.query(|| {
            let origin = frame_system::RawOrigin::Signed(account(AliceStash));
            assert_noop!(Pallet::<Runtime>::post(origin.into(), spec.clone(), cap), error);
        });
        assert_eq!(chain.try_call(CLIENT, Call::post { spec, cap }), Err(error));
    }
    chain.query(|| {
        assert_ok!(surety_runtime::TaskAuction::do_try_state());
        assert_eq!(surety_pallet_task_auction::NextTaskId::<Runtime>::get(), 0);
    });
}

#[test]
fn finished_tasks_are_removed_in_the_end() {
    let mut chain = open();
    chain.query(|| {
        use surety_runtime::{RuntimeParameters, params::dynamic::auction};
        let short = RuntimeParameters::Auction(auction::Parameters::FinishedRetention(
            auction::FinishedRetention,
            Some(20),
        ));
        assert_ok!(surety_runtime::Parameters::set_parameter(
            frame_system::RawOrigin::Root.into(),
            short
        ));
    });
    let task = post(&mut chain, 3);
    chain.call(CLIENT, surety_pallet_task_auction::Call::cancel { task });
    let removed = || surety_pallet_task_auction::Tasks::<Runtime>::get(task).is_none();
    assert!(!chain.query(removed));
    chain.run_until(30, removed);
}
