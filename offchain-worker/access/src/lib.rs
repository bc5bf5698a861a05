//! Who may read the blobs of a task: its client and its providers, who are named on the chain with the peers
//! they are, and who shows a pass: an auditor, by its draw or its announcement; a party of a dispute; a
//! verifier, once a committee is to decide; the client from elsewhere.
//!
//! ```text
//!  verifier                                     provider or client
//!  Pass: task, agent, draw, signature    ──>    Gate: signed by the agent, for this very peer?
//!        over all of it and its peer id               in the round, or drawn, by the best block's state?
//! ```
//! The pass is bound to the peer that shows it: whoever it was shown to cannot use it elsewhere.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use codec::{Decode, DecodeAll, Encode};
use surety_audit_economics::{AuditInput, AuditThreshold};
use surety_chain_client::{
    AccountId, Chain, ChainError, Hash, RoundRecord, Signer, TaskRecord, When, checked_draw, is_hash_signed,
};
use surety_network::{AccessGate, Asked, Decision, Ticket};
use surety_types::{
    ContentHash, TaskId,
    stake::Role,
    task::TaskState,
    trust::{AuditProof, DisputeId},
};

/// Begins what is signed.
const DOMAIN: &[u8] = b"surety-pass";

/// What an auditor, or a party of a dispute, shows to those who keep a task's blobs.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
struct Pass {
    task: TaskId,
    /// The key that signs; it acts for a stash, or for itself.
    agent: AccountId,
    /// That it has drawn itself to audit the result of this provider.
    draw: Option<(AccountId, AuditProof)>,
    signature: [u8; 64],
}

impl Pass {
    fn hash(&self, genesis: &Hash, peer: &str) -> [u8; 32] {
        let said = (DOMAIN, genesis, self.task, &self.agent, &self.draw, peer);
        sp_crypto_hashing::blake2_256(&said.encode())
    }
}

/// A ticket to the blobs of a task, for the peer with this id.
pub fn ticket(
    signer: &Signer,
    genesis: &Hash,
    peer: &str,
    task: TaskId,
    draw: Option<(AccountId, AuditProof)>,
) -> Option<Ticket> {
    let mut pass = Pass {
        task,
        agent: signer.account().clone(),
        draw,
        signature: [0; 64],
    };
    pass.signature = signer.sign_hash(&pass.hash(genesis, peer));
    Ticket::new(pass.encode())
}

/// Outputs of ours, which the chain does not name yet.
#[derive(Default)]
pub struct OwnOutputs(Mutex<BTreeMap<TaskId, ContentHash>>);

impl OwnOutputs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskId, ContentHash>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is an output.
    pub fn insert(&self, task: TaskId, output: ContentHash) {
        self.lock().insert(task, output);
    }

    /// The task is over.
    pub fn remove(&self, task: TaskId) {
        self.lock().remove(&task);
    }

    fn is(&self, task: TaskId, blob: ContentHash) -> bool {
        self.lock().get(&task) == Some(&blob)
    }
}

/// Judges passes by the chain's state.
pub struct Gate {
    chain: Arc<dyn Chain>,
    /// Whose outputs are asked for; nobody's where there are none.
    provider: Option<AccountId>,
    outputs: Arc<OwnOutputs>,
}

impl Gate {
    /// Of a client: it has inputs only.
    pub fn of_client(chain: Arc<dyn Chain>) -> Self {
        Self {
            chain,
            provider: None,
            outputs: Arc::default(),
        }
    }

    /// Of a provider, for the stash it works for.
    pub fn of_provider(chain: Arc<dyn Chain>, stash: AccountId, outputs: Arc<OwnOutputs>) -> Self {
        Self {
            chain,
            provider: Some(stash),
            outputs,
        }
    }

