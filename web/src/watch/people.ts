// The players with their scores. A press follows one.

import { colourOf } from "../draw/palette";
import { make, write } from "../page/dom";
import type { Person } from "./recorded";

interface Row {
  button: HTMLButtonElement;
  name: HTMLElement;
  score: HTMLElement;
  hp: HTMLElement;
}

export class People {
  readonly element = make("div", "plate people");
  /** In the order that is shown. */
  order: number[] = [];
  private readonly rows = new Map<number, Row>();

  constructor(private readonly follow: (player: number) => void) {
    this.element.role = "group";
    this.element.ariaLabel = "Players: press one to follow it";
  }

  /** The best come first. */
  fill(people: Person[], followed: number | undefined): void {
    people.sort((one, other) => other.kills - one.kills || one.deaths - other.deaths || one.player - other.player);
    const here = new Set(people.map(({ player }) => player));
    for (const [player, row] of this.rows) {
      if (here.has(player)) continue;
      row.button.remove();
      this.rows.delete(player);
    }
    for (const person of people) this.write(person, person.player === followed);
    const order = people.map(({ player }) => player);
    if (order.join() === this.order.join()) return;
    this.order = order;
    const focused = document.activeElement;
    this.element.append(...order.flatMap((player) => this.rows.get(player)?.button ?? []));
    // What is moved loses the focus.
    if (focused instanceof HTMLElement && this.element.contains(focused)) focused.focus({ preventScroll: true });
  }

  private write(person: Person, followed: boolean): void {
    const row = this.row(person.player);
    write(row.name, person.name);
    write(row.score, `${person.kills} / ${person.deaths}`);
    row.hp.style.transform = `scaleX(${person.hp / 100})`;
    row.button.title = `${person.name}: ${person.kills} kills, ${person.deaths} deaths, ${person.hits} of ${person.shots} shots hit`;
    row.button.classList.toggle("wreck", person.hp === 0);
    row.button.ariaPressed = String(followed);
  }

  private row(player: number): Row {
    const known = this.rows.get(player);
    if (known) return known;
    const swatch = make("i", "colour");
    swatch.style.background = colourOf(player, false);
    const hp = make("i");
    const row = { button: make("button"), name: make("span", "name"), score: make("span", "quiet number"), hp };
    row.button.append(swatch, row.name, row.score, make("span", "bar", hp));
    row.button.addEventListener("click", () => this.follow(player));
    this.rows.set(player, row);
    return row;
  }
}
