//! What providers do not serve, demanded and shown.

use sp_core::crypto::AccountId32;
use surety_proofs::{PartOpening, parts};
use surety_types::{
    TaskId,
    task::MemberProgress,
    trust::{Content, ContentPart, DemandedParts, OutputShown},
};

use super::state::{Applied, FakeState, fault, task_event};
use crate::{BlockNumber, DemandRecord};

/// Blocks in which a provider has to show what was demanded. The test keeps to it, or does not.
const SUPPLY_WINDOW: BlockNumber = 20;

impl FakeState {
    /// An auditor's, or a client's. Nobody pays.
    pub(super) fn demand(
        &mut self,
        who: &AccountId32,
        task: TaskId,
        provider: &AccountId32,
        parts: &DemandedParts,
    ) -> Applied {
        let demander = self.agents.get(who).unwrap_or(who).clone();
        let open = self.demands.entry((task, provider.clone())).or_default();
        if open.iter().any(|open| open.demander == demander) {
            return Err(fault("Results", "AlreadyDemanded"));
        }
        let round = self.rounds.get_mut(&task);
        let round = round.ok_or_else(|| fault("Results", "UnknownRound"))?;
        round.demands = round.demands.saturating_add(1);
        open.push(DemandRecord {
            demander,
            by: who.clone(),
            parts: parts.clone(),
            price: 0,
            until: self.number.saturating_add(SUPPLY_WINDOW),
        });
        Ok(vec![task_event("Results", "DataDemanded", task)])
    }

    /// Parts have to be shown in their order.
    pub(super) fn supply(
        &mut self,
        who: &AccountId32,
        task: TaskId,
        (content, bytes): (Content, u32),
        opening: &PartOpening,
    ) -> Applied {
        let provider = self.stash_of(who)?;
        let hash = opening
            .content(bytes)
            .ok_or_else(|| fault("Results", "WrongSegment"))?;
        let last = parts(bytes).saturating_sub(1);
        let is_it = |part: &ContentPart| part.content == content && part.part.min(last) == opening.part;
        let key = (task, provider.clone());
        let open = self.demands.entry(key.clone()).or_default();
        if !open.iter().any(|open| open.parts.iter().any(is_it)) {
            return Err(fault("Results", "WrongSegment"));
        }
        let before = open.len();
        for demand in open.iter_mut() {
            demand.parts.retain(|part| !is_it(part));
        }
        open.retain(|demand| !demand.parts.is_empty());
        let met = u32::try_from(before.saturating_sub(open.len())).unwrap_or(u32::MAX);
        if let Some(round) = self.rounds.get_mut(&task) {
            round.demands = round.demands.saturating_sub(met);
        }
        let shown = self.shown.entry((task, hash)).or_default();
        shown.extend(opening.bytes.iter());
        let is_sealed = matches!(
            self.member(&provider, task)?.progress,
            MemberProgress::Committed(_)
        );
        if let Some(note) = self
            .commit_notes
            .get_mut(&key)
            .filter(|_| is_sealed && content == Content::Output)
        {
            note.shown = Some(OutputShown {
                content: hash,
                bytes,
                demander: provider,
            });
        }
        Ok(vec![task_event("Results", "DataSupplied", task)])
    }
}
