//! Events, errors and parameters in names and words, by a runtime's metadata.

use codec::{Compact, Decode};
use sp_core::{
    H256,
    crypto::{AccountId32, Ss58Codec},
};
use sp_runtime::DispatchError;
use subxt::ext::scale_value;

use super::{entries::Entry, runtime::Runtime};
use surety_chain_client::{ChainError, ChainEvent, DispatchFault, EventField, Parameter};

impl Runtime {
    /// The events of a block.
    pub fn events(&self, bytes: &[u8]) -> Result<Vec<ChainEvent>, ChainError> {
        let mut input = bytes;
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        let count = Compact::<u32>::decode(&mut input).map_err(|error| events_fault(error.to_string()))?;
        let mut events = Vec::new();
        for _ in 0..count.0 {
            events.push(self.event(&mut input)?);
        }
        Ok(events)
    }

    /// One `frame_system::EventRecord`.
    fn event(&self, input: &mut &[u8]) -> Result<ChainEvent, ChainError> {
        #[derive(Decode)]
        enum Phase {
            ApplyExtrinsic(u32),
            Finalization,
            Initialization,
        }
        let fault = |error: codec::Error| events_fault(error.to_string());
        let phase = Phase::decode(input).map_err(fault)?;
        let (pallet, variant) = <(u8, u8)>::decode(input).map_err(fault)?;
        let pallet = self.metadata().pallet_by_event_index(pallet);
        let pallet = pallet.ok_or_else(|| events_fault(format!("no pallet has index {pallet:?}")))?;
        let variant = pallet
            .event_variant_by_index(variant)
            .ok_or_else(|| events_fault(format!("{} has no event {variant}", pallet.name())))?;
        let mut fields = Vec::with_capacity(variant.fields.len());
        for (at, field) in variant.fields.iter().enumerate() {
            let before = *input;
            self.skip(input, field.ty.id)
                .map_err(|error| events_fault(error.to_string()))?;
            let used = before.len().saturating_sub(input.len());
            let bytes = before.get(..used).unwrap_or_default();
            fields.push(EventField {
                name: field.name.clone().unwrap_or_else(|| at.to_string()),
                text: self.text(bytes, field.ty.id),
                bytes: bytes.to_vec(),
            });
        }
        Vec::<H256>::decode(input).map_err(fault)?;
        Ok(ChainEvent {
            pallet: pallet.name().into(),
            name: variant.name.clone(),
            extrinsic: match phase {
                Phase::ApplyExtrinsic(index) => Some(index),
                Phase::Finalization | Phase::Initialization => None,
            },
            fields,
        })
    }

    /// A value as text: accounts as addresses, hashes as hexadecimal digits.
    fn text(&self, bytes: &[u8], ty: u32) -> String {
        let types = self.metadata().types();
        let path = types.resolve(ty).and_then(|ty| ty.path.ident());
        match path.as_deref() {
            Some("AccountId32") => AccountId32::decode(&mut &*bytes)
                .map_or_else(|_| hex(bytes), |account| account.to_ss58check()),
            Some("H256") => hex(bytes),
            _ => match scale_value::scale::decode_as_type(&mut &*bytes, ty, types) {
                Ok(value) => value.to_string(),
                Err(_) => hex(bytes),
            },
        }
    }

    /// A failed call's error by name, with the pallet's own words on it.
    pub fn fault(&self, error: DispatchError) -> DispatchFault {
        let module = match error {
            DispatchError::Module(module) => module,
            other => {
                let (name, docs) = describe(other);
                return DispatchFault {
                    pallet: None,
                    name,
                    docs,
                };
            }
        };
        let pallet = self.metadata().pallet_by_error_index(module.index);
        let [variant, ..] = module.error;
        let found = pallet
            .as_ref()
            .and_then(|pallet| Some((pallet.name(), pallet.error_variant_by_index(variant)?)));
        match found {
            Some((pallet, variant)) => DispatchFault {
                pallet: Some(pallet.into()),
                name: variant.name.clone(),
                docs: one_line(&variant.docs),
            },
            None => DispatchFault {
                pallet: None,
                name: format!("error {variant} of pallet {}", module.index),
                docs: String::new(),
            },
        }
    }

