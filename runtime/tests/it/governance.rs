//! Who may change what, and who may act for whom.

use frame_support::{
    assert_noop, assert_ok,
    traits::{Get, InstanceFilter},
};
use frame_system::RawOrigin;
use sp_keyring::Sr25519Keyring::{self, Alice, Bob};
use sp_runtime::{DispatchError, traits::BlockNumberProvider};
use surety_pallet_results::Config as ResultsConfig;
use surety_pallet_task_auction::Config as AuctionConfig;
use surety_runtime::{
    Parameters, Proxy, Runtime, RuntimeCall, RuntimeParameters,
    configs::{consensus::RunningClock, governance::ProxyType},
    params::dynamic::{auction, billing, results},
    units::{DAYS, SURE},
};
use surety_runtime_api::runtime_decl_for_task_api::TaskApi;
use surety_types::{task::TaskState, traits::Escrow};

use crate::{
    chain::{Chain, account},
    market::{self, CAP, CLIENT, spec},
    measured::commit_run,
};

fn bid_window(blocks: Option<u32>) -> RuntimeParameters {
    RuntimeParameters::Auction(auction::Parameters::BidWindow(auction::BidWindow, blocks))
}

fn set(key_value: RuntimeParameters) -> RuntimeCall {
    pallet_parameters::Call::set_parameter { key_value }.into()
}

#[test]
fn a_changed_parameter_takes_effect_at_once() {
    let mut chain = market::open();
    let sudo = pallet_sudo::Call::sudo {
        call: Box::new(set(bid_window(Some(3)))),
    };
    chain.call(Alice, sudo);
    assert_eq!(chain.query(auction::BidWindow::get), 3);

    let posted = chain.query(RunningClock::current_block_number);
    let task = market::post(&mut chain, 3);
    let until = chain.query(|| market::state(task));
    assert!(
        matches!(until, TaskState::Bidding { until } if until == posted + 3),
        "{until:?}"
    );

    // A task keeps the windows that it was posted with.
    let sudo = pallet_sudo::Call::sudo {
        call: Box::new(set(bid_window(Some(9)))),
    };
    chain.call(Alice, sudo);
    assert_eq!(chain.query(|| market::state(task)), until);

    // Without a value, production's counts.
    let sudo = pallet_sudo::Call::sudo {
        call: Box::new(set(bid_window(None))),
    };
    chain.call(Alice, sudo);
    assert_eq!(chain.query(auction::BidWindow::get), 15);
}

#[test]
fn a_changed_fee_changes_what_a_cap_can_pay() {
    let mut chain = Chain::new("local_testnet");
    chain.query(|| {
        let limit = || surety_runtime::Billing::price_limit(CAP, 3).unwrap();
        let before = limit();
        let rate = sp_runtime::Permill::from_percent(50);
        let parameter =
            RuntimeParameters::Billing(billing::Parameters::FeeRate(billing::FeeRate, Some(rate)));
        assert_ok!(Parameters::set_parameter(RawOrigin::Root.into(), parameter));
        assert!(limit() < before);
        assert_eq!(limit(), CAP * 2 / 3 / 3);
    });
}

/// A number of milliseconds in the place of one of blocks, say. What began meanwhile would never end.
#[test]
fn a_window_that_was_set_to_something_absurd_ends_within_a_day() {
    let mut chain = market::open();
    let most = Some(u32::MAX);
    let (auction, results) = (RuntimeParameters::Auction, RuntimeParameters::Results);
    let absurd = [
        bid_window(most),
        auction(auction::Parameters::RevealWindow(auction::RevealWindow, most)),
        results(results::Parameters::CommitWindow(results::CommitWindow, most)),
        results(results::Parameters::RevealWindow(results::RevealWindow, most)),
        auction(auction::Parameters::FinishedRetention(
            auction::FinishedRetention,
            most,
        )),
    ];
    chain.query(|| {
        for parameter in absurd {
            assert_ok!(Parameters::set_parameter(RawOrigin::Root.into(), parameter));
        }
        assert_eq!(<Runtime as AuctionConfig>::RevealWindow::get(), DAYS);
        assert_eq!(<Runtime as AuctionConfig>::FinishedRetention::get(), 30 * DAYS);
        assert_eq!(<Runtime as ResultsConfig>::CommitWindow::get(), DAYS);
        assert_eq!(<Runtime as ResultsConfig>::RevealWindow::get(), DAYS);
        assert_eq!(Runtime::provider_terms().commit_window, DAYS);
    });
    let task = market::post(&mut chain, 1);
    let none = bid_window(Some(0));
    chain.query(|| {
        assert_ok!(Parameters::set_parameter(RawOrigin::Root.into(), none));
        assert_eq!(<Runtime as AuctionConfig>::BidWindow::get(), 1);
    });
    let latest = chain.query(RunningClock::current_block_number) + DAYS;
    let state = chain.query(|| market::state(task));
    assert!(
        matches!(state, TaskState::Bidding { until } if until <= latest),
        "{state:?}"
    );
}

