//! What a provider has and does not serve is demanded on chain, and shown there for everybody to read.
//!
//! A drawn auditor that is served nothing demands before the reveal, with the proof of its draw; the client,
//! and auditors of the round, demand after it, and who has sealed some items the leaves of the trace. The
//! round does not go on to the reveal while something is demanded, and its audit window begins again with
//! each demand that was met. Demands are made in the first window alone, so the phase ends by time, whatever
//! is demanded.

use alloc::collections::{BTreeMap, BTreeSet};
use frame_support::{dispatch::DispatchResult, ensure, traits::Get};
use sp_runtime::{DispatchError, Perbill, traits::Saturating};
use surety_dispute_game::bisection::{Blob, Shape};
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_proofs::{LEAF_BYTES, PART_BYTES, PART_SEGMENTS, PARTS_MAX, PartOpening, leaves_name, parts};
use surety_types::{
    ContentHash, TaskId, limits,
    stake::Role,
    task::{ResultClaim, RoundPhase},
    traits::{StakeLedger, TaskClock, TaskOutcome},
    trust::{AuditProof, AuditState, Content, ContentPart, Demand, DemandedParts, FaultKind, OutputShown},
};

use crate::{
    CommitNotes, Config, DemandOf, Demands, DemandsOf, DisputeContexts, DisputeReferee, Error, Event,
    HoldReason, MemberOf, Pallet, RoundOf, Rounds, asset, late::is_audited_by_items,
};

const _: () = assert!(
    limits::PART_BYTES == PART_BYTES,
    "what one demand names is what is shown"
);

/// What is known of content before somebody shows it.
#[derive(Default)]
struct Known {
    content: Option<ContentHash>,
    bytes: Option<u32>,
}

impl Known {
    fn blob(&self) -> Option<Blob> {
        let (content, bytes) = (self.content?, self.bytes?);
        Some(Blob { content, bytes })
    }
}

impl<T: Config> Pallet<T> {
    pub(crate) fn do_demand(
        by: T::AccountId,
        task: TaskId,
        provider: &T::AccountId,
        wanted: DemandedParts,
        proof: Option<&AuditProof>,
    ) -> DispatchResult {
        let mut round = Self::round(task)?;
        let (demander, most) = match proof {
            Some(proof) => Self::unserved_auditor(&by, task, &mut round, provider, proof),
            None if wants_leaves(&wanted) => Self::sampling_auditor(&by, &mut round, provider),
            None => Self::entitled(&by, task, &mut round, provider),
        }?;
        ensure!(wanted.len() <= most as usize, Error::<T>::TooManyParts);
        let mut demands = Demands::<T>::get(task, provider);
        ensure!(
            demands.iter().all(|open| open.demander != demander),
            Error::<T>::AlreadyDemanded
        );
        let member = Self::member(&mut round, provider)?.clone();
        Self::ensure_can_be_wanted(task, &round, &member, &wanted)?;
        let wanted = Self::still_missing(task, &member, &wanted);
        if wanted.is_empty() {
            // Whoever had not seen yet that it was shown has lost nothing.
            return Ok(());
        }
        let mut demand = Demand {
            by: demander.clone(),
            demander: demander.clone(),
            price: T::SupplyPrice::get().saturating_mul(PART_SEGMENTS.into()),
            until: TrustLock::<T>::window_end(T::SupplyWindow::get()),
            parts: wanted,
        };
        demand.by = asset::hold_for_work::<T>(HoldReason::Demand, (&by, &demander), held(&demand))?;
        let (parts, until) = (demand.parts.clone(), demand.until);
        demands.try_push(demand).map_err(|_| Error::<T>::TooManyDemands)?;
        Demands::<T>::insert(task, provider, demands);
        round.demands = round.demands.saturating_add(1);
        if wants_leaves(&parts) {
            // Who is shown them at the last moment compares before it has to open.
            let compared = until.saturating_add(Self::audit_window(&round));
            round.openings_until = round.openings_until.max(Some(compared));
        }
        Rounds::<T>::insert(task, round);
        T::Clock::wake_after(task, until);
        Self::deposit_event(Event::DataDemanded {
            task,
            provider: provider.clone(),
            by: demander,
            parts,
            until,
        });
        Ok(())
    }

