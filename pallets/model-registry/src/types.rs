//! Records that know no pallet.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use surety_types::model::ModelManifest;

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
