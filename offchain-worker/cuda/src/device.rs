//! An NVIDIA device, by libraries that are looked for when the program runs.
#![allow(
    unsafe_code,
    reason = "kernels and library calls take raw addresses; what each one needs is said where it is called"
)]

mod graph;
mod landing;
mod library;
mod memory;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use cudarc::{
    driver::{
        self, CudaContext, CudaEvent, CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr, DeviceRepr,
        DriverError, LaunchConfig, PushKernelArg,
        sys::{CUdevice_attribute, CUgraphInstantiate_flags, CUresult, CUstreamCaptureMode},
    },
    nvrtc::{self, CompileError, CompileOptions, Ptx},
};
use surety_exact::GROUP;

use crate::{
    Error,
    backend::{Argument, Capture, GpuBackend, Landing, OPTIONS, Product, SOURCE, Shape, TABLE},
};

pub use graph::Graph;
pub use landing::PinnedLanding;
use landing::no_copies;
use library::Library;
pub use memory::DevicePiece;
use memory::{Answers, bind};

/// CUDA 12.0: the oldest driver that the compilers in use write for.
const DRIVER_MIN: i32 = 12_000;
/// Turing: the oldest devices that current compilers know, and the first with integer tensor cores.
const CAPABILITY_MIN: (i32, i32) = (7, 5);
/// What the kernels are compiled for. Newer devices take it too: the driver translates it when they are
/// loaded.
const TARGET: &str = "compute_75";
const _: () = assert!(
    CAPABILITY_MIN.0 == 7 && CAPABILITY_MIN.1 == 5,
    "TARGET says the same"
);
/// From Ampere on one instruction of the tensor cores does what takes four on Turing.
const TARGET_AMPERE: &str = "compute_80";

/// Bytes that are few.
const NEAR: usize = 64;

/// An engine's threads hand it on.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<crate::Kernels<Device>>();
};

/// One device with the kernels loaded. All work goes to one stream, in order, but for what is copied from it
/// beside that.
#[derive(Debug)]
pub struct Device {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    module: Arc<CudaModule>,
    functions: BTreeMap<String, CudaFunction>,
    /// Opened when somebody asks for it.
    library: OnceLock<Option<Library>>,
    processors: usize,
    answers: Answers,
    /// What [`GpuBackend::begin_read`] copies on, and the end of the last copy.
    copies: Option<Arc<CudaStream>>,
    copied: Option<Arc<CudaEvent>>,
    /// Where a few bytes are read to: a copy into ordinary memory takes the driver longer. Nothing where the
    /// system gives none.
    near: Option<PinnedLanding>,
    /// Where launches are recorded. Nothing else goes there: memory may be freed by any thread at any time,
    /// and on a stream that records that would be recorded, too.
    recorder: Option<Arc<CudaStream>>,
    is_recording: bool,
}

impl Device {
    /// The device of a number, from 0.
    ///
    /// # Errors
    /// [`Error`] says what is missing on this machine.
    pub fn open(number: usize) -> Result<Self, Error> {
        check_driver()?;
        if usize::try_from(CudaContext::device_count().map_err(failed)?).is_ok_and(|count| number >= count) {
            return Err(Error::NoDevice(number));
        }
        let context = CudaContext::new(number).map_err(failed)?;
        let (major, minor) = context.compute_capability().map_err(failed)?;
        if (major, minor) < CAPABILITY_MIN {
            return Err(Error::DeviceTooOld { major, minor });
        }
        // SAFETY: this file orders what several streams do itself: copies wait for the work before them,
        // later work for copies, and memory is not dropped before a copy from it was waited for.
        unsafe { context.disable_event_tracking() };
        let target = if major >= 8 { TARGET_AMPERE } else { TARGET };
        let module = context
            .load_module(compile(target)?)
            .map_err(|error| match error.0 {
                CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => Error::DriverOlderThanCompiler,
                _ => failed(error),
            })?;
        let stream = context.default_stream();
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let processors = context.attribute(attribute).map_err(failed)?;
        Ok(Self {
            context,
            stream,
            module,
            functions: BTreeMap::new(),
            library: OnceLock::new(),
            processors: usize::try_from(processors).unwrap_or(1),
            answers: Answers::default(),
            copies: None,
            copied: None,
            near: None,
            recorder: None,
            is_recording: false,
        })
    }

