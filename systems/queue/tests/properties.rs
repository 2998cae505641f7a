//! A queue beside the plainest model of it: whatever is done in whatever order, both do the same.

use std::collections::VecDeque;

use proptest::prelude::*;
use tidemark_queue::{Options, TryRecvError, TrySendError};

#[derive(Debug, Clone)]
enum Step {
    Send,
    SendBatch(usize),
    SendSlice(usize),
    Flush,
    Receive,
    /// Takes a batch and so many messages out of it.
    ReceiveBatch(usize),
    Close,
    DropSender,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => Just(Step::Send),
        10 => (0_usize..20).prop_map(Step::SendBatch),
        5 => (0_usize..20).prop_map(Step::SendSlice),
        5 => Just(Step::Flush),
        20 => Just(Step::Receive),
        10 => (0_usize..20).prop_map(Step::ReceiveBatch),
        1 => Just(Step::Close),
        1 => Just(Step::DropSender),
    ];
    prop::collection::vec(step, 0..if cfg!(miri) { 30 } else { 200 })
}

/// What a queue is, without any of its speed.
#[derive(Default)]
struct Model {
    queued: VecDeque<u64>,
    closed: bool,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 5 } else { 500 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn as_the_model(steps in steps(), capacity in 1_usize..20, batch in 1_usize..20) {
        let (sender, mut receiver) = Options::new().capacity(capacity).batch(batch).queue();
        let mut sender = Some(sender);
        let mut model = Model::default();
        let room_for = capacity.next_power_of_two().max(2);
        let mut next = 0_u64;
        for step in steps {
            match (step, &mut sender) {
                (Step::Send, Some(sender)) => match sender.try_send(next) {
                    Ok(()) => {
                        prop_assert!(!model.closed && model.queued.len() < room_for);
                        model.queued.push_back(next);
                        next += 1;
                    }
                    Err(TrySendError::Full(message)) => prop_assert_eq!((message, model.closed), (next, false)),
                    Err(TrySendError::Closed(message)) => prop_assert_eq!((message, model.closed), (next, true)),
                },
                (Step::SendBatch(count), Some(sender)) => {
                    let mut messages = next..next + count as u64;
                    match sender.try_send_batch(&mut messages) {
                        Ok(accepted) => {
                            prop_assert!(!model.closed);
                            prop_assert_eq!(next + accepted, messages.start);
                            model.queued.extend(next..next + accepted);
                            next += accepted;
                        }
                        Err(error) => prop_assert_eq!((error.accepted, model.closed), (0, true)),
                    }
                    prop_assert!(model.queued.len() <= room_for);
                }
                (Step::SendSlice(count), Some(sender)) => {
                    // a slice waits for room
                    let messages: Vec<u64> = (next..).take(count.min(sender.room())).collect();
                    match sender.send_slice(&messages) {
                        Ok(()) => {
                            prop_assert!(!model.closed || messages.is_empty());
                            next += messages.len() as u64;
                            model.queued.extend(messages);
                        }
                        Err(error) => prop_assert_eq!((error.accepted, model.closed), (0, true)),
                    }
                }
                (Step::Flush, Some(sender)) => sender.flush(),
                (Step::DropSender, sender) => *sender = None,
                (Step::Close, _) => {
                    receiver.close();
                    model.closed = true;
                }
                (Step::Receive, sender) => match receiver.try_recv() {
                    Ok(message) => prop_assert_eq!(Some(message), model.queued.pop_front()),
                    Err(error) => {
                        prop_assert!(model.queued.is_empty());
                        let over = model.closed || sender.is_none();
                        prop_assert_eq!(error, if over { TryRecvError::Closed } else { TryRecvError::Empty });
                    }
                },
                (Step::ReceiveBatch(count), _) => {
                    if let Ok(batch) = receiver.try_recv_batch() {
                        prop_assert!(!batch.as_slice().is_empty());
                        prop_assert_eq!(batch.as_slice().first(), model.queued.front());
                        for message in batch.take(count) {
                            prop_assert_eq!(Some(message), model.queued.pop_front());
                        }
                    } else {
                        prop_assert!(model.queued.is_empty());
                    }
                }
                (_, None) => {}
            }
            let metrics = receiver.metrics();
            prop_assert_eq!(metrics.sent, next);
        }
        drop(sender);
        let rest: Vec<u64> = std::iter::from_fn(|| receiver.try_recv().ok()).collect();
        prop_assert_eq!(rest, Vec::from(model.queued));
        prop_assert_eq!(receiver.metrics().queued(), 0);
    }
}
