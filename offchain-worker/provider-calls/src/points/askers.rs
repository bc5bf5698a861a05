//! Who asks for points, and what the chain has said of them. Anybody has keys, and proofs with them that are
//! right: only the chain tells verifiers from strangers, by RPC calls that the worker lives by.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use surety_chain_client::{AccountId, FixedU128};
use surety_channels::BatchNumber;

/// For so long what the chain has said is good.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// What was announced stands, and everybody knows the proof of it then: it costs no more look-ups, whoever
/// says it again.
const ANNOUNCED_GOOD_FOR: Duration = Duration::from_secs(3_600);

/// Answers of the chain that are remembered: some 800 KiB.
const ANSWERS_MAX: usize = 8_192;

/// Agents of verifiers that are remembered. A bond stands behind each.
const KNOWN_MAX: usize = 1_024;

/// Look-ups about strangers, all together. Each is three to seven RPC calls, and a node on another machine
/// takes 3,000 a minute of all that a worker does.
const OF_STRANGERS: Rate = Rate {
    every: Duration::from_secs(1),
    at_once: 10,
};

/// Look-ups about each agent of a verifier, for batches that are not final: it works on four at once.
const OF_KNOWN: Rate = Rate {
    every: Duration::from_secs(15),
    at_once: 4,
};

/// How often something may be done.
struct Rate {
    every: Duration,
    at_once: u32,
}

impl Rate {
    /// Whether it may be done now; then it is. `due` is when the next would be if none had come early.
    fn take(&self, due: &mut Instant, now: Instant) -> bool {
        let early = self.every.saturating_mul(self.at_once.saturating_sub(1));
        if due.saturating_duration_since(now) > early {
            return false;
        }
        let from = now.max(*due);
        *due = from.checked_add(self.every).unwrap_or(from);
        true
    }
}

/// An agent, and a batch that it asks about.
pub(super) type Of = (AccountId, BatchNumber);

/// What an agent is to a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drawer {
    /// It acts for no verifier.
    Stranger,
    /// The stake that it acts for was not there in time.
    Unsettled,
    /// It draws so many points in the mean.
    Draws(FixedU128),
    /// It has announced that.
    Announced(FixedU128),
}

impl Drawer {
    const fn is_good_for(self) -> Duration {
        match self {
            Self::Stranger | Self::Unsettled | Self::Draws(_) => GOOD_FOR,
            Self::Announced(_) => ANNOUNCED_GOOD_FOR,
        }
    }
}

/// What the chain has said, and when.
type Answer = (Drawer, Instant);

fn is_good((drawer, at): &Answer, now: Instant) -> bool {
    now.saturating_duration_since(*at) < drawer.is_good_for()
}

/// What is remembered of those who ask.
pub(super) struct Askers {
    answers: BTreeMap<Of, Answer>,
    /// Agents that were found to act for verifiers, and when another look-up is due. They go first: whatever
    /// strangers do takes none of theirs.
    known: BTreeMap<AccountId, Instant>,
    /// When another look-up about any stranger is due.
    due: Instant,
    /// What is being answered.
    open: BTreeSet<Of>,
}

