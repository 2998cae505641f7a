//! `wrk.lookup` and `wrk.connect`: addresses of hosts.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use mlua::{FromLua, Lua, MetaMethod, Table, UserData, UserDataMethods, Value};

/// Longest wait for a connection that is only tried.
const TRY: Duration = Duration::from_secs(2);
/// Names and ports of services, where the system has its list.
const SERVICES: &str = "/etc/services";

/// An address, as scripts hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) SocketAddr);

impl FromLua for Address {
    fn from_lua(value: Value, _: &Lua) -> mlua::Result<Self> {
        match value {
            Value::UserData(data) => data.borrow::<Address>().map(|address| *address),
            other => {
                let kind = other.type_name();
                Err(mlua::Error::runtime(format!("an address from wrk.lookup is wanted here, not a {kind}")))
            }
        }
    }
}

impl UserData for Address {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, address, ()| Ok(address.0.to_string()));
        methods.add_meta_method(MetaMethod::Eq, |_, address, other: Address| Ok(*address == other));
    }
}

/// Gives a state's `wrk` its `lookup` and `connect`.
pub(crate) fn install(lua: &Lua, wrk: &Table) -> mlua::Result<()> {
    let lookup = |lua: &Lua, (host, service): (String, Value)| {
        let port = match &service {
            Value::Nil => Some(80),
            Value::Integer(port) => u16::try_from(*port).ok(),
            Value::Number(port) => u16::try_from(*port as i64).ok(),
            Value::String(name) => port(&name.to_string_lossy()),
            _ => None,
        };
        let port =
            port.ok_or_else(|| mlua::Error::runtime(format!("{service:?} is no port and no service")))?;
        let found = (host.trim_matches(['[', ']']), port).to_socket_addrs();
        let found =
            found.map_err(|error| mlua::Error::runtime(format!("unable to resolve {host}: {error}")))?;
        lua.create_sequence_from(found.map(Address))
    };
    wrk.set("lookup", lua.create_function(lookup)?)?;
    let connect = |_: &Lua, address: Address| Ok(TcpStream::connect_timeout(&address.0, TRY).is_ok());
    wrk.set("connect", lua.create_function(connect)?)
}

/// The port of a service by its number or name.
fn port(service: &str) -> Option<u16> {
    let known = [("http", 80), ("https", 443)];
    let listed = || {
        let list = std::fs::read_to_string(SERVICES).ok()?;
        list.lines().find_map(|line| {
            let mut words = line.split('#').next()?.split_whitespace();
            let (name, port) = (words.next()?, words.next()?);
            let port = port.strip_suffix("/tcp")?.parse().ok()?;
            (name == service || words.any(|other| other == service)).then_some(port)
        })
    };
    let of_known = || known.iter().find(|(name, _)| *name == service).map(|(_, port)| *port);
    service.parse().ok().or_else(of_known).or_else(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_number_or_the_name_of_a_service() {
        assert_eq!((port("8080"), port("https"), port("no-such-service")), (Some(8080), Some(443), None));
    }
}
