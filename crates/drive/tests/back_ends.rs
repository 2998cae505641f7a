//! Each back end against a server that resets, closes and answers large: the same outcomes, and nothing is left over.

mod support;

use std::io::Write;
use std::time::{Duration, Instant};

use support::{Next, Server, answer, finish, get, options, phase, plan, resident_kib, write};
use tidemark_drive::{IoChoice, start};
use tidemark_record::Outcome;
use tidemark_scenario::plan::LoadModel;

/// By number of the request on its connection: a large answer, then a small one, then an end.
fn unfriendly() -> Server {
    Server::start(|request, stream| match request.index {
        0 => {
            let body = vec![b'x'; 100_000];
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
            let _ = stream.write_all(&body);
            Next::Keep
        }
        1 => answer(stream, "200 OK", "", "hello"),
        _ if request.connection % 3 == 0 => Next::Reset,
        _ if request.connection % 3 == 1 => Next::Close,
        _ => {
            write(stream, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
            Next::Close
        }
    })
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// One after the other in one test, as files and memory are the process's.
#[test]
fn resets_and_reconnects_leave_nothing_behind() {
    for io in [IoChoice::IoUring, IoChoice::Epoll, IoChoice::Portable, IoChoice::Auto] {
        let soak = |millis| {
            let server = unfriendly();
            let mut plan = plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(millis, 8.0)]);
            plan.limits.drain = Duration::from_secs(5);
            let options = tidemark_drive::DriveOptions { io, ..options(server.address, 1) };
            match start(plan.into(), tidemark_scenario::Shared::new(1, Vec::new()).into(), options) {
                Ok(drive) => {
                    assert!(io == IoChoice::Auto || drive.io() == io);
                    Some(finish(drive))
                }
                Err(error) => {
                    assert!(matches!(io, IoChoice::IoUring | IoChoice::Epoll), "{error}");
                    eprintln!("{error}");
                    None
                }
            }
        };
        let Some(_) = soak(300) else { continue };
        // The server's own sockets go with its threads, shortly after.
        let settled = || {
            std::thread::sleep(Duration::from_millis(300));
            (open_files(), resident_kib())
        };
        let (files, resident) = settled();
        let sum = soak(700).expect("it was to be had before");
        let (ended, mut after) = (Instant::now(), settled());
        // a busy machine takes longer to end those threads
        while after.0 > files + 12 && ended.elapsed() < Duration::from_secs(30) {
            after = settled();
        }
        let (files_after, resident_after) = after;

        let (ok, reset) = (sum.outcome(Outcome::Ok), sum.outcome(Outcome::Reset));
        assert!(ok > 0 && reset > 0, "{io}: {ok} ok, {reset} reset");
        assert_eq!(ok + reset, sum.ended(), "{io}: {:?}", sum.examples());
        // Two answers, then an end of whatever kind, on each connection but the last of each user.
        assert!(ok.abs_diff(2 * reset) <= 2 * 8, "{io}: {ok} ok, {reset} reset");
        assert!(sum.connects() >= reset, "{io}");
        // The listener of each server, and its first accepted sockets, stay.
        assert!(files_after <= files + 12, "{io}: {files} files before, {files_after} after");
        assert!(resident_after <= resident + 8 * 1024, "{io}: {resident} KiB, then {resident_after} KiB");
    }
}
