//! What a verifier's machine makes of a receipt.

use std::collections::BTreeMap;

use sp_core::H256;
use surety_audit_economics::channels::item_at;
use surety_engine::{Engine, EngineError, Sink, content_hash};
use surety_types::{model::Operation, task::ResultClaim};

use crate::shown::Receipt;

/// What was found in a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// By point, of those that are in it.
    pub found: BTreeMap<u128, H256>,
    /// Whether the receipt claims the same.
    pub is_right: bool,
}

/// Computes a receipt again that begins at `start`, for those of these points that are in it.
///
/// # Errors
/// Those of the engine: nothing is known of the receipt then.
pub fn compute(
    engine: &dyn Engine,
    receipt: &Receipt,
    (start, points): (u128, &[u128]),
    sink: &mut dyn Sink,
) -> Result<Computed, EngineError> {
    let (job, statement) = (receipt.job(), &receipt.batched.statement);
    let price = statement.price;
    let inside = inside(receipt, start, points);
    match job.operation {
        Operation::Generate => {
            let bytes = receipt.claimed_bytes();
            let claim = engine.audit(&job, &bytes, sink)?;
            let said = claimed(receipt, content_hash(&bytes));
            Ok(Computed {
                found: inside.map(|(point, _)| (point, claim.trace_root)).collect(),
                is_right: said == Some(claim),
            })
        }
        Operation::Embed => {
            let items: Vec<(u128, u32)> = inside
                .map(|(point, offset)| (point, item_at(offset, price, statement.units)))
                .collect();
            let mut own: Vec<u32> = items.iter().map(|(_, item)| *item).collect();
            own.sort_unstable();
            own.dedup();
            let claim = engine.run(&job, sink)?.claim;
            let roots = engine.audit_items(&job, &own, sink)?;
            let roots: BTreeMap<u32, H256> = own
                .into_iter()
                .zip(roots.iter().map(|found| found.leaves))
                .collect();
            let root = |(point, item): (u128, u32)| Some((point, *roots.get(&item)?));
            Ok(Computed {
                found: items.into_iter().filter_map(root).collect(),
                is_right: claimed(receipt, statement.output) == Some(claim),
            })
        }
    }
}

/// Those of these points that are in a receipt that begins at `start`, each with how far into it.
pub(crate) fn inside<'a>(
    receipt: &Receipt,
    start: u128,
    points: &'a [u128],
) -> impl Iterator<Item = (u128, u128)> + use<'a> {
    let price = receipt.batched.statement.price;
    let offset = move |point: u128| point.checked_sub(start).filter(|offset| *offset < price);
    points
        .iter()
        .filter_map(move |point| Some((*point, offset(*point)?)))
}

fn claimed(receipt: &Receipt, output: H256) -> Option<ResultClaim> {
    let statement = &receipt.batched.statement;
    Some(ResultClaim {
        output,
        trace_root: statement.end?.trace_root,
        units: statement.units,
    })
}
