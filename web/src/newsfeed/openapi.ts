/** An OpenAPI document as what a reader wants to see of it. Pure. */

type Json = unknown;
type Fields = Record<string, Json>;

export interface Parameter { name: string; where: string; required: boolean; type: string; about: string }
export interface Answer { status: string; about: string; type: string; headers: string[] }
export interface Operation { method: string; path: string; id: string; about: string; parameters: Parameter[]; body: string; answers: Answer[] }
export interface Property { name: string; required: boolean; type: string; about: string }
export interface Schema { name: string; type: string; properties: Property[] }
export interface Description { title: string; version: string; about: string; operations: Operation[]; schemas: Schema[] }

const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options', 'trace'];

function fields(value: Json): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function items(value: Json): Json[] {
  return Array.isArray(value) ? value : [];
}

function text(value: Json): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

/** The last part of a reference within the document. */
function nameOf(reference: Json): string {
  return text(reference).split('/').at(-1) ?? '';
}

/** What a reference within the document leads to; one step, as no description here refers further. */
function found(document: Json, value: Json): Fields {
  const reference = text(fields(value)['$ref']);
  if (!reference.startsWith('#/')) return fields(value);
  return reference.slice(2).split('/').reduce<Fields>((at, key) => fields(at[key]), fields(document));
}

/** A schema in a few words: `Link`, `list of Post`, `integer (int64), from 1`. */
export function typeOf(schema: Json): string {
  const it = fields(schema);
  if (it['$ref'] !== undefined) return nameOf(it['$ref']);
  const any = [...items(it['anyOf']), ...items(it['oneOf'])];
  if (any.length > 0) return any.map(typeOf).join(' or ');
  const type = Array.isArray(it['type']) ? it['type'].map(text).join(' or ') : text(it['type']);
  if (type === 'array') return `list of ${typeOf(it['items'])}`;
  const words = [`${type || 'anything'}${it['format'] === undefined ? '' : ` (${text(it['format'])})`}`];
  const bound = (from: string, to: string, unit: string) => {
    const [low, high] = [text(it[from]), text(it[to])];
    if (low !== '' && high !== '') words.push(`${low} to ${high}${unit}`);
    else if (low !== '') words.push(`from ${low}${unit}`);
    else if (high !== '') words.push(`up to ${high}${unit}`);
  };
  bound('minimum', 'maximum', '');
  bound('minLength', 'maxLength', ' characters');
  if (it['default'] !== undefined) words.push(`default ${text(it['default'])}`);
  if (it['enum'] !== undefined) words.push(`one of ${items(it['enum']).map(text).join(', ')}`);
  if (it['pattern'] !== undefined) words.push(`like ${text(it['pattern'])}`);
  return words.join(', ');
}

/** What is sent: each media type and its schema. */
function content(value: Json): string {
  return Object.entries(fields(fields(value)['content'])).map(([media, it]) => `${typeOf(fields(it)['schema'])} as ${media}`).join(' or ');
}

function parameter(document: Json, value: Json): Parameter {
  const it = found(document, value);
  return { name: text(it['name']), where: text(it['in']), required: it['required'] === true, type: typeOf(it['schema']), about: text(it['description']) };
}

function answer(document: Json, status: string, value: Json): Answer {
  const it = found(document, value);
  const headers = Object.entries(fields(it['headers'])).map(([name, of]) => [name, text(fields(of)['description'])].filter(Boolean).join(': '));
  return { status, about: text(it['description']), type: content(it), headers };
}

/** Reads a document; whatever is missing is empty. */
export function readDescription(document: Json): Description {
  const root = fields(document);
  const info = fields(root['info']);
  const operations = Object.entries(fields(root['paths'])).flatMap(([path, methods]) =>
    METHODS.filter((method) => fields(methods)[method] !== undefined).map((method): Operation => {
      const it = fields(fields(methods)[method]);
      return {
        method: method.toUpperCase(), path, id: text(it['operationId']), about: text(it['summary']) || text(it['description']),
        parameters: [...items(fields(methods)['parameters']), ...items(it['parameters'])].map((one) => parameter(document, one)),
        body: content(found(document, it['requestBody'])),
        answers: Object.entries(fields(it['responses'])).map(([status, one]) => answer(document, status, one)),
      };
    }));
  const schemas = Object.entries(fields(fields(root['components'])['schemas'])).map(([name, value]): Schema => {
    const it = fields(value);
    const required = items(it['required']);
    const properties = Object.entries(fields(it['properties'])).map(([key, of]): Property => (
      { name: key, required: required.includes(key), type: typeOf(of), about: text(fields(of)['description']) }));
    return { name, type: typeOf(it), properties };
  });
  return { title: text(info['title']), version: text(info['version']), about: text(info['description']), operations, schemas };
}
