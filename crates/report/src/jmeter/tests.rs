use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};

use proptest::prelude::*;
use serde_json::Value;

use super::samples::{Flights, Label};
use super::*;
use crate::blocks::tests::{fitted, shown};
use crate::blocks::{Block, jmeter};
use crate::json::tests::assert_fits_verb;

/// Rates of intervals with this mean, least and most, with a first and a last that belong to none of them.
fn rates(intervals: usize, mean: f64, least: f64, most: f64) -> Vec<f64> {
    let rest = (mean * intervals as f64 - least - most) / (intervals - 2) as f64;
    let mut rates = vec![rest; intervals + 2];
    (rates[0], rates[intervals + 1]) = (3.0, 1_000_000.0);
    (rates[2], rates[5]) = (least, most);
    rates
}

/// A log as JMeter 2.9 wrote it.
fn log(file: &Path, host: &str, rates: &[f64]) {
    let mut text =
        format!("2013/07/11 21:10:00 INFO  - jmeter.JMeter: IP: 10.0.0.7 Name: {host} FullName: {host}.x \n");
    for (at, rate) in rates.iter().enumerate() {
        let (minute, second) = (10 + at / 2, at % 2 * 30);
        text += &format!(
            "2013/07/11 21:{minute}:{second:02} INFO  - jmeter.reporters.Summariser: summary +  15498 in    30s = {rate:6.1}/s Avg:   112 \
             Min:     4 Max:   995 Err:     0 (0.00%) Active: 60 Started: 60 Finished: 0 \n\
             2013/07/11 21:{minute}:{second:02} INFO  - jmeter.reporters.Summariser: summary = 310843 in   600s =  999.9/s Avg:   112 \n"
        );
    }
    fs::write(file, text).unwrap();
}

/// nmon's file of a machine whose CPU is this on average, with an idle begin, and a first and last value that say nothing.
fn nmon(file: &Path, host: &str, percent: f64) {
    let mut text = format!(
        "AAA,progname,nmon\nAAA,host,{host}\nCPU_ALL,CPU Total {host},User%,Sys%,Wait%,Idle%,Busy,CPUs\n"
    );
    let busy = [percent - 10.0, percent + 4.0, percent + 6.0];
    let all = [[0.3].as_slice(), &[99.0], &busy, &[2.0]].concat();
    for (at, value) in (1..).zip(all) {
        let (user, system) = (value * 0.75, value * 0.25);
        text += &format!(
            "ZZZZ,T{at:04},21:10:{:02},11-JUL-2013\nCPU_ALL,T{at:04},{user:.2},{system:.2},0.1,9.9,,4\n",
            at * 5
        );
    }
    fs::write(file, text).unwrap();
}

/// Requests of each label in the run of 2013 with one driver, as far as the page has them.
const LABELS: [(&str, u64); 8] = [
    ("QueryFlight", 143_908),
    ("Cancel Booking", 43_032),
    ("Login", 28_815),
    ("List Bookings", 28_753),
    ("logout", 28_753),
    ("BookFlight", 23_158),
    ("View Profile Information", 7_212),
    ("Update Customer", 7_212),
];

/// Times of so many requests: the published least, most and 90th percentile, and so many with the mean's remainder.
fn time(at: u64, requests: u64) -> u64 {
    match at {
        0 => 4,
        1 => 995,
        at if at < requests * 8 / 10 => 93,
        _ => 187,
    }
}

/// A driver's results as the published plan wrote them.
fn jtl(file: &Path) -> Vec<u64> {
    let mut to = BufWriter::new(File::create(file).unwrap());
    let all: u64 = LABELS.iter().map(|(_, n)| n).sum();
    writeln!(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testResults version=\"1.2\">").unwrap();
    let mut times = Vec::new();
    for (label, requests) in LABELS {
        for nth in 0..requests {
            let at = times.len() as u64;
            let t = time(at, all);
            times.push(t);
            let (empty, one_way) =
                (label == "QueryFlight" && nth < 27_410, label == "BookFlight" && nth < 5_178);
            writeln!(
                to,
                "<httpSample t=\"{t}\" lt=\"{t}\" ts=\"{}\" s=\"true\" lb=\"{label}\" rc=\"200\" rm=\"OK\" tn=\"Thread Group 1-{}\" \
                 dt=\"text\" by=\"9\" FLIGHTTOCOUNT=\"{}\" FLIGHTRETCOUNT=\"1\" ONEWAY=\"{one_way}\"/>",
                1_373_577_000_000 + at,
                at % 60 + 1,
                u64::from(!empty)
            )
            .unwrap();
        }
    }
    writeln!(to, "</testResults>").unwrap();
    times
}

