//! `surety validator leave`: elected no more, out of the set, and the operator's own stake on its way out.

use serde::Serialize;
use surety_chain_client::{
    AccountId, BlockNumber, Call, Chain, Signer, StakeCall, StakeChain, When, address,
};

use crate::{
    amount::{Amount, Plancks},
    commands::{Context, account},
    error::Result,
    output::Output,
};

/// What leaving came to. Amounts are in plancks, as text.
#[derive(Debug, PartialEq, Serialize)]
struct Left {
    operator: String,
    /// The operator's own, on its way out.
    leaving: Plancks,
    /// When the last of it can be withdrawn, by the chain's clock.
    available_at_block: Option<BlockNumber>,
}

pub(super) async fn run(context: &Context) -> Result<()> {
    let key = context.key()?;
    let chain = context.patient_rpc().await?;
    let left = leave(context.out, &*chain, &key.signer).await?;
    context.out.result(&left, || left.text())
}

/// Each step looks at what is there first: whoever is interrupted calls it again.
async fn leave<C: Chain + StakeChain>(out: Output, chain: &C, signer: &Signer) -> Result<Left> {
    let operator = signer.account();
    let mut blocks = chain.finalized_blocks().await?;
    let mut block = blocks.next().await?;
    let candidate = chain.candidate(When::At(block.hash), operator).await?;
    // Before that block it may be elected once more.
    let chilled = if candidate.is_some_and(|candidate| candidate.wants_to) {
        out.step("it is to be elected no more");
        let chill = Call::Stake(StakeCall::Chill);
        account::send(out, chain, signer, chill).await?.block
    } else {
        block.number
    };
    let mut said = Said::default();
    let at = loop {
        while block.number < chilled {
            block = blocks.next().await?;
        }
        let at = When::At(block.hash);
        let sets = chain.validator_sets(at).await?;
        match sets.works_until(operator) {
            Some(until) => said.say(out, sets.session, until),
            None => break at,
        }
        block = blocks.next().await?;
    };
    out.step("it is in no session any more: the node can be stopped");
    take_out(out, chain, signer, at).await?;
    left(chain, operator).await
}

/// Of how long the node has to run.
#[derive(Default)]
struct Said {
    first: Option<u32>,
    last: Option<u32>,
}

impl Said {
    fn say(&mut self, out: Output, session: u32, until: u32) {
        if self.last.replace(until) == Some(until) {
            return;
        }
        let first = *self.first.get_or_insert(until);
        out.step(&format!(
            "session {session} runs, and it works to the end of session {until}, each of 5 min: leave the node running"
        ));
        if until > first.saturating_add(1) {
            out.step("the chain keeps its validators while there are too few candidates: it goes on when another one joins");
        }
    }
}

/// Has the operator's stake and its deposit for keys back, as far as they are not on their way.
async fn take_out<C: Chain + StakeChain>(out: Output, chain: &C, signer: &Signer, at: When) -> Result<()> {
    let operator = signer.account();
    let mut calls = Vec::new();
    let own = chain.pool(at, operator).await?.map_or(0, |pool| pool.own());
    if own > 0 {
        calls.push(Call::Stake(StakeCall::Undelegate {
            operator: operator.clone(),
            amount: own,
        }));
    }
    if chain.session_keys(at, operator).await?.is_some() {
        calls.push(Call::Stake(StakeCall::PurgeKeys));
    }
    let call = match calls.len() {
        0 => return Ok(()),
        1 => calls.remove(0),
        _ => Call::Batch(calls),
    };
    out.step(
        "taking out what is left of its stake and its keys; with its stake all that its pool has earned is shared, for the running \
         day too, and its part is paid to its account",
    );
    account::send(out, chain, signer, call).await.map(drop)
}

