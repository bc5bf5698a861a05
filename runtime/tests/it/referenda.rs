//! What holders of SURE change by referendum, on the real runtime, and what nobody changes without one.

use codec::Encode;
use frame_support::{
    BoundedVec, assert_noop, assert_ok,
    dispatch::DispatchResult,
    traits::{Bounded, ConstU32, Get, InstanceFilter, fungible::Inspect, schedule::DispatchTime},
};
use frame_system::RawOrigin;
use pallet_conviction_voting::{AccountVote, Conviction, Vote};
use pallet_referenda::{ReferendumCount, ReferendumIndex, ReferendumInfo, ReferendumInfoFor};
use sp_keyring::Sr25519Keyring::{
    self, Alice, AliceStash, Bob, CharlieStash, DaveStash, Eve, EveStash, Ferdie, FerdieStash,
};
use sp_runtime::{
    DispatchError,
    traits::{BlakeTwo256, BlockNumberProvider, Dispatchable, Hash},
};
use surety_pallet_trust_lock::Slashes;
use surety_runtime::{
    Balance, Balances, OriginCaller, Runtime, RuntimeCall, RuntimeEvent, RuntimeOrigin, RuntimeParameters,
    Sudo,
    configs::{
        compute::TreasuryAccount,
        consensus::RunningClock,
        governance::ProxyType,
        origins::{Origin, SPENDER_LIMIT},
        referenda::is_veto,
        tracks,
    },
    params::dynamic::{auction, staking},
    units::SURE,
};
use surety_types::TaskId;

use crate::{
    chain::{Chain, account},
    market::{self, BOND, PROVIDERS, Provider, all_ok},
};

/// Who votes. Together they have two fifths of all SURE, which is enough for root at once.
const HOLDERS: [Sr25519Keyring; 6] = [Alice, AliceStash, CharlieStash, DaveStash, EveStash, FerdieStash];

/// What each of them votes with.
const VOTES: Balance = 950_000 * SURE;

/// A dev chain.
pub fn dev() -> Chain {
    Chain::new(sp_genesis_builder::DEV_RUNTIME_PRESET)
}

/// Root, as a referendum asks for it.
pub fn root() -> OriginCaller {
    OriginCaller::system(RawOrigin::Root)
}

/// A vote that stays locked for the shortest time.
pub fn vote(poll_index: ReferendumIndex, aye: bool, balance: Balance) -> RuntimeCall {
    let conviction = Conviction::Locked1x;
    let vote = AccountVote::Standard {
        vote: Vote { aye, conviction },
        balance,
    };
    pallet_conviction_voting::Call::vote { poll_index, vote }.into()
}

fn submit(origin: OriginCaller, call: &RuntimeCall) -> RuntimeCall {
    let (encoded, hash) = (call.encode(), BlakeTwo256::hash_of(call));
    let len = encoded.len() as u32;
    let proposal: Bounded<RuntimeCall, BlakeTwo256> = match BoundedVec::<u8, ConstU32<128>>::try_from(encoded)
    {
        Ok(call) => Bounded::Inline(call),
        // It has been noted.
        Err(_) => Bounded::Lookup { hash, len },
    };
    pallet_referenda::Call::submit {
        proposal_origin: Box::new(origin),
        proposal,
        enactment_moment: DispatchTime::After(0),
    }
    .into()
}

/// Submits a referendum with its deposit, and has these vote for it. Returns its number.
pub fn propose_with(
    chain: &mut Chain,
    origin: OriginCaller,
    call: impl Into<RuntimeCall>,
    ayes: &[(Sr25519Keyring, Balance)],
) -> ReferendumIndex {
    let index = chain.query(ReferendumCount::<Runtime>::get);
    let deposit = pallet_referenda::Call::place_decision_deposit { index };
    let mut calls = vec![(Alice, submit(origin, &call.into())), (Alice, deposit.into())];
    calls.extend(
        ayes.iter()
            .map(|(who, balance)| (*who, vote(index, true, *balance))),
    );
    all_ok(chain.block(calls));
    index
}

/// The same with everybody for it.
pub fn propose(chain: &mut Chain, origin: OriginCaller, call: impl Into<RuntimeCall>) -> ReferendumIndex {
    propose_with(chain, origin, call, &HOLDERS.map(|holder| (holder, VOTES)))
}