/// The words of a report, so that columns do not matter.
fn words(figures: &Figures) -> String {
    shown(&jmeter(figures, true), 120).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn assert_says(text: &str, all: &[&str]) {
    for says in all {
        assert!(text.contains(says), "should say `{says}`: {text}");
    }
}

#[test]
fn the_page_of_one_driver_of_2013_is_shown_as_published() {
    let dir = tempfile::tempdir().unwrap();
    for tier in ["driver", "liberty", "data"] {
        fs::create_dir_all(dir.path().join(tier).join("1")).unwrap();
    }
    let of = |name: &str| dir.path().join(name);
    log(&of("driver/AcmeAir1.log"), "driver1", &rates(20, 516.6, 494.1, 530.3));
    let mut times = jtl(&of("driver/AcmeAir1.jtl"));
    nmon(&of("driver/1/output.nmon"), "d1", 27.0);
    nmon(&of("liberty/1/output.nmon"), "web1", 60.0);
    nmon(&of("liberty/output.nmon"), "auth1", 68.0);
    nmon(&of("data/1/output.nmon"), "data1", 65.0);
    // what the page says of the times, computed by sorting
    times.sort_unstable();
    let n = times.len();
    assert_eq!((n, times[(0.9 * n as f64).round() as usize]), (310_843, 187));
    let mean = times.iter().sum::<u64>() as f64 / n as f64;
    assert_eq!((mean.round(), times[0], times[n - 1]), (112.0, 4, 995));

    let found = read(dir.path()).unwrap();
    let figures = found.figures();
    let text = words(&figures);
    assert_says(
        &text,
        &[
            "516.6 requests/s on average, 44.6 M operations/day",
            "average 516.6/s · min 494.1/s · max 530.3/s · of 20 intervals",
            "from 2013/07/11 21:10:00 · to 2013/07/11 21:20:30",
            "all 112 4 995 187",
            " 310,843 100% 0 BookFlight",
            " 143,908 46.30% 0 Update",
            "virtual users 60 60 in each of 1 file",
            "queries with zero results 27,410 19.0%",
            "flights returned 116,498 0.81 for each query",
            "one-way flights booked 5,178",
            "bookings skipped - 19.6%",
            "data 65 55 71 1 driver 27 17 33 1 liberty 64 50 74 2",
        ],
    );
    let order = [
        "BookFlight",
        "Cancel Booking",
        "Login",
        "logout",
        "List Bookings",
        "QueryFlight",
        "Update Customer",
        "View Profile Information",
    ];
    assert_eq!(figures.labels.iter().map(|of| of.label.as_str()).collect::<Vec<_>>(), order);
    assert_eq!(
        (figures.generators[0].name.as_str(), figures.unread.count, figures.notes.len()),
        ("driver1", 0, 0)
    );
    assert_eq!(figures.overall.as_ref().unwrap().average_ms, mean);
    // places may be longer than a line
    let mut blocks = jmeter(&figures, false);
    blocks.retain(|block| !matches!(block, Block::Place(..) | Block::Title(..)));
    for width in [45, 60, 80, 100, 120] {
        fitted(&blocks, width);
    }
    let printed: Value = serde_json::from_str(&figures.json()).unwrap();
    assert_fits_verb(&printed, "jmeter");
    let page = crate::still::jmeter(&figures);
    assert_eq!(page.matches("<figure").count(), 5, "throughput twice, and three tiers");
    assert!(!page.contains("<script") && !page.contains("http"), "the page needs nothing");
}

#[test]
fn the_page_of_twenty_drivers_of_2013_is_shown_as_published() {
    let dir = tempfile::tempdir().unwrap();
    let (mean, least, most) = (8_501.9, 5_749.4, 12_783.0);
    let all = rates(20, mean, least, most);
    for driver in 0..20 {
        let folder = dir.path().join(format!("driver{driver}"));
        fs::create_dir(&folder).unwrap();
        // drivers differ, and one is cut short
        let weight = if driver % 2 == 0 { 0.04 } else { 0.06 };
        let mut rates: Vec<f64> = all.iter().map(|rate| rate * weight).collect();
        rates.extend((driver > 0).then_some(1.0));
        log(&folder.join("AcmeAir1.log"), &format!("d{driver}"), &rates);
    }
    let mut found = read(dir.path()).unwrap();
    let requests = 7_877_125;
    let mut label = Label { name: "QueryFlight".into(), ..Label::default() };
    // by a mean of 86 ms
    for (ms, n) in [(1, 1), (63_165, 1), (121, requests / 5), (77, requests - requests / 5 - 2)] {
        label.times.add_many(ms, n);
    }
    let errors = [
        ("403", 1_411),
        ("Non HTTP response code: java.net.ConnectException", 244),
        ("500", 16),
        ("503", 15),
    ];
    label.errors = errors.map(|(code, n)| (code.to_owned(), n)).into();
    found.samples.labels.push(label);
    found.samples.flights = Flights {
        queries: 3_656_776,
        empty: 696_433,
        returned: 2_960_343,
        bookings: 590_000,
        one_way: 132_091,
    };
    let text = words(&found.figures());
    // rates are logged with one decimal for each of 20 drivers
    let of = found.figures().throughput.unwrap();
    assert!((of.average_per_s - mean).abs() < 0.5 && (of.max_per_s - most).abs() < 0.5, "{of:?}");
    assert_eq!(of.intervals, 20);
    assert_says(
        &text,
        &[
            "734.6 M operations/day",
            "all 86 1 63,165 121",
            " 7,877,125 100% 1,686 ",
            "1,411 × 403 · 16 × 500 · 15 × 503 · 244 × Non HTTP response code: java.net.ConnectException",
            "queries with zero results 696,433 19.0%",
            "flights returned 2,960,343 0.81 for each query",
            "one-way flights booked 132,091",
            "the logs have 22 to 23 intervals",
            "requests/s by load generator (2)",
            "63.0s to 63.5s",
        ],
    );
}

/// What JMeter 5.6.3 wrote: attributes that the published reporter does not know, in another order, and labels that need quotes.
const XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testResults version="1.2">
<httpSample t="54" it="0" lt="50" ct="43" ts="1795912031023" s="true" lb="Login" rc="200" rm="OK" tn="Thread Group 1-1" dt="text" by="236" sby="252" ng="3" na="3" FLIGHTTOCOUNT="2" FLIGHTRETCOUNT="" ONEWAY="">
  <java.net.URL>http://127.0.0.1:19080/rest/api/login</java.net.URL>
</httpSample>
<httpSample t="6" it="0" lt="6" ct="1" ts="1795912031090" s="true" lb="Mobile QueryFlight &quot;&lt;x&gt;&quot;, a" rc="200" rm="OK" tn="Thread Group 1-2" dt="text" by="253" sby="193" ng="3" na="3" FLIGHTTOCOUNT="0" FLIGHTRETCOUNT="" ONEWAY="">
  <httpSample t="3" lt="3" ts="1795912031091" s="true" lb="a part" rc="302" tn="Thread Group 1-2"/>
</httpSample>
<sample t="6" it="0" lt="6" ct="1" ts="1795912031096" s="false" lb="Booking" rc="" rm="Number of samples in transaction : 1, number of failing samples : 1" tn="Thread Group 1-2" dt="" by="0" sby="0" ng="3" na="3" FLIGHTTOCOUNT="0" FLIGHTRETCOUNT="" ONEWAY="">
  <httpSample t="2" it="0" lt="6" ct="1" ts="1795912031098" s="false" lb="no &amp; one" rc="404" rm="Not Found" tn="Thread Group 1-2" dt="text" by="253" sby="193" ng="3" na="3" FLIGHTTOCOUNT="0" FLIGHTRETCOUNT="" ONEWAY="">
    <java.net.URL>http://127.0.0.1:19080/nothing/here</java.net.URL>
  </httpSample>
</sample>
"#;

/// The same as CSV.
const CSV: &str = r#"timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect,"FLIGHTTOCOUNT","FLIGHTRETCOUNT","ONEWAY"
1795912031023,54,Login,200,OK,Thread Group 1-1,text,true,,236,252,3,3,http://127.0.0.1:19080/rest/api/login,50,0,43,2,null,null
1795912031090,6,"Mobile QueryFlight ""<x>"", a",200,OK,Thread Group 1-2,text,true,,253,193,3,3,http://127.0.0.1:19080/rest,6,0,1,0,null,null
1795912031098,2,no & one,404,Not Found,Thread Group 1-2,text,false,"Test failed:
  wanted ""200"", was 404",253,193,3,3,http://127.0.0.1:19080/nothing/here,6,0,1,0,null,null
1795912031096,6,Booking,,"Number of samples in transaction : 1, number of failing samples : 1",Thread Group 1-2,,false,,0,0,3,3,null,6,0,1,0,null,null
"#;

fn of(name: &str, text: &[u8]) -> Figures {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(name), text).unwrap();
    read(dir.path()).unwrap().figures()
}

