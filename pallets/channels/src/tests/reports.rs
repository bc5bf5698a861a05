//! What a provider loses that said two things or batched what it never said, and what it keeps.

use proptest::sample::Index;
use sp_runtime::DispatchResult;
use surety_channels::{BatchEvidence, End, Ending, Equivocation, Said};
use surety_proofs::{SegmentOpening, content_hash};
use surety_types::trust::FaultKind;

use super::*;

/// A request of 10 ids, at 5 plancks a token.
fn request() -> Request {
    generation(10_000, 5)
}

/// What a generation of these ids says so far.
fn said(tokens: &[u32]) -> Vec<u8> {
    let words = std::iter::once(&0).chain(tokens);
    words.flat_map(|word| word.to_le_bytes()).collect()
}

fn statement(channel: ChannelId, tokens: &[u32], is_over: bool) -> ChunkStatement<AccountId32> {
    let (request, bytes) = (request(), said(tokens));
    let units = 10 + tokens.len() as u32;
    ChunkStatement {
        channel,
        payee: stash(),
        nonce: 0,
        request: request.hash(),
        bytes: bytes.len() as u32,
        output: content_hash(&bytes),
        units,
        price: request.price(units).expect("small"),
        end: is_over.then_some(Ending {
            how: End::Length,
            trace_root: H256::repeat_byte(3),
        }),
    }
}

fn shown(longer: &[u32], shorter: &[u32]) -> Option<SegmentOpening> {
    SegmentOpening::new(&said(longer), (said(shorter).len() as u32 - 1) / 1024)
}

fn equivocation(channel: ChannelId, pair: &sr25519::Pair) -> Equivocation<AccountId32> {
    Equivocation {
        one: signed_by(pair, statement(channel, &[1, 2, 3], false)),
        other: signed_by(pair, statement(channel, &[1, 2, 4], true)),
        shown: None,
    }
}

fn report(evidence: Equivocation<AccountId32>) -> DispatchResult {
    ChannelsPallet::report_equivocation(signed(reporter()), Box::new(evidence))
}

/// The only receipt of a batch, which counts `price`.
fn lone(statement: &ChunkStatement<AccountId32>, price: u128) -> Batch {
    let entry = BatchEntry {
        channel: statement.channel,
        nonce: 0,
        price,
        leaf: ReceiptLeaf {
            receipt: H256(statement.message(&GENESIS)),
            salt: H256::zero(),
        },
    };
    Batch::new(&[entry]).expect("well-formed")
}

fn report_batch(number: BatchNumber, evidence: BatchEvidence<AccountId32>) -> DispatchResult {
    ChannelsPallet::report_batch(signed(reporter()), stash(), number, None, Box::new(evidence))
}

#[test]
fn who_says_two_things_loses_its_standing_lock_and_whoever_shows_it_gets_a_part() {
    run(|| {
        let channel = open(5 * SURE);
        let before = (whole(&stash()), free(&reporter()));
        assert_ok!(report(equivocation(channel, &agent_pair())));
        assert_eq!(Convicted::get(), [FaultKind::Equivocation]);
        assert_eq!(whole(&stash()), before.0 - LOCK);
        assert_eq!(free(&reporter()), before.1 + LOCK / 5);
        assert_eq!(lock(), 0);
        // It is not taken twice, for these two or for others of the same time.
        assert_noop!(
            report(equivocation(channel, &agent_pair())),
            Error::<Test>::TooLate
        );
        // The payer gets its deposit back, and puts no more into it.
        assert_noop!(
            ChannelsPallet::top_up(signed(payer()), channel, SURE),
            Error::<Test>::NotStanding
        );
        assert_ok!(ChannelsPallet::close(signed(payer()), channel));
        pass(CLOSING + 2);
        assert_eq!(free(&payer()), START);
    });
}

#[test]
fn nobody_is_convicted_by_what_others_signed_or_by_what_agrees() {
    run(|| {
        let channel = open(5 * SURE);
        let other = sr25519::Pair::from_seed(&[8; 32]);
        assert_noop!(
            report(equivocation(channel, &other)),
            Error::<Test>::UnknownSigner
        );
        let mut forged = equivocation(channel, &other);
        forged.one.agent = agent();
        forged.other.agent = agent();
        assert_noop!(report(forged), Error::<Test>::NoFault);
        let agrees = Equivocation {
            other: signed_by(&agent_pair(), statement(channel, &[1, 2, 3, 4], true)),
            shown: shown(&[1, 2, 3, 4], &[1, 2, 3]),
            ..equivocation(channel, &agent_pair())
        };
        assert_noop!(report(agrees), Error::<Test>::NoFault);
        assert!(Convicted::get().is_empty());
    });
}

