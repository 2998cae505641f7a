//! A node that speaks Aerospike's protocol, for tests: a map in memory. It reads what it is sent by itself, so that a mistake of ours is not
//! made twice, and it can be told to fail.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is carried out.
    Done,
    /// It is not, and this result code is said.
    Refused(u8),
    /// It is carried out, and this result code is said.
    DoneBut(u8),
    /// It is carried out, and the connection closed.
    Closed,
    /// It is carried out, and answered after so long.
    Late(Duration),
    /// A write is answered as done, and not carried out.
    Lost,
}

/// A bin's type and value.
pub type Value = (u8, Vec<u8>);

/// A record.
#[derive(Debug, Clone, Default)]
pub struct Record {
    pub set: Vec<u8>,
    pub generation: u16,
    /// As it was said: seconds.
    pub expires: i32,
    pub bins: BTreeMap<Vec<u8>, Value>,
}

type Records = Arc<Mutex<HashMap<[u8; 20], Record>>>;

/// A node that runs as long as its process.
pub struct Node {
    pub address: SocketAddr,
    pub records: Records,
}

const NAMESPACE: &str = "test";
const PARTITIONS: u16 = 4096;
/// The partitions of which a scan of the set `half` tells.
const HALF: u16 = 2000;

impl Node {
    /// Whose requests about records, counted over all connections, have these fates; it says that its cluster has so many nodes.
    pub fn start(cluster: usize, fate: impl Fn(usize) -> Fate + Send + Sync + 'static) -> Node {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let records = Records::default();
        let node = Node { address, records: Arc::clone(&records) };
        let (fate, count) = (Arc::new(fate), Arc::new(AtomicUsize::new(0)));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (records, fate, count) = (Arc::clone(&records), Arc::clone(&fate), Arc::clone(&count));
                let next = move || fate(count.fetch_add(1, Ordering::SeqCst));
                std::thread::spawn(move || serve(stream, cluster, address, &records, &next));
            }
        });
        node
    }

    /// Records of a set.
    pub fn of(&self, set: &str) -> Vec<Record> {
        let records = self.records.lock().expect("the records");
        records.values().filter(|record| record.set == set.as_bytes()).cloned().collect()
    }
}

fn serve(
    mut stream: TcpStream,
    cluster: usize,
    address: SocketAddr,
    records: &Records,
    fate: &dyn Fn() -> Fate,
) {
    let _ = stream.set_nodelay(true);
    let mut header = [0; 8];
    while stream.read_exact(&mut header).is_ok() {
        assert_eq!(header[0], 2, "the version");
        let length = u64::from_be_bytes(header) & 0xffff_ffff_ffff;
        let mut payload = vec![0; usize::try_from(length).expect("a length")];
        if stream.read_exact(&mut payload).is_err() {
            return;
        }
        let answers = match header[1] {
            1 => vec![frame(1, &info(&payload, cluster, address))],
            3 => match message(&payload, records, fate) {
                Some(answers) => answers,
                None => return,
            },
            other => panic!("a frame of kind {other}"),
        };
        for answer in answers {
            if stream.write_all(&answer).is_err() {
                return;
            }
        }
    }
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u64).to_be_bytes();
    [&[2, kind], &length[2..], payload].concat()
}

fn info(asked: &[u8], cluster: usize, address: SocketAddr) -> Vec<u8> {
    let mut told = String::new();
    for name in std::str::from_utf8(asked).expect("names").lines() {
        let value = match name {
            "namespaces" => format!("bar;{NAMESPACE}"),
            "statistics" => format!("failed_best_practices=false;cluster_size={cluster};cluster_key=1"),
            // what other clients ask
            "node" => "BB9000000000001".into(),
            "build" => "8.1.0.0".into(),
            "partition-generation" | "peers-generation" | "rebalance-generation" => "1".into(),
            "features" => "batch-any;pscans;query-show;pquery".into(),
            "service-clear-std" | "service-clear-alt" | "service" => address.to_string(),
            "peers-clear-std" | "peers-clear-alt" => "1,3000,[]".into(),
            name if name.starts_with("replicas") => {
                format!("{NAMESPACE}:0,1,{}8=", "/".repeat(682))
            }
            _ => String::new(),
        };
        told.push_str(&format!("{name}\t{value}\n"));
    }
    told.into_bytes()
}

