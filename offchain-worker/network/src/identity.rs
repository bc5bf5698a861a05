//! The peer's key: an ed25519 seed in a file that only its owner can read.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use libp2p::identity::{Keypair, ed25519};

/// Why the key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Others could read it.
    #[error("{}: readable by others (mode {mode:o}); run: chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is not a key.
    #[error("{}: not a network key (64 hexadecimal digits); remove it to have a new one made", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read or written.
    #[error("{}: {source}; it has to be this user's, who can read and write there", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The key in `path`, made when the file is missing.
pub(crate) fn load_or_create(path: &Path) -> Result<Keypair, IdentityError> {
    match fs::read_to_string(path) {
        Ok(text) => {
            check_mode(path)?;
            parse(text.trim()).ok_or_else(|| IdentityError::Malformed {
                path: path.to_owned(),
            })
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => create(path),
        Err(source) => Err(io_error(path, source)),
    }
}

/// The peer id that belongs to the key in `path`, which is made when the file is missing.
///
/// # Errors
/// When the file is no key, can be read by others, or cannot be written.
pub fn peer_id(path: &Path) -> Result<String, IdentityError> {
    Ok(load_or_create(path)?.public().to_peer_id().to_base58())
}

fn parse(text: &str) -> Option<Keypair> {
    let mut seed = [0u8; 32];
    hex::decode_to_slice(text, &mut seed).ok()?;
    Keypair::ed25519_from_bytes(&mut seed).ok()
}

fn create(path: &Path) -> Result<Keypair, IdentityError> {
    let key = ed25519::Keypair::generate();
    let text = hex::encode(key.secret().as_ref());
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let write = || -> io::Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut file = options.open(path)?;
        writeln!(file, "{text}")?;
        file.sync_all()
    };
    write().map_err(|e| io_error(path, e))?;
    Ok(Keypair::from(key))
}

#[cfg(unix)]
fn check_mode(path: &Path) -> Result<(), IdentityError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path)
        .map_err(|e| io_error(path, e))?
        .permissions()
        .mode()
        & 0o777;
    if mode & 0o077 != 0 {
        return Err(IdentityError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_mode(_: &Path) -> Result<(), IdentityError> {
    Ok(())
}

fn io_error(path: &Path, source: io::Error) -> IdentityError {
    IdentityError::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_is_kept_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/network.key");
        let first = peer_id(&path).unwrap();
        assert_eq!(peer_id(&path).unwrap(), first);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_exposed_or_malformed_key_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("network.key");
        peer_id(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(
            peer_id(&path),
            Err(IdentityError::Exposed { mode: 0o644, .. })
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "not a key").unwrap();
        assert!(matches!(peer_id(&path), Err(IdentityError::Malformed { .. })));
    }
}
