//! Who is asked of several, by what the chain says of them.

use std::{num::NonZeroU64, time::Duration};

use surety_chain_client::{Call, FakeOffer};
use surety_channels::view::TrackRecord;
use surety_gateway::Upstream;
use surety_payer_calls::{Config, Providers, Spending};
use tokio::time::timeout;

use crate::{
    provider::{Fault, Provider},
    world::{PRICE, SPENDING, World, ask, read, text},
};

impl World {
    /// The chain remembers this of a provider.
    fn remembers(&self, provider: &Provider, record: TrackRecord) {
        self.chain.change(|state| {
            let records = &mut state.channels.records;
            records.insert(provider.stash.clone(), record);
        });
        self.chain.finalize();
    }

    /// The chain says something else of a provider's offers.
    fn offers(&self, provider: &Provider, change: impl Fn(&mut FakeOffer)) {
        self.chain.change(|state| {
            let offers = state.channels.offers.iter_mut();
            let own = offers.filter(|((stash, ..), _)| *stash == provider.stash);
            own.for_each(|(_, offer)| change(offer));
        });
        self.chain.finalize();
    }

    /// Once a token of sixty may cost a quarter more than this.
    async fn quotes(&self, payer: &Providers, unit_price: u128) {
        self.until(|| (quoted(payer) == slack(unit_price)).then_some(()))
            .await;
    }

    /// Whom the payer has opened channels to, in order.
    fn opened_to(&self) -> Vec<String> {
        let sent = self.sent().into_iter();
        let opened = sent.filter_map(|call| match call {
            Call::Open { payee, .. } => Some(surety_chain_client::address(&payee)),
            _ => None,
        });
        opened.collect()
    }
}

/// A quarter more than a unit costs.
const fn slack(unit_price: u128) -> u128 {
    (unit_price * 5).div_ceil(4)
}

/// Most that a token of sixty may cost.
fn quoted(payer: &Providers) -> u128 {
    payer.unit_price_max("talker", true, 60, &[]).unwrap()
}

/// A channel to each of them.
async fn known_to(payer: &Providers, providers: &[&Provider]) {
    let names: Vec<String> = providers.iter().map(|one| one.name()).collect();
    for name in &names {
        let others: Vec<String> = names.iter().filter(|other| *other != name).cloned().collect();
        let mut asked = text(1, 1, 1);
        asked.price_max *= 20;
        let mut run = payer.generate(&asked, &others).await.unwrap();
        assert_eq!(read(&mut *run).await.unwrap().1.provider, *name);
    }
}

