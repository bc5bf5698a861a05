//! What a provider says of its machine.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;

use crate::{model::Name, multiaddr::Endpoints, region::Region};

/// The kind of processor that runs the models.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum DeviceKind {
    /// No accelerator.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
}

/// A machine as its owner declares it. Nothing in it is trusted: a declared speed would pay liars. Where the
/// machine is nobody can measure: clients that ask for a region have its owner's word.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct DeviceProfile {
    /// Processor name.
    pub name: Name,
    /// Processor kind.
    pub kind: DeviceKind,
    /// Logical cores that the worker may use.
    pub cores: u16,
    /// Memory for models, in MiB.
    pub memory_mib: u32,
    /// Where it is, if its owner says so.
    pub region: Option<Region>,
}

/// A registered provider.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Provider<BlockNumber> {
    /// Its machine.
    pub device: DeviceProfile,
    /// Where its data plane answers.
    pub endpoints: Endpoints,
    /// Block of its last sign of life.
    pub last_heartbeat: BlockNumber,
}
