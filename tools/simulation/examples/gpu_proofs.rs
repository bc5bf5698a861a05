//! Prints what `surety_simulation::gpu_proofs` finds.

fn main() {
    println!("{:#}", surety_simulation::gpu_proofs::report(2_609, 4_000));
}
