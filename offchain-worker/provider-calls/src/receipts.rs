//! What holders of receipts are shown: where theirs is in a batch. Whoever does not hold it is shown nothing.

use surety_channel_calls::{
    AccountId,
    message::{InBatch, NotShown, ToHolder},
};
use surety_channels::ChunkStatement;

use crate::points::{Points, Question};

impl Points {
    /// Answers whoever holds a receipt. It costs no more than a look at what is in memory.
    pub(crate) async fn answer_holder(&self, held: Box<ChunkStatement<AccountId>>) -> ToHolder {
        let (channel, nonce, is_whole) = (held.channel, held.nonce, held.end.is_some());
        let shown = self.ask_desk(|back| Question::Receipt(held, back)).await;
        match shown.unwrap_or(Err(NotShown::NoBatch)) {
            Ok(shown) => ToHolder::Receipt(InBatch {
                batch: shown.batch,
                opening: shown.batched.opening,
                request: shown.request,
                receipt: (!is_whole).then_some(shown.batched.statement),
            }),
            Err(why) => {
                tracing::debug!(channel, nonce, %why, "whoever holds a receipt is shown nothing");
                ToHolder::NotShown(why)
            }
        }
    }
}
