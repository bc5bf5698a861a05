//! What this machine is.

use std::path::Path;

use surety_engine::{Device, Devices};
use surety_types::{
    model::Name,
    provider::{DeviceKind, DeviceProfile},
};
use sysinfo::{CpuRefreshKind, Disks, MemoryRefreshKind, RefreshKind, System};

/// The machine as it is offered: `threads` of its cores, all of its memory. Where it is only its owner can
/// say.
///
/// What the system does not tell is left empty; nothing of it is trusted anyway.
pub fn profile(threads: usize) -> DeviceProfile {
    let wanted = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(wanted).ok();
    let cpu = system.as_ref().and_then(|system| system.cpus().first());
    let name = cpu.map_or("", |cpu| cpu.brand().trim());
    let memory = system.as_ref().map_or(0, |system| memory_bytes(system) >> 20);
    DeviceProfile {
        name: bounded_name(name),
        kind: DeviceKind::Cpu,
        cores: u16::try_from(threads).unwrap_or(u16::MAX),
        memory_mib: u32::try_from(memory).unwrap_or(u32::MAX),
        region: None,
    }
}

/// The same with the devices that exact models run on: their names, and the memory of the smallest, since
/// each has every model whole.
pub fn profile_on(threads: usize, devices: &Devices) -> DeviceProfile {
    let processor = profile(threads);
    let Some(bytes) = devices.iter().filter_map(Device::memory_bytes).min() else {
        return processor;
    };
    let names: Vec<&str> = devices.iter().map(Device::name).collect();
    DeviceProfile {
        name: Name::cut(&together(&names)),
        kind: DeviceKind::Cuda,
        memory_mib: u32::try_from(bytes >> 20).unwrap_or(u32::MAX),
        ..processor
    }
}

/// In a container, what it may use.
fn memory_bytes(system: &System) -> u64 {
    let total = system.total_memory();
    match system.cgroup_limits() {
        Some(limits) if limits.total_memory > 0 => total.min(limits.total_memory),
        _ => total,
    }
}

/// Bytes of memory that another program may have now; in a container, what is left of its own. Nothing when
/// the system does not tell.
pub fn free_memory_bytes() -> Option<u64> {
    let wanted = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(wanted).ok()?;
    let free = system.available_memory();
    let free = match system.cgroup_limits() {
        Some(limits) if limits.total_memory > 0 => free.min(limits.free_memory),
        _ => free,
    };
    (free > 0).then_some(free)
}

/// Several devices in one name: those of one kind are counted.
fn together(names: &[&str]) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match kinds.iter_mut().find(|(kind, _)| kind == name) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => kinds.push((name, 1)),
        }
    }
    let named = kinds.iter().map(|(kind, count)| match count {
        1 => (*kind).to_owned(),
        _ => format!("{count} x {kind}"),
    });
    named.collect::<Vec<_>>().join(", ")
}

fn bounded_name(name: &str) -> Name {
    let name = if name.is_empty() { "unknown CPU" } else { name };
    Name::cut(name)
}

/// Free bytes on the file system that `path` is on; nothing when the system does not tell.
pub fn free_bytes(path: &Path) -> Option<u64> {
    // The folder may not exist yet: then its nearest ancestor tells.
    let path = path.ancestors().find(|path| path.exists())?.canonicalize().ok()?;
    let disks = Disks::new_with_refreshed_list().ok()?;
    disks
        .iter()
        .filter(|disk| path.starts_with(disk.mount_point()))
        .max_by_key(|disk| disk.mount_point().components().count())
        .map(|disk| disk.available_space())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_stay_utf8() {
        assert_eq!(&*bounded_name(""), "unknown CPU");
        let long = "ä".repeat(40);
        let name = bounded_name(&long);
        assert_eq!(name.len(), 64);
        let odd = format!("x{long}");
        assert_eq!(bounded_name(&odd).len(), 63);
    }

    #[test]
    fn devices_of_a_kind_are_counted() {
        assert_eq!(together(&["H100"]), "H100");
        assert_eq!(together(&["H100", "L4", "H100"]), "2 x H100, L4");
    }

    #[test]
    fn this_machine_has_memory() {
        let profile = profile(3);
        assert_eq!(profile.cores, 3);
        assert!(profile.memory_mib > 0);
        let all = u64::from(profile.memory_mib).saturating_add(1) << 20;
        assert!(free_memory_bytes().is_some_and(|free| free <= all));
    }
}
