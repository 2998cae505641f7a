//! TypeScript's types taken out of a file. What is left is JavaScript, each line where it was.

use std::collections::HashSet;
use std::thread;

use oxc_allocator::Allocator;
use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType, Span};
use oxc_syntax::scope::ScopeFlags;

/// Stack of the parser, bytes: it goes a level deeper for each bracket.
const STACK_BYTES: usize = 64 << 20;
/// What stands before a class's member for the types' sake.
const MODIFIERS: [&str; 7] =
    ["public", "private", "protected", "readonly", "override", "abstract", "declare"];

/// The JavaScript of a file.
///
/// # Errors
/// What is wrong in it, with its line, or what of TypeScript is more than types.
pub(crate) fn plain(name: &str, text: &str) -> Result<String, String> {
    // a user's own stack is small
    thread::scope(|scope| {
        let parser = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || stripped(text));
        let parser = parser.map_err(|error| format!("{name}: no thread to read it: {error}"))?;
        let outcome = parser.join().map_err(|_| format!("{name}: it cannot be read as TypeScript"))?;
        outcome.map_err(|(at, why)| {
            let line = text.as_bytes().iter().take(at as usize).filter(|byte| **byte == b'\n').count() + 1;
            format!("{name}:{line}: {why}")
        })
    })
}

