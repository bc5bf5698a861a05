//! Every kind of record.

use super::*;

/// One record of each kind but the last, in the order of their numbers on disk.
pub fn every_kind() -> Vec<Record> {
    let provider = surety_worker_core::AccountId::new([3; 32]);
    let Record::ResultMade { claim, salt, .. } = result(1) else {
        panic!("a result")
    };
    let (task, at, dispute, number, seal) = (1, 2, 7, 1, H256([6; 32]));
    let made = Record::AuditMade {
        task,
        at,
        provider: provider.clone(),
        claim,
        salt,
        seal,
    };
    let vote = Record::VoteMade {
        task,
        at,
        dispute,
        ballot: 0,
        value: H256([8; 32]),
        salt,
        seal,
    };
    let missed = Record::InputMissed {
        task,
        at,
        since: 1,
        demands: 0,
    };
    let demanded = Record::InputDemandMade {
        task,
        at,
        number: 0,
        segment: 5,
    };
    let played = Record::MoveMade {
        task,
        at,
        dispute,
        number,
        played: Move::Name(3),
    };
    let sent = Record::MoveSubmitted {
        task,
        at,
        dispute,
        number,
    };
    let served = Record::AuditServed {
        task,
        at,
        provider: provider.clone(),
        statement: Decode::decode(&mut &[7u8; 200][..]).unwrap(),
    };
    vec![
        bid(1),
        result(1),
        Record::CommitSubmitted { task, at },
        Record::RevealSubmitted { task, at },
        made,
        Record::AuditAnnounced {
            task,
            at,
            provider: provider.clone(),
        },
        Record::AuditRevealed {
            task,
            at,
            provider: provider.clone(),
        },
        played,
        sent,
        vote,
        missed,
        demanded,
        Record::LeavesKept {
            task,
            at,
            leaves: H256([9; 32]),
        },
        Record::ItemsAudited {
            task,
            at,
            provider: provider.clone(),
            found: ItemsFound::truncate_from(vec![ItemFound::default()]),
            salts: [salt, seal],
            seal,
        },
        Record::AuditCompared {
            task,
            at,
            provider: provider.clone(),
            agrees: true,
        },
        served,
        Record::ConfirmationChecked {
            task,
            at,
            verifier: provider.clone(),
            refutation: None,
        },
        Record::ViewKept {
            task,
            at,
            provider,
            view: KeptView {
                leaves: H256([9; 32]),
                output: H256([8; 32]),
                differs: Some((3, 2)),
            },
        },
        Record::InputFetched { task, at },
    ]
}

/// A record's number on disk, and the first version whose programs know it. Whoever adds a kind comes by
/// here: it gets the next number, and a new version if the last one is out.
pub fn numbered(record: &Record) -> (u8, u64) {
    match record {
        Record::BidMade { .. } => (0, 1),
        Record::ResultMade { .. } => (1, 1),
        Record::CommitSubmitted { .. } => (2, 1),
        Record::RevealSubmitted { .. } => (3, 1),
        Record::Finished { .. } => (4, 1),
        Record::AuditMade { .. } => (5, 2),
        Record::AuditAnnounced { .. } => (6, 2),
        Record::AuditRevealed { .. } => (7, 2),
        Record::MoveMade { .. } => (8, 2),
        Record::MoveSubmitted { .. } => (9, 2),
        Record::VoteMade { .. } => (10, 3),
        Record::InputMissed { .. } => (11, 3),
        Record::InputDemandMade { .. } => (12, 3),
        Record::LeavesKept { .. } => (13, 4),
        Record::ItemsAudited { .. } => (14, 4),
        Record::AuditCompared { .. } => (15, 4),
        Record::AuditServed { .. } => (16, 4),
        Record::ConfirmationChecked { .. } => (17, 4),
        Record::ViewKept { .. } => (18, 4),
        Record::InputFetched { .. } => (19, 4),
    }
}
