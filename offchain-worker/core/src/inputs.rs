//! Demanding on the chain a piece of an input that nobody serves.
//!
//! A client that shows the piece is there: we try again to fetch the input. One that does not loses its lock,
//! and the task fails. Which piece that is cannot be foreseen without our secret, and is the same after a
//! restart.

use std::collections::BTreeMap;

use surety_dispute_game::majority;
use surety_proofs::segments;
use surety_types::{
    limits::INPUT_DEMANDS_MAX,
    task::{MemberProgress, RoundMember, RoundPhase},
};

use crate::{
    AccountId, Balance, BlockNumber, Config, EffectKind, Hash, Purpose, RoundRecord, TaskSnapshot,
    attempts::Attempts, places::Wanted, provider_task::member,
};

/// Times that an input could not be fetched before a piece of it is demanded while another attempt is under
/// way.
const FAILURES_MIN: u32 = 2;

/// What we demand of one task's input.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputDemands {
    /// The piece of each demand of ours, by its number. Journalled.
    made: BTreeMap<u32, u32>,
    /// Nothing while the input is not for us to wait for.
    waiting: Option<Waiting>,
    /// Whether a demand was open when we looked last, ours or another's.
    was_open: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// When we were put to work, or the last piece was shown, on the running clock: since then the input has
    /// been to be had, for all we know.
    since: BlockNumber,
    /// Demands of ours that the chain had taken by then.
    demands: u32,
    /// Whether fetching it has failed, so that this is in the journal.
    has_failed: bool,
}

impl InputDemands {
    /// Takes in what finalised state shows.
    pub fn see(
        &mut self,
        snapshot: &TaskSnapshot,
        stash: &AccountId,
        clock: BlockNumber,
        attempts: &mut Attempts,
    ) {
        let Some((round, ours, _)) = waiting(snapshot, stash) else {
            self.waiting = None;
            self.was_open = false;
            return;
        };
        let (is_open, demands) = (round.input_demand.is_some(), ours.input_demands);
        let known = self.waiting.filter(|waiting| waiting.demands == demands);
        // A record from before the clock was what counts may be ahead of it.
        let known = known.map(|known| Waiting {
            since: known.since.min(clock),
            ..known
        });
        let is_shown = !is_open && (self.was_open || (known.is_none() && demands > 0));
        if is_shown {
            // The client is there: what was tried before does not count.
            attempts.forget(EffectKind::DemandInput(demands));
            if !attempts.is_under_way(EffectKind::Fetch) {
                attempts.forget(EffectKind::Fetch);
            }
        }
        self.was_open = is_open;
        self.waiting = known.filter(|_| !is_shown).or(Some(Waiting {
            since: clock,
            demands,
            has_failed: false,
        }));
    }

    /// Takes in that the input could not be fetched. The first time that is to be journalled, with what this
    /// returns: since when we wait, and how many demands we had made.
    pub fn fail(&mut self) -> Option<(BlockNumber, u32)> {
        let waiting = self.waiting.as_mut().filter(|waiting| !waiting.has_failed)?;
        waiting.has_failed = true;
        Some((waiting.since, waiting.demands))
    }

    /// The demand to make now, and by when. Half of the time that was left when we began to wait is for
    /// fetching.
    pub fn want(
        &self,
        snapshot: &TaskSnapshot,
        config: &Config,
        clock: BlockNumber,
        attempts: &Attempts,
    ) -> Option<Wanted> {
        let (round, ours, until) = waiting(snapshot, &config.stash)?;
        let since = self.waiting.filter(|waiting| waiting.has_failed)?.since;
        let half = until.saturating_sub(since) / 2;
        let under_way = attempts.is_under_way(EffectKind::Fetch);
        let failures = attempts
            .count(EffectKind::Fetch)
            .saturating_sub(u32::from(under_way));
        let has_tried = failures >= if under_way { FAILURES_MIN } else { 1 };
        let is_due = has_tried && clock >= since.saturating_add(half) && clock < until;
        let kind = EffectKind::DemandInput(ours.input_demands);
        (is_due && is_allowed(round, ours)).then(|| Wanted::new(kind, until))
    }

    /// Whether the chain would take that demand in this state.
    pub fn is_taken(number: u32, snapshot: &TaskSnapshot, stash: &AccountId) -> bool {
        waiting(snapshot, stash)
            .is_some_and(|(round, ours, _)| ours.input_demands == number && is_allowed(round, ours))
    }

    /// The piece of demand `number`, and whether it is a new one, to be journalled before it is sent.
    pub fn piece(&mut self, number: u32, snapshot: &TaskSnapshot, config: &Config) -> (u32, bool) {
        if let Some(known) = self.made.get(&number) {
            return (*known, false);
        }
        let salt = config.salts.salt(snapshot.id, Purpose::Input(number));
        let segment = choose(&salt, segments(snapshot.task.spec.input_bytes));
        self.made.insert(number, segment);
        (segment, true)
    }

    /// The piece of demand `number`, where it has been made.
    pub fn made(&self, number: u32) -> Option<u32> {
        self.made.get(&number).copied()
    }

    /// Takes a record of a failure up.
    pub fn replay_failure(&mut self, since: BlockNumber, demands: u32) {
        self.waiting = Some(Waiting {
            since,
            demands,
            has_failed: true,
        });
    }

    /// Takes a record of a demand up. Says whether it fits those before it.
    pub fn replay(&mut self, number: u32, segment: u32) -> bool {
        number < INPUT_DEMANDS_MAX && *self.made.entry(number).or_insert(segment) == segment
    }
}

/// The round, our seat and the deadline, if it is for us to commit still.
fn waiting<'a>(
    snapshot: &'a TaskSnapshot,
    stash: &AccountId,
) -> Option<(&'a RoundRecord, &'a RoundMember<AccountId, Balance>, BlockNumber)> {
    let round = snapshot.round.as_ref()?;
    let RoundPhase::Committing { until } = round.phase else {
        return None;
    };
    let ours = member(round, stash)?;
    let works = ours.progress == MemberProgress::Working && ours.fault.is_none();
    works.then_some((round, ours, until))
}

fn is_allowed(round: &RoundRecord, ours: &RoundMember<AccountId, Balance>) -> bool {
    round.input_demand.is_none() && ours.input_demands < INPUT_DEMANDS_MAX && !has_majority(round)
}

/// Whether a majority has committed: the chain takes no demand then.
fn has_majority(round: &RoundRecord) -> bool {
    let members = round.members.iter();
    let committed = members.filter(|member| member.progress != MemberProgress::Working);
    committed.count() >= majority(round.redundancy()) as usize
}

fn choose(salt: &Hash, segments: u32) -> u32 {
    let [a, b, c, d, ..] = salt.0;
    u32::from_le_bytes([a, b, c, d])
        .checked_rem(segments)
        .unwrap_or(0)
}
