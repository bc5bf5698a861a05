//! The one task that owns the book. It takes blocks and what comes back, has promises written, and then sends
//! what is due.

use std::{collections::BTreeMap, sync::Arc};

use sp_core::H256;
use surety_chain_client::{BlockNumber, BlockRef, Call, ChainError, DisputeRecord, When};
use surety_channel_calls::{Row, Store};
use surety_dispute_game::bisection::Move;
use surety_engine::EngineError;
use surety_types::trust::DisputeId;
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};

use crate::{
    AuditsError, Parts,
    book::{Action, BatchKey, Book, Outcome, Purpose, Sight, Stake, Work},
    errands::{self, Errands, Unsent},
    games::{self, Due, Games},
    shown::Receipt,
    sight, work,
};

/// What comes back.
enum Event {
    Worked(BatchKey, H256, Outcome),
    Sent(Purpose, Result<BlockNumber, Unsent>),
    Moved(DisputeId, u32, Result<Move, EngineError>),
}

/// What comes next.
enum Next {
    Block(Option<BlockRef>),
    Back(Result<Event, JoinError>),
    Stop,
}

pub(crate) struct Desk {
    parts: Arc<Parts>,
    book: Book,
    errands: Errands,
    games: Games,
    away: JoinSet<Event>,
    /// Rows that are not durable yet. The newest of each batch has all of it.
    unwritten: BTreeMap<Vec<u8>, (BatchKey, Row)>,
    block: BlockNumber,
    is_first: bool,
}

impl Desk {
    pub(crate) fn new(parts: Arc<Parts>, book: Book) -> Self {
        Self {
            parts,
            book,
            errands: Errands::default(),
            games: Games::default(),
            away: JoinSet::new(),
            unwritten: BTreeMap::new(),
            block: 0,
            is_first: true,
        }
    }

    /// Goes on until it is to stop, or there are no more blocks.
    pub(crate) async fn run(
        mut self,
        mut newest: watch::Receiver<Option<BlockRef>>,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), AuditsError> {
        loop {
            let next = tokio::select! {
                changed = newest.changed() => match changed {
                    Ok(()) => Next::Block(*newest.borrow_and_update()),
                    Err(_) => Next::Stop,
                },
                Some(event) = self.away.join_next() => Next::Back(event),
                _ = stop.wait_for(|stop| *stop) => Next::Stop,
            };
            match next {
                Next::Block(Some(block)) => self.see(block).await?,
                Next::Block(None) => {}
                Next::Back(Ok(event)) => self.back(event).await?,
                Next::Back(Err(error)) => {
                    tracing::error!(%error, "a part of an audit has ended by a defect");
                }
                Next::Stop => break,
            }
        }
        self.away.shutdown().await;
        Ok(())
    }

    async fn see(&mut self, block: BlockRef) -> Result<(), AuditsError> {
        self.block = block.number;
        let sight = match sight::read(&self.parts, &self.book, block, self.is_first).await {
            Ok(sight) => sight,
            // There is a newer one already, or there are no channels yet.
            Err(error @ (ChainError::Pruned { .. } | ChainError::Outgrown { .. })) => {
                tracing::debug!(%error, "a block says nothing of batches");
                return Ok(());
            }
            Err(error) => {
                tracing::warn!(%error, "batches cannot be read, trying again with the next block");
                return Ok(());
            }
        };
        self.is_first = false;
        self.write().await?;
        let signer = self.parts.signer.clone();
        let draw = move |input: &_| {
            let drawn = signer.draw_points(input);
            drawn
                .inspect_err(|error| tracing::error!(%error, "cannot draw points"))
                .ok()
        };
        for action in self.book.see(&sight, &draw) {
            match action {
                Action::Work(work) => self.start(*work),
                Action::Send(purpose @ Purpose::Announce(_), call) => {
                    self.announce(purpose, *call, sight.stake)
                }
                Action::Send(purpose, call) => self.send(purpose, *call),
                Action::Forget(row) => self.forget(row),
            }
        }
        self.play(&sight, block).await;
        self.write().await
    }

    fn start(&mut self, work: Work) {
        let parts = self.parts.clone();
        self.away.spawn(async move {
            let outcome = work::run(&parts, &work).await;
            Event::Worked((work.view.provider, work.view.batch), work.seed, outcome)
        });
    }

