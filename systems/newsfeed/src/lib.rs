//! The news feed: the public clojure-news-feed service, as one process.
//!
//! Participants are friends of each other, post stories, read what their friends have posted, and look for who writes
//! about something. A post goes into the inbound feed of every friend when it is posted (fan-out on write), so that
//! reading is one range of one table.
//!
//! # Decisions where the sixteen public versions differ
//!
//! - Bodies are JSON, answered with one object. Form bodies on the same paths are answered with an array of one, as the
//!   older versions did. `from` in a body means nothing: the path says who.
//! - What is wrong is 400, who is not there 404, a store that does not work 503, each with `{"error": "…"}`. An empty list
//!   is `[]`.
//! - A friendship is symmetric, and there is one of two participants: asked for again it is the same one. Nobody befriends
//!   themselves.
//! - Lists have everything, up to 1,000 and 4 MiB; the header `next-cursor` then names the next page.
//! - A post has the date (UTC) at which the server took it. The answer to a post echoes what was sent.
//! - Inbound feeds show 90 days. Who becomes a friend later does not get what was posted before, and posters do not get
//!   their own posts.
//! - A post is answered once it is durable in the outbound feed and can be found; with `fan_out=sync` it is in all inbound
//!   feeds by then, with `async` within a bound that is a setting. `/behind` says how many posts are not delivered yet.
//!
//! # What stands where
//!
//! `handlers` read requests and answer, `shapes` is what answers look like, `app` is what a post, a friendship and a search
//! are, `people` asks the cache before the store, `delivery` fans out behind the answer, `live` is the event stream,
//! `operations` what is counted, `graphql` is the same in GraphQL, `openapi` describes it all, `pages` are the web pages.
//! `stores` opens what the settings choose, with `people_in` and `cache_in`; `events_in` is where operations are told one
//! by one.
//!
//! # What holds
//!
//! A post that is acknowledged comes into every feed: with `fan_out=sync` it is there before the answer, embedded in
//! one write with the post; with `async` it is noted as undelivered in the write that stores it, and delivered soon
//! after, at the latest when the next process starts (`app`).

mod app;
mod cache_in;
mod delivery;
mod events_in;
mod graphql;
mod handlers;
mod ids;
mod input;
mod live;
mod of_2014;
mod openapi;
mod operations;
mod pages;
mod people;
mod people_in;
mod refusal;
mod serve;
mod settings;
mod shapes;
mod stores;

pub use serve::NewsFeed;
