//! An index over stories in the memory of the process: for each word the stories that have it.
//!
//! Stories are numbered within segments of at most 65,536, so that two bytes name one: a story of 150 words takes some 300 bytes.
//! It is not stored; whoever opens it adds the stories that are. When it is full it forgets the oldest segment, and counts
//! that.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::answer::Answer;
use crate::feeds::Post;
use crate::metrics::{OwnMetric, StoreMetrics};
use crate::search::{Search, WORDS_MAX, each_word, words_of};

/// Stories of a segment.
const SEGMENT_STORIES: usize = 1 << 16;
/// What a word costs in a segment beside its stories, roughly.
const WORD_BYTES: usize = 150;
/// Of the bytes of an index a segment has this part at most, but for one story.
const PART: usize = 8;
/// Stories that a search looks at.
const LOOKED_AT_MAX: usize = 200_000;

#[derive(Default)]
struct Segment {
    /// Who has posted each story.
    posters: Vec<u64>,
    /// The stories that have a word, in order.
    stories: HashMap<Box<str>, Vec<u16>>,
    bytes: usize,
}

impl Segment {
    fn add<'a>(&mut self, poster: u64, words: impl Iterator<Item = &'a str>) {
        let story = self.posters.len() as u16;
        self.posters.push(poster);
        self.bytes += 8;
        for word in words {
            match self.stories.get_mut(word) {
                Some(stories) if stories.last() == Some(&story) => continue,
                Some(stories) => stories.push(story),
                None => {
                    self.bytes += WORD_BYTES + word.len();
                    self.stories.insert(word.into(), vec![story]);
                }
            }
            self.bytes += 2;
        }
    }

    /// Those of its stories that have any of the words, the newest first.
    fn find<'a>(&'a self, words: &[String]) -> impl Iterator<Item = u16> + use<'a> {
        let with_word = words.iter().filter_map(|word| self.stories.get(word.as_str()));
        let mut rest: Vec<&'a [u16]> = with_word.map(Vec::as_slice).collect();
        std::iter::from_fn(move || {
            let newest = rest.iter().filter_map(|stories| stories.last()).max().copied()?;
            for stories in &mut rest {
                if let Some((last, before)) = stories.split_last()
                    && *last == newest
                {
                    *stories = before;
                }
            }
            Some(newest)
        })
    }
}

/// An inverted index in memory, up to a bound on its bytes.
///
/// ```
/// use tidemark_store::InvertedIndex;
/// use tidemark_store::feeds::{Post, PostId};
/// use tidemark_store::search::Search;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let index = InvertedIndex::new(1 << 20);
/// let story = |poster, story: &str| Post {
///     id: PostId { at_us: poster, server: 0 }, poster, subject: "".into(), story: story.into(),
/// };
/// index.add(&story(1, "Rain today")).await?;
/// index.add(&story(2, "No rain.")).await?;
/// assert_eq!(index.posters("RAIN", 10).await?, [2, 1]);
/// assert_eq!(index.posters("snow today", 10).await?, [1]);
/// # Ok::<(), tidemark_store::StoreError>(())
/// # }).unwrap();
/// ```
pub struct InvertedIndex {
    /// From the oldest; the last one takes the next story.
    segments: RwLock<VecDeque<Segment>>,
    bytes_max: usize,
    forgotten: AtomicU64,
}

impl InvertedIndex {
    /// An empty index of at most `bytes_max` bytes, roughly.
    pub fn new(bytes_max: usize) -> Self {
        let segments = RwLock::new([Segment::default()].into());
        InvertedIndex { segments, bytes_max, forgotten: AtomicU64::new(0) }
    }

    /// Adds a story.
    pub fn add_story(&self, poster: u64, story: &str) {
        let text = story.to_lowercase();
        let mut segments = self.segments.write();
        let is_full =
            |last: &Segment| last.posters.len() == SEGMENT_STORIES || last.bytes > self.bytes_max / PART;
        if segments.back().is_some_and(is_full) {
            if let Some(full) = segments.back_mut() {
                full.stories.values_mut().for_each(Vec::shrink_to_fit);
            }
            segments.push_back(Segment::default());
        }
        if let Some(last) = segments.back_mut() {
            last.add(poster, words_of(&text));
        }
        let mut bytes: usize = segments.iter().map(|segment| segment.bytes).sum();
        while bytes > self.bytes_max
            && segments.len() > 1
            && let Some(oldest) = segments.pop_front()
        {
            bytes -= oldest.bytes;
            self.forgotten.fetch_add(oldest.posters.len() as u64, Ordering::Relaxed);
        }
    }