    /// The verifier that an agent demands for in the audit window: one that drew itself, and has sealed
    /// nothing yet. With it most parts that it may name: all of any input.
    fn unserved_auditor(
        agent: &T::AccountId,
        task: TaskId,
        round: &mut RoundOf<T>,
        provider: &T::AccountId,
        proof: &AuditProof,
    ) -> Result<(T::AccountId, u32), DispatchError> {
        let until = round.demands_until;
        let is_open = until.is_some_and(|until| !TrustLock::<T>::has_passed(until));
        // Before the proof is looked at, which costs more than all the rest.
        ensure!(is_open, Error::<T>::WrongPhase);
        let (verifier, _) = Self::drawn_auditor(agent, task, round, provider, proof)?;
        Ok((verifier, limits::DEMAND_PARTS_MAX))
    }

    /// Who demands after the reveal: the task's client, which is to have all of its output, or a verifier
    /// that audits the provider, which sees by some parts whether it is served. With it most parts that it
    /// may name.
    fn entitled(
        by: &T::AccountId,
        task: TaskId,
        round: &mut RoundOf<T>,
        provider: &T::AccountId,
    ) -> Result<(T::AccountId, u32), DispatchError> {
        Self::ensure_challengeable(round)?;
        let member = Self::member(round, provider)?;
        ensure!(member.disputable_claim().is_some(), Error::<T>::NotRevealed);
        if T::Outcome::client(task).as_ref() == Some(by) {
            return Ok((by.clone(), limits::DEMAND_PARTS_MAX));
        }
        let verifier = T::Stake::stash_of(by, Role::Verifier).ok_or(Error::<T>::MayNotDemand)?;
        let audit = Self::audit(round, &verifier, provider);
        ensure!(
            audit.is_some_and(|audit| audit.state != AuditState::Over),
            Error::<T>::MayNotDemand
        );
        Ok((verifier, PARTS_MAX))
    }

    /// The verifier that an agent demands leaves for: one that has sealed some items, and has not opened
    /// that. With it most parts that those items can lie in, and no more: a demand costs the provider, too.
    fn sampling_auditor(
        agent: &T::AccountId,
        round: &mut RoundOf<T>,
        provider: &T::AccountId,
    ) -> Result<(T::AccountId, u32), DispatchError> {
        let until = round.demands_until;
        let is_open = matches!(round.phase, RoundPhase::Challengeable { .. })
            && until.is_some_and(|until| !TrustLock::<T>::has_passed(until));
        ensure!(is_open, Error::<T>::WrongPhase);
        let operation = round.terms.operation;
        let member = Self::member(round, provider)?;
        ensure!(member.disputable_claim().is_some(), Error::<T>::NotRevealed);
        let is_sampled = is_audited_by_items(operation, member);
        let items = member.audits.items;
        let verifier = T::Stake::stash_of(agent, Role::Verifier).ok_or(Error::<T>::MayNotDemand)?;
        let audit = Self::audit(round, &verifier, provider);
        let waits = audit.is_some_and(|audit| matches!(audit.state, AuditState::Sealed(_)));
        ensure!(is_sampled && waits, Error::<T>::MayNotDemand);
        Ok((verifier, round.terms.demand_parts(items)))
    }

