//! Who is asked of several, by what the chain says of them.

use std::{num::NonZeroU64, time::Duration};

use surety_channels::view::TrackRecord;
use surety_gateway::Upstream;
use surety_payer_calls::{Config, Providers};
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
    assert_eq!(payer.models()[0].unit_price_max, (PRICE * 5).div_ceil(4));
    assert_eq!(answered(&payer, 1).await, honest.name());
    assert_eq!(guilty.state().asked, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_cheap_and_fails_sets_no_price_for_others() {
    let world = World::new();
    let broken = world.provider("broken", PRICE / 2, Fault::None);
    let _works = world.provider("works", PRICE, Fault::None);
    let payer = world.payer().await;
    assert_eq!(payer.models()[0].unit_price_max, (PRICE / 2 * 5).div_ceil(4));
    broken.state().fault = Fault::Dies(1);
    // It may have been paid for what it said.
    ask(&payer, &text(10, 20, 1)).await.unwrap_err();
    assert_eq!(payer.models()[0].unit_price_max, (PRICE * 5).div_ceil(4));
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
