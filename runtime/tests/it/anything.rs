//! Any calls, in any order and at any time, in real blocks. After every block every invariant holds, and
//! whatever was done, every task ends by time and leaves nothing behind.

use codec::{Compact, DecodeLimit, Encode};
use sp_core::{crypto::VrfSecret, sr25519::vrf};
use sp_keyring::Sr25519Keyring;
use surety_audit_economics::{AuditInput, audit_seal, draw};
use surety_dispute_game::{
    bisection::{Missing, Move, Side, challenge, defend},
    testsuite::dice::Dice,
};
use surety_pallet_disputes::Call as DisputesCall;
use surety_pallet_results::{Call as ResultsCall, Rounds};
use surety_pallet_staking::Call as StakingCall;
use surety_pallet_task_auction::{Call as AuctionCall, NextTaskId};
use surety_proofs::{CommitStatement, PartOpening, SignedStatement};
use surety_runtime::{Runtime, RuntimeCall, units::SURE};
use surety_types::{
    TaskId,
    stake::Role,
    task::{ResultClaim, RoundPhase, TaskSpec, TaskState},
    traits::Escrow,
    trust::{AuditProof, Content, ContentPart, DemandedParts},
};

use crate::{
    chain::{Chain, account},
    disputes::{Side_, VERIFIER, World, signer},
    market::{self, CAP, CLIENT, PROVIDERS, Provider, hash, state},
};

/// Chains that are played; `RANDOM_CHAINS` asks for others.
const CHAINS: u64 = 8;
/// Blocks of each in which calls come.
const BLOCKS: u32 = 150;
/// Blocks in which everything has ended after that.
const END_BLOCKS: u32 = 3_000;
/// Indices of pallets and calls of which there may be one.
const INDICES: u32 = 80;

/// What has been tried.
#[derive(Debug, Default)]
struct Count {
    blocks: u64,
    tasks: u64,
    disputes: u64,
    calls: u64,
    /// Calls that were in a block, whether they did something or not.
    included: u64,
    /// Calls that did something.
    done: u64,
}

struct Anything<'a> {
    world: &'a World,
    /// What claims come from: the right one first.
    players: Vec<(Side_, ResultClaim)>,
    chain: Chain,
    dice: Dice,
    count: Count,
}

fn any_content(dice: &mut Dice) -> Content {
    [Content::Input, Content::Output, Content::Leaves][dice.below(3) as usize]
}

/// Everybody but who can do everything.
fn anybody(dice: &mut Dice) -> Sr25519Keyring {
    let keys: Vec<_> = Sr25519Keyring::iter()
        .filter(|key| *key != Sr25519Keyring::Alice)
        .collect();
    keys[dice.below(keys.len() as u32) as usize]
}

impl<'a> Anything<'a> {
    fn new(world: &'a World, seed: u64) -> Self {
        let lies = [(1, 2), (2, 3)].map(|(leaf, step)| world.liar(leaf, step));
        let right = (world.honest(), world.claim.clone());
        Self {
            world,
            players: core::iter::once(right).chain(lies).collect(),
            chain: world.chain(),
            dice: Dice::new(seed, 0xa11),
            count: Count::default(),
        }
    }

    fn any_task(&mut self) -> TaskId {
        let next = self.chain.query(NextTaskId::<Runtime>::get);
        // Mostly one of the last.
        let back = u64::from(self.dice.below(4));
        next.saturating_sub(back)
    }

    fn any_provider(&mut self) -> Provider {
        PROVIDERS[self.dice.below(PROVIDERS.len() as u32) as usize]
    }

    /// What a provider says of a task: always the same, or it could not open what it committed to.
    fn claim_of(&self, task: TaskId, provider: &Provider) -> ResultClaim {
        let place = task as usize + (provider.price / SURE) as usize;
        self.players[place % self.players.len()].1.clone()
    }

