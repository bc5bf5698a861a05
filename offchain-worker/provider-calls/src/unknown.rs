//! Batches of this provider's that the chain has, and its journal has not: that is an older copy, or a new
//! one, and goes on with nothing that may have been said since. Or a node is wrong, which ends nothing for
//! good.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use surety_chain_client::{BatchView, BlockNumber, Hash};
use surety_channel_calls::{PayeeEffect, Step};
use surety_channels::{BatchNumber, ChannelId};

use crate::{desk::Desk, sight::Sight, watch::GONE_BLOCKS};

/// A batch: its number, and the hash of its root.
type Name = (BatchNumber, Hash);

fn name(view: &BatchView) -> Name {
    (view.batch, view.window.root.hash)
}

/// Those that are said to be there by the newest block.
#[derive(Default)]
pub(crate) struct Unknown(BTreeMap<Name, Said>);

/// When one was said to be there first.
struct Said {
    block: BlockNumber,
    subscription: u64,
    /// Channels below this one were there by then.
    channels: ChannelId,
}

impl Unknown {
    /// Whether a batch is said to be there, and it is not sure yet.
    pub(crate) fn is_in_doubt(&self) -> bool {
        !self.0.is_empty()
    }
}

impl Said {
    /// Whether it is for as long as what is missing has to be, and over a subscription that was made since.
    fn is_sure(&self, sight: &Sight) -> bool {
        let is_long = sight.block.saturating_sub(self.block) >= GONE_BLOCKS;
        is_long && sight.subscription > self.subscription
    }
}

impl Desk {
    /// As soon as such a batch is said to be there nothing is taken over the channels that are there; that is
    /// written down once it is sure.
    pub(crate) fn find_unknown(&mut self, sight: &Sight, step: &mut Step<PayeeEffect>) {
        let was_in_doubt = self.watch.unknown.is_in_doubt();
        self.hear_of_unknown(sight);
        let unknown = &mut self.watch.unknown.0;
        let sure = unknown.iter().filter(|(_, said)| said.is_sure(sight));
        let sure: Vec<_> = sure.map(|(of, said)| (*of, said.channels)).collect();
        for (of, channels) in &sure {
            unknown.remove(of);
            tracing::error!(
                batch = of.0,
                "the chain still has a batch that the journal of calls has not: nothing is taken or batched over \
                 the channels that were there, for good"
            );
            step.join(self.payee.miss_batch(of.0, *channels));
        }
        if was_in_doubt && unknown.is_empty() && sure.is_empty() {
            tracing::info!("no node says any more that the journal of calls lacks a batch");
        }
        let doubted = unknown.values().map(|said| said.channels).max();
        self.payee.doubt(doubted.unwrap_or(0));
    }

    fn hear_of_unknown(&mut self, sight: &Sight) {
        let since = sight.standing.as_ref().map_or(0, |standing| standing.since_batch);
        let kept = sight.batches.iter().filter(|view| view.batch >= since);
        let kept: Vec<&BatchView> = kept.collect();
        let channels = sight.channels.iter().map(|view| view.channel.saturating_add(1));
        let channels = channels.max().unwrap_or(0);
        let there: BTreeSet<Name> = kept.iter().map(|view| name(view)).collect();
        let unknown = &mut self.watch.unknown.0;
        unknown.retain(|of, _| there.contains(of));
        for view in kept {
            let Entry::Vacant(place) = unknown.entry(name(view)) else {
                continue;
            };
            if !self.payee.lacks_batch(view.batch, &view.window.root) {
                continue;
            }
            place.insert(Said {
                block: sight.block,
                subscription: sight.subscription,
                channels,
            });
            tracing::error!(
                batch = view.batch,
                "by what a node says the chain has a batch that the journal of calls has not: it is an older copy, \
                 or a new file. Nothing is taken over the channels that are there, and nothing batched before it \
                 has to be; put the newest file back if there is one"
            );
            self.again.send_modify(|times| *times = times.saturating_add(1));
        }
    }
}
