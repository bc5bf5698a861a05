//! What a provider is asked for over connections, many receipts at once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use surety_channel_calls::message::ASKED_MAX;
use surety_channels::ChannelId;
use surety_gateway::NoProof;
use tokio::time::{Instant, sleep};

use super::{Due, which_of};
use crate::{
    channel::{Drawn, Handle},
    market::{Shared, named},
    proof::{Answer, Roots},
};

/// A provider is asked one question after the other for as long as so many of them may take: a minute.
const QUESTIONS: u32 = 6;

/// For so long a provider that shows others something is left alone, at first and at most.
const BUSY_FOR: Duration = Duration::from_millis(500);
const BUSY_FOR_MAX: Duration = Duration::from_secs(16);

/// What a provider has left of what it was to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// Something that it had no more time for.
    pub is_late: bool,
    /// Something.
    pub is_some: bool,
    /// It has shown something else.
    pub has_shown: bool,
}

/// Asks a provider for all that it is to show, in turn. What was not reached in time is left, too.
pub(super) async fn show_all(
    shared: &Shared,
    channels: &BTreeMap<ChannelId, Arc<Handle>>,
    due: &Due,
) -> Left {
    let (begun, mut left, mut roots) = (Instant::now(), Left::default(), Roots::new());
    let asked_for = shared.config.patience.taken.saturating_mul(QUESTIONS);
    for (drawn, is_late) in [(&due.late, true), (&due.uncompared, false)] {
        for question in drawn.chunks(ASKED_MAX as usize) {
            let (mut rest, mut pause) = (question, BUSY_FOR);
            while !rest.is_empty() && begun.elapsed() < asked_for {
                let answered = ask(shared, channels, (rest, is_late), &mut roots, &mut left).await;
                rest = rest.get(answered..).unwrap_or_default();
                if !rest.is_empty() {
                    sleep(pause).await;
                    pause = pause.saturating_mul(2).min(BUSY_FOR_MAX);
                }
            }
            if !rest.is_empty() {
                left.is_some = true;
                left.is_late |= is_late;
            }
        }
    }
    left
}

/// One question. How many of it were answered: not all where the provider shows others something.
async fn ask(
    shared: &Shared,
    channels: &BTreeMap<ChannelId, Arc<Handle>>,
    (asked, is_late): (&[Drawn], bool),
    roots: &mut Roots,
    left: &mut Left,
) -> usize {
    let statements: Vec<_> = asked.iter().map(|drawn| drawn.held.statement.clone()).collect();
    let answers = shared.look_for(&statements, roots).await;
    let mut answered = 0usize;
    for (drawn, answer) in asked.iter().zip(answers) {
        let answer = match answer {
            Answer::Shown(shown) if drawn.counted.is_some_and(|at| !shown.is_counted_one(at)) => {
                let why = "it is in a batch that was not final when its number was counted";
                Answer::Not(NoProof::Unshown(why.into()))
            }
            answer => answer,
        };
        match answer {
            Answer::Shown(shown) => {
                left.has_shown = true;
                if let Some(handle) = channels.get(&drawn.held.statement.channel) {
                    shown.covers(handle).await;
                }
            }
            Answer::Not(why) => {
                let provider = named(&drawn.held.statement.payee);
                let (channel, nonce) = which_of(&drawn.held);
                match is_late {
                    true => tracing::info!(provider, channel, nonce, %why, "a receipt is not shown"),
                    false => tracing::debug!(provider, channel, nonce, %why, "a receipt is not shown yet"),
                }
                left.is_some = true;
                left.is_late |= is_late;
            }
            Answer::Busy => return answered,
        }
        answered = answered.saturating_add(1);
    }
    asked.len()
}
