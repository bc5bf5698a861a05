//! Tasks that ask for what the chain has measured of a provider, or for where it says that it is.

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
        region: None,
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

#[test]
fn a_task_for_another_region_is_left_to_others() {
    let mut provider = provider(Vec::new());
    let region = |letters: &str| letters.parse().ok();
    let mut asking = bidding(7);
    asking.task.spec.requirements.region = region("DE");
    assert_eq!(see(&mut provider, 10, vec![asking.clone()]), Step::default());
    for (block, declared) in (11..).zip([region("FR"), None]) {
        provider.step(block, Event::Declared { region: declared });
        let step = see(&mut provider, block, vec![asking.clone()]);
        assert_eq!(step, Step::default(), "{declared:?}");
    }
    let declared = region("DE");
    provider.step(14, Event::Declared { region: declared });
    let step = see(&mut provider, 15, vec![asking]);
    assert_eq!(kinds(&step), [EffectKind::Bid]);
}
