//! One clock for everything that somebody loses money by being late with.

use frame_support::{
    dispatch::{DispatchClass, GetDispatchInfo, Pays},
    traits::Get,
    weights::Weight,
};
use sp_core::H256;
use sp_keyring::Sr25519Keyring::{Alice, Bob};
use sp_runtime::{traits::BlockNumberProvider, transaction_validity::InvalidTransaction};
use surety_dispute_game::bisection::Move;
use surety_pallet_disputes::Call as DisputesCall;
use surety_pallet_finality_clock::{Finalized, Notes};
use surety_pallet_results::Call as ResultsCall;
use surety_pallet_staking::Error as StakingError;
use surety_pallet_trust_lock::{Records, Slashes};
use surety_pallet_validators::StoodStill;
use surety_proofs::{CommitStatement, PartOpening, SegmentOpening, SignedStatement};
use surety_runtime::{
    BlockNumber, Delegation, Results, Runtime, RuntimeCall, Session, System, TransactionPayment, TrustLock,
    configs::{
        consensus::{NoRoomForAnswers, RunningClock},
        system::RuntimeBlockWeights,
    },
    params::dynamic::trust_lock,
};
use surety_types::{
    TaskId,
    task::{RoundPhase, TaskState},
    traits::Jail,
    trust::{AuditAnswer, AuditProof, Content, ItemLeaves},
};

use crate::{
    chain::{Chain, account},
    consensus::run_sessions,
    market::*,
};

/// Far longer than any window of the dev chain but those for unbonding and jail.
const STANDSTILL: BlockNumber = 150;

fn clock(chain: &mut Chain) -> BlockNumber {
    chain.query(RunningClock::current_block_number)
}

/// Finality stands still for long, and the clock with it.
fn stand_still(chain: &mut Chain) {
    chain.finalizes = false;
    let last = chain.number() + STANDSTILL;
    // What was final when it stopped still counts.
    chain.run_to(last - STANDSTILL + 10);
    let before = clock(chain);
    chain.run_to(last);
    assert_eq!(clock(chain), before);
    chain.finalizes = true;
    heartbeats(chain);
}

fn all_members(members: &[Provider], call: impl Fn(&Provider) -> Signed) -> Vec<Signed> {
    members.iter().map(call).collect()
}

type Signed = (sp_keyring::Sr25519Keyring, RuntimeCall);

fn started(chain: &mut Chain) -> (TaskId, Vec<Provider>) {
    let task = post(chain, 3);
    auction(chain, task, &PROVIDERS[..3]);
    let members = members(chain, task);
    (task, members)
}

fn bonded(chain: &mut Chain, provider: &Provider) -> (u128, u128) {
    let ledger = chain
        .query(|| surety_pallet_staking::Ledgers::<Runtime>::get(provider.account()))
        .unwrap();
    (ledger.bonded, ledger.locked)
}

fn phase_is(task: TaskId, wanted: fn(&RoundPhase<surety_runtime::AccountId, BlockNumber>) -> bool) -> bool {
    surety_pallet_results::Rounds::<Runtime>::get(task).is_some_and(|round| wanted(&round.phase))
}

#[test]
fn a_stall_of_finality_while_a_task_is_audited_slashes_nobody_and_everybody_is_paid() {
    let mut chain = open();
    let (task, members) = started(&mut chain);
    all_ok(chain.block(all_members(&members, |member| member.commits(task, &right()))));
    stand_still(&mut chain);
    assert!(chain.query(|| phase_is(task, |phase| matches!(phase, RoundPhase::Auditing { .. }))));
    // Entropy comes with blocks, and takes no time.
    let round = chain.query(|| surety_pallet_results::Rounds::<Runtime>::get(task));
    assert!(round.is_some_and(|round| !round.awaits_seed()));
    wait_for_reveals(&mut chain, task);
    // Once more while commitments are opened.
    stand_still(&mut chain);
    all_ok(chain.block(all_members(&members, |member| member.reveals(task, &right()))));
    wait_for_end(&mut chain, task);
    let TaskState::Settled { payments, .. } = chain.query(|| state(task)) else {
        panic!("not settled")
    };
    assert_eq!(payments.len(), 3);
    assert_eq!(chain.query(|| Slashes::<Runtime>::iter().count()), 0);
    for member in &members {
        assert_eq!(bonded(&mut chain, member), (BOND, 0));
        assert!(!chain.query(|| TrustLock::is_jailed(&member.account())));
    }
    assert_cleared(&mut chain, task);
}