#[test]
fn xml_and_csv_of_a_newer_jmeter_say_the_same() {
    let (xml, csv) = (of("a.jtl", XML.as_bytes()), of("a.jtl", CSV.as_bytes()));
    for figures in [&xml, &csv] {
        let labels: Vec<_> =
            figures.labels.iter().map(|of| (of.label.as_str(), of.requests, of.max_ms, of.errors)).collect();
        assert_eq!(labels, [("Login", 1, 54, 0), ("QueryFlight", 1, 6, 0), ("no & one", 1, 2, 1)]);
        assert_eq!(figures.overall.as_ref().unwrap().errors_by_code, BTreeMap::from([("404".to_owned(), 1)]));
        assert_eq!(
            (figures.users.total, figures.users.queries_empty, figures.users.one_way),
            (Some(2), Some(1), None)
        );
        assert_eq!(figures.began.as_deref(), Some("2026-11-29 00:27:11 UTC"));
        assert_eq!((figures.unread.count, &figures.throughput), (0, &None));
        assert_says(
            &words(figures),
            &["one-way flights booked UNKNOWN", "no HTTP requests (transactions, other samplers): 1"],
        );
    }
    assert_says(&words(&xml), &["parts of another (redirects, embedded files): 1"]);
    // other delimiters, and a test that was appended
    let semicolons = "\u{feff}label;elapsed;success\nLogin;5;true\nlabel;elapsed;success\nLogin;7;false\n";
    let figures = of("b.csv", semicolons.as_bytes());
    assert_eq!((figures.labels[0].requests, figures.labels[0].errors, figures.unread.count), (2, 1, 0));
}

