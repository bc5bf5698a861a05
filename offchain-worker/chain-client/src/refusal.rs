//! Why a pool, or the node in front of it, did not take a call: by the codes and words of Substrate's own
//! RPC.
//!
//! Codes are those of `sc-rpc-api` (`author`), words those of `sp-runtime`'s `InvalidTransaction`, `-32xxx`
//! those of JSON-RPC and of `sc-rpc-server`'s rate limit.

/// Why a call did not get into a block. It cost nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// `InvalidTransaction::Call`: an opening names nothing that stands on the chain.
    #[error("nothing on the chain waits for this call")]
    Call,
    /// `InvalidTransaction::Payment`.
    #[error(
        "the signing account cannot pay the fee, nor can the stash that it works for; send one of them some SURE"
    )]
    Payment,
    /// `InvalidTransaction::Future`: the nonce is ahead of the account's, or an opening is early.
    #[error("it is too early for this call, or calls of this signer before it are missing")]
    Future,
    /// `InvalidTransaction::Stale`: the nonce is used, or an opening was made already.
    #[error("it is too late for this call: its nonce is used, or it was done already")]
    Stale,
    /// `InvalidTransaction::BadProof`: signed for another runtime or a forgotten block, or an opening does
    /// not fit.
    #[error("the signature or the opening does not fit the chain's state")]
    BadProof,
    /// `InvalidTransaction::AncientBirthBlock`: signed too long ago.
    #[error("it was signed too many blocks ago")]
    AncientBirthBlock,
    /// `InvalidTransaction::ExhaustsResources`.
    #[error("there is no room in the block now")]
    ExhaustsResources,
    /// `InvalidTransaction::BadSigner`.
    #[error("the chain does not accept this signer")]
    BadSigner,
    /// `InvalidTransaction::IndeterminateImplicit`.
    #[error("the node could not find what the signature implies")]
    IndeterminateImplicit,
    /// `InvalidTransaction::UnknownOrigin`: the runtime knows no such opening.
    #[error("the chain's runtime does not take this call without a signature")]
    UnknownOrigin,
    /// `InvalidTransaction::Custom`.
    #[error("the chain's runtime refuses the call with its own code {0}")]
    Custom(u8),
    /// `UnknownTransaction`, in the node's words.
    #[error("the node cannot tell whether the call is valid: {0}")]
    UnknownValidity(String),
    /// The pool refused the same bytes a moment ago.
    #[error("the same call was refused a moment ago")]
    Banned,
    /// The pool has the same bytes.
    #[error("the same call is already on its way")]
    AlreadyImported,
    /// The pool holds another call of this signer with the same nonce and as much tip, or the same opening.
    #[error("another call of this signer is on its way")]
    PriorityTooLow,
    /// The pool is full.
    #[error("the node's pool is full")]
    PoolFull,
    /// The pool takes no calls whose turn has not come.
    #[error("the node's pool takes only calls whose turn has come")]
    FutureNotAccepted,
    /// The pool does not know the block that it was to check the call at.
    #[error("the node's pool does not know the block it works on; it may be catching up")]
    UnknownBlock,
    /// The node could not run the check, for example because the block's state is gone.
    #[error("the node could not check the call: {0}")]
    NotVerified(String),
    /// The bytes are no extrinsic of this chain.
    #[error("the node cannot read the call: {0}")]
    BadFormat(String),
    /// Another call took its place in the pool.
    #[error("another call took its place in the node's pool")]
    Usurped,
    /// The pool dropped it for want of room.
    #[error("the node's pool dropped it for want of room")]
    Dropped,
    /// It was valid when it was sent, and is not any more.
    #[error("it became invalid before it got into a block")]
    Invalidated,
    /// The node limits how often it is asked.
    #[error("the node limits how often it may be asked")]
    RateLimited,
    /// The node has too much to do, or too many connections or subscriptions.
    #[error("the node is too busy")]
    NodeBusy,
    /// The node does not offer what sending calls takes.
    #[error("the node does not take calls over this address: {0}")]
    NotOffered(String),
    /// Anything else, in the node's words.
    #[error("{message} ({code})")]
    Other {
        /// The JSON-RPC error's code.
        code: i32,
        /// Message and data.
        message: String,
    },
}

impl Refusal {
    /// What a JSON-RPC error of `author_submitAndWatchExtrinsic` means. `data` is JSON.
    pub fn from_rpc(code: i32, message: &str, data: Option<&str>) -> Self {
        /// `author`'s base.
        const AUTHOR: i32 = 1000;
        let detail = data.map(|data| data.trim_matches('"')).unwrap_or_default();
        let words = || match detail.is_empty() {
            true => message.to_string(),
            false => format!("{message}: {detail}"),
        };
        match code.saturating_sub(AUTHOR) {
            1 => Self::BadFormat(words()),
            2 => Self::NotVerified(words()),
            10 => Self::from_invalid(code, message, detail),
            11 => Self::UnknownValidity(words()),
            12 => Self::Banned,
            13 => Self::AlreadyImported,
            14 => Self::PriorityTooLow,
            16 => Self::PoolFull,
            20 => Self::UnknownBlock,
            21 => Self::FutureNotAccepted,
            _ => Self::from_server(code, words()),
        }
    }

