//! Providers that cheat.

use surety_audit_economics::drawn_items;
use surety_dispute_game::{Agreement, agreement, bisection::Side};
use surety_proofs::commitment;

use crate::{
    books::Role,
    game::{Challenger, Dispute},
    life::{Cronies, Drawn, Life},
    rules::REWARD,
};

/// Does no work and says anything: a smaller model, an altered number.
pub fn wrong_result(life: &mut Life) {
    life.wrong_result(Cronies::Work, Role::Verifier);
}

/// Items of the task of which some are wrong.
const ITEMS: u32 = 1_000;

/// Says `wrong` of a task's items anyhow, and computes the others. Auditors see what is wrong of their own.
fn some_items(life: &mut Life, wrong: u32) {
    let drawn = life.draw();
    let own = life.items_of_auditors(ITEMS);
    let mut met = 0;
    for _ in 0..drawn.honest {
        let items = drawn_items(&life.dice.vrf_output(), ITEMS, own);
        met += u32::from(own == ITEMS || items.iter().any(|item| *item < wrong));
    }
    let work = life.market.work * u128::from(ITEMS - wrong) / u128::from(ITEMS);
    life.books.pay(Role::Provider, Role::World, work);
    let found = Drawn { honest: met, ..drawn };
    let others = drawn.honest - met;
    life.audit(Role::Verifier, others);
    if !life.wrong_result_before(found, Cronies::Work, Role::Verifier) {
        // They have found nothing wrong.
        life.pay_audits(Role::Provider, others, 0);
    }
}

pub fn one_wrong_item(life: &mut Life) {
    some_items(life, 1);
}

pub fn a_tenth_of_the_items(life: &mut Life) {
    some_items(life, ITEMS / 10);
}

pub fn all_items(life: &mut Life) {
    some_items(life, ITEMS);
}

/// A client in front sells the answer on, and gives the money back when it has to.
pub fn sold_on(life: &mut Life, convicted: bool) {
    if !convicted {
        let fee = life.rules.fee.mul_floor(REWARD);
        life.books.pay(Role::Stranger, Role::Client, REWARD + fee);
    }
}

pub fn alone_in_a_ring(life: &mut Life) {
    let convicted = life.wrong_result(Cronies::Work, Role::Challenger);
    sold_on(life, convicted);
}

/// Client, challenger and verifiers are the provider's own, and the verifiers confirm whatever it says.
pub fn collusion(life: &mut Life) {
    let convicted = life.wrong_result(Cronies::Confirm, Role::Challenger);
    sold_on(life, convicted);
}

/// Authors of the cheat's blocks leave out what the honest challenger plays.
pub fn censors(life: &mut Life) {
    life.censored = f64::from(life.market.corrupt) / 100.0;
    collusion(life);
}

/// Two providers; the cheat commits to what it has seen of the other's.
pub fn copying(life: &mut Life) {
    life.work(Role::Rival);
    let right = life.claim(true);
    let other = life.commit(Role::Rival, right.clone());
    life.transact(Role::Provider);
    let copied = other.commitment;
    life.draw();
    if !life.opens(Role::Rival, &other.commitment, &other.claim, &other.salt) {
        life.tally.honest_slashes += 1;
    }
    // It knows all that the other has revealed, and its own account is not the other's.
    let claims = if life.opens(Role::Provider, &copied, &other.claim, &other.salt) {
        vec![right.clone(), right]
    } else {
        vec![right]
    };
    if let Agreement::Reached { supporters: 2, .. } = agreement(&claims, 2) {
        return life.settle(Role::Provider, true);
    }
    life.no_reveal(Role::Provider, true);
}

/// Two providers work.
pub fn two_honest(life: &mut Life) {
    life.work(Role::Rival);
    life.right_result(Role::Provider, Cronies::Work);
    life.books.pay(Role::Client, Role::Rival, REWARD);
}

/// Who is shortlisted for three seats.
pub const SHORTLISTED: u32 = 6;

/// Seats that are the cheat's when three are drawn from a shortlist of six of which it has `own`.
pub fn seats(life: &mut Life, mut own: u32) -> u128 {
    let (mut left, mut seats) = (SHORTLISTED, 0);
    for _ in 0..3 {
        if life.dice.below(left) < own {
            own -= 1;
            seats += 1;
        }
        left -= 1;
    }
    seats
}

/// Three seats, and several stashes of one cheat. Its verifiers need no more names: a split stake is drawn as
/// often, which `surety-audit-economics` has tests of.
pub fn sybils(life: &mut Life) {
    let seats = seats(life, SHORTLISTED / 2);
    lies_on(life, seats);
}

/// The same wrong result on so many of three seats.
pub fn lies_on(life: &mut Life, seats: u128) {
    let drawn = life.draw();
    life.books
        .pay(Role::World, Role::Provider, life.market.outside * seats.min(1));
    let claims: Vec<_> = (0..3).map(|seat| life.claim(seat >= seats)).collect();
    // One right claim among them is enough for a dispute.
    let convicted = match agreement(&claims, 3) {
        Agreement::Reached { supporters: 3, .. } if seats == 3 => life.found(drawn.honest),
        _ if seats == 0 => return,
        _ => life.dispute(false, Challenger::Computes) == Side::Challenger,
    };
    for _ in 0..seats {
        life.judged(convicted, Drawn::default(), Cronies::Work, Role::Rival);
    }
}

/// The same seats with honest work.
pub fn sybils_honest(life: &mut Life) {
    for _ in 0..seats(life, SHORTLISTED / 2) {
        life.work(Role::Provider);
        life.settle(Role::Provider, true);
    }
}

