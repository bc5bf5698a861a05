#![allow(clippy::unwrap_used)]
use surety_chain_client::{FakeChain, PendingSlashes, Signer, Until};

use super::*;
use crate::SURE;

struct World {
    chain: FakeChain,
    operators: [Signer; 2],
    delegator: Signer,
}

impl World {
    /// Two operators with a pool each, and somebody who backs both.
    async fn new() -> Self {
        let signer = |uri| Signer::from_uri(uri).unwrap();
        let world = Self {
            chain: FakeChain::new(),
            operators: [signer("//One"), signer("//Two")],
            delegator: signer("//Delegator"),
        };
        for (operator, bond) in world.operators.iter().zip([10, 20]) {
            let open = StakeCall::OpenPool {
                bond: bond * SURE,
                commission: 50_000,
            };
            world.submit(operator, open).await;
            let delegate = StakeCall::Delegate {
                operator: operator.account().clone(),
                amount: 100 * SURE,
            };
            world.submit(&world.delegator, delegate).await;
        }
        world
    }

    async fn submit(&self, signer: &Signer, call: StakeCall) {
        let call = Call::Stake(call);
        self.chain
            .submit(signer, call, Until::Included.into())
            .await
            .unwrap();
    }

    fn operator(&self, place: usize) -> AccountId {
        self.operators[place].account().clone()
    }

    async fn shown(&self) -> Shown {
        self.chain.finalize();
        Shown::new(&self.chain, self.delegator.account()).await.unwrap()
    }
}

#[tokio::test]
async fn operators_are_listed_by_what_is_behind_them() {
    let world = World::new().await;
    world.chain.change(|state| {
        state.delegation.sets.present = vec![world.operator(0)];
    });
    world.chain.finalize();
    let listed = listed(&world.chain, When::Finalized).await.unwrap();
    let order: Vec<_> = listed.iter().map(|one| one.account.clone()).collect();
    assert_eq!(order, [world.operator(1), world.operator(0)]);
    assert_eq!(
        (listed[0].backing, listed[0].own),
        (Plancks(120 * SURE), Plancks(20 * SURE))
    );
    assert_eq!(
        listed.iter().map(|one| one.validates).collect::<Vec<_>>(),
        [false, true]
    );
}

#[tokio::test]
async fn a_delegator_sees_what_it_has_left_after_a_slash_and_what_it_can_claim() {
    let world = World::new().await;
    let slashed = world.operator(0);
    world.chain.change(|state| {
        let pool = state.delegation.pools.get_mut(&slashed).unwrap();
        pool.fund.amount /= 2;
        let other = state.delegation.pools.get_mut(&world.operator(1)).unwrap();
        // A hundredth of a planck for each share.
        other.per_share = 10_000_000_000_000_000;
    });
    let shown = world.shown().await;
    let of = |operator: &AccountId| {
        let one = shown
            .delegations
            .iter()
            .find(|one| one.account == *operator)
            .unwrap();
        (one.worth, one.lost, one.claimable)
    };
    assert_eq!(of(&slashed), (Plancks(50 * SURE), Plancks(50 * SURE), Plancks(0)));
    assert_eq!(
        of(&world.operator(1)),
        (Plancks(100 * SURE), Plancks(0), Plancks(SURE))
    );
    let who = world.delegator.account();
    assert_eq!(owing(&world.chain, who).await.unwrap(), [world.operator(1)]);
    let claim = StakeCall::Claim {
        operator: world.operator(1),
    };
    world.submit(&world.delegator, claim).await;
    world.chain.finalize();
    assert!(owing(&world.chain, who).await.unwrap().is_empty());
    // Of an operator its commission counts.
    world.chain.change(|state| {
        let pool = state.delegation.pools.get_mut(&slashed).unwrap();
        pool.earned = 1;
    });
    world.chain.finalize();
    let owes = owing(&world.chain, &slashed).await.unwrap();
    assert_eq!(owes, std::slice::from_ref(&slashed));
}

#[tokio::test]
async fn of_stake_on_its_way_out_it_is_said_what_keeps_it() {
    let world = World::new().await;
    let undelegate = StakeCall::Undelegate {
        operator: world.operator(0),
        amount: 40 * SURE,
    };
    world.submit(&world.delegator, undelegate).await;
    let shown = world.shown().await;
    assert_eq!(shown.leaving[0].worth, Plancks(40 * SURE));
    assert!(
        shown.text().contains("can be withdrawn at 10 of"),
        "{}",
        shown.text()
    );
    let pending = PendingSlashes {
        since: 0,
        until: 1,
        count: 1,
    };
    world
        .chain
        .change(|state| state.delegation.pending.insert(world.operator(0), pending));
    assert!(world.shown().await.text().contains("kept until"));
    world.chain.change(|state| state.delegation.pending.clear());
    for _ in 0..10 {
        world.chain.finalize();
    }
    let text = world.shown().await.text();
    assert!(
        text.contains("can be withdrawn") && !text.contains("can be withdrawn at"),
        "{text}"
    );
}

#[tokio::test]
async fn who_backs_nobody_is_told_how_to_begin() {
    let world = World::new().await;
    let nobody = Signer::from_uri("//Nobody").unwrap();
    world.chain.finalize();
    let shown = Shown::new(&world.chain, nobody.account()).await.unwrap();
    assert!(shown.text().contains("surety stake operators"));
}

#[tokio::test]
async fn an_operator_without_stake_of_its_own_sees_and_claims_its_commission() {
    let world = World::new().await;
    let operator = world.operator(0);
    let leave = StakeCall::Undelegate {
        operator: operator.clone(),
        amount: 10 * SURE,
    };
    world.submit(&world.operators[0], leave).await;
    world.chain.finalize();
    let shown = Shown::new(&world.chain, &operator).await.unwrap();
    assert!(shown.delegations.is_empty());
    assert!(owing(&world.chain, &operator).await.unwrap().is_empty());
    // Who backs it still has a day shared, of which it asks its part.
    world.chain.change(|state| {
        state.delegation.pools.get_mut(&operator).unwrap().earned = SURE;
    });
    world.chain.finalize();
    let shown = Shown::new(&world.chain, &operator).await.unwrap();
    let [own] = shown.delegations.as_slice() else {
        panic!("{:?}", shown.delegations);
    };
    assert_eq!((own.worth, own.claimable), (Plancks(0), Plancks(SURE)));
    assert!(
        shown.text().contains("commission of its own pool"),
        "{}",
        shown.text()
    );
    assert_eq!(
        owing(&world.chain, &operator).await.unwrap(),
        std::slice::from_ref(&operator)
    );
}

#[test]
fn who_takes_stake_out_is_told_what_becomes_of_the_running_day() {
    assert!(paid_for_today(true).contains("for the running day too"));
    assert!(paid_for_today(false).contains("take stake out after that"));
}
