//! Who is let in, and who only says so.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use surety_audit_economics::AuditInput;
use surety_chain_client::{AccountId, Chain, FakeChain, Hash, RoundRecord, Signer, StakeInfo, TaskRecord};
use surety_network::{AccessGate, Asked, Decision, Ticket};
use surety_types::{
    model::Operation,
    stake::Role,
    task::{
        Assignment, AuditDraw, FailureReason, MemberProgress, ResultClaim, RoundMember, RoundPhase, TaskSpec,
        TaskState, Verdict,
    },
    trust::{Audit, AuditProof, AuditState},
};

use super::*;

const TASK: TaskId = 3;
const INPUT: ContentHash = ContentHash::repeat_byte(1);
const OUTPUT: ContentHash = ContentHash::repeat_byte(2);
const COMMITMENT: Hash = Hash::repeat_byte(3);
const PEER: &str = "peer";

fn signer(name: &str) -> Signer {
    Signer::from_uri(&format!("//{name}")).unwrap()
}

fn account(name: &str) -> AccountId {
    signer(name).account().clone()
}

struct World {
    chain: FakeChain,
    provider: Gate,
    client: Gate,
    outputs: Arc<OwnOutputs>,
}

/// A task that the provider alone has.
fn running() -> TaskRecord {
    let assignment = Assignment {
        provider: account("provider"),
        price: 1,
    };
    TaskRecord {
        client: account("client"),
        spec: TaskSpec {
            model: ContentHash::zero(),
            operation: Operation::Embed,
            input: INPUT,
            input_bytes: 1,
            units_max: 1,
            redundancy: 1,
            sources: Default::default(),
            security: Default::default(),
            requirements: Default::default(),
        },
        cap: 1,
        audits: surety_types::task::AuditTerms::default(),
        posted_at: 0,
        state: TaskState::Running {
            assignments: vec![assignment].try_into().unwrap(),
            reserves: Default::default(),
        },
    }
}

/// Its round, of which the audit window is open.
fn auditing() -> RoundRecord {
    RoundRecord {
        members: vec![RoundMember {
            progress: MemberProgress::Committed(COMMITMENT),
            ..RoundMember::new(account("provider"), 1, 0)
        }]
        .try_into()
        .unwrap(),
        phase: RoundPhase::Auditing { until: 9 },
        draw: Some(AuditDraw {
            begun_at: 5,
            settled_by: 4,
            epoch_randomness: Hash::repeat_byte(6),
            verifier_stake: 1,
            seed: Some(Hash::repeat_byte(5)),
        }),
        ..RoundRecord::new(1, 9)
    }
}

/// A chain with that task, on which everybody with stake is drawn.
fn world() -> World {
    let chain = FakeChain::new();
    chain.change(|state| {
        state.tasks.insert(TASK, running());
        state.rounds.insert(TASK, auditing());
        state.auditors_expected = 1_000_000_000_000_000_000;
        let stake = |role| StakeInfo {
            role,
            bonded: 1000,
            locked: 0,
            unlocking: Default::default(),
            agent: None,
            settled_at: 0,
        };
        state.stakes.insert(account("verifier"), stake(Role::Verifier));
        state.stakes.insert(account("poser"), stake(Role::Provider));
        for name in ["verifier", "poser"] {
            let agent = account(&format!("{name}//agent"));
            state.agents.insert(agent, account(name));
        }
    });
    chain.finalize();
    let outputs = Arc::<OwnOutputs>::default();
    outputs.insert(TASK, OUTPUT);
    let shared: Arc<dyn Chain> = Arc::new(chain.clone());
    World {
        provider: Gate::of_provider(shared.clone(), account("provider"), outputs.clone()),
        outputs,
        client: Gate::of_inputs(shared, Arc::new(account("client"))),
        chain,
    }
}

fn draw(name: &str) -> Option<(AccountId, AuditProof)> {
    let input = AuditInput {
        seed: Hash::repeat_byte(5),
        task: TASK,
        provider: account("provider"),
    };
    let drawn = signer(name).draw_audit(&input).unwrap();
    Some((account("provider"), drawn.proof))
}

impl World {
    fn ticket(&self, name: &str, draw: Option<(AccountId, AuditProof)>) -> Ticket {
        self.ticket_for(TASK, name, draw)
    }

    fn ticket_for(&self, task: TaskId, name: &str, draw: Option<(AccountId, AuditProof)>) -> Ticket {
        ticket(&signer(name), &self.chain.info().genesis, PEER, task, draw).unwrap()
    }

