//! Providers that have something else to say to a request each time that they are asked it.

use std::time::Duration;

use surety_chain_client::Call;
use surety_gateway::{Generating, Upstream};
use surety_payer_calls::{Providers, Spending};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    provider::{Fault, Provider, tokens},
    world::{PRICE, SPENDING, World, ask, failed, text},
};

/// Until nobody waits any more.
const LONG: Duration = Duration::from_secs(600);

fn is_closed(world: &World) -> bool {
    let sent = world.sent();
    sent.iter().any(|call| matches!(call, Call::Close { channel: 0 }))
}

/// A provider that has said a token of a long answer, and has two units left over of another one.
async fn with_some_left(world: &World) -> (Provider, Providers, Box<dyn Generating>) {
    let provider = world.provider("one", PRICE, Fault::Trickles(LONG));
    let payer = world.payer().await;
    let mut long = payer.generate(&text(10, 400, 1), &[]).await.unwrap();
    long.next().await.unwrap();
    provider.state().fault = Fault::None;
    let (_, receipt) = ask(&payer, &text(10, 100, 7)).await.unwrap();
    assert_eq!(receipt.price, 40 * PRICE);
    provider.state().asked = 0;
    (provider, payer, long)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_misses_is_written_off_once_it_should_be_heard_and_then_it_is_asked_again() {
    let world = World::new();
    let (provider, payer, _long) = with_some_left(&world).await;
    provider.state().fault = Fault::Misses(3);
    let (ids, _) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    assert_eq!((ids, provider.state().asked), (tokens(20, 1), 4));
    // It goes on over the same channel.
    let (_, next) = ask(&payer, &text(10, 20, 1)).await.unwrap();
    assert_eq!((next.channel, world.opened(), is_closed(&world)), (0, 1, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_misses_more_after_that_loses_its_channel_though_an_answer_of_its_is_open() {
    let world = World::new();
    let (provider, payer, _long) = with_some_left(&world).await;
    provider.state().fault = Fault::Misses(usize::MAX);
    let (_, error) = ask(&payer, &text(10, 20, 1)).await.unwrap_err();
    assert_eq!(failed(error), (provider.name(), 2 * PRICE));
    assert_eq!(provider.state().asked, 4);
    // Nothing more is asked over that one.
    provider.state().fault = Fault::None;
    let answered = async {
        loop {
            match ask(&payer, &text(10, 20, 1)).await {
                Ok((_, receipt)) => return receipt,
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let receipt = timeout(Duration::from_secs(30), answered).await.unwrap();
    assert_eq!(receipt.channel, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_nothing_and_has_another_number_each_time_is_given_up_and_gets_no_other_channel() {
    let world = World::new();
    let provider = world.provider("one", PRICE, Fault::Renumbers);
    let mut config = world.config(world.store(), SPENDING);
    config.patience.place = Duration::from_millis(300);
    let payer = Providers::start(config).await.unwrap();
    let given_up = async {
        while !is_closed(&world) {
            ask(&payer, &text(10, 20, 1)).await.unwrap_err();
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(30), given_up).await.unwrap();
    // Three requests, two seconds after each other.
    let asked = provider.state().asked;
    assert_eq!(asked, 12);
    ask(&payer, &text(10, 20, 1)).await.unwrap_err();
    assert_eq!((provider.state().asked, world.opened()), (asked, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_nothing_while_it_answers_one_is_not_asked_before_others_for_long() {
    let world = World::new();
    let cheap = world.provider("cheap", PRICE, Fault::Trickles(LONG));
    // Nobody is asked because another's channel has to be topped up first.
    let payer = world
        .payer_with(Spending {
            deposit: 200_000,
            ..SPENDING
        })
        .await;
    let mut long = payer.generate(&text(10, 400, 1), &[]).await.unwrap();
    long.next().await.unwrap();
    cheap.state().fault = Fault::Renumbers;
    cheap.state().asked = 0;
    let dear = world.provider("dear", 2 * PRICE, Fault::None);
    let answered = async || {
        let mut asked = text(10, 20, 1);
        asked.price_max *= 2;
        let answered = ask(&payer, &asked).await;
        sleep(Duration::from_millis(20)).await;
        answered.is_ok_and(|(_, receipt)| receipt.provider == dear.name())
    };
    let twice = async {
        while cheap.state().asked < 8 {
            answered().await;
        }
    };
    timeout(Duration::from_secs(30), twice).await.unwrap();
    // Also once it is not busy any more, as it has said.
    let until = Instant::now() + Duration::from_millis(2_500);
    while Instant::now() < until {
        assert!(answered().await);
    }
    assert_eq!(cheap.state().asked, 8);
}
