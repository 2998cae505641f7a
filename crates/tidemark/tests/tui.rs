//! The full-screen view on a real terminal, and where there is none.

mod program;

use program::{code, run, stderr, stdout};

#[test]
fn without_a_terminal_it_is_refused_before_anything_is_started() {
    let folder = tempfile::tempdir().unwrap();
    for verb in [&["run", "airline"][..], &["hit", "http://127.0.0.1:1/"]] {
        let output = run(folder.path(), &[verb, &["--tui"]].concat());
        assert_eq!((code(&output), stdout(&output).as_str()), (2, ""), "{}", stderr(&output));
        let says = if cfg!(feature = "tui") { "standard output is not a terminal" } else { "--features tui" };
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
        assert!(!folder.path().join("runs").exists());
    }
}

#[cfg(feature = "tui")]
mod on_a_terminal {
    use std::path::Path;
    use std::process::Child;
    use std::time::Duration;

    use rustix::process::Signal;
    use tidemark_truth::{Behaviour, Delay, Server};

    use super::program::pty::Pty;
    use super::program::{send, tidemark};

    const ENTERED: &str = "\u{1b}[?1049h";
    const LEFT: &str = "\u{1b}[?1049l";
    /// How a colour of the 256 begins.
    const COLOUR: &str = "\u{1b}[38;5;";

    fn server() -> Server {
        let delays = vec![Delay::Fixed(Duration::from_millis(2))];
        Server::start(Behaviour { delays, ..Behaviour::default() }).unwrap()
    }

    /// A long hit that is being watched.
    fn watch(folder: &Path, server: &Server, pty: &mut Pty, more: &[(&str, &str)]) -> Child {
        let url = format!("http://{}/", server.address());
        let arguments = ["hit", &url, "-c", "4", "--for", "10m", "--warm-up", "0s", "--tui"];
        let mut command = tidemark(folder, &arguments);
        command.env_remove("NO_COLOR").envs(more.iter().copied());
        let child = pty.run(command);
        pty.wait_for(ENTERED);
        pty.wait_for("response times");
        // a second of the load was drawn
        pty.wait_for("p99 ");
        child
    }

    /// What stands on the terminal after the view is gone; its modes are as they were.
    fn after(pty: &Pty, modes: &str) -> String {
        let said = pty.rest();
        let left = said.rfind(LEFT).unwrap_or_else(|| panic!("the screen was not left: {said:?}"));
        assert!(said[left..].contains("\u{1b}[?25h"), "no cursor: {said:?}");
        assert_eq!(pty.modes(), modes);
        said[left..].to_owned()
    }

    #[test]
    fn q_and_ctrl_c_stop_and_report() {
        for key in [&b"q"[..], b"\x03"] {
            let (folder, server, mut pty) = (tempfile::tempdir().unwrap(), server(), Pty::open(80, 24));
            let modes = pty.modes();
            let mut child = watch(folder.path(), &server, &mut pty, &[]);
            assert_ne!(pty.modes(), modes, "keys are read as they come");
            pty.type_in(key);
            assert_eq!(child.wait().unwrap().code(), Some(130), "{:?}", pty.said());
            let said = after(&pty, &modes);
            assert!(said.contains("GET /") && said.contains("p99"), "{said:?}");
        }
    }

    #[test]
    fn sigterm_gives_the_terminal_back() {
        let (folder, server, mut pty) = (tempfile::tempdir().unwrap(), server(), Pty::open(80, 24));
        let modes = pty.modes();
        let mut child = watch(folder.path(), &server, &mut pty, &[]);
        assert!(pty.said().contains(COLOUR));
        send(child.id(), Signal::TERM);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{:?}", pty.said());
        assert!(after(&pty, &modes).contains("p99"));
    }

    #[test]
    fn it_follows_the_size_and_has_no_colour_where_none_is_wanted() {
        let (folder, server, mut pty) = (tempfile::tempdir().unwrap(), server(), Pty::open(80, 24));
        let modes = pty.modes();
        let mut child = watch(folder.path(), &server, &mut pty, &[("NO_COLOR", "1")]);
        assert!(!pty.said().contains("\u{1b}[40;"), "no such row yet");
        pty.resize(120, 40);
        // the pty controls no process, so that nobody else says it
        send(child.id(), Signal::WINCH);
        pty.wait_for("\u{1b}[40;");
        pty.type_in(b"q");
        assert_eq!(child.wait().unwrap().code(), Some(130), "{:?}", pty.said());
        after(&pty, &modes);
        let said = pty.said();
        let screen = &said[said.find(ENTERED).unwrap()..said.rfind(LEFT).unwrap()];
        assert!(!screen.contains(COLOUR), "a colour: {screen:?}");
    }
}