    fn post(&mut self) -> (Sr25519Keyring, RuntimeCall) {
        let facts = self.world.layout.facts();
        let spec = TaskSpec {
            model: self.world.manifest.id(),
            input: facts.input,
            input_bytes: facts.input_bytes,
            units_max: self.dice.below(4),
            ..market::spec(self.dice.below(5))
        };
        let cap = CAP * u128::from(1 + self.dice.below(3)) / 2;
        (CLIENT, AuctionCall::post { spec, cap }.into())
    }

    /// What somebody who takes part in a task would do now, if there is anything.
    fn likely(&mut self) -> Option<(Sr25519Keyring, RuntimeCall)> {
        let (task, provider) = (self.any_task(), self.any_provider());
        let known = self.chain.query(|| {
            let task_state =
                surety_pallet_task_auction::Tasks::<Runtime>::contains_key(task).then(|| state(task));
            Some((task_state?, Rounds::<Runtime>::get(task)))
        });
        let (at, round) = known?;
        match (at, round.map(|round| round.phase)) {
            (TaskState::Bidding { .. }, _) => Some(provider.sealed(task)),
            (TaskState::Revealing { .. } | TaskState::Drawing { .. }, _) => Some(provider.opened(task)),
            (_, Some(RoundPhase::Committing { .. })) => {
                Some(provider.commits(task, &self.claim_of(task, &provider)))
            }
            (_, Some(RoundPhase::Auditing { .. })) => match self.dice.below(4) {
                0 => Some(self.contradiction(task, &provider)),
                1 => Some(self.demand(task, &provider)),
                _ => self.announcement(task, &provider),
            },
            (_, Some(RoundPhase::Revealing { .. })) => {
                Some(provider.reveals(task, &self.claim_of(task, &provider)))
            }
            (_, Some(RoundPhase::Challengeable { .. })) => Some(self.contradiction(task, &provider)),
            _ => None,
        }
    }

    fn announcement(&mut self, task: TaskId, provider: &Provider) -> Option<(Sr25519Keyring, RuntimeCall)> {
        let (verifier, agent) = VERIFIER;
        let proof = self.proof(task, provider)?;
        let claim = self.players[self.dice.below(2) as usize].1.clone();
        let announce = ResultsCall::announce_audit {
            task,
            provider: provider.account(),
            proof,
            seal: audit_seal(task, &provider.account(), &account(verifier), &claim, &hash(7)),
        };
        Some((agent, announce.into()))
    }

    /// What the verifier draws itself with, once there is a seed.
    fn proof(&mut self, task: TaskId, provider: &Provider) -> Option<AuditProof> {
        let round = self.chain.query(|| Rounds::<Runtime>::get(task))?;
        let input = AuditInput {
            seed: round.draw?.seed?,
            task,
            provider: provider.account(),
        };
        let transcript = vrf::VrfTranscript::new(draw::LABEL, &draw::borrowed(&input.fields()));
        let signed = VERIFIER.1.pair().vrf_sign(&transcript.into_sign_data());
        Some(codec::Decode::decode(&mut &signed.encode()[..]).unwrap())
    }

    /// The verifier demands, or somebody who may not.
    fn demand(&mut self, task: TaskId, provider: &Provider) -> (Sr25519Keyring, RuntimeCall) {
        let who = anybody(&mut self.dice);
        let proof = self.proof(task, provider);
        let content = any_content(&mut self.dice);
        let parts = (0..=self.dice.below(3)).map(|part| ContentPart { content, part });
        let demand = ResultsCall::demand {
            task,
            provider: provider.account(),
            parts: DemandedParts::truncate_from(parts.collect()),
            proof,
        };
        let by = if proof.is_some() { VERIFIER.1 } else { who };
        (by, demand.into())
    }