#[test]
fn what_a_bid_has_to_back_is_the_lock_of_the_limit_as_it_is_now() {
    let mut chain = market::open();
    let task = market::post(&mut chain, 3);
    chain.query(|| {
        let limit = surety_runtime::Billing::price_limit(CAP, 3).unwrap();
        let terms = || Runtime::bid_terms(task).unwrap();
        let multiple = u128::from(results::LockMultiple::get());
        assert_eq!((terms().price_limit, terms().lock), (limit, limit * multiple));
        let dearer = results::Parameters::LockMultiple(results::LockMultiple, Some(77));
        let parameter = RuntimeParameters::Results(dearer);
        assert_ok!(Parameters::set_parameter(RawOrigin::Root.into(), parameter));
        assert_eq!(terms().lock, limit * 77);
        assert_eq!(Runtime::bid_terms(task + 1), None);
        assert_eq!(
            Runtime::provider_terms().commit_window,
            results::CommitWindow::get()
        );
    });
}

#[test]
fn parameters_belong_to_root() {
    let mut chain = Chain::new("development");
    chain.query(|| {
        for origin in [RawOrigin::Signed(account(Alice)), RawOrigin::None] {
            assert_noop!(
                Parameters::set_parameter(origin.into(), bid_window(Some(1))),
                DispatchError::BadOrigin
            );
        }
    });
    let sudo = pallet_sudo::Call::sudo {
        call: Box::new(set(bid_window(Some(1)))),
    };
    let refused = chain.try_call(Bob, sudo);
    assert_eq!(refused, Err(pallet_sudo::Error::<Runtime>::RequireSudo.into()));
}

#[test]
fn root_can_schedule_a_change() {
    let mut chain = Chain::new("development");
    chain.query(|| {
        assert_ok!(surety_runtime::Scheduler::schedule(
            RawOrigin::Root.into(),
            4,
            None,
            0,
            Box::new(set(bid_window(Some(5)))),
        ));
        assert_noop!(
            surety_runtime::Scheduler::schedule(
                RawOrigin::Signed(account(Bob)).into(),
                4,
                None,
                0,
                Box::new(set(bid_window(Some(5)))),
            ),
            DispatchError::BadOrigin
        );
    });
    chain.run_to(3);
    assert_eq!(chain.query(auction::BidWindow::get), 8);
    chain.run_to(4);
    assert_eq!(chain.query(auction::BidWindow::get), 5);
}

fn transfer() -> RuntimeCall {
    pallet_balances::Call::transfer_keep_alive {
        dest: account(Bob).into(),
        value: SURE,
    }
    .into()
}

fn post() -> RuntimeCall {
    surety_pallet_task_auction::Call::post {
        spec: spec(3),
        cap: CAP,
    }
    .into()
}

#[test]
fn proxies_can_do_what_their_kind_says_and_no_more() {
    let advance: RuntimeCall = surety_pallet_task_auction::Call::advance { task: 0 }.into();
    let heartbeat: RuntimeCall = surety_pallet_provider_registry::Call::heartbeat {}.into();
    let bond: RuntimeCall = surety_pallet_staking::Call::bond {
        role: surety_types::stake::Role::Provider,
        amount: SURE,
    }
    .into();
    let cases = [
        (transfer(), [true, false, false]),
        (post(), [true, false, false]),
        (bond, [true, true, false]),
        (
            surety_pallet_delegation::Call::delegate {
                operator: account(Alice),
                amount: SURE,
            }
            .into(),
            [true, true, false],
        ),
        (
            surety_pallet_validators::Call::chill {}.into(),
            [true, true, false],
        ),
        (advance, [true, false, true]),
        (heartbeat, [true, true, true]),
        (
            surety_pallet_channels::Call::stand { lock: 0, cap: 0 }.into(),
            [true, false, true],
        ),
        (commit_run(), [true, false, true]),
        (
            surety_pallet_channels::Call::top_up {
                channel: 0,
                amount: 1,
            }
            .into(),
            [true, false, false],
        ),
        (set(bid_window(None)), [true, false, false]),
    ];
    for (call, allowed) in cases {
        for (kind, allowed) in [ProxyType::Any, ProxyType::NonTransfer, ProxyType::Compute]
            .into_iter()
            .zip(allowed)
        {
            assert_eq!(kind.filter(&call), allowed, "{kind:?} {call:?}");
        }
    }
    assert!(ProxyType::Any.is_superset(&ProxyType::Compute));
    assert!(!ProxyType::Compute.is_superset(&ProxyType::Any));
    assert!(!ProxyType::Compute.is_superset(&ProxyType::NonTransfer));
}

#[test]
fn a_compute_proxy_cannot_wrap_a_transfer() {
    let mut chain = Chain::new("development");
    let delegate = Sr25519Keyring::Eve;
    chain.query(|| {
        assert_ok!(Proxy::add_proxy(
            RawOrigin::Signed(account(CLIENT)).into(),
            account(delegate).into(),
            ProxyType::Compute,
            0,
        ));
    });
    let before = chain.free(&account(Bob));
    let batch = pallet_utility::Call::batch_all {
        calls: vec![transfer()],
    };
    let proxied = pallet_proxy::Call::proxy {
        real: account(CLIENT).into(),
        force_proxy_type: None,
        call: Box::new(batch.into()),
    };
    // The proxy's own call goes well; what it wraps does not.
    chain.call(delegate, proxied);
    assert_eq!(chain.free(&account(Bob)), before);
}
