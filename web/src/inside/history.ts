// The last minute in numbers, for plots.

import type { Cause, Correction, Diagnostics, Export, Sample } from "../client";

/** Seconds that are plotted. */
export const SPAN = 60;
/** Milliseconds from one sample to the next. */
export const EVERY = 250;

export interface Moment {
  at: number;
  rtt: number | null;
  jitter: number | null;
  lead: number | null;
  margin: number | null;
  remoteDelay: number | null;
  /** Share of pictures of others that stood for want of news, percent. */
  held: number | null;
  /** Bytes per second. */
  up: number | null;
  down: number | null;
}

export class History {
  moments: Moment[] = [];
  corrections: Correction[] = [];
  private last: { sample: Sample; pictures: number; held: number } | undefined;

  /** Samples that the client kept while the panel was closed. */
  refill(told: Export, now: number): void {
    this.moments = [];
    this.last = undefined;
    for (const sample of told.samples) {
      if (sample.at_ms > now - SPAN * 1_000) this.add(sample, NaN, NaN);
    }
    this.corrections = told.corrections.filter(({ at_ms }) => at_ms > now - SPAN * 1_000);
  }

  take(told: Diagnostics): void {
    const { exact, interpolated, extrapolated, held } = told.remotes;
    this.add(told.sample, exact + interpolated + extrapolated + held, held);
    const newest = this.corrections.at(-1)?.at_ms ?? -Infinity;
    this.corrections.push(...told.recent.filter(({ at_ms }) => at_ms > newest));
    const since = told.sample.at_ms - SPAN * 1_000;
    this.corrections = this.corrections.filter(({ at_ms }) => at_ms > since);
    this.moments = this.moments.filter(({ at }) => at > since);
  }

  /** The sizes of corrections of a cause at the times of all of them. Never zero: one that only turned is one. */
  sizes(cause: Cause): (number | null)[] {
    return this.corrections.map((correction) => (correction.cause === cause ? Math.max(correction.distance, Number.MIN_VALUE) : null));
  }

  private add(sample: Sample, pictures: number, held: number): void {
    const { last } = this;
    const passed = last ? (sample.at_ms - last.sample.at_ms) / 1_000 : 0;
    // A counter that has gone back is another client's.
    const rate = (now: number, before: number | undefined) =>
      passed > 0 && before !== undefined && now >= before ? (now - before) / passed : null;
    const drawn = last ? pictures - last.pictures : NaN;
    this.moments.push({
      at: sample.at_ms,
      rtt: sample.rtt_ms,
      jitter: sample.jitter_ms,
      lead: sample.lead_ms,
      margin: sample.margin_ms,
      remoteDelay: sample.remote_delay_ms,
      held: drawn > 0 ? (100 * (held - (last?.held ?? 0))) / drawn : null,
      up: rate(sample.bytes_up, last?.sample.bytes_up),
      down: rate(sample.bytes_down, last?.sample.bytes_down),
    });
    this.last = { sample, pictures, held };
  }
}
