//! What payers and payees can count on.

mod again;
mod beginnings;
mod demands;
mod disputes;
mod holds;
mod leaving;
mod lives;
mod offers;
mod points;
mod pot;
mod pruned;
mod records;
mod refused;
mod reports;
mod terms;
mod try_state;
mod views;

use frame_support::{assert_noop, assert_ok, traits::fungible::Inspect};
use proptest::prelude::*;
use sp_core::{H256, Pair, sr25519};
use sp_runtime::AccountId32;
use surety_audit_economics::{
    channels::{RECEIPTS_CONTEXT, RECEIPTS_LABEL, ReceiptsInput, SURE, drawn_points, points_mean},
    draw::borrowed,
};
use surety_channels::{
    Batch, BatchEntry, BatchNumber, Batched, ChannelId, ChunkStatement, ReceiptLeaf, Request,
    SignedChunkStatement,
};
use surety_types::{model::Operation, traits::DrawVerifier};

use crate::{Batches, Channels, Demands, Error, Openings, Standings, mock::*};

fn free(who: &AccountId32) -> u128 {
    Balances::free_balance(who)
}

/// What the provider has locked.
fn lock() -> u128 {
    Standings::<Test>::get(stash()).expect("known").lock
}

/// Asks for a generation with a prompt of ten tokens.
fn generation(units_max: u32, unit_price: u128) -> Request {
    Request {
        model: model(1),
        operation: Operation::Generate,
        input: H256::repeat_byte(2),
        input_bytes: 4 * (6 + 10),
        units_max,
        unit_price,
    }
}

/// By the provider's agent.
fn signed_one(statement: ChunkStatement<AccountId32>) -> SignedChunkStatement<AccountId32> {
    signed_by(&agent_pair(), statement)
}

fn signed_by(
    pair: &sr25519::Pair,
    statement: ChunkStatement<AccountId32>,
) -> SignedChunkStatement<AccountId32> {
    SignedChunkStatement {
        signature: pair.sign(&statement.message(&GENESIS)).0,
        agent: AccountId32::new(pair.public().0),
        statement,
    }
}

/// A batch of receipts, as they stand.
fn batch_of(receipts: &[ChunkStatement<AccountId32>]) -> Batch {
    let entry = |receipt: &ChunkStatement<AccountId32>| BatchEntry {
        channel: receipt.channel,
        nonce: receipt.nonce,
        price: receipt.price,
        leaf: ReceiptLeaf {
            receipt: H256(receipt.message(&GENESIS)),
            salt: H256::zero(),
        },
    };
    Batch::new(&receipts.iter().map(entry).collect::<Vec<_>>()).expect("well-formed")
}

fn batched(batch: &Batch, statement: ChunkStatement<AccountId32>) -> Batched<AccountId32> {
    let opening = batch.open(statement.channel, statement.nonce).expect("has it");
    Batched { opening, statement }
}

/// Commits a batch, and has the next block give the seed.
fn commit_seeded(batch: &Batch) -> BatchNumber {
    let number = commit(batch);
    Drawn::set(Some((H256::repeat_byte(6), System::block_number() + 1)));
    block();
    number
}

/// Where the verifier's points are on a batch.
fn points(number: BatchNumber) -> Vec<u128> {
    let record = Batches::<Test>::get(stash(), number).expect("committed");
    let input = ReceiptsInput {
        seed: ChannelsPallet::seed_of(&stash(), number, &record).expect("known"),
        provider: stash(),
        batch: number,
    };
    let fields = input.fields();
    let fields = borrowed(&fields);
    let output = Hashed::output(
        &verifier_agent(),
        RECEIPTS_LABEL,
        &fields,
        RECEIPTS_CONTEXT,
        &PROOF,
    );
    let (all, price) = (record.draw.verifier_stake, record.window.root.sums.price);
    let mean = points_mean(record.rate, price, all, all);
    drawn_points(&output.expect("the right proof"), price, mean)
}

/// What an account has, stake and all.
fn whole(who: &AccountId32) -> u128 {
    Balances::total_balance(who)
}

/// What is in the pot beside what keeps its account.
fn in_pot() -> u128 {
    free(&ChannelsPallet::pot()) - ExistentialDeposit::get()
}

/// What is in it that was not paid for demands.
fn held() -> u128 {
    let prices = Demands::<Test>::iter_values()
        .flatten()
        .map(|demand| demand.price);
    in_pot() - prices.sum::<u128>()
}

fn openings(channel: ChannelId, batches: &[(BatchNumber, Batch)]) -> Openings {
    let of = |(number, batch): &(BatchNumber, Batch)| (*number, batch.open_channel(channel).expect("has it"));
    Openings::truncate_from(batches.iter().map(of).collect())
}

