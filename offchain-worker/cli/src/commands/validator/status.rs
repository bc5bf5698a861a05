//! `surety validator status`: whether an operator validates, what it has made, and what keeps it from work.

use serde::Serialize;
use surety_chain_client::{
    AccountId, BlockNumber, CandidateRecord, Chain, OperatorPool, SessionKeys, StakeChain, When, address,
};
use surety_chain_rpc::NodeRpc;
use surety_client::words::duration;
use surety_types::BLOCK_SECONDS;

use super::{keys, percent};
use crate::{
    amount::{Amount, Plancks},
    args::OperatorArg,
    commands::{Context, stake::listed},
    error::Result,
    output::table,
};

const MILLIONTHS: u64 = 1_000_000;

/// Blocks of which a validator made none, in sessions in a row, before it is taken off.
const ABSENT_BLOCKS: u64 = 30;

/// What the chain knows of an operator. Amounts are in plancks, as text.
#[derive(Debug, PartialEq, Serialize)]
struct Status {
    operator: String,
    /// The running session.
    session: u32,
    works_now: bool,
    works_next: bool,
    is_candidate: bool,
    /// All that is behind it, and its own of that.
    backing: Plancks,
    own: Plancks,
    /// In millionths; nothing where it has no pool.
    commission_millionths: Option<u32>,
    delegators: u32,
    /// By what is behind them, from 1, of all that can be elected.
    rank: Option<usize>,
    candidates: usize,
    /// Blocks of the running session.
    made_now: u32,
    /// Blocks of the day's sessions that are over, and how many were expected.
    made_today: u32,
    expected_today_millionths: u64,
    session_keys: Option<String>,
    /// Whether this machine's node has them; nothing where that was not asked.
    node_has_keys: Option<bool>,
    unclaimed: Plancks,
    slashes: Vec<Pending>,
    /// What keeps it from work.
    problems: Vec<String>,
}

/// A slash that waits.
#[derive(Debug, PartialEq, Serialize)]
struct Pending {
    slash: u32,
    /// Part of what is behind it that it loses, in percent.
    part: String,
    /// It can be vetoed until the chain's clock shows this.
    until_block: BlockNumber,
}

pub(super) async fn run(context: &Context, args: &OperatorArg) -> Result<()> {
    let operator = context.account(args.operator.as_deref())?;
    let is_own = context.key().is_ok_and(|key| *key.signer.account() == operator);
    let chain = context.rpc().await?;
    let set = chain.session_keys(When::Finalized, &operator).await?;
    let has = match set {
        Some(keys) if is_own => node_has(context, &keys).await,
        _ => None,
    };
    let status = Status::new(&*chain, &operator, has).await?;
    context.out.result(&status, || status.text())
}

/// Whether this machine's node has keys; nothing where there is none, or it does not say.
async fn node_has(context: &Context, set: &SessionKeys) -> Option<bool> {
    let node = NodeRpc::connect(&keys::own_url(context).ok()?).await.ok()?;
    keys::has(&node, set).await.ok()
}

impl Status {
    async fn new<C: Chain + StakeChain>(
        chain: &C,
        operator: &AccountId,
        node_has_keys: Option<bool>,
    ) -> Result<Self> {
        let at = When::At(chain.block(When::Finalized).await?.hash);
        let sets = chain.validator_sets(at).await?;
        let pool = chain.pool(at, operator).await?;
        let candidate = chain.candidate(at, operator).await?.unwrap_or_default();
        let service = chain.service(at, operator).await?;
        let set = chain.session_keys(at, operator).await?;
        let stake = chain.delegated(at, operator).await?;
        let own = stake.delegations.iter().find(|one| one.operator == *operator);
        let due = |pool: &OperatorPool| {
            let shared = own.map_or(0, |own| pool.due(own));
            pool.earned.saturating_add(shared)
        };
        let mut ranked = listed(chain, at).await?;
        ranked.retain(|one| one.is_candidate);
        let mut status = Self {
            operator: address(operator),
            session: sets.session,
            works_now: sets.present.contains(operator),
            works_next: sets.next.contains(operator),
            is_candidate: candidate.wants_to,
            backing: Plancks(pool.map_or(0, |pool| pool.fund.amount)),
            own: Plancks(pool.map_or(0, |pool| pool.own())),
            commission_millionths: pool.map(|pool| pool.commission),
            delegators: chain.delegators(at, operator).await?,
            rank: ranked
                .iter()
                .position(|one| one.account == *operator)
                .map(|place| place.saturating_add(1)),
            candidates: ranked.len(),
            made_now: chain.authored(at, operator).await?,
            made_today: service.made,
            expected_today_millionths: service.expected_millionths,
            session_keys: set.as_ref().map(keys::text),
            node_has_keys,
            unclaimed: Plancks(pool.as_ref().map_or(0, due)),
            slashes: slashes(chain, at, operator).await?,
            problems: Vec::new(),
        };
        status.problems = barred(chain, at, operator).await?;
        let lacks = status.lacks(candidate);
        status.problems.extend(lacks);
        Ok(status)
    }