    /// What the device calls itself.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn name(&self) -> Result<String, Error> {
        self.context.name().map_err(failed)
    }

    /// By what the driver's other libraries know the device.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn uuid(&self) -> Result<[u8; 16], Error> {
        let found = self.context.uuid().map_err(failed)?;
        Ok(found.bytes.map(|byte| byte.to_ne_bytes()[0]))
    }

    /// Whether the vendor's library for products was found.
    pub fn has_library(&self) -> bool {
        Library::is_present()
    }

    /// Bytes of the device's memory that nobody has, and all of it.
    ///
    /// # Errors
    /// [`Error::Device`], [`Error::Lost`].
    pub fn memory(&self) -> Result<(usize, usize), Error> {
        // What the driver keeps counts as taken.
        self.give_back()?;
        self.context.mem_get_info().map_err(failed)
    }

    /// Waits for all that was given, and has the driver give back memory that was freed: it keeps that until
    /// it has waited itself, for nothing by then, and longer where its pool is told to.
    fn give_back(&self) -> Result<(), Error> {
        self.answers.wait_for_all(&self.stream)?;
        self.stream.synchronize().map_err(failed)?;
        // SAFETY: the device is there, and so is its pool; nothing that is in use is touched.
        unsafe {
            driver::result::device::get_default_mem_pool(self.context.cu_device())
                .and_then(|pool| driver::result::mem_pool::trim_to(pool, 0))
        }
        // A device without pools keeps nothing.
        .ok();
        Ok(())
    }

    /// What it computes cannot be trusted after a panic between the beginning and the end of a capture: it
    /// would go on recording launches, and run none. Nor is anything asked of it once it has not answered.
    fn runs(&self) -> Result<(), Error> {
        self.answers.given()?;
        if self.is_recording {
            return Err(Error::Lost("a panic has left it recording launches".into()));
        }
        Ok(())
    }

    fn addresses(&self, pieces: &[&DevicePiece]) -> Result<Addresses, Error> {
        let mut addresses = Addresses([0; TABLE]);
        if pieces.len() > TABLE {
            return Err(too_large());
        }
        for (address, piece) in addresses.0.iter_mut().zip(pieces) {
            // One stream: what is done to the piece keeps its order.
            (*address, _) = piece.0.device_ptr(&self.stream);
        }
        Ok(addresses)
    }

    fn function(&mut self, kernel: &str) -> Result<CudaFunction, Error> {
        if let Some(function) = self.functions.get(kernel) {
            return Ok(function.clone());
        }
        let function = self.module.load_function(kernel).map_err(failed)?;
        self.functions.insert(kernel.to_owned(), function.clone());
        Ok(function)
    }
}

/// A stream beside the one that works, which waits for nothing by itself.
fn beside<'a>(
    context: &Arc<CudaContext>,
    stream: &'a mut Option<Arc<CudaStream>>,
) -> Result<&'a Arc<CudaStream>, Error> {
    let made = match stream.take() {
        Some(stream) => stream,
        None => context.new_stream().map_err(failed)?,
    };
    Ok(stream.insert(made))
}

/// The source's `Table`.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Addresses([u64; TABLE]);

// SAFETY: plain words, laid out as the kernels' structure of as many pointers.
unsafe impl DeviceRepr for Addresses {}

fn check_driver() -> Result<(), Error> {
    // SAFETY: looking for the driver and loading it.
    if !unsafe { driver::sys::is_culib_present() } {
        return Err(Error::NoDriver);
    }
    let mut found = 0;
    // SAFETY: the one function that may come before all others; it writes one integer.
    unsafe { driver::sys::cuDriverGetVersion(&mut found) }
        .result()
        .map_err(failed)?;
    if found < DRIVER_MIN {
        Err(Error::DriverTooOld {
            found,
            needed: DRIVER_MIN,
        })
    } else {
        driver::result::init().map_err(failed)
    }
}

/// The kernels for each target that was wanted, of which there are two.
static COMPILED: Mutex<BTreeMap<&str, Ptx>> = Mutex::new(BTreeMap::new());

/// The kernels for a target, compiled once in a process: that takes seconds, and a run of the benchmark opens
/// its device while its time runs.
fn compile(target: &'static str) -> Result<Ptx, Error> {
    // Who comes meanwhile waits for what is compiled already.
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(ptx) = compiled.get(target) {
        return Ok(ptx.clone());
    }
    let ptx = compile_anew(target)?;
    compiled.insert(target, ptx.clone());
    Ok(ptx)
}

