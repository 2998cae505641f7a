//! The client's side: a method for each of the trait's, over either transport.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::model::{Argument, Method, Place, Service, capital};

pub(crate) fn write(service: &Service) -> TokenStream {
    let kind = &service.definition.ident;
    let visible = &service.definition.vis;
    let client = format_ident!("{kind}Client");
    let doc = format!("Calls a [`{kind}`] elsewhere, over a WebSocket or as REST.");
    let name = &service.name;
    let names = service.methods.iter().map(|method| format!("{name}.{}", method.ident));
    let methods = service.methods.iter().enumerate().map(|(number, method)| call(visible, number, method));
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug)]
        #visible struct #client {
            proxy: ::tidemark_rpc::Proxy,
        }

        impl #client {
            /// A client that calls through a connection, which it may share with others.
            #visible fn new(through: impl ::core::convert::Into<::tidemark_rpc::Through>) -> Self {
                const NAMES: &[&str] = &[#(#names),*];
                #client { proxy: ::tidemark_rpc::Proxy::new(through.into(), NAMES) }
            }

            /// The same with another time that each call has.
            #visible fn deadline(self, deadline: ::core::time::Duration) -> Self {
                #client { proxy: self.proxy.deadline(deadline) }
            }

            #(#methods)*
        }
    }
}

fn call(visible: &syn::Visibility, number: usize, method: &Method) -> TokenStream {
    let (ident, doc, returns) = (&method.ident, &method.doc, &method.returns);
    let doc = format!("{doc}\n\n# Errors\nWhy there is no answer.");
    let names: Vec<_> = method.arguments.iter().map(|argument| &argument.ident).collect();
    let kinds: Vec<_> = method.arguments.iter().map(|argument| &argument.kind).collect();
    // no tuple without fields is written as an empty array
    let (arguments, all) = match names.is_empty() {
        true => (quote!([false; 0]), quote!([bool; 0])),
        false => (quote!((#(#names,)*)), quote!((#(#kinds,)*))),
    };
    let rest = rest(method);
    quote! {
        #[doc = #doc]
        #visible fn #ident(
            &self,
            #(#names: #kinds),*
        ) -> ::tidemark_rpc::Calling<'_, #all, #returns> {
            match self.proxy.through() {
                ::tidemark_rpc::Through::WebSocket(_) => self.proxy.call(#number, #arguments),
                ::tidemark_rpc::Through::Rest(_) => self.proxy.send(move || #rest),
            }
        }
    }
}

/// The request of a method, if it has a route.
fn rest(method: &Method) -> TokenStream {
    let Some(route) = &method.route else {
        return quote!(::core::result::Result::Err(::tidemark_rpc::CallError::no_route()));
    };
    let verb = format_ident!("{}", capital(&route.verb));
    let path = route.path.value();
    let segments = path.split('/').skip(1).map(|segment| {
        match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => {
                let name = format_ident!("{name}");
                quote!(.parameter(&#name))
            }
            None => quote!(.segment(#segment)),
        }
    });
    let others = method.arguments.iter().map(|Argument { ident, place, optional, .. }| {
        let name = ident.to_string();
        match (place, optional) {
            (Place::Path, _) => quote!(),
            (Place::Query, Some(_)) => quote!(.query_maybe(#name, #ident.as_ref())),
            (Place::Query, None) => quote!(.query(#name, &#ident)),
            (Place::Body, _) => quote!(.body(&#ident)?),
        }
    });
    quote!({
        let request = ::tidemark_rpc::RestCall::new(::tidemark_rpc::Verb::#verb);
        let request = request #(#segments)* #(#others)*;
        ::core::result::Result::Ok(request)
    })
}
