//! The checker notices what is off.

use frame_support::{assert_err, assert_noop, assert_ok};
use pallet_session::historical::HistoricalSessions;
use sp_runtime::{Perbill, testing::UintAuthorityId};

use crate::{
    Authored, Candidates, ChillReason, Error, Event, Punished, Punishment, RunningKeys, Services, mock::*,
};

fn complains(break_it: impl FnOnce(), complaint: &'static str) {
    TestExt::new(4).build().execute_with(|| {
        pass_sessions(1);
        break_it();
        assert_err!(Validators::do_try_state(), complaint);
    });
}

#[test]
fn every_invariant_is_checked() {
    let other_root = "VALIDATOR-1: a session has another root than its keys";
    complains(|| HistoricalSessions::<Test>::remove(1), other_root);
    complains(|| HistoricalSessions::<Test>::remove(2), other_root);
    complains(
        || RunningKeys::<Test>::mutate(|keys| keys[0].1 = UintAuthorityId(5)),
        other_root,
    );
    complains(
        || pallet_session::Validators::<Test>::mutate(|validators| validators.swap(0, 1)),
        "VALIDATOR-2: keys of others than the validators",
    );
    complains(
        || CandidatesMost::set(3),
        "VALIDATOR-3: more candidates than there may be",
    );
    complains(
        || Jailed::set([2].into()),
        "VALIDATOR-3: who is in jail can be elected",
    );
    complains(
        || Candidates::<Test>::remove(2),
        "VALIDATOR-4: who is no candidate would be paid",
    );
    complains(
        || {
            Services::<Test>::remove(2);
            Authored::<Test>::insert(9, 1);
        },
        "VALIDATOR-5: who is no validator made a block",
    );
    complains(
        || {
            let punishment = Punishment {
                session: 0,
                until: 6,
                slash: None,
                before: Perbill::from_percent(2),
                part: Perbill::from_percent(1),
                withheld: None,
            };
            Punished::<Test>::insert(2, punishment);
        },
        "VALIDATOR-6: less is lost in all than before",
    );
}

/// Its pool is there for as long as a friend's stake is. Its own is a provider's by then.
#[test]
fn who_has_left_may_be_in_jail_for_something_else() {
    TestExt::new(4).execute_with(|| {
        set_stake(2, 0, 10);
        Jailed::set([2].into());
        assert_ok!(Validators::do_try_state());
        pass_sessions(1);
        let (operator, reason) = (2, ChillReason::NoBond);
        System::assert_has_event(Event::Chilled { operator, reason }.into());
        // It comes back before that is over.
        set_stake(2, SELF_BOND, BACKING);
        assert_ok!(Validators::do_try_state());
        assert_noop!(
            Validators::validate(RuntimeOrigin::signed(2)),
            Error::<Test>::Jailed
        );
        Jailed::take();
        assert_ok!(Validators::validate(RuntimeOrigin::signed(2)));
    });
}