fn redeem(channel: ChannelId, sum: u128, batches: &[(BatchNumber, Batch)]) -> sp_runtime::DispatchResult {
    ChannelsPallet::redeem(
        signed(agent()),
        voucher(channel, sum, false),
        openings(channel, batches),
    )
}

/// The same, and waits until all that it has counted is paid.
fn redeem_and_wait(channel: ChannelId, sum: u128, batches: &[(BatchNumber, Batch)]) {
    assert_ok!(redeem(channel, sum, batches));
    pass(WAIT);
    assert_ok!(redeem(channel, sum, &[]));
}

#[test]
fn a_payee_gets_what_final_batches_and_the_voucher_cover_and_pays_for_audits_beforehand() {
    run(|| {
        let channel = open(5 * SURE);
        let (before, pot) = (free(&stash()), free(&Pot::get()));
        let made = batch(channel, 0, &[SURE, SURE]);
        let batches = [(commit(&made), made)];
        // Two SURE are in the batch; 1.25 hundredths of each pay for audits.
        assert_eq!(free(&Pot::get()) - pot, SURE / 40);
        pass(WINDOW);
        assert_noop!(redeem(channel, 5 * SURE, &batches), Error::<Test>::NotCounted);
        pass(1);
        redeem_and_wait(channel, 5 * SURE, &batches);
        assert_eq!(free(&stash()) - before, 2 * SURE - SURE / 40);
        assert_eq!(held(), 3 * SURE);
        // Not twice.
        assert_noop!(redeem(channel, 5 * SURE, &batches), Error::<Test>::NotCounted);
        assert_ok!(redeem(channel, 5 * SURE, &[]));
        assert_eq!(held(), 3 * SURE);
    });
}

#[test]
fn a_wallets_voucher_counts_and_a_changed_one_does_not() {
    run(|| {
        let channel = open(5 * SURE);
        let made = batch(channel, 0, &[SURE]);
        let batches = [(commit(&made), made)];
        pass(WINDOW + 1);
        let mut forged = voucher(channel, SURE, true);
        forged.voucher.sum = 2 * SURE;
        let all = openings(channel, &batches);
        assert_noop!(
            ChannelsPallet::redeem(signed(agent()), forged, all.clone()),
            Error::<Test>::BadSignature
        );
        assert_ok!(ChannelsPallet::redeem(
            signed(agent()),
            voucher(channel, SURE, true),
            all
        ));
        pass(WAIT);
        assert_ok!(redeem(channel, SURE, &[]));
        assert_eq!(held(), 4 * SURE);
    });
}

#[test]
fn batches_of_a_channel_are_counted_in_order() {
    run(|| {
        let channel = open(5 * SURE);
        let (one, two) = (batch(channel, 0, &[SURE]), batch(channel, 1, &[SURE]));
        let batches = [(commit(&one), one), (commit(&two), two)];
        pass(WINDOW + 1);
        assert_noop!(
            redeem(channel, 2 * SURE, &batches[1..]),
            Error::<Test>::NotCounted
        );
        redeem_and_wait(channel, 2 * SURE, &batches);
        assert_eq!(held(), 3 * SURE);
    });
}

#[test]
fn a_payer_gets_its_rest_back_by_time_alone_but_not_before_the_payees_time() {
    run(|| {
        let channel = open(5 * SURE);
        assert_ok!(ChannelsPallet::close(signed(payer()), channel));
        pass(CLOSING);
        assert_noop!(
            ChannelsPallet::end(signed(payer()), channel),
            Error::<Test>::NotOver
        );
        pass(2);
        assert_eq!((held(), free(&payer())), (0, START));
        assert!(Channels::<Test>::get(channel).is_none());
    });
}

#[test]
fn every_channel_that_expired_is_ended_by_the_sweep() {
    run(|| {
        let ids: Vec<_> = (0..7).map(|_| open(SURE)).collect();
        assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6]);
        pass(210);
        assert_eq!(Channels::<Test>::iter().count(), 0);
        assert_eq!(free(&payer()), START);
    });
}

#[test]
fn nobodys_time_runs_while_finality_stands_still() {
    run(|| {
        let channel = open(SURE);
        assert_ok!(ChannelsPallet::close(signed(payer()), channel));
        (0..1_000).for_each(|_| block());
        assert_eq!(held(), SURE);
        assert!(Channels::<Test>::get(channel).is_some());
    });
}