    fn reveal(&self) {
        self.chain.change(|state| {
            let round = state.rounds.get_mut(&TASK).unwrap();
            round.members[0].progress = MemberProgress::Revealed(ResultClaim {
                output: OUTPUT,
                trace_root: COMMITMENT,
                units: 1,
            });
        });
    }

    async fn lets_in(&self, gate: &Gate, ticket: &Ticket, blob: ContentHash) -> bool {
        let asked = Asked {
            peer: PEER,
            blob,
            task: None,
            ticket,
        };
        gate.may_read(asked).await == Some(Decision::Allow)
    }
}

#[tokio::test]
async fn who_is_drawn_may_read_and_who_only_says_so_may_not() {
    let world = world();
    let drawn = world.ticket("verifier//agent", draw("verifier//agent"));
    assert!(world.lets_in(&world.provider, &drawn, OUTPUT).await);
    assert!(world.lets_in(&world.provider, &drawn, INPUT).await);
    assert!(world.lets_in(&world.client, &drawn, INPUT).await);
    for stranger in [
        world.ticket("verifier//agent", None),
        world.ticket("verifier//agent", draw("other//agent")),
        world.ticket("poser//agent", draw("poser//agent")),
        world.ticket("nobody", draw("nobody")),
    ] {
        assert!(!world.lets_in(&world.provider, &stranger, OUTPUT).await);
        assert!(!world.lets_in(&world.client, &stranger, INPUT).await);
    }
    let unknown = ContentHash::repeat_byte(9);
    assert!(!world.lets_in(&world.provider, &drawn, unknown).await);
}

#[tokio::test]
async fn what_is_revealed_can_no_longer_be_drawn_for() {
    let world = world();
    let drawn = world.ticket("verifier//agent", draw("verifier//agent"));
    assert!(world.lets_in(&world.provider, &drawn, OUTPUT).await);
    world.reveal();
    assert!(!world.lets_in(&world.provider, &drawn, OUTPUT).await);
}

#[tokio::test]
async fn a_traces_leaves_are_for_auditors_once_the_result_is_revealed() {
    let world = world();
    let leaves = ContentHash::repeat_byte(7);
    world.outputs.insert_leaves(TASK, leaves);
    let drawn = world.ticket("verifier//agent", draw("verifier//agent"));
    assert!(!world.lets_in(&world.provider, &drawn, leaves).await);
    let audit = Audit {
        verifier: account("verifier"),
        provider: account("provider"),
        bond: 1,
        draw: Default::default(),
        items: None,
        state: AuditState::Sealed(COMMITMENT),
    };
    world.chain.change(|state| {
        let round = state.rounds.get_mut(&TASK).unwrap();
        round.audits.try_push(audit).unwrap();
    });
    assert!(!world.lets_in(&world.provider, &drawn, leaves).await);
    world.reveal();
    assert!(world.lets_in(&world.provider, &drawn, leaves).await);
    let poser = world.ticket("poser//agent", draw("poser//agent"));
    assert!(!world.lets_in(&world.provider, &poser, leaves).await);
}

#[tokio::test]
async fn nobody_is_drawn_before_the_seed_is_known_or_with_a_key_that_is_too_young() {
    let world = world();
    let drawn = world.ticket("verifier//agent", draw("verifier//agent"));
    world.chain.change(|state| {
        state.stakes.get_mut(&account("verifier")).unwrap().settled_at = 5;
    });
    assert!(!world.lets_in(&world.provider, &drawn, OUTPUT).await);
    world.chain.change(|state| {
        state.stakes.get_mut(&account("verifier")).unwrap().settled_at = 4;
    });
    assert!(world.lets_in(&world.provider, &drawn, OUTPUT).await);
    world.chain.change(|state| {
        state.rounds.get_mut(&TASK).unwrap().draw.as_mut().unwrap().seed = None;
    });
    assert!(!world.lets_in(&world.provider, &drawn, OUTPUT).await);
}

#[tokio::test]
async fn a_ticket_is_good_for_the_peer_that_it_was_made_for() {
    let world = world();
    let ticket = world.ticket("verifier//agent", draw("verifier//agent"));
    let asked = |peer, task| Asked {
        peer,
        blob: INPUT,
        task,
        ticket: &ticket,
    };
    assert_eq!(
        world.client.may_read(asked(PEER, Some(TASK))).await,
        Some(Decision::Allow)
    );
    for asked in [asked("thief", None), asked(PEER, Some(TASK + 1))] {
        assert_eq!(world.client.may_read(asked).await, Some(Decision::Refuse));
    }
}

