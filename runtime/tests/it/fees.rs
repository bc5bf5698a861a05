//! Who pays for what agents do.

use codec::Encode;
use frame_support::{
    dispatch::{GetDispatchInfo, PostDispatchInfo},
    traits::Get,
    weights::Weight,
};
use pallet_transaction_payment::NextFeeMultiplier;
use sp_keyring::Sr25519Keyring::{self, Charlie, Eve};
use sp_runtime::FixedU128;
use sp_runtime::transaction_validity::{InvalidTransaction, TransactionValidityError};
use surety_pallet_provider_registry::Call as Registry;
use surety_pallet_results::{Call as Results, WeightInfo};
use surety_pallet_staking::Call as Stake;
use surety_proofs::{PART_BYTES, PART_SEGMENTS, PartOpening, SEGMENT_BYTES, SegmentOpening, segments};
use surety_runtime::{
    AccountId, Balance, Runtime, RuntimeCall, System, TransactionPayment, configs::fees::STASH_TIP_MAX,
    params::dynamic::results::SupplyPrice, units::SURE,
};
use surety_types::{limits::INPUT_BYTES_MAX, stake::Role, task::TaskState, trust::Content};

use crate::{
    chain::{Chain, account, signed, tipped},
    market::*,
    measured::commit_run,
};

const PROVIDER: Provider = PROVIDERS[0];

const CANNOT_PAY: TransactionValidityError = TransactionValidityError::Invalid(InvalidTransaction::Payment);

fn heartbeat() -> RuntimeCall {
    Registry::heartbeat {}.into()
}

/// How much less there is on an account after a call, which has to succeed.
fn cost(chain: &mut Chain, of: &AccountId, signer: Sr25519Keyring, call: impl Into<RuntimeCall>) -> Balance {
    let before = chain.free(of);
    chain.call(signer, call);
    before - chain.free(of)
}

fn issuance() -> Balance {
    pallet_balances::TotalIssuance::<Runtime>::get()
}

fn refusal(chain: &mut Chain, call: RuntimeCall, tip: Balance) -> Option<TransactionValidityError> {
    let extrinsic = chain.query(|| tipped(PROVIDER.agent, call, tip));
    chain.validity(extrinsic).err()
}

#[test]
fn an_agent_that_never_had_any_money_confirms_and_earns() {
    let mut chain = Chain::new(sp_genesis_builder::DEV_RUNTIME_PRESET);
    impoverish(&mut chain, PROVIDER.agent);
    assert!(!chain.query(|| System::account_exists(&account(Eve))));
    let (role, amount, agent) = (Role::Provider, BOND, account(PROVIDER.agent));
    chain.call(PROVIDER.stash, Stake::bond { role, amount });
    chain.call(PROVIDER.stash, Stake::set_agent { agent: agent.clone() });

    let stash = PROVIDER.account();
    let confirm = Stake::confirm_agent { stash: stash.clone() };
    assert!(cost(&mut chain, &stash, PROVIDER.agent, confirm) > 0);
    let register = Registry::register {
        device: device(),
        endpoints: spec(1).sources,
    };
    assert!(cost(&mut chain, &stash, PROVIDER.agent, register) > 0);
    assert!(cost(&mut chain, &stash, PROVIDER.agent, heartbeat()) > 0);
    assert_eq!(chain.free(&agent), 0);
}

/// What `surety provider init` sends.
#[test]
fn a_batch_bonds_and_names_the_agent_or_fails_with_the_error_of_the_call_that_did() {
    let mut chain = Chain::new(sp_genesis_builder::DEV_RUNTIME_PRESET);
    impoverish(&mut chain, PROVIDER.agent);
    let batch = |agent: Sr25519Keyring, amount| pallet_utility::Call::batch_all {
        calls: vec![
            Stake::bond {
                role: Role::Provider,
                amount,
            }
            .into(),
            Stake::set_agent {
                agent: account(agent),
            }
            .into(),
        ],
    };
    let free = chain.free(&PROVIDER.account());
    let failed = chain.try_call(PROVIDER.stash, batch(PROVIDER.agent, 1));
    assert_eq!(
        failed,
        Err(surety_pallet_staking::Error::<Runtime>::BelowMinimum.into())
    );
    let fee = free - chain.free(&PROVIDER.account());
    assert!(fee > 0 && fee < SURE, "{fee}");

    chain.call(PROVIDER.stash, batch(PROVIDER.agent, BOND));
    let stash = PROVIDER.account();
    chain.call(PROVIDER.agent, Stake::confirm_agent { stash: stash.clone() });
    // Its agent is taken: nothing is bonded with a second batch.
    let other = PROVIDERS[1].stash;
    let taken = chain.try_call(other, batch(PROVIDER.agent, BOND));
    assert_eq!(
        taken,
        Err(surety_pallet_staking::Error::<Runtime>::AgentTaken.into())
    );
    let ledger = chain.query(|| surety_pallet_staking::Ledgers::<Runtime>::get(account(other)));
    assert!(ledger.is_none());
}

