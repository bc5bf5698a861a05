//! Records that know no pallet.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use surety_types::model::ModelManifest;

/// What goes on with a model.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct ModelUse {
    /// Tasks that asked for it and are not over.
    pub tasks: u32,
    /// Whether it takes no new ones, and goes with the last of them.
    pub retired: bool,
}

/// A registered model.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Model<AccountId, Balance> {
    /// Who registered it, and may retire it.
    pub owner: AccountId,
    /// What fixes its answers.
    pub manifest: ModelManifest,
    /// What is held from the owner for it, in plancks.
    pub deposit: Balance,
}
