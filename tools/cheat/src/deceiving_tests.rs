#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use surety_chain_client::FakeChain;
use surety_types::trust::AuditProof;
use surety_worker_core::Record;

use super::*;

/// Answers every event with effects that were put there for it, and notes what it hears.
#[derive(Default)]
struct Script {
    effects: VecDeque<Vec<Effect>>,
    heard: Arc<Mutex<Vec<Event>>>,
}

impl Core for Script {
    fn step(&mut self, _: u32, event: Event) -> Step {
        self.heard.lock().unwrap().push(event);
        let effects = self.effects.pop_front().unwrap_or_default().into_iter();
        let due = effects.map(|effect| Due {
            effect,
            left: 9,
            urgent: true,
        });
        Step {
            records: vec![Record::CommitSubmitted { task: 1, at: 1 }],
            effects: due.collect(),
        }
    }

    fn progress(&self) -> BTreeMap<&'static str, usize> {
        BTreeMap::new()
    }

    fn spare(&self) -> Option<Duration> {
        None
    }
}

/// What is carried out, and what the core has heard, when it answers a first event and those that follow with
/// these effects.
fn played(deceit: Deceit, others: &[(TaskId, Hash)], effects: Vec<Vec<Effect>>) -> (Step, Vec<Event>) {
    let script = Script {
        effects: effects.into(),
        ..Script::default()
    };
    let heard = script.heard.clone();
    let signer = Signer::from_uri("//Agent").unwrap();
    let mut core = DeceivingCore {
        core: Box::new(script),
        deceit,
        chain: Arc::new(FakeChain::new()),
        stash: signer.account().clone(),
        signer,
        others: others.iter().copied().collect(),
        has_challenged: false,
        crowd: None,
    };
    let step = core.step(5, Event::InputReady { task: 1 });
    let heard = heard.lock().unwrap().split_off(1);
    (step, heard)
}

fn claim() -> ResultClaim {
    ResultClaim {
        output: Hash::repeat_byte(7),
        trace_root: Hash::repeat_byte(8),
        units: 3,
    }
}

fn reveal() -> Effect {
    Effect::SubmitReveal {
        task: 1,
        claim: claim(),
        salt: Hash::zero(),
    }
}

fn commit(commitment: u8) -> Effect {
    Effect::SubmitCommit {
        task: 1,
        commitment: Hash::repeat_byte(commitment),
    }
}

fn carried_out(step: Step) -> Vec<Effect> {
    step.effects.into_iter().map(|due| due.effect).collect()
}

#[test]
fn who_keeps_silent_hears_that_it_cannot_speak_and_does_everything_else() {
    let (step, heard) = played(Deceit::OpensNothing, &[], vec![vec![commit(1), reveal()]]);
    let failed = Event::EffectFailed {
        task: 1,
        kind: EffectKind::Reveal,
        failure: Failure::Permanent,
    };
    assert_eq!(heard, [failed]);
    assert_eq!(step.records.len(), 2, "of both steps");
    assert_eq!(step.effects[0].left, 9);
    assert_eq!(carried_out(step), [commit(1)]);
}

#[test]
fn a_copied_commitment_is_another_ones_and_waits_until_there_is_one() {
    let (step, heard) = played(
        Deceit::CopiedResult,
        &[(1, Hash::repeat_byte(2))],
        vec![vec![commit(1)]],
    );
    assert_eq!((carried_out(step), heard.len()), (vec![commit(2)], 0));
    let (step, heard) = played(
        Deceit::CopiedResult,
        &[(2, Hash::repeat_byte(2))],
        vec![vec![commit(1)]],
    );
    assert!(carried_out(step).is_empty());
    let refused = Event::EffectFailed {
        task: 1,
        kind: EffectKind::Commit,
        failure: Failure::Refused,
    };
    assert_eq!(heard, [refused]);
}

#[test]
fn a_lazy_auditor_announces_what_it_has_made_up_and_never_opens_it() {
    let provider = AccountId::new([4; 32]);
    let spec = surety_types::task::TaskSpec {
        model: Default::default(),
        operation: surety_types::model::Operation::Embed,
        input: Hash::zero(),
        input_bytes: 1,
        units_max: 1,
        redundancy: 1,
        sources: Default::default(),
        security: Default::default(),
        requirements: Default::default(),
    };
    let (task, of) = (1, provider.clone());
    let audit = Effect::Audit {
        task,
        provider: of.clone(),
        spec,
        output: None,
        items: None,
    };
    let announce = Effect::SubmitAnnouncement {
        task,
        provider: of.clone(),
        proof: AuditProof {
            pre_output: [0; 32],
            proof: [0; 64],
        },
        seal: Hash::zero(),
    };
    let open = Effect::SubmitAuditReveal {
        task,
        provider: of.clone(),
        claim: claim(),
        salt: Hash::zero(),
    };
    let effects = vec![vec![audit], vec![announce.clone(), open]];
    let (step, heard) = played(Deceit::Lazy, &[], effects);
    assert_eq!(carried_out(step), [announce]);
    assert!(
        matches!(&heard[0], Event::AuditReady { found: Found::Whole(claim), .. } if *claim == made_up(&provider))
    );
    assert!(matches!(
        heard[1],
        Event::EffectFailed {
            kind: EffectKind::AuditReveal(_),
            ..
        }
    ));
}

#[test]
fn the_honest_parts_of_a_cheat_stay() {
    for deceit in [
        Deceit::WithheldData,
        Deceit::WithheldOutput,
        Deceit::FalseChallenge,
        Deceit::Lazy,
    ] {
        let (step, heard) = played(deceit, &[], vec![vec![commit(1), reveal()]]);
        assert_eq!((carried_out(step).len(), heard.len()), (2, 0), "{deceit:?}");
    }
}

#[test]
fn who_shows_nothing_in_a_dispute_makes_every_other_move() {
    let submit = |played| Effect::SubmitMove {
        task: 1,
        dispute: 2,
        number: 3,
        played,
    };
    let showing = submit(Move::Supply(Default::default()));
    let other = submit(Move::Post(Default::default()));
    let (step, heard) = played(Deceit::WithheldOutput, &[], vec![vec![showing, other.clone()]]);
    assert_eq!(carried_out(step), [other]);
    let failed = Event::EffectFailed {
        task: 1,
        kind: EffectKind::Play(2),
        failure: Failure::Permanent,
    };
    assert_eq!(heard, [failed]);
}

#[test]
fn who_seals_and_opens_nothing_has_computed() {
    let provider = AccountId::new([4; 32]);
    let open = Effect::SubmitAuditReveal {
        task: 1,
        provider: provider.clone(),
        claim: claim(),
        salt: Hash::zero(),
    };
    let announce = Effect::SubmitAnnouncement {
        task: 1,
        provider,
        proof: AuditProof {
            pre_output: [0; 32],
            proof: [0; 64],
        },
        seal: Hash::zero(),
    };
    let effects = vec![vec![announce.clone(), open]];
    let (step, heard) = played(Deceit::OpensNothing, &[], effects);
    assert_eq!((carried_out(step), heard.len()), (vec![announce], 1));
}
