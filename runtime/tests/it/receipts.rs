//! Channels on the whole runtime: what is sold is audited and paid, and a wrong receipt is found by its very
//! cell.

use frame_support::{assert_ok, dispatch::DispatchClass, traits::Get};
use frame_system::RawOrigin;
use sp_runtime::Permill;
use surety_audit_economics::AuditPay;
use surety_channels::{Batch, BatchNumber, Batched, Equivocation, PointsFound, Time, points_seal};
use surety_model_trace::{Records, item_root, item_span};
use surety_pallet_channels::{
    Batches, Call, Channels, Convictions, DISPUTED_MAX, DisputedReceipts, Error, Faults, ReceiptSource,
};
use surety_pallet_results::{Call as ResultsCall, Rounds};
use surety_pallet_task_auction::NextTaskId;
use surety_pallet_trust_lock::Slashes;
use surety_proofs::PartOpening;
use surety_runtime::{
    AccountId, Balance, Parameters, Runtime, RuntimeEvent, RuntimeParameters, Staking, System, TaskAuction,
    TrustLock,
    configs::channels::{FaultsOverChannels, LevyPot, MinDeposit, Policy, all_batches_weight},
    params::dynamic::{channels as params, results},
    units::SURE,
};
use surety_runtime_api::{
    runtime_decl_for_channel_api::ChannelApi, runtime_decl_for_task_api::TaskApi,
    runtime_decl_for_trust_api::TrustApi,
};
use surety_types::{
    TaskId,
    model::Operation,
    stake::Role,
    traits::{Jail, StakeLedger},
    trust::{Content, ContentPart, DemandedParts, FaultKind, SlashCause},
};

use crate::{
    chain::{Chain, account},
    disputes::{STRANGER, VERIFIER, World, disputes, play_out, stake},
    market::{self, CLIENT as PAYER, PROVIDERS, hash},
    shop::{CAP, DEPOSIT, PROVIDER, Shop, UNIT_PRICE},
};

/// What is lost is lost once, and can be seen. Returns the slash's fault, lock, cause and finder.
fn only_slash(chain: &mut Chain) -> (FaultKind, Balance, SlashCause, Option<AccountId>) {
    let slashes: Vec<_> = chain.query(|| Slashes::<Runtime>::iter_values().collect());
    let [slash] = &slashes[..] else {
        panic!("{slashes:?}")
    };
    (slash.kind, slash.lock, slash.cause, slash.finder.clone())
}

#[test]
fn places_are_offered_of_a_model_that_verifiers_have_declared_to_audit() {
    let world = World::new();
    let mut shop = Shop::open(&world);
    // As where money is real: who is able has to say so.
    let nobody = results::Parameters::VerifiersAble(results::VerifiersAble, Some(Permill::zero()));
    let nobody = RuntimeParameters::Results(nobody);
    shop.chain.query(|| {
        assert_ok!(Parameters::set_parameter(RawOrigin::Root.into(), nobody));
    });
    let model = world.manifest.id();
    let offer = Call::offer {
        model,
        operation: Operation::Embed,
        unit_price: UNIT_PRICE,
        places: 5,
        region: None,
    };
    let refused = shop.chain.try_call(PROVIDER.stash, offer.clone());
    assert_eq!(refused, Err(Error::<Runtime>::NobodyAudits.into()));
    let declare = surety_pallet_model_registry::Call::offer_audits { model, offered: true };
    shop.chain.call(VERIFIER.1, declare);
    shop.chain.call(PROVIDER.stash, offer);
}

#[test]
fn what_is_sold_is_audited_redeemed_and_paid_for() {
    let world = World::new();
    let mut shop = Shop::open(&world);
    let offers = shop.chain.query(Runtime::offers);
    assert_eq!(
        (offers.len(), offers[0].unit_price, offers[0].room),
        (1, UNIT_PRICE, CAP)
    );
    assert_eq!(offers[0].signers, [account(PROVIDER.agent)]);
    assert_eq!(
        offers[0].region.map(|region| region.to_string()),
        Some("DE".into())
    );

    let stash_before = shop.chain.free(&PROVIDER.account());
    let receipt = shop.receipt(&world.claim);
    let (number, batch) = shop.commit(&receipt);
    let levy = stash_before - shop.chain.free(&PROVIDER.account());
    assert!(levy > 0);
    assert_eq!(shop.chain.query(Runtime::open_batches).len(), 1);

    let points = audit(&mut shop, number, &batch);
    let record = shop
        .chain
        .query(|| Batches::<Runtime>::get(PROVIDER.account(), number));
    let until = record.unwrap().window.until;

    shop.wait_until_final(number);
    let settled = shop.chain.query(Runtime::offers)[0].record.settled;
    assert_eq!((settled.receipts, settled.price), (1, receipt.price));
    assert_eq!(shop.redeem(&[(number, batch)]), receipt.price);
    end_audit(&mut shop, number, until, points);
    part(&mut shop, receipt.price);
}