/// Who has answered.
async fn answered(payer: &Providers, seed: u64) -> String {
    let (_, receipt) = ask(payer, &text(10, 20, seed)).await.unwrap();
    receipt.provider
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_was_found_at_fault_lately_is_not_asked_and_sets_no_price() {
    let world = World::new();
    let guilty = world.provider("guilty", PRICE / 2, Fault::None);
    let honest = world.provider("honest", PRICE, Fault::None);
    world.remembers(
        &guilty,
        TrackRecord {
            faults: 1,
            ..TrackRecord::default()
        },
    );
    let payer = world.payer().await;
    assert_eq!(payer.models()[0].unit_price_max, slack(PRICE));
    assert_eq!(answered(&payer, 1).await, honest.name());
    assert_eq!(guilty.state().asked, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_cheap_and_fails_sets_no_price_for_others() {
    let world = World::new();
    let broken = world.provider("broken", PRICE / 2, Fault::None);
    let _works = world.provider("works", PRICE, Fault::None);
    let payer = world.payer().await;
    assert_eq!(payer.models()[0].unit_price_max, slack(PRICE / 2));
    broken.state().fault = Fault::Dies(1);
    // It may have been paid for what it said.
    ask(&payer, &text(10, 20, 1)).await.unwrap_err();
    assert_eq!(payer.models()[0].unit_price_max, slack(PRICE));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_where_one_is_wanted_is_asked_before_a_cheaper_one_elsewhere() {
    let world = World::new();
    let cheap = world.provider("cheap", PRICE, Fault::None);
    let near = world.provider("near", PRICE * 6 / 5, Fault::None);
    let region = "DE".parse().ok();
    world.chain.change(|state| {
        for ((provider, ..), offer) in &mut state.channels.offers {
            offer.region = region.filter(|_| *provider == near.stash);
        }
    });
    world.chain.finalize();
    let config = Config {
        region,
        ..world.config(world.store(), SPENDING)
    };
    let payer = Providers::start(config).await.unwrap();
    assert_eq!(answered(&payer, 1).await, near.name());
    assert_eq!(cheap.state().asked, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_is_tried_once_it_has_a_channel_and_keeps_nobody_waiting_for_that() {
    let mut world = World::new();
    let known = world.provider("known", PRICE, Fault::None);
    let newcomer = world.provider("newcomer", PRICE * 6 / 5, Fault::None);
    let config = Config {
        // Every request is a try.
        tries: NonZeroU64::new(1),
        ..world.config(world.store(), SPENDING)
    };
    let payer = Providers::start(config).await.unwrap();
    let mut first = payer
        .generate(&text(10, 20, 1), &[newcomer.name()])
        .await
        .unwrap();
    read(&mut *first).await.unwrap();
    world.stop_blocks().await;
    // That none of them is a try of the newcomer: once in a trillion.
    for seed in 0..40 {
        assert_eq!(answered(&payer, seed).await, known.name());
    }
    world.until(|| (world.opened() == 2).then_some(())).await;
    let chain = world.chain.clone();
    let blocks = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(25)).await;
            chain.finalize();
        }
    });
    let tried = async { while answered(&payer, 2).await != newcomer.name() {} };
    timeout(Duration::from_secs(20), tried).await.unwrap();
    assert_eq!(world.opened(), 2);
    blocks.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_could_take_a_request_now_sets_what_it_may_cost() {
    let world = World::new();
    let cheap = world.provider("cheap", PRICE / 2, Fault::None);
    let dear = world.provider("dear", PRICE, Fault::None);
    let payer = world.payer().await;
    // It says that all its places are taken; and that they are not.
    world.offers(&cheap, |offer| offer.busy = offer.places);
    world.quotes(&payer, PRICE).await;
    world.offers(&cheap, |offer| offer.busy = 0);
    world.quotes(&payer, PRICE / 2).await;
    // It has less to sell than is asked.
    let room = |room| {
        world.chain.change(|state| {
            let standing = state.channels.standings.get_mut(&cheap.stash).unwrap();
            standing.cap = room;
        });
        world.chain.finalize();
    };
    room(60 * PRICE / 2 - 1);
    world.quotes(&payer, PRICE).await;
    let quoted = |units, avoid: &[String]| payer.unit_price_max("talker", true, units, avoid);
    assert_eq!(quoted(59, &[]), Some(slack(PRICE / 2)));
    // Where nobody else is left it does all the same.
    assert_eq!(quoted(60, &[dear.name()]), Some(slack(PRICE / 2)));
    assert_eq!(quoted(60, &[cheap.name(), dear.name()]), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_says_that_it_has_places_and_refuses_what_it_is_asked_sets_no_price_after_that() {
    let world = World::new();
    let busy = world.provider("busy", PRICE / 2, Fault::Busy);
    let works = world.provider("works", PRICE, Fault::None);
    let payer = world.payer().await;
    // At a price that it alone takes nobody answers.
    let mut cheap = text(10, 50, 1);
    cheap.price_max = 60 * slack(PRICE / 2);
    let refused = async {
        while busy.state().asked < 3 {
            // Also when it has not been asked for a moment, and is to be asked again.
            if busy.state().asked == 2 {
                assert_eq!(quoted(&payer), slack(PRICE));
            }
            ask(&payer, &cheap).await.unwrap_err();
            world.blocks(1).await;
        }
    };
    timeout(Duration::from_secs(20), refused).await.unwrap();
    assert_eq!(answered(&payer, 1).await, works.name());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_more_than_it_offers_is_ranked_by_what_it_takes() {
    const BAIT: u128 = 100;
    let world = World::new();
    let bait = world.provider("bait", BAIT * 3 / 2, Fault::None);
    world.offers(&bait, |offer| offer.unit_price = BAIT);
    let honest = world.provider("honest", BAIT * 11 / 10, Fault::None);
    let payer = world.payer().await;
    known_to(&payer, &[&bait, &honest]).await;
    let before = bait.state().asked;
    assert_eq!(quoted(&payer), slack(BAIT * 11 / 10));
    let mut asked = text(10, 20, 1);
    asked.price_max = 30 * 2 * BAIT;
    for _ in 0..4 {
        let (_, receipt) = ask(&payer, &asked).await.unwrap();
        assert_eq!(
            (receipt.provider, receipt.price),
            (honest.name(), 30 * BAIT * 11 / 10)
        );
    }
    assert_eq!(bait.state().asked, before);
    // Once the chain says as much it is followed again, also down.
    world.offers(&bait, |offer| offer.unit_price = BAIT * 3 / 2);
    world.blocks(10).await;
    world.offers(&bait, |offer| offer.unit_price = BAIT / 2);
    world.quotes(&payer, BAIT / 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bait_is_asked_once_for_a_request_and_the_next_best_answers_it() {
    let world = World::new();
    let honest = world.provider("honest", 110, Fault::None);
    let bait = world.provider("bait", 150, Fault::None);
    let payer = world.payer().await;
    known_to(&payer, &[&bait, &honest]).await;
    // It has offered what it takes so far.
    world.offers(&bait, |offer| offer.unit_price = 50);
    world.quotes(&payer, 50).await;
    let before = bait.state().asked;
    let mut asked = text(10, 20, 1);
    asked.price_max = 30 * 200;
    let (_, receipt) = ask(&payer, &asked).await.unwrap();
    assert_eq!((receipt.provider, receipt.price), (honest.name(), 30 * 110));
    assert_eq!(bait.state().asked, before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_gets_no_channel_for_a_try_that_takes_more_than_half_of_the_budget() {
    for (deposits, opened) in [(3, 1), (4, 2)] {
        let world = World::new();
        let known = world.provider("known", PRICE, Fault::None);
        let newcomer = world.provider("newcomer", PRICE, Fault::None);
        let spending = Spending {
            budget: deposits * SPENDING.deposit,
            ..SPENDING
        };
        let config = Config {
            // Every request is a try.
            tries: NonZeroU64::new(1),
            ..world.config(world.store(), spending)
        };
        let payer = Providers::start(config).await.unwrap();
        let mut first = payer.generate(&text(1, 1, 1), &[newcomer.name()]).await.unwrap();
        assert_eq!(read(&mut *first).await.unwrap().1.provider, known.name());
        for seed in 0..20 {
            answered(&payer, seed).await;
            world.blocks(1).await;
        }
        assert_eq!(world.opened_to().len(), opened);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_are_cheap_and_dead_give_their_channels_places_to_whoever_answers() {
    let world = World::new();
    let _dead = ["one", "two", "three"].map(|name| world.dead(name, PRICE / 2));
    let honest = world.provider("honest", PRICE, Fault::None);
    let spending = Spending {
        channels_max: 2,
        ..SPENDING
    };
    let payer = world.payer_with(spending).await;
    assert_eq!(answered(&payer, 1).await, honest.name());
    // None of them gets a second one.
    for seed in 0..3 {
        assert_eq!(answered(&payer, seed).await, honest.name());
    }
    let mut opened = world.opened_to();
    assert_eq!(opened.pop(), Some(honest.name()));
    opened.sort();
    opened.dedup();
    assert_eq!(opened.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_are_cheap_and_dead_take_no_money_from_whoever_answers() {
    let world = World::new();
    let honest = world.provider("honest", PRICE, Fault::None);
    let spending = Spending {
        budget: 4 * SPENDING.deposit,
        ..SPENDING
    };
    let payer = world.payer_with(spending).await;
    assert_eq!(answered(&payer, 1).await, honest.name());
    let dead = ["one", "two", "three", "four"].map(|name| world.dead(name, PRICE / 5));
    world.blocks(10).await;
    // More than one deposit pays for.
    for seed in 0..80 {
        assert_eq!(answered(&payer, seed).await, honest.name());
    }
    let opened = world.opened_to();
    let to_dead = dead.iter().filter(|dead| opened.contains(&dead.name()));
    assert!((1..=2).contains(&to_dead.count()), "{opened:?}");
    assert!(world.sent().iter().any(|call| matches!(call, Call::TopUp { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_paid_a_deposit_whose_lock_covers_nothing_more() {
    let world = World::new();
    let starved = world.provider("starved", PRICE / 2, Fault::None);
    let other = world.provider("other", PRICE, Fault::None);
    world.others_deposit(&starved, 1 << 60);
    let payer = world.payer().await;
    assert_eq!(answered(&payer, 1).await, other.name());
    assert_eq!(world.opened_to(), [other.name()]);
}
