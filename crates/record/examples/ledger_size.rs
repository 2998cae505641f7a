//! What a ledger takes: bytes on disk, memory while it is written, read and searched, and time.
//!
//! `cargo run --release --example ledger_size -- 100 8 100`: millions of writes, driving threads, and one write in so
//! many that is not acknowledged. Answers come in another order than they were sent, a thousand at a time; the store
//! holds them in yet another.

use std::time::Instant;

use tidemark_record::ledger::{Entry, Ledger, LedgerWriter, Part, Search};

/// Requests that a thread has under way.
const UNDER_WAY: u64 = 1_000;
/// Step from one of them to the next in the order of their answers, a prime above their number.
const ANSWER_STRIDE: u64 = 1_009;
/// Writes of a thread each second.
const EACH_SECOND: u64 = 50_000;
/// Step from one write to the next in the order in which the store shows a thread's, prime to any number of them.
const STRIDE: u64 = 1_000_003;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |index, default| -> Result<u64, std::num::ParseIntError> {
        std::env::args().nth(index).map_or(Ok(default), |text| text.parse())
    };
    let (millions, threads, failing) = (argument(1, 100)?, argument(2, 8)?.max(1), argument(3, 100)?.max(1));
    let writes = millions * 1_000_000 / threads;
    let dir = std::env::temp_dir().join(format!("tidemark-ledger-size-{}", std::process::id()));
    let fails = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15).is_multiple_of(failing);

    let begin = Instant::now();
    let mut writer = LedgerWriter::create(&dir)?;
    let mut parts: Vec<Part> = (0..threads).map(|thread| Part::new(thread as u16)).collect();
    let (mut used, mut second, mut sent) = (Part::default(), 0, 0);
    while sent < writes {
        second += 1;
        let until = writes.min(sent + EACH_SECOND);
        for part in &mut parts {
            for from in (sent..until).step_by(UNDER_WAY as usize) {
                let batch = UNDER_WAY.min(until - from);
                for _ in 0..batch {
                    part.enter();
                }
                let shuffled = (0..batch).map(|at| from + at * ANSWER_STRIDE % batch);
                shuffled.filter(|number| !fails(*number)).for_each(|number| part.acknowledge(number));
            }
            let handed = part.hand_over(std::mem::take(&mut used));
            writer.add(&handed, second * 1_000_000)?;
            used = handed;
        }
        sent = until;
    }
    let files = std::fs::read_dir(dir.join("ledger"))?.map(|file| Ok(file?.metadata()?.len()));
    let bytes: u64 = files.sum::<std::io::Result<u64>>()?;
    println!("written in {:.1?}: {bytes} bytes; {}", begin.elapsed(), memory());
    drop((writer, parts, used));

    let begin = Instant::now();
    let ledger = Ledger::read(&dir)?;
    println!("read in {:.1?}: {} acknowledged; {}", begin.elapsed(), ledger.acknowledged(), memory());

    let begin = Instant::now();
    let mut search = Search::new(&ledger);
    for thread in 0..threads as u16 {
        for at in 0..writes {
            search.found(Entry { thread, number: at * STRIDE % writes });
        }
    }
    let findings = search.findings();
    println!(
        "searched in {:.1?}: {} found, {} lost; {}",
        begin.elapsed(),
        findings.found,
        findings.lost,
        memory()
    );
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// The most memory that was resident by now, where the system says.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    most.map_or_else(String::new, |most| format!("at most {} resident", most.trim()))
}
