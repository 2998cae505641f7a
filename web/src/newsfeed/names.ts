/** Names of participants, each asked for once while it is held. */

import { participant, type Participant } from './api';

/** Names that are held. */
const HELD_MAX = 1_000;

export class Names {
  private readonly held = new Map<number, Promise<string>>();

  constructor(private readonly ask: (id: number) => Promise<Participant> = participant) {}

  /** The name; a number instead where it cannot be had now. */
  of(id: number): Promise<string> {
    const known = this.held.get(id);
    if (known) return known;
    const name = this.ask(id).then((it) => it.name, () => {
      // It is asked for again next time.
      this.held.delete(id);
      return stand(id);
    });
    if (this.held.size >= HELD_MAX) {
      for (const oldest of this.held.keys()) {
        this.held.delete(oldest);
        break;
      }
    }
    this.held.set(id, name);
    return name;
  }
}

/** What stands for a name that is not known yet. */
export function stand(id: number): string {
  return `Participant ${id}`;
}
