//! Whatever happens, every planck is somewhere.

use proptest::{collection::vec, prelude::*};
use sp_runtime::Permill;
use surety_types::traits::Escrow;

use crate::{Pallet, Totals, mock::*};

/// One step of a random history. Tasks are numbered 0..4, so that steps often meet.
#[derive(Clone, Debug)]
enum Step {
    Open {
        task: u64,
        client: AccountId,
        cap: Balance,
    },
    Settle {
        task: u64,
        payments: Vec<(AccountId, Balance)>,
        audits: Vec<(AccountId, AccountId)>,
    },
    Refund {
        task: u64,
    },
    Leave {
        client: AccountId,
    },
    Forfeit {
        task: u64,
        providers: Vec<AccountId>,
    },
    Lock {
        part: u32,
    },
    Fees {
        rate: u32,
        minimum: Balance,
        treasury: u32,
        validators: u32,
    },
}

fn any_amount() -> impl Strategy<Value = Balance> {
    prop_oneof![3 => 0u128..300, 3 => 0u128..20_000, 1 => 0u128..=1_100_000]
}

fn any_step() -> impl Strategy<Value = Step> {
    let payee = prop_oneof![Just(ALICE), Just(BOB), Just(CLIENT), GHOST..GHOST + 3];
    prop_oneof![
        4 => (0u64..4, CLIENT..=OTHER_CLIENT, any_amount())
            .prop_map(|(task, client, cap)| Step::Open { task, client, cap }),
        1 => (0u64..4, vec(payee.clone(), 0..5))
            .prop_map(|(task, providers)| Step::Forfeit { task, providers }),
        4 => (0u64..4, vec((payee.clone(), any_amount()), 0..5), vec((payee.clone(), payee), 0..8))
            .prop_map(|(task, payments, audits)| Step::Settle { task, payments, audits }),
        1 => (0u64..4).prop_map(|task| Step::Refund { task }),
        1 => (CLIENT..=OTHER_CLIENT).prop_map(|client| Step::Leave { client }),
        1 => (0u32..=1_000_000).prop_map(|part| Step::Lock { part }),
        1 => (0u32..=1_000_000, 0u128..300, 0u32..=1_000_000, 0u32..=1_000_000)
            .prop_map(|(rate, minimum, treasury, validators)| Step::Fees { rate, minimum, treasury, validators }),
    ]
}

/// Carries out `step`, and checks what it says of itself.
fn take(step: Step) {
    match step {
        Step::Open { task, client, cap } => {
            let (before, held) = (free(client), Billing::held(task));
            if Billing::open(task, &client, cap).is_ok() {
                let left = before - cap - Billing::client_lock(cap);
                assert!(left >= ED);
                assert_eq!((held, Billing::held(task), free(client)), (0, cap, left));
            } else {
                assert_eq!((Billing::held(task), free(client)), (held, before));
            }
        }
        Step::Settle {
            task,
            payments,
            audits,
        } => {
            let payments: Vec<_> = payments
                .into_iter()
                .map(|(who, price)| payment(who, price))
                .collect();
            let audits: Vec<_> = audits
                .into_iter()
                .map(|(provider, verifier)| audit(provider, verifier))
                .collect();
            let due: Balance = payments.iter().map(|payment| payment.price).sum();
            let (held, issued, burned) = (Billing::held(task), issuance(), Totals::<Test>::get().burned);
            match Billing::settle(task, &payments, &audits) {
                Ok(settlement) => {
                    assert_eq!(settlement.paid, due);
                    assert_eq!(settlement.paid + settlement.fee + settlement.refund, held);
                    assert_eq!(Billing::held(task), 0);
                    assert_eq!(issued - issuance(), Totals::<Test>::get().burned - burned);
                }
                Err(_) => {
                    assert!(held == 0 || due > held);
                    assert_eq!((Billing::held(task), issuance()), (held, issued));
                }
            }
        }
        Step::Refund { task } => {
            let held = Billing::held(task);
            assert_eq!(Billing::refund(task).is_ok(), held > 0);
            assert_eq!(Billing::held(task), 0);
        }
        Step::Forfeit { task, providers } => {
            let (held, issued, burned) = (Billing::held(task), issuance(), Totals::<Test>::get().burned);
            assert_eq!(Billing::forfeit(task, &providers).is_ok(), held > 0);
            assert_eq!(Billing::held(task), 0);
            assert_eq!(issued - issuance(), Totals::<Test>::get().burned - burned);
        }
        // All that it has goes to somebody else; its account does, too, unless something keeps it.
        Step::Leave { client } => {
            Balances::transfer_all(RuntimeOrigin::signed(client), ALICE, false).ok();
        }
        Step::Lock { part } => ClientLock::set(Permill::from_parts(part)),
        Step::Fees {
            rate,
            minimum,
            treasury,
            validators,
        } => {
            FeeRate::set(Permill::from_parts(rate));
            FeeMin::set(minimum);
            TreasuryShare::set(Permill::from_parts(treasury));
            ValidatorShare::set(Permill::from_parts(validators));
        }
    }
}

fn wealth() -> Balance {
    frame_system::Account::<Test>::iter_values()
        .map(|account| account.data.free + account.data.reserved)
        .sum()
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(400)))]

    #[test]
    fn any_history_conserves_every_planck(
        steps in vec(any_step(), 1..40), young in any::<bool>(), kept_alive in any::<bool>(),
    ) {
        let chain = if young { TestExt::new().without(TREASURY).without(POT) } else { TestExt::new() };
        chain.execute_with(|| {
            if kept_alive {
                System::inc_providers(&CLIENT);
            }
            let start = issuance();
            for step in steps {
                take(step);
                assert_eq!(Pallet::<Test>::do_try_state(), Ok(()));
                assert_eq!(wealth(), issuance());
                assert_eq!(start - issuance(), Totals::<Test>::get().burned);
            }
            // Whatever is open can be closed.
            for task in 0..4 {
                take(Step::Refund { task });
            }
            assert_eq!(in_pot(), 0);
        });
    }
}
