//! What a call is given.

use codec::Encode;
use scale_info::{MetaType, TypeInfo, meta_type};

/// An argument of a call, as this program knows it.
pub struct Argument {
    /// Its value in SCALE.
    pub bytes: Vec<u8>,
    /// Its type.
    pub ty: MetaType,
}

impl Argument {
    pub(super) fn of<T: Encode + TypeInfo + 'static>(value: &T) -> Self {
        Self {
            bytes: value.encode(),
            ty: meta_type::<T>(),
        }
    }
}
