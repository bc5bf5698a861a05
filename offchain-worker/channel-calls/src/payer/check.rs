//! What a payee's statement has to be, and what shows that it is not.

use codec::{Decode, Encode};
use surety_channels::{Equivocation, Misstated, Nonce, Request, SignedChunkStatement, incompatible};

use super::{Call, Payer};
use crate::{AccountId, segment_of_end};

/// Why an answer has no receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Nothing more was heard.
    #[error("nothing more was heard of it")]
    Lost,
    /// None of the payee's signers has signed what was said.
    #[error("none of the provider's signers has signed what was said")]
    Unsigned,
    /// It is about another request, or adds nothing.
    #[error("the provider has said something that does not belong here")]
    Misplaced,
    /// It is not the bytes that came with it.
    #[error("the provider has signed something else than it has said")]
    OtherOutput,
    /// It counts or costs other than its request says.
    #[error("the provider counts wrong: {0}")]
    Misstated(Misstated),
    /// It contradicts an earlier one.
    #[error("the provider has contradicted itself")]
    Equivocation,
    /// It does not end like that.
    #[error("the provider has signed an end that is none")]
    WrongEnd,
}

/// What shows that a payee has lied.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Evidence {
    /// It has said two things: anybody can report it.
    Equivocation(Box<Equivocation<AccountId>>),
    /// It counts or costs other than its request says, or ends otherwise than a dispute will find.
    Misstated {
        /// What it has signed.
        statement: SignedChunkStatement<AccountId>,
        /// What it was asked.
        request: Request,
    },
    /// It has signed other bytes than it has sent. That shows nothing to others: who wants to know has the
    /// rest demanded.
    OtherOutput {
        /// What it has signed.
        statement: SignedChunkStatement<AccountId>,
        /// What it was asked.
        request: Request,
        /// All that it has sent, from the word before the tokens on.
        output: Vec<u8>,
    },
}

/// What is wrong with a statement.
pub(super) struct Wrong {
    pub why: Broken,
    pub evidence: Option<Box<Evidence>>,
}

impl Wrong {
    pub const fn unproven(why: Broken) -> Self {
        Self { why, evidence: None }
    }
}

impl Payer {
    /// Whether a statement says what came with it, as whole units, and nothing else. Returns how many there
    /// are in all.
    pub(super) fn check_statement(
        &self,
        nonce: Nonce,
        call: &Call,
        bytes: &[u8],
        signed: &SignedChunkStatement<AccountId>,
    ) -> Result<u32, Wrong> {
        let (row, said) = (&call.row, &signed.statement);
        let live = call.live.as_ref().ok_or(Wrong::unproven(Broken::Misplaced))?;
        let verify = &*self.config.verify;
        if !self.signers.contains(&signed.agent) || !signed.is_signed(&self.config.genesis, verify) {
            return Err(Wrong::unproven(Broken::Unsigned));
        }
        let is_of_it =
            said.channel == self.terms.channel && said.payee == self.terms.payee && said.nonce == nonce;
        if !is_of_it {
            return Err(Wrong::unproven(Broken::Misplaced));
        }
        if let Some(before) = &row.statement
            && let Some(evidence) = contradiction(before, signed, &live.output)
        {
            return Err(Wrong {
                why: Broken::Equivocation,
                evidence: Some(Box::new(evidence)),
            });
        }
        let misstated = |why| Wrong {
            why,
            evidence: Some(Box::new(Evidence::Misstated {
                statement: signed.clone(),
                request: row.request.clone(),
            })),
        };
        let checked = said.check(&row.request);
        checked.map_err(|why| misstated(Broken::Misstated(why)))?;
        let more = row.form.units_in(bytes);
        let total = more.and_then(|more| row.said.checked_add(more));
        let total = total.filter(|total| *total <= row.form.full);
        let total = total.ok_or(Wrong::unproven(Broken::Misplaced))?;
        let mut all = live.said.clone();
        row.form.say(&mut all, bytes);
        // With as many bytes there are as many units, and those were checked.
        if (said.bytes, said.output) != (all.bytes(), all.hash()) {
            let mut output = live.output.clone();
            row.form.keep(&mut output, bytes);
            let evidence = Evidence::OtherOutput {
                statement: signed.clone(),
                request: row.request.clone(),
                output,
            };
            return Err(Wrong {
                why: Broken::OtherOutput,
                evidence: Some(Box::new(evidence)),
            });
        }
        let (last, how) = match said.end {
            None if bytes.is_empty() => return Err(Wrong::unproven(Broken::Misplaced)),
            None => return Ok(total),
            Some(end) if bytes.is_empty() => (live.output.as_slice(), end.how),
            Some(end) => (bytes, end.how),
        };
        let (stops, is_cancelled) = (&live.stop_ids, live.cancelled_at.is_some());
        let is_end = row.form.can_end(how, total, last, stops, is_cancelled);
        is_end.then_some(total).ok_or_else(|| misstated(Broken::WrongEnd))
    }
}

/// That a payee has contradicted an earlier statement, whose output this is.
fn contradiction(
    before: &SignedChunkStatement<AccountId>,
    now: &SignedChunkStatement<AccountId>,
    output: &[u8],
) -> Option<Evidence> {
    let shown = segment_of_end(&now.statement, &before.statement, output);
    incompatible(&before.statement, &now.statement, shown.as_ref())?;
    Some(Evidence::Equivocation(Box::new(Equivocation {
        one: before.clone(),
        other: now.clone(),
        shown,
    })))
}
