/** The report page: reads the run, or the comparison of several, that stands in it and lays it out. */

import 'uplot/dist/uPlot.min.css';
import { readComparison } from './compared';
import { comparisonPage } from './comparison';
import { el } from './dom';
import { readRun, type RunPage } from './run';
import { page } from './page';
import { drawAll, startStage } from './stage';
import { startTheme, themeButton } from './theme';

function start(): void {
  startTheme();
  const source = document.getElementById('run')?.textContent ?? '';
  const compared = readComparison(source);
  if (compared) {
    document.title = `${compared.name} · Tidemark`;
    document.body.append(...comparisonPage(compared));
    finish();
    return;
  }
  let run: RunPage;
  try {
    run = readRun(source);
  } catch (error) {
    document.body.append(el('main', { class: 'alone' }, el('h1', {}, 'Tidemark'), el('p', {}, error instanceof Error ? error.message : String(error)), themeButton()));
    return;
  }
  const { manifest } = run;
  document.title = `${[manifest.scenario, manifest.summary.verdict.status, manifest.id].filter(Boolean).join(' · ')} · Tidemark`;
  document.body.append(...page(run, source));
  finish();
}

function finish(): void {
  startStage();
  drawAll();
  // For whoever photographs or checks the page: everything is drawn.
  document.documentElement.dataset['ready'] = 'true';
}

start();
