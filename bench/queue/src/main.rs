//! The batching queue and its streams beside the queues of others: the same messages between the same two cores, in turn.
//!
//! `run` beside this says what can be set. The output is Markdown.

mod job;
mod message;
mod ours;
mod peers;
mod sample;

use std::env;
use std::ops::RangeInclusive;
use std::time::Duration;

use job::Job;
use message::{Message, Trade};
use peers::{bare, channels, rings};

/// Messages that every queue has room for: 8 KiB of numbers, a quarter of a usual first cache.
const CAPACITY: usize = 1024;
/// The same, where the ring fills that cache.
const CAPACITY_LARGE: usize = 4096;
/// Messages of the first run of each case, which says how many its samples take.
const FIRST_MESSAGES: u64 = 1_000_000;
/// What a stream is to reach of the bare queue.
const SHARE_AT_LEAST: f64 = 0.7;
/// A case may throw away so many samples for each that it keeps.
const THROWN_AWAY_MAX: usize = 4;

type Run = fn(&Job) -> Duration;

/// One way to transport messages.
struct Case {
    queue: &'static str,
    way: String,
    job: Job,
    run: Run,
    /// Million messages a second that ours is to reach.
    at_least: Option<u32>,
    /// The case of the same table of which it is to reach `SHARE_AT_LEAST`.
    beside: Option<usize>,
    rates: Vec<f64>,
    thrown_away: usize,
}

/// Cases that are measured in turn, and stand in one table.
struct Table {
    title: String,
    cases: Vec<Case>,
}

impl Table {
    fn new(title: String) -> Table {
        Table { title, cases: Vec::new() }
    }

    fn case(
        &mut self,
        queue: &'static str,
        way: impl Into<String>,
        job: Job,
        run: Run,
        at_least: Option<u32>,
    ) {
        self.cases.push(Case {
            queue,
            way: way.into(),
            job,
            run,
            at_least,
            beside: None,
            rates: Vec::new(),
            thrown_away: 0,
        });
    }

    /// Ours and the channels, which take any number of senders; and the one ring that does.
    fn any_senders<M: Message>(&mut self, single: Job, batches: &[Job], at_least: &[Option<u32>]) {
        self.case(
            "tidemark-queue",
            "one at a time, received in batches",
            single,
            ours::batches::<M>,
            at_least[0],
        );
        self.case("tidemark-queue", "one at a time, received so", single, ours::single::<M>, None);
        for (job, at_least) in batches.iter().zip(&at_least[1..]) {
            self.case("tidemark-queue", of(job), *job, ours::batches::<M>, *at_least);
        }
        let singles: [(&str, Run); 5] = [
            ("crossbeam-channel", channels::crossbeam::single::<M>),
            ("flume", channels::flume::single::<M>),
            ("kanal", channels::kanal::single::<M>),
            ("tokio mpsc", channels::tokio::single::<M>),
            ("disruptor", rings::disruptor_::run::<M>),
        ];
        for (queue, run) in singles {
            self.case(queue, "one at a time", single, run, None);
        }
        let in_batches: [(&str, Run, &str); 5] = [
            ("crossbeam-channel", channels::crossbeam::batches::<M>, " (Vec)"),
            ("flume", channels::flume::batches::<M>, " (Vec)"),
            ("kanal", channels::kanal::batches::<M>, " (Vec)"),
            ("tokio mpsc", channels::tokio::batches::<M>, " (Vec)"),
            ("disruptor", rings::disruptor_::run::<M>, ""),
        ];
        for job in batches {
            for (queue, run, how) in in_batches {
                self.case(queue, of(job) + how, *job, run, None);
            }
        }
    }

    /// Those that do batches in place, in a larger ring.
    fn large(&mut self, batches: &[Job]) {
        for job in batches {
            self.case("tidemark-queue", of(job), *job, ours::batches::<u64>, None);
            self.case("disruptor", of(job), *job, rings::disruptor_::run::<u64>, None);
            self.case("rtrb", of(job), *job, rings::rtrb::batches::<u64>, None);
            self.case("ringbuf", of(job), *job, rings::ringbuf_::batches::<u64>, None);
        }
        self.bare(batches[0]);
    }

    /// What the machine allows.
    fn bare(&mut self, job: Job) {
        self.case("no queue: a bare ring", "in pieces of 128", job, bare::run, None);
    }

    /// The rings of one sender.
    fn rings<M: Message>(&mut self, single: Job, batches: &[Job]) {
        self.case("rtrb", "one at a time", single, rings::rtrb::single::<M>, None);
        self.case("ringbuf", "one at a time", single, rings::ringbuf_::single::<M>, None);
        for job in batches {
            self.case("rtrb", of(job), *job, rings::rtrb::batches::<M>, None);
            self.case("ringbuf", of(job), *job, rings::ringbuf_::batches::<M>, None);
        }
    }

