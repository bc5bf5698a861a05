//! What `init` sends, from wherever it is begun.
#![allow(clippy::unwrap_used)]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use surety_chain_client::{ChainError, DispatchFault, FakeChain, Funds};
use surety_faucet::{Faucet, Limits, Purse, Site, serve};
use tokio::net::TcpListener;

use super::*;

const BOND: Balance = 1_000 * SURE;

fn signer(name: &str) -> Signer {
    Signer::from_uri(name).unwrap()
}

fn setup(chain: &FakeChain, source: Source) -> Setup<'_> {
    Setup {
        out: Output::new(true),
        chain,
        role: Role::Provider,
        stash: signer("//Stash"),
        agent: signer("//Agent"),
        source,
    }
}

/// To its end, while blocks become final and transfers arrive.
async fn prepare(chain: &FakeChain, source: Source) {
    prepare_as(setup(chain, source), chain).await;
}

async fn prepare_as(setup: Setup<'_>, chain: &FakeChain) {
    let blocks = async {
        let mut seen = 0;
        loop {
            for (_, call) in chain.calls().drain(seen..) {
                seen += 1;
                if let Call::Transfer { to, amount } = call {
                    chain.change(|state| state.funds.entry(to).or_default().free += amount);
                }
            }
            chain.finalize();
            tokio::task::yield_now().await;
        }
    };
    let all = async {
        tokio::select! {
            biased;
            done = setup.prepare(BOND) => done.unwrap(),
            () = blocks => {}
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.unwrap();
}

fn give(chain: &FakeChain, who: &Signer, free: Balance) {
    let funds = Funds { free, held: 0 };
    chain.change(|state| state.funds.insert(who.account().clone(), funds));
}

/// What was sent, without who and to whom.
fn sent(chain: &FakeChain) -> Vec<String> {
    let calls = chain.calls().into_iter();
    calls.map(|(_, call)| call.name().call.to_owned()).collect()
}

#[tokio::test]
async fn whoever_is_killed_while_calls_are_on_their_way_pays_and_bonds_once() {
    let chain = FakeChain::new();
    let funder = signer("//Funder");
    chain.finalize();
    // The first attempt got as far as the money, and was killed before that was final.
    let stash = signer("//Stash");
    let transfer = Call::Transfer {
        to: stash.account().clone(),
        amount: 1,
    };
    chain
        .submit(&funder, transfer, Until::Included.into())
        .await
        .unwrap();
    give(&chain, &stash, 2 * BOND);
    prepare(&chain, Source::Key(Box::new(funder.clone()))).await;
    let once = ["transfer_keep_alive", "batch_all", "confirm_agent"];
    assert_eq!(sent(&chain), once);
    prepare(&chain, Source::Key(Box::new(funder.clone()))).await;
    assert_eq!(sent(&chain), once, "all is there");
}

#[tokio::test]
async fn a_bond_that_is_on_its_way_is_not_bonded_again() {
    let chain = FakeChain::new();
    let stash = signer("//Stash");
    give(&chain, &stash, 2 * BOND);
    chain.finalize();
    let call = Call::Bond {
        role: Role::Provider,
        amount: BOND,
    };
    chain.submit(&stash, call, Until::Included.into()).await.unwrap();
    prepare(&chain, Source::Somebody).await;
    assert_eq!(sent(&chain), ["bond", "set_agent", "confirm_agent"]);
}

#[tokio::test]
async fn whoever_is_killed_after_the_batch_only_confirms() {
    let chain = FakeChain::new();
    let (stash, agent) = (signer("//Stash"), signer("//Agent"));
    give(&chain, &stash, 2 * BOND);
    chain.finalize();
    let batch = Call::Batch(vec![
        Call::Bond {
            role: Role::Provider,
            amount: BOND,
        },
        Call::SetAgent {
            agent: agent.account().clone(),
        },
    ]);
    chain
        .submit(&stash, batch.clone(), Until::Included.into())
        .await
        .unwrap();
    prepare(&chain, Source::Somebody).await;
    assert_eq!(sent(&chain), ["batch_all", "confirm_agent"]);
    assert_eq!(chain.calls()[0], (stash.account().clone(), batch));
}

#[tokio::test]
async fn a_failure_within_the_batch_is_told_by_its_own_name_and_bonds_nothing() {
    let chain = FakeChain::new();
    give(&chain, &signer("//Stash"), 2 * BOND);
    chain.finalize();
    let taken = ChainError::Dispatch(DispatchFault {
        pallet: Some("Staking".into()),
        name: "AgentTaken".into(),
        docs: "The agent acts for a stash already.".into(),
    });
    chain.refuse_next(|call| matches!(call, Call::Batch(_)), taken, 1);
    let refused = setup(&chain, Source::Somebody).prepare(BOND).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Staking.AgentTaken: The agent acts for a stash already."
    );
    assert!(sent(&chain).is_empty());
}

#[tokio::test]
async fn a_verifier_gets_there_by_the_same_steps_and_bonds_as_one() {
    let chain = FakeChain::new();
    let as_verifier = || Setup {
        role: Role::Verifier,
        ..setup(&chain, Source::Key(Box::new(signer("//Funder"))))
    };
    prepare_as(as_verifier(), &chain).await;
    let once = ["transfer_keep_alive", "batch_all", "confirm_agent"];
    assert_eq!(sent(&chain), once);
    let bond = Call::Bond {
        role: Role::Verifier,
        amount: BOND,
    };
    let (by, batch) = chain.calls().remove(1);
    assert_eq!(&by, signer("//Stash").account());
    assert!(
        matches!(&batch, Call::Batch(calls) if calls[0] == bond),
        "{batch:?}"
    );
    let stake = as_verifier().stake().await.unwrap().unwrap();
    assert_eq!((stake.role, stake.bonded), (Role::Verifier, BOND));
    prepare_as(as_verifier(), &chain).await;
    assert_eq!(sent(&chain), once, "all is there");
    // The same stash is no provider's.
    let refused = setup(&chain, Source::Somebody).prepare(BOND).await.unwrap_err();
    assert!(refused.to_string().contains("--stash-key"), "{refused}");
    assert_eq!(sent(&chain), once);
}

/// A faucet with as much for each claim, at its URL.
async fn faucet(chain: &FakeChain, amount: Balance) -> (String, tempfile::TempDir) {
    let purse = Purse {
        signer: signer("//Purse"),
        amount,
    };
    give(chain, &purse.signer, 2 * amount + SURE);
    let limits = Limits {
        per_client: 1,
        per_hour: 10,
    };
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("faucet.redb");
    let now = Arc::new(|| 1_000_000);
    let faucet = Faucet::open(Arc::new(chain.clone()), purse, limits, (&file, now))
        .await
        .unwrap();
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await
        .unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let site = Site {
        faucet,
        proxies: Arc::default(),
    };
    tokio::spawn(async move { serve(&listener, site, std::future::pending()).await });
    (url, home)
}

#[tokio::test]
async fn a_stash_without_money_is_given_some_by_the_faucet_and_goes_on() {
    let chain = FakeChain::new();
    let (url, _home) = faucet(&chain, BOND + FEES).await;
    prepare(&chain, Source::Faucet(url)).await;
    assert_eq!(
        sent(&chain),
        ["transfer_keep_alive", "batch_all", "confirm_agent"]
    );
    let (from, call) = chain.calls().remove(0);
    let to_stash = Call::Transfer {
        to: signer("//Stash").account().clone(),
        amount: BOND + FEES,
    };
    assert_eq!((&from, call), (signer("//Purse").account(), to_stash));
}

#[tokio::test]
async fn whoever_missed_the_faucets_answer_goes_on_when_its_money_comes() {
    let chain = FakeChain::new();
    let (url, _home) = faucet(&chain, BOND + FEES).await;
    let stash = signer("//Stash");
    // Killed after that: the answer got lost, and the money is on its way.
    surety_faucet::ask(&url, stash.account()).await.unwrap();
    let refused = surety_faucet::ask(&url, stash.account()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "the faucet at {url} gives nothing: this account has claimed within the last day; ask again in 24 h 0 min"
        )
    );
    prepare(&chain, Source::Faucet(url)).await;
    assert_eq!(
        sent(&chain),
        ["transfer_keep_alive", "batch_all", "confirm_agent"]
    );
}
