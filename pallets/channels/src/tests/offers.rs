//! What providers sell, and for how long a model stays for it.

mod pools;

use sp_runtime::{DispatchResult, Perquintill};
use surety_channels::{End, Ending, Equivocation, view::OfferView};
use surety_proofs::content_hash;
use surety_types::{ModelId, stake::Role, traits::SoldModels};

use super::*;
use crate::{Event, OFFERS_MAX, PLACES_MAX, POOL_OFFERS_MAX, Pool, Pools, ReceiptSource};

const GENERATE: Operation = Operation::Generate;

fn offer(model: ModelId, unit_price: u128, places: u32) -> DispatchResult {
    ChannelsPallet::offer(signed(stash()), model, GENERATE, unit_price, places, None)
}

fn withdraw(model: ModelId) -> DispatchResult {
    ChannelsPallet::withdraw_offer(signed(stash()), model, GENERATE)
}

fn report(model: ModelId, busy: u32) -> DispatchResult {
    ChannelsPallet::report_busy(signed(agent()), model, GENERATE, busy)
}

/// The one offer that there is.
fn shown() -> OfferView<AccountId32> {
    let offers = ChannelsPallet::offers();
    assert_eq!(offers.len(), 1);
    offers.into_iter().next().expect("one")
}

fn last_event() -> Event<Test> {
    let events = System::events().into_iter().rev();
    let mut ours = events.filter_map(|record| match record.event {
        RuntimeEvent::ChannelsPallet(event) => Some(event),
        _ => None,
    });
    ours.next().expect("something happened")
}

/// Another provider, with as much as the first.
fn another(number: u8) -> (AccountId32, AccountId32) {
    let (stash, agent) = (
        AccountId32::new([100 + number; 32]),
        AccountId32::new([150 + number; 32]),
    );
    let money = Balances::transfer_allow_death(signed(reporter()), stash.clone(), 150 * SURE);
    assert_ok!(money);
    assert_ok!(Staking::bond(signed(stash.clone()), Role::Provider, 120 * SURE));
    assert_ok!(Staking::set_agent(signed(stash.clone()), agent.clone()));
    assert_ok!(Staking::confirm_agent(signed(agent.clone()), stash.clone()));
    assert_ok!(ChannelsPallet::stand(signed(stash.clone()), LOCK, CAP));
    (stash, agent)
}

#[test]
fn who_looks_for_an_offer_sees_what_it_costs_who_signs_and_what_can_still_be_sold() {
    run(|| {
        let region = "DE".parse().ok();
        let offered = ChannelsPallet::offer(signed(stash()), model(1), GENERATE, FLOOR + 1, 10, region);
        assert_ok!(offered);
        assert_eq!(
            last_event(),
            Event::Offered {
                provider: stash(),
                model: model(1),
                operation: GENERATE,
                unit_price: FLOOR + 1,
                places: 10,
                region,
            }
        );
        let view = OfferView {
            provider: stash(),
            model: model(1),
            operation: GENERATE,
            unit_price: FLOOR + 1,
            places: 10,
            busy: 0,
            signers: vec![agent()],
            room: CAP,
            region,
            record: shown().record,
        };
        assert_eq!(shown(), view);
        let channel = open(5 * SURE);
        commit(&batch(channel, 0, &[SURE]));
        assert_eq!(shown().room, CAP - SURE);
        pass(WINDOW + 1);
        assert_eq!(
            shown().room,
            CAP,
            "the batch is final, though nobody has called since"
        );
        assert_ok!(offer(model(1), FLOOR + 7, 0));
        let view = OfferView {
            unit_price: FLOOR + 7,
            places: 0,
            // It was not said again.
            region: None,
            record: shown().record,
            ..view
        };
        assert_eq!(shown(), view);
        InJail::set(true);
        assert!(ChannelsPallet::offers().is_empty());
    });
}

#[test]
fn what_nobody_stands_behind_or_could_be_held_to_is_not_offered() {
    run(|| {
        let stranger = ChannelsPallet::offer(signed(reporter()), model(1), GENERATE, FLOOR, 1, None);
        assert_noop!(stranger, Error::<Test>::NotStanding);
        assert_noop!(offer(UNSOLD, FLOOR, 1), NOT_SOLD);
        assert_noop!(offer(model(1), FLOOR - 1, 1), Error::<Test>::PriceTooLow);
        assert_noop!(
            offer(model(1), FLOOR, PLACES_MAX + 1),
            Error::<Test>::TooManyPlaces
        );
        InJail::set(true);
        assert_noop!(offer(model(1), FLOOR, 1), Error::<Test>::InJail);
        InJail::set(false);
        assert_noop!(report(model(1), 0), Error::<Test>::NoOffer);
        assert_noop!(withdraw(model(1)), Error::<Test>::NoOffer);
        // Work is dearer now.
        WorkPrice::set(2 * SECOND);
        assert_noop!(offer(model(1), FLOOR, 1), Error::<Test>::PriceTooLow);
        assert_ok!(offer(model(1), 2 * FLOOR, 1));
        let full = Pool {
            offers: POOL_OFFERS_MAX,
            ..Pool::new(FLOOR, 1)
        };
        Pools::<Test>::insert((model(2), GENERATE), full);
        assert_noop!(offer(model(2), 2 * FLOOR, 1), Error::<Test>::PoolFull);
        Pools::<Test>::remove((model(2), GENERATE));
    });
}

