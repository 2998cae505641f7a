use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use proptest::prelude::*;

use super::*;

/// A run of several threads as plain sets, and the same as a ledger in a directory.
fn written(threads: &[(Vec<bool>, usize)]) -> (tempfile::TempDir, BTreeSet<Entry>, BTreeSet<Entry>) {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LedgerWriter::create(dir.path()).unwrap();
    let (mut sent, mut acknowledged) = (BTreeSet::new(), BTreeSet::new());
    for (thread, (writes, every)) in threads.iter().enumerate() {
        let mut part = Part::new(thread as u16);
        for (index, answered) in writes.iter().enumerate() {
            let entry = part.enter();
            sent.insert(entry);
            if *answered {
                part.acknowledge(entry.number);
                acknowledged.insert(entry);
            }
            if index % every == 0 {
                let entry_time = index as u64 + 1;
                writer.add(&part, entry_time).unwrap();
                part.clear();
            }
        }
        writer.add(&part, writes.len() as u64 + 1).unwrap();
    }
    (dir, sent, acknowledged)
}

proptest! {
    #[test]
    fn findings_are_what_plain_sets_say(
        threads in prop::collection::vec((prop::collection::vec(any::<bool>(), 0..200), 1..50usize), 1..4),
        held in prop::collection::vec((0..4u16, 0..220u64, any::<bool>()), 0..400),
        split in 0..400usize,
    ) {
        let (dir, sent, acknowledged) = written(&threads);
        let ledger = Ledger::read(dir.path()).unwrap();
        prop_assert_eq!(ledger.sent(), sent.len() as u64);
        prop_assert_eq!(ledger.acknowledged_entries().collect::<BTreeSet<_>>(), acknowledged.clone());

        let (mut one, mut other) = (Search::new(&ledger), Search::new(&ledger));
        let mut times = BTreeMap::<Entry, u64>::new();
        let mut changed = BTreeSet::new();
        let mut whole = BTreeSet::new();
        let mut foreign = 0;
        for (index, &(thread, number, right)) in held.iter().enumerate() {
            let entry = Entry { thread, number };
            let search = if index < split { &mut one } else { &mut other };
            if right { search.found(entry) } else { search.found_different(entry) }
            if sent.contains(&entry) || right {
                *times.entry(entry).or_default() += 1;
                if right { whole.insert(entry) } else { changed.insert(entry) };
            } else {
                foreign += 1;
            }
        }
        one.merge(other);
        let findings = one.findings();
        let seen: BTreeSet<Entry> = times.keys().copied().collect();
        let lost: Vec<Entry> = acknowledged.difference(&whole).copied().collect();
        prop_assert_eq!(findings.acknowledged, acknowledged.len() as u64);
        prop_assert_eq!(findings.found, acknowledged.intersection(&whole).count() as u64);
        prop_assert_eq!(findings.changed, lost.iter().filter(|entry| changed.contains(entry)).count() as u64);
        prop_assert_eq!(findings.lost, lost.len() as u64);
        prop_assert_eq!(&findings.lost_examples[..], &lost[..lost.len().min(EXAMPLES)]);
        prop_assert_eq!(findings.duplicated, times.values().map(|n| n - 1).sum::<u64>());
        prop_assert_eq!(findings.unacknowledged_found, seen.difference(&acknowledged).count() as u64);
        prop_assert_eq!(findings.different, changed.len() as u64);
        prop_assert_eq!(findings.foreign, foreign);
    }

    #[test]
    fn a_file_cut_off_anywhere_keeps_what_stands_before(
        writes in prop::collection::vec(any::<bool>(), 1..300), cut in 0.0..1.0f64,
    ) {
        let (dir, _, acknowledged) = written(&[(writes, 20)]);
        let whole = fs::read(dir.path().join("ledger/thread-0.log")).unwrap();
        let cut = (whole.len() as f64 * cut) as usize;
        let mut ledger = Ledger::default();
        ledger.take_file(&whole[..cut]).unwrap();
        prop_assert!(ledger.acknowledged_entries().all(|entry| acknowledged.contains(&entry)));
        prop_assert!(ledger.torn() <= 1);
        let mut all = Ledger::default();
        all.take_file(&whole).unwrap();
        prop_assert_eq!(all.acknowledged(), acknowledged.len() as u64);
        prop_assert_eq!(all.torn(), 0);
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..400), honest in any::<bool>()) {
        if honest {
            bytes.splice(0..0, *b"tidemkL1");
        }
        let _ = Ledger::default().take_file(&bytes);
    }

    #[test]
    fn any_body_with_the_right_checksum_is_read_or_refused(
        bitmap in prop::collection::vec(any::<u8>(), 0..200), honest in any::<bool>(), sent in 0..1_000u64,
        numbers in prop::collection::btree_set(0..2_000u64, 0..50), at in any::<prop::sample::Index>(),
    ) {
        let mut body = [7u64.to_le_bytes(), sent.to_le_bytes()].concat();
        if honest {
            roaring::RoaringTreemap::from_iter(&numbers).serialize_into(&mut body).unwrap();
            let at = 16 + at.index(body.len() - 16);
            bitmap.iter().take(2).zip(at..).for_each(|(byte, at)| if at < body.len() { body[at] = *byte });
        } else {
            body.extend_from_slice(&bitmap);
        }
        let mut file = b"tidemkL1\x03\0".to_vec();
        file.extend_from_slice(&(body.len() as u32).to_le_bytes());
        file.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
        file.extend_from_slice(&body);
        let mut ledger = Ledger::default();
        if ledger.take_file(&file).is_ok() {
            prop_assert!(ledger.acknowledged_entries().all(|entry| ledger.was_sent(entry)));
        }
    }

    #[test]
    fn a_changed_byte_is_noticed_or_cuts_off(writes in prop::collection::vec(any::<bool>(), 1..300), at in 12usize.., bit in 0..8u8) {
        let (dir, _, acknowledged) = written(&[(writes, 20)]);
        let mut bytes = fs::read(dir.path().join("ledger/thread-0.log")).unwrap();
        let at = 12 + at % (bytes.len() - 12);
        bytes[at] ^= 1 << bit;
        let mut ledger = Ledger::default();
        ledger.take_file(&bytes).unwrap();
        // a length that reaches behind the end is a torn end as far as one can see
        prop_assert_eq!(ledger.torn() + u64::from(ledger.damage().is_some()), 1);
        prop_assert!(ledger.acknowledged_entries().all(|entry| acknowledged.contains(&entry)));
    }

    #[test]
    fn damage_that_whole_frames_follow_is_no_torn_end(
        writes in prop::collection::vec(any::<bool>(), 100..300), at in 0usize..60, bit in 0..8u8,
    ) {
        let (dir, ..) = written(&[(writes, 20)]);
        let path = dir.path().join("ledger/thread-0.log");
        let mut bytes = fs::read(&path).unwrap();
        bytes[12 + at] ^= 1 << bit;
        fs::write(&path, bytes).unwrap();
        let ledger = Ledger::read(dir.path()).unwrap();
        let damage = ledger.damage().unwrap_or_default().to_owned();
        prop_assert!(damage.starts_with("thread-0.log is damaged at byte "), "{}", damage);
    }

    #[test]
    fn an_entry_is_its_text(thread in 0..THREADS_MAX, number in 0..NUMBERS_MAX) {
        let entry = Entry { thread, number };
        let digits = entry.digits();
        prop_assert_eq!(entry.to_string(), std::str::from_utf8(&digits).unwrap());
        prop_assert_eq!(entry.to_string().parse(), Ok(entry));
    }

    #[test]
    fn what_is_no_entry_is_refused(text in "\\PC{0,20}") {
        let digits = text.len() == ENTRY_DIGITS && text.bytes().all(|b| b.is_ascii_digit());
        prop_assert_eq!(text.parse::<Entry>().is_ok(), digits);
    }
}

