//! What a payee does not take, and what a payer does about it.

use crate::{support::*, world::World};
use codec::Encode;
use surety_channel_calls::{
    payee::{BatchLimits, ChannelSeen, PayeeLimits},
    payer::{AskError, Wanted},
    *,
};
use surety_channels::*;

fn payee() -> (Payee, ChannelSeen) {
    let (payee, _) = Payee::open(payee_config(), [], 0).unwrap();
    let seen = ChannelSeen {
        terms: terms(10_000),
        purse: Purse::new(CHANNEL, 10_000, 0),
    };
    (payee, seen)
}

/// What a payer that can sign anything asks.
pub fn ask_of(
    wanted: Wanted,
    sum: u128,
    change: impl FnOnce(&mut Voucher<AccountId>),
    genesis: sp_core::H256,
) -> Ask {
    let mut voucher = Voucher {
        channel: CHANNEL,
        payee: account(STASH),
        expiry: EXPIRY,
        nonce: 0,
        request: wanted.request.hash(),
        sum,
    };
    change(&mut voucher);
    let signature = sign_with(KEY)(&voucher.message(&genesis));
    Ask {
        request: wanted.request,
        chunk_units: wanted.chunk_units,
        input: wanted.input.try_into().unwrap(),
        voucher: SignedVoucher { voucher, signature },
    }
}

fn asked(sum: u128, change: impl FnOnce(&mut Voucher<AccountId>)) -> Ask {
    ask_of(text(10, 100, 0, 16), sum, change, GENESIS)
}

/// What it is told; nothing where it is taken.
pub fn told(step: Step<PayeeEffect>) -> Option<Refusal> {
    let effects = step.commit(&Disk::default()).unwrap();
    effects.into_iter().find_map(|effect| match effect {
        PayeeEffect::Send {
            message: FromPayee::Refused { why, .. },
            ..
        } => Some(why),
        _ => None,
    })
}

#[test]
fn a_voucher_is_good_for_its_channel_its_payee_and_its_chain_alone() {
    let (mut payee, seen) = payee();
    let enough = 26 * TOKEN;
    let other_chain = ask_of(text(10, 100, 0, 16), enough, |_| (), named("another chain"));
    let step = payee.ask(other_chain, Some(&seen), 50);
    assert_eq!(told(step), Some(Refusal::BadSignature));
    // One for another channel of the same key.
    let step = payee.ask(asked(enough, |voucher| voucher.channel = 8), Some(&seen), 50);
    assert_eq!(told(step), Some(Refusal::NoChannel));
    let mut replayed = asked(enough, |voucher| voucher.channel = 8);
    replayed.voucher.voucher.channel = CHANNEL;
    let step = payee.ask(replayed, Some(&seen), 50);
    assert_eq!(told(step), Some(Refusal::BadSignature));
    let step = payee.ask(
        asked(enough, |voucher| voucher.payee = account(9)),
        Some(&seen),
        50,
    );
    assert_eq!(told(step), Some(Refusal::Voucher(VoucherRefusal::OtherPayee)));
    let step = payee.ask(
        asked(enough, |voucher| voucher.request = named("other")),
        Some(&seen),
        50,
    );
    assert_eq!(told(step), Some(Refusal::Voucher(VoucherRefusal::OtherRequest)));
    let step = payee.ask(asked(enough, |_| ()), Some(&seen), EXPIRY + 1);
    assert_eq!(told(step), Some(Refusal::Voucher(VoucherRefusal::Expired)));
    let step = payee.ask(asked(10_001, |_| ()), Some(&seen), 50);
    let deposit = 10_000;
    assert_eq!(
        told(step),
        Some(Refusal::Voucher(VoucherRefusal::AboveDeposit { deposit }))
    );
    let step = payee.ask(asked(enough, |voucher| voucher.nonce = 3), Some(&seen), 50);
    assert_eq!(
        told(step),
        Some(Refusal::Voucher(VoucherRefusal::OtherNonce { next: 0 }))
    );
    let step = payee.ask(asked(enough - 1, |_| ()), Some(&seen), 50);
    assert_eq!(told(step), Some(Refusal::Unpaid { sum: enough }));
    assert_eq!(
        told(payee.ask(asked(enough, |_| ()), None, 50)),
        Some(Refusal::NoChannel)
    );
    assert_eq!(payee.open_calls().count(), 0);
    assert_eq!(told(payee.ask(asked(enough, |_| ()), Some(&seen), 50)), None);
    // The same again.
    let step = payee.ask(asked(enough, |_| ()), Some(&seen), 50);
    assert_eq!(
        told(step),
        Some(Refusal::Voucher(VoucherRefusal::OtherNonce { next: 1 }))
    );
}

