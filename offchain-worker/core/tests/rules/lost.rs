//! What a provider has to show, and does not have any more.

use surety_types::trust::{Content, ContentPart, Demand, DemandedParts};
use surety_worker_core::Failure;

use super::*;

pub fn made() -> Record {
    let salt = H256([5; 32]);
    Record::ResultMade {
        task: 1,
        at: 9,
        claim: claim(1),
        salt,
        commitment: commitment(1, &stash(), &claim(1), &salt),
    }
}

/// Our result is open, and this part is demanded of us.
pub fn demanded(part: ContentPart) -> Vec<TaskSnapshot> {
    let phase = RoundPhase::Challengeable {
        until: 100,
        verdict: Verdict::Failed(FailureReason::NoAgreement),
    };
    let mut snapshot = running(1, MemberProgress::Revealed(claim(1)), phase);
    let demand = Demand {
        demander: AccountId::new([8; 32]),
        by: AccountId::new([8; 32]),
        parts: DemandedParts::truncate_from(vec![part]),
        price: 1,
        until: 90,
    };
    snapshot.demands = vec![(stash(), demand)];
    vec![snapshot]
}

fn gone(provider: &mut Provider, kind: EffectKind) -> Vec<EffectKind> {
    let failed = Event::EffectFailed {
        task: 1,
        kind,
        failure: Failure::Gone,
    };
    kinds(&provider.step(10, failed))
}

fn computed(provider: &mut Provider, claim: ResultClaim) -> Step {
    traced(provider, claim, None)
}

fn traced(provider: &mut Provider, claim: ResultClaim, leaves: Option<H256>) -> Step {
    let ready = Event::ResultReady {
        task: 1,
        claim,
        leaves,
    };
    provider.step(12, ready)
}

#[test]
fn an_output_that_is_lost_is_computed_again_and_shown() {
    let part = ContentPart {
        content: Content::Output,
        part: 0,
    };
    let supply = EffectKind::Supply(part);
    let mut provider = provider(vec![made()]);
    assert_eq!(kinds(&see(&mut provider, 10, demanded(part))), [supply]);
    assert_eq!(gone(&mut provider, supply), [EffectKind::Fetch]);
    let here = provider.step(11, Event::InputReady { task: 1 });
    assert_eq!(kinds(&here), [EffectKind::Compute]);
    let again = computed(&mut provider, claim(1));
    assert!(again.records.is_empty(), "nothing new is said");
    assert_eq!(kinds(&again), [supply]);
}

#[test]
fn an_output_that_comes_out_otherwise_is_neither_shown_nor_computed_for_ever() {
    let part = ContentPart {
        content: Content::Output,
        part: 0,
    };
    let mut provider = provider(vec![made()]);
    see(&mut provider, 10, demanded(part));
    gone(&mut provider, EffectKind::Supply(part));
    provider.step(11, Event::InputReady { task: 1 });
    computed(&mut provider, claim(2));
    for block in 13..80 {
        assert_eq!(kinds(&see(&mut provider, block, demanded(part))), []);
    }
}

#[test]
fn an_input_that_is_lost_is_fetched_again_and_shown() {
    let part = ContentPart {
        content: Content::Input,
        part: 0,
    };
    let supply = EffectKind::Supply(part);
    let mut provider = provider(vec![made()]);
    assert_eq!(kinds(&see(&mut provider, 10, demanded(part))), [supply]);
    assert_eq!(gone(&mut provider, supply), [EffectKind::Fetch]);
    let here = provider.step(11, Event::InputReady { task: 1 });
    assert_eq!(kinds(&here), [supply]);
}

#[test]
fn leaves_that_are_lost_on_disk_or_with_the_journal_are_computed_again_and_shown() {
    let part = ContentPart {
        content: Content::Leaves,
        part: 0,
    };
    let (supply, leaves) = (EffectKind::Supply(part), H256([6; 32]));
    let kept = Record::LeavesKept {
        task: 1,
        at: 9,
        leaves,
    };
    let is_of_leaves = |step: &Step| {
        let mut effects = step.effects.iter();
        effects.any(|due| matches!(&due.effect, Effect::SubmitSupply { hash, .. } if *hash == leaves))
    };
    let mut on_disk = provider(vec![made(), kept.clone()]);
    assert!(is_of_leaves(&see(&mut on_disk, 10, demanded(part))));
    assert_eq!(gone(&mut on_disk, supply), [EffectKind::Fetch]);
    let mut in_journal = provider(vec![made()]);
    assert_eq!(
        kinds(&see(&mut in_journal, 10, demanded(part))),
        [EffectKind::Fetch]
    );
    for (mut provider, news) in [(on_disk, vec![]), (in_journal, vec![kept])] {
        let here = provider.step(11, Event::InputReady { task: 1 });
        assert_eq!(kinds(&here), [EffectKind::Compute]);
        let again = traced(&mut provider, claim(1), Some(leaves));
        assert!(is_of_leaves(&again), "{again:?}");
        let told = again.records.iter().map(|record| match record {
            Record::LeavesKept { leaves, .. } => *leaves,
            other => panic!("{other:?}"),
        });
        assert_eq!(told.count(), news.len());
    }
}
