//! Collections of Postman as scenarios.
