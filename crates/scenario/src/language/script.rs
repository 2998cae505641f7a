//! Bounds of scripts and of code.

use crate::grammar::kinds::{Size, Time};
use crate::grammar::record::record;

record! {
    /// What scripts of k6 and `js` steps may take. What takes more is an error, and the run goes on.
    pub(crate) struct Script("scriptBounds", "the bounds of scripts") {
        memory: Size =
            "Most memory of each user of a script of k6, 256MiB by default; of the `js` steps of a driving thread 16MiB.",
        step: Time =
            "Longest time of a script of k6 without a request or a sleep, 30s by default; of a `js` step 50ms.",
    }
}
