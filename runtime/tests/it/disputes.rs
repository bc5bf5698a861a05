//! Whole disputes with the real referee: a small model, whose results the runtime computes again cell by
//! cell.

use std::sync::Arc;

use codec::{Decode, Encode};
use sp_core::{H256, crypto::VrfSecret, sr25519::vrf};
use sp_keyring::Sr25519Keyring::{self, CharlieStash, DaveStash, EveStash};
use sp_runtime::DispatchError;
use surety_audit_economics::{AuditInput, audit_seal, draw};
use surety_dispute_game::{
    bisection::{Cell, Side, challenge, defend},
    dispute::Dispute,
};
use surety_model_trace::{
    Layout, Op, Player, TaskFacts,
    testsuite::{MemoryModel, MemoryTrace},
};
use surety_pallet_disputes::{Call, Disputes, Event};
use surety_pallet_results::{Call as ResultsCall, Rounds};
use surety_pallet_trust_lock::{Records, Slashes};
use surety_proofs::content_hash;
use surety_runtime::{
    AccountId, Balance, Balances, BlockNumber, Runtime, RuntimeCall, RuntimeEvent, Staking, TrustLock,
    configs::trust::InsurancePool, units::SURE,
};
use surety_types::{
    TaskId,
    input::{IdBounds, encode_items},
    model::{
        Activation, Architecture, ExactForm, ModelFamily, ModelManifest, Operation, Opset, Pooling,
        Precision, Smoothed, Tier,
    },
    stake::Role,
    task::{ResultClaim, TaskSpec, TaskState},
    traits::{Jail, StakeLedger},
    trust::{AuditProof, DisputeId, FaultKind, Party},
};

use crate::{
    chain::{Chain, account},
    market::{
        self, CAP, CLIENT, PROVIDERS, Provider, all_ok, auction, hash, members, state, wait_for_end,
        wait_for_reveals,
    },
};

/// A stash that is bonded as a verifier, and its agent.
pub const VERIFIER: (Sr25519Keyring, Sr25519Keyring) = (CharlieStash, DaveStash);
/// Somebody who is nothing in particular.
pub const STRANGER: Sr25519Keyring = EveStash;

pub type Side_ = Player<MemoryTrace>;

/// A small encoder with its right answer to two items.
pub struct World {
    pub manifest: ModelManifest,
    pub layout: Layout,
    pub trace: MemoryTrace,
    pub claim: ResultClaim,
    pub input: Vec<u8>,
}

impl World {
    pub fn new() -> Self {
        Self::of_inner(32)
    }

    /// A model with a product that is too long for a block.
    pub fn too_large() -> Self {
        Self::of_inner(8_192)
    }

    fn of_inner(inner: u32) -> Self {
        let architecture = Architecture {
            vocabulary: 16,
            width: 16,
            layers: 2,
            heads: 2,
            kv_heads: 2,
            head_dim: 8,
            inner,
            positions: 4,
            epsilon: 1e-12f32.to_bits(),
            activation: Activation::Gelu,
            smoothed: Smoothed::default(),
            tied: false,
            precision: Precision::Int12,
            pooling: Pooling::Mean,
        };
        let model = Arc::new(MemoryModel::arbitrary(ModelFamily::Bert, architecture.clone(), 1));
        let manifest = ModelManifest {
            tier: Tier::Exact,
            exact: Some(ExactForm {
                opset: Opset::V1,
                weight_root: model.weight_root(),
                architecture: architecture.clone(),
            }),
            ..market::manifest()
        };
        let bounds = IdBounds {
            vocabulary: architecture.vocabulary,
            positions: architecture.positions,
        };
        let input = encode_items(&[vec![1, 2, 3], vec![4, 5]], &bounds).unwrap();
        let layout_of = |output| {
            let facts = TaskFacts {
                family: ModelFamily::Bert,
                operation: Operation::Embed,
                input: content_hash(&input),
                input_bytes: input.len() as u32,
                units_max: 2,
                stop: Default::default(),
                units: 2,
                output,
            };
            Layout::new(&architecture, facts).unwrap()
        };
        // The output is part of the layout: once to find it, once with it.
        let first = layout_of(H256::zero());
        let own = MemoryTrace::compute(model.clone(), &first, input.clone(), None).unwrap();
        let output = own.own().unwrap();
        let layout = layout_of(content_hash(&output));
        let trace = MemoryTrace::compute(model, &layout, input.clone(), Some(output.clone())).unwrap();
        let claim = ResultClaim {
            output: content_hash(&output),
            trace_root: trace.root(),
            units: 2,
        };
        Self {
            manifest,
            layout,
            trace,
            claim,
            input,
        }
    }

