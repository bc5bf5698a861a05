//! What a provider shows where a point is, held against the batch that it has committed.

use codec::{Decode, Encode};
use surety_chain_client::BatchView;
use surety_channel_calls::{AccountId, claimed_output, claimed_units_max, message::AtPoint};
use surety_channels::{BatchEvidence, Batched, Committed, End, Request};
use surety_engine::{Job, content_hash};
use surety_proofs::SegmentOpening;
use surety_types::{ContentHash, input::WORD_BYTES, model::Operation, task::ResultClaim};

/// A receipt with all that it takes to compute it again, to dispute it, and to play about it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Receipt {
    /// That it is in its batch.
    pub batched: Batched<AccountId>,
    /// What it answers.
    pub request: Request,
    /// What was asked with.
    pub input: Vec<u8>,
    /// What was said, as its statement names it: of a generation with a word of 0 before the tokens. Nothing
    /// of vectors.
    pub output: Vec<u8>,
}

/// What a provider has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A receipt, and where it begins on the line of its batch's price.
    Receipt(Box<Receipt>, u128),
    /// That its batch is none.
    Faulty(Box<BatchEvidence<AccountId>>),
}

/// Why it has shown nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unshown {
    /// It is under another root.
    #[error("what was shown is not in the batch")]
    OtherBatch,
    /// It is of another place.
    #[error("what was shown is not at the point")]
    OtherPoint,
    /// The batch has the hash of something else there.
    #[error("the statement that was shown is not the one in the batch")]
    OtherStatement,
    /// Its statement names another request.
    #[error("the request that was shown is not the one that was answered")]
    OtherRequest,
    /// The request names another input.
    #[error("the input that was shown is not the one that was asked with")]
    OtherInput,
    /// The statement names another output.
    #[error("the output that was shown is not the one that was said")]
    OtherOutput,
}

/// Looks at what was shown at a point of a batch.
///
/// # Errors
/// [`Unshown`]: as if nothing had been.
pub fn look(genesis: &ContentHash, view: &BatchView, point: u128, at: AtPoint) -> Result<Shown, Unshown> {
    let AtPoint {
        batched,
        request,
        input,
        output,
    } = at;
    let root = &view.window.root;
    let place = batched.opening.verify(root).ok_or(Unshown::OtherBatch)?;
    place.offset(point).ok_or(Unshown::OtherPoint)?;
    let statement = &batched.statement;
    if place.receipt.0 != statement.message(genesis) {
        return Err(Unshown::OtherStatement);
    }
    if statement.request != request.hash() {
        return Err(Unshown::OtherRequest);
    }
    let committed = Committed {
        genesis: *genesis,
        payee: view.provider.clone(),
        batch: *root,
        other: None,
    };
    let evidence = BatchEvidence::Receipt {
        batched,
        request: Some(request),
    };
    // Nothing here is signed.
    let fault = evidence.verify(&committed, |_, _, _| false);
    let (batched, request) = match evidence {
        BatchEvidence::Receipt {
            batched,
            request: Some(request),
        } if fault.is_none() => (batched, request),
        evidence => return Ok(Shown::Faulty(Box::new(evidence))),
    };
    let input = input.into_inner();
    let is_input =
        u32::try_from(input.len()) == Ok(request.input_bytes) && content_hash(&input) == request.input;
    if !is_input {
        return Err(Unshown::OtherInput);
    }
    let output = match request.operation {
        Operation::Embed => Vec::new(),
        Operation::Generate => {
            let mut said = vec![0; WORD_BYTES as usize];
            said.extend(output);
            let statement = &batched.statement;
            let is_said =
                u32::try_from(said.len()) == Ok(statement.bytes) && content_hash(&said) == statement.output;
            if !is_said {
                return Err(Unshown::OtherOutput);
            }
            said
        }
    };
    let receipt = Receipt {
        batched,
        request,
        input,
        output,
    };
    Ok(Shown::Receipt(Box::new(receipt), place.start))
}

impl Receipt {
    /// What it claims, as a dispute is about it.
    pub fn claim(&self) -> Option<ResultClaim> {
        let statement = &self.batched.statement;
        Some(ResultClaim {
            output: statement.claimed_output(self.head().as_ref())?,
            trace_root: statement.end?.trace_root,
            units: statement.units,
        })
    }

    /// The first segment of what was said. It is shown where a stop id has ended it.
    pub fn head(&self) -> Option<SegmentOpening> {
        let end = self.batched.statement.end?;
        (end.how == End::Stop)
            .then(|| SegmentOpening::new(&self.output, 0))
            .flatten()
    }

    /// The output that it claims. Nothing of vectors, which follow from the input.
    pub fn claimed_bytes(&self) -> Vec<u8> {
        claimed_output(&self.batched.statement, self.output.clone())
    }

    /// What is to be computed.
    pub fn job(&self) -> Job {
        Job {
            operation: self.request.operation,
            input: self.input.clone(),
            units_max: claimed_units_max(&self.batched.statement, &self.request),
        }
    }
}
