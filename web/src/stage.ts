/** Where every chart of the page stands: sizes, colours and printing are handled here once. */

import uPlot from 'uplot';
import { colour, onTheme, setPrinting } from './theme';

/** Widths on paper, CSS pixels: A4 without its margins, and half of it. */
const PAPER_WIDTH = 680;
const PAPER_HALF = 330;

const waiting: (() => void)[] = [];
const plots: { plot: uPlot; host: HTMLElement; height: number; redraw: () => void }[] = [];

export const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

/** Draws once the page stands, since a chart needs its width. */
export function whenStanding(draw: () => void): void {
  waiting.push(draw);
}

/** Draws everything. All at once, so that a picture or a print of the page is never half empty. */
export function drawAll(): void {
  discard();
  for (const draw of waiting.splice(0)) draw();
}

/** Gives up the charts that others have taken the place of. */
function discard(): void {
  for (let index = plots.length - 1; index >= 0; index -= 1) {
    const entry = plots[index];
    if (!entry || entry.host.isConnected) continue;
    entry.plot.destroy();
    plots.splice(index, 1);
  }
}

/** Puts a chart into its host and keeps it as wide as that. */
export function stand(host: HTMLElement, options: Omit<uPlot.Options, 'width'>, data: uPlot.AlignedData): uPlot {
  const plot = new uPlot({ ...options, width: Math.max(120, host.clientWidth) }, data, host);
  const canvas = host.querySelector('canvas');
  // The text summary of the host speaks for the picture.
  canvas?.setAttribute('aria-hidden', 'true');
  plots.push({ plot, host, height: options.height, redraw: () => plot.redraw(false, true) });
  new ResizeObserver(() => {
    const width = Math.max(120, host.clientWidth);
    if (width !== plot.width) plot.setSize({ width, height: options.height });
  }).observe(host);
  return plot;
}

/** How an axis looks. */
export function axis(options: uPlot.Axis): uPlot.Axis {
  return {
    font: FONT,
    labelFont: FONT,
    stroke: () => colour('muted'),
    grid: { stroke: () => colour('grid'), width: 1 },
    ticks: { show: false },
    gap: 6,
    ...options,
  };
}

/** Follows changes of theme, and printing. */
export function startStage(): void {
  onTheme(() => { for (const { redraw } of plots) redraw(); });
  window.addEventListener('beforeprint', () => {
    setPrinting(true);
    for (const { plot, host, height } of plots) {
      plot.setSize({ width: host.closest('.pair') ? PAPER_HALF : PAPER_WIDTH, height });
    }
  });
  window.addEventListener('afterprint', () => {
    for (const { plot, host, height } of plots) plot.setSize({ width: Math.max(120, host.clientWidth), height });
    setPrinting(false);
  });
}
