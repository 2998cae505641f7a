/** Signing in. */

import { el } from '../dom';
import { Failure } from '../asked';
import { login } from './api';
import { field, form, type View } from './parts';

/** The first of the customers that the loader makes, who all have one password. */
const EXAMPLE = ['uid0@email.com', 'password'];

/** `why` says why one has to sign in, if one has not asked for it. */
export function signInView(why: string, enter: (user: string) => void): View {
  const user = el('input', { type: 'text', required: true, autocomplete: 'username', value: EXAMPLE[0], autocapitalize: 'none', spellcheck: 'false' });
  const password = el('input', { type: 'password', required: true, autocomplete: 'current-password', value: EXAMPLE[1] });
  const sign = form('Sign in', [field('User', user), field('Password', password)], ['Sign in'], async () => {
    try {
      await login(user.value, password.value);
    } catch (error) {
      // Said at the field where it is mended.
      if (error instanceof Failure && error.status === 403) password.select();
      throw error;
    }
    enter(user.value);
    return null;
  });
  const note = el('p', { class: 'note' }, 'The customers are made up: ', el('code', {}, 'uid0@email.com'), ', ', el('code', {}, 'uid1@email.com'),
    ' and so on, each with the password ', el('code', {}, 'password'), '.');
  return { title: 'Sign in', elements: [...(why === '' ? [] : [el('p', {}, why)]), el('div', { class: 'card narrow' }, sign), note] };
}
