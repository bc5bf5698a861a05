//! `surety validator join`: an operator becomes a candidate.

use serde::Serialize;
use serde_json::{Value, json};
use surety_chain_client::{AccountId, Balance, Call, Chain, StakeCall, StakeChain, When, address};
use surety_chain_rpc::NodeFault;

use super::keys::{self, Made};
use crate::{
    args::JoinArgs,
    commands::{
        Context,
        account::{self, Submitted},
        ask::Ask,
    },
    error::{CliError, Result},
};

/// Of a new pool, in millionths.
const COMMISSION: u32 = 50_000;

/// What joining came to.
#[derive(Serialize)]
struct Joined {
    #[serde(flatten)]
    submitted: Submitted,
    operator: String,
    /// First session that it may be elected for.
    works_from: u32,
}

pub(super) async fn run(context: &Context, args: &JoinArgs) -> Result<()> {
    let key = context.key()?;
    let operator = key.signer.account().clone();
    let made = kept(context, &operator)?;
    let (url, node) = keys::node(context).await?;
    match keys::has(&node, &made.keys).await {
        Ok(true) => {}
        Ok(false) => {
            return Err(CliError::Usage(format!(
                "the node at {url} does not have the session keys in {}: have it make others with surety validator init",
                keys::file(&context.config.home).display()
            )));
        }
        Err(source) => return Err(CliError::Node { url, source }),
    }
    if let Some(missing) = missing(&node).await.map_err(|source| CliError::Node {
        url: url.clone(),
        source,
    })? {
        return Err(CliError::Usage(format!(
            "the node at {url} cannot make blocks yet: {missing}. Who is elected and makes none is suspended"
        )));
    }
    let chain = context.rpc().await?;
    let at = When::At(chain.block(When::Finalized).await?.hash);
    let mut calls = calls(&*chain, at, &made, args).await?;
    let call = match calls.len() {
        0 => {
            return Err(CliError::Usage(format!(
                "{} is a candidate already, with these keys, and with as much stake of its own: surety validator status says \
                 whether it is elected",
                address(&operator)
            )));
        }
        1 => calls.remove(0),
        _ => Call::Batch(calls),
    };
    let submitted = account::send(context.out, &*chain, &key.signer, call).await?;
    let session = chain.validator_sets(submitted.at).await?.session;
    let joined = Joined {
        operator: address(&operator),
        works_from: session.saturating_add(2),
        submitted,
    };
    context.out.result(&joined, || {
        format!(
            "{}\nif it is among those with most stake behind them, it makes blocks from session {} on, in 5 to 10 min: surety \
             validator status",
            joined.submitted.text(),
            joined.works_from
        )
    })
}

/// What a node lacks to make blocks as soon as its operator is elected.
async fn missing(node: &dyn Ask) -> std::result::Result<Option<&'static str>, NodeFault> {
    let roles = node.ask("system_nodeRoles", vec![]).await?;
    let is_authority = |roles: &Vec<Value>| roles.contains(&json!("Authority"));
    if !roles.as_array().is_some_and(is_authority) {
        return Ok(Some(
            "it only follows the chain: start it again with --validator, and then call surety validator join",
        ));
    }
    let health = node.ask("system_health", vec![]).await?;
    let field = |name: &str| health.get(name).cloned().unwrap_or_default();
    if field("isSyncing") == json!(true) {
        return Ok(Some(
            "it is still catching up with the chain: wait until surety doctor --for validator says that it is synced, and then \
             call surety validator join",
        ));
    }
    if field("shouldHavePeers") == json!(true) && field("peers").as_u64().unwrap_or(0) == 0 {
        return Ok(Some(
            "it has no peers, so that nobody would get its blocks: surety doctor --for validator says what to do",
        ));
    }
    Ok(None)
}

/// The keys that the node has made for the operator.
fn kept(context: &Context, operator: &AccountId) -> Result<Made> {
    let path = keys::file(&context.config.home);
    match keys::read(&context.config.home)? {
        Some(made) if made.operator == *operator => Ok(made),
        Some(made) => Err(CliError::Usage(format!(
            "the session keys in {} were made for {}, and the key in the key file is {}'s: run surety validator init",
            path.display(),
            address(&made.operator),
            address(operator)
        ))),
        None => Err(CliError::Usage(format!(
            "there are no session keys in {}: run surety validator init",
            path.display()
        ))),
    }
}

