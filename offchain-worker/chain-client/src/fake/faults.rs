//! What happens to calls by script: refusals of every kind, and losses.

use crate::{Call, ChainError, Refusal};

/// Says which calls a script is about.
type Matching = Box<dyn Fn(&Call) -> bool + Send>;

/// What happens to some of the calls to come.
pub(super) struct Fault {
    matching: Matching,
    times: u32,
    kind: Kind,
}

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Refuse(ChainError),
    LoseBefore,
    LoseAfter,
}

/// The script, in the order in which it was written.
#[derive(Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub fn add(&mut self, matching: impl Fn(&Call) -> bool + Send + 'static, kind: Kind, times: u32) {
        let fault = Fault {
            matching: Box::new(matching),
            times,
            kind,
        };
        self.0.push(fault);
    }

    /// What happens to this call: the first that was scripted for it and is not used up.
    pub fn take(&mut self, call: &Call) -> Option<Kind> {
        self.0.retain(|fault| fault.times > 0);
        let fault = self.0.iter_mut().find(|fault| (fault.matching)(call))?;
        fault.times = fault.times.saturating_sub(1);
        Some(fault.kind.clone())
    }
}

impl super::FakeChain {
    /// The next `times` calls that `matching` picks fail with `error` and change nothing.
    pub fn refuse_next(
        &self,
        matching: impl Fn(&Call) -> bool + Send + 'static,
        error: impl Into<ChainError>,
        times: u32,
    ) {
        self.lock()
            .faults
            .add(matching, Kind::Refuse(error.into()), times);
    }

    /// The next call never arrives: its submission ends as [`ChainError::Unknown`], and nothing changes.
    pub fn lose_next(&self) {
        self.lock().faults.add(|_| true, Kind::LoseBefore, 1);
    }

    /// The next call is carried out, but its submission ends as [`ChainError::Unknown`].
    pub fn lose_answer_of_next(&self) {
        self.lock().faults.add(|_| true, Kind::LoseAfter, 1);
    }

    /// The next `times` questions about a block come to `error`.
    pub fn fail_next_reads(&self, error: ChainError, times: usize) {
        self.fail_reads_after(0, error, times);
    }

    /// The next `answered` questions about a block are answered, and `times` after them come to `error`.
    pub fn fail_reads_after(&self, answered: usize, error: ChainError, times: usize) {
        let answers = std::iter::repeat_n(None, answered);
        let faults = std::iter::repeat_n(Some(error), times);
        self.lock().read_faults.extend(answers.chain(faults));
    }

    /// The node drops the bodies of all blocks so far.
    pub fn drop_bodies(&self) {
        self.change(|state| state.bodies_from = state.number.saturating_add(1));
    }

    /// One refusal of each kind, for tests that are to bear them all.
    pub fn refusals() -> Vec<Refusal> {
        let words = || "as the test says".to_string();
        vec![
            Refusal::Call,
            Refusal::Payment,
            Refusal::Future,
            Refusal::Stale,
            Refusal::BadProof,
            Refusal::AncientBirthBlock,
            Refusal::ExhaustsResources,
            Refusal::BadSigner,
            Refusal::IndeterminateImplicit,
            Refusal::UnknownOrigin,
            Refusal::Custom(1),
            Refusal::UnknownValidity(words()),
            Refusal::Banned,
            Refusal::AlreadyImported,
            Refusal::PriorityTooLow,
            Refusal::PoolFull,
            Refusal::FutureNotAccepted,
            Refusal::UnknownBlock,
            Refusal::NotVerified(words()),
            Refusal::BadFormat(words()),
            Refusal::Usurped,
            Refusal::Dropped,
            Refusal::Invalidated,
            Refusal::RateLimited,
            Refusal::NodeBusy,
            Refusal::NotOffered(words()),
            Refusal::Other {
                code: 1,
                message: words(),
            },
        ]
    }
}