    pub fn honest(&self) -> Side_ {
        Player::new(self.layout.clone(), self.trace.clone())
    }

    /// Somebody who has one number of a step wrong, and what it claims.
    pub fn liar(&self, leaf: u32, step: u32) -> (Side_, ResultClaim) {
        let mut player = self.honest();
        let trace_root = player.alter(leaf, step, 0, 0).unwrap();
        let claim = ResultClaim {
            trace_root,
            ..self.claim.clone()
        };
        (player, claim)
    }

    /// Somebody who has a number wrong that no block can compute again, and what it claims.
    pub fn liar_about_what_is_too_large(&self) -> (Side_, ResultClaim) {
        let plan = self.layout.plan(1, 3).unwrap();
        let mut steps = 0..plan.steps();
        let down = steps.find(|step| plan.step(*step).unwrap().op == Op::Down);
        self.liar(1, down.unwrap())
    }

    /// A chain with the model, `PROVIDERS`, and a verifier.
    pub fn chain(&self) -> Chain {
        let mut chain = market::open();
        let manifest = Box::new(self.manifest.clone());
        chain.call(CLIENT, surety_pallet_model_registry::Call::register { manifest });
        use surety_pallet_staking::Call as Stake;
        let (stash, agent) = VERIFIER;
        let amount = market::BOND;
        chain.call(
            stash,
            Stake::bond {
                role: Role::Verifier,
                amount,
            },
        );
        chain.call(
            stash,
            Stake::set_agent {
                agent: account(agent),
            },
        );
        chain.call(
            agent,
            Stake::confirm_agent {
                stash: account(stash),
            },
        );
        chain
    }

    /// A client asks for so many results of the model.
    pub fn post(&self, chain: &mut Chain, redundancy: u32) -> Result<TaskId, DispatchError> {
        let task = chain.query(surety_pallet_task_auction::NextTaskId::<Runtime>::get);
        let spec = TaskSpec {
            model: self.manifest.id(),
            input: self.layout.facts().input,
            input_bytes: self.layout.facts().input_bytes,
            units_max: 2,
            ..market::spec(redundancy)
        };
        let call = surety_pallet_task_auction::Call::post { spec, cap: CAP };
        chain.try_call(CLIENT, call).map(|()| task)
    }

    /// A task for so many providers, who have been drawn.
    pub fn task(&self, chain: &mut Chain, redundancy: u32) -> (TaskId, Vec<Provider>) {
        let task = self.post(chain, redundancy).unwrap();
        market::heartbeats(chain);
        auction(chain, task, &PROVIDERS);
        let members = members(chain, task);
        (task, members)
    }
}

pub fn commit_all(chain: &mut Chain, task: TaskId, results: &[(Provider, ResultClaim)]) {
    let commits = results.iter().map(|(member, claim)| member.commits(task, claim));
    all_ok(chain.block(commits.collect()));
}

pub fn reveal_all(chain: &mut Chain, task: TaskId, results: &[(Provider, ResultClaim)]) {
    wait_for_reveals(chain, task);
    let reveals = results.iter().map(|(member, claim)| member.reveals(task, claim));
    all_ok(chain.block(reveals.collect()));
}

pub fn disputes(chain: &mut Chain) -> Vec<(DisputeId, Dispute<AccountId, Balance, BlockNumber>)> {
    chain.query(|| Disputes::<Runtime>::iter().collect())
}

/// Who signs for a party.
pub fn signer(party: &Party<AccountId>) -> Sr25519Keyring {
    let agent_of = |stash: &AccountId| {
        let provider = PROVIDERS.iter().find(|provider| provider.account() == *stash);
        provider.map_or(VERIFIER.1, |provider| provider.agent)
    };
    match party {
        Party::Provider(stash) => agent_of(stash),
        Party::Auditor { verifier, .. } => agent_of(verifier),
        Party::Account(account) => Sr25519Keyring::iter()
            .find(|key| key.to_account_id() == *account)
            .unwrap(),
    }
}

