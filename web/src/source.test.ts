import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const sources = readdirSync(new URL('.', import.meta.url), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));

describe('the sources', () => {
  it.each(sources)('%s never makes markup of a string', (name) => {
    const text = readFileSync(new URL(name, import.meta.url), 'utf8');
    expect(text).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\(|new Function/);
  });
});

describe('the built page', () => {
  const page = readFileSync(new URL('../dist/report.html', import.meta.url), 'utf8');
  it('has one place for the run', () => {
    expect(page.split('__TIDEMARK_RUN__')).toHaveLength(2);
    expect(page).toContain('<script type="application/json" id="run">__TIDEMARK_RUN__</script>');
  });
  it('is small and refers to nothing outside', () => {
    expect(page.length).toBeLessThan(200_000);
    expect(page).not.toMatch(/<(script|link|img|iframe)[^>]+(src|href)="(?!data:)/);
    expect(page).not.toMatch(/@import|url\((?!data:)/);
    expect(page).toContain("default-src 'none'");
    expect(page).toContain('The MIT License (MIT)');
  });
});
