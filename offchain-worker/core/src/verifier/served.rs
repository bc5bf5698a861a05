//! What a provider has signed that it handed over for an audit, and what that holds it to.

use surety_proofs::SignedStatement;
use surety_types::{ContentHash, task::ResultClaim};

use crate::AccountId;

type Statement = SignedStatement<AccountId>;

/// A provider's statements to us about one task. Journalled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Served {
    /// The output that this names is audited and no other, also after a restart: what we have sealed could be
    /// wrong of another one.
    first: Option<Statement>,
    /// One that says something else.
    other: Option<Statement>,
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

    /// Whether there is any.
    pub fn is_some(&self) -> bool {
        self.first.is_some()
    }

    /// The output that is to be audited.
    pub fn output(&self) -> Option<ContentHash> {
        Some(self.first.as_ref()?.statement.output)
    }

    /// What convicts the provider, if anything does: two statements, or one and what it has revealed.
    pub fn evidence(&self, revealed: Option<&ResultClaim>) -> Option<(Statement, Option<Statement>)> {
        let first = self.first.as_ref()?;
        let is_revealed = revealed.is_none_or(|claim| claim.output == first.statement.output);
        match &self.other {
            Some(other) => Some((first.clone(), Some(other.clone()))),
            None => (!is_revealed).then(|| (first.clone(), None)),
        }
    }
}