/// How the call of a referendum went, in the last block.
fn result_of_call(chain: &mut Chain) -> Option<DispatchResult> {
    use pallet_scheduler::Event::Dispatched;

    chain.events().into_iter().find_map(|event| match event {
        // Alarms have no name.
        RuntimeEvent::Scheduler(Dispatched {
            id: Some(_), result, ..
        }) => Some(result),
        _ => None,
    })
}

/// Waits until a referendum has won and its call was made. Returns how that went.
pub fn enacted(chain: &mut Chain, index: ReferendumIndex) -> DispatchResult {
    chain.run_until(200, || {
        matches!(
            ReferendumInfoFor::<Runtime>::get(index),
            Some(ReferendumInfo::Approved(..))
        )
    });
    for _ in 0..20 {
        match result_of_call(chain) {
            Some(result) => return result,
            None => chain.run_to(chain.number() + 1),
        }
    }
    panic!("referendum {index} has done nothing")
}

/// Has a parameter set.
pub fn set(key_value: RuntimeParameters) -> RuntimeCall {
    pallet_parameters::Call::set_parameter { key_value }.into()
}

/// Has sealed bids be taken for so long.
pub fn bid_window(blocks: u32) -> RuntimeCall {
    set(RuntimeParameters::Auction(auction::Parameters::BidWindow(
        auction::BidWindow,
        Some(blocks),
    )))
}

/// A parameter that is root's alone.
pub fn min_bond(amount: Balance) -> RuntimeCall {
    set(RuntimeParameters::Staking(staking::Parameters::MinBond(
        staking::MinBond,
        Some(amount),
    )))
}

fn spend(amount: Balance) -> RuntimeCall {
    pallet_treasury::Call::spend {
        asset_kind: Box::new(()),
        amount,
        beneficiary: Box::new(account(Eve).into()),
        valid_from: None,
    }
    .into()
}

fn cancel_slash() -> RuntimeCall {
    surety_pallet_trust_lock::Call::cancel_slash { slash: 0 }.into()
}

/// A provider that never opened what it committed to: its lock is to be slashed, and was in the last block.
fn convicted() -> (Chain, TaskId, Provider) {
    let mut chain = market::open();
    let task = market::post(&mut chain, 3);
    market::auction(&mut chain, task, &PROVIDERS[..3]);
    let members = market::members(&mut chain, task);
    let commits = |member: &Provider| member.commits(task, &market::right());
    all_ok(chain.block(members.iter().map(commits).collect()));
    market::wait_for_reveals(&mut chain, task);
    let reveals = |member: &Provider| member.reveals(task, &market::right());
    all_ok(chain.block(members[..2].iter().map(reveals).collect()));
    chain.run_until(1_000, || Slashes::<Runtime>::contains_key(0));
    (chain, task, members[2])
}

fn bonded(chain: &mut Chain, provider: &Provider) -> Balance {
    let ledger = chain.query(|| surety_pallet_staking::Ledgers::<Runtime>::get(provider.account()));
    ledger.map_or(0, |ledger| ledger.bonded)
}

#[test]
fn a_slash_is_vetoed_before_it_is_carried_out_and_takes_nothing() {
    let (mut chain, task, spared) = convicted();
    let until = chain.query(|| Slashes::<Runtime>::get(0)).unwrap().until;
    let veto = propose(&mut chain, Origin::SlashVetoer.into(), cancel_slash());
    assert_eq!(enacted(&mut chain, veto), Ok(()));
    assert!(chain.query(RunningClock::current_block_number) < until);
    assert!(!chain.query(|| Slashes::<Runtime>::contains_key(0)));
    market::wait_for_end(&mut chain, task);
    chain.run_to(chain.number() + 20);
    assert_eq!(bonded(&mut chain, &spared), BOND);
    market::assert_cleared(&mut chain, task);
}

#[test]
fn a_veto_that_takes_all_its_time_comes_before_its_slash() {
    let (mut chain, _, _) = convicted();
    let issued = chain.query(pallet_balances::TotalIssuance::<Runtime>::get);
    let submitted = chain.number() + 1;
    // With a twenty-fifth of all SURE, not before the decision ends.
    let veto = propose_with(
        &mut chain,
        Origin::SlashVetoer.into(),
        cancel_slash(),
        &[(AliceStash, issued / 25)],
    );
    assert_eq!(enacted(&mut chain, veto), Ok(()));
    let track = chain
        .query(|| tracks::slash_veto(tracks::SlashDeferral::get()))
        .unwrap();
    assert_eq!(chain.number(), submitted + tracks::longest(&track));
}

