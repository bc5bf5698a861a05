//! What has to be shown, held and redeemed, by what finalised blocks say.

use surety_chain_client::{AccountId, Call};
use surety_channel_calls::{
    PayeeEffect, Step,
    message::NotShown,
    payee::{Duty, RedeemPolicy, Shown},
};
use surety_channels::{
    BatchNumber, ChunkStatement, End, counted_for,
    view::{Says, Wanted},
};

use crate::{
    desk::Desk,
    errands::{Errand, Purpose},
    front::CallId,
    points::Question,
    sight::Sight,
};

impl Desk {
    /// Answers that keep back the receipts of a channel that ends.
    pub(crate) fn end_in_time(&mut self, sight: &Sight, step: &mut Step<PayeeEffect>) {
        let notice = sight.notice(self.parts.config.margin);
        for seen in self.watch.channels.values() {
            step.join(self.payee.end_in_time(seen, sight.time, notice));
        }
    }

    /// Shows what is demanded, which pays what that has held back. The receipts that a batch is needed for
    /// now, by their deadlines; none while that has time. Each that is shown or batched alone costs a fee:
    /// while money is short all of it waits for its last quarter. Who ends lets nothing wait.
    pub(crate) fn meet_demands(
        &mut self,
        sight: &Sight,
        step: &mut Step<PayeeEffect>,
        due: &mut Vec<Errand>,
    ) -> Vec<CallId> {
        let (mut is_urgent, mut unbatched) = (false, Vec::new());
        let waits = self.watch.float.is_short() && self.parts.takes_new;
        let window = sight.rules.supply_window;
        let late = (window / 4).max(self.parts.config.margin.saturating_mul(2));
        let mut demands: Vec<_> = sight.demands.iter().collect();
        demands.sort_by_key(|demand| demand.until);
        for demand in demands {
            let left = demand.until.saturating_sub(sight.time);
            let found = match demand.wanted {
                Wanted::Receipt {
                    channel, nonce, says, ..
                } => {
                    let shown = self.payee.open_receipt(channel, nonce);
                    if shown.is_none() && self.payee.request(channel, nonce).is_some() {
                        // An older copy would contradict what was said since. Whether it is one shows before.
                        if self.payee.is_doubted(channel) && left > late {
                            continue;
                        }
                        if left <= window / 2 {
                            self.end_what_keeps_back((channel, nonce), sight, step);
                        }
                        // Without a place to spare all that was signed goes into batches together: otherwise
                        // each that demands something takes a place.
                        let is_all = left <= window / 2 && self.payee.open_calls().next().is_none();
                        is_urgent |= (sight.has_place() && !waits) || is_all || left <= late;
                        unbatched.push((demand.until, (channel, nonce)));
                        continue;
                    }
                    shown.map(|shown| shown_receipt(demand.demander.clone(), &says, shown))
                }
                Wanted::Point { batch, point } => {
                    let shown = self.at_point(sight, batch, point);
                    shown.map(|shown| shown_point(demand.demander.clone(), batch, shown))
                }
            };
            let Some(mut errand) = found else {
                let wanted = &demand.wanted;
                if self.is_kept(wanted) {
                    tracing::error!(
                        ?wanted,
                        left,
                        "what is demanded cannot be read out of the journal of calls just now: that is tried \
                         again with each block, and the lock is lost if it is not shown in time"
                    );
                    continue;
                }
                tracing::error!(
                    ?wanted,
                    left,
                    "what is demanded is not in this journal of calls: if another file has it, put that one back, but no older copy, or the lock is lost"
                );
                continue;
            };
            if waits && left > late {
                continue;
            }
            errand.is_pressing = left <= self.parts.config.margin;
            due.push(errand);
        }
        unbatched.sort_unstable();
        let calls = unbatched.into_iter().map(|(_, call)| call);
        calls.filter(|_| is_urgent).collect()
    }

    /// Whether the journal has what is wanted. Where that is not found it cannot be read just now.
    fn is_kept(&self, wanted: &Wanted) -> bool {
        match wanted {
            Wanted::Receipt { channel, nonce, .. } => self.payee.knows(*channel, *nonce),
            Wanted::Point { batch, .. } => self.payee.batches().any(|(number, _)| number == *batch),
        }
    }

    /// Ends what keeps back the receipt of a request; without a place to spare, everything.
    fn end_what_keeps_back(&mut self, (channel, nonce): CallId, sight: &Sight, step: &mut Step<PayeeEffect>) {
        let is_full = !sight.has_place();
        let open: Vec<CallId> = self.payee.open_calls().collect();
        for (of, open) in open {
            if is_full || (of == channel && open <= nonce) {
                step.join(self.payee.abandon(of, open));
            }
        }
    }

    /// Answers what has to be known to show verifiers what they have drawn. Whoever asks may be gone.
    pub(crate) fn tell_of_batches(&self, question: Question) {
        let Some(sight) = &self.watch.sight else { return };
        match question {
            Question::Batch(batch, back) => {
                let found = sight.batches.iter().find(|view| view.batch == batch);
                back.send(found.map(|view| (view.clone(), sight.time))).ok();
            }
            Question::Point(batch, point, back) => {
                back.send(self.at_point(sight, batch, point)).ok();
            }
            Question::Receipts(asked, back) => {
                back.send(asked.iter().map(|said| self.receipt_of(said)).collect())
                    .ok();
            }
        }
    }