#[test]
fn a_stall_of_finality_takes_no_deposit_of_a_bid_and_holds_up_no_draw() {
    let mut chain = open();
    let task = post(&mut chain, 1);
    all_ok(chain.block(vec![PROVIDERS[0].sealed(task)]));
    chain.run_until(60, || matches!(state(task), TaskState::Revealing { .. }));
    stand_still(&mut chain);
    all_ok(chain.block(vec![PROVIDERS[0].opened(task)]));
    chain.run_until(60, || matches!(state(task), TaskState::Drawing { .. }));
    chain.finalizes = false;
    chain.run_until(3, || matches!(state(task), TaskState::Running { .. }));
    assert_eq!(bonded(&mut chain, &PROVIDERS[0]).0, BOND);
}

#[test]
fn one_silent_provider_loses_its_pay_opens_late_and_loses_no_stake() {
    let mut chain = open();
    let (task, members) = started(&mut chain);
    let silent = members[2];
    all_ok(chain.block(all_members(&members, |member| member.commits(task, &right()))));
    wait_for_reveals(&mut chain, task);
    all_ok(chain.block(all_members(&members[..2], |member| {
        member.reveals(task, &right())
    })));
    chain.run_until(60, || {
        phase_is(task, |phase| matches!(phase, RoundPhase::Challengeable { .. }))
    });
    chain.run_to(chain.number() + 20);
    assert!(chain.query(|| TrustLock::is_suspended(&silent.account())));
    let unbond = surety_pallet_staking::Call::unbond { amount: 1 };
    let refused = chain.try_call(silent.stash, unbond);
    // First because its lock would still be needed, and while it is suspended in any case.
    assert!(refused.is_err());
    all_ok(chain.block(vec![silent.reveals(task, &right())]));
    wait_for_end(&mut chain, task);
    let TaskState::Settled { payments, .. } = chain.query(|| state(task)) else {
        panic!("not settled")
    };
    assert_eq!(payments.len(), 2);
    assert!(
        payments
            .iter()
            .all(|payment| payment.provider != silent.account())
    );
    assert_eq!(bonded(&mut chain, &silent), (BOND, 0));
    assert_eq!(chain.query(|| Slashes::<Runtime>::iter().count()), 0);
    assert_cleared(&mut chain, task);
}

#[test]
fn who_never_commits_is_suspended_for_longer_each_time_and_cannot_unbond() {
    let mut chain = open();
    let [leaver, steady, third, _] = PROVIDERS;
    let mut lengths = Vec::new();
    for _ in 0..2 {
        let task = post(&mut chain, 3);
        auction(&mut chain, task, &[leaver, steady, third]);
        // That most can shows that the input is one to compute on.
        let others = [steady, third];
        all_ok(chain.block(all_members(&others, |member| member.commits(task, &right()))));
        chain.run_until(200, || TrustLock::is_suspended(&leaver.account()));
        let until = chain.query(|| Records::<Runtime>::get(leaver.account()).suspended_until);
        assert_eq!(
            chain.query(|| Records::<Runtime>::get(leaver.account()).missed),
            lengths.len() as u32 + 1
        );
        lengths.push(until.unwrap() - clock(&mut chain));
        // Not even what nothing has locked.
        let refused = chain.try_call(leaver.stash, surety_pallet_staking::Call::unbond { amount: 1 });
        assert_eq!(refused, Err(StakingError::<Runtime>::Suspended.into()));
        // No tasks either.
        let other = post(&mut chain, 1);
        heartbeats(&mut chain);
        let (agent, bid) = leaver.sealed(other);
        assert!(chain.try_call(agent, bid).is_err());
        wait_for_reveals(&mut chain, task);
        all_ok(chain.block(all_members(&others, |member| member.reveals(task, &right()))));
        wait_for_end(&mut chain, task);
        chain.run_until(200, || !TrustLock::is_suspended(&leaver.account()));
    }
    let window = chain.query(trust_lock::SuspensionPeriod::get);
    assert_eq!(lengths[1] - lengths[0], window);
    chain.call(leaver.stash, surety_pallet_staking::Call::unbond { amount: BOND });
    assert_eq!(chain.query(|| Slashes::<Runtime>::iter().count()), 0);
}