    fn announce(&mut self, purpose: Purpose, call: Call, stake: Option<Stake>) {
        if self.errands.take(&purpose, self.block) {
            let parts = self.parts.clone();
            self.away.spawn(async move {
                let sent = errands::announce(&parts, call, stake).await;
                Event::Sent(purpose, sent)
            });
        }
    }

    fn send(&mut self, purpose: Purpose, call: Call) {
        if self.errands.take(&purpose, self.block) {
            let parts = self.parts.clone();
            self.away.spawn(async move {
                let sent = errands::send(&parts, call).await;
                Event::Sent(purpose, sent)
            });
        }
    }

    fn forget(&mut self, row: Row) {
        if let Ok(key) = codec::DecodeAll::decode_all(&mut &*row.key) {
            self.unwritten.insert(row.key.clone(), (key, row));
        }
    }

    /// Plays about receipts that were disputed.
    async fn play(&mut self, sight: &Sight, block: BlockRef) {
        if self.book.disputed().next().is_none() {
            self.games.keep(&[]);
            return;
        }
        let disputes = match self.parts.chain.disputes(When::At(block.hash)).await {
            Ok(disputes) => disputes,
            Err(error) => return tracing::warn!(%error, "disputes about receipts cannot be read"),
        };
        let open: Vec<DisputeId> = disputes.iter().map(|(id, _)| *id).collect();
        self.games.keep(&open);
        let ours = [self.parts.signer.account(), &self.parts.stash];
        for due in games::due(&disputes, &ours, self.book.disputed(), sight.time) {
            match due {
                Due::Advance(dispute) => {
                    self.send(Purpose::Advance(dispute), Call::AdvanceDispute { dispute })
                }
                Due::Join(task, provider) => {
                    let purpose = Purpose::Challenge(task, provider.clone());
                    self.send(purpose, Call::Challenge { task, provider });
                }
                Due::Move(dispute, record, receipt) => match self.games.found(dispute, record.moves) {
                    Ok(played) => {
                        let number = record.moves;
                        let call = Call::Play {
                            dispute,
                            number,
                            played,
                        };
                        self.send(Purpose::Play(dispute), call);
                    }
                    Err(true) => self.look_for_move(dispute, *record, *receipt),
                    Err(false) => {}
                },
            }
        }
    }

    fn look_for_move(&mut self, dispute: DisputeId, record: DisputeRecord, receipt: Receipt) {
        let (parts, view) = (self.parts.clone(), self.games.view(&receipt));
        self.away.spawn(async move {
            let number = record.moves;
            let found = games::find(&parts, view, receipt, record).await;
            Event::Moved(dispute, number, found)
        });
    }

    async fn back(&mut self, event: Event) -> Result<(), AuditsError> {
        match event {
            Event::Worked(key, seed, outcome) => {
                if let Some(row) = self.book.worked(&key, seed, outcome) {
                    self.unwritten.insert(row.key.clone(), (key, row));
                }
                self.write().await?;
            }
            Event::Sent(purpose, sent) => {
                let went = errands::went(&purpose, &sent);
                match &sent {
                    Ok(block) => tracing::info!(?purpose, block, "carried out"),
                    Err(error) => tracing::warn!(?purpose, ?went, %error, "a call about points has failed"),
                }
                self.errands.back(&purpose, &sent, self.block);
                self.book.went(&purpose, went);
            }
            Event::Moved(dispute, number, moved) => {
                if let Err(error) = &moved {
                    tracing::error!(dispute, number, %error, "no move can be found");
                }
                self.games.note(dispute, number, moved.ok());
            }
        }
        Ok(())
    }

    /// Makes rows durable. What is not is tried again with the next block, and nothing is announced before.
    async fn write(&mut self) -> Result<(), AuditsError> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        let rows: Vec<Row> = self.unwritten.values().map(|(_, row)| row.clone()).collect();
        let store = self.parts.store.clone();
        let written = tokio::task::spawn_blocking(move || store.put(&rows)).await;
        match written.map_err(|error| AuditsError::Internal(error.to_string()))? {
            Ok(()) => {
                for (_, (key, _)) in std::mem::take(&mut self.unwritten) {
                    self.book.written(&key);
                }
            }
            Err(error) => tracing::error!(%error, "no points are announced before the journal takes them"),
        }
        Ok(())
    }
}