    fn measure(&mut self, settings: &Settings) {
        if !self.title.contains(&settings.only) {
            self.cases.retain(|case| case.queue.contains(&settings.only));
        }
        sample::wait_for_distance(settings.cores, &settings.apart_ns);
        for case in &mut self.cases {
            case.job.messages = FIRST_MESSAGES;
            let first = (case.run)(&case.job);
            let per_s = FIRST_MESSAGES as f64 / first.as_secs_f64();
            case.job.messages = (per_s * settings.seconds_each).max(1.0) as u64;
        }
        for _ in 0..settings.runs {
            for case in &mut self.cases {
                case.sample(settings);
            }
        }
    }

    fn print(&self, settings: &Settings) {
        if self.cases.is_empty() {
            return;
        }
        println!("## {}\n", self.title);
        println!("| queue | way | million/s | lowest to highest | at least | samples | thrown away |");
        println!("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
        for case in &self.cases {
            println!("{}", case.row(settings, case.beside.and_then(|index| self.cases[index].median())));
        }
        println!();
    }
}

/// "in batches of 100".
fn of(job: &Job) -> String {
    format!("in batches of {}", job.batch)
}

impl Case {
    /// One sample more, if the cores can be had for long enough.
    fn sample(&mut self, settings: &Settings) {
        while self.thrown_away < settings.runs * THROWN_AWAY_MAX {
            if let Some(took) =
                sample::undisturbed(settings.cores, &settings.apart_ns, || (self.run)(&self.job))
            {
                self.rates.push(self.job.messages as f64 / took.as_secs_f64() / 1e6);
                return;
            }
            self.thrown_away += 1;
        }
    }

    fn median(&self) -> Option<f64> {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    }

    fn row(&self, settings: &Settings, beside: Option<f64>) -> String {
        let median = self.median();
        let figure = median.map_or("none undisturbed".to_owned(), |median| format!("{median:.0}"));
        let lowest = self.rates.iter().copied().reduce(f64::min);
        let highest = self.rates.iter().copied().reduce(f64::max);
        let range = lowest.zip(highest).map_or(String::new(), |(low, high)| format!("{low:.0} to {high:.0}"));
        let mut goals = Vec::new();
        if let Some(at_least) = self.at_least {
            let reached = median.map_or("not known", |median| reached(median, f64::from(at_least)));
            goals.push(format!("{at_least}: {reached}"));
        }
        if let Some((median, beside)) = median.zip(beside) {
            let share = median / beside;
            goals.push(format!(
                "70 % of the bare queue: {:.0} %, {}",
                share * 100.0,
                reached(share, SHARE_AT_LEAST)
            ));
        }
        let (queue, way, kept, thrown_away) = (self.queue, &self.way, self.rates.len(), self.thrown_away);
        let few = if kept < settings.runs { " (too few)" } else { "" };
        let goals = goals.join("; ");
        format!("| {queue} | {way} | {figure} | {range} | {goals} | {kept}{few} | {thrown_away} |")
    }
}

fn reached(figure: f64, goal: f64) -> &'static str {
    if figure >= goal { "yes" } else { "NO" }
}

/// What can be set, by variables of the environment.
struct Settings {
    runs: usize,
    seconds_each: f64,
    cores: [usize; 2],
    /// Nanoseconds from one core to the other, for a sample to count.
    apart_ns: RangeInclusive<f64>,
    only: String,
}

impl Settings {
    fn read() -> Result<Settings, String> {
        let cores = env::var("CORES").unwrap_or_else(|_| "0,1".to_owned());
        let parsed: Result<Vec<usize>, _> = cores.split(',').map(str::parse).collect();
        let Ok([senders, receiver]) = parsed.as_deref() else {
            return Err(format!("CORES={cores}: two numbers of cores are needed, as in CORES=2,3"));
        };
        let apart = env::var("APART_NS").unwrap_or_else(|_| "35,150".to_owned());
        let parsed: Result<Vec<f64>, _> = apart.split(',').map(str::parse).collect();
        let Ok([least_ns, most_ns]) = parsed.as_deref() else {
            return Err(format!(
                "APART_NS={apart}: two numbers are needed, least and most, as in APART_NS=35,150"
            ));
        };
        Ok(Settings {
            runs: number("RUNS", 5)?,
            seconds_each: number("SECONDS_EACH", 0.5)?,
            cores: [*senders, *receiver],
            apart_ns: *least_ns..=*most_ns,
            only: env::var("ONLY").unwrap_or_default(),
        })
    }
}

