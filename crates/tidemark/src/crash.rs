//! An internal error shows as one line that can be reported, never as a backtrace.

use std::panic::PanicHookInfo;

/// Exit status of an internal error (`EX_SOFTWARE` of sysexits.h).
pub const EXIT_CRASH: u8 = 70;

/// From now on a panic prints one line.
pub fn no_backtraces() {
    std::panic::set_hook(Box::new(|panic| {
        use std::io::Write;
        // standard error may be closed; there is nobody left to tell then
        let _ = writeln!(std::io::stderr(), "{}", line(panic));
    }));
}

fn line(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = crate::output::masked(&text.unwrap_or("no message").replace('\n', " "));
    let place = panic
        .location()
        .map_or_else(|| "an unknown location".into(), |at| format!("{}:{}", at.file(), at.line()));
    format!(
        "tidemark {}: an internal error at {place}: {message}; please report this line with the command that led to it",
        env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_panic_is_one_line_with_its_place() {
        let said = Arc::new(Mutex::new(String::new()));
        let into = Arc::clone(&said);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| *into.lock().unwrap() = line(panic)));
        let result = std::panic::catch_unwind(|| panic!("of two\nlines"));
        std::panic::set_hook(before);
        assert!(result.is_err());
        let said = said.lock().unwrap();
        assert!(
            said.contains("crash.rs:") && said.contains("of two lines") && !said.contains('\n'),
            "{said}"
        );
    }
}
