//! What the benchmarks are about here.

use sp_core::H256;
use surety_channels::Request;
use surety_types::{model::Operation, task::ResultClaim, trust::ItemLeaves};

use super::model;

/// A generation.
pub(super) fn request() -> Request {
    Request {
        model: model(1),
        operation: Operation::Generate,
        input: H256::zero(),
        // A prompt of one token, after the settings.
        input_bytes: 28,
        units_max: 1 << 16,
        unit_price: 1,
    }
}

/// Items, a claim about them, and the one leaf of the first.
pub(super) fn item() -> (Request, ResultClaim, ItemLeaves) {
    let request = Request {
        operation: Operation::Embed,
        units_max: 17,
        ..request()
    };
    let claim = ResultClaim {
        output: H256::zero(),
        trace_root: H256::zero(),
        units: request.units_max,
    };
    let shown = ItemLeaves {
        leaves: vec![H256::zero()].try_into().expect("one is not too many"),
        siblings: Default::default(),
    };
    (request, claim, shown)
}
