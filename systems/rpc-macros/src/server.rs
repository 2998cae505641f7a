//! The server's side: from bytes to the trait's methods and back.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::model::{Argument, Method, Place, Service, capital};

pub(crate) fn write(service: &Service) -> TokenStream {
    let kind = &service.definition.ident;
    let visible = &service.definition.vis;
    let server = format_ident!("{kind}Service");
    let doc = format!("[`{kind}`] as a service: hand it to `System::service`.");
    let description = description(service);
    let calls = service.methods.iter().enumerate().map(|(number, method)| call(kind, number, method));
    let requests = service.methods.iter().enumerate();
    let requests = requests.filter(|(_, method)| method.route.is_some());
    let requests = requests.map(|(number, method)| request(kind, number, method));
    quote! {
        #[doc = #doc]
        #visible struct #server<T>(
            /// What does the work.
            pub T,
        );

        impl<T: #kind> ::tidemark_rpc::Service for #server<T> {
            fn description(&self) -> &'static ::tidemark_rpc::Description {
                #description
            }

            async fn call(
                &self,
                method: usize,
                form: ::tidemark_rpc::Form,
                buffer: &mut ::std::vec::Vec<u8>,
            ) -> ::core::result::Result<(), ::tidemark_rpc::Refusal> {
                match method {
                    #(#calls)*
                    _ => ::core::result::Result::Err(::tidemark_rpc::Refusal::no_method()),
                }
            }

            async fn request(
                &self,
                method: usize,
                request: ::tidemark_rpc::Request,
                answer: &mut ::std::vec::Vec<u8>,
            ) -> ::core::result::Result<(), ::tidemark_rpc::Refusal> {
                match method {
                    #(#requests)*
                    _ => ::core::result::Result::Err(::tidemark_rpc::Refusal::no_method()),
                }
            }
        }
    }
}

fn call(kind: &syn::Ident, number: usize, method: &Method) -> TokenStream {
    let names: Vec<_> = method.arguments.iter().map(|argument| &argument.ident).collect();
    let kinds = method.arguments.iter().map(|argument| &argument.kind);
    // no tuple without fields reads from an empty array
    let read = match names.is_empty() {
        true => quote!(let _nothing: [bool; 0] = form.read(buffer)?;),
        false => quote!(let (#(#names,)*): (#(#kinds,)*) = form.read(buffer)?;),
    };
    let invoke = invoke(kind, method);
    quote! {
        #number => {
            #read
            let returned = #invoke;
            form.write(buffer, &returned)
        }
    }
}

fn request(kind: &syn::Ident, number: usize, method: &Method) -> TokenStream {
    let parameters = method.route.as_ref().map(|route| &route.parameters[..]).unwrap_or_default();
    let reads = method.arguments.iter().map(|Argument { ident, kind, place, optional }| {
        let name = ident.to_string();
        let value = match (place, optional) {
            (Place::Body, _) => quote!(request.body()?),
            (Place::Query, Some(_)) => quote!(request.query_maybe(#name)?),
            (Place::Query, None) => quote!(request.query(#name)?),
            (Place::Path, _) => {
                let at = parameters.iter().position(|parameter| *parameter == name).unwrap_or_default();
                quote!(request.path(#at, #name)?)
            }
        };
        quote!(let #ident: #kind = #value;)
    });
    let invoke = invoke(kind, method);
    quote! {
        #number => {
            #(#reads)*
            let returned = #invoke;
            ::tidemark_rpc::Form::Json.write(answer, &returned)
        }
    }
}

fn invoke(kind: &syn::Ident, method: &Method) -> TokenStream {
    let ident = &method.ident;
    let names = method.arguments.iter().map(|argument| &argument.ident);
    let invoke = quote!(<T as #kind>::#ident(&self.0, #(#names),*).await);
    if method.fallible { quote!(#invoke.map_err(::tidemark_rpc::Refusal::from)?) } else { invoke }
}

pub(crate) fn description(service: &Service) -> TokenStream {
    let (name, doc) = (&service.name, &service.doc);
    let methods = service.methods.iter().map(|method| {
        let (name, doc, returns) = (method.ident.to_string(), &method.doc, &method.returns);
        let route = match &method.route {
            None => quote!(::core::option::Option::None),
            Some(route) => {
                let (path, verb) = (&route.path, format_ident!("{}", capital(&route.verb)));
                quote!(::core::option::Option::Some(::tidemark_rpc::Route {
                    verb: ::tidemark_rpc::Verb::#verb,
                    path: #path,
                }))
            }
        };
        let arguments = method.arguments.iter().map(|argument| {
            let (name, kind, required) =
                (argument.ident.to_string(), &argument.kind, argument.optional.is_none());
            let place = match argument.place {
                Place::Path => quote!(Path),
                Place::Query => quote!(Query),
                Place::Body => quote!(Body),
            };
            quote!(::tidemark_rpc::Argument {
                name: #name,
                place: ::tidemark_rpc::Place::#place,
                required: #required,
                schema: ::tidemark_rpc::schema_of::<#kind>,
            })
        });
        quote!(::tidemark_rpc::Method {
            name: #name,
            doc: #doc,
            route: #route,
            arguments: &[#(#arguments),*],
            returns: ::tidemark_rpc::schema_of::<#returns>,
        })
    });
    quote! {
        const DESCRIPTION: &::tidemark_rpc::Description = &::tidemark_rpc::Description {
            name: #name,
            doc: #doc,
            methods: &[#(#methods),*],
        };
        DESCRIPTION
    }
}