async fn left<C: Chain + StakeChain>(chain: &C, operator: &AccountId) -> Result<Left> {
    let stake = chain.delegated(When::Finalized, operator).await?;
    let own = stake.leaving.iter().filter(|chunk| chunk.operator == *operator);
    Ok(Left {
        operator: address(operator),
        leaving: Plancks(
            own.clone()
                .fold(0, |sum: u128, chunk| sum.saturating_add(chunk.held)),
        ),
        available_at_block: own.map(|chunk| chunk.available_at).max(),
    })
}

impl Left {
    fn text(&self) -> String {
        let stake = match self.available_at_block {
            Some(block) => format!(
                "{} of its own are on their way out; when the chain's clock shows {block}, take them with: surety stake withdraw",
                Amount(self.leaving.0)
            ),
            None => "it has no stake of its own any more".into(),
        };
        format!(
            "{} validates no more; its part of what its pool has earned is on its account\n{stake}\nwhat its commission comes to \
             later, while others back it: surety stake claim",
            self.operator
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use surety_chain_client::{FakeChain, Until, sample};

    use super::*;
    use crate::SURE;

    async fn validator() -> (FakeChain, Signer) {
        let (chain, signer) = (FakeChain::new(), Signer::from_uri("//Operator").unwrap());
        let calls = [
            StakeCall::SetKeys {
                keys: sample::stake::keys(),
                proof: Vec::new(),
            },
            StakeCall::OpenPool {
                bond: 5 * SURE,
                commission: 0,
            },
            StakeCall::Validate,
        ];
        let batch = Call::Batch(calls.into_iter().map(Call::Stake).collect());
        chain
            .submit(&signer, batch, Until::Included.into())
            .await
            .unwrap();
        set(&chain, 1, &[&signer], &[&signer]);
        chain.finalize();
        (chain, signer)
    }

    fn set(chain: &FakeChain, session: u32, present: &[&Signer], next: &[&Signer]) {
        let accounts = |all: &[&Signer]| all.iter().map(|one| one.account().clone()).collect();
        chain.change(|state| {
            state.delegation.sets.session = session;
            state.delegation.sets.present = accounts(present);
            state.delegation.sets.next = accounts(next);
        });
    }

    fn names(chain: &FakeChain) -> Vec<&'static str> {
        let calls = chain.calls().into_iter().skip(1);
        calls.map(|(_, call)| call.name().call).collect()
    }

    async fn blocks(chain: &FakeChain) {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            chain.finalize();
        }
    }

    #[tokio::test]
    async fn stake_is_taken_out_only_when_there_is_nothing_left_to_sign() {
        let (chain, signer) = validator().await;
        let leaving = {
            let (chain, signer) = (chain.clone(), signer.clone());
            tokio::spawn(async move { leave(Output::new(true), &chain, &signer).await.unwrap() })
        };
        blocks(&chain).await;
        assert_eq!(names(&chain), ["chill"]);
        set(&chain, 2, &[&signer], &[]);
        blocks(&chain).await;
        assert_eq!(names(&chain), ["chill"], "it works in this session still");
        set(&chain, 3, &[], &[]);
        while !leaving.is_finished() {
            blocks(&chain).await;
        }
        assert_eq!(names(&chain), ["chill", "batch_all"]);
        let left = leaving.await.unwrap();
        assert_eq!(left.leaving, Plancks(5 * SURE));
        assert!(
            left.text().contains("what its pool has earned is on its account"),
            "{}",
            left.text()
        );
        let [chunk] = chain
            .delegated(When::Best, signer.account())
            .await
            .unwrap()
            .leaving
            .try_into()
            .unwrap();
        assert_eq!(left.available_at_block, Some(chunk.available_at));
        assert_eq!(chain.session_keys(When::Best, signer.account()).await, Ok(None));

        // Once more: there is nothing to do.
        let again = {
            let (chain, signer) = (chain.clone(), signer.clone());
            tokio::spawn(async move { leave(Output::new(true), &chain, &signer).await.unwrap() })
        };
        while !again.is_finished() {
            blocks(&chain).await;
        }
        assert_eq!(again.await.unwrap(), left);
        assert_eq!(names(&chain).len(), 2);
    }
}
