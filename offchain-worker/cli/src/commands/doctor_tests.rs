#![allow(clippy::unwrap_used)]
use surety_chain_client::{Call, FakeChain, Funds, Signer, Until};
use surety_types::multiaddr::Endpoint;

use super::*;

fn grades(checks: &Checks) -> Vec<(&'static str, Grade)> {
    checks.0.iter().map(|check| (check.name, check.grade)).collect()
}

#[tokio::test]
async fn a_fresh_account_is_told_what_it_lacks() {
    let chain = FakeChain::new();
    let agent = Signer::from_uri("//Bob").unwrap();
    let mut checks = Checks::default();
    check_account(&chain, agent.account(), DoctorRole::Provider, &mut checks)
        .await
        .unwrap();
    assert_eq!(grades(&checks), [("agent", Grade::Fail)]);
    assert!(checks.0[0].finding.contains("surety account agent set"));
    let mut checks = Checks::default();
    check_account(&chain, agent.account(), DoctorRole::Client, &mut checks)
        .await
        .unwrap();
    assert_eq!(grades(&checks), [("balance", Grade::Fail)]);
}

#[tokio::test]
async fn an_agent_of_a_bonded_stash_is_fine_as_long_as_one_of_them_can_pay() {
    let chain = FakeChain::new();
    let (stash, agent) = (
        Signer::from_uri("//Alice").unwrap(),
        Signer::from_uri("//Bob").unwrap(),
    );
    let bond = Call::Bond {
        role: Role::Provider,
        amount: 100 * SURE,
    };
    let set = Call::SetAgent {
        agent: agent.account().clone(),
    };
    let confirm = Call::ConfirmAgent {
        stash: stash.account().clone(),
    };
    chain.submit(&stash, bond, Until::Included.into()).await.unwrap();
    chain.submit(&stash, set, Until::Included.into()).await.unwrap();
    chain
        .submit(&agent, confirm, Until::Included.into())
        .await
        .unwrap();
    for (payer, free, balance) in [
        (None, 0, Grade::Fail),
        (Some(&stash), SURE, Grade::Warn),
        (Some(&stash), 6 * SURE, Grade::Ok),
        (Some(&agent), 6 * SURE, Grade::Ok),
    ] {
        chain.change(|state| {
            state.funds.clear();
            let funds = Funds { free, held: 0 };
            state
                .funds
                .extend(payer.map(|payer| (payer.account().clone(), funds)));
        });
        chain.finalize();
        let mut checks = Checks::default();
        check_account(&chain, agent.account(), DoctorRole::Provider, &mut checks)
            .await
            .unwrap();
        assert_eq!(
            grades(&checks),
            [
                ("agent", Grade::Ok),
                ("balance", balance),
                ("stake", Grade::Ok),
                ("registration", Grade::Warn)
            ]
        );
    }
}

#[test]
fn an_address_that_nobody_elsewhere_can_reach_is_warned_of() {
    let graded = |addresses: &[&str]| {
        let peer = "12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp";
        let endpoint = |text: &&str| Endpoint::try_from(format!("{text}/p2p/{peer}").into_bytes()).unwrap();
        let endpoints: Vec<Endpoint> = addresses.iter().map(endpoint).collect();
        let mut checks = Checks::default();
        check_reach(&endpoints, &mut checks);
        checks.0.first().map(|check| check.grade)
    };
    let home = "/ip4/192.168.1.7/udp/4001/quic-v1";
    assert_eq!(graded(&[home, "/ip6/fe80::1/tcp/4001"]), Some(Grade::Warn));
    assert_eq!(graded(&[home, "/ip4/203.0.113.9/tcp/4001"]), Some(Grade::Ok));
    assert_eq!(graded(&["/dns/worker.example/tcp/4001"]), None);
}

#[tokio::test]
async fn a_verifiers_stake_is_no_providers() {
    let chain = FakeChain::new();
    let stash = Signer::from_uri("//Alice").unwrap();
    let bond = Call::Bond {
        role: Role::Verifier,
        amount: 100 * SURE,
    };
    chain.submit(&stash, bond, Until::Included.into()).await.unwrap();
    chain.finalize();
    for (wanted, grade) in [(Role::Verifier, Grade::Ok), (Role::Provider, Grade::Fail)] {
        let mut checks = Checks::default();
        check_stake(&chain, stash.account(), wanted, &mut checks)
            .await
            .unwrap();
        assert_eq!(grades(&checks), [("stake", grade)]);
        let says_what_to_do = checks.0[0].finding.contains("surety provider init --stash-key");
        assert_eq!(says_what_to_do, grade == Grade::Fail);
    }
}

#[test]
fn a_port_in_use_is_noticed() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut checks = Checks::default();
    check_port(&format!("/ip4/127.0.0.1/tcp/{port}"), &mut checks);
    check_port("/ip4/127.0.0.1/udp/0/quic-v1", &mut checks);
    check_port("/ip4/203.0.113.1/tcp/1", &mut checks);
    let grades: Vec<Grade> = checks.0.iter().map(|check| check.grade).collect();
    assert_eq!(grades, [Grade::Warn, Grade::Ok, Grade::Fail]);
}

#[test]
fn a_provider_is_told_whether_and_on_what_it_is_measured() {
    use crate::config::Participation;

    let told = |wanted, device| {
        let mut checks = Checks::default();
        devices::check_benchmark(wanted, device, &mut checks);
        assert_eq!(grades(&checks), [("benchmark", Grade::Ok)]);
        checks.0.remove(0).finding
    };
    assert!(told(Participation::Off, Some("a device")).starts_with("off"));
    assert!(told(Participation::Auto, None).starts_with("off"));
    assert!(told(Participation::Auto, Some("a device")).starts_with("on a device"));
    assert!(told(Participation::On, None).starts_with("on the processor"));
}
