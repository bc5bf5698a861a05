//! How a note gets from an author's node into its block.

use codec::{Decode, Encode};
use core::fmt;
use sp_inherents::{InherentData, InherentIdentifier, IsFatalError};

/// Under which the node puts the height.
pub const INHERENT_IDENTIFIER: InherentIdentifier = *b"surefinl";

/// Why a block with a note is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum InherentError {
    /// A block that is not below the noting one cannot be final.
    NotBelow,
}

impl fmt::Display for InherentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBelow => f.write_str("the author notes as final what is not below its block"),
        }
    }
}

impl core::error::Error for InherentError {}

impl IsFatalError for InherentError {
    fn is_fatal_error(&self) -> bool {
        true
    }
}

/// The height that the node has put there, if it has.
pub(crate) fn read<Height: Decode>(data: &InherentData) -> Option<Height> {
    data.get_data(&INHERENT_IDENTIFIER).ok().flatten()
}

/// Puts the height into the inherents of a block that is being made.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug)]
pub struct InherentDataProvider<Height> {
    finalized: Height,
}

#[cfg(feature = "std")]
impl<Height> InherentDataProvider<Height> {
    /// `finalized`: the highest block that the author's node has seen finalised.
    pub const fn new(finalized: Height) -> Self {
        Self { finalized }
    }
}

#[cfg(feature = "std")]
#[async_trait::async_trait]
impl<Height: Encode + Send + Sync> sp_inherents::InherentDataProvider for InherentDataProvider<Height> {
    async fn provide_inherent_data(&self, data: &mut InherentData) -> Result<(), sp_inherents::Error> {
        data.put_data(INHERENT_IDENTIFIER, &self.finalized)
    }

    async fn try_handle_error(
        &self,
        identifier: &InherentIdentifier,
        mut error: &[u8],
    ) -> Option<Result<(), sp_inherents::Error>> {
        if *identifier != INHERENT_IDENTIFIER {
            return None;
        }
        let error = InherentError::decode(&mut error).ok()?;
        Some(Err(sp_inherents::Error::Application(Box::new(error))))
    }
}