    /// What its operator has to do, beside waiting for the end of what keeps it from work already.
    fn lacks(&self, candidate: CandidateRecord) -> Vec<String> {
        let mut problems = Vec::new();
        if self.commission_millionths.is_none() {
            problems.push("it has no pool, and cannot be elected: surety validator join opens one".into());
        } else if !self.is_candidate && self.problems.is_empty() {
            problems.push("it cannot be elected: surety validator join makes it a candidate again".into());
        }
        if self.session_keys.is_none() {
            let what = "it has set no session keys: surety validator init makes them, and join sets them";
            problems.push(what.into());
        }
        if self.node_has_keys == Some(false) {
            problems.push(
                "this machine's node does not have the session keys that are set, and signs nothing for it: start the node \
                 that has them, or have this one make others with surety validator rotate"
                    .into(),
            );
        }
        let missed = candidate.missed_millionths / MILLIONTHS;
        if missed > 0 && self.works_now && self.made_now == 0 {
            problems.push(format!(
                "{missed} blocks were expected of it since it made one; at {ABSENT_BLOCKS} it is taken off the set: surety doctor \
                 --for validator says what its node lacks"
            ));
        }
        problems
    }

    fn state(&self) -> String {
        let (now, next) = (self.session, self.session.saturating_add(1));
        match (self.works_now, self.works_next, self.is_candidate) {
            (true, true, _) => format!("makes blocks in session {now} and the next"),
            (true, false, _) => format!("makes blocks to the end of session {now}"),
            (false, true, _) => format!("makes blocks from session {next} on"),
            (false, false, true) => format!(
                "a candidate; not elected before session {}",
                next.saturating_add(1)
            ),
            (false, false, false) => "no validator, and no candidate".into(),
        }
    }

    fn text(&self) -> String {
        let mut rows = table(["operator", &self.operator]);
        rows.add_row(["is", &self.state()]);
        rows.add_row(["behind it", &Amount(self.backing.0).to_string()]);
        rows.add_row(["of it its own", &Amount(self.own.0).to_string()]);
        if let Some(commission) = self.commission_millionths {
            rows.add_row(["commission", &percent(commission)]);
        }
        rows.add_row(["delegators", &self.delegators.to_string()]);
        if let Some(rank) = self.rank {
            rows.add_row(["rank", &format!("{rank} of {} candidates", self.candidates)]);
        }
        let expected = self.expected_today_millionths / MILLIONTHS;
        let made = format!(
            "{} in this session; today, before it, {} of {expected} that were expected",
            self.made_now, self.made_today
        );
        rows.add_row(["blocks", &made]);
        rows.add_row(["session keys", self.session_keys.as_deref().unwrap_or("none")]);
        let has = match self.node_has_keys {
            Some(true) => "yes",
            Some(false) => "no",
            None => "not asked: only the operator's own node says it, on its own machine",
        };
        rows.add_row(["node has them", has]);
        rows.add_row(["not claimed", &Amount(self.unclaimed.0).to_string()]);
        for slash in &self.slashes {
            let text = format!(
                "{} takes {} of what was behind it, unless it is vetoed by {} of the chain's clock",
                slash.slash, slash.part, slash.until_block
            );
            rows.add_row(["slash", &text]);
        }
        for problem in &self.problems {
            rows.add_row(["problem", problem]);
        }
        rows.to_string()
    }
}

async fn slashes<C: Chain>(chain: &C, at: When, operator: &AccountId) -> Result<Vec<Pending>> {
    let all = chain.slashes(at).await?.into_iter();
    let own = all.filter(|(_, slash)| slash.offender == *operator);
    let pending = own.map(|(slash, record)| Pending {
        slash,
        part: percent(u32::try_from(record.part.deconstruct() / MILLIONTHS.pow(2)).unwrap_or(u32::MAX)),
        until_block: record.until,
    });
    Ok(pending.collect())
}

