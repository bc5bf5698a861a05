//! Events of a block, decoded as far as their names and fields.

use codec::{Decode, DecodeAll};
use surety_channels::ChannelId;
use surety_types::{TaskId, trust::SlashCause};

/// Something that happened in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainEvent {
    /// The pallet, as named in the runtime.
    pub pallet: String,
    /// Name of the event.
    pub name: String,
    /// Which extrinsic of the block did it; none for what the block did by itself.
    pub extrinsic: Option<u32>,
    /// Its fields in order.
    pub fields: Vec<EventField>,
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventField {
    /// Its name; its position when the runtime gives it none.
    pub name: String,
    /// Its value as text.
    pub text: String,
    /// Its value in SCALE.
    pub bytes: Vec<u8>,
}

impl ChainEvent {
    /// Whether it is the named event of the named pallet.
    pub fn is(&self, pallet: &str, name: &str) -> bool {
        self.pallet == pallet && self.name == name
    }

    /// A field's value, if there is such a field and it is a `T`.
    pub fn field<T: Decode>(&self, name: &str) -> Option<T> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        T::decode_all(&mut field.bytes.as_slice()).ok()
    }

    /// The task that the event is about; of a slash, what it is for.
    pub fn task(&self) -> Option<TaskId> {
        self.field("task").or_else(|| match self.field("cause")? {
            SlashCause::Task(task) => Some(task),
            SlashCause::Channels | SlashCause::Equivocation(_) => None,
        })
    }

    /// The channel that the event is about.
    pub fn channel(&self) -> Option<ChannelId> {
        self.field("channel")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::Encode;

    #[test]
    fn fields_are_found_by_name_and_must_fit_exactly() {
        let event = ChainEvent {
            pallet: "TaskAuction".into(),
            name: "TaskPosted".into(),
            extrinsic: Some(1),
            fields: vec![EventField {
                name: "task".into(),
                text: "7".into(),
                bytes: 7u64.encode(),
            }],
        };
        assert!(event.is("TaskAuction", "TaskPosted"));
        assert_eq!(event.task(), Some(7));
        assert_eq!(event.field::<u32>("task"), None);
        assert_eq!(event.field::<u64>("cap"), None);
    }

    #[test]
    fn a_slash_is_about_the_task_that_caused_it_and_about_none_where_nothing_of_the_kind_did() {
        let slash = |cause: SlashCause| ChainEvent {
            pallet: "TrustLock".into(),
            name: "SlashDeferred".into(),
            extrinsic: None,
            fields: vec![EventField {
                name: "cause".into(),
                text: String::new(),
                bytes: cause.encode(),
            }],
        };
        assert_eq!(slash(SlashCause::Task(7)).task(), Some(7));
        assert_eq!(slash(SlashCause::Channels).task(), None);
        assert_eq!(slash(SlashCause::Equivocation(7)).task(), None);
    }
}
