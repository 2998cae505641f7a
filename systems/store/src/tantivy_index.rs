//! An index over stories on the disk of the process, by tantivy.
//!
//! It is not where stories are kept: whoever opens it shows it the stories of the feeds, of which it takes those that it
//! may lack. A story is found after the next commit, a second later. Words are those of [`each_word`], so that the same is
//! found as by the index in memory, which forgets stories when it is full; this one does not.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tantivy::collector::TopDocs;
use tantivy::directory::MmapDirectory;
use tantivy::query::{BooleanQuery, Query, RangeQuery, TermQuery};
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexReader, IndexWriter, Order, ReloadPolicy, TantivyDocument, TantivyError, Term};

use crate::answer::Answer;
use crate::error::StoreError;
use crate::feeds::Post;
use crate::metrics::{OwnMetric, StoreMetrics};
use crate::search::{Search, WORDS_MAX, each_word};

/// How often what is new is committed, and found from then on.
const COMMIT_EVERY: Duration = Duration::from_secs(1);
/// Stories that were taken and are not in the index yet; more are refused.
const WAITING_MAX: usize = 16_384;
/// Bytes that the index gathers before it writes a segment.
const BUFFER_BYTES: usize = 64 << 20;
/// Stories that a search looks at.
const LOOKED_AT_MAX: usize = 200_000;
/// At a start, stories that are older than the newest committed one by less than this are taken again: they were under way
/// then, or are of servers whose clocks are behind.
const AGAIN_US: u64 = 600_000_000;

/// The fields of a story.
#[derive(Debug, Clone, Copy)]
struct Fields {
    at_us: Field,
    poster: Field,
    story: Field,
}

impl Fields {
    fn schema() -> (Schema, Fields) {
        let mut schema = Schema::builder();
        let words = TextFieldIndexing::default()
            .set_tokenizer("whitespace")
            .set_index_option(IndexRecordOption::Basic)
            .set_fieldnorms(false);
        let fields = Fields {
            at_us: schema.add_u64_field(AT_US, FAST | INDEXED),
            poster: schema.add_u64_field(POSTER, FAST),
            story: schema.add_text_field("story", TextOptions::default().set_indexing_options(words)),
        };
        (schema.build(), fields)
    }
}

const AT_US: &str = "at_us";
const POSTER: &str = "poster";

/// A story on its way.
struct Story {
    at_us: u64,
    poster: u64,
    /// Its words, with spaces between.
    words: String,
}

impl Story {
    fn of(post: &Post) -> Self {
        let mut words = String::with_capacity(post.story.len());
        each_word(&post.story, |word| {
            words.push_str(word);
            words.push(' ');
        });
        Story { at_us: post.id.at_us, poster: post.poster, words }
    }

    fn add(self, fields: Fields, writer: &IndexWriter) -> Result<(), TantivyError> {
        let mut document = TantivyDocument::new();
        document.add_u64(fields.at_us, self.at_us);
        document.add_u64(fields.poster, self.poster);
        document.add_text(fields.story, self.words);
        writer.add_document(document).map(drop)
    }
}

/// What searches and the writing thread share.
struct Shared {
    reader: IndexReader,
    fields: Fields,
    waiting: AtomicU64,
    refused: AtomicU64,
    /// Why nothing more is written.
    stopped: Mutex<Option<Arc<str>>>,
}

/// An index on disk, or in memory.
pub struct TantivyIndex {
    shared: Arc<Shared>,
    /// Absent only while dropping.
    sender: Option<SyncSender<Story>>,
    thread: Option<JoinHandle<()>>,
}

