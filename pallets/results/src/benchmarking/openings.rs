//! Openings that take longest to be found right.

use frame_benchmarking::{BenchmarkError, account};
use frame_support::{BoundedVec, assert_ok, pallet_prelude::TransactionSource, traits::Authorize};
use sp_core::H256;
use sp_runtime::traits::One;
use surety_audit_economics::{answer_hash, audit_seal, items_seal};
use surety_pallet_trust_lock::{Offence, Pallet as TrustLock, fill_convictions};
use surety_types::{
    limits::{AUDIT_ITEMS_MAX, AUDITS_MAX, FINDERS_MAX, REDUNDANCY_MAX},
    model::Operation,
    task::{MemberProgress, ResultClaim, RoundPhase},
    trust::{Audit, AuditAnswer, AuditState, FaultKind, ItemFound, ItemsFound, ItemsOpened, SlashCause},
};

use super::{
    demands::shown_before,
    setup::{TASK, agent_of, at, audited_by_all, challengeable, claim, contradicted, disputable, full_round},
};
use crate::{Call, Config, DisputeContexts, DisputeReferee, Rounds};

const SALT: H256 = H256::repeat_byte(3);

/// What a pool does with it.
pub(super) fn authorize<T: Config>(call: &Call<T>) -> Result<(), BenchmarkError> {
    call.authorize(TransactionSource::External)
        .ok_or("no signature is asked for")??;
    Ok(())
}

/// By the last member of a full round, whose claim a referee looks at.
pub(super) fn last_reveal<T: Config>() -> Call<T> {
    let claim = disputable::<T>();
    let (provider, _) = agent_of::<T>(REDUNDANCY_MAX - 1);
    let until = TrustLock::<T>::now();
    let sealed = surety_proofs::commitment(TASK, &provider, &claim, &SALT);
    let round = full_round::<T>(RoundPhase::Revealing { until }, |_| {
        MemberProgress::Committed(sealed)
    });
    Rounds::<T>::insert(TASK, round);
    Call::reveal {
        task: TASK,
        provider,
        claim,
        salt: SALT,
    }
}

/// By the last member of a full round whose audit window is over: of another output than it has shown, while
/// the verdict is as large as it can be and as many disputes begin as begin at once. Returns who opens what.
pub(super) fn convicting_reveal<T: Config>() -> (T::AccountId, ResultClaim, H256) {
    let said = disputable::<T>();
    let last = REDUNDANCY_MAX - 1;
    let (stash, agent) = agent_of::<T>(last);
    let until = TrustLock::<T>::now();
    let majority = surety_dispute_game::majority(REDUNDANCY_MAX);
    let mut round = full_round::<T>(RoundPhase::Auditing { until }, |seat| {
        if seat == last {
            let sealed = surety_proofs::commitment(TASK, &stash, &said, &SALT);
            MemberProgress::Committed(sealed)
        } else if seat < majority {
            MemberProgress::Revealed(said.clone())
        } else {
            MemberProgress::Revealed(ResultClaim {
                output: H256::repeat_byte(seat as u8),
                ..said.clone()
            })
        }
    });
    round.terms.operation = Operation::Generate;
    audited_by_all::<T>(&mut round, &stash);
    let other_provider: T::AccountId = account("provider", 0, 0);
    contradicted::<T>(&mut round, &other_provider);
    shown_before::<T>(&stash, &agent);
    fill_convictions::<T>(One::one());
    Rounds::<T>::insert(TASK, round);
    at::<T>(until + One::one());
    (stash, said, SALT)
}

/// Of an audit of a full round that found another result than a provider that has lost: it shares in the
/// slash with all others that there is room for, and plays the next that says the same.
pub(super) fn differing_audit<T: Config>() -> Call<T> {
    let said = disputable::<T>();
    let verifier: T::AccountId = account("auditor", 0, 0);
    let provider: T::AccountId = account("provider", 0, 0);
    let mut round = challengeable::<T>(&said, |_| None);
    if let Some(member) = round.members.iter_mut().next() {
        member.fault = Some(FaultKind::WrongResult);
        member.slash = TrustLock::<T>::convict(Offence {
            cause: SlashCause::Task(TASK),
            offender: provider.clone(),
            kind: FaultKind::WrongResult,
            lock: One::one(),
            finders: BoundedVec::truncate_from(
                (1..FINDERS_MAX)
                    .map(|place| account("finder", place, 0))
                    .collect(),
            ),
            finder: None,
            client: None,
        });
    }
    let claim = ResultClaim {
        output: H256::repeat_byte(9),
        ..said
    };
    let seal = audit_seal(TASK, &provider, &verifier, &claim, &SALT);
    assert_ok!(round.audits.try_push(Audit {
        verifier: verifier.clone(),
        provider: provider.clone(),
        bond: One::one(),
        draw: Default::default(),
        items: None,
        state: AuditState::Sealed(seal),
    }));
    // As many further ones play as are matched at once.
    let mut others = round.audits.iter_mut().filter(|audit| audit.provider != provider);
    for audit in others.by_ref().take(3) {
        audit.state = AuditState::Differs;
    }
    Rounds::<T>::insert(TASK, round);
    Call::reveal_audit {
        task: TASK,
        provider,
        verifier,
        claim,
        salt: SALT,
    }
}

