//! Devices and a driver that are played.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex, mpsc};

use surety_cuda::{Argument, Error, GpuBackend, NoLanding, Product, Shape};
use surety_engine::{Device, Devices, EngineError, exact::ExactLlama};

use super::{GpuSource, Gpus, Reading, Said};
use crate::{Vitals, tests::tiny};

/// A device that is gone once it is given work.
#[derive(Debug)]
struct Vanishing;

impl GpuBackend for Vanishing {
    type Memory = ();
    type Landing = NoLanding;

    fn allocate(&mut self, _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn write(&mut self, (): &mut (), _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn read(&mut self, (): &(), _: &mut [u8]) -> Result<(), Error> {
        Err(Error::Lost("it was told to".into()))
    }

    fn launch(&mut self, _: &str, _: Shape, _: &[Argument<'_, ()>]) -> Result<(), Error> {
        Err(Error::Lost("it was told to".into()))
    }

    fn product(&mut self, _: &Product<'_, ()>) -> Result<bool, Error> {
        Err(Error::Lost("it was told to".into()))
    }
}

/// What each device says, by the first byte of its id.
#[derive(Default)]
struct Played(Mutex<Vec<Said<Reading>>>);

impl GpuSource for Played {
    fn driver(&self) -> Said<String> {
        Ok("580.65.06".into())
    }

    fn read(&self, uuid: [u8; 16]) -> Said<Reading> {
        self.0.lock().unwrap()[usize::from(uuid[0])].clone()
    }
}

pub fn device(place: u8, number: usize) -> Device {
    let device = Device::on(Vanishing, "NVIDIA Played").unwrap();
    device.known_as(number, [place; 16])
}

/// Looks, and waits for the driver.
fn look(gpus: &Arc<Gpus>) {
    gpus.look(None).unwrap().blocking_recv().unwrap();
}

fn shown(vitals: &Vitals) -> Vec<String> {
    let text = String::from_utf8(vitals.metrics.text().unwrap().0).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("surety_gpu_"));
    lines.map(str::to_owned).collect()
}

fn reading() -> Reading {
    Reading {
        temperature_celsius: Ok(61),
        power_watts: Ok(250.5),
        memory_used_bytes: Ok(4 << 30),
        is_ecc_on: Ok(true),
    }
}

#[test]
fn what_a_driver_tells_is_shown_and_what_it_refuses_is_not() {
    let devices: Devices = [device(0, 0), device(1, 2)].into_iter().collect();
    let source = Arc::new(Played::default());
    let refusing = Reading {
        temperature_celsius: Err("not supported".into()),
        is_ecc_on: Ok(false),
        ..reading()
    };
    *source.0.lock().unwrap() = vec![Ok(reading()), Ok(refusing)];
    let vitals = Vitals::new().unwrap();
    let gpus = Arc::new(Gpus::new(devices, Some(source.clone()), vitals.registry()).unwrap());
    look(&gpus);
    let found = shown(&vitals);
    let info = r#"surety_gpu_info{device="2",driver="580.65.06",name="NVIDIA Played"} 1"#;
    for line in [
        info,
        r#"surety_gpu_up{device="0"} 1"#,
        r#"surety_gpu_temperature_celsius{device="0"} 61"#,
        r#"surety_gpu_power_watts{device="0"} 250.5"#,
        r#"surety_gpu_memory_used_bytes{device="2"} 4294967296"#,
        r#"surety_gpu_ecc_enabled{device="0"} 1"#,
        r#"surety_gpu_ecc_enabled{device="2"} 0"#,
    ] {
        assert!(
            found.iter().any(|found| found == line),
            "{line} is not in {found:#?}"
        );
    }
    let hot = r#"surety_gpu_temperature_celsius{device="2"}"#;
    assert!(!found.iter().any(|line| line.starts_with(hot)), "{found:#?}");
    // What it says no more is not shown as it was.
    source.0.lock().unwrap()[0] = Err("the device has fallen off the bus".into());
    look(&gpus);
    let found = shown(&vitals);
    let old = r#"surety_gpu_temperature_celsius{device="0"}"#;
    assert!(!found.iter().any(|line| line.starts_with(old)), "{found:#?}");
    assert!(
        found.iter().any(|line| line == r#"surety_gpu_up{device="0"} 1"#),
        "{found:#?}"
    );
}

/// Gives a device work, in which it vanishes.
pub fn lose(devices: &Devices) {
    let weights = tiny::weights();
    let model = ExactLlama::new(tiny::manifest(&weights), weights).unwrap();
    let refused = model.on(devices).map(drop).unwrap_err();
    assert!(matches!(refused, EngineError::Device { .. }), "{refused}");
}

#[test]
fn a_device_that_has_vanished_is_shown_to_be_used_no_more() {
    let devices: Devices = device(0, 1).into();
    let vitals = Vitals::new().unwrap();
    let gpus = Arc::new(Gpus::new(devices.clone(), None, vitals.registry()).unwrap());
    lose(&devices);
    look(&gpus);
    let found = shown(&vitals);
    assert!(
        found.iter().any(|line| line == r#"surety_gpu_up{device="1"} 0"#),
        "{found:#?}"
    );
}

/// A driver that answers once it is let.
struct Stuck(Mutex<mpsc::Receiver<()>>);

impl GpuSource for Stuck {
    fn driver(&self) -> Said<String> {
        Ok("580.65.06".into())
    }

    fn read(&self, _: [u8; 16]) -> Said<Reading> {
        self.0.lock().unwrap().recv().ok();
        Ok(reading())
    }
}

/// Drivers hang when they have lost a device: that is when its figure is needed.
#[test]
fn a_driver_that_does_not_answer_hides_no_device_that_is_used_no_more() {
    let devices: Devices = device(0, 1).into();
    let (answer, waits) = mpsc::channel();
    let source = Arc::new(Stuck(Mutex::new(waits)));
    let vitals = Vitals::new().unwrap();
    let gpus = Arc::new(Gpus::new(devices.clone(), Some(source), vitals.registry()).unwrap());
    let has = |line: &str| shown(&vitals).iter().any(|found| found == line);
    let asked = gpus.look(None);
    assert!(has(r#"surety_gpu_up{device="1"} 1"#));
    lose(&devices);
    let asked = gpus.look(asked);
    assert!(has(r#"surety_gpu_up{device="1"} 0"#));
    // Whatever it says in the end is shown.
    let hot = r#"surety_gpu_temperature_celsius{device="1"} 61"#;
    assert!(!has(hot));
    drop(answer);
    asked.unwrap().blocking_recv().unwrap();
    assert!(has(hot));
}
