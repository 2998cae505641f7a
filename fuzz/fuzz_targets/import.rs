//! Files and command lines of other tools. The first byte chooses: a list of requests, a command line of curl, a document or a
//! recording. A scenario that is made passes the check.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tidemark_import::{Defaults, ImportError, curl, list_of, scenario_of, shell};

fuzz_target!(|data: &[u8]| {
    let [choice, rest @ ..] = data else { return };
    let text = String::from_utf8_lossy(rest);
    // a file that is named must not be read: there is none in this folder
    let file = Path::new("/nonexistent/fuzz");
    match choice % 3 {
        0 => {
            if let Ok(list) = list_of(file, rest.to_vec(), None, &Defaults::default()) {
                assert!(!list.targets.is_empty());
            }
        }
        1 => {
            let _ = shell::words(&text).and_then(|words| curl::parse(&words));
        }
        _ => {
            let made: Result<_, ImportError> = scenario_of(file, &text, &[]);
            if let Ok(made) = made {
                made.checked().expect("what is made has no mistakes");
            }
        }
    }
});
