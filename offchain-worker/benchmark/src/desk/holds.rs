//! Has nothing new promised while the machine is to be had for a run: what is promised gets less, and is out
//! of the way while there still is time for the run.

use std::time::Duration;

use surety_chain_client::GpuRound;
use surety_gpu_proofs::RoundStage;

use super::Desk;

/// How long that lasts where it is not asked for again, which it is with each block: nobody is kept from
/// promising by a desk that is lost.
const HELD: Duration = Duration::from_secs(60);

impl Desk {
    /// By the round of the best block: from its beginning until its run is made, and from then on until it is
    /// shown.
    pub(super) fn hold(&mut self, round: Option<&GpuRound>) {
        let is_needed = round.is_some_and(|round| self.is_to_run(round) || self.is_to_show(round));
        self.held = is_needed.then(|| self.parts.machine.hold(HELD));
    }

    /// Whether a run is to be made, or is being made.
    fn is_to_run(&self, round: &GpuRound) -> bool {
        self.parts.takes_part
            && match round.stage {
                RoundStage::Seeding { .. } => true,
                RoundStage::Running { entropy, .. } => self.skipped != Some((round.number, entropy)),
                _ => false,
            }
    }

    /// Whether a run of this round has to be made again.
    fn is_to_show(&self, round: &GpuRound) -> bool {
        let mut promises = self
            .journal
            .promises()
            .iter()
            .filter(|promise| promise.round == round.number);
        promises.any(|promise| {
            let showing = self.showing.get(&promise.key());
            showing.is_none_or(|showing| showing.is_open())
        })
    }
}