impl TantivyIndex {
    /// Opens the index in `dir`, making it where it is not there; without one it is in memory. `stories` shows every story
    /// that there is; those that the index lacks are taken. Blocks until they are found.
    ///
    /// # Errors
    /// The directory cannot be used, or holds something else; what `stories` fails with.
    pub fn open(
        dir: Option<&Path>,
        stories: impl FnOnce(&mut dyn FnMut(Post)) -> Result<(), StoreError>,
    ) -> Result<Arc<Self>, StoreError> {
        let place = dir.unwrap_or(Path::new("memory"));
        let failed = |error: TantivyError| match error {
            TantivyError::LockFailure(..) => StoreError::Locked { dir: place.into() },
            TantivyError::SchemaError(_)
            | TantivyError::DataCorruption(_)
            | TantivyError::IncompatibleIndex(_) => {
                StoreError::Unreadable { dir: place.into(), reason: error.to_string().into() }
            }
            error => StoreError::Open { dir: place.into(), reason: error.to_string().into() },
        };
        let (schema, fields) = Fields::schema();
        let index = match dir {
            None => Index::create_in_ram(schema),
            Some(dir) => {
                std::fs::create_dir_all(dir).map_err(|error| failed(error.into()))?;
                let dir = MmapDirectory::open(dir).map_err(|error| failed(error.into()))?;
                Index::open_or_create(dir, schema).map_err(failed)?
            }
        };
        let mut writer = index.writer_with_num_threads(1, BUFFER_BYTES).map_err(failed)?;
        let newest_us = index.load_metas().map_err(failed)?.payload.and_then(|text| text.parse::<u64>().ok());
        let from_us = newest_us.map_or(0, |newest_us| newest_us.saturating_sub(AGAIN_US));
        let from = Term::from_field_u64(fields.at_us, from_us);
        let all_since = RangeQuery::new(std::ops::Bound::Included(from), std::ops::Bound::Unbounded);
        writer.delete_query(Box::new(all_since)).map_err(failed)?;
        let (mut newest_us, mut taken, mut wrong) = (newest_us.unwrap_or(0), 0u64, None);
        stories(&mut |post| {
            if post.id.at_us >= from_us && wrong.is_none() {
                newest_us = newest_us.max(post.id.at_us);
                taken += 1;
                wrong = Story::of(&post).add(fields, &writer).err();
            }
        })?;
        wrong.map_or(Ok(()), |error| Err(failed(error)))?;
        commit(&mut writer, newest_us).map_err(failed)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(failed)?;
        tracing::info!(taken, "stories that the index may have lacked");

        let shared = Arc::new(Shared {
            reader,
            fields,
            waiting: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            stopped: Mutex::default(),
        });
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let writing = Writing { shared: shared.clone(), writer, newest_us };
        let thread =
            std::thread::Builder::new().name("tantivy".into()).spawn(move || writing.work(&receiver));
        let thread = Some(thread.map_err(|error| failed(error.into()))?);
        Ok(Arc::new(TantivyIndex { shared, sender: Some(sender), thread }))
    }
}

/// What is committed is told apart at the next start by the newest story in it.
fn commit(writer: &mut IndexWriter, newest_us: u64) -> Result<(), TantivyError> {
    let mut prepared = writer.prepare_commit()?;
    prepared.set_payload(&newest_us.to_string());
    prepared.commit().map(drop)
}

/// The thread that writes.
struct Writing {
    shared: Arc<Shared>,
    writer: IndexWriter,
    newest_us: u64,
}

impl Writing {
    fn work(mut self, receiver: &Receiver<Story>) {
        if let Err(error) = self.write(receiver) {
            tracing::error!(%error, "the index of stories takes no more");
            *self.shared.stopped.lock() = Some(error.to_string().into());
        }
    }

    fn write(&mut self, receiver: &Receiver<Story>) -> Result<(), TantivyError> {
        let (mut due, mut is_new) = (Instant::now() + COMMIT_EVERY, false);
        loop {
            let received = receiver.recv_timeout(due.saturating_duration_since(Instant::now()));
            let is_over = matches!(received, Err(RecvTimeoutError::Disconnected));
            if let Ok(story) = received {
                self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
                self.newest_us = self.newest_us.max(story.at_us);
                story.add(self.shared.fields, &self.writer)?;
                is_new = true;
            }
            if is_over || Instant::now() >= due {
                if is_new {
                    commit(&mut self.writer, self.newest_us)?;
                    self.shared.reader.reload()?;
                    is_new = false;
                }
                due = Instant::now() + COMMIT_EVERY;
            }
            if is_over {
                return Ok(());
            }
        }
    }
}

impl Shared {
    fn find(&self, words: HashSet<String>, limit: usize) -> Result<Vec<u64>, TantivyError> {
        let term = |word: String| -> Box<dyn Query> {
            Box::new(TermQuery::new(
                Term::from_field_text(self.fields.story, &word),
                IndexRecordOption::Basic,
            ))
        };
        let query = BooleanQuery::union(words.into_iter().map(term).collect());
        let searcher = self.reader.searcher();
        let of_segment = |segment: &tantivy::SegmentReader| segment.fast_fields().u64(POSTER);
        let of = searcher.segment_readers().iter().map(of_segment).collect::<Result<Vec<_>, _>>()?;
        // posters repeat: how many stories name so many of them is not known before
        let mut stories = (4 * limit).clamp(64, LOOKED_AT_MAX);
        loop {
            let newest = TopDocs::with_limit(stories).order_by_fast_field::<u64>(AT_US, Order::Desc);
            let found = searcher.search(&query, &newest)?;
            let mut known = HashSet::new();
            let posters = found.iter().filter_map(|(_, at)| of[at.segment_ord as usize].first(at.doc_id));
            let posters: Vec<u64> = posters.filter(|poster| known.insert(*poster)).take(limit).collect();
            if posters.len() == limit || found.len() < stories || stories == LOOKED_AT_MAX {
                return Ok(posters);
            }
            stories = (8 * stories).min(LOOKED_AT_MAX);
        }
    }
}

