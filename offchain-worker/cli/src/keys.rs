//! Key files: a secret URI in a file that only its owner can read. Secrets never come from arguments.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use sp_core::{crypto::Pair, ed25519, sr25519};
use sp_crypto_hashing::blake2_256;
use surety_chain_client::{AccountId, ChainError, Signer, parse_address};

/// Why a key file is no good.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// There is none.
    #[error("no key file at {}; make one with: surety account new --key-file {}", path.display(), path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A folder, whose mode is nobody's business here.
    #[error("{} is a folder; name the key's file with --key-file", path.display())]
    Folder {
        /// Where it is.
        path: PathBuf,
    },
    /// Others could read it.
    #[error("{} can be read by others (mode {mode:o}); run: chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// There is one already.
    #[error("{} exists; it is not overwritten, since the key in it may own money", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// It does not hold a key.
    #[error("{}: {source}; put its twelve words there again from your copy, or name another with --key-file", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong; holds nothing of the secret.
        source: ChainError,
    },
    /// It cannot be read or written.
    #[error("{}: {source}; it has to be this user's, who can read and write there", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The text is no address.
    #[error("{0:?} is not an address (SS58, such as 5Grwva…)")]
    NotAnAddress(String),
}

/// A key with what is derived from it.
pub struct Key {
    /// Signs calls.
    pub signer: Signer,
    /// For salts: a hash of the secret, used for nothing else.
    pub salt_secret: [u8; 32],
}

/// Reads a key file.
///
/// # Errors
/// When it is missing, exposed, or holds no key.
pub fn load(path: &Path) -> Result<Key, KeyError> {
    check_mode(path)?;
    let uri = fs::read_to_string(path).map_err(|e| io_error(path, e))?;
    let signer = Signer::from_uri(&uri).map_err(|source| KeyError::Malformed {
        path: path.to_owned(),
        source,
    })?;
    let salt_secret = blake2_256(&[b"surety/salt/1".as_slice(), uri.trim().as_bytes()].concat());
    Ok(Key { signer, salt_secret })
}

/// Makes a new key from twelve random words, writes it to `path`, and returns its account. The words are only
/// in the file.
///
/// # Errors
/// When the file exists or cannot be written.
pub fn create(path: &Path) -> Result<AccountId, KeyError> {
    let (_, phrase, _) = sr25519::Pair::generate_with_phrase(None);
    write_new(path, |file| writeln!(file, "{phrase}")).map_err(|e| not_new(path, e))?;
    Ok(load(path)?.signer.account().clone())
}

/// Makes the key that peers know a node by, in the form that `surety-node --node-key-file` reads.
///
/// # Errors
/// When the file exists or cannot be written.
pub fn create_node_key(path: &Path) -> Result<(), KeyError> {
    let (_, seed) = ed25519::Pair::generate();
    // Without the end of a line, which would be read as a part of it.
    write_new(path, |file| write!(file, "{}", hex::encode(seed))).map_err(|e| not_new(path, e))
}

fn not_new(path: &Path, source: io::Error) -> KeyError {
    match source.kind() {
        io::ErrorKind::AlreadyExists => KeyError::Exists {
            path: path.to_owned(),
        },
        _ => io_error(path, source),
    }
}

/// A file that only its owner can read, there whole or not at all, and never in the place of another.
fn write_new(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    private_folder(folder)?;
    // Its mode is 0600 from the beginning.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|e| e.error)?;
    // The file's name has to be durable, too.
    File::open(folder)?.sync_all()
}

/// Makes a folder, where there is none, that no other user of the machine can look into. One that is there
/// stays as its owner wants it.
///
/// # Errors
/// When it cannot be made.
pub fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Reads an address.
///
/// # Errors
/// When the text is none.
pub fn parse_account(text: &str) -> Result<AccountId, KeyError> {
    parse_address(text).ok_or_else(|| KeyError::NotAnAddress(text.into()))
}

/// Checks that only the owner can read a file.
///
/// # Errors
/// When it is missing or others could read it.
pub fn check_mode(path: &Path) -> Result<(), KeyError> {
    let meta = fs::metadata(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => KeyError::Missing {
            path: path.to_owned(),
        },
        _ => io_error(path, e),
    })?;
    if meta.is_dir() {
        return Err(KeyError::Folder {
            path: path.to_owned(),
        });
    }
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed {
                path: path.to_owned(),
                mode,
            });
        }
    }
    Ok(())
}

fn io_error(path: &Path, source: io::Error) -> KeyError {
    KeyError::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use surety_chain_client::{address, short};

    use super::*;

    fn write(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[test]
    fn a_new_key_is_private_and_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/key");
        let account = create(&path).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&dir.path().join("sub"))), (0o600, 0o700));
        assert_eq!(load(&path).unwrap().signer.account(), &account);
        assert_eq!(fs::read_to_string(&path).unwrap().split_whitespace().count(), 12);
        assert!(matches!(create(&path), Err(KeyError::Exists { .. })));
        assert_eq!(load(&path).unwrap().signer.account(), &account);
    }

    #[test]
    fn a_node_key_is_private_and_what_the_node_reads_and_nothing_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.key");
        create_node_key(&path).unwrap();
        check_mode(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!((text.len(), hex::decode(&text).unwrap().len()), (64, 32));
        assert!(matches!(create_node_key(&path), Err(KeyError::Exists { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn a_key_that_could_not_be_written_leaves_nothing_in_the_way_of_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let killed = |file: &mut File| {
            write!(file, "half of")?;
            Err(io::Error::other("the disk is full"))
        };
        write_new(&path, killed).unwrap_err();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        create(&path).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_bad_key_file_is_refused_without_showing_it() {
        let (_dir, path) = write("//Alice", 0o640);
        assert!(matches!(load(&path), Err(KeyError::Exposed { mode: 0o640, .. })));
        let (_dir, path) = write("my secret words", 0o600);
        let error = load(&path).err().unwrap();
        assert!(matches!(error, KeyError::Malformed { .. }));
        assert!(!format!("{error} {error:?}").contains("secret words"));
        // A folder is not to be made unreadable.
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(load(folder.path()), Err(KeyError::Folder { .. })));
        let missing = load(Path::new("/nonexistent/key")).err().unwrap();
        assert!(missing.to_string().contains("surety account new"));
    }

    #[test]
    fn salts_differ_from_key_to_key() {
        let (_a, alice) = write("//Alice\n", 0o600);
        let (_b, bob) = write("//Bob\n", 0o600);
        let secret = |path| load(path).unwrap().salt_secret;
        assert_eq!(secret(&alice), secret(&alice));
        assert_ne!(secret(&alice), secret(&bob));
    }

    #[test]
    fn addresses_are_checked() {
        let text = "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY";
        let account = parse_account(text).unwrap();
        assert_eq!(address(&account), text);
        assert_eq!(short(&account), "5Grwva…utQY");
        assert!(parse_account(&text.replace("KutQY", "KutQZ")).is_err());
    }
}
