//! The committee for what no block can compute again, and the vote of all when it cannot agree.
//!
//! ```text
//!  Drawing ──draw──> Committing ──> Revealing ──┬──> Over: three rounds in a row had an equal quorum
//!     ^                                         ├──> Drawing: another round, at most eight
//!     +-----------------------------------------┤
//!     |                                         └──> Summoning ──summon──> Committing ──> Revealing ──> Over
//!     +── no room for all, and undecided: eight more rounds, and no other vote of all ───────┘
//! ```
//!
//! Each round [`SEATS`] verifiers are drawn anew; the draw comes from outside, by VRF. Each commits to the
//! hash of its *own* recomputation and reveals it once nobody can commit any more, so that nobody can follow
//! the majority. A value that [`QUORUM`] of them share in [`STREAK`] rounds in a row is decided. A round
//! without a quorum breaks the streak. After [`ROUNDS_MAX`] rounds, or when two rounds have quorums for
//! different values, all voters are summoned and decide at two thirds ([`supermajority`]): of heads, or of
//! stake where heads come cheap ([`Committee::summon_weighed`]). If they do not, nothing is decided; nor
//! where they are no more than may be corrupt, because others have no vote.
//!
//! Where more voters come than have room the two thirds are of those who have it, or many small ones could
//! never decide. If that decides nothing after eight rounds there are eight more.
//!
//! When the question is decided elsewhere ([`Committee::dismiss`]) those who have sealed an answer still open
//! it.
//!
//! Every stage ends by time alone ([`Committee::tick`]): a draw that does not come is a round without a
//! quorum, voters that are not summoned decide nothing.
//!
//! The chances that a committee drawn from 100 verifiers decides wrongly or has to escalate, when all the
//! corrupt ones give the same wrong answer; the tests compute them and play them:
//!
//! | corrupt | round for the right value | round for the wrong one | wrong decision | escalation |
//! |---:|---:|---:|---:|---:|
//! | 20 | 82.7 % | 7e-10 | 4e-28 | 6.5 % |
//! | 25 | 62.4 % | 1e-7 | 2e-21 | 35.4 % |
//! | 33 | 28.4 % | 2e-5 | 3e-14 | 89.6 % |
//!
//! Up to 33 corrupt voters of 100 cannot keep the summoned vote from the right value.

mod ballot;
mod electorate;
mod error;

pub use ballot::{Ballot, Seat, Vote, seal};
pub use electorate::{Electorate, supermajority};
pub use error::CommitteeError;

use alloc::vec::Vec;
use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{ConstU32, H256, bounded::BoundedVec};

/// Verifiers drawn for a round.
pub const SEATS: u32 = 20;

/// Equal answers that make a round count.
pub const QUORUM: u32 = 15;

/// Rounds in a row with the same quorum that decide.
pub const STREAK: u32 = 3;

/// Most rounds before all voters are summoned, and after a vote of all that had no room for all.
pub const ROUNDS_MAX: u32 = 8;

/// Most ballots: rounds, the vote of all, and rounds again.
pub const BALLOTS_MAX: u32 = 2 * ROUNDS_MAX + 1;

/// Answers of all rounds.
const ANSWERS_MAX: u32 = 2 * SEATS * ROUNDS_MAX;

/// How long each phase lasts, in finalised blocks. Zero is taken for one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Windows {
    /// For a draw, or for the list of voters, to come in.
    pub draw: u32,
    /// For commitments.
    pub commit: u32,
    /// For reveals.
    pub reveal: u32,
}

/// What is going on.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum Stage<Member, const VOTERS: u32> {
    /// A round's members are to be drawn.
    Drawing,
    /// A round.
    Round(Ballot<Member, SEATS>),
    /// The list of all voters is to come.
    Summoning,
    /// The vote of all.
    Voting(Ballot<Member, VOTERS>),
    /// Nothing more is to be done.
    Over(Decision),
}

/// How it ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Decision {
    /// Rounds decided.
    Committee(H256),
    /// The vote of all decided.
    Voters(H256),
    /// Not even that did.
    Undecided,
    /// What it was about was decided elsewhere.
    Dismissed,
}

impl Decision {
    /// The value decided on.
    pub const fn value(&self) -> Option<H256> {
        match self {
            Self::Committee(value) | Self::Voters(value) => Some(*value),
            Self::Undecided | Self::Dismissed => None,
        }
    }
}

/// A value that rounds had quorums for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
struct Leader {
    value: H256,
    /// Rounds in a row up to the last one; 0 when that had no quorum.
    streak: u32,
}

