/** Where the time of the good answers went, and the slowest requests. */

import { el, type Child } from './dom';
import { atSecond, count, duration, NOTHING, share } from './format';
import { barsOf, PARTS, partRows, toldParts } from './part-bars';
import type { RunPage, Slow } from './run';
import { table, time } from './table';

const number = true;

export function partsPart(run: RunPage): Child {
  const { parts, steps, slowest } = run.manifest.summary;
  const bars = barsOf(steps);
  return [
    toldParts(parts) && parts && [
      el('p', { class: 'note' }, 'Means over all good answers. Each bar is the mean response time of a label. Only an answer that came in pieces has a transfer. The wait is for a free connection, or for the load generator.'),
      el('div', { class: 'part-legend', 'aria-hidden': 'true' }, PARTS.map(({ name, colour }) => el('span', {}, el('i', { class: 'swatch block', style: `--swatch:var(--${colour})` }), name))),
      el('div', { class: 'part-bars', role: 'img', 'aria-label': bars.map((bar) => `${bar.label}: ${bar.says}`).join('; ') }, bars.map((bar) => el('div', { class: 'part-row', title: bar.says },
        el('span', { class: 'part-name' }, bar.label),
        el('span', { class: 'part-bar' }, bar.pieces.map(({ colour, width }) => el('i', { style: `width:${width.toFixed(2)}%;background:var(--${colour})` }))),
        el('span', { class: 'part-time' }, duration(bar.mean_us))))),
      table('Where the time went', [{ name: 'Part' }, ...['Mean', 'Share', 'Median', 'p99', 'Longest', 'Count'].map((name) => ({ name, number }))],
        partRows(parts).map(({ name, part, of }) => [
          name, duration(part.mean_us), share(of),
          ...(['p50', 'p99', 'max'] as const).map((key) => (part.times_us ? time(part.times_us[key], part.count) : NOTHING)), count(part.count),
        ])),
    ],
    slowest.length > 0 && [
      el('h3', {}, 'The slowest requests that were answered'),
      table('The slowest requests', [{ name: 'Took', number }, { name: 'Label' }, { name: 'Due at', number }, { name: 'Status' }, { name: 'Connection' }, ...PARTS.map(({ name }) => ({ name, number }))],
        slowest.map((it) => [
          duration(it.response_time_us), it.label, atSecond(it.due_us / 1e6), status(it), `${it.connection} of thread ${it.thread}`,
          ...PARTS.map(({ key }) => {
            const us = it[`${key}_us`];
            return us === null ? NOTHING : duration(us);
          }),
        ]), 'plain slowest'),
    ],
  ];
}

function status(it: Slow): Child {
  const shown = it.status === null ? NOTHING : String(it.status);
  return it.outcome === 'ok' ? shown : el('span', { class: 'bad-text' }, `${shown} (${it.outcome})`);
}
