//! Payees that lie: what a payer does with what they have signed.

use crate::{support::*, world::World};
use surety_channel_calls::{
    message::Chunk,
    payer::{AskError, Broken, Evidence, NotCovered},
    *,
};
use surety_channels::*;
use surety_proofs::content_hash;

/// What a payee says that can sign anything.
struct Liar {
    world: World,
    nonce: Nonce,
    request: Request,
}

impl Liar {
    /// It was asked for a text after 10 tokens.
    fn new() -> Self {
        let mut world = World::new(1_000_000);
        let wanted = text(10, 1_000, 0, 512);
        let request = wanted.request.clone();
        let nonce = world.ask(wanted).unwrap();
        Self {
            world,
            nonce,
            request,
        }
    }

    /// An honest statement about so many tokens, counted from `from`.
    fn statement(&self, ids: &[u32], how: Option<End>) -> ChunkStatement<AccountId> {
        let words = std::iter::once(&0).chain(ids);
        let bytes: Vec<u8> = words.flat_map(|id| id.to_le_bytes()).collect();
        let units = 10 + ids.len() as u32;
        ChunkStatement {
            channel: CHANNEL,
            payee: account(STASH),
            nonce: self.nonce,
            request: self.request.hash(),
            bytes: bytes.len() as u32,
            output: content_hash(&bytes),
            units,
            price: TOKEN * u128::from(units),
            end: how.map(|how| Ending {
                how,
                trace_root: named("trace"),
            }),
        }
    }

    fn says(&mut self, ids: &[u32], statement: ChunkStatement<AccountId>) {
        let signed = signed(statement, AGENT);
        self.says_signed(ids, signed);
    }

    fn says_signed(&mut self, ids: &[u32], statement: SignedChunkStatement<AccountId>) {
        let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let bytes = Chunk::try_from(bytes).unwrap();
        let nonce = self.nonce;
        let message = FromPayee::Chunk { bytes, statement };
        self.world.payer_does(|payer| payer.hear(nonce, message));
    }

    /// How the call broke.
    fn broke(&self) -> (Broken, Option<Evidence>) {
        let [(nonce, why, _, evidence)] = &self.world.broken[..] else {
            panic!("{:?}", self.world.broken);
        };
        assert_eq!(*nonce, self.nonce);
        (*why, evidence.clone())
    }
}

fn signed(statement: ChunkStatement<AccountId>, by: u8) -> SignedChunkStatement<AccountId> {
    SignedChunkStatement {
        signature: sign_with(by)(&statement.message(&GENESIS)),
        agent: account(by),
        statement,
    }
}

fn ids(count: u32) -> Vec<u32> {
    (0..count).map(|at| 10 + at % 900).collect()
}

/// A payee that has said 300 tokens honestly, more than a segment, and then this.
fn after_300(
    more: u32,
    how: Option<End>,
    lie: impl FnOnce(&mut ChunkStatement<AccountId>),
) -> (Liar, Broken, Option<Evidence>) {
    let mut liar = Liar::new();
    let said = ids(300 + more);
    liar.says(&said[..300], liar.statement(&said[..300], None));
    assert!(liar.world.broken.is_empty());
    let mut statement = liar.statement(&said, how);
    lie(&mut statement);
    liar.says(&said[300..], statement);
    let (why, evidence) = liar.broke();
    (liar, why, evidence)
}

#[test]
fn what_counts_wrong_is_kept_as_its_own_evidence_and_ends_all_trust() {
    type Lie = fn(&mut ChunkStatement<AccountId>);
    let lies: [(Lie, Misstated); 3] = [
        (|said| said.price += 1, Misstated::Price),
        (
            |said| {
                said.units += 1;
                said.price += TOKEN;
            },
            Misstated::Units,
        ),
        (
            |said| {
                said.units = 5_000;
                said.price = 5_000 * TOKEN;
            },
            Misstated::Units,
        ),
    ];
    for (lie, expected) in lies {
        let (mut liar, why, evidence) = after_300(20, None, lie);
        assert_eq!(why, Broken::Misstated(expected));
        let Some(Evidence::Misstated { statement, request }) = evidence else {
            panic!("{evidence:?}");
        };
        assert!(statement.is_signed(&GENESIS, is_signed));
        assert_eq!(statement.statement.check(&request), Err(expected));
        // It is on disk, the last good statement is held, and nothing more is asked, also after a restart.
        assert_eq!(
            liar.world.payer_disk.of(|table| table == Table::Evidence).len(),
            1
        );
        liar.world.restart_payer();
        let held = liar.world.payer.held().next().unwrap();
        assert_eq!(held.2.unwrap().statement.units, 310);
        assert_eq!(liar.world.ask(text(1, 1, 0, 1)), Err(AskError::Distrusted));
    }
}

