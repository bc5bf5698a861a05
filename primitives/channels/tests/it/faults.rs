//! What is wrong with a batch is shown, and nothing is shown of an honest one.

use super::*;
use proptest::prelude::*;
use sp_core::bounded::BoundedVec;

fn committed(batch: BatchRoot) -> Committed<Account> {
    Committed {
        genesis: GENESIS,
        payee: account(&payee()),
        batch,
        other: None,
    }
}

fn receipt(nonce: Nonce, tokens: &[u32]) -> ChunkStatement<Account> {
    statement(nonce, tokens, Some(End::Length))
}

/// The only receipt of a batch, which was built of `entry`.
fn lone(entry: BatchEntry, statement: ChunkStatement<Account>) -> (BatchRoot, Batched<Account>) {
    let batch = Batch::new(&[entry]).unwrap();
    let opening = batch.open(entry.channel, entry.nonce).unwrap();
    (batch.root(), Batched { opening, statement })
}

fn entry_of(statement: &ChunkStatement<Account>) -> BatchEntry {
    BatchEntry {
        channel: statement.channel,
        nonce: statement.nonce,
        price: statement.price,
        leaf: ReceiptLeaf {
            receipt: H256(statement.message(&GENESIS)),
            salt: named("salt"),
        },
    }
}

fn fault(root: BatchRoot, batched: Batched<Account>, request: Option<Request>) -> Option<BatchFault> {
    BatchEvidence::Receipt { batched, request }.verify(&committed(root), verify)
}

#[test]
fn an_honest_receipt_has_no_fault() {
    let said = receipt(3, &[1, 2]);
    let (root, batched) = lone(entry_of(&said), said);
    assert_eq!(fault(root, batched.clone(), None), None);
    assert_eq!(fault(root, batched.clone(), Some(request())), None);
    let other = Request {
        unit_price: 6,
        ..request()
    };
    assert_eq!(
        fault(root, batched, Some(other)),
        None,
        "framed by another request"
    );
}

#[test]
fn a_receipt_in_the_wrong_place_or_at_another_price_is_a_fault() {
    let said = receipt(3, &[1, 2]);
    let good = entry_of(&said);
    let misplaced = [
        BatchEntry { channel: 8, ..good },
        BatchEntry { nonce: 4, ..good },
        BatchEntry {
            price: good.price + 1,
            ..good
        },
        // Hidden from draws.
        BatchEntry { price: 0, ..good },
    ];
    for entry in misplaced {
        let (root, batched) = lone(entry, said.clone());
        assert_eq!(fault(root, batched, None), Some(BatchFault::OtherReceipt));
    }
    // Somebody else's receipt.
    let others = ChunkStatement {
        payee: [5; 32],
        ..said.clone()
    };
    let (root, batched) = lone(entry_of(&others), others);
    assert_eq!(fault(root, batched, None), Some(BatchFault::OtherReceipt));
    // What the leaf is not a hash of shows nothing.
    let (root, mut batched) = lone(BatchEntry { price: 0, ..good }, said);
    batched.statement.units += 1;
    assert_eq!(fault(root, batched, None), None);
}

#[test]
fn what_has_no_end_or_does_not_follow_from_its_request_is_a_fault() {
    let open = statement(3, &[1, 2], None);
    let (root, batched) = lone(entry_of(&open), open);
    assert_eq!(fault(root, batched, None), Some(BatchFault::Unended));
    let dear = ChunkStatement {
        price: 10_000,
        ..receipt(3, &[1, 2])
    };
    let (root, batched) = lone(entry_of(&dear), dear);
    assert_eq!(fault(root, batched.clone(), None), None);
    let misstated = Some(BatchFault::Misstated(Misstated::Price));
    assert_eq!(fault(root, batched, Some(request())), misstated);
}

#[test]
fn a_batched_receipt_and_what_was_said_to_the_client_are_compared() {
    let (told, batched_one) = (statement(0, &[1, 2, 3], None), receipt(0, &[1, 2, 4]));
    let (root, batched) = lone(entry_of(&batched_one), batched_one);
    let evidence = |said| BatchEvidence::Contradiction {
        batched: batched.clone(),
        said,
        shown: None,
    };
    let clash = evidence(Said::Signed(signed(told.clone()))).verify(&committed(root), verify);
    assert_eq!(clash, Some(BatchFault::Contradicted(Clash::Output)));
    let mut forged = signed(told);
    forged.signature[5] ^= 1;
    assert_eq!(
        evidence(Said::Signed(forged)).verify(&committed(root), verify),
        None
    );
    let same = signed(statement(0, &[1, 2], None));
    assert_eq!(
        evidence(Said::Signed(same)).verify(&committed(root), verify),
        None
    );
}