#[test]
fn staked_sure_votes_and_no_vote_keeps_it_from_being_slashed() {
    let (mut chain, task, convict) = convicted();
    let who = convict.account();
    let poll = propose_with(&mut chain, Origin::Spender.into(), spend(SURE), &[]);
    // All but what the fee comes out of.
    let all = chain.query(|| Balances::total_balance(&who)) - SURE;
    assert!(all > chain.free(&who));
    chain.call(convict.stash, vote(poll, true, all));
    let Some(ReferendumInfo::Ongoing(status)) = chain.query(|| ReferendumInfoFor::<Runtime>::get(poll))
    else {
        panic!("it is over")
    };
    assert_eq!(status.tally.support, all);
    let transfer = pallet_balances::Call::transfer_allow_death {
        dest: account(Bob).into(),
        value: 2 * SURE,
    };
    assert!(
        chain.try_call(convict.stash, transfer).is_err(),
        "votes are locked"
    );

    let before = chain.query(|| Balances::total_balance(&who));
    chain.run_until(30, || !Slashes::<Runtime>::contains_key(0));
    market::wait_for_end(&mut chain, task);
    let lost = BOND - bonded(&mut chain, &convict);
    assert!(lost > 0);
    assert_eq!(chain.query(|| Balances::total_balance(&who)), before - lost);
}

#[test]
fn a_parameter_is_set_by_those_who_may_set_it_and_by_nobody_else() {
    let mut chain = dev();
    let admin = || OriginCaller::from(Origin::ParameterAdmin);
    let index = propose(&mut chain, admin(), bid_window(3));
    assert_eq!(enacted(&mut chain, index), Ok(()));
    assert_eq!(chain.query(auction::BidWindow::get), 3);

    // What stake there has to be is for root to say.
    let before = chain.query(staking::MinBond::get);
    let index = propose(&mut chain, admin(), min_bond(1));
    assert_eq!(enacted(&mut chain, index), Err(DispatchError::BadOrigin));
    assert_eq!(chain.query(staking::MinBond::get), before);
    let index = propose(&mut chain, root(), min_bond(7 * SURE));
    assert_eq!(enacted(&mut chain, index), Ok(()));
    assert_eq!(chain.query(staking::MinBond::get), 7 * SURE);
}

#[test]
fn the_treasury_pays_what_was_decided_and_once() {
    let mut chain = dev();
    let pot = chain.query(TreasuryAccount::get);
    assert_eq!(chain.query(surety_runtime::Treasury::account_id), pot);
    let fund = pallet_balances::Call::transfer_keep_alive {
        dest: pot.into(),
        value: 5_000 * SURE,
    };
    chain.call(Bob, fund);
    let index = propose(&mut chain, Origin::Spender.into(), spend(SPENDER_LIMIT));
    assert_eq!(enacted(&mut chain, index), Ok(()));
    let before = chain.free(&account(Eve));
    // Anybody has it paid.
    chain.call(Ferdie, pallet_treasury::Call::payout { index: 0 });
    assert_eq!(chain.free(&account(Eve)), before + SPENDER_LIMIT);
    assert_eq!(
        chain.try_call(Ferdie, pallet_treasury::Call::payout { index: 0 }),
        Err(pallet_treasury::Error::<Runtime>::AlreadyAttempted.into())
    );

    // Not what keeps its account, and what others are due of fees with it.
    let all = chain.query(|| Balances::free_balance(TreasuryAccount::get()));
    chain.query(|| {
        assert_ok!(spend(all).dispatch(RuntimeOrigin::root()));
    });
    assert_eq!(
        chain.try_call(Ferdie, pallet_treasury::Call::payout { index: 1 }),
        Err(pallet_treasury::Error::<Runtime>::PayoutError.into())
    );

    let twice = pallet_utility::Call::batch_all {
        calls: vec![spend(SPENDER_LIMIT); 2],
    };
    for call in [spend(SPENDER_LIMIT + 1), twice.into()] {
        let index = propose(&mut chain, Origin::Spender.into(), call);
        let refused = pallet_treasury::Error::<Runtime>::InsufficientPermission;
        assert_eq!(enacted(&mut chain, index), Err(refused.into()));
    }
}