#[test]
fn places_are_offered_of_what_as_much_stake_can_audit_as_locks_count_on() {
    run(|| {
        let half = Perquintill::from_percent(50);
        Able::set(half);
        Registry::set_able(model(1), half);
        assert_ok!(offer(model(1), FLOOR, 2));
        let less = Perquintill::from_parts(half.deconstruct() - 1);
        Registry::set_able(model(2), less);
        assert_noop!(offer(model(2), FLOOR, 1), Error::<Test>::NobodyAudits);
        assert_noop!(offer(UNSOLD, FLOOR, 1), NOT_SOLD);
        // Verifiers go: what there is can be changed and taken back, and no more of it offered.
        Registry::set_able(model(1), less);
        assert_noop!(offer(model(1), FLOOR, 3), Error::<Test>::NobodyAudits);
        assert_ok!(offer(model(1), 2 * FLOOR, 2));
        assert_ok!(offer(model(1), FLOOR, 1));
        assert_noop!(offer(model(1), FLOOR, 2), Error::<Test>::NobodyAudits);
        assert_ok!(offer(model(1), FLOOR, 0));
        assert_noop!(offer(model(1), FLOOR, 1), Error::<Test>::NobodyAudits);
        Registry::set_able(model(1), half);
        assert_ok!(offer(model(1), FLOOR, 1));
    });
}

#[test]
fn the_cap_covers_all_places_and_one_of_each_offer() {
    run(|| {
        let most = u32::try_from(CAP / PLACE_CAP).expect("few");
        assert_noop!(offer(model(1), FLOOR, most + 1), Error::<Test>::PlacesNotCovered);
        assert_ok!(offer(model(1), FLOOR, most - 3));
        assert_ok!(offer(model(2), FLOOR, 2));
        // Also of one that takes nothing.
        assert_ok!(offer(model(3), FLOOR, 0));
        assert_noop!(offer(model(4), FLOOR, 0), Error::<Test>::PlacesNotCovered);
        assert_noop!(offer(model(2), FLOOR, 3), Error::<Test>::PlacesNotCovered);
        let stand = |lock, cap| ChannelsPallet::stand(signed(stash()), lock, cap);
        assert_noop!(stand(LOCK, CAP - 1), Error::<Test>::PlacesNotCovered);
        assert_noop!(stand(0, CAP), Error::<Test>::PlacesNotCovered);
        assert_ok!(offer(model(1), FLOOR, 1));
        assert_ok!(stand(LOCK, 4 * PLACE_CAP));
        assert_noop!(stand(LOCK, 4 * PLACE_CAP - 1), Error::<Test>::PlacesNotCovered);
        for number in 1..=3 {
            assert_ok!(withdraw(model(number)));
        }
        assert_ok!(stand(0, 0));
    });
}

#[test]
fn a_provider_has_a_few_offers() {
    run(|| {
        for number in 0..OFFERS_MAX {
            assert_ok!(offer(model(number as u8), FLOOR, 1));
        }
        assert_noop!(offer(model(100), FLOOR, 1), Error::<Test>::TooManyOffers);
        assert_ok!(withdraw(model(0)));
        assert_ok!(offer(model(100), FLOOR, 1));
    });
}

#[test]
fn a_model_stays_until_nothing_that_was_sold_of_it_is_open() {
    run(|| {
        assert_ok!(offer(model(1), FLOOR, 1));
        assert_ok!(offer(model(1), FLOOR, 2));
        assert_eq!(Registry::uses(&model(1)), 1);
        let channel = open(5 * SURE);
        assert_noop!(withdraw(model(1)), Error::<Test>::OfferInUse);
        assert_ok!(ChannelsPallet::close_agreed(signed(agent()), channel));
        // It answers for what it may have signed until the channel ends.
        pass(CLOSING);
        assert_noop!(withdraw(model(1)), Error::<Test>::OfferInUse);
        commit(&batch(channel, 0, &[SURE]));
        pass(WINDOW);
        assert_noop!(withdraw(model(1)), Error::<Test>::OfferInUse);
        pass(1);
        assert_ok!(withdraw(model(1)));
        assert_eq!(
            last_event(),
            Event::OfferWithdrawn {
                provider: stash(),
                model: model(1),
                operation: GENERATE,
            }
        );
        assert_eq!(Registry::uses(&model(1)), 0);
        assert!(ChannelsPallet::offers().is_empty() && ChannelsPallet::pools().is_empty());
    });
}