/// A question and the committee that answers it. At most `VOTERS` can be summoned.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Committee<Member, const VOTERS: u32> {
    question: H256,
    windows: Windows,
    stage: Stage<Member, VOTERS>,
    /// Blocks left of the stage, or of its ballot's phase.
    left: u32,
    /// Rounds that are over, and the vote of all where rounds go on after it.
    rounds: u32,
    leader: Option<Leader>,
    /// Whether rounds had quorums for different values.
    contradicted: bool,
    /// What votes are held against.
    electorate: Electorate,
    /// Whether nothing is asked any more, but what is sealed can still be opened.
    dismissed: bool,
    answers: BoundedVec<Seat<Member>, ConstU32<ANSWERS_MAX>>,
    votes: BoundedVec<Seat<Member>, ConstU32<VOTERS>>,
}

impl<Member: Clone + Ord + Encode, const VOTERS: u32> Committee<Member, VOTERS> {
    /// A committee for `question`: a hash that names what is to be computed, in which dispute.
    pub fn new(question: H256, windows: Windows) -> Self {
        Self::at(question, windows, Stage::Drawing)
    }

    /// The vote of all at once, for when there are fewer than [`SEATS`] verifiers to draw from.
    pub fn of_all(question: H256, windows: Windows) -> Self {
        Self::at(question, windows, Stage::Summoning)
    }

    fn at(question: H256, windows: Windows, stage: Stage<Member, VOTERS>) -> Self {
        Self {
            question,
            windows,
            stage,
            left: windows.draw,
            rounds: 0,
            leader: None,
            contradicted: false,
            electorate: Electorate::default(),
            dismissed: false,
            answers: BoundedVec::new(),
            votes: BoundedVec::new(),
        }
    }

    /// What is going on.
    pub const fn stage(&self) -> &Stage<Member, VOTERS> {
        &self.stage
    }

    /// How it ended, if it has.
    pub const fn decision(&self) -> Option<Decision> {
        match self.stage {
            Stage::Over(decision) => Some(decision),
            _ => None,
        }
    }

    /// Rounds that are over, and the vote of all where rounds go on after it: the number of the next ballot.
    pub const fn rounds(&self) -> u32 {
        self.rounds
    }

    /// What is asked.
    pub const fn question(&self) -> H256 {
        self.question
    }

    /// Blocks that the stage, or the phase of its ballot, still lasts.
    pub const fn left(&self) -> u32 {
        self.left
    }

    /// The value that rounds had a quorum for, and how many in a row up to the last one.
    pub fn leader(&self) -> Option<(H256, u32)> {
        self.leader.map(|leader| (leader.value, leader.streak))
    }

    /// Whether answers are being revealed.
    pub const fn is_revealing(&self) -> bool {
        match &self.stage {
            Stage::Round(ballot) => ballot.is_revealing(),
            Stage::Voting(ballot) => ballot.is_revealing(),
            Stage::Drawing | Stage::Summoning | Stage::Over(_) => false,
        }
    }

    /// What a member of the present ballot has said; nothing for anybody else.
    pub fn vote_of(&self, member: &Member) -> Option<Vote> {
        let seats: &[Seat<Member>] = match &self.stage {
            Stage::Round(ballot) => ballot.seats(),
            Stage::Voting(ballot) => ballot.seats(),
            Stage::Drawing | Stage::Summoning | Stage::Over(_) => &[],
        };
        let place = seats.binary_search_by(|seat| seat.member.cmp(member)).ok()?;
        seats.get(place).map(|seat| seat.vote)
    }

    /// Seats the members drawn for the next round, each of which counts once.
    ///
    /// # Errors
    /// [`CommitteeError::BadDraw`] unless they are [`SEATS`] different ones, [`CommitteeError::NotNow`].
    pub fn draw(&mut self, members: impl IntoIterator<Item = Member>) -> Result<(), CommitteeError> {
        self.draw_weighed(members.into_iter().map(|member| (member, 1)))
    }

    /// Seats members that count as often as is said of each: who has the stake for several seats takes one.
    /// A quorum is the same part of what all of them count.
    ///
    /// # Errors
    /// As [`Self::draw`].
    pub fn draw_weighed(
        &mut self,
        members: impl IntoIterator<Item = (Member, u128)>,
    ) -> Result<(), CommitteeError> {
        if !matches!(self.stage, Stage::Drawing) {
            return Err(CommitteeError::NotNow);
        }
        let ballot = Ballot::new(self.rounds, members).filter(Ballot::is_full);
        self.stage = Stage::Round(ballot.ok_or(CommitteeError::BadDraw)?);
        self.left = self.windows.commit;
        Ok(())
    }

