/** Fields that say what is wrong with them. */

import { el } from '../dom';

let fields = 0;

interface Options {
  label: string;
  hint: (text: string) => string;
  wrong: (text: string) => string;
  rows?: number;
  autocomplete?: string;
}

export class Field {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement | HTMLTextAreaElement;
  private readonly hint: HTMLElement;
  private readonly fault: HTMLElement;

  constructor(private readonly options: Options) {
    const id = `field${fields += 1}`;
    const shared = { id, required: true, 'aria-describedby': `${id}-hint ${id}-fault`, autocomplete: options.autocomplete ?? 'off', oninput: () => this.typed() };
    this.input = options.rows ? el('textarea', { ...shared, rows: options.rows }) : el('input', { ...shared, type: 'text' });
    this.hint = el('span', { id: `${id}-hint`, class: 'note' }, options.hint(''));
    this.fault = el('p', { id: `${id}-fault`, class: 'fault', role: 'alert' });
    this.element = el('div', { class: 'field' },
      el('div', { class: 'row' }, el('label', { for: id }, options.label), this.hint), this.input, this.fault);
  }

  get value(): string {
    return this.input.value;
  }

  set value(text: string) {
    this.input.value = text;
    this.hint.textContent = this.options.hint(text);
    this.blame('');
  }

  focus(): void {
    this.input.focus();
  }

  /** Whether it can be sent; says why not. */
  check(): boolean {
    const wrong = this.options.wrong(this.value);
    this.blame(wrong);
    return wrong === '';
  }

  private typed(): void {
    this.hint.textContent = this.options.hint(this.value);
    if (this.input.getAttribute('aria-invalid') === 'true') this.check();
  }

  private blame(wrong: string): void {
    if (this.fault.textContent !== wrong) this.fault.textContent = wrong;
    this.input.setAttribute('aria-invalid', String(wrong !== ''));
  }
}

/** A form whose button rests while it is sent; the first wrong field gets the focus. */
export function form(name: string, fields: Field[], button: string, send: () => Promise<void>): HTMLFormElement {
  let sending = false;
  const submit = el('button', { type: 'submit' }, button);
  const element = el('form', {
    'aria-label': name, novalidate: true,
    onsubmit: async (event) => {
      event.preventDefault();
      const wrong = fields.filter((field) => !field.check());
      wrong[0]?.focus();
      if (sending || wrong.length > 0) return;
      sending = true;
      submit.setAttribute('aria-disabled', 'true');
      try {
        await send();
      } finally {
        sending = false;
        submit.removeAttribute('aria-disabled');
      }
    },
  }, fields.map((field) => field.element), submit);
  return element;
}