fn number<N: std::str::FromStr>(name: &str, default: N) -> Result<N, String> {
    match env::var(name) {
        Err(_) => Ok(default),
        Ok(text) => text.parse().map_err(|_| format!("{name}={text}: a number is needed")),
    }
}

fn tables(settings: &Settings) -> Vec<Table> {
    let job = |senders: u64, batch: u64| Job {
        messages: 0,
        batch,
        senders,
        capacity: CAPACITY,
        cores: settings.cores,
    };
    let mut tables = Vec::new();

    let mut numbers = Table::new(format!("{}, one sender, one receiver", u64::NAME));
    numbers.any_senders::<u64>(job(1, 1), &[job(1, 100), job(1, 1600)], &[Some(300), Some(700), Some(1000)]);
    numbers.rings::<u64>(job(1, 1), &[job(1, 100), job(1, 1600)]);
    numbers.bare(job(1, 100));
    tables.push(numbers);

    let large = |batch| Job { capacity: CAPACITY_LARGE, ..job(1, batch) };
    let mut table = Table::new(format!("{}, one sender, one receiver, room for {CAPACITY_LARGE}", u64::NAME));
    table.large(&[large(100), large(1600)]);
    tables.push(table);

    for (senders, at_least) in [(2, 250), (6, 300)] {
        let mut table = Table::new(format!("{}, {senders} senders on a core, one receiver", u64::NAME));
        table.any_senders::<u64>(job(senders, 1), &[job(senders, 100)], &[None, Some(at_least)]);
        tables.push(table);
    }

    let mut trades = Table::new(format!("{}, one sender, one receiver", Trade::NAME));
    trades.any_senders::<Trade>(job(1, 1), &[job(1, 100)], &[None, None]);
    trades.rings::<Trade>(job(1, 1), &[job(1, 100)]);
    tables.push(trades);

    let mut boxes = Table::new(format!("{}, one sender, one receiver", Box::<u64>::NAME));
    boxes.any_senders::<Box<u64>>(job(1, 1), &[job(1, 100)], &[None, None]);
    boxes.rings::<Box<u64>>(job(1, 1), &[job(1, 100)]);
    tables.push(boxes);

    let mut streams = Table::new("streams with demand, u64, asked for 1,024 at a time".to_owned());
    for batch in [100, 1600] {
        let job = job(1, batch);
        let bare = streams.cases.len();
        let by_message = ", round robin to 2, by message";
        streams.case("tidemark-queue", of(&job) + ", the bare queue", job, ours::batches::<u64>, None);
        streams.case("tidemark-queue", of(&job) + ", unicast", job, ours::unicast, Some(300));
        streams.case(
            "tidemark-queue",
            of(&job) + ", round robin to 2, by batch",
            job,
            ours::round_robin,
            Some(300),
        );
        for case in &mut streams.cases[bare + 1..] {
            case.beside = Some(bare);
        }
        streams.case("tidemark-queue", of(&job) + by_message, job, ours::round_robin_by_message, None);
        streams.case("tidemark-queue", of(&job) + ", multicast to 2", job, ours::multicast, Some(150));
    }
    tables.push(streams);
    tables
}

fn main() -> std::process::ExitCode {
    let settings = match Settings::read() {
        Ok(settings) => settings,
        Err(wrong) => {
            eprintln!("bench: {wrong}");
            return std::process::ExitCode::from(2);
        }
    };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let apart = &settings.apart_ns;
    if !sample::wait_for_distance(settings.cores, apart) {
        eprintln!(
            "bench: cores {} and {} are {:.0} ns apart, and APART_NS={},{} wants samples in between: set that, or other CORES",
            settings.cores[0],
            settings.cores[1],
            sample::apart_ns(settings.cores),
            apart.start(),
            apart.end(),
        );
        return std::process::ExitCode::from(2);
    }
    println!(
        "Medians of {} samples of {} s each, the cases of a table in turn; senders on core {}, receiver on core {}; room for \
         {CAPACITY} messages (for two batches where a queue takes only whole ones); load average {} at the start. A sample is \
         thrown away if others took more than 5 % of the two cores meanwhile, or if a number took less than {} ns or more than \
         {} ns from one core to the other before or after it. Multicast counts what was sent, not what was signalled.\n",
        settings.runs,
        settings.seconds_each,
        settings.cores[0],
        settings.cores[1],
        load.split(' ').next().unwrap_or("?"),
        apart.start(),
        apart.end(),
    );
    for mut table in tables(&settings) {
        table.measure(&settings);
        table.print(&settings);
    }
    std::process::ExitCode::SUCCESS
}