    /// Whether these are parts of what the provider has, and of what auditors are shown before the reveal.
    fn ensure_can_be_wanted(
        task: TaskId,
        round: &RoundOf<T>,
        member: &MemberOf<T>,
        wanted: &DemandedParts,
    ) -> DispatchResult {
        let input = Self::known(task, member, Content::Input).blob();
        let leaves = match wants_leaves(wanted) {
            true => Self::known(task, member, Content::Leaves).blob(),
            false => None,
        };
        let has = |blob: &Option<Blob>, part| blob.as_ref().is_some_and(|blob| part < parts(blob.bytes));
        for ContentPart { content, part } in wanted {
            match content {
                Content::Input => ensure!(has(&input, *part), Error::<T>::NoSuchSegment),
                Content::Leaves => ensure!(has(&leaves, *part), Error::<T>::NoSuchSegment),
                // Embeddings follow from their input.
                Content::Output => ensure!(
                    member.claim().is_some() || Self::is_shown_to_auditors(round),
                    Error::<T>::NotRevealed
                ),
            }
        }
        Ok(())
    }

    /// Those of the parts that nobody has shown yet, each once. Of content that has fewer the last one does.
    fn still_missing(task: TaskId, member: &MemberOf<T>, wanted: &DemandedParts) -> DemandedParts {
        let (mut missing, mut blobs) = (BTreeSet::new(), BTreeMap::new());
        for ContentPart { content, part } in wanted {
            let known = || Self::known(task, member, *content).blob();
            let blob: &Option<Blob> = blobs.entry(*content).or_insert_with(known);
            let part = blob
                .as_ref()
                .map_or(*part, |blob| at_most_last(*part, blob.bytes));
            let is_shown = blob
                .as_ref()
                .is_some_and(|blob| Self::is_part_shown(task, blob, part));
            let wanted = ContentPart {
                content: *content,
                part,
            };
            if !is_shown {
                missing.insert(wanted);
            }
        }
        DemandedParts::truncate_from(missing.into_iter().collect())
    }

    /// What is known of the task's input, of a provider's output, as it has revealed it, or shown it before,
    /// or of the leaves of its trace, once it has revealed.
    fn known(task: TaskId, member: &MemberOf<T>, content: Content) -> Known {
        let known = |content, bytes| Known {
            content: Some(content),
            bytes,
        };
        match (content, member.claim()) {
            (Content::Input, _) => T::Outcome::input(task)
                .map(|(input, bytes)| known(input, Some(bytes)))
                .unwrap_or_default(),
            (Content::Output, Some(claim)) => {
                let bytes = Self::claimed_bytes(task, claim);
                let shown = || Self::output_shown(task, member).filter(|shown| shown.content == claim.output);
                known(claim.output, bytes.or_else(|| shown().map(|shown| shown.bytes)))
            }
            (Content::Output, None) => Self::output_shown(task, member)
                .map(|shown| known(shown.content, Some(shown.bytes)))
                .unwrap_or_default(),
            (Content::Leaves, Some(claim)) => Self::leaves_bytes(task, claim)
                .map(|bytes| known(leaves_name(&claim.trace_root), Some(bytes)))
                .unwrap_or_default(),
            (Content::Leaves, None) => Known::default(),
        }
    }

    /// How long the leaves of a claim's trace are: their number follows from the claim.
    fn leaves_bytes(task: TaskId, claim: &ResultClaim) -> Option<u32> {
        let context = DisputeContexts::<T>::get(task)?;
        let leaves = T::Referee::claim_referee(&context, claim)?.leaves();
        leaves.checked_mul(LEAF_BYTES)
    }

    /// The output of which a provider has shown a part first.
    fn output_shown(task: TaskId, member: &MemberOf<T>) -> Option<OutputShown<T::AccountId>> {
        CommitNotes::<T>::get(task, &member.provider)?.shown
    }