#[test]
fn another_agent_does_not_undo_what_the_first_one_signed() {
    run(|| {
        let channel = open(5 * SURE);
        let next = AccountId32::new([6; 32]);
        assert_ok!(Staking::set_agent(signed(stash()), next.clone()));
        assert_ok!(Staking::confirm_agent(signed(next.clone()), stash()));
        assert_ok!(ChannelsPallet::add_signer(signed(next)));
        assert_ok!(report(equivocation(channel, &agent_pair())));
        assert_eq!(Convicted::get(), [FaultKind::Equivocation]);
    });
}

#[test]
fn a_batch_that_counts_what_no_receipt_says_is_a_false_one() {
    run(|| {
        let channel = open(5 * SURE);
        let said = statement(channel, &[1, 2], true);
        // Hidden from draws, which meet receipts by their price.
        let made = lone(&said, 1);
        let number = commit(&made);
        let receipt = batched(&made, said);
        let evidence = BatchEvidence::Receipt {
            batched: receipt,
            request: None,
        };
        assert_noop!(report_batch(number + 1, evidence.clone()), Error::<Test>::NoBatch);
        assert_ok!(report_batch(number, evidence.clone()));
        assert_eq!(Convicted::get(), [FaultKind::FalseBatch]);
        assert_noop!(report_batch(number, evidence), Error::<Test>::TooLate);
    });
}

#[test]
fn a_receipt_that_contradicts_what_its_client_was_told_is_an_equivocation() {
    run(|| {
        let channel = open(5 * SURE);
        let said = statement(channel, &[1, 2, 4], true);
        let made = lone(&said, said.price);
        let number = commit(&made);
        let evidence = |told| BatchEvidence::Contradiction {
            batched: batched(&made, said.clone()),
            said: Said::Signed(told),
            shown: shown(&[1, 2, 4], &[1, 2]),
        };
        let honest = signed_by(&agent_pair(), statement(channel, &[1, 2], false));
        assert_noop!(report_batch(number, evidence(honest)), Error::<Test>::NoFault);
        let other = sr25519::Pair::from_seed(&[8; 32]);
        let foreign = signed_by(&other, statement(channel, &[1, 2, 3], false));
        assert_noop!(
            report_batch(number, evidence(foreign)),
            Error::<Test>::UnknownSigner
        );
        let told = signed_by(&agent_pair(), statement(channel, &[1, 2, 3], false));
        assert_ok!(report_batch(number, evidence(told)));
        assert_eq!(Convicted::get(), [FaultKind::Equivocation]);
    });
}

#[test]
fn a_conviction_voids_all_that_is_not_paid_and_the_payer_has_the_rest_back_at_once() {
    run(|| {
        let (channel, other) = (open(5 * SURE), open(5 * SURE));
        let one = batch(channel, 0, &[SURE]);
        let one = (commit(&one), one);
        pass(WINDOW + 1);
        redeem_and_wait(channel, 5 * SURE, &[one]);
        let (two, three) = (batch(channel, 1, &[SURE]), batch(channel, 2, &[SURE]));
        let two = (commit(&two), two);
        pass(WINDOW + 1);
        // It is counted, and not due; that of the other channel is final, and nobody has counted it.
        assert_ok!(redeem(channel, 5 * SURE, &[two]));
        let three = (commit(&three), three);
        pass(WAIT);
        assert_ok!(ChannelsPallet::close(signed(payer()), other));
        assert_ok!(report(equivocation(channel, &agent_pair())));
        pass(WINDOW + 1);
        let opening = three.1.open_channel(channel).expect("has it");
        let hold = ChannelsPallet::hold(signed(agent()), channel, three.0, opening);
        assert_eq!(hold, Err(Error::<Test>::TooLate.into()));
        for batches in [vec![three], vec![]] {
            assert_noop!(redeem(channel, 5 * SURE, &batches), Error::<Test>::TooLate);
        }
        let expiry = ChannelsPallet::time() + LIFE;
        let extended = ChannelsPallet::extend(signed(payer()), channel, expiry);
        assert_eq!(extended, Err(Error::<Test>::NotStanding.into()));
        assert_eq!((held(), free(&payer())), (9 * SURE, START - 10 * SURE));
        for of in [channel, other] {
            assert_ok!(ChannelsPallet::close(signed(payer()), of));
        }
        assert_eq!((held(), free(&payer())), (0, START - SURE));
        // What is played about it meanwhile still knows its payer.
        assert!(Channels::<Test>::contains_key(channel));
        pass(CLOSING + 2);
        assert_eq!(Channels::<Test>::iter().count(), 0);
        assert_eq!(free(&payer()), START - SURE);
    });
}