/// What was asked of model 1, and what a provider has said to it.
fn receipt(channel: ChannelId, token: u32) -> (Request, ChunkStatement<AccountId32>) {
    let request = generation(100, 5);
    let said: Vec<u8> = [0, token].into_iter().flat_map(u32::to_le_bytes).collect();
    let statement = ChunkStatement {
        channel,
        payee: stash(),
        nonce: 0,
        request: request.hash(),
        bytes: said.len() as u32,
        output: content_hash(&said),
        units: 11,
        price: 55,
        end: Some(Ending {
            how: End::Length,
            trace_root: H256::repeat_byte(3),
        }),
    };
    (request, statement)
}

/// Shows that the provider has answered the channel's first request twice.
fn convict(channel: ChannelId) {
    let clash = Equivocation {
        one: signed_one(receipt(channel, 1).1),
        other: signed_one(receipt(channel, 2).1),
        shown: None,
    };
    let reported = ChannelsPallet::report_equivocation(signed(reporter()), Box::new(clash));
    assert_ok!(reported);
}

#[test]
fn a_conviction_ends_all_offers_and_keeps_the_models_of_what_is_disputed() {
    run(|| {
        let (other, _) = another(0);
        let theirs = ChannelsPallet::offer(signed(other), model(1), GENERATE, FLOOR, 4, None);
        assert_ok!(theirs);
        for number in 1..=3 {
            assert_ok!(offer(model(number), FLOOR, 5));
        }
        assert_ok!(report(model(1), 5));
        let channel = open(5 * SURE);
        let (request, statement) = receipt(channel, 1);
        assert_ok!(ChannelsPallet::dispute(
            signed(reporter()),
            Box::new(ReceiptSource::Signed(signed_one(statement))),
            Box::new(request),
            None
        ));
        assert_eq!(Registry::uses(&model(1)), 3);
        convict(channel);
        check();
        // The other provider's is left, and weighs alone.
        assert_eq!(shown().places, 4);
        let pools = ChannelsPallet::pools();
        assert_eq!(pools.len(), 1);
        assert_eq!((pools[0].places, pools[0].busy), (4, 0));
        let uses = |number| Registry::uses(&model(number));
        assert_eq!((uses(1), uses(2), uses(3)), (2, 0, 0));
        assert_noop!(offer(model(1), FLOOR, 1), Error::<Test>::NotStanding);
        ChannelsPallet::receipt_decided(0, true);
        assert_eq!(uses(1), 1);
    });
}

#[test]
fn who_was_convicted_begins_again_with_new_offers() {
    run(|| {
        assert_ok!(offer(model(1), FLOOR, 5));
        convict(open(5 * SURE));
        assert!(ChannelsPallet::offers().is_empty());
        assert_ok!(ChannelsPallet::stand(signed(stash()), LOCK, CAP));
        assert!(
            ChannelsPallet::offers().is_empty(),
            "nothing comes back by itself"
        );
        assert_ok!(offer(model(1), FLOOR, 5));
        assert_eq!(Registry::uses(&model(1)), 1);
    });
}

#[test]
fn the_agent_says_once_in_a_period_how_many_of_its_places_are_taken() {
    run(|| {
        assert_ok!(offer(model(1), FLOOR, 10));
        assert_noop!(
            ChannelsPallet::report_busy(signed(stash()), model(1), GENERATE, 1),
            Error::<Test>::NotAgent
        );
        assert_noop!(report(model(1), 11), Error::<Test>::TooBusy);
        assert_ok!(report(model(1), 10));
        assert_eq!(shown().busy, 10);
        assert_noop!(report(model(1), 0), Error::<Test>::ReportedAlready);
        pass(PERIOD);
        assert_ok!(report(model(1), 7));
        assert_eq!(
            last_event(),
            Event::BusyReported {
                provider: stash(),
                model: model(1),
                operation: GENERATE,
                busy: 7,
            }
        );
        // Whoever offers fewer has no more of them taken.
        assert_ok!(offer(model(1), FLOOR, 3));
        assert_eq!((shown().places, shown().busy), (3, 3));
    });
}

#[test]
fn a_model_stays_until_every_audit_of_every_batch_is_over() {
    run(|| {
        assert_ok!(offer(model(1), FLOOR, 1));
        let channel = open(9 * SURE);
        let first = commit_seeded(&batch(channel, 0, &[8 * SURE]));
        let announced =
            ChannelsPallet::announce_points(signed(verifier_agent()), stash(), first, PROOF, H256::zero());
        assert_ok!(announced);
        commit(&batch(channel, 1, &[1]));
        assert_ok!(ChannelsPallet::close_agreed(signed(agent()), channel));
        // The channel is over, and the latest batch was never audited.
        pass(CLOSING + SUPPLY + REFUTE);
        assert!(Channels::<Test>::get(channel).is_none());
        assert_noop!(withdraw(model(1)), Error::<Test>::OfferInUse);
        assert_ok!(ChannelsPallet::end_points(
            signed(reporter()),
            stash(),
            first,
            verifier()
        ));
        assert_ok!(withdraw(model(1)));
    });
}