const ANSWER: AuditAnswer = AuditAnswer {
    agrees: false,
    salt: SALT,
    other: H256::repeat_byte(4),
};

/// As many items as there can be.
fn found() -> ItemsFound {
    let item = ItemFound {
        leaves: H256::repeat_byte(5),
        row: H256::repeat_byte(6),
    };
    ItemsFound::truncate_from([item].repeat(AUDIT_ITEMS_MAX as usize))
}

/// The same audit as [`differing_audit`]'s, of items.
pub(super) fn differing_items<T: Config>() -> Call<T> {
    differing_audit::<T>();
    let verifier: T::AccountId = account("auditor", 0, 0);
    let provider: T::AccountId = account("provider", 0, 0);
    let answers = [ANSWER.other, answer_hash(&SALT)];
    let seal = items_seal(TASK, &provider, &verifier, &found(), &answers);
    Rounds::<T>::mutate_extant(TASK, |round| {
        let mut audits = round.audits.iter_mut();
        if let Some(audit) = audits.find(|audit| audit.verifier == verifier) {
            audit.state = AuditState::Sealed(seal);
        }
    });
    Call::reveal_items {
        task: TASK,
        provider,
        verifier,
        found: found(),
        answer: ANSWER,
    }
}

/// Of the last of a full round that confirmed items, of which the first is another in the trace of the
/// largest model.
pub(super) fn refuted<T: Config>() -> Call<T> {
    let (context, said, shown) = T::Referee::item_for_benchmark();
    DisputeContexts::<T>::insert(TASK, context);
    let verifier: T::AccountId = account("auditor", 0, 0);
    let provider: T::AccountId = account("provider", 0, 0);
    let answer = AuditAnswer {
        agrees: true,
        ..ANSWER
    };
    let mut found = found();
    found.truncate(said.units as usize);
    let answers = [answer_hash(&SALT), answer.other];
    let seal = items_seal(TASK, &provider, &verifier, &found, &answers);
    let mut round = challengeable::<T>(&said, |_| None);
    assert_ok!(round.audits.try_push(Audit {
        verifier: verifier.clone(),
        provider: provider.clone(),
        bond: One::one(),
        draw: Default::default(),
        items: Some(ItemsOpened { seal, block: 0 }),
        state: AuditState::Confirmed,
    }));
    Rounds::<T>::insert(TASK, round);
    Call::refute_audit {
        task: TASK,
        provider,
        verifier,
        opened: (found, answer),
        place: 0,
        shown,
    }
}

/// Of the last of the most audits that a full round takes, of its last member.
pub(super) fn last_audit<T: Config>() -> Call<T> {
    let provider = |place: u32| account::<T::AccountId>("provider", place % REDUNDANCY_MAX, 0);
    let verifier = |place: u32| account::<T::AccountId>("auditor", place, 0);
    let mut round = challengeable::<T>(&claim(0), |_| None);
    round.audits.clear();
    for place in 0..AUDITS_MAX {
        let seal = audit_seal(TASK, &provider(place), &verifier(place), &claim(0), &SALT);
        assert_ok!(round.audits.try_push(Audit {
            verifier: verifier(place),
            provider: provider(place),
            bond: One::one(),
            draw: Default::default(),
            items: None,
            state: AuditState::Sealed(seal),
        }));
    }
    Rounds::<T>::insert(TASK, round);
    Call::reveal_audit {
        task: TASK,
        provider: provider(AUDITS_MAX - 1),
        verifier: verifier(AUDITS_MAX - 1),
        claim: claim(0),
        salt: SALT,
    }
}
