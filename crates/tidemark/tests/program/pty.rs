//! A terminal for a program under test: what it writes is gathered, what is typed reaches it.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

/// Longest wait for anything that should come soon.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal of some size.
pub struct Pty {
    ours: File,
    theirs: OwnedFd,
    said: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Pty {
    pub fn open(columns: u16, rows: u16) -> Pty {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pty");
        grantpt(&ours).expect("granted");
        unlockpt(&ours).expect("unlocked");
        let name = ptsname(&ours, Vec::new()).expect("a name");
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let theirs = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).expect("the other end");
        let pty = Pty { ours: File::from(ours), theirs, said: Arc::default(), reader: None };
        pty.resize(columns, rows);
        pty
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.ours, size).expect("a new size");
    }

    /// How the terminal treats what is typed and written.
    pub fn modes(&self) -> String {
        let modes = tcgetattr(&self.theirs).expect("modes");
        format!("{:?} {:?} {:?}", modes.local_modes, modes.input_modes, modes.output_modes)
    }

    /// Starts a program on it, and gathers what it writes.
    pub fn run(&mut self, mut command: Command) -> Child {
        let end = || self.theirs.try_clone().expect("another handle");
        command
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8");
        let (mut from, into) = (self.ours.try_clone().expect("another handle"), Arc::clone(&self.said));
        self.reader = Some(std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                match from.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(length) => into.lock().unwrap().extend_from_slice(&buffer[..length]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // nobody has the other end open any more
                    Err(_) => return,
                }
            }
        }));
        command.spawn().expect("the program starts")
    }

    pub fn type_in(&mut self, bytes: &[u8]) {
        self.ours.write_all(bytes).expect("typed");
    }

    /// Everything written so far.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).into_owned()
    }

    /// Waits until something was written.
    pub fn wait_for(&self, what: &str) {
        let begin = Instant::now();
        while !self.said().contains(what) {
            assert!(begin.elapsed() < PATIENCE, "never: {what:?} in {:?}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Everything that was written, once whoever wrote it is gone: a mark of ours comes last.
    pub fn rest(&self) -> String {
        const MARK: &str = "\u{1}end";
        rustix::io::write(&self.theirs, MARK.as_bytes()).expect("the mark");
        self.wait_for(MARK);
        self.said().replace(MARK, "")
    }
}