impl Search for TantivyIndex {
    fn add(&self, post: &Post) -> Answer<'_, ()> {
        if let Some(reason) = self.shared.stopped.lock().clone() {
            return Answer::ready(Err(StoreError::Stopped { reason }));
        }
        let Some(sender) = &self.sender else { return Answer::ready(Err(StoreError::Closed)) };
        self.shared.waiting.fetch_add(1, Ordering::Relaxed);
        let sent = sender.try_send(Story::of(post)).map_err(|error| {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            match error {
                TrySendError::Full(_) => {
                    self.shared.refused.fetch_add(1, Ordering::Relaxed);
                    StoreError::Busy { what: "as many stories wait for the index as may" }
                }
                TrySendError::Disconnected(_) => StoreError::Closed,
            }
        });
        Answer::ready(sent)
    }

    fn posters(&self, keywords: &str, limit: usize) -> Answer<'_, Vec<u64>> {
        let mut words = HashSet::new();
        each_word(keywords, |word| {
            if words.len() < WORDS_MAX {
                words.insert(word.to_owned());
            }
        });
        if words.is_empty() || limit == 0 {
            return Answer::ready(Ok(Vec::new()));
        }
        let shared = self.shared.clone();
        // it may read files
        let find = move || shared.find(words, limit).map_err(StoreError::no_answer);
        Answer::boxed(
            async move { tokio::task::spawn_blocking(find).await.unwrap_or(Err(StoreError::Closed)) },
        )
    }

    fn metrics(&self) -> StoreMetrics {
        let Shared { reader, waiting, refused, .. } = &*self.shared;
        let own = |name, help, is_counter, value| OwnMetric { name, help, is_counter, value };
        let own = vec![
            own("stories", "Stories that can be found", false, reader.searcher().num_docs()),
            own("waiting", "Stories that are not in the index yet", false, waiting.load(Ordering::Relaxed)),
            own("refused", "Stories refused, as too many waited", true, refused.load(Ordering::Relaxed)),
        ];
        StoreMetrics { own, ..StoreMetrics::default() }
    }
}

impl Drop for TantivyIndex {
    /// Commits what was taken.
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // one that panicked has nothing to commit
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds::PostId;

    fn post(at_us: u64, poster: u64, story: &str) -> Post {
        Post { id: PostId { at_us, server: 0 }, poster, subject: "".into(), story: story.into() }
    }

    fn found(index: &TantivyIndex, word: &str) -> Vec<u64> {
        index.shared.find([word.to_owned()].into(), 10).unwrap()
    }

    #[test]
    fn a_start_takes_what_the_index_lacks_and_nothing_twice() {
        let dir = tempfile::tempdir().unwrap();
        let old = [post(5, 1, "rain"), post(2 * AGAIN_US, 2, "Rain")];
        let all = |posts: &[Post]| {
            let posts = posts.to_vec();
            move |each: &mut dyn FnMut(Post)| {
                posts.into_iter().for_each(each);
                Ok(())
            }
        };
        let index = TantivyIndex::open(Some(dir.path()), all(&old)).unwrap();
        assert_eq!(found(&index, "rain"), [2, 1]);
        assert!(matches!(TantivyIndex::open(Some(dir.path()), all(&[])), Err(StoreError::Locked { .. })));
        drop(index);
        // one that was under way when the process ended, and is in the feeds
        let more = [old[0].clone(), old[1].clone(), post(2 * AGAIN_US + 1, 3, "rain")];
        let index = TantivyIndex::open(Some(dir.path()), all(&more)).unwrap();
        assert_eq!(found(&index, "rain"), [3, 2, 1]);
        assert_eq!(index.shared.reader.searcher().num_docs(), 3);
    }

    #[test]
    fn what_is_taken_before_the_end_is_found_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let nothing = |_: &mut dyn FnMut(Post)| Ok(());
        let index = TantivyIndex::open(Some(dir.path()), nothing).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(index.add(&post(7, 9, "Über 42"))).unwrap();
        drop(index);
        let index = TantivyIndex::open(Some(dir.path()), |each| {
            each(post(7, 9, "Über 42"));
            Ok(())
        });
        assert_eq!(found(&index.unwrap(), "über"), [9]);
    }

    #[test]
    fn many_stories_of_one_do_not_hide_the_others() {
        let index = TantivyIndex::open(None, |each| {
            each(post(1, 1, "rain"));
            (2..2_000).for_each(|at_us| each(post(at_us, 2, "rain")));
            Ok(())
        });
        assert_eq!(found(&index.unwrap(), "rain"), [2, 1]);
    }
}