    /// Whether the signer of a pass may read a blob, by the best block's state. A fork is no way in: a draw
    /// needs what all providers have committed to, and nobody else can tell beforehand who will be drawn.
    async fn judge(&self, peer: &str, blob: ContentHash, pass: &Pass) -> Result<bool, ChainError> {
        let hash = pass.hash(&self.chain.info().genesis, peer);
        if !is_hash_signed(&pass.agent, &hash, pass.signature) {
            return Ok(false);
        }
        let Some(info) = self.chain.task(When::Best, pass.task).await? else {
            return Ok(false);
        };
        let is_input = info.task.spec.input == blob;
        if !is_input && !self.outputs.is(pass.task, blob) && settled_output(&info.task) != Some(blob) {
            return Ok(false);
        }
        if info.task.client == pass.agent {
            return Ok(true);
        }
        let Some(round) = &info.round else {
            return Ok(false);
        };
        let stash = self.chain.agent_stash(When::Best, &pass.agent).await?;
        let stash = stash.unwrap_or_else(|| pass.agent.clone());
        let computes = round.members.iter().any(|member| member.provider == stash);
        if is_input && computes || round.audits.iter().any(|audit| audit.verifier == stash) {
            return Ok(true);
        }
        if self.is_drawn(pass, &stash, round, is_input).await? {
            return Ok(true);
        }
        for open in &round.disputes {
            if self.decides(open.id, &pass.agent, &stash).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a draw is right, and for what is asked for.
    async fn is_drawn(
        &self,
        pass: &Pass,
        stash: &AccountId,
        round: &RoundRecord,
        is_input: bool,
    ) -> Result<bool, ChainError> {
        let (Some((provider, proof)), Some(draw)) = (&pass.draw, &round.draw) else {
            return Ok(false);
        };
        // An output is for those who audit it.
        if !is_input && self.provider.as_ref() != Some(provider) {
            return Ok(false);
        }
        let mut members = round.members.iter();
        let member = members.find(|member| member.provider == *provider);
        let Some(commitment) = member.and_then(|member| member.drawn_for(draw.tranche)) else {
            return Ok(false);
        };
        let input = AuditInput {
            seed: draw.seed,
            task: pass.task,
            provider: provider.clone(),
            commitment,
            tranche: draw.tranche,
        };
        let Some(output) = checked_draw(&pass.agent, &input, proof) else {
            return Ok(false);
        };
        let Some(bonded) = self.bonded_verifier(stash).await? else {
            return Ok(false);
        };
        let expected = self
            .chain
            .auditors_expected(When::Best, pass.task, provider)
            .await?;
        let threshold = AuditThreshold::weighted(expected, bonded, draw.verifier_stake);
        Ok(threshold.draws(&output))
    }

    /// Whether somebody is a party of a dispute, or may be asked to decide it: all verifiers are, in the end.
    async fn decides(
        &self,
        dispute: DisputeId,
        agent: &AccountId,
        stash: &AccountId,
    ) -> Result<bool, ChainError> {
        let Some(found) = self.chain.dispute(When::Best, dispute).await? else {
            return Ok(false);
        };
        let parties = [found.defender.account(), found.challenger.account()];
        if parties.iter().any(|party| *party == agent || *party == stash) {
            return Ok(true);
        }
        Ok(found.referred_at.is_some() && self.bonded_verifier(stash).await?.is_some())
    }

    /// What a verifier has bonded; nothing for anybody else.
    async fn bonded_verifier(&self, stash: &AccountId) -> Result<Option<u128>, ChainError> {
        let stake = self.chain.stake(When::Best, stash).await?;
        let bonded = stake.filter(|stake| stake.role == Role::Verifier && stake.bonded > 0);
        Ok(bonded.map(|stake| stake.bonded))
    }
}

/// What a task came to.
fn settled_output(task: &TaskRecord) -> Option<ContentHash> {
    match &task.state {
        TaskState::Settled { claim, .. } => Some(claim.output),
        _ => None,
    }
}

#[async_trait]
impl AccessGate for Gate {
    async fn may_read(&self, asked: Asked<'_>) -> Decision {
        let Ok(pass) = Pass::decode_all(&mut asked.ticket.as_bytes()) else {
            return Decision::Refuse;
        };
        // A pass for one task says nothing of another's output.
        if asked.task.is_some_and(|task| task != pass.task) {
            return Decision::Refuse;
        }
        match self.judge(asked.peer, asked.blob, &pass).await {
            Ok(true) => Decision::Allow,
            Ok(false) => Decision::Refuse,
            Err(e) => {
                tracing::warn!(task = pass.task, error = %e, "cannot judge who asks for a blob");
                Decision::Refuse
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_chain_client::{FakeChain, StakeInfo};
    use surety_types::{
        model::Operation,
        task::{Assignment, AuditDraw, MemberProgress, ResultClaim, RoundMember, RoundPhase, TaskSpec},
        trust::{Audit, AuditState},
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
    }

    /// A task of which the audit window is open; everybody with stake is drawn.
    fn world() -> World {
        let chain = FakeChain::new();
        let assignment = Assignment {
            provider: account("provider"),
            price: 1,
        };
        let task = TaskRecord {
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
            },
            cap: 1,
            posted_at: 0,
            state: TaskState::Running {
                assignments: vec![assignment].try_into().unwrap(),
                reserves: Default::default(),
            },
        };
        let round = RoundRecord {
            members: vec![RoundMember {
                progress: MemberProgress::Committed(COMMITMENT),
                ..RoundMember::new(account("provider"), 1, 0)
            }]
            .try_into()
            .unwrap(),
            phase: RoundPhase::Auditing { until: 9 },
            draw: Some(AuditDraw {
                seed: Hash::repeat_byte(5),
                verifier_stake: 1,
                tranche: 0,
                is_short: false,
            }),
            ..RoundRecord::new(1, 9)
        };
        chain.change(|state| {
            state.tasks.insert(TASK, task);
            state.rounds.insert(TASK, round);
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
        let outputs = Arc::<OwnOutputs>::default();
        outputs.insert(TASK, OUTPUT);
        let shared: Arc<dyn Chain> = Arc::new(chain.clone());
        World {
            provider: Gate::of_provider(shared.clone(), account("provider"), outputs),
            client: Gate::of_client(shared),
            chain,
        }
    }

    fn draw(name: &str, tranche: u8) -> Option<(AccountId, AuditProof)> {
        let input = AuditInput {
            seed: Hash::repeat_byte(5),
            task: TASK,
            provider: account("provider"),
            commitment: COMMITMENT,
            tranche,
        };
        let drawn = signer(name).draw_audit(&input).unwrap();
        Some((account("provider"), drawn.proof))
    }

    impl World {
        fn ticket(&self, name: &str, draw: Option<(AccountId, AuditProof)>) -> Ticket {
            ticket(&signer(name), &self.chain.info().genesis, PEER, TASK, draw).unwrap()
        }

        async fn lets_in(&self, gate: &Gate, ticket: &Ticket, blob: ContentHash) -> bool {
            let asked = Asked {
                peer: PEER,
                blob,
                task: None,
                ticket,
            };
            gate.may_read(asked).await == Decision::Allow
        }
    }

    #[tokio::test]
    async fn who_is_drawn_may_read_and_who_only_says_so_may_not() {
        let world = world();
        let drawn = world.ticket("verifier//agent", draw("verifier//agent", 0));
        assert!(world.lets_in(&world.provider, &drawn, OUTPUT).await);
        assert!(world.lets_in(&world.provider, &drawn, INPUT).await);
        assert!(world.lets_in(&world.client, &drawn, INPUT).await);
        for stranger in [
            world.ticket("verifier//agent", None),
            world.ticket("verifier//agent", draw("other//agent", 0)),
            world.ticket("poser//agent", draw("poser//agent", 0)),
            world.ticket("nobody", draw("nobody", 0)),
        ] {
            assert!(!world.lets_in(&world.provider, &stranger, OUTPUT).await);
            assert!(!world.lets_in(&world.client, &stranger, INPUT).await);
        }
        let unknown = ContentHash::repeat_byte(9);
        assert!(!world.lets_in(&world.provider, &drawn, unknown).await);
    }

    #[tokio::test]
    async fn what_is_revealed_can_be_drawn_for_only_when_auditors_are_drawn_again() {
        let world = world();
        let reveal = |tranche| {
            world.chain.change(|state| {
                let round = state.rounds.get_mut(&TASK).unwrap();
                round.members[0].progress = MemberProgress::Revealed(ResultClaim {
                    output: OUTPUT,
                    trace_root: COMMITMENT,
                    units: 1,
                });
                round.draw.as_mut().unwrap().tranche = tranche;
            });
        };
        reveal(0);
        let drawn = world.ticket("verifier//agent", draw("verifier//agent", 0));
        assert!(!world.lets_in(&world.provider, &drawn, OUTPUT).await);
        reveal(1);
        assert!(!world.lets_in(&world.provider, &drawn, OUTPUT).await);
        let again = world.ticket("verifier//agent", draw("verifier//agent", 1));
        assert!(world.lets_in(&world.provider, &again, OUTPUT).await);
    }

    #[tokio::test]
    async fn a_pass_is_good_for_the_peer_that_it_was_made_for() {
        let world = world();
        let ticket = world.ticket("verifier//agent", draw("verifier//agent", 0));
        let asked = |peer, task| Asked {
            peer,
            blob: INPUT,
            task,
            ticket: &ticket,
        };
        assert_eq!(
            world.client.may_read(asked(PEER, Some(TASK))).await,
            Decision::Allow
        );
        for asked in [asked("thief", None), asked(PEER, Some(TASK + 1))] {
            assert_eq!(world.client.may_read(asked).await, Decision::Refuse);
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
        world.chain.change(|state| {
            state.rounds.remove(&TASK);
            state.tasks.get_mut(&TASK).unwrap().state = TaskState::Settled {
                at: 1,
                claim: ResultClaim {
                    output: settled,
                    trace_root: Hash::zero(),
                    units: 1,
                },
                payments: Default::default(),
                refund: 0,
                fee: 0,
            };
        });
        assert!(world.lets_in(&world.provider, &client, settled).await);
        assert!(!world.lets_in(&world.provider, &rival, settled).await);
    }

    #[tokio::test]
    async fn nobody_is_let_in_while_the_chain_cannot_be_asked() {
        let world = world();
        let drawn = world.ticket("verifier//agent", draw("verifier//agent", 0));
        world.chain.set_unreachable(true);
        assert!(!world.lets_in(&world.provider, &drawn, OUTPUT).await);
        let garbage = Ticket::new(vec![1, 2, 3]).unwrap();
        assert!(!world.lets_in(&world.provider, &garbage, OUTPUT).await);
    }
}