#[test]
fn two_statements_that_contradict_each_other_are_evidence_for_anybody() {
    type Lie = fn(&Liar) -> ChunkStatement<AccountId>;
    let lies: [(Lie, Clash); 5] = [
        // As long, and something else.
        (
            |liar| {
                let mut said = ids(300);
                said[7] += 1;
                liar.statement(&said, None)
            },
            Clash::Output,
        ),
        // Shorter, and something else: the kilobyte in which it ends shows it.
        (
            |liar| {
                let mut said = ids(100);
                said[99] += 1;
                liar.statement(&said, None)
            },
            Clash::Output,
        ),
        (
            |liar| ChunkStatement {
                request: named("another request"),
                ..liar.statement(&ids(300), None)
            },
            Clash::Request,
        ),
        // It ends before what was said.
        (|liar| liar.statement(&ids(100), Some(End::Cut)), Clash::AfterEnd),
        (
            |liar| ChunkStatement {
                price: 1,
                ..liar.statement(&ids(320), None)
            },
            Clash::Amount,
        ),
    ];
    for (lie, expected) in lies {
        let mut liar = Liar::new();
        let said = ids(300);
        liar.says(&said, liar.statement(&said, None));
        let statement = lie(&liar);
        liar.says(&[], statement);
        let (why, evidence) = liar.broke();
        assert_eq!(why, Broken::Equivocation);
        let Some(Evidence::Equivocation(evidence)) = evidence else {
            panic!("{evidence:?}");
        };
        assert_eq!(evidence.verify(&GENESIS, is_signed), Some(expected));
        assert!(liar.world.payer.is_distrusted());
    }
}

#[test]
fn what_is_signed_has_to_be_what_was_sent() {
    let (_, why, evidence) = after_300(20, None, |said| said.output = named("other"));
    assert_eq!(why, Broken::OtherOutput);
    let Some(Evidence::OtherOutput {
        statement, output, ..
    }) = evidence
    else {
        panic!("{evidence:?}");
    };
    assert_ne!(statement.statement.output, content_hash(&output));
    assert_eq!(statement.statement.bytes as usize, output.len());

    // More is signed, and charged, than was sent.
    let mut liar = Liar::new();
    let said = ids(20);
    liar.says(&said[..10], liar.statement(&said, None));
    assert_eq!(liar.broke().0, Broken::OtherOutput);
}

#[test]
fn an_answer_ends_with_a_stop_id_its_length_or_a_cancellation_alone() {
    for how in [End::Stop, End::Length, End::Cancelled] {
        let (_, why, evidence) = after_300(20, Some(how), |_| ());
        assert_eq!(why, Broken::WrongEnd);
        assert!(matches!(evidence, Some(Evidence::Misstated { .. })));
    }
    let mut liar = Liar::new();
    let said = [ids(20), vec![STOP]].concat();
    liar.says(&said, liar.statement(&said, Some(End::Stop)));
    assert_eq!(liar.world.done.len(), 1);
}

#[test]
fn what_nobody_has_signed_shows_nothing_and_ends_the_call() {
    let mut liar = Liar::new();
    let said = ids(20);
    liar.says_signed(&said, signed(liar.statement(&said, None), 77));
    assert_eq!(liar.broke(), (Broken::Unsigned, None));
    assert!(!liar.world.payer.is_distrusted());

    let mut liar = Liar::new();
    let mut forged = signed(liar.statement(&said, None), AGENT);
    forged.signature[5] ^= 1;
    liar.says_signed(&said, forged);
    assert_eq!(liar.broke(), (Broken::Unsigned, None));

    let mut liar = Liar::new();
    let mut elsewhere = liar.statement(&said, None);
    elsewhere.channel = 8;
    liar.says(&said, elsewhere);
    assert_eq!(liar.broke(), (Broken::Misplaced, None));

    // Empty chunks would have a payer write for nothing.
    let mut liar = Liar::new();
    liar.says(&said, liar.statement(&said, None));
    liar.says(&[], liar.statement(&said, None));
    assert_eq!(liar.broke(), (Broken::Misplaced, None));
}

#[test]
fn a_liar_gets_what_it_served_and_a_chunk() {
    let (liar, ..) = after_300(20, None, |said| said.price += 1);
    let payer = &liar.world.payer;
    let served = 310 * TOKEN;
    assert_eq!(payer.signed(), served + 512 * TOKEN);
    assert_eq!(payer.spent_on(liar.nonce), Some(payer.signed()));
}

