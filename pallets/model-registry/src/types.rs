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
    /// Offers of it over channels, and disputes about their receipts.
    pub sales: u32,
    /// Whether it takes no new ones, and goes with the last of them.
    pub retired: bool,
}

impl ModelUse {
    /// Whether nothing needs it any more.
    pub const fn is_over(&self) -> bool {
        self.tasks == 0 && self.sales == 0
    }
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