    /// Returns how many demands on the provider were open.
    pub(crate) fn do_supply(
        agent: &T::AccountId,
        task: TaskId,
        (content, bytes): (Content, u32),
        opening: PartOpening,
    ) -> Result<u32, DispatchError> {
        let provider = Self::provider_of(agent)?;
        let mut round = Self::round(task)?;
        let member = Self::member(&mut round, &provider)?.clone();
        let mut demands = Demands::<T>::get(task, &provider);
        ensure!(!demands.is_empty(), Error::<T>::NotDemanded);
        ensure!(demands.iter().any(is_open::<T>), Error::<T>::WrongPhase);

        let shown = shown_by(&opening, (content, bytes)).ok_or(Error::<T>::WrongSegment)?;
        let known = Self::known(task, &member, content);
        // The first part that is shown of an output names it, before any is revealed; and how long it is,
        // where its claim does not say.
        let names = content == Content::Output && known.bytes.is_none();
        let is_new = names && known.content.is_none();
        let is_it =
            (is_new || known.content == Some(shown)) && known.bytes.is_none_or(|known| known == bytes);
        ensure!(
            is_it && (!is_new || parts(bytes) <= PARTS_MAX),
            Error::<T>::WrongSegment
        );
        let part = ContentPart {
            content,
            part: opening.part,
        };
        let blob = Blob {
            content: shown,
            bytes,
        };
        let open = demands.len();
        // What can be read already is not paid for.
        let new_bytes = match Self::is_part_shown(task, &blob, opening.part) {
            true => 0,
            false => u32::try_from(opening.bytes.len()).unwrap_or(u32::MAX),
        };
        let client = T::Outcome::client(task);
        let demander = Self::settle_part((&provider, client), &mut demands, (part, bytes), new_bytes)
            .ok_or(Error::<T>::WrongSegment)?;
        if names {
            Self::note_output_shown(task, &provider, (shown, bytes), demander);
        }
        Self::keep_part(task, &blob, opening);
        let met = open.saturating_sub(demands.len());
        Self::put_demands(task, &mut round, &provider, (demands, met));
        if met > 0 {
            Self::audit_again(task, &mut round);
        }
        Rounds::<T>::insert(task, round);
        // It may be the last thing that the round waits for.
        T::Clock::wake_after(task, TrustLock::<T>::now());
        Self::deposit_event(Event::DataSupplied {
            task,
            provider,
            part,
            shown,
            bytes,
        });
        Ok(u32::try_from(open).unwrap_or(u32::MAX))
    }

    /// A part of content of so many bytes is shown, with so many that could not be read before: the first
    /// that demanded it pays for those, and nobody else anything. Returns who the first is, if there is any;
    /// demands that are met are ended.
    ///
    /// An auditor pays half of their price; the client, which has a demand after the other, all of it. Both
    /// are less than the provider's fee for so many bytes, so that nobody lives on being asked.
    fn settle_part(
        (provider, client): (&T::AccountId, Option<T::AccountId>),
        demands: &mut DemandsOf<T>,
        (shown, bytes): (ContentPart, u32),
        new_bytes: u32,
    ) -> Option<T::AccountId> {
        let answers = |wanted: &ContentPart| {
            wanted.content == shown.content && at_most_last(wanted.part, bytes) == shown.part
        };
        let mut first = None;
        for demand in demands.iter_mut().filter(|demand| is_open::<T>(demand)) {
            let (before, wanted) = (held(demand), demand.parts.len());
            demand.parts.retain(|wanted| !answers(wanted));
            let mut free = before.saturating_sub(held(demand));
            if first.is_none() && demand.parts.len() < wanted {
                let halves = if client.as_ref() == Some(&demand.demander) {
                    2
                } else {
                    1
                };
                let borne =
                    Perbill::from_rational(new_bytes.saturating_mul(halves), PART_BYTES.saturating_mul(2));
                let borne = borne.mul_floor(demand.price);
                asset::hand_over::<T>(HoldReason::Demand, &demand.by, provider, borne);
                free = free.saturating_sub(borne);
                first = Some(demand.demander.clone());
            }
            asset::release::<T>(HoldReason::Demand, &demand.by, free);
        }
        demands.retain(|demand| !demand.parts.is_empty());
        first
    }

