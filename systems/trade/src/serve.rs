//! The trade service from its settings to what is served.

use std::sync::Arc;

use tidemark_rpc::Calls;
use tidemark_service::{
    Options, ReferenceSystem, Setting, SettingError, Settings, StartError, System, encode::counter,
};

use crate::grpc::{Connection, Grpc};
use crate::trades::{Counting, TradesService};

/// The trade service as its settings have it.
#[derive(Debug)]
pub struct TradeSystem {
    body_bytes_max: usize,
}

impl ReferenceSystem for TradeSystem {
    const NAME: &'static str = "trade";
    const DESCRIPTION: &'static str =
        "takes trades and counts them, over REST, gRPC and calls on a WebSocket";
    const KEEPS_DATA: bool = false;
    const SETTINGS: &'static [Setting] = &[Setting {
        name: "body_bytes_max",
        default: "65536",
        allowed: "1 to 16777216",
        help: "bytes of a request body; a larger one is answered 413",
    }];

    fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        Ok(TradeSystem { body_bytes_max: settings.value("body_bytes_max", 1..=16 << 20)? })
    }

    fn body_bytes_max(&self) -> usize {
        self.body_bytes_max
    }

    fn start(self, _: &Options) -> Result<System, StartError> {
        let counting = Arc::new(Counting::new());
        let calls = Calls::new().service(TradesService(counting.clone()));
        let grpc = Arc::new(Grpc { counting: counting.clone(), message_bytes_max: self.body_bytes_max });
        let system = System::default().endpoint(calls).http2(move || Box::new(Connection(grpc.clone())));
        Ok(system.counters(move |encoder| counter(encoder, "trade_trades", "Trades taken", counting.sum())))
    }
}
