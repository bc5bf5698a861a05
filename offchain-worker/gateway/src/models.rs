//! `/v1/models`: what is offered at once, and what batches can ask for.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::Path, response::IntoResponse};
use serde_json::{Value, json};

use crate::{
    api::{Answer, Asker, Shared},
    error::ApiError,
    text::ModelText,
    upstream::{Offered, UpstreamError},
};

/// What is known of one model.
struct Shown {
    name: String,
    generates: bool,
    /// For those who wait.
    unit_price_max: Option<u128>,
    /// For those who do not.
    is_in_batches: bool,
}

/// All models whose text is here, by their names and whether they make text.
fn all(shared: &Shared) -> Vec<Shown> {
    let mut all = BTreeMap::new();
    for Offered {
        name,
        generates,
        unit_price_max,
    } in shared.upstream.models()
    {
        let shown = Shown {
            name: name.clone(),
            generates,
            unit_price_max: Some(unit_price_max),
            is_in_batches: false,
        };
        all.insert((name, generates), shown);
    }
    for model in shared.runner.models() {
        let shown = all.entry((model.name.clone(), model.generates));
        let shown = shown.or_insert(Shown {
            name: model.name,
            generates: model.generates,
            unit_price_max: None,
            is_in_batches: true,
        });
        shown.is_in_batches = true;
    }
    let all = all.into_values();
    all.filter(|model| shared.texts.contains_key(&model.name))
        .collect()
}

impl Shown {
    fn told(&self) -> Value {
        json!({
            "id": self.name, "object": "model", "created": 0, "owned_by": "surety",
            "surety": {
                "operation": if self.generates { "generate" } else { "embed" },
                "unit_price_max": self.unit_price_max.map(|price| price.to_string()),
                "batches": self.is_in_batches,
                "privacy": "providers-and-auditors-read",
            },
        })
    }
}

pub(crate) async fn models(Asker { shared, .. }: Asker) -> Answer {
    let data: Vec<Value> = all(&shared).iter().map(Shown::told).collect();
    Ok(Json(json!({"object": "list", "data": data})).into_response())
}

pub(crate) async fn model(Asker { shared, .. }: Asker, Path(name): Path<String>) -> Answer {
    let found = all(&shared).into_iter().find(|model| model.name == name);
    let found = found.ok_or_else(|| ApiError::no_model(&name))?;
    Ok(Json(found.told()).into_response())
}

/// A model that is offered for this at once, and its text.
pub(crate) fn offered(
    shared: &Shared,
    name: &str,
    generates: bool,
) -> Result<(Offered, Arc<dyn ModelText>), ApiError> {
    let text = shared.texts.get(name).cloned();
    let found = shared.upstream.models().into_iter();
    let found = found
        .filter(|model| model.generates == generates)
        .find(|model| model.name == name);
    if let Some(found) = found.zip(text) {
        return Ok(found);
    }
    let is_in_batches = |model: &Shown| model.name == name && model.generates == generates;
    match all(shared).iter().any(is_in_batches) {
        true => Err(UpstreamError::NoProvider.into()),
        false => Err(ApiError::no_model(name)),
    }
}
