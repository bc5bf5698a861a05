//! How fast this machine is, kept from run to run: the first bids after a start know it, too. What was
//! measured on devices says nothing of a machine without them, so it is kept with what it was measured on.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use surety_engine::{Device, Devices};
use surety_types::{ModelId, model::Operation};
use surety_worker_core::Event;

/// Kinds of work that are remembered: far more than anybody offers.
const KINDS_MAX: usize = 1024;

/// What computes where no device does.
const PROCESSOR: &str = "cpu";

/// A measurement as it lies on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Measured {
    model: ModelId,
    operation: String,
    units: u32,
    millis: u64,
    /// What it was measured on, as [`machine`] has it; nothing in files that are older than this.
    #[serde(default)]
    on: Vec<String>,
}

impl Measured {
    /// Whether so many units in so long are slower.
    fn is_faster_than(&self, units: u32, millis: u64) -> bool {
        let product = |millis: u64, units: u32| u128::from(millis).saturating_mul(units.into());
        product(self.millis, units) < product(millis, self.units)
    }
}

/// What computes: the devices that are used, by their names and by what the driver knows them, or the
/// processor.
pub(super) fn machine(devices: &Devices) -> Vec<String> {
    let used = devices.iter().filter(|device| device.dropped().is_none());
    let mut names: Vec<String> = used.map(known_as).collect();
    // In whatever order they were named.
    names.sort_unstable();
    if names.is_empty() {
        names.push(PROCESSOR.into());
    }
    names
}

fn known_as(device: &Device) -> String {
    match device.uuid() {
        Some(uuid) => format!("{} {:032x}", device.name(), u128::from_be_bytes(uuid)),
        None => device.name().to_owned(),
    }
}

/// The last measurement of each kind of work, in a file. Losing it costs nothing but a slower or a bolder
/// first bid.
pub struct Speeds {
    path: PathBuf,
    /// What computes now.
    on: Vec<String>,
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
            on: Vec::new(),
            path,
        }
    }

    /// Whether some of it was measured on another machine.
    pub(super) fn knows_another(&self, machine: &[String]) -> bool {
        self.known.values().any(|measured| measured.on != machine)
    }

    /// Only what was measured on this, which computes from now on. In the file the rest stays until the next
    /// measurement: after a restart that machine may be there again.
    pub(super) fn measured_on(mut self, machine: &[String]) -> Self {
        self.known.retain(|_, measured| measured.on == machine);
        self.on = machine.to_vec();
        self
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

    /// Remembers a measurement, and forgets one that work which was stopped has shown to be too fast: after a
    /// restart that kind is measured again.
    pub(super) fn note(&mut self, event: &Event) {
        let is_changed = match *event {
            Event::Measured {
                model,
                operation,
                units,
                millis,
            } => self.remember(Measured {
                model,
                operation: operation.name().into(),
                units,
                millis,
                on: self.on.clone(),
            }),
            Event::TookLonger {
                model,
                operation,
                units,
                millis,
            } => {
                let key = (model, operation);
                let known = self.known.get(&key);
                let is_wrong = known.is_some_and(|known| known.is_faster_than(units, millis));
                is_wrong && self.known.remove(&key).is_some()
            }
            _ => false,
        };
        if is_changed && let Err(e) = self.save() {
            tracing::warn!(path = %self.path.display(), error = %e, "speeds are not kept");
        }
    }

    /// Whether there is room for it.
    fn remember(&mut self, measured: Measured) -> bool {
        let Some(operation) = operation(&measured.operation) else {
            return false;
        };
        let key = (measured.model, operation);
        let has_room = self.known.len() < KINDS_MAX || self.known.contains_key(&key);
        if has_room {
            self.known.insert(key, measured);
        }
        has_room
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

    fn took_longer(units: u32, millis: u64) -> Event {
        Event::TookLonger {
            model: ModelId::repeat_byte(1),
            operation: Operation::Embed,
            units,
            millis,
        }
    }

    #[test]
    fn what_was_measured_on_another_machine_is_measured_again() {
        let home = tempfile::tempdir().unwrap();
        let (device, processor) = (["device".to_owned()], ["cpu".to_owned()]);
        let open = |machine: &[String]| Speeds::open(home.path()).measured_on(machine);
        open(&device).note(&measured(1, Operation::Embed));
        let model = ModelId::repeat_byte(1);
        assert!(open(&device).knows(model, Operation::Embed));
        assert!(!open(&processor).knows(model, Operation::Embed));
        assert!(
            open(&device).knows(model, Operation::Embed),
            "it is there again, and nothing was measured meanwhile"
        );
        open(&processor).note(&measured(2, Operation::Embed));
        assert_eq!(open(&processor).last(model, Operation::Embed), Some((2, 100)));
        assert!(!open(&device).knows(model, Operation::Embed));
    }

    #[test]
    fn what_a_file_says_that_tells_of_no_machine_is_measured_again() {
        let home = tempfile::tempdir().unwrap();
        Speeds::open(home.path()).note(&measured(1, Operation::Embed));
        let path = home.path().join("speeds.json");
        let old = fs::read_to_string(&path).unwrap().replace(r#","on":[]"#, "");
        assert!(!old.contains("on\":["), "{old}");
        fs::write(&path, old).unwrap();
        let speeds = Speeds::open(home.path());
        assert!(speeds.knows(ModelId::repeat_byte(1), Operation::Embed));
        let speeds = speeds.measured_on(&["cpu".to_owned()]);
        assert_eq!(speeds.events().count(), 0);
    }

    #[test]
    fn a_machine_is_what_computes_in_whatever_order_it_was_named() {
        use crate::gpus::tests::{device, lose};

        assert_eq!(machine(&Devices::default()), ["cpu"]);
        let of = |places: &[u8]| {
            let devices = places.iter().map(|place| device(*place, usize::from(*place)));
            devices.collect::<Devices>()
        };
        let both = of(&[0, 1]);
        assert_eq!(machine(&both), machine(&of(&[1, 0])));
        assert_ne!(machine(&both), machine(&of(&[0])));
        assert_ne!(machine(&of(&[1])), machine(&of(&[0])), "two of a name");
        let one = of(&[0]);
        lose(&one);
        assert_eq!(machine(&one), ["cpu"]);
    }

    #[test]
    fn what_work_that_was_stopped_was_slower_than_is_measured_again_after_a_restart() {
        let home = tempfile::tempdir().unwrap();
        let model = ModelId::repeat_byte(1);
        let known = || Speeds::open(home.path()).last(model, Operation::Embed);
        let mut speeds = Speeds::open(home.path());
        speeds.note(&took_longer(1, 100));
        assert_eq!(known(), None);
        // Ten a second.
        speeds.note(&measured(1, Operation::Embed));
        speeds.note(&took_longer(10, 900));
        assert_eq!(known(), Some((1, 100)), "it was stopped before its time");
        speeds.note(&took_longer(10, 60_000));
        assert_eq!(known(), None);
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