#[test]
fn a_missing_file_is_noticed() {
    for gone in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = LedgerWriter::for_threads(dir.path(), 3).unwrap();
        let mut part = Part::new(1);
        let entry = part.enter();
        part.acknowledge(entry.number);
        writer.add(&part, 1).unwrap();
        let ledger = Ledger::read(dir.path()).unwrap();
        assert_eq!((ledger.damage(), ledger.acknowledged()), (None, 1));
        let name = format!("thread-{gone}.log");
        fs::remove_file(dir.path().join("ledger").join(&name)).unwrap();
        let ledger = Ledger::read(dir.path()).unwrap();
        assert_eq!(ledger.damage(), Some(format!("{name} is missing").as_str()));
    }
    let dir = tempfile::tempdir().unwrap();
    LedgerWriter::create(dir.path()).unwrap();
    assert!(Ledger::read(dir.path()).unwrap().damage().is_some(), "none at all");
}

#[test]
fn what_another_run_left_under_the_same_number_is_not_what_was_sent() {
    let (dir, _, acknowledged) = written(&[(vec![true; 3], 1)]);
    let ledger = Ledger::read(dir.path()).unwrap();
    let mut search = Search::new(&ledger);
    for entry in &acknowledged {
        search.found_different(*entry);
    }
    search.found(Entry { thread: 0, number: 2 });
    let findings = search.findings();
    assert_eq!((findings.found, findings.lost, findings.changed, findings.different), (1, 2, 2, 3));
}

#[test]
fn a_part_takes_back_what_could_not_be_handed_over() {
    let mut part = Part::new(0);
    let first = part.enter();
    part.acknowledge(first.number);
    let untaken = part.hand_over(Part::default());
    let second = part.enter();
    part.acknowledge(second.number);
    part.take_back(untaken);
    let dir = tempfile::tempdir().unwrap();
    LedgerWriter::create(dir.path()).unwrap().add(&part.hand_over(Part::default()), 1).unwrap();
    let ledger = Ledger::read(dir.path()).unwrap();
    assert_eq!(ledger.acknowledged_entries().collect::<Vec<_>>(), [first, second]);
}