    /// Opens an audit, reports, refutes, demands, supplies or challenges.
    fn contradiction(&mut self, task: TaskId, provider: &Provider) -> (Sr25519Keyring, RuntimeCall) {
        let who = anybody(&mut self.dice);
        let stash = provider.account();
        let output = self.world.trace.own().unwrap();
        let part = self.dice.below(3);
        let call = match self.dice.below(8) {
            0 => ResultsCall::reveal_audit {
                task,
                provider: stash,
                verifier: account(VERIFIER.0),
                claim: self.players[self.dice.below(2) as usize].1.clone(),
                salt: hash(7),
            }
            .into(),
            1 => {
                let content = any_content(&mut self.dice);
                let demand = ResultsCall::demand {
                    task,
                    provider: stash,
                    parts: DemandedParts::truncate_from(vec![ContentPart { content, part }]),
                    proof: None,
                };
                // Leaves are shown to auditors alone.
                let by = if content == Content::Leaves {
                    VERIFIER.1
                } else {
                    who
                };
                return (by, demand.into());
            }
            2 => match PartOpening::new(&output, part) {
                Some(opening) => {
                    let supply = ResultsCall::supply {
                        task,
                        content: Content::Output,
                        bytes: output.len() as u32,
                        opening,
                    };
                    return (provider.agent, supply.into());
                }
                None => AuctionCall::cancel { task }.into(),
            },
            3 => ResultsCall::report_equivocation {
                statement: SignedStatement {
                    statement: CommitStatement {
                        task,
                        provider: stash,
                        commitment: self.dice.hash(),
                        output: hash(1),
                    },
                    agent: account(provider.agent),
                    signature: [7; 64],
                },
                other: None,
            }
            .into(),
            _ => DisputesCall::challenge {
                task,
                provider: stash,
            }
            .into(),
        };
        (who, call)
    }

    /// A move in one of the disputes, by whoever is to make it: a right one, one that asks or shows, or any.
    fn any_move(&mut self) -> Option<(Sr25519Keyring, RuntimeCall)> {
        let disputes = crate::disputes::disputes(&mut self.chain);
        let count = u32::try_from(disputes.len()).ok().filter(|count| *count > 0)?;
        let (dispute, record) = disputes.into_iter().nth(self.dice.below(count) as usize)?;
        let side = record.game.to_move()?;
        let layout = self.world.layout.clone();
        let place = self.dice.below(self.players.len() as u32) as usize;
        let player = &mut self.players[place].0;
        let own = match side {
            Side::Defender => defend(&record.game, &layout, player).ok(),
            Side::Challenger => challenge(&record.game, player).ok(),
        };
        let output = self.world.trace.own()?;
        let played = match self.dice.below(12) {
            0 => Move::Concede,
            1 => Move::Ask(Missing::Output),
            2 => Move::Ask(Missing::Both),
            3 => Move::Supply(PartOpening::new(&output, 0)?),
            4 => Move::Name(self.dice.below(17) as u8),
            _ => own?,
        };
        let party = match side {
            Side::Defender => &record.defender,
            Side::Challenger => &record.challenger,
        };
        let number = record.moves;
        let play = DisputesCall::play {
            dispute,
            number,
            played,
        };
        Some((signer(party), play.into()))
    }

    /// Stake and keys that come and go, and whatever is due by time.
    fn upkeep(&mut self) -> (Sr25519Keyring, RuntimeCall) {
        let (task, provider) = (self.any_task(), self.any_provider());
        let amount = u128::from(self.dice.below(2_000)) * SURE;
        let number = self.dice.below(8);
        match self.dice.below(10) {
            0 => (provider.stash, StakingCall::unbond { amount }.into()),
            1 => (provider.stash, StakingCall::rebond { amount }.into()),
            2 => (provider.stash, StakingCall::withdraw_unbonded {}.into()),
            3 => {
                let role = Role::Provider;
                (provider.stash, StakingCall::bond { role, amount }.into())
            }
            4 => (VERIFIER.0, StakingCall::unbond { amount }.into()),
            5 => (CLIENT, AuctionCall::cancel { task }.into()),
            6 => (anybody(&mut self.dice), AuctionCall::advance { task }.into()),
            7 => {
                let advance = DisputesCall::advance_dispute { dispute: number };
                (anybody(&mut self.dice), advance.into())
            }
            8 => {
                let carry_out = surety_pallet_trust_lock::Call::carry_out_slash { slash: number };
                (anybody(&mut self.dice), carry_out.into())
            }
            _ => {
                let heartbeat = surety_pallet_provider_registry::Call::heartbeat {};
                (provider.agent, heartbeat.into())
            }
        }
    }