#[test]
fn an_agent_whose_money_is_spent_bids_commits_and_is_paid() {
    let mut chain = open();
    impoverish(&mut chain, PROVIDER.agent);
    let task = post(&mut chain, 1);
    auction(&mut chain, task, &[PROVIDER]);
    let before = chain.free(&PROVIDER.account());
    all_ok(chain.block(vec![PROVIDER.commits(task, &right())]));
    assert!(
        chain.free(&PROVIDER.account()) < before,
        "the stash has paid the fee"
    );
    wait_for_reveals(&mut chain, task);
    all_ok(chain.block(vec![PROVIDER.reveals(task, &right())]));
    wait_for_end(&mut chain, task);
    assert!(matches!(chain.query(|| state(task)), TaskState::Settled { .. }));
    assert_cleared(&mut chain, task);
}

#[test]
fn an_agent_that_has_money_pays_itself() {
    let mut chain = open();
    assert_eq!(
        cost(&mut chain, &PROVIDER.account(), PROVIDER.agent, heartbeat()),
        0
    );
    assert!(cost(&mut chain, &account(PROVIDER.agent), PROVIDER.agent, heartbeat()) > 0);
}

#[test]
fn a_stash_pays_for_work_alone() {
    let mut chain = open();
    impoverish(&mut chain, PROVIDER.agent);
    let transfer = pallet_balances::Call::transfer_allow_death {
        dest: account(Charlie).into(),
        value: SURE,
    };
    let stash = PROVIDER.account();
    let others: [RuntimeCall; 4] = [
        transfer.into(),
        frame_system::Call::remark { remark: vec![0] }.into(),
        pallet_utility::Call::batch {
            calls: vec![heartbeat()],
        }
        .into(),
        Stake::confirm_agent { stash }.into(),
    ];
    for call in others {
        assert_eq!(refusal(&mut chain, call, 0), Some(CANNOT_PAY));
    }
    assert_eq!(refusal(&mut chain, heartbeat(), 0), None);
}

#[test]
fn a_stash_pays_for_whatever_its_agents_program_signs() {
    let mut chain = open();
    impoverish(&mut chain, PROVIDER.agent);
    let (task, dispute) = (0, 0);
    let calls: [RuntimeCall; 10] = [
        surety_pallet_task_auction::Call::bid { task, seal: hash(1) }.into(),
        surety_pallet_results::Call::commit {
            task,
            commitment: hash(1),
        }
        .into(),
        surety_pallet_results::Call::demand_input { task, segment: 0 }.into(),
        surety_pallet_disputes::Call::advance_dispute { dispute }.into(),
        surety_pallet_trust_lock::Call::carry_out_slash { slash: 0 }.into(),
        surety_pallet_model_registry::Call::offer_audits {
            model: manifest().id(),
            offered: true,
        }
        .into(),
        surety_pallet_channels::Call::add_signer {}.into(),
        commit_run(),
        // It uses up a nonce whose call was lost.
        frame_system::Call::remark { remark: vec![] }.into(),
        heartbeat(),
    ];
    for call in calls {
        assert_eq!(refusal(&mut chain, call, 0), None);
    }
}

#[test]
fn what_a_stash_pays_no_author_gets() {
    let mut chain = open();
    impoverish(&mut chain, PROVIDER.agent);
    let tipped = chain.query(|| tipped(PROVIDER.agent, heartbeat(), STASH_TIP_MAX));
    let (stash, issued) = (chain.free(&PROVIDER.account()), chain.query(issuance));
    assert_eq!(chain.try_extrinsic(tipped), Ok(Ok(())));
    let paid = stash - chain.free(&PROVIDER.account());
    assert!(paid > STASH_TIP_MAX);
    assert_eq!(issued - chain.query(issuance), paid);
}