#[test]
fn two_batches_with_two_answers_to_one_request_clash_and_with_one_do_not() {
    let (one, other) = (receipt(0, &[1]), receipt(0, &[2]));
    let (first, batched) = lone(entry_of(&one), one);
    for (said, clash) in [
        (other, Some(BatchFault::Contradicted(Clash::Output))),
        (receipt(0, &[1]), None),
    ] {
        // Under another salt, as a provider might that has forgotten the first.
        let mut entry = entry_of(&said);
        entry.leaf.salt = named("another salt");
        let (second, said) = lone(entry, said);
        let evidence = BatchEvidence::Contradiction {
            batched: batched.clone(),
            said: Said::Batched(said),
            shown: None,
        };
        let both = Committed {
            other: Some(second),
            ..committed(first)
        };
        assert_eq!(evidence.verify(&both, verify), clash);
        assert_eq!(evidence.verify(&committed(first), verify), None);
    }
}

/// The tree that a liar builds: like `nodes`' but with one sum as it says.
fn two_channels(lie: Sums) -> (BatchRoot, SumFlaw, [ChannelOpening; 2]) {
    let honest = Batch::new(&entries(&[(1, 0, vec![5, 6]), (2, 0, vec![7])])).unwrap();
    let openings = [1, 2].map(|channel| honest.open_channel(channel).unwrap());
    let node = |place: usize| openings[1 - place].path.0[0];
    let (left, right) = (node(0), node(1));
    let root = BatchRoot {
        hash: SumNode::hash_above(&left, &right),
        channels: 2,
        sums: lie,
    };
    let flaw = SumFlaw {
        of: None,
        level: 1,
        place: 0,
        claimed: lie,
        left,
        right,
        path: SumPath::default(),
    };
    (root, flaw, openings)
}

#[test]
fn a_root_that_says_more_or_less_than_is_below_it_is_a_fault() {
    let honest = Sums {
        receipts: 3,
        price: 18,
    };
    for lie in [
        Sums { price: 17, ..honest },
        Sums {
            price: 1_000,
            ..honest
        },
        Sums {
            receipts: 4,
            ..honest
        },
    ] {
        let (root, flaw, openings) = two_channels(lie);
        assert!(openings.iter().all(|opening| opening.verify(&root).is_none()));
        let evidence = BatchEvidence::Sum(flaw.clone());
        assert_eq!(
            evidence.verify(&committed(root), verify),
            Some(BatchFault::WrongSum)
        );
        let honestly = BatchEvidence::Sum(SumFlaw {
            claimed: honest,
            ..flaw
        });
        assert_eq!(honestly.verify(&committed(root), verify), None);
    }
    let (root, flaw, openings) = two_channels(honest);
    assert!(openings.iter().all(|opening| opening.verify(&root).is_some()));
    assert_eq!(BatchEvidence::Sum(flaw).verify(&committed(root), verify), None);
}

#[test]
fn a_wrong_sum_deep_in_the_receipts_of_a_channel_is_a_fault() {
    let leaf = |place: u8, price| SumNode {
        hash: H256::repeat_byte(place),
        sums: Sums { receipts: 1, price },
    };
    let leaves = [leaf(0, 5), leaf(1, 5), leaf(2, 5), leaf(3, 5)];
    let mut lie = SumNode::above(&leaves[0], &leaves[1]).unwrap();
    lie.sums.price = 1;
    let right = SumNode::above(&leaves[2], &leaves[3]).unwrap();
    let total = SumNode::above(&lie, &right).unwrap();
    // A channel's node is known from the batch of one that it has alone.
    let (channel, first) = (CHANNEL, 0);
    let of = ChannelOpening {
        place: 0,
        channel,
        first,
        total,
        path: SumPath::default(),
    };
    let mut preimage = vec![2];
    preimage.extend(channel.to_le_bytes());
    preimage.extend(first.to_le_bytes());
    preimage.extend(total.hash.0);
    let root = BatchRoot {
        hash: H256(blake2_256(&preimage)),
        channels: 1,
        sums: total.sums,
    };
    assert!(of.verify(&root).is_some());
    let flaw = SumFlaw {
        of: Some(of),
        level: 1,
        place: 0,
        claimed: lie.sums,
        left: leaves[0],
        right: leaves[1],
        path: SumPath(BoundedVec::truncate_from(vec![right])),
    };
    let evidence = |flaw| BatchEvidence::Sum(flaw).verify(&committed(root), verify);
    assert_eq!(evidence(flaw.clone()), Some(BatchFault::WrongSum));
    assert_eq!(
        evidence(SumFlaw {
            place: 1,
            ..flaw.clone()
        }),
        None
    );
    assert_eq!(
        evidence(SumFlaw {
            of: None,
            ..flaw.clone()
        }),
        None
    );
    let on_the_right = SumFlaw {
        place: 1,
        claimed: right.sums,
        left: leaves[2],
        right: leaves[3],
        path: SumPath(BoundedVec::truncate_from(vec![lie])),
        ..flaw
    };
    assert_eq!(evidence(on_the_right), None, "that node is right");
}

