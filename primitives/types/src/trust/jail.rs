//! How long a stash is in jail, and for what.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_runtime::{BoundedVec, traits::ConstU32};

use super::SlashId;
use crate::limits::JAIL_TERMS_MAX;

/// What one conviction adds to a stash's time in jail.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct JailTerm<BlockNumber> {
    /// The slash that was proven with it; its veto lifts the term.
    pub slash: SlashId,
    /// Up to and including this time.
    pub until: BlockNumber,
}

/// Why a stash is in jail. It gets out when the last of its terms is over.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct JailTerms<BlockNumber> {
    /// The last end of terms for which there was no room: no veto lifts it.
    pub lasting: Option<BlockNumber>,
    /// Terms that a veto lifts, oldest first.
    pub terms: BoundedVec<JailTerm<BlockNumber>, ConstU32<JAIL_TERMS_MAX>>,
}

impl<BlockNumber: Copy + Ord> JailTerms<BlockNumber> {
    /// Adds a term. When there is no room for it, the oldest one can no longer be lifted, so that nobody gets
    /// out before its time.
    pub fn add(&mut self, term: JailTerm<BlockNumber>) {
        if self.terms.is_full() {
            let oldest = self.terms.remove(0);
            self.lasting = self.lasting.max(Some(oldest.until));
        }
        // Room was made for it.
        let pushed = self.terms.try_push(term);
        debug_assert!(pushed.is_ok());
    }

    /// Forgets terms that are over.
    pub fn forget(&mut self, is_over: impl Fn(BlockNumber) -> bool) {
        self.lasting = self.lasting.filter(|until| !is_over(*until));
        self.terms.retain(|term| !is_over(term.until));
    }

    /// Takes away the term of a slash.
    pub fn lift(&mut self, slash: SlashId) {
        self.terms.retain(|term| term.slash != slash);
    }

    /// When the last term ends, if there is any.
    pub fn end(&self) -> Option<BlockNumber> {
        let ends = self.terms.iter().map(|term| term.until);
        ends.max().max(self.lasting)
    }
}
