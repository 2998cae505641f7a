//! Plans of JMeter and Tsung, collections of Postman, scripts of Artillery. A scenario that is made passes the check.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tidemark_import::{PlanOptions, plan_of};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    // a file that is named must not be read: there is none in this folder
    let file = Path::new("/nonexistent/fuzz");
    if let Ok(made) = plan_of(file, &text, &PlanOptions::default(), Path::new(".")) {
        made.checked().expect("what is made has no mistakes");
    }
});
