//! The numbers that channels are sold by, held against each other.

use codec::Encode;
use frame_support::{assert_ok, dispatch::GetDispatchInfo, traits::Get};
use frame_system::RawOrigin;
use pallet_transaction_payment::NextFeeMultiplier;
use sp_core::H256;
use sp_runtime::{BuildStorage, FixedPointNumber, FixedU128, Permill};
use surety_audit_economics::channels::POINTS_MEAN_MAX;
use surety_channels::{
    Batch, BatchEntry, Batched, ChunkStatement, End, Ending, ReceiptLeaf, Request, SignedChunkStatement,
    view::Wanted,
};
use surety_pallet_channels::Call;
use surety_proofs::{SEGMENT_BYTES, SegmentOpening};
use surety_runtime::{
    Balance, Balances, Parameters, Runtime, RuntimeCall, RuntimeParameters, System, TransactionPayment,
    configs::channels::{LevyPot, Pay, Policy, Rates},
    genesis_config_presets,
    params::dynamic::{channels, disputes, results},
    units::{EXISTENTIAL_DEPOSIT, HOURS, MILLI_SURE, MINUTES, SURE},
};
use surety_runtime_api::runtime_decl_for_channel_api::ChannelApi;
use surety_types::model::Operation;

use crate::{
    chain::{Chain, account, genesis, signed},
    market::{PROVIDERS, hash},
};

const CAP: Balance = 10 * SURE;

/// Where governance has opened the shop: half of the verifiers' stake is able, but where a preset says more.
fn preset<R>(name: &str, read: impl FnOnce() -> R) -> R {
    let storage = genesis(name).build_storage().unwrap();
    sp_io::TestExternalities::new(storage).execute_with(|| {
        if channels::VerifiersAble::get().is_zero() {
            let able =
                channels::Parameters::VerifiersAble(channels::VerifiersAble, Some(Permill::from_percent(50)));
            let able = RuntimeParameters::Channels(able);
            assert_ok!(Parameters::set_parameter(RawOrigin::Root.into(), able));
        }
        read()
    })
}

#[test]
fn nobody_sells_before_governance_has_said_how_much_stake_can_audit() {
    let storage = genesis("testnet").build_storage().unwrap();
    sp_io::TestExternalities::new(storage)
        .execute_with(|| assert_eq!(Runtime::least_lock(account(PROVIDERS[0].stash), CAP), None));
}

fn everywhere(check: impl Fn(&str, bool)) {
    for name in genesis_config_presets::preset_names() {
        preset(&name, || check(&name, name == "testnet"));
    }
}