/// What the chain holds against it.
async fn barred<C: Chain>(chain: &C, at: When, operator: &AccountId) -> Result<Vec<String>> {
    let clock = chain.clock(at).await?;
    let trust = chain.trust(at, operator).await?;
    let all = [
        (trust.jailed_until, "it signed two of a kind"),
        (trust.suspended_until, "it made no blocks for too long"),
    ];
    let texts = all.into_iter().filter_map(|(until, why)| {
        let seconds = until?.checked_sub(clock)?.saturating_mul(BLOCK_SECONDS);
        Some(format!(
            "it cannot be elected for {}, as {why}: surety validator join then",
            duration(seconds)
        ))
    });
    Ok(texts.collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use codec::{Decode, Encode};
    use surety_chain_client::{Call, FakeChain, ServiceRecord, Signer, StakeCall, TrustInfo, Until, sample};
    use surety_types::trust::FaultKind;

    use super::*;
    use crate::SURE;

    async fn candidate(chain: &FakeChain, uri: &str, bond: u128) -> AccountId {
        let signer = Signer::from_uri(uri).unwrap();
        let calls = [
            StakeCall::SetKeys {
                keys: sample::stake::keys(),
                proof: Vec::new(),
            },
            StakeCall::OpenPool {
                bond: bond * SURE,
                commission: 25_000,
            },
            StakeCall::Validate,
        ];
        let batch = Call::Batch(calls.into_iter().map(Call::Stake).collect());
        chain
            .submit(&signer, batch, Until::Included.into())
            .await
            .unwrap();
        signer.account().clone()
    }

    #[tokio::test]
    async fn a_validator_sees_its_rank_its_blocks_and_what_it_has_earned() {
        let chain = FakeChain::new();
        let operator = candidate(&chain, "//Operator", 10_000).await;
        let larger = candidate(&chain, "//Larger", 20_000).await;
        chain.change(|state| {
            let of = &mut state.delegation;
            of.sets.session = 4;
            of.sets.present = vec![operator.clone()];
            of.sets.next = vec![operator.clone(), larger];
            of.authored.insert(operator.clone(), 3);
            let service = ServiceRecord {
                made: 140,
                expected_millionths: 150_400_000,
            };
            of.services.insert(operator.clone(), service);
            of.delegators.insert(operator.clone(), 2);
            let pool = of.pools.get_mut(&operator).unwrap();
            pool.earned = SURE;
            // Half a planck for each share.
            pool.per_share = 500_000_000_000_000_000;
        });
        chain.finalize();
        let status = Status::new(&chain, &operator, Some(true)).await.unwrap();
        assert_eq!((status.rank, status.candidates), (Some(2), 2));
        assert_eq!(status.unclaimed, Plancks(5_001 * SURE));
        assert!(status.problems.is_empty(), "{:?}", status.problems);
        insta::assert_snapshot!(status.text());
    }

    #[tokio::test]
    async fn who_does_not_validate_is_told_why_and_what_to_do() {
        let chain = FakeChain::new();
        let operator = candidate(&chain, "//Operator", 10_000).await;
        let signer = Signer::from_uri("//Operator").unwrap();
        let chill = Call::Stake(StakeCall::Chill);
        chain
            .submit(&signer, chill, Until::Included.into())
            .await
            .unwrap();
        chain.change(|state| {
            let trust = TrustInfo {
                jailed_until: Some(300),
                ..TrustInfo::default()
            };
            state.records.insert(operator.clone(), trust);
            let mut slash = sample::trust_records::slash();
            slash.kind = FaultKind::Equivocation;
            // Parts of a quintillion.
            slash.part = Decode::decode(&mut &562_500_000_000_000_000u64.encode()[..]).unwrap();
            slash.offender = operator.clone();
            state.slashes.insert(7, slash.clone());
            slash.offender = Signer::from_uri("//Other").unwrap().account().clone();
            state.slashes.insert(8, slash);
        });
        chain.finalize();
        let status = Status::new(&chain, &operator, Some(false)).await.unwrap();
        let [slash] = status.slashes.as_slice() else {
            panic!("{:?}", status.slashes);
        };
        assert_eq!((slash.slash, slash.part.as_str()), (7, "56.25 %"));
        let said = status.problems.join("\n");
        for words in ["validator rotate", "two of a kind"] {
            assert!(said.contains(words), "{said}");
        }
        assert!(
            !said.contains("a candidate again"),
            "not before it is out of jail: {said}"
        );
        chain.change(|state| state.records.clear());
        chain.finalize();
        let status = Status::new(&chain, &operator, Some(true)).await.unwrap();
        let [problem] = status.problems.as_slice() else {
            panic!("{:?}", status.problems);
        };
        assert!(problem.contains("join makes it a candidate again"), "{problem}");
        let nobody = Signer::from_uri("//Nobody").unwrap().account().clone();
        let status = Status::new(&chain, &nobody, None).await.unwrap();
        let said = status.problems.join("\n");
        assert!(
            said.contains("join opens one") && said.contains("validator init"),
            "{said}"
        );
    }
}