#[test]
fn a_referendum_is_cancelled_by_another_and_gives_its_deposits_back() {
    let mut chain = dev();
    let index = propose_with(&mut chain, root(), min_bond(1), &[]);
    let cancel = pallet_referenda::Call::cancel { index };
    let canceller = propose(&mut chain, Origin::ReferendumCanceller.into(), cancel);
    assert_eq!(enacted(&mut chain, canceller), Ok(()));
    let info = chain.query(|| ReferendumInfoFor::<Runtime>::get(index));
    assert!(matches!(info, Some(ReferendumInfo::Cancelled(..))), "{info:?}");
    let reserved = |chain: &mut Chain| chain.query(|| Balances::reserved_balance(account(Alice)));
    let before = reserved(&mut chain);
    chain.call(Bob, pallet_referenda::Call::refund_decision_deposit { index });
    assert_eq!(reserved(&mut chain), before - 20_000 * SURE);
    chain.call(Bob, pallet_referenda::Call::refund_submission_deposit { index });
    assert_eq!(reserved(&mut chain), before - 20_010 * SURE);
}

/// Else a tenth of SURE could end a veto in hours in which nobody looks.
#[test]
fn a_referendum_on_a_veto_is_ended_by_root_alone() {
    let mut chain = dev();
    let veto = propose_with(&mut chain, Origin::SlashVetoer.into(), cancel_slash(), &[]);
    let cancel = || pallet_referenda::Call::cancel { index: veto };
    let canceller = propose(&mut chain, Origin::ReferendumCanceller.into(), cancel());
    let refused = DispatchError::from(frame_system::Error::<Runtime>::CallFiltered);
    assert_eq!(enacted(&mut chain, canceller), Err(refused));
    let batch = pallet_utility::Call::batch_all {
        calls: vec![cancel().into()],
    };
    chain.query(|| {
        assert!(is_veto(veto), "it has gone on");
        let origin = RuntimeOrigin::from(Origin::ReferendumCanceller);
        let failed = RuntimeCall::from(batch).dispatch(origin).unwrap_err();
        assert_eq!(failed.error, refused);
        assert_ok!(RuntimeCall::from(cancel()).dispatch(RuntimeOrigin::root()));
        assert!(!is_veto(veto));
    });
}

#[test]
fn what_more_are_against_than_for_is_rejected_however_many_support_it() {
    let mut chain = dev();
    let index = propose_with(
        &mut chain,
        Origin::ParameterAdmin.into(),
        bid_window(3),
        &[(Alice, VOTES), (AliceStash, VOTES), (CharlieStash, VOTES)],
    );
    let nays = [DaveStash, EveStash, FerdieStash, Ferdie].map(|holder| (holder, vote(index, false, VOTES)));
    all_ok(chain.block(nays.to_vec()));
    chain.run_until(100, || {
        matches!(
            ReferendumInfoFor::<Runtime>::get(index),
            Some(ReferendumInfo::Rejected(..))
        )
    });
    chain.run_to(chain.number() + 10);
    assert_eq!(chain.query(auction::BidWindow::get), 8);
}

#[test]
fn without_a_key_root_alone_can_make_somebody_sudo() {
    let mut chain = Chain::new(sp_genesis_builder::LOCAL_TESTNET_RUNTIME_PRESET);
    chain.query(|| {
        assert_noop!(
            Sudo::set_key(RawOrigin::Signed(account(Alice)).into(), account(Alice).into()),
            pallet_sudo::Error::<Runtime>::RequireSudo
        );
        // As it can have any other code run.
        assert_ok!(Sudo::set_key(RawOrigin::Root.into(), account(Alice).into()));
    });
}

#[test]
fn a_proxy_votes_for_a_stash_and_can_take_none_of_its_money() {
    let governs = |call: &RuntimeCall| ProxyType::Governance.filter(call);
    assert!(governs(&vote(0, true, SURE)));
    assert!(governs(&submit(root(), &min_bond(1))));
    let transfer = pallet_balances::Call::transfer_keep_alive {
        dest: account(Bob).into(),
        value: SURE,
    };
    let unbond = surety_pallet_staking::Call::unbond { amount: SURE };
    let batch = pallet_utility::Call::batch { calls: Vec::new() };
    for (call, allowed) in [
        (RuntimeCall::from(transfer), false),
        (unbond.into(), false),
        (spend(1), false),
        // What is in it is looked at, too.
        (batch.into(), true),
    ] {
        assert_eq!(governs(&call), allowed, "{call:?}");
    }
    assert!(!ProxyType::NonTransfer.filter(&vote(0, true, SURE)));
    assert!(!ProxyType::Compute.filter(&vote(0, true, SURE)));
}
