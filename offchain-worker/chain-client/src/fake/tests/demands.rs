//! What the pallet refuses of demands and of audits, the fake refuses too.

use surety_audit_economics::AuditInput;
use surety_proofs::{PartOpening, content_hash};
use surety_types::{
    model::Operation,
    stake::Role,
    task::{FailureReason, RoundMember, RoundPhase, TaskSpec, Verdict},
    trust::{
        AuditAnswer, AuditProof, Content, ContentPart, DemandedParts, ItemLeaves, ItemsFound, Refutation,
    },
};

use super::*;
use crate::RoundRecord;

const INPUT: &[u8] = &[7; 100];
/// Last time of the first audit window.
const UNTIL: BlockNumber = 50;

/// A round whose only provider has committed, in its audit window; and a verifier that is drawn.
struct Round {
    chain: FakeChain,
    task: TaskId,
    provider: AccountId32,
    agent: Signer,
    auditor: Signer,
}

impl Round {
    async fn new() -> Self {
        let (chain, agent, provider) = chain_with_agent().await;
        let spec = TaskSpec {
            model: Default::default(),
            operation: Operation::Generate,
            input: content_hash(INPUT),
            input_bytes: INPUT.len() as u32,
            units_max: 10,
            redundancy: 1,
            sources: Default::default(),
            security: Default::default(),
            requirements: Default::default(),
        };
        let round = Self {
            chain,
            task: 0,
            provider,
            agent,
            auditor: signer("//AuditorAgent"),
        };
        let stash = signer("//Auditor");
        let (name, role) = (round.auditor.account().clone(), Role::Verifier);
        round.ok(&stash, Call::Bond { role, amount: 10 }).await;
        round.ok(&stash, Call::SetAgent { agent: name }).await;
        let stash = stash.account().clone();
        round.ok(&round.auditor, Call::ConfirmAgent { stash }).await;
        round
            .ok(&signer("//Client"), Call::PostTask { spec, cap: 9 })
            .await;
        round.chain.change(|state| {
            state.auditors_expected = 1_000_000_000_000_000_000;
            let mut member = RoundMember::new(round.provider.clone(), 1, 0);
            member.progress = MemberProgress::Committed(H256::zero());
            let members = vec![member].try_into().unwrap();
            let record = RoundRecord {
                members,
                ..RoundRecord::new(10, 9)
            };
            state.rounds.insert(round.task, record);
        });
        round.chain.open_audits(round.task, UNTIL);
        round
    }

    async fn ok(&self, who: &Signer, call: Call) {
        let sent = self.chain.submit(who, call, Until::Included.into()).await;
        sent.unwrap();
    }

    /// The call fails with this error of the pallet, and changes nothing.
    async fn refused(&self, who: &Signer, call: Call, name: &str) {
        let before = self.chain.change(|state| format!("{state:?}"));
        let sent = self.chain.submit(who, call, Until::Included.into()).await;
        let error = sent.unwrap_err();
        assert!(error.is_fault("Results", name), "{error} and not {name}");
        assert_eq!(self.chain.change(|state| format!("{state:?}")), before);
    }

    fn proof(&self) -> AuditProof {
        let input = AuditInput {
            seed: H256([5; 32]),
            task: self.task,
            provider: self.provider.clone(),
        };
        self.auditor.draw_audit(&input).unwrap().proof
    }

    fn demand(&self, content: Content, part: u32, proof: Option<AuditProof>) -> Call {
        let parts = vec![ContentPart { content, part }];
        Call::Demand {
            task: self.task,
            provider: self.provider.clone(),
            parts: DemandedParts::truncate_from(parts),
            proof,
        }
    }

    fn supply(&self, content: Content, blob: &[u8]) -> Call {
        Call::Supply {
            task: self.task,
            content,
            bytes: blob.len() as u32,
            opening: PartOpening::new(blob, 0).unwrap(),
        }
    }

    /// The provider reveals this output, which can be challenged from now on.
    fn reveal(&self, output: &[u8]) {
        self.chain.change(|state| {
            let round = state.rounds.get_mut(&self.task).unwrap();
            round.members[0].progress = MemberProgress::Revealed(ResultClaim {
                output: content_hash(output),
                trace_root: H256::zero(),
                units: 4,
            });
            let verdict = Verdict::Failed(FailureReason::NoAgreement);
            round.phase = RoundPhase::Challengeable { until: 90, verdict };
        });
    }

