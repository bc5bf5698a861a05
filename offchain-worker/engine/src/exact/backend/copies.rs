//! One model on several devices: whole on each, and what comes next goes where the least is under way.

use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{Backend, Devices, Fault, Standing};
use crate::error::EngineError;

/// A model's copy on a device.
struct OnDevice<T: ?Sized> {
    model: Arc<T>,
    standing: Standing,
}

impl<T: ?Sized> OnDevice<T> {
    /// Whether something new is given to it: it is still used, and answers.
    fn takes_new(&self) -> bool {
        self.standing.dropped().is_none() && self.standing.answers()
    }
}

/// A model's copies on devices: none where everything runs on the processor.
pub(in crate::exact) struct Copies<T: ?Sized> {
    all: Vec<OnDevice<T>>,
    /// Where looking for the next one begins: those that have the same under way take turns.
    next: AtomicUsize,
}

impl<T: ?Sized> Default for Copies<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            next: AtomicUsize::new(0),
        }
    }
}

impl<T: ?Sized> Copies<T> {
    /// Makes a copy on each device that is still used, and tries it. Who differs from the processor, or is
    /// gone, is used no more; the others are. Who has too little memory ends it: a person has to decide.
    ///
    /// # Errors
    /// [`EngineError::Device`], [`EngineError::DeviceDiffers`], where devices were chosen and none can be
    /// used.
    pub(in crate::exact) fn make(
        devices: &Devices,
        make: impl Fn(&dyn Backend) -> Result<Arc<T>, Fault>,
        mut is_right: impl FnMut(&T) -> Result<bool, EngineError>,
    ) -> Result<Self, EngineError> {
        let (mut all, mut refused) = (Vec::new(), None);
        for device in devices {
            let standing = device.standing.clone();
            let mut tried = || match standing.dropped() {
                Some(reason) => Err(reason),
                None => {
                    let model = make(&*device.backend)?;
                    let is_right = is_right(&model)?;
                    is_right.then_some(model).ok_or_else(|| standing.differs())
                }
            };
            match tried() {
                Ok(model) => all.push(OnDevice { model, standing }),
                Err(reason) if device.standing.dropped().is_some() => refused = Some(reason),
                Err(reason) => return Err(reason),
            }
        }
        match refused {
            Some(reason) if all.is_empty() => Err(reason),
            _ => Ok(Self {
                all,
                ..Self::default()
            }),
        }
    }

    /// How many something new is given to.
    pub(in crate::exact) fn count(&self) -> usize {
        self.all.iter().filter(|copy| copy.takes_new()).count()
    }

    /// Whether one of them answers nobody, and who is at something for so long may wait for it.
    pub(in crate::exact) fn may_keep(&self, time: Duration) -> bool {
        self.all.iter().any(|copy| copy.standing.may_keep(time))
    }

    /// Whether there are none at all.
    pub(in crate::exact) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What the next job or pass runs on: where the least is under way, or the processor's own model where no
    /// device is used and answers.
    pub(in crate::exact) fn next<'a>(&'a self, processor: &'a T) -> Runs<'a, T> {
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        let from = start.checked_rem(self.all.len()).unwrap_or(0);
        let turns = self.all.iter().skip(from).chain(self.all.iter().take(from));
        let takes_new = turns.filter(|copy| copy.takes_new());
        match takes_new.min_by_key(|copy| copy.standing.running()) {
            Some(copy) => Runs::Device(Taken::new(copy)),
            None => Runs::Processor(processor),
        }
    }

    /// The first that is still used and answers, however much it has to do, or the processor's own model.
    pub(in crate::exact) fn first<'a>(&'a self, processor: &'a T) -> &'a T {
        let mut takes_new = self.all.iter().filter(|copy| copy.takes_new());
        takes_new.next().map_or(processor, |copy| &copy.model)
    }

    /// The one on this device.
    pub(in crate::exact) fn on(&self, standing: &Standing) -> Option<&T> {
        let found = self.all.iter().find(|copy| copy.standing.is(standing));
        found.map(|copy| &*copy.model)
    }
}

/// A device's copy that was given something to do, until this is dropped.
pub(in crate::exact) struct Taken<'a, T: ?Sized>(&'a OnDevice<T>);

impl<'a, T: ?Sized> Taken<'a, T> {
    fn new(copy: &'a OnDevice<T>) -> Self {
        copy.standing.began();
        Self(copy)
    }
}

impl<T: ?Sized> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        self.0.standing.ended();
    }
}

/// What something runs on.
pub(in crate::exact) enum Runs<'a, T: ?Sized> {
    /// What others are held against.
    Processor(&'a T),
    Device(Taken<'a, T>),
}

impl<T: ?Sized> Runs<'_, T> {
    /// The device's, where it is one.
    pub(in crate::exact) fn standing(&self) -> Option<&Standing> {
        match self {
            Self::Processor(_) => None,
            Self::Device(taken) => Some(&taken.0.standing),
        }
    }
}

impl<T: ?Sized> Deref for Runs<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Processor(model) => model,
            Self::Device(taken) => &taken.0.model,
        }
    }
}
