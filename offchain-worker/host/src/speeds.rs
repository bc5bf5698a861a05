//! How fast this machine is, kept from run to run: the first bids after a start know it, too.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use surety_types::{ModelId, model::Operation};
use surety_worker_core::Event;

/// Kinds of work that are remembered: far more than anybody offers.
const KINDS_MAX: usize = 1024;

/// A measurement as it lies on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Measured {
    model: ModelId,
    operation: String,
    units: u32,
    millis: u64,
}

/// The last measurement of each kind of work, in a file. Losing it costs nothing but a slower or a bolder
/// first bid.
pub struct Speeds {
    path: PathBuf,
    known: BTreeMap<(ModelId, Operation), Measured>,
}

impl Speeds {
    /// What `HOME/speeds.json` holds, as far as it can be read.
    pub fn open(home: &Path) -> Self {
        let path = home.join("speeds.json");
        let read = || -> io::Result<Vec<Measured>> { Ok(serde_json::from_slice(&fs::read(&path)?)?) };
        let measured = read().unwrap_or_else(|e| {
            if e.kind() != io::ErrorKind::NotFound {
                tracing::warn!(path = %path.display(), error = %e, "speeds are measured anew");
            }
            Vec::new()
        });
        let known = measured.into_iter().filter_map(|measured| {
            let operation = operation(&measured.operation)?;
            Some(((measured.model, operation), measured))
        });
        Self {
            known: known.take(KINDS_MAX).collect(),
            path,
        }
    }

    /// All of them, for core.
    pub(super) fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.known
            .iter()
            .map(|((model, operation), measured)| Event::Measured {
                model: *model,
                operation: *operation,
                units: measured.units,
                millis: measured.millis,
            })
    }

    /// Whether that kind of work was ever measured.
    pub(super) fn knows(&self, model: ModelId, operation: Operation) -> bool {
        self.known.contains_key(&(model, operation))
    }

    /// Units, and the milliseconds that they took, of the last measurement of that kind of work.
    pub fn last(&self, model: ModelId, operation: Operation) -> Option<(u32, u64)> {
        let measured = self.known.get(&(model, operation))?;
        Some((measured.units, measured.millis))
    }

    /// Remembers a measurement.
    pub(super) fn note(&mut self, event: &Event) {
        let Event::Measured {
            model,
            operation,
            units,
            millis,
        } = *event
        else {
            return;
        };
        let measured = Measured {
            model,
            operation: operation.name().into(),
            units,
            millis,
        };
        if self.known.len() >= KINDS_MAX && !self.known.contains_key(&(model, operation)) {
            return;
        }
        self.known.insert((model, operation), measured);
        if let Err(e) = self.save() {
            tracing::warn!(path = %self.path.display(), error = %e, "speeds are not kept");
        }
    }

    /// A reader never sees half a file.
    fn save(&self) -> io::Result<()> {
        let all: Vec<&Measured> = self.known.values().collect();
        let written = self.path.with_extension("json.new");
        fs::write(&written, serde_json::to_vec(&all)?)?;
        fs::rename(&written, &self.path)
    }
}

fn operation(name: &str) -> Option<Operation> {
    Operation::ALL
        .into_iter()
        .find(|operation| operation.name() == name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn measured(units: u32, operation: Operation) -> Event {
        Event::Measured {
            model: ModelId::repeat_byte(1),
            operation,
            units,
            millis: 100,
        }
    }

    #[test]
    fn the_last_measurement_of_each_kind_outlives_a_restart() {
        let home = tempfile::tempdir().unwrap();
        let mut speeds = Speeds::open(home.path());
        speeds.note(&measured(1, Operation::Embed));
        speeds.note(&measured(2, Operation::Embed));
        speeds.note(&measured(3, Operation::Generate));
        let known: Vec<Event> = Speeds::open(home.path()).events().collect();
        assert_eq!(
            known,
            [measured(2, Operation::Embed), measured(3, Operation::Generate)]
        );
    }

    #[test]
    fn what_was_measured_is_known() {
        let home = tempfile::tempdir().unwrap();
        let mut speeds = Speeds::open(home.path());
        speeds.note(&measured(1, Operation::Embed));
        let model = ModelId::repeat_byte(1);
        assert!(speeds.knows(model, Operation::Embed));
        assert_eq!(speeds.last(model, Operation::Embed), Some((1, 100)));
        assert_eq!(speeds.last(model, Operation::Generate), None);
        assert!(!speeds.knows(model, Operation::Generate));
    }

    #[test]
    fn a_file_that_makes_no_sense_is_no_reason_not_to_start() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("speeds.json"), "[{").unwrap();
        let mut speeds = Speeds::open(home.path());
        assert_eq!(speeds.events().count(), 0);
        speeds.note(&measured(1, Operation::Embed));
        assert_eq!(Speeds::open(home.path()).events().count(), 1);
    }
}
