//! What is driven.

use crate::grammar::kinds::{Bool, Either, List, Status, Template, Text, Time, Whole, nodes};
use crate::grammar::record::{Kind, record};
use crate::grammar::{Keys, Rule, Scalar, Shape};
use crate::plan::{Balancer, Durability, HttpVersion, Resolve};

// Of systems and of targets.
const RESOLVE: &str =
    "Which address of the URL's host is driven, looked up once: `ipv4` (default) and `ipv6` prefer one kind.";
const CONNECT_TO: &str =
    "Where connections are made to instead of the URL's host: `HOST:PORT` or `unix:PATH`.";
const PROXY: &str = "The HTTP proxy that requests to a `url` go through: `http://[USER:PASSWORD@]HOST[:PORT]`, or `env`: as the \
     environment says (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY). None by default.";
const HTTP: &str =
    "Version of HTTP at a `url`: `1.1` (default), `2`, or `auto`: over TLS what the server prefers.";
const PROTOS: &str = "Of `grpc://`, and of a `command` that serves gRPC: a `.proto` file with its services, relative to the scenario, or several; else its \
     reflection tells its types.";
const INCLUDES: &str =
    "Of `grpc://`: folders that `protos` import from; by default those in which these are.";
const DESCRIPTORS: &str = "Of `grpc://`: a file with a descriptor set, in place of `protos`.";
const RPC: &str = "Path of the WebSocket that takes the calls of CALL steps; `/rpc` by default.";

nodes! {
    /// One text that is split into words, or the words themselves.
    pub(crate) Command =
        Shape::Either(&[Shape::Scalar(Scalar::Text), Shape::List(&Shape::Scalar(Scalar::Text), 1)]);
    /// Commands that come to an end by themselves.
    pub(crate) Hooks = Shape::List(
        &Shape::Either(&[
            Shape::Scalar(Scalar::Text),
            Shape::List(&Shape::Scalar(Scalar::Text), 1),
            Shape::Record(Hook::record),
        ]),
        1,
    );
    /// Variables of the environment of a command.
    pub(crate) Environment =
        Shape::Map(Keys::Text("variables of the environment"), &Shape::Scalar(Scalar::Text));
    /// Settings of a shipped system.
    pub(crate) ItsSettings = Shape::Map(Keys::Text("settings of the system"), &Shape::Scalar(Scalar::Text));
}

/// One file, or several.
pub(crate) type Files = Either<Text, List<Text>>;

record! {
    /// What is driven: a shipped system by name, a command, or a URL.
    pub(crate) struct System("system", "a system", Rule::OneOf(&["serve", "command", "url", "store", "service"])) {
        serve: Text = "Name of a shipped system, started with `tidemark serve NAME`.",
        command: Command =
            "A command that starts the system, quoted as for a shell, or the list of its words; `{port}` in it \
             stands for a free port, or for `port`.",
        env: Environment =
            "Of `command`: variables of its environment, beside those that are there; `{port}` stands for the port.",
        cwd: Text =
            "Of `command`: the folder that it is started in, relative to the scenario; by default where tidemark is.",
        port: Whole<1> = "Of `command`: the port of 127.0.0.1 that it always listens on; else a free one.",
        before: Hooks =
            "Of `command`: commands that are run to their end before it is started, in order; each must end with \
             status 0.",
        after: Hooks = "Of `command`: commands that are run to their end once it was stopped, in order.",
        url: Text =
            "Where the system is, if it runs already: `http://host:port/base`, or `https`; `ws` and `wss` are the \
             same. `grpc://`, `redis://`, `memcached://`, `postgres://`, `cql://`, `aerospike://`: by that protocol.",
        store: Template =
            "Name of a store under `stores`, which is then driven itself: one that speaks Redis' protocol, a \
             memcached, a PostgreSQL, or a Cassandra.",
        service: Template = "Name of a service under `services`, which requests go to.",
        settings: ItsSettings =
            "Of `serve`: handed to the system as `--set NAME=VALUE`; `{stores.NAME.url}` stands for a store's.",
        durability: Durability =
            "When the system answers a write: on disk, with the operating system, or in memory.",
        health: Text = "Path that answers 200 when the system is ready: short for `ready: {path: …}`.",
        ready: Ready<'n> = "Of `command`: what says that it is ready; by default that it accepts connections.",
        ready_within: Time as "ready within" = "Longest time until it is; 60s by default.",
        resolve: Resolve = RESOLVE,
        connect_to: Text as "connect to" = CONNECT_TO,
        proxy: Text = PROXY,
        tls: Tls<'n> = "Options of TLS for an `https` URL.",
        http: HttpVersion = HTTP,
        rpc: Text = RPC,
        protos: Files = PROTOS,
        includes: Files = INCLUDES,
        descriptors: Text = DESCRIPTORS,
    }
}