#[test]
fn what_is_not_understood_is_told_with_its_place_and_the_rest_counts() {
    let damaged = XML.replace("t=\"54\"", "t=\"54s\"").replace("</sample>", "<httpSample t=\"9\" lb=\"cut");
    let figures = of("AcmeAir1.jtl", damaged.as_bytes());
    assert_eq!(figures.unread.examples[0], "AcmeAir1.jtl:3: the time \"54s\" is no number of milliseconds");
    assert!(figures.unread.examples[1].starts_with("AcmeAir1.jtl:13: "), "{:?}", figures.unread);
    assert_eq!(
        (figures.unread.examples[2].as_str(), figures.unread.count),
        ("AcmeAir1.jtl:13: the file ends within a sample", 3)
    );
    assert_eq!(figures.overall.as_ref().unwrap().requests, 2);
    assert_says(
        &words(&figures),
        &["not understood and left out, lines or files: 3", "AcmeAir1.jtl:3: the time"],
    );

    let csv = "timeStamp,elapsed,label,success\n1,2,Login,true\n1,2,Login\n1,-2,Login,true\n1,2,\"Log";
    let figures = of("x.jtl", csv.as_bytes());
    let told: Vec<&str> = figures.unread.examples.iter().map(String::as_str).collect();
    let wanted = [
        "x.jtl:3: 3 fields where the head line has 4",
        "x.jtl:4: the time \"-2\" is no number of milliseconds",
        "x.jtl:5: a quote that does not end",
    ];
    assert_eq!((told, figures.labels[0].requests), (wanted.to_vec(), 1));

    let log = "2013/07/11 21:10:00 x: summary + 1 in 30s = 5,5/s\nat summary + 1\n2013/07/11 21:10:30 x: summary + 1 in 30s = */s\n";
    let figures = of("a.log", log.as_bytes());
    assert_eq!((figures.total.values.as_slice(), figures.unread.count), ([5.5].as_slice(), 2));
    assert_says(
        &words(&figures),
        &["throughput UNKNOWN", "fewer than three lines `summary +`", "a.log:2: no date and time"],
    );

    let nmon = "CPU_ALL,T0001,1\nCPU_ALL,T0002,x,y\nCPU_ALL,T0003,5,5\n";
    let figures = of("a.nmon", nmon.as_bytes());
    assert_eq!((figures.unread.count, figures.cpu[0].average), (2, None));
}

