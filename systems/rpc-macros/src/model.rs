//! The trait as a service: its methods, their routes and arguments; and every mistake that can be made in one.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, Error, Expr, FnArg, GenericArgument, Ident, ItemTrait, Lit, LitStr, Meta, Pat, PathArguments,
    Result, ReturnType, TraitItem, TraitItemFn, Type, parse_quote,
};

const VERBS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

/// What stands in the attribute: nothing, or `name = "…"`.
pub(crate) struct Name(Option<LitStr>);

impl Parse for Name {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.is_empty() {
            return Ok(Name(None));
        }
        let key: Ident = input.parse()?;
        if key != "name" {
            return Err(Error::new(key.span(), "the one setting of #[service] is name = \"…\""));
        }
        input.parse::<syn::Token![=]>()?;
        Ok(Name(Some(input.parse()?)))
    }
}

pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) definition: ItemTrait,
    pub(crate) methods: Vec<Method>,
}

pub(crate) struct Method {
    pub(crate) ident: Ident,
    pub(crate) doc: String,
    pub(crate) route: Option<Route>,
    pub(crate) arguments: Vec<Argument>,
    /// What it returns, without `Result`.
    pub(crate) returns: Type,
    pub(crate) fallible: bool,
}

pub(crate) struct Route {
    pub(crate) verb: String,
    pub(crate) path: LitStr,
    /// The names in braces, in order.
    pub(crate) parameters: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Path,
    Query,
    Body,
}

pub(crate) struct Argument {
    pub(crate) ident: Ident,
    pub(crate) kind: Type,
    pub(crate) place: Place,
    /// Of `Option<T>`, the `T`.
    pub(crate) optional: Option<Type>,
}