record! {
    /// What says that a command is ready: an answer, or a line of its output.
    pub(crate) struct Ready("ready", "what says that a system is ready", Rule::OneOf(&["path", "log", "grpc"])) {
        path: Text = "The path that answers with `status` once it is.",
        status: Status = "Status of that answer; 200 by default.",
        log: Text = "What a line of its output has in it once it is.",
        grpc: Text =
            "The service that its health check (grpc.health.v1) says SERVING of, once it is; \"\" for all of it. Calls of gRPC go to \
             such a command.",
    }
}

record! {
    /// A command that comes to an end by itself.
    pub(crate) struct Hook("hook", "a command before or after the system") {
        command (required): Command = "The command, quoted as for a shell, or the list of its words.",
        within: Time = "Longest time until its end; 60s by default.",
    }
}

record! {
    /// A server that runs already, or a store of the run, to which requests go beside the system.
    pub(super) static TARGET("target", "a target", Rule::OneOf(&["url", "store"])) {
        "url": Shape::Scalar(Scalar::Text) =>
            "Where it is, as the `url` of a system; what paths begin with goes in front of all.",
        "store": Shape::Scalar(Scalar::Text) => "Name of a store under `stores`.",
        "resolve": Resolve::SHAPE => RESOLVE,
        "connect to": Shape::Scalar(Scalar::Text) => CONNECT_TO,
        "proxy": Shape::Scalar(Scalar::Text) => PROXY,
        "tls": Tls::SHAPE => "Options of TLS for an `https` URL.",
        "http": HttpVersion::SHAPE => HTTP,
        "rpc": Shape::Scalar(Scalar::Text) => RPC,
        "protos": Files::SHAPE => PROTOS,
        "includes": Files::SHAPE => INCLUDES,
        "descriptors": Shape::Scalar(Scalar::Text) => DESCRIPTORS,
    }
}

record! {
    /// Options of TLS for an `https` URL.
    pub(crate) struct Tls("tls", "a block of TLS settings") {
        insecure: Bool = "Accept any certificate; false by default.",
        ca: Text = "A PEM file, relative to the scenario, of the only authorities trusted; else the machine's.",
        server_name: Text as "server name" =
            "The name that the certificate must have and that is asked for; the URL's host by default.",
        certificate: Text =
            "A PEM file, relative to the scenario, with the load generator's own certificate, for a server that \
             asks.",
        key: Text = "A PEM file with the certificate's key; else it is in the same file.",
        resumption: Bool = "Whether a new connection resumes an earlier session; true by default.",
    }
}

// Of a system, too.
const SERVE: &str = "Name of a shipped system, each instance of which is started with `tidemark serve NAME`.";

record! {
    /// A part of the system, in one or several instances: started after the stores, in the order in which services are
    /// written, and stopped before them.
    pub(crate) static SERVICE("service", "a service", Rule::OneOf(&["serve", "command"])) {
        "serve": Text::SHAPE => SERVE,
        "command": Command::SHAPE =>
            "A command that starts an instance, quoted as for a shell, or the list of its words; `{port}` in it stands \
             for the port, `{instance}` for the number of the instance.",
        "instances": Whole::<1>::SHAPE => "How many instances there are at the beginning; 1 by default.",
        "balancer": Balancer::SHAPE =>
            "What stands in front of the instances and is started with them: `nginx` or `haproxy`; `none` by default: \
             whoever calls them is told the addresses of all.",
        "when": Bool::SHAPE => "Whether the service is a part of this run; an expression over settings.",
        "settings": ItsSettings::SHAPE =>
            "Of `serve`: handed to each instance as `--set NAME=VALUE`; `{services.NAME.urls}` stands for those of a \
             service above, `{stores.NAME.url}` for a store's.",
        "durability": Durability::SHAPE =>
            "Of `serve`: when an instance answers a write: on disk, with the operating system, or in memory.",
        "env": Environment::SHAPE => "Of `command`: variables of its environment, beside those that are there.",
        "cwd": Text::SHAPE => "Of `command`: the folder that it is started in, relative to the scenario.",
        "before": Hooks::SHAPE => "Of `command`: commands that are run to their end before each instance is started.",
        "after": Hooks::SHAPE => "Of `command`: commands that are run to their end once an instance was stopped.",
        "health": Text::SHAPE => "Path that answers 200 when an instance is ready: short for `ready: {path: …}`.",
        "ready": Ready::SHAPE => "Of `command`: what says that an instance is ready; by default that it accepts connections.",
        "ready within": Time::SHAPE => "Longest time until an instance is; 60s by default.",
    }
}
