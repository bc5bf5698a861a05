//! What the chain says when it is asked.

use surety_channels::{
    End, Ending,
    view::{DemandView, DisputedView, Says, Wanted},
};

use super::*;

#[test]
fn both_sides_find_their_channels_with_what_vouchers_are_checked_against() {
    run(|| {
        let (one, two) = (open(5 * SURE), open(SURE));
        let kept = Channels::<Test>::get(two).expect("opened");
        let view = ChannelsPallet::channel(two).expect("opened");
        assert_eq!(view.terms(), kept.terms());
        assert_eq!((view.payer.clone(), view.purse), (payer(), kept.purse));
        let numbers = |views: Vec<surety_channels::view::ChannelView<AccountId32>>| {
            let mut numbers: Vec<_> = views.into_iter().map(|view| view.channel).collect();
            numbers.sort_unstable();
            numbers
        };
        assert_eq!(numbers(ChannelsPallet::channels_of(&stash())), [one, two]);
        assert_eq!(numbers(ChannelsPallet::channels_by(&payer())), [one, two]);
        assert!(ChannelsPallet::channels_of(&payer()).is_empty());
        assert!(ChannelsPallet::channels_by(&stash()).is_empty());
        assert_eq!(ChannelsPallet::channel(two + 1), None);
    });
}

#[test]
fn a_standing_is_shown_as_it_is_now_also_when_nobody_has_called_since() {
    run(|| {
        let channel = open(5 * SURE);
        commit(&batch(channel, 0, &[SURE]));
        let standing = || ChannelsPallet::standing_view(&stash()).expect("stands");
        assert_eq!(
            (standing().lock, standing().cap, standing().open),
            (LOCK, CAP, SURE)
        );
        assert_eq!((standing().unfinished, standing().next), (0, 1));
        assert_eq!((standing().channels, standing().signers), (1, vec![agent()]));
        pass(WINDOW + 1);
        assert_eq!((standing().unfinished, standing().open), (1, 0));
        assert_eq!(ChannelsPallet::standing_view(&payer()), None);
        assert_eq!(
            ChannelsPallet::least_lock(CAP).map(|least| least <= LOCK),
            Some(true)
        );
    });
}

#[test]
fn verifiers_find_the_batches_that_they_can_still_audit_and_what_they_draw_with() {
    run(|| {
        let channel = open(9 * SURE);
        let first = commit(&batch(channel, 0, &[SURE]));
        pass(ANNOUNCE + 1);
        let made = batch(channel, 1, &[4 * SURE]);
        let second = commit(&made);
        let open = ChannelsPallet::open_batches;
        assert_eq!(open().len(), 1);
        assert_eq!((open()[0].batch, open()[0].draw.seed), (second, None));
        Drawn::set(Some((H256::repeat_byte(6), System::block_number() + 1)));
        block();
        let record = Batches::<Test>::get(stash(), second).expect("kept");
        let seed = ChannelsPallet::seed_of(&stash(), second, &record);
        assert!(seed.is_some() && open()[0].draw.seed == seed);
        assert_eq!((&open()[0].window, open()[0].announced), (&record.window, 0));
        let drawn = points(second).len() as u128;
        let announced = ChannelsPallet::announce_points(
            signed(verifier_agent()),
            stash(),
            second,
            PROOF,
            H256::repeat_byte(1),
        );
        assert_ok!(announced);
        let found = ChannelsPallet::points(&stash(), second);
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].verifier, found[0].opened), (&verifier(), false));
        assert_eq!(found[0].bond, drawn * PointBond::get());
        let all = ChannelsPallet::batches(&stash());
        let numbers: Vec<_> = all.iter().map(|batch| (batch.batch, batch.announced)).collect();
        assert_eq!(numbers, [(first, 0), (second, 1)]);
        pass(ANNOUNCE + 1);
        assert!(open().is_empty());
    });
}

#[test]
fn a_provider_finds_what_is_demanded_of_it_and_until_when() {
    run(|| {
        let channel = open(5 * SURE);
        let held = ChunkStatement {
            channel,
            payee: stash(),
            nonce: 3,
            request: H256::repeat_byte(1),
            bytes: 12,
            output: H256::repeat_byte(2),
            units: 12,
            price: 60,
            end: Some(Ending {
                how: End::Length,
                trace_root: H256::repeat_byte(3),
            }),
        };
        let says = Says::of(&held, &GENESIS);
        let demanded = ChannelsPallet::demand_receipt(signed(payer()), Box::new(signed_one(held)));
        assert_ok!(demanded);
        let view = DemandView {
            provider: stash(),
            demander: payer(),
            wanted: Wanted::Receipt {
                channel,
                nonce: 3,
                says,
                counted: None,
            },
            until: ChannelsPallet::time() + ChannelsPallet::rules().supply_window,
        };
        assert_eq!(ChannelsPallet::demands(&stash()), [view]);
        assert!(ChannelsPallet::demands(&payer()).is_empty());
    });
}

#[test]
fn a_provider_finds_the_rounds_about_its_receipts() {
    run(|| {
        let channel = open(5 * SURE);
        let request = generation(100, 5);
        let one = ChunkStatement {
            channel,
            payee: stash(),
            nonce: 3,
            request: request.hash(),
            bytes: 12,
            output: surety_proofs::content_hash(&[7; 12]),
            units: 12,
            price: 60,
            end: Some(Ending {
                how: End::Length,
                trace_root: H256::repeat_byte(3),
            }),
        };
        let source = Box::new(crate::ReceiptSource::Signed(signed_one(one)));
        assert_ok!(ChannelsPallet::dispute(
            signed(reporter()),
            source,
            Box::new(request),
            None
        ));
        let view = DisputedView {
            round: 0,
            batch: None,
            channel,
            nonce: 3,
            is_challenged: true,
        };
        assert_eq!(ChannelsPallet::disputed(&stash()), [view]);
        assert!(ChannelsPallet::disputed(&payer()).is_empty());
        ChannelsPallet::receipt_decided(0, true);
        assert!(ChannelsPallet::disputed(&stash()).is_empty());
    });
}

#[test]
fn rules_are_what_the_pallet_goes_by() {
    run(|| {
        let rules = ChannelsPallet::rules();
        let windows = (rules.batch_window, rules.announce_window, rules.refute_window);
        assert_eq!(windows, (WINDOW, ANNOUNCE, REFUTE));
        let waits = (rules.closing_period, rules.redeem_by, rules.max_life);
        assert_eq!(waits, (CLOSING, REDEEM_BY, LIFE));
        assert_eq!((rules.supply_window, rules.dispute_window), (SUPPLY, AGAIN));
        let expiry = ChannelsPallet::time() + rules.max_life;
        let open = |deposit, expiry| ChannelsPallet::open(signed(payer()), stash(), payer(), deposit, expiry);
        assert_noop!(
            open(rules.min_deposit - 1, expiry),
            Error::<Test>::DepositTooSmall
        );
        assert_noop!(open(rules.min_deposit, expiry + 1), Error::<Test>::BadExpiry);
        assert_ok!(open(rules.min_deposit, expiry));
    });
}