#[test]
fn channels_that_do_not_ascend_are_a_fault_and_so_is_hiding_behind_that() {
    // A liar's own tree: channel 9 before channel 4.
    let part = |channel| Batch::new(&[entry(channel, 0, 5)]).unwrap();
    let node = |batch: &Batch| SumNode {
        hash: batch.root().hash,
        sums: batch.root().sums,
    };
    let (nine, four) = (part(9), part(4));
    let top = SumNode::above(&node(&nine), &node(&four)).unwrap();
    let root = BatchRoot {
        hash: top.hash,
        channels: 2,
        sums: top.sums,
    };
    let at = |batch: &Batch, place: u32, sibling: &Batch| {
        let channel = if place == 0 { 9 } else { 4 };
        ChannelOpening {
            place,
            path: SumPath(BoundedVec::truncate_from(vec![node(sibling)])),
            ..batch.open_channel(channel).unwrap()
        }
    };
    let (one, other) = (at(&nine, 0, &four), at(&four, 1, &nine));
    let evidence = BatchEvidence::Order {
        one: one.clone(),
        other: other.clone(),
    };
    assert_eq!(
        evidence.verify(&committed(root), verify),
        Some(BatchFault::Unordered)
    );
    let turned = BatchEvidence::Order {
        one: other.clone(),
        other: one.clone(),
    };
    assert_eq!(turned.verify(&committed(root), verify), None);
    // "There is nothing of channel 4": before 9, which is the first. Who holds a receipt of 4 has the above.
    let absence = Absence::Between {
        before: None,
        after: Some(one),
    };
    assert!(absence.verify(&root, 4, 0));
    assert!(other.verify(&root).is_some_and(|shown| shown.has(0)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whoever is honest cannot be framed with anything that was ever shown of it.
    #[test]
    fn no_evidence_can_be_made_of_an_honest_batch(
        counts in proptest::collection::vec(1u32..6, 1..6), one in 0usize..30, other in 0usize..30,
        level in 0u32..4, place in 0u32..8, claimed in 0u128..200,
    ) {
        let mut statements = Vec::new();
        for (channel, count) in counts.iter().enumerate() {
            for nonce in 0..*count {
                let said = receipt(nonce, &vec![1; (nonce as usize + channel) % 3]);
                statements.push(ChunkStatement { channel: channel as u64, ..said });
            }
        }
        let batch = batch_of(&statements);
        let committed = Committed { other: Some(batch.root()), ..committed(batch.root()) };
        let batched = |at: usize| {
            let statement = statements[at % statements.len()].clone();
            Batched { opening: batch.open(statement.channel, statement.nonce).unwrap(), statement }
        };
        let (one, other) = (batched(one), batched(other));
        let crossed = Batched { statement: other.statement.clone(), ..one.clone() };
        let sides: Vec<SumNode> = one.opening.path.0.iter().chain(&one.opening.of.path.0).copied().collect();
        let contradiction = |said| BatchEvidence::Contradiction { batched: one.clone(), said, shown: None };
        let mut evidence = vec![
            BatchEvidence::Order { one: one.opening.of.clone(), other: other.opening.of.clone() },
            BatchEvidence::Order { one: other.opening.of.clone(), other: one.opening.of.clone() },
            contradiction(Said::Batched(other.clone())),
            contradiction(Said::Signed(signed(other.statement.clone()))),
        ];
        for batched in [one.clone(), other, crossed] {
            evidence.push(BatchEvidence::Receipt { batched, request: Some(request()) });
        }
        for left in &sides {
            for right in &sides {
                for of in [None, Some(one.opening.of.clone())] {
                    let claimed = Sums { receipts: 2, price: claimed };
                    let path = one.opening.path.clone();
                    let flaw = SumFlaw { of, level, place, claimed, left: *left, right: *right, path };
                    evidence.push(BatchEvidence::Sum(flaw.clone()));
                    evidence.push(BatchEvidence::Sum(SumFlaw { path: SumPath::default(), ..flaw }));
                }
            }
        }
        for evidence in evidence {
            prop_assert_eq!(evidence.verify(&committed, verify), None);
        }
    }
}