    /// Where a receipt is that somebody holds, all or the first part of it: it says what was asked, which
    /// nobody else knows.
    fn receipt_of(&self, said: &ChunkStatement<AccountId>) -> Result<Shown, NotShown> {
        let is_it = |receipt: &ChunkStatement<AccountId>| {
            let is_longer = said.end.is_none() && said.bytes > 0 && receipt.covers(said);
            receipt == said || (is_longer && receipt.request == said.request)
        };
        let (channel, nonce) = (said.channel, said.nonce);
        // The journal is not read for whoever does not know what was asked.
        if !self.payee.may_be_request(channel, nonce, said.request) {
            return Err(NotShown::Lost);
        }
        // All batches are only looked through for whoever holds it.
        match self.payee.receipt_of(channel, nonce) {
            Some(receipt) if is_it(receipt) => {
                let shown = self.payee.open_receipt(channel, nonce);
                shown.ok_or(NotShown::NoBatch)
            }
            None if self.payee.request(channel, nonce).is_some() => Err(NotShown::NoBatch),
            Some(_) | None => Err(NotShown::Lost),
        }
    }

    /// The receipt that a point is in. A batch may be on the chain twice.
    fn at_point(&self, sight: &Sight, batch: BatchNumber, point: u128) -> Option<Shown> {
        self.payee.open_point(batch, point).or_else(|| {
            let twin = sight.batches.iter().find(|view| view.batch == batch)?;
            let mut ours = self.payee.batches();
            let (number, _) = ours.find(|(_, root)| *root == twin.window.root)?;
            self.payee.open_point(number, point)
        })
    }

    /// What has to be done so that channels are paid. Whether a batch is needed for that.
    pub(crate) fn do_duties(&mut self, sight: &Sight, due: &mut Vec<Errand>) -> bool {
        let policy = RedeemPolicy {
            // Who ends leaves nothing.
            amount_min: match self.parts.takes_new {
                true => self.parts.config.redeem_min,
                false => 1,
            },
            margin: self.parts.config.margin,
            supply: sight.rules.supply_window,
            redeem_by: counted_for(sight.rules.redeem_by, sight.rules.supply_window),
        };
        let windows = sight.windows();
        let mut is_urgent = false;
        for (id, seen) in self.watch.channels.range(sight.since_channel()..) {
            for duty in self.payee.duties(seen, &windows, sight.time, &policy) {
                match duty {
                    Duty::Batch => is_urgent = true,
                    Duty::Hold {
                        channel,
                        batch,
                        opening,
                    } => {
                        let call = Call::Hold {
                            channel,
                            batch,
                            opening,
                        };
                        due.push(Errand::new(Purpose::Hold(channel), call));
                    }
                    Duty::Redeem {
                        voucher,
                        openings,
                        amount,
                    } => {
                        let is_late =
                            voucher.voucher.expiry < sight.time && seen.purse.held_until < sight.time;
                        let Ok(batches) = openings.try_into() else {
                            continue;
                        };
                        if is_late {
                            continue;
                        }
                        tracing::debug!(channel = *id, amount, "a voucher is redeemed");
                        let mut errand = Errand::new(Purpose::Redeem(*id), Call::Redeem { voucher, batches });
                        errand.is_pressing = seen.purse.closing.is_some();
                        due.push(errand);
                    }
                }
            }
        }
        is_urgent
    }
}

/// Where its payer has heard less than it says, that it goes on from there is shown with it.
fn shown_receipt(demander: AccountId, says: &Says, shown: Shown) -> Errand {
    let statement = &shown.batched.statement;
    let of = (statement.channel, statement.nonce);
    let segment = match says {
        Says::GoesOn(heard) => heard.segment_in(statement),
        Says::This(_) => None,
    };
    let call = Call::ShowReceipt {
        demander: demander.clone(),
        batch: shown.batch,
        receipt: Box::new(shown.batched),
        shown: None,
    };
    Errand {
        segment_of: segment.map(|segment| (of, segment)),
        ..Errand::new(Purpose::Show(demander, of), call)
    }
}

/// Of a generation that a stop id has ended the first segment is shown with it. All points of a demander that
/// are in one receipt are shown at once.
fn shown_point(demander: AccountId, batch: BatchNumber, shown: Shown) -> Errand {
    let statement = &shown.batched.statement;
    let stops = statement.end.is_some_and(|end| end.how == End::Stop);
    let of = (statement.channel, statement.nonce);
    let call = Call::ShowPoint {
        demander: demander.clone(),
        batch,
        receipt: Box::new(shown.batched),
        request: Box::new(shown.request),
        head: None,
    };
    Errand {
        segment_of: stops.then_some((of, 0)),
        ..Errand::new(Purpose::ShowPoint(demander, batch, of), call)
    }
}
