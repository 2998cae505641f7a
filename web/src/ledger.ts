/** Whether anything was lost: what the ledger says, held against what the system showed afterwards. */

import { el, facts, type Child } from './dom';
import { atSecond, count, moment, share } from './format';
import type { EntryExample, Ledger, Manifest, Verified } from './run';
import { table } from './table';

/** Names for people. */
const KINDS: Record<string, string> = {
  lost: 'Lost', duplicated: 'Duplicated', different: 'Different content', unacknowledged_found: 'Found, never acknowledged',
};

/** Whether the end of the ledger is not known, so that nothing lost in it proves nothing about that. */
export const isCutOff = (ledger: Ledger): boolean => ledger.broke_off || ledger.torn > 0;

export function ledgerPart(ledger: Ledger, manifest: Manifest): Child {
  const { verified } = ledger;
  const torn = isCutOff(ledger) && el('p', { class: 'note' }, ledger.torn > 0
    ? 'The load generator died while it wrote the ledger: its last second is missing.'
    : 'The run broke off: what was sent in its last second is not in the ledger, nor whether it was acknowledged.');
  if (!verified) {
    return [
      el('p', { class: 'lead bad-text' }, `▲ Not verified: ${ledger.not_verified || 'nobody looked'}`),
      facts([['Acknowledged', count(ledger.acknowledged)], ['Sent', count(ledger.sent)], ['Durability', manifest.system.durability]]),
      torn,
    ];
  }
  return [
    el('p', { class: 'lead' }, 'Everything that the system held was read back after the load; each content says whose it is, and its checksum whether it is as it was sent.'),
    table('Nothing lost?', [{ name: 'What became of the writes' }, { name: 'Writes', number: true }, { name: 'Of the acknowledged', number: true }], numbers(ledger, verified)),
    facts([
      ['Durability', manifest.system.durability],
      ['System counts', verified.counted !== null && systemCounts(verified.counted, verified)],
      ['Read back in', `${verified.took_s.toFixed(1)}\u202fs, until ${moment(verified.verified_at)}`],
    ]),
    torn,
    lostWhen(verified),
    examples(verified.examples),
  ];
}

function numbers(ledger: Ledger, it: Verified): Child[][] {
  const part = (number: number) => (ledger.acknowledged > 0 ? share(number / ledger.acknowledged) : '');
  const wrong = (number: number) => el('span', { class: number > 0 ? 'bad-text' : 'good-text' }, number > 0 ? `✗ ${count(number)}` : '✓ 0');
  const rows: Child[][] = [
    ['Sent', count(ledger.sent), ''],
    ['Acknowledged', count(ledger.acknowledged), ''],
    ['Acknowledged and found', count(it.found), part(it.found)],
    ['Lost: acknowledged and not found', isCutOff(ledger) && it.lost === 0 ? el('span', { class: 'bad-text' }, '? 0, undecided') : wrong(it.lost), part(it.lost)],
    ['Duplicated: found too often', wrong(it.duplicated), part(it.duplicated)],
    ['Found with different content', wrong(it.different), part(it.different)],
    [isCutOff(ledger) ? 'Found, may have been acknowledged' : 'Found, never acknowledged (allowed)', count(it.unacknowledged_found), ''],
  ];
  if (it.foreign > 0) rows.push(['Found and not of this run', count(it.foreign), '']);
  return rows;
}

function systemCounts(counted: number, it: Verified): Child {
  const shown = it.found + it.unacknowledged_found + it.duplicated + it.foreign;
  return counted === shown
    ? `${count(counted)}, as many as it showed`
    : el('span', { class: 'bad-text' }, `✗ ${count(counted)}, but it showed ${count(shown)}`);
}

const between = (from_us: number, to_us: number) => `${atSecond(from_us / 1e6)} to ${atSecond(to_us / 1e6)}`;

function lostWhen(it: Verified): Child {
  return it.lost_when.length > 0 && [
    el('h3', {}, 'When the lost writes were sent'),
    table('When the lost writes were sent', [{ name: 'Sent within' }, { name: 'Lost', number: true }],
      it.lost_when.map((when) => [between(when.from_us, when.to_us), count(when.lost)])),
  ];
}

function examples(of: EntryExample[]): Child {
  return of.length > 0 && [
    el('h3', {}, 'The first of each kind'),
    table('The first of each kind', [{ name: 'What' }, { name: 'Entry' }, { name: 'Sent within' }],
      of.map((it) => [KINDS[it.kind] ?? it.kind, el('code', {}, it.entry), it.sent_us ? between(it.sent_us[0], it.sent_us[1]) : ''])),
  ];
}
