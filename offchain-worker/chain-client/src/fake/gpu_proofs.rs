//! Rounds of the benchmark. The test moves them on; calls are refused as the pallet refuses them, and what is
//! shown is checked as there.

use std::collections::BTreeMap;

use async_trait::async_trait;
use sp_core::{H256, crypto::AccountId32};
use surety_gpu_proofs::{
    Fault, Job, MeasuredView, Openings, Plan, RoundStage, RunView, Tier, draw, seed, verify_all,
};
use surety_types::stake::Role;

use super::{
    FakeChain,
    state::{Applied, FakeState, fault},
};
use crate::{ChainError, GpuProofsChain, GpuRound, When};

/// What the fake chain keeps of rounds of the benchmark.
#[derive(Clone, Debug, Default)]
pub struct FakeGpuProofs {
    /// The round that there is now. Its `time_ms` is the time of the block to come; its `now` follows the
    /// clock.
    pub round: Option<GpuRound>,
    /// Runs that nothing was shown of, by the provider's stash.
    pub runs: BTreeMap<AccountId32, RunView>,
    /// What was shown last, by the provider's stash.
    pub measured: BTreeMap<AccountId32, MeasuredView>,
}

impl FakeState {
    fn benchmarked(&self, agent: &AccountId32) -> Result<AccountId32, ChainError> {
        self.stash_in(agent, Role::Provider)
            .ok_or_else(|| refused("NotAgent"))
    }

    pub(super) fn commit_run(
        &mut self,
        agent: &AccountId32,
        entropy: H256,
        plan: Plan,
        root: H256,
    ) -> Applied {
        let provider = self.benchmarked(agent)?;
        let round = self.gpu_proofs.round.ok_or_else(|| refused("NotRunning"))?;
        let RoundStage::Running {
            entropy: expected,
            since_ms,
        } = round.stage
        else {
            return Err(refused("NotRunning"));
        };
        let until = since_ms.saturating_add(round.window_ms);
        let before = self.gpu_proofs.runs.get(&provider).copied();
        let name = match before {
            _ if entropy != expected => "OtherEntropy",
            _ if round.time_ms > until => "TooLate",
            _ if !plan.is_sound() => "UnsoundPlan",
            Some(before) if before.round == round.number => "AlreadyCommitted",
            _ => {
                if before.is_some() {
                    self.gpu_proofs.measured.remove(&provider);
                }
                let run = RunView {
                    round: round.number,
                    plan,
                    root,
                };
                self.gpu_proofs.runs.insert(provider, run);
                return Ok(Vec::new());
            }
        };
        Err(refused(name))
    }

    pub(super) fn open_run(&mut self, agent: &AccountId32, openings: &Openings) -> Applied {
        let provider = self.benchmarked(agent)?;
        let round = self.gpu_proofs.round.ok_or_else(|| refused("NotOpening"))?;
        let RoundStage::Opening {
            entropy,
            samples,
            until,
        } = round.stage
        else {
            return Err(refused("NotOpening"));
        };
        if self.clock > until {
            return Err(refused("TooLate"));
        }
        let run = self.gpu_proofs.runs.get(&provider);
        let run = run.filter(|run| run.round == round.number);
        let RunView { plan, root, .. } = *run.ok_or_else(|| refused("NothingToOpen"))?;
        let job = Job::new(plan, &seed(&entropy, round.number, &provider));
        let drawn = draw(plan, &samples, round.number, &provider);
        verify_all(&job, &root, &drawn, openings).map_err(|fault| {
            refused(match fault {
                Fault::Plan => "UnsoundPlan",
                Fault::Count => "WrongCount",
                Fault::Row => "WrongRow",
                Fault::Cell => "WrongCell",
            })
        })?;
        self.gpu_proofs.runs.remove(&provider);
        let giga_operations = plan.giga_operations(round.window_ms);
        let measured = MeasuredView {
            tier: Tier::of(giga_operations),
            giga_operations,
            memory_mib: plan.memory_mib(),
            rounds_missed: 0,
        };
        self.gpu_proofs.measured.insert(provider, measured);
        Ok(Vec::new())
    }
}

fn refused(name: &str) -> ChainError {
    fault("GpuProofs", name)
}

#[async_trait]
impl GpuProofsChain for FakeChain {
    async fn gpu_round(&self, when: When) -> Result<Option<GpuRound>, ChainError> {
        self.read(when, |state| {
            state.gpu_proofs.round.map(|round| GpuRound {
                now: state.clock,
                ..round
            })
        })
    }

    async fn gpu_run(&self, when: When, provider: &AccountId32) -> Result<Option<RunView>, ChainError> {
        self.read(when, |state| {
            let run = state.gpu_proofs.runs.get(provider).copied()?;
            (run.round == state.gpu_proofs.round?.number).then_some(run)
        })
    }

    async fn measured(&self, when: When, provider: &AccountId32) -> Result<Option<MeasuredView>, ChainError> {
        self.read(when, |state| state.gpu_proofs.measured.get(provider).copied())
    }
}
