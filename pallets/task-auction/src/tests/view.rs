//! What people and their programs ask.

use frame_support::assert_ok;
use surety_pallet_test_kit::{MockEscrow, MockModels, MockTrust};
use surety_types::{
    task::{AuditTerms, SecurityLevel},
    traits::{Escrow, TaskTrust},
    view::{AuctionView, BidTerms, Quote},
};

use crate::{Error, TaskStateOf, mock::*};

fn terms(redundancy: u32) -> BidTerms<Balance> {
    let price_limit = MockEscrow::price_limit(CAP, redundancy).unwrap();
    BidTerms {
        price_limit,
        lock: MockTrust::lock_for(price_limit, &Default::default(), &AuditTerms::default()),
    }
}

#[test]
fn a_task_is_shown_with_its_bids_its_escrow_and_what_can_be_earned() {
    TestExt::new().providers(2).execute_with(|| {
        let id = post(1);
        assert_ok!(place(id, 0, 500));
        assert_ok!(place(id, 1, 600));
        run_to(1 + BID_WINDOW + 1);
        assert_ok!(open(id, 0, 500));
        let expected = AuctionView {
            task: task(id),
            placed: 2,
            opened: 1,
            escrow: CAP,
            terms: Some(terms(1)),
        };
        assert_eq!(TaskAuction::task(id), Some(expected));
        assert_eq!(TaskAuction::bid_terms(id), Some(terms(1)));
        assert_eq!(
            (TaskAuction::task(id + 1), TaskAuction::bid_terms(id + 1)),
            (None, None)
        );
    });
}

#[test]
fn a_task_that_is_over_is_shown_until_it_is_removed() {
    TestExt::new().execute_with(|| {
        let id = post(1);
        assert_ok!(TaskAuction::cancel(signed(CLIENT), id));
        let shown = TaskAuction::task(id).unwrap();
        assert_eq!(shown.task.state, TaskStateOf::<Test>::Cancelled { at: 1, fee: 0 });
        assert_eq!(shown.escrow, 0);
        run_to(1 + RETENTION + 2);
        assert_eq!(TaskAuction::task(id), None);
    });
}

#[test]
fn a_quote_is_what_the_task_comes_to_once_it_is_posted() {
    TestExt::new().execute_with(|| {
        let expected = Quote {
            level: SecurityLevel::Standard,
            audits: AuditTerms::default(),
            terms: terms(3),
        };
        assert_eq!(TaskAuction::quote(spec(3), CAP), Ok(expected));
        let id = post(3);
        assert_eq!(TaskAuction::bid_terms(id), Some(expected.terms));
        assert_eq!(task(id).spec.security.level, expected.level);
    });
}

#[test]
fn a_quote_says_at_which_level_a_task_with_much_at_risk_would_be_watched() {
    TestExt::new().execute_with(|| {
        MockTrust::set_risk_max(100);
        let mut risky = spec(1);
        risky.security.value_at_risk = 60;
        assert_eq!(
            TaskAuction::quote(risky.clone(), CAP).unwrap().level,
            SecurityLevel::High
        );
        risky.security.value_at_risk = 101;
        assert_eq!(TaskAuction::quote(risky, CAP), Err(MockTrust::TOO_RISKY));
    });
}

#[test]
fn a_quote_gives_the_error_that_posting_would_give_and_posts_nothing() {
    TestExt::new().execute_with(|| {
        let refused = |spec, cap| TaskAuction::quote(spec, cap).unwrap_err();
        assert_eq!(refused(spec(0), CAP), Error::<Test>::ZeroRedundancy.into());
        assert_eq!(refused(spec(1), 0), MockEscrow::CAP_BELOW_FEE);
        MockModels::retire(MODEL);
        assert_eq!(refused(spec(1), CAP), MockModels::TAKES_NO_TASKS);
        assert_eq!(crate::NextTaskId::<Test>::get(), 0);
    });
}
