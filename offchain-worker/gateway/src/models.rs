//! `/v1/models`: what is offered at once, and what batches can ask for.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::Path, response::IntoResponse};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    answer::{ListWord, words},
    api::{Answer, Asker, PRIVACY, Shared},
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

words!(ModelWord = "model", OwnerWord = "surety");

/// All models.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelList {
    object: ListWord,
    data: Vec<Model>,
}

/// A model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Model {
    /// Its name.
    id: String,
    object: ModelWord,
    /// Not known here: 0.
    created: u64,
    owned_by: OwnerWord,
    surety: ModelDetail,
}

/// What is particular to models here.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelDetail {
    operation: ModelOperation,
    /// Most that a unit may cost at once, in plancks, as a decimal number: a token of a prompt or an
    /// answer, or an item to embed. Nothing where nobody answers at once.
    unit_price_max: Option<String>,
    /// Whether batches can ask for it.
    batches: bool,
    /// Who reads what is asked and answered.
    privacy: &'static str,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModelOperation {
    Generate,
    Embed,
}

impl Shown {
    fn told(self) -> Model {
        Model {
            id: self.name,
            object: ModelWord::Word,
            created: 0,
            owned_by: OwnerWord::Word,
            surety: ModelDetail {
                operation: match self.generates {
                    true => ModelOperation::Generate,
                    false => ModelOperation::Embed,
                },
                unit_price_max: self.unit_price_max.map(|price| price.to_string()),
                batches: self.is_in_batches,
                privacy: PRIVACY,
            },
        }
    }
}

/// List models
///
/// Those that are offered at once, and those that batches can ask for.
#[utoipa::path(
    get,
    path = "/v1/models",
    operation_id = "listModels",
    tag = "models",
    responses((status = 200, description = "All of them.", body = ModelList))
)]
pub(crate) async fn models(Asker { shared, .. }: Asker) -> Answer {
    let list = ModelList {
        object: ListWord::Word,
        data: all(&shared).into_iter().map(Shown::told).collect(),
    };
    Ok(Json(list).into_response())
}

/// Look at a model
#[utoipa::path(
    get,
    path = "/v1/models/{name}",
    operation_id = "retrieveModel",
    tag = "models",
    params(("name" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The model.", body = Model))
)]
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
