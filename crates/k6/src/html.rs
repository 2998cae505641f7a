//! HTML for scripts and `js` steps: a page is parsed once, its nodes are numbers in the order of the document.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use dom_query::{Document, Matcher, NodeId, NodeRef, Selection};
use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, parse_document};
use rquickjs::class::{Class, JsClass, Readable, Trace, Tracer};
use rquickjs::context::EvalOptions;
use rquickjs::function::{Constructor, Func, Opt};
use rquickjs::{Ctx, Function, JsLifetime, Object, Result, Value};
use tidemark_scenario::units::Size;

use crate::host;
use crate::modules::thrown;

/// Most memory of the pages that a user of a script keeps at once, bytes.
const BYTES_MAX: usize = 64 << 20;
/// What a node counts besides the page's text, bytes.
const NODE_BYTES: usize = 128;
/// Deepest page. The parser takes time with the square of it.
const DEPTH_MAX: usize = 1_000;
/// What the parser is given at once, bytes. Behind each piece the bounds are looked at.
const PIECE_BYTES: usize = 4 << 10;
/// Longest selector, bytes.
const SELECTOR_MAX: usize = 4 << 10;
/// Most brackets of a selector: its parser goes a level deeper for each.
const BRACKETS_MAX: usize = 20;

/// What bounds the pages of a runtime.
pub(crate) struct Bounds {
    /// Of all pages at once, bytes: their text, and so many for each node.
    pub bytes: Rc<Cell<usize>>,
    pub bytes_max: usize,
    /// Whether what parses has had its time.
    pub is_over: Box<dyn Fn() -> bool>,
}

/// A parsed page. The script's garbage collector ends it.
struct Page {
    document: Document,
    nodes: Vec<NodeId>,
    numbers: HashMap<NodeId, u32>,
    bytes: usize,
    /// Of all pages of the runtime.
    all: Rc<Cell<usize>>,
}

impl Drop for Page {
    fn drop(&mut self) {
        self.all.set(self.all.get().saturating_sub(self.bytes));
    }
}

// SAFETY: nothing in it is of a runtime's lifetime.
#[allow(unsafe_code)]
unsafe impl<'js> JsLifetime<'js> for Page {
    type Changed<'to> = Page;
}

impl<'js> Trace<'js> for Page {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

impl<'js> JsClass<'js> for Page {
    const NAME: &'static str = "Page";
    type Mutable = Readable;

    fn constructor(_: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}

impl Page {
    fn node(&self, ctx: &Ctx<'_>, number: u32) -> Result<NodeRef<'_>> {
        let id = self.nodes.get(number as usize).and_then(|id| self.document.tree.get(id));
        id.ok_or_else(|| thrown(ctx, "the node is not of this page"))
    }

    fn numbers<'n>(&self, nodes: impl IntoIterator<Item = NodeRef<'n>>) -> Vec<u32> {
        nodes.into_iter().filter_map(|node| self.numbers.get(&node.id).copied()).collect()
    }
}

type Its<'js> = Class<'js, Page>;

/// Makes `parseHTML`. What is behind it is loaded when it is first called.
pub(crate) fn install(natives: &Object<'_>) -> Result<()> {
    natives.set("parseHTML", Func::from(first_parse))
}

fn first_parse<'js>(ctx: Ctx<'js>, text: Value<'js>, url: Value<'js>) -> Result<Value<'js>> {
    let natives: Object<'js> = ctx.globals().get("__k6")?;
    crate::bytes::install(&natives)?;
    let bytes = Rc::clone(&host::host(&ctx)?.html_bytes);
    load(&ctx, &natives, Bounds { bytes, bytes_max: BYTES_MAX, is_over: Box::new(|| false) })?;
    let parse: Function<'js> = natives.get("parseHTML")?;
    parse.call((text, url))
}

/// Makes `parseHTML` with all that is behind it; the natives are `__k6`, and have what bytes need.
pub(crate) fn load<'js>(ctx: &Ctx<'js>, natives: &Object<'js>, bounds: Bounds) -> Result<()> {
    crate::urls::install(natives)?;
    let page = move |ctx: Ctx<'js>, text: String| page(ctx, &text, &bounds);
    natives.set("page", Function::new(ctx.clone(), page)?)?;
    natives.set("pageFind", Func::from(find))?;
    natives.set("pageFilter", Func::from(filter))?;
    natives.set("pageStep", Func::from(step))?;
    natives.set("pageAttributes", Func::from(attributes))?;
    natives.set("pageText", Func::from(text_of))?;
    natives.set("pageInner", Func::from(inner))?;
    natives.set("pageName", Func::from(name))?;
    let mut options = EvalOptions::default();
    options.filename = Some("k6/html".to_owned());
    ctx.eval_with_options::<(), _>(include_str!("js/html-tree.js"), options)
}