    fn pass(&self, blocks: u32) {
        for _ in 0..blocks {
            self.chain.finalize();
        }
    }
}

#[tokio::test]
async fn what_is_shown_to_an_auditor_begins_the_window_anew_and_is_demanded_no_more() {
    let round = Round::new().await;
    let demand = || round.demand(Content::Input, 0, Some(round.proof()));
    round.ok(&round.auditor, demand()).await;
    round.refused(&round.auditor, demand(), "AlreadyDemanded").await;
    round.pass(30);
    round
        .refused(
            &round.agent,
            round.supply(Content::Input, &[8; 100]),
            "WrongSegment",
        )
        .await;
    round.ok(&round.agent, round.supply(Content::Input, INPUT)).await;
    let shown = round.chain.shown(When::Best, round.task, content_hash(INPUT));
    assert_eq!(shown.await.unwrap(), INPUT);
    let phase = round
        .chain
        .change(|state| state.rounds[&round.task].phase.clone());
    assert_eq!(phase, RoundPhase::Auditing { until: 30 + UNTIL });
    // It is there already.
    round.ok(&round.auditor, demand()).await;
    let open = round.chain.demands(When::Best, round.task, &round.provider).await;
    assert_eq!(open.unwrap(), []);
    // Audits go on, and demands do not.
    round.pass(30);
    round.refused(&round.auditor, demand(), "WrongPhase").await;
}

#[tokio::test]
async fn who_may_demand_is_asked_as_well_as_when_and_of_what() {
    let round = Round::new().await;
    let (client, stranger) = (signer("//Client"), signer("//Stranger"));
    let of_output = || round.demand(Content::Output, 0, None);
    round.refused(&client, of_output(), "WrongPhase").await;
    let proven = round.demand(Content::Output, 0, Some(round.proof()));
    round.refused(&stranger, proven, "NotVerifierAgent").await;
    let beyond = round.demand(Content::Input, 1, Some(round.proof()));
    round.refused(&round.auditor, beyond, "NoSuchSegment").await;

    let output: &[u8] = &[9; 20];
    round.reveal(output);
    round.refused(&stranger, of_output(), "MayNotDemand").await;
    round.refused(&round.auditor, of_output(), "MayNotDemand").await;
    round
        .refused(&round.agent, round.supply(Content::Output, output), "NotDemanded")
        .await;
    round.ok(&client, of_output()).await;
    round
        .refused(
            &round.auditor,
            round.supply(Content::Output, output),
            "NotProviderAgent",
        )
        .await;
    round
        .refused(
            &round.agent,
            round.supply(Content::Output, &[8; 20]),
            "WrongSegment",
        )
        .await;
    round
        .ok(&round.agent, round.supply(Content::Output, output))
        .await;
    round.pass(91);
    round.refused(&client, of_output(), "WrongPhase").await;
}

#[tokio::test]
async fn what_a_demand_costs_is_on_hold_until_it_is_met() {
    let (round, client) = (Round::new().await, signer("//Client"));
    let funds = |free, held| Funds { free, held };
    let set = |free| {
        let client = client.account().clone();
        round
            .chain
            .change(|state| state.funds.insert(client, funds(free, 0)));
    };
    let output = [7; 5_000];
    round.reveal(&output);
    let demand = || round.demand(Content::Output, 0, None);
    set(15);
    let sent = round
        .chain
        .submit(&client, demand(), Until::Included.into())
        .await;
    assert!(matches!(sent, Err(ChainError::Dispatch(_))), "{sent:?}");
    set(20);
    round.ok(&client, demand()).await;
    let has = || round.chain.funds(When::Best, client.account());
    assert_eq!(has().await.unwrap(), funds(4, 16));
    round
        .ok(&round.agent, round.supply(Content::Output, &output))
        .await;
    // For so many bytes as it has, of those that a part may have.
    assert_eq!(has().await.unwrap(), funds(20 - 16 * 5_000 / 8_192, 0));
}

