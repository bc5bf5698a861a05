//! A provider that looks after who confirms its result.

use surety_audit_economics::{AuditInput, answer_hash, answer_hashes, drawn_items, items_seal};
use surety_chain_client::{Call, Chain, Hash, Refusal, Until, VrfDraw};
use surety_proofs::Proof;
use surety_types::{
    TaskId,
    trust::{AuditAnswer, AuditState, ItemFound, ItemsFound, Refutation},
};
use surety_worker_core::Record;

use super::{
    audits::{announced_items, committed_to, until_audit_revealed, until_revealed},
    engine::{item_leaf, item_root},
    world::{Running, World},
};

const INPUT: &[u8] = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
/// Items in it, and leaves of its trace: the output has one, too.
const ITEMS: u32 = 10;
const LEAVES: u32 = 11;
/// Of which each auditor has so many.
const OWN: u32 = 3;

fn answer() -> AuditAnswer {
    AuditAnswer {
        agrees: true,
        salt: Hash::repeat_byte(1),
        other: answer_hash(&Hash::repeat_byte(2)),
    }
}

async fn send(world: &World, call: Call) {
    let sent = world
        .chain
        .submit(world.auditor_agent(), call, Until::Included.into());
    sent.await.unwrap();
}

/// A task whose auditor has confirmed it with the first of its items right, and the others guessed. Returns
/// which they were.
async fn guessed(world: &World) -> (Running, TaskId, Vec<u32>) {
    let (provider, task) = committed_to(world, INPUT, OWN).await;
    let input = AuditInput {
        seed: Hash([5; 32]),
        task,
        provider: world.stash().clone(),
    };
    let VrfDraw { proof, output } = world.auditor_agent().draw_audit(&input).unwrap();
    let items = drawn_items(&output, ITEMS, OWN);
    let found = items.iter().map(|item| ItemFound {
        leaves: match *item == items[0] {
            true => item_root(item_leaf(INPUT, *item)),
            false => Hash::repeat_byte(7),
        },
        row: Hash::zero(),
    });
    let found = ItemsFound::truncate_from(found.collect());
    let (stash, verifier) = (world.stash().clone(), world.auditor());
    let announcement = Call::AnnounceAudit {
        task,
        provider: stash.clone(),
        proof,
        seal: items_seal(task, &stash, &verifier, &found, &answer_hashes(&answer())),
    };
    send(world, announcement).await;
    until_revealed(world, task).await;
    let opening = Call::RevealItems {
        task,
        provider: stash,
        verifier,
        found,
        answer: answer(),
    };
    send(world, opening).await;
    (provider, task, items)
}

fn refutations(world: &World) -> Vec<Refutation> {
    let calls = world.chain.calls().into_iter().map(|(_, call)| call);
    let refuted = calls.filter_map(|call| match call {
        Call::RefuteAudit { refutation, .. } => Some(*refutation),
        _ => None,
    });
    refuted.collect()
}

fn is_refutation(call: &Call) -> bool {
    matches!(call, Call::RefuteAudit { .. })
}

fn tried(world: &World) -> usize {
    let attempts = world.chain.attempts().into_iter();
    attempts.filter(|(_, call, _)| is_refutation(call)).count()
}

async fn until_refuted(world: &World) {
    world.until_final(|| !refutations(world).is_empty()).await;
}

fn state(world: &World, task: TaskId) -> AuditState {
    world
        .chain
        .change(|state| state.rounds[&task].audits[0].state.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_auditor_that_guessed_is_refuted_by_the_leaves_that_were_kept_whatever_the_pool_refuses() {
    let world = World::new().await;
    world
        .chain
        .refuse_next(is_refutation, Refusal::ExhaustsResources, 2);
    let (provider, task, items) = guessed(&world).await;
    until_refuted(&world).await;
    assert_eq!((tried(&world), state(&world, task)), (3, AuditState::Over));
    let refutation = refutations(&world).remove(0);
    // Its first item it has computed.
    assert_eq!((refutation.place, refutation.answer), (1, answer()));
    let claim = world.chain.change(|state| {
        let member = &state.rounds[&task].members[0];
        member.claim().unwrap().clone()
    });
    let (leaf, proof) = (refutation.shown.leaves[0], refutation.shown.siblings.to_vec());
    assert_eq!(leaf, item_leaf(INPUT, items[1]));
    let proof = Proof(proof.try_into().unwrap());
    assert!(proof.verify(&claim.trace_root, &leaf, items[1], LEAVES));
    for _ in 0..20 {
        world.pass(1).await;
    }
    assert_eq!(tried(&world), 3, "once is enough");
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_was_killed_sends_the_refutation_that_it_had_made() {
    let world = World::new().await;
    world
        .chain
        .refuse_next(is_refutation, Refusal::ExhaustsResources, 1);
    let (provider, task, _) = guessed(&world).await;
    world.until_final(|| tried(&world) > 0).await;
    provider.kill().await;
    // Its node has the block no longer that has what was opened.
    world.chain.drop_bodies();
    let provider = world.start();
    until_refuted(&world).await;
    assert_eq!(state(&world, task), AuditState::Over);
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_its_blocks_author_put_in_front_hides_no_opening() {
    let world = World::new().await;
    let (provider, task, _) = guessed(&world).await;
    world.chain.change(|state| {
        let opened = state.openings.values_mut().next().unwrap();
        let (found, mut answer) = opened[0].clone();
        answer.agrees = false;
        opened.insert(0, (found, answer));
    });
    until_refuted(&world).await;
    assert_eq!(state(&world, task), AuditState::Over);
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_auditor_that_has_computed_its_items_is_left_alone() {
    let world = World::new().await;
    let (provider, verifier, task, _) = announced_items(&world).await;
    until_audit_revealed(&world, task).await;
    let is_checked = |record: &Record| matches!(record, Record::ConfirmationChecked { refutation: None, .. });
    world.until_final(|| world.records().iter().any(is_checked)).await;
    assert_eq!((tried(&world), state(&world, task)), (0, AuditState::Confirmed));
    verifier.stop().await;
    provider.stop().await;
}
