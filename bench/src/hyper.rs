//! The shipped systems behind hyper alone: the same routes and stores, an event loop for each thread, connections in
//! turn. There are no counts of requests, no bounds, no orderly stop: what those cost in `tidemark serve` is the
//! difference (docs/benchmarks.md).

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::routing::{get, put};
use axum::{Json, Router};
use clap::{Args, ValueEnum};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tidemark_airline::Airline;
use tidemark_ingest::Ingest;
use tidemark_service::{self as served, Durability, ReferenceSystem};
use tidemark_store::scheduling::take_no_core_from_others;
use tidemark_trade::Trade;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Which system is served.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Name {
    Airline,
    Ingest,
    Trade,
}

/// `tidemark-bench hyper`
#[derive(Debug, Args)]
pub struct Options {
    /// The system
    #[arg(value_enum)]
    system: Name,
    /// Where it listens; port 0 takes a free one
    #[arg(long, default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))]
    listen: SocketAddr,
    /// Threads
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// The directory of its store
    #[arg(long)]
    data: Option<PathBuf>,
    /// What an acknowledged write is worth
    #[arg(long, default_value = "memory")]
    durability: Durability,
    /// A setting of the system, NAME=VALUE
    #[arg(long = "set", value_parser = setting)]
    settings: Vec<(String, String)>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.into(), value.into()))
}

/// Serves until it is killed.
pub fn run(options: &Options) -> std::io::Result<()> {
    crate::server::raise_open_files();
    take_no_core_from_others();
    let listener = TcpListener::bind(options.listen)?;
    let workers = options.workers.max(1);
    let router = router(options, workers)?.route("/health", get(async || "{}"));
    let given: Vec<_> = (0..workers).map(|_| start(router.clone())).collect::<std::io::Result<_>>()?;
    println!("listening http://{}", listener.local_addr()?);
    for worker in given.iter().cycle() {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        worker.send(stream).map_err(std::io::Error::other)?;
    }
    Ok(())
}

fn router(options: &Options, workers: usize) -> std::io::Result<Router> {
    let settings: BTreeMap<_, _> = options.settings.iter().cloned().collect();
    let (data_dir, durability) = (options.data.clone(), options.durability);
    let served =
        served::Options { data_dir, durability, settings, workers: Some(workers), ..Default::default() };
    let system = match options.system {
        Name::Trade => return Ok(trade()),
        Name::Airline => Airline::open(&served),
        Name::Ingest => Ingest::open(&served),
    };
    let system = system.map_err(std::io::Error::other)?;
    Ok(system.into_router())
}

/// The trade service as one would write it for axum.
fn trade() -> Router {
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let take = move |Json(_): Json<Trade>| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Json(true) }
    };
    Router::new()
        .route("/trade", put(take))
        .route("/count", get(async move || Json(counted.load(Ordering::Relaxed))))
}

/// Starts a thread; where it is given connections.
fn start(router: Router) -> std::io::Result<UnboundedSender<std::net::TcpStream>> {
    let (given, taken) = unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("hyper".into()).spawn(move || runtime.block_on(serve(router, taken)))?;
    Ok(given)
}

async fn serve(router: Router, mut taken: UnboundedReceiver<std::net::TcpStream>) {
    while let Some(stream) = taken.recv().await {
        let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { continue };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            // a client that is gone is no failure of the server
            http1::Builder::new()
                .pipeline_flush(true)
                .serve_connection(TokioIo::new(stream), service)
                .await
                .ok();
        });
    }
}