#[test]
fn a_late_batch_is_held_for_and_paid_after_the_expiry() {
    run(|| {
        let channel = open(5 * SURE);
        pass(199);
        let made = batch(channel, 0, &[SURE]);
        let batches = [(commit(&made), made)];
        let opening = batches[0].1.open_channel(channel).expect("has it");
        assert_noop!(
            ChannelsPallet::hold(signed(payer()), channel, batches[0].0, opening.clone()),
            Error::<Test>::NotPayee
        );
        assert_ok!(ChannelsPallet::hold(
            signed(agent()),
            channel,
            batches[0].0,
            opening
        ));
        pass(WINDOW + 1);
        redeem_and_wait(channel, SURE, &batches);
        assert_eq!(held(), 4 * SURE);
        pass(CLOSING);
        assert_eq!(held(), 0);
    });
}

#[test]
fn nothing_is_held_by_what_was_batched_when_the_channel_was_over() {
    run(|| {
        let channel = open(5 * SURE);
        assert_ok!(ChannelsPallet::close(signed(payer()), channel));
        pass(CLOSING - 1);
        let made = batch(channel, 0, &[SURE]);
        let number = commit(&made);
        let hold = |number, made: &Batch| {
            let opening = made.open_channel(channel).expect("has it");
            ChannelsPallet::hold(signed(agent()), channel, number, opening)
        };
        assert_ok!(hold(number, &made));
        pass(2);
        // What a provider makes up later keeps nobody's money.
        let later = batch(channel, 1, &[SURE]);
        let number = commit(&later);
        assert_noop!(hold(number, &later), Error::<Test>::NotHeld);
        pass(CLOSING);
        assert_eq!(held(), 0);
    });
}

#[test]
fn a_payee_that_wants_nothing_more_gives_the_money_back_and_answers_on() {
    run(|| {
        let channel = open(5 * SURE);
        let made = batch(channel, 0, &[SURE]);
        let batches = [(commit(&made), made)];
        pass(WINDOW + 1);
        redeem_and_wait(channel, SURE, &batches);
        assert_noop!(
            ChannelsPallet::close_agreed(signed(payer()), channel),
            Error::<Test>::NotPayee
        );
        assert_ok!(ChannelsPallet::close_agreed(signed(agent()), channel));
        // Its record costs as much as any channel's until it ends.
        let kept = MinDeposit::get();
        assert_eq!((held(), free(&payer())), (kept, START - SURE - kept));
        let until = ChannelsPallet::time() + CLOSING;
        assert_eq!(
            Channels::<Test>::get(channel).expect("it is there").purse.closing,
            Some(until)
        );
        // Whatever else final batches have of it.
        let more = batch(channel, 1, &[SURE]);
        let more = [(commit(&more), more)];
        pass(WINDOW + 1);
        assert_noop!(redeem(channel, 2 * SURE, &more), Error::<Test>::BadVoucher);
        assert_ok!(redeem(channel, SURE, &more));
        assert_eq!(free(&payer()), START - SURE - kept);
        // Neither puts anything off, nor gives anything twice.
        assert_ok!(ChannelsPallet::close_agreed(signed(stash()), channel));
        assert_noop!(
            ChannelsPallet::top_up(signed(payer()), channel, SURE),
            Error::<Test>::Closing
        );
        let less = ChannelsPallet::stand(signed(stash()), LOCK, CAP - 1);
        assert_eq!(less, Err(Error::<Test>::InUse.into()));
        pass(CLOSING);
        assert!(Channels::<Test>::get(channel).is_none());
        assert_eq!((held(), free(&payer())), (0, START - SURE));
        assert_ok!(ChannelsPallet::stand(signed(stash()), 0, 0));
    });
}

#[test]
fn a_standing_lock_covers_its_cap_and_stays_while_it_is_needed() {
    run(|| {
        let needed = ChannelsPallet::needed_lock(2 * CAP).expect("insurable");
        let stand = |lock, cap| ChannelsPallet::stand(signed(stash()), lock, cap);
        assert_noop!(stand(needed - 1, 2 * CAP), Error::<Test>::LockTooSmall);
        let channel = open(SURE);
        assert_noop!(stand(LOCK - 1, CAP), Error::<Test>::InUse);
        block();
        let dear = batch(channel, 0, &[CAP + 1]);
        assert_noop!(
            ChannelsPallet::commit_batch(signed(agent()), dear.root()),
            Error::<Test>::BeyondCap
        );
        assert_ok!(ChannelsPallet::close_agreed(signed(agent()), channel));
        pass(CLOSING + 1);
        let made = batch(channel, 0, &[CAP]);
        commit(&made);
        assert_noop!(
            ChannelsPallet::commit_batch(signed(agent()), made.root()),
            Error::<Test>::OneABlock
        );
        assert_noop!(stand(LOCK - 1, CAP), Error::<Test>::InUse);
        pass(WINDOW + 1);
        assert_ok!(stand(0, 0));
        assert_noop!(
            ChannelsPallet::open(signed(payer()), stash(), payer(), SURE, 100),
            Error::<Test>::NotStanding
        );
        // All of the stake is free again.
        assert_ok!(Staking::unbond(signed(stash()), 200 * SURE));
    });
}