#[tokio::test]
async fn an_auditor_that_the_chain_names_needs_no_draw() {
    let world = world();
    let ticket = world.ticket("verifier//agent", None);
    assert!(!world.lets_in(&world.provider, &ticket, OUTPUT).await);
    world.chain.change(|state| {
        let audit = Audit {
            verifier: account("verifier"),
            provider: account("provider"),
            bond: 0,
            draw: Default::default(),
            items: None,
            state: AuditState::Sealed(Hash::zero()),
        };
        let round = state.rounds.get_mut(&TASK).unwrap();
        round.audits.try_push(audit).unwrap();
    });
    assert!(world.lets_in(&world.provider, &ticket, OUTPUT).await);
}

#[tokio::test]
async fn a_rival_reads_inputs_and_never_outputs_and_a_client_reads_what_was_settled() {
    let world = world();
    let rival = RoundMember::new(account("rival"), 1, 0);
    world.chain.change(|state| {
        let round = state.rounds.get_mut(&TASK).unwrap();
        round.members.try_push(rival).unwrap();
    });
    let rival = world.ticket("rival", None);
    assert!(world.lets_in(&world.client, &rival, INPUT).await);
    assert!(!world.lets_in(&world.provider, &rival, OUTPUT).await);

    let client = world.ticket("client", None);
    let settled = ContentHash::repeat_byte(7);
    assert!(!world.lets_in(&world.provider, &client, settled).await);
    world.outputs.remove(TASK);
    for (paid, is_let_in) in [("provider", true), ("rival", false)] {
        let payment = Assignment {
            provider: account(paid),
            price: 1,
        };
        world.chain.change(|state| {
            state.rounds.remove(&TASK);
            state.tasks.get_mut(&TASK).unwrap().state = TaskState::Settled {
                at: 1,
                claim: ResultClaim {
                    output: settled,
                    trace_root: Hash::zero(),
                    units: 1,
                },
                payments: vec![payment].try_into().unwrap(),
                refund: 0,
                fee: 0,
            };
        });
        world.chain.finalize();
        for blob in [settled, INPUT] {
            assert_eq!(
                world.lets_in(&world.provider, &client, blob).await,
                is_let_in,
                "{paid}"
            );
            assert!(!world.lets_in(&world.provider, &rival, blob).await);
        }
    }
}

#[tokio::test]
async fn a_client_reads_its_output_once_its_round_is_audited_for_good_and_never_where_too_few_committed() {
    let world = world();
    let client = world.ticket("client", None);
    let asked = Asked {
        peer: PEER,
        blob: OUTPUT,
        task: None,
        ticket: &client,
    };
    let draw = world.chain.change(|state| state.rounds[&TASK].draw.clone());
    let begins = |draw: &Option<AuditDraw<u128, u32>>, phase| {
        world.chain.change(|state| {
            let round = state.rounds.get_mut(&TASK).unwrap();
            (round.draw, round.phase) = (draw.clone(), phase);
        });
    };
    begins(&None, RoundPhase::Committing { until: 9 });
    world.chain.finalize();
    // Too early: it may ask again at once.
    assert_eq!(world.provider.may_read(asked).await, None);
    assert!(world.lets_in(&world.provider, &client, INPUT).await);
    begins(&draw, RoundPhase::Auditing { until: 9 });
    assert_eq!(world.provider.may_read(asked).await, None, "not final");
    world.chain.finalize();
    assert_eq!(world.provider.may_read(asked).await, Some(Decision::Allow));

    let reason = FailureReason::NotEnoughResults;
    let verdict = Verdict::Failed(reason);
    begins(&None, RoundPhase::Challengeable { until: 9, verdict });
    world.chain.finalize();
    assert_eq!(world.provider.may_read(asked).await, None);
    world.chain.change(|state| {
        state.rounds.remove(&TASK);
        state.tasks.get_mut(&TASK).unwrap().state = TaskState::Failed { at: 9, reason };
    });
    world.chain.finalize();
    assert_eq!(world.provider.may_read(asked).await, Some(Decision::Refuse));
}

