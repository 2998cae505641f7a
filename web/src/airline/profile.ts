/** One's profile, which a password changes. */

import { el, facts, type Child } from '../dom';
import { ADDRESS, profile, update, type Profile } from './api';
import { done, field, form, loaded, put, select, type View } from './parts';
import { many } from './words';

/** Longest text of a profile, in characters; the server's own bound. */
const TEXT_CHARS_MAX = 256;
const PHONE_TYPES = [['HOME', 'Home'], ['BUSINESS', 'Business'], ['MOBILE', 'Mobile'], ['UNKNOWN', 'Other']] as const;

export function profileView(user: string): View {
  return { title: 'Profile', elements: [loaded(() => profile(user), (known) => drawn(user, known))] };
}

function input(value: string, autocomplete: string, required: boolean): HTMLInputElement {
  return el('input', { type: 'text', value, autocomplete, required, maxlength: TEXT_CHARS_MAX });
}

/** `EXEC_PLATINUM` as `Exec platinum`. */
export function status(text: string): string {
  return text.charAt(0) + text.slice(1).toLowerCase().replaceAll('_', ' ');
}

function drawn(user: string, known: Profile): Child {
  const standing = el('div', { class: 'card' }, facts([
    ['Customer', el('bdi', {}, user)], ['Status', status(known.status)],
    ['Miles', many(known.totalMiles, 'mile')], ['This year', many(known.milesYtd, 'mile')],
  ]));
  const address = ADDRESS.map(([name, label, autocomplete]) => {
    const control = input(known.address[name] ?? '', autocomplete, name !== 'streetAddress2');
    return { name, label, control };
  });
  const phone = input(known.phone, 'tel', true);
  const phoneType = select(PHONE_TYPES, known.phoneType);
  const password = el('input', { type: 'password', required: true, autocomplete: 'current-password' });
  const change = form('Profile', [
    el('div', { class: 'fields' }, address.map(({ label, control }) => field(label, control)),
      field('Telephone', phone), field('Kind of telephone', phoneType), field('Password, to confirm', password)),
  ], ['Update profile'], async () => {
    const now = await update(user, password.value, {
      address: Object.fromEntries(address.map(({ name, control }) => [name, control.value])),
      phone: phone.value, phoneType: phoneType.value,
    });
    password.value = '';
    for (const { name, control } of address) control.value = now.address[name] ?? '';
    phone.value = now.phone;
    return done('The profile is updated.');
  });
  const card = el('div', { class: 'card' });
  put(card, el('h2', {}, 'Address and telephone'), change);
  return [standing, card];
}
