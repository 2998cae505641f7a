//! Routes for whoever runs the airline, without a session: loading, counting, what it is.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tidemark_service::{json, text};
use tidemark_store::StoreError;

use crate::airports::AIRPORTS_LEN;
use crate::app::App;
use crate::customers::CUSTOMERS_MAX;
use crate::form::Form;
use crate::logins::Logins;
use crate::other_sites;
use crate::refusal::Refusal;
use crate::stores::Product;

type Answer = Result<Response, Refusal>;

/// How many customers a load makes that does not say how many.
pub(crate) async fn load_query(State(app): State<Arc<App>>) -> Answer {
    Ok(text(StatusCode::OK, app.load_customers.load(Ordering::Relaxed).to_string()))
}

/// Makes customers, and flights where a store has them. What is there stays, so a load never doubles anything.
pub(crate) async fn load(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Answer {
    other_sites::refuse(&headers)?;
    let query = query.unwrap_or_default();
    let form = Form::parse(query.as_bytes())?;
    let customers = match form.get("numCustomers") {
        None | Some("") => app.load_customers.load(Ordering::Relaxed),
        Some(number) => match number.parse() {
            Ok(number) if (1..=CUSTOMERS_MAX).contains(&number) => number,
            _ => {
                return Err(Refusal::bad_request(format!("numCustomers must be 1 to {CUSTOMERS_MAX}")));
            }
        },
    };
    let began = Instant::now();
    app.load(customers).await?;
    let took_s = began.elapsed().as_secs_f64();
    Ok(text(StatusCode::OK, format!("Loaded flights and {customers} customers in {took_s:.3} seconds")))
}

fn number(count: u64) -> Response {
    json(StatusCode::OK, count.to_string())
}

/// A count from a store; −1 when the store does not work.
async fn counted(count: impl Future<Output = Result<u64, StoreError>>) -> Answer {
    Ok(match count.await {
        Ok(count) => number(count),
        Err(error) => {
            tracing::warn!(%error, "a store cannot be counted");
            json(StatusCode::OK, "-1")
        }
    })
}

pub(crate) async fn count_customers(State(app): State<Arc<App>>) -> Answer {
    counted(app.store.customers.count()).await
}

pub(crate) async fn count_sessions(State(app): State<Arc<App>>) -> Answer {
    match &app.logins {
        Logins::Here(keeper) => counted(keeper.store.count()).await,
        // the auth service does not tell
        Logins::Auth(_) => Ok(json(StatusCode::OK, "-1")),
    }
}

pub(crate) async fn count_bookings(State(app): State<Arc<App>>) -> Answer {
    counted(app.store.bookings.count()).await
}

pub(crate) async fn count_flights(State(app): State<Arc<App>>) -> Answer {
    counted(app.flights.count()).await
}

pub(crate) async fn count_segments(State(app): State<Arc<App>>) -> Answer {
    counted(app.flights.count_segments()).await
}

pub(crate) async fn count_airports() -> Answer {
    Ok(number(AIRPORTS_LEN as u64))
}

/// What it runs on, as name and description.
pub(crate) async fn runtime() -> Answer {
    let body = serde_json::json!([
        { "name": "Runtime", "description": "Rust" },
        { "name": "Version", "description": env!("CARGO_PKG_VERSION") },
        { "name": "Vendor", "description": "Tidemark" },
    ]);
    Ok(json(StatusCode::OK, body.to_string()))
}

pub(crate) async fn data_services() -> Answer {
    let services: Vec<_> = Product::ALL
        .iter()
        .map(|product| serde_json::json!({ "name": product.name(), "description": product.description() }))
        .collect();
    Ok(json(StatusCode::OK, serde_json::Value::from(services).to_string()))
}

/// A bare word, not JSON; where the data is in several stores, their names with `+` between.
pub(crate) async fn active_data_service(State(app): State<Arc<App>>) -> Answer {
    Ok(text(StatusCode::OK, app.opened.choice.names()))
}

pub(crate) async fn check_status() -> Answer {
    Ok(text(StatusCode::OK, "OK"))
}