/// The verifier is drawn on a batch, and finds at its points what is right: announcing them costs it no fee.
/// Returns how many they are.
fn audit(shop: &mut Shop<'_>, number: BatchNumber, batch: &Batch) -> u128 {
    let (world, verifier, agent) = (shop.world, account(VERIFIER.0), VERIFIER.1);
    let (proof, items) = shop.drawn(number, batch);
    let mut trace = world.trace.clone();
    let leaves = trace.leaves().unwrap().to_vec();
    let of_item = |item: &u32| {
        let span = item_span(&world.layout, *item).unwrap();
        item_root(&leaves[span.start as usize..span.end as usize])
    };
    let found = PointsFound::truncate_from(items.iter().map(of_item).collect());
    let announce = Call::announce_points {
        provider: PROVIDER.account(),
        batch: number,
        proof,
        seal: points_seal(&PROVIDER.account(), number, &verifier, &found, &hash(8)),
    };
    let before = shop.chain.free(&account(agent));
    shop.chain.call(agent, announce);
    assert_eq!(
        shop.chain.free(&account(agent)),
        before,
        "who is drawn pays no fee"
    );
    let record = shop
        .chain
        .query(|| Batches::<Runtime>::get(PROVIDER.account(), number))
        .unwrap();
    shop.chain
        .run_until(100, || record.announce_until < Runtime::time());
    let open = Call::open_points {
        provider: PROVIDER.account(),
        batch: number,
        verifier,
        found,
        salt: hash(8),
    };
    shop.chain.call(agent, open);
    items.len() as u128
}

/// Anybody ends the audit of a batch that was final at `until`, when nobody can refute it any more: each of
/// its points is paid.
fn end_audit(shop: &mut Shop<'_>, number: BatchNumber, until: Time, points: u128) {
    let verifier = account(VERIFIER.0);
    let refuted = until + shop.chain.query(params::RefuteWindow::get);
    shop.chain.run_until(100, || refuted < Runtime::time());
    let end = Call::end_points {
        provider: PROVIDER.account(),
        batch: number,
        verifier: verifier.clone(),
    };
    let point = AuditPay::default().point(shop.chain.query(params::PointCost::get));
    let pay = point * points;
    // What one provider paid does for a verifier with all its points only in the mean: another's comes.
    let (dest, value) = (LevyPot::get().into(), pay);
    let other = pallet_balances::Call::transfer_allow_death { dest, value };
    shop.chain.call(PAYER, other);
    let before = shop.chain.free(&verifier);
    shop.chain.call(STRANGER, end);
    assert_eq!(shop.chain.free(&verifier) - before, pay);
    assert_eq!(shop.chain.query(|| locked(&verifier)), 0);
}

fn locked(stash: &AccountId) -> Balance {
    surety_pallet_staking::Ledgers::<Runtime>::get(stash)
        .unwrap()
        .locked
}

/// Payer and payee part: what was not `paid` goes back, and the payee answers for what it has signed until
/// the channel ends.
fn part(shop: &mut Shop<'_>, paid: Balance) {
    // In a block that does not begin a session: those have no room for calls.
    let next = shop.chain.number() + 1;
    shop.chain.run_to(next);
    let (payer, channel) = (shop.chain.free(&account(PAYER)), shop.channel);
    shop.chain.call(PROVIDER.agent, Call::close_agreed { channel });
    let left = DEPOSIT - paid;
    let now = payer + left - MinDeposit::get();
    assert_eq!(shop.chain.free(&account(PAYER)), now);
    let (model, operation) = (shop.world.manifest.id(), Operation::Embed);
    let withdraw = || Call::withdraw_offer { model, operation };
    assert!(shop.chain.try_call(PROVIDER.stash, withdraw()).is_err());
    let closing = shop.chain.query(params::ClosingPeriod::get);
    let is_over = || !Channels::<Runtime>::contains_key(channel);
    shop.chain.run_until(2 * closing, is_over);
    assert_eq!(shop.chain.free(&account(PAYER)), payer + left);
    shop.chain.call(PROVIDER.stash, withdraw());
    shop.chain.call(PROVIDER.stash, Call::stand { lock: 0, cap: 0 });
    assert_eq!(shop.chain.query(|| locked(&PROVIDER.account())), 0);
}

