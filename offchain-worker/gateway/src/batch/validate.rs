//! From the file of a batch to its tasks, whose prices are reserved.

use axum::http::StatusCode;
use futures::{StreamExt, TryStreamExt, stream};
use surety_types::{model::Operation, speed::Requirements};

use super::{
    plan::{Plan, Planned, Texts, plan},
    read::{Asked, fault, read},
    record::{Batch, BatchTask, Fault, TaskState},
    requires::requirements,
    told::{batch_id, refusal, request_id},
    work::Batches,
};
use crate::{
    api::{blocking, now},
    error::ApiError,
    ledger::{Begun, Ledger, LedgerError},
    metrics::Metrics,
    runner::{BatchModel, RunnerError},
};

/// Quotes of a batch's tasks that are asked for at once.
const QUOTES_AT_ONCE: usize = 8;

impl Batches {
    /// Reads the file, makes tasks of it, and reserves what they cost.
    pub(super) async fn validate(&self, batch: Batch) -> Result<(), ApiError> {
        let (key, number) = (batch.key.clone(), batch.number);
        let begun = match self.planned(&batch).await? {
            Ok(plan) => self.quoted(&batch, plan).await?,
            Err(faults) => Err(faults),
        };
        let faults = match begun {
            Ok(begun) => {
                let of = key.clone();
                let begin = move |ledger: &Ledger| match ledger.begin_batch((&of, number), &begun, now()) {
                    Err(error @ LedgerError::OverCap { .. }) => Ok(Some(("insufficient_quota", error))),
                    Err(error @ LedgerError::NoKey) => Ok(Some(("invalid_api_key", error))),
                    begun => begun.map(|()| None),
                };
                match self.shared.ledger(begin).await? {
                    None => return Ok(()),
                    Some((code, error)) => vec![fault(None, code, None, error.to_string())],
                }
            }
            Err(faults) => faults,
        };
        Metrics::count(&self.shared.metrics.refused);
        let fail = move |ledger: &Ledger| ledger.fail_batch((&key, number), faults, now());
        self.shared.ledger(fail).await
    }

    async fn planned(&self, batch: &Batch) -> Result<Result<Plan, Vec<Fault>>, ApiError> {
        let (key, input) = (batch.key.clone(), batch.input);
        let file = self.shared.ledger(move |ledger| match ledger.file(&key, input) {
            Ok(file) => {
                let mut bytes = Vec::new();
                for part in 0..file.parts {
                    bytes.extend(ledger.file_part(input, part)?.ok_or(LedgerError::NoFile)?);
                }
                Ok(Some(bytes))
            }
            Err(LedgerError::NoFile) => Ok(None),
            Err(error) => Err(error),
        });
        let Some(file) = file.await? else {
            let told = "the batch's file was deleted before it was read";
            return Ok(Err(vec![fault(
                None,
                "file_not_found",
                Some("input_file_id"),
                told,
            )]));
        };
        let (endpoint, texts) = (batch.endpoint, self.texts());
        blocking(move || {
            let asked = read(&file, endpoint)?;
            drop(file);
            plan(asked, endpoint, &texts)
        })
        .await
    }

    fn texts(&self) -> Texts {
        let offered = self.runner.models().into_iter();
        let text = |model: BatchModel| {
            let text = self.shared.texts.get(&model.name)?.clone();
            Some(((model.name, model.generates), text))
        };
        offered.filter_map(text).collect()
    }

    async fn quoted(&self, batch: &Batch, plan: Plan) -> Result<Result<Begun, Vec<Fault>>, ApiError> {
        let asked = match self.required(batch).await? {
            Ok(asked) => asked,
            Err(refused) => return Ok(Err(vec![refused])),
        };
        let count = plan.tasks.len() as u64;
        let first = self
            .shared
            .ledger(move |ledger| ledger.new_numbers(count))
            .await?;
        let quoted = stream::iter((first..).zip(plan.tasks))
            .map(|(number, planned)| self.quoted_task((batch, asked), number, planned))
            .buffered(QUOTES_AT_ONCE)
            .try_collect::<Vec<_>>()
            .await;
        let tasks = match quoted {
            Ok(tasks) => tasks,
            Err(RunnerError::Later(why)) if now() < batch.times.expires => return Err(later(why)),
            Err(RunnerError::Later(why) | RunnerError::Refused(why) | RunnerError::Lost(why)) => {
                return Ok(Err(vec![fault(None, "no_price", None, why)]));
            }
        };
        let refusals = plan.refused.len() as u64;
        let line = |(asked, error): (Asked, ApiError)| {
            let id = request_id(batch.number, asked.line);
            refusal(&id, &batch_id(batch.number), &asked.custom_id, &error)
        };
        let refused = plan.refused.into_iter().flat_map(line).collect();
        Ok(Ok(Begun {
            tasks,
            refused,
            refusals,
        }))
    }

    /// What the batch asks of providers, where enough of them are that now: its tasks would lapse otherwise,
    /// and each has cost the fee of its posting by then.
    async fn required(&self, batch: &Batch) -> Result<Result<Requirements, Fault>, ApiError> {
        let refused = |code, why: String| Ok(Err(fault(None, code, Some("metadata"), why)));
        let asked = match requirements(&batch.metadata) {
            Ok(asked) => asked,
            Err(error) => return refused("invalid_value", error.message),
        };
        match self.runner.check_providers(&asked).await {
            Ok(()) => Ok(Ok(asked)),
            Err(RunnerError::Later(why)) if now() < batch.times.expires => Err(later(why)),
            Err(RunnerError::Later(why) | RunnerError::Refused(why) | RunnerError::Lost(why)) => {
                refused("no_provider", why)
            }
        }
    }

    async fn quoted_task(
        &self,
        (batch, requirements): (&Batch, Requirements),
        number: u64,
        planned: Planned,
    ) -> Result<(BatchTask, Vec<u8>), RunnerError> {
        let Planned {
            model,
            work,
            input,
            lines,
        } = planned;
        let quoted = self.runner.quote(number, &model, &work).await?;
        let task = BatchTask {
            number,
            batch: batch.number,
            key: batch.key.clone(),
            model,
            generates: work.operation == Operation::Generate,
            input_bytes: work.input_bytes,
            units_max: work.units_max,
            requirements,
            cap: quoted.cap,
            height: quoted.height,
            state: TaskState::Waiting,
            spent: 0,
            receipt: None,
            lines,
        };
        Ok((task, input))
    }
}

fn later(why: String) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "later", why)
}
