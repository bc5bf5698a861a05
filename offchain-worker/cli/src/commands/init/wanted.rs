//! Which model there is most use in having on this machine.

use std::{cmp::Reverse, collections::BTreeMap, path::Path};

use surety_chain_client::{BlockNumber, Chain, When};
use surety_host::machine;
use surety_models::{KnownModel, known};
use surety_types::{ModelId, model::ModelManifest};

use super::estimate::Newest;
use crate::{
    error::{CliError, Result},
    models,
};

/// Tasks that are looked at for what is asked for.
const TASKS_MAX: u32 = 1_000;
/// What stays free of a disk: inputs and outputs need room.
const DISK_LEFT: u64 = 256 << 20;

/// What this machine has left, in bytes; nothing where the system does not tell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    disk: Option<u64>,
    memory: Option<u64>,
}

impl Room {
    /// Beside the home folder, and in memory.
    pub(super) fn here(home: &Path) -> Self {
        Self {
            disk: machine::free_bytes(home),
            memory: machine::free_memory_bytes(),
        }
    }
}

/// What it takes to get a model, in bytes.
#[derive(Clone, Copy, Debug)]
struct Need {
    disk: u64,
    memory: u64,
}

impl Need {
    /// Of a model that is not here: its files and, where it is converted here, those that it is made of.
    fn of(model: &KnownModel) -> Self {
        let files = |model: &KnownModel| {
            [model.tokenizer_bytes, model.config_bytes, model.template_bytes]
                .into_iter()
                .fold(model.manifest.weights_bytes, u64::saturating_add)
        };
        let (made_of, its_weights) = match &model.converted_from {
            Some(source) => (files(source), source.manifest.weights_bytes),
            None => (0, 0),
        };
        Self {
            disk: files(model).saturating_add(made_of).saturating_add(DISK_LEFT),
            memory: model.manifest.weights_bytes.saturating_add(its_weights),
        }
    }

    /// What is missing for it.
    fn lack(self, name: &str, room: Room) -> Option<String> {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let lack = |needed: u64, free: Option<u64>, of: &str, advice: &str| {
            let free = free.filter(|free| *free < needed)?;
            Some(format!(
                "{name} needs {} MiB of {of}, and {} MiB are free: {advice}",
                mib(needed),
                free >> 20
            ))
        };
        lack(
            self.disk,
            room.disk,
            "disk",
            "make room, or name a home on another disk with --home",
        )
        .or_else(|| {
            lack(
                self.memory,
                room.memory,
                "memory",
                "stop what else uses it, or choose a smaller model with --model",
            )
        })
    }
}

/// A model that could be had.
struct Candidate {
    manifest: ModelManifest,
    /// Tasks that ask for it.
    tasks: usize,
    /// Nothing where it is here.
    need: Option<Need>,
}

/// The model to have.
pub(super) struct Wanted {
    pub(super) model: Option<ModelManifest>,
    /// Why this machine does not get others that more tasks ask for.
    pub(super) passed_over: Vec<String>,
    pub(super) newest: Newest,
}

impl Wanted {
    /// The one that is named; else, of those that the chain knows, anybody can fetch and this machine has
    /// room for, the one that most tasks ask for. Of the exact tier: the others earn where three machines
    /// happen to agree.
    ///
    /// # Errors
    /// When the chain cannot be asked, or the one that is named is unknown or does not fit.
    pub(super) async fn new(
        chain: &dyn Chain,
        is_here: impl Fn(ModelId) -> bool,
        room: Room,
        named: Option<&str>,
    ) -> Result<Self> {
        let when = When::At(chain.block(When::Finalized).await?.hash);
        let registered: Vec<ModelId> = chain.models(when).await?.into_iter().map(|(id, _)| id).collect();
        let newest = newest(chain, when).await?;
        let mut tasks: BTreeMap<ModelId, usize> = BTreeMap::new();
        for (_, task) in &newest.tasks {
            let count = tasks.entry(task.spec.model).or_default();
            *count = count.saturating_add(1);
        }
        let is_meant = |model: &KnownModel| match named {
            Some(name) => model.name() == name,
            None => model.manifest.exact.is_some() && registered.contains(&model.manifest.id()),
        };
        let candidates: Vec<Candidate> = known::all()
            .into_iter()
            .filter(is_meant)
            .map(|model| Candidate {
                tasks: tasks.get(&model.manifest.id()).copied().unwrap_or(0),
                need: (!is_here(model.manifest.id())).then(|| Need::of(&model)),
                manifest: model.manifest,
            })
            .collect();
        if let (Some(name), []) = (named, candidates.as_slice()) {
            return Err(CliError::UnknownModel(name.into()));
        }
        let (model, mut passed_over) = choose(candidates, room);
        match (named, model.is_none(), passed_over.pop()) {
            (Some(_), true, Some(lack)) => return Err(CliError::NoRoom(lack)),
            (.., last) => passed_over.extend(last),
        }
        Ok(Self {
            model,
            passed_over,
            newest,
        })
    }
}