    /// One entry of `pallet_parameters`' only map.
    pub fn parameter(&self, full_key: &[u8], value: &[u8]) -> Result<Parameter, ChainError> {
        let entry = self.entry(Entry::Parameters)?;
        let types = self.metadata().types();
        let key = self.last_key(Entry::Parameters, &self.prefix(Entry::Parameters), full_key)?;
        let fault = |error: scale_value::scale::DecodeError| ChainError::Decode {
            what: "Parameters.Parameters".into(),
            reason: error.to_string(),
        };
        let key_type = entry.keys().last().map_or(0, |key| key.key_id);
        let key = scale_value::scale::decode_as_type(&mut &*key, key_type, types).map_err(fault)?;
        let value =
            scale_value::scale::decode_as_type(&mut &*value, entry.value_ty(), types).map_err(fault)?;
        let (names, _) = unfold(key);
        let (_, value) = unfold(value);
        let mut names = names.into_iter();
        Ok(Parameter {
            group: names.next().unwrap_or_default(),
            name: names.next().unwrap_or_default(),
            value,
        })
    }
}

/// Peels variants and wrappers of one field off a value: their names, and what is inside as text.
fn unfold<T>(mut value: scale_value::Value<T>) -> (Vec<String>, String) {
    let mut names = Vec::new();
    loop {
        let (name, fields) = match value.value {
            scale_value::ValueDef::Variant(variant) => (Some(variant.name), variant.values),
            scale_value::ValueDef::Composite(composite) => (None, composite),
            other => {
                let leaf = scale_value::Value {
                    value: other,
                    context: value.context,
                };
                return (names, leaf.to_string());
            }
        };
        names.extend(name);
        let mut fields: Vec<_> = fields.into_values().collect();
        match (fields.len(), fields.pop()) {
            (1, Some(inner)) => value = inner,
            (0, _) | (_, None) => return (names, String::new()),
            (_, Some(last)) => {
                fields.push(last);
                let texts = fields.into_iter().map(|field| field.to_string());
                return (names, texts.collect::<Vec<_>>().join(", "));
            }
        }
    }
}

/// Names and words for errors that are no pallet's.
fn describe(error: DispatchError) -> (String, String) {
    let text = <&'static str>::from(error).to_string();
    let name = format!("{error:?}");
    let name = name.split(['(', ' ', '{']).next().unwrap_or_default();
    (name.to_string(), text)
}

fn one_line(docs: &[String]) -> String {
    let lines: Vec<_> = docs.iter().map(|line| line.trim()).collect();
    lines.join(" ").trim().to_string()
}

fn events_fault(reason: String) -> ChainError {
    ChainError::Decode {
        what: "the events of a block".into(),
        reason,
    }
}

fn hex(bytes: &[u8]) -> String {
    format!("0x{}", hex::encode(bytes))
}

/// The error with which an extrinsic ended, if it did.
pub(super) fn failure(events: &[ChainEvent]) -> Option<DispatchError> {
    let failed = events
        .iter()
        .find(|event| event.is("System", "ExtrinsicFailed"))?;
    let error = failed.field("dispatch_error");
    Some(error.unwrap_or(DispatchError::Other("an error that this program does not know")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::Encode;

    #[test]
    fn a_failed_extrinsic_is_told_by_its_event() {
        let mut event = ChainEvent {
            pallet: "System".into(),
            name: "ExtrinsicSuccess".into(),
            extrinsic: Some(1),
            fields: Vec::new(),
        };
        assert_eq!(failure(std::slice::from_ref(&event)), None);
        event.name = "ExtrinsicFailed".into();
        event.fields = vec![EventField {
            name: "dispatch_error".into(),
            text: String::new(),
            bytes: DispatchError::BadOrigin.encode(),
        }];
        assert_eq!(failure(&[event]), Some(DispatchError::BadOrigin));
    }
}
