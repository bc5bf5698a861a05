//! Says so where the provider's lock is for terms that the chain has no longer: nothing new can be sold then,
//! and its stash alone can change that.

use surety_chain_client::{BlockNumber, StandingView};
use surety_types::BLOCK_SECONDS;

use crate::{desk::Desk, sight::Sight};

/// It is said again after an hour: it costs all that could be earned meanwhile.
pub(crate) const AGAIN: BlockNumber = 3_600 / BLOCK_SECONDS;

/// Whether the provider sells by the present terms, as far as that was said.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    said: Option<BlockNumber>,
}

/// What is to be said of it.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    /// The lock is below this, in plancks; nothing where no lock would do.
    Old { needed: Option<u128> },
    /// It is enough again.
    Present,
}

impl Terms {
    fn word(&mut self, standing: Option<&StandingView>, block: BlockNumber) -> Option<Word> {
        let Some(standing) = standing.filter(|standing| standing.has_old_terms()) else {
            return self.said.take().map(|_| Word::Present);
        };
        let is_due = self.said.is_none_or(|said| block.saturating_sub(said) >= AGAIN);
        is_due.then(|| {
            self.said = Some(block);
            Word::Old {
                needed: standing.needed_lock,
            }
        })
    }
}

impl Desk {
    /// Says whether the provider's lock is what its cap needs by the present terms, where that has changed.
    pub(crate) fn look_at_terms(&mut self, sight: &Sight) {
        let standing = sight.standing.as_ref();
        let is_old = standing.is_some_and(StandingView::has_old_terms);
        self.parts.metrics.old_terms.set(is_old.into());
        let lock = standing.map_or(0, |standing| standing.lock);
        match self.watch.terms.word(standing, sight.block) {
            Some(Word::Old { needed: Some(needed) }) => tracing::error!(
                lock,
                needed,
                "the chain's terms have changed, and the lock is below what the cap needs now (in plancks): nothing new is \
                 sold. With the stash's key, run: surety provider stand"
            ),
            Some(Word::Old { needed: None }) => tracing::error!(
                lock,
                "the chain's terms have changed, and no lock would do now, as too few verifiers are able to audit: nothing \
                 new is sold. Wait, and then run with the stash's key: surety provider stand"
            ),
            Some(Word::Present) => tracing::info!(lock, "the lock is enough by the present terms again"),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use surety_chain_client::sample;

    use super::*;

    fn standing(lock: u128, needed_lock: Option<u128>) -> Option<StandingView> {
        Some(StandingView {
            lock,
            needed_lock,
            ..sample::channels::standing()
        })
    }

    #[test]
    fn old_terms_are_said_at_once_and_every_hour_until_the_lock_is_enough_again() {
        let mut terms = Terms::default();
        let mut said = |standing: Option<StandingView>, block| terms.word(standing.as_ref(), block);
        let old = |needed| Some(Word::Old { needed });
        assert_eq!(said(standing(10, Some(10)), 1), None);
        assert_eq!(said(standing(10, Some(11)), 2), old(Some(11)));
        assert_eq!(said(standing(10, Some(12)), 3), None);
        assert_eq!(said(standing(10, None), AGAIN + 2), old(None));
        assert_eq!(said(standing(12, Some(12)), AGAIN + 3), Some(Word::Present));
        assert_eq!(said(standing(12, Some(12)), AGAIN + 4), None);
        assert_eq!(said(standing(12, Some(13)), AGAIN + 5), old(Some(13)));
        // Who stands behind nothing has no terms.
        assert_eq!(said(standing(0, Some(1)), AGAIN + 6), Some(Word::Present));
        assert_eq!(said(None, AGAIN + 7), None);
    }
}