/// Windows that somebody loses money by missing, in blocks.
fn costly_windows() -> [(&'static str, u32); 7] {
    let batch = channels::BatchWindow::get();
    [
        ("announcing points", channels::AnnounceWindow::get()),
        (
            "opening and disputing them",
            batch - channels::AnnounceWindow::get(),
        ),
        ("refuting them", channels::RefuteWindow::get()),
        ("disputing when others were first", channels::DisputeWindow::get()),
        ("showing", channels::SupplyWindow::get()),
        ("closing", channels::ClosingPeriod::get()),
        ("redeeming", channels::RedeemBy::get()),
    ]
}

#[test]
fn no_window_that_costs_money_is_shorter_than_a_line_may_be_down() {
    everywhere(|name, is_production| {
        let least = match is_production {
            true => 10 * MINUTES,
            false => MINUTES + MINUTES / 2,
        };
        for (what, window) in costly_windows() {
            assert!(window >= least, "{name}: {window} blocks for {what}");
        }
        let supply = channels::SupplyWindow::get();
        assert!(!is_production || supply >= 6 * HOURS);
        // In that a payer asks for what it was told, and demands it, before something else is paid.
        assert!(!is_production || surety_channels::paid_after(supply) >= HOURS);
    });
}

#[test]
fn who_wants_its_money_back_waits_for_the_longest_dispute_about_what_was_batched_late() {
    everywhere(|name, is_production| {
        // Of what is tried out nothing takes long.
        let (to_batch, all) = match is_production {
            true => (10 * MINUTES, results::AuditWindowMax::get()),
            false => (45, 0),
        };
        let sides = 2 * (disputes::DisputeClock::get() + all);
        let dispute = results::ChallengeWindow::get() + sides + disputes::DecisionWindow::get();
        let least = to_batch + channels::BatchWindow::get() + dispute;
        assert!(channels::ClosingPeriod::get() >= least, "{name}: {least}");
        // What was batched is there until every channel that it can pay has closed.
        let longest = channels::MaxLife::get() + channels::ClosingPeriod::get();
        let counted = surety_channels::counted_for(channels::RedeemBy::get(), channels::SupplyWindow::get());
        assert!(counted >= longest, "{name}: {longest}");
        assert!(
            channels::ClosingPeriod::get() < channels::MaxLife::get(),
            "{name}"
        );
    });
}

#[test]
fn a_cap_of_ten_takes_a_lock_that_makes_every_cheat_a_loss() {
    let locked = |name: &str| preset(name, || Runtime::least_lock(account(PROVIDERS[0].stash), CAP));
    // ((1 + 1) / (1 * (1/2 - 1/3) * 0.95) + 10) / (1/2) SURE.
    let lock = locked("testnet").unwrap();
    assert!((4_526 * SURE / 100..4_527 * SURE / 100).contains(&lock), "{lock}");
    // ((1 + 1) / (100 * 0.95) + 10) / (1/2).
    let lock = locked("development").unwrap();
    assert!((2_004 * SURE / 100..2_005 * SURE / 100).contains(&lock), "{lock}");
    everywhere(|name, _| {
        let lock = Runtime::least_lock(account(PROVIDERS[0].stash), CAP).unwrap();
        let policy = Policy::get();
        let float = |parts: u64| parts as f64 / 1e18;
        let rate = Rates::get().newcomer.into_inner() as f64 / 1e18;
        let able = float(policy.able.deconstruct()) - float(policy.corrupt.deconstruct());
        let k = rate * able * float(policy.accuracy.deconstruct());
        let lost = lock as f64 / SURE as f64 * float(policy.burned.deconstruct());
        // However much of the cap is wrong, and worth its price to somebody else as well.
        for wrong in (0..=1_000).map(|part| f64::from(part) / 100.0) {
            let missed = (-k * wrong).exp();
            let gain = missed * wrong + wrong - (1.0 - missed) * lost;
            assert!(gain <= 1e-9, "{name}: {wrong} wrong gain {gain}");
        }
    });
}

#[test]
fn a_batch_of_all_that_a_cap_of_ten_allows_can_be_drawn_on_and_its_levy_pays_for_the_points() {
    everywhere(|name, is_production| {
        let (rate, pay) = (Rates::get().newcomer, Pay::get());
        let points = rate.saturating_mul_int(CAP);
        // Where it is tried out, smaller batches are drawn on more often.
        assert!(
            !is_production || points <= u128::from(POINTS_MEAN_MAX) * SURE,
            "{points}"
        );
        assert!(points > 0, "{name}");
        let levy = pay.levy(rate, channels::PointCost::get()).unwrap();
        let expected = points.div_ceil(SURE) * pay.point(channels::PointCost::get());
        assert!(levy.mul_ceil(CAP) >= expected, "{name}");
        // Nobody announces what it has not computed for what it is paid.
        assert!(
            channels::PointBond::get() >= 20 * pay.point(channels::PointCost::get()),
            "{name}"
        );
        assert!(pay.premium >= FixedU128::from_rational(5, 4));
    });
}

#[test]
fn the_pot_of_levies_is_there_from_the_beginning() {
    everywhere(|name, _| {
        assert_eq!(
            Balances::free_balance(LevyPot::get()),
            EXISTENTIAL_DEPOSIT,
            "{name}"
        );
    });
}

#[test]
fn the_hash_that_vouchers_name_is_kept_when_those_of_other_old_blocks_are_not() {
    let mut chain = Chain::new("development");
    chain.run_to(2);
    chain.query(|| {
        let named = || surety_runtime::configs::channels::Genesis::get();
        for block in 0..3 {
            frame_system::BlockHash::<Runtime>::insert(block, hash(7));
        }
        let kept = surety_runtime::configs::system::BLOCK_HASH_COUNT;
        for block in kept..kept + 4 {
            System::set_block_number(block);
            System::finalize();
        }
        assert_eq!(named(), hash(7));
        assert!(!frame_system::BlockHash::<Runtime>::contains_key(1));
    });
}

/// The shortest receipt that there can be, alone in its batch.
fn shortest() -> Batched<surety_runtime::AccountId> {
    let statement = ChunkStatement {
        channel: 0,
        payee: PROVIDERS[0].account(),
        nonce: 0,
        request: hash(1),
        bytes: 0,
        output: hash(2),
        units: 0,
        price: 0,
        end: Some(Ending {
            how: End::Cut,
            trace_root: H256::zero(),
        }),
    };
    let leaf = ReceiptLeaf {
        receipt: H256(statement.message(&hash(3))),
        salt: hash(4),
    };
    let entry = BatchEntry {
        channel: 0,
        nonce: 0,
        price: 0,
        leaf,
    };
    let batch = Batch::new(&[entry]).unwrap();
    Batched {
        opening: batch.open(0, 0).unwrap(),
        statement,
    }
}

#[test]
fn nobody_lives_on_being_asked_to_show_what_it_did_not_batch() {
    let mut chain = Chain::new("testnet");
    let show = |shown: Option<SegmentOpening>| -> RuntimeCall {
        Call::show_receipt {
            demander: account(PROVIDERS[1].stash),
            batch: 0,
            receipt: Box::new(shortest()),
            shown,
        }
        .into()
    };
    let demand: RuntimeCall = Call::demand_receipt {
        held: Box::new(SignedChunkStatement {
            statement: shortest().statement,
            agent: account(PROVIDERS[0].agent),
            signature: [0; 64],
        }),
    }
    .into();
    chain.query(|| {
        // No blocks are emptier.
        NextFeeMultiplier::<Runtime>::put(FixedU128::from_rational(1, 10));
        let fee = |call: RuntimeCall| {
            let (info, length) = (
                call.get_dispatch_info(),
                signed(PROVIDERS[0].agent, call).encoded_size(),
            );
            TransactionPayment::compute_fee(length as u32, &info, 0)
        };
        let price = channels::DemandPrice::get();
        // Of an output of one segment, which no path leads from: nothing else that has so many bytes is
        // shorter.
        for bytes in [0, 1, 100, SEGMENT_BYTES] {
            let shown = SegmentOpening::new(&vec![7; bytes as usize], 0);
            let (paid, fee) = (Wanted::borne(price, bytes), fee(show(shown)));
            assert!(paid < fee, "{bytes} bytes: {paid} of {price} for a fee of {fee}");
        }
        assert!(fee(demand.clone()) > 0);
        // Nor on being asked for points.
        let show: RuntimeCall = Call::show_point {
            demander: account(PROVIDERS[1].stash),
            batch: 0,
            receipt: Box::new(shortest()),
            request: Box::new(request()),
            head: None,
        }
        .into();
        let point = Wanted::Point { batch: 0, point: 0 };
        let (paid, fee) = (Wanted::borne(point.price(price), 0), fee(show));
        assert!(paid < fee, "a point: {paid} for a fee of {fee}");
        assert!(paid > fee / 3, "a point: {paid} for a fee of {fee}");
    });
}

/// The last of as many receipts as a worker batches at once, all of one channel.
fn deepest() -> Batched<surety_runtime::AccountId> {
    const RECEIPTS: u32 = 1 << 16;
    let statement = ChunkStatement {
        channel: u64::MAX,
        nonce: RECEIPTS - 1,
        bytes: u32::MAX,
        units: u32::MAX,
        price: SURE,
        ..shortest().statement
    };
    let entry = |nonce| BatchEntry {
        channel: statement.channel,
        nonce,
        price: SURE,
        leaf: ReceiptLeaf {
            receipt: H256(statement.message(&hash(3))),
            salt: hash(4),
        },
    };
    let entries: Vec<_> = (0..RECEIPTS).map(entry).collect();
    let batch = Batch::new(&entries).unwrap();
    Batched {
        opening: batch.open(statement.channel, statement.nonce).unwrap(),
        statement,
    }
}

/// Each time that all receipts of a channel were demanded once they cost a least price more, which whoever
/// shows them has: beyond some rounds showing costs nothing. What it costs until then a worker keeps for each
/// that may be demanded.
#[test]
fn demanding_the_same_again_and_again_costs_its_provider_no_more_than_it_keeps() {
    const KEPT: Balance = 13 * MILLI_SURE;
    let mut chain = Chain::new("testnet");
    let (agent, receipt) = (PROVIDERS[0].agent, deepest());
    // Whatever it is that has to be shown beside the receipt.
    let longest = vec![7; 1 << 20];
    for bytes in [None, Some(1), Some(SEGMENT_BYTES), Some(longest.len() as u32)] {
        let shown = bytes.and_then(|bytes| {
            let last = surety_proofs::segments(bytes) - 1;
            SegmentOpening::new(&longest[..bytes as usize], last)
        });
        let length = shown.as_ref().map_or(0, |shown| shown.bytes.len() as u32);
        let call: RuntimeCall = Call::show_receipt {
            demander: account(PROVIDERS[1].stash),
            batch: u32::MAX,
            receipt: Box::new(receipt.clone()),
            shown,
        }
        .into();
        chain.query(|| {
            // Blocks are as full as they are meant to be.
            NextFeeMultiplier::<Runtime>::put(FixedU128::from_u32(1));
            // What its extensions weigh is paid for, too.
            let signed = signed(agent, call.clone());
            let info = signed.get_dispatch_info();
            assert!(info.extension_weight.ref_time() > 0);
            let fee = TransactionPayment::compute_fee(signed.encoded_size() as u32, &info, 0);
            let (price, borne) = (
                channels::DemandPrice::get(),
                Wanted::borne(channels::DemandPrice::get(), length),
            );
            let rounds = (0..).map(|round| fee.saturating_sub(borne + round * price));
            let lost: Balance = rounds.take_while(|lost| *lost > 0).sum();
            assert!(lost <= KEPT, "{bytes:?} bytes: {lost} for fees of {fee}");
        });
    }
}

/// The shortest request.
fn request() -> Request {
    Request {
        model: hash(1),
        operation: Operation::Embed,
        input: hash(2),
        input_bytes: 0,
        units_max: 0,
        unit_price: 0,
    }
}

#[test]
fn a_batch_a_minute_is_no_more_than_may_be_open_at_once() {
    everywhere(|name, _| {
        let unfinished = surety_pallet_channels::UNFINISHED_MAX;
        assert!(channels::BatchWindow::get() / unfinished <= MINUTES, "{name}");
    });
}
