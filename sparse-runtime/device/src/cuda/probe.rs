//! Probing for GPUs, without a panic if there is none.

use super::CudaError;
use super::error::refused;
use cudarc::driver::{result, sys};

/// The driver's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaInfo {
    /// The newest CUDA version that the driver serves: major and minor.
    pub driver_version: (u32, u32),
    /// The GPUs, by ordinal; at least one.
    pub devices: Vec<CudaDeviceInfo>,
}

/// One GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaDeviceInfo {
    /// Its name.
    pub name: String,
    /// Its compute capability: major and minor.
    pub compute_capability: (u32, u32),
    /// Its memory in bytes.
    pub memory_bytes: u64,
}

/// Asks the driver for the GPUs. The first call loads the driver's library, some 100 ms.
///
/// # Errors
///
/// [`CudaError`], with the missing part and what to do.
pub fn probe() -> Result<CudaInfo, CudaError> {
    // Before any other call: those panic where the library is missing.
    // SAFETY: loads a shared library by the driver's name and nothing else, which runs the
    // library's initialisers, as every use of CUDA does.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::LibraryMissing);
    }
    result::init().map_err(refused("cuInit"))?;

    let mut version = 0;
    // SAFETY: the library is there, and the call writes one `int` to the address given, which is
    // one.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .map_err(refused("cuDriverGetVersion"))?;
    let version = version.unsigned_abs();

    let count = result::device::get_count().map_err(refused("cuDeviceGetCount"))?;
    if count == 0 {
        return Err(CudaError::NoDevice);
    }
    Ok(CudaInfo {
        // 13010 is 13.1
        driver_version: (version / 1000, version % 1000 / 10),
        devices: (0..count).map(device).collect::<Result<_, _>>()?,
    })
}

fn device(ordinal: i32) -> Result<CudaDeviceInfo, CudaError> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };

    let device = result::device::get(ordinal).map_err(refused("cuDeviceGet"))?;
    let attribute = |attribute| {
        // SAFETY: `device` came from `cuDeviceGet` of this process, after `cuInit`.
        unsafe { result::device::get_attribute(device, attribute) }
            .map(i32::unsigned_abs)
            .map_err(refused("cuDeviceGetAttribute"))
    };
    Ok(CudaDeviceInfo {
        name: result::device::get_name(device).map_err(refused("cuDeviceGetName"))?,
        compute_capability: (attribute(MAJOR)?, attribute(MINOR)?),
        // SAFETY: as above.
        memory_bytes: unsafe { result::device::total_mem(device) }
            .map_err(refused("cuDeviceTotalMem"))? as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_never_panics_and_says_what_is_missing() {
        match probe() {
            Ok(info) => {
                assert!(!info.devices.is_empty());
                assert!(info.devices.iter().all(|device| device.memory_bytes > 0));
            }
            Err(error) => {
                assert!(error.to_string().contains("driver"), "{error}");
                assert_eq!(probe(), Err(error));
            }
        }
    }
}