/// What is to be done still.
async fn calls(chain: &dyn StakeChain, at: When, made: &Made, args: &JoinArgs) -> Result<Vec<Call>> {
    let operator = &made.operator;
    let mut calls = Vec::new();
    if chain.session_keys(at, operator).await? != Some(made.keys) {
        calls.push(StakeCall::SetKeys {
            keys: made.keys,
            proof: made.proof.clone(),
        });
    }
    let bond: Balance = args.bond.0;
    match chain.pool(at, operator).await? {
        None => calls.push(StakeCall::OpenPool {
            bond,
            commission: args.commission.unwrap_or(COMMISSION),
        }),
        Some(pool) => {
            let amount = bond.saturating_sub(pool.own());
            if amount > 0 {
                let operator = operator.clone();
                calls.push(StakeCall::Delegate { operator, amount });
            }
            let commission = args.commission.filter(|part| *part != pool.commission);
            calls.extend(commission.map(|commission| StakeCall::SetCommission { commission }));
        }
    }
    let candidate = chain.candidate(at, operator).await?;
    if !candidate.is_some_and(|candidate| candidate.wants_to) {
        calls.push(StakeCall::Validate);
    }
    Ok(calls.into_iter().map(Call::Stake).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use async_trait::async_trait;
    use surety_chain_client::{FakeChain, Signer, Until, sample};

    use super::*;
    use crate::{SURE, amount::Amount};

    /// A node that answers as one with these roles and this health.
    struct Node(Value, Value);

    #[async_trait]
    impl Ask for Node {
        async fn ask(&self, method: &str, _: Vec<Value>) -> std::result::Result<Value, NodeFault> {
            match method {
                "system_nodeRoles" => Ok(self.0.clone()),
                "system_health" => Ok(self.1.clone()),
                _ => Err(NodeFault::Refused(format!("{method} is unknown"))),
            }
        }
    }

    #[tokio::test]
    async fn nobody_joins_with_a_node_that_cannot_make_blocks() {
        let health = |peers: u64, syncing: bool, should: bool| json!({"peers": peers, "isSyncing": syncing, "shouldHavePeers": should});
        let authority = || json!(["Authority"]);
        for (roles, health, said) in [
            (json!(["Full"]), health(3, false, true), Some("--validator")),
            (authority(), health(3, true, true), Some("catching up")),
            (authority(), health(0, false, true), Some("no peers")),
            (authority(), health(3, false, true), None),
            // A development chain has one node.
            (authority(), health(0, false, false), None),
        ] {
            let missing = missing(&Node(roles, health)).await.unwrap();
            assert_eq!(missing.is_some(), said.is_some(), "{missing:?}");
            let words = missing.unwrap_or_default();
            assert!(words.contains(said.unwrap_or_default()), "{words}");
        }
    }

    fn args(bond: u128, commission: Option<u32>) -> JoinArgs {
        JoinArgs {
            bond: Amount(bond * SURE),
            commission,
        }
    }

    #[tokio::test]
    async fn a_newcomer_joins_in_one_extrinsic_and_whoever_comes_again_does_what_is_missing() {
        let (chain, signer) = (FakeChain::new(), Signer::from_uri("//Operator").unwrap());
        let operator = signer.account().clone();
        let made = Made {
            operator: operator.clone(),
            keys: sample::stake::keys(),
            proof: vec![1],
        };
        let join = |args: JoinArgs| {
            let (chain, made, signer) = (&chain, &made, &signer);
            async move {
                let calls = calls(chain, When::Best, made, &args).await.unwrap();
                let names: Vec<_> = calls.iter().map(|call| call.name().call).collect();
                if !calls.is_empty() {
                    let batch = Call::Batch(calls);
                    chain.submit(signer, batch, Until::Included.into()).await.unwrap();
                }
                names
            }
        };
        assert_eq!(join(args(10_000, None)).await, ["set_keys", "open", "validate"]);
        let pool = chain.pool(When::Best, &operator).await.unwrap().unwrap();
        assert_eq!((pool.own(), pool.commission), (10_000 * SURE, COMMISSION));
        assert!(join(args(10_000, None)).await.is_empty());
        assert_eq!(
            join(args(12_000, Some(10_000))).await,
            ["delegate", "set_commission"]
        );
        let pool = chain.pool(When::Best, &operator).await.unwrap().unwrap();
        assert_eq!((pool.own(), pool.commission), (12_000 * SURE, 10_000));
        // Chilled for absence, say.
        let chill = Call::Stake(StakeCall::Chill);
        chain
            .submit(&signer, chill, Until::Included.into())
            .await
            .unwrap();
        assert_eq!(join(args(10_000, None)).await, ["validate"]);
    }
}