#[test]
fn nothing_is_kept_of_who_never_stood_or_left_without_a_batch() {
    run(|| {
        let leave = |who| ChannelsPallet::stand(signed(who), 0, 0);
        assert_noop!(leave(reporter()), Error::<Test>::NotStanding);
        assert_ok!(leave(stash()));
        assert_eq!(Standings::<Test>::iter().count(), 0);
        assert_noop!(leave(stash()), Error::<Test>::NotStanding);
    });
}

#[test]
fn deposits_and_expiries_only_grow_and_only_by_their_payer() {
    run(|| {
        let channel = open(SURE);
        let extend = |by, to| ChannelsPallet::extend(signed(by), channel, to);
        assert_noop!(extend(agent(), 300), Error::<Test>::NotPayer);
        assert_noop!(extend(payer(), 201), Error::<Test>::BadExpiry);
        assert_noop!(extend(payer(), LIFE + 2), Error::<Test>::BadExpiry);
        assert_ok!(extend(payer(), 300));
        assert_ok!(ChannelsPallet::top_up(signed(payer()), channel, SURE));
        assert_eq!(held(), 2 * SURE);
        assert_ok!(ChannelsPallet::close(signed(payer()), channel));
        assert_noop!(
            ChannelsPallet::top_up(signed(payer()), channel, SURE),
            Error::<Test>::Closing
        );
        assert_noop!(extend(payer(), 400), Error::<Test>::Closing);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn money_is_conserved_and_nobody_gets_more_than_is_covered(
        steps in prop::collection::vec((0u8..8, 0u64..3, 1u128..2_000), 1..60)
    ) {
        run(|| {
            let issued = Balances::total_issuance();
            // Of each channel: number, batch, last time to dispute it, and price.
            let mut lives = [const { Vec::<(BatchNumber, Batch, u64, u128)>::new() }; 3];
            let (mut counted, mut next, mut best) = ([0usize; 3], [0u32; 3], [0u128; 3]);
            let ids = [open(100_000), open(100_000), open(100_000)];
            let at_first = free(&stash()) + free(&Pot::get());
            for (step, which, amount) in steps {
                let (at, id) = (which as usize, ids[which as usize]);
                match step {
                    0 | 1 => {
                        let made = batch(id, next[at], &[amount, 1]);
                        next[at] += 2;
                        let number = commit(&made);
                        lives[at].push((number, made, Time::get() + u64::from(WINDOW), amount + 1));
                    }
                    2 | 3 => {
                        let upto = lives[at].len().min(counted[at] + 8);
                        let chosen: Vec<_> = lives[at][counted[at]..upto]
                            .iter()
                            .take_while(|life| life.2 < Time::get())
                            .map(|life| (life.0, life.1.clone()))
                            .collect();
                        if redeem(id, amount * 3, &chosen).is_ok() {
                            counted[at] += chosen.len();
                            best[at] = best[at].max(amount * 3);
                        }
                    }
                    4 => ignore(ChannelsPallet::top_up(signed(payer()), id, amount)),
                    5 => pass(u32::try_from(amount % 20).expect("small")),
                    6 if amount % 4 == 0 => ignore(ChannelsPallet::close(signed(payer()), id)),
                    7 if amount % 8 == 0 => ignore(ChannelsPallet::close_agreed(signed(agent()), id)),
                    _ => {
                        if let Some((number, made, ..)) = lives[at].last() {
                            let opening = made.open_channel(id).expect("has it");
                            ignore(ChannelsPallet::hold(signed(agent()), id, *number, opening));
                        }
                    }
                }
                check();
                let covered: u128 = (0..3)
                    .map(|at| {
                        let finals = lives[at].iter().filter(|life| life.2 < Time::get());
                        finals.map(|life| life.3).sum::<u128>().min(best[at])
                    })
                    .sum();
                let earned = free(&stash()) + free(&Pot::get()) - at_first;
                assert!(earned <= covered, "more than is covered");
                assert_eq!(free(&payer()) + held() + earned, START, "the payer lost something");
                assert_eq!(Balances::total_issuance(), issued);
            }
            // All of it comes back by time alone.
            pass(600);
            assert_eq!(held(), 0);
        });
    }
}

/// A step that may be refused: what matters is what it leaves behind.
fn ignore(_: sp_runtime::DispatchResult) {}