/// The payer of a receipt that a round is about has not got its own input any more: its provider shows it.
fn show_input(shop: &mut Shop<'_>, round: TaskId) {
    let world = shop.world;
    let parts = DemandedParts::truncate_from(vec![ContentPart {
        content: Content::Input,
        part: 0,
    }]);
    let demand = ResultsCall::demand {
        task: round,
        provider: PROVIDER.account(),
        parts,
        proof: None,
    };
    assert!(shop.chain.try_call(PROVIDERS[1].stash, demand.clone()).is_err());
    shop.chain.call(PAYER, demand);
    let supply = ResultsCall::supply {
        task: round,
        content: Content::Input,
        bytes: world.input.len() as u32,
        opening: PartOpening::new(&world.input, 0).unwrap(),
    };
    shop.chain.call(PROVIDER.agent, supply);
    let shown = shop
        .chain
        .query(|| Runtime::shown(round, world.layout.facts().input));
    assert_eq!(shown, world.input);
}

#[test]
fn a_wrong_receipt_is_found_by_the_very_cell_and_takes_the_standing_lock() {
    let world = World::new();
    let mut shop = Shop::open(&world);
    let (liar, lie) = world.liar(2, 3);
    let receipt = shop.receipt(&lie);
    let (number, batch) = shop.commit(&receipt);
    let round = shop.chain.query(NextTaskId::<Runtime>::get);
    let source = || {
        let opening = batch.open(receipt.channel, 0).unwrap();
        let statement = receipt.clone();
        ReceiptSource::Batch(number, Batched { opening, statement })
    };
    let dispute = shop.dispute(source());
    shop.chain.call(STRANGER, dispute);
    let provider = PROVIDER.account();
    shop.chain.query(|| {
        assert!(DisputedReceipts::<Runtime>::contains_key(round));
        // No view takes it for a task, and those of rounds know it.
        assert_eq!(Runtime::task(round), None);
        assert_eq!(Runtime::bid_terms(round), None);
        assert!(Runtime::challenge_bond(round, provider.clone()).is_some());
        assert_eq!(Runtime::disputes(round).len(), 1);
    });
    // Whoever comes later challenges it in its round.
    let again = shop.dispute(source());
    let refused = shop.chain.try_call(PROVIDERS[1].stash, again);
    assert_eq!(refused, Err(Error::<Runtime>::AlreadyDisputed.into()));

    show_input(&mut shop, round);
    let mut players = [(provider.clone(), liar), (account(STRANGER), world.honest())];
    let (cells, bytes) = play_out(&mut shop.chain, &world, &mut players);
    let [cell] = cells[..] else { panic!("{cells:?}") };
    assert_eq!((cell.leaf, cell.step, cell.row, cell.cell), (2, 3, 0, 0));
    assert!(bytes <= 16 * 1024, "{bytes} bytes of moves");
    let (kind, lock, cause, finder) = only_slash(&mut shop.chain);
    assert_eq!((kind, lock), (FaultKind::WrongResult, shop.lock));
    assert_eq!(cause, SlashCause::Task(round));
    assert_eq!(finder, Some(account(STRANGER)));
    let standing = shop.chain.query(|| Runtime::standing(provider.clone())).unwrap();
    assert_eq!((standing.lock, standing.cap), (0, 0));
    assert!(shop.chain.query(|| TrustLock::is_jailed(&provider)));
    assert!(shop.chain.query(Runtime::offers).is_empty());
    let remembered = shop.chain.query(|| FaultsOverChannels::remembered(&provider));
    let once = Faults { lately: 1, missed: 0 };
    assert_eq!(remembered, once);

    shop.chain
        .run_until(200, || !Rounds::<Runtime>::contains_key(round));
    assert_eq!(
        shop.chain.query(|| DisputedReceipts::<Runtime>::iter().count()),
        0
    );
    shop.wait_until_final(number);
    let redeem = shop.redeeming(&[(number, batch)]);
    let refused = shop.chain.try_call(PROVIDER.agent, redeem);
    let too_late = Err(Error::<Runtime>::TooLate.into());
    assert_eq!(refused, too_late, "nothing of it is paid");
    shop.chain.run_until(60, || !Slashes::<Runtime>::contains_key(0));
    // Rounded up, as slashes are.
    let rest = market::BOND - shop.lock;
    assert_eq!(
        market::BOND - stake(&mut shop.chain, &provider),
        shop.lock + rest.div_ceil(20)
    );
}

