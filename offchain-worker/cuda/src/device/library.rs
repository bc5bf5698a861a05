//! The vendor's library for products. Our own kernels do without: it is for measurements.

use std::{ffi::c_void, sync::Arc};

use cudarc::{
    cublas::{
        self,
        sys::{
            cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cublasOperation_t, cublasStatus_t,
            cudaDataType,
        },
    },
    driver::{CudaContext, CudaStream, DevicePtr},
};

use super::{
    failed,
    memory::{DevicePiece, bind},
    too_large,
};
use crate::{Error, backend::Product};

/// The library on one device. `CudaBlas` panics when it is dropped and the device has vanished.
#[derive(Debug)]
pub(super) struct Library {
    handle: cublasHandle_t,
    context: Arc<CudaContext>,
}

// SAFETY: the library asks that a handle is used by one thread at a time: it is reached by its device alone.
unsafe impl Send for Library {}

impl Library {
    /// Whether it is found.
    pub(super) fn is_present() -> bool {
        // SAFETY: looking for a library and loading it; what is found under these names is trusted with the
        // machine.
        unsafe { cublas::sys::is_culib_present() }
    }

    /// The library, where it is found and takes this device, of whose memory it takes a part.
    pub(super) fn open(stream: &CudaStream) -> Option<Self> {
        if !Self::is_present() {
            return None;
        }
        let context = stream.context().clone();
        bind(&context).ok()?;
        let handle = cublas::result::create_handle().ok()?;
        let library = Self { handle, context };
        // SAFETY: handle and stream are of this context, which both outlive.
        unsafe { cublas::result::set_stream(handle, stream.cu_stream().cast()) }.ok()?;
        Some(library)
    }

    /// Starts a product, or says that the library has none such.
    pub(super) fn product(
        &self,
        product: &Product<'_, DevicePiece>,
        stream: &CudaStream,
    ) -> Result<bool, Error> {
        bind(&self.context).map_err(failed)?;
        let (one, zero) = (1i32, 0i32);
        let (a, _a) = product.a.0.device_ptr(stream);
        let (b, _b) = product.b.0.device_ptr(stream);
        let (c, _c) = product.c.0.device_ptr(stream);
        // SAFETY: the addresses are of live memory that `Kernels` made as large as these numbers say; the two
        // factors are read before the call returns.
        let status = unsafe {
            cublas::sys::cublasGemmStridedBatchedEx(
                self.handle,
                cublasOperation_t::CUBLAS_OP_T,
                cublasOperation_t::CUBLAS_OP_N,
                int(product.m)?,
                int(product.n)?,
                int(product.k)?,
                (&raw const one).cast(),
                a as *const c_void,
                cudaDataType::CUDA_R_8I,
                int(product.a_row)?,
                product.a_stride.into(),
                (b + product.b_from as u64) as *const c_void,
                cudaDataType::CUDA_R_8I,
                int(product.b_row)?,
                product.b_stride.into(),
                (&raw const zero).cast(),
                c as *mut c_void,
                cudaDataType::CUDA_R_32I,
                int(product.c_row)?,
                i64::try_from(product.c_stride).map_err(|_| too_large())?,
                int(product.batch)?,
                cublasComputeType_t::CUBLAS_COMPUTE_32I,
                cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        };
        match status {
            cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(true),
            // This device or version has no such product: our own kernel has.
            cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED | cublasStatus_t::CUBLAS_STATUS_ARCH_MISMATCH => {
                Ok(false)
            }
            cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED => Err(Error::OutOfMemory(0)),
            other => Err(Error::Device(format!("the product library: {other:?}"))),
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // Where that fails nothing can be done about it: what it held goes with the context.
        bind(&self.context).ok();
        // SAFETY: the handle is there, and nobody else has it.
        unsafe { cublas::result::destroy_handle(self.handle) }.ok();
    }
}

fn int(value: u32) -> Result<i32, Error> {
    i32::try_from(value).map_err(|_| too_large())
}
