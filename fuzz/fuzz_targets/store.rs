//! Directories of the embedded engine that were damaged or made by somebody else: right ones (messages, and an airline's
//! tables in memory with a snapshot) in which one file is replaced by the input, or has bytes of it overwritten. They are
//! read, or refused with a reason. Checksums are taken as right here, as no fuzzer could guess one.
//!
//! The first byte chooses the file and how; for overwriting, the next two say where.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tidemark_store::bookings::{Booking, Bookings};
use tidemark_store::customers::{Customer, Customers};
use tidemark_store::messages::{Message, MessageId, Messages, Tree, TreeOptions, TreeReader};
use tidemark_store::sessions::{Session, Sessions};
use tidemark_store::{Durability, Embedded, StoreError};

struct Right {
    messages: PathBuf,
    airline: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

fn messages(dir: &Path) {
    let options = TreeOptions { table_bytes: 4096, ..TreeOptions::default() };
    let store = Tree::open(dir, options).expect("a store");
    let is_run = |store: &Tree| store.metrics().own.iter().any(|own| own.name == "runs" && own.value > 0);
    for time_ms in 0.. {
        if is_run(&store) && time_ms % 100 == 50 {
            break;
        }
        // what waits when the store is closed is kept
        let payload = "x".repeat(40).into();
        drop(store.add(Message { user: time_ms % 3, time_ms, kind: *b"ABC", id: MessageId::NONE, payload }));
    }
}

fn airline(dir: &Path) {
    let store = Embedded::open(dir, Durability::Synced).expect("a store");
    let has_snapshot = || names(dir).iter().any(|path| path.to_string_lossy().contains("snapshot-"));
    for id in 0u128.. {
        if has_snapshot() && id % 100 == 50 {
            break;
        }
        let customer: std::sync::Arc<str> = format!("uid{}", id % 5).into();
        let session = Session { id: id % 20, customer_id: customer.clone(), created_ms: 0, expires_ms: 1 };
        let flight = "AA280".into();
        let booking = Booking { id, customer_id: customer.clone(), flight_id: 7, flight_segment_id: flight, booked_ms: 0 };
        drop(store.create(session));
        drop(store.put(Customer { id: customer.to_string(), ..Customer::default() }));
        drop(store.add(&[booking]));
        drop(store.cancel(&customer, id / 2));
        drop(Sessions::remove(&*store, id / 3));
    }
}

fn names(dir: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(dir).expect("the store's directory");
    names.map(|name| name.expect("a name").path()).filter(|path| !path.ends_with("lock")).collect()
}

fn right() -> &'static Right {
    static RIGHT: OnceLock<Right> = OnceLock::new();
    RIGHT.get_or_init(|| {
        let dir = std::env::temp_dir().join(format!("tidemark-fuzz-store-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let right = Right { messages: dir.join("messages"), airline: dir.join("airline"), files: Vec::new() };
        messages(&right.messages);
        airline(&right.airline);
        let paths = [names(&right.messages), names(&right.airline)].concat();
        let mut files: Vec<_> =
            paths.into_iter().map(|path| (path.clone(), std::fs::read(path).expect("a file of the store"))).collect();
        files.sort();
        Right { files, ..right }
    })
}

fn read(right: &Right, durability: Durability) -> Result<(), StoreError> {
    let reader = TreeReader::open(&right.messages, durability)?;
    reader.count()?;
    (0..reader.parts()).flat_map(|part| reader.payloads(part)).try_for_each(|payload| payload.map(drop))?;
    Embedded::open(&right.airline, durability).map(drop)
}

fuzz_target!(|data: &[u8]| {
    let right = right();
    let [choice, input @ ..] = data else { return };
    let (file, original) = &right.files[usize::from(choice >> 1) % right.files.len()];
    let bytes = match (choice & 1, input) {
        (1, [high, low, patch @ ..]) => {
            let mut bytes = original.clone();
            let at = usize::from(u16::from_be_bytes([*high, *low])) % bytes.len().max(1);
            let end = bytes.len().min(at + patch.len());
            bytes[at..end].copy_from_slice(&patch[..end - at]);
            bytes
        }
        _ => input.to_vec(),
    };
    for durability in [Durability::Synced, Durability::Buffered] {
        std::fs::write(file, &bytes).expect("a temporary file");
        if let Err(error) = read(right, durability) {
            assert!(error.to_string().contains("tidemark-fuzz-store"), "{error}");
        }
        // opening has begun another log
        names(&right.airline).iter().for_each(|path| std::fs::remove_file(path).expect("a file of the store"));
        let airline = right.files.iter().filter(|(path, _)| path.starts_with(&right.airline) || path == file);
        airline.for_each(|(path, bytes)| std::fs::write(path, bytes).expect("a temporary file"));
    }
});