fn page<'js>(ctx: Ctx<'js>, text: &str, bounds: &Bounds) -> Result<Its<'js>> {
    let all = Rc::clone(&bounds.bytes);
    if all.get() + text.len() * 2 > bounds.bytes_max {
        // of pages that only hold each other
        ctx.run_gc();
    }
    let document = parsed(text, bounds).map_err(|why| thrown(&ctx, &why))?;
    let bytes = text.len() + document.tree.len() * NODE_BYTES;
    all.set(all.get() + bytes);
    let root = document.root();
    let nodes: Vec<NodeId> =
        std::iter::once(root.id).chain(root.descendants_it().map(|node| node.id)).collect();
    let numbers = nodes.iter().zip(0..).map(|(id, number)| (*id, number)).collect();
    Class::instance(ctx, Page { document, nodes, numbers, bytes, all })
}

/// A page within the bounds.
fn parsed(text: &str, bounds: &Bounds) -> std::result::Result<Document, String> {
    let room = bounds.bytes_max.saturating_sub(bounds.bytes.get());
    let tree_builder = TreeBuilderOpts { scripting_enabled: true, ..TreeBuilderOpts::default() };
    let mut parser = parse_document(Document::default(), ParseOpts { tree_builder, ..ParseOpts::default() });
    let mut rest = text;
    while !rest.is_empty() {
        let at = (PIECE_BYTES..rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let (piece, next) = rest.split_at(at);
        rest = next;
        parser.process(piece.into());
        let document = &parser.tokenizer.sink.sink;
        if text.len() + document.tree.len() * NODE_BYTES > room {
            return Err(format!(
                "parseHTML: the pages that are kept at once take more than {}",
                Size(bounds.bytes_max as u64)
            ));
        }
        if (bounds.is_over)() {
            return Err("parseHTML: the page takes too long".into());
        }
        let inner = |node: &NodeRef<'_>| document.tree.last_child_of(&node.id).map(|node| node.id);
        let line = std::iter::successors(Some(document.root().id), |id| {
            document.tree.get(id).and_then(|node| inner(&node))
        });
        if line.take(DEPTH_MAX + 1).count() > DEPTH_MAX {
            return Err(format!("parseHTML: elements are nested deeper than {DEPTH_MAX}"));
        }
    }
    Ok(parser.finish())
}

/// What stands for the words that k6's selectors have beyond those that the engine knows.
const WORDS: &[(&str, &str)] = &[
    (":checked", ":is(input[type=checkbox][checked], input[type=radio][checked], option[selected])"),
    (":disabled", ":is(button, input, select, textarea, option, optgroup, fieldset)[disabled]"),
    (":enabled", ":is(button, input, select, textarea, option, optgroup, fieldset):not([disabled])"),
    (":input", ":is(input, select, textarea, button)"),
];

/// A selector of k6 in the engine's words. What is in quotes or square brackets stays.
fn in_css(selector: &str) -> String {
    let mut css = String::with_capacity(selector.len());
    let (mut quote, mut is_attribute) = (None, false);
    let mut rest = selector;
    while let Some(next) = rest.chars().next() {
        match (next, quote) {
            (_, Some(open)) if next == open => quote = None,
            ('"' | '\'', None) => quote = Some(next),
            ('[' | ']', None) => is_attribute = next == '[',
            _ => {}
        }
        // the engine wants the text of :contains() in quotes
        if let Some((text, behind)) = rest.strip_prefix(":contains(").and_then(|rest| rest.split_once(')'))
            && quote.is_none()
            && !is_attribute
            && !text.trim().starts_with(['"', '\''])
        {
            css.push_str(&format!(":contains({:?})", text.trim()));
            rest = behind;
            continue;
        }
        let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
        let word = WORDS.iter().find(|(word, _)| rest.strip_prefix(word).is_some_and(|rest| !goes_on(rest)));
        match word {
            Some((word, stands)) if quote.is_none() && !is_attribute => {
                css.push_str(stands);
                rest = &rest[word.len()..];
            }
            _ => {
                css.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    css
}

fn matcher(ctx: &Ctx<'_>, selector: &str) -> Result<Matcher> {
    let brackets = selector.bytes().filter(|byte| *byte == b'(').count();
    if selector.len() > SELECTOR_MAX || brackets > BRACKETS_MAX {
        return Err(thrown(ctx, "the selector is too long or too deep"));
    }
    Matcher::new(&in_css(selector)).map_err(|_| {
        thrown(
            ctx,
            &format!("the selector {selector:?} is not understood; it is one of CSS, with :contains()"),
        )
    })
}

/// What a selector finds below these nodes, without repetition.
fn find<'js>(ctx: Ctx<'js>, page: Its<'js>, below: Vec<u32>, selector: String) -> Result<Vec<u32>> {
    let page = page.borrow();
    let matcher = matcher(&ctx, &selector)?;
    let mut found = Vec::new();
    let mut known = HashSet::new();
    for number in below {
        let below = Selection::from(page.node(&ctx, number)?);
        let numbers = page.numbers(below.select_matcher(&matcher).nodes().iter().copied());
        found.extend(numbers.into_iter().filter(|number| known.insert(*number)));
    }
    Ok(found)
}

/// Those of the nodes that a selector fits.
fn filter<'js>(ctx: Ctx<'js>, page: Its<'js>, of: Vec<u32>, selector: String) -> Result<Vec<u32>> {
    let page = page.borrow();
    let matcher = matcher(&ctx, &selector)?;
    let mut fitting = Vec::new();
    for number in of {
        let node = page.node(&ctx, number)?;
        if node.is_element() && node.is_match(&matcher) {
            fitting.push(number);
        }
    }
    Ok(fitting)
}

/// Nodes that stand in a relation to one, the nearest first: no more than so many, if a number is given.
fn step<'js>(
    ctx: Ctx<'js>,
    page: Its<'js>,
    of: u32,
    to: String,
    most: Opt<Option<usize>>,
) -> Result<Vec<u32>> {
    let page = page.borrow();
    let node = page.node(&ctx, of)?;
    let chain = |next: fn(&NodeRef<'_>) -> Option<NodeId>| {
        let following = |node: &NodeRef<'_>| next(node).and_then(|id| page.document.tree.get(&id));
        let all = std::iter::successors(following(&node), following).filter(NodeRef::is_element);
        page.numbers(all.take(most.0.flatten().unwrap_or(usize::MAX)))
    };
    Ok(match to.as_str() {
        "children" => page.numbers(node.children_it(false).filter(NodeRef::is_element)),
        "contents" => page.numbers(node.children_it(false)),
        "node parent" => page.numbers(node.parent()),
        "node next" => page.numbers(node.next_sibling()),
        "node previous" => page.numbers(node.prev_sibling()),
        "parents" => chain(|node| node.parent().map(|node| node.id)),
        "next" => chain(|node| node.next_sibling().map(|node| node.id)),
        _ => chain(|node| node.prev_sibling().map(|node| node.id)),
    })
}

/// Names and values in turn.
fn attributes<'js>(ctx: Ctx<'js>, page: Its<'js>, of: u32) -> Result<Vec<String>> {
    let page = page.borrow();
    let attributes = page.node(&ctx, of)?.attrs();
    let told = attributes
        .iter()
        .flat_map(|attribute| [attribute.name.local.to_string(), attribute.value.to_string()]);
    Ok(told.collect())
}

