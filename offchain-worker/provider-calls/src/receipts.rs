//! What holders of receipts are shown: where theirs are in batches. Whoever does not hold one is shown
//! nothing of it.

use std::{collections::BTreeSet, time::Duration};

use codec::Encode;
use surety_channel_calls::{
    AccountId,
    message::{Asked, InBatch, NotShown, ToHolder},
    payee::Shown,
    segment_of_end,
};
use surety_channels::{ChannelId, ChunkStatement, Nonce, extends};
use surety_proofs::SegmentOpening;
use tokio::time::timeout;

use crate::{
    line::Tell,
    points::{Points, Question},
    read,
};

/// For so long a holder waits for a place. They have them in the order in which they come.
const PLACE_TIME: Duration = Duration::from_secs(2);

/// A receipt stands twice in a question: its batch would be looked for, and its output read, each time.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("receipt {nonce} of channel {channel} is asked for twice at once")]
pub(crate) struct AskedTwice {
    channel: ChannelId,
    nonce: Nonce,
}

/// Whether a question names each receipt once, however much of it.
pub(crate) fn check_once(asked: &Asked) -> Result<(), AskedTwice> {
    let mut seen = BTreeSet::new();
    let mut asked = asked.iter().map(|held| (held.channel, held.nonce));
    match asked.find(|receipt| !seen.insert(*receipt)) {
        Some((channel, nonce)) => Err(AskedTwice { channel, nonce }),
        None => Ok(()),
    }
}

impl Points {
    /// Answers whoever holds receipts. Most of that costs no more than a look at what is in memory; of an
    /// answer of which not all was heard the output is read. Whoever takes long to hear it keeps nobody else
    /// waiting.
    pub(crate) async fn answer_holder(&self, asked: Asked, to: &mut dyn Tell) {
        for answer in self.answers(asked).await {
            if to.tell(&answer.encode()).await.is_err() {
                return;
            }
        }
    }

    async fn answers(&self, asked: Asked) -> Vec<ToHolder> {
        // First: who holds anything is known only once it was looked for.
        let place = timeout(PLACE_TIME, self.holders.acquire()).await;
        let Ok(Ok(_place)) = place else {
            return vec![ToHolder::NotShown(NotShown::Busy)];
        };
        let found = self.found(&asked).await;
        let (mut found, mut answers) = (found.into_iter(), Vec::new());
        for held in asked {
            let shown = match found.next().unwrap_or(Err(NotShown::NoBatch)) {
                Ok(shown) => self.where_it_is(&held, shown).await,
                Err(why) => Err(why),
            };
            let answer = shown.map_or_else(
                |why| {
                    let (channel, nonce) = (held.channel, held.nonce);
                    tracing::debug!(channel, nonce, %why, "whoever holds a receipt is shown nothing");
                    ToHolder::NotShown(why)
                },
                ToHolder::Receipt,
            );
            answers.push(answer);
        }
        answers
    }

    /// Where they are. The desk signs nothing while it looks: so it has one question at a time, and goes on
    /// with everything else between two.
    async fn found(&self, asked: &Asked) -> Vec<Result<Shown, NotShown>> {
        let Ok(_turn) = self.turn.acquire().await else {
            return Vec::new();
        };
        let about = asked.clone();
        let found = self.ask_desk(|back| Question::Receipts(about, back)).await;
        found.unwrap_or_default()
    }

    async fn where_it_is(&self, held: &ChunkStatement<AccountId>, shown: Shown) -> Result<InBatch, NotShown> {
        let receipt = shown.batched.statement;
        let segment = match held.bytes < receipt.bytes {
            true => Some(self.goes_on(held, &receipt).await?),
            false => None,
        };
        Ok(InBatch {
            batch: shown.batch,
            opening: shown.batched.opening,
            request: shown.request,
            receipt: held.end.is_none().then_some(receipt),
            segment,
        })
    }

    /// That a receipt goes on from what somebody holds, who may have made that up.
    async fn goes_on(
        &self,
        held: &ChunkStatement<AccountId>,
        receipt: &ChunkStatement<AccountId>,
    ) -> Result<SegmentOpening, NotShown> {
        let output = read::output(&self.parts, (receipt.channel, receipt.nonce)).await;
        let output = output.map_err(|error| {
            tracing::error!(%error, "an answer cannot be read: it will be demanded");
            NotShown::Lost
        })?;
        let (held, receipt) = (held.clone(), receipt.clone());
        // All of it is hashed.
        let shown = tokio::task::spawn_blocking(move || {
            let segment = segment_of_end(&held, &receipt, &output)?;
            (extends(&held, &receipt, Some(&segment)) == Some(true)).then_some(segment)
        });
        shown.await.ok().flatten().ok_or(NotShown::Lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(nonce: Nonce, bytes: u32) -> ChunkStatement<AccountId> {
        ChunkStatement {
            channel: 3,
            payee: AccountId::new([1; 32]),
            nonce,
            request: Default::default(),
            bytes,
            output: Default::default(),
            units: 1,
            price: 1,
            end: None,
        }
    }

    #[test]
    fn a_question_that_names_a_receipt_twice_is_none_however_much_of_it_it_says_each_time() {
        let check = |all: Vec<_>| check_once(&Asked::truncate_from(all));
        assert_eq!(check(vec![held(1, 4), held(2, 4), held(0, 4)]), Ok(()));
        let (channel, nonce) = (3, 1);
        let twice = Err(AskedTwice { channel, nonce });
        assert_eq!(check(vec![held(1, 4), held(2, 4), held(1, 8)]), twice);
    }
}
