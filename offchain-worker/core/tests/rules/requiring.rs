//! Tasks that ask for what the chain has measured of a provider.

use surety_types::speed::{MeasuredView, Requirements, Tier};

use super::*;

fn benchmarked(tier: Tier, memory_mib: u32) -> Event {
    let measured = MeasuredView {
        tier,
        giga_operations: 1,
        memory_mib,
        rounds_missed: 0,
    };
    Event::Benchmarked {
        measured: Some(measured),
    }
}

#[test]
fn a_task_that_asks_for_more_than_was_measured_is_left_to_others_until_it_was() {
    let mut provider = provider(Vec::new());
    let mut asking = bidding(7);
    asking.task.spec.requirements = Requirements {
        tier: Some(Tier::B),
        memory_mib: 1_000,
    };
    assert_eq!(see(&mut provider, 10, vec![asking.clone()]), Step::default());
    let too_little = [
        benchmarked(Tier::C, 1_000),
        benchmarked(Tier::A, 999),
        Event::Benchmarked { measured: None },
    ];
    for (block, event) in (11..).zip(too_little) {
        provider.step(block, event);
        let step = see(&mut provider, block, vec![asking.clone()]);
        assert_eq!(step, Step::default());
    }
    provider.step(14, benchmarked(Tier::A, 1_000));
    let step = see(&mut provider, 15, vec![asking]);
    assert_eq!(kinds(&step), [EffectKind::Bid]);
}
