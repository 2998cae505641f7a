//! What is driven.

use crate::grammar::Scalar::{Bool, Duration, Status, Text, Whole, Word};
use crate::grammar::Shape::{Either, List, Map, Record as Of, Scalar};
use crate::grammar::{Key, Keys, Record, Rule, Shape, key, required};
use crate::plan::{HttpVersion, Resolve};

const RESOLVE: Key = key(
    "resolve",
    Scalar(Word(&Resolve::WORDS)),
    "Which address of the URL's host is driven, looked up once: `ipv4` (default) and `ipv6` prefer one kind.",
);

const CONNECT_TO: Key = key(
    "connect to",
    Scalar(Text),
    "Where connections are made to instead of the URL's host: `HOST:PORT` or `unix:PATH`.",
);

const PROXY: Key = key(
    "proxy",
    Scalar(Text),
    "The HTTP proxy that requests to a `url` go through: `http://[USER:PASSWORD@]HOST[:PORT]`, or `env`: as the environment says (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY). None by default.",
);

const HTTP: Key = key(
    "http",
    Scalar(Word(&HttpVersion::WORDS)),
    "Version of HTTP at a `url`: `1.1` (default), `2`, or `auto`: over TLS what the server prefers.",
);

const RPC: Key =
    key("rpc", Scalar(Text), "Path of the WebSocket that takes the calls of CALL steps; `/rpc` by default.");

/// One text that is split into words, or the words themselves.
const COMMAND: Shape = Either(&[Scalar(Text), List(&Scalar(Text), 1)]);

/// Commands that come to an end by themselves.
const HOOKS: Shape = List(&Either(&[Scalar(Text), List(&Scalar(Text), 1), Of(&HOOK)]), 1);

pub(super) static SYSTEM: Record = Record {
    what: "a system",
    schema: "system",
    about: "What is driven: a shipped system by name, a command, or a URL.",
    verbs: &[],
    keys: &[
        key("serve", Scalar(Text), "Name of a shipped system, started with `tidemark serve NAME`."),
        key(
            "command",
            COMMAND,
            "A command that starts the system, quoted as for a shell, or the list of its words; `{port}` in it stands for a free port, or for `port`.",
        ),
        key(
            "env",
            Map(Keys::Text("variables of the environment"), &Scalar(Text)),
            "Of `command`: variables of its environment, beside those that are there; `{port}` stands for the port.",
        ),
        key(
            "cwd",
            Scalar(Text),
            "Of `command`: the folder that it is started in, relative to the scenario; by default where tidemark is.",
        ),
        key(
            "port",
            Scalar(Whole(1)),
            "Of `command`: the port of 127.0.0.1 that it always listens on; else a free one.",
        ),
        key(
            "before",
            HOOKS,
            "Of `command`: commands that are run to their end before it is started, in order; each must end with status 0.",
        ),
        key(
            "after",
            HOOKS,
            "Of `command`: commands that are run to their end once it was stopped, in order.",
        ),
        key(
            "url",
            Scalar(Text),
            "Where the system is, if it runs already: `http://host:port/base`, or `https`; `ws` and `wss` are the same. `redis://`, `memcached://`, `postgres://`, `cql://`, `aerospike://`: by that protocol.",
        ),
        key(
            "store",
            Scalar(Text),
            "Name of a store under `stores`, which is then driven itself: one that speaks Redis' protocol, a memcached, a PostgreSQL, or a Cassandra.",
        ),
        key(
            "settings",
            Map(Keys::Text("settings of the system"), &Scalar(Text)),
            "Of `serve`: handed to the system as `--set NAME=VALUE`; `{stores.NAME.url}` stands for a store's.",
        ),
        key(
            "durability",
            Scalar(Word(&["synced", "buffered", "memory"])),
            "When the system answers a write: on disk, with the operating system, or in memory.",
        ),
        key(
            "health",
            Scalar(Text),
            "Path that answers 200 when the system is ready: short for `ready: {path: …}`.",
        ),
        key(
            "ready",
            Of(&READY),
            "Of `command`: what says that it is ready; by default that it accepts connections.",
        ),
        key("ready within", Scalar(Duration), "Longest time until it is; 60s by default."),
        RESOLVE,
        CONNECT_TO,
        PROXY,
        key("tls", Of(&TLS), "Options of TLS for an `https` URL."),
        HTTP,
        RPC,
    ],
    rule: Rule::OneOf(&["serve", "command", "url", "store"]),
};

static READY: Record = Record {
    what: "what says that a system is ready",
    schema: "ready",
    about: "What says that a command is ready: an answer, or a line of its output.",
    verbs: &[],
    keys: &[
        key("path", Scalar(Text), "The path that answers with `status` once it is."),
        key("status", Scalar(Status), "Status of that answer; 200 by default."),
        key("log", Scalar(Text), "What a line of its output has in it once it is."),
    ],
    rule: Rule::OneOf(&["path", "log"]),
};

static HOOK: Record = Record {
    what: "a command before or after the system",
    schema: "hook",
    about: "A command that comes to an end by itself.",
    verbs: &[],
    keys: &[
        required("command", COMMAND, "The command, quoted as for a shell, or the list of its words."),
        key("within", Scalar(Duration), "Longest time until its end; 60s by default."),
    ],
    rule: Rule::Free,
};

pub(super) static TARGET: Record = Record {
    what: "a target",
    schema: "target",
    about: "A server that runs already, or a store of the run, to which requests go beside the system.",
    verbs: &[],
    keys: &[
        key(
            "url",
            Scalar(Text),
            "Where it is, as the `url` of a system; what paths begin with goes in front of all.",
        ),
        key("store", Scalar(Text), "Name of a store under `stores`."),
        RESOLVE,
        CONNECT_TO,
        PROXY,
        key("tls", Of(&TLS), "Options of TLS for an `https` URL."),
        HTTP,
        RPC,
    ],
    rule: Rule::OneOf(&["url", "store"]),
};

static TLS: Record = Record {
    what: "a block of TLS settings",
    schema: "tls",
    about: "Options of TLS for an `https` URL.",
    verbs: &[],
    keys: &[
        key("insecure", Scalar(Bool), "Accept any certificate; false by default."),
        key(
            "ca",
            Scalar(Text),
            "A PEM file, relative to the scenario, of the only authorities trusted; else the machine's.",
        ),
        key(
            "server name",
            Scalar(Text),
            "The name that the certificate must have and that is asked for; the URL's host by default.",
        ),
        key(
            "certificate",
            Scalar(Text),
            "A PEM file, relative to the scenario, with the load generator's own certificate, for a server that asks.",
        ),
        key("key", Scalar(Text), "A PEM file with the certificate's key; else it is in the same file."),
        key(
            "resumption",
            Scalar(Bool),
            "Whether a new connection resumes an earlier session; true by default.",
        ),
    ],
    rule: Rule::Free,
};