/// Ten million writes take less than a tenth of the hundred megabytes that a ledger of a hundred million may, also when
/// every third fails: 65,536 numbers in a row have a container of their own.
#[test]
fn ten_million_entries_fit() {
    let mut own = roaring::RoaringTreemap::new();
    let dense = (0..5_000_000u64).chain((5_000_000..10_000_000).filter(|n| n % 3 != 0));
    own.append(dense).unwrap();
    assert!(own.serialized_size() < 2_000_000, "{} bytes", own.serialized_size());
}

#[test]
fn a_write_is_known_by_when_it_was_sent() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LedgerWriter::create(dir.path()).unwrap();
    let mut part = Part::new(2);
    for second in 1..=3 {
        for _ in 0..10 {
            part.enter();
        }
        writer.add(&part, second * 1_000_000).unwrap();
    }
    let ledger = Ledger::read(dir.path()).unwrap();
    let between = |number| ledger.sent_between(Entry { thread: 2, number });
    assert_eq!(between(0), Some((0, 1_000_000)));
    assert_eq!(between(9), Some((0, 1_000_000)));
    assert_eq!(between(10), Some((1_000_000, 2_000_000)));
    assert_eq!(between(29), Some((2_000_000, 3_000_000)));
    assert_eq!(between(30), None);
    assert_eq!(ledger.sent_between(Entry { thread: 0, number: 0 }), None);
}

#[test]
fn a_part_goes_on_in_a_used_buffer() {
    let mut part = Part::new(0);
    let first = part.enter();
    part.acknowledge(first.number);
    let handed = part.hand_over(Part::default());
    assert_eq!((handed.sent(), part.sent()), (1, 1));
    let second = part.enter();
    part.acknowledge(second.number);
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LedgerWriter::create(dir.path()).unwrap();
    let all = [handed, part.hand_over(Part::default())];
    all.iter().for_each(|part| writer.add(part, 1).unwrap());
    let ledger = Ledger::read(dir.path()).unwrap();
    assert_eq!(ledger.acknowledged_entries().collect::<Vec<_>>(), [first, second]);
}

#[test]
fn lost_writes_are_told_by_the_second_in_which_they_were_sent() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LedgerWriter::create(dir.path()).unwrap();
    for thread in 0..2 {
        let mut part = Part::new(thread);
        for second in 1..=3 {
            for _ in 0..10 {
                let entry = part.enter();
                part.acknowledge(entry.number);
            }
            writer.add(&part, second * 1_000_000 + u64::from(thread)).unwrap();
        }
    }
    let ledger = Ledger::read(dir.path()).unwrap();
    let mut search = Search::new(&ledger);
    for thread in 0..2 {
        (0..30).filter(|n| !(8..13).contains(n)).for_each(|number| search.found(Entry { thread, number }));
    }
    let when: Vec<_> = search.lost_when().iter().map(|w| (w.from_us, w.to_us, w.lost)).collect();
    assert_eq!(when, [(0, 1_000_001, 4), (1_000_000, 2_000_001, 6)]);
}

/// A write that is to be in several places is found once it was seen in all of them, however a search is cut.
#[test]
fn copies_are_counted_over_all_searches() {
    let dir = tempfile::tempdir().unwrap();
    let mut part = Part::new(1);
    let entries: Vec<_> = (0..5).map(|_| part.enter()).collect();
    (0..4).for_each(|number| part.acknowledge(number));
    LedgerWriter::create(dir.path()).unwrap().add(&part, 1_000_000).unwrap();
    let ledger = Ledger::read(dir.path()).unwrap();
    // 0 is in all three, 1 in two of three, 2 in one too many, 3 in the only one, 4 never acknowledged and incomplete
    let seen = [0, 1, 2, 0, 2, 4, 3, 1, 0, 2];
    let wanted = [3, 3, 2, 1, 2];
    for cut in 0..=seen.len() {
        for again in cut..=seen.len() {
            let search_of = |some: &[usize]| {
                let mut search = Search::new(&ledger);
                some.iter().for_each(|index| search.found_copy(entries[*index], wanted[*index]));
                search
            };
            let mut search = search_of(&seen[..cut]);
            search.merge(search_of(&seen[cut..again]));
            search.merge(search_of(&seen[again..]));
            let findings = search.findings();
            assert_eq!((findings.found, findings.lost, findings.incomplete), (3, 1, 1), "{cut} {again}");
            assert_eq!((findings.duplicated, findings.unacknowledged_found), (1, 1), "{cut} {again}");
            assert_eq!(
                (findings.lost_examples, findings.duplicated_examples),
                (vec![entries[1]], vec![entries[2]])
            );
        }
    }
}
