//! NVIDIA's own account of its devices (NVML): `libnvidia-ml`, which comes with the driver and is looked for
//! when the program runs.

use nvml_wrapper::{Nvml, enum_wrappers::device::TemperatureSensor, error::NvmlError};

use super::{GpuSource, Reading, Said};

/// The driver.
pub(super) struct Driver(Nvml);

impl Driver {
    pub(super) fn open() -> Said<Self> {
        Nvml::init().map(Self).map_err(text)
    }
}

impl GpuSource for Driver {
    fn driver(&self) -> Said<String> {
        self.0.sys_driver_version().map_err(text)
    }

    fn read(&self, uuid: [u8; 16]) -> Said<Reading> {
        let device = self.0.device_by_uuid(name(uuid)).map_err(text)?;
        let power = device.power_usage().map_err(text);
        let ecc = device.is_ecc_enabled().map_err(text);
        Ok(Reading {
            temperature_celsius: device.temperature(TemperatureSensor::Gpu).map_err(text),
            power_watts: power.map(|milliwatts| f64::from(milliwatts) / 1000.0),
            memory_used_bytes: device.memory_info().map(|memory| memory.used).map_err(text),
            is_ecc_on: ecc.map(|state| state.currently_enabled),
        })
    }
}

fn text(error: NvmlError) -> String {
    error.to_string()
}

/// As NVML writes it: the numbers of the devices are other ones than CUDA's.
fn name(uuid: [u8; 16]) -> String {
    let mut name = String::from("GPU");
    for (place, byte) in uuid.iter().enumerate() {
        if [0, 4, 6, 8, 10].contains(&place) {
            name.push('-');
        }
        name.push_str(&format!("{byte:02x}"));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_named_as_nvidia_smi_lists_it() {
        let uuid = 0x1c56_b9a3_0f0e_4d2c_8b7a_6958_4736_2514_u128.to_be_bytes();
        assert_eq!(name(uuid), "GPU-1c56b9a3-0f0e-4d2c-8b7a-695847362514");
    }

    /// On a machine without a driver the reason is told; on one with it, that there is no such device.
    #[test]
    fn what_is_missing_is_told() {
        let read = Driver::open().and_then(|driver| driver.read([0; 16]));
        assert!(read.is_err_and(|reason| !reason.is_empty()));
    }
}