#[test]
fn who_goes_on_after_a_cancellation_is_not_paid_for_it() {
    let mut liar = Liar::new();
    let said = ids(1_000);
    liar.says(&said[..300], liar.statement(&said[..300], None));
    let signed = liar.world.payer.signed();
    let nonce = liar.nonce;
    liar.world.payer_does(|payer| payer.cancel(nonce));
    liar.says(&said[300..900], liar.statement(&said[..900], None));
    liar.says(&[], liar.statement(&said[..900], Some(End::Cancelled)));
    assert_eq!(liar.world.done.len(), 1);
    assert_eq!(
        (liar.world.payer.signed(), liar.world.payer.spent()),
        (signed, signed)
    );
}

#[test]
fn a_batch_covers_what_was_said_or_shows_the_lie() {
    let mut liar = Liar::new();
    let said = ids(300);
    liar.says(&said, liar.statement(&said, None));
    let nonce = liar.nonce;
    liar.world.payer_does(|payer| payer.lost(nonce));
    let spent = liar.world.payer.spent();
    let refused = |liar: &mut Liar, statement| {
        let (root, shown) = batched(statement);
        liar.world.payer.cover(0, (&root, Some(0)), &shown, None).err()
    };
    let unended = liar.statement(&said, None);
    assert_eq!(refused(&mut liar, unended), Some(NotCovered::SaysLess));
    let less = liar.statement(&said[..200], Some(End::Cut));
    let clash = NotCovered::Contradicts(Clash::AfterEnd);
    assert_eq!(refused(&mut liar, less), Some(clash));
    let mut other = said.clone();
    other[3] += 1;
    let other = liar.statement(&other, Some(End::Cut));
    let clash = NotCovered::Contradicts(Clash::Output);
    assert_eq!(refused(&mut liar, other), Some(clash));
    let mut dear = liar.statement(&ids(400), Some(End::Cut));
    dear.price += 1;
    let misstated = NotCovered::Misstated(Misstated::Price);
    assert_eq!(refused(&mut liar, dear), Some(misstated));
    // A dearer one than was signed for gets no more of this payer.
    let whole = liar.statement(&ids(990), Some(End::Cut));
    let (root, mut shown) = batched(whole.clone());
    let output: Vec<u8> = std::iter::once(0)
        .chain(ids(990))
        .flat_map(u32::to_le_bytes)
        .collect();
    let segment = segment_of_end(&liar.statement(&said, None), &whole, &output);
    let covered = liar
        .world
        .payer
        .cover(0, (&root, None), &shown, segment.as_ref())
        .unwrap();
    liar.world.payer_does(|_| covered);
    assert_eq!(liar.world.payer.spent(), spent);
    shown.statement.nonce = 5;
    assert_eq!(
        liar.world.payer.cover(0, (&root, Some(0)), &shown, None).err(),
        Some(NotCovered::NotHeld)
    );
}

#[test]
fn a_second_receipt_that_says_something_else_shows_a_lie_and_the_same_again_does_not() {
    let mut liar = Liar::new();
    let ids: Vec<u32> = vec![5; 20];
    let mut stopped = ids.clone();
    *stopped.last_mut().unwrap() = STOP;
    let first = liar.statement(&stopped, Some(End::Stop));
    liar.says(&stopped, first.clone());
    let nonce = liar.nonce;
    assert_eq!(liar.world.done[&nonce].statement, first);
    let spent = liar.world.payer.spent();

    // The same, what somebody else has signed, and what is about another request.
    liar.says(&[], first.clone());
    let other = ChunkStatement {
        output: named("other"),
        ..first.clone()
    };
    liar.says_signed(&[], signed(other.clone(), KEY));
    let misplaced = ChunkStatement {
        nonce: nonce + 1,
        ..other.clone()
    };
    liar.says(&[], misplaced);
    assert_eq!(
        (liar.world.broken.len(), liar.world.payer.is_distrusted()),
        (0, false)
    );

    liar.says(&[], other.clone());
    let (why, evidence) = liar.broke();
    let Some(Evidence::Equivocation(shown)) = evidence else {
        panic!("{evidence:?}");
    };
    assert_eq!(why, Broken::Equivocation);
    assert_eq!((&shown.one.statement, &shown.other.statement), (&first, &other));
    assert_eq!(shown.verify(&GENESIS, is_signed), Some(Clash::Output));
    // It costs nothing more, and is known after a start, too.
    assert_eq!(liar.world.payer.spent(), spent);
    liar.world.restart_payer();
    assert!(liar.world.payer.is_distrusted());
}