#[test]
fn drivers_of_one_name_or_of_different_times_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    log(&dir.path().join("AcmeAir1.log"), "vm", &[1.0, 2.0, 3.0]);
    let path = dir.path().join("AcmeAir2.log");
    log(&path, "vm", &[1.0, 2.0, 3.0]);
    let names = |figures: &Figures| figures.generators.iter().map(|of| of.name.clone()).collect::<Vec<_>>();
    let figures = read(dir.path()).unwrap().figures();
    assert_eq!(
        (names(&figures), figures.notes.len()),
        (vec!["vm (AcmeAir1.log)".into(), "vm (AcmeAir2.log)".into()], 0)
    );
    let later = fs::read_to_string(&path).unwrap().replace("07/11", "07/12");
    fs::write(&path, later).unwrap();
    assert_says(&words(&read(dir.path()).unwrap().figures()), &["the logs are not of the same time"]);
}

proptest! {
    /// Any bytes are figures or lines that were not understood, and no line is both.
    #[test]
    fn any_bytes_are_read_or_told(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20), kind in 0usize..4) {
        let log = "2013/07/11 21:10:00 x: summary + 1 in 30s = 5.5/s\n";
        let nmon = "AAA,host,h\nZZZZ,T0001,1:2:3\nCPU_ALL,T0001,5,5\n";
        let (name, whole) = [("a.jtl", XML), ("a.jtl", CSV), ("a.log", log), ("a.nmon", nmon)][kind];
        let mut bytes = whole.as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(name), &bytes).unwrap();
        if let Ok(found) = read(dir.path()) {
            let figures = found.figures();
            let requests = figures.overall.as_ref().map_or(0, |of| of.requests);
            prop_assert!(requests + figures.unread.count <= bytes.iter().filter(|byte| b"\n<".contains(byte)).count() as u64 + 2);
            prop_assert_eq!(requests, figures.labels.iter().map(|of| of.requests).sum::<u64>());
            shown(&jmeter(&figures, true), 80);
            crate::still::jmeter(&figures);
        }
    }
}

#[test]
fn a_stray_quote_or_one_that_is_never_closed_swallows_no_other_row() {
    let head = "timeStamp,elapsed,label,responseCode,responseMessage,success";
    let row = |message: &str, good: bool| format!("1000,5,Login,200,{message},{good}");
    // in the middle of a field a quote is a character
    let text = [head.into(), row("5\" disk", true), row("OK", false), row("5\" disk", true)].join("\n");
    let figures = of("a.jtl", text.as_bytes());
    let of_all = |figures: &Figures| figures.overall.as_ref().map(|of| (of.requests, of.errors));
    assert_eq!((of_all(&figures), figures.unread.count), (Some((3, 1)), 0));
    // JMeter was killed within a message; then another test was appended
    let text = [head.into(), row("OK", true), "1000,5,Login,500,\"no".into(), head.into(), row("OK", false)];
    let figures = of("a.jtl", text.join("\n").as_bytes());
    assert_eq!((of_all(&figures), figures.unread.count), (Some((2, 1)), 1));
    // one that is closed has line ends
    let text = [head.into(), row("\"two\nlines\"", true), row("OK", true)].join("\n");
    let figures = of("a.jtl", text.as_bytes());
    assert_eq!((of_all(&figures), figures.unread.count), (Some((2, 0)), 0));
}

#[test]
fn each_sample_of_a_line_counts() {
    let one = |good| format!("<httpSample t=\"1\" ts=\"1\" lb=\"a>b\" s=\"{good}\"");
    let line = format!(
        "<testResults>{}/>{}><httpSample t=\"1\"/></httpSample>{}/>",
        one(true),
        one(false),
        one(true)
    );
    let figures = of("a.jtl", line.as_bytes());
    let all = figures.overall.as_ref().unwrap();
    assert_eq!((all.requests, all.errors, figures.unread.count), (3, 1, 0));
}

#[test]
fn a_line_without_end_takes_no_memory() {
    let long = [
        b"<httpSample t=\"1\" lb=\"".as_slice(),
        &vec![b'x'; 1 << 20],
        b"\"/>\n<httpSample t=\"1\" lb=\"Login\" s=\"true\"/>\n",
    ]
    .concat();
    let figures = of("a.jtl", &long);
    assert_eq!((figures.labels[0].requests, figures.unread.count), (1, 1));
}