#[test]
fn silence_beyond_the_long_window_is_a_conviction() {
    let mut chain = open();
    let (task, members) = started(&mut chain);
    all_ok(chain.block(all_members(&members, |member| member.commits(task, &right()))));
    wait_for_reveals(&mut chain, task);
    all_ok(chain.block(all_members(&members[..2], |member| {
        member.reveals(task, &right())
    })));
    wait_for_end(&mut chain, task);
    let slash = chain.query(|| Slashes::<Runtime>::get(0)).unwrap();
    assert_eq!(
        (slash.offender, slash.kind),
        (members[2].account(), surety_types::trust::FaultKind::NoReveal)
    );
}

#[test]
fn the_clock_goes_by_what_each_validator_has_noted_last() {
    let mut chain = Chain::new("local_testnet");
    chain.run_to(30);
    chain.query(|| {
        assert_eq!(Notes::<Runtime>::get().len(), 3);
        // The middle of 26, 27 and 28.
        assert_eq!(Finalized::<Runtime>::get(), 27);
        assert!(RunningClock::current_block_number() > 20);
    });
    let before = clock(&mut chain);
    chain.finalizes = false;
    chain.run_to(100);
    assert!(clock(&mut chain) <= before + 1);
}

/// Everything that somebody loses money by being late with.
fn answers() -> Vec<RuntimeCall> {
    let provider = PROVIDERS[0];
    let opening = SegmentOpening::new(&[7; 2_000], 0).unwrap();
    let who = provider.account();
    let (claim, salt) = (right(), H256::zero());
    let signed = SignedStatement {
        statement: CommitStatement {
            task: 0,
            provider: who.clone(),
            commitment: salt,
            output: salt,
        },
        agent: who.clone(),
        signature: [0; 64],
    };
    vec![
        provider.opened(0).1,
        provider.reveals(0, &claim).1,
        ResultsCall::reveal_audit {
            task: 0,
            provider: who.clone(),
            verifier: who.clone(),
            claim,
            salt,
        }
        .into(),
        DisputesCall::reveal_vote {
            dispute: 0,
            verifier: who.clone(),
            value: salt,
            salt,
        }
        .into(),
        DisputesCall::play {
            dispute: 0,
            number: 0,
            played: Move::Concede,
        }
        .into(),
        ResultsCall::supply {
            task: 0,
            content: Content::Output,
            bytes: 8_192,
            opening: PartOpening::new(&[7; 8_192], 0).unwrap(),
        }
        .into(),
        ResultsCall::demand {
            task: 0,
            provider: who.clone(),
            parts: Default::default(),
            proof: None,
        }
        .into(),
        ResultsCall::supply_input { task: 0, opening }.into(),
        provider.commits(0, &right()).1,
        ResultsCall::announce_audit {
            task: 0,
            provider: who,
            proof: AuditProof {
                pre_output: [0; 32],
                proof: [0; 64],
            },
            seal: salt,
        }
        .into(),
        ResultsCall::demand_input { task: 0, segment: 0 }.into(),
        ResultsCall::report_equivocation {
            statement: signed.clone(),
            other: Some(signed),
        }
        .into(),
        ResultsCall::refute_audit {
            task: 0,
            provider: PROVIDERS[0].account(),
            verifier: PROVIDERS[0].account(),
            opened: (
                Default::default(),
                AuditAnswer {
                    agrees: true,
                    salt,
                    other: salt,
                },
            ),
            place: 0,
            shown: ItemLeaves {
                leaves: Default::default(),
                siblings: Default::default(),
            },
        }
        .into(),
        DisputesCall::join_committee {
            dispute: 0,
            ballot: 0,
            proof: None,
            seal: salt,
        }
        .into(),
    ]
}