#[tokio::test]
async fn an_audit_is_sealed_once_opened_after_the_reveal_and_refuted_by_what_it_has_opened() {
    let round = Round::new().await;
    let announce = || Call::AnnounceAudit {
        task: round.task,
        provider: round.provider.clone(),
        proof: round.proof(),
        seal: H256([1; 32]),
    };
    round.ok(&round.auditor, announce()).await;
    round.refused(&round.auditor, announce(), "AlreadyAuditing").await;
    let verifier = signer("//Auditor").account().clone();
    let answer = AuditAnswer {
        agrees: true,
        salt: H256::zero(),
        other: H256::zero(),
    };
    let open = Call::RevealItems {
        task: round.task,
        provider: round.provider.clone(),
        verifier: verifier.clone(),
        found: ItemsFound::default(),
        answer,
    };
    let sent = round.chain.submit(&round.auditor, open, Until::Included.into());
    assert_eq!(sent.await, Err(ChainError::Rejected(Refusal::Future)));
    let shown = ItemLeaves {
        leaves: Default::default(),
        siblings: Default::default(),
    };
    let refute = || Call::RefuteAudit {
        task: round.task,
        provider: round.provider.clone(),
        verifier: verifier.clone(),
        refutation: Box::new(Refutation {
            found: ItemsFound::default(),
            answer,
            place: 0,
            shown: shown.clone(),
        }),
    };
    round.refused(&round.agent, refute(), "NotRevealed").await;
    round.reveal(INPUT);
    round.refused(&round.agent, refute(), "NothingRefuted").await;
    round.chain.change(|state| {
        let audits = &mut state.rounds.get_mut(&round.task).unwrap().audits;
        audits.iter_mut().next().unwrap().state = surety_types::trust::AuditState::Confirmed;
    });
    round.refused(&round.agent, refute(), "SealMismatch").await;
}

#[tokio::test]
async fn who_has_sealed_items_demands_leaves_after_the_reveal_and_they_are_read_by_parts() {
    let round = Round::new().await;
    let leaves: Vec<H256> = (0..300).map(H256::from_low_u64_be).collect();
    let root = surety_proofs::merkle_root(leaves.iter().copied());
    let blob: Vec<u8> = leaves.iter().flat_map(|leaf| leaf.0).collect();
    let demand = |part| round.demand(Content::Leaves, part, None);
    round.refused(&round.auditor, demand(0), "WrongPhase").await;
    let announce = Call::AnnounceAudit {
        task: round.task,
        provider: round.provider.clone(),
        proof: round.proof(),
        seal: H256([1; 32]),
    };
    round.ok(&round.auditor, announce).await;
    round.reveal(&[9; 20]);
    round.chain.change(|state| {
        state.trace_leaves.insert(round.task, 300);
        let record = state.rounds.get_mut(&round.task).unwrap();
        (record.demands_until, record.openings_until) = (Some(70), Some(80));
        record.members[0].audits.items = 4;
        let units = 4;
        let output = content_hash(&[9; 20]);
        record.members[0].progress = MemberProgress::Revealed(ResultClaim {
            output,
            trace_root: root,
            units,
        });
    });
    // All of its items are no sample.
    round.refused(&round.auditor, demand(0), "MayNotDemand").await;
    round
        .chain
        .change(|state| state.rounds.get_mut(&round.task).unwrap().members[0].audits.items = 1);
    round
        .refused(&signer("//Client"), demand(0), "MayNotDemand")
        .await;
    round.refused(&round.auditor, demand(2), "NoSuchSegment").await;
    round.ok(&round.auditor, demand(1)).await;
    let until = round
        .chain
        .change(|state| state.rounds[&round.task].openings_until);
    assert!(until > Some(1_000));
    let show = |blob: &[u8]| Call::Supply {
        task: round.task,
        content: Content::Leaves,
        bytes: blob.len() as u32,
        opening: PartOpening::of_leaves(blob, 1).unwrap(),
    };
    round
        .refused(&round.agent, show(&[7; 9_600]), "WrongSegment")
        .await;
    round.ok(&round.agent, show(&blob)).await;
    let read = |part| {
        let name = surety_proofs::leaves_name(&root);
        round
            .chain
            .shown_part(When::Best, round.task, (name, 9_600, part))
    };
    assert_eq!(read(1).await.unwrap().as_deref(), Some(&blob[8_192..]));
    assert_eq!(read(0).await.unwrap(), None);
    round.pass(71);
    round.refused(&round.auditor, demand(0), "WrongPhase").await;
}