fn text_of<'js>(ctx: Ctx<'js>, page: Its<'js>, of: Vec<u32>) -> Result<String> {
    let page = page.borrow();
    let mut text = String::new();
    for number in of {
        text.push_str(&page.node(&ctx, number)?.text());
    }
    Ok(text)
}

fn inner<'js>(ctx: Ctx<'js>, page: Its<'js>, of: u32) -> Result<String> {
    let page = page.borrow();
    let html = page.node(&ctx, of)?.inner_html();
    Ok(html.to_string())
}

fn name<'js>(ctx: Ctx<'js>, page: Its<'js>, of: u32) -> Result<String> {
    let page = page.borrow();
    let node = page.node(&ctx, of)?;
    Ok(match node.node_name() {
        Some(name) => name.to_string(),
        None if node.is_text() => "#text".to_owned(),
        None if node.is_comment() => "#comment".to_owned(),
        None if node.is_doctype() => "html".to_owned(),
        None => "#document".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_k6_are_put_in_css() {
        for (selector, css) in [
            ("a > b", "a > b"),
            (":input", ":is(input, select, textarea, button)"),
            ("p:contains(':input')", "p:contains(':input')"),
            ("[a=':checked']", "[a=':checked']"),
            (":input-x", ":input-x"),
            ("p:contains(two words) > b", "p:contains(\"two words\") > b"),
        ] {
            assert_eq!(in_css(selector), css);
        }
    }
}
