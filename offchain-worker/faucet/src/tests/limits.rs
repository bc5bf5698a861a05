//! How much is given to whom.

use redb::{ReadableDatabase, ReadableTableMetadata};

use super::*;
use crate::claims::CLAIMS;

#[tokio::test]
async fn an_account_claims_once_a_day_from_wherever() {
    let world = World::new();
    let faucet = world.open().await;
    faucet.claim(account(1), origin("192.0.2.1")).await.unwrap();
    world.at(23 * HOUR + 1);
    let refused = faucet.claim(account(1), origin("192.0.2.2")).await;
    assert_eq!(
        refused.as_ref().unwrap_err().to_string(),
        "this account has claimed within the last day; ask again in 1 h 0 min"
    );
    assert_eq!(is_too_soon(refused), HOUR - 1);
    world.at(24 * HOUR - 1);
    is_too_soon(faucet.claim(account(1), origin("192.0.2.2")).await);
    world.at(24 * HOUR);
    faucet.claim(account(1), origin("192.0.2.2")).await.unwrap();
}

#[tokio::test]
async fn an_address_has_its_claims_a_day_and_so_has_each_64_of_ipv6() {
    for [same, also, other] in [
        ["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"],
        ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"],
    ] {
        let world = World::new();
        let faucet = world.open().await;
        faucet.claim(account(1), origin(same)).await.unwrap();
        world.at(2 * HOUR);
        faucet.claim(account(2), origin(also)).await.unwrap();
        let refused = faucet.claim(account(3), origin(same)).await;
        assert_eq!(
            refused.as_ref().unwrap_err().to_string(),
            "too many claims came from your address within the last day; ask again in 22 h 0 min"
        );
        // When the first of the two is a day old.
        assert_eq!(is_too_soon(refused), 22 * HOUR);
        faucet.claim(account(3), origin(other)).await.unwrap();
    }
}

#[tokio::test]
async fn all_together_have_so_much_an_hour() {
    let world = World::new();
    let faucet = world.open().await;
    for number in 1..=3u8 {
        world.at(u64::from(number) * 60);
        faucet
            .claim(account(number), origin(&format!("192.0.2.{number}")))
            .await
            .unwrap();
    }
    let fourth = || faucet.claim(account(4), origin("192.0.2.4"));
    let refused = fourth().await;
    assert_eq!(
        refused.as_ref().unwrap_err().to_string(),
        "this faucet has given all that it gives in an hour; ask again in 58 min"
    );
    assert_eq!(is_too_soon(refused), HOUR - 120);
    world.at(HOUR + 60);
    fourth().await.unwrap();
    // What was refused counts for nothing.
    is_too_soon(faucet.claim(account(5), origin("192.0.2.4")).await);
}

#[tokio::test]
async fn limits_outlast_a_restart_and_the_file_has_a_day_of_claims() {
    let mut world = World::new();
    world.limits = Limits {
        per_client: 2,
        per_hour: 2,
    };
    for hour in 0..40u8 {
        world.at(u64::from(hour) * HOUR);
        let faucet = world.open().await;
        let from = |part: u8| origin(&format!("192.0.{part}.{hour}"));
        faucet.claim(account(2 * hour), from(1)).await.unwrap();
        drop(faucet);
        let faucet = world.open().await;
        is_too_soon(faucet.claim(account(2 * hour), from(2)).await);
        faucet.claim(account(2 * hour + 1), from(3)).await.unwrap();
        drop(faucet);
        let faucet = world.open().await;
        is_too_soon(faucet.claim(account(200), from(4)).await);
    }
    let file = world.home.path().join("faucet.redb");
    let database = redb::Database::open(file).unwrap();
    let read = database.begin_read().unwrap();
    assert_eq!(read.open_table(CLAIMS).unwrap().len().unwrap(), 48);
}

#[tokio::test]
async fn a_clock_that_is_set_back_gives_nobody_more() {
    let world = World::new();
    world.at(30 * HOUR);
    let faucet = world.open().await;
    faucet.claim(account(1), origin("192.0.2.1")).await.unwrap();
    world.at(0);
    assert_eq!(
        is_too_soon(faucet.claim(account(1), origin("192.0.2.1")).await),
        54 * HOUR
    );
}
