//! Tasks that ask for what a provider has to be, over the real registry, benchmark and escrow.

use surety_pallet_task_auction::{Call as AuctionCall, Error as AuctionError, NextTaskId};
use surety_runtime::Runtime;
use surety_types::{
    TaskId,
    speed::{Requirements, Tier},
    task::{FailureReason, TaskSpec, TaskState},
};

use crate::{
    chain::{Chain, account},
    market::*,
    measured::pretend,
};

fn post_requiring(chain: &mut Chain, requirements: Requirements) -> TaskId {
    let task = chain.query(NextTaskId::<Runtime>::get);
    let spec = TaskSpec {
        requirements,
        ..spec(1)
    };
    chain.call(CLIENT, AuctionCall::post { spec, cap: CAP });
    task
}

fn declare(chain: &mut Chain, provider: &Provider, letters: &str) {
    let mut device = device();
    device.region = letters.parse().ok();
    let register = surety_pallet_provider_registry::Call::register {
        device,
        endpoints: spec(1).sources,
    };
    chain.call(provider.agent, register);
}

#[test]
fn a_task_for_a_region_in_which_nobody_is_gives_all_of_it_back() {
    let mut chain = open();
    let [elsewhere, nowhere, ..] = PROVIDERS;
    declare(&mut chain, &elsewhere, "DE");
    let asked = Requirements {
        region: "AQ".parse().ok(),
        ..Requirements::default()
    };
    let before = chain.free(&account(CLIENT));
    let task = post_requiring(&mut chain, asked);
    let posted = chain.free(&account(CLIENT));
    for provider in [elsewhere, nowhere] {
        let (agent, bid) = provider.sealed(task);
        let refused = AuctionError::<Runtime>::RequirementsUnmet.into();
        assert_eq!(chain.try_call(agent, bid), Err(refused));
    }
    wait_for_end(&mut chain, task);
    assert!(matches!(
        chain.query(|| state(task)),
        TaskState::Failed {
            reason: FailureReason::NotEnoughBids,
            ..
        }
    ));
    // Its cap and a quarter of it as a lock; the fee of posting it is spent.
    let back = chain.free(&account(CLIENT));
    assert_eq!(back, posted + CAP + CAP / 4);
    assert!(back < before);
    assert_cleared(&mut chain, task);
}

#[test]
fn a_task_is_won_by_who_is_what_it_asks_for_however_cheap_the_others_are() {
    let mut chain = open();
    let [cheap, slow, fit, _] = PROVIDERS;
    declare(&mut chain, &cheap, "FR");
    declare(&mut chain, &slow, "DE");
    declare(&mut chain, &fit, "DE");
    pretend(&mut chain, &cheap, 20_000);
    pretend(&mut chain, &slow, 4_999);
    pretend(&mut chain, &fit, 5_000);
    let asked = Requirements {
        tier: Some(Tier::B),
        memory_mib: 1_024,
        region: "DE".parse().ok(),
    };
    let task = post_requiring(&mut chain, asked);
    for other in [cheap, slow] {
        let (agent, bid) = other.sealed(task);
        let refused = AuctionError::<Runtime>::RequirementsUnmet.into();
        assert_eq!(chain.try_call(agent, bid), Err(refused));
    }
    auction(&mut chain, task, &[fit]);
    let TaskState::Running { assignments, .. } = chain.query(|| state(task)) else {
        panic!("not drawn")
    };
    assert_eq!(assignments[0].provider, fit.account());
}
