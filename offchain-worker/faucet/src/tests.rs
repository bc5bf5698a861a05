#![allow(clippy::unwrap_used)]

mod http;
mod limits;

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use surety_chain_client::{AccountId, Balance, Call, ChainError, FakeChain, Funds, Refusal, Signer};
use tempfile::TempDir;

use super::*;

const AMOUNT: Balance = 1_000_000;
const START: u64 = 1_800_000_000;
const HOUR: u64 = 3_600;

/// A faucet that can be killed and started again, at a time that the test sets.
struct World {
    chain: FakeChain,
    home: TempDir,
    now: Arc<AtomicU64>,
    limits: Limits,
}

impl World {
    fn new() -> Self {
        let world = Self {
            chain: FakeChain::new(),
            home: tempfile::tempdir().unwrap(),
            now: Arc::new(AtomicU64::new(START)),
            limits: Limits {
                per_client: 2,
                per_hour: 3,
            },
        };
        world.fill(100 * AMOUNT + FEE_MAX);
        world
    }

    fn fill(&self, free: Balance) {
        let funds = Funds { free, held: 0 };
        let purse = signer("//Purse").account().clone();
        self.chain.change(|state| state.funds.insert(purse, funds));
    }

    fn at(&self, seconds: u64) {
        self.now.store(START + seconds, Ordering::Relaxed);
    }

    async fn try_open(&self) -> Result<Arc<Faucet>, StartError> {
        let purse = Purse {
            signer: signer("//Purse"),
            amount: AMOUNT,
        };
        let now = self.now.clone();
        let clock: Clock = Arc::new(move || now.load(Ordering::Relaxed));
        let chain = Arc::new(self.chain.clone());
        let file = self.home.path().join("faucet.redb");
        Faucet::open(chain, purse, self.limits, (&file, clock)).await
    }

    async fn open(&self) -> Arc<Faucet> {
        self.try_open().await.unwrap()
    }

    /// To whom money was sent.
    fn paid(&self) -> Vec<AccountId> {
        let calls = self.chain.calls().into_iter();
        calls
            .map(|(_, call)| match call {
                Call::Transfer { to, amount } if amount == AMOUNT => to,
                other => panic!("{other:?}"),
            })
            .collect()
    }
}

fn signer(name: &str) -> Signer {
    Signer::from_uri(name).unwrap()
}

fn account(number: u8) -> AccountId {
    AccountId::new([number; 32])
}

fn origin(address: &str) -> Origin {
    Origin::from(address.parse::<IpAddr>().unwrap())
}