#[test]
fn who_is_an_agent_already_costs_another_stash_nothing() {
    let mut chain = open();
    impoverish(&mut chain, PROVIDER.agent);
    let other = PROVIDERS[1];
    let agent = account(Sr25519Keyring::FerdieStash);
    for provider in [PROVIDER, other] {
        chain.call(provider.stash, Stake::set_agent { agent: agent.clone() });
    }
    impoverish(&mut chain, Sr25519Keyring::FerdieStash);
    let confirm = |provider: Provider| Stake::confirm_agent {
        stash: provider.account(),
    };
    chain.call(Sr25519Keyring::FerdieStash, confirm(PROVIDER));
    let again = chain.query(|| signed(Sr25519Keyring::FerdieStash, confirm(other).into()));
    assert_eq!(chain.validity(again).err(), Some(CANNOT_PAY));
}

#[test]
fn a_stash_pays_tips_up_to_a_bound() {
    let mut chain = open();
    impoverish(&mut chain, PROVIDER.agent);
    assert_eq!(refusal(&mut chain, heartbeat(), STASH_TIP_MAX), None);
    assert_eq!(
        refusal(&mut chain, heartbeat(), STASH_TIP_MAX + 1),
        Some(CANNOT_PAY)
    );
}

#[test]
fn a_stash_without_free_money_pays_for_nobody() {
    let mut chain = open();
    impoverish(&mut chain, PROVIDER.agent);
    impoverish(&mut chain, PROVIDER.stash);
    assert_eq!(refusal(&mut chain, heartbeat(), 0), Some(CANNOT_PAY));
}

#[test]
fn an_agent_that_was_dismissed_costs_its_stash_nothing_more() {
    let mut chain = open();
    impoverish(&mut chain, PROVIDER.agent);
    let late = chain.query(|| signed(PROVIDER.agent, heartbeat()));
    chain.call(PROVIDER.stash, Stake::remove_agent {});
    assert_eq!(chain.validity(late).err(), Some(CANNOT_PAY));
    assert!(!chain.query(|| System::account_exists(&account(PROVIDER.agent))));
    assert!(chain.query(|| surety_pallet_staking::Ledgers::<Runtime>::contains_key(PROVIDER.account())));
}

/// What a call costs at least, with what is given back of it.
fn least_fee(chain: &mut Chain, call: RuntimeCall, took: Option<Weight>) -> Balance {
    chain.query(|| {
        // No blocks are emptier.
        NextFeeMultiplier::<Runtime>::put(FixedU128::from_rational(1, 10));
        let (info, length) = (
            call.get_dispatch_info(),
            signed(PROVIDER.agent, call).encoded_size(),
        );
        let took = PostDispatchInfo::from(took);
        TransactionPayment::compute_actual_fee(length as u32, &info, &took, 0)
    })
}

#[test]
fn a_client_that_is_paid_for_a_piece_that_it_did_not_serve_has_paid_more_for_that() {
    let mut chain = open();
    for bytes in [1, 100, 500, SEGMENT_BYTES, SEGMENT_BYTES + 1, INPUT_BYTES_MAX] {
        let (input, last) = (vec![7; bytes as usize], segments(bytes) - 1);
        for segment in [0, last] {
            let opening = SegmentOpening::new(&input, segment).unwrap();
            let shown = opening.bytes.len() as u32;
            let fee = least_fee(
                &mut chain,
                Results::supply_input { task: 0, opening }.into(),
                None,
            );
            let price = chain.query(SupplyPrice::get) * Balance::from(PART_SEGMENTS);
            let price = price * Balance::from(shown) / Balance::from(PART_BYTES);
            assert!(price < fee, "{shown} of {bytes} bytes: {price} {fee}");
        }
    }
}

#[test]
fn who_is_paid_for_showing_what_it_did_not_serve_has_paid_more_for_that() {
    let mut chain = open();
    // Where one demand was open; the fee for more is given back.
    type ResultsWeights = <Runtime as surety_pallet_results::Config>::WeightInfo;
    for bytes in [1, SEGMENT_BYTES, SEGMENT_BYTES + 1, 20_000, INPUT_BYTES_MAX] {
        let opening = PartOpening::new(&vec![7; bytes as usize], 0).unwrap();
        let shown = opening.bytes.len() as u32;
        let (task, content) = (0, Content::Input);
        let show: RuntimeCall = Results::supply {
            task,
            content,
            bytes,
            opening,
        }
        .into();
        let fee = least_fee(&mut chain, show, Some(ResultsWeights::supply(1)));
        // What a client pays; an auditor pays half.
        let price = chain.query(SupplyPrice::get) * Balance::from(PART_SEGMENTS);
        let price = price * Balance::from(shown) / Balance::from(PART_BYTES);
        assert!(price < fee, "{bytes} bytes: {price} {fee}");
    }
}