/// A request, as it was read.
#[derive(Debug, Default)]
struct Request {
    info1: u8,
    info2: u8,
    info3: u8,
    generation: u32,
    expires: i32,
    fields: HashMap<u8, Vec<u8>>,
    /// What is done, the type, the bin, the value.
    operations: Vec<(u8, u8, Vec<u8>, Vec<u8>)>,
}

fn request(payload: &[u8]) -> Request {
    let mut at = usize::from(payload[0]);
    assert_eq!(at, 22, "the header's length");
    let four = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("four bytes"));
    let two = |at: usize| u16::from_be_bytes(payload[at..at + 2].try_into().expect("two bytes"));
    let mut request = Request {
        info1: payload[1],
        info2: payload[2],
        info3: payload[3],
        generation: four(6),
        expires: four(10) as i32,
        ..Request::default()
    };
    for _ in 0..two(18) {
        let length = four(at) as usize;
        request.fields.insert(payload[at + 4], payload[at + 5..at + 4 + length].to_vec());
        at += 4 + length;
    }
    for _ in 0..two(20) {
        let length = four(at) as usize;
        let name = at + 8 + usize::from(payload[at + 7]);
        let value = payload[name..at + 4 + length].to_vec();
        request.operations.push((payload[at + 4], payload[at + 5], payload[at + 8..name].to_vec(), value));
        at += 4 + length;
    }
    assert_eq!(at, payload.len(), "the message ends where it says");
    request
}

/// What comes as the answer; nothing where the connection is closed.
fn message(payload: &[u8], records: &Records, fate: &dyn Fn() -> Fate) -> Option<Vec<Vec<u8>>> {
    let request = request(payload);
    if request.fields[&0] != NAMESPACE.as_bytes() {
        return Some(vec![frame(3, &reply(20, None, &[]))]);
    }
    if request.fields.contains_key(&11) {
        return Some(scan(&request, records));
    }
    let fate = fate();
    let carry_out = || single(&request, &mut records.lock().expect("the records"));
    let answer = match fate {
        Fate::Lost if request.info2 & 1 != 0 => reply(0, None, &[]),
        Fate::Done | Fate::Lost => carry_out(),
        Fate::Refused(code) => reply(code, None, &[]),
        Fate::DoneBut(code) => {
            carry_out();
            reply(code, None, &[])
        }
        Fate::Closed => {
            carry_out();
            return None;
        }
        Fate::Late(time) => {
            std::thread::sleep(time);
            carry_out()
        }
    };
    Some(vec![frame(3, &answer)])
}

