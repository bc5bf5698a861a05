//! How rounds begin, go on and end.
//!
//! - Triggered by each block's beginning, once what the author of the one before has given is known. A step
//!   reads one such output at most.
//! - Idle: begins a round when the output says so, once in `RoundEvery` blocks on average, so that nobody
//!   knows when to have a device there.
//! - Seeding, Drawing: waits for the outputs of [`AUTHORS`] blocks, however long that takes.
//! - Running: ends with the first block whose time is beyond the window. Each block within it notes at its
//!   end whether there was room for one more commitment. The round counts for who has missed it if there was
//!   in `BlocksMin` blocks, and in one of the last tenth of the window, when all commit.
//! - Opening: ends by the clock, which stands still while finality does. Each block that has no room for one
//!   more showing makes it a block longer, up to `LongerMax`: showings are no calls that room is kept for.
//! - Providers are not walked through: what a round has changed for them is found when it is asked for.

use codec::Encode;
use frame_support::traits::{Get, Time};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use sp_runtime::traits::{BlockNumberProvider, One, Saturating};
use surety_types::traits::BlockEntropy;

use crate::{
    AUTHORS, Config, CurrentRound, Event, Gathered, Longer, Pallet, Round, RoundsBegun, RoundsOver, Stage,
};

/// Whoever uses its time commits in the last part of the window, of so many.
const LAST_PART: u64 = 10;

impl<T: Config> Pallet<T> {
    pub(crate) fn advance(now: BlockNumberFor<T>) {
        let before = now.saturating_sub(One::one());
        let Some(mut round) = CurrentRound::<T>::get() else {
            Self::maybe_begin(before);
            return;
        };
        let stage = match round.stage {
            Stage::Seeding { gathered } => {
                Self::gather(gathered).map(|gathered| match gathered.authors_left {
                    0 => Self::seeded(round.number, gathered),
                    _ => Stage::Seeding { gathered },
                })
            }
            Stage::Running {
                entropy,
                since_ms,
                blocks,
                last_ms,
            } => {
                let until = since_ms.saturating_add(round.window_ms);
                let is_late = last_ms >= until.saturating_sub(round.window_ms / LAST_PART);
                (T::Time::now() > until).then(|| Stage::Drawing {
                    entropy,
                    is_counted: is_late && blocks >= T::BlocksMin::get(),
                    gathered: Self::nothing_after(before),
                })
            }
            Stage::Drawing {
                entropy,
                is_counted,
                gathered,
            } => Self::gather(gathered).map(|gathered| match gathered.authors_left {
                0 => Self::drawn(round.number, entropy, is_counted, gathered.hash),
                _ => Stage::Drawing {
                    entropy,
                    is_counted,
                    gathered,
                },
            }),
            Stage::Opening {
                is_counted, until, ..
            } => {
                if T::Clock::current_block_number() > until {
                    Self::end(round.number, is_counted);
                }
                return;
            }
        };
        if let Some(stage) = stage {
            round.stage = stage;
            CurrentRound::<T>::put(round);
        }
    }

    /// At the end of a block, whose time is known now.
    pub(crate) fn note_room() {
        let Some(mut round) = CurrentRound::<T>::get() else {
            return;
        };
        match &mut round.stage {
            Stage::Running {
                since_ms,
                blocks,
                last_ms,
                ..
            } => {
                let now = T::Time::now();
                if now > since_ms.saturating_add(round.window_ms) || T::IsFull::get() {
                    return;
                }
                *blocks = blocks.saturating_add(1);
                *last_ms = now;
            }
            Stage::Opening { until, .. } => {
                let longer = Longer::<T>::get();
                if longer >= T::LongerMax::get() || !T::IsFullForShowing::get() {
                    return;
                }
                Longer::<T>::put(longer.saturating_add(1));
                *until = until.saturating_add(One::one());
            }
            Stage::Seeding { .. } | Stage::Drawing { .. } => return,
        }
        CurrentRound::<T>::put(round);
    }

    fn maybe_begin(before: BlockNumberFor<T>) {
        let output = T::Entropy::first_after(before.saturating_sub(One::one()));
        let Some((output, block)) = output else {
            return;
        };
        if block != before || !begins(&output, T::RoundEvery::get()) {
            return;
        }
        let number = RoundsBegun::<T>::get().saturating_add(1);
        RoundsBegun::<T>::put(number);
        CurrentRound::<T>::put(Round {
            number,
            window_ms: T::RunWindow::get(),
            stage: Stage::Seeding {
                gathered: Self::nothing_after(before),
            },
        });
        Self::deposit_event(Event::RoundBegun { round: number });
    }

    fn seeded(round: u32, gathered: Gathered<BlockNumberFor<T>>) -> Stage<BlockNumberFor<T>> {
        let entropy = gathered.hash;
        Self::deposit_event(Event::RunsSeeded { round, entropy });
        Stage::Running {
            entropy,
            // Of the block that has completed it: that is when it was first known.
            since_ms: T::Time::now(),
            blocks: 0,
            last_ms: 0,
        }
    }

    fn drawn(round: u32, entropy: H256, is_counted: bool, samples: H256) -> Stage<BlockNumberFor<T>> {
        Self::deposit_event(Event::SamplesDrawn { round, samples });
        Stage::Opening {
            entropy,
            is_counted,
            samples,
            until: T::Clock::current_block_number().saturating_add(T::OpenWindow::get()),
        }
    }

    fn end(round: u32, is_counted: bool) {
        CurrentRound::<T>::kill();
        Longer::<T>::kill();
        if is_counted {
            RoundsOver::<T>::mutate(|rounds| *rounds = rounds.saturating_add(1));
        }
        Self::deposit_event(Event::RoundOver { round, is_counted });
    }

    fn nothing_after(last: BlockNumberFor<T>) -> Gathered<BlockNumberFor<T>> {
        Gathered {
            last,
            authors_left: AUTHORS,
            hash: H256::zero(),
        }
    }

    /// With one more output; nothing where there is none yet.
    fn gather(gathered: Gathered<BlockNumberFor<T>>) -> Option<Gathered<BlockNumberFor<T>>> {
        let (output, last) = T::Entropy::first_after(gathered.last)?;
        Some(Gathered {
            last,
            authors_left: gathered.authors_left.saturating_sub(1),
            hash: H256(blake2_256(&(gathered.hash, output).encode())),
        })
    }
}

/// Whether a round begins with this output: once in `every` times.
pub(crate) fn begins(output: &H256, every: u32) -> bool {
    let hash = blake2_256(&(b"gpu proof round", output).encode());
    let [a, b, c, d, e, f, g, h, ..] = hash;
    u64::from_le_bytes([a, b, c, d, e, f, g, h]).checked_rem(every.into()) == Some(0)
}
