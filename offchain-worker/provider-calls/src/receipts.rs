//! What holders of receipts are shown: where theirs are in batches. Whoever does not hold one is shown
//! nothing of it.

use codec::Encode;
use surety_channel_calls::{
    AccountId,
    message::{Asked, InBatch, NotShown, ToHolder},
    payee::Shown,
    segment_of_end,
};
use surety_channels::{ChunkStatement, extends};
use surety_proofs::SegmentOpening;

use crate::{
    line::Tell,
    points::{Points, Question},
    read,
};

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
        let about = asked.clone();
        let found = self.ask_desk(|back| Question::Receipts(about, back)).await;
        let found = found.unwrap_or_default();
        // Who holds nothing takes no place from those who do.
        let place = match found.iter().any(Result::is_ok) {
            true => self.holders.try_acquire().map(Some),
            false => Ok(None),
        };
        let Ok(_place) = place else {
            return vec![ToHolder::NotShown(NotShown::Busy)];
        };
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
