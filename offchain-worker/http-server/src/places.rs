//! How many connections each address has.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

type Taken = Arc<Mutex<HashMap<IpAddr, u32>>>;

/// Places for the connections of each address.
pub(crate) struct Places {
    max: u32,
    proxies: Vec<IpAddr>,
    taken: Taken,
}

/// One of them, until it is dropped.
pub(crate) struct Place(Option<(IpAddr, Taken)>);

impl Places {
    pub(crate) fn new(max: u32, proxies: &[IpAddr]) -> Self {
        Self {
            max,
            proxies: proxies.iter().map(IpAddr::to_canonical).collect(),
            taken: Taken::default(),
        }
    }

    /// A place, where the address has one left.
    pub(crate) fn take(&self, address: IpAddr) -> Option<Place> {
        if self.proxies.contains(&address.to_canonical()) {
            return Some(Place(None));
        }
        let party = party(address);
        let mut taken = locked(&self.taken);
        let count = taken.entry(party).or_default();
        if *count >= self.max {
            return None;
        }
        *count = count.saturating_add(1);
        Some(Place(Some((party, self.taken.clone()))))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((party, taken)) = &self.0 else { return };
        let mut taken = locked(taken);
        let left = taken.get(party).map_or(0, |count| count.saturating_sub(1));
        match left {
            0 => taken.remove(party),
            left => taken.insert(*party, left),
        };
    }
}

/// Addresses that one party usually has all of: one of IPv4, a /64 of IPv6.
fn party(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        ip => ip,
    }
}

fn locked(taken: &Taken) -> MutexGuard<'_, HashMap<IpAddr, u32>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_places_and_gets_them_back() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let places = Places::new(2, &[ip("192.0.2.9")]);
        let take = |text| places.take(ip(text));
        let (first, second) = (take("192.0.2.1"), take("::ffff:192.0.2.1"));
        assert!(first.is_some() && second.is_some());
        assert!(take("192.0.2.1").is_none() && take("192.0.2.2").is_some());
        drop(first);
        assert!(take("192.0.2.1").is_some());
        let _held = [take("2001:db8::1"), take("2001:db8::2")];
        assert!(take("2001:db8:0:0:9::").is_none() && take("2001:db8:0:1::1").is_some());
        let proxied: Vec<_> = (0..9).filter_map(|_| take("192.0.2.9")).collect();
        assert_eq!(proxied.len(), 9);
    }
}