    /// Holds a provider to the output of which it has shown a part first.
    fn note_output_shown(
        task: TaskId,
        provider: &T::AccountId,
        (content, bytes): (ContentHash, u32),
        demander: T::AccountId,
    ) {
        if let Some(mut note) = CommitNotes::<T>::get(task, provider).filter(|note| note.shown.is_none()) {
            note.shown = Some(OutputShown {
                content,
                bytes,
                demander,
            });
            CommitNotes::<T>::insert(task, provider, note);
        }
    }

    /// Writes the demands on a provider down that are left when so many were ended.
    fn put_demands(
        task: TaskId,
        round: &mut RoundOf<T>,
        provider: &T::AccountId,
        (demands, ended): (DemandsOf<T>, usize),
    ) {
        let ended = u32::try_from(ended).unwrap_or(u32::MAX);
        round.demands = round.demands.saturating_sub(ended);
        if demands.is_empty() {
            Demands::<T>::remove(task, provider);
        } else {
            Demands::<T>::insert(task, provider, demands);
        }
    }

    /// Whoever was shown something before the reveal has the whole window to work with it.
    fn audit_again(task: TaskId, round: &mut RoundOf<T>) {
        if let RoundPhase::Auditing { until: before } = round.phase {
            let until = TrustLock::<T>::window_end(Self::audit_window(round)).max(before);
            Self::enter_phase(task, round, RoundPhase::Auditing { until });
        }
    }

    /// Ends one demand of the round that is overdue, or whose provider no longer counts. Says whether there
    /// was one.
    pub(crate) fn end_demand(task: TaskId, round: &mut RoundOf<T>) -> bool {
        if round.demands == 0 {
            return false;
        }
        for member in &round.members.clone() {
            let mut demands = Demands::<T>::get(task, &member.provider);
            let stands = member.owes_opening() || member.disputable_claim().is_some();
            let is_due = |demand: &DemandOf<T>| !stands || TrustLock::<T>::has_passed(demand.until);
            let Some(place) = demands.iter().position(is_due) else {
                continue;
            };
            let demand = demands.remove(place);
            Self::put_demands(task, round, &member.provider, (demands, 1));
            asset::release::<T>(HoldReason::Demand, &demand.by, held(&demand));
            if !stands {
                return true;
            }
            match Self::still_missing(task, member, &demand.parts).is_empty() {
                // It was shown in a game, or by another provider: as late, maybe, as by this one.
                true => Self::audit_again(task, round),
                false => {
                    let (provider, finder) = (&member.provider, Some(demand.demander));
                    Self::convict_provider(task, round, provider, FaultKind::WithheldData, finder);
                    Self::update_verdict(task, round);
                }
            }
            return true;
        }
        false
    }
}

/// The name of the content that a part leads to, which is so long.
fn shown_by(opening: &PartOpening, (content, bytes): (Content, u32)) -> Option<ContentHash> {
    match content {
        Content::Input | Content::Output => opening.content(bytes),
        Content::Leaves => opening.trace_root(bytes).map(|root| leaves_name(&root)),
    }
}

fn wants_leaves(wanted: &DemandedParts) -> bool {
    wanted.iter().any(|part| part.content == Content::Leaves)
}

fn is_open<T: Config>(demand: &DemandOf<T>) -> bool {
    !TrustLock::<T>::has_passed(demand.until)
}

/// What is on hold for a demand.
pub(crate) fn held<A, B: Copy + Saturating + From<u32>, N>(demand: &Demand<A, B, N>) -> B {
    let parts = u32::try_from(demand.parts.len()).unwrap_or(u32::MAX);
    demand.price.saturating_mul(parts.into())
}

/// The last part stands for those that content of so many bytes has not.
fn at_most_last(part: u32, bytes: u32) -> u32 {
    part.min(parts(bytes).saturating_sub(1))
}
