//! `/v1/embeddings`: one call from its reservation to its receipt.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
    response::IntoResponse,
};
use tokio::time::timeout;

use crate::{
    answer::{self, EmbeddingList, receipt_id},
    api::{Answer, Priced, Shared, blocking, broke, key_of, label, open, whole_body},
    drive::{ATTEMPTS_MAX, Paid},
    error::ApiError,
    ledger::OpenCall,
    metrics::Metrics,
    models::offered,
    prompt::encoded_items,
    request::{Embed, EmbeddingRequest},
    upstream::{Embedded, EmbeddingAsk, UpstreamError},
};

/// Embed texts
///
/// What is asked leaves this gateway as ids of tokens, which the provider that answers reads, and auditors of
/// it. Headers are those of `/v1/chat/completions`.
#[utoipa::path(
    post,
    path = "/v1/embeddings",
    operation_id = "createEmbedding",
    tag = "answers",
    request_body = EmbeddingRequest,
    responses((status = 200, description = "A vector for each text.", body = EmbeddingList))
)]
pub(crate) async fn embeddings(State(shared): State<Arc<Shared>>, request: Request) -> Answer {
    let key = key_of(&shared, request.headers()).await?;
    shared.take_request(&key)?;
    let body = whole_body(request).await?;
    let asked = Embed::read(&body)?;
    let (model, text) = offered(&shared, &asked.model, false)?;
    let place = shared.place(&key).await?;
    let items = asked.items;
    let (items, _) = blocking(move || encoded_items(items, &*text)).await??;
    let count = |sum: u32, ids: &Vec<u32>| sum.saturating_add(u32::try_from(ids.len()).unwrap_or(u32::MAX));
    let tokens = items.iter().fold(0, count);
    let left = shared.take_tokens(&key, tokens)?;
    let priced = Priced {
        model: model.name.clone(),
        generates: false,
        units: u32::try_from(items.len()).unwrap_or(u32::MAX),
    };
    let most = priced.now(&shared, &[])?;
    let working = shared.clone();
    // On its own, so that it is settled when the client hangs up.
    let work = tokio::spawn(async move {
        let call = open(&working, &key, &priced.model, most).await?;
        Metrics::count(&working.metrics.calls);
        let done = embed_and_close(&working, call, priced, &items, most).await;
        drop(place);
        done.map(|vectors| (call.number, vectors, items))
    });
    let (call, vectors, items) = work.await.map_err(|_| broke())??;
    let receipt = receipt_id(call);
    let told = answer::embeddings(&model.name, &receipt, &vectors, items, tokens, asked.base64);
    let mut response = Json(told).into_response();
    label(response.headers_mut(), &receipt, &left);
    Ok(response)
}

/// Has all vectors computed, and settles the call whatever comes of it.
async fn embed_and_close(
    shared: &Shared,
    call: OpenCall,
    priced: Priced,
    items: &[Vec<u32>],
    most: u128,
) -> Result<Vec<Vec<f32>>, ApiError> {
    let mut paid = Paid::default();
    let work = Work {
        shared,
        call,
        priced,
        items,
        most,
        vectors: Vec::with_capacity(items.len()),
        avoid: Vec::new(),
        untaken: 0,
    };
    let done = work.all(&mut paid).await;
    let (number, Paid { sum, receipts }) = (call.number, paid);
    shared
        .ledger(move |ledger| ledger.close_call(number, sum, receipts))
        .await?;
    if done.is_err() {
        Metrics::count(&shared.metrics.failed);
    }
    done
}

/// The items of a call, and what is there of their vectors.
struct Work<'a> {
    shared: &'a Shared,
    call: OpenCall,
    priced: Priced,
    items: &'a [Vec<u32>],
    /// Most that those may cost that have no vector yet, in plancks.
    most: u128,
    vectors: Vec<Vec<f32>>,
    /// Providers that have failed.
    avoid: Vec<String>,
    /// How often nobody has taken it since somebody did.
    untaken: usize,
}

impl Work<'_> {
    /// Asks for as many as one request may have, and then for the rest, until one after the other has all.
    /// What is there is kept where a provider fails: the next one is asked for the rest alone.
    async fn all(mut self, paid: &mut Paid) -> Result<Vec<Vec<f32>>, ApiError> {
        let (shared, items) = (self.shared, self.items);
        while let Some(rest) = items.get(self.vectors.len()..).filter(|rest| !rest.is_empty()) {
            self.priced.units = u32::try_from(rest.len()).unwrap_or(u32::MAX);
            let ask = EmbeddingAsk {
                call: self.call.journal_id,
                model: &self.priced.model,
                items: rest,
                price_max: self.most,
            };
            let asked = shared.upstream.embed(&ask, &self.avoid);
            let Ok(asked) = timeout(shared.settings.token_time, asked).await else {
                // It may hold a voucher for all of it.
                paid.add_all(Vec::new(), self.most);
                let told = "the provider is too slow";
                return Err(ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timeout", told));
            };
            let more = match asked {
                Ok(done) => {
                    self.take(done, rest.len(), paid)?;
                    continue;
                }
                Err(error) => self.ask_another(error, paid)?,
            };
            let number = self.call.number;
            shared
                .ledger(move |ledger| ledger.reserve_more(number, more))
                .await?;
        }
        Ok(self.vectors)
    }

    /// Takes in vectors of the first of those that were `asked` for.
    fn take(&mut self, done: Embedded, asked: usize, paid: &mut Paid) -> Result<(), ApiError> {
        paid.add_all(done.receipts, done.spent);
        let left = asked.checked_sub(done.vectors.len());
        let Some(left) = left.filter(|left| *left < asked) else {
            let told = "the provider gave another number of vectors than was asked for";
            return Err(ApiError::new(StatusCode::BAD_GATEWAY, "wrong_shape", told));
        };
        self.vectors.extend(done.vectors);
        self.untaken = 0;
        // Each of them may cost as much as each before.
        let each = self.most.checked_div(self.priced.units.into());
        let each = each.unwrap_or_default();
        self.most = each.saturating_mul(u128::try_from(left).unwrap_or(u128::MAX));
        Ok(())
    }

    /// How much more is reserved for whoever is asked instead, in plancks, where anybody is.
    fn ask_another(&mut self, error: UpstreamError, paid: &mut Paid) -> Result<u128, ApiError> {
        let (shared, before) = (self.shared, self.most);
        match error {
            UpstreamError::Failed {
                provider,
                why,
                spent,
                receipts,
            } => {
                tracing::warn!(call = self.call.number, provider, why, "a provider failed");
                paid.add_all(receipts, spent);
                self.avoid.push(provider.clone());
                if self.avoid.len() >= ATTEMPTS_MAX {
                    let error = UpstreamError::Failed {
                        provider,
                        why,
                        spent,
                        receipts: Vec::new(),
                    };
                    return Err(error.into());
                }
                Metrics::count(&shared.metrics.retried);
                // Whoever answers instead may be dearer.
                self.most = self.priced.now(shared, &self.avoid).unwrap_or(before);
                Ok(self.most)
            }
            error => {
                let now = (before, &mut self.untaken);
                let raised = self.priced.raised(shared, &self.avoid, now);
                self.most = raised.ok_or(error)?;
                Ok(self.most.saturating_sub(before))
            }
        }
    }
}