    /// Ends it: what it is asked was decided elsewhere. `sealed` are those who have sealed an answer for a
    /// round that has not begun, and are its members however few they are. Members open their answers, for as
    /// long as that takes in any ballot, and nothing comes after it.
    pub fn dismiss(&mut self, sealed: impl IntoIterator<Item = (Member, H256)>) {
        self.dismissed = true;
        if matches!(self.stage, Stage::Drawing) {
            let sealed: Vec<_> = sealed.into_iter().collect();
            let members = sealed.iter().map(|(member, _)| (member.clone(), 1));
            if let Some(ballot) = Ballot::new(self.rounds, members) {
                self.stage = Stage::Round(ballot);
                for (member, seal) in &sealed {
                    // It is one of the members.
                    let taken = self.commit(member, *seal);
                    debug_assert!(taken.is_ok());
                }
            }
        }
        match self.stage {
            Stage::Drawing | Stage::Summoning => self.stage = Stage::Over(Decision::Dismissed),
            Stage::Over(_) => {}
            Stage::Round(_) | Stage::Voting(_) if self.is_revealing() => self.left = self.windows.reveal,
            // Nobody has sealed anything in it.
            Stage::Round(_) | Stage::Voting(_) => self.stage = Stage::Over(Decision::Dismissed),
        }
    }

    /// Lets all voters vote.
    ///
    /// # Errors
    /// [`CommitteeError::BadDraw`] for none, too many, or one twice; [`CommitteeError::NotNow`].
    pub fn summon(&mut self, voters: impl IntoIterator<Item = Member>) -> Result<(), CommitteeError> {
        let voters = voters.into_iter().map(|voter| (voter, 1));
        self.summon_weighed(voters, Electorate::default())
    }

    /// Lets voters vote who count as much as is said of each, out of an `electorate` that counts at least as
    /// much as they do together. Two thirds of it decide, where that is more than may be corrupt: who may
    /// vote and does not counts against every answer. Where all seats are taken it is what those count who
    /// have them, because others could not come.
    ///
    /// # Errors
    /// As [`Self::summon`].
    pub fn summon_weighed(
        &mut self,
        voters: impl IntoIterator<Item = (Member, u128)>,
        electorate: Electorate,
    ) -> Result<(), CommitteeError> {
        if !matches!(self.stage, Stage::Summoning) {
            return Err(CommitteeError::NotNow);
        }
        let ballot = Ballot::new(self.rounds, voters).ok_or(CommitteeError::BadDraw)?;
        let seated = ballot.weight();
        let all = if ballot.is_full() {
            seated
        } else {
            electorate.all.max(seated)
        };
        self.electorate = Electorate { all, ..electorate };
        self.stage = Stage::Voting(ballot);
        self.left = self.windows.commit;
        Ok(())
    }

    /// Takes the [`seal`] of a member's answer. When all are in, revealing begins.
    ///
    /// # Errors
    /// A [`CommitteeError`] that says what is wrong with it.
    pub fn commit(&mut self, member: &Member, seal: H256) -> Result<(), CommitteeError> {
        let complete = match &mut self.stage {
            Stage::Round(ballot) => ballot.commit(member, seal)?,
            Stage::Voting(ballot) => ballot.commit(member, seal)?,
            _ => return Err(CommitteeError::NotNow),
        };
        if complete {
            self.advance();
        }
        Ok(())
    }

    /// Takes a member's answer. When everybody who committed has answered, the ballot is over.
    ///
    /// # Errors
    /// A [`CommitteeError`] that says what is wrong with it.
    pub fn reveal(&mut self, member: &Member, value: H256, salt: H256) -> Result<(), CommitteeError> {
        let complete = match &mut self.stage {
            Stage::Round(ballot) => ballot.reveal(self.question, member, value, salt)?,
            Stage::Voting(ballot) => ballot.reveal(self.question, member, value, salt)?,
            _ => return Err(CommitteeError::NotNow),
        };
        if complete {
            self.advance();
        }
        Ok(())
    }

    /// Has `blocks` more blocks finalised. At most one phase ends by it, so that nobody loses the time of a
    /// phase that had not begun.
    pub fn tick(&mut self, blocks: u32) -> &Stage<Member, VOTERS> {
        self.left = self.left.saturating_sub(blocks);
        if self.left == 0 && blocks > 0 {
            self.advance();
        }
        &self.stage
    }

