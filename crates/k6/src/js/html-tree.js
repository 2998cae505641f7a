// Selections and elements of a page, as k6 has them. Loaded when a script parses its first page, or with `js` steps that name it.
(() => {
  const host = globalThis.__k6;
  const unique = (nodes) => [...new Set(nodes)];

  const refuse = (what) => {
    throw new TypeError(`invalid argument, cannot use a ${what === null ? "null" : typeof what} as a selector`);
  };

  // nodes as far as one that ends them
  const until = (nodes, isEnd) => {
    const end = nodes.findIndex(isEnd);
    return end < 0 ? nodes : nodes.slice(0, end);
  };

  const typed = (text) => {
    if (text === "" || text === "null" || text === "undefined") return undefined;
    if (text === "true" || text === "false") return text === "true";
    if (text[0] === "{" || text[0] === "[") {
      try {
        return JSON.parse(text);
      } catch {
        return text;
      }
    }
    return String(Number(text)) === text && Number.isFinite(Number(text)) ? Number(text) : text;
  };

  // words that k6 writes in capitals where they are a part of a name
  const CAPITALS = new Set(
    "API ASCII CPU CSS DNS EOF ETA GPU GUID HTML HTTP HTTPS ID IP JSON LHS OS QPS RAM RHS RPC SLA SMTP SSH TLS TTL UI UID UUID URI URL UTF8 VM XML XSRF XSS".split(" "),
  );
  const propertyOf = (name) =>
    name.split("-").map((word, at) => {
      if (at === 0) return word;
      const capitals = word.toUpperCase();
      return CAPITALS.has(capitals) ? capitals : word.slice(0, 1).toUpperCase() + word.slice(1);
    }).join("");
  const attributeOf = (name) => name.replace(/([a-z0-9])([A-Z])/g, "$1-$2").replace(/([A-Z]+)([A-Z][a-z])/g, "$1-$2").toLowerCase();

  class Selection {
    #page;
    #nodes;
    #url;
    #before;

    constructor(page, nodes, url, before) {
      [this.#page, this.#nodes, this.#url, this.#before] = [page, nodes, url, before];
    }

    #with(nodes) {
      return new Selection(this.#page, nodes, this.#url, this);
    }

    // what each node has in this direction
    #step(to, most) {
      return this.#nodes.map((node) => host.pageStep(this.#page, node, to, most));
    }

    #filtered(nodes, selector) {
      return this.#with(selector === undefined ? unique(nodes) : host.pageFilter(this.#page, unique(nodes), String(selector)));
    }

    // the nodes that an argument stands for
    #told(what) {
      if (what instanceof Selection) return what.#nodes;
      if (what instanceof Element) return [what.number()];
      return refuse(what);
    }

    // whether a node fits an argument
    #test(what) {
      if (typeof what === "function") return (node, at) => Boolean(what(at, this.#with([node])));
      const fitting = new Set(typeof what === "string" ? host.pageFilter(this.#page, this.#nodes, what) : this.#told(what));
      return (node) => fitting.has(node);
    }

    #isBelow(node, ancestors) {
      return host.pageStep(this.#page, node, "parents").some((above) => ancestors.has(above));
    }

    #until(to, end, filter) {
      const found = this.#step(to).map((nodes) => {
        if (end === undefined || end === null || end === "") return nodes;
        const ends = new Set(typeof end === "string" ? host.pageFilter(this.#page, nodes, end) : this.#told(end));
        return until(nodes, (node) => ends.has(node));
      });
      return this.#filtered(found.flat(), filter ?? undefined);
    }

    get url() {
      return this.#url;
    }

    add(what) {
      return this.#with(unique([...this.#nodes, ...(typeof what === "string" ? host.pageFind(this.#page, [0], what) : this.#told(what))]));
    }

    find(what) {
      if (typeof what === "string") return this.#with(host.pageFind(this.#page, this.#nodes, what));
      const own = new Set(this.#nodes);
      return this.#with(this.#told(what).filter((node) => this.#isBelow(node, own)));
    }

    closest(what) {
      const found = this.#nodes.map((node) => {
        const line = [node, ...host.pageStep(this.#page, node, "parents")];
        const fitting = typeof what === "string" ? host.pageFilter(this.#page, line, what) : this.#told(what).filter((one) => line.includes(one));
        return fitting[0];
      });
      return this.#with(unique(found.filter((node) => node !== undefined)));
    }

    has(what) {
      const inner = typeof what === "string" ? host.pageFind(this.#page, this.#nodes, what) : this.#told(what);
      const above = new Set(inner.flatMap((node) => host.pageStep(this.#page, node, "parents")));
      return this.#with(this.#nodes.filter((node) => above.has(node)));
    }

    not(what) {
      const fits = this.#test(what);
      return this.#with(this.#nodes.filter((node, at) => !fits(node, at)));
    }

    filter(what) {
      const fits = this.#test(what);
      return this.#with(this.#nodes.filter((node, at) => fits(node, at)));
    }

    is(what) {
      return this.#nodes.some(this.#test(what));
    }

    next(selector) {
      return this.#filtered(this.#step("next", 1).flat(), selector);
    }

    nextAll(selector) {
      return this.#filtered(this.#step("next").flat(), selector);
    }

    nextUntil(end, filter) {
      return this.#until("next", end, filter);
    }

    prev(selector) {
      return this.#filtered(this.#step("previous", 1).flat(), selector);
    }

    prevAll(selector) {
      return this.#filtered(this.#step("previous").flat(), selector);
    }

    prevUntil(end, filter) {
      return this.#until("previous", end, filter);
    }

    siblings(selector) {
      const both = this.#nodes.flatMap((node) => [...host.pageStep(this.#page, node, "previous").reverse(), ...host.pageStep(this.#page, node, "next")]);
      return this.#filtered(both, selector);
    }

    parent(selector) {
      return this.#filtered(this.#step("parents", 1).flat(), selector);
    }

    parents(selector) {
      return this.#filtered(this.#step("parents").flat(), selector);
    }

    parentsUntil(end, filter) {
      return this.#until("parents", end, filter);
    }

    children(selector) {
      return this.#filtered(this.#step("children").flat(), selector);
    }

    contents() {
      return this.#with(unique(this.#step("contents").flat()));
    }

    end() {
      return this.#before ?? this.#with([]);
    }

    eq(index) {
      const node = this.#nodes.at(index);
      return this.#with(node === undefined ? [] : [node]);
    }

    first() {
      return this.eq(0);
    }

    last() {
      return this.eq(-1);
    }

    slice(start, end) {
      return this.#with(this.#nodes.slice(start, end));
    }

    size() {
      return this.#nodes.length;
    }

    get length() {
      return this.#nodes.length;
    }

    get(index) {
      if (index === undefined) return this.#nodes.map((node) => new Element(this.#page, node, this.#url));
      const node = this.#nodes.at(index);
      return node === undefined ? undefined : new Element(this.#page, node, this.#url);
    }

    toArray() {
      return this.#nodes.map((node) => this.#with([node]));
    }

    index(what) {
      const [first] = this.#nodes;
      if (first === undefined) return -1;
      if (what === undefined) return host.pageStep(this.#page, first, "previous").length;
      if (typeof what === "string") return host.pageFind(this.#page, [0], what).indexOf(first);
      return this.#nodes.indexOf(this.#told(what)[0]);
    }

    each(call) {
      if (typeof call !== "function") throw new TypeError("the argument to each() must be a function");
      this.#nodes.forEach((node, at) => call(at, new Element(this.#page, node, this.#url)));
      return this;
    }

    map(call) {
      if (typeof call !== "function") throw new TypeError("the argument to map() must be a function");
      return this.#nodes.map((node, at) => call(at, this.#with([node])));
    }

    #attributes() {
      const flat = this.#nodes.length > 0 ? host.pageAttributes(this.#page, this.#nodes[0]) : [];
      const found = new Map();
      for (let at = 0; at < flat.length; at += 2) found.set(flat[at], flat[at + 1]);
      return found;
    }

    attr(name, otherwise) {
      const found = this.#attributes().get(String(name));
      return found === undefined ? otherwise : found;
    }

    data(name) {
      const attributes = this.#attributes();
      if (attributes.size === 0) return undefined;
      if (name !== undefined) {
        const text = attributes.get(`data-${attributeOf(String(name))}`);
        return text === undefined ? undefined : typed(text);
      }
      const all = {};
      for (const [key, text] of attributes) {
        if (key.startsWith("data-") && key.length > 5) all[propertyOf(key.slice(5))] = typed(text);
      }
      return all;
    }

    text() {
      return host.pageText(this.#page, this.#nodes);
    }

    html() {
      return this.#nodes.length > 0 ? host.pageInner(this.#page, this.#nodes[0]) : "";
    }

    name() {
      return this.#nodes.length > 0 ? host.pageName(this.#page, this.#nodes[0]) : "";
    }

    val() {
      const valueOf = (option) => option.attr("value") ?? option.text();
      const attribute = (name) => this.attr(name);
      switch (this.name()) {
        case "input":
          return attribute("value") ?? (["radio", "checkbox"].includes(attribute("type")) ? "on" : "");
        case "button":
          return attribute("value") ?? "";
        case "textarea":
          return this.first().text();
        case "option":
          return valueOf(this.first());
        case "select": {
          const selected = this.first().find("option[selected]");
          return attribute("multiple") === undefined ? (selected.size() > 0 ? valueOf(selected.first()) : "") : selected.map((_, option) => valueOf(option));
        }
        default:
          return undefined;
      }
    }

    serializeArray() {
      const kinds = "input, select, textarea, keygen";
      const fields = this.is("form") ? this.find(kinds) : this.filter(kinds);
      const counts = (field) => {
        const type = field.attr("type", "");
        return (
          field.attr("name", "") !== "" && field.attr("disabled") === undefined &&
          !["submit", "button", "reset", "image", "file"].includes(type) &&
          // as in k6, `checked` alone does not count
          (!["checkbox", "radio"].includes(type) || field.attr("checked") === "checked")
        );
      };
      return fields.toArray().filter(counts).map((field) => ({ name: field.attr("name"), value: field.val() }));
    }

    serializeObject() {
      return Object.fromEntries(this.serializeArray().map(({ name, value }) => [name, value]));
    }

    serialize() {
      const values = this.serializeObject();
      const pairs = Object.keys(values).sort().flatMap((name) => [values[name]].flat().flatMap((value) => [name, value ?? ""]));
      return host.formText(pairs);
    }

    toString() {
      return "[object Selection]";
    }
  }

  class Element {
    #page;
    #node;
    #url;

    constructor(page, node, url) {
      [this.#page, this.#node, this.#url] = [page, node, url];
    }

    number() {
      return this.#node;
    }

    #near(to, at = 0) {
      const node = host.pageStep(this.#page, this.#node, to, at === 0 ? 1 : undefined).at(at);
      return node === undefined ? undefined : new Element(this.#page, node, this.#url);
    }

    selection() {
      return new Selection(this.#page, [this.#node], this.#url);
    }

    nodeName() {
      return host.pageName(this.#page, this.#node);
    }

    nodeType() {
      return { "#text": 3, "#comment": 8, "#document": 9 }[this.nodeName()] ?? 1;
    }

    nodeValue() {
      return this.nodeType() === 3 ? this.textContent() : undefined;
    }

    textContent() {
      return host.pageText(this.#page, [this.#node]);
    }

    innerHTML() {
      return host.pageInner(this.#page, this.#node);
    }

    getAttribute(name) {
      return this.selection().attr(name);
    }

    hasAttribute(name) {
      return this.getAttribute(name) !== undefined;
    }

    hasAttributes() {
      return host.pageAttributes(this.#page, this.#node).length > 0;
    }

    attributes() {
      const flat = host.pageAttributes(this.#page, this.#node);
      const all = {};
      for (let at = 0; at < flat.length; at += 2) all[flat[at]] = { name: flat[at], value: flat[at + 1] };
      return all;
    }

    classList() {
      return this.getAttribute("class")?.split(/\s+/).filter((name) => name !== "") ?? [];
    }

    className() {
      return this.getAttribute("class");
    }

    hasChildNodes() {
      return host.pageStep(this.#page, this.#node, "contents").length > 0;
    }

    childElementCount() {
      return host.pageStep(this.#page, this.#node, "children").length;
    }

    children() {
      return this.selection().children().get();
    }

    childNodes() {
      return this.selection().contents().get();
    }

    firstChild() {
      return this.#near("contents");
    }

    lastChild() {
      return this.#near("contents", -1);
    }

    firstElementChild() {
      return this.#near("children");
    }

    lastElementChild() {
      return this.#near("children", -1);
    }

    nextSibling() {
      return this.#near("node next");
    }

    previousSibling() {
      return this.#near("node previous");
    }

    nextElementSibling() {
      return this.#near("next");
    }

    previousElementSibling() {
      return this.#near("previous");
    }

    parentNode() {
      return this.#near("node parent");
    }

    parentElement() {
      return this.#near("parents");
    }

    ownerDocument() {
      return new Element(this.#page, 0, this.#url);
    }

    querySelector(selector) {
      return this.selection().find(selector).get(0);
    }

    querySelectorAll(selector) {
      return this.selection().find(selector).get();
    }

    getElementsByTagName(name) {
      return this.querySelectorAll(name);
    }

    getElementsByClassName(name) {
      return this.querySelectorAll(`.${name}`);
    }

    contains(other) {
      const line = [other.number(), ...host.pageStep(this.#page, other.number(), "parents")];
      return line.includes(this.#node);
    }

    matches(selector) {
      return this.selection().is(selector);
    }

    isEqualNode(other) {
      return other instanceof Element && this.innerHTML() === other.innerHTML();
    }

    isSameNode(other) {
      return other instanceof Element && other.#page === this.#page && other.#node === this.#node;
    }

    value() {
      return this.selection().val();
    }

    // an address on the page, as seen from where the page is
    #address(name) {
      const told = this.getAttribute(name);
      if (told === undefined || !this.#url) return told ?? "";
      return host.resolve(this.#url, told);
    }

    href() {
      return this.#address("href");
    }

    src() {
      return this.#address("src");
    }

    action() {
      return this.#address("action");
    }

    text() {
      return this.textContent();
    }

    form() {
      return this.selection().closest("form").get(0);
    }

    elements() {
      return this.selection().find("input, button, select, textarea, fieldset, object, output").get();
    }

    options() {
      return this.selection().find("option").get();
    }

    selectedOptions() {
      return this.selection().find("option[selected]").get();
    }

    toString() {
      return this.nodeType() === 1 ? "[object html.Node]" : `[object ${this.nodeName()}]`;
    }
  }

  // attributes that are read under their own name
  for (const name of ["id", "lang", "name", "type", "method", "target", "rel", "title", "alt", "placeholder", "enctype", "content", "label"]) {
    Element.prototype[name] = function () {
      return this.getAttribute(name) ?? "";
    };
  }
  for (const name of ["checked", "disabled", "selected", "multiple", "required"]) {
    Element.prototype[name] = function () {
      return this.hasAttribute(name);
    };
  }

  host.kindsOfPages = [Selection, Element];
  host.parseHTML = (text, url) => {
    if (host.isRehearsal) return host.anything;
    if (text === null || text === undefined) throw new TypeError("parseHTML needs text; a response without a body has none");
    return new Selection(host.page(typeof text === "string" ? text : host.text(text)), [0], url);
  };
})();