/// A wrong result that is opened only where nobody honest has announced an audit of it.
pub fn aborts(life: &mut Life) {
    let sealed = life.commit(Role::Provider, life.claim(false));
    let drawn = life.draw();
    if drawn.honest > 0 {
        life.audit(Role::Verifier, drawn.honest);
        return life.no_reveal(Role::Provider, true);
    }
    life.books.pay(Role::World, Role::Provider, life.market.outside);
    life.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
    life.judged(false, drawn, Cronies::Work, Role::Verifier);
}

/// Nobody gets the output, so that nobody can see that it is wrong. The client demands it on chain.
pub fn withholds_data(life: &mut Life) {
    let sealed = life.commit(Role::Provider, life.claim(false));
    life.draw();
    life.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
    // What is demanded would have to hash to what was committed to, and could then be audited.
    life.convict(Role::Provider, Role::Client, true);
}

/// Delivers a wrong output, and does not answer when its trace is asked for.
pub fn withholds_trace(life: &mut Life) {
    let sealed = life.commit(Role::Provider, life.claim(false));
    let drawn = life.draw();
    life.books.pay(Role::World, Role::Provider, life.market.outside);
    life.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
    life.audit(Role::Verifier, drawn.honest);
    let dispute = Dispute {
        silent: true,
        ..Dispute::of(false, Challenger::Computes, life.rules.blocks.clock)
    };
    let convicted = drawn.honest > 0 && life.played(dispute) == Side::Challenger;
    life.judged(convicted, drawn, Cronies::Work, Role::Verifier);
}

/// Signs two results for one task, and shows the wrong one to whom it pays. Anybody who has both reports
/// them.
pub fn equivocates(life: &mut Life) {
    life.work(Role::Provider);
    let one = life.commit(Role::Provider, life.claim(true));
    let other = life.commit(Role::Provider, life.claim(false));
    life.draw();
    life.books.pay(Role::World, Role::Provider, life.market.outside);
    if one.commitment != other.commitment {
        life.tally.convicted = 1;
        let lost = life.penalty(life.plan.lock, life.rules.base);
        // The finder is its own: half of it is burned all the same.
        let shares = life.rules.split.shares(lost);
        life.books.pay(Role::Provider, Role::Burned, shares.burned);
        life.books.pay(Role::Provider, Role::Client, shares.client);
        return;
    }
    life.settle(Role::Provider, true);
}

/// Unbonds as soon as it has committed: the lock stays, the rest is free when its time has come.
pub fn unbonds(life: &mut Life) {
    life.transact(Role::Provider);
    let before = life.books.clone();
    let convicted = life.wrong_result(Cronies::Work, Role::Verifier);
    if convicted && life.rules.blocks.unbonding < life.rules.blocks.slashed_within() {
        // Only what is still there can be taken: the lock.
        let outside = life.market.outside;
        life.books = before;
        life.books.pay(Role::World, Role::Provider, outside);
        life.slash(Role::Provider, life.plan.lock, Role::Verifier, true);
    }
}

/// Sends again what it committed to and opened for another task.
pub fn replays(life: &mut Life) {
    let claim = life.claim(true);
    let salt = life.dice.hash();
    let old = commitment(life.task ^ 1, &Role::Provider.account(), &claim, &salt);
    life.transact(Role::Provider);
    life.draw();
    if life.opens(Role::Provider, &old, &claim, &salt) {
        return life.settle(Role::Provider, true);
    }
    life.no_reveal(Role::Provider, true);
}

/// Takes the task and does nothing; somebody else gets it.
pub fn never_commits(life: &mut Life) {
    life.draw();
}

/// One seat, two bidders: by chance one of them gets it.
pub fn opens_bid(life: &mut Life) {
    life.transact(Role::Provider);
    if life.dice.chance(0.5) {
        life.right_result(Role::Provider, Cronies::Work);
    }
}

/// Opens its bid last, and only when it likes the draw. It cannot know it: a later block's VRF is in the
/// seed. So it withholds at random, and loses a deposit each time.
pub fn grinds_seats(life: &mut Life) {
    let drawn = life.dice.chance(0.5);
    life.transact(Role::Provider);
    if life.dice.chance(0.5) {
        life.books
            .pay(Role::Provider, Role::Burned, life.rules.bid_deposit);
    } else if drawn {
        life.right_result(Role::Provider, Cronies::Work);
    }
}

/// As soon as it is found out it gives up to a friend, who is to be the finder and to let off the verifiers
/// that confirmed.
pub fn concedes_to_a_friend(life: &mut Life) {
    let convicted = life.lost_on_purpose(Some(Role::Challenger));
    sold_on(life, convicted);
}

/// As soon as it is found out it does not play, so that nothing is judged.
pub fn runs_out_of_time(life: &mut Life) {
    let convicted = life.lost_on_purpose(None);
    sold_on(life, convicted);
}

/// Its verifiers open what they confirm when whoever found it out has won and gone. Until then they risk
/// nothing.
pub fn confirmed_late(life: &mut Life) {
    let convicted = life.lost_on_purpose(None);
    // As late as that, and once more.
    life.transact(Role::Crony);
    sold_on(life, convicted);
}

/// Has a friend on the same task contradict it in what no block can compute, and nobody decides that. Neither
/// is paid.
pub fn shields_itself_by_a_lesser_fault(life: &mut Life) {
    let sealed = life.commit(Role::Provider, life.claim(false));
    let drawn = life.draw();
    life.books.pay(Role::World, Role::Provider, life.market.outside);
    life.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
    let convicted = life.found(drawn.honest) && life.rules.pursuit.graver;
    if convicted {
        life.convict(Role::Provider, Role::Verifier, true);
    }
}
