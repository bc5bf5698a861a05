//! What concerns the process as a whole.

use std::env;

const THREADS_OF_A_PRODUCT: &str = "RAYON_NUM_THREADS";

/// Call it first in `main`, while there is no other thread. Changes speed only, no result.
///
/// Unless this variable is set, the tensor library counts the cores before every product, by reading
/// `/proc/cpuinfo`: 25 us each on 2 cores, and more the more there are. One thread a product is right, because
/// [`crate::EnginePool`] has as many items in work as it has threads.
pub fn prepare_process() {
    if env::var_os(THREADS_OF_A_PRODUCT).is_none() {
        env::set_var(THREADS_OF_A_PRODUCT, "1");
    }
}