fn is_too_soon(claimed: Result<Paid, ClaimError>) -> u64 {
    match claimed {
        Err(ClaimError::TooSoon(refused)) => refused.wait_s,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_claim_is_paid_once_its_transfer_is_in_a_block() {
    let world = World::new();
    let paid = world
        .open()
        .await
        .claim(account(1), origin("192.0.2.1"))
        .await
        .unwrap();
    assert_eq!(paid.amount, AMOUNT);
    assert_eq!(world.paid(), [account(1)]);
}

#[tokio::test]
async fn of_two_claims_at_once_for_one_account_one_is_paid() {
    let world = World::new();
    let faucet = world.open().await;
    let claims = (1..=8).map(|last| {
        let faucet = faucet.clone();
        let from = origin(&format!("192.0.2.{last}"));
        tokio::spawn(async move { faucet.claim(account(1), from).await })
    });
    let mut paid = 0;
    for claim in claims.collect::<Vec<_>>() {
        match claim.await.unwrap() {
            Ok(_) => paid += 1,
            refused => assert_eq!(is_too_soon(refused), 24 * HOUR),
        }
    }
    assert_eq!((paid, world.paid().len()), (1, 1));
}

#[tokio::test]
async fn a_claim_counts_before_its_transfer_is_signed_and_is_not_paid_after_a_crash() {
    let world = World::new();
    let faucet = world.open().await;
    // Killed between the journal and the pool.
    faucet
        .claims
        .take(START, account(1), origin("192.0.2.1"))
        .unwrap();
    drop(faucet);
    let faucet = world.open().await;
    assert_eq!(
        is_too_soon(faucet.claim(account(1), origin("192.0.2.1")).await),
        24 * HOUR
    );
    assert!(world.paid().is_empty());
    world.at(24 * HOUR);
    faucet.claim(account(1), origin("192.0.2.1")).await.unwrap();
    assert_eq!(world.paid(), [account(1)]);
}

#[tokio::test]
async fn whoever_hangs_up_is_paid_all_the_same_and_once() {
    let world = World::new();
    let faucet = world.open().await;
    {
        let mut claim = Box::pin(faucet.claim(account(1), origin("192.0.2.1")));
        // It has begun, and is dropped at once.
        let waker = std::task::Waker::noop();
        let begun = claim.as_mut().poll(&mut std::task::Context::from_waker(waker));
        assert!(begun.is_pending());
    }
    let mut blocks = world.chain.best_blocks().await.unwrap();
    while world.paid().is_empty() {
        world.chain.extend();
        blocks.next().await.unwrap();
        tokio::task::yield_now().await;
    }
    is_too_soon(faucet.claim(account(1), origin("192.0.2.1")).await);
    assert_eq!(world.paid(), [account(1)]);
}

#[tokio::test]
async fn an_empty_purse_is_said_and_costs_nobody_a_claim() {
    let world = World::new();
    let faucet = world.open().await;
    world.fill(AMOUNT);
    let empty = faucet.claim(account(1), origin("192.0.2.1")).await.unwrap_err();
    assert!(matches!(empty, ClaimError::Empty), "{empty}");
    world.fill(AMOUNT + FEE_MAX);
    faucet.claim(account(1), origin("192.0.2.1")).await.unwrap();
}

#[tokio::test]
async fn what_the_chain_did_not_carry_out_may_be_claimed_again_and_what_it_may_have_not() {
    let world = World::new();
    let faucet = world.open().await;
    let claim = |number| faucet.claim(account(number), origin("192.0.2.1"));
    let any = |_: &Call| true;
    world.chain.refuse_next(any, Refusal::PoolFull, 1);
    assert!(matches!(claim(1).await, Err(ClaimError::Chain(_))));
    world.chain.refuse_next(any, Refusal::Payment, 1);
    assert!(matches!(claim(1).await, Err(ClaimError::Empty)));
    // It is carried out, and nobody is told.
    world.chain.lose_answer_of_next();
    assert!(matches!(
        claim(1).await,
        Err(ClaimError::Unknown(ChainError::Unknown { .. }))
    ));
    assert_eq!(is_too_soon(claim(1).await), 24 * HOUR);
    assert_eq!(world.paid(), [account(1)]);
    drop(faucet);
    let faucet = world.open().await;
    is_too_soon(faucet.claim(account(1), origin("192.0.2.1")).await);
}

#[tokio::test]
async fn real_money_is_not_given_away() {
    let world = World::new();
    world.chain.change(|state| state.is_real_money = true);
    let refused = world.try_open().await.err().unwrap();
    assert!(matches!(refused, StartError::RealMoney), "{refused}");
    assert!(refused.to_string().contains("isTestnet"));
}

#[tokio::test]
async fn two_faucets_share_no_file() {
    let world = World::new();
    let _first = world.open().await;
    let refused = world.try_open().await.err().unwrap();
    assert!(
        refused.to_string().contains("another faucet has it open"),
        "{refused}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn who_has_asked_only_the_owner_of_the_file_reads() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let file = world.home.path().join("faucet.redb");
    let mode = || file.metadata().unwrap().permissions().mode() & 0o777;
    drop(world.open().await);
    assert_eq!(mode(), 0o600);
    // As an older program has left it.
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    drop(world.open().await);
    assert_eq!(mode(), 0o600);
}