/// Plays all disputes to their ends, each party with its player. Returns the cells that were reached, and the
/// bytes of the moves of the longest dispute.
pub fn play_out(chain: &mut Chain, world: &World, players: &mut [(AccountId, Side_)]) -> (Vec<Cell>, usize) {
    let mut cells = Vec::new();
    let mut bytes = std::collections::BTreeMap::<DisputeId, usize>::new();
    while let Some((id, dispute)) = disputes(chain).pop() {
        let side = dispute
            .game
            .to_move()
            .expect("a block can compute each cell here");
        let party = match side {
            Side::Defender => &dispute.defender,
            Side::Challenger => &dispute.challenger,
        };
        let mut known = players.iter_mut();
        let (_, player) = known.find(|(who, _)| who == party.account()).unwrap();
        let played = match side {
            Side::Defender => defend(&dispute.game, &world.layout, player).unwrap(),
            Side::Challenger => challenge(&dispute.game, player).unwrap(),
        };
        *bytes.entry(id).or_default() += played.encoded_size();
        let call = Call::play {
            dispute: id,
            number: dispute.moves,
            played,
        };
        chain.call(signer(party), RuntimeCall::from(call));
        let reached = chain.events().into_iter().filter_map(|event| match event {
            RuntimeEvent::Disputes(Event::CellReached { cell, .. }) => Some(cell),
            _ => None,
        });
        cells.extend(reached);
    }
    (cells, bytes.into_values().max().unwrap_or_default())
}

/// What the verifier's agent says of itself: its VRF, as the chain asks for it.
pub fn proof(chain: &mut Chain, task: TaskId, provider: &AccountId, signer: Sr25519Keyring) -> AuditProof {
    let seeded = || Rounds::<Runtime>::get(task).is_some_and(|round| !round.awaits_seed());
    chain.run_until(3, seeded);
    let draw_of_round = chain
        .query(|| Rounds::<Runtime>::get(task))
        .unwrap()
        .draw
        .unwrap();
    let input = AuditInput {
        seed: draw_of_round.seed.unwrap(),
        task,
        provider: provider.clone(),
    };
    let transcript = vrf::VrfTranscript::new(draw::LABEL, &draw::borrowed(&input.fields()));
    let signed = signer.pair().vrf_sign(&transcript.into_sign_data());
    AuditProof::decode(&mut signed.encode().as_slice()).unwrap()
}

pub fn stake(chain: &mut Chain, who: &AccountId) -> Balance {
    chain.query(|| Staking::stake(who))
}

pub fn verdict_of(chain: &mut Chain, task: TaskId) -> TaskState<AccountId, Balance, BlockNumber> {
    wait_for_end(chain, task);
    chain.query(|| state(task))
}

#[test]
fn a_liar_among_three_is_found_by_the_very_cell_and_slashed() {
    let world = World::new();
    let mut chain = world.chain();
    let (task, members) = world.task(&mut chain, 3);
    let (liar, lie) = world.liar(2, 3);
    let results = [
        (members[0], world.claim.clone()),
        (members[1], lie),
        (members[2], world.claim.clone()),
    ];
    let pool = chain.query(|| Balances::free_balance(InsurancePool::get()));
    let honest_before = [
        stake(&mut chain, &members[0].account()),
        stake(&mut chain, &members[2].account()),
    ];
    commit_all(&mut chain, task, &results);
    reveal_all(&mut chain, task, &results);
    assert_eq!(disputes(&mut chain).len(), 1);

    let mut players = [
        (members[0].account(), world.honest()),
        (members[1].account(), liar),
        (members[2].account(), world.honest()),
    ];
    let (cells, bytes) = play_out(&mut chain, &world, &mut players);
    let [cell] = cells[..] else { panic!("{cells:?}") };
    assert_eq!((cell.leaf, cell.step, cell.row, cell.cell), (2, 3, 0, 0));
    assert!(bytes <= 16 * 1024, "{bytes} bytes of moves");

    let offender = members[1].account();
    let lock = chain.query(|| Slashes::<Runtime>::get(0)).unwrap().lock;
    let ended = verdict_of(&mut chain, task);
    let TaskState::Settled { claim, payments, .. } = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(claim, world.claim);
    assert_eq!(payments.len(), 2);
    assert!(payments.iter().all(|payment| payment.provider != offender));

    chain.run_until(60, || !Slashes::<Runtime>::contains_key(0));
    let lost = market::BOND - stake(&mut chain, &offender);
    // Rounded up, as slashes are.
    assert_eq!(lost, lock + (market::BOND - lock).div_ceil(20));
    assert!(chain.query(|| TrustLock::is_jailed(&offender)));
    let honest_after = [
        stake(&mut chain, &members[0].account()),
        stake(&mut chain, &members[2].account()),
    ];
    assert_eq!(honest_before, honest_after);
    // Finder and client are known, so the pool gets nothing; and the client was told the right result.
    assert_eq!(chain.query(|| Balances::free_balance(InsurancePool::get())), pool);
    assert_eq!(
        chain.query(|| Records::<Runtime>::get(members[0].account()).clean_tasks),
        1
    );
}

