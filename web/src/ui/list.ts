/** The list of runs: the newest first, two of them to be compared. */

import { el, type Child } from '../dom';
import { count, duration, moment, NOTHING, plural, rate, share } from '../format';
import { badge, comparison, hasHistory, historyOf, isComparable, pageOf, type Listed, type Listing } from './read';

/** Names of the runs that are chosen, the first that is chosen first. */
const chosen: string[] = [];

export function listView(listing: Listing, renew: () => void): Child[] {
  const there = new Set(listing.runs.filter(isComparable).map((run) => run.name));
  chosen.splice(0, chosen.length, ...chosen.filter((name) => there.has(name)));
  if (listing.runs.length === 0) {
    return [el('p', { class: 'empty' }, 'No run is here yet. ', el('code', {}, 'tidemark run'), ' makes one; it shows up as soon as it begins.')];
  }
  const compare = comparing();
  return [
    el('div', { class: 'row' },
      el('p', { class: 'note' }, plural(listing.runs.length, 'run'), listing.left_out > 0 && `, and ${count(listing.left_out)} older ones that are not listed`),
      compare),
    el('div', { class: 'scroll' }, el('table', { class: 'runs' },
      el('caption', { class: 'unseen' }, 'Runs'),
      el('thead', {}, el('tr', {}, [['', ''], ['Run', ''], ['Verdict', ''], ['Achieved', 'number'], ['p99', 'number'], ['Failed', 'number'], ['System', '']].map(([name, kind]) =>
        el('th', { scope: 'col', class: kind || null }, name)))),
      el('tbody', {}, listing.runs.map((run) => row(run, renew))))),
  ];
}

function comparing(): HTMLElement {
  const button = el('button', { type: 'button', class: 'button', onclick: () => {
    const [a, b] = chosen;
    if (a !== undefined && b !== undefined) location.assign(comparison(a, b));
  } });
  button.disabled = chosen.length !== 2;
  button.textContent = chosen.length === 2 ? 'Compare the two' : `Compare two runs: choose ${chosen.length === 1 ? 'one more' : 'them'}`;
  return button;
}

function row(run: Listed, renew: () => void): HTMLElement {
  const { word, tone } = badge(run);
  const link = pageOf(run);
  const box = isComparable(run) && el('input', {
    type: 'checkbox', 'aria-label': `Compare ${run.name}`, checked: chosen.includes(run.name),
    onchange: (event) => {
      const at = chosen.indexOf(run.name);
      if (at >= 0) chosen.splice(at, 1);
      if ((event.currentTarget as HTMLInputElement).checked) chosen.push(run.name);
      // a third takes the place of the first
      chosen.splice(0, Math.max(0, chosen.length - 2));
      renew();
    },
  });
  const size = run.compared !== null ? plural(run.compared, 'run') : run.trials !== null ? plural(run.trials, 'trial') : '';
  const name = el('td', {}, link === null ? run.name : el('a', { href: link }, run.name),
    el('span', { class: 'sub' }, [run.scenario, moment(run.started_at), size].filter(Boolean).join(' · '),
      hasHistory(run) && [' · ', el('a', { href: historyOf(run.scenario), 'aria-label': `history of ${run.scenario}` }, 'history')]));
  const worth = el('span', { class: `badge ${tone}` }, word);
  if (run.trials !== null) {
    // it has no figures of one run
    return el('tr', {}, el('td'), name,
      el('td', { colspan: 5 }, worth, [...run.says, ...run.reasons].map((says) => el('span', { class: 'sub' }, says))));
  }
  return el('tr', {},
    el('td', {}, box),
    name,
    el('td', {}, worth, run.reasons[0] && el('span', { class: 'sub' }, run.reasons[0]),
      run.warnings > 0 && el('span', { class: 'sub warnings' }, plural(run.warnings, 'warning'))),
    el('td', { class: 'number', 'data-name': 'Achieved' }, rate(run.achieved_per_s), run.offered_per_s !== null && el('span', { class: 'sub' }, `of ${rate(run.offered_per_s)}`)),
    el('td', { class: 'number', 'data-name': 'p99' }, run.achieved_per_s === null ? NOTHING : duration(run.p99_us)),
    el('td', { class: 'number', 'data-name': 'Failed' }, run.failed_share === null ? NOTHING : share(run.failed_share)),
    el('td', {}, run.system, run.load && el('span', { class: 'sub' }, run.load)));
}
