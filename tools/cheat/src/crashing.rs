//! Ends the process as a power cut would, at one point of a task's life.

use std::sync::Arc;

use surety_journal::{JournalError, RecordLog};
use surety_types::TaskId;
use surety_worker_core::Record;

use crate::args::CrashPoint;

/// The end, without any winding down.
pub fn crash(task: TaskId) -> ! {
    tracing::error!(task, "aborting, as --crash-at demands");
    std::process::abort();
}

/// A journal after which the process ends: its records are on disk, and nothing that follows from them has
/// begun.
pub struct CrashingLog {
    log: Arc<dyn RecordLog>,
    point: CrashPoint,
}

impl CrashingLog {
    pub fn new(log: Arc<dyn RecordLog>, point: CrashPoint) -> Self {
        Self { log, point }
    }
}

/// Whether a worker is to end once it has this record.
fn is_at(point: CrashPoint, record: &Record) -> bool {
    match record {
        Record::ResultMade { .. } => point == CrashPoint::AfterJournalCommit,
        Record::AuditMade { .. } => point == CrashPoint::AfterAudit,
        Record::MoveMade { .. } => point == CrashPoint::AfterMove,
        _ => false,
    }
}

impl RecordLog for CrashingLog {
    fn append(&self, records: &[Record]) -> Result<(), JournalError> {
        self.log.append(records)?;
        match records.iter().find(|record| is_at(self.point, record)) {
            Some(record) => crash(record.task()),
            None => Ok(()),
        }
    }

    fn is_short_of_room(&self) -> bool {
        self.log.is_short_of_room()
    }
}

#[cfg(test)]
mod tests {
    use surety_dispute_game::bisection::Move;
    use surety_types::task::ResultClaim;
    use surety_worker_core::{AccountId, Hash};

    use super::*;

    #[test]
    fn each_point_has_its_record() {
        let claim = ResultClaim {
            output: Hash::zero(),
            trace_root: Hash::zero(),
            units: 1,
        };
        let result = Record::ResultMade {
            task: 1,
            at: 2,
            claim: claim.clone(),
            salt: Hash::zero(),
            commitment: Hash::zero(),
        };
        let audit = Record::AuditMade {
            task: 1,
            at: 2,
            provider: AccountId::new([7; 32]),
            claim,
            salt: Hash::zero(),
            seal: Hash::zero(),
        };
        let played = Record::MoveMade {
            task: 1,
            at: 2,
            dispute: 3,
            number: 0,
            played: Move::Concede,
        };
        let committed = Record::CommitSubmitted { task: 1, at: 3 };
        // A generation that goes on has no record: `plane` ends the process at its first token.
        let points = [
            CrashPoint::AfterJournalCommit,
            CrashPoint::AfterAudit,
            CrashPoint::AfterMove,
            CrashPoint::MidGeneration,
        ];
        for (record, ends) in [
            (result, [true, false, false, false]),
            (audit, [false, true, false, false]),
            (played, [false, false, true, false]),
            (committed, [false; 4]),
        ] {
            assert_eq!(points.map(|point| is_at(point, &record)), ends, "{record:?}");
        }
    }
}
