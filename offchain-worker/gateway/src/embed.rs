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
    metrics::Metrics,
    models::offered,
    prompt::encoded_items,
    request::{Embed, EmbeddingRequest},
    upstream::{EmbeddingAsk, UpstreamError},
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
        done.map(|vectors| (call, vectors, items))
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
    call: u64,
    priced: Priced,
    items: &[Vec<u32>],
    most: u128,
) -> Result<Vec<Vec<f32>>, ApiError> {
    let mut paid = Paid::default();
    let done = embed_all(shared, (call, priced), items, most, &mut paid).await;
    let Paid { sum, receipts } = paid;
    shared
        .ledger(move |ledger| ledger.close_call(call, sum, receipts))
        .await?;
    if done.is_err() {
        Metrics::count(&shared.metrics.failed);
    }
    done
}

/// Asks for as many as one request may have, and then for the rest, until one after the other has all. What
/// is there is kept where a provider fails: the next one is asked for the rest alone.
async fn embed_all(
    shared: &Shared,
    (call, mut priced): (u64, Priced),
    items: &[Vec<u32>],
    mut most: u128,
    paid: &mut Paid,
) -> Result<Vec<Vec<f32>>, ApiError> {
    let mut vectors: Vec<Vec<f32>> = Vec::with_capacity(items.len());
    let (mut avoid, mut untaken) = (Vec::new(), 0usize);
    while let Some(rest) = items.get(vectors.len()..).filter(|rest| !rest.is_empty()) {
        priced.units = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let ask = EmbeddingAsk {
            call,
            model: &priced.model,
            items: rest,
            price_max: most,
        };
        let asked = timeout(shared.settings.token_time, shared.upstream.embed(&ask, &avoid)).await;
        let more = match asked {
            Err(_) => {
                // It may hold a voucher for all of it.
                paid.add_all(Vec::new(), most);
                let told = "the provider is too slow";
                return Err(ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timeout", told));
            }
            Ok(Ok(done)) => {
                paid.add_all(done.receipts, done.spent);
                let left = rest.len().checked_sub(done.vectors.len());
                let Some(left) = left.filter(|left| *left < rest.len()) else {
                    let told = "the provider gave another number of vectors than was asked for";
                    return Err(ApiError::new(StatusCode::BAD_GATEWAY, "wrong_shape", told));
                };
                vectors.extend(done.vectors);
                untaken = 0;
                // Each of them may cost as much as each before.
                let each = most.checked_div(priced.units.into()).unwrap_or_default();
                most = each.saturating_mul(u128::try_from(left).unwrap_or(u128::MAX));
                continue;
            }
            Ok(Err(UpstreamError::Failed {
                provider,
                why,
                spent,
                receipts,
            })) => {
                tracing::warn!(call, provider, why, "a provider failed");
                paid.add_all(receipts, spent);
                avoid.push(provider.clone());
                if avoid.len() >= ATTEMPTS_MAX {
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
                most = priced.now(shared, &avoid).unwrap_or(most);
                most
            }
            Ok(Err(error)) => {
                let before = most;
                most = priced
                    .raised(shared, &avoid, (before, &mut untaken))
                    .ok_or(error)?;
                most.saturating_sub(before)
            }
        };
        shared
            .ledger(move |ledger| ledger.reserve_more(call, more))
            .await?;
    }
    Ok(vectors)
}
