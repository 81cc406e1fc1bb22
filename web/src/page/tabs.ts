// Tabs of this browser that play: a name that is "taken" may be the player itself, in another tab.

type Message = { type: "ask" | "here" | "leave"; place: string };

/** Milliseconds that another tab has for its answer. A tab in the background answers too: messages are no timers. */
const ANSWER = 200;

export class Tabs {
  private readonly channel = "BroadcastChannel" in window ? new BroadcastChannel("halftrack") : undefined;
  private answered: ((place: string) => void) | undefined;

  /** `place` is the name and room that this tab plays in; `leave` is called when another tab takes them over. */
  constructor(place: () => string | undefined, leave: () => void) {
    this.channel?.addEventListener("message", ({ data }: MessageEvent<Message>) => {
      if (data.type === "here") return this.answered?.(data.place);
      if (data.place !== place()) return;
      if (data.type === "ask") this.say("here", data.place);
      else leave();
    });
  }

  /** Whether another tab plays there. */
  isElsewhere(place: string): Promise<boolean> {
    if (!this.channel) return Promise.resolve(false);
    return new Promise((resolve) => {
      setTimeout(() => resolve(false), ANSWER);
      this.answered = (where) => {
        if (where === place) resolve(true);
      };
      this.say("ask", place);
    });
  }

  /** Makes the other tab leave. */
  takeOver(place: string): void {
    this.say("leave", place);
  }

  private say(type: Message["type"], place: string): void {
    this.channel?.postMessage({ type, place } satisfies Message);
  }
}
