import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';

interface Page {
  file: string;
  /** What stands in the page exactly once, for the Rust side to replace. */
  token?: string;
  /** What may be fetched and run; applies to the built page only (the dev server needs more). */
  policy: (script: string, style: string) => string;
  /** The licence of what is built into it asks to go along. */
  licence?: () => string;
}

const SERVED = (script: string, style: string) =>
  `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'self'`;

/** The pages, by the mode that builds them. */
const PAGES: Record<string, Page> = {
  report: {
    file: 'report.html',
    token: '__TIDEMARK_RUN__',
    // Nothing may be fetched, whatever a run's strings say.
    policy: () => "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'",
    licence: () => `Charts are drawn by uPlot:\n${readFileSync(new URL('./node_modules/uplot/LICENSE', import.meta.url), 'utf8').trim()}`,
  },
  newsfeed: { file: 'newsfeed.html', policy: SERVED },
  ui: { file: 'ui.html', policy: SERVED },
  airline: { file: 'airline.html', policy: SERVED },
  'newsfeed-docs': { file: 'newsfeed-docs.html', policy: SERVED },
};

/** An inline script or style as a policy names it. */
function hash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** Puts the one script and the one style sheet into the page, so that a single file is left. */
function singleFile(of: Page): Plugin {
  return {
    name: 'single-file',
    enforce: 'post',
    generateBundle(_options, bundle) {
      let script = '';
      let style = '';
      for (const [name, file] of Object.entries(bundle)) {
        if (name.endsWith('.html')) continue;
        if (file.type === 'chunk') script += file.code;
        else if (name.endsWith('.css')) style += String(file.source);
        else this.error(`${name} cannot be put into the page`);
        delete bundle[name];
      }
      const page = bundle[of.file];
      if (page?.type !== 'asset') return this.error(`${of.file} is missing from the bundle`);
      script = script.trim().replaceAll('</script', '<\\/script');
      style = style.trim();
      const licence = of.licence ? `<!-- ${of.licence()}\n-->\n` : '';
      const html = String(page.source)
        .replace(/<script type="module"[^>]*><\/script>\s*/, '')
        .replace(/<link rel="stylesheet"[^>]*>\s*/, '')
        .replace('<meta charset="utf-8">', (it) => `${it}\n<meta http-equiv="Content-Security-Policy" content="${of.policy(script, style)}">`)
        .replace('</head>', () => `${licence}<style>${style}</style>\n</head>`)
        .replace('</body>', () => `<script>${script}</script>\n</body>`);
      if (of.token && html.split(of.token).length !== 2) this.error(`${of.token} must stand in the page exactly once`);
      page.source = html;
    },
  };
}

/** The dev server shows the report with the sample run at `/`. */
function sampleRun(): Plugin {
  return {
    name: 'sample-run',
    apply: 'serve',
    configureServer(server) {
      server.middlewares.use((request, _response, next) => {
        if (request.url === '/') request.url = '/report.html';
        next();
      });
    },
    transformIndexHtml(html) {
      if (!html.includes('__TIDEMARK_RUN__')) return html;
      const sample = new URL('./sample/run.json', import.meta.url);
      if (!existsSync(sample)) throw new Error('sample/run.json is missing: node sample/make.mjs');
      return html.replace('__TIDEMARK_RUN__', () => readFileSync(sample, 'utf8').replaceAll('<', '\\u003c'));
    },
  };
}

export default defineConfig(({ mode }) => {
  const page = PAGES[mode] ?? PAGES['report']!;
  return {
    plugins: [sampleRun(), singleFile(page)],
    // The page at /newsfeed.html is that of `tidemark serve newsfeed`, the one at /airline.html of `tidemark serve airline`.
    server: { proxy: { '^/(participant|outbound|openapi.json|rest)': 'http://127.0.0.1:9080' } },
    build: {
      target: 'es2022',
      modulePreload: false,
      assetsInlineLimit: 0,
      // Else a script makes the style, which a policy with hashes forbids.
      cssCodeSplit: page === PAGES['report'],
      // Each page is a build of its own.
      emptyOutDir: false,
      rollupOptions: { input: page.file, output: { format: 'iife' as const } },
    },
  };
});
