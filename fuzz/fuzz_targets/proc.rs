//! The kernel's files: odd content gives less, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/lab/src/proc.rs"]
mod proc;

#[allow(dead_code)]
#[path = "../../crates/drive/src/observation/run_queue.rs"]
mod run_queue;

fuzz_target!(|text: &str| {
    std::hint::black_box((
        proc::process_stat(text),
        proc::keyed(text, "VmHWM"),
        proc::machine_stat(text),
        proc::memory_used(text),
        proc::network_bytes(text),
        proc::process_ids(text).count(),
        proc::load_average(text),
        proc::cpu_model(text),
        proc::os_name(text),
        run_queue::waited_ns(text.as_bytes()),
        run_queue::sleeps(text.as_bytes()),
    ));
});
