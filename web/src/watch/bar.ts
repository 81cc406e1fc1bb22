// The bar at the bottom: play, speed, time, what is followed, and the way out.

import { make, write } from "../page/dom";
import { clock } from "../page/words";

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

/** Strokes of 24 by 24. */
const ICONS = {
  play: "M7 4l13 8-13 8z",
  pause: "M8 5v14M16 5v14",
  whole: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  people: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-4 2.5-6 6-6s6 2 6 6M16 11a3 3 0 0 0 0-6M17 14c2.6.5 4 2.5 4 6",
  close: "M6 6l12 12M18 6L6 18",
} as const;

export interface Pressed {
  play: () => void;
  speed: (speed: number) => void;
  whole: () => void;
  people: () => void;
  close: () => void;
}

export class Bar {
  readonly element = make("div", "plate bar-of-time");
  private readonly play = tool("play", "Play");
  private readonly speed = make("select");
  private readonly time = make("span", "number time");
  private readonly subject = make("p", "subject");
  private readonly note = make("p", "note");
  private readonly whole = tool("whole", "Whole arena (F)");
  private readonly people = tool("people", "Players");
  private playing: boolean | undefined;

  constructor(title: string, timeline: HTMLElement, pressed: Pressed) {
    const close = tool("close", "Close (Escape)");
    for (const speed of SPEEDS) this.speed.append(new Option(`${speed}×`, String(speed)));
    this.speed.ariaLabel = "Speed";
    this.speed.value = "1";
    this.people.classList.add("for-people");
    this.note.hidden = true;
    this.note.role = "status";
    const name = make("strong", "title", title);
    const tools = make("div", "tools", this.play, this.speed, this.time, name, this.subject, this.whole, this.people, close);
    this.element.append(this.note, timeline, tools);
    this.play.addEventListener("click", pressed.play);
    this.speed.addEventListener("change", () => pressed.speed(Number(this.speed.value)));
    this.whole.addEventListener("click", pressed.whole);
    this.people.addEventListener("click", pressed.people);
    close.addEventListener("click", pressed.close);
  }

  frame(now: number, length: number, playing: boolean): void {
    write(this.time, `${clock(now)} / ${clock(length)}`);
    if (playing === this.playing) return;
    this.playing = playing;
    draw(this.play, playing ? "pause" : "play", playing ? "Pause (Space)" : "Play (Space)");
  }

  /** Whom the picture follows, in words. */
  tell(subject: string, whole: boolean, people: boolean): void {
    write(this.subject, subject);
    this.subject.title = subject;
    this.whole.ariaPressed = String(whole);
    this.people.ariaPressed = String(people);
  }

  /** What is wrong with the file, if anything is. */
  warn(text: string): void {
    this.note.hidden = text === "";
    write(this.note, text);
  }
}

function tool(icon: keyof typeof ICONS, label: string): HTMLButtonElement {
  const button = make("button", "tool");
  draw(button, icon, label);
  return button;
}

function draw(button: HTMLButtonElement, icon: keyof typeof ICONS, label: string): void {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(svg.namespaceURI, "path");
  path.setAttribute("d", ICONS[icon]);
  svg.append(path);
  button.replaceChildren(svg);
  button.title = button.ariaLabel = label;
}
