//! Calls as subxt wants them.

use scale_encode::{EncodeAsFields, FieldIter, TypeResolver};
use subxt::tx::Payload;

use super::runtime::Runtime;
use surety_chain_client::{Call, ChainError};

impl Runtime {
    /// A call as subxt wants it.
    pub fn payload(&self, call: &Call) -> Result<RawCall, ChainError> {
        let name = call.name();
        let encoded = self.encoded(call)?;
        Ok(RawCall {
            pallet: name.pallet,
            call: name.call,
            // subxt writes the two indices itself.
            arguments: RawArguments(encoded.get(2..).unwrap_or_default().to_vec()),
        })
    }

    /// A call that does nothing, to use up a nonce.
    pub fn nothing(&self) -> RawCall {
        RawCall {
            pallet: "System",
            call: "remark",
            // An empty list of bytes.
            arguments: RawArguments(vec![0]),
        }
    }
}

/// A call whose arguments are in SCALE already.
pub(super) struct RawCall {
    pallet: &'static str,
    call: &'static str,
    arguments: RawArguments,
}

pub(super) struct RawArguments(Vec<u8>);

impl EncodeAsFields for RawArguments {
    /// [`Runtime::encoded`] has written them as the runtime takes them.
    fn encode_as_fields_to<R: TypeResolver>(
        &self,
        _fields: &mut dyn FieldIter<'_, R::TypeId>,
        _types: &R,
        out: &mut Vec<u8>,
    ) -> Result<(), scale_encode::Error> {
        out.extend_from_slice(&self.0);
        Ok(())
    }
}

impl Payload for RawCall {
    type CallData = RawArguments;

    fn pallet_name(&self) -> &str {
        self.pallet
    }

    fn call_name(&self) -> &str {
        self.call
    }

    fn call_data(&self) -> &RawArguments {
        &self.arguments
    }
}
