//! A page of metrics that is watched: asked once a second, beside the load.

use std::collections::HashMap;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use tidemark_drive::Target;
use tidemark_record::StoreLook;
use tidemark_scenario::plan::{MetricSeries, System};

use super::page::Page;
use super::remote::is_possible;
use super::{News, What};
use crate::error::LabError;
use crate::exchange::shown;
use crate::http::{Answer, Bounds, Client, NoAnswer};
use crate::interrupt::StopRequest;
use crate::monitor::{Reading, difference};
use crate::served::check_stop_request;
use crate::stop_signal::StopSignal;
use crate::target::target;
use crate::timetable::microseconds;

/// How long an answer may take, as a whole.
const WITHIN: Duration = Duration::from_secs(5);
/// Bounds of an answer.
const BOUNDS: Bounds = Bounds { silence: Duration::from_secs(2), body_bytes: 16 << 20 };
/// Time between two questions.
const EVERY_US: u64 = 1_000_000;
/// Largest figure that is taken: sums and means of those that are larger would be endless.
const FIGURE_MAX: f64 = 1e100;
/// The path where a URL has none.
const PATH: &str = "/metrics";

/// A page, and what was found in it before.
pub struct WatchedPage {
    name: String,
    url: String,
    target: Target,
    /// What follows the URL's own path.
    path: String,
    series: Vec<MetricSeries>,
    before: Option<(u64, Reading)>,
    /// Counters by the index of their series.
    counters: HashMap<usize, (u64, f64)>,
}