#[tokio::test]
async fn who_posts_a_task_with_the_input_of_another_reads_nothing_by_it() {
    let world = world();
    let others = TASK + 1;
    world.chain.change(|state| {
        let mut task = state.tasks[&TASK].clone();
        task.client = account("copier");
        state.tasks.insert(others, task);
        // Its providers are its own, too.
        let mut round = state.rounds[&TASK].clone();
        round.members[0].provider = account("friend");
        state.rounds.insert(others, round);
    });
    for name in ["copier", "friend"] {
        let ticket = world.ticket_for(others, name, None);
        for gate in [&world.client, &world.provider] {
            assert!(!world.lets_in(gate, &ticket, INPUT).await, "{name}");
        }
    }
    let own = world.ticket("client", None);
    assert!(world.lets_in(&world.provider, &own, INPUT).await);
}

#[tokio::test]
async fn a_provider_serves_what_it_has_for_a_task_and_not_what_it_has_for_another() {
    let world = world();
    // Drawn for the copier's task, too: the input lies here, and was not delivered for this one.
    let others = TASK + 1;
    world.chain.change(|state| {
        let mut task = state.tasks[&TASK].clone();
        task.client = account("copier");
        state.tasks.insert(others, task);
        let round = state.rounds[&TASK].clone();
        state.rounds.insert(others, round);
    });
    world.chain.finalize();
    let copier = world.ticket_for(others, "copier", None);
    for blob in [INPUT, OUTPUT] {
        assert!(!world.lets_in(&world.provider, &copier, blob).await);
    }
    world.outputs.insert(others, OUTPUT);
    for blob in [INPUT, OUTPUT] {
        assert!(world.lets_in(&world.provider, &copier, blob).await);
    }
}

#[tokio::test]
async fn nobody_is_let_in_while_the_chain_cannot_be_asked_and_nobody_is_refused_by_it() {
    let world = world();
    let drawn = world.ticket("verifier//agent", draw("verifier//agent"));
    world.chain.set_unreachable(true);
    let asked = |ticket| Asked {
        peer: PEER,
        blob: OUTPUT,
        task: None,
        ticket,
    };
    assert_eq!(world.provider.may_read(asked(&drawn)).await, None);
    let garbage = Ticket::new(vec![1, 2, 3]).unwrap();
    let judged = world.provider.may_read(asked(&garbage)).await;
    assert_eq!(judged, Some(Decision::Refuse));
}

fn pair(name: &str) -> sp_core::sr25519::Pair {
    sp_core::Pair::from_string(&format!("//{name}"), None).unwrap()
}

/// As wallets sign bytes.
fn by_wallet(name: &str, hash: &[u8; 32]) -> [u8; 64] {
    let message = [b"<Bytes>", &hash[..], b"</Bytes>"].concat();
    sp_core::Pair::sign(&pair(name), &message).0
}

#[tokio::test]
async fn a_client_signs_for_another_peer_with_its_wallet() {
    let world = world();
    let genesis = world.chain.info().genesis;
    let signed = |name: &str, peer: &str| {
        let hash = ticket_hash(&genesis, peer, TASK, &account(name));
        by_wallet(name, &hash)
    };
    let ticket = |name: &str, peer: &str| {
        signed_ticket(&genesis, peer, TASK, &account(name), signed(name, peer)).unwrap()
    };
    assert!(
        world
            .lets_in(&world.provider, &ticket("client", PEER), OUTPUT)
            .await
    );
    let elsewhere = ticket("client", "another peer");
    assert!(!world.lets_in(&world.provider, &elsewhere, OUTPUT).await);
    let stranger = ticket("nobody", PEER);
    assert!(!world.lets_in(&world.provider, &stranger, OUTPUT).await);

    // What is signed is for one peer, one task, and by one account.
    let client = account("client");
    let of = |peer: &str, task, by: [u8; 64]| signed_ticket(&genesis, peer, task, &client, by);
    assert_eq!(of(PEER, TASK, signed("client", "another peer")), None);
    assert_eq!(of(PEER, TASK + 1, signed("client", PEER)), None);
    assert_eq!(of(PEER, TASK, signed("nobody", PEER)), None);
}

#[test]
fn no_wallet_is_asked_for_a_signature_that_could_be_a_transactions() {
    let (genesis, client) = (Hash::repeat_byte(1), account("client"));
    let hash = ticket_hash(&genesis, PEER, TASK, &client);
    let bare = sp_core::Pair::sign(&pair("client"), &hash).0;
    assert_eq!(signed_ticket(&genesis, PEER, TASK, &client, bare), None);
    assert!(signed_ticket(&genesis, PEER, TASK, &client, by_wallet("client", &hash)).is_some());
}