fn stripped(text: &str) -> Result<String, (u32, String)> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::ts().with_module(true)).parse();
    if let Some(error) = parsed.errors.first() {
        let at = error.labels.as_ref().and_then(|labels| labels.first()).map_or(0, |label| label.offset());
        return Err((at as u32, format!("SyntaxError: {}", error.message)));
    }
    let mut types =
        Types { text, gone: Vec::new(), values: HashSet::new(), imports: Vec::new(), wrong: None };
    types.visit_program(&parsed.program);
    types.leave_out_imports();
    if let Some((span, why)) = types.wrong {
        return Err((span.start, why.to_owned()));
    }
    let mut plain = text.as_bytes().to_vec();
    for span in types.gone {
        for byte in &mut plain[span.start as usize..span.end as usize] {
            if !matches!(*byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    String::from_utf8(plain).map_err(|_| (0, "its types end within a character".to_owned()))
}

/// Where types stand.
struct Types<'t> {
    text: &'t str,
    /// What is taken out.
    gone: Vec<Span>,
    /// Names that are used as values.
    values: HashSet<String>,
    /// The imports that name something: the whole, and each name with its place.
    imports: Vec<(Span, Vec<(String, Span)>)>,
    /// The first thing that is more than a type.
    wrong: Option<(Span, &'static str)>,
}

impl Types<'_> {
    fn take(&mut self, start: u32, end: u32) {
        if start < end {
            self.gone.push(Span::new(start, end));
        }
    }

    fn between(&self, start: u32, end: u32) -> &str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Takes out a mark that stands next behind a place, before another.
    fn take_mark(&mut self, mark: char, start: u32, end: u32) {
        if let Some(at) = self.between(start, end).find(mark) {
            let at = start + at as u32;
            self.take(at, at + 1);
        }
    }

    /// Takes out words of a member's beginning.
    fn take_modifiers(&mut self, start: u32, end: u32) {
        let words = self.between(start, end).to_owned();
        let mut at = 0;
        for word in words.split(|c: char| !c.is_ascii_alphabetic()) {
            if MODIFIERS.contains(&word) {
                self.take(start + at, start + at + word.len() as u32);
            }
            at += word.len() as u32 + 1;
        }
    }

    /// Takes out something of a list, with the comma behind it.
    fn take_listed(&mut self, span: Span) {
        let behind = self.text.get(span.end as usize..).unwrap_or_default();
        let blanks = behind.len() - behind.trim_start().len();
        let has_comma = behind.trim_start().starts_with(',');
        self.take(span.start, span.end + if has_comma { blanks as u32 + 1 } else { 0 });
    }

    /// Takes out what is imported for the types' sake: what no value is.
    fn leave_out_imports(&mut self) {
        for (whole, names) in std::mem::take(&mut self.imports) {
            if names.iter().all(|(name, _)| !self.values.contains(name)) {
                self.take(whole.start, whole.end);
                continue;
            }
            for (name, span) in names {
                if !self.values.contains(&name) {
                    self.take_listed(span);
                }
            }
        }
    }

    fn refuse(&mut self, span: Span, why: &'static str) {
        self.wrong.get_or_insert((span, why));
    }
}

impl<'a> Visit<'a> for Types<'_> {
    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.values.insert(it.name.to_string());
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        // the colon before it is a part of it, or stands before it
        let before = self.between(0, it.span.start).trim_end();
        let start = if before.ends_with(':') { before.len() as u32 - 1 } else { it.span.start };
        self.take(start, it.span.end);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.take(it.span.start, it.span.end);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.take(it.span.start, it.span.end);
    }

    fn visit_ts_type_alias_declaration(&mut self, it: &TSTypeAliasDeclaration<'a>) {
        self.take(it.span.start, it.span.end);
    }

    fn visit_ts_interface_declaration(&mut self, it: &TSInterfaceDeclaration<'a>) {
        self.take(it.span.start, it.span.end);
    }

    fn visit_ts_index_signature(&mut self, it: &TSIndexSignature<'a>) {
        self.take(it.span.start, it.span.end);
    }

    fn visit_ts_global_declaration(&mut self, it: &TSGlobalDeclaration<'a>) {
        self.take(it.span.start, it.span.end);
    }

    fn visit_ts_class_implements_list(&mut self, it: &oxc_allocator::Vec<'a, TSClassImplements<'a>>) {
        if let (Some(first), Some(last)) = (it.first(), it.last())
            && let Some(word) = self.between(0, first.span.start).rfind("implements")
        {
            self.take(word as u32, last.span.end);
        }
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.visit_expression(&it.expression);
        self.take(it.expression.span().end, it.span.end);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.visit_expression(&it.expression);
        self.take(it.expression.span().end, it.span.end);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.visit_expression(&it.expression);
        self.take(it.expression.span().end, it.span.end);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.visit_expression(&it.expression);
        self.take(it.span.start, it.expression.span().start);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.take_listed(it.span);
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            self.refuse(
                it.span,
                "a parameter that is a property is more than a type; assign it in the constructor",
            );
        }
        if it.optional {
            let pattern = it.pattern.span().end;
            let end = it.type_annotation.as_ref().map_or(it.span.end, |annotation| annotation.span.start);
            self.take_mark('?', pattern, end.max(pattern + 1));
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        if it.declare {
            self.take(it.span.start, it.span.end);
            return;
        }
        walk::walk_variable_declaration(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            let end = it.type_annotation.as_ref().map_or(it.span.end, |annotation| annotation.span.start);
            self.take_mark('!', it.id.span().end, end);
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if it.body.is_none() || it.declare {
            self.take(it.span.start, it.span.end);
            return;
        }
        walk::walk_function(self, it, flags);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        if it.declare {
            self.take(it.span.start, it.span.end);
            return;
        }
        if it.r#abstract {
            let end = it.id.as_ref().map_or(it.body.span.start, |id| id.span.start);
            self.take_modifiers(it.span.start, end);
        }
        walk::walk_class(self, it);
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        if it.value.body.is_none() {
            self.take(it.span.start, it.span.end);
            return;
        }
        self.take_modifiers(it.span.start, it.key.span().start);
        if it.optional {
            self.take_mark('?', it.key.span().end, it.value.span.start + 1);
        }
        walk::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if it.declare || it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition {
            self.take(it.span.start, it.span.end);
            return;
        }
        self.take_modifiers(it.span.start, it.key.span().start);
        let key = it.key.span().end;
        let end = it.type_annotation.as_ref().map_or(it.span.end, |annotation| annotation.span.start);
        if it.optional {
            self.take_mark('?', key, end);
        } else if it.definite {
            self.take_mark('!', key, end);
        }
        walk::walk_property_definition(self, it);
    }

    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        if it.import_kind.is_type() {
            self.take(it.span.start, it.span.end);
            return;
        }
        let Some(specifiers) = &it.specifiers else { return };
        if specifiers.is_empty() {
            return;
        }
        let mut names = Vec::new();
        for specifier in specifiers {
            let is_type = matches!(
                specifier,
                ImportDeclarationSpecifier::ImportSpecifier(named) if named.import_kind.is_type()
            );
            // a name that no value has
            let name = if is_type { String::new() } else { specifier.local().name.to_string() };
            names.push((name, specifier.span()));
        }
        self.imports.push((it.span, names));
    }

    fn visit_export_named_declaration(&mut self, it: &ExportNamedDeclaration<'a>) {
        let is_type = it.export_kind.is_type() || it.declaration.as_ref().is_some_and(|declared| {
            declared.declare()
                || matches!(
                    declared,
                    Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_)
                )
                || matches!(declared, Declaration::FunctionDeclaration(function) if function.body.is_none())
        });
        if is_type {
            self.take(it.span.start, it.span.end);
            return;
        }
        for specifier in it.specifiers.iter().filter(|specifier| specifier.export_kind.is_type()) {
            self.take_listed(specifier.span);
        }
        walk::walk_export_named_declaration(self, it);
    }

    fn visit_export_all_declaration(&mut self, it: &ExportAllDeclaration<'a>) {
        if it.export_kind.is_type() {
            self.take(it.span.start, it.span.end);
        }
    }

    fn visit_export_default_declaration(&mut self, it: &ExportDefaultDeclaration<'a>) {
        let is_type = match &it.declaration {
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => function.body.is_none(),
            _ => false,
        };
        if is_type {
            self.take(it.span.start, it.span.end);
            return;
        }
        walk::walk_export_default_declaration(self, it);
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        match it.declare {
            true => self.take(it.span.start, it.span.end),
            false => self
                .refuse(it.span, "an enum is more than a type; write an object: const A = { X: 0 } as const"),
        }
    }

    fn visit_ts_module_declaration(&mut self, it: &TSModuleDeclaration<'a>) {
        match it.declare {
            true => self.take(it.span.start, it.span.end),
            false => self.refuse(it.span, "a namespace is more than a type; write a module or an object"),
        }
    }

    fn visit_ts_import_equals_declaration(&mut self, it: &TSImportEqualsDeclaration<'a>) {
        self.refuse(it.span, "import x = … is not supported; write import x from …");
    }

    fn visit_ts_export_assignment(&mut self, it: &TSExportAssignment<'a>) {
        self.refuse(it.span, "export = … is not supported; write export default …");
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.refuse(it.span, "decorators are not supported");
    }
}