fn compile_anew(target: &'static str) -> Result<Ptx, Error> {
    // SAFETY: looking for the compiler and loading it.
    if !unsafe { nvrtc::sys::is_culib_present() } {
        return Err(Error::NoCompiler);
    }
    let mut options = vec![format!("--define-macro=GROUP={GROUP}")];
    options.extend(OPTIONS.map(str::to_owned));
    let options = CompileOptions {
        arch: Some(target),
        options,
        ..CompileOptions::default()
    };
    nvrtc::compile_ptx_with_opts(SOURCE, options).map_err(|error| match error {
        CompileError::CompileError { log, .. } => Error::Compile(log.to_string_lossy().into_owned()),
        other => Error::Compile(format!("{other:?}")),
    })
}

fn failed(error: DriverError) -> Error {
    match error.0 {
        // There is a driver, and nothing for it to drive.
        CUresult::CUDA_ERROR_NO_DEVICE => Error::NoDevice(0),
        // Whatever it was needed for: a context, a kernel's first launch, a stream. Nothing is wrong with it.
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::OutOfMemory(0),
        // After these the driver refuses everything else.
        CUresult::CUDA_ERROR_DEINITIALIZED
        | CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
        | CUresult::CUDA_ERROR_INVALID_DEVICE
        | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
        | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
        | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
        | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | CUresult::CUDA_ERROR_INVALID_PC
        | CUresult::CUDA_ERROR_LAUNCH_FAILED
        | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
        | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
        | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED => Error::Lost(error.to_string()),
        _ => Error::Device(error.to_string()),
    }
}

impl GpuBackend for Device {
    type Memory = DevicePiece;
    type Landing = PinnedLanding;

    fn processors(&self) -> usize {
        self.processors
    }

    fn allocate(&mut self, bytes: usize) -> Result<DevicePiece, Error> {
        self.runs()?;
        // SAFETY: bytes have no invalid values, and nothing is read here before it is written.
        let memory = unsafe { self.stream.alloc(bytes) }.map_err(|error| match failed(error) {
            Error::OutOfMemory(_) => Error::OutOfMemory(bytes),
            other => other,
        })?;
        Ok(DevicePiece(memory))
    }

    fn write(&mut self, into: &mut DevicePiece, bytes: &[u8]) -> Result<(), Error> {
        self.runs()?;
        fits(bytes.len(), &into.0)?;
        self.stream.memcpy_htod(bytes, &mut into.0).map_err(failed)
    }

    fn read(&mut self, from: &DevicePiece, bytes: &mut [u8]) -> Result<(), Error> {
        self.runs()?;
        fits(bytes.len(), &from.0)?;
        if let Some(near) = self.near.as_mut().filter(|_| bytes.len() <= NEAR) {
            near.copy(&[(from, bytes.len())], &self.stream)?;
            bytes.copy_from_slice(near.wait(bytes.len())?);
            return Ok(());
        }
        // First: a copy into ordinary memory waits for the work within the driver, without an end.
        self.answers.wait_for_all(&self.stream)?;
        let front = from.0.slice(..bytes.len());
        let begun = self.stream.memcpy_dtoh(&front, bytes).map_err(failed);
        // In any case: the bytes are the caller's again when this returns.
        let waited = self.answers.wait_for_all(&self.stream);
        begun.and(waited)
    }

    fn launch(
        &mut self,
        kernel: &str,
        shape: Shape,
        arguments: &[Argument<'_, DevicePiece>],
    ) -> Result<(), Error> {
        self.answers.given()?;
        let function = self.function(kernel)?;
        let [x, y, z] = shape.grid;
        let config = LaunchConfig {
            grid_dim: (x, y, z),
            block_dim: (shape.block, 1, 1),
            shared_mem_bytes: 0,
        };
        let tables: Vec<Option<Addresses>> = arguments
            .iter()
            .map(|argument| match argument {
                Argument::Table(table) => self.addresses(table).map(Some),
                _ => Ok(None),
            })
            .collect::<Result<_, _>>()?;
        let stream = match (&self.recorder, self.is_recording) {
            (Some(recorder), true) => recorder,
            _ => &self.stream,
        };
        let mut launch = stream.launch_builder(&function);
        for (argument, table) in arguments.iter().zip(&tables) {
            if let Some(table) = table {
                launch.arg(table);
                continue;
            }
            match argument {
                Argument::Memory(memory) => launch.arg(&memory.0),
                Argument::Table(_) | Argument::Null => launch.arg(&0u64),
                Argument::U32(value) => launch.arg(value),
                Argument::U64(value) => launch.arg(value),
                Argument::F32(value) => launch.arg(value),
            };
        }
        // SAFETY: `Kernels` gives each kernel the arguments of the source, with sizes that it has checked;
        // the tests run the same calls on a machine that checks number, kinds and bounds.
        unsafe { launch.launch(config) }.map(drop).map_err(failed)
    }

    fn product(&mut self, product: &Product<'_, DevicePiece>) -> Result<bool, Error> {
        self.runs()?;
        match self.library.get_or_init(|| Library::open(&self.stream)) {
            Some(library) => library.product(product, &self.stream),
            None => Ok(false),
        }
    }

    fn landing(&mut self, bytes: usize) -> Result<Option<PinnedLanding>, Error> {
        // What copies need is made here, where it may be refused: they do without then.
        beside(&self.context, &mut self.copies).map_err(no_copies)?;
        if self.near.is_none() {
            self.near = Some(PinnedLanding::new(&self.context, &self.answers, NEAR)?);
        }
        PinnedLanding::new(&self.context, &self.answers, bytes).map(Some)
    }

    fn begin_read(&mut self, from: &[(&DevicePiece, usize)], into: &mut PinnedLanding) -> Result<(), Error> {
        self.runs()?;
        let nothing = || Error::Device("it does not copy beside its work".into());
        let copies = self.copies.as_ref().ok_or_else(nothing)?;
        into.worked.record(&self.stream).map_err(failed)?;
        copies.wait(&into.worked).map_err(failed)?;
        if let Some(before) = &self.copied {
            self.stream.wait(before).map_err(failed)?;
        }
        // Also where it fails: a part may have been begun.
        self.copied = Some(into.arrived.clone());
        into.copy(from, copies)
    }

    fn settle(&mut self) -> Result<(), Error> {
        self.give_back()
    }
}

impl Capture for Device {
    type Graph = Graph;

