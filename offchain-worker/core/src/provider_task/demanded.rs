//! Showing on the chain what is demanded of us, and having it again where it is lost.

use std::collections::BTreeMap;

use surety_types::{
    model::Operation,
    trust::{Content, ContentPart},
};

use super::{ProviderTask, Want};
use crate::{AccountId, BlockNumber, EffectKind, TaskSnapshot, places::Wanted};

/// Most parts of what was demanded that are on their way to the chain at once.
const SUPPLIED_AT_ONCE: usize = 8;

impl ProviderTask {
    /// Content that was to be shown is no longer here.
    pub fn lose(&mut self, content: Content) {
        if self.lost.insert(content) {
            self.input_ready = false;
            self.attempts.forget(EffectKind::Fetch);
            self.attempts.forget(EffectKind::Compute);
        }
    }

    /// Content is here, as it has to be.
    pub fn find(&mut self, content: Content) {
        self.lost.remove(&content);
    }

    /// What we have to show on the chain. Where the journal was lost, or the content, it is computed again.
    ///
    /// Of a generation one part is shown after the other: whoever demands it need not know how many there
    /// are, and the last one stands for those that there are not.
    pub(super) fn demanded(&self, seen: &TaskSnapshot, stash: &AccountId, clock: BlockNumber) -> Vec<Wanted> {
        let ours = || seen.demands.iter().filter(|(provider, _)| provider == stash);
        let parts = ours().flat_map(|(_, demand)| demand.parts.iter().map(|part| (*part, demand.until)));
        let mut wanted = BTreeMap::new();
        for (part, until) in parts {
            let soonest = wanted.entry(part).or_insert(until);
            *soonest = until.min(*soonest);
        }
        // Who demands more later does not get ahead of those who wait.
        let mut wanted: Vec<_> = wanted.into_iter().map(|(part, until)| (until, part)).collect();
        wanted.sort_unstable();
        if seen.task.spec.operation == Operation::Generate {
            let is_output = |demanded: &&(BlockNumber, ContentPart)| demanded.1.content == Content::Output;
            let next = wanted.iter().find(is_output).copied();
            wanted.retain(|demanded| !is_output(&demanded) || Some(*demanded) == next);
        }
        let of_part = |(until, part): (BlockNumber, ContentPart)| {
            let is_here = match part.content {
                Content::Input => self.input_ready || self.result.is_some(),
                Content::Output => self.result.is_some(),
                Content::Leaves => self.result.is_some() && self.leaves.is_some(),
            };
            let is_here = is_here && !self.lost.contains(&part.content);
            let kind = match (is_here, self.want_result(until)) {
                (true, _) => EffectKind::Supply(part),
                (false, Want::Do(kind, _)) if clock <= until => kind,
                _ => return None,
            };
            Some(Wanted::new(kind, until))
        };
        let all = wanted.into_iter().filter_map(of_part);
        all.take(SUPPLIED_AT_ONCE).collect()
    }

    /// By when what is demanded of us has to be computed again, soonest first; nothing where all of it is
    /// here, or only the input is to be fetched again.
    pub fn computed_again_by(
        &self,
        seen: &TaskSnapshot,
        stash: &AccountId,
        clock: BlockNumber,
    ) -> Option<BlockNumber> {
        let is_lost = self.result.is_none()
            || self.leaves.is_none()
            || self.lost.iter().any(|content| *content != Content::Input);
        let wanted = self.demanded(seen, stash, clock).into_iter();
        let again = wanted.filter(|wanted| matches!(wanted.kind, EffectKind::Fetch | EffectKind::Compute));
        again.map(|wanted| wanted.by).min().filter(|_| is_lost)
    }
}
