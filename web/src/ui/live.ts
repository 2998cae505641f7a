/** A run that is running: its last second in figures, the last minutes as lines. */

import { el, svg, type Child } from '../dom';
import { atSecond, clock, cores, count, duration, quantity, rate, size } from '../format';
import { heightOf, moments, place, points, type Live, type Second } from './read';

interface Line {
  name: string;
  colour: string;
  values: (number | null)[];
}

export function liveView(name: string, live: Live): Child[] {
  const last = live.seconds.at(-1);
  return [
    el('section', {},
      el('h2', {}, live.scenario || name),
      el('p', { class: 'note' }, [live.system, live.load].filter(Boolean).join(' · ')),
      state(name, live, last)),
    last && el('section', { 'aria-label': 'The last second' }, el('dl', { class: 'tiles' }, tiles(last))),
    last && el('section', {},
      chart(live.seconds, 'Throughput', 'per second', rate, [
        { name: 'offered', colour: 'c0', values: live.seconds.map((it) => it.offered_per_s) },
        { name: 'achieved', colour: 'c1', values: live.seconds.map((it) => it.achieved_per_s) },
        { name: 'errors', colour: 'bad', values: live.seconds.map((it) => it.errors_per_s) },
      ]),
      chart(live.seconds, 'Response time', 'of all requests that ended in each second, logarithmic; a gap: not reached, or too few', duration, [
        { name: 'p50', colour: 'p50', values: live.seconds.map((it) => it.p50_us) },
        { name: 'p99', colour: 'p99', values: live.seconds.map((it) => it.p99_us) },
      ], true)),
    live.processes.length > 0 && el('section', {},
      el('h2', { class: 'quiet-heading' }, 'CPU and memory'),
      el('div', { class: 'scroll' }, el('table', {},
        el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Process'), el('th', { scope: 'col', class: 'number' }, 'Cores'), el('th', { scope: 'col', class: 'number' }, 'Memory'))),
        el('tbody', {}, live.processes.map((it) => el('tr', {}, el('td', {}, it.name), el('td', { class: 'number' }, cores(it.cpu_share)), el('td', { class: 'number' }, size(it.rss_bytes)))))))),
    live.events.length > 0 && el('section', {},
      el('h2', { class: 'quiet-heading' }, 'Events'),
      el('div', { class: 'scroll' }, el('table', {}, el('tbody', {}, live.events.toReversed().map((it) =>
        el('tr', {}, el('td', { class: 'number' }, atSecond(it.at_s)), el('td', {}, it.kind), el('td', {}, it.text))))))),
  ];
}

function state(name: string, live: Live, last: Second | undefined): Child {
  if (!live.running) return el('p', {}, 'This run has ended: ', el('a', { href: place('runs', name, '/report.html') }, 'its report'), '.');
  if (!last) return el('p', {}, 'Its load has not begun.');
  const now_us = last.at_s * 1e6;
  const phase = live.phases.findLast((it) => it.start_us < now_us);
  const end_us = Math.max(0, ...live.phases.map((it) => it.end_us));
  const left = end_us > now_us ? `${clock((end_us - now_us) / 1e6, true)} left` : 'nearly over';
  return el('p', { role: 'status' }, [phase && `${phase.name}: ${phase.level}`, `${clock(last.at_s, true)} since it began`, left, last.in_window ? 'measured' : 'not measured'].filter(Boolean).join(' · '));
}

function tiles(last: Second): HTMLElement[] {
  const tile = (name: string, value: string, below: string, bad = false) => el('div', { class: bad ? 'tile bad' : 'tile' }, el('dt', {}, name), el('dd', { class: 'figure' }, value), el('dd', { class: 'below' }, below));
  const none = last.errors_per_s > 0 ? 'not reached, or too few requests' : 'too few requests';
  return [
    tile('Achieved', rate(last.achieved_per_s), `of ${rate(last.offered_per_s)} offered`),
    tile('p50, median', duration(last.p50_us), last.p50_us === null ? none : 'in the last second'),
    tile('p99', duration(last.p99_us), last.p99_us === null ? none : 'in the last second'),
    tile('Errors', rate(last.errors_per_s), `${count(last.errors)} so far`, last.errors_per_s > 0),
    tile('In flight', quantity(last.in_flight), `${quantity(last.waiting)} wait for a connection`),
    tile('Requests', quantity(last.requests), `so far; ${count(last.dropped)} dropped`, last.dropped > 0),
  ];
}

function chart(seconds: readonly Second[], title: string, note: string, format: (value: number | null) => string, lines: Line[], log = false): HTMLElement {
  const shown = lines.filter((line) => line.values.some((value) => value !== null && value !== 0));
  const values = shown.map((line) => line.values);
  const drawn = points(values, log);
  const height = heightOf(values, log);
  const highest = Math.max(0, ...values.flat().filter((value) => value !== null));
  return el('figure', { class: 'chart' },
    el('figcaption', {}, el('h3', {}, title), el('span', { class: 'note' }, `${note}; highest: ${format(highest)}`)),
    el('div', { class: 'drawn' },
      svg('svg', { class: 'marks', viewBox: '0 0 64 150', width: 64, height: 150, 'aria-hidden': 'true' },
        height.marks.map((value) => svg('text', { x: 64, y: (height.of(value) * 1.5).toFixed(1), 'text-anchor': 'end', 'dominant-baseline': 'central' }, format(value)))),
      svg('svg', { class: 'line', viewBox: '0 0 1000 100', preserveAspectRatio: 'none', role: 'img', 'aria-label': shown.map((line) => `${line.name} ${format(line.values.at(-1) ?? null)}`).join(', ') },
        height.marks.map((value) => svg('line', { class: 'mark', x1: 0, x2: 1000, y1: height.of(value).toFixed(1), y2: height.of(value).toFixed(1) })),
        drawn.flatMap((pieces, index) => pieces.map((piece) => svg('polyline', { class: shown[index]?.colour ?? 'c1', points: piece })))),
      el('div', { class: 'moments', 'aria-hidden': 'true' }, moments(seconds).map((at_s) => el('span', {}, clock(at_s, true))))),
    el('div', { class: 'key' }, shown.map((line) => el('span', {}, el('i', { class: `swatch ${line.colour}` }), `${line.name} ${format(line.values.at(-1) ?? null)}`))));
}
