//! Audits of single items, guesses, and reports of what providers sign.

use frame_support::dispatch::DispatchResult;
use proptest::prelude::*;
use surety_proofs::SignedStatement;
use surety_types::{model::Operation, trust::ItemsFound};

use super::{
    HONEST_VERIFIER, HOSTILE_VERIFIER, RESULTS, TRUTH, World, any_hostile_verifier, any_result, tried,
};
use surety_pallet_integration_tests::*;

/// How the task is audited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audits {
    /// All of it, by who is shown nothing.
    Whole,
    /// An item each.
    Items,
    /// All of it, from an output that its provider serves.
    Generation,
}

impl Audits {
    pub fn any() -> impl Strategy<Value = Self> {
        prop_oneof![Just(Self::Whole), Just(Self::Items), Just(Self::Generation)]
    }

    /// A verifier seals what comes of a computation that came to `result`.
    pub fn announce(self, verifier: AccountId, provider: AccountId, result: u8) -> DispatchResult {
        match self {
            Self::Items => {
                let seal = seal_of_items(verifier, provider, &items_found(result));
                announce_sealed(verifier, provider, seal)
            }
            Self::Whole | Self::Generation => announce(verifier, provider, result),
        }
    }

    /// Of a round that is open.
    pub fn begin(self) {
        match self {
            Self::Whole => {}
            Self::Items => audit_items(OWN_ITEMS),
            Self::Generation => Rounds::<Test>::mutate(TASK, |round| {
                round.as_mut().unwrap().terms.operation = Operation::Generate;
            }),
        }
    }
}

/// What hostile verifiers, providers and strangers do about audits, beside announcing and opening those of
/// the whole. They abort whenever no opening comes.
#[derive(Clone, Debug)]
pub enum AuditStep {
    /// Seals what somebody with this result would have found of its item.
    SealItems(AccountId, AccountId, u8),
    /// Opens what it has sealed of its item, if anything, and says whether the provider has the same.
    OpenItems(AccountId, AccountId, bool),
    /// Says of an audit that its verifier has sealed this, and that the result's trace has something else.
    Refute(AccountId, AccountId, u8, u8),
    /// Hands in what a provider signed for one result, or for two.
    Report(AccountId, u8, Option<u8>),
}

pub fn any_audit_step(members: AccountId) -> impl Strategy<Value = AuditStep> {
    let member = move || 1..=members;
    let any_verifier = || prop_oneof![3 => any_hostile_verifier(), 1 => Just(HONEST_VERIFIER)];
    prop_oneof![
        3 => (any_hostile_verifier(), member(), any_result())
            .prop_map(|(who, of, result)| AuditStep::SealItems(who, of, result)),
        3 => (any_hostile_verifier(), member(), any::<bool>())
            .prop_map(|(who, of, agrees)| AuditStep::OpenItems(who, of, agrees)),
        2 => (any_verifier(), member(), any_result(), any_result())
            .prop_map(|(who, of, sealed, trace)| AuditStep::Refute(who, of, sealed, trace)),
        1 => (member(), any_result(), proptest::option::of(any_result()))
            .prop_map(|(of, one, other)| AuditStep::Report(of, one, other)),
    ]
}

impl World {
    pub fn audit(&self, step: AuditStep) {
        match step {
            AuditStep::SealItems(who, of, result) => {
                if round().is_some_and(|round| round.draw.is_some()) {
                    let seal = seal_of_items(who, of, &items_found(result));
                    tried(announce_sealed(who, of, seal));
                }
            }
            AuditStep::OpenItems(who, of, agrees) => {
                tried(RESULTS.map(|result| reveal_items(who, of, &items_found(result), agrees)));
            }
            AuditStep::Refute(who, of, sealed, trace) => {
                let is_refuted = refute((who, of), items_found(sealed), 0, item_shown(trace));
                assert!(who != HONEST_VERIFIER || is_refuted.is_err());
            }
            AuditStep::Report(of, one, other) => {
                let other = other.map(|result| self.signed(of, result));
                let is_convicted = report(self.signed(of, one), other).is_ok();
                assert!(!is_convicted || !self.is_honest(of), "{of} said only one thing");
            }
        }
    }

    /// What a provider signs. Somebody honest signs what is right; what else is in its name is another's.
    fn signed(&self, stash: AccountId, result: u8) -> SignedStatement<AccountId> {
        if !self.is_honest(stash) || result == TRUTH {
            return promised(stash, result);
        }
        let forger = agent_of(HOSTILE_VERIFIER);
        SignedStatement {
            agent: agent_of(stash),
            ..signed_by(forger, promise(stash, TASK, result), &genesis())
        }
    }

    /// The honest verifier audits everybody, and whoever is honest has guesses about it refuted.
    pub fn audit_honestly(&self) {
        if round().is_none_or(|round| round.draw.is_none()) {
            return;
        }
        for stash in members() {
            tried(self.audits.announce(HONEST_VERIFIER, stash, TRUTH));
            tried(reveal_audit(HONEST_VERIFIER, stash, TRUTH));
            // Its item's row is part of the output.
            if let Some(said) = said(stash) {
                let agrees = said == claim(TRUTH);
                tried(reveal_items(HONEST_VERIFIER, stash, &items_found(TRUTH), agrees));
            }
        }
        for stash in &self.honest {
            for verifier in verifiers() {
                for guess in RESULTS {
                    tried(refute(
                        (verifier, *stash),
                        items_found(guess),
                        0,
                        item_shown(TRUTH),
                    ));
                }
            }
        }
    }

    /// Verifiers that confirmed what somebody honest says by an item that it has not got.
    pub fn guessed(&self, told: &[RuntimeEvent]) -> Vec<AccountId> {
        let is_right = |found: &ItemsFound| found[0].leaves == items_found(TRUTH)[0].leaves;
        let guessed = told.iter().filter_map(|event| match event {
            RuntimeEvent::Results(ResultsEvent::ItemsRevealed {
                provider,
                verifier,
                found,
                agrees: true,
                ..
            }) => (self.honest.contains(provider) && !is_right(found)).then_some(*verifier),
            _ => None,
        });
        guessed.collect()
    }
}

/// What a provider has revealed.
fn said(stash: AccountId) -> Option<surety_types::task::ResultClaim> {
    let round = round()?;
    let member = round.members.iter().find(|member| member.provider == stash)?;
    member.claim().cloned()
}