impl Service {
    pub(crate) fn read(name: Name, mut definition: ItemTrait) -> Result<Self> {
        if !definition.generics.params.is_empty() {
            let text = "a service cannot be generic: a client has to know what it calls";
            return Err(Error::new_spanned(&definition.generics, text));
        }
        definition.supertraits.push(parse_quote!(::core::marker::Send));
        definition.supertraits.push(parse_quote!(::core::marker::Sync));
        definition.supertraits.push(parse_quote!('static));
        let mut methods = Vec::new();
        for item in &mut definition.items {
            match item {
                TraitItem::Fn(method) => methods.push(Method::read(method)?),
                other => return Err(Error::new_spanned(other, "a service has methods, and nothing else")),
            }
        }
        if methods.is_empty() {
            return Err(Error::new_spanned(&definition.ident, "a service has at least one method"));
        }
        let name = name.0.map_or_else(|| snake(&definition.ident.to_string()), |name| name.value());
        let doc = doc_of(&definition.attrs);
        Ok(Service { name, doc, definition, methods })
    }

    /// The trait itself, whose futures can go from thread to thread.
    pub(crate) fn definition(&self) -> TokenStream {
        self.definition.to_token_stream()
    }
}

impl Method {
    fn read(method: &mut TraitItemFn) -> Result<Self> {
        let signature = &method.sig;
        if signature.asyncness.is_none() {
            return Err(Error::new_spanned(signature.fn_token, "a method of a service is async"));
        }
        if !signature.generics.params.is_empty() {
            let text = "a method of a service cannot be generic: its arguments are read from bytes";
            return Err(Error::new_spanned(&signature.generics, text));
        }
        match signature.inputs.first() {
            Some(FnArg::Receiver(receiver))
                if receiver.reference.is_some() && receiver.mutability.is_none() => {}
            _ => {
                let text = "a method of a service takes &self: many calls are worked on at once";
                return Err(Error::new_spanned(&signature.ident, text));
            }
        }
        let route = take_route(&mut method.attrs)?;
        let (returns, fallible) = returned(&method.sig.output)?;
        let arguments = method.sig.inputs.iter_mut().skip(1);
        let arguments =
            arguments.map(|input| Argument::read(input, route.as_ref())).collect::<Result<Vec<_>>>()?;
        let read = Method {
            ident: method.sig.ident.clone(),
            doc: doc_of(&method.attrs),
            route,
            arguments,
            returns,
            fallible,
        };
        read.check_route()?;
        let output = match &method.sig.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, kind) => quote!(#kind),
        };
        method.sig.asyncness = None;
        method.sig.output =
            parse_quote!(-> impl ::core::future::Future<Output = #output> + ::core::marker::Send);
        if let Some(body) = method.default.take() {
            method.default = Some(parse_quote!({ async move #body }));
        }
        Ok(read)
    }

    fn check_route(&self) -> Result<()> {
        let bodies: Vec<_> = self.arguments.iter().filter(|argument| argument.place == Place::Body).collect();
        if let [_, second, ..] = bodies[..] {
            return Err(Error::new(second.ident.span(), "a request has one body; put both into one struct"));
        }
        let Some(route) = &self.route else { return Ok(()) };
        for name in &route.parameters {
            if !self.arguments.iter().any(|argument| argument.ident == name) {
                let text = format!("the path has {{{name}}}, but {} has no argument {name}", self.ident);
                return Err(Error::new(route.path.span(), text));
            }
        }
        if let (Some(body), "get" | "delete") = (bodies.first(), route.verb.as_str()) {
            let text =
                format!("a {} has no body; take it from the path or the query", route.verb.to_uppercase());
            return Err(Error::new(body.ident.span(), text));
        }
        Ok(())
    }
}

impl Argument {
    fn read(input: &mut FnArg, route: Option<&Route>) -> Result<Self> {
        let FnArg::Typed(typed) = input else {
            return Err(Error::new_spanned(input, "self comes first"));
        };
        let Pat::Ident(pattern) = &*typed.pat else {
            return Err(Error::new_spanned(&typed.pat, "an argument of a service has a plain name"));
        };
        let ident = pattern.ident.clone();
        let is_body = |attribute: &Attribute| attribute.path().is_ident("body");
        let has_body = typed.attrs.iter().any(is_body);
        typed.attrs.retain(|attribute| !is_body(attribute));
        if matches!(*typed.ty, Type::Reference(_)) {
            let text = "an argument of a service owns what it holds: it comes from another process";
            return Err(Error::new_spanned(&typed.ty, text));
        }
        let in_path = route.is_some_and(|route| route.parameters.iter().any(|name| ident == name));
        let place = match (has_body, in_path) {
            (true, true) => {
                return Err(Error::new(
                    ident.span(),
                    "an argument comes from the path or the body, not from both",
                ));
            }
            (true, false) => Place::Body,
            (false, true) => Place::Path,
            (false, false) => Place::Query,
        };
        Ok(Argument { ident, kind: (*typed.ty).clone(), place, optional: argument_of(&typed.ty, "Option") })
    }
}

/// The route among the attributes, which goes from there.
fn take_route(attributes: &mut Vec<Attribute>) -> Result<Option<Route>> {
    let verb_of = |attribute: &Attribute| VERBS.into_iter().find(|verb| attribute.path().is_ident(verb));
    let mut route = None;
    for attribute in attributes.iter() {
        let Some(verb) = verb_of(attribute) else { continue };
        let path: LitStr = attribute.parse_args().map_err(|error| {
            Error::new(error.span(), format!("a route is written #[{verb}(\"/path/{{argument}}\")]"))
        })?;
        if route.is_some() {
            return Err(Error::new_spanned(attribute, "a method has one route"));
        }
        let parameters = parameters(&path)?;
        route = Some(Route { verb: verb.to_owned(), path, parameters });
    }
    attributes.retain(|attribute| verb_of(attribute).is_none());
    Ok(route)
}

fn parameters(path: &LitStr) -> Result<Vec<String>> {
    let text = path.value();
    let wrong = |text: String| Error::new(path.span(), text);
    let Some(segments) = text.strip_prefix('/') else {
        return Err(wrong(format!("the path {text:?} does not begin with /")));
    };
    let mut names = Vec::new();
    for segment in segments.split('/') {
        let name = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        match name {
            Some(name) if syn::parse_str::<Ident>(name).is_err() => {
                return Err(wrong(format!("{segment} does not name an argument")));
            }
            Some(name) if names.iter().any(|other| other == name) => {
                return Err(wrong(format!("{segment} stands in the path twice")));
            }
            Some(name) => names.push(name.to_owned()),
            None if segment.contains(['{', '}', '?', '#', '%', ' ']) => {
                let text = format!(
                    "{segment:?} is not a part of a path: write {{argument}} for a whole part, or plain text"
                );
                return Err(wrong(text));
            }
            None if segment.is_empty() && text != "/" => {
                return Err(wrong(format!("the path {text:?} has an empty part")));
            }
            None => {}
        }
    }
    Ok(names)
}

/// What a method returns without `Result`, and whether it has one.
fn returned(output: &ReturnType) -> Result<(Type, bool)> {
    let kind = match output {
        ReturnType::Default => return Ok((parse_quote!(()), false)),
        ReturnType::Type(_, kind) => &**kind,
    };
    match kind {
        Type::Reference(_) | Type::ImplTrait(_) => {
            let text = "a method of a service returns what can be sent: a type that owns its content";
            Err(Error::new_spanned(kind, text))
        }
        _ => Ok(argument_of(kind, "Result").map_or_else(|| (kind.clone(), false), |inner| (inner, true))),
    }
}

/// The first argument of a generic type with this name.
fn argument_of(kind: &Type, name: &str) -> Option<Type> {
    let Type::Path(path) = kind else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(kind) => Some(kind.clone()),
        _ => None,
    }
}

fn doc_of(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(line) => Some(line.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (at, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// `put` as `Put`.
pub(crate) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said about a trait.
    fn mistake(item: &str) -> String {
        let given = syn::parse_str(item).expect("it is a trait");
        Service::read(Name(None), given).err().expect("it is refused").to_string()
    }

    #[test]
    fn mistakes_are_told_with_the_way_out() {
        let cases = [
            ("trait T<A> { async fn f(&self); }", "cannot be generic"),
            ("trait T {}", "at least one method"),
            ("trait T { const A: u8; }", "has methods, and nothing else"),
            ("trait T { fn f(&self); }", "is async"),
            ("trait T { async fn f(&mut self); }", "takes &self"),
            ("trait T { async fn f(); }", "takes &self"),
            ("trait T { async fn f<A>(&self, a: A); }", "cannot be generic"),
            ("trait T { async fn f(&self, a: &str); }", "owns what it holds"),
            ("trait T { async fn f(&self, (a, b): (u8, u8)); }", "has a plain name"),
            ("trait T { async fn f(&self) -> &str; }", "owns its content"),
            ("trait T { #[get] async fn f(&self); }", "#[get(\"/path/{argument}\")]"),
            ("trait T { #[get(\"a\")] async fn f(&self); }", "does not begin with /"),
            ("trait T { #[get(\"/a//b\")] async fn f(&self); }", "empty part"),
            ("trait T { #[get(\"/a-{b}\")] async fn f(&self, b: u8); }", "not a part of a path"),
            ("trait T { #[get(\"/{b}\")] async fn f(&self); }", "has no argument b"),
            ("trait T { #[get(\"/{b}/{b}\")] async fn f(&self, b: u8); }", "twice"),
            ("trait T { #[get(\"/{1}\")] async fn f(&self); }", "does not name an argument"),
            ("trait T { #[get(\"/\")] #[put(\"/\")] async fn f(&self); }", "one route"),
            ("trait T { #[get(\"/\")] async fn f(&self, #[body] b: u8); }", "a GET has no body"),
            ("trait T { #[put(\"/\")] async fn f(&self, #[body] a: u8, #[body] b: u8); }", "one body"),
            ("trait T { #[put(\"/{a}\")] async fn f(&self, #[body] a: u8); }", "not from both"),
        ];
        for (item, told) in cases {
            let text = mistake(item);
            assert!(text.contains(told), "{item}: {text}");
        }
    }

    #[test]
    fn a_trait_is_read_as_it_is_written() {
        let item = "/// Does.\n trait BigDesk { /// It.\n #[put(\"/a/{id}\")] \
            async fn f(&self, id: u8, more: Option<u8>, #[body] b: Vec<u8>) -> Result<u8, E>; }";
        let service = Service::read(Name(None), syn::parse_str(item).expect("a trait")).expect("a service");
        assert_eq!((service.name.as_str(), service.doc.as_str()), ("big_desk", "Does."));
        let method = &service.methods[0];
        assert!(method.fallible && method.returns.to_token_stream().to_string() == "u8");
        let places: Vec<_> = method.arguments.iter().map(|argument| argument.place).collect();
        assert!(places == [Place::Path, Place::Query, Place::Body]);
        assert!(method.arguments[1].optional.is_some());
        // the marks are ours, and do not stay in the trait
        let definition = service.definition().to_string();
        assert!(!definition.contains("# [put") && !definition.contains("# [body]"), "{definition}");
    }
}
