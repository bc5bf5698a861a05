//! Players of disputes.

use frame_support::dispatch::DispatchResult;
use surety_dispute_game::bisection::{Move, Side, challenge as next_challenge, defend};
use surety_types::trust::{DisputeId, Party};

use crate::*;

/// Disputes that are not decided, in order.
pub fn disputes() -> Vec<(DisputeId, DisputeOf<Test>)> {
    let disputes = DisputeStorage::<Test>::iter();
    let mut disputes: Vec<_> = disputes
        .filter(|(_, dispute)| dispute.game.outcome().is_none())
        .collect();
    disputes.sort_by_key(|(id, _)| *id);
    disputes
}

/// Who defends against whom, in the open disputes.
pub fn pairs() -> Vec<(AccountId, AccountId)> {
    let accounts =
        |(_, dispute): (_, DisputeOf<Test>)| (*dispute.defender.account(), *dispute.challenger.account());
    disputes().into_iter().map(accounts).collect()
}

/// The account that plays for a party.
pub fn player_of(party: &Party<AccountId>) -> AccountId {
    match party {
        Party::Provider(stash) | Party::Auditor { verifier: stash, .. } => agent_of(*stash),
        Party::Account(account) => *account,
    }
}

/// The party that is to move.
pub fn to_move(id: DisputeId) -> Option<Party<AccountId>> {
    let dispute = DisputeStorage::<Test>::get(id)?;
    Some(match dispute.game.to_move()? {
        Side::Defender => dispute.defender,
        Side::Challenger => dispute.challenger,
    })
}

/// What somebody with this result plays, whose turn it is.
pub fn next_move(id: DisputeId, result: u8) -> Move {
    let dispute = DisputeStorage::<Test>::get(id).unwrap();
    let mut trace = ToyTrace::new(result);
    let played = match dispute.game.to_move() {
        Some(Side::Defender) => {
            let referee = ToyReferee::claim_referee(&1, &dispute.claim).unwrap();
            defend(&dispute.game, &referee, &mut trace)
        }
        _ => next_challenge(&dispute.game, &mut trace),
    };
    played.unwrap_or(Move::Concede)
}

pub fn play(account: AccountId, dispute: DisputeId, played: Move) -> DispatchResult {
    // The next one, whoever plays it.
    let number = DisputeStorage::<Test>::get(dispute).map_or(0, |dispute| dispute.moves);
    send_as(
        account,
        DisputesCall::play {
            dispute,
            number,
            played,
        },
    )
}

/// Everybody listed makes the moves that its result tells it, in all its disputes, for as long as there are
/// any.
pub fn play_out(results: &[(AccountId, u8)]) {
    while play_round(results) {}
}

/// Everybody listed makes one move in each of its disputes. Says whether there was any.
pub fn play_round(results: &[(AccountId, u8)]) -> bool {
    let mut moved = false;
    for (id, _) in disputes() {
        let Some(party) = to_move(id) else { continue };
        let result = results.iter().find(|(account, _)| account == party.account());
        let Some((_, result)) = result else { continue };
        moved |= play(player_of(&party), id, next_move(id, *result)).is_ok();
    }
    moved
}

pub fn challenge(challenger: AccountId, provider: AccountId) -> DispatchResult {
    send_as(challenger, DisputesCall::challenge { task: TASK, provider })
}

/// What an account can spend, beside what keeps it alive.
pub fn money(account: AccountId) -> Balance {
    Balances::free_balance(account)
}

/// What a defender plays that says the right thing above the leaves and `result`'s below them; a challenger
/// plays whatever leads there.
pub fn sabotage(id: DisputeId, result: u8) -> Move {
    use surety_dispute_game::bisection::{Entry, Level, State, StepsOpening, Trace};

    let dispute = DisputeStorage::<Test>::get(id).unwrap();
    let place = dispute.game.place();
    let above = place.level == Level::Leaves;
    match dispute.game.state() {
        State::Entering => {
            let (mut right, mut wrong) = (ToyTrace::new(truth()), ToyTrace::new(result));
            let mut steps = wrong.steps(place.leaf).unwrap();
            // The last step is the leaf that it committed to.
            *steps.last_mut().unwrap() = right.leaves().unwrap()[place.leaf as usize];
            let steps = StepsOpening::new(&steps);
            Move::Enter(Entry { length: None, steps })
        }
        State::Posting if place.level == Level::Steps => {
            let mut wrong = ToyTrace::new(result);
            let mut steps = wrong.steps(place.leaf).unwrap();
            *steps.last_mut().unwrap() = ToyTrace::new(truth()).leaves().unwrap()[place.leaf as usize];
            Move::Post(steps.try_into().unwrap())
        }
        State::Naming { .. } if above => Move::Name(1),
        _ if above => next_move(id, truth()),
        _ => next_move(id, result),
    }
}
