//! `/openapi.json`: what can be asked here, from the types by which it is read and answered.

use std::sync::LazyLock;

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use utoipa::{Modify, OpenApi};

use crate::error::Refusal;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Surety gateway",
        description = "OpenAI's interface in front of providers whose answers can be disputed on a chain. What is not \
                       offered is refused by the name of its field.",
    ),
    servers((url = "/")),
    paths(
        description,
        crate::api::metrics,
        crate::models::models,
        crate::models::model,
        crate::generate::chat,
        crate::generate::completions,
        crate::embed::embeddings,
        crate::receipts::receipt,
        crate::receipts::proof,
        crate::files::list,
        crate::files::create,
        crate::files::show,
        crate::files::remove,
        crate::files::content,
        crate::batch::routes::list,
        crate::batch::routes::create,
        crate::batch::routes::show,
        crate::batch::routes::cancel,
    ),
    components(schemas(Refusal)),
    security(("key" = [])),
    modifiers(&Common),
)]
pub(crate) struct Api;

/// What all routes have in common.
struct Common;

impl Modify for Common {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

        let key = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "A key of `surety gateway keys create`; any, or none, where the gateway needs none.",
            ));
        if let Some(components) = &mut api.components {
            components.add_security_scheme("key", SecurityScheme::Http(key.build()));
        }
        let refusals = [
            (
                "4XX",
                "It is refused. `429` says when to try again in `retry-after`, unless the key's cap is spent.",
            ),
            ("5XX", "It cannot be answered now."),
        ];
        for item in api.paths.paths.values_mut() {
            let operations = [&mut item.get, &mut item.post, &mut item.delete];
            for operation in operations.into_iter().flatten() {
                // What needs no key is refused to nobody.
                if operation.security.is_some() {
                    continue;
                }
                for (status, told) in refusals {
                    operation
                        .responses
                        .responses
                        .insert(status.into(), refusal(told).into());
                }
            }
        }
    }
}

fn refusal(told: &str) -> utoipa::openapi::Response {
    let body = utoipa::openapi::Ref::from_schema_name("Refusal");
    let seconds = utoipa::openapi::Header::new(<u64 as utoipa::PartialSchema>::schema());
    utoipa::openapi::ResponseBuilder::new()
        .description(told)
        .content("application/json", utoipa::openapi::Content::new(Some(body)))
        .header("retry-after", seconds)
        .build()
}

/// This description
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "describe",
    tag = "gateway",
    security(()),
    responses((status = 200, description = "OpenAPI, as JSON.", body = Object))
)]
pub(crate) async fn description() -> Response {
    static API: LazyLock<utoipa::openapi::OpenApi> = LazyLock::new(Api::openapi);
    Json(&*API).into_response()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::api::table;

    #[test]
    fn every_route_is_described_and_nothing_else_is() {
        let routes: BTreeSet<String> = table()
            .into_iter()
            .map(|(path, _)| path.replace("{*", "{"))
            .collect();
        let described: BTreeSet<String> = Api::openapi().paths.paths.into_keys().collect();
        assert_eq!(described, routes);
    }
}