#[test]
fn a_lone_liar_is_found_by_an_auditor_that_drew_itself() {
    let world = World::new();
    let mut chain = world.chain();
    let (task, members) = world.task(&mut chain, 1);
    let (liar, lie) = world.liar(1, 2);
    let provider = members[0].account();
    let results = [(members[0], lie)];
    commit_all(&mut chain, task, &results);

    let (verifier, agent) = (account(VERIFIER.0), VERIFIER.1);
    let salt = hash(77);
    let seal = audit_seal(task, &provider, &verifier, &world.claim, &salt);
    let announce = |proof| ResultsCall::announce_audit {
        task,
        provider: provider.clone(),
        proof,
        seal,
    };
    // The VRF of another key is worth nothing.
    let forged = proof(&mut chain, task, &provider, STRANGER);
    assert!(chain.try_call(agent, announce(forged)).is_err());
    // It has all the stake of verifiers, and more than one auditor is expected of a newcomer: it is always
    // drawn.
    let own = proof(&mut chain, task, &provider, agent);
    let before = chain.free(&account(agent));
    chain.call(agent, announce(own));
    assert_eq!(chain.free(&account(agent)), before, "who is drawn pays no fee");

    reveal_all(&mut chain, task, &results);
    let reveal = ResultsCall::reveal_audit {
        task,
        provider: provider.clone(),
        verifier: verifier.clone(),
        claim: world.claim.clone(),
        salt,
    };
    chain.call(agent, reveal);
    let client = chain.free(&account(CLIENT));
    let mut players = [(provider.clone(), liar), (verifier.clone(), world.honest())];
    let (cells, _) = play_out(&mut chain, &world, &mut players);
    assert_eq!((cells[0].leaf, cells[0].step), (1, 2));

    let slash = chain.query(|| Slashes::<Runtime>::get(0)).unwrap();
    assert_eq!(
        (slash.kind, slash.finders.to_vec()),
        (FaultKind::WrongResult, vec![verifier.clone()])
    );
    let ended = verdict_of(&mut chain, task);
    assert!(matches!(ended, TaskState::Failed { .. }), "{ended:?}");
    assert!(chain.free(&account(CLIENT)) >= client + CAP);

    let before = chain.free(&verifier);
    chain.run_until(60, || !Slashes::<Runtime>::contains_key(0));
    let lost = market::BOND - stake(&mut chain, &provider);
    assert_eq!(chain.free(&verifier), before + lost * 30 / 100);
    let ledger = chain
        .query(|| surety_pallet_staking::Ledgers::<Runtime>::get(&verifier))
        .unwrap();
    assert_eq!((ledger.locked, ledger.bonded), (0, market::BOND));
}

#[test]
fn a_false_challenge_costs_its_bond_and_the_task_is_settled() {
    let world = World::new();
    let mut chain = world.chain();
    let (task, members) = world.task(&mut chain, 1);
    let results = [(members[0], world.claim.clone())];
    commit_all(&mut chain, task, &results);
    reveal_all(&mut chain, task, &results);
    let provider = members[0].account();
    let challenge = Call::challenge {
        task,
        provider: provider.clone(),
    };
    chain.call(STRANGER, challenge);
    let bond = disputes(&mut chain)[0].1.bond;
    assert!(bond >= SURE);

    let before = chain.free(&provider);
    let (false_view, _) = world.liar(2, 1);
    let mut players = [
        (provider.clone(), world.honest()),
        (account(STRANGER), false_view),
    ];
    play_out(&mut chain, &world, &mut players);
    assert_eq!(chain.free(&provider), before + bond / 2);
    assert_eq!(chain.query(|| Slashes::<Runtime>::iter().count()), 0);
    let ended = verdict_of(&mut chain, task);
    assert!(matches!(ended, TaskState::Settled { .. }), "{ended:?}");
    assert_eq!(stake(&mut chain, &provider), market::BOND);
}
