import { describe, expect, it } from 'vitest';
import { readDescription, typeOf } from './openapi';

describe('a schema in words', () => {
  it.each([
    [{ $ref: '#/components/schemas/Link' }, 'Link'],
    [{ type: 'array', items: { $ref: '#/components/schemas/Post' } }, 'list of Post'],
    [{ type: 'integer', format: 'int64', minimum: 1 }, 'integer (int64), from 1'],
    [{ type: 'integer', minimum: 1, maximum: 9, default: 9 }, 'integer, 1 to 9, default 9'],
    [{ type: 'string', minLength: 1, maxLength: 50 }, 'string, 1 to 50 characters'],
    [{ type: 'string', maxLength: 64, pattern: '^a$' }, 'string, up to 64 characters, like ^a$'],
    [{ type: ['string', 'null'], enum: ['a', 'b'] }, 'string or null, one of a, b'],
    [{ anyOf: [{ $ref: '#/components/schemas/Link' }, { type: 'integer' }] }, 'Link or integer'],
    [{}, 'anything'],
    [null, 'anything'],
  ])('%j', (schema, words) => expect(typeOf(schema)).toBe(words));
});

describe('a document', () => {
  const document = {
    info: { title: 'newsfeed', version: '0.1.0', description: 'All of it' },
    paths: {
      '/participant/{id}': {
        get: {
          operationId: 'participant', summary: 'A participant', parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }],
          responses: { 200: { description: 'It', headers: { 'next-cursor': { description: 'More' } }, content: { 'application/json': { schema: { $ref: '#/components/schemas/P' } } } }, 404: { $ref: '#/components/responses/404' } },
        },
        post: { requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/P' } } } } },
      },
    },
    components: { schemas: { P: { type: 'object', properties: { id: { type: 'integer' }, note: { type: 'string', description: 'A note' } }, required: ['id'] } }, responses: { 404: { description: 'Nobody' } } },
  };
  it('is read with what it refers to', () => {
    const it = readDescription(document);
    expect([it.title, it.version, it.about]).toEqual(['newsfeed', '0.1.0', 'All of it']);
    expect(it.operations.map(({ method, path }) => `${method} ${path}`)).toEqual(['GET /participant/{id}', 'POST /participant/{id}']);
    expect(it.operations[0]?.parameters).toEqual([{ name: 'id', where: 'path', required: true, type: 'integer', about: '' }]);
    expect(it.operations[0]?.answers).toEqual([
      { status: '200', about: 'It', type: 'P as application/json', headers: ['next-cursor: More'] },
      { status: '404', about: 'Nobody', type: '', headers: [] },
    ]);
    expect(it.operations[1]?.body).toBe('P as application/json');
    expect(it.schemas).toEqual([{ name: 'P', type: 'object', properties: [
      { name: 'id', required: true, type: 'integer', about: '' }, { name: 'note', required: false, type: 'string', about: 'A note' }] }]);
  });
  it('is empty where it is no document', () => {
    for (const odd of [null, 7, 'x', [], {}, { paths: { '/': null }, components: { schemas: [] } }]) expect(readDescription(odd).operations).toEqual([]);
  });
});