/// The candidate that most tasks ask for, of those that fit; and why those before it do not.
fn choose(mut candidates: Vec<Candidate>, room: Room) -> (Option<ModelManifest>, Vec<String>) {
    candidates.sort_by_key(|candidate| Reverse(candidate.tasks));
    let mut passed_over = Vec::new();
    for Candidate { manifest, need, .. } in candidates {
        match need.and_then(|need| need.lack(&models::name(&manifest), room)) {
            None => return (Some(manifest), passed_over),
            Some(lack) => passed_over.push(lack),
        }
    }
    (None, passed_over)
}

/// The newest tasks, and who could have computed them.
async fn newest(chain: &dyn Chain, when: When) -> Result<Newest> {
    let now = chain.block(when).await?.number;
    let tasks = chain.recent_tasks(when, TASKS_MAX).await?;
    let window = chain.provider_terms(when).await?.heartbeat_window;
    let providers = chain.providers(when).await?;
    let is_alive = |last: BlockNumber| last.saturating_add(window) >= now;
    let alive = providers
        .iter()
        .filter(|(_, provider)| is_alive(provider.last_heartbeat))
        .count();
    let parameters = chain.parameters(when).await?;
    let kept = parameters
        .iter()
        .find(|parameter| parameter.name == "FinishedRetention");
    Ok(Newest {
        are_all: u32::try_from(tasks.len()).is_ok_and(|known| known < TASKS_MAX),
        kept_blocks: kept.and_then(|parameter| parameter.value.parse().ok()),
        tasks,
        now,
        alive,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_chain_client::{AccountId, FakeChain, RegisteredModel, sample};

    use super::*;

    const PLENTY: Room = Room {
        disk: Some(1 << 50),
        memory: Some(1 << 50),
    };

    fn candidate(name: &str, tasks: usize, need: Option<Need>) -> Candidate {
        let mut manifest = known::all_minilm_l6_v2_exact().manifest;
        manifest.name = name.as_bytes().to_vec().try_into().unwrap();
        Candidate {
            manifest,
            tasks,
            need,
        }
    }

    #[test]
    fn the_most_asked_for_model_that_fits_is_chosen_and_it_is_said_why_not_another() {
        let need = |disk, memory| Some(Need { disk, memory });
        let room = Room {
            disk: Some(500 << 20),
            memory: Some(100 << 20),
        };
        let all = || {
            vec![
                candidate("small", 1, need(10 << 20, 10 << 20)),
                candidate("wide", 9, need(501 << 20, 10 << 20)),
                candidate("heavy", 5, need(10 << 20, 101 << 20)),
            ]
        };
        let (chosen, passed_over) = choose(all(), room);
        assert_eq!(models::name(&chosen.unwrap()), "small");
        assert!(passed_over[0].starts_with("wide needs 501 MiB of disk, and 500 MiB are free"));
        assert!(passed_over[1].starts_with("heavy needs 101 MiB of memory, and 100 MiB are free"));
        let (chosen, passed_over) = choose(all(), PLENTY);
        assert_eq!(
            (models::name(&chosen.unwrap()).as_str(), passed_over.len()),
            ("wide", 0)
        );
        // Where the system does not tell, it is tried.
        let (chosen, _) = choose(all(), Room::default());
        assert_eq!(models::name(&chosen.unwrap()), "wide");
        // What is here needs nothing more.
        let (chosen, _) = choose(
            vec![candidate("here", 0, None)],
            Room {
                disk: Some(0),
                memory: Some(0),
            },
        );
        assert!(chosen.is_some());
    }

    #[test]
    fn a_model_that_is_converted_here_needs_what_it_is_made_of_as_well() {
        let model = known::all_minilm_l6_v2_exact();
        let (need, source) = (Need::of(&model), Need::of(&known::all_minilm_l6_v2()));
        assert!(need.disk > source.disk && need.memory > source.memory);
        assert_eq!(need.memory, 45_911_384 + 90_868_376);
    }

    async fn wanted(named: Option<&str>, room: Room) -> Result<Wanted> {
        let (chain, model) = (FakeChain::new(), known::all_minilm_l6_v2_exact().manifest);
        chain.change(|state| {
            let registered = RegisteredModel {
                owner: AccountId::new([0; 32]),
                manifest: model.clone(),
                deposit: 0,
            };
            state.models.insert(model.id(), registered);
            let mut task = sample::records::tasks().remove(0);
            task.spec.model = model.id();
            state.tasks.insert(1, task);
        });
        chain.finalize();
        Wanted::new(&chain, |_| false, room, named).await
    }

    #[tokio::test]
    async fn what_does_not_fit_is_an_error_where_it_was_named_and_none_where_not() {
        let exact = "all-MiniLM-L6-v2-exact";
        let fits = wanted(None, PLENTY).await.unwrap();
        assert_eq!(models::name(&fits.model.unwrap()), exact);
        assert_eq!((fits.newest.tasks.len(), fits.passed_over.len()), (1, 0));
        let full = Room {
            disk: Some(1 << 20),
            memory: None,
        };
        let none = wanted(None, full).await.unwrap();
        assert!(none.model.is_none() && none.passed_over[0].contains("make room"));
        let refused = wanted(Some(exact), full).await.err().unwrap();
        assert_eq!(refused.exit_code(), 7);
        assert!(refused.to_string().contains("needs"), "{refused}");
        let unknown = wanted(Some("gpt-9"), PLENTY).await.err().unwrap();
        assert!(matches!(unknown, CliError::UnknownModel(_)));
    }
}