fn single(request: &Request, records: &mut HashMap<[u8; 20], Record>) -> Vec<u8> {
    let digest: [u8; 20] = request.fields[&4].as_slice().try_into().expect("a digest of 20 bytes");
    let there = records.get(&digest);
    if request.info2 & 1 == 0 {
        let Some(record) = there else { return reply(2, None, &[]) };
        let bins: Vec<_> = match request.info1 {
            // all bins
            flags if flags & 2 != 0 => {
                record.bins.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
            }
            // none
            flags if flags & 32 != 0 => Vec::new(),
            _ => {
                let names = request.operations.iter().map(|(_, _, name, _)| name);
                names.filter_map(|name| Some((name.clone(), record.bins.get(name)?.clone()))).collect()
            }
        };
        return reply(0, Some(record), &bins);
    }
    if request.info2 & 4 != 0
        && let Some(record) = there
        && u32::from(record.generation) != request.generation
    {
        return reply(3, None, &[]);
    }
    if request.info2 & 2 != 0 {
        return reply(if records.remove(&digest).is_some() { 0 } else { 2 }, None, &[]);
    }
    let is_touch = request.operations.iter().any(|(what, ..)| *what == 11);
    match there {
        Some(_) if request.info2 & 32 != 0 => return reply(5, None, &[]),
        None if request.info3 & 8 != 0 || is_touch => return reply(2, None, &[]),
        _ => {}
    }
    let mut record = there.cloned().unwrap_or_default();
    if request.info3 & 16 != 0 {
        record.bins.clear();
    }
    for (what, particle, name, value) in &request.operations {
        let had = record.bins.get(name).cloned();
        let new = match (what, had) {
            (2, _) | (5 | 9 | 10, None) => value.clone(),
            (11, _) => continue,
            (5, Some((1, had))) => {
                let number = |bytes: &[u8]| i64::from_be_bytes(bytes.try_into().expect("eight bytes"));
                number(&had).wrapping_add(number(value)).to_be_bytes().to_vec()
            }
            (9, Some((3, had))) => [had, value.clone()].concat(),
            (10, Some((3, had))) => [value.clone(), had].concat(),
            _ => return reply(12, None, &[]),
        };
        record.bins.insert(name.clone(), (*particle, new));
    }
    record.set = request.fields.get(&1).cloned().unwrap_or_default();
    record.generation += 1;
    record.expires = if request.expires == -2 { record.expires } else { request.expires };
    records.insert(digest, record.clone());
    reply(0, Some(&record), &[])
}

fn header(info3: u8, code: u8, generation: u32, expires: u32, fields: u16, operations: usize) -> Vec<u8> {
    let mut header = vec![22, 0, 0, info3, 0, code];
    header.extend_from_slice(&generation.to_be_bytes());
    header.extend_from_slice(&expires.to_be_bytes());
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&fields.to_be_bytes());
    header.extend_from_slice(&(operations as u16).to_be_bytes());
    header
}

fn bins(bins: &[(Vec<u8>, Value)], out: &mut Vec<u8>) {
    for (name, (particle, value)) in bins {
        out.extend_from_slice(&(4 + name.len() as u32 + value.len() as u32).to_be_bytes());
        out.extend_from_slice(&[1, *particle, 0, name.len() as u8]);
        out.extend_from_slice(name);
        out.extend_from_slice(value);
    }
}

fn reply(code: u8, record: Option<&Record>, told: &[(Vec<u8>, Value)]) -> Vec<u8> {
    let generation = record.map_or(0, |record| record.generation.into());
    // seconds since 2010, as if the record had been written at its first second
    let expires = record.and_then(|record| u32::try_from(record.expires).ok()).unwrap_or(0);
    let mut out = header(0, code, generation, expires, 0, told.len());
    bins(told, &mut out);
    out
}

fn scan(request: &Request, records: &Records) -> Vec<Vec<u8>> {
    assert_eq!(request.fields[&11].len(), usize::from(PARTITIONS) * 2, "all partitions");
    let set = request.fields.get(&1);
    let mut frames = Vec::new();
    let mut payload = Vec::new();
    for (digest, record) in records.lock().expect("the records").iter() {
        if set.is_some_and(|set| *set != record.set) {
            continue;
        }
        payload.extend_from_slice(&header(0, 0, record.generation.into(), 0, 3, record.bins.len()));
        for (kind, value) in [(0, NAMESPACE.as_bytes()), (1, &record.set), (4, digest)] {
            payload.extend_from_slice(&(value.len() as u32 + 1).to_be_bytes());
            payload.push(kind);
            payload.extend_from_slice(value);
        }
        let told: Vec<_> = record.bins.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        bins(&told, &mut payload);
        if payload.len() > 10_000 {
            frames.push(frame(3, &std::mem::take(&mut payload)));
        }
    }
    let told = if set.is_some_and(|set| set == b"half") { HALF } else { PARTITIONS };
    (0..told).for_each(|partition| payload.extend_from_slice(&header(4, 0, partition.into(), 0, 0, 0)));
    frames.push(frame(3, &payload));
    frames.push(frame(3, &header(1, 0, 0, 0, 0, 0)));
    frames
}