    /// Bytes that are a call of some pallet: small numbers, short lists, accounts that there are.
    fn anything(&mut self) -> Option<(Sr25519Keyring, RuntimeCall)> {
        (0..30).find_map(|_| {
            let mut bytes = vec![self.dice.below(INDICES) as u8, self.dice.below(INDICES / 4) as u8];
            while bytes.len() < 200 {
                match self.dice.below(6) {
                    0 => bytes.extend(account(anybody(&mut self.dice)).encode()),
                    1 => bytes.extend(Compact(u128::from(self.dice.below(1_000)) * SURE).encode()),
                    2 => bytes.extend(u64::from(self.dice.below(4)).encode()),
                    3 => bytes.extend(self.dice.hash().encode()),
                    4 => bytes.push(self.dice.below(256) as u8),
                    _ => bytes.push(0),
                }
            }
            let call = RuntimeCall::decode_with_depth_limit(8, &mut &bytes[..]).ok()?;
            Some((anybody(&mut self.dice), call))
        })
    }

    fn any_call(&mut self) -> Option<(Sr25519Keyring, RuntimeCall)> {
        match self.dice.below(20) {
            0 => Some(self.post()),
            1..10 => self.likely(),
            10..15 => self.any_move(),
            15..18 => Some(self.upkeep()),
            _ => self.anything(),
        }
    }

    /// Who was not heard of lately is not drawn.
    fn heartbeats(&mut self) {
        let heartbeat = |agent| (agent, surety_pallet_provider_registry::Call::heartbeat {}.into());
        let calls = PROVIDERS.iter().map(|provider| heartbeat(provider.agent));
        self.chain.any_block(calls.collect());
    }

    fn play(&mut self) {
        for block in 0..BLOCKS {
            if block % 20 == 0 {
                self.heartbeats();
            }
            let calls: Vec<_> = (0..self.dice.below(14)).filter_map(|_| self.any_call()).collect();
            // Finality stands still for some blocks now and then.
            self.chain.finalizes = block % 50 < 40;
            self.count.calls += calls.len() as u64;
            let results = self.chain.any_block(calls);
            self.count.blocks += 1;
            self.count.included += results.iter().filter(|result| result.is_ok()).count() as u64;
            self.count.done += results
                .iter()
                .filter(|result| matches!(result, Ok(Ok(()))))
                .count() as u64;
        }
    }

    /// Nobody calls any more.
    fn ends_by_time(&mut self) {
        self.chain.finalizes = true;
        self.chain
            .run_until(END_BLOCKS, || Rounds::<Runtime>::iter_keys().next().is_none());
        for task in 0..self.chain.query(NextTaskId::<Runtime>::get) {
            let is_open = |task| surety_pallet_task_auction::OpenTasks::<Runtime>::contains_key(task);
            self.chain.run_until(END_BLOCKS, || !is_open(task));
            assert_eq!(self.chain.query(|| surety_runtime::Billing::held(task)), 0);
        }
        assert!(crate::disputes::disputes(&mut self.chain).is_empty());
        self.count.tasks = self.chain.query(NextTaskId::<Runtime>::get);
        let disputes = surety_pallet_disputes::NextDisputeId::<Runtime>::get;
        self.count.disputes = self.chain.query(disputes).into();
    }
}

#[test]
fn any_calls_in_any_order_keep_every_invariant_and_all_ends_by_time() {
    let chains = std::env::var("RANDOM_CHAINS").map_or(CHAINS, |count| count.parse().unwrap());
    let world = World::new();
    let mut whole = Count::default();
    for seed in 0..chains {
        let mut chain = Anything::new(&world, seed);
        chain.play();
        chain.ends_by_time();
        whole.blocks += chain.count.blocks;
        whole.tasks += chain.count.tasks;
        whole.disputes += chain.count.disputes;
        whole.calls += chain.count.calls;
        whole.included += chain.count.included;
        whole.done += chain.count.done;
    }
    println!("{chains} chains: {whole:?}");
    // Else there is nothing that they could have broken.
    assert!(whole.done > 50 * chains && whole.tasks > chains, "{whole:?}");
}
