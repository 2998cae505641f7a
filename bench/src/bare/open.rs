//! An open loop at its least: what is due is sent, then it waits for answers until the next one is due.
//!
//! It keeps no more of a request than when it was due, and one figure of each answer. What sockets and the system's timers
//! allow a load generator that measures response times.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::{ClockId, clock_gettime};

use super::{ANSWER_BYTES, REQUEST};

/// News that are taken at once.
const EVENTS: usize = 512;
/// Response times from here on count as this, microseconds.
const LONGEST_US: usize = 1_000_000;
/// What is not counted at the begin.
const WARM_UP: Duration = Duration::from_secs(1);

/// What it came to.
pub struct Open {
    /// Requests that were due after the warm-up and answered.
    pub answers: u64,
    /// The median of their response times, from when they were due.
    pub p50_us: u64,
    /// CPU time after the warm-up.
    pub cpu_s: f64,
}

/// At so many requests a second, evenly spaced, for this time after the warm-up. `spin`: it never sleeps.
pub fn drive(mut sockets: Vec<TcpStream>, rate: f64, time: Duration, spin: bool) -> std::io::Result<Open> {
    // else the system may let a timer be 50 µs late
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    for (index, socket) in sockets.iter().enumerate() {
        socket.set_nonblocking(true)?;
        epoll::add(
            &epoll,
            socket.as_fd(),
            EventData::new_u64(index as u64),
            EventFlags::IN | EventFlags::ET,
        )?;
    }
    let mut free: Vec<usize> = (0..sockets.len()).rev().collect();
    let mut due_of = vec![Duration::ZERO; sockets.len()];
    let mut counts = vec![0u64; LONGEST_US + 1];
    let mut events = Vec::with_capacity(EVENTS);
    let mut buffer = [0; ANSWER_BYTES];
    let (start, mut number, mut cpu_before) = (Instant::now(), 0u64, None);
    loop {
        let mut now = start.elapsed();
        if now >= WARM_UP && cpu_before.is_none() {
            cpu_before = Some(cpu());
        }
        if now >= WARM_UP + time {
            break;
        }
        let mut due = Duration::from_secs_f64(number as f64 / rate);
        while due <= now {
            let Some(connection) = free.pop() else { break };
            due_of[connection] = due;
            sockets[connection].write_all(REQUEST)?;
            number += 1;
            due = Duration::from_secs_f64(number as f64 / rate);
            now = start.elapsed();
        }
        let wait = if spin { Duration::ZERO } else { due.saturating_sub(now) };
        let wait = Timespec { tv_sec: wait.as_secs() as _, tv_nsec: wait.subsec_nanos().into() };
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), Some(&wait)) {
            Err(rustix::io::Errno::INTR) => continue,
            waited => waited?,
        };
        for event in &events {
            let connection = event.data.u64() as usize;
            match sockets[connection].read(&mut buffer) {
                Ok(0) => return Err(std::io::Error::other("the server closed a connection")),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            }
            if due_of[connection] >= WARM_UP {
                let response = start.elapsed().saturating_sub(due_of[connection]);
                counts[(response.as_micros() as usize).min(LONGEST_US)] += 1;
            }
            free.push(connection);
        }
    }
    let cpu_s = cpu() - cpu_before.unwrap_or_default();
    let answers: u64 = counts.iter().sum();
    let mut seen = 0;
    let is_half = |count: &u64| {
        seen += count;
        2 * seen >= answers
    };
    let p50_us = counts.iter().position(is_half).unwrap_or(0) as u64;
    Ok(Open { answers, p50_us, cpu_s })
}

/// CPU time of this thread so far, seconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
