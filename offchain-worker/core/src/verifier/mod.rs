//! All audits of one verifier.

mod audit_task;
mod items;
mod load;
mod progress;
mod sealed;
mod served;
mod unserved;

use std::collections::BTreeSet;

use surety_types::TaskId;

use crate::{
    AccountId, BlockNumber, Drawn, Effect, EffectKind, Event, Failure, Found, Hash, KeptView, Purpose,
    Record, ReplayError, Step, TaskSnapshot, key_of,
    schedule::undated,
    speed::Speeds,
    worker::{Duties, Worker},
};
pub use progress::AuditProgress;

use audit_task::{AuditTask, Draw};
use progress::progress;
use sealed::{SealedResult, owes_opening};

/// Its state machine. See the crate's documentation for what it promises.
pub type Verifier = Worker<VerifierRole>;

/// Audits what the draw says, and sits on committees.
#[derive(Default)]
pub struct VerifierRole {
    /// Tasks in which there is nothing for us.
    passed: BTreeSet<TaskId>,
    /// How long audits take here.
    speeds: Speeds,
}

impl Duties for VerifierRole {
    type Task = AuditTask;

    fn replay(worker: &mut Verifier, record: Record) -> Result<(), ReplayError> {
        worker.replay(record)
    }

    fn see(worker: &mut Verifier, tasks: Vec<TaskSnapshot>, unread: &[TaskId], step: &mut Step) {
        worker.see(tasks, unread, step);
    }

    fn see_best(task: &mut AuditTask, snapshot: TaskSnapshot, block: BlockNumber) {
        task.see_best(snapshot, block);
    }

    fn hear(worker: &mut Verifier, event: Event, step: &mut Step) {
        worker.hear(event, step);
    }

    fn promise(worker: &mut Verifier, step: &mut Step) {
        worker.take_duties();
        for (task, entry) in &mut worker.tasks {
            step.records
                .extend(entry.seats.make(*task, worker.block, &worker.config));
        }
    }

    fn stages(worker: &Verifier) -> impl Iterator<Item = &'static str> {
        worker.progress().map(|(_, _, progress)| progress.name())
    }
}

