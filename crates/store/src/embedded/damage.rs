//! Whatever happens to the files of a store: either everything acknowledged is there, or the start says what is wrong.

use std::path::Path;

use proptest::prelude::*;

use super::story::{State, copy, killed, names_in, open};
use crate::durability::Durability;
use crate::error::StoreError;

const STEPS: u64 = 45;

/// What a start says, if it does not find everything.
fn complaint(dir: &Path, durability: Durability) -> Option<String> {
    match open(dir, durability, None) {
        Ok(store) if State::of(&store, STEPS) == State::after(STEPS) => None,
        Ok(store) => {
            let recovered = store.recovered();
            assert!(durability != Durability::Synced && recovered.is_damaged, "{recovered:?}");
            Some(format!("{} changes are lost", recovered.missing))
        }
        Err(error @ StoreError::Unreadable { .. }) => Some(error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

/// Does something to each file of a killed store in turn, starts it with each durability, and looks at what is said.
fn with_each_file(mut damages: impl FnMut(&str, &[u8]) -> Vec<Option<Vec<u8>>>, must_complain: bool) {
    let whole = killed(STEPS);
    assert_eq!(complaint(copy(whole.path()).path(), Durability::Synced), None);
    for name in names_in(whole.path()) {
        let bytes = std::fs::read(whole.path().join(&name)).unwrap();
        for (number, damage) in damages(&name, &bytes).into_iter().enumerate() {
            let durabilities: &[_] = if must_complain || number % 3 == 0 {
                &[Durability::Synced, Durability::Buffered]
            } else {
                &[Durability::Synced]
            };
            for &durability in durabilities {
                let dir = copy(whole.path());
                match &damage {
                    Some(content) => std::fs::write(dir.path().join(&name), content).unwrap(),
                    None => std::fs::remove_file(dir.path().join(&name)).unwrap(),
                }
                let said = complaint(dir.path(), durability);
                if durability == Durability::Synced {
                    let said = said.as_deref().unwrap_or_default();
                    assert!(!must_complain || said.contains(&name), "{name}, damage {number}: said {said:?}");
                }
            }
        }
    }
}

#[test]
fn a_changed_byte_is_told_with_its_file() {
    // Each byte in one of three ways, in turn.
    let flipped = |bytes: &[u8], at: usize| {
        let mut wrong = bytes.to_vec();
        wrong[at] ^= [0x01, 0xff, 0x80][at % 3];
        Some(wrong)
    };
    with_each_file(|_, bytes| (0..bytes.len()).map(|at| flipped(bytes, at)).collect(), false);
}

#[test]
fn a_changed_first_byte_is_told_with_file_and_place() {
    let wrong = |bytes: &[u8]| Some([&[!bytes[0]], &bytes[1..]].concat());
    with_each_file(|_, bytes| vec![wrong(bytes)], true);
}

#[test]
fn a_file_cut_short_is_told() {
    with_each_file(|_, bytes| (0..bytes.len()).map(|cut| Some(bytes[..cut].to_vec())).collect(), false);
}

#[test]
fn a_missing_file_is_told() {
    with_each_file(|_, _| vec![None], true);
}

#[test]
fn after_damage_the_store_goes_on_as_buffered_and_is_whole_again() {
    let dir = killed(STEPS);
    let last = names_in(dir.path()).into_iter().rfind(|name| name.starts_with("log-")).unwrap();
    let mut bytes = std::fs::read(dir.path().join(&last)).unwrap();
    let place = bytes.len() - 1;
    bytes[place] ^= 1;
    std::fs::write(dir.path().join(&last), bytes).unwrap();
    let said = complaint(dir.path(), Durability::Synced).unwrap();
    assert!(said.contains(&last) && said.contains("buffered") && said.contains("byte"), "{said}");
    assert_eq!(complaint(dir.path(), Durability::Buffered).unwrap(), "1 changes are lost");
    let store = open(dir.path(), Durability::Synced, None).unwrap();
    assert_eq!(State::of(&store, STEPS), State::after(STEPS - 1));
    super::story::take(&store, STEPS - 1).unwrap();
    drop(store);
    assert_eq!(complaint(dir.path(), Durability::Synced), None);
}

/// Something done to one of the files.
#[derive(Debug, Clone)]
enum Damage {
    Flip { at: prop::sample::Index, bits: u8 },
    Fill { at: prop::sample::Index, with: Vec<u8> },
    Zero { at: prop::sample::Index, bytes: usize },
    Cut { at: prop::sample::Index },
    Append { bytes: Vec<u8> },
    CopyOver { from: prop::sample::Index },
    Remove,
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    let bytes = prop::collection::vec(any::<u8>(), 1..200);
    prop_oneof![
        4 => (at(), 1..=255u8).prop_map(|(at, bits)| Damage::Flip { at, bits }),
        2 => (at(), bytes.clone()).prop_map(|(at, with)| Damage::Fill { at, with }),
        2 => (at(), 1..600usize).prop_map(|(at, bytes)| Damage::Zero { at, bytes }),
        2 => at().prop_map(|at| Damage::Cut { at }),
        1 => bytes.prop_map(|bytes| Damage::Append { bytes }),
        1 => at().prop_map(|from| Damage::CopyOver { from }),
        1 => Just(Damage::Remove),
    ]
}

/// Damages a file, if it is still there.
fn inflict(dir: &Path, names: &[String], file: &prop::sample::Index, damage: &Damage) {
    let path = dir.join(&names[file.index(names.len())]);
    let Ok(mut bytes) = std::fs::read(&path) else { return };
    let place = |at: &prop::sample::Index| at.index(bytes.len() + 1);
    match damage {
        Damage::Flip { at, bits } => {
            let at = place(at);
            bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bits);
        }
        Damage::Fill { at, with } => {
            let at = place(at);
            bytes.iter_mut().skip(at).zip(with).for_each(|(byte, other)| *byte = *other);
        }
        Damage::Zero { at, bytes: count } => {
            let at = place(at);
            bytes.iter_mut().skip(at).take(*count).for_each(|byte| *byte = 0);
        }
        Damage::Cut { at } => bytes.truncate(place(at)),
        Damage::Append { bytes: more } => bytes.extend_from_slice(more),
        Damage::CopyOver { from } => {
            bytes = std::fs::read(dir.join(&names[from.index(names.len())])).unwrap_or(bytes);
        }
        Damage::Remove => return std::fs::remove_file(path).unwrap(),
    }
    std::fs::write(path, bytes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_loses_anything_in_silence(
        damages in prop::collection::vec((any::<prop::sample::Index>(), damage()), 1..6),
        is_synced: bool,
    ) {
        static WHOLE: std::sync::LazyLock<tempfile::TempDir> = std::sync::LazyLock::new(|| killed(STEPS));
        let dir = copy(WHOLE.path());
        let names = names_in(dir.path());
        for (file, damage) in &damages {
            inflict(dir.path(), &names, file, damage);
        }
        // Where nothing is left, nothing can be missed.
        if !names_in(dir.path()).is_empty() {
            let durability = if is_synced { Durability::Synced } else { Durability::Buffered };
            complaint(dir.path(), durability);
        }
    }
}
