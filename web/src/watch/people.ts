// Players and machines with their scores. A press follows one.

import { isMachine } from "../fighter";
import { make, write } from "../page/dom";
import { nameOf, swatch } from "../page/swatch";
import type { Standing } from "./recorded";

interface Row {
  button: HTMLButtonElement;
  score: HTMLElement;
  hp: HTMLElement;
}

export class People {
  readonly element = make("div", "plate people");
  /** In the order that is shown. */
  order: number[] = [];
  private readonly rows = new Map<number, Row>();

  constructor(private readonly follow: (fighter: number) => void) {
    this.element.role = "group";
    this.element.ariaLabel = "Players and machines: press one to follow it";
  }

  /** The best come first. */
  fill(people: Standing[], followed: number | undefined): void {
    people.sort((one, other) => other.kills - one.kills || one.deaths - other.deaths || one.fighter - other.fighter);
    const here = new Set(people.map(({ fighter }) => fighter));
    for (const [fighter, row] of this.rows) {
      if (here.has(fighter)) continue;
      row.button.remove();
      this.rows.delete(fighter);
    }
    for (const person of people) this.write(person, person.fighter === followed);
    const order = people.map(({ fighter }) => fighter);
    if (order.join() === this.order.join()) return;
    this.order = order;
    const focused = document.activeElement;
    this.element.append(...order.flatMap((fighter) => this.rows.get(fighter)?.button ?? []));
    // What is moved loses the focus.
    if (focused instanceof HTMLElement && this.element.contains(focused)) focused.focus({ preventScroll: true });
  }

  private write(person: Standing, followed: boolean): void {
    const row = this.row(person);
    write(row.score, `${person.kills} / ${person.deaths}`);
    row.hp.style.transform = `scaleX(${person.hp / 100})`;
    const who = isMachine(person.fighter) ? `${person.name} (machine)` : person.name;
    row.button.title = `${who}: ${person.kills} kills, ${person.deaths} deaths, ${person.hits} of ${person.shots} shots hit`;
    row.button.classList.toggle("wreck", person.hp === 0);
    row.button.ariaPressed = String(followed);
  }

  private row({ fighter, name }: Standing): Row {
    const known = this.rows.get(fighter);
    if (known) return known;
    const hp = make("i");
    const row = { button: make("button"), score: make("span", "quiet number"), hp };
    row.button.append(swatch(fighter, false), nameOf(fighter, name), row.score, make("span", "bar", hp));
    row.button.addEventListener("click", () => this.follow(fighter));
    this.rows.set(fighter, row);
    return row;
  }
}
