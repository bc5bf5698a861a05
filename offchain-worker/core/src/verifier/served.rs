//! What a provider has signed that it handed over for an audit, and what that holds it to.

use surety_proofs::SignedStatement;
use surety_types::{ContentHash, TaskId, task::ResultClaim};

use super::Verifier;
use crate::{AccountId, EffectKind, Failure, Record, Step, key_of};

type Statement = SignedStatement<AccountId>;

/// A provider's statements to us about one task. Journalled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Served {
    /// The output that this names is audited and no other, also after a restart: what we have sealed could be
    /// wrong of another one.
    first: Option<Statement>,
    /// One that says something else.
    other: Option<Statement>,
    /// The output that it has shown on the chain instead. Read from there again after a restart.
    shown: Option<ContentHash>,
}

impl Served {
    /// Takes a statement in. Says whether it is news.
    pub fn take(&mut self, statement: &Statement) -> bool {
        let place = match &self.first {
            None => &mut self.first,
            Some(first) if first.statement == statement.statement => return false,
            Some(_) => &mut self.other,
        };
        let is_news = place.is_none();
        place.get_or_insert_with(|| statement.clone());
        is_news
    }

    /// Takes in what the provider has shown on the chain. Says whether that is what is to be audited.
    pub fn take_shown(&mut self, output: ContentHash) -> bool {
        self.shown = Some(output);
        self.output() == Some(output)
    }

    /// Whether there is any.
    pub fn is_some(&self) -> bool {
        self.first.is_some()
    }

    /// The output that is to be audited.
    pub fn output(&self) -> Option<ContentHash> {
        let signed = self.first.as_ref().map(|first| first.statement.output);
        signed.or(self.shown)
    }

    /// What convicts the provider, if anything does: two statements, or one and what it has shown or
    /// revealed.
    pub fn evidence(&self, revealed: Option<&ResultClaim>) -> Option<(Statement, Option<Statement>)> {
        let first = self.first.as_ref()?;
        let is_it = |output| output == first.statement.output;
        let is_said = revealed.is_none_or(|claim| is_it(claim.output)) && self.shown.is_none_or(is_it);
        match &self.other {
            Some(other) => Some((first.clone(), Some(other.clone()))),
            None => (!is_said).then(|| (first.clone(), None)),
        }
    }
}

impl Verifier {
    /// What a provider has signed is journalled before anything is said about it: who shows others something
    /// else, or us after a restart, is convicted by it.
    pub(super) fn take_fetched(
        &mut self,
        of: (TaskId, EffectKind),
        provider: AccountId,
        statement: SignedStatement<AccountId>,
        step: &mut Step,
    ) {
        let (at, (task, kind)) = (self.block, of);
        let Some(entry) = self.tasks.get_mut(&task) else {
            return;
        };
        let check = entry.checks.entry(key_of(&provider)).or_default();
        let is_news = check.served.take(&statement);
        let is_other = check.served.output() != Some(statement.statement.output);
        if is_news {
            step.records.push(Record::AuditServed {
                task,
                at,
                provider,
                statement,
            });
        }
        match is_other {
            true => self.take_failure(task, kind, Failure::Failed),
            false => self.take_success(of, step),
        }
    }

    /// What a provider has shown on the chain is what it is held to, like what it has signed.
    pub(super) fn take_shown(
        &mut self,
        of: (TaskId, EffectKind),
        provider: &AccountId,
        output: ContentHash,
        step: &mut Step,
    ) {
        let (task, kind) = of;
        let Some(entry) = self.tasks.get_mut(&task) else {
            return;
        };
        let check = entry.checks.entry(key_of(provider)).or_default();
        match check.served.take_shown(output) {
            true => self.take_success(of, step),
            false => self.take_failure(task, kind, Failure::Failed),
        }
    }
}
