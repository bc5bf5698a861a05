//! Has nothing new promised while the machine is to be had for a run: what is promised gets less. Who waits
//! to make it again goes on: all providers that are measured do at the same time, for minutes, and the
//! machine itself promises nothing between an attempt that was refused and the next.

use std::time::Duration;

use surety_chain_client::GpuRound;
use surety_gpu_proofs::RoundStage;

use super::Desk;

/// How long that lasts where it is not asked for again, which it is with each block: nobody is kept from
/// promising by a desk that is lost.
const HELD: Duration = Duration::from_secs(60);

impl Desk {
    /// By the round of the best block: from its beginning until its run is made.
    pub(super) fn hold(&mut self, round: Option<&GpuRound>) {
        let is_needed = round.is_some_and(|round| self.is_to_run(round));
        self.held = is_needed.then(|| self.parts.machine.hold(HELD));
    }

    /// Whether a run is to be made, or is being made.
    fn is_to_run(&self, round: &GpuRound) -> bool {
        self.parts.takes_part
            && match round.stage {
                RoundStage::Seeding { .. } => true,
                RoundStage::Running { entropy, .. } => {
                    let key = (round.number, entropy);
                    self.skipped != Some(key) && self.journal.get(key).is_none()
                }
                _ => false,
            }
    }
}