#[test]
fn a_right_receipt_that_is_disputed_is_paid_and_its_challenger_pays() {
    let world = World::new();
    let mut shop = Shop::open(&world);
    let receipt = shop.receipt(&world.claim);
    let (number, batch) = shop.commit(&receipt);
    let source = ReceiptSource::Signed(shop.signed(receipt.clone()));
    let dispute = shop.dispute(source);
    shop.chain.call(STRANGER, dispute);
    let bond = disputes(&mut shop.chain)[0].1.bond;
    // All places together burn what being found out does.
    let lock = shop.lock;
    let burned = shop.chain.query(|| Policy::get().burned.mul_ceil(lock));
    let least = (2 * burned).div_ceil(DISPUTED_MAX.into());
    assert_eq!(shop.chain.query(Runtime::dispute_bond), least);
    assert!(bond >= least, "{bond} of {burned}");
    let (provider, before) = (PROVIDER.account(), shop.chain.free(&PROVIDER.account()));
    let (false_view, _) = world.liar(2, 1);
    let mut players = [
        (provider.clone(), world.honest()),
        (account(STRANGER), false_view),
    ];
    play_out(&mut shop.chain, &world, &mut players);
    assert_eq!(shop.chain.free(&provider), before + bond / 2);
    shop.chain
        .run_until(200, || DisputedReceipts::<Runtime>::iter().next().is_none());
    shop.wait_until_final(number);
    assert_eq!(shop.redeem(&[(number, batch)]), receipt.price);
    assert_eq!(stake(&mut shop.chain, &provider), market::BOND);
    assert_eq!(shop.chain.query(|| Slashes::<Runtime>::iter().count()), 0);
}

#[test]
fn a_dispute_that_its_challenger_cannot_pay_for_leaves_nothing() {
    let world = World::new();
    let mut shop = Shop::open(&world);
    let receipt = shop.receipt(&world.liar(2, 3).1);
    let source = ReceiptSource::Signed(shop.signed(receipt));
    let all = pallet_balances::Call::transfer_all {
        dest: account(PAYER).into(),
        keep_alive: true,
    };
    shop.chain.call(STRANGER, all);
    let little = pallet_balances::Call::transfer_allow_death {
        dest: account(STRANGER).into(),
        value: SURE / 10,
    };
    shop.chain.call(PAYER, little);
    let next = shop.chain.query(NextTaskId::<Runtime>::get);
    let dispute = shop.dispute(source);
    assert!(shop.chain.try_call(STRANGER, dispute).is_err());
    assert_eq!(shop.chain.query(NextTaskId::<Runtime>::get), next);
    assert_eq!(shop.chain.query(|| Rounds::<Runtime>::iter().count()), 0);
}

#[test]
fn a_fault_that_no_round_was_about_is_slashed_as_one_over_channels_and_takes_no_task_number() {
    let world = World::new();
    let mut shop = Shop::open(&world);
    let one = shop.receipt(&world.claim);
    let other = shop.receipt(&world.liar(1, 2).1);
    let equivocation = Box::new(Equivocation {
        one: shop.signed(one),
        other: shop.signed(other),
        shown: None,
    });
    let number = shop.chain.query(NextTaskId::<Runtime>::get);
    shop.chain
        .call(STRANGER, Call::report_equivocation { equivocation });
    let slash = only_slash(&mut shop.chain);
    let by = Some(account(STRANGER));
    let cause = SlashCause::Channels;
    assert_eq!(slash, (FaultKind::Equivocation, shop.lock, cause, by));
    assert_eq!(market::post(&mut shop.chain, 1), number);

    let before = shop.chain.free(&account(STRANGER));
    shop.chain.run_until(60, || !Slashes::<Runtime>::contains_key(0));
    assert!(shop.chain.free(&account(STRANGER)) >= before + shop.lock * 30 / 100);
    assert!(stake(&mut shop.chain, &PROVIDER.account()) <= market::BOND - shop.lock);
}

#[test]
fn blocks_count_what_a_conviction_writes_and_a_sweep_has_room_for_what_it_is_told() {
    let world = World::new();
    let mut shop = Shop::open(&world);
    shop.chain.query(|| {
        let (told, room) = (all_batches_weight(), TaskAuction::outcome_weight());
        assert!(told.all_lte(room), "{told:?} {room:?}");
    });
    let (liar, lie) = world.liar(2, 3);
    let receipt = shop.receipt(&lie);
    let source = ReceiptSource::Signed(shop.signed(receipt));
    let dispute = shop.dispute(source);
    let used = |chain: &mut Chain| {
        let weight = chain.query(System::block_weight);
        *weight.get(DispatchClass::Mandatory)
    };
    shop.chain.call(STRANGER, dispute);
    let before = used(&mut shop.chain);
    let mut players = [(PROVIDER.account(), liar), (account(STRANGER), world.honest())];
    play_out(&mut shop.chain, &world, &mut players);
    let faults = shop.chain.events().into_iter().filter(|event| {
        matches!(
            event,
            RuntimeEvent::Results(surety_pallet_results::Event::FaultFound { .. })
        )
    });
    assert_eq!(faults.count(), 1, "in the last block");
    let after = used(&mut shop.chain);
    assert!(
        before.saturating_add(all_batches_weight()).all_lte(after),
        "{before:?} {after:?}"
    );
    assert_eq!(
        shop.chain
            .query(|| Staking::bonded(&PROVIDER.account(), Role::Provider)),
        market::BOND
    );
}