    fn find(&self, keywords: &str, limit: usize) -> Vec<u64> {
        let mut words = Vec::new();
        each_word(keywords, |word| {
            if words.len() < WORDS_MAX {
                words.push(word.to_owned());
            }
        });
        let (mut posters, mut known, mut looked_at) = (Vec::new(), HashSet::new(), 0);
        for segment in self.segments.read().iter().rev() {
            for story in segment.find(&words) {
                if posters.len() >= limit || looked_at >= LOOKED_AT_MAX {
                    return posters;
                }
                looked_at += 1;
                let poster = segment.posters[usize::from(story)];
                if known.insert(poster) {
                    posters.push(poster);
                }
            }
        }
        posters
    }
}

impl Search for InvertedIndex {
    fn add(&self, post: &Post) -> Answer<'_, ()> {
        self.add_story(post.poster, &post.story);
        Answer::ready(Ok(()))
    }

    fn posters(&self, keywords: &str, limit: usize) -> Answer<'_, Vec<u64>> {
        Answer::ready(Ok(self.find(keywords, limit)))
    }

    fn metrics(&self) -> StoreMetrics {
        let segments = self.segments.read();
        let sum = |of: fn(&Segment) -> usize| segments.iter().map(of).sum::<usize>() as u64;
        let own = |name, help, is_counter, value| OwnMetric { name, help, is_counter, value };
        let forgotten = self.forgotten.load(Ordering::Relaxed);
        let own = vec![
            own("stories", "Stories that can be found", false, sum(|segment| segment.posters.len())),
            own("bytes", "Bytes of the index, roughly", false, sum(|segment| segment.bytes)),
            own(
                "forgotten",
                "Stories that are not found any more, since the index was full",
                true,
                forgotten,
            ),
        ];
        StoreMetrics { own, ..StoreMetrics::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_index_forgets_the_oldest_and_says_so() {
        let index = InvertedIndex::new(SEGMENT_STORIES * 40);
        for story in 0..6 * SEGMENT_STORIES as u64 {
            index.add_story(story, "rain");
        }
        let forgotten = index.forgotten.load(Ordering::Relaxed);
        assert!(forgotten > SEGMENT_STORIES as u64, "{forgotten}");
        let newest = 6 * SEGMENT_STORIES as u64 - 1;
        assert_eq!(index.find("rain", 2), [newest, newest - 1]);
    }

    /// Also where each story brings words that nobody used before.
    #[test]
    fn it_is_bounded_whatever_the_words_are() {
        let index = InvertedIndex::new(1 << 20);
        for story in 0..300u64 {
            let words: Vec<_> = (0..2_000).map(|word| format!("{story}x{word}")).collect();
            index.add_story(story, &words.join(" "));
            let bytes: usize = index.segments.read().iter().map(|segment| segment.bytes).sum();
            assert!(bytes <= 2 << 20, "{bytes}");
        }
        assert_eq!((index.find("299x7", 9), index.find("0x7", 9)), (vec![299], vec![]));
    }

    proptest! {
        #[test]
        fn it_finds_who_used_any_of_the_words_and_nobody_else(
            stories in prop::collection::vec((0u64..9, "[abAB ,.]{0,8}"), 0..40),
            keywords in "[abAB ,]{0,6}",
            limit in 1usize..12,
        ) {
            let index = InvertedIndex::new(1 << 30);
            let of = |text: &str| {
                let mut words = BTreeSet::new();
                each_word(text, |word| {
                    words.insert(word.to_owned());
                });
                words
            };
            let mut expected = Vec::new();
            for (poster, story) in &stories {
                index.add_story(*poster, story);
            }
            for (poster, story) in stories.iter().rev() {
                if !of(story).is_disjoint(&of(&keywords)) && !expected.contains(poster) {
                    expected.push(*poster);
                }
            }
            expected.truncate(limit);
            prop_assert_eq!(index.find(&keywords, limit), expected);
        }
    }
}
