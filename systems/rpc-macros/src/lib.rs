//! `#[service]`, which makes a trait a service. `tidemark_rpc::service` is its door and explains it; here it is
//! read ([`model`](self)) and written ([`server`](self), [`client`](self)).

mod client;
mod model;
mod server;

use proc_macro::TokenStream;
use quote::quote;
use syn::parse_macro_input;

/// Makes a trait a service; `tidemark_rpc::rpc` explains it.
#[proc_macro_attribute]
pub fn service(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let given = parse_macro_input!(item as syn::ItemTrait);
    let name = parse_macro_input!(attribute as model::Name);
    match model::Service::read(name, given) {
        Ok(service) => {
            let definition = service.definition();
            let (server, client) = (server::write(&service), client::write(&service));
            quote!(#definition #server #client).into()
        }
        Err(error) => error.into_compile_error().into(),
    }
}