    /// Ends the phase.
    fn advance(&mut self) {
        match &mut self.stage {
            Stage::Drawing => self.finish_round(None),
            Stage::Round(ballot) => {
                if ballot.close_commits() {
                    self.left = self.windows.reveal
                } else {
                    let quorum = ballot.shared_by(electorate::quorum_of(ballot.weight()));
                    let seats = ballot.seats().to_vec();
                    for seat in seats {
                        // As many as the rounds have seats: all fit.
                        let pushed = self.answers.try_push(seat);
                        debug_assert!(pushed.is_ok());
                    }
                    if self.dismissed {
                        self.stage = Stage::Over(Decision::Dismissed);
                    } else {
                        self.finish_round(quorum);
                    }
                }
            }
            Stage::Summoning => self.stage = Stage::Over(Decision::Undecided),
            Stage::Voting(ballot) => {
                if ballot.close_commits() {
                    self.left = self.windows.reveal
                } else {
                    let decided = ballot.shared_by(self.electorate.decisive());
                    let crowded = ballot.is_full();
                    self.votes = ballot.seats().clone();
                    self.finish_vote(decided, crowded);
                }
            }
            Stage::Over(_) => {}
        }
    }

    /// Takes down the vote of all. `crowded`: there was no room for more.
    fn finish_vote(&mut self, decided: Option<H256>, crowded: bool) {
        let goes_on = crowded && self.rounds == ROUNDS_MAX && !self.contradicted;
        match decided {
            _ if self.dismissed => self.stage = Stage::Over(Decision::Dismissed),
            Some(value) => self.stage = Stage::Over(Decision::Voters(value)),
            None if goes_on => self.finish_round(None),
            None => self.stage = Stage::Over(Decision::Undecided),
        }
    }

    /// Takes down a round that had a quorum for a value, or had none.
    fn finish_round(&mut self, quorum: Option<H256>) {
        self.rounds = self.rounds.saturating_add(1);
        self.left = self.windows.draw;
        self.stage = Stage::Drawing;
        match (&mut self.leader, quorum) {
            (None, None) => {}
            (Some(leader), None) => leader.streak = 0,
            (leader @ None, Some(value)) => *leader = Some(Leader { value, streak: 1 }),
            (Some(leader), Some(value)) if leader.value == value => {
                leader.streak = leader.streak.saturating_add(1)
            }
            // Two values have had a quorum: chance does not explain that.
            (Some(_), Some(_)) => self.contradicted = true,
        }
        let ran_out = self.rounds == ROUNDS_MAX || self.rounds >= BALLOTS_MAX;
        match self.leader {
            Some(Leader {
                value,
                streak: STREAK,
            }) => self.stage = Stage::Over(Decision::Committee(value)),
            // All were summoned before.
            _ if (self.contradicted || ran_out) && self.rounds > ROUNDS_MAX => {
                self.stage = Stage::Over(Decision::Undecided);
            }
            _ if self.contradicted || ran_out => self.stage = Stage::Summoning,
            _ => {}
        }
    }

    /// Whoever was drawn or summoned to a ballot that is over and gave no answer, once each.
    pub fn absent(&self) -> Vec<Member> {
        self.members(|vote| !matches!(vote, Vote::Revealed(_)))
    }

    /// Whether anybody has sealed an answer for a ballot that was opened.
    pub fn has_members(&self) -> bool {
        let sits = matches!(self.stage, Stage::Round(_) | Stage::Voting(_));
        sits || !self.answers.is_empty() || !self.votes.is_empty()
    }

    /// Whoever gave this answer in a ballot that is over, once each.
    pub fn gave(&self, value: &H256) -> Vec<Member> {
        self.members(|vote| *vote == Vote::Revealed(*value))
    }

    /// Of the answers that `fit`, the one that counts most: in the vote of all, if that was held, or else in
    /// all rounds together. For when there is no decision that says which is right.
    pub fn most_given(&self, fits: impl Fn(&H256) -> bool) -> Option<H256> {
        let seats: &[Seat<Member>] = if self.votes.is_empty() {
            &self.answers
        } else {
            &self.votes
        };
        let mut given: Vec<(H256, u128)> = seats
            .iter()
            .filter_map(|seat| match seat.vote {
                Vote::Revealed(value) if fits(&value) => Some((value, seat.weight)),
                _ => None,
            })
            .collect();
        given.sort();
        let count = |equal: &[(H256, u128)]| {
            let weight = equal
                .iter()
                .fold(0u128, |sum, (_, weight)| sum.saturating_add(*weight));
            equal.first().map(|(value, _)| (weight, *value))
        };
        let counted = given
            .chunk_by(|(one, _), (other, _)| one == other)
            .filter_map(count);
        counted.max().map(|(_, value)| value)
    }

    fn members(&self, wanted: impl Fn(&Vote) -> bool) -> Vec<Member> {
        let seats = self.answers.iter().chain(&self.votes);
        let mut members: Vec<Member> = seats
            .filter(|seat| wanted(&seat.vote))
            .map(|seat| seat.member.clone())
            .collect();
        members.sort();
        members.dedup();
        members
    }
}

#[cfg(test)]
mod tests;
