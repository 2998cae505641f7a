//! Bodies that were decoded because a step looks at them.

use tidemark_record::Run;

use super::Text;
use crate::units::{bytes, three_digits};

/// How many bytes they had, and how many came for them; nothing where none was decoded in the measured window.
pub(super) fn decoded(text: &mut Text, run: &Run) {
    let in_window = run.load.iter().filter(|load| load.in_window);
    let (came, decoded) = in_window
        .fold((0, 0), |(came, decoded), load| (came + load.encoded_bytes, decoded + load.decoded_bytes));
    if came == 0 {
        return;
    }
    let times = format!("{} times as much", three_digits(decoded as f64 / came as f64));
    text.named("bodies", &[&format!("{} decoded of {}", bytes(decoded), bytes(came)), &times]);
}

#[cfg(test)]
mod tests {
    use tidemark_record::Run;

    use super::super::{Style, quick, summary};
    use crate::test_run;

    #[test]
    fn they_have_a_line_where_there_were_any_in_the_window() {
        let (_dir, mut run) = test_run::airline();
        let texts = |run: &Run, width| {
            let style = Style { width, colour: false, ascii: false };
            [summary(run, style), quick::summary(run, style, quick::Quick::default()).unwrap()]
        };
        let row = run.load.iter_mut().find(|row| !row.in_window).unwrap();
        (row.encoded_bytes, row.decoded_bytes) = (1 << 20, 1 << 21);
        for text in texts(&run, 80) {
            assert!(!text.contains("decoded"), "{text}");
        }
        let row = run.load.iter_mut().find(|row| row.in_window).unwrap();
        (row.encoded_bytes, row.decoded_bytes) = (2 << 10, 5 << 10);
        for text in texts(&run, 80) {
            let line = text.lines().find(|line| line.contains("decoded")).unwrap();
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words.join(" "), "bodies 5 KiB decoded of 2 KiB · 2.50 times as much", "{text}");
        }
        for text in texts(&run, 45) {
            let mut lines = text.lines().skip_while(|line| !line.contains("decoded")).map(str::trim);
            let two = [lines.next().unwrap(), lines.next().unwrap()];
            assert!(two[0].ends_with("5 KiB decoded of 2 KiB"), "{text}");
            assert_eq!(two[1], "2.50 times as much", "{text}");
        }
    }
}
