//! What a server of gRPC tells of itself.

use std::time::Duration;

use tidemark_drive::{Grpc, Protocol};
use tidemark_scenario::plan::{HttpVersion, System};
use tidemark_scenario::protobuf::Types;
use tidemark_scenario::secrets::without_password;

use crate::error::LabError;
use crate::target::{knock, looked_up};

/// Longest time for a server to tell its message types.
const PATIENCE: Duration = Duration::from_secs(10);

/// The message types that a server of gRPC tells of itself.
///
/// # Errors
/// The URL is not one of gRPC, or nobody tells types there.
pub fn message_types(text: &str) -> Result<Types, LabError> {
    let (mut target, _, others) = looked_up(text, &System::default())?;
    let knocked = knock(&mut target, &others, HttpVersion::Two, PATIENCE).and_then(|greeted| greeted);
    knocked.map_err(|error| LabError::Unreachable(format!("{}: {error}", without_password(text))))?;
    match target.protocol {
        Protocol::Grpc(Grpc { types: Some(types), .. }) => Ok(types),
        _ => Err(LabError::Usage(format!("`{}` is not a URL of gRPC", without_password(text)))),
    }
}