#[test]
fn blocks_keep_room_for_what_somebody_loses_money_by_not_saying_in_time() {
    let limits = RuntimeBlockWeights::get();
    let room = limits.get(DispatchClass::Operational).reserved.unwrap();
    for call in answers() {
        let info = call.get_dispatch_info();
        assert_eq!(info.class, DispatchClass::Operational, "{call:?}");
        assert_eq!(info.pays_fee, Pays::Yes, "{call:?}");
        // Not one, but a crowd of them: of the dearest, a part of a trace that 25 demand at once, 27 fit.
        assert!(
            (info.total_weight() * 24).all_lte(room),
            "{call:?}: {info:?} of {room:?}"
        );
    }
    // What it costs does not depend on the class.
    let mut chain = open();
    chain.query(|| {
        let mut info = answers()[4].get_dispatch_info();
        let fee = TransactionPayment::compute_fee(200, &info, 0);
        info.class = DispatchClass::Normal;
        assert_eq!(TransactionPayment::compute_fee(200, &info, 0), fee);
    });
}

#[test]
fn a_flood_of_calls_keeps_out_no_opening() {
    let mut chain = open();
    let task = post(&mut chain, 1);
    auction(&mut chain, task, &[PROVIDERS[0]]);
    all_ok(chain.block(vec![PROVIDERS[0].commits(task, &right())]));
    wait_for_reveals(&mut chain, task);
    let limits = RuntimeBlockWeights::get();
    let flood = limits.get(DispatchClass::Normal).max_total.unwrap();
    let transfer = pallet_balances::Call::transfer_keep_alive {
        dest: account(Bob).into(),
        value: surety_runtime::units::SURE,
    };
    let refused = chain.busy_block((flood, DispatchClass::Normal), Alice, transfer);
    assert_eq!(refused, Err(InvalidTransaction::ExhaustsResources.into()));
    let (agent, opening) = PROVIDERS[0].reveals(task, &right());
    let before = clock(&mut chain);
    let opened = chain.busy_block((flood, DispatchClass::Normal), agent, opening);
    assert_eq!(opened, Ok(Ok(())));
    // There was room, so its time counts.
    assert_eq!(clock(&mut chain), before + 1);
}

#[test]
fn a_block_without_room_for_an_answer_takes_nobodys_time() {
    let mut chain = open();
    chain.run_to(10);
    let limits = RuntimeBlockWeights::get();
    let kept = limits.get(DispatchClass::Operational).reserved.unwrap();
    let remark = || frame_system::Call::remark { remark: Vec::new() };
    let done = chain.busy_block((Weight::zero(), DispatchClass::Operational), Alice, remark());
    assert_eq!(done, Ok(Ok(())));
    // What is left beside it is half of what an answer would need.
    let others = chain.query(|| System::block_weight().total());
    let full = limits
        .max_block
        .saturating_sub(others)
        .saturating_sub(Results::answer_weight() / 2);
    let before = clock(&mut chain);
    for _ in 0..5 {
        let done = chain.busy_block((full, DispatchClass::Operational), Alice, remark());
        assert_eq!(done, Ok(Ok(())));
    }
    assert_eq!(clock(&mut chain), before);
    // What is kept is used up, but others have left room.
    let done = chain.busy_block((kept, DispatchClass::Operational), Alice, remark());
    assert_eq!((done, clock(&mut chain)), (Ok(Ok(())), before + 1));
    assert!(!chain.query(<NoRoomForAnswers as Get<bool>>::get));
}

#[test]
fn whoever_fills_blocks_neither_takes_validators_pay_nor_puts_off_an_election() {
    // A session is a day there.
    let mut chain = Chain::new("local_testnet");
    run_sessions(&mut chain, 2);
    let session = chain.query(Session::current_index);
    let earned = || Delegation::claimable(account(Alice), account(Alice));
    let (before, paid) = (clock(&mut chain), chain.query(earned));
    let full = RuntimeBlockWeights::get().max_block;
    while chain.query(Session::current_index) == session {
        let remark = frame_system::Call::remark { remark: Vec::new() };
        let refused = chain.busy_block((full, DispatchClass::Operational), Alice, remark);
        assert_eq!(refused, Err(InvalidTransaction::ExhaustsResources.into()));
    }
    assert_eq!(clock(&mut chain), before);
    assert!(!chain.query(StoodStill::<Runtime>::get));
    assert!(chain.query(earned) > paid);
}
