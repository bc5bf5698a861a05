//! What a provider shows of its receipts, and how it is asked for them.

use surety_channel_calls::{
    AccountId,
    message::{Asked, InBatch, NotShown, ToHolder},
    segment_of_end,
};
use surety_channels::ChunkStatement;

use crate::provider::{Fault, State};

impl State {
    /// It goes on with nothing that it has begun.
    pub fn abandon_all(&mut self) {
        let open: Vec<_> = self.payee.open_calls().collect();
        for (channel, nonce) in open {
            let step = self.payee.abandon(channel, nonce);
            self.act(step);
        }
    }

    /// Answers to one question.
    pub fn show(&mut self, asked: &Asked) -> Vec<ToHolder> {
        self.questions += 1;
        match &mut self.fault {
            Fault::BusyShowing(left @ 1..) => {
                *left -= 1;
                vec![ToHolder::NotShown(NotShown::Busy)]
            }
            _ => asked.iter().map(|held| self.shown_to(held)).collect(),
        }
    }

    /// Where a receipt is in a batch.
    fn shown_to(&self, held: &ChunkStatement<AccountId>) -> ToHolder {
        let Some(shown) = self.payee.open_receipt(held.channel, held.nonce) else {
            return ToHolder::NotShown(NotShown::NoBatch);
        };
        let (mut opening, receipt) = (shown.batched.opening, shown.batched.statement);
        if self.fault == Fault::ShowsOther {
            opening.price += 1;
        }
        let output = &self.outputs[&(held.channel, held.nonce)];
        let segment = segment_of_end(
            held,
            &receipt,
            &output[..output.len().min(receipt.bytes as usize)],
        );
        ToHolder::Receipt(InBatch {
            batch: shown.batch,
            opening,
            request: shown.request,
            receipt: held.end.is_none().then_some(receipt),
            segment: segment.filter(|_| self.fault != Fault::ShowsNoBeginning),
        })
    }
}
