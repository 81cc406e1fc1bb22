// The way to a recording: a file dropped anywhere on the page, or chosen. The player is loaded with the first file, so
// that playing a match does not wait for it.

import type { Theme } from "../draw/palette";
import { element } from "../page/dom";
import type { Show } from "./show";

/** The page, as the player of recordings needs it. */
export interface Host {
  canvas: HTMLCanvasElement;
  theme: () => Theme;
  /** The arena is wanted: a player that is in a match leaves it, and may refuse to. */
  begin: () => Promise<boolean>;
  /** It is free again; why there is nothing to be seen, unless somebody closed it. */
  end: (problem?: string) => void;
}

/** Bytes. A day of sixteen players has a tenth of it. */
const LARGEST = 400e6;

export class Watch {
  private show: Show | undefined;
  /** Of several files, the last one counts. */
  private turn = 0;
  private readonly zone = element("drop");
  private readonly chooser = element("watch-file", "input");

  constructor(private readonly host: Host) {
    element("watch", "button").addEventListener("click", () => this.chooser.click());
    this.chooser.addEventListener("change", () => {
      const file = this.chooser.files?.[0];
      // The same file again is a change too.
      this.chooser.value = "";
      if (file) void this.open(file);
    });
    this.listenForFiles();
  }

  get isOpen(): boolean {
    return this.show !== undefined;
  }

  repaint(): void {
    this.show?.repaint();
  }

  /** Ends the recording, if one is shown. */
  close(problem?: string): void {
    if (!this.show) return;
    this.show.end();
    this.show = undefined;
    this.host.end(problem);
  }

  private async open(file: File): Promise<void> {
    const turn = ++this.turn;
    try {
      if (file.size > LARGEST) throw new Error("this file is too large for a page: `tanks replay` reads it");
      const [{ Show }, { Recorded }, bytes] = await Promise.all([
        import("./show").catch(() => {
          throw new Error("the player could not be loaded: try again, or reload the page");
        }),
        import("./recorded"),
        file.arrayBuffer(),
      ]);
      const recorded = await Recorded.open(new Uint8Array(bytes));
      if (turn !== this.turn) return recorded.free();
      if (this.show) this.show.end();
      else if (!(await this.host.begin())) return recorded.free();
      if (turn !== this.turn) return recorded.free();
      this.show = undefined;
      this.show = new Show(this.host, recorded, (problem) => this.close(problem));
    } catch (problem) {
      if (turn !== this.turn) return;
      const words = problem instanceof Error ? problem.message : String(problem);
      const text = `${file.name}: ${words}.`;
      if (this.show) this.show.say(text);
      else this.host.end(text);
    }
  }

  private listenForFiles(): void {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    // Every element that is crossed is entered before the last one is left.
    let inside = 0;
    const over = (change: number) => {
      inside = change === 0 ? 0 : Math.max(0, inside + change);
      this.zone.hidden = inside === 0;
    };
    addEventListener("dragenter", (event) => {
      if (hasFiles(event)) over(1);
    });
    addEventListener("dragleave", (event) => {
      if (hasFiles(event)) over(-1);
    });
    addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      if (event.dataTransfer) event.dataTransfer.dropEffect = "copy";
    });
    addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      over(0);
      const file = event.dataTransfer?.files[0];
      if (file) void this.open(file);
    });
  }
}