impl WatchedPage {
    /// Looks whether it is there, and has all that is wanted of it; says what it has, and whether of a whole machine.
    ///
    /// # Errors
    /// What is missing; [`LabError::Interrupted`] on a stop request.
    pub fn find(
        name: &str,
        url: &str,
        series: &[MetricSeries],
        stop_request: &dyn Fn() -> StopRequest,
    ) -> Result<(WatchedPage, String, bool), LabError> {
        let (whole, query) =
            url.split_once('?').map_or((url, String::new()), |(url, query)| (url, format!("?{query}")));
        let target = target(whole, &System::default())?;
        let path = if target.base_path.is_empty() { format!("{PATH}{query}") } else { query };
        let page = WatchedPage {
            name: name.to_owned(),
            url: url.to_owned(),
            target,
            path,
            series: series.to_vec(),
            before: None,
            counters: HashMap::new(),
        };
        let wrong = |reason: String| LabError::Usage(format!("{url} cannot be watched: {reason}"));
        let begin = Instant::now();
        let go_on = || match check_stop_request(stop_request) {
            Ok(()) if begin.elapsed() < WITHIN => Ok(()),
            Ok(()) => Err(wrong(too_long())),
            Err(error) => Err(error),
        };
        let answer = page.ask(&mut Client::new(&page.target), &go_on).map_err(|error| match error {
            NoAnswer::Stopped(error) => error,
            other => wrong(in_words(&other)),
        })?;
        let text = text(&answer).map_err(&wrong)?;
        let read = Page::read(&text);
        if let Some(missing) = series.iter().find(|series| read.value(series).is_none()) {
            return Err(wrong(format!("it has no series {missing}{}", read.names_like(&missing.name))));
        }
        let told = match read.reading() {
            Some(_) if series.is_empty() => "CPU and memory".to_owned(),
            Some(_) => format!("CPU and memory, {} series", series.len()),
            None if series.is_empty() => {
                return Err(wrong(format!(
                    "it tells neither a machine's CPU, as node_exporter does, nor its process's; say which `series` are of \
                     interest{}",
                    read.names_like("")
                )));
            }
            None => format!("{} series", series.len()),
        };
        Ok((page, told, read.is_machine()))
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn ask<E>(
        &self,
        client: &mut Client<'_>,
        go_on: &dyn Fn() -> Result<(), E>,
    ) -> Result<Answer, NoAnswer<E>> {
        let accept = ("accept".to_owned(), "text/plain;version=0.0.4, */*;q=0.5".to_owned());
        client.get(&self.path, &[accept], BOUNDS, go_on)
    }

    /// Asks until all is over; times count from `epoch`.
    pub fn watch(mut self, epoch: Instant, stop: &StopSignal, sender: &SyncSender<News>) {
        let now_us = || microseconds(epoch.elapsed());
        let target = self.target.clone();
        let mut client = Client::new(&target);
        while !stop.is_set() {
            let begin = Instant::now();
            let go_on = || if stop.is_set() || begin.elapsed() > WITHIN { Err(()) } else { Ok(()) };
            let asked = self.ask(&mut client, &go_on);
            let at_us = now_us();
            let tell = |what| drop(sender.try_send(News { at_us, what }));
            match asked.map_err(|error| in_words(&error)).and_then(|answer| text(&answer)) {
                Ok(text) => self.take(at_us, &Page::read(&text), &tell),
                Err(_) if stop.is_set() => {}
                Err(reason) => tell(What::Failed { url: self.url.clone(), reason }),
            }
            // a moment that is at least half a second away: over less, delays would count for much
            let next_us = ((now_us() + EVERY_US / 2) / EVERY_US + 1) * EVERY_US;
            stop.wait_until(epoch + Duration::from_micros(next_us));
        }
    }

    fn take(&mut self, at_us: u64, page: &Page<'_>, tell: &dyn Fn(What)) {
        if let Some(reading) = page.reading() {
            let before = self.before.replace((at_us, reading));
            if let Some(before) = before.filter(|before| before.0 < at_us) {
                let sample = difference(&self.name, before, (at_us, reading));
                if is_possible(&sample) {
                    tell(What::Samples(vec![sample]));
                } else {
                    let cores = sample.cpu_share.max(sample.steal_share);
                    let reason = format!("its CPU is {cores:.2e} cores, which no machine has");
                    tell(What::Failed { url: self.url.clone(), reason });
                }
            }
        }
        let mut figures = Vec::new();
        let is_figure = |name: &str, value: f64| {
            let is = value.abs() <= FIGURE_MAX;
            if !is {
                let reason = format!("{name} is {value:.2e}, which is too large for a figure");
                tell(What::Failed { url: self.url.clone(), reason });
            }
            is
        };
        for (index, series) in self.series.iter().enumerate() {
            let Some(now) = page.value(series) else { continue };
            if !is_figure(&series.to_string(), now.value) {
                continue;
            }
            if !now.is_counter {
                figures.push((series.to_string(), now.value));
                continue;
            }
            let before = self.counters.insert(index, (at_us, now.value));
            // one that fell was set back
            let before = before.filter(|(before_us, before)| *before_us < at_us && *before <= now.value);
            if let Some((before_us, before)) = before {
                let per_s = (now.value - before) * 1e6 / (at_us - before_us) as f64;
                figures.push((format!("{series}_per_s"), per_s));
            }
        }
        if !figures.is_empty() {
            let (store, measured) = (self.name.clone(), false);
            tell(What::Look(StoreLook { at_us, store, measured, figures }));
        }
    }
}

fn too_long() -> String {
    format!("no whole answer within {} s", WITHIN.as_secs())
}

fn in_words<E>(error: &NoAnswer<E>) -> String {
    match error {
        NoAnswer::Stopped(_) => too_long(),
        NoAnswer::Request(reason) | NoAnswer::Broken(reason) => reason.clone(),
        NoAnswer::Silent(silence) => format!("no byte within {silence:?}"),
        NoAnswer::TooLarge(bytes) => format!("it is larger than {} MiB", bytes >> 20),
    }
}

fn text(answer: &Answer) -> Result<String, String> {
    if !answer.status.is_success() {
        return Err(format!("it is answered with {}", answer.status.as_u16()));
    }
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let first = text.lines().next().unwrap_or_default();
    match first.trim_start().starts_with(['<', '[']) || first.trim() == "{" {
        true => Err(format!("it is not a page of metrics: it begins with {}", shown(first))),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// A server of one page for each connection.
    fn serving(pages: &'static [&'static str]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for page in pages {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]).unwrap();
                let head =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", page.len());
                stream.write_all(format!("{head}{page}").as_bytes()).unwrap();
            }
        });
        format!("http://{address}/metrics")
    }

    fn find(url: &str, series: &[&str]) -> Result<(WatchedPage, String, bool), LabError> {
        let series: Vec<MetricSeries> =
            series.iter().map(|text| MetricSeries::parse(text).unwrap()).collect();
        WatchedPage::find("it", url, &series, &|| StopRequest::None)
    }

    #[test]
    fn what_is_missing_is_told_before_the_load() {
        for (page, series, said) in [
            ("a 1\nb 2\n", &["c"][..], "it has no series c; it has a, b"),
            ("a 1\n", &[], "say which `series` are of interest; it has a"),
            ("<html>\n", &["a"], "it is not a page of metrics: it begins with <html>"),
        ] {
            let url = serving(Box::leak(Box::new([page])));
            let error = find(&url, series).err().unwrap();
            assert!(error.to_string().contains(said), "{error}");
            assert_eq!(error.exit_status(), 2);
        }
        let error = find("http://127.0.0.1:1/metrics", &[]).err().unwrap();
        assert!(error.to_string().contains("cannot be watched: no connection"), "{error}");
        let (_, told, is_machine) = find(&serving(&["process_cpu_seconds_total 1\na 1\n"]), &["a"]).unwrap();
        assert_eq!((told.as_str(), is_machine), ("CPU and memory, 1 series", false));
        let (.., is_machine) = find(&serving(&["node_cpu_seconds_total{mode=\"user\"} 1\n"]), &[]).unwrap();
        assert!(is_machine);
    }

    #[test]
    fn what_is_too_large_for_a_figure_is_left_out_and_told() {
        let (mut page, ..) = find(&serving(&["g 1\nc_total 1\n"]), &["g", "c_total"]).unwrap();
        let told = RefCell::new(Vec::new());
        let tell = |what| told.borrow_mut().push(what);
        page.take(1_000_000, &Page::read("g{a=\"1\"} 1e308\ng{a=\"2\"} 1e308\nc_total 1\n"), &tell);
        page.take(2_000_000, &Page::read("g 2\nc_total 1e308\n"), &tell);
        let told = told.into_inner();
        for (index, said) in [(0, "g is inf"), (1, "c_total is 1.00e308")] {
            let What::Failed { reason, .. } = &told[index] else { panic!("{told:?}") };
            assert!(reason.starts_with(said), "{reason}");
        }
        let What::Look(look) = &told[2] else { panic!("{told:?}") };
        assert_eq!((look.figures.as_slice(), told.len()), (&[("g".to_owned(), 2.0)][..], 3));
    }

    #[test]
    fn more_cores_than_there_are_anywhere_are_left_out_and_told() {
        let (mut page, ..) = find(&serving(&["g 1\n"]), &["g"]).unwrap();
        let told = RefCell::new(Vec::new());
        let tell = |what| told.borrow_mut().push(what);
        // a million more within a second is just too much, and the next second counts again
        for (at_us, cpu_s) in
            [(1_000_000, 1), (2_000_000, 1_000_001), (3_000_000, 1_000_003), (4_000_001, 2_018_013)]
        {
            let text = format!("process_cpu_seconds_total {cpu_s}\n");
            page.take(at_us, &Page::read(&text), &tell);
        }
        let told = told.into_inner();
        let What::Failed { reason, .. } = &told[0] else { panic!("{told:?}") };
        assert_eq!(reason, "its CPU is 1.00e6 cores, which no machine has");
        let What::Samples(samples) = &told[1] else { panic!("{told:?}") };
        assert_eq!((samples[0].cpu_share, told.len()), (2.0, 3));
        // three digits, however odd the seconds between
        let What::Failed { reason, .. } = &told[2] else { panic!("{told:?}") };
        assert_eq!(reason, "its CPU is 1.02e6 cores, which no machine has");
    }

    #[test]
    fn gauges_stand_as_they_are_and_counters_as_rates() {
        let (mut page, ..) = find(&serving(&["g 1\nc_total 1\n"]), &["g", "c_total"]).unwrap();
        let told = RefCell::new(Vec::new());
        let tell = |what| told.borrow_mut().push(what);
        page.take(1_000_000, &Page::read("g 1\nc_total 10\nprocess_cpu_seconds_total 1\n"), &tell);
        page.take(3_000_000, &Page::read("g 5\nc_total 30\nprocess_cpu_seconds_total 2\n"), &tell);
        page.take(4_000_000, &Page::read("c_total 3\n"), &tell);
        let told = told.into_inner();
        let look = |what: &What| match what {
            What::Look(look) => look.figures.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(look(&told[0]), [("g".to_owned(), 1.0)]);
        let What::Samples(samples) = &told[1] else { panic!("{:?}", told[1]) };
        assert_eq!((samples[0].process.as_str(), samples[0].cpu_share), ("it", 0.5));
        assert_eq!(look(&told[2]), [("g".to_owned(), 5.0), ("c_total_per_s".to_owned(), 10.0)]);
        assert_eq!(told.len(), 3, "a counter that was set back says nothing");
    }
}