#[test]
fn a_payer_that_closes_its_channel_is_served_no_more() {
    let (mut payee, mut seen) = payee();
    seen.purse.close(100);
    let step = payee.ask(asked(26 * TOKEN, |_| ()), Some(&seen), 50);
    assert_eq!(told(step), Some(Refusal::Closing));
}

#[test]
fn a_request_has_to_fit_what_is_offered() {
    let (mut payee, seen) = payee();
    let mut refuses = |wanted: Wanted| {
        let ask = ask_of(wanted, 9_000, |_| (), GENESIS);
        told(payee.ask(ask, Some(&seen), 50))
    };
    let with = |change: &dyn Fn(&mut Wanted)| {
        let mut wanted = text(10, 100, 0, 16);
        change(&mut wanted);
        wanted
    };
    let cheap = with(&|wanted| wanted.request.unit_price -= 1);
    assert_eq!(refuses(cheap), Some(Refusal::Price { unit_price: TOKEN }));
    let unknown = with(&|wanted| wanted.request.model = named("unknown"));
    assert_eq!(refuses(unknown), Some(Refusal::NotOffered));
    let wide = with(&|wanted| wanted.chunk_units = 513);
    let (least, most) = (1, 512);
    assert_eq!(refuses(wide), Some(Refusal::ChunkUnits { least, most }));
    let other = with(&|wanted| wanted.input[30] ^= 1);
    assert_eq!(refuses(other), Some(Refusal::Input(Unfit::OtherInput)));
    let strange = with(&|wanted| {
        wanted.input[24..28].copy_from_slice(&1_000u32.to_le_bytes());
        wanted.request.input = surety_proofs::content_hash(&wanted.input);
    });
    assert_eq!(refuses(strange), Some(Refusal::Input(Unfit::UnknownToken)));
    let malformed = with(&|wanted| {
        wanted.input[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        wanted.request.input = surety_proofs::content_hash(&wanted.input);
    });
    assert_eq!(refuses(malformed), Some(Refusal::Input(Unfit::Malformed)));
    let mut nothing = items(1, 1);
    nothing.request.units_max = 0;
    assert_eq!(refuses(nothing), Some(Refusal::Input(Unfit::Empty)));
    assert_eq!(refuses(text(10, 100, 0, 16)), None);
}

/// What a model of a long context is asked, for so many tokens after 4,000.
fn long(tokens: u32) -> Wanted {
    let mut wanted = text(4_000, 16, 0, 16);
    wanted.facts.bounds.positions = 16_384;
    wanted.request.units_max = 4_000 + tokens;
    wanted.input[..4].copy_from_slice(&tokens.to_le_bytes());
    wanted.request.input = surety_proofs::content_hash(&wanted.input);
    wanted
}

#[test]
fn neither_end_has_more_said_than_could_be_shown_in_a_dispute() {
    let mut config = payee_config();
    for offer in &mut config.offers {
        offer.facts.bounds.positions = 16_384;
    }
    let (mut payee, _) = Payee::open(config, [], 0).unwrap();
    let deposit = 1_000_000;
    let seen = ChannelSeen {
        terms: terms(deposit),
        purse: Purse::new(CHANNEL, deposit, 0),
    };
    // Two parts for the prompt, and two for the answer with the word before it.
    let most = 4_095;
    assert_eq!(surety_types::input::tokens_shown(4_000), most);
    let mut asked = |tokens| {
        let ask = ask_of(long(tokens), 100_000, |_| (), GENESIS);
        told(payee.ask(ask, Some(&seen), 50))
    };
    assert_eq!(asked(most + 1), Some(Refusal::Input(Unfit::TooLong)));
    assert_eq!(asked(most), None);
    let (mut payer, _) = Payer::open(payer_config(), terms(deposit), vec![account(AGENT)], 0, []).unwrap();
    assert_eq!(
        payer.ask(long(most + 1)).err(),
        Some(AskError::Unfit(Unfit::TooLong))
    );
    assert!(payer.ask(long(most)).is_ok());
}

#[test]
fn all_places_are_bounded() {
    let mut config = payee_config();
    config.limits = PayeeLimits {
        open_max: 2,
        ..config.limits
    };
    let (mut payee, _) = Payee::open(config, [], 0).unwrap();
    let (_, seen) = self::payee();
    let mut ask = |nonce| {
        let sum = 26 * TOKEN * (u128::from(nonce) + 1);
        told(payee.ask(asked(sum, |voucher| voucher.nonce = nonce), Some(&seen), 50))
    };
    assert_eq!([ask(0), ask(1), ask(2)], [None, None, Some(Refusal::Busy)]);

    // A payer that always has enough before anything is said.
    let mut config = payee_config();
    config.limits.voids_max = 3;
    let (mut payee, _) = Payee::open(config, [], 0).unwrap();
    let mut ask = |nonce| {
        let step = payee.ask(asked(500, |voucher| voucher.nonce = nonce), Some(&seen), 50);
        let told = told(step);
        payee.abandon(CHANNEL, nonce).commit(&Disk::default()).unwrap();
        told
    };
    assert_eq!(
        [ask(0), ask(1), ask(2), ask(3)],
        [None, None, None, Some(Refusal::Busy)]
    );

    let (mut payee, _) = self::payee();
    let mut ask = |nonce| {
        let one = ask_of(text(1, 1, 0, 1), 1_000, |voucher| voucher.nonce = nonce, GENESIS);
        told(payee.ask(one, Some(&seen), 50))
    };
    assert!((0..OPEN_REQUESTS_MAX).all(|nonce| ask(nonce).is_none()));
    let refused = Refusal::Voucher(VoucherRefusal::TooManyOpen);
    assert_eq!(ask(OPEN_REQUESTS_MAX), Some(refused));
}

#[test]
fn a_payee_that_has_lost_its_journal_takes_nothing_over_channels_that_were_there_before() {
    let (_, mut seen) = payee();
    // Eight channels were opened by now, this one among them.
    let (mut payee, _) = Payee::open(payee_config(), [], 8).unwrap();
    let step = payee.ask(asked(26 * TOKEN, |_| ()), Some(&seen), 50);
    assert_eq!(told(step), Some(Refusal::Forgotten));
    seen.terms.channel = 8;
    seen.purse.channel = 8;
    let step = payee.ask(asked(26 * TOKEN, |voucher| voucher.channel = 8), Some(&seen), 50);
    assert_eq!(told(step), None);
}

#[test]
fn an_old_copy_of_a_journal_is_found_out_by_what_the_chain_has() {
    let mut world = World::new(10_000);
    world.ask(text(10, 5, 0, 16)).unwrap();
    world.settle();
    let copy = world.payee_disk.rows();
    let (mut restored, _) = Payee::open(payee_config(), copy, 0).unwrap();
    world.batch();
    // The chain has counted the receipt, and the copy does not know that it is batched.
    world.seen.purse.next = 1;
    let wanted = text(10, 5, 0, 5);
    let ask = ask_of(wanted, 200 * TOKEN, |voucher| voucher.nonce = 1, GENESIS);
    assert_eq!(
        told(restored.ask(ask.clone(), Some(&world.seen), 50)),
        Some(Refusal::Forgotten)
    );
    assert_eq!(told(world.payee.ask(ask, Some(&world.seen), 50)), None);
}

#[test]
fn a_journal_without_its_beginning_or_with_a_gap_is_not_gone_on_with() {
    let mut world = World::new(10_000);
    world.ask(text(10, 5, 0, 16)).unwrap();
    world.settle();
    let rows = world.payee_disk.rows();
    let without = |table| rows.iter().filter(move |row| row.table != table).cloned();
    let opened = Payee::open(payee_config(), without(Table::Start), 0);
    assert_eq!(opened.err(), Some(LoadError::NoStart));
    let opened = Payee::open(payee_config(), without(Table::Calls), 0);
    let (channel, nonce) = (CHANNEL, 0);
    assert_eq!(opened.err(), Some(LoadError::Missing { channel, nonce }));
    world.batch();
    let mut rows = world.payee_disk.rows();
    let start = rows.iter_mut().find(|row| row.table == Table::Start).unwrap();
    // Its salts' secret stands at the end.
    *start.value.as_mut().unwrap().last_mut().unwrap() ^= 1;
    let opened = Payee::open(payee_config(), rows, 0);
    assert_eq!(opened.err(), Some(LoadError::OtherRoot { batch: 0 }));
}

#[test]
fn another_agent_goes_on_with_a_journal_and_its_batches() {
    let mut world = World::new(10_000);
    world.ask(text(10, 5, 0, 16)).unwrap();
    world.settle();
    world.batch();
    let mut config = payee_config();
    (config.agent, config.sign) = (account(STASH), sign_with(STASH));
    // A secret of the new agent's.
    config.salts = ReceiptSalts::new([6; 32]);
    let (rows, read) = (world.payee_disk.rows(), world.payee_disk.reader());
    let (payee, _) = Payee::open_over(config, read, rows, 0).unwrap();
    world.payee = payee;
    world.shown(0);
}

#[test]
fn nothing_is_taken_or_batched_over_old_channels_where_the_chain_has_a_batch_that_the_journal_has_not() {
    let mut world = World::new(10_000);
    world.ask(text(10, 5, 0, 16)).unwrap();
    world.settle();
    let disk = Disk::default();
    disk.put(&world.payee_disk.rows()).unwrap();
    world.batch();
    let root = world.roots[0];
    assert!(!world.payee.lacks_batch(0, &root));

    let (mut copy, step) = Payee::open(payee_config(), disk.rows(), 0).unwrap();
    assert!(step.is_empty());
    assert!(copy.unbatched().0 > 0 && copy.lacks_batch(0, &root));
    copy.miss_batch(0, CHANNEL + 1).commit(&disk).unwrap();
    // Once: what is opened from now on is as good as ever.
    assert!(!copy.lacks_batch(0, &root));
    let (mut copy, _) = Payee::open(payee_config(), disk.rows(), 0).unwrap();
    assert!(!copy.lacks_batch(0, &root));
    assert_eq!(copy.unbatched(), (0, 0));
    let wanted = text(10, 5, 0, 5);
    let ask = ask_of(wanted, 200 * TOKEN, |voucher| voucher.nonce = 1, GENESIS);
    assert_eq!(
        told(copy.ask(ask, Some(&world.seen), 50)),
        Some(Refusal::Forgotten)
    );
    let mut seen = world.seen.clone();
    (seen.terms.channel, seen.purse.channel) = (CHANNEL + 1, CHANNEL + 1);
    let ask = asked(26 * TOKEN, |voucher| voucher.channel = CHANNEL + 1);
    assert_eq!(told(copy.ask(ask, Some(&seen), 50)), None);
}

#[test]
fn while_a_journal_may_be_an_old_copy_nothing_is_written_down_taken_or_batched_but_what_is_demanded() {
    let mut world = World::new(10_000);
    world.ask(text(10, 5, 0, 16)).unwrap();
    world.settle();
    let rows = world.payee_disk.rows();
    let asks = |world: &World| {
        let ask = ask_of(
            text(10, 5, 0, 5),
            200 * TOKEN,
            |voucher| voucher.nonce = 1,
            GENESIS,
        );
        world.payee.would_take(&ask, Some(&world.seen), 50).err()
    };
    world.payee.doubt(CHANNEL + 1);
    assert_eq!(asks(&world), Some(Refusal::Busy));
    world.batch();
    assert_eq!(world.payee_disk.rows(), rows);
    let limits = BatchLimits {
        receipts_max: 100,
        price_max: u128::MAX,
    };
    world.payee_does(|payee| payee.make_demanded_batch(&limits, &[(CHANNEL, 0)]));
    assert_eq!(world.shown(0).batched.statement.price, 15 * TOKEN);
    // It was not true.
    world.payee.doubt(0);
    assert_eq!(asks(&world), None);
}

#[test]
fn nothing_is_taken_over_a_channel_whose_next_receipt_no_batch_has_any_more() {
    let mut world = World::new(10_000);
    for _ in 0..2 {
        world.ask(text(10, 5, 0, 16)).unwrap();
        world.settle();
        world.batch();
    }
    let ask = || {
        ask_of(
            text(10, 5, 0, 5),
            200 * TOKEN,
            |voucher| voucher.nonce = 2,
            GENESIS,
        )
    };
    // It was never counted, and the chain keeps it no more.
    world.payee_does(|payee| payee.forget(0));
    assert_eq!(
        told(world.payee.ask(ask(), Some(&world.seen), 50)),
        Some(Refusal::Forgotten)
    );
    world.seen.purse.next = 1;
    assert_eq!(told(world.payee.ask(ask(), Some(&world.seen), 50)), None);
}

#[test]
fn a_payer_that_does_not_know_the_next_number_learns_it_and_asks_again() {
    let mut world = World::new(10_000);
    // Two requests never arrive.
    for _ in 0..2 {
        let nonce = world.ask(text(10, 20, 0, 16)).unwrap();
        assert_eq!(world.ask(text(10, 20, 0, 16)), Err(AskError::Waiting));
        world.drop_connection(nonce);
    }
    assert_eq!(world.payer.spent(), 2 * 26 * TOKEN);
    let nonce = world.ask(text(10, 20, 0, 16)).unwrap();
    world.settle();
    let next = VoucherRefusal::OtherNonce { next: 0 };
    assert_eq!(world.refused, [(nonce, Refusal::Voucher(next), true)]);
    // They were never taken, and cost nothing.
    assert_eq!(world.payer.spent(), 0);
    assert_eq!(world.ask(text(10, 20, 0, 16)), Ok(0));
    world.settle();
    assert_eq!(world.payer.spent(), 30 * TOKEN);
    // Beyond what was signed for the three that came to nothing, nothing was.
    assert_eq!(world.payer.signed(), 3 * 26 * TOKEN);
    assert_eq!(world.ask(text(10, 20, 0, 16)), Ok(1));
    world.settle();
    assert_eq!(world.done.len(), 2);
    assert_eq!(world.payer.signed(), 3 * 26 * TOKEN);
}

#[test]
fn a_payer_that_has_lost_its_journal_is_not_talked_into_any_sum() {
    let mut world = World::new(10_000);
    world.ask(text(10, 20, 0, 16)).unwrap();
    world.settle();
    let opened = Payer::open(payer_config(), terms(10_000), vec![account(AGENT)], 0, []);
    world.payer = opened.unwrap().0;
    let nonce = world.ask(text(10, 6, 0, 4)).unwrap();
    world.settle();
    let (first, why, is_worth_retry) = world.refused[0];
    let next = VoucherRefusal::OtherNonce { next: 1 };
    assert_eq!(
        (first, why, is_worth_retry),
        (nonce, Refusal::Voucher(next), true)
    );
    world.ask(text(10, 6, 0, 4)).unwrap();
    world.settle();
    let last = 30 * TOKEN;
    let why = Refusal::Voucher(VoucherRefusal::NotLarger { last });
    assert_eq!(world.refused[1], (1, why, false));
    assert_eq!(world.payer.signed(), 14 * TOKEN);
}

#[test]
fn the_wire_says_of_a_message_which_call_it_is_of() {
    let ask = asked(26 * TOKEN, |voucher| voucher.nonce = 4);
    let pay = ToPayee::Pay(ask.voucher.clone());
    let bytes = ToPayee::Ask(ask).encode();
    assert_eq!(message::read::<ToPayee>(&bytes).unwrap().call(), (CHANNEL, 4));
    assert_eq!(pay.call(), (CHANNEL, 4));
}
