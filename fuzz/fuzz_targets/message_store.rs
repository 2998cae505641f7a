//! Directories of the message store that were damaged or made by somebody else: a right one in which one file is replaced
//! by the input, or has bytes of it overwritten. It is read, or refused with a reason. Checksums are taken as right here,
//! as no fuzzer could guess one.
//!
//! The first byte chooses the file and how; for overwriting, the next two say where.
#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tidemark_store::messages::{Message, Messages, Tree, TreeOptions, TreeReader};
use tidemark_store::{Durability, StoreError};

struct Right {
    dir: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

fn right() -> &'static Right {
    static RIGHT: OnceLock<Right> = OnceLock::new();
    RIGHT.get_or_init(|| {
        let dir = std::env::temp_dir().join(format!("tidemark-fuzz-messages-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let options = TreeOptions { table_bytes: 4096, ..TreeOptions::default() };
        let store = Tree::open(&dir, options).expect("a store");
        let is_run = |store: &Tree| store.metrics().own.iter().any(|own| own.name == "runs" && own.value > 0);
        for time_ms in 0.. {
            if is_run(&store) && time_ms % 100 == 50 {
                break;
            }
            // what waits when the store is closed is kept
            let payload = "x".repeat(40).into();
            drop(store.add(Message { user: time_ms % 3, time_ms, kind: *b"ABC", payload }));
        }
        drop(store);
        let names = std::fs::read_dir(&dir).expect("the store's directory");
        let mut files: Vec<_> = names
            .map(|name| name.expect("a name").path())
            .filter(|path| !path.ends_with("lock"))
            .map(|path| (path.clone(), std::fs::read(path).expect("a file of the store")))
            .collect();
        files.sort();
        Right { dir, files }
    })
}

fn read(right: &Right, durability: Durability) -> Result<(), StoreError> {
    let reader = TreeReader::open(&right.dir, durability)?;
    reader.count()?;
    (0..reader.parts()).flat_map(|part| reader.payloads(part)).try_for_each(|payload| payload.map(drop))
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
    std::fs::write(file, &bytes).expect("a temporary file");
    for durability in [Durability::Synced, Durability::Buffered] {
        if let Err(error) = read(right, durability) {
            assert!(error.to_string().contains("tidemark-fuzz-messages"), "{error}");
        }
    }
    std::fs::write(file, original).expect("a temporary file");
});