impl Verifier {
    /// Every result it has thought about, by task and [`key_of`] its provider.
    pub fn progress(&self) -> impl Iterator<Item = (TaskId, Hash, AuditProgress)> + '_ {
        self.tasks.iter().flat_map(|(task, entry)| {
            let checks = entry.checks.iter();
            checks.map(|(key, check)| (*task, *key, progress(entry, *key, check, &self.config.stash)))
        })
    }

    fn replay(&mut self, record: Record) -> Result<(), ReplayError> {
        let task = record.task();
        let entry = self.tasks.entry(task).or_default();
        entry.absence.end(record.at());
        match record {
            Record::AuditMade {
                provider,
                claim,
                salt,
                seal,
                ..
            } => {
                let salts = [salt, Hash::zero()];
                return self.replay_sealed((task, provider), Found::Whole(claim), salts, seal);
            }
            Record::ItemsAudited {
                provider,
                found,
                salts,
                seal,
                ..
            } => return self.replay_sealed((task, provider), Found::Items(found), salts, seal),
            Record::AuditCompared { provider, agrees, .. } => {
                let check = entry.checks.entry(key_of(&provider)).or_default();
                if check.agrees.is_some_and(|known| known != agrees) {
                    return Err(ReplayError::Contradiction { task });
                }
                check.agrees = Some(agrees);
            }
            Record::ViewKept { provider, view, .. } => {
                entry.checks.entry(key_of(&provider)).or_default().view = Some(view);
            }
            Record::AuditAnnounced { provider, at, .. } => {
                let kind = EffectKind::Announce(key_of(&provider));
                entry.attempts.done(kind, at, &self.config);
            }
            Record::AuditRevealed { provider, at, .. } => {
                let kind = EffectKind::AuditReveal(key_of(&provider));
                entry.attempts.done(kind, at, &self.config);
            }
            Record::AuditServed {
                provider, statement, ..
            } => {
                let check = entry.checks.entry(key_of(&provider)).or_default();
                check.served.take(&statement);
            }
            record @ (Record::MoveMade { .. } | Record::MoveSubmitted { .. }) => {
                if !entry.duels.replay(record, &self.config, &mut entry.attempts) {
                    return Err(ReplayError::Contradiction { task });
                }
            }
            record @ Record::VoteMade { .. } => {
                if !entry.seats.replay(&record) {
                    return Err(ReplayError::Contradiction { task });
                }
            }
            // Taken before, and a provider's.
            Record::Finished { .. }
            | Record::BidMade { .. }
            | Record::ResultMade { .. }
            | Record::LeavesKept { .. }
            | Record::ConfirmationChecked { .. }
            | Record::CommitSubmitted { .. }
            | Record::RevealSubmitted { .. }
            | Record::InputFetched { .. }
            | Record::InputMissed { .. }
            | Record::InputDemandMade { .. } => return Err(ReplayError::WrongRole { task }),
        }
        Ok(())
    }

    fn replay_sealed(
        &mut self,
        (task, provider): (TaskId, AccountId),
        found: Found,
        salts: [Hash; 2],
        seal: Hash,
    ) -> Result<(), ReplayError> {
        let sealed = SealedResult::new((task, &provider, &self.config.stash), found, salts);
        if sealed.seal != seal {
            return Err(ReplayError::WrongStash { task });
        }
        let entry = self.tasks.entry(task).or_default();
        let check = entry.checks.entry(key_of(&provider)).or_default();
        if check.sealed.as_ref().is_some_and(|known| *known != sealed) {
            return Err(ReplayError::Contradiction { task });
        }
        check.sealed = Some(sealed);
        Ok(())
    }

    /// Takes finalised state in, and which tasks of it could not be read.
    fn see(&mut self, tasks: Vec<TaskSnapshot>, unread: &[TaskId], step: &mut Step) {
        let (block, clock) = (self.block, self.clocks.finalized);
        let read = tasks.iter().map(|task| task.id);
        let listed: BTreeSet<_> = read.chain(unread.iter().copied()).collect();
        // Finalised state does not go back: what it no longer lists does not come again.
        self.finished
            .retain(|task, at| *at > block || listed.contains(task));
        self.role.passed.retain(|task| listed.contains(task));
        let mut unknown = Vec::new();
        for snapshot in tasks {
            // What is owed is not finished, whatever we took the chain's silence for.
            if owes_opening(&snapshot, &self.config.stash) {
                self.finished.remove(&snapshot.id);
            }
            match self.tasks.get_mut(&snapshot.id) {
                Some(entry) => entry.see(snapshot, &self.config, (block, clock)),
                None if !self.finished.contains_key(&snapshot.id) => unknown.push(snapshot),
                None => {}
            }
        }
        for (task, entry) in &mut self.tasks {
            if !listed.contains(task) {
                entry.absence.note(block);
            } else if unread.contains(task) {
                entry.absence.end(block);
            }
            entry.forget_best_before(block);
        }
        let over = |(_, entry): &(&TaskId, &AuditTask)| entry.is_over(clock);
        let gone: Vec<_> = self.tasks.iter().filter(over).map(|(task, _)| *task).collect();
        for task in gone {
            self.finish(task, step);
        }
        self.pass_idle();
        for snapshot in unknown {
            self.meet(snapshot);
        }
    }

    /// Of tasks in which there is nothing for us only a number is kept, so that they take no place from those
    /// that are ours.
    fn pass_idle(&mut self) {
        let (config, clocks, passed) = (&self.config, self.clocks, &mut self.role.passed);
        self.tasks.retain(|task, entry| {
            let is_idle = entry.is_idle(config, clocks);
            // What is not taken up for want of room only, may be later.
            if is_idle && !config.is_short_of_room {
                passed.insert(*task);
            }
            !is_idle
        });
    }

    /// Takes a task up once auditors can draw themselves.
    fn meet(&mut self, snapshot: TaskSnapshot) {
        let (task, is_disputed) = (snapshot.id, !snapshot.disputes.is_empty());
        if self.tasks.len() >= self.config.tasks_max {
            return;
        }
        let mut entry = AuditTask::default();
        entry.see(snapshot, &self.config, (self.block, self.clocks.finalized));
        let is_passed = self.role.passed.contains(&task);
        let is_new = entry.is_auditable() && (!is_passed || is_disputed);
        if is_new || !entry.duels.is_empty() {
            self.tasks.insert(task, entry);
        }
    }

    /// What nobody was told anything about needs no record.
    fn finish(&mut self, task: TaskId, step: &mut Step) {
        let known = self.tasks.remove(&task);
        if known.is_some_and(|entry| entry.is_journalled()) {
            self.bury(task, self.block);
            step.records.push(Record::Finished { task, at: self.block });
        }
        step.effects.push(undated(Effect::Forget { task }));
    }

    /// Takes in how an effect went, or what the host has learnt.
    fn hear(&mut self, event: Event, step: &mut Step) {
        let of = match event.ends() {
            Some((task, kind, Ok(()))) => (task, kind),
            Some((task, kind, Err(failure))) => return self.take_failure(task, kind, failure),
            None => return self.learn(event),
        };
        match event {
            Event::Drawn { provider, drawn, .. } => self.take_draw(of, &provider, drawn),
            Event::AuditFetched {
                provider, statement, ..
            } => self.take_fetched(of, provider, statement, step),
            Event::AuditShown { provider, output, .. } => self.take_shown(of, &provider, output, step),
            Event::AuditInput { tokens, .. } => {
                if let Some(entry) = self.tasks.get_mut(&of.0) {
                    entry.count(Some(tokens));
                }
                self.take_success(of, step);
            }
            Event::AuditReady { provider, found, .. } => self.take_audit(of, provider, found, step),
            Event::AuditCompared {
                provider,
                agrees,
                view,
                ..
            } => self.take_comparison(of, provider, (agrees, view), step),
            answer @ (Event::MoveReady { .. } | Event::SeatDrawn { .. } | Event::VoteReady { .. }) => {
                self.take_answer(of, answer, step);
            }
            Event::EffectDone { .. } => self.take_success(of, step),
            // A provider's.
            _ => {}
        }
    }

    fn learn(&mut self, event: Event) {
        match event {
            Event::Measured {
                model,
                operation,
                units,
                millis,
            } => self.role.speeds.measure(model, operation, units, millis),
            Event::Unmeasured => self.role.speeds = Speeds::default(),
            Event::OpeningWindow { seconds } => self.config.opening_seconds = seconds,
            // Taken before, and a provider's.
            _ => {}
        }
    }

    /// Takes in what was found for a dispute.
    fn take_answer(&mut self, (task, kind): (TaskId, EffectKind), answer: Event, step: &mut Step) {
        let Some(entry) = self.tasks.get_mut(&task) else {
            return;
        };
        entry.attempts.succeed(kind, self.now, &self.config);
        match answer {
            Event::MoveReady {
                dispute,
                number,
                played,
                ..
            } => {
                let at = (task, self.block);
                step.records
                    .extend(entry.duels.take_move(at, dispute, number, played));
            }
            Event::SeatDrawn {
                dispute,
                ballot,
                proof,
                ..
            } => entry.seats.take_draw(dispute, ballot, proof),
            Event::VoteReady { dispute, value, .. } => entry.seats.take_value(dispute, value),
            _ => {}
        }
    }

    fn take_draw(&mut self, (task, kind): (TaskId, EffectKind), provider: &AccountId, drawn: Option<Drawn>) {
        let Some(entry) = self.tasks.get_mut(&task) else {
            return;
        };
        entry.attempts.succeed(kind, self.now, &self.config);
        let check = entry.checks.entry(key_of(provider)).or_default();
        check.draw = drawn.map_or(Draw::NotOurs, Draw::Ours);
        check.drawn_at = Some(self.clocks.finalized);
    }

    /// The only place where a result of ours comes into being.
    fn take_audit(
        &mut self,
        (task, kind): (TaskId, EffectKind),
        provider: AccountId,
        found: Found,
        step: &mut Step,
    ) {
        let Some(entry) = self.tasks.get_mut(&task) else {
            return;
        };
        let (key, stash) = (key_of(&provider), &self.config.stash);
        let shown = entry.seal_shown(&provider, stash);
        let check = entry.checks.entry(key).or_default();
        if check.sealed.is_some() {
            return;
        }
        if self.config.is_short_of_room && shown.is_none() {
            self.take_failure(task, kind, Failure::Refused);
            return;
        }
        let salts = [Purpose::Audit(key), Purpose::Differing(key)];
        let salts = salts.map(|purpose| self.config.salts.salt(task, purpose));
        let sealed = SealedResult::new((task, &provider, stash), found, salts);
        entry.attempts.succeed(kind, self.now, &self.config);
        if shown.is_some_and(|shown| shown != sealed.seal) {
            // The journal was lost, and this is not what we said: it cannot be opened.
            check.draw = Draw::NotOurs;
            return;
        }
        step.records.push(sealed.record(task, self.block, provider));
        check.sealed = Some(sealed);
    }

    /// The only place where it is decided how a seal over items is opened.
    fn take_comparison(
        &mut self,
        (task, kind): (TaskId, EffectKind),
        provider: AccountId,
        (agrees, view): (bool, Option<KeptView>),
        step: &mut Step,
    ) {
        let Some(entry) = self.tasks.get_mut(&task) else {
            return;
        };
        entry.attempts.succeed(kind, self.now, &self.config);
        let check = entry.checks.entry(key_of(&provider)).or_default();
        if check.agrees.is_some() {
            return;
        }
        (check.agrees, check.view) = (Some(agrees), view);
        let at = self.block;
        step.records.extend(view.map(|view| Record::ViewKept {
            task,
            at,
            provider: provider.clone(),
            view,
        }));
        step.records.push(Record::AuditCompared {
            task,
            at,
            provider,
            agrees,
        });
    }

    pub(super) fn take_failure(&mut self, task: TaskId, kind: EffectKind, failure: Failure) {
        let Some(entry) = self.tasks.get_mut(&task) else {
            return;
        };
        let is_known = entry.attempts.fail(kind, self.now, failure, &self.config);
        match kind {
            // What was fetched may be what is wrong.
            EffectKind::Audit(key) if is_known => entry.checks.entry(key).or_default().is_fetched = false,
            EffectKind::DemandLeaves(key) if is_known && failure == Failure::Permanent => {
                entry.checks.entry(key).or_default().is_refused = true;
            }
            _ => {}
        }
    }

    pub(super) fn take_success(&mut self, (task, kind): (TaskId, EffectKind), step: &mut Step) {
        let Some(entry) = self.tasks.get_mut(&task) else {
            return;
        };
        if !entry.attempts.succeed(kind, self.now, &self.config) {
            return;
        }
        let at = self.block;
        match kind {
            EffectKind::Announce(key) => {
                let record = |provider| Record::AuditAnnounced { task, at, provider };
                step.records.extend(entry.provider(key).map(record));
            }
            EffectKind::AuditReveal(key) => {
                let record = |provider| Record::AuditRevealed { task, at, provider };
                step.records.extend(entry.provider(key).map(record));
            }
            EffectKind::Play(dispute) => step.records.extend(entry.duels.sent(dispute, task, at)),
            EffectKind::FetchAudit(key) => {
                entry.checks.entry(key).or_default().is_fetched = true;
                entry.count(None);
            }
            EffectKind::CheckData(key) => entry.checks.entry(key).or_default().is_served = true,
            // Others may have had it shown, so that nothing has come of it but that.
            EffectKind::DemandLeaves(key) => entry.attempts.forget(EffectKind::CompareAudit(key)),
            _ => {}
        }
    }
}
