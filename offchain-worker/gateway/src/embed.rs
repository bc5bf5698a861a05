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
    drive::ATTEMPTS_MAX,
    error::ApiError,
    metrics::Metrics,
    models::offered,
    prompt::encoded_items,
    request::{Embed, EmbeddingRequest},
    upstream::{Receipt, UpstreamError},
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
        let done = embed_and_close(&working, call, &priced, &items, most).await;
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

/// Asks providers until one has all vectors, and settles the call whatever comes of it.
async fn embed_and_close(
    shared: &Shared,
    call: u64,
    priced: &Priced,
    items: &[Vec<u32>],
    mut most: u128,
) -> Result<Vec<Vec<f32>>, ApiError> {
    let (mut avoid, mut spent, mut receipts) = (Vec::new(), 0u128, Vec::new());
    let mut untaken = 0usize;
    let done = loop {
        let asked = timeout(
            shared.settings.token_time,
            shared.upstream.embed(&priced.model, items, most, &avoid),
        )
        .await;
        let more = match asked {
            Err(_) => {
                // It may hold a voucher for all of it.
                spent = spent.saturating_add(most);
                let error = ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timeout", "the provider is too slow");
                break Err(error);
            }
            Ok(Ok(done)) => {
                receipts = done.receipts;
                spent = spent.saturating_add(done.spent);
                if done.vectors.len() == items.len() {
                    break Ok(done.vectors);
                }
                let told = "the provider gave another number of vectors than was asked for";
                break Err(ApiError::new(StatusCode::BAD_GATEWAY, "wrong_shape", told));
            }
            Ok(Err(UpstreamError::Failed {
                provider,
                spent: lost,
                why,
            })) => {
                tracing::warn!(call, provider, why, "a provider failed");
                spent = spent.saturating_add(lost);
                avoid.push(provider.clone());
                if avoid.len() >= ATTEMPTS_MAX {
                    let error = UpstreamError::Failed {
                        provider,
                        why,
                        spent: lost,
                    };
                    break Err(error.into());
                }
                Metrics::count(&shared.metrics.retried);
                // Whoever answers instead may be dearer.
                most = priced.now(shared, &avoid).unwrap_or(most);
                most
            }
            Ok(Err(error)) => {
                let before = most;
                match priced.raised(shared, &avoid, (before, &mut untaken)) {
                    Some(raised) => most = raised,
                    None => break Err(error.into()),
                }
                most.saturating_sub(before)
            }
        };
        if let Err(error) = shared.ledger(move |ledger| ledger.reserve_more(call, more)).await {
            break Err(error);
        }
    };
    let prices = receipts.iter().map(|receipt: &Receipt| receipt.price);
    let spent = prices.fold(spent, u128::saturating_add);
    shared
        .ledger(move |ledger| ledger.close_call(call, spent, receipts))
        .await?;
    if done.is_err() {
        Metrics::count(&shared.metrics.failed);
    }
    done
}
