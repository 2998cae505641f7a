//! What holds of a server's bookings when the server is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidemark_store::StoreError;
use tidemark_store::bookings::Bookings;

use super::booking;
use super::servers::{Server, until_it_works};

/// Killed in the middle of writes, so many times: what was acknowledged is there, and the store finds its server again by
/// itself. `answered` counts the store's answers.
pub fn what_was_acknowledged<S: Bookings + 'static>(
    server: &mut impl Server,
    store: &Arc<S>,
    times: u128,
    answered: impl Fn() -> u64,
) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    for round in 0..times {
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..16u128)
            .map(|writer| {
                let (store, stop) = (store.clone(), stop.clone());
                runtime.spawn(async move {
                    let (mut acknowledged, customer_id) = (Vec::new(), format!("writer{writer}"));
                    for id in round * 1_000_000.. {
                        let pair = [booking(&customer_id, id * 2, id), booking(&customer_id, id * 2 + 1, id)];
                        match store.add(&pair).await {
                            Ok(()) => acknowledged.push(id),
                            Err(_) if stop.load(Ordering::Relaxed) => break,
                            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                        }
                    }
                    (customer_id, acknowledged)
                })
            })
            .collect();
        let before = answered();
        until_it_works(|| if answered() - before > 500 { Ok(()) } else { Err(StoreError::Closed) });
        server.kill();
        stop.store(true, Ordering::Relaxed);
        let acknowledged: Vec<_> =
            writers.into_iter().map(|writer| runtime.block_on(writer).unwrap()).collect();
        // while it is away every request fails, and soon
        let error = runtime.block_on(store.of_customer("writer0")).unwrap_err();
        assert!(matches!(error, StoreError::Unreachable { .. } | StoreError::NoAnswer { .. }), "{error}");
        server.start_again();
        until_it_works(|| runtime.block_on(Bookings::count(&**store)));
        for (customer_id, ids) in acknowledged {
            let there = runtime.block_on(store.of_customer(&customer_id)).unwrap();
            let mut found: Vec<u128> =
                there.iter().map(|one| one.id).filter(|id| id / 2 >= round * 1_000_000).collect();
            assert_eq!(found.len() % 2, 0, "all or none");
            found.retain(|id| id % 2 == 0);
            let missing: Vec<_> = ids.iter().filter(|id| !found.contains(&(*id * 2))).collect();
            assert!(missing.is_empty(), "{customer_id}: {missing:?} were acknowledged and are not there");
            assert!(found.is_sorted(), "in the order of adding");
        }
    }
}
