//! A process of its own for every template, within limits: fuel bounds neither what lists of lists become as
//! text nor how deep values that hold each other go.

use std::{
    io::{self, Read, Write},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use rlimit::Resource;

use super::{Job, RenderFault, Renderer, render, render::TEXT_BYTES_MAX};

/// Time of a processor that a template may take, in seconds.
const CPU_SECONDS_MAX: u64 = 2;
/// Memory that a template may take, in bytes: of all that is mapped, the program included.
const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// How long is waited for an answer, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most bytes of a job, and of an answer to one, as JSON.
const JSON_BYTES_MAX: u64 = 6 * TEXT_BYTES_MAX as u64;

/// Renders each template in a process of its own, which a program makes that calls [`answer`].
#[derive(Clone, Debug)]
pub struct OwnProcess {
    program: PathBuf,
    arguments: Vec<String>,
}

impl OwnProcess {
    /// By this program, called with these arguments.
    pub fn new(program: impl Into<PathBuf>, arguments: &[&str]) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.iter().copied().map(String::from).collect(),
        }
    }

    fn start(&self) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command.spawn()
    }
}

impl Renderer for OwnProcess {
    fn render(&self, job: &Job) -> Result<String, RenderFault> {
        let none = |reason: &dyn std::fmt::Display| RenderFault::NoProcess(reason.to_string());
        let json = serde_json::to_vec(job).map_err(|error| none(&error))?;
        let mut child = self.start().map_err(|error| none(&error))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (send, answer) = mpsc::channel();
        thread::spawn(move || {
            let said = input.zip(output).and_then(|(mut input, output)| {
                // It reads all before it answers. One that has ended answers nothing.
                input.write_all(&json).ok()?;
                drop(input);
                let mut said = Vec::new();
                output.take(JSON_BYTES_MAX).read_to_end(&mut said).ok()?;
                Some(said)
            });
            // Nobody waits any more when it took too long.
            send.send(said).ok();
        });
        let said = match answer.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Timeout) => child.kill().map(|()| None),
            said => Ok(said.ok().flatten()),
        };
        let ended = said.and_then(|said| Ok((said, child.wait()?)));
        let (said, status) = ended.map_err(|error| none(&error))?;
        match said.and_then(|said| serde_json::from_slice(&said).ok()) {
            Some(made) => made,
            // A limit was reached.
            None if status.signal().is_some() => Err(RenderFault::OutOfBounds),
            None => Err(none(&status)),
        }
    }
}

/// Renders the template of the job on standard input, within limits, and writes what comes of it to standard
/// output: what the process does that [`OwnProcess`] starts. Where a limit is reached the process ends.
///
/// # Errors
/// When there is no job, or the answer cannot be written.
pub fn answer() -> io::Result<()> {
    let said = limited().map_err(|error| RenderFault::NoProcess(error.to_string()));
    let mut json = Vec::new();
    io::stdin().take(JSON_BYTES_MAX).read_to_end(&mut json)?;
    let job: Job = serde_json::from_slice(&json)?;
    let said = serde_json::to_vec(&said.and_then(|()| render(&job)))?;
    let mut output = io::stdout();
    output.write_all(&said)?;
    output.flush()
}

/// What hostile templates cannot leave: nothing of a program is theirs but its time and memory.
fn limited() -> io::Result<()> {
    for (resource, max) in [
        (Resource::CPU, CPU_SECONDS_MAX),
        (Resource::AS, MEMORY_BYTES_MAX),
        (Resource::FSIZE, 0),
        (Resource::CORE, 0),
    ] {
        // Whoever has started it may allow less.
        let max = max.min(resource.get_hard()?);
        resource.set(max, max)?;
    }
    Ok(())
}