impl Askers {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            answers: BTreeMap::new(),
            known: BTreeMap::new(),
            due: now,
            open: BTreeSet::new(),
        }
    }

    /// What the chain has said lately.
    pub(super) fn said(&self, of: &Of, now: Instant) -> Option<Drawer> {
        let answer = self.answers.get(of)?;
        is_good(answer, now).then_some(answer.0)
    }

    /// Whether the chain may be asked now about an agent, and a batch that may be final: of these there are
    /// many whose proofs everybody knows. Then it is asked.
    pub(super) fn may_look_up(&mut self, agent: &AccountId, is_final: bool, now: Instant) -> bool {
        match self.known.get_mut(agent).filter(|_| !is_final) {
            Some(due) => OF_KNOWN.take(due, now),
            None => OF_STRANGERS.take(&mut self.due, now),
        }
    }

    /// Takes note of what the chain has said.
    pub(super) fn learn(&mut self, of: Of, drawer: Drawer, now: Instant) {
        match drawer {
            Drawer::Draws(_) | Drawer::Announced(_) => self.know(&of.0, now),
            Drawer::Stranger => drop(self.known.remove(&of.0)),
            Drawer::Unsettled => {}
        }
        if self.answers.len() >= ANSWERS_MAX {
            self.answers.retain(|_, answer| is_good(answer, now));
        }
        if self.answers.len() < ANSWERS_MAX {
            self.answers.insert(of, (drawer, now));
        }
    }

    /// Beside as many as there may be it takes the place of the one that was looked up longest ago.
    fn know(&mut self, agent: &AccountId, now: Instant) {
        if self.known.contains_key(agent) {
            return;
        }
        if self.known.len() >= KNOWN_MAX {
            let oldest = self.known.iter().min_by_key(|(_, due)| **due);
            if let Some(oldest) = oldest.map(|(agent, _)| agent.clone()) {
                self.known.remove(&oldest);
            }
        }
        self.known.insert(agent.clone(), now);
    }

    /// Whether an agent is answered about a batch: not while it is already. Verifiers ask for one point of a
    /// batch after the other.
    pub(super) fn begin(&mut self, of: &Of) -> bool {
        self.open.insert(of.clone())
    }

    /// It was answered.
    pub(super) fn end(&mut self, of: &Of) {
        self.open.remove(of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(number: usize) -> AccountId {
        let mut id = [0; 32];
        id[..8].copy_from_slice(&(number as u64).to_be_bytes());
        AccountId::new(id)
    }

    fn draws() -> Drawer {
        Drawer::Draws(FixedU128::from_u32(1))
    }

    /// How many of many strangers are looked up.
    fn looked_up(askers: &mut Askers, now: Instant) -> usize {
        let strangers = 1_000_000..1_000_100;
        let looked_up = strangers.filter(|number| askers.may_look_up(&agent(*number), false, now));
        looked_up.count()
    }

    #[test]
    fn strangers_have_ten_look_ups_at_once_and_one_a_second_however_many_they_are() {
        let start = Instant::now();
        let mut askers = Askers::new(start);
        assert_eq!(looked_up(&mut askers, start), 10);
        assert_eq!(looked_up(&mut askers, start), 0);
        let minute = (1..=60).map(|second| looked_up(&mut askers, start + Duration::from_secs(second)));
        assert_eq!(minute.sum::<usize>(), 60);
        assert_eq!(looked_up(&mut askers, start + Duration::from_secs(600)), 10);
    }

    #[test]
    fn an_agent_of_a_verifier_has_look_ups_of_its_own_for_as_long_as_it_is_one() {
        let start = Instant::now();
        let mut askers = Askers::new(start);
        askers.learn((agent(1), 1), draws(), start);
        looked_up(&mut askers, start);
        let own = |askers: &mut Askers, now| {
            let looked_up = (0..9).filter(|_| askers.may_look_up(&agent(1), false, now));
            looked_up.count()
        };
        // Not about batches whose proofs anybody may say again.
        assert!(!askers.may_look_up(&agent(1), true, start));
        assert_eq!(own(&mut askers, start), 4);
        assert_eq!(own(&mut askers, start + Duration::from_secs(15)), 1);
        // Of a batch for which its stake came too late it has drawn nothing, and is one all the same.
        let later = start + Duration::from_secs(600);
        askers.learn((agent(1), 2), Drawer::Unsettled, later);
        looked_up(&mut askers, later);
        assert_eq!(own(&mut askers, later), 4);
        let last = later + Duration::from_secs(600);
        askers.learn((agent(1), 1), Drawer::Stranger, last);
        looked_up(&mut askers, last);
        assert_eq!(own(&mut askers, last), 0);
    }

    #[test]
    fn what_the_chain_has_said_is_good_for_a_minute_and_no_more_is_remembered_than_may_be() {
        let start = Instant::now();
        let mut askers = Askers::new(start);
        let of = |number| (agent(number), 1);
        for number in 0..=ANSWERS_MAX {
            askers.learn(of(number), Drawer::Stranger, start);
        }
        assert_eq!(askers.answers.len(), ANSWERS_MAX);
        assert_eq!(askers.said(&of(7), start), Some(Drawer::Stranger));
        assert_eq!(askers.said(&(agent(7), 2), start), None);
        let later = start + GOOD_FOR;
        assert_eq!(askers.said(&of(7), later), None);
        askers.learn(of(7), draws(), later);
        assert_eq!(askers.answers.len(), 1);
    }

    #[test]
    fn what_was_announced_is_not_looked_up_again_for_an_hour() {
        let start = Instant::now();
        let mut askers = Askers::new(start);
        let announced = Drawer::Announced(FixedU128::from_u32(1));
        askers.learn((agent(1), 1), announced, start);
        askers.learn((agent(1), 2), draws(), start);
        let later = start + Duration::from_secs(3_599);
        askers.learn((agent(2), 1), Drawer::Stranger, later);
        let said = |batch| askers.said(&(agent(1), batch), later);
        assert_eq!([said(1), said(2)], [Some(announced), None]);
    }

    #[test]
    fn the_agent_that_was_looked_up_longest_ago_is_forgotten_for_a_new_one() {
        let start = Instant::now();
        let mut askers = Askers::new(start);
        for number in 0..KNOWN_MAX {
            let now = start + Duration::from_millis(number as u64);
            askers.learn((agent(number), 1), draws(), now);
        }
        assert!(askers.may_look_up(&agent(0), false, start));
        let later = start + Duration::from_secs(60);
        askers.learn((agent(KNOWN_MAX), 1), draws(), later);
        assert_eq!(askers.known.len(), KNOWN_MAX);
        let is_known = |number| askers.known.contains_key(&agent(number));
        assert!(is_known(0) && is_known(KNOWN_MAX) && !is_known(1));
    }
}