#[test]
fn a_payee_whose_account_cannot_take_its_pay_is_paid_when_it_can() {
    run(|| {
        let channel = open(5 * SURE);
        let small = batch(channel, 0, &[1]);
        let made = [(commit(&small), small)];
        pass(WINDOW + 1);
        assert_ok!(redeem(channel, 1, &made));
        pass(WAIT);
        frame_system::Account::<Test>::mutate(stash(), |account| account.data.free = 0);
        assert_noop!(redeem(channel, 1, &[]), Error::<Test>::PayeeCannotTake);
        assert_ok!(Balances::transfer_allow_death(signed(reporter()), stash(), 5));
        assert_ok!(redeem(channel, 1, &[]));
        assert_eq!(free(&stash()), 6);
    });
}

#[test]
fn who_was_convicted_begins_again_with_a_lock_a_key_and_channels_that_are_new() {
    run(|| {
        let old = open(5 * SURE);
        assert_ok!(report(equivocation(old, &agent_pair())));
        let stand = || ChannelsPallet::stand(signed(stash()), LOCK, CAP);
        InJail::set(true);
        assert_noop!(stand(), Error::<Test>::InJail);
        InJail::set(false);
        assert_ok!(stand());
        assert!(Standings::<Test>::get(stash()).expect("known").signers.is_empty());
        assert_ok!(ChannelsPallet::add_signer(signed(agent())));
        // What was punished is not punished again, and what comes now pays the old channel nothing.
        assert_noop!(report(equivocation(old, &agent_pair())), Error::<Test>::TooLate);
        let new = open(5 * SURE);
        let of_old = batch(old, 0, &[SURE]);
        let of_old = [(commit(&of_old), of_old)];
        let of_new = batch(new, 0, &[SURE]);
        let of_new = [(commit(&of_new), of_new)];
        pass(WINDOW + 1);
        assert_noop!(redeem(old, SURE, &of_old), Error::<Test>::TooLate);
        assert_ok!(redeem(new, SURE, &of_new));
        assert_ok!(report(equivocation(new, &agent_pair())));
        assert_eq!(Convicted::get(), [FaultKind::Equivocation; 2]);
    });
}

#[test]
fn no_more_agents_sign_for_a_provider_than_can_be_kept() {
    run(|| {
        for one in 0..crate::SIGNERS_MAX as u8 {
            let agent = AccountId32::new([100 + one; 32]);
            assert_ok!(Staking::set_agent(signed(stash()), agent.clone()));
            assert_ok!(Staking::confirm_agent(signed(agent.clone()), stash()));
            let added = ChannelsPallet::add_signer(signed(agent.clone()));
            let is_full = u32::from(one) + 1 == crate::SIGNERS_MAX;
            assert_eq!(
                added,
                if is_full {
                    Err(Error::<Test>::TooManySigners.into())
                } else {
                    Ok(())
                }
            );
        }
        // Who sells nothing for a moment may begin anew.
        assert_ok!(ChannelsPallet::stand(signed(stash()), 0, 0));
        assert_ok!(ChannelsPallet::stand(signed(stash()), LOCK, CAP));
        let last = AccountId32::new([99 + crate::SIGNERS_MAX as u8; 32]);
        assert_ok!(ChannelsPallet::add_signer(signed(last)));
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any two statements that an honest payee has made of one answer, whatever is shown with them.
    #[test]
    fn what_an_honest_payee_says_never_convicts_it(
        tokens in proptest::collection::vec(any::<u32>(), 1..900),
        (one, two, at) in any::<(Index, Index, Index)>(),
        (is_over, is_batched) in any::<(bool, bool)>(),
    ) {
        run(|| {
            let channel = open(5 * SURE);
            let (one, two) = (one.index(tokens.len() + 1), two.index(tokens.len() + 1));
            let (short, long) = (one.min(two), one.max(two));
            let long_one = &tokens[..long];
            let over = is_over || is_batched;
            let bytes = said(long_one);
            let segment = at.index(bytes.len().div_ceil(1024)) as u32;
            let shown = SegmentOpening::new(&bytes, segment);
            let short = statement(channel, &tokens[..short], over && short == long);
            let long = statement(channel, long_one, over);
            let refused = if is_batched {
                let made = lone(&long, long.price);
                let number = commit(&made);
                let evidence = BatchEvidence::Contradiction {
                    batched: batched(&made, long),
                    said: Said::Signed(signed_by(&agent_pair(), short)),
                    shown,
                };
                report_batch(number, evidence)
            } else {
                let (one, other) = (signed_by(&agent_pair(), short), signed_by(&agent_pair(), long));
                report(Equivocation { one, other, shown })
            };
            assert_eq!(refused, Err(Error::<Test>::NoFault.into()));
            assert!(Batches::<Test>::iter_values().all(|record| !record.window.is_void));
        });
    }
}
