//! Claims of the last day, on disk and in memory, and the limits that they are held against.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{File, OpenOptions},
    io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use surety_chain_client::AccountId;

use crate::error::{ClaimError, StoreError};

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
/// A few thousand claims are a few hundred kilobytes; redb's default would be a gigabyte.
const CACHE_BYTES: usize = 1 << 20;

/// By number: seconds since 1970, account, origin.
pub(crate) const CLAIMS: TableDefinition<u64, (u64, [u8; 32], [u8; 16])> = TableDefinition::new("claims");

/// How many claims are taken. They bound the file, too: it has those of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of one origin in a day.
    pub per_client: u32,
    /// Of everybody in an hour.
    pub per_hour: u32,
}

/// Where a claim comes from: an address of IPv4, or the 64 bits of one of IPv6 that a network is given at
/// least, so that nobody has many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin([u8; 16]);

impl From<IpAddr> for Origin {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.to_ipv6_mapped().octets()),
            IpAddr::V6(address) => {
                let network = u128::from(address) & (u128::MAX << 64);
                Self(network.to_be_bytes())
            }
        }
    }
}

/// A limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSoon {
    limit: Limit,
    /// Seconds until it is not any more.
    pub wait_s: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Account,
    Client,
    All,
}

impl fmt::Display for TooSoon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.limit {
            Limit::Account => "this account has claimed within the last day",
            Limit::Client => "too many claims came from your address within the last day",
            Limit::All => "this faucet has given all that it gives in an hour",
        })?;
        let minutes = self.wait_s.div_ceil(60);
        match (minutes / 60, minutes % 60) {
            (0, minutes) => write!(f, "; ask again in {minutes} min"),
            (hours, minutes) => write!(f, "; ask again in {hours} h {minutes} min"),
        }
    }
}

impl std::error::Error for TooSoon {}

struct Claim {
    at: u64,
    account: AccountId,
    origin: Origin,
}

/// Claims of the last day. Each call is all or nothing, and blocks for as long as the disk does.
pub(crate) struct Claims {
    database: Database,
    path: PathBuf,
    limits: Limits,
    known: Mutex<BTreeMap<u64, Claim>>,
}

impl Claims {
    /// Opens the file, or makes it. One process at a time has it.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, StoreError> {
        let store = || -> Result<_, redb::Error> {
            let database = Database::builder()
                .set_cache_size(CACHE_BYTES)
                .create_file(own_file(path)?)?;
            let write = database.begin_write()?;
            write.open_table(CLAIMS)?;
            write.commit()?;
            let mut known = BTreeMap::new();
            for entry in database.begin_read()?.open_table(CLAIMS)?.iter()? {
                let (number, claim) = entry?;
                let (at, account, origin) = claim.value();
                let claim = Claim {
                    at,
                    account: AccountId::new(account),
                    origin: Origin(origin),
                };
                known.insert(number.value(), claim);
            }
            Ok((database, known))
        };
        let (database, known) = store().map_err(|error| unusable(path, &error))?;
        Ok(Self {
            database,
            path: path.into(),
            limits,
            known: Mutex::new(known),
        })
    }

    /// Takes a claim, and gives its number once it is on disk.
    pub fn take(&self, now: u64, account: AccountId, origin: Origin) -> Result<u64, ClaimError> {
        let mut known = self.known();
        // A clock that was set back makes claims older than they are: they count for longer.
        let old: Vec<u64> = known
            .iter()
            .filter(|(_, claim)| claim.at.saturating_add(DAY) <= now)
            .map(|(number, _)| *number)
            .collect();
        self.check(&known, now, &account, origin)?;
        let number = known.keys().next_back().map_or(0, |last| last.saturating_add(1));
        self.write(|table| {
            for number in &old {
                table.remove(number)?;
            }
            table.insert(number, (now, *AsRef::<[u8; 32]>::as_ref(&account), origin.0))?;
            Ok(())
        })?;
        known.retain(|number, _| !old.contains(number));
        let at = now;
        known.insert(number, Claim { at, account, origin });
        Ok(number)
    }

    /// Forgets a claim that was certainly not paid.
    pub fn give_back(&self, number: u64) -> Result<(), StoreError> {
        let mut known = self.known();
        self.write(|table| table.remove(number).map(drop))?;
        known.remove(&number);
        Ok(())
    }

    fn check(
        &self,
        known: &BTreeMap<u64, Claim>,
        now: u64,
        account: &AccountId,
        origin: Origin,
    ) -> Result<(), TooSoon> {
        let times = |of: &dyn Fn(&Claim) -> bool| -> Vec<u64> {
            let those = known.values().filter(|claim| of(claim));
            those.map(|claim| claim.at).collect()
        };
        let waits = [
            (
                Limit::Account,
                wait(times(&|claim| claim.account == *account), (1, DAY), now),
            ),
            (
                Limit::Client,
                wait(
                    times(&|claim| claim.origin == origin),
                    (self.limits.per_client, DAY),
                    now,
                ),
            ),
            (
                Limit::All,
                wait(times(&|_| true), (self.limits.per_hour, HOUR), now),
            ),
        ];
        match waits.into_iter().find(|(_, wait_s)| *wait_s > 0) {
            Some((limit, wait_s)) => Err(TooSoon { limit, wait_s }),
            None => Ok(()),
        }
    }

    fn write(
        &self,
        change: impl FnOnce(&mut redb::Table<u64, (u64, [u8; 32], [u8; 16])>) -> Result<(), redb::StorageError>,
    ) -> Result<(), StoreError> {
        let written = || -> Result<(), redb::Error> {
            let write = self.database.begin_write()?;
            change(&mut write.open_table(CLAIMS)?)?;
            Ok(write.commit()?)
        };
        written().map_err(|error| unusable(&self.path, &error))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<u64, Claim>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file, for its owner alone: it says who has asked, and from where.
fn own_file(path: &Path) -> io::Result<File> {
    const OWNER_ONLY: u32 = 0o600;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, OWNER_ONLY);
    let file = options.open(path)?;
    // One that an older program has made.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(OWNER_ONLY))?;
    Ok(file)
}

/// Seconds until fewer than `max` claims lie within the window.
fn wait(mut times: Vec<u64>, (max, window): (u32, u64), now: u64) -> u64 {
    times.sort_unstable_by(|a, b| b.cmp(a));
    let which = (max as usize).saturating_sub(1);
    times
        .get(which)
        .map_or(0, |at| at.saturating_add(window).saturating_sub(now))
}

fn unusable(path: &Path, error: &redb::Error) -> StoreError {
    StoreError {
        path: path.into(),
        reason: match error {
            redb::Error::DatabaseAlreadyOpen => "another faucet has it open".into(),
            other => other.to_string(),
        },
    }
}
