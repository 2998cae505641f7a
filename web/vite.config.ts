import { existsSync, readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';

/** What the Rust side replaces with the run. It must stand in the built page exactly once. */
const TOKEN = '__TIDEMARK_RUN__';

/** Nothing may be fetched, whatever a run's strings say; applies to the built page only (the dev server needs more). */
const POLICY =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/** The chart library's licence asks to go wherever its code goes. */
const LICENCE = readFileSync(new URL('./node_modules/uplot/LICENSE', import.meta.url), 'utf8').trim();

/** Puts the one script and the one style sheet into the page, so that a single file is left. */
function singleFile(): Plugin {
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
      const page = bundle['report.html'];
      if (page?.type !== 'asset') return this.error('report.html is missing from the bundle');
      const html = String(page.source)
        .replace(/<script type="module"[^>]*><\/script>\s*/, '')
        .replace(/<link rel="stylesheet"[^>]*>\s*/, '')
        .replace('<meta charset="utf-8">', (it) => `${it}\n<meta http-equiv="Content-Security-Policy" content="${POLICY}">`)
        .replace('</head>', () => `<!-- Charts are drawn by uPlot:\n${LICENCE}\n-->\n<style>${style.trim()}</style>\n</head>`)
        .replace('</body>', () => `<script>${script.trim().replaceAll('</script', '<\\/script')}</script>\n</body>`);
      if (html.split(TOKEN).length !== 2) this.error(`${TOKEN} must stand in the page exactly once`);
      page.source = html;
    },
  };
}

/** The dev server shows the sample run. */
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
      const sample = new URL('./sample/run.json', import.meta.url);
      if (!existsSync(sample)) throw new Error('sample/run.json is missing: node sample/make.mjs');
      return html.replace(TOKEN, () => readFileSync(sample, 'utf8').replaceAll('<', '\\u003c'));
    },
  };
}

export default defineConfig({
  plugins: [sampleRun(), singleFile()],
  build: {
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      input: 'report.html',
      output: { format: 'iife' },
    },
  },
});