    fn begin_capture(&mut self) -> Result<(), Error> {
        let recorder = beside(&self.context, &mut self.recorder)?;
        // Other threads may do what they like meanwhile.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        recorder.begin_capture(mode).map_err(failed)?;
        self.is_recording = true;
        Ok(())
    }

    fn end_capture(&mut self) -> Result<Graph, Error> {
        self.is_recording = false;
        let nothing = || Error::Device("no launches were recorded".into());
        // After a failure it is not used again.
        let recorder = self.recorder.take().ok_or_else(nothing)?;
        let graph = recorder
            .end_capture(CUgraphInstantiate_flags(0))
            .map_err(failed)?;
        self.recorder = Some(recorder);
        let recorded = graph.ok_or_else(nothing)?;
        let context = self.context.clone();
        Ok(Graph { recorded, context })
    }

    fn replay(&mut self, graph: &Graph) -> Result<(), Error> {
        self.runs()?;
        // A failure that was kept for the next call is told as such, before the graph is given.
        self.context.check_err().map_err(failed)?;
        bind(&self.context).map_err(failed)?;
        let executable = graph.recorded.cu_graph_exec();
        // SAFETY: the graph is there, and so is all memory that its launches name: `Graphs` has compared
        // that.
        let launched = unsafe { driver::result::graph::launch(executable, self.stream.cu_stream()) };
        // Where it has no memory for the graph itself, nothing of it has started.
        launched.map_err(failed)
    }
}

fn fits(bytes: usize, memory: &CudaSlice<u8>) -> Result<(), Error> {
    if bytes <= memory.len() {
        Ok(())
    } else {
        Err(surety_exact::ArithmeticError::Shape.into())
    }
}

fn too_large() -> Error {
    surety_exact::ArithmeticError::Shape.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Whatever it was asked for: others have its memory, and may end.
    #[test]
    fn a_driver_without_memory_is_no_device_that_failed() {
        let error = failed(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
        assert!(error.is_memory(), "{error}");
        let told = error.to_string();
        assert!(told.starts_with("the device has no memory left"), "{told}");
    }

    #[test]
    #[ignore = "needs libnvrtc"]
    fn the_kernels_compile() {
        for target in [TARGET, TARGET_AMPERE] {
            let ptx = compile_anew(target).map(|ptx| ptx.to_src());
            assert!(
                ptx.is_ok_and(|ptx| ptx.contains(".entry attend(")),
                "no kernels came out"
            );
        }
    }

    /// Neither is the compiler looked for a second time, nor asked.
    #[test]
    fn what_was_compiled_is_not_compiled_again() {
        let known = "a target that no compiler knows";
        let ptx = Ptx::from_src("compiled before");
        COMPILED.lock().unwrap().insert(known, ptx);
        let again = compile(known).map(|ptx| ptx.to_src());
        assert_eq!(again.as_deref(), Ok("compiled before"));
        assert!(compile("another such").is_err());
        assert_eq!(COMPILED.lock().unwrap().len(), 1, "failures are not kept");
    }
}