    /// The words of `InvalidTransaction`.
    fn from_invalid(code: i32, message: &str, detail: &str) -> Self {
        let custom = detail.strip_prefix("Custom error: ");
        if let Some(number) = custom.and_then(|number| number.trim().parse().ok()) {
            return Self::Custom(number);
        }
        match detail {
            "Transaction call is not expected" => Self::Call,
            "Inability to pay some fees (e.g. account balance too low)" => Self::Payment,
            "Transaction will be valid in the future" => Self::Future,
            "Transaction is outdated" => Self::Stale,
            "Transaction has a bad signature" => Self::BadProof,
            "Transaction has an ancient birth block" => Self::AncientBirthBlock,
            "Transaction would exhaust the block limits" => Self::ExhaustsResources,
            "Invalid signing address" => Self::BadSigner,
            "The implicit data was unable to be calculated" => Self::IndeterminateImplicit,
            "The transaction extension did not authorize any origin" => Self::UnknownOrigin,
            _ => Self::Other {
                code,
                message: match detail.is_empty() {
                    true => message.into(),
                    false => detail.into(),
                },
            },
        }
    }

    /// What the server in front of the pool says.
    fn from_server(code: i32, message: String) -> Self {
        match code {
            // sc-rpc-server's rate limit; the second is jsonrpsee's "server is busy", the third its limit of
            // subscriptions.
            -32999 => Self::RateLimited,
            -32009 | -32006 => Self::NodeBusy,
            // Method not found, and an unsafe method that the node refuses.
            -32601 => Self::NotOffered(message),
            _ => Self::Other { code, message },
        }
    }

    /// Whether the same call may be taken later without anybody changing anything but the chain's state.
    pub fn is_retryable(&self) -> bool {
        !matches!(
            self,
            Self::BadFormat(_) | Self::BadSigner | Self::UnknownOrigin | Self::NotOffered(_)
        )
    }

    /// Whether the bytes that were refused will be refused again, so that another signature is needed.
    pub fn spoils(&self) -> bool {
        matches!(
            self,
            Self::BadProof
                | Self::AncientBirthBlock
                | Self::IndeterminateImplicit
                | Self::Banned
                | Self::Dropped
                | Self::Invalidated
        )
    }

    /// Whether it is of the moment, and says nothing of the call.
    pub fn passes(&self) -> bool {
        matches!(
            self,
            Self::ExhaustsResources
                | Self::IndeterminateImplicit
                | Self::UnknownValidity(_)
                | Self::Banned
                | Self::PoolFull
                | Self::FutureNotAccepted
                | Self::UnknownBlock
                | Self::NotVerified(_)
                | Self::Dropped
                | Self::RateLimited
                | Self::NodeBusy
        )
    }

    /// Whether a fresh signature (nonce, era, runtime version), or the same one a little later, may cure it.
    pub fn is_curable(&self) -> bool {
        self.passes()
            || self.spoils()
            || matches!(
                self,
                Self::Future | Self::Stale | Self::AlreadyImported | Self::PriorityTooLow | Self::Usurped
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sp_runtime::transaction_validity::InvalidTransaction;

    #[test]
    fn every_word_of_invalid_transaction_is_known() {
        let known = [
            (InvalidTransaction::Call, Refusal::Call),
            (InvalidTransaction::Payment, Refusal::Payment),
            (InvalidTransaction::Future, Refusal::Future),
            (InvalidTransaction::Stale, Refusal::Stale),
            (InvalidTransaction::BadProof, Refusal::BadProof),
            (InvalidTransaction::AncientBirthBlock, Refusal::AncientBirthBlock),
            (InvalidTransaction::ExhaustsResources, Refusal::ExhaustsResources),
            (InvalidTransaction::BadSigner, Refusal::BadSigner),
            (
                InvalidTransaction::IndeterminateImplicit,
                Refusal::IndeterminateImplicit,
            ),
            (InvalidTransaction::UnknownOrigin, Refusal::UnknownOrigin),
        ];
        for (invalid, refusal) in known {
            let words: &str = invalid.into();
            let data = format!("\"{words}\"");
            assert_eq!(
                Refusal::from_rpc(1010, "Invalid Transaction", Some(&data)),
                refusal
            );
        }
        let custom = Refusal::from_rpc(1010, "Invalid Transaction", Some("\"Custom error: 7\""));
        assert_eq!(custom, Refusal::Custom(7));
    }

    #[test]
    fn a_pools_own_codes_and_a_servers_limits_are_known() {
        let of = |code| Refusal::from_rpc(code, "words", None);
        assert_eq!(of(1012), Refusal::Banned);
        assert_eq!(of(1013), Refusal::AlreadyImported);
        assert_eq!(of(1014), Refusal::PriorityTooLow);
        assert_eq!(of(1016), Refusal::PoolFull);
        assert_eq!(of(1021), Refusal::FutureNotAccepted);
        assert_eq!(of(-32999), Refusal::RateLimited);
        assert_eq!(of(-32009), Refusal::NodeBusy);
        let gone = Refusal::from_rpc(1002, "Verification Error", Some("\"State already discarded\""));
        assert_eq!(
            gone,
            Refusal::NotVerified("Verification Error: State already discarded".into())
        );
        assert!(gone.is_retryable() && gone.is_curable());
        assert_eq!(of(7).to_string(), "words (7)");
    }

    #[test]
    fn a_refusal_that_somebody_has_to_mend_says_how() {
        assert!(
            Refusal::Payment
                .to_string()
                .contains("send one of them some SURE")
        );
        assert!(Refusal::Payment.is_retryable() && !Refusal::Payment.is_curable());
        assert!(!Refusal::BadFormat(String::new()).is_retryable());
    }
}
